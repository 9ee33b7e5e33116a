//! Devices as Python sees them, and the stack of `with device:` of each thread.

use crate::error::value_error;
use mxnp_graph::DeviceKind;
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash, Hasher};

thread_local! {
    /// The defaults that the open `with device:` blocks of this thread have replaced.
    static STACK: RefCell<Vec<mxnp_graph::Device>> = const { RefCell::new(Vec::new()) };
}

/// Where arrays live: `cpu(0)`, `gpu(1)`. Compares by kind and number; `with device:` makes it the default.
#[pyclass(name = "Device", module = "mxnp.device", frozen, from_py_object)]
#[derive(Clone, Copy)]
pub struct Device(pub mxnp_graph::Device);

/// MXNet's names; the numbers are the kinds'.
const KINDS: [(&str, DeviceKind); 5] = [
    ("cpu", DeviceKind::Cpu),
    ("gpu", DeviceKind::Gpu),
    ("cuda", DeviceKind::Gpu),
    ("cpu_pinned", DeviceKind::CpuPinned),
    ("cpu_shared", DeviceKind::CpuShared),
];

impl Device {
    pub fn kind_name(self) -> &'static str {
        KINDS.iter().find(|(_, kind)| *kind == self.0.kind).map_or("cpu", |(name, _)| name)
    }

    pub fn id(self) -> u32 {
        self.0.id
    }

    /// Reads a Device or a text: 'cpu', 'gpu(1)', 'gpu:1', 'cuda:0'.
    pub fn parse(obj: &Bound<'_, PyAny>) -> PyResult<mxnp_graph::Device> {
        if let Ok(device) = obj.cast::<Device>() {
            return Ok(device.get().0);
        }
        let bad = || {
            let text = format!(
                "a device is cpu(i), gpu(i) or their name, got {}",
                obj.repr().map_or_else(|_| "an object without repr".to_string(), |text| text.to_string(),)
            );
            value_error(obj.py(), text)
        };
        let Ok(text) = obj.cast::<PyString>() else { return Err(bad()) };
        let text = text.to_string();
        let (name, id) = match text.split_once(['(', ':']) {
            Some((name, id)) => (name, id.trim_end_matches(')').trim().parse().map_err(|_| bad())?),
            None => (text.as_str(), 0),
        };
        match Device::kind_named(name.trim()) {
            Some(kind) => Ok(mxnp_graph::Device { kind, id }),
            None => Err(bad()),
        }
    }

    /// The default device where none is given.
    pub fn or_current(obj: Option<&Bound<'_, PyAny>>) -> PyResult<mxnp_graph::Device> {
        match obj {
            Some(obj) if !obj.is_none() => Device::parse(obj),
            _ => Ok(current()),
        }
    }

    fn kind_named(name: &str) -> Option<DeviceKind> {
        KINDS.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }
}

/// The calling thread's default device.
pub fn current() -> mxnp_graph::Device {
    mxnp_graph::device::current()
}

/// The device new arrays are made on: cpu(0), or that of the innermost `with device:`.
#[pyfunction]
pub fn current_device() -> Device {
    Device(current())
}

#[pymethods]
impl Device {
    #[new]
    #[pyo3(signature = (device_type, device_id = 0))]
    fn py_new(device_type: &Bound<'_, PyAny>, device_id: i64) -> PyResult<Device> {
        let py = device_type.py();
        if let Ok(number) = device_type.extract::<u8>() {
            let kind = KINDS
                .iter()
                .find(|(_, kind)| *kind as u8 == number)
                .map(|(_, kind)| *kind)
                .ok_or_else(|| value_error(py, format!("device type {number} is not known")))?;
            return Device::with_id(py, kind, device_id);
        }
        let device = Device::parse(device_type)?;
        if device_id == 0 { Ok(Device(device)) } else { Device::with_id(py, device.kind, device_id) }
    }

    /// `cpu`, `gpu`, `cpu_pinned` or `cpu_shared`.
    #[getter]
    fn device_type(&self) -> &'static str {
        self.kind_name()
    }

    /// The number of the type in MXNet's files.
    #[getter]
    fn device_typeid(&self) -> u8 {
        self.0.kind as u8
    }

    /// Which device of its type.
    #[getter]
    fn device_id(&self) -> u32 {
        self.0.id
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Device>().is_ok_and(|other| other.get().0 == self.0)
    }

    fn __hash__(&self) -> u64 {
        let mut state = DefaultHasher::new();
        (self.device_typeid(), self.0.id).hash(&mut state);
        state.finish()
    }

    fn __repr__(&self) -> String {
        format!("{}({})", self.kind_name(), self.0.id)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        let before = mxnp_graph::device::set_current(slf.get().0);
        STACK.with_borrow_mut(|stack| stack.push(before));
        slf
    }

    fn __exit__(&self, t: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>, tb: &Bound<'_, PyAny>) -> bool {
        let _ = (t, value, tb);
        if let Some(before) = STACK.with_borrow_mut(Vec::pop) {
            mxnp_graph::device::set_current(before);
        }
        false
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> (Py<PyAny>, (&'static str, u32)) {
        let this = slf.get();
        (slf.get_type().into_any().unbind(), (this.kind_name(), this.0.id))
    }
}

impl Device {
    fn with_id(py: Python<'_>, kind: DeviceKind, id: i64) -> PyResult<Device> {
        let id = u32::try_from(id)
            .map_err(|_| value_error(py, format!("a device's number is 0 or more, got {id}")))?;
        Ok(Device(mxnp_graph::Device { kind, id }))
    }
}
