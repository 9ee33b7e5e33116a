//! The kernels of softmax and its kin, and of their gradients: a line is read once, its exponentials stay near, and
//! the result is written once. Sums are of up to 1024 elements in lanes, and of those in float64.
//!
//! Rationale: of short rows several are taken together, one step of all before the next step of any, so that the
//! machine need not wait for one row's greatest element, sum and quotient in turn.

use super::{Softmax, SoftmaxBack};
use crate::kernel::along::{self, Lines, ROWS};
use crate::kernel::lane::Lane;
use crate::kernel::math;
use crate::kernel::moves::dense;
use crate::kernel::num::{Float, Num, Ordered};
use crate::kernel::packed::{LEAF, SIDE, WIDEST, load, some, some_wide, store, store_wide, total};
use crate::op::KernelArgs;
use crate::shape::check_axis;
use crate::simd::float::FloatVector;
use crate::simd::vector::Wide;
use crate::{Result, isa_versions, with_type};

/// Lines of a block whose sums are kept in the element's own precision.
const LINES: usize = 64;

pub fn softmax(a: &KernelArgs) -> Result<()> {
    with_type!(floats a.out(0).dtype, T => forward::<T, false>(a, 1.0), else {});
    Ok(())
}

pub fn softmin(a: &KernelArgs) -> Result<()> {
    with_type!(floats a.out(0).dtype, T => forward::<T, false>(a, -1.0), else {});
    Ok(())
}

pub fn log_softmax(a: &KernelArgs) -> Result<()> {
    with_type!(floats a.out(0).dtype, T => forward::<T, true>(a, 1.0), else {});
    Ok(())
}

fn forward<T: Lane<Wide: Float + Wide>, const LOG: bool>(a: &KernelArgs, sign: f64) {
    let attrs = a.attrs.get::<Softmax>();
    let axis = check_axis("", attrs.axis, a.out(0).layout.ndim()).unwrap_or(0);
    let lengths = a.ins.get(1).map(|length| dense::<i64>(length, a.par).into_owned());
    let kernel = Forward::<T> {
        form: Form { sign: T::Wide::of(sign), scale: T::Wide::of(attrs.scale()) },
        lengths,
        rows: forward_rows::<T, LOG>(),
        block: [forward_block::<T::Wide, LOG, 16>(), forward_block::<T::Wide, LOG, 64>()],
    };
    along::run([&a.ins[0]], &a.out(0), axis, a.par, &kernel);
}

/// The sign of elements, and what the distance from the greatest is multiplied by.
#[derive(Clone, Copy)]
struct Form<W> {
    sign: W,
    scale: W,
}

type RowsOf<T, W> = unsafe fn(*const T, [usize; 2], Form<W>, *mut T, *mut W);
type BlockOf<W> = unsafe fn(*mut W, usize, Form<W>);

struct Forward<T: Lane> {
    form: Form<T::Wide>,
    /// How many elements count, line by line.
    lengths: Option<Vec<i64>>,
    rows: RowsOf<T, T::Wide>,
    block: [BlockOf<T::Wide>; 2],
}

// SAFETY: numbers and functions.
unsafe impl<T: Lane> Sync for Forward<T> {}

impl<T: Lane<Wide: Float>> Lines<T, 1> for Forward<T> {
    unsafe fn rows(
        &self,
        first: usize,
        count: usize,
        [x]: [*const T; 1],
        n: usize,
        out: *mut T,
        scratch: *mut T::Wide,
    ) {
        let Some(lengths) = &self.lengths else {
            // SAFETY: the caller's.
            return unsafe { (self.rows)(x, [count, n], self.form, out, scratch) };
        };
        for r in 0..count {
            let some = lengths[first + r].clamp(0, n as i64) as usize;
            // SAFETY: a row of the caller's.
            unsafe {
                let out = out.add(r * n);
                (self.rows)(x.add(r * n), [1, some], self.form, out, scratch);
                for i in some..n {
                    *out.add(i) = T::default();
                }
            }
        }
    }

    unsafe fn block(&self, blocks: [*mut T::Wide; 1], n: usize, side: usize) {
        // SAFETY: the caller's.
        unsafe { (self.block[usize::from(side == 64)])(blocks[0], n, self.form) }
    }

    fn has_blocks(&self) -> bool {
        self.lengths.is_none()
    }
}

