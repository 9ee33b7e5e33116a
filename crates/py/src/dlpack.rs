//! DLPack, both ways: arrays of other libraries without a copy. Structures as in dlpack.h, versions 0.8 and 1.0.

use crate::array::{NDArray, wrap};
use crate::buffer::place;
use crate::convert;
use crate::error::{call_detached, value_error};
use crate::wait::enter;
use mxnp_core::DType;
use mxnp_core::layout::contiguous_strides;
use mxnp_graph::{Array, Device, DeviceKind, Exported};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ffi::{CStr, c_void};

#[repr(C)]
#[derive(Clone, Copy)]
struct DLDevice {
    kind: i32,
    id: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct DLDataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct DLTensor {
    data: *mut c_void,
    device: DLDevice,
    ndim: i32,
    dtype: DLDataType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct DLManagedTensor {
    tensor: DLTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}

#[repr(C)]
struct DLManagedTensorVersioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
    flags: u64,
    tensor: DLTensor,
}

const CPU: i32 = 1;
const CUDA: i32 = 2;
const CUDA_HOST: i32 = 3;
const READ_ONLY: u64 = 1;
const IS_COPIED: u64 = 2;

const PLAIN: &CStr = c"dltensor";
const PLAIN_USED: &CStr = c"used_dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
const VERSIONED_USED: &CStr = c"used_dltensor_versioned";

/// Type codes of dlpack.h.
const fn type_of(dtype: DType) -> DLDataType {
    let code = match dtype {
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => 0,
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => 1,
        DType::F16 | DType::F32 | DType::F64 => 2,
        DType::BF16 => 4,
        DType::C64 | DType::C128 => 5,
        DType::Bool => 6,
    };
    DLDataType { code, bits: 8 * dtype.size() as u8, lanes: 1 }
}

fn dtype_from(t: DLDataType) -> Option<DType> {
    let same = |d: &DType| {
        let known = type_of(*d);
        (known.code, known.bits) == (t.code, t.bits)
    };
    if t.lanes == 1 { DType::ALL.into_iter().find(same) } else { None }
}

/// What an exported tensor points to.
struct Kept {
    exported: Exported,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

impl Kept {
    fn new(exported: Exported) -> Box<Kept> {
        let shape = exported.layout.shape.iter().map(|&n| n as i64).collect();
        let strides = exported.layout.strides.iter().map(|&s| s as i64).collect();
        Box::new(Kept { exported, shape, strides })
    }

    fn tensor(&mut self) -> DLTensor {
        DLTensor {
            data: self.exported.ptr.cast(),
            device: DLDevice { kind: CPU, id: 0 },
            ndim: self.shape.len() as i32,
            dtype: type_of(self.exported.dtype),
            shape: self.shape.as_mut_ptr(),
            strides: self.strides.as_mut_ptr(),
            byte_offset: 0,
        }
    }
}

unsafe extern "C" fn delete_plain(tensor: *mut DLManagedTensor) {
    // SAFETY: both boxes were made by `export_plain`; a consumer calls the deleter once.
    unsafe {
        drop(Box::from_raw((*tensor).context.cast::<Kept>()));
        drop(Box::from_raw(tensor));
    }
}

unsafe extern "C" fn delete_versioned(tensor: *mut DLManagedTensorVersioned) {
    // SAFETY: both boxes were made by `export_versioned`; a consumer calls the deleter once.
    unsafe {
        drop(Box::from_raw((*tensor).context.cast::<Kept>()));
        drop(Box::from_raw(tensor));
    }
}

/// A capsule nobody took deletes its tensor; a taken one was renamed.
unsafe extern "C" fn drop_capsule(capsule: *mut ffi::PyObject) {
    // SAFETY: called by Python with a capsule of `export_*`, GIL held; the name says what it holds.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, PLAIN.as_ptr()) != 0 {
            delete_plain(ffi::PyCapsule_GetPointer(capsule, PLAIN.as_ptr()).cast());
        } else if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) != 0 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast());
        }
    }
}

