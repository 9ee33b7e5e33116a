//! The asynchronous dependency engine of mxnp: when work runs. It knows no op, no array and no Python.
//!
//! This page is the contract. Both engines keep it: the threaded one, and the naive one, which runs each
//! task on the thread that pushed it and is the oracle for the other.
//!
//! # Tasks and variables
//! - A [`Task`] names what it reads and what it writes; each such thing ([`Tracked`]) has a [`Var`] inside.
//!   [`Engine::push`] puts it in *program order*: each thread's pushes in their order, those of different
//!   threads in some order that is the same for all variables.
//! - Tasks run in any order and at the same time, except that a write to a variable comes after every earlier
//!   read and write of it, and a read after every earlier write. What is both read and written counts as written.
//! - A task only runs: it never waits for a variable, for memory or for the GIL. A wait in a task is an error.
//! - A task that comes back from `push` as [`Ready`] is run by the caller, in the order of its pushes, under no lock
//!   that a task takes. Between the two it must not wait for anything: others may wait for the task.
//!
//! # Waiting
//! [`Engine::wait_read`] waits for the writes of a thing, [`Engine::wait_write`] also for its reads,
//! [`Engine::wait_all`] for every task pushed so far (it ends even while other threads go on pushing). A thread
//! that waits runs queued tasks and chunks meanwhile. Whatever a finished task did is visible afterwards, and
//! what it kept alive has been let go.
//!
//! # Errors
//! - A task fails by its result or by a panic. It makes a *fault*, which its writes carry from then on; what had
//!   contents keeps them.
//! - A task that reads or writes a thing with an active fault is skipped, and its writes carry that fault too
//!   (the first found, writes before reads, in the order listed). A fault is active for a task while no wait
//!   before the task, in program order, has raised it, and for ever on a thing without contents.
//! - A wait for a thing raises its fault and so reports it. After that, things with contents are sound again;
//!   those that were never computed raise it at every wait.
//! - `wait_all` raises the first fault in program order that no wait has raised. At most 64 are kept for it, the
//!   first ones; nothing else keeps a fault but the things that carry it.
//!
//! # Threads
//! - N threads are N - 1 workers and the thread that waits. With one thread there are no workers, and queued
//!   tasks run when someone waits. Workers start when first needed; nothing starts before.
//! - A parallel loop ([`Context::parallel`], [`Engine::parallel`]) runs on the calling thread and on whoever is
//!   idle. A thread in a loop runs chunks of that loop only and can finish it alone; a loop within a chunk is
//!   serial. A panic in a chunk is raised in the caller; when other threads may have joined, after all chunks.
//! - [`Engine::throttle`] holds a pushing thread back while too many tasks or bytes are unfinished. It never
//!   holds a task back, and nobody calls it with a lock held.
//! - Long waits ask the interrupt check, so Ctrl-C ends them; what they waited for goes on.
//!
//! # Fork and exit
//! - [`Engine::prepare_fork`] holds back the pushes and waits of other threads, finishes all tasks and joins the
//!   workers; [`Engine::after_fork_parent`] and [`Engine::after_fork_child`] let them go on or start afresh. The
//!   forking thread takes its own locks first, and must not be in a task.
//! - [`Engine::shutdown`] skips tasks that have not begun (fault: [`EngineError::Cancelled`]), waits for running
//!   ones, and leaves the naive engine with one thread behind: later pushes and waits work and never hang.
//!
//! # Files
//! `node` is the dependency protocol and `var` its ends; `gate` counts who is inside; `sleep` wakes threads;
//! `parallel` is one loop; `queue` and `pool` run things; `threaded` and `naive` are the engines over `shared`;
//! `engine` is the front. Every primitive comes from `sync`, where loom or shuttle can stand in.

mod config;
#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod contention_tests;
mod engine;
mod fault;
mod gate;
#[cfg(all(test, feature = "loom"))]
mod loom_tests;
mod naive;
mod node;
mod parallel;
mod pool;
mod queue;
mod ready;
mod role;
mod shared;
#[cfg(all(test, feature = "shuttle", not(feature = "loom")))]
mod shuttle_tests;
mod sleep;
mod stats;
mod sync;
mod task;
mod threaded;
mod var;

pub use config::{Config, Kind, memory_limit};
pub use engine::{Engine, engine};
pub use fault::{EngineError, TaskError};
pub use ready::Ready;
pub use stats::Stats;
pub use task::{Context, Hint, Run, Task, Tracked, VarRef};
pub use var::Var;
