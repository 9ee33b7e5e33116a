//! Owners of foreign memory that wait to be dropped by a thread that may (Python's need the GIL).

use crate::sync::Mutex;
use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};

/// What foreign code gave to keep its memory alive.
pub type Owner = Box<dyn Any + Send>;

static LIST: Mutex<Vec<Owner>> = Mutex::new(Vec::new());
static ANY: AtomicBool = AtomicBool::new(false);
static NOTICE: Mutex<Option<fn()>> = Mutex::new(None);

/// Puts an owner on the list; whoever drops owners is told when the list was empty.
pub(crate) fn put(owner: Owner) {
    LIST.lock().push(owner);
    if !ANY.swap(true, Ordering::AcqRel) {
        let notice = *NOTICE.lock();
        if let Some(notice) = notice {
            notice();
        }
    }
}

/// Takes the locks, over a fork.
pub(crate) fn lock() -> impl Sized + 'static {
    (LIST.lock(), NOTICE.lock())
}

/// Whether there is something on the list. Cheap.
#[inline]
pub fn is_due() -> bool {
    ANY.load(Ordering::Acquire)
}

/// Takes the list; the caller drops it where that is allowed.
pub fn take() -> Vec<Owner> {
    if !is_due() {
        return Vec::new();
    }
    let mut list = LIST.lock();
    ANY.store(false, Ordering::Release);
    std::mem::take(&mut *list)
}

/// Sets what is called, on any thread and with no lock held, when the list stops being empty.
pub fn set_notice(notice: fn()) {
    *NOTICE.lock() = Some(notice);
}