fn export_plain(py: Python<'_>, exported: Exported) -> PyResult<Bound<'_, PyAny>> {
    let mut kept = Kept::new(exported);
    let tensor = kept.tensor();
    let context = Box::into_raw(kept).cast();
    let managed = Box::into_raw(Box::new(DLManagedTensor { tensor, context, deleter: Some(delete_plain) }));
    // SAFETY: a static name, a live pointer and a destructor for both.
    unsafe {
        Bound::from_owned_ptr_or_err(
            py,
            ffi::PyCapsule_New(managed.cast(), PLAIN.as_ptr(), Some(drop_capsule)),
        )
    }
}

fn export_versioned(py: Python<'_>, exported: Exported, flags: u64) -> PyResult<Bound<'_, PyAny>> {
    let mut kept = Kept::new(exported);
    let tensor = kept.tensor();
    let context = Box::into_raw(kept).cast();
    let managed = Box::into_raw(Box::new(DLManagedTensorVersioned {
        major: 1,
        minor: 0,
        context,
        deleter: Some(delete_versioned),
        flags,
        tensor,
    }));
    // SAFETY: a static name, a live pointer and a destructor for both.
    unsafe {
        let capsule = ffi::PyCapsule_New(managed.cast(), VERSIONED.as_ptr(), Some(drop_capsule));
        Bound::from_owned_ptr_or_err(py, capsule)
    }
}

#[pymethods]
impl NDArray {
    /// A capsule that lends the memory. Waits for the value.
    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__<'py>(
        slf: &Bound<'py, Self>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if stream.is_some() {
            return Err(PyBufferError::new_err("__dlpack__: arrays on the CPU take no stream"));
        }
        if dl_device.is_some_and(|(kind, _)| kind != CPU) {
            return Err(PyBufferError::new_err("__dlpack__: the array can only be lent on the CPU"));
        }
        let mut array = slf.get().array(py);
        if array.device().kind == DeviceKind::Gpu {
            return Err(PyBufferError::new_err("__dlpack__: arrays on a GPU cannot be lent yet"));
        }
        let copied = copy == Some(true);
        if copied {
            array = convert::copy(py, &array.detach())?;
        }
        let writable = array.is_writable();
        let exported = call_detached(py, || array.export(writable))?;
        if max_version.is_some_and(|(major, _)| major >= 1) {
            let flags = if writable { 0 } else { READ_ONLY } | if copied { IS_COPIED } else { 0 };
            return export_versioned(py, exported, flags);
        }
        if !writable {
            return Err(PyBufferError::new_err("__dlpack__: a read-only array needs max_version=(1, 0)"));
        }
        export_plain(py, exported)
    }

    fn __dlpack_device__(&self, py: Python<'_>) -> (i32, i32) {
        let device = self.get(py).device();
        match device.kind {
            DeviceKind::Gpu => (CUDA, device.id as i32),
            _ => (CPU, 0), // every cpu(i) is the one host memory
        }
    }
}

/// A tensor lent to us; given back by its deleter on drop, which happens with the GIL held.
enum Owner {
    Plain(*mut DLManagedTensor),
    Versioned(*mut DLManagedTensorVersioned),
}

// SAFETY: the tensor belongs to us alone; its deleter is called by the thread that drops the owner.
unsafe impl Send for Owner {}

impl Drop for Owner {
    fn drop(&mut self) {
        // SAFETY: the capsule was renamed, so nobody else calls the deleter; it is called once.
        unsafe {
            match *self {
                Owner::Plain(tensor) => {
                    if let Some(deleter) = (*tensor).deleter {
                        deleter(tensor);
                    }
                }
                Owner::Versioned(tensor) => {
                    if let Some(deleter) = (*tensor).deleter {
                        deleter(tensor);
                    }
                }
            }
        }
    }
}

/// Takes the tensor out of a capsule: the owner, the tensor and whether it may be written.
fn take<'py>(capsule: &Bound<'py, PyAny>) -> PyResult<(Owner, *const DLTensor, bool)> {
    let ptr = capsule.as_ptr();
    let invalid = || PyTypeError::new_err("__dlpack__ gave no unused DLPack capsule");
    // SAFETY: the calls only look at the object; the pointer has the type that the capsule's name says.
    unsafe {
        if ffi::PyCapsule_IsValid(ptr, VERSIONED.as_ptr()) != 0 {
            let tensor =
                ffi::PyCapsule_GetPointer(ptr, VERSIONED.as_ptr()).cast::<DLManagedTensorVersioned>();
            if (*tensor).major > 1 {
                return Err(PyBufferError::new_err(format!("DLPack version {} is too new", (*tensor).major)));
            }
            ffi::PyCapsule_SetName(ptr, VERSIONED_USED.as_ptr());
            return Ok((
                Owner::Versioned(tensor),
                &raw const (*tensor).tensor,
                (*tensor).flags & READ_ONLY == 0,
            ));
        }
        if ffi::PyCapsule_IsValid(ptr, PLAIN.as_ptr()) != 0 {
            let tensor = ffi::PyCapsule_GetPointer(ptr, PLAIN.as_ptr()).cast::<DLManagedTensor>();
            ffi::PyCapsule_SetName(ptr, PLAIN_USED.as_ptr());
            return Ok((Owner::Plain(tensor), &raw const (*tensor).tensor, true));
        }
    }
    Err(invalid())
}

