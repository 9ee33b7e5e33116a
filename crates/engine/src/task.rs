//! What a caller hands to the engine: tasks, the things they read and write, and the context they run in.
//! It must not know how or when they run.

use crate::fault::TaskError;
use crate::sync::Arc;
use crate::var::Var;
use mxnp_core::par::Parallel;
use smallvec::SmallVec;

/// Something with an engine variable inside.
pub trait Tracked: Send + Sync {
    /// The variable that orders accesses to it.
    fn var(&self) -> &Var;

    /// Whether it holds contents that stay sound when a write to it fails (false: its value was never
    /// computed). Asked from any thread at any time: an atomic load.
    fn has_contents(&self) -> bool;
}

/// A shared thing with a variable; an `Arc` of the thing coerces to it without an allocation.
pub type VarRef = Arc<dyn Tracked>;

/// The body of a task. It must not wait for the engine, and a write must be all or nothing where it can fail.
pub type Run = Box<dyn FnOnce(&Context<'_>) -> Result<(), TaskError> + Send>;

/// One unit of work with everything it touches.
pub struct Task {
    /// The op's name, for errors.
    pub name: &'static str,
    /// How many bytes the task keeps alive while it is queued.
    pub bytes: usize,
    /// What it reads. A thing listed here and in `writes` counts as written; duplicates are allowed.
    pub reads: SmallVec<[VarRef; 4]>,
    /// What it writes.
    pub writes: SmallVec<[VarRef; 2]>,
    /// The work.
    pub run: Run,
}

impl Task {
    /// Drops repeated writes: a task counts once as a writer of a variable.
    pub(crate) fn drop_repeated_writes(&mut self) {
        if self.writes.len() < 2 {
            return;
        }
        let mut seen: SmallVec<[usize; 8]> = SmallVec::new(); // sorted
        self.writes.retain(|written| {
            let rank = written.var().rank();
            let place = seen.binary_search(&rank);
            if let Err(place) = place {
                seen.insert(place, rank);
            }
            place.is_err()
        });
    }
}

/// What a running task is given.
pub struct Context<'a> {
    parallel: &'a dyn Parallel,
}

impl<'a> Context<'a> {
    /// A context for running a task's body by hand, outside the engine.
    pub fn new(parallel: &'a dyn Parallel) -> Self {
        Context { parallel }
    }

    /// Runs parallel loops on the engine's workers; the calling thread can finish a loop alone.
    pub fn parallel(&self) -> &'a dyn Parallel {
        self.parallel
    }
}

/// Where a task should run if nothing it depends on is unfinished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// On the pushing thread: the work is smaller than a hand-over.
    Inline,
    /// On a worker, or on a thread that waits.
    Queue,
}
