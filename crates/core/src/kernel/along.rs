//! Walks the lines of contiguous arrays along one axis, for kernels that need a whole line before they write it
//! (softmax and its kin): rows where they lie, all others side by side in scratch memory, so that a vector
//! goes across lines. Knows no formula. Which form a line takes, and so its bits, is a matter of the shape alone.

use crate::kernel::lane::Lane;
use crate::kernel::moves::{Shared, dense};
use crate::kernel::scratch::with_scratch;
use crate::kernel::walk::split;
use crate::par::Parallel;
use crate::view::{View, ViewMut};
use std::borrow::Cow;

/// Elements of the rows that a kernel gets together: what it does to one after the other keeps near.
const GROUP: usize = 2048;
/// The most rows of a group.
pub const ROWS: usize = 32;
/// Lines side by side, and where lines are so long that fewer keep to the cache.
const SIDE: usize = 64;
const SLIM: usize = 16;
const LONG: usize = 1024;
/// Elements that are worth a chunk of their own.
const GRAIN: usize = 16 * 1024;

/// A kernel over lines of `K` operands of `T`.
pub trait Lines<T: Lane, const K: usize>: Sync {
    /// Computes `count` rows from row `first` on, of `n` contiguous elements each, at most [`ROWS`]; `scratch` has room
    /// for the rows.
    ///
    /// # Safety
    /// The rows are readable from each of `ins` and writable from `out`, which overlaps none of them.
    unsafe fn rows(
        &self,
        first: usize,
        count: usize,
        ins: [*const T; K],
        n: usize,
        out: *mut T,
        scratch: *mut T::Wide,
    );

    /// Computes `side` lines at once (16 or 64): element i of line k is at `i * side + k` of each block. The result
    /// goes to the first block.
    ///
    /// # Safety
    /// Blocks hold `n * side` elements and do not overlap.
    unsafe fn block(&self, blocks: [*mut T::Wide; K], n: usize, side: usize);

    /// Whether lines may be computed by [`Lines::block`].
    fn has_blocks(&self) -> bool {
        true
    }
}

/// Sizes before, of and after the axis.
#[derive(Clone, Copy)]
struct Sizes {
    n: usize,
    after: usize,
    lines: usize,
}

/// Runs a kernel over all lines along `axis`; operands have one shape and the output's memory is contiguous.
pub fn run<T: Lane, const K: usize>(
    ins: [&View; K],
    out: &ViewMut,
    axis: usize,
    par: &dyn Parallel,
    kernel: &impl Lines<T, K>,
) {
    let shape = &out.layout.shape;
    let (n, size) = (shape[axis], out.layout.size());
    if size == 0 {
        return;
    }
    let sizes = Sizes { n, after: shape[axis + 1..].iter().product(), lines: size / n };
    let ins: [Cow<[T]>; K] = ins.map(|view| dense::<T>(view, par));
    let from = ins.each_ref().map(|data| Shared(data.as_ptr().cast_mut()));
    let to = Shared(out.ptr::<T>());
    if sizes.after == 1 {
        let group = (GROUP / n).clamp(1, ROWS);
        split(par, sizes.lines.div_ceil(group), GRAIN / (n * group), |groups| {
            with_scratch(group * n * size_of::<T::Wide>(), |scratch| {
                for first in groups.map(|i| i * group) {
                    let count = group.min(sizes.lines - first);
                    // SAFETY: rows `first` and on of each array; this chunk's own of the output.
                    unsafe {
                        let ins = from.map(|from| from.at((first * n) as isize).cast_const());
                        kernel.rows(first, count, ins, n, to.at((first * n) as isize), scratch.cast());
                    }
                }
            });
        });
    } else if kernel.has_blocks() {
        let side = if n > LONG { SLIM } else { SIDE };
        blocks(sizes, side, from, to, par, kernel);
    } else {
        gathered(sizes, from, to, par, kernel);
    }
}

