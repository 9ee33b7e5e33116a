//! Values on their way in: whatever NumPy takes becomes an array. Data without a dtype of its own (numbers and
//! lists of them) gets the mode's default; data with one keeps it.

use crate::array::{NDArray, wrap};
use crate::buffer::{self, Lent};
use crate::device::Device;
use crate::dtype;
use crate::error::{call, call_detached, type_error, value_error};
use crate::lists::from_list;
use crate::operand::{self, invoke_one};
use crate::wait::enter;
use mxnp_core::ops::cast;
use mxnp_core::shape::MAX_NDIM;
use mxnp_core::{DType, Scalar};
use mxnp_graph::{Array, DeviceKind, Handle, Input, modes, tape};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyList, PyString, PyTuple};
use std::sync::Arc;

/// Refuses a device that no array can be on.
pub fn check_device(py: Python<'_>, device: mxnp_graph::Device) -> PyResult<()> {
    if device.kind == DeviceKind::Gpu {
        let text = format!("no array can be put on {device}: this build runs on the CPU");
        return Err(crate::error::raise(py, mxnp_core::ErrorKind::NotImplemented, text));
    }
    Ok(())
}

/// A new array from anything array-like.
pub fn array(obj: &Bound<'_, PyAny>, dtype: Option<DType>, device: mxnp_graph::Device) -> PyResult<Array> {
    let py = obj.py();
    check_device(py, device)?;
    if let Ok(object) = obj.cast::<NDArray>() {
        let source = object.get().array(py);
        let moved = to_device(py, source.clone(), device)?;
        return match dtype {
            Some(dtype) if dtype != moved.dtype() => astype(py, &moved, dtype),
            _ if moved.same_value(&source) => copy(py, &moved),
            _ => Ok(moved),
        };
    }
    if let Some(scalar) = operand::scalar(obj)? {
        return from_scalar(py, scalar, dtype.unwrap_or_else(|| default_dtype(scalar)), device);
    }
    if operand::is_numpy(obj)? {
        return finish(py, from_numpy(obj, device)?, dtype);
    }
    if obj.is_instance_of::<PyList>() || obj.is_instance_of::<PyTuple>() {
        return from_list(obj, dtype, device);
    }
    from_other(obj, dtype, device)
}

/// The dtype of a number, or of a list of such numbers, that nothing else decides.
pub fn default_dtype(scalar: Scalar) -> DType {
    let mode = modes::mode();
    match scalar {
        Scalar::Bool(_) => DType::Bool,
        Scalar::Complex(..) => mode.default_complex(),
        Scalar::Int(_) if mode.numpy_dtype => DType::I64,
        _ => mode.default_float(),
    }
}

pub fn from_scalar(
    py: Python<'_>,
    scalar: Scalar,
    dtype: DType,
    device: mxnp_graph::Device,
) -> PyResult<Array> {
    if let Some((kind, text)) = scalar.refusal(dtype) {
        return Err(crate::error::raise(py, kind, text));
    }
    let mut bytes = [0u8; 16];
    scalar.write(dtype, &mut bytes);
    call(py, || Array::from_bytes(&[], dtype, device, |out| out.copy_from_slice(&bytes[..dtype.size()])))
}

/// The array in another dtype, as an op.
pub fn astype(py: Python<'_>, array: &Array, dtype: DType) -> PyResult<Array> {
    invoke_one(py, &cast::ASTYPE, cast::astype(dtype), &[Input::Array(array)])
}

/// A copy with memory of its own, as an op.
pub fn copy(py: Python<'_>, array: &Array) -> PyResult<Array> {
    astype(py, array, array.dtype())
}

/// The array on another device; itself where it is there. Waits for the value.
pub fn to_device(py: Python<'_>, array: Array, device: mxnp_graph::Device) -> PyResult<Array> {
    if array.device() == device {
        return Ok(array);
    }
    check_device(py, device)?;
    mxnp_graph::trace::end_early("moves an array to another device");
    call_detached(py, || moved(&array, device))
}

/// A copy of `array` on `device`, recorded: its gradient moves the other way.
fn moved(array: &Array, device: mxnp_graph::Device) -> mxnp_graph::Result<Array> {
    let mut bytes = vec![0u8; array.size() * array.dtype().size()];
    array.read_into(&mut bytes)?;
    let copy = Array::from_bytes(array.shape(), array.dtype(), device, |out| out.copy_from_slice(&bytes))?;
    if !(modes::is_recording() && tape::has_history(array)) {
        return Ok(copy);
    }
    let mut handle = Handle::new(copy);
    tape::record_custom(&[array], &mut [&mut handle], Arc::new(MoveBack(array.device())));
    Ok((*handle).clone())
}

