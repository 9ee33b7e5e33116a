//! Matrix products over any strides: output blocks whose sizes depend on the shape alone, each computed by
//! one thread over the whole inner axis, so that results do not depend on the number of threads.
//!
//! Real blocks are computed by the tiles of [`block`], complex ones by the `gemm` crate, called serially; integers
//! by the plain loops here.

mod block;
mod dots;
mod pack;
mod shared;
mod tile;

use crate::kernel::moves::Shared;
use crate::kernel::num::Num;
use crate::kernel::walk::split;
use crate::par::Parallel;
use crate::{Bool, Complex32, Complex64, Element};

/// A matrix in memory: its first element and what a step along rows and columns adds.
pub struct Mat<T> {
    pub start: Shared<T>,
    pub row: isize,
    pub column: isize,
}

impl<T> Clone for Mat<T> {
    fn clone(&self) -> Mat<T> {
        *self
    }
}
impl<T> Copy for Mat<T> {}

impl<T> Mat<T> {
    pub fn new(start: *const T, row: isize, column: isize) -> Mat<T> {
        Mat { start: Shared(start.cast_mut()), row, column }
    }

    /// The matrix from row `i` and column `j` on.
    fn from(&self, i: usize, j: usize) -> Mat<T> {
        let offset = i as isize * self.row + j as isize * self.column;
        Mat { start: Shared(self.start.0.wrapping_offset(offset)), ..*self }
    }

    /// The transposed matrix.
    fn turned(&self) -> Mat<T> {
        Mat { row: self.column, column: self.row, ..*self }
    }

    fn shifted(&self, offset: isize) -> Mat<T> {
        Mat { start: Shared(self.start.0.wrapping_offset(offset)), ..*self }
    }
}

/// What happens to a product: whether it is added to what the result holds, and what is added last.
#[derive(Clone, Copy)]
pub struct Finish<T> {
    pub add: bool,
    /// A number for each column; may be null.
    pub bias: Shared<T>,
}

impl<T: Copy> Finish<T> {
    /// Sets the result.
    pub fn set() -> Finish<T> {
        Finish { add: false, bias: Shared(std::ptr::null_mut()) }
    }

    /// The finish of steps `from..to` of an inner axis of `k`.
    fn part(&self, from: usize, to: usize, k: usize) -> Finish<T> {
        let bias = if to == k { self.bias.0 } else { std::ptr::null_mut() };
        Finish { add: self.add || from > 0, bias: Shared(bias) }
    }

    /// The finish of the columns from `j` on.
    fn from(&self, j: usize) -> Finish<T> {
        let bias = if self.bias.0.is_null() { self.bias.0 } else { self.bias.0.wrapping_add(j) };
        Finish { bias: Shared(bias), ..*self }
    }
}

/// A type that matrices are multiplied in.
pub trait Product: Element + Num {
    /// `c = a b` for one block of m by n over k, all at least 1.
    ///
    /// # Safety
    /// The matrices are valid for their sizes; `c` overlaps neither of the others, and its columns lie side by side.
    unsafe fn block(sizes: [usize; 3], a: Mat<Self>, b: Mat<Self>, c: Mat<Self>, finish: Finish<Self>);

    /// One whole product with what its blocks have in common prepared once. False, and nothing done, where that
    /// does not pay.
    ///
    /// # Safety
    /// As [`Product::block`].
    unsafe fn whole(
        _sizes: [usize; 3],
        _a: Mat<Self>,
        _b: Mat<Self>,
        _c: Mat<Self>,
        _finish: Finish<Self>,
        _par: &dyn Parallel,
    ) -> bool {
        false
    }
}

macro_rules! by_tiles {
    ($($t:ty),*) => { $(
        impl Product for $t {
            unsafe fn block(sizes: [usize; 3], a: Mat<$t>, b: Mat<$t>, c: Mat<$t>, finish: Finish<$t>) {
                // SAFETY: the caller's.
                unsafe { block::block(sizes, a, b, c, finish) }
            }
            unsafe fn whole(
                sizes: [usize; 3],
                a: Mat<$t>,
                b: Mat<$t>,
                c: Mat<$t>,
                finish: Finish<$t>,
                par: &dyn Parallel,
            ) -> bool {
                // SAFETY: the caller's.
                unsafe { shared::product(sizes, a, b, c, finish, par) }
            }
        }
    )* };
}
by_tiles!(f32, f64);

/// Complex products below which calling the crate costs more than the work.
const TINY: usize = 1 << 9;

