//! Where an array lives, and which device new arrays go to on this thread.

use std::cell::Cell;

/// The kind of a device; the numbers are those of MXNet's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DeviceKind {
    Cpu = 1,
    Gpu = 2,
    CpuPinned = 3,
    CpuShared = 5,
}

/// One device. `cpu(0)` and `cpu(1)` are distinct devices with the same memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Device {
    pub kind: DeviceKind,
    pub id: u32,
}

impl Device {
    pub const CPU: Device = Device { kind: DeviceKind::Cpu, id: 0 };

    pub fn cpu(id: u32) -> Device {
        Device { kind: DeviceKind::Cpu, id }
    }
}

impl std::fmt::Display for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = match self.kind {
            DeviceKind::Cpu => "cpu",
            DeviceKind::Gpu => "gpu",
            DeviceKind::CpuPinned => "cpu_pinned",
            DeviceKind::CpuShared => "cpu_shared",
        };
        write!(f, "{kind}({})", self.id)
    }
}

thread_local! {
    static CURRENT: Cell<Device> = const { Cell::new(Device::CPU) };
}

/// The device of new arrays on this thread.
pub fn current() -> Device {
    CURRENT.get()
}

/// Sets it; gives the one before.
pub fn set_current(device: Device) -> Device {
    CURRENT.replace(device)
}
