//! Products of half-precision matrices: pieces of the operands are widened to float32 while they are in the cache,
//! sums are float32, and every result is rounded once.

use super::{Mat, block};
use crate::isa_versions;
use crate::kernel::lane::Lane;
use crate::kernel::scratch::with_elements;

/// Rows and columns of a piece of the result, and the inner steps of a piece of the operands: pieces of float32 that
/// products read where they lie.
const SIDE: usize = 128;

/// Elements from line to line of a piece. Whole lines lie as their neighbours; lines of a power of two, which would
/// share few places of the caches, lie apart.
fn step(columns: usize) -> usize {
    if columns == SIDE { SIDE + 16 } else { columns }
}

/// `c = a b`, of `m` by `n` over `k`, all at least 1.
///
/// # Safety
/// The matrices are valid for the sizes; columns of `c` lie side by side, and it overlaps nothing else.
pub unsafe fn block<H: Lane<Wide = f32>>([m, n, k]: [usize; 3], a: Mat<H>, b: Mat<H>, c: Mat<H>) {
    let [tall, wide, deep] = [m, n, k].map(|size| SIDE.min(size));
    // A piece may lie by columns.
    let room = |rows: usize, columns: usize| (rows * step(columns)).max(columns * step(rows));
    let room = [room(tall, wide), room(tall, deep), room(deep, wide)];
    with_elements(room, |[sums, left, right]: [&mut [f32]; 3]| {
        for i in (0..m).step_by(SIDE) {
            for j in (0..n).step_by(SIDE) {
                let (m, n) = (SIDE.min(m - i), SIDE.min(n - j));
                let total = Mat::new(sums.as_mut_ptr(), step(n) as isize, 1);
                // SAFETY: there is room for the three pieces, which lie within the matrices.
                unsafe {
                    for from in (0..k).step_by(SIDE) {
                        let depth = SIDE.min(k - from);
                        let a = widen(m, depth, a.from(i, from), left.as_mut_ptr());
                        let b = widen(depth, n, b.from(from, j), right.as_mut_ptr());
                        block::block([m, n, depth], a, b, total, from > 0);
                    }
                    let c = c.from(i, j);
                    round::<H>()(&Lines { rows: m, columns: n, from: total, to: c.start.0, step: c.row });
                }
            }
        }
    });
}

/// A copy of a matrix in float32 at `to`, by rows, or by columns where these are contiguous.
///
/// # Safety
/// The matrix is valid, and `to` for a piece of its sizes.
unsafe fn widen<H: Lane<Wide = f32>>(rows: usize, columns: usize, from: Mat<H>, to: *mut f32) -> Mat<f32> {
    let turned = from.row == 1 && from.column != 1;
    let (rows, columns, from) = if turned { (columns, rows, from.turned()) } else { (rows, columns, from) };
    let step = step(columns) as isize;
    // SAFETY: the caller's.
    unsafe { widened::<H>()(&Lines { rows, columns, from, to, step }) };
    let made = Mat::new(to, step, 1);
    if turned { made.turned() } else { made }
}

/// Lines to convert: of a matrix, to lines that are `step` apart.
struct Lines<A, B> {
    rows: usize,
    columns: usize,
    from: Mat<A>,
    to: *mut B,
    step: isize,
}

/// # Safety
/// The matrix and the lines are valid for the sizes, and do not overlap.
#[inline(always)]
unsafe fn convert<A: Copy, B>(l: &Lines<A, B>, f: impl Fn(A) -> B) {
    for i in 0..l.rows as isize {
        let from = l.from.start.0.wrapping_offset(i * l.from.row).cast_const();
        let to = l.to.wrapping_offset(i * l.step);
        // SAFETY: line i (the caller's contract).
        unsafe {
            if l.from.column == 1 {
                for j in 0..l.columns {
                    *to.add(j) = f(*from.add(j));
                }
            } else {
                for j in 0..l.columns {
                    *to.add(j) = f(*from.wrapping_offset(j as isize * l.from.column));
                }
            }
        }
    }
}

/// # Safety
/// As [`convert`].
#[inline(always)]
unsafe fn widened_body<H: Lane<Wide = f32>>(l: &Lines<H, f32>) {
    // SAFETY: the caller's.
    unsafe { convert(l, H::widen) }
}

isa_versions! {
    /// Widens lines.
    fn widened -> unsafe fn(&Lines<H, f32>) = widened_body;
    generics [H: Lane<Wide = f32>] names [H] fast true; args (l: &Lines<H, f32>)
}

/// # Safety
/// As [`convert`].
#[inline(always)]
unsafe fn round_body<H: Lane<Wide = f32>>(l: &Lines<f32, H>) {
    // SAFETY: the caller's.
    unsafe { convert(l, H::narrow) }
}

isa_versions! {
    /// Rounds lines.
    fn round -> unsafe fn(&Lines<f32, H>) = round_body;
    generics [H: Lane<Wide = f32>] names [H] fast true; args (l: &Lines<f32, H>)
}
