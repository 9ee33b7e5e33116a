//! Every synchronisation primitive of the engine comes from here, so that loom or shuttle can stand in.
//! It must not know what is synchronised.
//!
//! The locks are the standard library's: on Linux they are plain futexes without a process-wide table
//! of parked threads, so a fork can leave behind only locks that this crate knows of.

#[cfg(not(any(feature = "loom", feature = "shuttle")))]
mod imp {
    pub use std::sync::atomic;
    pub use std::sync::{Condvar, Mutex, MutexGuard};
    pub use std::thread;
    pub use std::thread_local;
}

#[cfg(feature = "loom")]
mod imp {
    pub use loom::sync::atomic;
    pub use loom::sync::{Condvar, Mutex, MutexGuard};
    pub use loom::thread;
    pub use loom::thread_local;
}

#[cfg(all(feature = "shuttle", not(feature = "loom")))]
mod imp {
    pub use shuttle::sync::atomic;
    pub use shuttle::sync::{Condvar, Mutex, MutexGuard};
    pub use shuttle::thread;
    pub use shuttle::thread_local;
}

pub(crate) use imp::{MutexGuard, atomic, thread, thread_local};
/// The standard `Arc` in every build: trait objects must coerce, which loom's does not.
pub(crate) use std::sync::Arc;
use std::sync::PoisonError;
use std::time::Duration;

/// Whether a model checker schedules the threads: spinning is then a waste of its steps.
const MODEL: bool = cfg!(any(feature = "loom", feature = "shuttle"));

/// A mutex without poisoning: no user code runs under the engine's locks.
pub(crate) struct Mutex<T>(imp::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Mutex(imp::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Mutex::new(T::default())
    }
}

/// A condition variable for [`Mutex`].
pub(crate) struct Condvar(imp::Condvar);

impl Condvar {
    pub(crate) fn new() -> Self {
        Condvar(imp::Condvar::new())
    }

    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// Looks taken before a thread sleeps: about 3 us, less than a sleep and a wake-up cost.
pub(crate) fn spins() -> usize {
    if MODEL { 0 } else { 60 }
}

/// Blocks until the thread's token is there (it may already be), or for about `limit` if one is given.
pub(crate) fn park(limit: Option<Duration>) {
    #[cfg(not(any(feature = "loom", feature = "shuttle")))]
    if let Some(limit) = limit {
        return thread::park_timeout(limit);
    }
    let _ = limit;
    thread::park();
}

/// Stands where a SeqCst access must not pass an earlier SeqCst access to another place. The language orders
/// them; loom, which takes SeqCst accesses for AcqRel ones, needs a fence to see it.
pub(crate) fn model_fence() {
    if MODEL {
        full_fence();
    }
}

/// A full fence: what this thread stored before it is seen by whoever loads after a later fence of its own.
pub(crate) fn full_fence() {
    atomic::fence(atomic::Ordering::SeqCst);
}
