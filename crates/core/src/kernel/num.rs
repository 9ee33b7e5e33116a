//! What formulas may do with a wide type: the arithmetic that NumPy gives each kind of number.

pub use crate::kernel::float::Float;
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

/// Real numbers: an order, sign and magnitude. Bool counts as 0 and 1.
pub trait Ordered: Num {
    /// Not a number: never true of integers.
    fn is_nan(self) -> bool;
    fn lt(self, other: Self) -> bool;
    /// Not less or equal: greater, or one of the two is NaN.
    fn exceeds(self, other: Self) -> bool;
    fn absolute(self) -> Self;
    /// -1, 0 or 1, NaN for NaN.
    fn sign(self) -> Self;
    /// The least value (-inf) and the greatest.
    const LEAST: Self;
    const GREATEST: Self;

    /// The greater one; NaN if either is; the first on ties.
    #[inline(always)]
    fn maximum(self, other: Self) -> Self {
        if other.exceeds(self) & !self.is_nan() { other } else { self }
    }
    #[inline(always)]
    fn minimum(self, other: Self) -> Self {
        if self.exceeds(other) & !self.is_nan() { other } else { self }
    }
}

macro_rules! ordered_ints {
    ($($t:ty: |$x:ident| $abs:expr, $sign:expr;)*) => { $(
        impl Ordered for $t {
            const LEAST: $t = <$t>::MIN;
            const GREATEST: $t = <$t>::MAX;
            #[inline(always)]
            fn is_nan(self) -> bool { false }
            #[inline(always)]
            fn lt(self, other: $t) -> bool { self < other }
            #[inline(always)]
            fn exceeds(self, other: $t) -> bool { self > other }
            #[inline(always)]
            fn absolute(self) -> $t { let $x = self; $abs }
            #[inline(always)]
            fn sign(self) -> $t { let $x = self; $sign }
        }
    )* };
}
ordered_ints! {
    i8: |x| x.wrapping_abs(), x.signum();
    i16: |x| x.wrapping_abs(), x.signum();
    i32: |x| x.wrapping_abs(), x.signum();
    i64: |x| x.wrapping_abs(), x.signum();
    u8: |x| x, (x != 0) as u8;
    u16: |x| x, (x != 0) as u16;
    u32: |x| x, (x != 0) as u32;
    u64: |x| x, (x != 0) as u64;
}

impl Ordered for Bool {
    const LEAST: Bool = Bool::new(false);
    const GREATEST: Bool = Bool::new(true);
    #[inline(always)]
    fn is_nan(self) -> bool {
        false
    }
    #[inline(always)]
    fn lt(self, other: Bool) -> bool {
        !self.get() & other.get()
    }
    #[inline(always)]
    fn exceeds(self, other: Bool) -> bool {
        self.get() & !other.get()
    }
    #[inline(always)]
    fn absolute(self) -> Bool {
        self
    }
    #[inline(always)]
    fn sign(self) -> Bool {
        self
    }
}

macro_rules! ordered_floats {
    ($($t:ty),*) => { $(
        impl Ordered for $t {
            const LEAST: $t = <$t>::NEG_INFINITY;
            const GREATEST: $t = <$t>::INFINITY;
            #[inline(always)]
            fn is_nan(self) -> bool { self != self }
            #[inline(always)]
            fn lt(self, other: $t) -> bool { self < other }
            #[inline(always)]
            fn exceeds(self, other: $t) -> bool { !(self <= other) }
            #[inline(always)]
            fn absolute(self) -> $t { self.abs() }
            #[inline(always)]
            fn sign(self) -> $t {
                let s = if self > 0.0 { 1.0 } else { self };
                if self < 0.0 { -1.0 } else { s }
            }
        }
    )* };
}
ordered_floats!(f32, f64);

/// Division that rounds down, and its remainder, which has the divisor's sign. Integers divided by zero
/// give 0, as NumPy's.
pub trait Divide: Ordered {
    fn floor_divide(self, other: Self) -> Self;
    fn modulo(self, other: Self) -> Self;
    /// The remainder that has the dividend's sign.
    fn fmod(self, other: Self) -> Self;
}

