//! The kernels of normalisation along rows, forward and backward: a row is read from memory once. Moments are taken
//! about the mean of the row's first elements, in lanes over up to 1024 elements and in float64 over those: as near to
//! the mean as an outlier lets that be, so that little cancels.

use crate::isa_versions;
use crate::kernel::fold::{self, Reduction};
use crate::kernel::lane::Lane;
use crate::kernel::num::{Float, Num};

/// Elements whose sums are kept in the element's own precision.
const LEAF: usize = 1024;
/// Elements whose mean is near enough.
const FIRST: usize = 64;
/// Rows below this many elements take fewer lanes.
const LONG: usize = 256;
const LANES: usize = 64;
const FEW: usize = 16;

struct Total;
impl<A: Lane<Wide: Num>> Reduction<A, A> for Total {
    type Acc = A::Wide;
    const IDENTITY: A::Wide = A::Wide::ZERO;
    #[inline(always)]
    fn lift(x: A::Wide, _: usize) -> A::Wide {
        x
    }
    #[inline(always)]
    fn combine(a: A::Wide, b: A::Wide) -> A::Wide {
        a.add(b)
    }
    #[inline(always)]
    fn result(acc: A::Wide) -> A::Wide {
        acc
    }
}

/// A row's mean, as a number near it and the rest, and the inverse of its standard deviation.
#[derive(Clone, Copy)]
pub struct Moments<W> {
    near: W,
    rest: W,
    inv: W,
    /// Mean and inverse deviation as they are reported.
    pub stats: [f64; 2],
}

/// The element less the mean, over the deviation.
#[inline(always)]
fn standard<W: Float>(x: W, m: &Moments<W>) -> W {
    x.sub(m.near).sub(m.rest).mul(m.inv)
}

/// A product that is 0 where the gradient is, whatever the factor.
#[inline(always)]
fn times<W: Float>(g: W, factor: W) -> W {
    if g == W::ZERO { W::ZERO } else { g.mul(factor) }
}

/// The sum of lanes, half by half.
#[inline(always)]
pub fn total<W: Float, const L: usize>(lanes: &mut [W; L]) -> f64 {
    let mut half = L / 2;
    while half > 0 {
        for k in 0..half {
            lanes[k] = lanes[k].add(lanes[k + half]);
        }
        half /= 2;
    }
    lanes[0].double()
}

/// # Safety
/// `n` elements are readable from `x`.
#[inline(always)]
pub unsafe fn mean_of<T: Lane<Wide: Float>>(x: *const T, n: usize) -> f64 {
    let (mut sum, mut start) = (0.0, 0);
    while start < n {
        let part = LEAF.min(n - start);
        // SAFETY: the caller's.
        sum += unsafe { fold::leaf::<Total, T, T>(x.add(start), part, 0) }.double();
        start += part;
    }
    sum / n as f64
}

/// The sums of the elements less `near`, and of their squares.
///
/// # Safety
/// `n` elements are readable from `x`.
#[inline(always)]
pub unsafe fn about<T: Lane<Wide: Float>, const L: usize>(x: *const T, n: usize, near: T::Wide) -> [f64; 2] {
    let (mut sums, mut start) = ([0.0; 2], 0);
    // SAFETY: the caller's.
    unsafe {
        while start < n {
            let end = n.min(start + LEAF);
            let (mut ones, mut twos) = ([T::Wide::ZERO; L], [T::Wide::ZERO; L]);
            while start + L <= end {
                for k in 0..L {
                    let d = (*x.add(start + k)).widen().sub(near);
                    ones[k] = ones[k].add(d);
                    twos[k] = twos[k].add(d.mul(d));
                }
                start += L;
            }
            for k in 0..end - start {
                let d = (*x.add(start + k)).widen().sub(near);
                ones[k] = ones[k].add(d);
                twos[k] = twos[k].add(d.mul(d));
            }
            start = end;
            sums[0] += total(&mut ones);
            sums[1] += total(&mut twos);
        }
    }
    sums
}

/// # Safety
/// `n` elements are readable from `x`.
#[inline(always)]
unsafe fn moments<T: Lane<Wide: Float>>(x: *const T, n: usize, eps: f64) -> Moments<T::Wide> {
    // SAFETY: the caller's.
    unsafe {
        let near = T::Wide::of(mean_of(x, n.min(FIRST)));
        let [one, two] = if n < LONG { about::<T, FEW>(x, n, near) } else { about::<T, LANES>(x, n, near) };
        let rest = one / n as f64;
        let variance = two / n as f64 - rest * rest;
        // A rounding error must not become the root of a negative number; NaN stays.
        let variance = if variance < 0.0 { 0.0 } else { variance };
        let inv = 1.0 / (variance + eps).sqrt();
        let stats = [near.double() + rest, inv];
        Moments { near, rest: T::Wide::of(rest), inv: T::Wide::of(inv), stats }
    }
}

type NormalizeOf<T> = unsafe fn(*const T, usize, f64, *mut T, &mut [f64; 2]);

/// # Safety
/// `n` elements are readable from `x` and writable from `y`.
#[inline(always)]
unsafe fn normalize_body<T: Lane<Wide: Float>>(
    x: *const T,
    n: usize,
    eps: f64,
    y: *mut T,
    stats: &mut [f64; 2],
) {
    // SAFETY: the caller's.
    unsafe {
        let m = moments(x, n, eps);
        *stats = m.stats;
        for k in 0..n {
            *y.add(k) = T::narrow(standard((*x.add(k)).widen(), &m));
        }
    }
}

