//! Matrix products over any strides: output blocks whose sizes depend on the shape alone, each computed by
//! one thread over the whole inner axis, so that results do not depend on the number of threads.
//!
//! Real blocks are computed by the tiles of [`block`] (half types through float32, piece by piece), complex ones by the
//! `gemm` crate, called serially; integers by the plain loops here.

mod block;
mod dots;
mod half;
mod pack;
mod shared;
mod tile;

use crate::kernel::moves::Shared;
use crate::kernel::num::Num;
use crate::kernel::tail::Tail;
use crate::kernel::walk::split;
use crate::par::Parallel;
use crate::{Bool, Complex32, Complex64, Element, bf16, f16};
use std::sync::atomic::{AtomicUsize, Ordering::AcqRel};

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

/// What runs over each block of the result once it is finished.
#[derive(Clone, Copy)]
pub struct After<'a, T> {
    tail: Option<&'a Tail<'a>>,
    /// Element 0 of the tail.
    origin: Shared<T>,
}

impl<T> After<'_, T> {
    /// The block `c` of m by n is finished.
    ///
    /// # Safety
    /// It is, and lies in the tail's result; nobody else says so.
    unsafe fn finished(&self, c: Mat<T>, m: usize, n: usize) {
        if let Some(tail) = self.tail {
            // SAFETY: both addresses lie in the result.
            let first = unsafe { c.start.0.offset_from(self.origin.0) } as usize;
            // SAFETY: the caller's.
            unsafe { tail.run(first, m, n, c.row as usize) };
        }
    }
}

/// A result that is computed block by block, in bands of rows. A tail goes over a band once its last block is there,
/// since short pieces of rows would cost it more than the elements in them.
struct Bands<'a, T> {
    after: After<'a, T>,
    /// Columns of the result.
    width: usize,
    /// How many blocks of each band are not finished; empty where the tail goes over each block by itself.
    left: Vec<AtomicUsize>,
}

/// Columns of a block from which its pieces of rows are long.
const LONG: usize = 512;

impl<'a, T> Bands<'a, T> {
    /// `bands` times `columns` blocks of `tall` rows and `wide` columns, but for the last ones.
    fn new(
        after: After<'a, T>,
        width: usize,
        [bands, columns]: [usize; 2],
        [tall, wide]: [usize; 2],
    ) -> Self {
        let waits = after.tail.is_some() && columns > 1 && tall > 1 && wide < LONG;
        let left = (0..if waits { bands } else { 0 }).map(|_| AtomicUsize::new(columns)).collect();
        Bands { after, width, left }
    }

    /// The block of `n` columns from column `j` on in a band of `m` rows from `c` on is finished.
    ///
    /// # Safety
    /// As [`After::finished`].
    unsafe fn finished(&self, band: usize, c: Mat<T>, j: usize, [m, n]: [usize; 2]) {
        // SAFETY: the caller's; whoever finishes a band's last block has seen the others'.
        unsafe {
            match self.left.get(band) {
                None => self.after.finished(c.from(0, j), m, n),
                Some(left) if left.fetch_sub(1, AcqRel) == 1 => self.after.finished(c, m, self.width),
                Some(_) => {}
            }
        }
    }
}

/// A type that matrices are multiplied in.
pub trait Product: Element {
    /// How two sums become one; None where sums are kept in a wider type, and a block is never added to.
    const ADD: Option<fn(Self, Self) -> Self>;

    /// `c = a b`, or `c += a b` to `add`, for one block of m by n over k, all at least 1.
    ///
    /// # Safety
    /// The matrices are valid for their sizes; `c` overlaps neither of the others, and its columns lie side by side.
    unsafe fn block(sizes: [usize; 3], a: Mat<Self>, b: Mat<Self>, c: Mat<Self>, add: bool);

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
        _after: After<Self>,
        _par: &dyn Parallel,
    ) -> bool {
        false
    }
}

macro_rules! by_tiles {
    ($($t:ty),*) => { $(
        impl Product for $t {
            const ADD: Option<fn($t, $t) -> $t> = Some(Num::add);
            unsafe fn block(sizes: [usize; 3], a: Mat<$t>, b: Mat<$t>, c: Mat<$t>, add: bool) {
                // SAFETY: the caller's.
                unsafe { block::block(sizes, a, b, c, add) }
            }
            unsafe fn whole(
                sizes: [usize; 3],
                a: Mat<$t>,
                b: Mat<$t>,
                c: Mat<$t>,
                after: After<$t>,
                par: &dyn Parallel,
            ) -> bool {
                // SAFETY: the caller's.
                unsafe { shared::product(sizes, a, b, c, after, par) }
            }
        }
    )* };
}
by_tiles!(f32, f64);

macro_rules! by_widening {
    ($($t:ty),*) => { $(
        impl Product for $t {
            const ADD: Option<fn($t, $t) -> $t> = None;
            unsafe fn block(sizes: [usize; 3], a: Mat<$t>, b: Mat<$t>, c: Mat<$t>, add: bool) {
                debug_assert!(!add, "a sum in parts would be rounded more than once");
                // SAFETY: the caller's.
                unsafe { half::block(sizes, a, b, c) }
            }
        }
    )* };
}
by_widening!(f16, bf16);

/// Complex products below which calling the crate costs more than the work.
const TINY: usize = 1 << 9;

