//! What stands beside an operator or in a call: Python objects become operands, results become arrays.

use crate::array::NDArray;
use crate::convert;
use crate::error::{call, raise};
use crate::once::once;
use mxnp_core::attrs::Attrs;
use mxnp_core::{ErrorKind, Op, Scalar};
use mxnp_graph::{Array, Device, Handle, Input};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyList, PyTuple};
use smallvec::SmallVec;
use std::cell::Ref;

/// An operand of a call: a borrowed array object, an array made for the call, or a weak scalar.
pub enum Operand<'a> {
    Object(Ref<'a, Handle>),
    Made(Array),
    Scalar(Scalar),
}

impl Operand<'_> {
    #[inline]
    pub fn input(&self) -> Input<'_> {
        match self {
            Operand::Object(array) => Input::Array(array),
            Operand::Made(array) => Input::Array(array),
            Operand::Scalar(scalar) => Input::Scalar(*scalar),
        }
    }
}

/// A Python object ready to become an operand. Conversion may run Python code, so it is done for all operands
/// before any array is borrowed.
pub enum Source<'a, 'py> {
    Object(&'a Bound<'py, NDArray>),
    Made(Array),
    Scalar(Scalar),
}

impl<'a, 'py> Source<'a, 'py> {
    #[inline]
    pub fn operand(self, py: Python<'a>) -> Operand<'a> {
        match self {
            Source::Object(object) => Operand::Object(object.get().get(py)),
            Source::Made(array) => Operand::Made(array),
            Source::Scalar(scalar) => Operand::Scalar(scalar),
        }
    }

    /// The operand without a borrow of any object.
    pub fn owned<'o>(self, py: Python<'_>) -> Operand<'o> {
        match self {
            Source::Object(object) => Operand::Made(object.get().array(py)),
            Source::Made(array) => Operand::Made(array),
            Source::Scalar(scalar) => Operand::Scalar(scalar),
        }
    }
}

/// The weak scalar that a Python number is; None for anything else, NumPy's scalars too.
#[inline]
pub fn scalar(obj: &Bound<'_, PyAny>) -> PyResult<Option<Scalar>> {
    if let Ok(value) = obj.cast_exact::<PyFloat>() {
        return Ok(Some(Scalar::Float(value.value())));
    }
    if let Ok(value) = obj.cast_exact::<PyInt>() {
        return integer(value.as_any()).map(Some);
    }
    if let Ok(value) = obj.cast::<PyBool>() {
        return Ok(Some(Scalar::Bool(value.is_true())));
    }
    if let Ok(value) = obj.cast_exact::<PyComplex>() {
        return Ok(Some(complex(value)));
    }
    if obj.is_instance_of::<NDArray>() || is_numpy(obj)? {
        return Ok(None);
    }
    // Subclasses: IntEnum and the like.
    if obj.is_instance_of::<PyInt>() {
        return integer(obj).map(Some);
    }
    if obj.is_instance_of::<PyFloat>() {
        return Ok(Some(Scalar::Float(obj.extract()?)));
    }
    Ok(None)
}

fn complex(value: &Bound<'_, PyComplex>) -> Scalar {
    // SAFETY: the object is a complex number, so neither call can fail.
    unsafe {
        Scalar::Complex(
            ffi::PyComplex_RealAsDouble(value.as_ptr()),
            ffi::PyComplex_ImagAsDouble(value.as_ptr()),
        )
    }
}

/// A Python integer of any size up to 128 bits.
pub fn integer(obj: &Bound<'_, PyAny>) -> PyResult<Scalar> {
    let mut overflow = 0;
    // SAFETY: a plain call with a live object; errors are read below.
    let value = unsafe { ffi::PyLong_AsLongLongAndOverflow(obj.as_ptr(), &raw mut overflow) };
    if overflow == 0 {
        if value == -1
            && let Some(error) = PyErr::take(obj.py())
        {
            return Err(error);
        }
        return Ok(Scalar::Int(value as i128));
    }
    match obj.extract::<i128>() {
        Ok(value) => Ok(Scalar::Int(value)),
        Err(_) => {
            Err(raise(obj.py(), ErrorKind::Overflow, "Python integer is out of bounds for every dtype"))
        }
    }
}

