//! Python keywords become an op's attributes.

use crate::error::{core_error, raise, type_error};
use crate::{dtype, operand};
use mxnp_core::attrs::{AttrValue, Attrs};
use mxnp_core::{ErrorKind, Op, Scalar};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple, PyType};

/// The attributes of a call of `op` from its keywords, without those named in `except`.
pub fn read(
    py: Python<'_>,
    op: &'static Op,
    keywords: Option<&Bound<'_, PyDict>>,
    except: &[&str],
) -> PyResult<Attrs> {
    let mut items = Vec::new();
    if let Some(keywords) = keywords {
        for (key, value) in keywords.iter() {
            let key: String = key.extract()?;
            if !except.contains(&key.as_str()) {
                let value = attribute(op.name, &key, &value)?;
                items.push((key, value));
            }
        }
    }
    (op.attrs)(op.name, items).map_err(|error| core_error(py, error))
}

fn attribute(op: &str, key: &str, value: &Bound<'_, PyAny>) -> PyResult<AttrValue> {
    if value.is_none() {
        return Ok(AttrValue::None);
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(AttrValue::Str(text.to_string()));
    }
    if let Some(scalar) = operand::scalar(value)? {
        return from_scalar(op, key, value.py(), scalar);
    }
    if value.is_instance_of::<PyTuple>() || value.is_instance_of::<PyList>() {
        return integers(op, key, value);
    }
    if value.is_instance_of::<PyType>() || value.hasattr("newbyteorder")? {
        return dtype::parse(value).map(AttrValue::DType);
    }
    // NumPy's scalars and arrays, and mxnp's arrays: their value is read now.
    if value.hasattr("tolist")? {
        return attribute(op, key, &value.call_method0("tolist")?);
    }
    if value.hasattr("__index__")? {
        let index = value.call_method0("__index__")?;
        return from_scalar(op, key, value.py(), operand::integer(&index)?);
    }
    if value.try_iter().is_ok() {
        return integers(op, key, value);
    }
    let text = format!("{op}: argument '{key}' cannot be a {}", value.get_type().name()?);
    Err(type_error(value.py(), text))
}

fn from_scalar(op: &str, key: &str, py: Python<'_>, scalar: Scalar) -> PyResult<AttrValue> {
    match scalar {
        Scalar::Bool(b) => Ok(AttrValue::Bool(b)),
        Scalar::Float(v) => Ok(AttrValue::Float(v)),
        Scalar::Int(v) => i64::try_from(v)
            .map(AttrValue::Int)
            .map_err(|_| raise(py, ErrorKind::Overflow, format!("{op}: argument '{key}' is too large: {v}"))),
        Scalar::Complex(..) => {
            Err(type_error(py, format!("{op}: argument '{key}' cannot be a complex number")))
        }
    }
}

fn too_large(op: &str, key: &str, value: &Bound<'_, PyAny>) -> PyErr {
    raise(value.py(), ErrorKind::Overflow, format!("{op}: argument '{key}' is too large: {value}"))
}

/// A sequence of integers; anything else in it is an error.
fn integers(op: &str, key: &str, value: &Bound<'_, PyAny>) -> PyResult<AttrValue> {
    let bad = |item: &Bound<'_, PyAny>| {
        let text = format!("{op}: argument '{key}' must hold integers, got {item}");
        type_error(item.py(), text)
    };
    let mut out = Vec::new();
    for item in value.try_iter()? {
        let item = item?;
        let index = item.call_method0("__index__").map_err(|_| bad(&item))?;
        out.push(index.extract().map_err(|_| too_large(op, key, &index))?);
    }
    Ok(AttrValue::Ints(out))
}

/// The attributes of a call that native code makes.
pub fn from_pairs<const N: usize>(
    py: Python<'_>,
    op: &'static Op,
    pairs: [(&str, i64); N],
) -> PyResult<Attrs> {
    let items = pairs.map(|(key, value)| (key.to_string(), AttrValue::Int(value))).into();
    (op.attrs)(op.name, items).map_err(|error| core_error(py, error))
}
