//! Memory through Python's buffer protocol, both ways: a borrowed view of foreign memory, and arrays lending theirs.

use crate::array::NDArray;
use crate::error::{call_detached, value_error};
use mxnp_core::layout::Strides;
use mxnp_core::{DType, Layout, Shape};
use mxnp_graph::{Array, Device, Exported};
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{CStr, c_int, c_void};

/// A buffer lent by a Python object, given back on drop, which needs the GIL.
pub struct Lent(Box<ffi::Py_buffer>);

// SAFETY: the description is plain data; its release takes the GIL, see `drop`.
unsafe impl Send for Lent {}
// SAFETY: `&Lent` only reads the description.
unsafe impl Sync for Lent {}

impl Lent {
    /// Asks `obj` for its memory with strides, for writing too where `write`.
    pub fn of(obj: &Bound<'_, PyAny>, write: bool) -> PyResult<Lent> {
        let mut view = Box::new(ffi::Py_buffer::new());
        let flags = if write { ffi::PyBUF_RECORDS } else { ffi::PyBUF_RECORDS_RO };
        // SAFETY: `view` is a fresh description that the call fills or leaves empty.
        let rc = unsafe { ffi::PyObject_GetBuffer(obj.as_ptr(), &raw mut *view, flags) };
        if rc == 0 { Ok(Lent(view)) } else { Err(PyErr::fetch(obj.py())) }
    }

    /// The address of element zero.
    pub fn ptr(&self) -> *mut u8 {
        self.0.buf.cast()
    }

    pub fn is_readonly(&self) -> bool {
        self.0.readonly != 0
    }

    pub fn len(&self) -> usize {
        self.0.len as usize
    }

    pub fn item_size(&self) -> usize {
        self.0.itemsize as usize
    }

    pub fn shape(&self) -> Shape {
        self.axis_numbers(self.0.shape).map(|n| n as usize).collect()
    }

    /// Byte strides.
    pub fn strides(&self) -> Strides {
        self.axis_numbers(self.0.strides).collect()
    }

    fn axis_numbers(&self, numbers: *const ffi::Py_ssize_t) -> impl Iterator<Item = isize> + '_ {
        // SAFETY: RECORDS asks for shape and strides, so both have `ndim` entries that live with the buffer.
        (0..self.0.ndim as usize).map(move |i| unsafe { *numbers.add(i) })
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        Python::attach(|_| {
            // SAFETY: filled by PyObject_GetBuffer, released once, with the GIL.
            unsafe { ffi::PyBuffer_Release(&raw mut *self.0) }
        });
    }
}

/// Element strides and the lowest address of memory with byte strides, or None where elements lie askew.
pub fn place(ptr: *mut u8, shape: &[usize], strides: &[isize], size: usize) -> Option<(*mut u8, Layout)> {
    if !(ptr as usize).is_multiple_of(size.min(8)) && !shape.contains(&0) {
        return None;
    }
    let mut layout = Layout { shape: Shape::from_slice(shape), strides: Strides::new(), offset: 0 };
    let mut below = 0usize;
    for (&n, &step) in shape.iter().zip(strides) {
        if step % size as isize != 0 && n > 1 {
            return None;
        }
        let step = step / size as isize;
        layout.strides.push(step);
        if step < 0 && n > 0 {
            below += (n - 1) * step.unsigned_abs();
        }
    }
    if shape.contains(&0) {
        return Some((ptr, Layout::contiguous(shape)));
    }
    layout.offset = below;
    // SAFETY: the element at the lowest address belongs to the buffer, so the pointer stays inside it.
    Some((unsafe { ptr.sub(below * size) }, layout))
}

/// An array over the memory of `obj`, whose elements are `dtype`: no copy. ValueError where that cannot be.
pub fn share(obj: &Bound<'_, PyAny>, dtype: DType, device: Device) -> PyResult<Array> {
    let py = obj.py();
    let lent = Lent::of(obj, true).or_else(|_| Lent::of(obj, false))?;
    let placed = place(lent.ptr(), &lent.shape(), &lent.strides(), dtype.size());
    let Some((base, layout)) = placed.filter(|_| lent.item_size() == dtype.size()) else {
        return Err(value_error(py, "Unable to avoid copy: the elements are not aligned to their size"));
    };
    let writable = !lent.is_readonly();
    // SAFETY: the layout covers the lent buffer and nothing else, and the owner keeps it lent.
    Ok(unsafe { Array::import(base, layout, dtype, device, writable, Box::new(lent)) })
}

