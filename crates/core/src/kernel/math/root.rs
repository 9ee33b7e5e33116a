//! Cube roots and powers.

use super::exp::exp_of;
use super::{horner, product_error, two_sum};
use crate::kernel::float::Float;
use crate::kernel::num::Num;

/// First guesses on [sqrt(1/2), sqrt(2)], 2^-16 and 2^-19 off; then a step that squares or cubes the error.
#[inline(always)]
pub fn cbrt<T: Float>(x: T) -> T {
    const ROOT: f64 = 1.2599210498948732;
    let a = x.absolute();
    let (m, k) = a.split();
    let third = k.shifted(T::of(1.0 / 3.0));
    let left = third.whole().fma(T::of(-3.0), k); // -1, 0 or 1
    let up = left > T::of(0.5);
    let down = left < T::of(-0.5);
    let factor = T::of(if up { ROOT } else { 1.0 });
    let factor = if down { T::of(1.0 / ROOT) } else { factor };
    let power = T::of(if up { 2.0 } else { 1.0 });
    let m_power = m.mul(if down { T::of(0.5) } else { power });
    let y = if T::SINGLE {
        let y = factor.mul(horner(
            m,
            [
                0.45166719331066885,
                0.9048175820171406,
                -0.5356293372416018,
                0.21693685162694915,
                -0.03778804424823344,
            ],
        ));
        let step = y.sub(m_power.div(y.mul(y)));
        step.fma(T::of(-1.0 / 3.0), y)
    } else {
        let y = factor.mul(horner(
            m,
            [
                0.42168965668512,
                1.0560156299238839,
                -0.8360707795611012,
                0.5109667762001833,
                -0.1795572647383053,
                0.026954994605503466,
            ],
        ));
        let cube = y.mul(y).mul(y);
        let step = cube.sub(m_power).div(cube.add(cube).add(m_power));
        y.sub(y.mul(step))
    };
    let y = y.scale(third);
    let y = if (a > T::ZERO) & (a < T::INFINITY) { y } else { a };
    y.with_sign_of(x)
}

/// a^b for operands that are not [`power_is_rare`]. Float32 in double precision, where e^(b ln a) keeps all its
/// digits; float64 with the logarithm in two parts.
#[inline(always)]
pub fn power<T: Float>(a: T, b: T) -> T {
    if T::SINGLE {
        let (a, b) = (a.to_double(), b.to_double());
        return T::from_double(super::exp(b.mul(super::log(a))));
    }
    let (high, low) = log_parts(a);
    let product = b.mul(high);
    let lost = b.fma(high, product.neg());
    let low = b.fma(low, lost);
    // Far out the parts may be infinite, and what is added does not count.
    let low = if product.absolute() < T::of(1e4) { low } else { T::ZERO };
    exp_of(product, Some(low))
}

/// Whether the library must answer: for bases that have no logarithm, for infinities and NaN, and for float64
/// where products are rounded.
#[inline(always)]
pub fn power_is_rare<T: Float>(a: T, b: T) -> bool {
    (!T::SINGLE && !T::FUSED) | !((a > T::ZERO) & (a < T::INFINITY) & (b.absolute() < T::INFINITY))
}

/// ln(a) as a sum of two, to 2^-65, where products are not rounded. With s = f / (2 + f) it is
/// 2 s + 2/3 s^3 + ...: the first two terms in two parts each.
#[inline(always)]
fn log_parts<T: Float>(a: T) -> (T, T) {
    let (m, k) = a.split();
    let f = m.sub(T::ONE);
    let two = T::of(2.0);
    let d = f.add(two);
    let d_low = f.sub(d.sub(two));
    let s = f.div(d);
    let s_low = s.fma(d.neg(), f).sub(s.mul(d_low)).div(d);
    let z = s.mul(s);
    let z_low = product_error(s, s, z).add(s.add(s).mul(s_low));
    // What follows the cubic term, over s^5: 2^-73 of the logarithm.
    let series = horner(
        z,
        [
            0.3999999999999998,
            0.2857142857144515,
            0.22222222217527046,
            0.18181818871473615,
            0.15384556791663265,
            0.13336320482147665,
            0.11674756104582726,
            0.11989534696995152,
        ],
    );
    // The cubic term's factor of s: 2/3 z, in two parts (2/3 goes on with 3.700743415417188e-17).
    let c = z.mul(T::of(2.0 / 3.0));
    let c_low = z
        .fma(T::of(2.0 / 3.0), c.neg())
        .add(z_low.mul(T::of(2.0 / 3.0)))
        .add(z.mul(T::of(3.700743415417188e-17)));
    let rest = z.mul(z).fma(series, c_low);
    // s (2 + c + rest)
    let third = s.mul(c);
    let third_low = s.fma(c, third.neg()).add(s.mul(rest)).add(s_low.mul(c));
    // k ln 2 + 2 s + third, from great to small.
    let base = k.mul(T::of(T::LN2_HI));
    let base_low = k.mul(T::of(T::LN2_LO));
    let twice = s.add(s);
    let (sum, lost) = two_sum(base, twice);
    let (sum, lost_too) = two_sum(sum, third);
    let low = lost.add(lost_too).add(base_low.add(s_low.add(s_low)).add(third_low));
    let high = sum.add(low);
    (high, low.sub(high.sub(sum)))
}
