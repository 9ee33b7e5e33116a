//! NumPy's functions called on mxnp's arrays: ours where there is one, else NumPy's on NumPy arrays. Nothing is
//! trapped: what mxnp does not know works as if the arrays had been NumPy's.

use crate::array::NDArray;
use crate::convert;
use crate::lists::with_numpy;
use crate::operand::is_numpy;
use crate::ufunc;
use mxnp_graph::Input;
use pyo3::exceptions::{PyNotImplementedError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyMapping, PyTuple};

/// numpy.<function> -> mxnp.np.<function>.
static FUNCTIONS: PyOnceLock<Py<PyDict>> = PyOnceLock::new();

fn functions(py: Python<'_>) -> &Bound<'_, PyDict> {
    FUNCTIONS.get_or_init(py, || PyDict::new(py).unbind()).bind(py)
}

/// Says what NumPy's functions become on mxnp's arrays.
#[pyfunction]
pub fn register_array_functions(table: &Bound<'_, PyMapping>) -> PyResult<()> {
    functions(table.py()).update(table)
}

/// `numpy.func(*args, **kwargs)` with one of our arrays among the arguments.
pub fn array_function<'py>(
    func: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(ours) = functions(func.py()).get_item(func)? {
        match ours.call(args, Some(kwargs)) {
            Err(error) if is_beyond_us(func.py(), &error) => {}
            result => return result,
        }
    }
    by_numpy(func, args, Some(kwargs))
}

/// Whether our function cannot take the arguments (a parameter, type or dtype we lack): NumPy may, and where it
/// cannot either, its error stands.
fn is_beyond_us(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyTypeError>(py) || error.is_instance_of::<PyNotImplementedError>(py)
}

/// `numpy.ufunc(...)` or one of its methods with one of our arrays among inputs or outputs.
pub fn array_ufunc<'py>(
    ufunc: &Bound<'py, PyAny>,
    method: &str,
    inputs: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = ufunc.py();
    for input in inputs.iter_borrowed() {
        // Another library's array decides by itself.
        let is_known = input.is_instance_of::<NDArray>() || is_numpy(&input)?;
        if !is_known && input.get_type().hasattr("__array_ufunc__")? {
            return Ok(py.NotImplemented().into_bound(py));
        }
    }
    if method == "__call__" && !has_foreign_out(kwargs)? {
        let name: String = ufunc.getattr("__name__")?.extract()?;
        let ours = match functions(py).get_item(ufunc)? {
            None => ufunc_named(py, &name)?,
            found => found,
        };
        if let Some(ours) = ours {
            match ours.call(inputs, kwargs) {
                Err(error) if is_beyond_us(py, &error) => {}
                result => return result,
            }
        }
    }
    by_numpy(&ufunc.getattr(method)?, inputs, kwargs)
}

/// NumPy's ufuncs that go by two names, the one they carry first.
const SECOND_NAMES: [(&str, &str); 5] = [
    ("divide", "true_divide"),
    ("remainder", "mod"),
    ("invert", "bitwise_not"),
    ("absolute", "abs"),
    ("conjugate", "conj"),
];

fn ufunc_named<'py>(py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let table = ufunc::table(py);
    if let Some(found) = table.get_item(name)? {
        return Ok(Some(found));
    }
    match SECOND_NAMES.iter().find(|(first, _)| *first == name) {
        Some((_, second)) => table.get_item(second),
        None => Ok(None),
    }
}

/// Whether `out` names an array that is not ours: NumPy writes those.
fn has_foreign_out(kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<bool> {
    let Some(out) = out_of(kwargs)? else { return Ok(false) };
    Ok(match out.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().any(|item| !item.is_none() && !item.is_instance_of::<NDArray>()),
        Err(_) => !out.is_none() && !out.is_instance_of::<NDArray>(),
    })
}

fn out_of<'py>(kwargs: Option<&Bound<'py, PyDict>>) -> PyResult<Option<Bound<'py, PyAny>>> {
    match kwargs {
        Some(kwargs) => kwargs.get_item("out"),
        None => Ok(None),
    }
}

/// The call on NumPy copies of our arrays; an `out` of ours gets the result.
fn by_numpy<'py>(
    func: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = func.py();
    let args = with_numpy(args)?.cast_into::<PyTuple>()?;
    let Some(kwargs) = kwargs else { return func.call1(args) };
    let plain = with_numpy(kwargs)?.cast_into::<PyDict>()?;
    let ours = match out_of(Some(kwargs))? {
        Some(out) => match out.cast::<PyTuple>() {
            Ok(tuple) if tuple.len() == 1 => tuple.get_item(0)?.cast_into::<NDArray>().ok(),
            _ => out.cast_into::<NDArray>().ok(),
        },
        None => None,
    };
    let Some(ours) = ours else { return func.call(args, Some(&plain)) };
    plain.del_item("out")?;
    let result = func.call(args, Some(&plain))?;
    let device = ours.get().get(py).device();
    let array = convert::array(&result, None, device)?;
    ours.get().write(py, |out| mxnp_graph::assign(out, &[], Input::Array(&array)))?;
    Ok(ours.into_any())
}
