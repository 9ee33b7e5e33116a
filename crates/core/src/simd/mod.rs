//! Which instruction set this process uses, and how one generic source is compiled for each. Knows no formula.

pub mod float;
pub mod half;
mod isa;
pub mod stream;
pub mod transpose;
#[cfg(target_arch = "x86_64")]
mod turn;
pub mod vector;

pub use isa::{Isa, isa, select};

/// Compiles one `#[inline(always)]` generic body for each instruction set, and defines the function that
/// picks the version for the current one. Where `fast` is false only the baseline is compiled.
///
/// The body, and all it calls, must be `#[inline(always)]`: code that stays a call runs as baseline. `modes [P, C]`
/// gives it one more type: P in the baseline, C where products and sums are one instruction; `vectors [T]` one more:
/// the set's vector of T.
#[macro_export]
macro_rules! isa_versions {
    ($(#[$meta:meta])* $vis:vis fn $pick:ident -> $ty:ty = $body:ident;
     generics [$($generics:tt)*] names [$($name:ident),*] $(modes [$plain:ty, $contracted:ty])?
     $(vectors [$item:ty])?
     fast $fast:expr; args ($($arg:ident : $argty:ty),*)) => {
        $(#[$meta])*
        $vis fn $pick<$($generics)*>() -> $ty {
            /// # Safety
            /// As the body's.
            unsafe fn baseline<$($generics)*>($($arg: $argty),*) {
                // SAFETY: the caller's contract is the body's.
                unsafe { $body::<$($name),* $(, $plain)? $(, <$item as $crate::simd::vector::Wide>::Baseline)?>($($arg),*) }
            }
            #[cfg(target_arch = "x86_64")]
            {
                /// # Safety
                /// As the body's, on a machine with these features.
                #[target_feature(enable = "avx2,fma")]
                unsafe fn avx2<$($generics)*>($($arg: $argty),*) {
                    // SAFETY: the caller's contract is the body's.
                    unsafe { $body::<$($name),* $(, $contracted)? $(, <$item as $crate::simd::vector::Wide>::Avx2)?>($($arg),*) }
                }
                /// # Safety
                /// As the body's, on a machine with these features.
                #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
                unsafe fn avx512<$($generics)*>($($arg: $argty),*) {
                    // SAFETY: the caller's contract is the body's.
                    unsafe { $body::<$($name),* $(, $contracted)? $(, <$item as $crate::simd::vector::Wide>::Avx512)?>($($arg),*) }
                }
                if $fast {
                    match $crate::simd::isa() {
                        $crate::simd::Isa::Avx2 => return avx2::<$($name),*>,
                        $crate::simd::Isa::Avx512 => return avx512::<$($name),*>,
                        _ => {}
                    }
                }
            }
            baseline::<$($name),*>
        }
    };
}
