//! The kernels of normalisation along rows, forward and backward: a row is read from memory once. Moments are taken
//! about the mean of the row's first elements, in lanes over up to 1024 elements and in float64 over those: as near to
//! the mean as an outlier lets that be, so that little cancels.
//!
//! Rationale: of short rows several are taken together, one step of all before the next step of any, so that the
//! machine need not wait for one row's mean, variance and root in turn.

use crate::isa_versions;
use crate::kernel::lane::Lane;
use crate::kernel::num::{Float, Num};
use crate::kernel::packed::{LEAF, about, some, some_wide, store, store_wide, sum};
use crate::simd::float::FloatVector;
use crate::simd::vector::Wide;

/// Elements whose mean is near enough.
const FIRST: usize = 64;
/// The most rows of a group, and its elements where rows are short.
const ROWS: usize = 16;
const GROUP: usize = 2048;

/// How many rows of `n` elements a kernel takes together.
pub fn together(n: usize) -> usize {
    (GROUP / n.max(1)).clamp(1, ROWS)
}

/// A row's mean, as a number near it and the rest, and the inverse of its standard deviation.
#[derive(Clone, Copy)]
struct Moments<W> {
    near: W,
    rest: W,
    inv: W,
    /// Mean and inverse deviation as they are reported.
    stats: [f64; 2],
}

/// The same in all lanes.
#[derive(Clone, Copy)]
struct Standard<V> {
    near: V,
    rest: V,
    inv: V,
}

impl<V: FloatVector> Standard<V> {
    /// # Safety
    /// As `Vector`'s.
    #[inline(always)]
    unsafe fn new(m: &Moments<V::Item>) -> Standard<V> {
        // SAFETY: the caller's.
        unsafe { Standard { near: V::splat(m.near), rest: V::splat(m.rest), inv: V::splat(m.inv) } }
    }

    /// The element less the mean, over the deviation.
    ///
    /// # Safety
    /// As `Vector`'s.
    #[inline(always)]
    unsafe fn of(&self, x: V) -> V {
        // SAFETY: the caller's.
        unsafe { x.sub(self.near).sub(self.rest).mul(self.inv) }
    }
}

/// # Safety
/// As `Vector`'s, of `n` elements.
#[inline(always)]
unsafe fn mean_of<T: Lane<Wide: Float>, V: FloatVector<Item = T::Wide>>(x: *const T, n: usize) -> f64 {
    let (mut total, mut start) = (0.0, 0);
    while start < n {
        let part = LEAF.min(n - start);
        // SAFETY: the caller's.
        total += unsafe { sum::<T, V>(x.add(start), part) }.double();
        start += part;
    }
    total / n as f64
}

/// # Safety
/// As [`mean_of`].
#[inline(always)]
unsafe fn first_mean_body<T: Lane<Wide: Float>, V: FloatVector<Item = T::Wide>>(
    x: *const T,
    n: usize,
    mean: &mut f64,
) {
    // SAFETY: the caller's.
    *mean = unsafe { mean_of::<T, V>(x, n) };
}

isa_versions! {
    /// Finds the mean of a run.
    pub fn first_mean -> unsafe fn(*const T, usize, &mut f64) = first_mean_body;
    generics [T: Lane<Wide: Float + Wide>] names [T] vectors [T::Wide] fast true;
    args (x: *const T, n: usize, mean: &mut f64)
}

/// The moments of `count` rows, for all of `moments` that there are.
///
/// # Safety
/// As `Vector`'s, of `count` rows of `n` elements.
#[inline(always)]
unsafe fn moments<T: Lane<Wide: Float>, V: FloatVector<Item = T::Wide>>(
    x: *const T,
    [count, n]: [usize; 2],
    eps: f64,
) -> [Moments<T::Wide>; ROWS] {
    let zero = T::Wide::ZERO;
    let mut all = [Moments { near: zero, rest: zero, inv: zero, stats: [0.0; 2] }; ROWS];
    let mut sums = [[0f64; 2]; ROWS];
    // SAFETY: the caller's.
    unsafe {
        for r in 0..count {
            all[r].near = T::Wide::of(mean_of::<T, V>(x.add(r * n), n.min(FIRST)));
        }
        for r in 0..count {
            sums[r] = about::<T, V>(x.add(r * n), n, V::splat(all[r].near));
        }
    }
    let each = 1.0 / n as f64;
    for r in 0..count {
        let [one, two] = sums[r];
        let rest = one * each;
        let variance = two * each - rest * rest;
        // A rounding error must not become the root of a negative number; NaN stays.
        let variance = if variance < 0.0 { 0.0 } else { variance };
        let inv = 1.0 / (variance + eps).sqrt();
        all[r].stats = [all[r].near.double() + rest, inv];
        (all[r].rest, all[r].inv) = (T::Wide::of(rest), T::Wide::of(inv));
    }
    all
}

type NormalizeOf<T> = unsafe fn(*const T, usize, f64, *mut T, &mut [f64; 2]);

/// # Safety
/// `n` elements are readable from `x` and writable from `y`.
#[inline(always)]
unsafe fn normalize_body<T: Lane<Wide: Float>, V: FloatVector<Item = T::Wide>>(
    x: *const T,
    n: usize,
    eps: f64,
    y: *mut T,
    stats: &mut [f64; 2],
) {
    // SAFETY: the caller's.
    unsafe {
        let m = moments::<T, V>(x, [1, n], eps)[0];
        *stats = m.stats;
        let standard = Standard::<V>::new(&m);
        let mut at = 0;
        while at < n {
            let v = standard.of(some::<T, V>(x.add(at), n - at, standard.near));
            store::<T, V>(v, y.add(at), n - at);
            at += V::LANES;
        }
    }
}

