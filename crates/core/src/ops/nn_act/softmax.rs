//! The kernels of softmax and its kin, and of their gradients: a line is read once, its exponentials stay near, and
//! the result is written once. Sums are of up to 1024 elements in lanes, and of those in float64.

use super::{Softmax, SoftmaxBack};
use crate::kernel::along::{self, Lines};
use crate::kernel::fold::{self, Reduction};
use crate::kernel::lane::Lane;
use crate::kernel::math;
use crate::kernel::moves::dense;
use crate::kernel::num::{Float, Num, Ordered};
use crate::op::KernelArgs;
use crate::shape::check_axis;
use crate::{Result, isa_versions, with_type};

/// Lanes of a row's loops, and how many rounds of them a partial sum takes.
const LANES: usize = 64;
const ROUNDS: usize = 16;

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

fn forward<T: Lane<Wide: Falling>, const LOG: bool>(a: &KernelArgs, sign: f64) {
    let attrs = a.attrs.get::<Softmax>();
    let axis = check_axis("", attrs.axis, a.out(0).layout.ndim()).unwrap_or(0);
    let lengths = a.ins.get(1).map(|length| dense::<i64>(length, a.par).into_owned());
    let kernel = Forward::<T> {
        form: Form { scale: T::Wide::of(sign * attrs.scale()) },
        lengths,
        row: forward_row::<T, LOG>(),
        block: [forward_block::<T::Wide, LOG, 16>(), forward_block::<T::Wide, LOG, 64>()],
    };
    along::run([&a.ins[0]], &a.out(0), axis, a.par, &kernel);
}

/// What the distance from the greatest element is multiplied by; negative: from the least.
#[derive(Clone, Copy)]
struct Form<W> {
    scale: W,
}

/// A floating type with the exponential of what is not positive.
trait Falling: Float {
    /// Below it, 2^n for the exponential's n has no normal number: the exponential counts as 0.
    const LOW: f64;
    /// 2^n for a whole n: 0 for the one below the least normal exponent.
    fn power(n: Self) -> Self;
}

macro_rules! falling {
    ($($t:ty, $i:ty, $mantissa:literal, $bias:literal, $magic:literal, $low:literal);*) => { $(
        impl Falling for $t {
            const LOW: f64 = $low;
            #[inline(always)]
            fn power(n: $t) -> $t {
                // The sum's low bits are the integer n; with the bias they move to the exponent, what is above
                // them out.
                let whole = ((n + $magic as $t).to_bits() as $i).wrapping_add($bias);
                <$t>::from_bits((whole << $mantissa) as _)
            }
        }
    )* };
}
falling!(f32, i32, 23, 127, 12582912.0, -88.03; f64, i64, 52, 1023, 6755399441055744.0, -709.1);

/// e^x for x <= 0 (and a little above): 0 where the result would not be a normal number. 2 units in the last place,
/// as `exp`: the same series.
#[inline(always)]
fn falling<W: Falling>(x: W) -> W {
    let low = W::of(W::LOW);
    let x = if x < low { low } else { x };
    let n = x.mul(W::of(std::f64::consts::LOG2_E)).nearest();
    let r = x.sub(n.mul(W::of(W::LN2_HI))).sub(n.mul(W::of(W::LN2_LO)));
    let mut tail = W::of(math::INVERSE_FACTORIAL[W::EXP_TERMS + 1]);
    for k in (2..W::EXP_TERMS + 1).rev() {
        tail = tail.mul(r).add(W::of(math::INVERSE_FACTORIAL[k]));
    }
    r.mul(r).mul(tail).add(r).add(W::ONE).mul(W::power(n))
}

type RowOf<T, W> = unsafe fn(*const T, usize, Form<W>, *mut T, *mut W);
type BlockOf<W> = unsafe fn(*mut W, usize, Form<W>);

struct Forward<T: Lane> {
    form: Form<T::Wide>,
    /// How many elements count, line by line.
    lengths: Option<Vec<i64>>,
    row: RowOf<T, T::Wide>,
    block: [BlockOf<T::Wide>; 2],
}

// SAFETY: numbers and functions.
unsafe impl<T: Lane> Sync for Forward<T> {}

