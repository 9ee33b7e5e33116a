//! Parallel loops: one loop's chunks, and the list of loops that idle threads may join.
//! It must not know tasks.
//!
//! Chunks are claimed by a counter. Whoever claims the last chunk takes the loop off the list; the caller
//! returns when all chunks have finished, and nobody touches the body without a claimed chunk, so the body
//! may live on the caller's stack.

use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex, park, spin, thread};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

type Body = dyn Fn(usize) + Sync;

/// One running loop.
pub(crate) struct Loop {
    body: *const Body,
    chunks: usize,
    /// Chunks claimed; may run past `chunks`.
    claimed: AtomicUsize,
    finished: AtomicUsize,
    caller: thread::Thread,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

// SAFETY: `body` points to a Sync closure, is only called by a thread that holds an unfinished chunk, and
// outlives all chunks because `Loops::run` returns only once every chunk has finished.
unsafe impl Send for Loop {}
// SAFETY: as above; everything else in it is Sync.
unsafe impl Sync for Loop {}

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
        // Whoever claimed the last chunk may not have come to take its loop off the list: nobody spins on it.
        while list.pop_if(|run| run.claimed.load(Ordering::Relaxed) >= run.chunks).is_some() {}
        self.open.store(list.len(), Ordering::Relaxed);
        list.last().cloned()
    }

    /// Runs all chunks of a loop; `opened` is called once it can be joined, and whoever runs the last chunks is
    /// awaited awake for `patience`. A panic in a chunk is raised here after all chunks have finished.
    pub(crate) fn run(
        &self,
        chunks: usize,
        body: &(dyn Fn(usize) + Sync),
        patience: Duration,
        opened: impl FnOnce(),
    ) {
        // SAFETY: this only forgets the lifetime; no chunk is unfinished when this function returns, and
        // `body` is called for claimed chunks alone.
        let body = unsafe { std::mem::transmute::<*const (dyn Fn(usize) + Sync + '_), *const Body>(body) };
        let run = Arc::new(Loop {
            body,
            chunks,
            claimed: AtomicUsize::new(0),
            finished: AtomicUsize::new(0),
            caller: thread::current(),
            panic: Mutex::new(None),
        });
        let mut list = self.list.lock();
        list.push(run.clone());
        self.open.store(list.len(), Ordering::Relaxed);
        drop(list);
        opened();
        self.work(&run, || ());
        run.await_finish(patience);
        let panic = run.panic.lock().take();
        if let Some(payload) = panic {
            resume_unwind(payload);
        }
    }

    /// Runs chunks of `run` until none is left to claim; `more` is called before the first if others remain.
    pub(crate) fn work(&self, run: &Arc<Loop>, more: impl FnOnce()) {
        let mut more = Some(more);
        loop {
            let i = run.claimed.fetch_add(1, Ordering::Relaxed);
            if i >= run.chunks {
                return;
            }
            if i + 1 == run.chunks {
                self.remove(run);
            } else if let Some(more) = more.take() {
                more();
            }
            run.run_chunk(i);
        }
    }

    fn remove(&self, run: &Arc<Loop>) {
        let mut list = self.list.lock();
        list.retain(|other| !Arc::ptr_eq(other, run));
        self.open.store(list.len(), Ordering::Relaxed);
    }
}

impl Loop {
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