/// The greatest of `n` elements times `sign`. NaN loses here, and comes back with the subtraction.
///
/// # Safety
/// As `Vector`'s, of `n` elements.
#[inline(always)]
unsafe fn peak<T: Lane<Wide: Float>, V: FloatVector<Item = T::Wide>>(
    x: *const T,
    n: usize,
    sign: V,
) -> V::Item {
    // SAFETY: the caller's.
    unsafe {
        let least = V::splat(V::Item::LEAST);
        let mut top = [least; SIDE];
        let mut at = 0;
        while at + SIDE * V::LANES <= n {
            for j in 0..SIDE {
                top[j] = load::<T, V>(x.add(at + j * V::LANES)).mul(sign).max(top[j]);
            }
            at += SIDE * V::LANES;
        }
        while at < n {
            top[0] = some::<T, V>(x.add(at), n - at, least.mul(sign)).mul(sign).max(top[0]);
            at += V::LANES;
        }
        top[0].max(top[1]).max(top[2].max(top[3])).greatest()
    }
}

/// What a row's loops are told: the sign, the greatest element, the scale.
#[derive(Clone, Copy)]
struct Shift<V> {
    sign: V,
    peak: V,
    scale: V,
}

/// The scaled distance from the greatest element.
///
/// # Safety
/// As `Vector`'s.
#[inline(always)]
unsafe fn fall<V: FloatVector>(x: V, s: Shift<V>) -> V {
    // SAFETY: the caller's.
    unsafe { x.mul(s.sign).sub(s.peak).mul(s.scale) }
}

/// The sum of exponentials of a row, which go to `to`, unless logarithms are wanted.
///
/// # Safety
/// As `Vector`'s, of `n` elements.
#[inline(always)]
unsafe fn exponentials<T: Lane<Wide: Float>, const LOG: bool, V: FloatVector<Item = T::Wide>>(
    x: *const T,
    n: usize,
    s: Shift<V>,
    to: *mut T::Wide,
) -> f64 {
    let (mut sum, mut at) = (0.0, 0);
    // SAFETY: the caller's.
    unsafe {
        // Beyond a row's end exponentials are 0.
        let none = V::splat(V::Item::LEAST).mul(s.sign);
        while at < n {
            let end = n.min(at + LEAF);
            let mut sums = [V::zero(); SIDE];
            while at + SIDE * V::LANES <= end {
                for j in 0..SIDE {
                    let i = at + j * V::LANES;
                    let e = math::decay(fall(load::<T, V>(x.add(i)), s));
                    if !LOG {
                        e.store(to.add(i));
                    }
                    sums[j] = sums[j].add(e);
                }
                at += SIDE * V::LANES;
            }
            while at < end {
                let e = math::decay(fall(some::<T, V>(x.add(at), end - at, none), s));
                if !LOG {
                    store_wide(e, to.add(at), end - at);
                }
                sums[0] = sums[0].add(e);
                at += V::LANES;
            }
            at = end;
            sum += total(sums);
        }
    }
    sum
}

/// # Safety
/// `count` rows of `n` elements are readable from `x` and writable from `y`; `buffer` has room for them.
#[inline(always)]
unsafe fn forward_body<T: Lane<Wide: Float>, const LOG: bool, V: FloatVector<Item = T::Wide>>(
    x: *const T,
    [count, n]: [usize; 2],
    form: Form<T::Wide>,
    y: *mut T,
    buffer: *mut T::Wide,
) {
    let mut peaks = [T::Wide::ZERO; ROWS];
    let mut sums = [0f64; ROWS];
    let mut numbers = [T::Wide::ZERO; ROWS];
    // SAFETY: the caller's.
    unsafe {
        let (sign, scale) = (V::splat(form.sign), V::splat(form.scale));
        for r in 0..count {
            peaks[r] = peak::<T, V>(x.add(r * n), n, sign);
        }
        for r in 0..count {
            let s = Shift { sign, peak: V::splat(peaks[r]), scale };
            sums[r] = exponentials::<T, LOG, V>(x.add(r * n), n, s, buffer.add(r * n));
        }
        for r in 0..count.min(ROWS) {
            numbers[r] = T::Wide::of(if LOG { math::log(sums[r]) } else { 1.0 / sums[r] });
        }
        for r in 0..count {
            let s = Shift { sign, peak: V::splat(peaks[r]), scale };
            let (number, first) = (V::splat(numbers[r]), r * n);
            let mut at = 0;
            while at < n {
                let i = first + at;
                let v = if LOG {
                    fall(some::<T, V>(x.add(i), n - at, s.peak), s).sub(number)
                } else {
                    some_wide(buffer.add(i), n - at, number).mul(number)
                };
                store::<T, V>(v, y.add(i), n - at);
                at += V::LANES;
            }
        }
    }
}

