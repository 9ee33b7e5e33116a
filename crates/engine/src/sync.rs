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
use std::time::{Duration, Instant};

/// Whether a model checker schedules the threads.
const MODEL: bool = cfg!(any(feature = "loom", feature = "shuttle"));

/// A mutex without poisoning: no user code runs under the engine's locks.
pub(crate) struct Mutex<T> {
    lock: imp::Mutex<T>,
    #[cfg(test)]
    id: usize,
}

impl<T> Mutex<T> {
    #[inline]
    pub(crate) fn new(value: T) -> Self {
        Mutex {
            lock: imp::Mutex::new(value),
            #[cfg(test)]
            id: taken::next_id(),
        }
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        #[cfg(test)]
        taken::note(self.id);
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Looks taken between two looks at the clock: one to three microseconds.
const LOOKS: usize = 60;

/// Looks for `done()` without sleeping, at least [`LOOKS`] times and for about `patience`. True once it was so. Other
/// threads that want the core have it in between: what is waited for may be theirs to do.
pub(crate) fn spin(done: impl Fn() -> bool, patience: Duration) -> bool {
    if MODEL {
        return false; // the checker would only follow each look
    }
    let start = (!patience.is_zero()).then(Instant::now);
    loop {
        for _ in 0..LOOKS {
            if done() {
                return true;
            }
            std::hint::spin_loop();
        }
        if start.is_none_or(|start| start.elapsed() >= patience) {
            return false;
        }
        thread::yield_now();
    }
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

/// Which locks a thread takes, for the test that says which ones threads share.
#[cfg(test)]
pub(crate) mod taken {
    use std::cell::RefCell;
    use std::sync::atomic::{AtomicUsize, Ordering};

    static NEXT: AtomicUsize = AtomicUsize::new(0);

    std::thread_local! {
        static LOCKS: RefCell<Option<Vec<usize>>> = const { RefCell::new(None) };
    }

    /// A number of its own for a lock: addresses come again.
    pub(crate) fn next_id() -> usize {
        NEXT.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn note(id: usize) {
        let _ = LOCKS.try_with(|locks| {
            if let Some(locks) = &mut *locks.borrow_mut() {
                locks.push(id);
            }
        });
    }

    /// The locks that this thread takes while `f` runs, in order.
    #[cfg(not(any(feature = "loom", feature = "shuttle")))]
    pub(crate) fn by(f: impl FnOnce()) -> Vec<usize> {
        LOCKS.set(Some(Vec::new()));
        f();
        LOCKS.take().expect("set above")
    }
}
