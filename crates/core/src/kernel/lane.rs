//! How an element is computed with: the wide type its formulas run in, and the conversions around them.
//! float16 and bfloat16 compute in float32 and round once per step; every other type computes as itself.

use crate::kernel::float::Fused;
use crate::{Bool, Complex32, Complex64, Element, bf16, f16};

/// An element type with the type its formulas are evaluated in.
pub trait Lane: Element {
    type Wide: Lane<Wide = Self::Wide, Fused = Self::Fused> + Default;
    /// As `Wide`, for code compiled for a set that multiplies and adds with one rounding.
    type Fused: Copy + Default;
    /// Whether it computes as another type.
    const HALF: bool = size_of::<Self>() != size_of::<Self::Wide>();
    /// Whether kernels for it are compiled for every instruction set (those of halves are their wide type's).
    const FAST: bool;
    /// Whether reductions of it are.
    const FOLDS: bool;
    fn widen(self) -> Self::Wide;
    fn narrow(wide: Self::Wide) -> Self;
    fn fuse(wide: Self::Wide) -> Self::Fused;
    fn unfuse(fused: Self::Fused) -> Self::Wide;
}

/// How formulas compute: with products rounded on their own, or not.
pub trait Arithmetic<A: Lane> {
    type Wide: Copy + Default;
    fn widen(a: A) -> Self::Wide;
    fn narrow(wide: Self::Wide) -> A;
}

/// For the baseline.
pub struct Plain;
/// For sets that multiply and add in one instruction.
pub struct Contracted;

impl<A: Lane> Arithmetic<A> for Plain {
    type Wide = A::Wide;
    #[inline(always)]
    fn widen(a: A) -> A::Wide {
        a.widen()
    }
    #[inline(always)]
    fn narrow(wide: A::Wide) -> A {
        A::narrow(wide)
    }
}

impl<A: Lane> Arithmetic<A> for Contracted {
    type Wide = A::Fused;
    #[inline(always)]
    fn widen(a: A) -> A::Fused {
        A::fuse(a.widen())
    }
    #[inline(always)]
    fn narrow(fused: A::Fused) -> A {
        A::narrow(A::unfuse(fused))
    }
}

macro_rules! lanes {
    ($fast:expr, $folds:expr; $($t:ty => $fused:ty: |$x:ident| $fuse:expr, $unfuse:expr);*) => { $(
        impl Lane for $t {
            type Wide = $t;
            type Fused = $fused;
            const FAST: bool = $fast;
            const FOLDS: bool = $folds;
            #[inline(always)]
            fn widen(self) -> $t { self }
            #[inline(always)]
            fn narrow(wide: $t) -> $t { wide }
            #[inline(always)]
            fn fuse($x: $t) -> $fused { $fuse }
            #[inline(always)]
            fn unfuse($x: $fused) -> $t { $unfuse }
        }
    )* };
    ($fast:expr, $folds:expr; $($t:ty),*) => { lanes!($fast, $folds; $($t => $t: |x| x, x);*); };
}
lanes!(true, true; f32 => Fused<f32>: |x| Fused(x), x.0; f64 => Fused<f64>: |x| Fused(x), x.0);
lanes!(true, true; Bool, u8, i32, i64);
lanes!(false, true; i8, i16, u16, u32, u64);
lanes!(false, false; Complex32, Complex64);

impl Lane for f16 {
    type Wide = f32;
    type Fused = Fused<f32>;
    const FAST: bool = false;
    const FOLDS: bool = true;
    #[inline(always)]
    fn widen(self) -> f32 {
        f16_to_f32(self.to_bits())
    }
    #[inline(always)]
    fn narrow(wide: f32) -> f16 {
        f16::from_bits(f32_to_f16(wide))
    }
    #[inline(always)]
    fn fuse(wide: f32) -> Fused<f32> {
        Fused(wide)
    }
    #[inline(always)]
    fn unfuse(fused: Fused<f32>) -> f32 {
        fused.0
    }
}

impl Lane for bf16 {
    type Wide = f32;
    type Fused = Fused<f32>;
    const FAST: bool = false;
    const FOLDS: bool = true;
    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits((self.to_bits() as u32) << 16)
    }
    #[inline(always)]
    fn narrow(wide: f32) -> bf16 {
        let bits = wide.to_bits();
        let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
        let quiet = (bits >> 16) | 0x40;
        bf16::from_bits(if wide.is_nan() { quiet } else { rounded } as u16)
    }
    #[inline(always)]
    fn fuse(wide: f32) -> Fused<f32> {
        Fused(wide)
    }
    #[inline(always)]
    fn unfuse(fused: Fused<f32>) -> f32 {
        fused.0
    }
}

/// Scaling by 2^112 moves a half's exponent, placed in a float's field, to where it belongs; subnormals
/// come out normal by the same multiplication.
#[inline(always)]
fn f16_to_f32(half: u16) -> f32 {
    let magnitude = (half as u32 & 0x7fff) << 13;
    let scaled = (f32::from_bits(magnitude) * f32::from_bits((127 + 112) << 23)).to_bits();
    let special = if magnitude >= 0x7c00 << 13 { 0x7f80_0000 } else { 0 };
    f32::from_bits(scaled | special | (half as u32 & 0x8000) << 16)
}

/// Round to nearest even, without a branch: normals by an integer add that carries into the exponent,
/// subnormals by adding 0.5, whose last place is a half's smallest step.
#[inline(always)]
fn f32_to_f16(x: f32) -> u16 {
    let bits = x.to_bits();
    let sign = (bits >> 16) & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    let normal = magnitude.wrapping_sub(112 << 23).wrapping_add(0xfff + ((magnitude >> 13) & 1)) >> 13;
    let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
    let special = if magnitude > 0x7f80_0000 { 0x7e00 } else { 0x7c00 };
    let finite = if magnitude < 113 << 23 { subnormal } else { normal };
    (sign | if magnitude >= 143 << 23 { special } else { finite }) as u16
}