isa_versions! {
    fn forward_rows -> RowsOf<T, T::Wide> = forward_body;
    generics [T: Lane<Wide: Float + Wide>, const LOG: bool] names [T, LOG]
    vectors [T::Wide] fast true;
    args (x: *const T, sizes: [usize; 2], form: Form<T::Wide>, y: *mut T, buffer: *mut T::Wide)
}

/// # Safety
/// `block` holds `n` rows of `P`.
#[inline(always)]
unsafe fn forward_block_body<W: Float, const LOG: bool, const P: usize, V: FloatVector<Item = W>>(
    block: *mut W,
    n: usize,
    form: Form<W>,
) {
    for first in (0..P).step_by(V::LANES) {
        let (mut totals, mut pad) = ([0f64; WIDEST], [W::ZERO; WIDEST]);
        // SAFETY: a column of vectors of the block; the pad holds the widest.
        unsafe {
            let column = block.add(first);
            let sign = V::splat(form.sign);
            let mut peak = V::splat(W::LEAST);
            for i in 0..n {
                peak = V::load(column.add(i * P)).mul(sign).max(peak);
            }
            let s = Shift { sign, peak, scale: V::splat(form.scale) };
            let mut i = 0;
            while i < n {
                let end = n.min(i + LINES);
                let mut sums = V::zero();
                while i < end {
                    let t = fall(V::load(column.add(i * P)), s);
                    let e = math::decay(t);
                    if LOG { t } else { e }.store(column.add(i * P));
                    sums = sums.add(e);
                    i += 1;
                }
                sums.store(pad.as_mut_ptr());
                for k in 0..V::LANES {
                    totals[k] += pad[k].double();
                }
            }
            for k in 0..V::LANES {
                pad[k] = W::of(if LOG { math::log(totals[k]) } else { 1.0 / totals[k] });
            }
            let numbers = V::load(pad.as_ptr());
            for i in 0..n {
                let v = V::load(column.add(i * P));
                if LOG { v.sub(numbers) } else { v.mul(numbers) }.store(column.add(i * P));
            }
        }
    }
}

isa_versions! {
    fn forward_block -> BlockOf<W> = forward_block_body;
    generics [W: Float + Wide, const LOG: bool, const P: usize] names [W, LOG, P] vectors [W] fast true;
    args (block: *mut W, n: usize, form: Form<W>)
}

pub fn softmax_grad(a: &KernelArgs) -> Result<()> {
    with_type!(floats a.out(0).dtype, T => backward::<T, false>(a), else {});
    Ok(())
}

pub fn log_softmax_grad(a: &KernelArgs) -> Result<()> {
    with_type!(floats a.out(0).dtype, T => backward::<T, true>(a), else {});
    Ok(())
}

fn backward<T: Lane<Wide: Float + Wide>, const LOG: bool>(a: &KernelArgs) {
    let attrs = a.attrs.get::<SoftmaxBack>();
    let axis = check_axis("", attrs.axis, a.out(0).layout.ndim()).unwrap_or(0);
    let kernel = Backward::<T> {
        scale: T::Wide::of(attrs.scale),
        rows: backward_rows::<T, LOG>(),
        block: [backward_block::<T::Wide, LOG, 16>(), backward_block::<T::Wide, LOG, 64>()],
    };
    along::run([&a.ins[0], &a.ins[1]], &a.out(0), axis, a.par, &kernel);
}

type BackRowsOf<T, W> = unsafe fn([*const T; 2], [usize; 2], W, *mut T);
type BackBlockOf<W> = unsafe fn([*mut W; 2], usize, W);

struct Backward<T: Lane> {
    scale: T::Wide,
    rows: BackRowsOf<T, T::Wide>,
    block: [BackBlockOf<T::Wide>; 2],
}

// SAFETY: numbers and functions.
unsafe impl<T: Lane> Sync for Backward<T> {}

impl<T: Lane<Wide: Float>> Lines<T, 2> for Backward<T> {
    unsafe fn rows(
        &self,
        _: usize,
        count: usize,
        ins: [*const T; 2],
        n: usize,
        out: *mut T,
        _: *mut T::Wide,
    ) {
        // SAFETY: the caller's.
        unsafe { (self.rows)(ins, [count, n], self.scale, out) }
    }

    unsafe fn block(&self, blocks: [*mut T::Wide; 2], n: usize, side: usize) {
        // SAFETY: the caller's.
        unsafe { (self.block[usize::from(side == 64)])(blocks, n, self.scale) }
    }
}

/// What a line's gradients are summed of: `g y`, or `g` of a logarithm. 0 where the gradient is.
///
/// # Safety
/// As `Vector`'s.
#[inline(always)]
unsafe fn term<const LOG: bool, V: FloatVector>(y: V, g: V) -> V {
    // SAFETY: the caller's.
    if LOG { g } else { unsafe { g.times(y) } }
}