isa_versions! {
    /// Normalises a row; `stats` becomes its mean and inverse standard deviation.
    pub fn normalize_row -> NormalizeOf<T> = normalize_body;
    generics [T: Lane<Wide: Float>] names [T] fast true;
    args (x: *const T, n: usize, eps: f64, y: *mut T, stats: &mut [f64; 2])
}

type ScaledOf<T, W> = unsafe fn(*const T, usize, f64, *const W, *const W, *mut T);

/// # Safety
/// `n` elements are readable from `x`, `gamma` and `beta` and writable from `y`.
#[inline(always)]
unsafe fn scaled_body<T: Lane<Wide: Float>>(
    x: *const T,
    n: usize,
    eps: f64,
    gamma: *const T::Wide,
    beta: *const T::Wide,
    y: *mut T,
) {
    // SAFETY: the caller's.
    unsafe {
        let m = moments(x, n, eps);
        for k in 0..n {
            let v = standard((*x.add(k)).widen(), &m);
            *y.add(k) = T::narrow(v.mul(*gamma.add(k)).add(*beta.add(k)));
        }
    }
}

isa_versions! {
    /// Normalises a row, times `gamma`, plus `beta`.
    pub fn scaled_row -> ScaledOf<T, T::Wide> = scaled_body;
    generics [T: Lane<Wide: Float>] names [T] fast true;
    args (x: *const T, n: usize, eps: f64, gamma: *const T::Wide, beta: *const T::Wide, y: *mut T)
}

/// What the gradient of a row is computed from: the heads' gradients, the row, gamma.
#[derive(Clone, Copy)]
pub struct BackRow<T: Lane> {
    pub g: *const T,
    pub x: *const T,
    pub gamma: *const T::Wide,
    pub n: usize,
    pub eps: f64,
    /// Rows of sums that the gradients of gamma and beta are added to.
    pub to_gamma: *mut T::Wide,
    pub to_beta: *mut T::Wide,
    pub out: *mut T,
}

/// # Safety
/// `n` elements are readable or writable from each pointer.
#[inline(always)]
unsafe fn back_body<T: Lane<Wide: Float>>(row: &BackRow<T>) {
    // SAFETY: the caller's.
    unsafe {
        let m = moments(row.x, row.n, row.eps);
        let [a, b] = if row.n < LONG { back_sums::<T, FEW>(row, &m) } else { back_sums::<T, LANES>(row, &m) };
        let (a, b) = (T::Wide::of(a / row.n as f64), T::Wide::of(b / row.n as f64));
        let BackRow { g, x, gamma, out, .. } = *row;
        for k in 0..row.n {
            let y = standard((*x.add(k)).widen(), &m);
            let u = times((*g.add(k)).widen(), *gamma.add(k));
            *out.add(k) = T::narrow(times(u.sub(a).sub(times(b, y)), m.inv));
        }
    }
}

/// The sums of `g gamma` and of its product with the normalised row; adds a row to the parameters' gradients.
///
/// # Safety
/// As [`back_body`].
#[inline(always)]
unsafe fn back_sums<T: Lane<Wide: Float>, const L: usize>(
    row: &BackRow<T>,
    m: &Moments<T::Wide>,
) -> [f64; 2] {
    let BackRow { g, x, gamma, n, to_gamma, to_beta, .. } = *row;
    let (mut sums, mut start) = ([0.0; 2], 0);
    // SAFETY: the caller's.
    unsafe {
        while start < n {
            let end = n.min(start + LEAF);
            let (mut ones, mut twos) = ([T::Wide::ZERO; L], [T::Wide::ZERO; L]);
            while start < end {
                let count = L.min(end - start);
                // Through local rows: the loop then writes to nothing that could overlap what it reads.
                let (mut heads, mut products) = ([T::Wide::ZERO; L], [T::Wide::ZERO; L]);
                if count == L {
                    for k in 0..L {
                        let (g, x) = ((*g.add(start + k)).widen(), (*x.add(start + k)).widen());
                        let (y, u) = (standard(x, m), times(g, *gamma.add(start + k)));
                        ones[k] = ones[k].add(u);
                        twos[k] = twos[k].add(times(u, y));
                        heads[k] = g;
                        products[k] = times(g, y);
                    }
                } else {
                    for k in 0..count {
                        let (g, x) = ((*g.add(start + k)).widen(), (*x.add(start + k)).widen());
                        let (y, u) = (standard(x, m), times(g, *gamma.add(start + k)));
                        ones[k] = ones[k].add(u);
                        twos[k] = twos[k].add(times(u, y));
                        heads[k] = g;
                        products[k] = times(g, y);
                    }
                }
                for k in 0..count {
                    *to_gamma.add(start + k) = (*to_gamma.add(start + k)).add(products[k]);
                }
                for k in 0..count {
                    *to_beta.add(start + k) = (*to_beta.add(start + k)).add(heads[k]);
                }
                start += count;
            }
            sums[0] += total(&mut ones);
            sums[1] += total(&mut twos);
        }
    }
    sums
}

isa_versions! {
    /// The gradient of a row, and its part of the parameters'.
    pub fn back_row -> unsafe fn(&BackRow<T>) = back_body;
    generics [T: Lane<Wide: Float>] names [T] fast true; args (row: &BackRow<T>)
}