macro_rules! by_crate {
    ($($t:ty),*) => { $(
        impl Product for $t {
            unsafe fn block([m, n, k]: [usize; 3], a: Mat<$t>, b: Mat<$t>, c: Mat<$t>, finish: Finish<$t>) {
                if m * n * k <= TINY {
                    // SAFETY: the caller's.
                    return unsafe { plain([m, n, k], a, b, c, finish, |sum, x, y| sum + x * y, |x, y| x + y) };
                }
                let one = <$t>::new(1.0, 0.0);
                // SAFETY: the caller's; strides are those of the matrices.
                unsafe {
                    gemm::gemm(
                        m, n, k, c.start.0, c.column, c.row, finish.add, a.start.0, a.column, a.row,
                        b.start.0, b.column, b.row, one, one, false, false, false,
                        gemm::Parallelism::None,
                    );
                    add_bias(m, n, c, finish, |x, y| x + y);
                }
            }
        }
    )* };
}
by_crate!(Complex32, Complex64);

macro_rules! by_loop {
    ($($t:ty),*) => { $(
        impl Product for $t {
            unsafe fn block(sizes: [usize; 3], a: Mat<$t>, b: Mat<$t>, c: Mat<$t>, finish: Finish<$t>) {
                let step = |sum: $t, x: $t, y: $t| sum.wrapping_add(x.wrapping_mul(y));
                // SAFETY: the caller's.
                unsafe { plain(sizes, a, b, c, finish, step, <$t>::wrapping_add) }
            }
        }
    )* };
}
by_loop!(i8, i16, i32, i64, u8, u16, u32, u64);

impl Product for Bool {
    unsafe fn block(sizes: [usize; 3], a: Mat<Bool>, b: Mat<Bool>, c: Mat<Bool>, finish: Finish<Bool>) {
        let step = |sum: Bool, x: Bool, y: Bool| Bool::new(sum.get() | (x.get() & y.get()));
        // SAFETY: the caller's.
        unsafe { plain(sizes, a, b, c, finish, step, |x, y| Bool::new(x.get() | y.get())) }
    }
}

/// Row by row, so that the innermost loop runs along rows of `b` and `c`.
///
/// # Safety
/// As [`Product::block`].
#[inline(always)]
unsafe fn plain<T: Element>(
    [m, n, k]: [usize; 3],
    a: Mat<T>,
    b: Mat<T>,
    c: Mat<T>,
    finish: Finish<T>,
    step: impl Fn(T, T, T) -> T,
    add: impl Fn(T, T) -> T,
) {
    // SAFETY: indices stay within the matrices' sizes (the caller's contract); rows of `c` are contiguous.
    unsafe {
        for i in 0..m {
            let row = std::slice::from_raw_parts_mut(c.from(i, 0).start.0, n);
            if !finish.add {
                row.fill(T::default());
            }
            for l in 0..k {
                let x = *a.from(i, l).start.0;
                let other = b.from(l, 0).start.0;
                if b.column == 1 {
                    let other = std::slice::from_raw_parts(other, n);
                    row.iter_mut().zip(other).for_each(|(sum, &y)| *sum = step(*sum, x, y));
                } else {
                    for (j, sum) in row.iter_mut().enumerate() {
                        *sum = step(*sum, x, *other.wrapping_offset(j as isize * b.column));
                    }
                }
            }
        }
        add_bias(m, n, c, finish, add);
    }
}

/// # Safety
/// `c` is valid for m by n, its columns side by side.
unsafe fn add_bias<T: Element>(m: usize, n: usize, c: Mat<T>, finish: Finish<T>, add: impl Fn(T, T) -> T) {
    if finish.bias.0.is_null() {
        return;
    }
    for i in 0..m {
        for j in 0..n {
            // SAFETY: the caller's; there is a number for each column.
            unsafe {
                let to = c.from(i, j).start.0;
                *to = add(*to, *finish.bias.0.add(j));
            }
        }
    }
}

/// What a product costs, in multiply-adds of products that keep the vectors busy: reading an element of an operand
/// counts as well, which is most of the work where one operand is a vector.
fn cost([m, n, k]: [usize; 3]) -> usize {
    let reads = m.saturating_mul(k).saturating_add(k.saturating_mul(n)).saturating_add(m.saturating_mul(n));
    m.saturating_mul(n).saturating_mul(k).saturating_add(reads.saturating_mul(4))
}

/// The least cost of a chunk that another thread may take.
const CHUNK: usize = 3 << 17;

/// The size of output blocks: as many as threads may want, none so small that reading its operands would cost more
/// than its work. Rows are cut first where the right operand is small (`light`), columns where a block packs its own.
fn block_size([m, n, k]: [usize; 3], light: bool) -> (usize, usize) {
    let all = cost([m, n, k]);
    let target = (all / 4).clamp(CHUNK, 4 * CHUNK).max(all / 64);
    let (mut bm, mut bn) = (m.max(1), n.max(1));
    while cost([bm, bn, k]) > target && (bn > 48 || bm > 32) {
        // Multiples of 16 fill the registers of every instruction set.
        if bm <= 32 || bn > 96 && !light {
            bn = bn.div_ceil(2).next_multiple_of(16)
        } else {
            bm = bm.div_ceil(2).next_multiple_of(16)
        }
    }
    (bm, bn)
}

