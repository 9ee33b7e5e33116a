//! Real floating point: what the elementary functions are built from, plain and contracted. No function is here.
//!
//! Rationale: a kernel's source is compiled once for each instruction set, and cannot ask which one it is being
//! compiled for. So the type says it: [`Fused`] multiplies and adds with one rounding where a formula asks for
//! [`Float::fma`], and is what formulas run in where the set has the instruction. Everything else is the same.

use crate::kernel::num::{Inexact, Num, Ordered};

/// A floating type that formulas are written for.
pub trait Float: Inexact + Ordered + PartialOrd {
    const INFINITY: Self;
    const NAN: Self;
    /// Whether it is float32, which needs shorter series and may take shorter ways.
    const SINGLE: bool;
    /// Whether [`Float::fma`] rounds once.
    const FUSED: bool;
    /// ln 2 in two parts; the first times any exponent is exact.
    const LN2_HI: f64;
    const LN2_LO: f64;
    /// Below the first, exp is 0; above the second, infinite.
    const EXP_LOW: f64;
    const EXP_HIGH: f64;
    /// Below this argument exp may be subnormal.
    const EXP_SUBNORMAL: f64;
    /// Rounds what it is added to, as the magic number of [`Float::shifted`] does, and adds the exponent's bias: see
    /// [`Float::raised`].
    const BIASED: f64;
    /// The type for what one precision cannot hold: double precision, fused if this is.
    type Double: Float<Double = Self::Double>;
    fn of(v: f64) -> Self;
    fn double(self) -> f64;
    fn to_double(self) -> Self::Double;
    fn from_double(v: Self::Double) -> Self;
    /// `self * b + c`: rounded once where that is an instruction, else twice.
    fn fma(self, b: Self, c: Self) -> Self;
    /// The nearest whole number, for magnitudes below 2^21, as it stands (see [`Float::whole`]) in a sum with the
    /// magic number: `self * b` rounded.
    fn shifted(self, b: Self) -> Self;
    /// The whole number that [`Float::shifted`] gave.
    fn whole(self) -> Self;
    /// Times 2^n for the n of a shifted number, where argument and result are normal.
    fn scale(self, shifted: Self) -> Self;
    /// 2^n for the n of a shifted number, normal.
    fn power_of_two(shifted: Self) -> Self;
    /// 2^n, normal, of a sum n + [`Float::BIASED`].
    fn raised(self) -> Self;
    /// Whether bit `bit` of a shifted number's n is set.
    fn shifted_bit(self, bit: u32) -> bool;
    /// The nearest whole number, for magnitudes below 2^21.
    fn nearest(self) -> Self;
    /// Times 2^n for a whole n, through two factors, so that results may be subnormal.
    fn times_pow2(self, n: Self) -> Self;
    /// A positive number as m 2^k with m in [sqrt(1/2), sqrt(2)): (m, k).
    fn split(self) -> (Self, Self);
    /// Without the lower half of its digits.
    fn truncated(self) -> Self;
    fn with_sign_of(self, other: Self) -> Self;
    fn is_negative(self) -> bool;
    fn floor(self) -> Self;
    fn ceil(self) -> Self;
    fn trunc(self) -> Self;
    /// Halves go to the even neighbour.
    fn rint(self) -> Self;
    fn sqrt(self) -> Self;
    /// C's fmod.
    fn remainder(self, other: Self) -> Self;
}

