//! The Python class `mxnp.np.ndarray`: one graph array per object, its facts and its small methods.
//! Operators, indexing, conversion and gradients are in files of their own.

use crate::cell::GilCell;
use crate::device::Device;
use crate::error::{call, type_error};
use crate::wait::{enter, pay};
use crate::{convert, dtype, export, operand, print};
use mxnp_core::Shape;
use mxnp_core::attrs::Ints;
use mxnp_graph::{Array, Handle, Input};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use std::cell::Ref;

/// An array: elements of one dtype on one device, computed lazily.
#[pyclass(name = "ndarray", module = "mxnp.np", frozen, weakref, subclass)]
pub struct NDArray {
    value: GilCell<Handle>,
    /// The Python object last given out as `x.grad`, so that it stays the same one.
    pub(crate) grad: GilCell<Option<Py<NDArray>>>,
}

impl NDArray {
    pub fn new(value: Array) -> NDArray {
        NDArray { value: GilCell::new(Handle::new(value)), grad: GilCell::new(None) }
    }

    /// The array, borrowed: not across Python code or a released GIL.
    #[inline]
    pub fn get<'a>(&'a self, py: Python<'a>) -> Ref<'a, Handle> {
        self.value.get(py)
    }

    /// A handle of the array, to be kept while Python may run.
    pub fn array(&self, py: Python<'_>) -> Array {
        (**self.value.get(py)).clone()
    }

    /// Writes to the array by calls of the graph. Nothing of any array is borrowed.
    pub fn write(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut Handle) -> mxnp_graph::Result<()>,
    ) -> PyResult<()> {
        call(py, || self.change(py, f))?;
        pay(py)
    }

    /// Changes what the object holds. Nothing of this object is borrowed, and `f` runs no Python code.
    pub fn change<R>(&self, py: Python<'_>, f: impl FnOnce(&mut Handle) -> R) -> R {
        self.value.change(py, f)
    }
}

/// A new Python object for `array`. No borrow of any array is alive.
#[inline]
pub fn wrap(py: Python<'_>, array: Array) -> PyResult<Py<NDArray>> {
    pay(py)?;
    Py::new(py, NDArray::new(array))
}

/// As [`wrap`], as any object.
#[inline]
pub fn wrap_any(py: Python<'_>, array: Array) -> PyResult<Py<PyAny>> {
    Ok(wrap(py, array)?.into_any())
}

/// A shape given as an integer or a sequence of integers.
pub fn shape_from(obj: &Bound<'_, PyAny>) -> PyResult<Shape> {
    let read = |item: &Bound<'_, PyAny>| -> PyResult<usize> {
        let n: i64 = item.extract().map_err(|_| {
            let text = format!("a shape is an integer or a sequence of integers, got {item}");
            type_error(item.py(), text)
        })?;
        usize::try_from(n)
            .map_err(|_| crate::error::value_error(item.py(), "negative dimensions are not allowed"))
    };
    if obj.hasattr("__index__")? && !obj.hasattr("__len__")? {
        return Ok(Shape::from_slice(&[read(obj)?]));
    }
    obj.try_iter()?.map(|item| read(&item?)).collect()
}

#[pymethods]
impl NDArray {
    /// An array of zeros of a shape (NumPy leaves them undefined).
    #[new]
    #[pyo3(signature = (shape, dtype = None, device = None))]
    fn py_new(
        shape: &Bound<'_, PyAny>,
        dtype: Option<&Bound<'_, PyAny>>,
        device: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<NDArray> {
        let py = shape.py();
        let shape = shape_from(shape)?;
        let dtype = match dtype {
            Some(obj) if !obj.is_none() => dtype::parse(obj)?,
            _ => mxnp_graph::modes::mode().default_float(),
        };
        mxnp_core::shape::checked_numel("ndarray", &shape, dtype.size())
            .map_err(|e| crate::error::core_error(py, e))?;
        let device = Device::or_current(device)?;
        convert::check_device(py, device)?;
        let array = call(py, || Array::from_bytes(&shape, dtype, device, |bytes| bytes.fill(0)))?;
        Ok(NDArray::new(array))
    }

    /// As MXNet's: above NumPy's own arrays.
    #[classattr]
    fn __array_priority__() -> f64 {
        1000.0
    }

    /// The length of each axis, a tuple of ints.
    #[getter]
    fn shape<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(slf.py(), slf.get().get(slf.py()).shape())
    }

    /// The number of axes.
    #[getter]
    fn ndim(&self, py: Python<'_>) -> usize {
        self.get(py).ndim()
    }

    /// The number of elements.
    #[getter]
    fn size(&self, py: Python<'_>) -> usize {
        self.get(py).size()
    }

