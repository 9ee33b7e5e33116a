//! How threads without work sleep and are woken, with no lost wake-up and no long spin.
//! It must not know what the work is.
//!
//! Whoever publishes work stores it, fences, and then looks for a sleeper. Whoever is about to sleep puts
//! itself on the list, fences, and then looks for work once more. One of the two must see the other.
//! A thread that spins needs no wake-up; therefore whoever stops spinning, and whoever leaves the list
//! for another reason than work, passes the wake-up on if there is still work.

use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Mutex, full_fence, park, spins, thread};
use std::time::Duration;

/// The threads that look for work.
#[derive(Default)]
pub(crate) struct Sleep {
    spinning: AtomicUsize,
    /// Length of `list`.
    parked: AtomicUsize,
    list: Mutex<Vec<thread::Thread>>,
}

impl Sleep {
    /// Whether any thread sleeps or spins for lack of work (a guess: nothing is ordered by it).
    pub(crate) fn has_idle(&self) -> bool {
        self.parked.load(Ordering::Relaxed) + self.spinning.load(Ordering::Relaxed) > 0
    }

    /// Wakes one sleeper, unless a spinning thread will see the new work anyway. True if one was woken.
    pub(crate) fn notify(&self) -> bool {
        full_fence();
        if self.spinning.load(Ordering::Relaxed) > 0 || self.parked.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let mut list = self.list.lock();
        let thread = list.pop();
        self.parked.store(list.len(), Ordering::Relaxed);
        drop(list);
        thread.inspect(thread::Thread::unpark).is_some()
    }

    /// Wakes every sleeper.
    pub(crate) fn notify_all(&self) {
        full_fence();
        let mut list = self.list.lock();
        let all = std::mem::take(&mut *list);
        self.parked.store(0, Ordering::Relaxed);
        drop(list);
        for thread in all {
            thread.unpark();
        }
    }

    /// Spins and then sleeps until `awake()` or a wake-up; at most about `limit` if given. True if it slept.
    /// The caller must look for work afterwards, and pass the wake-up on if it leaves work undone.
    pub(crate) fn sleep(&self, awake: &dyn Fn() -> bool, limit: Option<Duration>) -> bool {
        self.spinning.fetch_add(1, Ordering::Relaxed);
        for _ in 0..spins() {
            if awake() {
                self.spinning.fetch_sub(1, Ordering::Relaxed);
                full_fence();
                return false;
            }
            std::hint::spin_loop();
        }
        let mut list = self.list.lock();
        list.push(thread::current());
        self.parked.store(list.len(), Ordering::Relaxed);
        drop(list);
        self.spinning.fetch_sub(1, Ordering::Relaxed);
        full_fence();
        let slept = !awake();
        if slept {
            park(limit);
        }
        self.leave_list();
        slept
    }

    /// Takes the calling thread off the list, if no wake-up has.
    fn leave_list(&self) {
        let me = thread::current().id();
        let mut list = self.list.lock();
        list.retain(|thread| thread.id() != me);
        self.parked.store(list.len(), Ordering::Relaxed);
    }
}