macro_rules! by_crate {
    ($($t:ty),*) => { $(
        impl Product for $t {
            const ADD: Option<fn($t, $t) -> $t> = Some(Num::add);
            unsafe fn block([m, n, k]: [usize; 3], a: Mat<$t>, b: Mat<$t>, c: Mat<$t>, add: bool) {
                if m * n * k <= TINY {
                    // SAFETY: the caller's.
                    return unsafe { plain([m, n, k], a, b, c, add, |sum, x, y| sum + x * y) };
                }
                let one = <$t>::new(1.0, 0.0);
                // SAFETY: the caller's; strides are those of the matrices.
                unsafe {
                    gemm::gemm(
                        m, n, k, c.start.0, c.column, c.row, add, a.start.0, a.column, a.row,
                        b.start.0, b.column, b.row, one, one, false, false, false,
                        gemm::Parallelism::None,
                    );
                }
            }
        }
    )* };
}
by_crate!(Complex32, Complex64);

macro_rules! by_loop {
    ($($t:ty),*) => { $(
        impl Product for $t {
            const ADD: Option<fn($t, $t) -> $t> = Some(Num::add);
            unsafe fn block(sizes: [usize; 3], a: Mat<$t>, b: Mat<$t>, c: Mat<$t>, add: bool) {
                let step = |sum: $t, x: $t, y: $t| sum.wrapping_add(x.wrapping_mul(y));
                // SAFETY: the caller's.
                unsafe { plain(sizes, a, b, c, add, step) }
            }
        }
    )* };
}
by_loop!(i8, i16, i32, i64, u8, u16, u32, u64);

impl Product for Bool {
    const ADD: Option<fn(Bool, Bool) -> Bool> = Some(Num::add);

    unsafe fn block(sizes: [usize; 3], a: Mat<Bool>, b: Mat<Bool>, c: Mat<Bool>, add: bool) {
        let step = |sum: Bool, x: Bool, y: Bool| Bool::new(sum.get() | (x.get() & y.get()));
        // SAFETY: the caller's.
        unsafe { plain(sizes, a, b, c, add, step) }
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
    add: bool,
    step: impl Fn(T, T, T) -> T,
) {
    // SAFETY: indices stay within the matrices' sizes (the caller's contract); rows of `c` are contiguous.
    unsafe {
        for i in 0..m {
            let row = std::slice::from_raw_parts_mut(c.from(i, 0).start.0, n);
            if !add {
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
/// result begin, counted from the matrices' first elements: (a, b, c). The tail runs over what is finished; its
/// element 0 is `c`'s first.
///
/// # Safety
/// The matrices are valid for their sizes at every offset; results overlap nothing else and have contiguous rows. With
/// a tail, they are one contiguous array.
pub unsafe fn batched<T: Product>(
    sizes: [usize; 3],
    a: Mat<T>,
    b: Mat<T>,
    c: Mat<T>,
    offsets: &[[isize; 3]],
    tail: Option<&Tail>,
    par: &dyn Parallel,
) {
    let [m, n, k] = sizes;
    if m == 0 || n == 0 {
        return;
    }
    let after = After { tail, origin: c.start };
    let at = |[x, y, z]: [isize; 3]| (a.shifted(x), b.shifted(y), c.shifted(z));
    if let [only] = *offsets
        && k > 0
    {
        let (a, b, c) = at(only);
        // SAFETY: the caller's.
        unsafe {
            if n == 1 && m > 1 && c.row == 1 {
                let at = [[0; 3]];
                return batched([1, m, k], b.turned(), a.turned(), c.turned(), &at, tail, par);
            }
            let parts = inner_parts(sizes, b.row);
            if let (Some(add), 2..) = (T::ADD, parts) {
                by_parts(sizes, parts, add, a, b, c, par);
                return after.finished(c, m, n);
            }
            if T::whole(sizes, a, b, c, after, par) {
                return;
            }
        }
    }
    let (bm, bn) = block_size(sizes, k.saturating_mul(n) <= 1 << 14);
    let (rows, columns) = (m.div_ceil(bm), n.div_ceil(bn));
    let blocks = rows * columns;
    let grain = CHUNK / cost([bm, bn, k]);
    let bands = Bands::new(after, n, [offsets.len() * rows, columns], [bm, bn]);
    split(par, offsets.len() * blocks, grain, |range| {
        for unit in range {
            let (product, i, j) = if blocks == 1 {
                (unit, 0, 0)
            } else {
                (unit / blocks, unit % blocks / columns * bm, unit % columns * bn)
            };
            let (a, b, c) = at(offsets[product]);
            let (a, b, whole, c) = (a.from(i, 0), b.from(0, j), c.from(i, 0), c.from(i, j));
            let (m, n) = (bm.min(m - i), bn.min(n - j));
            // SAFETY: blocks lie within the matrices and do not overlap each other.
            unsafe {
                if k == 0 {
                    plain([m, n, 0], a, b, c, false, |sum, _, _| sum);
                } else {
                    T::block([m, n, k], a, b, c, false);
                }
                bands.finished(product * rows + i / bm, whole, j, [m, n]);
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
    add: fn(T, T) -> T,
    a: Mat<T>,
    b: Mat<T>,
    c: Mat<T>,
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
                T::block([m, n, to - from], a.from(0, from), b.from(from, 0), c, false);
            }
        }
    });
    for i in 0..m {
        // SAFETY: row i of the result.
        let row = unsafe { std::slice::from_raw_parts_mut(c.from(i, 0).start.0, n) };
        for part in 0..parts {
            let sums = &sums[(part * m + i) * n..][..n];
            if part == 0 {
                row.copy_from_slice(sums);
            } else {
                row.iter_mut().zip(sums).for_each(|(sum, &x)| *sum = add(*sum, x));
            }
        }
    }
}
