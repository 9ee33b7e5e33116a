//! Segments: the calls a thread has appended and not yet handed to the engine, in program order.
//!
//! A segment is filled by its own thread and may be flushed by any. Its lock is held while calls are appended,
//! optimised and pushed, so they reach every variable in program order.

use crate::call::{Call, Calls, In, Uses};
use crate::plan::Plans;
use crate::record::{self, Flush};
use crate::registry;
use crate::structure::Structure;
use crate::sync::Mutex;
use crate::value::{MANY, SegmentId, Value};
use mxnp_engine::{Hint, Ready, engine};
use smallvec::SmallVec;
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

/// A flush at the latest after this many calls.
const MAX_CALLS: usize = 256;
/// ... or when this many bytes of results are pending.
const MAX_BYTES: usize = 256 << 20;
/// Work (elements times calls) worth handing to an idle worker.
const HAND_OVER: usize = 1 << 16;
/// ... once the oldest pending call is this old: a chain that is still being written stays together. Where the program
/// was never cut, twice as old.
const PATIENCE: Duration = Duration::from_micros(200);
/// ... or this old where a heavy op takes longer than that: what may join it comes right after it.
const SHORT: Duration = Duration::from_micros(20);
/// The work of such an op.
const LONG: usize = 1 << 20;
/// Work small enough to run on the caller's thread.
const INLINE: usize = 1 << 15;
/// How much more a heavy op of one operand (a sort) does per element than an elementwise one.
const HEAVY: usize = 64;
/// How many multiplications of a product (matmul, convolution) take the time of one elementwise step.
const PRODUCTS: usize = 12;

pub(crate) struct Segment {
    pub id: SegmentId,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    calls: Calls,
    bytes: usize,
    work: usize,
    /// Whether a heavy op of much work is pending.
    long: bool,
    since: Option<Instant>,
    structure: Structure,
    plans: Plans,
    cuts: Cuts,
}

/// Where lists of calls were ended for an idle worker, by the hash of what came before.
struct Cuts([u64; 64]);

impl Default for Cuts {
    fn default() -> Cuts {
        Cuts([0; 64])
    }
}

impl Cuts {
    /// Whether a list of this age may be ended at `place`. A loop comes by each place again, never at quite the same
    /// time: ended at another, the list would have another plan. So a new place is for lists that met no known one.
    fn allow(&mut self, place: u64, age: Duration, patience: Duration) -> bool {
        if age <= patience {
            return false;
        }
        let known = &mut self.0[place as usize % 64];
        let is_late = age > 2 * patience;
        if is_late {
            *known = place;
        }
        *known == place
    }
}

/// The work of a heavy call that touches so many elements, in elementwise steps.
fn work_of(call: &Call, elements: usize) -> usize {
    match (call.ins.first().and_then(In::place), call.ins.get(1).and_then(In::place)) {
        // A product of (m, k) and (k, n) multiplies m n k times: the root of the three sizes' product.
        (Some(a), Some(b)) => {
            let out = call.outs.first().map_or(1, |out| out.at.layout.size());
            let sizes = a.layout.size() as f64 * b.layout.size() as f64 * out as f64;
            ((sizes.sqrt() as usize) / PRODUCTS).max(elements)
        }
        _ => elements * HEAVY,
    }
}

impl Segment {
    pub fn new(id: SegmentId) -> Segment {
        Segment { id, inner: Mutex::default() }
    }

    /// Appends a call, after flushing the segments whose pending accesses come before it. Its fresh outputs
    /// carry this segment's mark already.
    #[inline]
    pub fn append(&self, mut call: Box<Call>, uses: Uses) {
        let heavy = call.op.heavy;
        let work = if heavy { work_of(&call, uses.elements) } else { uses.elements };
        if heavy && work > INLINE {
            self.flush();
        }
        let mut guard = self.inner.lock();
        if !(uses.fresh && self.may_read(&call)) {
            guard = self.after_others(guard, &call);
        }
        let inner = &mut *guard;
        for out in &call.outs {
            if out.fresh {
                inner.bytes += out.at.value.bytes;
            } else {
                out.at.value.raise_version();
            }
        }
        inner.work += work;
        inner.long |= heavy && work > LONG;
        inner.structure.add(inner.calls.len(), &mut call, self.id);
        inner.calls.push(call);
        if inner.calls.len() >= MAX_CALLS || inner.bytes >= MAX_BYTES || inner.is_ripe() {
            self.flush_locked(inner);
        }
    }

    /// Marks what a call reads; whether nothing must be flushed before it.
    #[inline]
    fn may_read(&self, call: &Call) -> bool {
        let mut may = true;
        for input in &call.ins {
            if let In::Place(place) = input {
                may &= place.value.mark_read(self.id).is_none();
            }
        }
        may
    }

    /// The lock, with the marks of a call set and the other segments' calls that come before it with the engine.
    #[inline(never)]
    fn after_others<'s>(&'s self, mut inner: MutexGuard<'s, Inner>, call: &Call) -> MutexGuard<'s, Inner> {
        let mut held = SmallVec::new();
        loop {
            let others = self.mark(call, &mut held);
            if others.is_empty() {
                return inner;
            }
            drop(inner);
            flush_all_of(&others, self.id);
            inner = self.inner.lock();
        }
    }

