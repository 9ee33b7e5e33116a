//! Elementary functions as branchless polynomials that vectorise, at most 2 units in the last place off, special
//! values exact. They must not know vectors, tiles or ops.
//!
//! Coefficients are minimax fits (Remez exchange with 50 digits) of what is left after the leading terms, which
//! enter exactly; each table says its interval and its greatest relative error in the function's result.

mod circular;
mod erf;
mod exp;
mod inverse;
mod log;
mod root;

pub use circular::{TRIG_LIMIT, cos, sin, tan};
pub use erf::{erf, erfinv, gelu};
pub use exp::{cosh, decay, exp, exp2, expm1, sigmoid, silu, sinh, tanh};
pub use inverse::{arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctan2_is_rare, arctanh};
pub use log::{log, log1p, log2, log10, logaddexp, softplus};
pub use root::{cbrt, power, power_is_rare};

use crate::kernel::float::Float;

/// Horner's rule; coefficients from the constant up.
#[inline(always)]
fn horner<T: Float, const N: usize>(x: T, coefficients: [f64; N]) -> T {
    let mut sum = T::of(coefficients[N - 1]);
    for k in (0..N - 1).rev() {
        sum = sum.fma(x, T::of(coefficients[k]));
    }
    sum
}

/// `x + x z p` for an odd series whose leading term is `x`, with z = x^2.
#[inline(always)]
fn odd<T: Float>(x: T, z: T, p: T) -> T {
    x.mul(z).fma(p, x)
}

/// `a * b - product` where `product` is that product rounded.
#[inline(always)]
fn product_error<T: Float>(a: T, b: T, product: T) -> T {
    if T::FUSED {
        return a.fma(b, product.neg());
    }
    let (a_high, b_high) = (a.truncated(), b.truncated());
    let (a_low, b_low) = (a.sub(a_high), b.sub(b_high));
    let middle = a_high.mul(b_low).add(a_low.mul(b_high));
    a_high.mul(b_high).sub(product).add(middle).add(a_low.mul(b_low))
}

/// The sum rounded, and what it lost.
#[inline(always)]
fn two_sum<T: Float>(a: T, b: T) -> (T, T) {
    let sum = a.add(b);
    let part = sum.sub(a);
    (sum, a.sub(sum.sub(part)).add(b.sub(part)))
}

/// The lesser one; `x` where it is NaN.
#[inline(always)]
fn at_most<T: Float>(x: T, limit: f64) -> T {
    let limit = T::of(limit);
    if x > limit { limit } else { x }
}

/// The greater one; `x` where it is NaN.
#[inline(always)]
fn at_least<T: Float>(x: T, limit: f64) -> T {
    let limit = T::of(limit);
    if x < limit { limit } else { x }
}
