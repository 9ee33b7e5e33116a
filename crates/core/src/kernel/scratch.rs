//! Each thread's scratch memory: kept between passes, so that a tile costs no allocation.

use std::cell::Cell;

/// One cache line; scratch is handed out in whole ones.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Scratch above this many bytes is given back to the system after use.
const KEEP: usize = 4 << 20;

thread_local! {
    static SCRATCH: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
}

/// Calls `body` with `bytes` of 64-byte aligned memory of any content. A nested call gets memory of its own.
pub fn with_scratch<R>(bytes: usize, body: impl FnOnce(*mut u8) -> R) -> R {
    // A thread that is being torn down has lost its own.
    let mut lines = SCRATCH.try_with(Cell::take).unwrap_or_default();
    let need = bytes.div_ceil(size_of::<Line>());
    if lines.len() < need {
        lines.resize(need, Line([0; 64]));
    }
    let result = body(lines.as_mut_ptr().cast());
    if lines.len() * size_of::<Line>() <= KEEP {
        let _ = SCRATCH.try_with(|kept| kept.set(lines));
    }
    result
}