macro_rules! divide_ints {
    ($($t:ty),*) => { $(
        impl Divide for $t {
            #[inline(always)]
            fn floor_divide(self, other: $t) -> $t {
                let safe = if other == 0 { 1 } else { other };
                let (q, r) = (self.wrapping_div(safe), self.wrapping_rem(safe));
                #[allow(unused_comparisons)] // unsigned types have no negative side
                let down = (r != 0) & ((r < 0) != (safe < 0));
                if other == 0 { 0 } else { q.wrapping_sub(down as $t) }
            }
            #[inline(always)]
            fn modulo(self, other: $t) -> $t {
                let safe = if other == 0 { 1 } else { other };
                let r = self.wrapping_rem(safe);
                #[allow(unused_comparisons)] // unsigned types have no negative side
                let down = (r != 0) & ((r < 0) != (safe < 0));
                if other == 0 { 0 } else if down { r.wrapping_add(safe) } else { r }
            }
            #[inline(always)]
            fn fmod(self, other: $t) -> $t {
                let safe = if other == 0 { 1 } else { other };
                if other == 0 { 0 } else { self.wrapping_rem(safe) }
            }
        }
    )* };
}
divide_ints!(i8, i16, i32, i64, u8, u16, u32, u64);

impl<T: Float> Divide for T {
    #[inline(always)]
    fn floor_divide(self, other: T) -> T {
        let r = self.remainder(other);
        let adjusted = r != T::ZERO && r.lt(T::ZERO) != other.lt(T::ZERO);
        let q = self.sub(r).div(other);
        let q = if adjusted { q.sub(T::ONE) } else { q };
        // The quotient is whole but for rounding.
        let whole = q.floor();
        let whole = if T::of(0.5).lt(q.sub(whole)) { whole.add(T::ONE) } else { whole };
        let whole = if q == T::ZERO { T::ZERO.with_sign_of(self.div(other)) } else { whole };
        if other == T::ZERO { self.div(other) } else { whole }
    }
    #[inline(always)]
    fn modulo(self, other: T) -> T {
        let r = self.remainder(other);
        let shifted = if r.lt(T::ZERO) != other.lt(T::ZERO) { r.add(other) } else { r };
        if r == T::ZERO { T::ZERO.with_sign_of(other) } else { shifted }
    }
    #[inline(always)]
    fn fmod(self, other: T) -> T {
        self.remainder(other)
    }
}

/// Whole numbers seen as bits. Bool has one.
pub trait Bits: Ordered {
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn not(self) -> Self;
    /// Shifts past the width give 0, or -1 for a negative number shifted right; negative shifts likewise.
    fn shl(self, by: Self) -> Self;
    fn shr(self, by: Self) -> Self;
}

macro_rules! bits {
    ($($t:ty),*) => { $(
        impl Bits for $t {
            #[inline(always)]
            fn and(self, other: $t) -> $t { self & other }
            #[inline(always)]
            fn or(self, other: $t) -> $t { self | other }
            #[inline(always)]
            fn xor(self, other: $t) -> $t { self ^ other }
            #[inline(always)]
            fn not(self) -> $t { !self }
            #[inline(always)]
            fn shl(self, by: $t) -> $t {
                if by as u64 >= <$t>::BITS as u64 { 0 } else { self.wrapping_shl(by as u32) }
            }
            #[inline(always)]
            fn shr(self, by: $t) -> $t {
                let far = if self.lt(0) { (0 as $t).wrapping_sub(1) } else { 0 };
                if by as u64 >= <$t>::BITS as u64 { far } else { self.wrapping_shr(by as u32) }
            }
        }
    )* };
}
bits!(i8, i16, i32, i64, u8, u16, u32, u64);

impl Bits for Bool {
    #[inline(always)]
    fn and(self, other: Bool) -> Bool {
        self.mul(other)
    }
    #[inline(always)]
    fn or(self, other: Bool) -> Bool {
        self.add(other)
    }
    #[inline(always)]
    fn xor(self, other: Bool) -> Bool {
        self.sub(other)
    }
    #[inline(always)]
    fn not(self) -> Bool {
        Bool::new(!self.get())
    }
    #[inline(always)]
    fn shl(self, by: Bool) -> Bool {
        Bool::new(self.get() & !by.get())
    }
    #[inline(always)]
    fn shr(self, by: Bool) -> Bool {
        self.shl(by)
    }
}
