//! The error function, its inverse, and gelu.

use super::exp::{core, falling, short};
use super::{at_least, at_most, exp, horner, log, product_error, two_sum};
use crate::kernel::float::Float;
use crate::kernel::num::Num;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, SQRT_2};

/// erf(x) / x - 1 on [0, 1], z = x^2: 2^-29 and 2^-62 of erf(x).
#[inline(always)]
fn near<T: Float>(z: T) -> T {
    if T::SINGLE {
        return horner(
            z,
            [
                0.1283791658716515,
                -0.3761262622052386,
                0.11283588258050861,
                -0.02685391690526751,
                0.005188500457828356,
                -0.0008011561643374612,
                7.858034591846832e-05,
            ],
        );
    }
    horner(
        z,
        [
            0.1283791670955126,
            -0.3761263890318375,
            0.11283791670954862,
            -0.02686617064507361,
            0.005223977624786542,
            -0.000854832697902044,
            0.00012055331045816925,
            -1.4925593699096274e-05,
            1.6460975624251301e-06,
            -1.6350052626338323e-07,
            1.4658051062530092e-08,
            -1.1366285070478203e-09,
            5.946247045649874e-11,
        ],
    )
}

/// 1 - erf(a) for a >= 1, as exact as a result near 1 needs it: 2^-29 and 2^-60 of erf(a).
#[inline(always)]
fn rest<T: Float>(a: T) -> T {
    if T::SINGLE {
        // -ln(1 - erf(a)) on [1, 4.1]
        let b = at_most(a, 4.1);
        let q = horner(
            b,
            [
                0.00032062412379498786,
                1.127171420133052,
                0.6380126453060614,
                0.10321778729106319,
                -0.021889422165979604,
                0.0029600537059879506,
                -0.00018759808399498808,
            ],
        );
        return core(q.neg(), None);
    }
    // e^(b^2) (1 - erf(b)) on [1, 6] in t = (b - 2) / (b + 2)
    let b = at_least(at_most(a, 6.0), 1.0);
    let t = b.sub(T::of(2.0)).div(b.add(T::of(2.0)));
    let scaled = horner(
        t,
        [
            0.25539567631050575,
            -0.42718584741395665,
            0.24165819424246499,
            -0.07897858101653486,
            0.003732892398407053,
            0.006997461797645555,
            -0.0008471425249843943,
            -0.0009819767161238565,
            4.353353931746509e-05,
            0.0001742848601624645,
            2.7644866610026627e-05,
            -2.6532805397113225e-05,
            -1.2568687196159102e-05,
        ],
    );
    scaled.mul(core(b.mul(b).neg(), None))
}

#[inline(always)]
pub fn erf<T: Float>(x: T) -> T {
    let a = x.absolute();
    let inner = x.fma(near(a.mul(a)), x);
    let outer = T::ONE.sub(rest(a)).with_sign_of(x);
    let y = if a < T::ONE { inner } else { outer };
    if a == a { y } else { x }
}

/// e^(t^2 / 2) times the normal distribution's tail beyond t in [0, 39] is v = k / (t + k) times a polynomial in
/// v - 1/4, 2^-62 off.
const TAIL: [f64; 25] = [
    0.10591795599691955,
    0.13631070816731394,
    0.16276693585805133,
    0.17857666560909177,
    0.1775233955898836,
    0.15652577281811994,
    0.11799818236858299,
    0.07043700054833503,
    0.02611498923283367,
    -0.003809551675307702,
    -0.014546626968855244,
    -0.010019474221610293,
    -0.00018533462128279805,
    0.005470416611565157,
    0.003934287357982502,
    -0.0009320804055260911,
    -0.004246429609421564,
    0.003158778071350561,
    -0.009451377620522191,
    0.02152305907267954,
    -0.023318428358632147,
    0.013686353420704492,
    -0.004269015313975322,
    0.0005350230515950768,
    1.3180190992978525e-05,
];

/// A polynomial and what its rounding lost: of the last terms, whose errors count, more where products are rounded.
#[inline(always)]
fn horner_parts<T: Float, const N: usize>(w: T, coefficients: &[f64; N]) -> (T, T) {
    let mut sum = T::of(coefficients[N - 1]);
    let parts = if T::FUSED { 3 } else { 8 };
    for k in (parts..N - 1).rev() {
        sum = sum.fma(w, T::of(coefficients[k]));
    }
    let mut low = T::ZERO;
    for k in (0..parts).rev() {
        let product = w.mul(sum);
        let lost = w.fma(low, product_error(w, sum, product));
        (sum, low) = two_sum(T::of(coefficients[k]), product);
        low = low.add(lost);
    }
    (sum, low)
}

