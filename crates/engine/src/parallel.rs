//! Parallel loops: one loop's chunks, and the list of loops that idle threads may join.
//! It must not know tasks.
//!
//! Each thread has a share of the chunks, always the same part of a loop of that size, and takes of the others' when
//! its own is done: what it read or wrote in one loop is in its caches in the next, and elements that another core's
//! cache holds cost more than those in memory. The caller returns when all chunks have finished, and nobody touches
//! the body without a claimed chunk, so the body may live on the caller's stack.

use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex, park, spin, thread, thread_local};
use smallvec::SmallVec;
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

type Body = dyn Fn(usize) + Sync;

thread_local! {
    #[allow(clippy::missing_const_for_thread_local, reason = "loom's macro takes no const block")]
    /// The number of the share that this thread begins with, in every loop.
    static SEAT: Cell<usize> = Cell::new(0);
}

/// Gives the calling thread the shares of this number; those of 0 are everybody's who never asked.
pub(crate) fn take_seat(seat: usize) {
    SEAT.with(|own| own.set(seat));
}

/// Chunks side by side.
struct Share {
    /// The first that nobody has claimed; may run past `end`.
    next: AtomicUsize,
    end: usize,
}

/// One running loop.
pub(crate) struct Loop {
    body: *const Body,
    chunks: usize,
    /// By seat; one for each of the engine's threads, but none without a chunk.
    shares: SmallVec<[Share; 8]>,
    finished: AtomicUsize,
    caller: thread::Thread,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

// SAFETY: `body` points to a Sync closure, is only called by a thread that holds an unfinished chunk, and
// outlives all chunks because `Loops::run` returns only once every chunk has finished.
unsafe impl Send for Loop {}
// SAFETY: as above; everything else in it is Sync.
unsafe impl Sync for Loop {}

impl Share {
    fn has_more(&self) -> bool {
        self.next.load(Ordering::Relaxed) < self.end
    }
}

/// The loops that have unclaimed chunks.
#[derive(Default)]
pub(crate) struct Loops {
    open: AtomicUsize,
    list: Mutex<Vec<Arc<Loop>>>,
}

impl Loops {
    /// Whether some loop has unclaimed chunks.
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed) > 0
    }

    /// A loop to join: the one opened last.
    pub(crate) fn find(&self) -> Option<Arc<Loop>> {
        if !self.is_open() {
            return None;
        }
        let mut list = self.list.lock();
        // The caller takes its loop off the list when its own last chunk is done: nobody spins on it till then.
        while list.pop_if(|run| !run.has_more()).is_some() {}
        self.open.store(list.len(), Ordering::Relaxed);
        list.last().cloned()
    }

    /// Runs all chunks of a loop for so many threads; `opened` is called once it can be joined, and whoever runs the
    /// last chunks is awaited awake for `patience`. A panic in a chunk is raised here after all chunks have finished.
    pub(crate) fn run(
        &self,
        chunks: usize,
        threads: usize,
        body: &(dyn Fn(usize) + Sync),
        patience: Duration,
        opened: impl FnOnce(),
    ) {
        // SAFETY: this only forgets the lifetime; no chunk is unfinished when this function returns, and
        // `body` is called for claimed chunks alone.
        let body = unsafe { std::mem::transmute::<*const (dyn Fn(usize) + Sync + '_), *const Body>(body) };
        let parts = threads.clamp(1, chunks.max(1));
        let share =
            |part| Share { next: AtomicUsize::new(part * chunks / parts), end: (part + 1) * chunks / parts };
        let run = Arc::new(Loop {
            body,
            chunks,
            shares: (0..parts).map(share).collect(),
            finished: AtomicUsize::new(0),
            caller: thread::current(),
            panic: Mutex::new(None),
        });
        let mut list = self.list.lock();
        list.push(run.clone());
        self.open.store(list.len(), Ordering::Relaxed);
        drop(list);
        opened();
        run.work(|| ());
        self.remove(&run);
        run.await_finish(patience);
        let panic = run.panic.lock().take();
        if let Some(payload) = panic {
            resume_unwind(payload);
        }
    }

    fn remove(&self, run: &Arc<Loop>) {
        let mut list = self.list.lock();
        list.retain(|other| !Arc::ptr_eq(other, run));
        self.open.store(list.len(), Ordering::Relaxed);
    }
}

impl Loop {
    /// Runs chunks until none is left to claim; `more` is called before the first if others remain.
    pub(crate) fn work(&self, more: impl FnOnce()) {
        let mut more = Some(more);
        let mut at = SEAT.try_with(Cell::get).unwrap_or(0) % self.shares.len();
        while let Some(chunk) = self.claim(&mut at) {
            if let Some(more) = more.take()
                && self.has_more()
            {
                more();
            }
            self.run_chunk(chunk);
        }
    }

    /// A chunk of share `at`, or of the next one that has any, which `at` is then.
    fn claim(&self, at: &mut usize) -> Option<usize> {
        for _ in 0..self.shares.len() {
            let share = &self.shares[*at];
            if share.has_more() {
                let chunk = share.next.fetch_add(1, Ordering::Relaxed);
                if chunk < share.end {
                    return Some(chunk);
                }
            }
            *at = (*at + 1) % self.shares.len();
        }
        None
    }

    /// Whether some chunk is unclaimed.
    fn has_more(&self) -> bool {
        self.shares.iter().any(Share::has_more)
    }

    fn run_chunk(&self, i: usize) {
        // SAFETY: chunk `i` is claimed by this thread and unfinished, so the caller still waits in
        // `Loops::run` and the closure it borrowed is alive.
        let body = unsafe { &*self.body };
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| body(i))) {
            self.panic.lock().get_or_insert(payload);
        }
        if self.finished.fetch_add(1, Ordering::AcqRel) + 1 == self.chunks {
            self.caller.unpark();
        }
    }

    /// Waits for the chunks that other threads run: awake for `patience`, then asleep.
    fn await_finish(&self, patience: Duration) {
        let finished = || self.finished.load(Ordering::Acquire) == self.chunks;
        if spin(finished, patience) {
            return;
        }
        while !finished() {
            park(None);
        }
    }
}
