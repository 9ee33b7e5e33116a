//! The switches of the process: modes, random numbers, engine, memory, fork and exit.

use crate::cell::GilCell;
use crate::error::{call_detached, quiet_panics, value_error};
use crate::wait;
use mxnp_engine::{Engine, Kind, engine};
use mxnp_graph::{memory, modes, random};
use pyo3::prelude::*;
use pyo3::types::PyDict;

#[pyfunction]
pub fn set_numpy_dtype(on: bool) -> bool {
    modes::set_numpy_dtype(on)
}

#[pyfunction]
pub fn is_numpy_dtype() -> bool {
    modes::numpy_dtype()
}

/// Sets whether runs of elementwise calls become one pass; gives what was set before.
/// Whether compiled blocks fold in prediction; gives the state before. Graphs made so far are forgotten.
#[pyfunction]
pub fn set_folding(on: bool) -> bool {
    crate::graph::drop_graphs();
    modes::set_folding(on)
}

#[pyfunction]
pub fn set_fusion(on: bool) -> bool {
    modes::set_fusion(on)
}

/// Starts every random stream anew; any integer is taken modulo 2**64.
#[pyfunction]
pub fn seed(value: &Bound<'_, PyAny>) -> PyResult<()> {
    let bits = value.call_method1("__and__", (u64::MAX,))?;
    random::seed(bits.extract()?);
    Ok(())
}

/// The seed and the two counters of random draws.
#[pyfunction]
pub fn random_state() -> (u64, u64, u64) {
    random::state()
}

#[pyfunction]
pub fn set_random_state(state: (u64, u64, u64)) {
    random::set_state(state);
}

/// `with init_stream():` draws come from the initialisers' own stream.
#[pyclass(module = "mxnp._core", frozen)]
pub struct InitStream(GilCell<Vec<bool>>);

#[pyfunction]
pub fn init_stream() -> InitStream {
    InitStream(GilCell::new(Vec::new()))
}

#[pymethods]
impl InitStream {
    fn __enter__(slf: Py<Self>, py: Python<'_>) -> Py<Self> {
        let before = random::set_initialising(true);
        slf.get().0.change(py, |stack| stack.push(before));
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        t: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        tb: &Bound<'_, PyAny>,
    ) -> bool {
        let _ = (t, value, tb);
        if let Some(before) = self.0.change(py, Vec::pop) {
            random::set_initialising(before);
        }
        false
    }
}

/// Waits for everything and raises the first error that no wait has raised yet.
#[pyfunction]
pub fn waitall(py: Python<'_>) -> PyResult<()> {
    wait::enter(py)?;
    call_detached(py, mxnp_graph::wait_all)
}

/// Hands the thread's pending calls to the engine.
#[pyfunction]
pub fn flush() {
    mxnp_graph::flush_current();
}

/// Sets how many threads compute, the waiting one included; gives the number before.
#[pyfunction]
pub fn set_num_threads(py: Python<'_>, n: i64) -> PyResult<usize> {
    let Some(n) = usize::try_from(n).ok().filter(|n| *n > 0) else {
        return Err(value_error(py, format!("the number of threads is 1 or more, got {n}")));
    };
    let before = engine().num_threads();
    mxnp_graph::flush_current();
    py.detach(|| engine().set_num_threads(n));
    Ok(before)
}

/// How many threads compute, the waiting one included.
#[pyfunction]
pub fn num_threads() -> usize {
    engine().num_threads()
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Naive => "naive",
        Kind::Threaded => "threaded",
    }
}

/// Changes the engine, once everything has finished; gives the name of the one before.
#[pyfunction]
pub fn set_engine(py: Python<'_>, kind: &str) -> PyResult<&'static str> {
    let kind = match kind {
        "naive" => Kind::Naive,
        "threaded" => Kind::Threaded,
        _ => return Err(value_error(py, format!("the engine is 'threaded' or 'naive', got '{kind}'"))),
    };
    let before = kind_name(engine().kind());
    mxnp_graph::flush_current();
    py.detach(|| engine().set_kind(kind));
    Ok(before)
}

#[pyfunction(name = "engine")]
pub fn engine_name() -> &'static str {
    kind_name(engine().kind())
}

