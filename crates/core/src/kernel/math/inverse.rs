//! Inverse circular and hyperbolic functions.

use super::{horner, log, log1p, odd, product_error, two_sum};
use crate::kernel::float::Float;
use std::f64::consts::{FRAC_PI_4, LN_2};

/// A multiple of pi / 4 in two parts of T.
#[inline(always)]
fn quarters<T: Float>(count: f64) -> (T, T) {
    let high = T::of(FRAC_PI_4 * count);
    // pi / 4 goes on past a double: 3.061616997868383e-17.
    let low = (FRAC_PI_4 * count - high.double()) + 3.061616997868383e-17 * count;
    (high, T::of(low))
}

/// (arctan(t) - t) / t^3 for |t| <= 1/2, z = t^2: 2^-31 and 2^-62.
#[inline(always)]
fn arctan_tail<T: Float>(z: T) -> T {
    if T::SINGLE {
        return horner(
            z,
            [
                -0.3333332692469259,
                0.1999948981704868,
                -0.14272078121165072,
                0.10940978719552721,
                -0.07984050047442513,
                0.03872307775669613,
            ],
        );
    }
    horner(
        z,
        [
            -0.33333333333333315,
            0.1999999999999327,
            -0.14285714284961007,
            0.1111111106856474,
            -0.09090907669752148,
            0.07692277079731098,
            -0.06666218999982912,
            0.05877771338803514,
            -0.0522981980848096,
            0.04588748660448759,
            -0.03710244201958474,
            0.023632952027513806,
            -0.008352479651294837,
        ],
    )
}

#[inline(always)]
pub fn arctan<T: Float>(x: T) -> T {
    let y = angle(x.absolute(), T::ONE, false);
    y.with_sign_of(x)
}

/// The angle of the point (b, a), a and b >= 0, or of (-b, a) where `left`.
#[inline(always)]
fn angle<T: Float>(a: T, b: T, left: bool) -> T {
    let flat = a < b.mul(T::of(0.5));
    let steep = a > b.add(b);
    // Turned by a multiple of pi / 4 the slope is small.
    let (over, under) = (if steep { b.neg() } else { a.sub(b) }, if steep { a } else { a.add(b) });
    let (over, under) = (if flat { a } else { over }, if flat { b } else { under });
    let t = over.div(under);
    let z = t.mul(t);
    let y = odd(t, z, arctan_tail(z));
    let (zero, one, two) = ((T::ZERO, T::ZERO), quarters::<T>(1.0), quarters::<T>(2.0));
    let (three, four) = (quarters::<T>(3.0), quarters::<T>(4.0));
    let choose =
        |when: bool, a: (T, T), b: (T, T)| (if when { a.0 } else { b.0 }, if when { a.1 } else { b.1 });
    let base = choose(flat, choose(left, four, zero), choose(steep, two, choose(left, three, one)));
    let y = if left { y.neg() } else { y };
    base.0.add(y.add(base.1))
}

/// The angle of the point (x, y), for coordinates that are not [`arctan2_is_rare`].
#[inline(always)]
pub fn arctan2<T: Float>(y: T, x: T) -> T {
    angle(y.absolute(), x.absolute(), x.is_negative()).with_sign_of(y)
}

/// Whether sums or quotients of these coordinates leave the normal range: a case for the library.
#[inline(always)]
pub fn arctan2_is_rare<T: Float>(y: T, x: T) -> bool {
    let limit = T::of(if T::SINGLE { 1e37 } else { 1e300 });
    let least = T::of(if T::SINGLE { 1e-30 } else { 1e-290 });
    let (a, b) = (y.absolute(), x.absolute());
    !(a < limit) | !(b < limit) | ((a < least) & (b < least))
}

/// (arcsin(x) - x) / x^3 for |x| <= 1/2, z = x^2: 2^-27 and 2^-59.
#[inline(always)]
fn arcsin_tail<T: Float>(z: T) -> T {
    if T::SINGLE {
        return horner(
            z,
            [
                0.16666752478403554,
                0.07495297693044298,
                0.04547037608739825,
                0.024179495989200217,
                0.042166358859675755,
            ],
        );
    }
    horner(
        z,
        [
            0.1666666666666676,
            0.07499999999970795,
            0.04464285717461753,
            0.030381942707504824,
            0.02237221499531789,
            0.017351611882227416,
            0.013980822034085355,
            0.011398900775161083,
            0.010780313301067157,
            0.00370619261657686,
            0.021707945481299368,
            -0.020999732407009798,
            0.0326290224528168,
        ],
    )
}

