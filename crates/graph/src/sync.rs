//! Locks. The standard library's, whose state is in the lock itself: they survive a fork. A panic while one is
//! held leaves the data as consistent as any early return, so poison is ignored.

use std::sync::{MutexGuard, PoisonError, RwLockReadGuard, RwLockWriteGuard};

#[derive(Default)]
pub(crate) struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub const fn new(value: T) -> Mutex<T> {
        Mutex(std::sync::Mutex::new(value))
    }

    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        #[cfg(test)]
        taken::note(self);
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) struct RwLock<T>(std::sync::RwLock<T>);

impl<T> RwLock<T> {
    pub const fn new(value: T) -> RwLock<T> {
        RwLock(std::sync::RwLock::new(value))
    }

    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        #[cfg(test)]
        taken::note(self);
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        #[cfg(test)]
        taken::note(self);
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Which locks a thread takes, for the tests that say which ones threads share.
#[cfg(test)]
pub(crate) mod taken {
    use std::cell::RefCell;

    thread_local! {
        static LOCKS: RefCell<Option<Vec<usize>>> = const { RefCell::new(None) };
    }

    /// Notes a lock by its address.
    pub fn note<T>(lock: &T) {
        let _ = LOCKS.try_with(|locks| {
            if let Some(locks) = &mut *locks.borrow_mut() {
                locks.push(std::ptr::from_ref(lock).addr());
            }
        });
    }

    /// The locks that this thread takes while `f` runs, in order.
    pub fn by(f: impl FnOnce()) -> Vec<usize> {
        LOCKS.set(Some(Vec::new()));
        f();
        LOCKS.take().expect("set above")
    }
}