/// Parts of the inner axis that are summed apart: where the result is too small for many blocks, or has so few rows
/// that blocks would read short pieces of the right operand's rows.
fn inner_parts([m, n, k]: [usize; 3], row: isize) -> usize {
    let small = m.saturating_mul(n) <= 1 << 14 && (k >= 4096 || m <= 4 && row != 1);
    if !small { 1 } else { (cost([m, n, k]) / CHUNK).min(k / 128).clamp(1, 32) }
}

/// `c[i] = a[i] b[i]` for a batch of products of one size. `offsets` give where product i's operands and
/// result begin, counted from the matrices' first elements: (a, b, c). The bias is the same for all.
///
/// # Safety
/// The matrices are valid for their sizes at every offset; results overlap nothing else and have contiguous rows.
pub unsafe fn batched<T: Product>(
    sizes: [usize; 3],
    a: Mat<T>,
    b: Mat<T>,
    c: Mat<T>,
    finish: Finish<T>,
    offsets: &[[isize; 3]],
    par: &dyn Parallel,
) {
    let [m, n, k] = sizes;
    if m == 0 || n == 0 {
        return;
    }
    let at = |[x, y, z]: [isize; 3]| (a.shifted(x), b.shifted(y), c.shifted(z));
    if let [only] = *offsets
        && k > 0
    {
        let (a, b, c) = at(only);
        // SAFETY: the caller's.
        unsafe {
            if n == 1 && m > 1 && c.row == 1 && finish.bias.0.is_null() {
                let at = [[0; 3]];
                return batched([1, m, k], b.turned(), a.turned(), c.turned(), finish, &at, par);
            }
            let parts = inner_parts(sizes, b.row);
            if parts > 1 {
                return by_parts(sizes, parts, a, b, c, finish, par);
            }
            if T::whole(sizes, a, b, c, finish, par) {
                return;
            }
        }
    }
    let (bm, bn) = block_size(sizes, k.saturating_mul(n) <= 1 << 14);
    let (rows, columns) = (m.div_ceil(bm), n.div_ceil(bn));
    let blocks = rows * columns;
    let grain = CHUNK / cost([bm, bn, k]);
    split(par, offsets.len() * blocks, grain, |range| {
        for unit in range {
            let (product, i, j) = if blocks == 1 {
                (unit, 0, 0)
            } else {
                (unit / blocks, unit % blocks / columns * bm, unit % columns * bn)
            };
            let (a, b, c) = at(offsets[product]);
            let (a, b, c, finish) = (a.from(i, 0), b.from(0, j), c.from(i, j), finish.from(j));
            let (m, n) = (bm.min(m - i), bn.min(n - j));
            // SAFETY: blocks lie within the matrices and do not overlap each other.
            unsafe {
                if k == 0 {
                    plain([m, n, 0], a, b, c, finish, |sum, _, _| sum, T::add);
                } else {
                    T::block([m, n, k], a, b, c, finish);
                }
            }
        }
    });
}

/// One product as the sum of `parts` products over parts of the inner axis, added in their order.
///
/// # Safety
/// As [`batched`], with a result that has elements.
unsafe fn by_parts<T: Product>(
    [m, n, k]: [usize; 3],
    parts: usize,
    a: Mat<T>,
    b: Mat<T>,
    c: Mat<T>,
    finish: Finish<T>,
    par: &dyn Parallel,
) {
    let mut sums = vec![T::default(); m * n * parts];
    let target = Shared(sums.as_mut_ptr());
    split(par, parts, 1, |range| {
        for part in range {
            let (from, to) = (part * k / parts, (part + 1) * k / parts);
            // SAFETY: part `part` of the sums is this chunk's own.
            unsafe {
                let c = Mat::new(target.at((part * m * n) as isize).cast_const(), n as isize, 1);
                T::block([m, n, to - from], a.from(0, from), b.from(from, 0), c, Finish::set());
            }
        }
    });
    for i in 0..m {
        // SAFETY: row i of the result.
        let row = unsafe { std::slice::from_raw_parts_mut(c.from(i, 0).start.0, n) };
        for part in 0..parts {
            let sums = &sums[(part * m + i) * n..][..n];
            if part == 0 && !finish.add {
                row.copy_from_slice(sums);
            } else {
                row.iter_mut().zip(sums).for_each(|(sum, &x)| *sum = sum.add(x));
            }
        }
    }
    // SAFETY: the caller's.
    unsafe { add_bias(m, n, c, finish, T::add) };
}
