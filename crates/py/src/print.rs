//! Texts of arrays: printing itself is Python's, this only calls it.

use crate::array::NDArray;
use crate::export;
use crate::wait::ready;
use mxnp_core::shape::display;
use mxnp_graph::trace;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;

static PRINTERS: PyOnceLock<(Py<PyAny>, Py<PyAny>)> = PyOnceLock::new();

/// Sets, once, the functions behind `repr` and `str`.
#[pyfunction]
pub fn set_repr(py: Python<'_>, repr_: Py<PyAny>, str_: Py<PyAny>) {
    // A second import of the package keeps the first one's functions.
    let _ = PRINTERS.set(py, (repr_, str_));
}

/// What a traced array prints as: its data is that of one call alone.
fn placeholder(this: &Bound<'_, NDArray>) -> Option<PyResult<Py<PyAny>>> {
    let array = this.get().array(this.py());
    let shown = |array: &mxnp_graph::Array| {
        let text = format!("<traced array of shape {} and dtype {}>", display(array.shape()), array.dtype());
        Ok(text.into_pyobject(this.py())?.into_any().unbind())
    };
    trace::is_traced(&array).then(|| shown(&array))
}

/// Reads for printing alone do not end a trace.
fn printed(f: impl FnOnce() -> PyResult<Py<PyAny>>) -> PyResult<Py<PyAny>> {
    let before = trace::set_paused(true);
    let text = f();
    trace::set_paused(before);
    text
}

pub fn repr(this: &Bound<'_, NDArray>) -> PyResult<Py<PyAny>> {
    if let Some(text) = placeholder(this) {
        return text;
    }
    printed(|| data_repr(this))
}

fn data_repr(this: &Bound<'_, NDArray>) -> PyResult<Py<PyAny>> {
    let py = this.py();
    match PRINTERS.get(py) {
        Some((repr, _)) => repr.call1(py, (this,)),
        None => Ok(export::asnumpy(py, &this.get().array(py))?.repr()?.into_any().unbind()),
    }
}

pub fn str(this: &Bound<'_, NDArray>) -> PyResult<Py<PyAny>> {
    if let Some(text) = placeholder(this) {
        return text;
    }
    printed(|| data_str(this))
}

fn data_str(this: &Bound<'_, NDArray>) -> PyResult<Py<PyAny>> {
    let py = this.py();
    match PRINTERS.get(py) {
        Some((_, str)) => str.call1(py, (this,)),
        None => Ok(export::asnumpy(py, &this.get().array(py))?.str()?.into_any().unbind()),
    }
}

/// `format(x, spec)`: the number's for one element, as MXNet programs write in f-strings.
pub fn format(this: &Bound<'_, NDArray>, spec: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let py = this.py();
    let spec = spec.cast::<PyString>()?;
    let array = this.get().array(py);
    if spec.is_empty()? {
        return str(this);
    }
    if let Some(text) = placeholder(this) {
        return text;
    }
    if array.size() != 1 {
        let text = "unsupported format string passed to ndarray.__format__\nhint: only an array of one element \
                    takes a format; use str(x) or x.asnumpy()";
        return Err(crate::error::type_error(py, text));
    }
    ready(py, &array)?;
    let item = export::item(py, &array, 0)?;
    py.import("builtins")?.call_method1("format", (item, spec)).map(Bound::unbind)
}
