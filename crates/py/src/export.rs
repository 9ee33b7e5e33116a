//! Values on their way out: NumPy arrays, Python numbers and lists, flags.

use crate::array::NDArray;
use crate::buffer::Lent;
use crate::dtype;
use crate::error::{call, call_detached, index_error, type_error, value_error};
use crate::wait::{finish_small, ready};
use mxnp_core::{DType, Scalar, with_type};
use mxnp_graph::{Array, Exported};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyComplex, PyDict, PyFloat, PyList, PyTuple};

/// Copies larger than this release the GIL: below it the switch costs more than the copy.
const BIG: usize = 1 << 16;

/// A private, writable NumPy copy. Waits.
pub fn asnumpy<'py>(py: Python<'py>, array: &Array) -> PyResult<Bound<'py, PyAny>> {
    let made = asnumpy_raw(py, array)?;
    if array.dtype() == DType::BF16 {
        made.call_method1("view", (dtype::object(py, DType::BF16)?,))
    } else {
        Ok(made)
    }
}

/// As [`asnumpy`], with bfloat16 as the uint16 of its bits.
pub fn asnumpy_raw<'py>(py: Python<'py>, array: &Array) -> PyResult<Bound<'py, PyAny>> {
    let stored = if array.dtype() == DType::BF16 { DType::U16 } else { array.dtype() };
    let shape = PyTuple::new(py, array.shape())?;
    let made = py.import("numpy")?.call_method1("empty", (shape, dtype::object(py, stored)?))?;
    let lent = Lent::of(&made, true)?;
    // SAFETY: a fresh C-contiguous NumPy array of as many bytes, which nobody else has seen.
    let bytes = unsafe { slice_mut(lent.ptr(), lent.len()) };
    if lent.len() < BIG && finish_small(py, array)? {
        call(py, || array.read_into(bytes))?;
    } else {
        call_detached(py, || array.read_into(bytes))?;
    }
    Ok(made)
}

/// # Safety
/// As `slice::from_raw_parts_mut`, except that `ptr` may be anything where `len` is 0.
unsafe fn slice_mut<'a>(ptr: *mut u8, len: usize) -> &'a mut [u8] {
    // SAFETY: the caller's argument.
    if len == 0 { &mut [] } else { unsafe { std::slice::from_raw_parts_mut(ptr, len) } }
}

/// The elements' bytes in C order. Waits.
fn bytes_of(py: Python<'_>, array: &Array) -> PyResult<Vec<u8>> {
    let mut bytes = vec![0u8; array.size() * array.dtype().size()];
    call_detached(py, || array.read_into(&mut bytes))?;
    Ok(bytes)
}

/// A Python number for a scalar.
pub fn number(py: Python<'_>, scalar: Scalar) -> PyResult<Py<PyAny>> {
    Ok(match scalar {
        Scalar::Bool(b) => PyBool::new(py, b).to_owned().into_any().unbind(),
        Scalar::Int(v) => match i64::try_from(v) {
            Ok(v) => v.into_pyobject(py)?.into_any().unbind(),
            Err(_) => v.into_pyobject(py)?.into_any().unbind(),
        },
        Scalar::Float(v) => PyFloat::new(py, v).into_any().unbind(),
        Scalar::Complex(re, im) => PyComplex::from_doubles(py, re, im).into_any().unbind(),
    })
}

/// The element at a flat index, as a Python number. Waits.
pub fn item(py: Python<'_>, array: &Array, index: usize) -> PyResult<Py<PyAny>> {
    number(py, scalar_at(py, array, index)?)
}

/// The element at a flat index. Waits.
pub fn scalar_at(py: Python<'_>, array: &Array, index: usize) -> PyResult<Scalar> {
    if finish_small(py, array)? {
        call(py, || array.item(index))
    } else {
        call_detached(py, || array.item(index))
    }
}

/// The only element, for conversions to `what`.
fn only(py: Python<'_>, array: &Array) -> PyResult<Scalar> {
    if array.size() != 1 {
        return Err(type_error(py, "only length-1 arrays can be converted to Python scalars"));
    }
    scalar_at(py, array, 0)
}

/// The truth of an array of one element.
pub fn truth(py: Python<'_>, array: &Array) -> PyResult<bool> {
    match array.size() {
        1 => Ok(match scalar_at(py, array, 0)? {
            Scalar::Bool(b) => b,
            Scalar::Int(v) => v != 0,
            Scalar::Float(v) => v != 0.0,
            Scalar::Complex(re, im) => re != 0.0 || im != 0.0,
        }),
        0 => Err(value_error(
            py,
            "The truth value of an empty array is ambiguous. Use `array.size > 0` to check that an array is \
             not empty.",
        )),
        _ => Err(value_error(
            py,
            "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()",
        )),
    }
}

