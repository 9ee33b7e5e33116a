//! How threads without work sleep and are woken, with no lost wake-up.
//! It must not know what the work is.
//!
//! To wake a sleeper takes some microseconds of whoever wakes it, and ten to fifty until it runs: as long as many loops
//! take. The next piece of work of a training step mostly comes within [`PATIENCE`], the time between two lines of a
//! program; so some threads look for it that long before they sleep. That costs energy, so it is never more than half
//! of them, and none where there are fewer cores than threads.
//!
//! Whoever publishes work stores it, fences, and then looks for a sleeper. Whoever is about to sleep puts
//! itself on the list, fences, and then looks for work once more. One of the two must see the other.
//! A thread that spins needs no wake-up; therefore whoever stops spinning, and whoever leaves the list
//! for another reason than work, passes the wake-up on if there is still work.

use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Mutex, full_fence, park, spin, thread};
use std::time::Duration;

/// How long a patient thread looks for work. OpenMP's runtimes look for some milliseconds.
pub(crate) const PATIENCE: Duration = Duration::from_micros(200);

/// The threads that look for work.
#[derive(Default)]
pub(crate) struct Sleep {
    /// How many threads may be patient at once.
    patient: AtomicUsize,
    spinning: AtomicUsize,
    /// Length of `list`.
    parked: AtomicUsize,
    list: Mutex<Vec<thread::Thread>>,
}

impl Sleep {
    /// Lets this many threads at once look for work for [`PATIENCE`] before they sleep; others look a moment.
    pub(crate) fn set_patient(&self, threads: usize) {
        self.patient.store(threads, Ordering::Relaxed);
    }

    /// How long a thread should look for what another is about to finish, before it sleeps.
    pub(crate) fn patience(&self) -> Duration {
        if self.patient.load(Ordering::Relaxed) > 0 { PATIENCE } else { Duration::ZERO }
    }

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
        let others = self.spinning.fetch_add(1, Ordering::Relaxed);
        let is_patient = others < self.patient.load(Ordering::Relaxed);
        if spin(awake, if is_patient { PATIENCE } else { Duration::ZERO }) {
            self.spinning.fetch_sub(1, Ordering::Relaxed);
            full_fence();
            return false;
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
