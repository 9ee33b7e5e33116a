//! Elementary functions as branchless polynomials that vectorise: exp, log, tanh, erf, sin, cos and kin.
//! Errors stay within 2 units in the last place. No fused multiply-add, so every instruction set agrees.
//!
//! Series are Taylor's, with coefficients computed here: after reduction the arguments are so small that
//! a minimax fit would save one or two terms only.

use crate::kernel::num::Float;

const FACTORIALS: usize = 22;

/// 1 / k!
pub const INVERSE_FACTORIAL: [f64; FACTORIALS] = {
    let mut table = [1.0; FACTORIALS];
    let mut k = 1;
    let mut factorial = 1.0; // exact up to 22!
    while k < FACTORIALS {
        factorial *= k as f64;
        table[k] = 1.0 / factorial;
        k += 1;
    }
    table
};

/// Horner's rule; `coefficient(k)` for powers 0 to `terms - 1`.
#[inline(always)]
fn polynomial<T: Float>(x: T, terms: usize, coefficient: impl Fn(usize) -> f64) -> T {
    let mut sum = T::of(coefficient(terms - 1));
    for k in (0..terms - 1).rev() {
        sum = sum.mul(x).add(T::of(coefficient(k)));
    }
    sum
}

/// (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2.
#[inline(always)]
fn exp_tail<T: Float>(r: T) -> T {
    polynomial(r, T::EXP_TERMS, |k| INVERSE_FACTORIAL[k + 2])
}

/// x = n ln 2 + r: (n as a whole float, r).
#[inline(always)]
fn reduce_exp<T: Float>(x: T) -> (T, T) {
    let n = x.mul(T::of(std::f64::consts::LOG2_E)).nearest();
    (n, x.sub(n.mul(T::of(T::LN2_HI))).sub(n.mul(T::of(T::LN2_LO))))
}

#[inline(always)]
fn clamp<T: Float>(x: T, low: f64, high: f64) -> T {
    let (low, high) = (T::of(low), T::of(high));
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}

#[inline(always)]
pub fn exp<T: Float>(x: T) -> T {
    let (n, r) = reduce_exp(clamp(x, T::EXP_LOW, T::EXP_HIGH));
    r.mul(r).mul(exp_tail(r)).add(r).add(T::ONE).times_pow2(n)
}

#[inline(always)]
pub fn exp2<T: Float>(x: T) -> T {
    let x = clamp(x, T::EXP_LOW * 1.45, T::EXP_HIGH * 1.45);
    let n = x.nearest();
    let r = x.sub(n).mul(T::of(std::f64::consts::LN_2));
    r.mul(r).mul(exp_tail(r)).add(r).add(T::ONE).times_pow2(n)
}

#[inline(always)]
pub fn expm1<T: Float>(x: T) -> T {
    // Below -60 the answer is -1 in either precision.
    let (n, r) = reduce_exp(clamp(x, -60.0, T::EXP_HIGH));
    let small = r.mul(r).mul(exp_tail(r)).add(r);
    // 2^n would overflow one step too early: halve, and double at the end.
    let half = T::of(0.5).times_pow2(n);
    let y = small.mul(half).add(half.sub(T::of(0.5)));
    let y = y.add(y);
    if x.absolute() < T::of(1e-30) { x } else { y }
}

/// ln(1 + f) for 1 + f in [sqrt(1/2), sqrt(2)], given `carry` to be added: with s = f / (2 + f),
/// ln(1 + f) = 2 atanh(s), arranged so that the leading f enters exactly.
#[inline(always)]
fn log_near_one<T: Float>(f: T, carry: T) -> T {
    let s = f.div(f.add(T::of(2.0)));
    let z = s.mul(s);
    let series = z.mul(polynomial(z, T::LOG_TERMS, |k| 2.0 / (2 * k + 3) as f64));
    let half_square = f.mul(f).mul(T::of(0.5));
    f.sub(half_square.sub(s.mul(half_square.add(series)).add(carry)))
}

