//! Elementary functions of complex numbers, with the branch cuts of C99's annex G (as NumPy's). The inverse functions
//! are Kahan's: "Branch cuts for complex elementary functions", 1987, which keep the sign of zero on a cut.

use crate::Complex64 as C;
use std::f64::consts::{LN_2, LN_10};

/// Times i.
fn turned(z: C) -> C {
    C::new(-z.im, z.re)
}

/// Times -i.
fn turned_back(z: C) -> C {
    C::new(z.im, -z.re)
}

/// The root with a non-negative real part.
pub fn sqrt(z: C) -> C {
    if z.re == 0.0 && z.im == 0.0 {
        return C::new(0.0, z.im);
    }
    if z.im.is_infinite() {
        return C::new(f64::INFINITY, z.im);
    }
    // Halved before the sum, which then overflows only where the root does.
    let t = (z.re.abs() / 2.0 + z.re.hypot(z.im) / 2.0).sqrt();
    match z.re {
        re if re == f64::INFINITY => C::new(re, if z.im.is_nan() { z.im } else { 0.0f64.copysign(z.im) }),
        re if re == f64::NEG_INFINITY => C::new(if z.im.is_nan() { z.im } else { 0.0 }, t.copysign(z.im)),
        re if re >= 0.0 => C::new(t, z.im / (2.0 * t)),
        _ => C::new(z.im.abs() / (2.0 * t), t.copysign(z.im)),
    }
}

pub fn exp(z: C) -> C {
    z.exp()
}

pub fn expm1(z: C) -> C {
    let half = (z.im / 2.0).sin();
    C::new(z.re.exp_m1() * z.im.cos() - 2.0 * half * half, z.re.exp() * z.im.sin())
}

pub fn exp2(z: C) -> C {
    (z * LN_2).exp()
}

/// ln |x + iy|, also near 1.
fn log_size(x: f64, y: f64) -> f64 {
    let size = x.hypot(y);
    if (0.7..1.4).contains(&size) {
        let (more, less) = (x.abs().max(y.abs()), x.abs().min(y.abs()));
        return 0.5 * ((more - 1.0) * (more + 1.0) + less * less).ln_1p();
    }
    size.ln()
}

pub fn log(z: C) -> C {
    C::new(log_size(z.re, z.im), z.im.atan2(z.re))
}

pub fn log2(z: C) -> C {
    log(z) / LN_2
}

pub fn log10(z: C) -> C {
    log(z) / LN_10
}

pub fn log1p(z: C) -> C {
    // |1 + z|^2 - 1 without the cancellation near 0.
    let near = z.re.abs() < 0.5 && z.im.abs() < 0.5;
    let size =
        if near { 0.5 * (z.re * (2.0 + z.re) + z.im * z.im).ln_1p() } else { (1.0 + z.re).hypot(z.im).ln() };
    C::new(size, z.im.atan2(1.0 + z.re))
}

pub fn sinh(z: C) -> C {
    let (sin, cos) = z.im.sin_cos();
    if z.im == 0.0 {
        return C::new(z.re.sinh(), z.im);
    }
    C::new(z.re.sinh() * cos, z.re.cosh() * sin)
}

pub fn cosh(z: C) -> C {
    let (sin, cos) = z.im.sin_cos();
    if z.im == 0.0 {
        return C::new(z.re.cosh(), z.im * 0.0f64.copysign(z.re));
    }
    C::new(z.re.cosh() * cos, z.re.sinh() * sin)
}

/// Kahan's, which overflows nowhere.
pub fn tanh(z: C) -> C {
    /// Beyond this tanh of a real number is 1 to the last bit.
    const FAR: f64 = 22.0;
    if z.re.abs() > FAR {
        // At infinity the result does not depend on the angle.
        let (sin, cos) = if z.re.is_finite() || z.im.is_finite() { z.im.sin_cos() } else { (0.0, 1.0) };
        if sin.is_nan() {
            return C::new(f64::NAN, f64::NAN);
        }
        return C::new(1.0f64.copysign(z.re), 4.0 * sin * cos * (-2.0 * z.re.abs()).exp());
    }
    let (t, s) = (z.im.tan(), z.re.sinh());
    let (beta, rho) = (1.0 + t * t, (1.0 + s * s).sqrt());
    if t.is_infinite() {
        return C::new(rho / s, 1.0 / t);
    }
    let d = 1.0 + beta * s * s;
    C::new(beta * rho * s / d, t / d)
}

pub fn sin(z: C) -> C {
    turned_back(sinh(turned(z)))
}