/// The struct module's character of a dtype; bfloat16 has none.
const fn format_of(dtype: DType) -> Option<&'static CStr> {
    Some(match dtype {
        DType::Bool => c"?",
        DType::I8 => c"b",
        DType::I16 => c"h",
        DType::I32 => c"i",
        DType::I64 => c"q",
        DType::U8 => c"B",
        DType::U16 => c"H",
        DType::U32 => c"I",
        DType::U64 => c"Q",
        DType::F16 => c"e",
        DType::BF16 => return None,
        DType::F32 => c"f",
        DType::F64 => c"d",
        DType::C64 => c"Zf",
        DType::C128 => c"Zd",
    })
}

/// What a lent array keeps until it is given back.
struct Loan {
    _exported: Exported,
    shape: Vec<ffi::Py_ssize_t>,
    strides: Vec<ffi::Py_ssize_t>,
}

/// Whether bytes with these strides lie one after the other, last axis fastest (`c`) or first.
fn is_packed(shape: &[isize], strides: &[isize], size: isize, c: bool) -> bool {
    let mut step = size;
    let mut axes: Vec<usize> = (0..shape.len()).collect();
    if c {
        axes.reverse();
    }
    for i in axes {
        if shape[i] != 1 && strides[i] != step {
            return shape.contains(&0);
        }
        step *= shape[i];
    }
    true
}

#[pymethods]
impl NDArray {
    /// Lends the memory: read-only unless writing was asked for. Waits for the value.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let py = slf.py();
        let array = slf.get().array(py);
        let Some(format) = format_of(array.dtype()) else {
            return Err(PyBufferError::new_err("the buffer protocol has no bfloat16"));
        };
        let write = flags & ffi::PyBUF_WRITABLE != 0;
        if write && !array.is_writable() {
            return Err(PyBufferError::new_err("the array is read-only"));
        }
        let size = array.dtype().size() as isize;
        let shape: Vec<_> = array.shape().iter().map(|&n| n as isize).collect();
        let exported = call_detached(py, || array.export(write))?;
        let strides: Vec<_> = exported.layout.strides.iter().map(|s| s * size).collect();
        check_packing(&shape, &strides, size, flags)?;
        let asked = |flag: c_int| flags & flag == flag;
        let length = shape.iter().product::<isize>() * size;
        let ptr = exported.ptr;
        let mut loan = Box::new(Loan { _exported: exported, shape, strides });
        // SAFETY: the protocol gives a description to fill; shape and strides live in the loan, which
        // `internal` owns until __releasebuffer__.
        unsafe {
            (*view).buf = ptr.cast();
            (*view).len = length;
            (*view).readonly = c_int::from(!write);
            (*view).itemsize = size;
            (*view).format =
                if asked(ffi::PyBUF_FORMAT) { format.as_ptr().cast_mut() } else { std::ptr::null_mut() };
            (*view).ndim = loan.shape.len() as c_int;
            (*view).shape = if asked(ffi::PyBUF_ND) { loan.shape.as_mut_ptr() } else { std::ptr::null_mut() };
            (*view).strides =
                if asked(ffi::PyBUF_STRIDES) { loan.strides.as_mut_ptr() } else { std::ptr::null_mut() };
            (*view).suboffsets = std::ptr::null_mut();
            (*view).internal = Box::into_raw(loan).cast::<c_void>();
            (*view).obj = slf.into_any().into_ptr();
        }
        Ok(())
    }

    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: `internal` was made by __getbuffer__ for this description and is released once.
        drop(unsafe { Box::from_raw((*view).internal.cast::<Loan>()) });
    }
}

/// Refuses a request that the strides do not meet.
fn check_packing(shape: &[isize], strides: &[isize], size: isize, flags: c_int) -> PyResult<()> {
    let asked = |flag: c_int| flags & flag == flag;
    let c = is_packed(shape, strides, size, true);
    let f = is_packed(shape, strides, size, false);
    let refused = (asked(ffi::PyBUF_C_CONTIGUOUS) && !c)
        || (asked(ffi::PyBUF_F_CONTIGUOUS) && !f)
        || (asked(ffi::PyBUF_ANY_CONTIGUOUS) && !c && !f)
        || (!asked(ffi::PyBUF_STRIDES) && !c);
    if refused {
        Err(PyBufferError::new_err("ndarray is not contiguous in the order asked for"))
    } else {
        Ok(())
    }
}
