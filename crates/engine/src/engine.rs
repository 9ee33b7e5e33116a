//! The engine as callers see it: one object in front of the threaded and the naive engine.
//! It must not know how either works.

use crate::config::{Config, Kind};
use crate::fault::{EngineError, TaskError};
use crate::gate::Watch;
use crate::pool::Visit;
use crate::ready::Ready;
use crate::role::Role;
use crate::shared::Shared;
use crate::stats::{Count, Stats};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicPtr, Ordering};
use crate::task::{Hint, Task, Tracked};
use crate::threaded::INTERRUPT;
use mxnp_core::par::Parallel;
use std::sync::OnceLock;

/// A dependency engine with its workers. A program has one, [`engine`]; tests may make more, but a
/// variable must only ever be used with one of them.
pub struct Engine {
    /// Made from an `Arc`. Replaced in a forked child alone, where the old one is leaked.
    shared: AtomicPtr<Shared>,
}

static ENGINE: OnceLock<Engine> = OnceLock::new();

/// The engine of the process, set up from the environment at the first call. Workers start when first needed.
#[inline]
pub fn engine() -> &'static Engine {
    ENGINE.get().unwrap_or_else(set_up)
}

#[cold]
fn set_up() -> &'static Engine {
    ENGINE.get_or_init(|| Engine::new(&Config::from_env()))
}

impl Engine {
    /// An engine of its own.
    pub fn new(config: &Config) -> Self {
        Engine { shared: AtomicPtr::new(Arc::into_raw(Shared::new(config, 0)).cast_mut()) }
    }

    #[inline]
    fn shared(&self) -> &Shared {
        // SAFETY: the pointer came from `Arc::into_raw`, and its count is given up only by `drop`.
        unsafe { &*self.shared.load(Ordering::Acquire) }
    }

