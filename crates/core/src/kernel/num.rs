//! What formulas may do with a wide type: the arithmetic that NumPy gives each kind of number.

use crate::{Bool, Complex32, Complex64};

/// Arithmetic every dtype has. Integers wrap; bool adds by `or` and multiplies by `and`.
pub trait Num: Copy + Default + PartialEq {
    const ZERO: Self;
    const ONE: Self;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn neg(self) -> Self;
}

macro_rules! num_ints {
    ($($t:ty),*) => { $(
        impl Num for $t {
            const ZERO: $t = 0;
            const ONE: $t = 1;
            #[inline(always)]
            fn add(self, other: $t) -> $t { self.wrapping_add(other) }
            #[inline(always)]
            fn sub(self, other: $t) -> $t { self.wrapping_sub(other) }
            #[inline(always)]
            fn mul(self, other: $t) -> $t { self.wrapping_mul(other) }
            #[inline(always)]
            fn neg(self) -> $t { self.wrapping_neg() }
        }
    )* };
}
num_ints!(i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! num_inexact {
    ($($t:ty: $zero:expr, $one:expr;)*) => { $(
        impl Num for $t {
            const ZERO: $t = $zero;
            const ONE: $t = $one;
            #[inline(always)]
            fn add(self, other: $t) -> $t { self + other }
            #[inline(always)]
            fn sub(self, other: $t) -> $t { self - other }
            #[inline(always)]
            fn mul(self, other: $t) -> $t { self * other }
            #[inline(always)]
            fn neg(self) -> $t { -self }
        }
    )* };
}
num_inexact! {
    f32: 0.0, 1.0;
    f64: 0.0, 1.0;
    Complex32: Complex32::new(0.0, 0.0), Complex32::new(1.0, 0.0);
    Complex64: Complex64::new(0.0, 0.0), Complex64::new(1.0, 0.0);
}

impl Num for Bool {
    const ZERO: Bool = Bool::new(false);
    const ONE: Bool = Bool::new(true);
    #[inline(always)]
    fn add(self, other: Bool) -> Bool {
        Bool::new(self.get() | other.get())
    }
    #[inline(always)]
    fn sub(self, other: Bool) -> Bool {
        Bool::new(self.get() ^ other.get())
    }
    #[inline(always)]
    fn mul(self, other: Bool) -> Bool {
        Bool::new(self.get() & other.get())
    }
    #[inline(always)]
    fn neg(self) -> Bool {
        self
    }
}

/// Division as floating and complex numbers have it.
pub trait Inexact: Num {
    fn div(self, other: Self) -> Self;
}

impl Inexact for f32 {
    #[inline(always)]
    fn div(self, other: f32) -> f32 {
        self / other
    }
}
impl Inexact for f64 {
    #[inline(always)]
    fn div(self, other: f64) -> f64 {
        self / other
    }
}

macro_rules! complex_division {
    ($($t:ty),*) => { $(
        impl Inexact for $t {
            /// Smith's method, which neither overflows nor underflows where the quotient does not.
            #[inline(always)]
            fn div(self, other: $t) -> $t {
                if other.re.abs() >= other.im.abs() {
                    if other.re == 0.0 && other.im == 0.0 {
                        return <$t>::new(self.re / other.re.abs(), self.im / other.re.abs());
                    }
                    let ratio = other.im / other.re;
                    let scale = 1.0 / (other.re + other.im * ratio);
                    <$t>::new((self.re + self.im * ratio) * scale, (self.im - self.re * ratio) * scale)
                } else {
                    let ratio = other.re / other.im;
                    let scale = 1.0 / (other.im + other.re * ratio);
                    <$t>::new((self.re * ratio + self.im) * scale, (self.im * ratio - self.re) * scale)
                }
            }
        }
    )* };
}
complex_division!(Complex32, Complex64);
