//! Large products: the right operand is packed once, by all threads, and every block of the result reads it.

use super::block::{DEPTH, PLACE, is_along, is_scattered, strip_of, strips};
use super::pack::{self, Copy, Panel};
use super::{After, Bands, CHUNK, Mat, cost};
use crate::kernel::moves::Shared;
use crate::kernel::walk::split;
use crate::par::Parallel;
use crate::simd::vector::{Wide, lanes};
use crate::storage::Buffer;

/// Rows of a block of the result.
const TALL: usize = 64;
/// The least rows and cost of a product that is worth preparing together.
const ROWS: usize = 96;
const COST: usize = 1 << 22;

/// `c = a b`, where preparing the operands once pays; false, and nothing done, elsewhere.
///
/// # Safety
/// The matrices are valid for the sizes, all at least 1; columns of `c` lie side by side, and it overlaps nothing
/// else.
pub unsafe fn product<T: Wide>(
    [m, n, k]: [usize; 3],
    a: Mat<T>,
    b: Mat<T>,
    c: Mat<T>,
    after: After<T>,
    par: &dyn Parallel,
) -> bool {
    let lanes = lanes::<T>();
    if is_along([m, n, k], &b)
        || m < ROWS
        || n < lanes
        || k <= 8
        || k * n * size_of::<T>() <= PLACE
        || cost([m, n, k]) < COST
    {
        return false;
    }
    let strips: Vec<(usize, usize)> = strips::<T>(m, n).collect();
    let width = n.next_multiple_of(lanes);
    let copy = is_scattered(&a).then(|| Copy::new(m, k, a));
    let room = width * k + copy.as_ref().map_or(0, Copy::size);
    let Some(buffer) = Buffer::new(room * size_of::<T>()) else { return false };
    let panels = Shared(buffer.as_ptr().cast::<T>());
    // Panel (from, j) holds `to - from` rows; panels of one depth lie side by side. The copy of `a` comes after all.
    let depths = k.div_ceil(DEPTH);
    let place = |from: usize, to: usize, j: usize| (width * from + j * (to - from)) as isize;
    let step = |d: usize| (d * DEPTH, k.min((d + 1) * DEPTH));
    // SAFETY: the copy begins where the panels end.
    let copied = Shared(unsafe { panels.at((width * k) as isize) });
    split(par, depths * strips.len(), (CHUNK / (16 * DEPTH * strips[0].1)).max(1), |range| {
        for unit in range {
            let ((from, to), (j, columns)) = (step(unit / strips.len()), strips[unit % strips.len()]);
            let width = columns.next_multiple_of(lanes);
            // SAFETY: panels lie side by side in the buffer, which has room for all.
            unsafe {
                let panel = panels.at(place(from, to, j));
                pack::panel(&Panel { rows: to - from, columns, from: b.from(from, j), to: panel, width });
            }
        }
    });
    if let Some(copy) = &copy {
        // A loop of its own: the rows that a thread copies are those it is going to multiply.
        let together = (DEPTH * strips[0].1).div_ceil(copy.size() / copy.lines());
        // SAFETY: lines of the copy, each chunk's own.
        split(par, copy.lines(), together, |lines| unsafe { copy.write(lines, copied.at(0)) });
    }
    // SAFETY: the copy's own place in the buffer.
    let a = copy.map_or(a, |copy| copy.at(unsafe { copied.at(0) }));
    let (tall, group) = blocks([m, n, k], strips.len());
    let (rows, columns) = (m.div_ceil(tall), strips.len().div_ceil(group));
    let wide = n.div_ceil(columns);
    let bands = Bands::new(after, n, [rows, columns], [tall, wide]);
    split(par, rows * columns, 1, |range| {
        for unit in range {
            let (i, first) = (unit / columns * tall, unit % columns * group);
            let m = tall.min(m - i);
            for (from, to) in (0..depths).map(step) {
                for &(j, columns) in strips.iter().skip(first).take(group) {
                    let wide = columns.next_multiple_of(lanes) as isize;
                    let sizes = [m, columns, to - from];
                    // SAFETY: blocks lie within the matrices and do not overlap each other; panels are written.
                    unsafe {
                        let panel = panels.at(place(from, to, j));
                        strip_of(sizes, a.from(i, from), (panel, wide, true), c.from(i, 0), j, from > 0);
                    }
                }
            }
            let from = strips[first].0;
            let to = strips.get(first + group).map_or(n, |strip| strip.0);
            // SAFETY: this unit's own block, finished.
            unsafe { bands.finished(i / tall, c.from(i, 0), from, [m, to - from]) };
        }
    });
    true
}

/// Rows of a block and strips of a block: as many blocks as threads may want.
fn blocks([m, n, k]: [usize; 3], strips: usize) -> (usize, usize) {
    let tall = m.div_ceil(m.div_ceil(TALL)).next_multiple_of(8);
    let target = (4 * CHUNK).max(cost([m, n, k]) / 64);
    let one = cost([tall, n.div_ceil(strips), k]);
    let group = (target / one).clamp(1, strips);
    // Blocks of nearly equal width.
    (tall, strips.div_ceil(strips.div_ceil(group)))
}
