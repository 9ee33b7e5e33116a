//! Dtypes as Python sees them: NumPy's dtype objects, and everything that means one.

use crate::error::{core_error, type_error};
use crate::once::once;
use mxnp_core::promote::{Casting, can_cast, result_type as promote, to_float};
use mxnp_core::{DType, op::Meta};
use mxnp_graph::modes;
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyTuple};

static OBJECTS: [PyOnceLock<Py<PyAny>>; 15] = [const { PyOnceLock::new() }; 15];

/// The NumPy dtype object of `dtype`.
pub fn object(py: Python<'_>, dtype: DType) -> PyResult<Bound<'_, PyAny>> {
    let made = once(py, &OBJECTS[dtype as usize], || make(py, dtype).map(Bound::unbind))?;
    Ok(made.bind(py).clone())
}

fn make(py: Python<'_>, dtype: DType) -> PyResult<Bound<'_, PyAny>> {
    let class = py.import("numpy")?.getattr("dtype")?;
    if dtype != DType::BF16 {
        return class.call1((dtype.name(),));
    }
    match py.import("ml_dtypes") {
        Ok(module) => class.call1((module.getattr("bfloat16")?,)),
        // MXNet's own spelling where no package gives NumPy the type.
        Err(error) if error.is_instance_of::<PyImportError>(py) => {
            class.call1((vec![("bfloat16", "uint16")],))
        }
        Err(error) => Err(error),
    }
}

/// The dtype that `obj` means: a name, a NumPy dtype or scalar type, float, int, bool, complex.
pub fn parse(obj: &Bound<'_, PyAny>) -> PyResult<DType> {
    let py = obj.py();
    if let Ok(name) = obj.cast::<PyString>()
        && let Some(dtype) = DType::from_name(&name.to_cow()?)
    {
        return Ok(dtype);
    }
    for (i, slot) in OBJECTS.iter().enumerate() {
        if slot.get(py).is_some_and(|known| known.is(obj)) {
            return Ok(DType::ALL[i]);
        }
    }
    if obj.is_none() {
        return Err(type_error(py, "a dtype was expected, got None"));
    }
    let found = py.import("numpy")?.getattr("dtype")?.call1((obj,));
    // NumPy's own words in mxnp's class.
    from_numpy(&found.map_err(|error| type_error(py, error.value(py).to_string()))?)
}

/// The dtype of a `numpy.dtype` object; TypeError where mxnp has none such.
pub fn from_numpy(dtype: &Bound<'_, PyAny>) -> PyResult<DType> {
    let py = dtype.py();
    for (i, slot) in OBJECTS.iter().enumerate() {
        if slot.get(py).is_some_and(|known| known.is(dtype)) {
            return Ok(DType::ALL[i]);
        }
    }
    let name: String = dtype.getattr("name")?.extract()?;
    let kind: String = dtype.getattr("kind")?.extract()?;
    if let Some(found) = DType::from_name(&name) {
        return Ok(found);
    }
    if kind == "V" && dtype.eq(object(py, DType::BF16)?)? {
        return Ok(DType::BF16);
    }
    let text = format!(
        "dtype {} is not supported\nhint: arrays hold bool, int8-64, uint8-64, float16, bfloat16, float32, \
         float64, complex64 and complex128",
        dtype.str()?
    );
    Err(type_error(py, text))
}

/// [`parse`] of a keyword that may be None or absent.
pub fn parse_optional(obj: Option<&Bound<'_, PyAny>>) -> PyResult<Option<DType>> {
    match obj {
        Some(obj) if !obj.is_none() => parse(obj).map(Some),
        _ => Ok(None),
    }
}

pub fn parse_casting(py: Python<'_>, text: &str) -> PyResult<Casting> {
    match text {
        "no" | "equiv" | "safe" => Ok(Casting::Safe),
        "same_kind" => Ok(Casting::SameKind),
        "unsafe" => Ok(Casting::Unsafe),
        _ => Err(crate::error::value_error(
            py,
            format!("casting must be one of 'no', 'equiv', 'safe', 'same_kind', or 'unsafe', got '{text}'"),
        )),
    }
}

#[pyfunction]
#[pyo3(name = "dtype")]
pub fn py_dtype<'py>(obj: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    object(obj.py(), parse(obj)?)
}

#[pyfunction]
pub fn dtype_name(obj: &Bound<'_, PyAny>) -> PyResult<&'static str> {
    Ok(parse(obj)?.name())
}

#[pyfunction]
pub fn default_float(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    object(py, modes::mode().default_float())
}

#[pyfunction]
#[pyo3(signature = (from_, to, casting = "safe"))]
#[pyo3(name = "can_cast")]
pub fn py_can_cast(from_: &Bound<'_, PyAny>, to: &Bound<'_, PyAny>, casting: &str) -> PyResult<bool> {
    let from = match from_.cast::<crate::array::NDArray>() {
        Ok(array) => array.get().get(from_.py()).dtype(),
        Err(_) => parse(from_)?,
    };
    let to = parse(to)?;
    let same = matches!(casting, "no" | "equiv");
    Ok(if same { from == to } else { can_cast(from, to, parse_casting(from_.py(), casting)?) })
}

#[pyfunction]
pub fn promote_types<'py>(a: &Bound<'py, PyAny>, b: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let found = mxnp_core::promote::promote_types(parse(a)?, parse(b)?, modes::mode());
    object(a.py(), found)
}

/// The common dtype of arrays, dtypes and Python scalars (weak) in the current mode.
#[pyfunction]
#[pyo3(signature = (*args))]
pub fn result_type<'py>(args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
    let py = args.py();
    let mut metas: Vec<Meta> = Vec::new();
    for arg in args {
        let meta = match crate::operand::scalar(&arg)? {
            Some(scalar) => {
                Meta { shape: Default::default(), dtype: scalar_dtype(scalar), scalar: Some(scalar) }
            }
            None => Meta::new(mxnp_core::Shape::new(), dtype_of(&arg)?),
        };
        metas.push(meta);
    }
    if metas.is_empty() {
        return Err(crate::error::value_error(py, "at least one array or dtype is required"));
    }
    let found = promote("result_type", &metas, modes::mode()).map_err(|e| core_error(py, e))?;
    object(py, found)
}

/// The dtype a lone scalar has.
pub fn scalar_dtype(scalar: mxnp_core::Scalar) -> DType {
    use mxnp_core::Scalar;
    match scalar {
        Scalar::Bool(_) => DType::Bool,
        Scalar::Int(_) => DType::I64,
        Scalar::Float(_) => modes::mode().default_float(),
        Scalar::Complex(..) => modes::mode().default_complex(),
    }
}

/// The dtype of an array-like, or the dtype that a dtype-like means.
fn dtype_of(obj: &Bound<'_, PyAny>) -> PyResult<DType> {
    if let Ok(array) = obj.cast::<crate::array::NDArray>() {
        return Ok(array.get().get(obj.py()).dtype());
    }
    let is_type = obj.is_instance_of::<pyo3::types::PyType>();
    match obj.getattr("dtype") {
        Ok(dtype) if !is_type => from_numpy(&dtype),
        _ => parse(obj),
    }
}

/// The dtype floating functions compute in for `dtype`, in the current mode.
#[pyfunction]
pub fn float_of<'py>(dtype: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    object(dtype.py(), to_float(parse(dtype)?, modes::mode()))
}
