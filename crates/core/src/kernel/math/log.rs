//! Logarithms, and what is made of log(1 + x).

use super::exp::falling;
use super::horner;
use crate::kernel::float::Float;
use std::f64::consts::{LOG2_E, LOG10_2, LOG10_E, SQRT_2};

/// ln(1 + f) - f for 1 + f in [sqrt(1/2), sqrt(2)]: 2^-27 and 2^-59 of ln(1 + f).
#[inline(always)]
fn bent<T: Float>(f: T) -> T {
    let square = f.mul(f);
    if T::SINGLE {
        let p = horner(
            f,
            [
                0.3333333168514992,
                -0.25000820992098743,
                0.2000122781001534,
                -0.16623359642125732,
                0.14201745833359614,
                -0.13160151805203374,
                0.12761627676231077,
                -0.07634621529947008,
            ],
        );
        return square.mul(f).fma(p, square.mul(T::of(-0.5)));
    }
    // With s = f / (2 + f), ln(1 + f) = 2 atanh(s), arranged so that the leading f enters exactly.
    let s = f.div(f.add(T::of(2.0)));
    let z = s.mul(s);
    let series = z.mul(horner(
        z,
        [
            0.6666666666666735,
            0.39999999999413133,
            0.28571428742767224,
            0.22222198530895496,
            0.18183566684858937,
            0.15313986323702647,
            0.1479662931162099,
        ],
    ));
    let half = square.mul(T::of(0.5));
    s.fma(half.add(series), half.neg())
}

/// k ln 2 + ln(1 + f).
#[inline(always)]
fn joined<T: Float>(f: T, k: T) -> T {
    k.fma(T::of(T::LN2_HI), f.add(k.fma(T::of(T::LN2_LO), bent(f))))
}

/// The values that logarithms have outside of (0, inf).
#[inline(always)]
fn edges<T: Float>(x: T, y: T) -> T {
    let y = if x < T::INFINITY { y } else { x }; // inf and NaN
    let y = if x < T::ZERO { T::NAN } else { y };
    if x == T::ZERO { T::INFINITY.neg() } else { y }
}

#[inline(always)]
pub fn log<T: Float>(x: T) -> T {
    let (m, k) = x.split();
    edges(x, joined(m.sub(T::ONE), k))
}

/// As [`log`], for a sum whose logarithm is wanted in other units: `k unit + ln(m) scale`. The scale is in two parts,
/// the first so short that its product with a truncated number is exact.
#[inline(always)]
fn log_in<T: Float>(x: T, unit: (f64, f64), scale: (f64, f64)) -> T {
    let (m, k) = x.split();
    let f = m.sub(T::ONE);
    let rest = bent(f);
    let sum = f.add(rest);
    let high = sum.truncated();
    let low = f.sub(high).add(rest);
    let (scale_high, scale_low) = (T::of(scale.0), T::of(scale.1));
    let tail = high.fma(scale_low, low.mul(scale_high.add(scale_low)));
    let tail = k.fma(T::of(unit.1), tail);
    let y = k.mul(T::of(unit.0)).add(high.mul(scale_high).add(tail));
    edges(x, y)
}

/// The first half of the digits of `x`, and the rest.
const fn halved<T: Float>(x: f64) -> (f64, f64) {
    let cut = if T::SINGLE { 41 } else { 28 };
    let high = f64::from_bits(x.to_bits() >> cut << cut);
    (high, x - high)
}

#[inline(always)]
pub fn log2<T: Float>(x: T) -> T {
    // log2(e) goes on past a double: 2.0355273740931033e-17.
    let (high, low) = const { halved::<T>(LOG2_E) };
    log_in(x, (1.0, 0.0), (high, low + 2.0355273740931033e-17))
}

#[inline(always)]
pub fn log10<T: Float>(x: T) -> T {
    let unit = const { halved::<T>(LOG10_2) };
    let (high, low) = const { halved::<T>(LOG10_E) };
    log_in(x, (unit.0, unit.1 - 2.8037281277851704e-18), (high, low + 1.098319650216765e-17))
}

#[inline(always)]
pub fn log1p<T: Float>(x: T) -> T {
    let u = x.add(T::ONE);
    let (m, k) = u.split();
    // (1 + x) 2^-k - 1 from x itself, which has what the sum lost.
    let power = T::power_of_two(k.neg().shifted(T::ONE));
    let f = x.fma(power, power.sub(T::ONE));
    let f = if x < T::of(1e30) { f } else { m.sub(T::ONE) };
    let y = edges(u, joined(f, k));
    if x.absolute() < T::of(1e-20) { x } else { y }
}

/// ln(1 + e) for e in [0, 1].
#[inline(always)]
fn log1p_unit<T: Float>(e: T) -> T {
    let upper = e > T::of(SQRT_2 - 1.0);
    let f = if upper { e.fma(T::of(0.5), T::of(-0.5)) } else { e };
    let k = if upper { T::ONE } else { T::ZERO };
    joined(f, k)
}

/// ln(1 + e^x), without overflow.
#[inline(always)]
pub fn softplus<T: Float>(x: T) -> T {
    let positive = if x < T::ZERO { T::ZERO } else { x };
    positive.add(log1p_unit(falling(x.absolute().neg(), None)))
}

/// ln(e^a + e^b), whose greater operand is taken out so that nothing overflows.
#[inline(always)]
pub fn logaddexp<T: Float>(a: T, b: T) -> T {
    let top = a.maximum(b);
    let apart = a.sub(b).absolute().neg();
    // Equal infinities have no difference.
    let apart = if a == b { T::ZERO } else { apart };
    top.add(log1p_unit(falling(apart, None)))
}