macro_rules! floats {
    ($($t:ty, $u:ty, $i:ty, $mantissa:expr, $bias:expr, $magic:expr, $root_half:expr, $half:expr, $single:expr;
       $($name:ident = $value:expr),*;)*) => { $(
        impl Float for $t {
            const INFINITY: $t = <$t>::INFINITY;
            const NAN: $t = <$t>::NAN;
            const SINGLE: bool = $single;
            /// AArch64's baseline has the instruction.
            const FUSED: bool = cfg!(target_arch = "aarch64");
            $(const $name: f64 = $value;)*
            const BIASED: f64 = $magic + $bias as f64;
            type Double = f64;
            #[inline(always)]
            fn of(v: f64) -> $t { v as $t }
            #[inline(always)]
            fn double(self) -> f64 { self as f64 }
            #[inline(always)]
            fn to_double(self) -> f64 { self as f64 }
            #[inline(always)]
            fn from_double(v: f64) -> $t { v as $t }
            #[inline(always)]
            fn fma(self, b: $t, c: $t) -> $t {
                if Self::FUSED { self.mul_add(b, c) } else { self * b + c }
            }
            #[inline(always)]
            fn shifted(self, b: $t) -> $t { self.fma(b, $magic) }
            #[inline(always)]
            fn whole(self) -> $t { self - $magic }
            #[inline(always)]
            fn scale(self, shifted: $t) -> $t {
                // The low bits of the sum are the integer n, which goes to the exponent; what is above falls out.
                <$t>::from_bits(self.to_bits().wrapping_add(shifted.to_bits() << $mantissa))
            }
            #[inline(always)]
            fn power_of_two(shifted: $t) -> $t { (1.0 as $t).scale(shifted) }
            #[inline(always)]
            fn raised(self) -> $t { <$t>::from_bits(self.to_bits() << $mantissa) }
            #[inline(always)]
            fn shifted_bit(self, bit: u32) -> bool { self.to_bits() & (1 << bit) != 0 }
            #[inline(always)]
            fn nearest(self) -> $t { (self + $magic) - $magic }
            #[inline(always)]
            fn times_pow2(self, n: $t) -> $t {
                // The sum's low bits are the integer n, from 1.5 times a power of two.
                let whole = ((n + $magic).to_bits() as $i).wrapping_sub(($magic as $t).to_bits() as $i);
                let first = whole >> 1;
                let power = |e: $i| <$t>::from_bits((e.wrapping_add($bias) << $mantissa) as $u);
                self * power(first) * power(whole.wrapping_sub(first))
            }
            #[inline(always)]
            fn split(self) -> ($t, $t) {
                const LIFT: $t = (1u64 << ($mantissa + 2)) as $t;
                let subnormal = self < <$t>::MIN_POSITIVE;
                let x = if subnormal { self * LIFT } else { self };
                let base = ($root_half as $t).to_bits() as $i;
                let bits = (x.to_bits() as $i).wrapping_sub(base);
                let mask = ((1 as $i) << $mantissa) - 1;
                let m = <$t>::from_bits((bits & mask).wrapping_add(base) as $u);
                // Whole numbers below 2^22 become floats by an add in the magic number's low bits.
                let k = <$t>::from_bits(((bits >> $mantissa).wrapping_add(($magic as $t).to_bits() as $i)) as $u);
                (m, k - $magic - if subnormal { ($mantissa + 2) as $t } else { 0.0 })
            }
            #[inline(always)]
            fn truncated(self) -> $t { <$t>::from_bits(self.to_bits() & ((!0 as $u) << $half)) }
            #[inline(always)]
            fn with_sign_of(self, other: $t) -> $t { self.copysign(other) }
            #[inline(always)]
            fn is_negative(self) -> bool { self.is_sign_negative() }
            #[inline(always)]
            fn floor(self) -> $t { <$t>::floor(self) }
            #[inline(always)]
            fn ceil(self) -> $t { <$t>::ceil(self) }
            #[inline(always)]
            fn trunc(self) -> $t { <$t>::trunc(self) }
            #[inline(always)]
            fn rint(self) -> $t { self.round_ties_even() }
            #[inline(always)]
            fn sqrt(self) -> $t { <$t>::sqrt(self) }
            #[inline(always)]
            fn remainder(self, other: $t) -> $t { self % other }
        }
    )* };
}
floats! {
    f32, u32, i32, 23, 127, 12582912.0, std::f32::consts::FRAC_1_SQRT_2, 12, true;
        LN2_HI = 0.693359375, LN2_LO = -0.00021219444005469057,
        EXP_LOW = -104.0, EXP_HIGH = 88.72283172607422, EXP_SUBNORMAL = -87.0;
    f64, u64, i64, 52, 1023, 6755399441055744.0, std::f64::consts::FRAC_1_SQRT_2, 27, false;
        LN2_HI = 0.6931471803691238, LN2_LO = 1.9082149292705877e-10,
        EXP_LOW = -746.0, EXP_HIGH = 709.782712893384, EXP_SUBNORMAL = -708.0;
}