pub fn cos(z: C) -> C {
    cosh(turned(z))
}

pub fn tan(z: C) -> C {
    turned_back(tanh(turned(z)))
}

/// sqrt(1 - z) and sqrt(1 + z); the parts one by one, so that a zero keeps its sign.
fn roots(z: C) -> (C, C) {
    (sqrt(C::new(1.0 - z.re, -z.im)), sqrt(C::new(1.0 + z.re, z.im)))
}

pub fn arcsin(z: C) -> C {
    let (below, above) = roots(z);
    C::new(z.re.atan2((below * above).re), (below.conj() * above).im.asinh())
}

pub fn arccos(z: C) -> C {
    let (below, above) = roots(z);
    C::new(2.0 * below.re.atan2(above.re), (above.conj() * below).im.asinh())
}

pub fn arccosh(z: C) -> C {
    let (below, above) = (sqrt(C::new(z.re - 1.0, z.im)), sqrt(C::new(z.re + 1.0, z.im)));
    C::new((below.conj() * above).re.asinh(), 2.0 * below.im.atan2(above.re))
}

pub fn arcsinh(z: C) -> C {
    turned_back(arcsin(turned(z)))
}

pub fn arctanh(z: C) -> C {
    let (x, y) = (z.re.abs(), z.im);
    if x.is_infinite() || y.is_infinite() {
        return C::new(0.0f64.copysign(z.re), std::f64::consts::FRAC_PI_2.copysign(y));
    }
    let apart = (1.0 - x) * (1.0 - x) + y * y;
    let ratio = 4.0 * x / apart;
    // ln |1 + z| - ln |1 - z|, near 0 and near the poles.
    let size = if ratio < 1.0 {
        0.25 * ratio.ln_1p()
    } else {
        0.5 * ((1.0 + x).hypot(y).ln() - (1.0 - x).hypot(y).ln())
    };
    // The angle of (1 + z) / (1 - z); on the cut the sign of zero says from which side.
    let angle = 0.5 * (2.0 * y).atan2((1.0 - x) * (1.0 + x) - y * y);
    C::new(size.copysign(z.re), angle)
}

pub fn arctan(z: C) -> C {
    turned_back(arctanh(turned(z)))
}

pub fn rint(z: C) -> C {
    C::new(z.re.round_ties_even(), z.im.round_ties_even())
}

/// z / |z|; 0 of 0. Of an infinite part only the sign counts.
pub fn sign(z: C) -> C {
    let size = z.re.hypot(z.im);
    let part = |v: f64| if v.is_infinite() { 1.0f64.copysign(v) } else { 0.0 };
    match size {
        0.0 => C::new(0.0, 0.0),
        f64::INFINITY if z.re.is_infinite() && z.im.is_infinite() => C::new(f64::NAN, f64::NAN),
        f64::INFINITY => C::new(part(z.re), part(z.im)),
        _ => z / size,
    }
}

/// Declares a formula of complex numbers by a function of this module; complex64 rounds once, at the end.
#[macro_export]
macro_rules! complex_formulas {
    ($($name:ident $function:ident;)*) => { $(
        struct $name;
        impl $crate::kernel::step::Formula1<$crate::Complex32> for $name {
            type O = $crate::Complex32;
            #[inline(always)]
            fn f(z: $crate::Complex32) -> $crate::Complex32 {
                let y = $crate::kernel::complex::$function($crate::Complex64::new(z.re.into(), z.im.into()));
                $crate::Complex32::new(y.re as f32, y.im as f32)
            }
        }
        impl $crate::kernel::step::Formula1<$crate::Complex64> for $name {
            type O = $crate::Complex64;
            #[inline(always)]
            fn f(z: $crate::Complex64) -> $crate::Complex64 {
                $crate::kernel::complex::$function(z)
            }
        }
    )* };
}

/// How a function runs that real and complex numbers have each a formula for.
#[macro_export]
macro_rules! real_or_complex {
    ($set:ident $real:ident, $complex:ident) => {
        $crate::op::Run::Elementwise(|ins, _| match ins[0] {
            $crate::DType::C64 => {
                Some($crate::kernel::step::unary::<$complex, $crate::Complex32, $crate::Complex32>())
            }
            $crate::DType::C128 => {
                Some($crate::kernel::step::unary::<$complex, $crate::Complex64, $crate::Complex64>())
            }
            d => $crate::with_type!($set d, T => Some($crate::kernel::step::unary::<$real, T, T>()), else None),
        })
    };
}
