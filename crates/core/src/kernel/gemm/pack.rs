//! Operands copied for a product: columns of the right one as panels of whole vectors, rows of the left one close
//! together. Knows no product.

use super::Mat;
use crate::simd::vector::{Vector, Wide};
use crate::with_vectors;

/// Some columns of a matrix, to become a panel: rows of `lanes` elements, zeros beyond the columns.
pub struct Panel<T> {
    pub rows: usize,
    pub columns: usize,
    pub from: Mat<T>,
    pub to: *mut T,
    /// Elements of a row of the panel: whole vectors.
    pub width: usize,
}

/// # Safety
/// As [`panel`].
#[inline(always)]
unsafe fn panel_body<V: Vector>(p: &Panel<V::Item>) {
    let from = p.from.start.0.cast_const();
    // SAFETY: the caller's; loads that reach beyond the columns are masked.
    unsafe {
        if p.from.column == 1 || p.columns == 1 {
            for i in 0..p.rows {
                let (from, to) = (from.wrapping_offset(i as isize * p.from.row), p.to.add(i * p.width));
                let mut j = 0;
                while j + V::LANES <= p.columns {
                    V::load(from.add(j)).store(to.add(j));
                    j += V::LANES;
                }
                if j < p.columns {
                    V::part(from.add(j), p.columns - j).store(to.add(j));
                }
            }
            return;
        }
        let mut done = 0;
        if p.from.row == 1 {
            let side = V::SIDE;
            while done + side <= p.columns {
                let from = from.wrapping_offset(done as isize * p.from.column);
                let whole = p.rows / side * side;
                for i in (0..whole).step_by(side) {
                    V::turn(from.add(i), p.from.column, p.to.add(i * p.width + done), p.width as isize);
                }
                for i in whole..p.rows {
                    for j in 0..side {
                        *p.to.add(i * p.width + done + j) =
                            *from.wrapping_offset(j as isize * p.from.column).add(i);
                    }
                }
                done += side;
            }
        }
        for i in 0..p.rows {
            for j in done..p.width {
                let at = i as isize * p.from.row + j as isize * p.from.column;
                *p.to.add(i * p.width + j) =
                    if j < p.columns { *from.wrapping_offset(at) } else { V::Item::default() };
            }
        }
    }
}

with_vectors! {
    /// Writes a panel.
    ///
    /// # Safety
    /// The matrix is valid for the rows and columns, `to` for `rows` times `width` elements; `width` is a whole
    /// number of vectors, no less than the columns.
    pub unsafe fn panel<T>(p: &Panel<T>) = panel_body
}

/// A copy of a left operand of `m` by `k`: rows (or columns, where these were contiguous) close together.
pub struct Copy<T> {
    m: usize,
    k: usize,
    from: Mat<T>,
    /// Whether the copy has columns of `m` elements rather than rows of `k`.
    turned: bool,
    step: usize,
}

impl<T: Wide> Copy<T> {
    pub fn new(m: usize, k: usize, from: Mat<T>) -> Copy<T> {
        let turned = from.row == 1 && from.column != 1;
        let n = if turned { m } else { k };
        // Lines a whole number of pages apart would share few places of the caches.
        let step = n.next_multiple_of(16) + if n % 512 < 16 || n % 512 > 496 { 16 } else { 0 };
        Copy { m, k, from, turned, step }
    }

    /// Lines of the copy.
    pub fn lines(&self) -> usize {
        if self.turned { self.k } else { self.m }
    }

    /// Elements it takes.
    pub fn size(&self) -> usize {
        self.lines() * self.step
    }

    /// The copy at `to`.
    pub fn at(&self, to: *mut T) -> Mat<T> {
        let step = self.step as isize;
        if self.turned { Mat::new(to, 1, step) } else { Mat::new(to, step, 1) }
    }

    /// Writes some of its lines.
    ///
    /// # Safety
    /// The matrix is valid; `to`, the start of the whole copy, has room for it.
    pub unsafe fn write(&self, lines: std::ops::Range<usize>, to: *mut T) {
        let n = if self.turned { self.m } else { self.k };
        let a = if self.turned { self.from.turned() } else { self.from };
        for i in lines {
            let from = a.from(i, 0).start.0;
            // SAFETY: line i of the matrix and of the copy (the caller's contract).
            unsafe {
                let to = to.add(i * self.step);
                if a.column == 1 {
                    std::ptr::copy_nonoverlapping(from, to, n);
                    continue;
                }
                for p in 0..n {
                    *to.add(p) = *from.wrapping_offset(p as isize * a.column);
                }
            }
        }
    }
}