/// A float whose [`Float::fma`] rounds once: for code compiled for a set that has the instruction.
#[derive(Clone, Copy, Default, PartialEq, PartialOrd)]
#[repr(transparent)]
pub struct Fused<T>(pub T);

macro_rules! forward {
    ($t:ty; $($name:ident($($arg:ident),*);)*) => { $(
        #[inline(always)]
        fn $name(self $(, $arg: Self)*) -> Self { Fused(<$t as Float>::$name(self.0 $(, $arg.0)*)) }
    )* };
}

macro_rules! fused {
    ($($t:ident),*) => { $(
        impl Num for Fused<$t> {
            const ZERO: Self = Fused(0.0);
            const ONE: Self = Fused(1.0);
            #[inline(always)]
            fn add(self, other: Self) -> Self { Fused(self.0 + other.0) }
            #[inline(always)]
            fn sub(self, other: Self) -> Self { Fused(self.0 - other.0) }
            #[inline(always)]
            fn mul(self, other: Self) -> Self { Fused(self.0 * other.0) }
            #[inline(always)]
            fn neg(self) -> Self { Fused(-self.0) }
        }
        impl Inexact for Fused<$t> {
            #[inline(always)]
            fn div(self, other: Self) -> Self { Fused(self.0 / other.0) }
        }
        impl Ordered for Fused<$t> {
            const LEAST: Self = Fused(<$t as Ordered>::LEAST);
            const GREATEST: Self = Fused(<$t as Ordered>::GREATEST);
            #[inline(always)]
            fn is_nan(self) -> bool { self.0 != self.0 }
            #[inline(always)]
            fn lt(self, other: Self) -> bool { self.0 < other.0 }
            #[inline(always)]
            fn exceeds(self, other: Self) -> bool { !(self.0 <= other.0) }
            #[inline(always)]
            fn absolute(self) -> Self { Fused(self.0.abs()) }
            #[inline(always)]
            fn sign(self) -> Self { Fused(Ordered::sign(self.0)) }
        }
        impl Float for Fused<$t> {
            const INFINITY: Self = Fused(<$t as Float>::INFINITY);
            const NAN: Self = Fused(<$t as Float>::NAN);
            const SINGLE: bool = <$t as Float>::SINGLE;
            const FUSED: bool = true;
            const LN2_HI: f64 = <$t as Float>::LN2_HI;
            const LN2_LO: f64 = <$t as Float>::LN2_LO;
            const EXP_LOW: f64 = <$t as Float>::EXP_LOW;
            const EXP_HIGH: f64 = <$t as Float>::EXP_HIGH;
            const EXP_SUBNORMAL: f64 = <$t as Float>::EXP_SUBNORMAL;
            const BIASED: f64 = <$t as Float>::BIASED;
            type Double = Fused<f64>;
            #[inline(always)]
            fn of(v: f64) -> Self { Fused(v as $t) }
            #[inline(always)]
            fn double(self) -> f64 { self.0 as f64 }
            #[inline(always)]
            fn to_double(self) -> Fused<f64> { Fused(self.0 as f64) }
            #[inline(always)]
            fn from_double(v: Fused<f64>) -> Self { Fused(v.0 as $t) }
            #[inline(always)]
            fn fma(self, b: Self, c: Self) -> Self { Fused(self.0.mul_add(b.0, c.0)) }
            #[inline(always)]
            fn shifted(self, b: Self) -> Self { self.fma(b, Fused(<$t as Float>::shifted(0.0, 0.0))) }
            #[inline(always)]
            fn power_of_two(shifted: Self) -> Self { Fused(<$t as Float>::power_of_two(shifted.0)) }
            #[inline(always)]
            fn shifted_bit(self, bit: u32) -> bool { self.0.shifted_bit(bit) }
            #[inline(always)]
            fn split(self) -> (Self, Self) {
                let (m, k) = self.0.split();
                (Fused(m), Fused(k))
            }
            #[inline(always)]
            fn is_negative(self) -> bool { self.0.is_sign_negative() }
            forward! { $t;
                whole(); raised(); nearest(); floor(); ceil(); trunc(); rint(); sqrt(); truncated();
                scale(shifted); times_pow2(n); with_sign_of(other); remainder(other);
            }
        }
    )* };
}
fused!(f32, f64);
