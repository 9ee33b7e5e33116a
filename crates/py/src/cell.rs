//! Interior mutability of Python objects, guarded by the GIL.
//!
//! Rationale: an operator reads two or three arrays, and a mutex for each would cost as much as the append.
//! Limitations: needs a build with a GIL (the module says so to Python), and a borrow must not be held where
//! Python code may run or the GIL is released; a `Ref` is not `Send`, so the compiler refuses the latter.

use pyo3::Python;
use std::cell::{Ref, RefCell};

/// A cell that only a thread with the GIL can touch.
pub struct GilCell<T>(RefCell<T>);

// SAFETY: every access takes a `Python` token, so two threads never touch the RefCell at once.
unsafe impl<T: Send> Sync for GilCell<T> {}

impl<T> GilCell<T> {
    pub const fn new(value: T) -> GilCell<T> {
        GilCell(RefCell::new(value))
    }

    #[inline]
    pub fn get<'a>(&'a self, _py: Python<'a>) -> Ref<'a, T> {
        self.0.borrow()
    }

    pub fn set(&self, _py: Python<'_>, value: T) {
        let old = self.0.replace(value);
        drop(old); // after the borrow has ended: dropping may run code
    }

    /// Changes the value in place. No `Ref` of it is alive, and `f` runs no Python code.
    pub fn change<R>(&self, _py: Python<'_>, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut self.0.borrow_mut())
    }
}