/// The gradient of a move between devices.
struct MoveBack(mxnp_graph::Device);

impl tape::Custom for MoveBack {
    fn backward(&self, heads: Vec<Option<Array>>) -> mxnp_graph::Result<Vec<Option<Array>>> {
        heads.into_iter().map(|g| g.map(|g| moved(&g, self.0)).transpose()).collect()
    }
}

pub fn finish(py: Python<'_>, array: Array, dtype: Option<DType>) -> PyResult<Array> {
    match dtype {
        Some(dtype) if dtype != array.dtype() => astype(py, &array, dtype),
        _ => Ok(array),
    }
}

/// A copy of a NumPy array or scalar, in its dtype.
pub fn from_numpy(obj: &Bound<'_, PyAny>, device: mxnp_graph::Device) -> PyResult<Array> {
    let py = obj.py();
    let numpy_dtype = obj.getattr("dtype")?;
    let dtype = dtype::from_numpy(&numpy_dtype)?;
    let mut source = obj.clone();
    if !numpy_dtype.getattr("isnative")?.extract::<bool>()? {
        source = source.call_method1("astype", (dtype::object(py, dtype)?,))?;
    }
    let keywords = PyDict::new(py);
    keywords.set_item("order", "C")?;
    let mut packed = py.import("numpy")?.call_method("asarray", (source,), Some(&keywords))?;
    if dtype == DType::BF16 {
        packed = packed.call_method1("view", (dtype::object(py, DType::U16)?,))?;
    }
    let lent = Lent::of(&packed, false)?;
    let shape = lent.shape();
    if lent.len() < 1 << 16 {
        return call(py, || Array::from_bytes(&shape, dtype, device, |out| copy_bytes(&lent, out)));
    }
    call_detached(py, || Array::from_bytes(&shape, dtype, device, |out| copy_bytes(&lent, out)))
}

fn copy_bytes(lent: &Lent, out: &mut [u8]) {
    assert_eq!(lent.len(), out.len(), "a lent buffer has as many bytes as its array");
    if !out.is_empty() {
        // SAFETY: the lent buffer is C-contiguous, readable and disjoint from the fresh memory.
        unsafe { std::ptr::copy_nonoverlapping(lent.ptr(), out.as_mut_ptr(), out.len()) }
    }
}

/// An array from any other object: a buffer, `__array__`, `__dlpack__`, or a sequence.
fn from_other(obj: &Bound<'_, PyAny>, dtype: Option<DType>, device: mxnp_graph::Device) -> PyResult<Array> {
    let py = obj.py();
    if obj.is_none() || obj.is_instance_of::<PyString>() || obj.is_instance_of::<PyDict>() {
        return Err(refused(obj)?);
    }
    let is_bytes = obj.is_instance_of::<PyBytes>() || obj.is_instance_of::<PyByteArray>();
    let has_dtype =
        obj.hasattr("__array__")? || obj.hasattr("__array_interface__")? || Lent::of(obj, false).is_ok();
    if !has_dtype && obj.hasattr("__dlpack__")? {
        let array = crate::dlpack::import(obj, None)?;
        let array = to_device(py, copy(py, &array)?, device)?;
        return finish(py, array, dtype);
    }
    if !has_dtype && obj.hasattr("__getitem__")? && obj.hasattr("__len__")? {
        let list = py.import("builtins")?.getattr("list")?.call1((obj,))?;
        return from_list(&list, dtype, device);
    }
    let source =
        if is_bytes { py.import("builtins")?.getattr("memoryview")?.call1((obj,))? } else { obj.clone() };
    let made = py.import("numpy")?.call_method1("asarray", (source,))?;
    if made.getattr("dtype")?.getattr("kind")?.extract::<String>()? == "O" {
        return Err(refused(obj)?);
    }
    finish(py, from_numpy(&made, device)?, dtype)
}

fn refused(obj: &Bound<'_, PyAny>) -> PyResult<PyErr> {
    let text = format!(
        "a {} cannot become an array\nhint: arrays are made of numbers and bools, in lists, NumPy arrays, buffers \
         or objects with __array__ or __dlpack__",
        obj.get_type().name()?
    );
    Ok(type_error(obj.py(), text))
}

