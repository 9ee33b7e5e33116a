//! The modes a call is made in: recording and training (per thread), the default dtypes, fusion and folding
//! (global). They are captured when a call is appended; nothing on a worker reads them.

use mxnp_core::promote::Mode;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

thread_local! {
    static RECORDING: Cell<bool> = const { Cell::new(false) };
    static TRAINING: Cell<bool> = const { Cell::new(false) };
}

static NUMPY_DTYPE: AtomicBool = AtomicBool::new(false);
static FUSION: AtomicBool = AtomicBool::new(true);
static FOLDING: AtomicBool = AtomicBool::new(true);

pub fn is_recording() -> bool {
    RECORDING.get()
}

pub fn is_training() -> bool {
    TRAINING.get()
}

/// Sets whether calls of this thread are recorded; gives what was set before.
pub fn set_recording(on: bool) -> bool {
    RECORDING.replace(on)
}

/// Sets whether this thread trains; gives what was set before.
pub fn set_training(on: bool) -> bool {
    TRAINING.replace(on)
}

/// Whether default dtypes and promotion are NumPy's in place of MXNet's.
pub fn numpy_dtype() -> bool {
    NUMPY_DTYPE.load(Relaxed)
}

pub fn set_numpy_dtype(on: bool) -> bool {
    NUMPY_DTYPE.swap(on, Relaxed)
}

/// What `infer` needs to know of the modes.
pub fn mode() -> Mode {
    Mode { numpy_dtype: numpy_dtype() }
}

/// Whether runs of elementwise calls become one pass.
pub fn fusion() -> bool {
    FUSION.load(Relaxed)
}

pub fn set_fusion(on: bool) -> bool {
    FUSION.swap(on, Relaxed)
}

/// Whether compiled graphs keep what they make of parameters alone, and fold normalisations into weights.
pub fn folding() -> bool {
    FOLDING.load(Relaxed)
}

pub fn set_folding(on: bool) -> bool {
    FOLDING.swap(on, Relaxed)
}
