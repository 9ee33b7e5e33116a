//! A product of real matrices on one thread: which operands are read where they are and which are copied first.
//! Every element is a sum in an order that the sizes of the block alone decide.

use super::Mat;
use super::dots::{Dots, Sweep, dot, dots, sweep};
use super::pack::{self, Copy, Panel};
use super::tile::{Strip, across, strip, vectors};
use crate::kernel::scratch::with_scratch;
use crate::simd::vector::{Wide, lanes};

/// Rows of the right operand that are packed together: with a strip's columns, about a first-level cache.
pub const DEPTH: usize = 256;
/// Bytes of a right operand that is read in place by many rows.
pub const PLACE: usize = 64 << 10;
/// Rows of the left operand for which a large right one is read in place, [`SHALLOW`] rows at once.
const FEW: usize = 64;
const SHALLOW: usize = 64;
/// Bytes of a right operand beyond which one row of the left one reads it in the order it lies in.
const LARGE: usize = 512 << 10;
/// Columns from which it does so.
const WIDE: usize = 128;
/// Rows of the left operand up to which a transposed right one is read along its columns, and the inner sizes from
/// which: few rows, some, and many where packing would go through memory once more.
const FEW_ALONG: (usize, usize) = (8, 32);
const SOME_ALONG: (usize, usize) = (48, 256);
const MANY_ALONG: usize = 160;
const MEMORY: usize = 1 << 20;

/// `c = a b`, or `c += a b` to `add`, of `m` by `n` over `k`, all at least 1.
///
/// # Safety
/// The matrices are valid for the sizes; columns of `c` lie side by side, and it overlaps nothing else.
pub unsafe fn block<T: Wide>([m, n, k]: [usize; 3], a: Mat<T>, b: Mat<T>, c: Mat<T>, add: bool) {
    // SAFETY: the caller's.
    unsafe {
        if n == 1 && m > 1 && c.row == 1 {
            return block([1, m, k], b.turned(), a.turned(), c.turned(), add);
        }
        let bytes = k * n * size_of::<T>();
        if b.column == 1 && n >= WIDE && (k <= 2 || m == 1 && bytes > LARGE) {
            return rows_of([m, n, k], a, b, c, add);
        }
        if (b.column == 1 || n == 1) && (m <= FEW || bytes <= PLACE) && n > 1 {
            return in_place([m, n, k], a, b, c, add);
        }
        if is_along([m, n, k], &b) {
            return along([m, n, k], a, b, c, add);
        }
        packed([m, n, k], a, b, c, add)
    }
}

/// Whether a product is better computed as dot products along the columns of its right operand.
pub fn is_along<T>([m, n, k]: [usize; 3], b: &Mat<T>) -> bool {
    let within = |(rows, long)| m <= rows && k >= long;
    let many = (if n * k * size_of::<T>() > MEMORY { MANY_ALONG } else { 0 }, SOME_ALONG.1);
    b.row == 1 && (m == 1 || within(FEW_ALONG) || within(SOME_ALONG) || within(many))
}

/// The strips of `n` columns: (first column, columns), nearly equal numbers of vectors.
pub fn strips<T: Wide>(m: usize, n: usize) -> impl Iterator<Item = (usize, usize)> {
    let (all, lanes, most) = (vectors::<T>(n), lanes::<T>(), across::<T>(m));
    let count = if all <= most { 1 } else { all.div_ceil(most) };
    (0..count).map(move |s| {
        if count == 1 {
            return (0, n);
        }
        let (from, to) = (s * all / count * lanes, (s + 1) * all / count * lanes);
        (from, to.min(n) - from)
    })
}

/// # Safety
/// As [`block`]; columns of `b` lie side by side.
unsafe fn in_place<T: Wide>([m, n, k]: [usize; 3], a: Mat<T>, b: Mat<T>, c: Mat<T>, add: bool) {
    // Few rows read each element of `b` once or twice: then it is read in the order it lies in.
    let deep = k * n * size_of::<T>() <= PLACE;
    let depth = if deep { k } else { SHALLOW };
    for from in (0..k).step_by(depth) {
        let to = k.min(from + depth);
        let add = add || from > 0;
        let (a, b) = (a.from(0, from), b.from(from, 0));
        // Row by row, so that the result is written in the order it lies in.
        let tall = if k < SHALLOW { 32.min(m) } else { m };
        for i in (0..m).step_by(tall) {
            let (a, c) = (a.from(i, 0), c.from(i, 0));
            for (j, columns) in strips::<T>(tall, n) {
                let sizes = [tall.min(m - i), columns, to - from];
                // SAFETY: rows and columns of the block.
                unsafe { strip_of(sizes, a, (b.from(0, j).start.0, b.row, false), c, j, add) }
            }
        }
    }
}

