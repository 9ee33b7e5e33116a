//! Waiting from Python: the GIL is released only where something is pending, Ctrl-C ends a wait, and what
//! Python owns is let go by a thread that holds the GIL.

use crate::error::{call, call_detached, set_pending, task_error};
use mxnp_engine::engine;
use mxnp_graph::Array;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{c_int, c_ulong, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

static MAIN: AtomicUsize = AtomicUsize::new(0);

/// What each call into the module does first: releases what workers gave back, and is held back where too
/// much is queued. No borrow of an array is alive.
#[inline]
pub fn enter(py: Python<'_>) -> PyResult<()> {
    if mxnp_graph::release::is_due() {
        release(py);
    }
    if engine().is_crowded() {
        let _span = mxnp_graph::record::span("throttle");
        py.detach(|| engine().throttle()).map_err(|error| task_error(py, &error))?;
    }
    Ok(())
}

/// What a call that touched memory lent to foreign code does last: waits until it is finished, GIL released. No borrow
/// of an array is alive.
#[inline]
pub fn pay(py: Python<'_>) -> PyResult<()> {
    if mxnp_graph::owed::is_owing() { call_detached(py, || Ok(())) } else { Ok(()) }
}

/// Drops what workers could not: buffers and objects of Python.
pub fn release(_py: Python<'_>) {
    drop(mxnp_graph::release::take());
}

extern "C" fn release_pending(_: *mut c_void) -> c_int {
    // A pending call runs with the GIL held.
    Python::attach(release);
    0
}

/// Called by any thread when something was put on the release list.
pub fn ask_for_release() {
    // SAFETY: documented as callable from any thread, with or without the GIL, while Python is initialised.
    unsafe {
        if ffi::Py_IsInitialized() != 0 {
            ffi::Py_AddPendingCall(Some(release_pending), std::ptr::null_mut());
        }
    }
}

/// Computes `array` if that is little work of this thread, which keeps the GIL; whether reading it would not block.
pub fn finish_small(py: Python<'_>, array: &Array) -> PyResult<bool> {
    call(py, || Ok(array.finish_small()))
}

/// Waits until `array` can be read and raises the error its value carries.
pub fn ready(py: Python<'_>, array: &Array) -> PyResult<()> {
    if finish_small(py, array)? {
        call(py, || array.wait_to_read())
    } else {
        call_detached(py, || array.wait_to_read())
    }
}

/// What long waits ask every 50 ms, GIL released: true where a signal handler has raised.
pub fn is_interrupted() -> bool {
    if !is_main_thread() {
        return false;
    }
    Python::attach(|py| match py.check_signals() {
        Ok(()) => false,
        Err(error) => {
            set_pending(error);
            true
        }
    })
}

/// Notes the main thread: Python runs signal handlers there only.
pub fn note_main_thread(py: Python<'_>) -> PyResult<()> {
    let ident: c_ulong = py.import("threading")?.call_method0("main_thread")?.getattr("ident")?.extract()?;
    MAIN.store(ident as usize, Ordering::Relaxed);
    Ok(())
}

fn is_main_thread() -> bool {
    // SAFETY: only reads the identity of the calling thread.
    let here = unsafe { ffi::PyThread_get_thread_ident() };
    here as usize == MAIN.load(Ordering::Relaxed)
}