/// Nested lists of Python numbers from bytes in C order.
fn nested(py: Python<'_>, shape: &[usize], bytes: &[u8], dtype: DType) -> PyResult<Py<PyAny>> {
    let size = dtype.size();
    let Some((&n, rest)) = shape.split_first() else { return number(py, decode(bytes, dtype)) };
    let stride = rest.iter().product::<usize>() * size;
    let items: Vec<Py<PyAny>> = (0..n)
        .map(|i| nested(py, rest, &bytes[i * stride..(i + 1) * stride], dtype))
        .collect::<PyResult<_>>()?;
    Ok(PyList::new(py, items)?.into_any().unbind())
}

/// The element that the first bytes hold.
fn decode(bytes: &[u8], dtype: DType) -> Scalar {
    let double = |i: usize| f64::from_ne_bytes(bytes[i..i + 8].try_into().expect("eight bytes"));
    let single = |i: usize| f32::from_ne_bytes(bytes[i..i + 4].try_into().expect("four bytes")) as f64;
    let half = [bytes[0], bytes[bytes.len().min(2) - 1]];
    match dtype {
        DType::Bool => Scalar::Bool(bytes[0] != 0),
        DType::F16 => Scalar::Float(half::f16::from_ne_bytes(half).to_f64()),
        DType::BF16 => Scalar::Float(half::bf16::from_ne_bytes(half).to_f64()),
        DType::F32 => Scalar::Float(single(0)),
        DType::F64 => Scalar::Float(double(0)),
        DType::C64 => Scalar::Complex(single(0), single(4)),
        DType::C128 => Scalar::Complex(double(0), double(8)),
        other => with_type!(ints other, T => {
            let bytes = bytes[..size_of::<T>()].try_into().expect("as many bytes as the dtype has");
            Scalar::Int(T::from_ne_bytes(bytes) as i128)
        }, else unreachable!("every other dtype is handled above")),
    }
}

/// The flat C-order index that `item(*args)` means.
fn flat_index(py: Python<'_>, array: &Array, args: &Bound<'_, PyTuple>) -> PyResult<usize> {
    let shape = array.shape();
    let args = match args.len() {
        1 => args.get_item(0)?.cast::<PyTuple>().cloned().unwrap_or_else(|_| args.clone()),
        _ => args.clone(),
    };
    if args.is_empty() {
        if array.size() != 1 {
            return Err(value_error(py, "can only convert an array of size 1 to a Python scalar"));
        }
        return Ok(0);
    }
    let (sizes, one): (&[usize], [usize; 1]) = (shape, [array.size()]);
    let sizes = if args.len() == 1 && shape.len() != 1 { &one[..] } else { sizes };
    if args.len() != sizes.len() {
        return Err(value_error(py, "incorrect number of indices for array"));
    }
    let mut flat = 0;
    for (axis, (arg, &n)) in args.iter().zip(sizes).enumerate() {
        let i: i64 = arg.extract()?;
        let at = if i < 0 { i + n as i64 } else { i };
        if at < 0 || at >= n as i64 {
            let text = format!("index {i} is out of bounds for axis {axis} with size {n}");
            return Err(index_error(py, text));
        }
        flat = flat * n + at as usize;
    }
    Ok(flat)
}

/// Memory lent to NumPy, read-only, through `__array_interface__` (which knows no bfloat16: its bits go out).
#[pyclass(module = "mxnp._core", frozen)]
struct Lending(Exported);

#[pymethods]
impl Lending {
    #[getter]
    fn __array_interface__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let py = slf.py();
        let exported = &slf.get().0;
        let stored = if exported.dtype == DType::BF16 { DType::U16 } else { exported.dtype };
        let size = exported.dtype.size() as isize;
        let strides: Vec<isize> = exported.layout.strides.iter().map(|s| s * size).collect();
        let dict = PyDict::new(py);
        dict.set_item("version", 3)?;
        dict.set_item("typestr", dtype::object(py, stored)?.getattr("str")?)?;
        dict.set_item("shape", PyTuple::new(py, &exported.layout.shape)?)?;
        dict.set_item("strides", PyTuple::new(py, strides)?)?;
        dict.set_item("data", (exported.ptr as usize, true))?;
        Ok(dict)
    }
}

/// A read-only NumPy view. Waits; the value counts as shared while the view lives.
pub fn view<'py>(py: Python<'py>, array: &Array) -> PyResult<Bound<'py, PyAny>> {
    let exported = call_detached(py, || array.export(false))?;
    let made = py.import("numpy")?.call_method1("asarray", (Lending(exported),))?;
    if array.dtype() == DType::BF16 {
        made.call_method1("view", (dtype::object(py, DType::BF16)?,))
    } else {
        Ok(made)
    }
}

