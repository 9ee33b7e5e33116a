//! Sine, cosine and tangent of arguments up to [`TRIG_LIMIT`]; beyond it callers ask the library.

use super::{horner, odd};
use crate::kernel::float::Float;
use std::f64::consts::FRAC_2_PI;

/// Beyond this the three-part reduction loses digits and the library's function is called.
pub const TRIG_LIMIT: f64 = 1e5;

/// pi / 2 in parts of 33 bits, so that their products with a count below 2^20 are exact.
const HALF_PI: [f64; 3] = [1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21];
/// pi / 2 in parts of 24 bits, for products that are not rounded.
const HALF_PI_SHORT: [f64; 3] = [1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15];

/// x = n pi/2 + r + low, |r| <= pi/4: (n shifted, r, low).
#[inline(always)]
fn reduce<T: Float>(x: T) -> (T, T, T) {
    let shifted = x.shifted(T::of(FRAC_2_PI));
    let n = shifted.whole();
    let first = x.sub(n.mul(T::of(HALF_PI[0])));
    let second = n.mul(T::of(HALF_PI[1]));
    let r = first.sub(second);
    // The rounding error of that difference, exactly.
    let back = r.sub(first);
    let low = first.sub(r.sub(back)).sub(second.add(back)).sub(n.mul(T::of(HALF_PI[2])));
    (shifted, r, low)
}

/// A number as a sum that is not rounded, the greater part first.
#[derive(Clone, Copy)]
struct Parts<T>(T, T);

impl<T: Float> Parts<T> {
    #[inline(always)]
    fn sum(self) -> T {
        self.0.add(self.1)
    }

    /// The sum, and what its rounding lost.
    #[inline(always)]
    fn with_error(self) -> (T, T) {
        let sum = self.sum();
        (sum, self.1.sub(sum.sub(self.0)))
    }
}

/// sin and cos of r + low, |r| <= pi/4, in double precision: 2^-68 and 2^-64.
#[inline(always)]
fn both<T: Float>(r: T, low: T) -> (Parts<T>, Parts<T>) {
    let z = r.mul(r);
    let p = horner(
        z,
        [
            -0.16666666666666666,
            0.008333333333333323,
            -0.00019841269841254782,
            2.7557319214055177e-06,
            -2.5052104879288774e-08,
            1.6058362832727399e-10,
            -7.578523540912926e-13,
        ],
    );
    let sine = Parts(r, r.mul(z).fma(p, low));
    let q = horner(
        z,
        [
            0.0416666666666666,
            -0.001388888888887412,
            2.4801587289479477e-05,
            -2.7557314351512964e-07,
            2.087572315682217e-09,
            -1.135964152862925e-11,
        ],
    );
    let half = z.mul(T::of(0.5));
    let whole = T::ONE.sub(half);
    let rest = z.mul(z).fma(q, r.mul(low).neg());
    let cosine = Parts(whole, T::ONE.sub(whole).sub(half).add(rest));
    (sine, cosine)
}

/// The value for a count of quarters: sine or cosine, and its sign.
#[inline(always)]
fn pick<T: Float>(shifted: T, sine: T, cosine: T) -> T {
    let y = if shifted.shifted_bit(0) { cosine } else { sine };
    if shifted.shifted_bit(1) { y.neg() } else { y }
}

/// In double precision: sin of x (`quarter` 0) or of x + pi/2 (`quarter` 1).
#[inline(always)]
fn wide<T: Float>(x: T, quarter: f64) -> T {
    let (shifted, r, low) = reduce(x);
    let (sine, cosine) = both(r, low);
    pick(shifted.add(T::of(quarter)), sine.sum(), cosine.sum())
}

/// In single precision with unrounded products: 2^-37 and 2^-33.
#[inline(always)]
fn narrow<T: Float>(x: T, quarter: f64) -> T {
    let shifted = x.shifted(T::of(FRAC_2_PI));
    let n = shifted.whole();
    let first = n.fma(T::of(-HALF_PI_SHORT[0]), x);
    let second = n.fma(T::of(-HALF_PI_SHORT[1]), first);
    let r = n.fma(T::of(-HALF_PI_SHORT[2]), second);
    let z = r.mul(r);
    let p = horner(
        z,
        [-0.16666666640770078, 0.008333329301704943, -0.00019839311255156754, 2.7181119086900573e-06],
    );
    let q = horner(z, [0.04166664685507391, -0.00138873669143064, 2.4438377092648816e-05]);
    let cosine = z.mul(z).fma(q, z.fma(T::of(-0.5), T::ONE));
    pick(shifted.add(T::of(quarter)), odd(r, z, p), cosine)
}

#[inline(always)]
fn circle<T: Float>(x: T, quarter: f64) -> T {
    if T::SINGLE && T::FUSED {
        narrow(x, quarter)
    } else if T::SINGLE {
        T::from_double(wide(x.to_double(), quarter))
    } else {
        wide(x, quarter)
    }
}

/// For |x| < [`TRIG_LIMIT`].
#[inline(always)]
pub fn sin<T: Float>(x: T) -> T {
    let y = circle(x, 0.0);
    // Keeps the sign of zero.
    if x == T::ZERO { x } else { y }
}

/// For |x| < [`TRIG_LIMIT`].
#[inline(always)]
pub fn cos<T: Float>(x: T) -> T {
    circle(x, 1.0)
}

/// For |x| < [`TRIG_LIMIT`].
#[inline(always)]
pub fn tan<T: Float>(x: T) -> T {
    #[inline(always)]
    fn wide<T: Float, const SINGLE: bool>(x: T) -> T {
        let (shifted, r, low) = reduce(x);
        let (sine, cosine) = both(r, low);
        let minus = Parts(cosine.0.neg(), cosine.1.neg());
        let (over, under) = if shifted.shifted_bit(0) { (minus, sine) } else { (sine, cosine) };
        if SINGLE {
            return over.sum().div(under.sum());
        }
        // The errors of both sums and of the quotient would be more than 2 units.
        let ((over, over_lost), (under, under_lost)) = (over.with_error(), under.with_error());
        let y = over.div(under);
        y.add(over_lost.sub(y.mul(under_lost)).div(under))
    }
    let y = if T::SINGLE { T::from_double(wide::<_, true>(x.to_double())) } else { wide::<_, false>(x) };
    if x == T::ZERO { x } else { y }
}
