//! Counts who is inside the engine, so that it can be emptied: for `wait_all`, for a change of settings,
//! before a fork and at exit. It must not know what the counted tasks do.
//!
//! One word holds two counts of unfinished tasks, which count is in use (the epoch), and whether the gate
//! is closed. `wait_all` changes the epoch and waits for the old count alone, so it ends even while other
//! threads push for ever. A closed gate holds new tasks and visitors until it opens again.

use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Condvar, Mutex, model_fence, thread};

const CLOSED: u64 = 1 << 63;
const EPOCH: u64 = 1 << 62;
const BITS: u32 = 31;
const COUNT: u64 = (1 << BITS) - 1;

/// What a watching thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watch {
    /// No unfinished task of this epoch.
    Drained(u32),
    /// At most this many tasks and bytes are unfinished.
    Below(usize, usize),
    /// No unfinished task and no visitor.
    Quiet,
    /// No thread has the turn.
    Turn,
}

/// The counts, and the threads that watch them.
pub(crate) struct Gate {
    word: AtomicU64,
    bytes: AtomicUsize,
    /// Threads inside a wait that run tasks or hold a lock.
    visitors: AtomicUsize,
    opened: Condvar,
    opening: Mutex<()>,
    /// Set by one `wait_all` at a time: an epoch may be reused only once it is empty.
    turning: AtomicBool,
    watched: AtomicBool,
    watchers: Mutex<Vec<(Watch, thread::Thread)>>,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Gate {
            word: AtomicU64::new(0),
            bytes: AtomicUsize::new(0),
            visitors: AtomicUsize::new(0),
            opened: Condvar::new(),
            opening: Mutex::new(()),
            turning: AtomicBool::new(false),
            watched: AtomicBool::new(false),
            watchers: Mutex::new(Vec::new()),
        }
    }

    /// Counts a task in, once the gate is open, and gives its epoch.
    pub(crate) fn enter(&self, bytes: usize) -> u32 {
        let mut word = self.word.load(Ordering::Relaxed);
        let epoch = loop {
            if word & CLOSED != 0 {
                self.await_open();
                word = self.word.load(Ordering::Relaxed);
                continue;
            }
            let epoch = u32::from(word & EPOCH != 0);
            let next = word + (1 << (epoch * BITS));
            match self.word.compare_exchange_weak(word, next, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => break epoch,
                Err(now) => word = now,
            }
        };
        if bytes > 0 {
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        epoch
    }

    /// Counts a finished task out.
    pub(crate) fn leave(&self, epoch: u32, bytes: usize) {
        if bytes > 0 {
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        self.word.fetch_sub(1 << (epoch * BITS), Ordering::SeqCst);
        self.wake_watchers();
    }

    /// Counts in a thread that is going to run tasks or take locks, once the gate is open.
    pub(crate) fn visit(&self) {
        loop {
            self.visitors.fetch_add(1, Ordering::SeqCst);
            model_fence();
            if self.word.load(Ordering::SeqCst) & CLOSED == 0 {
                return;
            }
            self.end_visit();
            self.await_open();
        }
    }

    /// Counts it out.
    pub(crate) fn end_visit(&self) {
        self.visitors.fetch_sub(1, Ordering::SeqCst);
        self.wake_watchers();
    }

    fn await_open(&self) {
        let mut guard = self.opening.lock();
        while self.word.load(Ordering::SeqCst) & CLOSED != 0 {
            guard = self.opened.wait(guard);
        }
    }

    /// Closes the gate; waits for its turn while another thread has it closed.
    pub(crate) fn close(&self) {
        let mut guard = self.opening.lock();
        while self.word.load(Ordering::SeqCst) & CLOSED != 0 {
            guard = self.opened.wait(guard);
        }
        self.word.fetch_or(CLOSED, Ordering::SeqCst);
        model_fence();
    }

    /// Opens it again.
    pub(crate) fn open(&self) {
        let _guard = self.opening.lock();
        self.word.fetch_and(!CLOSED, Ordering::SeqCst);
        self.opened.notify_all();
    }

    /// Takes the turn to change the epoch, if no other thread has it. [`Gate::end_turn`] must follow.
    #[must_use]
    pub(crate) fn take_turn(&self) -> bool {
        !self.turning.swap(true, Ordering::SeqCst)
    }

    /// Lets the next thread have its turn.
    pub(crate) fn end_turn(&self) {
        self.turning.store(false, Ordering::SeqCst);
        self.wake_watchers();
    }

    /// The epoch that new tasks are not counted in. It may still hold tasks if a wait was interrupted.
    pub(crate) fn resting_epoch(&self) -> u32 {
        u32::from(self.word.load(Ordering::SeqCst) & EPOCH == 0)
    }

    /// Begins a new epoch, which must be empty, and gives the old one. Only in one's turn.
    pub(crate) fn change_epoch(&self) -> u32 {
        u32::from(self.word.fetch_xor(EPOCH, Ordering::SeqCst) & EPOCH != 0)
    }

    /// Unfinished tasks.
    #[inline]
    pub(crate) fn tasks(&self) -> usize {
        let word = self.word.load(Ordering::SeqCst);
        ((word & COUNT) + (word >> BITS & COUNT)) as usize
    }

    /// Bytes that unfinished tasks keep alive.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether what `watch` waits for is so.
    pub(crate) fn holds(&self, watch: Watch) -> bool {
        match watch {
            Watch::Drained(epoch) => self.word.load(Ordering::SeqCst) >> (epoch * BITS) & COUNT == 0,
            Watch::Below(tasks, bytes) => self.tasks() <= tasks && self.bytes() <= bytes,
            Watch::Turn => !self.turning.load(Ordering::SeqCst),
            Watch::Quiet => {
                let word = self.word.load(Ordering::SeqCst);
                word & (COUNT << BITS | COUNT) == 0 && self.visitors.load(Ordering::SeqCst) == 0
            }
        }
    }

    /// Has the calling thread unparked when `watch` holds. It must check once more before it parks.
    pub(crate) fn watch(&self, watch: Watch) {
        let mut watchers = self.watchers.lock();
        watchers.push((watch, thread::current()));
        self.watched.store(true, Ordering::SeqCst);
        drop(watchers);
        model_fence();
    }

    /// Ends the calling thread's watch.
    pub(crate) fn unwatch(&self) {
        let me = thread::current().id();
        let mut watchers = self.watchers.lock();
        watchers.retain(|(_, thread)| thread.id() != me);
        self.watched.store(!watchers.is_empty(), Ordering::SeqCst);
    }

    fn wake_watchers(&self) {
        model_fence();
        if !self.watched.load(Ordering::SeqCst) {
            return;
        }
        for (watch, thread) in self.watchers.lock().iter() {
            if self.holds(*watch) {
                thread.unpark();
            }
        }
    }
}
