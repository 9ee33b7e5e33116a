//! Objects of Python that are made once, by whoever needs them first, and without anybody waiting for it: the thread
//! that was about to make one is not there in a forked child.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// What the cell holds; made now if it is empty. Of several threads that make it at the same time, one is heard.
#[inline]
pub fn once<'a, T>(
    py: Python<'_>,
    cell: &'a PyOnceLock<T>,
    make: impl FnOnce() -> PyResult<T>,
) -> PyResult<&'a T> {
    if let Some(known) = cell.get(py) {
        return Ok(known);
    }
    let made = make()?;
    // No Python code runs in here, so the GIL stays held and nobody can fork meanwhile.
    Ok(cell.get_or_init(py, || made))
}
