//! The locks of the process over a fork. A thread that appends without the GIL, in `backward`, may be inside one of
//! them just then, and in the child nobody would ever give it back.
//!
//! Rationale: the C library runs these handlers around the very call, when no Python code can come in between and
//! want a lock that its own thread holds.

#![cfg_attr(not(unix), allow(dead_code, reason = "only Unix forks"))]

use crate::{elsewhere, place, random, record, registry, release};
use mxnp_core::storage;
use std::cell::RefCell;
use std::sync::Once;

/// Anything that is only there to be dropped.
trait Held {}
impl<T> Held for T {}

thread_local! {
    static HELD: RefCell<Vec<Box<dyn Held>>> = const { RefCell::new(Vec::new()) };
}

extern "C" fn take() {
    let _ = HELD.try_with(|held| {
        let locks: [Box<dyn Held>; 7] = [
            Box::new(elsewhere::lock()),
            Box::new(registry::lock()),
            Box::new(place::lock()),
            Box::new(random::lock()),
            Box::new(record::lock()),
            Box::new(release::lock()),
            Box::new(storage::lock()),
        ];
        held.borrow_mut().extend(locks);
    });
}

extern "C" fn give_back() {
    let _ = HELD.try_with(|held| held.borrow_mut().clear());
}

/// From now on a fork waits for these locks, and parent and child give them back. May be called again.
pub fn guard_forks() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        #[cfg(unix)]
        // SAFETY: the handlers take and release locks of the calling thread and never unwind.
        unsafe {
            libc::pthread_atfork(Some(take), Some(give_back), Some(give_back));
        }
    });
}
