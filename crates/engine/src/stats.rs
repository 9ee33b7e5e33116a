//! What the engine counts about itself. It must not slow down what it counts.

use crate::sync::thread_local;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Counts since the engine (or the forked child) started. Read while threads run, they need not add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Tasks pushed.
    pub pushed: u64,
    /// Tasks run by the thread that pushed them.
    pub ran_inline: u64,
    /// Tasks run by workers.
    pub ran_by_workers: u64,
    /// Tasks run by threads that waited.
    pub ran_by_waiters: u64,
    /// Tasks that failed.
    pub errors: u64,
    /// Tasks skipped because of an earlier failure or because of exit.
    pub skipped: u64,
    /// Parallel loops that other threads could join.
    pub loops: u64,
    /// Times a thread joined another's loop.
    pub joined_loops: u64,
    /// Times a thread slept for lack of work.
    pub sleeps: u64,
    /// Times a sleeping thread was woken for work.
    pub wakes: u64,
    /// Times a pushing thread was held back because too much was queued.
    pub throttled: u64,
    /// Tasks pushed and not finished now.
    pub unfinished: usize,
    /// Bytes they keep alive.
    pub unfinished_bytes: usize,
    /// Worker threads running now.
    pub workers: usize,
}

/// What is counted per thread.
#[derive(Clone, Copy)]
pub(crate) enum Count {
    RanInline,
    RanByWorkers,
    RanByWaiters,
    Errors,
    Skipped,
    Loops,
    JoinedLoops,
    Sleeps,
    Wakes,
    Throttled,
}

const KINDS: usize = 10;
const SHARDS: usize = 16;

/// One shard, on cache lines of its own, so that threads rarely count in the same place.
#[derive(Default)]
#[repr(align(128))]
struct Shard([AtomicU64; KINDS]);

/// The counters. Plain atomics also under a model checker: nothing depends on them.
#[derive(Default)]
pub(crate) struct Counters([Shard; SHARDS]);

static NEXT_SHARD: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static SHARD: Cell<usize> = Cell::new(NEXT_SHARD.fetch_add(1, Ordering::Relaxed) % SHARDS);
}

impl Counters {
    pub(crate) fn add(&self, count: Count) {
        let shard = SHARD.try_with(Cell::get).unwrap_or(0);
        self.0[shard].0[count as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn sum(&self, count: Count) -> u64 {
        self.0.iter().map(|shard| shard.0[count as usize].load(Ordering::Relaxed)).sum()
    }

    /// The counts kept here; the rest of the record is left zero.
    pub(crate) fn read(&self) -> Stats {
        Stats {
            ran_inline: self.sum(Count::RanInline),
            ran_by_workers: self.sum(Count::RanByWorkers),
            ran_by_waiters: self.sum(Count::RanByWaiters),
            errors: self.sum(Count::Errors),
            skipped: self.sum(Count::Skipped),
            loops: self.sum(Count::Loops),
            joined_loops: self.sum(Count::JoinedLoops),
            sleeps: self.sum(Count::Sleeps),
            wakes: self.sum(Count::Wakes),
            throttled: self.sum(Count::Throttled),
            ..Stats::default()
        }
    }
}
