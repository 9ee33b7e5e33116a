//! The exponential and what is made of it: expm1, sinh, cosh, tanh, sigmoid.

use super::{at_least, at_most, horner, odd, product_error};
use crate::kernel::float::Float;
use crate::simd::float::FloatVector;
use std::f64::consts::{LN_2, LOG2_E};

/// (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2: 2^-28 and 2^-57 of e^r.
const SHORT: [f64; 5] = [
    0.49999993504512125,
    0.16666517883718301,
    0.041668326453402744,
    0.008369049217401963,
    0.0013821101334598731,
];
const LONG: [f64; 10] = [
    0.5000000000000011,
    0.1666666666666642,
    0.0416666666665245,
    0.008333333333486345,
    0.0013888888945305428,
    0.00019841269532616684,
    2.480149120194038e-05,
    2.755755581467796e-06,
    2.763097470808922e-07,
    2.5011977369015077e-08,
];

#[inline(always)]
fn tail<T: Float>(r: T) -> T {
    if T::SINGLE { horner(r, SHORT) } else { horner(r, LONG) }
}

/// e^x of a vector where x is not positive (nor much above): 0 where the result is below the normal range, NaN of
/// NaN. As [`exp`] otherwise.
///
/// # Safety
/// As [`crate::simd::vector::Vector`]'s.
#[inline(always)]
pub unsafe fn decay<V: FloatVector<Item: Float>>(x: V) -> V {
    let of = V::Item::of;
    let (low, magic) = (if V::Item::SINGLE { -88.03 } else { -709.1 }, of(0.0).shifted(of(0.0)));
    // SAFETY: the caller's.
    unsafe {
        let x = V::splat(of(low)).max(x);
        let shifted = x.multiply_add(V::splat(of(LOG2_E)), V::splat(magic));
        let n = shifted.sub(V::splat(magic));
        let r = n.multiply_add(V::splat(of(-V::Item::LN2_HI)), x);
        let r = n.multiply_add(V::splat(of(-V::Item::LN2_LO)), r);
        let series = if V::Item::SINGLE { &SHORT[..] } else { &LONG[..] };
        let mut tail = V::splat(of(series[series.len() - 1]));
        for k in (0..series.len() - 1).rev() {
            tail = tail.multiply_add(r, V::splat(of(series[k])));
        }
        let power = shifted.power_of_two();
        r.mul(r).multiply_add(tail, r).multiply_add(power, power)
    }
}

/// e^x in double precision, to 2^-28 only, where result and x are within the normal range.
#[inline(always)]
pub(super) fn short<T: Float>(x: T) -> T {
    let shifted = x.shifted(T::of(LOG2_E));
    let r = shifted.whole().fma(T::of(-LN_2), x);
    r.mul(r).fma(horner(r, SHORT), r).add(T::ONE).scale(shifted)
}

/// e^r - 1 for |r| <= ln(2) / 2.
#[inline(always)]
fn small<T: Float>(r: T) -> T {
    r.mul(r).fma(tail(r), r)
}

/// x = n ln 2 + r: (n shifted, r).
#[inline(always)]
fn reduce<T: Float>(x: T) -> (T, T) {
    let shifted = x.shifted(T::of(LOG2_E));
    let n = shifted.whole();
    (shifted, n.fma(T::of(-T::LN2_LO), n.fma(T::of(-T::LN2_HI), x)))
}

/// As [`reduce`], for `x + low` with a small `low`.
#[inline(always)]
fn reduce_sum<T: Float>(x: T, low: Option<T>) -> (T, T) {
    let (shifted, r) = reduce(x);
    (shifted, low.map_or(r, |low| r.add(low)))
}

/// e^(x + low), where result and x are within the normal range: no edges.
#[inline(always)]
pub(super) fn core<T: Float>(x: T, low: Option<T>) -> T {
    let (shifted, r) = reduce_sum(x, low);
    small(r).add(T::ONE).scale(shifted)
}

/// e^(x + low) for x <= 0, down to subnormal results; NaN for NaN.
#[inline(always)]
pub(super) fn falling<T: Float>(x: T, low: Option<T>) -> T {
    let clamped = at_least(x, T::EXP_LOW);
    let shifted = clamped.shifted(T::of(LOG2_E));
    let n = shifted.whole();
    // As `reduce`, with what the second product's difference lost: the result has more roundings to come.
    let first = n.fma(T::of(-T::LN2_HI), clamped);
    let r = n.fma(T::of(-T::LN2_LO), first);
    let lost = n.fma(T::of(-T::LN2_LO), first.sub(r));
    let (r, lost) = match low {
        Some(low) => {
            let sum = r.add(low);
            (sum, lost.add(r.sub(sum).add(low)))
        }
        None => (r, lost),
    };
    let y = r.mul(r).fma(tail(r), lost).add(r).add(T::ONE);
    let y = gradual(y, shifted, x.lt(T::of(T::EXP_SUBNORMAL)));
    if x <= T::ZERO { y } else { x }
}