/// `np.array`.
#[pyfunction]
#[pyo3(
    name = "array",
    signature = (obj, dtype = None, device = None, copy = Some(true), ndmin = 0),
    text_signature = "(obj, dtype=None, device=None, copy=True, ndmin=0)"
)]
pub fn py_array(
    obj: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    device: Option<&Bound<'_, PyAny>>,
    copy: Option<bool>,
    ndmin: usize,
) -> PyResult<Py<PyAny>> {
    let py = obj.py();
    enter(py)?;
    let dtype = dtype::parse_optional(dtype)?;
    if copy != Some(true)
        && ndmin == 0
        && let Ok(object) = obj.cast::<NDArray>()
    {
        let array = object.get().array(py);
        let device =
            if device.is_some_and(|d| !d.is_none()) { Device::or_current(device)? } else { array.device() };
        if dtype.is_none_or(|d| d == array.dtype()) && device == array.device() {
            return Ok(obj.clone().unbind());
        }
        if copy == Some(false) {
            return Err(value_error(py, "Unable to avoid copy while creating an array as requested."));
        }
    }
    let device = match (obj.cast::<NDArray>(), device) {
        (Ok(object), None) => object.get().get(py).device(),
        (_, device) => Device::or_current(device)?,
    };
    let made = if copy == Some(false) && !obj.is_instance_of::<NDArray>() {
        let found = shared(obj, device)?;
        if dtype.is_some_and(|d| d != found.dtype()) {
            return Err(value_error(py, "Unable to avoid copy while creating an array as requested."));
        }
        found
    } else {
        array(obj, dtype, device)?
    };
    Ok(wrap(py, with_ndim(py, made, ndmin)?)?.into_any())
}

/// At least `ndmin` axes, new ones first.
fn with_ndim(py: Python<'_>, array: Array, ndmin: usize) -> PyResult<Array> {
    if array.ndim() >= ndmin {
        return Ok(array);
    }
    if ndmin > MAX_NDIM {
        return Err(value_error(
            py,
            format!("ndmin bigger than the allowed number of dimensions ({MAX_NDIM})"),
        ));
    }
    let items = vec![mxnp_core::IndexItem::NewAxis; ndmin - array.ndim()];
    call(py, || mxnp_graph::slice(&array, &items))
}

/// An array over foreign memory, without a copy.
fn shared(obj: &Bound<'_, PyAny>, device: mxnp_graph::Device) -> PyResult<Array> {
    let py = obj.py();
    let refuse = || value_error(py, "Unable to avoid copy while creating an array as requested.");
    if operand::scalar(obj)?.is_some() || obj.is_instance_of::<PyList>() || obj.is_instance_of::<PyTuple>() {
        return Err(refuse());
    }
    let numpy = py.import("numpy")?;
    let source = if operand::is_numpy(obj)? {
        obj.clone()
    } else if Lent::of(obj, false).is_ok() {
        // By way of a memoryview: `bytes` are numbers here, not a text.
        let lent = py.import("builtins")?.getattr("memoryview")?.call1((obj,))?;
        numpy.call_method1("asarray", (lent,))?
    } else {
        numpy.call_method1("asarray", (obj,))?
    };
    if !source.hasattr("flags")? || source.getattr("ndim").is_err() {
        return Err(refuse());
    }
    let numpy_dtype = source.getattr("dtype")?;
    let dtype = dtype::from_numpy(&numpy_dtype)?;
    if !numpy_dtype.getattr("isnative")?.extract::<bool>()? {
        return Err(refuse());
    }
    let source = if dtype == DType::BF16 {
        source.call_method1("view", (dtype::object(py, DType::U16)?,))?
    } else {
        source
    };
    buffer::share(&source, dtype, device)
}

/// An array over the memory of an object with the buffer protocol.
#[pyfunction]
pub fn from_buffer(obj: &Bound<'_, PyAny>) -> PyResult<Py<NDArray>> {
    enter(obj.py())?;
    wrap(obj.py(), shared(obj, crate::device::current())?)
}

/// `obj` where it is an array, else an array made of it.
#[pyfunction]
pub fn asarray(obj: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    if obj.is_instance_of::<NDArray>() {
        return Ok(obj.clone().unbind());
    }
    enter(obj.py())?;
    Ok(wrap(obj.py(), array(obj, None, crate::device::current())?)?.into_any())
}

/// What pickles call.
#[pyfunction]
pub fn _rebuild(
    data: &Bound<'_, PyAny>,
    dtype: &str,
    device_type: &str,
    device_id: u32,
) -> PyResult<Py<NDArray>> {
    let py = data.py();
    enter(py)?;
    let device =
        Device::parse(pyo3::types::PyString::new(py, &format!("{device_type}({device_id})")).as_any())?;
    let raw = from_numpy(data, device)?;
    if dtype != "bfloat16" {
        return wrap(py, raw);
    }
    let halves = call_detached(py, || {
        let mut bytes = vec![0u8; raw.size() * 2];
        raw.read_into(&mut bytes)?;
        Array::from_bytes(raw.shape(), DType::BF16, device, |out| out.copy_from_slice(&bytes))
    })?;
    wrap(py, halves)
}
