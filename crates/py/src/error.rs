//! Which Python exception each error becomes; the only place that knows. Panics become MXNetError here too.

use mxnp_core::ErrorKind;
use mxnp_engine::{EngineError, Kind, TaskError, engine};
use mxnp_graph::{Error, owed};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    /// Where the last panic of this thread happened and what it said.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
    /// A Python exception raised in a callback, on its way through Rust code that cannot carry it.
    static PENDING: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// The class of `mxnp.error` for a kind.
const fn class_name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Value => "MXNetValueError",
        ErrorKind::Type => "MXNetTypeError",
        ErrorKind::Index => "MXNetIndexError",
        ErrorKind::Axis => "MXNetAxisError",
        ErrorKind::Overflow => "MXNetOverflowError",
        ErrorKind::Memory => "MXNetMemoryError",
        ErrorKind::NotImplemented => "MXNetNotImplementedError",
        ErrorKind::LinAlg => "MXNetLinAlgError",
        ErrorKind::State | ErrorKind::Internal => "MXNetError",
    }
}

/// An exception of a kind with a text of ours.
pub fn raise(py: Python<'_>, kind: ErrorKind, text: impl AsRef<str>) -> PyErr {
    let made = py
        .import("mxnp.error")
        .and_then(|module| module.getattr(class_name(kind)))
        .and_then(|class| class.call1((text.as_ref(),)));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

pub fn value_error(py: Python<'_>, text: impl AsRef<str>) -> PyErr {
    raise(py, ErrorKind::Value, text)
}

pub fn type_error(py: Python<'_>, text: impl AsRef<str>) -> PyErr {
    raise(py, ErrorKind::Type, text)
}

pub fn index_error(py: Python<'_>, text: impl AsRef<str>) -> PyErr {
    raise(py, ErrorKind::Index, text)
}

/// The exception for an error of the graph crate.
pub fn to_python(py: Python<'_>, error: Error) -> PyErr {
    if let Some(raised) = take_pending() {
        return raised;
    }
    match error {
        Error::Op(error) => raise(py, error.kind(), error.to_string()),
        Error::Task(error) => task_error(py, &error),
    }
}

/// The exception for an error of the core.
pub fn core_error(py: Python<'_>, error: mxnp_core::Error) -> PyErr {
    raise(py, error.kind(), error.to_string())
}

/// The exception for an error that a wait found.
pub fn task_error(py: Python<'_>, error: &TaskError) -> PyErr {
    let (kind, text) = match error.kind().downcast_ref::<mxnp_core::Error>() {
        Some(inner) => (inner.kind(), inner.to_string()),
        None => match error.kind().downcast_ref::<EngineError>() {
            Some(EngineError::Interrupted) => {
                return take_pending().unwrap_or_else(|| PyKeyboardInterrupt::new_err(()));
            }
            Some(EngineError::Panic(text)) => return internal(py, text),
            _ => (ErrorKind::State, error.to_string()),
        },
    };
    if engine().kind() == Kind::Naive {
        return raise(py, kind, text); // raised on the line that is wrong
    }
    let origin = "hint: this error comes from an earlier line; with MXNP_ENGINE=naive it is raised there";
    raise(py, kind, format!("{text}\n{origin}"))
}

/// An error NumPy raised for us, as a class of ours with the same text.
pub fn adopt(py: Python<'_>, error: PyErr) -> PyErr {
    use pyo3::exceptions::{PyOverflowError, PyRuntimeError, PyTypeError, PyValueError};
    let kind = if error.is_instance_of::<PyRuntimeError>(py) {
        return error; // ours already
    } else if error.is_instance_of::<PyOverflowError>(py) {
        ErrorKind::Overflow
    } else if error.is_instance_of::<PyTypeError>(py) {
        ErrorKind::Type
    } else if error.is_instance_of::<PyValueError>(py) {
        ErrorKind::Value
    } else {
        return error;
    };
    let text = error.value(py).to_string();
    raise(py, kind, text)
}

fn internal(py: Python<'_>, text: &str) -> PyErr {
    let text = format!("internal error: {text}\nhint: this is a defect of mxnp; please report it");
    raise(py, ErrorKind::Internal, text)
}

fn panicked(py: Python<'_>, payload: &(dyn Any + Send)) -> PyErr {
    let text = PANIC.with_borrow_mut(Option::take).unwrap_or_else(|| {
        let text = payload.downcast_ref::<&str>().map(|s| (*s).to_string());
        text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default()
    });
    internal(py, &text)
}

/// Keeps panics from printing, and remembers where they happened.
pub fn quiet_panics() {
    std::panic::set_hook(Box::new(|info| {
        let text = info.to_string();
        let _ = PANIC.try_with(|slot| slot.borrow_mut().replace(text));
    }));
}

/// Keeps a Python exception until the Rust call in progress has failed.
pub fn set_pending(error: PyErr) {
    PENDING.with_borrow_mut(|slot| *slot = Some(error));
}

fn take_pending() -> Option<PyErr> {
    PENDING.with_borrow_mut(Option::take)
}

/// Calls the graph with the GIL held: for what cannot block. A caller that hands no array to Python pays
/// (`wait::pay`) what the calls may owe.
#[inline]
pub fn call<T>(py: Python<'_>, f: impl FnOnce() -> mxnp_graph::Result<T>) -> PyResult<T> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(to_python(py, error)),
        Err(payload) => Err(panicked(py, &*payload)),
    }
}

/// Calls the graph with the GIL released: for what waits or copies much. What its calls owe is waited for too.
pub fn call_detached<T: Send>(
    py: Python<'_>,
    f: impl FnOnce() -> mxnp_graph::Result<T> + Send,
) -> PyResult<T> {
    let paid = || {
        let found = f()?;
        owed::pay()?;
        Ok(found)
    };
    match py.detach(|| catch_unwind(AssertUnwindSafe(paid))) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(to_python(py, error)),
        Err(payload) => Err(panicked(py, &*payload)),
    }
}
