//! Waits that this thread owes: its calls on memory that foreign code can see are flushed, and must be finished before
//! foreign code looks. The caller may hold a lock or a borrow while it appends them, so it waits when it holds none.

use crate::error::Result;
use crate::modes::OWING;
use crate::value::Value;
use mxnp_engine::engine;
use std::cell::RefCell;
use std::sync::Arc;

thread_local! {
    static OWED: RefCell<Vec<Arc<Value>>> = const { RefCell::new(Vec::new()) };
}

/// Adds values that a call of this thread uses.
pub(crate) fn owe(values: impl Iterator<Item = Arc<Value>>) {
    // A thread that is being torn down owes nothing any more.
    let _ = OWED.try_with(|owed| {
        owed.borrow_mut().extend(values);
        OWING.set(true);
    });
}

/// Whether this thread has appended calls on shared memory that [`pay`] has not waited for.
#[inline]
pub fn is_owing() -> bool {
    OWING.get()
}

/// Waits for the calls on shared memory that this thread has appended. May block, so no lock or borrow is held.
///
/// Errors: the first that a value of theirs carries; the others stay with their values.
pub fn pay() -> Result<()> {
    OWING.set(false);
    let owed = OWED.try_with(RefCell::take).unwrap_or_default();
    for value in &owed {
        engine().wait_write(&**value)?;
    }
    Ok(())
}