/// t times the normal distribution's tail beyond t, for t in [0, 39]. Many roundings follow each other: what they lose
/// is carried beside the result.
#[inline(always)]
fn tail<T: Float>(t: T) -> T {
    const K: f64 = 5.0;
    let (sum, sum_low) = two_sum(t, T::of(K));
    let v = T::of(K).div(sum);
    let product = v.mul(sum);
    let left = T::of(K).sub(product).sub(product_error(v, sum, product));
    let v_low = left.sub(v.mul(sum_low)).mul(v.mul(T::of(1.0 / K)));
    let (p, p_low) = horner_parts(v.sub(T::of(0.25)), &TAIL);
    // The derivative of v p by v is about 1 + v + 2 v^2 times p.
    let steep = v.fma(T::of(2.0), T::ONE).fma(v, T::ONE);
    let scaled = v.mul(p);
    let scaled_low = product_error(v, p, scaled).add(v.fma(p_low, p.mul(steep.mul(v_low))));
    let both = t.mul(scaled);
    let both_low = t.fma(scaled_low, product_error(t, scaled, both));
    let square = t.mul(t);
    let half = T::of(-0.5);
    let e = falling(square.mul(half), Some(product_error(t, t, square).mul(half)));
    e.fma(both, e.mul(both_low))
}

/// As [`tail`] for t in [0, 15], to the digits of float32, 2^-28, but in double precision: too many roundings
/// follow each other.
#[inline(always)]
fn short_tail<T: Float>(t: T) -> T {
    let k = T::of(3.5);
    let v = k.div(t.add(k));
    let p = horner(
        v.sub(T::of(0.25)),
        [
            0.150635435206552,
            0.1868933631277716,
            0.19712727257537696,
            0.1671932980499231,
            0.09961109681382231,
            0.0189582796450474,
            -0.025203631766770256,
            -0.05397535047916239,
            0.03129086342169633,
            0.010241032429754007,
            -0.00802123680707625,
        ],
    );
    short(t.mul(t).mul(T::of(-0.5))).mul(t.mul(v.mul(p)))
}

/// x times the normal distribution at x: the tail is taken beyond |x|, so that no digits cancel on either side.
#[inline(always)]
pub fn gelu<T: Float>(x: T) -> T {
    let limit = if T::SINGLE { 15.0 } else { 39.0 };
    let t = at_most(x.absolute(), limit);
    if T::SINGLE {
        let beyond = short_tail(t.to_double());
        let wide = x.to_double();
        let y = T::from_double(if x < T::ZERO { beyond.neg() } else { wide.sub(beyond) });
        return if x == T::ZERO { x } else { y };
    }
    let beyond = tail(t);
    let y = if x < T::ZERO { beyond.neg() } else { x.sub(beyond) };
    if x == T::ZERO { x } else { y }
}

/// The inverse of [`erf`]: M. B. Giles' single-precision approximation ("Approximating the erfinv function", GPU
/// Computing Gems 2, 2010), then a step of Halley's method in double precision.
#[inline(always)]
pub fn erfinv<T: Float>(x: T) -> T {
    let a = x.absolute();
    let y = T::from_double(erfinv_double(a.to_double(), T::SINGLE)).with_sign_of(x);
    let edge = T::INFINITY.with_sign_of(x);
    let outside = if a == T::ONE { edge } else { T::NAN };
    let y = if a < T::ONE { y } else { outside };
    if x == T::ZERO { x } else { y }
}

/// For x in [0, 1); `short`: to float32's digits. Far from 0 the normal distribution's tail is inverted, which keeps
/// its digits near 1.
#[inline(always)]
fn erfinv_double<T: Float>(x: T, short: bool) -> T {
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
    const FAR: [f64; 9] = [
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
    // Where float32 has no numbers, 2^-24 off; fitted as the others, but in sqrt(w) - 5.
    const EDGE: [f64; 7] = [
        4.849906402,
        1.010300279,
        -0.0001386976005,
        -0.000213710677,
        7.576729387e-05,
        -2.193062733e-05,
        4.999757686e-06,
    ];
    let w = log(T::ONE.sub(x).mul(T::ONE.add(x))).neg();
    let centre = horner(w.sub(T::of(2.5)), CENTRE);
    let root = w.sqrt();
    let far = horner(root.sub(T::of(3.0)), FAR);
    let edge = horner(root.sub(T::of(5.0)), EDGE);
    let outer = if w < T::of(16.0) { far } else { edge };
    let y = x.mul(if w < T::of(5.0) { centre } else { outer });
    let density = exp(y.mul(y).neg()).mul(T::of(FRAC_2_SQRT_PI));
    let value = if short { erf(y) } else { y.fma(near(y.mul(y)), y) };
    let step = value.sub(x).div(density);
    let inner = y.sub(step.div(y.fma(step, T::ONE)));
    if short {
        return inner;
    }
    // The same for t = y sqrt(2) and (1 - x) / 2, whose density is that of y over 2 sqrt(2).
    // The root of 2 goes on past a double: -9.667293313452913e-17.
    let t = y.mul(T::of(SQRT_2));
    let t_low = y.fma(T::of(-9.667293313452913e-17), product_error(y, T::of(SQRT_2), t));
    let beyond = T::ONE.sub(x).mul(T::of(0.5));
    let step = tail(t).div(t).sub(beyond).div(density.mul(T::of(0.5 * FRAC_1_SQRT_2)));
    let outer = step.div(t.mul(step).fma(T::of(-0.5), T::ONE)).sub(t_low).fma(T::of(FRAC_1_SQRT_2), y);
    if x < T::of(0.7) { inner } else { outer }
}