    /// Sets the marks of a call; gives the segments that must be flushed before it. Marks of writes in `held` have no
    /// call behind them yet: they stay while the lock is given up, so that others see the write coming.
    fn mark<'c>(&self, call: &'c Call, held: &mut SmallVec<[&'c Value; 2]>) -> SmallVec<[SegmentId; 2]> {
        let mut others = SmallVec::new();
        let reads = call.ins.iter().filter_map(In::place).map(|place| &*place.value);
        // In one order for all threads, and nothing beyond the first value that another thread is about to write is
        // kept: so the thread with the foremost mark goes on, and no two wait for each other.
        let targets = call.outs.iter().filter(|out| !out.fresh).map(|out| &*out.at.value);
        let mut uses: SmallVec<[(&Value, bool); 4]> =
            reads.map(|value| (value, false)).chain(targets.map(|value| (value, true))).collect();
        uses.sort_unstable_by_key(|(value, is_write)| (address(value), !is_write));
        uses.dedup_by_key(|(value, _)| address(value));
        for (value, is_write) in uses {
            let other = if is_write { self.mark_write(value, held) } else { value.mark_read(self.id) };
            let Some(other) = other else { continue };
            others.push(other);
            if value.writer() != self.id {
                held.retain(|kept| {
                    let stays = address(kept) <= address(value);
                    if !stays {
                        kept.give_up_write(self.id);
                    }
                    stays
                });
                break;
            }
        }
        others
    }

    /// As [`Value::mark_write`], adding to `held` where the mark was not there.
    fn mark_write<'c>(&self, value: &'c Value, held: &mut SmallVec<[&'c Value; 2]>) -> Option<SegmentId> {
        let was_ours = value.writer() == self.id;
        loop {
            let other = value.mark_write(self.id);
            if !was_ours && value.writer() == self.id {
                held.push(value);
            }
            match other {
                // Its thread was lost in a fork.
                Some(lost) if lost != MANY && !registry::has_segment(lost) => value.clear_marks(lost),
                _ => return other,
            }
        }
    }

    /// Hands every pending call to the engine; small work runs here and now.
    pub fn flush(&self) {
        self.flush_locked(&mut self.inner.lock());
    }

    /// As [`Segment::flush`], if the work is small; whether it was.
    pub fn flush_small(&self) -> bool {
        let mut inner = self.inner.lock();
        let small = inner.work < INLINE;
        if small {
            self.flush_locked(&mut inner);
        }
        small
    }

    /// Hands every pending call to the engine and runs none: for a thread that is being torn down, whose scratch
    /// memory is gone. The naive engine leaves them to whoever waits.
    pub fn hand_over(&self) {
        self.push_all(&mut self.inner.lock(), drop);
    }

    fn flush_locked(&self, inner: &mut Inner) {
        // Small, or the naive engine: it runs here, before the next push can depend on it.
        self.push_all(inner, Ready::run);
    }

    /// Pushes every pending call; `take` gets what the engine gives back.
    fn push_all(&self, inner: &mut Inner, take: fn(Ready<'static>)) {
        if inner.calls.is_empty() {
            (inner.work, inner.long) = (0, false);
            return;
        }
        let hint = if inner.work < INLINE { Hint::Inline } else { Hint::Queue };
        let mut calls = std::mem::take(&mut inner.calls);
        (inner.work, inner.bytes, inner.long, inner.since) = (0, 0, false, None);
        let start = record::is_on().then(record::now);
        inner.structure.close(&calls);
        let (plan, cached) = inner.plans.find(&calls, &mut inner.structure);
        let flush = start.map(|start| Flush::new(start, cached, plan.described(&calls)));
        for task in plan.tasks(&calls, &inner.structure, flush.as_ref()) {
            if let Some(ready) = engine().push(task, hint) {
                take(ready);
            }
        }
        if let Some(flush) = flush {
            flush.finish();
        }
        inner.structure.clear_marks(&calls, self.id);
        inner.structure.clear();
        calls.clear();
        inner.calls = calls;
    }
}

fn address(value: &Value) -> usize {
    std::ptr::from_ref(value).addr()
}

impl Inner {
    /// Whether an idle worker should have what is pending.
    #[inline]
    fn is_ripe(&mut self) -> bool {
        if self.work < HAND_OVER || !engine().idle() {
            return false;
        }
        let age = self.since.get_or_insert_with(Instant::now).elapsed();
        let patience = if self.long { SHORT } else { PATIENCE };
        age > patience && self.cuts.allow(self.structure.hash(), age, patience)
    }
}

/// Flushes the named segments, all but `own`.
fn flush_all_of(others: &[SegmentId], own: SegmentId) {
    for &id in others {
        if id == MANY {
            registry::flush_others(own);
        } else {
            registry::flush_segment(id);
        }
    }
    // Another thread may be between its mark and its call.
    std::thread::yield_now();
}

/// Flushes the segment with a pending write of `value`, so that waiting for it makes sense.
pub(crate) fn flush_writer(value: &Value) {
    match value.writer() {
        0 => {}
        id => registry::flush_segment(id),
    }
}

/// Flushes every segment with a pending access to `value`.
pub(crate) fn flush_users(value: &Value) {
    flush_writer(value);
    match value.readers() {
        0 => {}
        MANY => registry::flush_others(0),
        id => registry::flush_segment(id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_end_where_lists_ended_before() {
        let (mut cuts, unit) = (Cuts::default(), Duration::from_micros(100));
        let mut allow = |place, age: u32| cuts.allow(place, age * unit / 10, unit);
        assert!(!allow(7, 9) && !allow(7, 15), "too early, and not known");
        assert!(allow(7, 21), "late, so it is known from now on");
        assert!(!allow(7, 10) && allow(7, 11));
        assert!(!allow(8, 19), "another place waits for one that is known");
    }
}