/// The values that logarithms have outside of (0, inf).
#[inline(always)]
fn log_edges<T: Float>(x: T, y: T) -> T {
    let y = if x < T::INFINITY { y } else { x }; // inf and NaN
    let y = if x < T::ZERO { T::NAN } else { y };
    if x == T::ZERO { T::INFINITY.neg() } else { y }
}

#[inline(always)]
pub fn log<T: Float>(x: T) -> T {
    let (m, k) = x.split();
    let y = log_near_one(m.sub(T::ONE), k.mul(T::of(T::LN2_LO))).add(k.mul(T::of(T::LN2_HI)));
    log_edges(x, y)
}

#[inline(always)]
pub fn log2<T: Float>(x: T) -> T {
    let (m, k) = x.split();
    let y = log_near_one(m.sub(T::ONE), T::ZERO).mul(T::of(std::f64::consts::LOG2_E)).add(k);
    log_edges(x, y)
}

#[inline(always)]
pub fn log1p<T: Float>(x: T) -> T {
    let u = x.add(T::ONE);
    // What the sum lost, as a part of u; the logarithm's derivative there is 1 / u.
    let lost = if x.absolute() < T::ONE { x.sub(u.sub(T::ONE)) } else { T::ONE.sub(u.sub(x)) };
    let (m, k) = u.split();
    let carry = lost.div(u).add(k.mul(T::of(T::LN2_LO)));
    let y = log_near_one(m.sub(T::ONE), carry).add(k.mul(T::of(T::LN2_HI)));
    let y = log_edges(u, y);
    if x.absolute() < T::of(1e-20) { x } else { y }
}

#[inline(always)]
pub fn tanh<T: Float>(x: T) -> T {
    let t = expm1(x.absolute().mul(T::of(-2.0)));
    let below = t.add(T::of(2.0));
    let near = t.neg().div(below);
    // Where the answer nears 1, its distance from 1 is the more exact part.
    let e = t.add(T::ONE);
    let far = T::ONE.sub(e.add(e).div(below));
    let y = if t < T::of(-0.5) { far } else { near };
    let y = y.with_sign_of(x);
    if x.absolute() < T::of(1e-20) { x } else { y }
}

/// 1 / (1 + e^-x), without overflow on either side.
#[inline(always)]
pub fn sigmoid<T: Float>(x: T) -> T {
    let e = exp(x.absolute().neg());
    let numerator = if x < T::ZERO { e } else { T::ONE };
    numerator.div(e.add(T::ONE))
}

/// ln(1 + e^x), without overflow.
#[inline(always)]
pub fn softplus<T: Float>(x: T) -> T {
    let positive = if x < T::ZERO { T::ZERO } else { x };
    positive.add(log1p(exp(x.absolute().neg())))
}

/// e^(x^2) erfc(x) on [1, 6] as a polynomial in (x - 2) / (x + 2): an interpolation at Chebyshev nodes
/// computed with 50 digits, 5e-19 off at most.
const ERFCX: [f64; 19] = [
    0.25539567631050575,
    -0.4271858474139584,
    0.24165819424246632,
    -0.07897858101573253,
    0.0037328924043494834,
    0.006997461739228476,
    -0.0008471432522752253,
    -0.0009819770269162648,
    4.3555644272098927e-05,
    0.00017436114311543651,
    2.752476736316505e-05,
    -2.757901311902191e-05,
    -1.396149006742397e-05,
    1.380584247725399e-06,
    3.7601677167193133e-06,
    1.2559897861345693e-06,
    -5.060915438693049e-07,
    -6.144477167995065e-07,
    1.340884871736239e-07,
];

#[inline(always)]
pub fn erf<T: Float>(x: T) -> T {
    let a = x.absolute();
    let square = a.mul(a);
    // Near zero: the series of the integral, 2/sqrt(pi) sum (-1)^k x^(2k+1) / (k! (2k+1)).
    let near = x.mul(polynomial(square, T::ERF_TERMS, |k| {
        let sign = if k % 2 == 0 { 1.0 } else { -1.0 };
        sign * std::f64::consts::FRAC_2_SQRT_PI * INVERSE_FACTORIAL[k] / (2 * k + 1) as f64
    }));
    let b = clamp(a, 1.0, 6.0);
    let t = b.sub(T::of(2.0)).div(b.add(T::of(2.0)));
    let scaled = polynomial(t, T::ERFCX_TERMS, |k| ERFCX[k]);
    let far = T::ONE.sub(scaled.mul(exp(b.mul(b).neg()))).with_sign_of(x);
    if a < T::ONE { near } else { far }
}