isa_versions! {
    /// Normalises a row; `stats` becomes its mean and inverse standard deviation.
    pub fn normalize_row -> NormalizeOf<T> = normalize_body;
    generics [T: Lane<Wide: Float + Wide>] names [T] vectors [T::Wide] fast true;
    args (x: *const T, n: usize, eps: f64, y: *mut T, stats: &mut [f64; 2])
}

type ScaledOf<T, W> = unsafe fn(*const T, [usize; 2], f64, [*const W; 2], *mut T);

/// # Safety
/// `count` rows of `n` elements are readable from `x` and writable from `y`, `n` from `gamma` and `beta`.
#[inline(always)]
unsafe fn scaled_body<T: Lane<Wide: Float>, V: FloatVector<Item = T::Wide>>(
    x: *const T,
    [count, n]: [usize; 2],
    eps: f64,
    [gamma, beta]: [*const T::Wide; 2],
    y: *mut T,
) {
    // SAFETY: the caller's.
    unsafe {
        let all = moments::<T, V>(x, [count, n], eps);
        for r in 0..count {
            let standard = Standard::<V>::new(&all[r]);
            let (x, y) = (x.add(r * n), y.add(r * n));
            let mut at = 0;
            while at < n {
                let left = n - at;
                let v = standard.of(some::<T, V>(x.add(at), left, standard.near));
                let gamma = some_wide(gamma.add(at), left, v);
                let beta = some_wide(beta.add(at), left, v);
                store::<T, V>(v.multiply_add(gamma, beta), y.add(at), left);
                at += V::LANES;
            }
        }
    }
}

isa_versions! {
    /// Normalises rows, as many as [`together`] says at most, times gamma, plus beta.
    pub fn scaled_rows -> ScaledOf<T, T::Wide> = scaled_body;
    generics [T: Lane<Wide: Float + Wide>] names [T] vectors [T::Wide] fast true;
    args (x: *const T, sizes: [usize; 2], eps: f64, affine: [*const T::Wide; 2], y: *mut T)
}

/// What the gradients of rows are computed from: the heads' gradients, the rows, gamma.
#[derive(Clone, Copy)]
pub struct BackRows<T: Lane> {
    pub g: *const T,
    pub x: *const T,
    pub gamma: *const T::Wide,
    /// Rows, as many as [`together`] says at most, and their elements.
    pub count: usize,
    pub n: usize,
    pub eps: f64,
    /// Rows of sums that the gradients of gamma and beta are added to.
    pub to_gamma: *mut T::Wide,
    pub to_beta: *mut T::Wide,
    pub out: *mut T,
}

/// # Safety
/// The elements of `count` rows, or of one, are readable or writable from each pointer.
#[inline(always)]
unsafe fn back_body<T: Lane<Wide: Float>, V: FloatVector<Item = T::Wide>>(rows: &BackRows<T>) {
    let BackRows { g, x, gamma, count, n, out, .. } = *rows;
    let mut means = [[T::Wide::ZERO; 2]; ROWS];
    // SAFETY: the caller's.
    unsafe {
        let all = moments::<T, V>(x, [count, n], rows.eps);
        for r in 0..count {
            let standard = Standard::<V>::new(&all[r]);
            means[r] = back_sums::<T, V>(rows, r, &standard).map(|sum| T::Wide::of(sum / n as f64));
        }
        for r in 0..count {
            let standard = Standard::<V>::new(&all[r]);
            let (a, b) = (V::splat(means[r][0]), V::splat(means[r][1]));
            let mut at = 0;
            while at < n {
                let (i, left) = (r * n + at, n - at);
                let y = standard.of(some::<T, V>(x.add(i), left, standard.near));
                let g = some::<T, V>(g.add(i), left, V::zero());
                let u = g.times(some_wide(gamma.add(at), left, g));
                let v = u.sub(a).sub(b.times(y)).times(standard.inv);
                store::<T, V>(v, out.add(i), left);
                at += V::LANES;
            }
        }
    }
}

/// The sums of `g gamma` and of its product with normalised row `r`; adds the row to the parameters' gradients.
///
/// # Safety
/// As [`back_body`].
#[inline(always)]
unsafe fn back_sums<T: Lane<Wide: Float>, V: FloatVector<Item = T::Wide>>(
    rows: &BackRows<T>,
    r: usize,
    standard: &Standard<V>,
) -> [f64; 2] {
    let BackRows { n, gamma, to_gamma, to_beta, .. } = *rows;
    let (mut sums, mut at) = ([0.0; 2], 0);
    // SAFETY: the caller's.
    unsafe {
        let (g, x) = (rows.g.add(r * n), rows.x.add(r * n));
        while at < n {
            let end = n.min(at + LEAF);
            let (mut one, mut two) = (V::zero(), V::zero());
            while at < end {
                // Whole vectors but at a row's end, which no leaf's end cuts.
                let left = n - at;
                let y = standard.of(some::<T, V>(x.add(at), left, standard.near));
                let g = some::<T, V>(g.add(at), left, V::zero());
                let u = g.times(some_wide(gamma.add(at), left, g));
                one = one.add(u);
                two = two.add(u.times(y));
                let sum = some_wide(to_gamma.add(at), left, g).add(g.times(y));
                store_wide(sum, to_gamma.add(at), left);
                store_wide(some_wide(to_beta.add(at), left, g).add(g), to_beta.add(at), left);
                at += V::LANES;
            }
            sums[0] += one.total().double();
            sums[1] += two.total().double();
        }
    }
    sums
}

isa_versions! {
    /// The gradients of rows, and their part of the parameters'.
    pub fn back_rows -> unsafe fn(&BackRows<T>) = back_body;
    generics [T: Lane<Wide: Float + Wide>] names [T] vectors [T::Wide] fast true; args (rows: &BackRows<T>)
}
