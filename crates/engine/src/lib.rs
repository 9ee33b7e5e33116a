//! The asynchronous dependency engine.

mod config;
mod engine;
mod fault;
mod gate;
mod naive;
mod node;
mod parallel;
mod pool;
mod queue;
mod role;
mod shared;
mod sleep;
mod stats;
mod sync;
mod task;
mod threaded;
mod var;

pub use config::{Config, Kind, memory_limit};
pub use engine::{Engine, Ready, engine};
pub use fault::{EngineError, TaskError};
pub use stats::Stats;
pub use task::{Context, Hint, Run, Task, Tracked, VarRef};
pub use var::Var;