    /// Registers a task in program order. Takes only the locks of the task's variables, for a moment; blocks
    /// only during a fork, a change of settings or exit.
    ///
    /// A [`Ready`] comes back when `hint` is [`Hint::Inline`] and every earlier conflicting access has
    /// finished, and always in the naive engine. The caller then runs it, in the order of its pushes, after
    /// releasing its own locks and without taking the GIL in between. Otherwise the task is queued.
    #[must_use]
    pub fn push(&self, mut task: Task, hint: Hint) -> Option<Ready<'_>> {
        task.drop_repeated_writes();
        let shared = self.shared();
        let epoch = shared.gate.enter(task.bytes);
        let node = match shared.kind() {
            Kind::Naive => Some(shared.push_naive(task, epoch)),
            Kind::Threaded => shared.push_threaded(task, hint, epoch),
        };
        node.map(|node| Ready::new(shared, node))
    }

    /// Holds the calling thread back, and lets it run tasks, while too many tasks or bytes are unfinished.
    /// Returns at once in a task. Called with no lock held and the GIL released (see [`Engine::is_crowded`]).
    ///
    /// Errors: only [`EngineError::Interrupted`].
    pub fn throttle(&self) -> Result<(), TaskError> {
        if !self.is_crowded() || Role::current() != Role::Outside {
            return Ok(());
        }
        let shared = self.shared();
        shared.counters.add(Count::Throttled);
        let Config { max_tasks, max_bytes, .. } = shared.config();
        shared.watch_until(Watch::Below(max_tasks / 2, max_bytes / 2))
    }

    /// Whether [`Engine::throttle`] would block. Cheap.
    #[inline]
    pub fn is_crowded(&self) -> bool {
        let shared = self.shared();
        shared.gate.tasks() > shared.max_tasks.load(Ordering::Relaxed)
            || shared.gate.bytes() > shared.max_bytes.load(Ordering::Relaxed)
    }

    /// Waits until every write to `thing` pushed so far has finished, and raises the fault it carries.
    /// Takes no lock if there is neither a write nor a fault.
    ///
    /// Errors: what the failed task gave; [`EngineError`] for a panic, at exit, or when interrupted.
    #[inline]
    pub fn wait_read(&self, thing: &dyn Tracked) -> Result<(), TaskError> {
        if thing.var().is_clean() {
            return Ok(());
        }
        self.wait(thing, false)
    }

    /// Waits until every read and write of `thing` pushed so far has finished, and raises its fault.
    ///
    /// Errors: as [`Engine::wait_read`].
    pub fn wait_write(&self, thing: &dyn Tracked) -> Result<(), TaskError> {
        self.wait(thing, true)
    }

    fn wait(&self, thing: &dyn Tracked, all: bool) -> Result<(), TaskError> {
        let shared = self.shared();
        outside_tasks()?;
        match shared.kind() {
            _ if !all && thing.var().is_ready() => {}
            Kind::Naive => {
                let _visit = Visit::new(shared);
                shared.finish_line();
            }
            Kind::Threaded => shared.wait_for(thing, all)?,
        }
        let _visit = Visit::new(shared);
        shared.raise(thing)
    }

    /// Waits until every task pushed so far has finished, and raises the first error, in program order, that
    /// no wait has raised yet.
    ///
    /// Errors: as [`Engine::wait_read`].
    pub fn wait_all(&self) -> Result<(), TaskError> {
        self.settle()?;
        let shared = self.shared();
        shared.faults.take_first(shared.now()).map_or(Ok(()), Err)
    }

    /// Waits until every task pushed so far has finished. Raises no fault: each stays for the waits it concerns.
    ///
    /// Errors: only [`EngineError::Interrupted`] and [`EngineError::WaitInTask`].
    pub fn settle(&self) -> Result<(), TaskError> {
        let shared = self.shared();
        outside_tasks()?;
        if shared.kind() == Kind::Naive {
            let _visit = Visit::new(shared);
            shared.finish_line();
            return Ok(());
        }
        shared.wait_for_all()
    }

    /// Whether some worker has nothing to do, so that handing work over is worth it. A cheap guess; false
    /// when there are no workers.
    pub fn idle(&self) -> bool {
        let shared = self.shared();
        shared.kind() == Kind::Threaded
            && shared.threads.load(Ordering::Relaxed) > 1
            && (shared.sleep.has_idle() || !shared.started.load(Ordering::Relaxed))
    }

    /// Runs parallel loops outside tasks on the engine's workers.
    pub fn parallel(&self) -> &dyn Parallel {
        self.shared()
    }

    /// Sets the number of threads: one less is the number of workers. Waits for what is unfinished. Zero counts
    /// as one. Ignored in a task.
    pub fn set_num_threads(&self, threads: usize) {
        self.while_empty(|shared| shared.set_threads(threads));
    }

    /// The number of threads, the waiting one included.
    pub fn num_threads(&self) -> usize {
        self.shared().threads.load(Ordering::Relaxed)
    }

    /// Changes to the naive or the threaded engine. Waits for what is unfinished. Ignored
    /// in a task.
    pub fn set_kind(&self, kind: Kind) {
        self.while_empty(|shared| shared.kind.store(kind as u8, Ordering::Relaxed));
    }

    /// Which engine runs tasks.
    #[inline]
    pub fn kind(&self) -> Kind {
        self.shared().kind()
    }

    /// Sets how many tasks, and how many bytes kept alive by them, may be unfinished before
    /// [`Engine::throttle`] holds a thread back.
    pub fn set_queue_limits(&self, tasks: usize, bytes: usize) {
        let shared = self.shared();
        shared.max_tasks.store(tasks, Ordering::Relaxed);
        shared.max_bytes.store(bytes, Ordering::Relaxed);
    }

    /// The limits in force: tasks and bytes.
    pub fn queue_limits(&self) -> (usize, usize) {
        let config = self.shared().config();
        (config.max_tasks, config.max_bytes)
    }

    /// Sets, once in the process, what long waits ask about every 50 ms (no lock held, nothing counted); true
    /// ends the wait with [`EngineError::Interrupted`].
    pub fn set_interrupt_check(check: fn() -> bool) {
        let _ = INTERRUPT.set(check);
    }

    /// How many tasks are unfinished, and how many bytes they keep alive.
    pub fn unfinished(&self) -> (usize, usize) {
        let gate = &self.shared().gate;
        (gate.tasks(), gate.bytes())
    }

    /// Counts and levels.
    pub fn stats(&self) -> Stats {
        let shared = self.shared();
        Stats {
            pushed: shared.pushed(),
            unfinished: shared.gate.tasks(),
            unfinished_bytes: shared.gate.bytes(),
            workers: shared.crew.lock().len(),
            ..shared.counters.read()
        }
    }

    /// Before a fork, after the caller has taken its own locks: holds other threads' pushes and waits back,
    /// finishes everything, and joins the workers. Does nothing in a task. One of the two `after_fork` functions must follow.
    pub fn prepare_fork(&self) {
        if Role::current() != Role::Outside {
            return;
        }
        self.close_and_empty();
    }

    /// After a fork, in the parent: lets other threads go on. Workers start again when needed.
    pub fn after_fork_parent(&self) {
        self.shared().gate.open();
    }

    /// After a fork, in the child: starts afresh with the same settings.
    pub fn after_fork_child(&self) {
        let old = self.shared();
        let fresh = Shared::new(&old.config(), old.now());
        // The old one is leaked: its locks may be held by threads that exist only in the parent.
        self.shared.store(Arc::into_raw(fresh).cast_mut(), Ordering::Release);
    }

    /// At exit: skips the tasks that have not begun, waits for those that run, and joins the workers. From then
    /// on the engine is the naive one, with one thread: nothing that still pushes or waits ever hangs.
    pub fn shutdown(&self) {
        if Role::current() != Role::Outside {
            return;
        }
        self.shared().cancelled.store(true, Ordering::Relaxed);
        self.while_empty(|shared| {
            shared.kind.store(Kind::Naive as u8, Ordering::Relaxed);
            shared.set_threads(1);
            shared.cancelled.store(false, Ordering::Relaxed);
        });
    }

    /// Holds other threads back, finishes everything and joins the workers.
    fn close_and_empty(&self) -> &Shared {
        let shared = self.shared();
        shared.gate.close();
        shared.drain();
        shared.stop_workers();
        shared
    }

    /// Closes and empties the engine, changes it, and opens it.
    fn while_empty(&self, change: impl FnOnce(&Shared)) {
        if Role::current() != Role::Outside {
            return;
        }
        let shared = self.close_and_empty();
        change(shared);
        shared.gate.open();
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.shutdown();
        // SAFETY: the pointer came from `Arc::into_raw` and is given up here, once.
        drop(unsafe { Arc::from_raw(self.shared.load(Ordering::Acquire).cast_const()) });
    }
}

/// Refuses to wait in a task.
fn outside_tasks() -> Result<(), TaskError> {
    match Role::current() {
        Role::Outside => Ok(()),
        Role::Task | Role::Chunk => Err(TaskError::new("wait", EngineError::WaitInTask)),
    }
}