/// `y` 2^n, where `low` says that the result may be subnormal: then it is made 2^64 times too great first.
#[inline(always)]
fn gradual<T: Float>(y: T, shifted: T, low: bool) -> T {
    const LIFT: f64 = (1u128 << 64) as f64;
    let lift = T::of(if low { 64.0 } else { 0.0 });
    let drop = T::of(if low { 1.0 / LIFT } else { 1.0 });
    y.scale(shifted.add(lift)).mul(drop)
}

#[inline(always)]
pub fn exp<T: Float>(x: T) -> T {
    exp_of(x, None)
}

/// e^(x + low).
#[inline(always)]
pub(super) fn exp_of<T: Float>(x: T, low: Option<T>) -> T {
    let (shifted, r) = reduce_sum(at_least(x, T::EXP_LOW), low);
    let y = gradual(small(r).add(T::ONE), shifted, x.lt(T::of(T::EXP_SUBNORMAL)));
    // Above, infinity; NaN stays.
    if x <= T::of(T::EXP_HIGH) { y } else { x.add(T::INFINITY) }
}

#[inline(always)]
pub fn exp2<T: Float>(x: T) -> T {
    let clamped = at_least(x, T::EXP_LOW * 1.45);
    let shifted = clamped.shifted(T::ONE);
    let r = clamped.sub(shifted.whole()).mul(T::of(LN_2));
    let low = x.lt(T::of(T::EXP_SUBNORMAL * LOG2_E));
    let y = gradual(small(r).add(T::ONE), shifted, low);
    if x < T::of(if T::SINGLE { 128.0 } else { 1024.0 }) { y } else { x.add(T::INFINITY) }
}

#[inline(always)]
pub fn expm1<T: Float>(x: T) -> T {
    // Below -60 the answer is -1 in either precision.
    let (shifted, r) = reduce(at_least(x, -60.0));
    // 2^n would overflow one step too early: halve, and double at the end.
    let half = T::power_of_two(shifted.sub(T::ONE));
    let y = small(r).fma(half, half.sub(T::of(0.5)));
    let y = if x <= T::of(T::EXP_HIGH) { y.add(y) } else { x.add(T::INFINITY) };
    if x.absolute() < T::of(1e-30) { x } else { y }
}

/// On [0, 1]: 2^-34 and 2^-63.
#[inline(always)]
pub fn sinh<T: Float>(x: T) -> T {
    let a = x.absolute();
    let z = a.mul(a);
    let p = if T::SINGLE {
        horner(z, [0.1666666649756341, 0.00833335005814309, 0.0001983615977315189, 2.8169512808038713e-06])
    } else {
        horner(
            z,
            [
                0.16666666666666669,
                0.008333333333333148,
                0.00019841269841431875,
                2.7557319157070645e-06,
                2.505212313691506e-08,
                1.60572597541852e-10,
                7.758749227819664e-13,
            ],
        )
    };
    let near = odd(a, z, p);
    let (e, inverse) = halves(a);
    let far = edge(a, e.sub(inverse));
    let y = if a < T::ONE { near } else { far };
    y.with_sign_of(x)
}

#[inline(always)]
pub fn cosh<T: Float>(x: T) -> T {
    let a = x.absolute();
    let (e, inverse) = halves(a);
    edge(a, e.add(inverse))
}

/// e^a / 2 and e^-a / 2 for a >= 0, the first finite one step beyond where e^a is.
#[inline(always)]
fn halves<T: Float>(a: T) -> (T, T) {
    let (shifted, r) = reduce(at_most(a, T::EXP_HIGH + 1.0));
    // A quarter of e^a: its exponent stays in range; 2^n from a sum that is one less.
    let quarter = small(r).add(T::ONE).scale(shifted.sub(T::of(2.0)));
    let inverse = T::of(0.125).div(quarter);
    (quarter.add(quarter), inverse)
}

/// Infinity where sinh and cosh overflow; NaN for NaN.
#[inline(always)]
fn edge<T: Float>(a: T, y: T) -> T {
    if a <= T::of(if T::SINGLE { 89.4159851 } else { 710.4758600739439 }) { y } else { a.add(T::INFINITY) }
}

