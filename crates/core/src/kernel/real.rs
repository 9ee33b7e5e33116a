//! Floating types seen through float64: for kernels that are bound by memory or by precision, not by width.

use crate::{DType, Element, bf16, f16};

/// A floating type.
pub trait Real: Element {
    fn wide(self) -> f64;
    /// Rounds once.
    fn narrow(x: f64) -> Self;
}

macro_rules! real {
    ($($t:ty: $wide:expr, $narrow:expr);*) => { $(
        impl Real for $t {
            #[inline(always)]
            fn wide(self) -> f64 {
                $wide(self)
            }
            #[inline(always)]
            fn narrow(x: f64) -> $t {
                $narrow(x)
            }
        }
    )* };
}
real!(f32: f64::from, |x| x as f32; f64: |x| x, |x| x; f16: f16::to_f64, f16::from_f64;
    bf16: bf16::to_f64, bf16::from_f64);

/// The dtype that statistics of `dtype` are kept in: float32 for half types.
pub const fn wide_dtype(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        other => other,
    }
}