/// Conversion between any two element types, as NumPy's unsafe casting does it on common machines: floats
/// truncate toward zero, saturate at 32 and 64 bits and wrap below; complex numbers lose their imaginary part.
/// NaN becomes the least int64, as in NumPy: labels and indices are int64 in the end, and 0 would be a valid one.
pub trait CastFrom<A> {
    fn cast_from(a: A) -> Self;
}

macro_rules! cast {
    ($($a:ty => $b:ty: |$x:ident| $e:expr;)*) => { $(
        impl CastFrom<$a> for $b {
            #[inline(always)]
            fn cast_from($x: $a) -> $b { $e }
        }
    )* };
}
macro_rules! cast_ints {
    ($($a:ty),*) => { $(
        cast! {
            $a => Bool: |x| Bool::new(x != 0);
            $a => i8: |x| x as i8; $a => i16: |x| x as i16; $a => i32: |x| x as i32; $a => i64: |x| x as i64;
            $a => u8: |x| x as u8; $a => u16: |x| x as u16; $a => u32: |x| x as u32; $a => u64: |x| x as u64;
            $a => f32: |x| x as f32; $a => f64: |x| x as f64;
            $a => f16: |x| Lane::narrow(x as f32); $a => bf16: |x| Lane::narrow(x as f32);
            $a => Complex32: |x| Complex32::new(x as f32, 0.0);
            $a => Complex64: |x| Complex64::new(x as f64, 0.0);
        }
    )* };
}
cast_ints!(i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! cast_via {
    ($($a:ty: |$x:ident| $e:expr => $($b:ty),*;)*) => { $($(
        impl CastFrom<$a> for $b {
            #[inline(always)]
            fn cast_from($x: $a) -> $b { <$b>::cast_from($e) }
        }
    )*)* };
}
cast_via! {
    Bool: |x| x.get() as u8 => i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, Complex32, Complex64;
    Complex32: |x| x.re => i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64;
    Complex64: |x| x.re => i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64;
}
/// A float as an integer, toward zero: what `as` gives, of which the compiler makes no vectors.
trait Truncate {
    fn to_i32(self) -> i32;
    fn to_i64(self) -> i64;
}

macro_rules! truncate {
    ($($a:ty: $($name:ident -> $i:ty),*;)*) => { $(
        impl Truncate for $a { $(
            #[inline(always)]
            fn $name(self) -> $i {
                // A power of two, and so exact.
                const LOW: $a = <$i>::MIN as $a;
                let below = self < LOW;
                let inside = !below & (self < -LOW);
                let edge = if below { <$i>::MIN } else { <$i>::MAX };
                let edge = if self != self { 0 } else { edge };
                // SAFETY: from the least integer up to, but without, the one after the greatest; or zero.
                let near = unsafe { (if inside { self } else { 0.0 }).to_int_unchecked::<$i>() };
                if inside { near } else { edge }
            }
        )* }
    )* };
}
truncate! { f32: to_i32 -> i32, to_i64 -> i64; f64: to_i32 -> i32, to_i64 -> i64; }

macro_rules! cast_floats {
    ($($a:ty),*) => { $(
        cast! {
            $a => Bool: |x| Bool::new(x != 0.0);
            $a => i8: |x| x.to_i32() as i8; $a => i16: |x| x.to_i32() as i16; $a => i32: |x| x.to_i32();
            $a => u8: |x| x.to_i32() as u8; $a => u16: |x| x.to_i32() as u16; $a => u32: |x| x.to_i64() as u32;
            $a => i64: |x| if x.is_nan() { i64::MIN } else { x.to_i64() };
            $a => u64: |x| if x < 0.0 { x.to_i64() as u64 } else { x as u64 };
            $a => f32: |x| x as f32; $a => f64: |x| x as f64;
            $a => Complex32: |x| Complex32::new(x as f32, 0.0);
            $a => Complex64: |x| Complex64::new(x as f64, 0.0);
        }
    )* };
}
cast_floats!(f32, f64);
cast! {
    f32 => f16: |x| Lane::narrow(x);
    f32 => bf16: |x| Lane::narrow(x);
    f64 => f16: |x| Lane::narrow(round_to_odd(x));
    f64 => bf16: |x| Lane::narrow(round_to_odd(x));
    Bool => Bool: |x| Bool::new(x.get());
    Complex32 => Bool: |x| Bool::new(x.re != 0.0 || x.im != 0.0);
    Complex64 => Bool: |x| Bool::new(x.re != 0.0 || x.im != 0.0);
    Complex32 => Complex32: |x| x;
    Complex32 => Complex64: |x| Complex64::new(x.re as f64, x.im as f64);
    Complex64 => Complex32: |x| Complex32::new(x.re as f32, x.im as f32);
    Complex64 => Complex64: |x| x;
}

/// A float32 whose last bit remembers what was cut off, so that rounding it again to a shorter type gives
/// what rounding the double at once would.
#[inline(always)]
fn round_to_odd(x: f64) -> f32 {
    let near = x as f32;
    let error = x - near as f64;
    if error == 0.0 || !near.is_finite() {
        return near;
    }
    // Step back toward zero where rounding went away from it, then set the last bit.
    let bits = near.to_bits();
    let away = (near as f64).abs() > x.abs();
    f32::from_bits((bits - away as u32) | 1)
}