static NUMPY: PyOnceLock<(Py<PyAny>, Py<PyAny>)> = PyOnceLock::new();

/// Whether `obj` is a NumPy array or scalar.
pub fn is_numpy(obj: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = obj.py();
    let (array, generic) = once(py, &NUMPY, || {
        let numpy = py.import("numpy")?;
        Ok((numpy.getattr("ndarray")?.unbind(), numpy.getattr("generic")?.unbind()))
    })?;
    Ok(obj.is_instance(array.bind(py))? || obj.is_instance(generic.bind(py))?)
}

/// What stands beside an operator, or None where Python should ask the other side (NotImplemented).
#[inline]
pub fn beside<'a, 'py>(obj: &'a Bound<'py, PyAny>, this: &NDArray) -> PyResult<Option<Source<'a, 'py>>> {
    if let Ok(array) = obj.cast::<NDArray>() {
        return Ok(Some(Source::Object(array)));
    }
    if let Some(scalar) = scalar(obj)? {
        return Ok(Some(Source::Scalar(scalar)));
    }
    if is_numpy(obj)? || obj.is_instance_of::<PyList>() || obj.is_instance_of::<PyTuple>() {
        let device = this.get(obj.py()).device();
        return convert::array(obj, None, device).map(|a| Some(Source::Made(a)));
    }
    Ok(None)
}

/// An argument of a call: anything that is or becomes an array (on `device`), or a Python scalar.
#[inline]
pub fn argument<'a, 'py>(obj: &'a Bound<'py, PyAny>, device: Device) -> PyResult<Source<'a, 'py>> {
    if let Ok(array) = obj.cast::<NDArray>() {
        return Ok(Source::Object(array));
    }
    if let Some(scalar) = scalar(obj)? {
        return Ok(Source::Scalar(scalar));
    }
    convert::array(obj, None, device).map(Source::Made)
}

/// The device of the first array among `args`, else the default one.
pub fn device_of(args: &Bound<'_, PyTuple>) -> Device {
    let first =
        args.iter_borrowed().find_map(|arg| Some(arg.cast::<NDArray>().ok()?.get().get(args.py()).device()));
    first.unwrap_or_else(crate::device::current)
}

/// The results of a call.
pub type Results = SmallVec<[Array; 1]>;

/// Appends a call. The operands must be gone before Python code runs.
#[inline]
pub fn invoke(py: Python<'_>, op: &'static Op, attrs: Attrs, ins: &[Input<'_>]) -> PyResult<Results> {
    call(py, || mxnp_graph::invoke(op, attrs, ins))
}

/// Appends a call of an op with one visible result.
#[inline]
pub fn invoke_one(py: Python<'_>, op: &'static Op, attrs: Attrs, ins: &[Input<'_>]) -> PyResult<Array> {
    call(py, || mxnp_graph::invoke_one(op, attrs, ins))
}

/// The operands of one call, in order.
pub type Operands<'a> = SmallVec<[Operand<'a>; 4]>;

/// Appends a call whose results are written into existing array objects, which may be operands too.
pub fn invoke_into(
    py: Python<'_>,
    op: &'static Op,
    attrs: Attrs,
    sources: SmallVec<[Source<'_, '_>; 4]>,
    outs: &[&NDArray],
) -> PyResult<()> {
    // Operands are handles of their own: a target that is an operand too cannot be borrowed twice.
    let operands: Operands<'_> = sources.into_iter().map(|source| source.owned(py)).collect();
    let inputs: SmallVec<[Input<'_>; 4]> = operands.iter().map(Operand::input).collect();
    match outs {
        [out] => out.write(py, |out| mxnp_graph::invoke_into(op, attrs, &inputs, &mut [out])),
        _ => {
            let results = invoke(py, op, attrs, &inputs)?;
            if results.len() != outs.len() {
                let text = format!("{}: takes {} output arrays, got {}", op.name, results.len(), outs.len());
                return Err(raise(py, ErrorKind::Value, text));
            }
            for (out, result) in outs.iter().zip(&results) {
                out.write(py, |out| mxnp_graph::assign(out, &[], Input::Array(result)))?;
            }
            Ok(())
        }
    }
}