/// base - w - tail, where `base` has a lower part and w is not greater: only the end rounds.
#[inline(always)]
fn below<T: Float>(base: (T, T), w: T, tail: T) -> T {
    let main = base.0.sub(w);
    let lost = base.0.sub(main).sub(w);
    main.add(lost.add(base.1.sub(tail)))
}

#[inline(always)]
pub fn arcsin<T: Float>(x: T) -> T {
    let a = x.absolute();
    let outer = a > T::of(0.5);
    let z = if outer { T::ONE.sub(a).mul(T::of(0.5)) } else { a.mul(a) };
    let s = if outer { z.sqrt() } else { a };
    let tail = s.mul(z).mul(arcsin_tail(z));
    // arcsin(a) = pi/2 - 2 arcsin(sqrt((1 - a) / 2))
    let far = below(quarters(2.0), s.add(s), tail.add(tail));
    let y = if outer { far } else { s.add(tail) };
    y.with_sign_of(x)
}

#[inline(always)]
pub fn arccos<T: Float>(x: T) -> T {
    let a = x.absolute();
    let outer = a > T::of(0.5);
    let z = if outer { T::ONE.sub(a).mul(T::of(0.5)) } else { a.mul(a) };
    let s = if outer { z.sqrt() } else { a };
    let tail = s.mul(z).mul(arcsin_tail(z));
    let inner = below(quarters(2.0), x, tail.with_sign_of(x));
    let left = below(quarters(4.0), s.add(s), tail.add(tail));
    let right = s.add(tail);
    let outer_value = if x.lt(T::ZERO) { left } else { right.add(right) };
    if outer { outer_value } else { inner }
}

/// ln(|a| + sqrt(a^2 + 1)), written with log1p near 0 and without overflow far out.
#[inline(always)]
pub fn arcsinh<T: Float>(a: T) -> T {
    let x = a.absolute();
    let square = x.mul(x);
    let near = log1p(x.add(square.div(square.add(T::ONE).sqrt().add(T::ONE))));
    let far = log(x).add(T::of(LN_2));
    let y = if x < T::of(1e9) { near } else { far };
    y.with_sign_of(a)
}

/// ln(u) with u = t + sqrt(t (t + 2)) + 1, t = a - 1; what root and sum lost is added over u.
#[inline(always)]
pub fn arccosh<T: Float>(a: T) -> T {
    let t = a.sub(T::ONE);
    let (sum, sum_low) = two_sum(t, T::of(2.0));
    let square = t.mul(sum);
    let square_low = t.fma(sum_low, product_error(t, sum, square));
    let root = square.sqrt();
    let back = root.mul(root);
    let lost = square.sub(back).sub(product_error(root, root, back)).add(square_low);
    let (u, low) = two_sum(root, t);
    let twice = root.add(root);
    let rest = low.fma(twice, lost).div(twice.fma(u, twice));
    let near = log1p(u).add(rest);
    let far = log(a).add(T::of(LN_2));
    let y = if a < T::of(1e9) { near } else { far };
    // Far below 1 the square is positive again.
    let y = if t > T::ZERO { y } else { t.sqrt() };
    if a == a { y } else { a }
}

/// ln(1 + w) / 2 with w = 2 x / (1 - x); what sum and quotient lost is added over 1 + w = (1 + x) / (1 - x).
#[inline(always)]
pub fn arctanh<T: Float>(a: T) -> T {
    let x = a.absolute();
    let twice = x.add(x);
    let under = T::ONE.sub(x);
    let under_low = T::ONE.sub(under).sub(x);
    let w = twice.div(under);
    let back = w.mul(under);
    let lost = twice.sub(back).sub(product_error(w, under, back)).sub(w.mul(under_low));
    let rest = lost.div(x.add(T::ONE));
    let y = log1p(w);
    let y = if x < T::ONE { y.add(rest) } else { y };
    y.mul(T::of(0.5)).with_sign_of(a)
}
