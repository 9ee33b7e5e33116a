//! The worker threads: how they start, find work, run loops together and stop.
//! It must not know variables.

use crate::node::Node;
use crate::parallel::take_seat;
use crate::role::Role;
use crate::shared::Shared;
use crate::stats::Count;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, thread};
use mxnp_core::par::Parallel;

/// Enough for deep recursion in a library call; pages are touched only as they are used.
const STACK_BYTES: usize = 4 << 20;

/// The running workers.
#[derive(Default)]
pub(crate) struct Crew {
    handles: Vec<thread::JoinHandle<()>>,
    stop: Arc<StopFlag>,
}

struct StopFlag(AtomicBool);

impl Default for StopFlag {
    fn default() -> Self {
        StopFlag(AtomicBool::new(false))
    }
}

impl Crew {
    pub(crate) fn len(&self) -> usize {
        self.handles.len()
    }
}

impl Shared {
    /// Puts a runnable task in the queue and wakes a thread for it.
    pub(crate) fn enqueue(&self, node: Arc<Node>) {
        self.queue.push(node);
        self.ensure_workers();
        self.wake_one();
    }

    pub(crate) fn wake_one(&self) {
        if self.sleep.notify() {
            self.counters.add(Count::Wakes);
        }
    }

    /// Whether there is a task to run or a loop to join.
    pub(crate) fn has_work(&self) -> bool {
        !self.queue.is_empty() || self.loops.is_open() || !self.line.is_empty()
    }

    /// Wakes another thread if there is work; for whoever took a piece of work or a wake-up.
    pub(crate) fn pass_on(&self) {
        if self.has_work() {
            self.wake_one();
        }
    }

    /// Joins a loop, or else runs one queued task with `by`. False if there is neither.
    pub(crate) fn help(&self, by: Count) -> bool {
        if self.join_loop() {
            return true;
        }
        if let Some(node) = self.queue.pop() {
            self.pass_on();
            if let Some(next) = self.run_node(&node, by) {
                self.queue.push(next);
            }
            return true;
        }
        !self.line.is_empty() && self.run_first(by, &|| false)
    }

    /// Runs chunks of an open loop until none is left to claim.
    fn join_loop(&self) -> bool {
        let Some(run) = self.loops.find() else { return false };
        self.counters.add(Count::JoinedLoops);
        let _role = Role::Chunk.take();
        // Each wakes two, so that a hundred threads are there after seven wake-ups, not a hundred.
        run.work(|| {
            self.wake_one();
            self.wake_one();
        });
        true
    }

    /// Starts the workers if they have not been. Only called by a thread that is counted by the gate.
    pub(crate) fn ensure_workers(&self) {
        if !self.started.load(Ordering::Acquire) {
            self.start_workers();
        }
    }

    #[cold]
    fn start_workers(&self) {
        let Some(shared) = self.me.upgrade() else { return };
        let mut crew = self.crew.lock();
        if self.started.load(Ordering::Acquire) {
            return;
        }
        let _mask = SignalMask::block_all();
        for i in 1..self.threads.load(Ordering::Relaxed) {
            let (shared, stop) = (shared.clone(), crew.stop.clone());
            let name = format!("mxnp-worker-{i}");
            let worker = thread::Builder::new().name(name).stack_size(STACK_BYTES);
            match worker.spawn(move || shared.work(i, &stop.0)) {
                Ok(handle) => crew.handles.push(handle),
                // Fewer workers are slower, not wrong: threads that wait run everything.
                Err(_) => break,
            }
        }
        self.started.store(true, Ordering::Release);
    }

    /// Stops and joins the workers. Only called with the gate closed and nothing unfinished.
    pub(crate) fn stop_workers(&self) {
        let crew = std::mem::take(&mut *self.crew.lock());
        crew.stop.0.store(true, Ordering::Release);
        self.sleep.notify_all();
        for handle in crew.handles {
            // A worker cannot panic: tasks, chunks and destructors are all caught.
            let _ = handle.join();
        }
        self.started.store(false, Ordering::Release);
    }

    /// What worker `number` does until it is stopped.
    fn work(&self, number: usize, stop: &AtomicBool) {
        take_seat(number);
        let mut next: Option<Arc<Node>> = None;
        loop {
            if let Some(node) = next.take() {
                next = self.run_node(&node, Count::RanByWorkers);
            } else if self.join_loop() {
            } else if let Some(node) = self.queue.pop() {
                self.pass_on();
                next = self.run_node(&node, Count::RanByWorkers);
            } else if stop.load(Ordering::Acquire) {
                return;
            } else if self.sleep.sleep(&|| self.has_runnable() || stop.load(Ordering::Acquire), None) {
                self.counters.add(Count::Sleeps);
            }
        }
    }

    /// Whether there is work for a worker, which never runs the naive engine's line.
    fn has_runnable(&self) -> bool {
        !self.queue.is_empty() || self.loops.is_open()
    }
}

impl Parallel for Shared {
    /// Runs the loop on the calling thread and on whatever threads are idle; serially inside another loop.
    fn run(&self, chunks: usize, body: &(dyn Fn(usize) + Sync)) {
        let (role, threads) = (Role::current(), self.threads.load(Ordering::Relaxed));
        if chunks <= 1 || role == Role::Chunk || threads == 1 {
            return (0..chunks).for_each(body);
        }
        let _visit = (role == Role::Outside).then(|| Visit::new(self));
        self.ensure_workers();
        self.counters.add(Count::Loops);
        let _role = Role::Chunk.take();
        self.loops.run(chunks, threads, body, self.sleep.patience(), || self.wake_one());
    }
}

/// Counts a thread that is not in a task into the gate.
pub(crate) struct Visit<'a>(&'a Shared);

impl<'a> Visit<'a> {
    pub(crate) fn new(shared: &'a Shared) -> Self {
        shared.gate.visit();
        Visit(shared)
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        self.0.gate.end_visit();
    }
}

/// Blocks all signals while workers are started, which inherit it: signals are for the program's threads.
struct SignalMask(#[cfg(unix)] libc::sigset_t);

impl SignalMask {
    fn block_all() -> Self {
        #[cfg(unix)]
        // SAFETY: both sets are plain data that the calls fill in; the mask is this thread's own.
        unsafe {
            let mut all = std::mem::zeroed();
            let mut old = std::mem::zeroed();
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut old);
            SignalMask(old)
        }
        #[cfg(not(unix))]
        SignalMask()
    }
}

impl Drop for SignalMask {
    fn drop(&mut self) {
        #[cfg(unix)]
        // SAFETY: the set was filled in by `pthread_sigmask`; the mask is this thread's own.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut());
        }
    }
}
