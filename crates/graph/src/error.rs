//! Errors of calls (raised on the user's line) and of tasks (raised at a wait), as one type.

use mxnp_core::ErrorKind;
use mxnp_engine::{EngineError, TaskError};

pub type Result<T> = std::result::Result<T, Error>;

/// What a function of this crate can fail with.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The call itself is wrong.
    #[error("{0}")]
    Op(#[from] mxnp_core::Error),
    /// An op that was appended earlier failed on its data.
    #[error("{}", task_text(.0))]
    Task(#[from] TaskError),
}

/// The core error's own text where the task failed with one (it names the op already).
fn task_text(error: &TaskError) -> String {
    match error.kind().downcast_ref::<mxnp_core::Error>() {
        Some(core) => core.to_string(),
        None => error.to_string(),
    }
}

impl Error {
    /// An error in the state of arrays: a write that would spoil a gradient, a second backward, ...
    pub fn state(op: &'static str, text: impl Into<String>) -> Error {
        Error::Op(mxnp_core::Error::new(ErrorKind::State, op, text))
    }

    pub fn value(op: &'static str, text: impl Into<String>) -> Error {
        Error::Op(mxnp_core::Error::value(op, text))
    }

    pub fn memory(op: &'static str, bytes: usize) -> Error {
        Error::Op(out_of_memory(op, bytes))
    }

    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Op(error) => error.kind(),
            Error::Task(task) => {
                task.kind().downcast_ref::<mxnp_core::Error>().map_or(ErrorKind::Internal, |e| e.kind())
            }
        }
    }

    /// Whether the wait ended because the user interrupted it.
    pub fn is_interrupt(&self) -> bool {
        matches!(self, Error::Task(task)
            if matches!(task.kind().downcast_ref::<EngineError>(), Some(EngineError::Interrupted)))
    }
}

/// The core error of a failed allocation.
pub(crate) fn out_of_memory(op: &'static str, bytes: usize) -> mxnp_core::Error {
    mxnp_core::Error::new(ErrorKind::Memory, op, format!("unable to allocate {bytes} bytes"))
}