    /// The dtype of the elements, a `numpy.dtype`.
    #[getter]
    fn dtype<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        dtype::object(slf.py(), slf.get().get(slf.py()).dtype())
    }

    /// Bytes of an element.
    #[getter]
    fn itemsize(&self, py: Python<'_>) -> usize {
        self.get(py).dtype().size()
    }

    /// Bytes of all elements.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> usize {
        let array = self.get(py);
        array.size() * array.dtype().size()
    }

    /// Bytes to step along each axis.
    #[getter]
    fn strides<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let array = slf.get().get(slf.py());
        let size = array.dtype().size() as isize;
        PyTuple::new(slf.py(), array.layout().strides.iter().map(|s| s * size).collect::<Vec<_>>())
    }

    /// What the memory allows: NumPy's flags.
    #[getter]
    fn flags(&self, py: Python<'_>) -> export::Flags {
        export::Flags::of(&self.get(py))
    }

    /// The view with its axes reversed.
    #[getter(T)]
    fn transposed(&self, py: Python<'_>) -> PyResult<Py<NDArray>> {
        enter(py)?;
        let array = self.get(py);
        let axes: Vec<i64> = (0..array.ndim() as i64).rev().collect();
        wrap(py, transpose(py, &array, &axes)?)
    }

    /// The device the array is on.
    #[getter]
    fn device(&self, py: Python<'_>) -> Device {
        Device(self.get(py).device())
    }

    /// 1.x's name of `device`.
    #[getter]
    fn ctx(&self, py: Python<'_>) -> Device {
        self.device(py)
    }

    /// 1.x's longer name of `device`.
    #[getter]
    fn context(&self, py: Python<'_>) -> Device {
        self.device(py)
    }

    /// The namespace of the array API standard.
    #[pyo3(signature = (*, api_version = None))]
    fn __array_namespace__<'py>(
        &self,
        py: Python<'py>,
        api_version: Option<&str>,
    ) -> PyResult<Bound<'py, PyModule>> {
        let _ = api_version;
        py.import("mxnp.np")
    }

    /// The array on `device`: itself where it is there.
    #[pyo3(signature = (device, /, *, stream = None))]
    fn to_device(
        slf: &Bound<'_, Self>,
        device: &Bound<'_, PyAny>,
        stream: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<Self>> {
        if stream.is_some() {
            return Err(crate::error::value_error(slf.py(), "to_device: mxnp chooses streams itself"));
        }
        Self::as_in_ctx(slf, device)
    }

    /// 1.x's name of `to_device`: the array itself where it is there already.
    fn as_in_ctx(slf: &Bound<'_, Self>, device: &Bound<'_, PyAny>) -> PyResult<Py<Self>> {
        let py = slf.py();
        let device = Device::parse(device)?;
        let array = slf.get().array(py);
        if array.device() == device {
            return Ok(slf.clone().unbind());
        }
        enter(py)?;
        wrap(py, convert::to_device(py, array, device)?)
    }

    /// 1.x's longer name of `to_device`.
    fn as_in_context(slf: &Bound<'_, Self>, context: &Bound<'_, PyAny>) -> PyResult<Py<Self>> {
        Self::as_in_ctx(slf, context)
    }

    /// Whether both arrays lie in the same buffer.
    fn same_memory(&self, py: Python<'_>, other: &NDArray) -> bool {
        self.get(py).same_value(&other.get(py))
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Py<NDArray>> {
        enter(py)?;
        wrap(py, convert::copy(py, &self.get(py))?)
    }

    fn __deepcopy__(&self, py: Python<'_>, memo: &Bound<'_, PyAny>) -> PyResult<Py<NDArray>> {
        let _ = memo;
        self.__copy__(py)
    }

    /// Pickled by value: dtype, device and the elements.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let py = slf.py();
        let array = slf.get().array(py);
        let device = Device(array.device());
        let data = export::asnumpy_raw(py, &array)?;
        let args = (data, array.dtype().name(), device.kind_name(), device.id());
        Ok((py.import("mxnp._core")?.getattr("_rebuild")?, args.into_pyobject(py)?))
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        print::repr(slf)
    }

    fn __str__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        print::str(slf)
    }

    fn __format__(slf: &Bound<'_, Self>, spec: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        print::format(slf, spec)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        match self.get(py).shape() {
            [] => Err(type_error(py, "len() of unsized object")),
            [n, ..] => Ok(*n),
        }
    }

    fn __iter__(slf: &Bound<'_, Self>) -> PyResult<ArrayIter> {
        let py = slf.py();
        let array = slf.get().array(py);
        match array.shape() {
            [] => Err(type_error(py, "iteration over a 0-d array")),
            [len, ..] => Ok(ArrayIter { len: *len, array, next: 0 }),
        }
    }

    /// What `np.load`-like helpers and pickles of subclasses call; never a scalar's type.
    #[classmethod]
    fn __class_getitem__(cls: &Bound<'_, PyType>, item: &Bound<'_, PyAny>) -> Py<PyType> {
        let _ = item;
        cls.clone().unbind()
    }

    #[pyo3(signature = (func, types, args, kwargs))]
    fn __array_function__<'py>(
        slf: &Bound<'py, Self>,
        func: &Bound<'py, PyAny>,
        types: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = (slf, types);
        crate::protocol::array_function(func, args, kwargs)
    }

    #[pyo3(signature = (ufunc, method, *inputs, **kwargs))]
    fn __array_ufunc__<'py>(
        slf: &Bound<'py, Self>,
        ufunc: &Bound<'py, PyAny>,
        method: &str,
        inputs: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = slf;
        crate::protocol::array_ufunc(ufunc, method, inputs, kwargs)
    }
}

/// The view of `array` with its axes in the order of `axes`.
pub fn transpose(py: Python<'_>, array: &Array, axes: &[i64]) -> PyResult<Array> {
    let attrs = mxnp_core::ops::shape::Axes { axes: Ints::from_slice(axes) };
    let attrs = mxnp_core::attrs::Attrs::new(attrs);
    operand::invoke_one(py, &mxnp_core::ops::shape::TRANSPOSE, attrs, &[Input::Array(array)])
}

/// Iteration over the first axis, a view at a time.
#[pyclass(module = "mxnp._core")]
pub struct ArrayIter {
    array: Array,
    len: usize,
    next: usize,
}

#[pymethods]
impl ArrayIter {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<Py<NDArray>>> {
        if self.next == self.len {
            return Ok(None);
        }
        enter(py)?;
        let item = mxnp_core::IndexItem::At(self.next);
        self.next += 1;
        wrap(py, call(py, || mxnp_graph::slice(&self.array, &[item]))?).map(Some)
    }

    fn __length_hint__(&self) -> usize {
        self.len - self.next
    }
}