/// Lines side by side.
fn blocks<T: Lane, const K: usize>(
    sizes: Sizes,
    side: usize,
    from: [Shared<T>; K],
    to: Shared<T>,
    par: &dyn Parallel,
    kernel: &impl Lines<T, K>,
) {
    let Sizes { n, after, lines } = sizes;
    split(par, lines.div_ceil(side), GRAIN / (n * side), |range| {
        let bytes = (n * side * size_of::<T::Wide>()).next_multiple_of(64);
        with_scratch(K * bytes, |scratch| {
            let blocks: [*mut T::Wide; K] = std::array::from_fn(|k| scratch.wrapping_add(k * bytes).cast());
            let mut starts = [0usize; SIDE];
            for block in range {
                let first = block * side;
                let count = side.min(lines - first);
                for k in 0..count {
                    starts[k] = (first + k) / after * n * after + (first + k) % after;
                }
                let starts = &starts[..count];
                // SAFETY: lines `first` and on of each array, this chunk's own of the output; blocks hold them.
                unsafe {
                    for k in 0..K {
                        gather(from[k], starts, after, n, side, blocks[k]);
                    }
                    kernel.block(blocks, n, side);
                    scatter(blocks[0], starts, after, n, side, to);
                }
            }
        });
    });
}

/// Whether lines lie side by side in memory as they do in the block.
fn is_run(starts: &[usize]) -> bool {
    starts[starts.len() - 1] - starts[0] == starts.len() - 1
}

/// # Safety
/// Lines are readable from `from`; `block` holds `n` rows of `side`.
unsafe fn gather<T: Lane>(
    from: Shared<T>,
    starts: &[usize],
    after: usize,
    n: usize,
    side: usize,
    block: *mut T::Wide,
) {
    let count = starts.len();
    // SAFETY: the caller's.
    unsafe {
        for i in 0..n {
            let row = std::slice::from_raw_parts_mut(block.add(i * side), side);
            if is_run(starts) {
                let from = from.at((starts[0] + i * after) as isize);
                for k in 0..count {
                    row[k] = (*from.add(k)).widen();
                }
            } else {
                for k in 0..count {
                    row[k] = (*from.at((starts[k] + i * after) as isize)).widen();
                }
            }
            row[count..].fill(T::Wide::default());
        }
    }
}

/// # Safety
/// As [`gather`]; lines are writable at `to`.
unsafe fn scatter<T: Lane>(
    block: *const T::Wide,
    starts: &[usize],
    after: usize,
    n: usize,
    side: usize,
    to: Shared<T>,
) {
    let count = starts.len();
    // SAFETY: the caller's.
    unsafe {
        for i in 0..n {
            let row = std::slice::from_raw_parts(block.add(i * side), count);
            if is_run(starts) {
                let to = to.at((starts[0] + i * after) as isize);
                for k in 0..count {
                    *to.add(k) = T::narrow(row[k]);
                }
            } else {
                for k in 0..count {
                    *to.at((starts[k] + i * after) as isize) = T::narrow(row[k]);
                }
            }
        }
    }
}

/// Line by line, each gathered into a row.
fn gathered<T: Lane, const K: usize>(
    sizes: Sizes,
    from: [Shared<T>; K],
    to: Shared<T>,
    par: &dyn Parallel,
    kernel: &impl Lines<T, K>,
) {
    let Sizes { n, after, lines } = sizes;
    split(par, lines, GRAIN / n, |range| {
        with_scratch(n * size_of::<T::Wide>(), |scratch| {
            let mut rows: [Vec<T>; K] = std::array::from_fn(|_| vec![T::default(); n]);
            let mut result = vec![T::default(); n];
            for line in range {
                let start = line / after * n * after + line % after;
                // SAFETY: line `line` of each array, this chunk's own of the output.
                unsafe {
                    for k in 0..K {
                        for i in 0..n {
                            rows[k][i] = *from[k].at((start + i * after) as isize);
                        }
                    }
                    let ins = rows.each_ref().map(|row| row.as_ptr());
                    kernel.rows(line, 1, ins, n, result.as_mut_ptr(), scratch.cast());
                    for i in 0..n {
                        *to.at((start + i * after) as isize) = result[i];
                    }
                }
            }
        });
    });
}
