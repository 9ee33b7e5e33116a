//! What was asked for: arrays with pending values, segments of op calls, their fusion into passes, and the
//! gradient tape. Decides what runs together and hands it to the engine; knows no formula and no Python.
//!
//! The memory model these modules keep is written down in `docs/adr/0001-memory-model.md`.

mod absorb;
pub mod array;
mod assign;
mod backward;
mod call;
mod clean;
mod compiled;
#[cfg(test)]
mod contention_tests;
mod described;
pub mod device;
mod elsewhere;
pub mod error;
mod exec;
mod expand;
mod fold;
mod fork;
mod fuse;
mod hash;
mod held;
pub mod history;
mod inferred;
pub mod invoke;
pub mod listing;
mod liveness;
pub mod modes;
mod node;
mod numbers;
mod optimise;
pub mod outline;
pub mod owed;
mod place;
mod plan;
pub mod random;
pub mod record;
mod registry;
pub mod release;
mod rules;
mod segment;
mod stand_in;
mod structure;
mod sync;
pub mod tape;
pub mod trace;
mod value;
mod watch;

pub use array::{Array, Exported, Handle, Input};
pub use assign::{assign, slice, update};
pub use compiled::{Graph, Object};
pub use described::{Described, DescribedUnit, Operand, Part};
pub use device::{Device, DeviceKind};
pub use error::{Error, Result};
pub use fork::guard_forks;
pub use invoke::{invoke, invoke_into, invoke_one};
pub use mxnp_core::storage as memory;
pub use plan::plans_made;
pub use registry::{after_fork, flush_current, prepare_fork, settle, shutdown, wait_all};
