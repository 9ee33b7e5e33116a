//! The modes a call is made in: recording, training and the like (per thread), the default dtypes, fusion and folding
//! (global). They are captured when a call is appended; nothing on a worker reads them.

use mxnp_core::promote::Mode;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

thread_local! {
    static FLAGS: Cell<u8> = const { Cell::new(0) };
}

/// A switch of the calling thread. All are bits of one word, so that an append finds them at once.
#[derive(Clone, Copy)]
pub(crate) struct Flag(u8);

pub(crate) const RECORDING: Flag = Flag(1);
pub(crate) const TRAINING: Flag = Flag(1 << 1);
/// Whether calls compute nothing (`outline`).
pub(crate) const OUTLINE: Flag = Flag(1 << 2);
/// Whether calls are noted (`trace`).
pub(crate) const TRACING: Flag = Flag(1 << 3);
/// Whether a wait is due (`owed`).
pub(crate) const OWING: Flag = Flag(1 << 4);

impl Flag {
    #[inline]
    pub fn get(self) -> bool {
        FLAGS.get() & self.0 != 0
    }

    pub fn set(self, on: bool) {
        self.replace(on);
    }

    /// Sets it; gives what was set before.
    pub fn replace(self, on: bool) -> bool {
        let all = FLAGS.get();
        FLAGS.set(if on { all | self.0 } else { all & !self.0 });
        all & self.0 != 0
    }
}

/// Whether the calling thread's calls go another way than to its segment alone: noted, or never run.
#[inline]
pub(crate) fn is_diverted() -> bool {
    FLAGS.get() & (OUTLINE.0 | TRACING.0) != 0
}

static NUMPY_DTYPE: AtomicBool = AtomicBool::new(false);
static FUSION: AtomicBool = AtomicBool::new(true);
static FOLDING: AtomicBool = AtomicBool::new(true);

#[inline]
pub fn is_recording() -> bool {
    RECORDING.get()
}

#[inline]
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
#[inline]
pub fn numpy_dtype() -> bool {
    NUMPY_DTYPE.load(Relaxed)
}

pub fn set_numpy_dtype(on: bool) -> bool {
    NUMPY_DTYPE.swap(on, Relaxed)
}

/// What `infer` needs to know of the modes.
#[inline]
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