/// The gradient of an element, given the sum of the terms.
///
/// # Safety
/// As `Vector`'s.
#[inline(always)]
unsafe fn slope<const LOG: bool, V: FloatVector<Item: Float>>(y: V, g: V, sum: V, scale: V) -> V {
    // SAFETY: the caller's.
    unsafe {
        let back = if LOG { g.sub(sum.times(math::decay(y))) } else { g.sub(sum).times(y) };
        back.mul(scale)
    }
}

/// # Safety
/// `count` rows of `n` elements are readable from both `ins` (y, g) and writable from `out`.
#[inline(always)]
unsafe fn backward_body<T: Lane<Wide: Float>, const LOG: bool, V: FloatVector<Item = T::Wide>>(
    [y, g]: [*const T; 2],
    [count, n]: [usize; 2],
    scale: T::Wide,
    out: *mut T,
) {
    let mut numbers = [T::Wide::ZERO; ROWS];
    // SAFETY: the caller's.
    unsafe {
        for r in 0..count {
            let (y, g) = (y.add(r * n), g.add(r * n));
            let (mut sum, mut at) = (0.0, 0);
            while at < n {
                let end = n.min(at + LEAF);
                let mut sums = [V::zero(); SIDE];
                while at + SIDE * V::LANES <= end {
                    for j in 0..SIDE {
                        let i = at + j * V::LANES;
                        sums[j] = sums[j].add(term::<LOG, V>(load::<T, V>(y.add(i)), load::<T, V>(g.add(i))));
                    }
                    at += SIDE * V::LANES;
                }
                while at < end {
                    let y = some::<T, V>(y.add(at), end - at, V::zero());
                    let g = some::<T, V>(g.add(at), end - at, V::zero());
                    sums[0] = sums[0].add(term::<LOG, V>(y, g));
                    at += V::LANES;
                }
                at = end;
                sum += total(sums);
            }
            numbers[r] = T::Wide::of(sum);
        }
        let scale = V::splat(scale);
        for r in 0..count {
            let sum = V::splat(numbers[r]);
            let mut at = 0;
            while at < n {
                let (i, left) = (r * n + at, n - at);
                let y = some::<T, V>(y.add(i), left, V::zero());
                let g = some::<T, V>(g.add(i), left, V::zero());
                store::<T, V>(slope::<LOG, V>(y, g, sum, scale), out.add(i), left);
                at += V::LANES;
            }
        }
    }
}

isa_versions! {
    fn backward_rows -> BackRowsOf<T, T::Wide> = backward_body;
    generics [T: Lane<Wide: Float + Wide>, const LOG: bool] names [T, LOG] vectors [T::Wide] fast true;
    args (ins: [*const T; 2], sizes: [usize; 2], scale: T::Wide, out: *mut T)
}

/// # Safety
/// Blocks hold `n` rows of `P`.
#[inline(always)]
unsafe fn backward_block_body<W: Float, const LOG: bool, const P: usize, V: FloatVector<Item = W>>(
    [y, g]: [*mut W; 2],
    n: usize,
    scale: W,
) {
    for first in (0..P).step_by(V::LANES) {
        let (mut totals, mut pad) = ([0f64; WIDEST], [W::ZERO; WIDEST]);
        // SAFETY: a column of vectors of the blocks; the pad holds the widest.
        unsafe {
            let (y, g) = (y.add(first), g.add(first));
            let mut i = 0;
            while i < n {
                let end = n.min(i + LINES);
                let mut sums = V::zero();
                while i < end {
                    sums = sums.add(term::<LOG, V>(V::load(y.add(i * P)), V::load(g.add(i * P))));
                    i += 1;
                }
                sums.store(pad.as_mut_ptr());
                for k in 0..V::LANES {
                    totals[k] += pad[k].double();
                }
            }
            for k in 0..V::LANES {
                pad[k] = W::of(totals[k]);
            }
            let (sum, scale) = (V::load(pad.as_ptr()), V::splat(scale));
            for i in 0..n {
                let back = slope::<LOG, V>(V::load(y.add(i * P)), V::load(g.add(i * P)), sum, scale);
                back.store(y.add(i * P));
            }
        }
    }
}

isa_versions! {
    fn backward_block -> BackBlockOf<W> = backward_block_body;
    generics [W: Float + Wide, const LOG: bool, const P: usize] names [W, LOG, P] vectors [W] fast true;
    args (blocks: [*mut W; 2], n: usize, scale: W)
}
