//! Walking several layouts of one shape together, in rows that are as long as the strides allow, and the
//! rule by which a loop is cut into chunks. Moves no element itself.
#![allow(clippy::needless_range_loop)] // operands of one index are walked side by side

use crate::par::Parallel;
use crate::shape::Shape;
use smallvec::SmallVec;
use std::ops::Range;

/// Elements that a chunk of a parallel loop handles at least, where one costs about a nanosecond.
pub const GRAIN: usize = 1 << 15;

/// Calls `body` with consecutive ranges of at most `grain` that cover `0..total`.
pub fn split<F: Fn(Range<usize>) + Sync>(par: &dyn Parallel, total: usize, grain: usize, body: F) {
    let grain = grain.max(1);
    let chunks = total.div_ceil(grain);
    match chunks {
        0 => {}
        1 => body(0..total),
        _ => par.run(chunks, &|i| body(i * grain..((i + 1) * grain).min(total))),
    }
}

/// N operands of one shape, with axes of size 1 dropped and axes merged where every operand allows it.
pub struct Walk<const N: usize> {
    shape: Shape,
    strides: SmallVec<[[isize; N]; 6]>,
    size: usize,
}

impl<const N: usize> Walk<N> {
    /// `strides[k]` are operand k's, one for each axis of `shape`.
    pub fn new(shape: &[usize], strides: [&[isize]; N]) -> Walk<N> {
        let mut walk = Walk { shape: Shape::new(), strides: SmallVec::new(), size: shape.iter().product() };
        for (axis, &n) in shape.iter().enumerate() {
            let here: [isize; N] = std::array::from_fn(|k| strides[k][axis]);
            if n == 1 {
                continue;
            }
            let merges = walk
                .strides
                .last()
                .is_some_and(|last| (0..N).all(|k| last[k] == here[k].wrapping_mul(n as isize)));
            if merges {
                let last = walk.shape.len() - 1;
                walk.shape[last] *= n;
                walk.strides[last] = here;
            } else {
                walk.shape.push(n);
                walk.strides.push(here);
            }
        }
        if walk.shape.is_empty() {
            walk.shape.push(1);
            walk.strides.push([0; N]);
        }
        walk
    }

    /// The length of a row, and how far each operand steps along it.
    pub fn inner(&self) -> (usize, [isize; N]) {
        let last = self.shape.len() - 1;
        (self.shape[last], self.strides[last])
    }

    /// Calls `body(offsets, n)` for pieces of rows: `offsets[k]` is operand k's first element, counted from
    /// element zero of its view; `n` elements follow along the inner axis. A chunk has about `grain` elements.
    pub fn run<F: Fn([isize; N], usize) + Sync>(&self, par: &dyn Parallel, grain: usize, body: F) {
        if self.size == 0 {
            return;
        }
        let (inner, step) = self.inner();
        let piece = inner.min(grain.max(1));
        let pieces = inner.div_ceil(piece);
        let units = (self.size / inner) * pieces;
        split(par, units, (grain / piece).max(1), |range| {
            let mut part = range.start % pieces;
            let (mut index, mut at) = self.seek(range.start / pieces);
            for _ in range {
                let start = part * piece;
                let offsets = std::array::from_fn(|k| at[k] + start as isize * step[k]);
                body(offsets, piece.min(inner - start));
                part += 1;
                if part == pieces {
                    part = 0;
                    self.advance(&mut index, &mut at);
                }
            }
        });
    }

    /// The odometer at row `row`.
    fn seek(&self, mut row: usize) -> (SmallVec<[usize; 6]>, [isize; N]) {
        let outer = self.shape.len() - 1;
        let mut index: SmallVec<[usize; 6]> = SmallVec::from_elem(0, outer);
        let mut at = [0isize; N];
        for axis in (0..outer).rev() {
            index[axis] = row % self.shape[axis];
            row /= self.shape[axis];
            for k in 0..N {
                at[k] += index[axis] as isize * self.strides[axis][k];
            }
        }
        (index, at)
    }

    fn advance(&self, index: &mut [usize], at: &mut [isize; N]) {
        for axis in (0..index.len()).rev() {
            index[axis] += 1;
            for k in 0..N {
                at[k] += self.strides[axis][k];
            }
            if index[axis] < self.shape[axis] {
                return;
            }
            for k in 0..N {
                at[k] -= self.shape[axis] as isize * self.strides[axis][k];
            }
            index[axis] = 0;
        }
    }
}

/// The offset of every element of a shape with these strides, in row-major order, from element zero.
pub fn offsets(shape: &[usize], strides: &[isize]) -> Vec<isize> {
    let mut out = Vec::with_capacity(shape.iter().product());
    let walk = Walk::new(shape, [strides]);
    let (inner, [step]) = walk.inner();
    if walk.size == 0 {
        return out;
    }
    let (mut index, mut at) = walk.seek(0);
    for _ in 0..walk.size / inner {
        out.extend((0..inner).map(|i| at[0] + i as isize * step));
        walk.advance(&mut index, &mut at);
    }
    out
}