#[pymethods]
impl NDArray {
    /// A private, writable NumPy copy. Waits.
    #[pyo3(name = "asnumpy")]
    fn py_asnumpy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        asnumpy(slf.py(), &slf.get().array(slf.py()))
    }

    /// The element at a flat index or at one index per axis, as a Python number. Waits.
    #[pyo3(name = "item", signature = (*args))]
    fn py_item(&self, py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        let array = self.array(py);
        let index = flat_index(py, &array, args)?;
        item(py, &array, index)
    }

    /// 1.x's name of `item()`: the only element as a Python number; ValueError for more than one.
    fn asscalar(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let array = self.array(py);
        if array.size() != 1 {
            return Err(value_error(py, "The current array is not a scalar"));
        }
        item(py, &array, 0)
    }

    /// Nested lists of Python numbers; a number for a 0-d array. Waits.
    fn tolist(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let array = self.array(py);
        nested(py, array.shape(), &bytes_of(py, &array)?, array.dtype())
    }

    /// The elements' bytes in C order. Waits.
    fn tobytes<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyBytes>> {
        let py = slf.py();
        Ok(PyBytes::new(py, &bytes_of(py, &slf.get().array(py))?))
    }

    /// Waits until the value is there, and raises the error it carries.
    fn wait_to_read(&self, py: Python<'_>) -> PyResult<()> {
        ready(py, &self.array(py))
    }

    /// Waits until nothing reads or writes the value any more.
    fn wait_to_write(&self, py: Python<'_>) -> PyResult<()> {
        let array = self.array(py);
        call_detached(py, || array.wait_to_write())
    }

    /// Whether nothing is pending.
    fn is_ready(&self, py: Python<'_>) -> bool {
        self.get(py).is_ready()
    }

    /// A read-only NumPy view, or a copy where `copy` or another dtype asks for one. Waits.
    #[pyo3(signature = (dtype = None, *, copy = None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let array = slf.get().array(py);
        let wanted = match dtype {
            Some(dtype) if !dtype.is_none() => Some(py.import("numpy")?.call_method1("dtype", (dtype,))?),
            _ => None,
        };
        let other = wanted.filter(|d| !d.eq(dtype::object(py, array.dtype()).ok()).unwrap_or(false));
        match (other, copy) {
            (None, Some(true)) => asnumpy(py, &array),
            (None, _) => view(py, &array),
            (Some(_), Some(false)) => {
                Err(value_error(py, "Unable to avoid copy while creating an array of another dtype"))
            }
            (Some(other), _) => asnumpy(py, &array)?.call_method1("astype", (other,)),
        }
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        truth(py, &self.array(py))
    }

    fn __float__(&self, py: Python<'_>) -> PyResult<f64> {
        match only(py, &self.array(py))? {
            Scalar::Complex(..) => Err(type_error(py, "cannot convert a complex number to float")),
            value => Ok(value.as_f64()),
        }
    }

    fn __int__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let value = number(py, only(py, &self.array(py))?)?;
        py.import("builtins")?.call_method1("int", (value,)).map(Bound::unbind)
    }

    fn __complex__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let value = number(py, only(py, &slf.get().array(py))?)?;
        py.import("builtins")?.call_method1("complex", (value,))
    }

    fn __index__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let array = self.array(py);
        if array.size() != 1 || !array.dtype().is_integer() || array.ndim() > 0 {
            return Err(type_error(py, "only integer scalar arrays can be converted to a scalar index"));
        }
        item(py, &array, 0)
    }

    fn __contains__(slf: &Bound<'_, Self>, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        crate::operators::contains(slf, item)
    }
}

/// The facts NumPy's `flags` give.
#[pyclass(module = "mxnp._core", frozen, get_all)]
pub struct Flags {
    c_contiguous: bool,
    f_contiguous: bool,
    owndata: bool,
    writeable: bool,
    aligned: bool,
}

impl Flags {
    pub fn of(array: &Array) -> Flags {
        let layout = array.layout();
        let axes: Vec<usize> = (0..layout.ndim()).rev().collect();
        Flags {
            c_contiguous: layout.is_contiguous(),
            f_contiguous: layout.transpose(&axes).is_contiguous(),
            owndata: true, // a Value is owned by all of its views together
            writeable: array.is_writable(),
            aligned: true,
        }
    }
}

#[pymethods]
impl Flags {
    #[getter]
    fn contiguous(&self) -> bool {
        self.c_contiguous
    }

    fn __getitem__(&self, key: &str) -> PyResult<bool> {
        Ok(match key {
            "C_CONTIGUOUS" | "C" | "CONTIGUOUS" => self.c_contiguous,
            "F_CONTIGUOUS" | "F" | "FORTRAN" => self.f_contiguous,
            "OWNDATA" | "O" => self.owndata,
            "WRITEABLE" | "W" => self.writeable,
            "ALIGNED" | "A" => self.aligned,
            _ => return Err(PyKeyError::new_err(format!("Unknown flag {key}"))),
        })
    }

    fn __repr__(&self) -> String {
        let text = |b: bool| if b { "True" } else { "False" };
        format!(
            "  C_CONTIGUOUS : {}\n  F_CONTIGUOUS : {}\n  OWNDATA : {}\n  WRITEABLE : {}\n  ALIGNED : {}\n",
            text(self.c_contiguous),
            text(self.f_contiguous),
            text(self.owndata),
            text(self.writeable),
            text(self.aligned)
        )
    }
}

/// A read-only NumPy view of an array: what savers write from.
#[pyfunction]
pub fn numpy_view<'py>(x: &Bound<'py, NDArray>) -> PyResult<Bound<'py, PyAny>> {
    view(x.py(), &x.get().array(x.py()))
}