/// One strip, from column `j` on; `b` is its first element, the step from row to row, and
/// whether rows have room for whole vectors.
///
/// # Safety
/// As [`block`], for these columns.
pub unsafe fn strip_of<T: Wide>(
    [m, columns, k]: [usize; 3],
    a: Mat<T>,
    (b, b_step, padded): (*mut T, isize, bool),
    c: Mat<T>,
    j: usize,
    add: bool,
) {
    // SAFETY: the caller's.
    unsafe {
        strip(&Strip {
            m,
            k,
            columns,
            a: a.start.0,
            a_row: a.row,
            a_step: a.column,
            b,
            b_step,
            padded,
            c: c.from(0, j).start.0,
            c_row: c.row,
            add,
        })
    }
}

/// Row by row, each as a sum of rows of `b`.
///
/// # Safety
/// As [`block`]; columns of `b` lie side by side.
unsafe fn rows_of<T: Wide>([m, n, k]: [usize; 3], a: Mat<T>, b: Mat<T>, c: Mat<T>, add: bool) {
    for i in 0..m {
        let (x, c) = (a.from(i, 0).start.0, c.from(i, 0).start.0);
        let (a_step, b_row) = (a.column, b.row);
        // SAFETY: row i of the block.
        unsafe { sweep(&Sweep { n, k, a: x, a_step, b: b.start.0, b_row, c, add }) }
    }
}

/// Dot products, for a right operand whose columns are contiguous and few rows of the left one.
///
/// # Safety
/// As [`block`]; rows of `b` are 1 apart.
unsafe fn along<T: Wide>([m, n, k]: [usize; 3], a: Mat<T>, b: Mat<T>, c: Mat<T>, add: bool) {
    if a.column != 1 && k > 1 {
        return with_scratch(m * k * size_of::<T>(), |to| {
            // SAFETY: the scratch has room for the copy, whose rows are contiguous.
            unsafe {
                let to = to.cast::<T>();
                for i in 0..m {
                    for p in 0..k {
                        *to.add(i * k + p) = *a.from(i, p).start.0;
                    }
                }
                along([m, n, k], Mat::new(to, k as isize, 1), b, c, add)
            }
        });
    }
    // SAFETY: the caller's.
    unsafe {
        // One row: a large right operand is read as one stream, column by column.
        if m == 1 && (n == 1 || k * n * size_of::<T>() > LARGE) && !add {
            for j in 0..n {
                dot(k, a.start.0, b.from(0, j).start.0, c.from(0, j).start.0);
            }
            return;
        }
        dots(&Dots {
            m,
            n,
            k,
            a: a.start.0,
            a_row: a.row,
            b: b.start.0,
            b_column: b.column,
            c: c.start.0,
            c_row: c.row,
            add,
        })
    }
}

/// Whether a left operand is better copied: no step is 1, or rows share their places in the caches.
pub fn is_scattered<T>(a: &Mat<T>) -> bool {
    let (row, column) = (a.row.unsigned_abs(), a.column.unsigned_abs());
    row != 1 && column != 1 || row.max(column) % 512 == 0
}

/// Through copies: panels of `b`, and of `a` what lies badly.
///
/// # Safety
/// As [`block`].
unsafe fn packed<T: Wide>([m, n, k]: [usize; 3], a: Mat<T>, b: Mat<T>, c: Mat<T>, add: bool) {
    let lanes = lanes::<T>();
    let depth = DEPTH.min(k);
    let width = vectors::<T>(n) * lanes;
    let part = |from: usize| Copy::new(m, depth.min(k - from), a.from(0, from));
    let copied = is_scattered(&a);
    let room = width * depth + if copied { part(0).size() } else { 0 };
    with_scratch(room * size_of::<T>(), |scratch| {
        let panels = scratch.cast::<T>();
        for from in (0..k).step_by(depth) {
            let to = k.min(from + depth);
            let add = add || from > 0;
            // SAFETY: the scratch has room for all panels and the copy; sizes are the block's.
            unsafe {
                let mut a = a.from(0, from);
                if copied {
                    let (copy, to) = (part(from), panels.add(width * depth));
                    copy.write(0..copy.lines(), to);
                    a = copy.at(to);
                }
                for (j, columns) in strips::<T>(m, n) {
                    let wide = columns.next_multiple_of(lanes);
                    let panel = panels.add(j * depth);
                    let source = b.from(from, j);
                    pack::panel(&Panel { rows: to - from, columns, from: source, to: panel, width: wide });
                    strip_of([m, columns, to - from], a, (panel, wide as isize, true), c, j, add);
                }
            }
        }
    });
}
