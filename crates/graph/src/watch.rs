//! Noting how a task runs: when, on which thread, and who ran how much of its parallel loops. It must not know what
//! the task does.

use crate::record::{Event, Flush, Outcome, Ran, Share, emit, now, thread};
use crate::sync::Mutex;
use mxnp_core::par::Parallel;
use mxnp_core::storage;
use mxnp_engine::{TaskError, engine};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

thread_local! {
    static IN_CHUNK: Cell<bool> = const { Cell::new(false) };
}

/// What a task carries to note its run.
pub(crate) struct Watch {
    flush: Arc<Flush>,
    unit: usize,
    queued: u64,
    ended: bool,
}

impl Watch {
    pub fn new(flush: &Arc<Flush>, unit: usize) -> Box<Watch> {
        Box::new(Watch { flush: flush.clone(), unit, queued: now(), ended: false })
    }

    /// Runs the task's body, and notes it.
    pub fn run(
        mut self,
        par: &dyn Parallel,
        body: impl FnOnce(&dyn Parallel) -> Result<(), TaskError>,
    ) -> Result<(), TaskError> {
        let watched = Watched { inner: par, loops: AtomicUsize::new(0), shares: Mutex::default() };
        let start = now();
        let result = body(&watched);
        let outcome = result.as_ref().map_or_else(|e| Outcome::Failed(e.to_string()), |()| Outcome::Done);
        self.end(start, outcome, std::mem::take(&mut *watched.shares.lock()));
        result
    }

    fn end(&mut self, start: u64, outcome: Outcome, shares: Vec<Share>) {
        self.ended = true;
        let ran = Ran {
            flush: self.flush.clone(),
            unit: self.unit,
            thread: thread(),
            queued: self.queued,
            start,
            end: now(),
            outcome,
            shares,
            live: storage::stats().live,
            unfinished: engine().unfinished().0,
        };
        emit(|| Event::Ran(Arc::new(ran)));
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !self.ended {
            let panicked = std::thread::panicking();
            let outcome = if panicked { Outcome::Failed("it panicked".into()) } else { Outcome::Skipped };
            self.end(now(), outcome, Vec::new());
        }
    }
}

/// Parallel loops that note who ran how much of them.
struct Watched<'a> {
    inner: &'a dyn Parallel,
    loops: AtomicUsize,
    shares: Mutex<Vec<Share>>,
}

/// How many shares of its loops a unit keeps: a product runs many loops.
const SHARES: usize = 256;

impl Watched<'_> {
    fn note(&self, run: u32, start: u64) {
        let (thread, end) = (thread(), now());
        let mut shares = self.shares.lock();
        // The shares of one loop are the last ones.
        let own = shares.iter_mut().rev().take_while(|s| s.run == run).find(|s| s.thread == thread);
        if let Some(share) = own {
            (share.end, share.chunks) = (end, share.chunks + 1);
        } else if shares.len() < SHARES {
            shares.push(Share { run, thread, start, end, chunks: 1 });
        }
    }
}

impl Parallel for Watched<'_> {
    fn run(&self, chunks: usize, body: &(dyn Fn(usize) + Sync)) {
        if chunks <= 1 || IN_CHUNK.get() {
            return self.inner.run(chunks, body);
        }
        let run = self.loops.fetch_add(1, Relaxed) as u32;
        self.inner.run(chunks, &|i| {
            let (_inside, start) = (Inside::enter(), now());
            body(i);
            self.note(run, start);
        });
    }
}

/// Marks the thread as running a chunk: loops in it are its own.
struct Inside;

impl Inside {
    fn enter() -> Inside {
        IN_CHUNK.set(true);
        Inside
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        IN_CHUNK.set(false);
    }
}
