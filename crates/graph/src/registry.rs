//! The segments of all threads: found by number, flushed together before a wait for everything, a fork or exit.

use crate::error::Result;
use crate::inferred::Inferences;
use crate::segment::Segment;
use crate::sync::RwLock;
use crate::value::SegmentId;
use crate::{elsewhere, record, trace};
use mxnp_engine::engine;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Slot i holds the segment numbered i + 1.
static SEGMENTS: RwLock<Vec<Option<Arc<Segment>>>> = RwLock::new(Vec::new());

/// Numbers up to this one may be the marks of threads that were lost in a fork, and are not given out again.
static LOST: AtomicUsize = AtomicUsize::new(0);

/// What an append of the calling thread needs: its segment, and what its calls were found to be. Leaving the thread
/// flushes the segment and frees its number.
pub(crate) struct Own {
    segment: Arc<Segment>,
    pub inferences: Inferences,
}

impl Deref for Own {
    type Target = Segment;
    #[inline]
    fn deref(&self) -> &Segment {
        &self.segment
    }
}

impl Own {
    fn register() -> Own {
        let mut segments = SEGMENTS.write();
        let lost = LOST.load(Ordering::Relaxed);
        let free = segments.iter().skip(lost).position(Option::is_none);
        let at = free.map(|at| lost + at).unwrap_or_else(|| {
            segments.push(None);
            segments.len() - 1
        });
        let segment = Arc::new(Segment::new(at as SegmentId + 1));
        segments[at] = Some(segment.clone());
        Own { segment, inferences: Inferences::default() }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.hand_over();
        SEGMENTS.write()[self.id as usize - 1] = None;
    }
}

thread_local! {
    static OWN: Own = Own::register();
}

/// Runs `f` with what is the calling thread's own. A thread that is being torn down gets it for the call alone.
#[inline]
pub(crate) fn with_own<R>(f: impl FnOnce(&Own) -> R) -> R {
    match OWN.try_with(std::ptr::from_ref) {
        // SAFETY: it is there until the thread ends, and this call is the thread's.
        Ok(own) => f(unsafe { &*own }),
        Err(_) => f(&Own::register()),
    }
}

/// Flushes what the calling thread has pending.
pub fn flush_current() {
    with_own(|own| own.flush());
}

/// Whether a segment of this number may still have calls.
pub(crate) fn has_segment(id: SegmentId) -> bool {
    SEGMENTS.read().get(id as usize - 1).is_some_and(Option::is_some)
}

/// Flushes the calling thread's segment if it is the one of this number and has little work; whether it did.
pub(crate) fn flush_own_small(id: SegmentId) -> bool {
    with_own(|own| own.id == id && own.flush_small())
}

pub(crate) fn flush_segment(id: SegmentId) {
    // A thread mostly waits for what it has appended itself, and then shares no lock with others.
    let own = OWN.try_with(|own| (own.id == id).then(|| own.flush()));
    if let Ok(Some(())) = own {
        return;
    }
    let segment = SEGMENTS.read().get(id as usize - 1).cloned().flatten();
    if let Some(segment) = segment {
        segment.flush();
    }
}

/// Flushes every segment but `own` (0: all).
pub(crate) fn flush_others(own: SegmentId) {
    let segments: Vec<Arc<Segment>> = SEGMENTS.read().iter().flatten().cloned().collect();
    for segment in segments.iter().filter(|s| s.id != own) {
        segment.flush();
    }
}

/// Holds the calling thread back while too much is queued. May block.
///
/// Errors: only an interrupt.
pub(crate) fn throttle() -> Result<()> {
    if !engine().is_crowded() {
        return Ok(());
    }
    let _span = record::span("throttle");
    Ok(engine().throttle()?)
}

/// Flushes every segment and waits until everything has finished. May block.
///
/// Errors: the first error that no wait has raised yet.
pub fn wait_all() -> Result<()> {
    let _span = record::span("waitall");
    flush_others(0);
    Ok(engine().wait_all()?)
}

/// Flushes every segment and waits until everything has finished; errors stay for the waits of those they concern. May
/// block.
///
/// Errors: only an interrupt.
pub fn settle() -> Result<()> {
    flush_others(0);
    Ok(engine().settle()?)
}

/// Takes the lock, over a fork.
pub(crate) fn lock() -> impl Sized + 'static {
    SEGMENTS.write()
}

/// Before a fork: everything is flushed and finished, and the engine's workers are gone. One of the calls to
/// [`after_fork`] must follow, in the parent and in the child.
pub fn prepare_fork() {
    flush_others(0);
    engine().prepare_fork();
}

/// After a fork: the engine goes on. In the child the other threads are gone, and with them their segments.
pub fn after_fork(child: bool) {
    if !child {
        return engine().after_fork_parent();
    }
    engine().after_fork_child();
    record::forget();
    elsewhere::forget(trace::depth());
    let own = with_own(|own| own.id);
    let mut segments = SEGMENTS.write();
    LOST.store(segments.len(), Ordering::Relaxed);
    for slot in segments.iter_mut() {
        if slot.as_ref().is_some_and(|s| s.id != own) {
            *slot = None;
        }
    }
}

/// At exit: flushes what is pending, and stops the engine.
pub fn shutdown() {
    flush_others(0);
    engine().shutdown();
}
