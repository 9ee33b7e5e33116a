//! Matrix products over any strides: output blocks whose sizes depend on the shape alone, each computed by
//! one thread over the whole inner axis, so that results do not depend on the number of threads.
//!
//! Floating and complex blocks go to the `gemm` crate, called serially; tiny ones and integers to the plain
//! loops here.

use crate::kernel::moves::Shared;
use crate::kernel::walk::split;
use crate::par::Parallel;
use crate::{Bool, Complex32, Complex64, Element};

/// A matrix in memory: its first element and what a step along rows and columns adds.
#[derive(Clone, Copy)]
pub struct Mat<T> {
    pub start: Shared<T>,
    pub row: isize,
    pub column: isize,
}

impl<T> Mat<T> {
    pub fn new(start: *const T, row: isize, column: isize) -> Mat<T> {
        Mat { start: Shared(start.cast_mut()), row, column }
    }

    /// The matrix from row `i` and column `j` on.
    fn from(&self, i: usize, j: usize) -> Mat<T> {
        let offset = i as isize * self.row + j as isize * self.column;
        Mat { start: Shared(self.start.0.wrapping_offset(offset)), ..*self }
    }

    fn shifted(&self, offset: isize) -> Mat<T> {
        Mat { start: Shared(self.start.0.wrapping_offset(offset)), ..*self }
    }
}

/// A type that matrices are multiplied in.
pub trait Product: Element {
    /// `c = a b`, for one block of m by n over k.
    ///
    /// # Safety
    /// The matrices are valid for their sizes; `c` overlaps neither of the others.
    unsafe fn block(m: usize, n: usize, k: usize, c: Mat<Self>, a: Mat<Self>, b: Mat<Self>);
}

/// Products below which calling the crate costs more than the work.
const TINY: usize = 1 << 9;

macro_rules! by_crate {
    ($($t:ty, $zero:expr, $one:expr);*) => { $(
        impl Product for $t {
            unsafe fn block(m: usize, n: usize, k: usize, c: Mat<$t>, a: Mat<$t>, b: Mat<$t>) {
                if m * n * k <= TINY {
                    // SAFETY: the caller's.
                    return unsafe { plain(m, n, k, c, a, b, $zero, |sum, x, y| sum + x * y) };
                }
                // SAFETY: the caller's; strides are those of the matrices.
                unsafe {
                    gemm::gemm(
                        m, n, k, c.start.0, c.column, c.row, false, a.start.0, a.column, a.row,
                        b.start.0, b.column, b.row, $zero, $one, false, false, false,
                        gemm::Parallelism::None,
                    )
                }
            }
        }
    )* };
}
by_crate!(f32, 0.0, 1.0; f64, 0.0, 1.0; Complex32, Complex32::new(0.0, 0.0), Complex32::new(1.0, 0.0);
    Complex64, Complex64::new(0.0, 0.0), Complex64::new(1.0, 0.0));

macro_rules! by_loop {
    ($($t:ty),*) => { $(
        impl Product for $t {
            unsafe fn block(m: usize, n: usize, k: usize, c: Mat<$t>, a: Mat<$t>, b: Mat<$t>) {
                // SAFETY: the caller's.
                unsafe {
                    plain(m, n, k, c, a, b, 0, |sum: $t, x: $t, y: $t| sum.wrapping_add(x.wrapping_mul(y)))
                }
            }
        }
    )* };
}
by_loop!(i8, i16, i32, i64, u8, u16, u32, u64);

impl Product for Bool {
    unsafe fn block(m: usize, n: usize, k: usize, c: Mat<Bool>, a: Mat<Bool>, b: Mat<Bool>) {
        let step = |sum: Bool, x: Bool, y: Bool| Bool::new(sum.get() || (x.get() && y.get()));
        // SAFETY: the caller's.
        unsafe { plain(m, n, k, c, a, b, Bool::new(false), step) }
    }
}

/// Row by row, so that the innermost loop runs along rows of `b` and `c`.
///
/// # Safety
/// As [`Product::block`].
#[inline(always)]
unsafe fn plain<T: Element>(
    m: usize,
    n: usize,
    k: usize,
    c: Mat<T>,
    a: Mat<T>,
    b: Mat<T>,
    zero: T,
    step: impl Fn(T, T, T) -> T,
) {
    // SAFETY: indices stay within the matrices' sizes (the caller's contract).
    unsafe {
        for i in 0..m {
            let row = c.from(i, 0).start.0;
            for j in 0..n as isize {
                *row.offset(j * c.column) = zero;
            }
            for l in 0..k {
                let x = *a.from(i, l).start.0;
                let other = b.from(l, 0).start.0;
                if c.column == 1 && b.column == 1 {
                    let (row, other) =
                        (std::slice::from_raw_parts_mut(row, n), std::slice::from_raw_parts(other, n));
                    row.iter_mut().zip(other).for_each(|(sum, &y)| *sum = step(*sum, x, y));
                } else {
                    for j in 0..n as isize {
                        let sum = row.offset(j * c.column);
                        *sum = step(*sum, x, *other.offset(j * b.column));
                    }
                }
            }
        }
    }
}

/// The size of output blocks: about 32 of them for a big product, none so small that packing its operands
/// would cost more than its work.
fn block_size(m: usize, n: usize, k: usize) -> (usize, usize) {
    let work = m.saturating_mul(n).saturating_mul(k);
    let target = (work / 32).max(1 << 20);
    let (mut bm, mut bn) = (m.max(1), n.max(1));
    while bm * bn * k > target && bm.max(bn) > 64 {
        // Multiples of 16 fill the registers of every instruction set.
        if bm >= bn {
            bm = bm.div_ceil(2).next_multiple_of(16)
        } else {
            bn = bn.div_ceil(2).next_multiple_of(16)
        }
    }
    (bm, bn)
}

/// `c[i] = a[i] b[i]` for a batch of products of one size. `offsets` give where product i's operands and
/// result begin, counted from the matrices' first elements: (a, b, c).
///
/// # Safety
/// The matrices are valid for their sizes at every offset; results overlap nothing else.
pub unsafe fn batched<T: Product>(
    sizes: [usize; 3],
    a: Mat<T>,
    b: Mat<T>,
    c: Mat<T>,
    offsets: &[[isize; 3]],
    par: &dyn Parallel,
) {
    let [m, n, k] = sizes;
    if m == 0 || n == 0 {
        return;
    }
    let (bm, bn) = block_size(m, n, k);
    let (rows, columns) = (m.div_ceil(bm), n.div_ceil(bn));
    let blocks = rows * columns;
    let grain = ((1usize << 18) / (bm * bn * k.max(1))).max(1);
    split(par, offsets.len() * blocks, grain, |range| {
        for unit in range {
            let ([x, y, z], block) = (offsets[unit / blocks], unit % blocks);
            let (i, j) = (block / columns * bm, block % columns * bn);
            let (a, b, c) = (a.shifted(x).from(i, 0), b.shifted(y).from(0, j), c.shifted(z).from(i, j));
            // SAFETY: blocks lie within the matrices and do not overlap each other.
            unsafe {
                if k == 0 {
                    zero(bm.min(m - i), bn.min(n - j), c);
                } else {
                    T::block(bm.min(m - i), bn.min(n - j), k, c, a, b);
                }
            }
        }
    });
}

/// # Safety
/// `c` is valid for m by n.
unsafe fn zero<T: Element>(m: usize, n: usize, c: Mat<T>) {
    for i in 0..m {
        for j in 0..n {
            // SAFETY: the caller's.
            unsafe { *c.from(i, j).start.0 = T::default() };
        }
    }
}