/// An array over the memory that `obj.__dlpack__()` lends.
pub fn import(obj: &Bound<'_, PyAny>, copy: Option<bool>) -> PyResult<Array> {
    let py = obj.py();
    let keywords = PyDict::new(py);
    keywords.set_item("max_version", (1, 0))?;
    if let Some(copy) = copy {
        keywords.set_item("copy", copy)?;
    }
    let capsule = match obj.call_method("__dlpack__", (), Some(&keywords)) {
        Err(error) if error.is_instance_of::<PyTypeError>(py) => obj.call_method0("__dlpack__")?,
        result => result?,
    };
    let (owner, tensor, writable) = take(&capsule)?;
    // SAFETY: the owner keeps the tensor and what it points to alive.
    let tensor = unsafe { &*tensor };
    if !matches!(tensor.device.kind, CPU | CUDA_HOST) {
        let text = format!("from_dlpack: device type {} is not supported", tensor.device.kind);
        return Err(PyBufferError::new_err(text));
    }
    let Some(dtype) = dtype_from(tensor.dtype) else {
        let DLDataType { code, bits, lanes } = tensor.dtype;
        let text = format!("from_dlpack: dtype (code {code}, {bits} bits, {lanes} lanes) is not supported");
        return Err(PyBufferError::new_err(text));
    };
    let ndim = tensor.ndim.max(0) as usize;
    // SAFETY: `shape` (and `strides` unless null) have `ndim` entries.
    let axis = |numbers: *const i64, i: usize| unsafe { *numbers.add(i) };
    let sizes = (0..ndim).map(|i| usize::try_from(axis(tensor.shape, i)));
    let shape: Vec<usize> = sizes
        .collect::<Result<_, _>>()
        .map_err(|_| PyBufferError::new_err("from_dlpack: a negative size"))?;
    mxnp_core::shape::checked_numel("from_dlpack", &shape, dtype.size())
        .map_err(|error| crate::error::core_error(py, error))?;
    let size = dtype.size() as isize;
    let strides: Vec<isize> = match tensor.strides.is_null() {
        true => contiguous_strides(&shape).iter().map(|s| s * size).collect(),
        false => (0..ndim).map(|i| axis(tensor.strides, i) as isize * size).collect(),
    };
    let start = tensor.data.cast::<u8>().wrapping_add(tensor.byte_offset as usize);
    let Some((base, layout)) = place(start, &shape, &strides, dtype.size()) else {
        return Err(PyBufferError::new_err("from_dlpack: the elements are not aligned to their size"));
    };
    let device = Device { kind: DeviceKind::Cpu, id: 0 };
    // SAFETY: the layout covers the lent tensor and nothing else; the owner keeps it.
    Ok(unsafe { Array::import(base, layout, dtype, device, writable, Box::new(owner)) })
}

/// `np.from_dlpack`.
#[pyfunction]
#[pyo3(signature = (x, device = None, copy = None))]
pub fn from_dlpack(
    x: &Bound<'_, PyAny>,
    device: Option<&Bound<'_, PyAny>>,
    copy: Option<bool>,
) -> PyResult<Py<NDArray>> {
    let py = x.py();
    enter(py)?;
    if !x.hasattr("__dlpack__")? {
        let found = x.get_type().name()?.to_string();
        let text = format!("from_dlpack takes an object with __dlpack__, got {found}");
        return Err(crate::error::type_error(py, text));
    }
    let mut array = import(x, if copy == Some(false) { copy } else { None })?;
    if copy == Some(true) {
        array = convert::copy(py, &array)?;
    }
    let device = crate::device::Device::or_current(device)?;
    if device != array.device() {
        if copy == Some(false) {
            return Err(value_error(py, "from_dlpack: the array is on another device, and copy=False"));
        }
        array = convert::to_device(py, array, device)?;
    }
    wrap(py, array)
}
