//! What threads compute while another thread traces. A graph has none of their calls: a trace that meets their results
//! must not take them for constants. Nothing is noted while no trace is under way. Knows no trace.

use crate::call::Call;
use crate::hash::{AddressMap, key};
use crate::sync::Mutex;
use crate::value::Value;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

/// Which thread's call made a value, or wrote to it first.
struct Noted {
    /// Keeps the address from being used again.
    _weak: Weak<Value>,
    thread: usize,
    is_made: bool,
    /// Whether another thread wrote to it later.
    is_shared: bool,
}

/// How many traces are under way, on all threads. A thread that was given a result of a trace sees that it is not 0.
static TRACES: AtomicUsize = AtomicUsize::new(0);
static NOTED: Mutex<AddressMap<Noted>> = Mutex::new(HashMap::with_hasher(BuildHasherDefault::new()));

/// A number for the calling thread that no other has, not even after its end.
fn thread() -> usize {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    thread_local! { static NUMBER: usize = COUNT.fetch_add(1, Relaxed) }
    NUMBER.with(|number| *number)
}

/// A trace begins.
pub(crate) fn begin() {
    TRACES.fetch_add(1, Relaxed);
}

/// A trace has ended, and asks no more.
pub(crate) fn end() {
    let mut noted = NOTED.lock();
    if TRACES.fetch_sub(1, Relaxed) == 1 {
        *noted = AddressMap::default();
    }
}

/// Whether some thread traces.
#[inline]
pub(crate) fn is_watched() -> bool {
    TRACES.load(Relaxed) != 0
}

/// Notes what a call of this thread makes and writes.
#[cold]
pub(crate) fn note(call: &Call) {
    let (mut noted, thread) = (NOTED.lock(), thread());
    for out in &call.outs {
        let value = &out.at.value;
        let first = || Noted { _weak: Arc::downgrade(value), thread, is_made: out.fresh, is_shared: false };
        let entry = noted.entry(key(value)).or_insert_with(first);
        entry.is_shared |= entry.thread != thread;
    }
}

/// Whether another thread made this value since the first trace under way began.
pub(crate) fn made(value: &Arc<Value>) -> bool {
    NOTED.lock().get(&key(value)).is_some_and(|noted| noted.is_made && noted.thread != thread())
}

/// Whether another thread wrote to the value at this address since then.
pub(crate) fn written(value: usize) -> bool {
    NOTED.lock().get(&value).is_some_and(|noted| noted.is_shared || noted.thread != thread())
}

/// Takes the lock, over a fork.
pub(crate) fn lock() -> impl Sized + 'static {
    NOTED.lock()
}

/// In a forked child, whose one thread is inside so many traces: those of the others are gone.
pub(crate) fn forget(traces: usize) {
    TRACES.store(traces, Relaxed);
    *NOTED.lock() = AddressMap::default();
}