/// (1 - e) / (1 + e) with e = e^-2|x|: with a falling power the divisor of a small argument is just below a power of
/// two, where its rounding counts half.
#[inline(always)]
pub fn tanh<T: Float>(x: T) -> T {
    if !T::FUSED {
        return tanh_of_rounded(x);
    }
    let a = at_most(x.absolute(), if T::SINGLE { 9.1 } else { 19.1 });
    let b = a.add(a);
    // b = r - n ln 2
    let sum = b.fma(T::of(-LOG2_E), T::of(T::BIASED));
    let (n, power) = (sum.sub(T::of(T::BIASED)), sum.raised());
    // (1 - e^-r - r) / r^2 for |r| <= ln(2) / 2: 2^-26 and 2^-61 of 1 - e^-r.
    let fall = if T::SINGLE {
        const SERIES: [f64; 5] = [
            -0.4999999813323917,
            0.1666654268388823,
            -0.0416672038517345,
            0.008366646855969821,
            -0.0013882500988954389,
        ];
        let r = n.fma(T::of(LN_2), b);
        r.mul(r).fma(horner(r, SERIES), r)
    } else {
        const SERIES: [f64; 11] = [
            -0.5,
            0.16666666666666677,
            -0.04166666666666651,
            0.008333333333321653,
            -0.0013888888888962567,
            0.0001984126988607622,
            -2.480158717227786e-05,
            2.755724425164444e-06,
            -2.7557402745371925e-07,
            2.5109025291848032e-08,
            -2.0875336667326748e-09,
        ];
        let first = n.fma(T::of(T::LN2_HI), b);
        let r = n.fma(T::of(T::LN2_LO), first);
        let lost = n.fma(T::of(T::LN2_LO), first.sub(r));
        r.mul(r).fma(horner(r, SERIES), lost).add(r)
    };
    let over = power.fma(fall, T::ONE.sub(power));
    let under = power.fma(fall.neg(), T::ONE.add(power));
    over.div(under).with_sign_of(x)
}

/// As [`tanh`], where products are rounded: a series near 0 and the exponential elsewhere.
#[inline(always)]
fn tanh_of_rounded<T: Float>(x: T) -> T {
    // On [0, 0.55]: 2^-29 and 2^-55.
    let a = x.absolute();
    let z = a.mul(a);
    let p = if T::SINGLE {
        horner(
            z,
            [
                -0.3333331771813373,
                0.1333259207430112,
                -0.0538529866897214,
                0.02107467312099439,
                -0.006278750287888707,
            ],
        )
    } else {
        horner(
            z,
            [
                -0.3333333333333233,
                0.13333333333171693,
                -0.05396825387755416,
                0.02186948601033074,
                -0.00886319498584367,
                0.0035917236255969907,
                -0.001453236411308251,
                0.0005791960661050866,
                -0.00021040012516453097,
                5.108992933987725e-05,
            ],
        )
    };
    let near = odd(a, z, p);
    let b = at_most(a, if T::SINGLE { 9.1 } else { 19.1 });
    let e = core(b.add(b), None);
    let far = T::ONE.sub(T::of(2.0).div(e.add(T::ONE)));
    let y = if a < T::of(0.549) { near } else { far };
    let y = if a == a { y } else { a };
    y.with_sign_of(x)
}

/// 1 / (1 + e^-x), without overflow on either side.
#[inline(always)]
pub fn sigmoid<T: Float>(x: T) -> T {
    let e = falling(x.absolute().neg(), None);
    let numerator = if x < T::ZERO { e } else { T::ONE };
    let sum = e.add(T::ONE);
    let y = numerator.div(sum);
    // What sum and quotient lost, over a sum in [1, 2]: most of it is enough.
    let product = y.mul(sum);
    let left = numerator.sub(product).sub(product_error(y, sum, product));
    y.mul(e.sub(sum.sub(T::ONE))).neg().add(left).fma(T::of(0.75), y)
}

/// x / (1 + e^-x), without overflow on either side.
#[inline(always)]
pub fn silu<T: Float>(x: T) -> T {
    let e = falling(x.absolute().neg(), None);
    let left = x < T::ZERO;
    let product = x.mul(e);
    let numerator = if left { product } else { x };
    let lost = if left { product_error(x, e, product) } else { T::ZERO };
    let sum = e.add(T::ONE);
    let y = numerator.div(sum);
    // As of `sigmoid`.
    let product = y.mul(sum);
    let rest = numerator.sub(product).sub(product_error(y, sum, product)).add(lost);
    let y = y.mul(e.sub(sum.sub(T::ONE))).neg().add(rest).fma(T::of(0.75), y);
    let edge = if left { T::ZERO } else { x };
    if x.absolute() < T::INFINITY { y } else { edge }
}