#[pyfunction]
pub fn engine_stats(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let stats = engine().stats();
    let dict = PyDict::new(py);
    let counts = [
        ("pushed", stats.pushed),
        ("ran_inline", stats.ran_inline),
        ("ran_by_workers", stats.ran_by_workers),
        ("ran_by_waiters", stats.ran_by_waiters),
        ("errors", stats.errors),
        ("skipped", stats.skipped),
        ("loops", stats.loops),
        ("joined_loops", stats.joined_loops),
        ("sleeps", stats.sleeps),
        ("wakes", stats.wakes),
        ("throttled", stats.throttled),
        ("plans", mxnp_graph::plans_made() as u64),
        ("unfinished", stats.unfinished as u64),
        ("unfinished_bytes", stats.unfinished_bytes as u64),
        ("workers", stats.workers as u64),
    ];
    for (name, count) in counts {
        dict.set_item(name, count)?;
    }
    Ok(dict)
}

/// Sets how many unfinished tasks, and bytes they keep alive, hold a thread back; gives the former limits.
#[pyfunction]
pub fn set_queue_limits(tasks: usize, nbytes: usize) -> (usize, usize) {
    let before = engine().queue_limits();
    engine().set_queue_limits(tasks, nbytes);
    before
}

#[pyfunction]
pub fn memory_stats(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let stats = memory::stats();
    let dict = PyDict::new(py);
    let counts = [
        ("live", stats.live),
        ("peak", stats.peak),
        ("cached", stats.cached),
        ("allocations", stats.allocations),
        ("hits", stats.hits),
    ];
    for (name, count) in counts {
        dict.set_item(name, count)?;
    }
    Ok(dict)
}

/// Sets how many bytes of freed memory are kept for reuse.
#[pyfunction]
pub fn set_cache_limit(nbytes: usize) {
    memory::set_cache_limit(nbytes);
}

/// Gives cached free memory back to the system.
#[pyfunction]
pub fn release_memory() {
    memory::release();
}

#[pyfunction]
fn before_fork() {
    // The GIL stays held: no other Python thread can append a call between the flush and the fork.
    mxnp_graph::prepare_fork();
}

#[pyfunction]
fn after_fork_in_parent() {
    mxnp_graph::after_fork(false);
}

#[pyfunction]
fn after_fork_in_child(py: Python<'_>) -> PyResult<()> {
    mxnp_graph::after_fork(true);
    wait::note_main_thread(py)
}

#[pyfunction]
fn at_exit(py: Python<'_>) {
    py.detach(mxnp_graph::shutdown);
    wait::release(py);
}

/// Sets up, at import, what the process needs: hooks for fork, exit, Ctrl-C, panics and released buffers.
pub fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    quiet_panics();
    wait::note_main_thread(py)?;
    mxnp_graph::guard_forks();
    Engine::set_interrupt_check(wait::is_interrupted);
    mxnp_graph::release::set_notice(wait::ask_for_release);
    let os = py.import("os")?;
    if os.hasattr("register_at_fork")? {
        let hooks = PyDict::new(py);
        hooks.set_item("before", wrap_pyfunction!(before_fork, module)?)?;
        hooks.set_item("after_in_parent", wrap_pyfunction!(after_fork_in_parent, module)?)?;
        hooks.set_item("after_in_child", wrap_pyfunction!(after_fork_in_child, module)?)?;
        os.call_method("register_at_fork", (), Some(&hooks))?;
    }
    py.import("atexit")?.call_method1("register", (wrap_pyfunction!(at_exit, module)?,))?;
    Ok(())
}
