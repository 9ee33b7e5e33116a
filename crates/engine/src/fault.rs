//! What went wrong in a task: the error, the fault that marks variables with it, and the list of faults
//! that no wait has raised yet. It must not know how tasks are run.

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Mutex};
use std::error::Error;
use std::fmt;

/// What a task failed with: the op's name and an error of any type. Clones share it.
#[derive(Clone)]
pub struct TaskError(Arc<Inner>);

struct Inner {
    op: &'static str,
    kind: Box<dyn Error + Send + Sync>,
}

impl TaskError {
    /// An error of the op called `op`; `kind` is kept as it is and can be downcast by [`TaskError::kind`].
    pub fn new(op: &'static str, kind: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        TaskError(Arc::new(Inner { op, kind: kind.into() }))
    }

    /// The name of the op that failed.
    pub fn op(&self) -> &'static str {
        self.0.op
    }

    /// The error itself, for `downcast_ref`.
    pub fn kind(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.0.kind
    }
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.op, self.0.kind)
    }
}

impl fmt::Debug for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TaskError({:?}, {:?})", self.0.op, self.0.kind)
    }
}

impl Error for TaskError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.0.kind)
    }
}

/// The errors that the engine itself makes; the kind of a [`TaskError`] is one of these or the task's own.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// A task panicked; the text is the panic's.
    #[error("internal error: {0}")]
    Panic(String),
    /// The process was exiting before the task began.
    #[error("cancelled because the process is exiting")]
    Cancelled,
    /// The interrupt check asked a wait to end; what was waited for goes on.
    #[error("the wait was interrupted")]
    Interrupted,
    /// A task waited, which could never end: tasks only run.
    #[error("a task must not wait for the engine")]
    WaitInTask,
}

/// The text of a panic's payload.
pub(crate) fn panic_text(payload: &(dyn std::any::Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "a panic without a message".to_owned()
    }
}

const UNREPORTED: u64 = u64::MAX;

/// One failure. Every variable that was to be written because of it holds the same fault.
pub(crate) struct Fault {
    pub(crate) error: TaskError,
    /// The ticket of the task that failed.
    ticket: u64,
    /// The ticket the next task was to get when a wait raised this fault. Comparing tickets, and not a
    /// flag, makes what a task inherits depend on program order alone, not on when it happens to run.
    reported: AtomicU64,
}

impl Fault {
    pub(crate) fn new(error: TaskError, ticket: u64) -> Arc<Self> {
        Arc::new(Fault { error, ticket, reported: AtomicU64::new(UNREPORTED) })
    }

    /// Whether a task with this ticket inherits the fault from a variable that carries it.
    pub(crate) fn strikes(&self, ticket: u64, has_contents: bool) -> bool {
        !has_contents || ticket < self.reported.load(Ordering::Acquire)
    }

    pub(crate) fn is_reported(&self) -> bool {
        self.reported.load(Ordering::Acquire) != UNREPORTED
    }

    /// Marks the fault as raised before the task with ticket `now`; false if it was marked already.
    pub(crate) fn report(&self, now: u64) -> bool {
        self.reported.compare_exchange(UNREPORTED, now, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// How many unreported faults are kept for `wait_all`: a program that never waits must not fill memory.
const KEPT: usize = 64;

/// The faults that no wait has raised, for `wait_all`.
#[derive(Default)]
pub(crate) struct FaultLog(Mutex<Vec<Arc<Fault>>>);

impl FaultLog {
    /// Adds a new fault; the latest in program order is let go when there are too many.
    pub(crate) fn add(&self, fault: Arc<Fault>) {
        let mut list = self.0.lock();
        list.retain(|f| !f.is_reported());
        let at = list.partition_point(|f| f.ticket < fault.ticket);
        list.insert(at, fault);
        list.truncate(KEPT);
    }

    /// Reports and removes the fault that is first in program order.
    pub(crate) fn take_first(&self, now: u64) -> Option<TaskError> {
        let mut list = self.0.lock();
        let first = list.iter().position(|f| f.report(now));
        let error = first.map(|at| list[at].error.clone());
        list.retain(|f| !f.is_reported());
        error
    }
}
