//! What can be wrong with a call, as data. The Python exception of each kind is chosen in `crates/py`.

use crate::DType;
use crate::shape::{Shape, display};

pub type Result<T> = std::result::Result<T, Error>;

/// The family of an error, one Python exception class each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    Value,
    Type,
    Index,
    Axis,
    Overflow,
    Memory,
    NotImplemented,
    LinAlg,
    /// MXNet's own: state that does not allow the call (backward twice, a write that would spoil a gradient).
    State,
    /// A defect of mxnp itself.
    Internal,
}

/// An error of an op call: the op's name, what was expected and what came.
#[derive(Clone, Debug, thiserror::Error, PartialEq)]
pub enum Error {
    #[error("operands could not be broadcast together with shapes {}", shapes.iter().map(|s| compact(s)).collect::<Vec<_>>().join(" "))]
    Broadcast { op: &'static str, shapes: Vec<Shape> },
    #[error("{op}: axis {axis} is out of bounds for array of dimension {ndim}")]
    Axis { op: &'static str, axis: i64, ndim: usize },
    #[error("{op}: index {index} is out of bounds for axis {axis} with size {size}")]
    Index { op: &'static str, index: i64, axis: usize, size: usize },
    #[error("cannot reshape array of size {size} into shape {}", display(shape))]
    Reshape { size: usize, shape: Shape },
    #[error("{op}: dtype {dtype} is not supported{}", hint(expected))]
    DType { op: &'static str, dtype: DType, expected: &'static str },
    #[error("{op}: {text}")]
    Other { op: &'static str, kind: ErrorKind, text: String },
}

/// A shape as NumPy writes it in broadcasting errors: `(2,3)`.
fn compact(shape: &[usize]) -> String {
    display(shape).replace(", ", ",")
}

fn hint(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("\nhint: {text}") }
}

impl Error {
    pub fn new(kind: ErrorKind, op: &'static str, text: impl Into<String>) -> Error {
        Error::Other { op, kind, text: text.into() }
    }

    pub fn value(op: &'static str, text: impl Into<String>) -> Error {
        Error::new(ErrorKind::Value, op, text)
    }

    pub fn type_(op: &'static str, text: impl Into<String>) -> Error {
        Error::new(ErrorKind::Type, op, text)
    }

    /// Adds a second line that says what to do about it.
    #[must_use]
    pub fn with_hint(self, remedy: &str) -> Error {
        let (op, kind) = (self.op(), self.kind());
        let text = self.to_string();
        let text = text.strip_prefix(&format!("{op}: ")).unwrap_or(&text).to_string();
        Error::Other { op, kind, text: format!("{text}\nhint: {remedy}") }
    }

    pub fn op(&self) -> &'static str {
        match self {
            Error::Broadcast { op, .. }
            | Error::Axis { op, .. }
            | Error::Index { op, .. }
            | Error::DType { op, .. }
            | Error::Other { op, .. } => op,
            Error::Reshape { .. } => "reshape",
        }
    }

    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Broadcast { .. } | Error::Reshape { .. } => ErrorKind::Value,
            Error::Axis { .. } => ErrorKind::Axis,
            Error::Index { .. } => ErrorKind::Index,
            Error::DType { .. } => ErrorKind::Type,
            Error::Other { kind, .. } => *kind,
        }
    }
}