impl<T: Lane<Wide: Falling>> Lines<T, 1> for Forward<T> {
    unsafe fn row(&self, line: usize, ins: [*const T; 1], n: usize, out: *mut T, scratch: *mut T::Wide) {
        let count = self.lengths.as_ref().map_or(n, |l| l[line].clamp(0, n as i64) as usize);
        // SAFETY: the caller's.
        unsafe {
            (self.row)(ins[0], count, self.form, out, scratch);
            for i in count..n {
                *out.add(i) = T::default();
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

/// The greatest element. NaN loses here, and comes back with the subtraction.
struct Peak;
impl<A: Lane<Wide: Ordered + PartialOrd>> Reduction<A, A> for Peak {
    type Acc = A::Wide;
    const IDENTITY: A::Wide = A::Wide::LEAST;
    #[inline(always)]
    fn lift(x: A::Wide, _: usize) -> A::Wide {
        x
    }
    #[inline(always)]
    fn combine(a: A::Wide, b: A::Wide) -> A::Wide {
        if b > a { b } else { a }
    }
    #[inline(always)]
    fn result(acc: A::Wide) -> A::Wide {
        acc
    }
}

/// The least.
struct Trough;
impl<A: Lane<Wide: Ordered + PartialOrd>> Reduction<A, A> for Trough {
    type Acc = A::Wide;
    const IDENTITY: A::Wide = A::Wide::GREATEST;
    #[inline(always)]
    fn lift(x: A::Wide, _: usize) -> A::Wide {
        x
    }
    #[inline(always)]
    fn combine(a: A::Wide, b: A::Wide) -> A::Wide {
        if b < a { b } else { a }
    }
    #[inline(always)]
    fn result(acc: A::Wide) -> A::Wide {
        acc
    }
}

/// The sum of lanes, half by half.
#[inline(always)]
fn total<W: Float>(lanes: &mut [W; LANES]) -> f64 {
    let mut half = LANES / 2;
    while half > 0 {
        for k in 0..half {
            lanes[k] = lanes[k].add(lanes[k + half]);
        }
        half /= 2;
    }
    lanes[0].double()
}

/// # Safety
/// `n` elements are readable from `x` and writable from `y`; `buffer` has room for 64 more.
#[inline(always)]
unsafe fn forward_row_body<T: Lane<Wide: Falling>, const LOG: bool>(
    x: *const T,
    n: usize,
    form: Form<T::Wide>,
    y: *mut T,
    buffer: *mut T::Wide,
) {
    let Form { scale } = form;
    // SAFETY: the caller's.
    unsafe {
        let most = if scale < T::Wide::ZERO {
            fold::leaf::<Trough, T, T>(x, n, 0)
        } else {
            fold::leaf::<Peak, T, T>(x, n, 0)
        };
        let mut sum = 0.0;
        let mut start = 0;
        while start < n {
            let mut sums = [T::Wide::ZERO; LANES];
            let end = n.min(start + LANES * ROUNDS);
            while start + LANES <= end {
                for k in 0..LANES {
                    let t = (*x.add(start + k)).widen().sub(most).mul(scale);
                    let e = falling(t);
                    *buffer.add(start + k) = if LOG { t } else { e };
                    sums[k] = sums[k].add(e);
                }
                start += LANES;
            }
            if start < end {
                // A row's end is padded: a loop of another length would not be of whole vectors.
                let mut pad = [most; LANES];
                for k in 0..end - start {
                    pad[k] = (*x.add(start + k)).widen();
                }
                for k in 0..LANES {
                    let t = pad[k].sub(most).mul(scale);
                    let e = falling(t);
                    *buffer.add(start + k) = if LOG { t } else { e };
                    sums[k] = sums[k].add(if k < end - start { e } else { T::Wide::ZERO });
                }
                start = end;
            }
            sum += total(&mut sums);
        }
        let number = T::Wide::of(if LOG { sum.ln() } else { 1.0 / sum });
        for i in 0..n {
            let v = *buffer.add(i);
            *y.add(i) = T::narrow(if LOG { v.sub(number) } else { v.mul(number) });
        }
    }
}

isa_versions! {
    fn forward_row -> RowOf<T, T::Wide> = forward_row_body;
    generics [T: Lane<Wide: Falling>, const LOG: bool] names [T, LOG] fast true;
    args (x: *const T, n: usize, form: Form<T::Wide>, y: *mut T, buffer: *mut T::Wide)
}

/// # Safety
/// `block` holds `n` rows of `P`.
#[inline(always)]
unsafe fn forward_block_body<W: Falling, const LOG: bool, const P: usize>(
    block: *mut W,
    n: usize,
    form: Form<W>,
) {
    let Form { scale } = form;
    let upward = scale < W::ZERO;
    let mut most = [if upward { W::GREATEST } else { W::LEAST }; P];
    let mut totals = [0f64; P];
    // SAFETY: the caller's.
    unsafe {
        for i in 0..n {
            let row = block.add(i * P);
            if upward {
                for k in 0..P {
                    let v = *row.add(k);
                    most[k] = if v < most[k] { v } else { most[k] };
                }
            } else {
                for k in 0..P {
                    let v = *row.add(k);
                    most[k] = if v > most[k] { v } else { most[k] };
                }
            }
        }
        let mut i = 0;
        while i < n {
            let mut sums = [W::ZERO; P];
            let end = n.min(i + LANES);
            while i < end {
                let row = block.add(i * P);
                for k in 0..P {
                    let t = (*row.add(k)).sub(most[k]).mul(scale);
                    let e = falling(t);
                    *row.add(k) = if LOG { t } else { e };
                    sums[k] = sums[k].add(e);
                }
                i += 1;
            }
            for k in 0..P {
                totals[k] += sums[k].double();
            }
        }
        let mut numbers = [W::ZERO; P];
        for k in 0..P {
            let sum = W::of(totals[k]);
            numbers[k] = if LOG { math::log(sum) } else { W::ONE.div(sum) };
        }
        for i in 0..n {
            let row = block.add(i * P);
            for k in 0..P {
                let v = *row.add(k);
                *row.add(k) = if LOG { v.sub(numbers[k]) } else { v.mul(numbers[k]) };
            }
        }
    }
}

isa_versions! {
    fn forward_block -> BlockOf<W> = forward_block_body;
    generics [W: Falling, const LOG: bool, const P: usize] names [W, LOG, P] fast true;
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

fn backward<T: Lane<Wide: Falling>, const LOG: bool>(a: &KernelArgs) {
    let attrs = a.attrs.get::<SoftmaxBack>();
    let axis = check_axis("", attrs.axis, a.out(0).layout.ndim()).unwrap_or(0);
    let kernel = Backward::<T> {
        scale: T::Wide::of(attrs.scale),
        row: backward_row::<T, LOG>(),
        block: [backward_block::<T::Wide, LOG, 16>(), backward_block::<T::Wide, LOG, 64>()],
    };
    along::run([&a.ins[0], &a.ins[1]], &a.out(0), axis, a.par, &kernel);
}

type BackRowOf<T, W> = unsafe fn([*const T; 2], usize, W, *mut T);
type BackBlockOf<W> = unsafe fn([*mut W; 2], usize, W);

struct Backward<T: Lane> {
    scale: T::Wide,
    row: BackRowOf<T, T::Wide>,
    block: [BackBlockOf<T::Wide>; 2],
}

// SAFETY: numbers and functions.
unsafe impl<T: Lane> Sync for Backward<T> {}

impl<T: Lane<Wide: Falling>> Lines<T, 2> for Backward<T> {
    unsafe fn row(&self, _: usize, ins: [*const T; 2], n: usize, out: *mut T, _: *mut T::Wide) {
        // SAFETY: the caller's.
        unsafe { (self.row)(ins, n, self.scale, out) }
    }

    unsafe fn block(&self, blocks: [*mut T::Wide; 2], n: usize, side: usize) {
        // SAFETY: the caller's.
        unsafe { (self.block[usize::from(side == 64)])(blocks, n, self.scale) }
    }
}

/// A product that is 0 where the gradient is, whatever the factor.
#[inline(always)]
fn times<W: Falling>(g: W, factor: W) -> W {
    if g == W::ZERO { W::ZERO } else { g.mul(factor) }
}

/// What a line's gradients are summed of: `g y`, or `g` of a logarithm.
#[inline(always)]
fn term<W: Falling, const LOG: bool>(y: W, g: W) -> W {
    if LOG { g } else { times(g, y) }
}

/// The gradient of an element, given the sum of the terms.
#[inline(always)]
fn slope<W: Falling, const LOG: bool>(y: W, g: W, sum: W, scale: W) -> W {
    let back = if LOG { g.sub(times(sum, falling(y))) } else { times(g.sub(sum), y) };
    back.mul(scale)
}

/// # Safety
/// `n` elements are readable from both `ins` (y, g) and writable from `out`.
#[inline(always)]
unsafe fn backward_row_body<T: Lane<Wide: Falling>, const LOG: bool>(
    [y, g]: [*const T; 2],
    n: usize,
    scale: T::Wide,
    out: *mut T,
) {
    let mut sum = 0.0;
    let mut start = 0;
    // SAFETY: the caller's.
    unsafe {
        while start < n {
            let mut sums = [T::Wide::ZERO; LANES];
            let end = n.min(start + LANES * ROUNDS);
            while start + LANES <= end {
                for k in 0..LANES {
                    let (y, g) = ((*y.add(start + k)).widen(), (*g.add(start + k)).widen());
                    sums[k] = sums[k].add(term::<T::Wide, LOG>(y, g));
                }
                start += LANES;
            }
            for k in 0..end - start {
                let (y, g) = ((*y.add(start + k)).widen(), (*g.add(start + k)).widen());
                sums[k] = sums[k].add(term::<T::Wide, LOG>(y, g));
            }
            start = end;
            sum += total(&mut sums);
        }
        let sum = T::Wide::of(sum);
        let whole = n / LANES * LANES;
        let mut start = 0;
        while start < whole {
            for k in start..start + LANES {
                let (y, g) = ((*y.add(k)).widen(), (*g.add(k)).widen());
                *out.add(k) = T::narrow(slope::<T::Wide, LOG>(y, g, sum, scale));
            }
            start += LANES;
        }
        if whole < n {
            let mut pads = [[T::Wide::ZERO; LANES]; 2];
            for k in 0..n - whole {
                pads[0][k] = (*y.add(whole + k)).widen();
                pads[1][k] = (*g.add(whole + k)).widen();
            }
            for k in 0..LANES {
                pads[0][k] = slope::<T::Wide, LOG>(pads[0][k], pads[1][k], sum, scale);
            }
            for k in 0..n - whole {
                *out.add(whole + k) = T::narrow(pads[0][k]);
            }
        }
    }
}

isa_versions! {
    fn backward_row -> BackRowOf<T, T::Wide> = backward_row_body;
    generics [T: Lane<Wide: Falling>, const LOG: bool] names [T, LOG] fast true;
    args (ins: [*const T; 2], n: usize, scale: T::Wide, out: *mut T)
}

/// # Safety
/// Blocks hold `n` rows of `P`.
#[inline(always)]
unsafe fn backward_block_body<W: Falling, const LOG: bool, const P: usize>(
    [y, g]: [*mut W; 2],
    n: usize,
    scale: W,
) {
    let mut totals = [0f64; P];
    let mut i = 0;
    // SAFETY: the caller's.
    unsafe {
        while i < n {
            let mut sums = [W::ZERO; P];
            let end = n.min(i + LANES);
            while i < end {
                let (y, g) = (y.add(i * P), g.add(i * P));
                for k in 0..P {
                    sums[k] = sums[k].add(term::<W, LOG>(*y.add(k), *g.add(k)));
                }
                i += 1;
            }
            for k in 0..P {
                totals[k] += sums[k].double();
            }
        }
        let mut sums = [W::ZERO; P];
        for k in 0..P {
            sums[k] = W::of(totals[k]);
        }
        for i in 0..n {
            let (y, g) = (y.add(i * P), g.add(i * P));
            for k in 0..P {
                *y.add(k) = slope::<W, LOG>(*y.add(k), *g.add(k), sums[k], scale);
            }
        }
    }
}

isa_versions! {
    fn backward_block -> BackBlockOf<W> = backward_block_body;
    generics [W: Falling, const LOG: bool, const P: usize] names [W, LOG, P] fast true;
    args (blocks: [*mut W; 2], n: usize, scale: W)
}