/// The inverse of [`erf`] in double precision: M. B. Giles' single-precision approximation ("Approximating
/// the erfinv function", GPU Computing Gems 2, 2010), then two steps of Halley's method.
#[inline(always)]
pub fn erfinv(x: f64) -> f64 {
    const CENTRE: [f64; 9] = [
        1.50140941,
        0.246640727,
        -0.00417768164,
        -0.00125372503,
        0.00021858087,
        -4.39150654e-06,
        -3.5233877e-06,
        3.43273939e-07,
        2.81022636e-08,
    ];
    const TAIL: [f64; 9] = [
        2.83297682,
        1.00167406,
        0.00943887047,
        -0.0076224613,
        0.00573950773,
        -0.00367342844,
        0.00134934322,
        0.000100950558,
        -0.000200214257,
    ];
    let w = -log((1.0 - x) * (1.0 + x));
    let centre = polynomial(w - 2.5, 9, |k| CENTRE[k]);
    let tail = polynomial(w.sqrt() - 3.0, 9, |k| TAIL[k]);
    let mut y = x * if w < 5.0 { centre } else { tail };
    for _ in 0..2 {
        let step = (erf(y) - x) / (std::f64::consts::FRAC_2_SQRT_PI * exp(-y * y));
        y -= step / (1.0 + y * step);
    }
    if x.abs() < 1.0 && x != 0.0 {
        y
    } else if x == 0.0 {
        x
    } else if x.abs() == 1.0 {
        f64::INFINITY.copysign(x)
    } else {
        f64::NAN
    }
}

/// Beyond this the three-part reduction loses digits and the library's function is called.
pub const TRIG_LIMIT: f64 = 1e5;

/// pi / 2 in parts of 33 bits, so that their products with a count below 2^20 are exact.
const HALF_PI: [f64; 3] = [1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21];

/// x = n pi/2 + r + low, |r| <= pi/4: (n mod 4, r, low).
#[inline(always)]
fn reduce_trig(x: f64) -> (i64, f64, f64) {
    // The low bits of n in this sum are the integer n, which a conversion would give more slowly.
    const MAGIC: f64 = 6755399441055744.0;
    let shifted = x * std::f64::consts::FRAC_2_PI + MAGIC;
    let n = shifted - MAGIC;
    let first = x - n * HALF_PI[0];
    let second = n * HALF_PI[1];
    let r = first - second;
    // The rounding error of that difference, exactly.
    let back = r - first;
    let low = (first - (r - back)) - (second + back) - n * HALF_PI[2];
    (shifted.to_bits() as i64, r, low)
}

/// sin of x (`quarter` 0) or of x + pi/2 (`quarter` 1).
#[inline(always)]
pub fn sin_shifted(x: f64, quarter: i64) -> f64 {
    let (n, r, low) = reduce_trig(if x.abs() < TRIG_LIMIT { x } else { 0.0 });
    let n = n + quarter;
    let z = r * r;
    let signed = |k: usize| if k.is_multiple_of(2) { -1.0 } else { 1.0 };
    let sine = r + (low + r * z * polynomial(z, 8, |k| signed(k) * INVERSE_FACTORIAL[2 * k + 3]));
    let tail = z * z * polynomial(z, 7, |k| -signed(k) * INVERSE_FACTORIAL[2 * k + 4]);
    let half = 0.5 * z;
    let whole = 1.0 - half;
    let cosine = whole + (((1.0 - whole) - half) + (tail - r * low));
    let y = if n & 1 == 0 { sine } else { cosine };
    let y = if n & 2 == 0 { y } else { -y };
    if x == 0.0 && quarter == 0 { x } else { y }
}
