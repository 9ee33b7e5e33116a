//! Which dtype comes of several: NumPy 2's promotion with weak Python scalars, and MXNet's defaults.

use crate::dtype::Kind;
use crate::error::{Error, ErrorKind, Result};
use crate::op::Meta;
use crate::{DType, Scalar};

/// The modes a call is made in, captured when it is appended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mode {
    /// NumPy's default dtypes and promotion (`npx.set_np(dtype=True)`) in place of MXNet's.
    pub numpy_dtype: bool,
}

impl Mode {
    /// The dtype of floating results that no operand decides.
    pub fn default_float(self) -> DType {
        if self.numpy_dtype { DType::F64 } else { DType::F32 }
    }

    pub fn default_complex(self) -> DType {
        if self.numpy_dtype { DType::C128 } else { DType::C64 }
    }
}

/// The dtype that holds the values of both, as `numpy.promote_types`; in MXNet's mode an integer or bool
/// with an inexact dtype gives the inexact one.
pub fn promote_types(a: DType, b: DType, mode: Mode) -> DType {
    use DType::*;
    if a == b {
        return a;
    }
    let (a, b) = if a.kind() <= b.kind() { (a, b) } else { (b, a) };
    match (a.kind(), b.kind()) {
        (Kind::Bool, _) => b,
        (Kind::Int, Kind::Int) => promote_ints(a, b),
        (Kind::Int, _) if !mode.numpy_dtype => b,
        (Kind::Int, Kind::Float) => match (a.size(), b) {
            (_, BF16) => BF16,
            (1, F16) => F16,
            (1 | 2, F16 | F32) => F32,
            _ => F64,
        },
        (Kind::Int, _) => {
            if a.size() <= 2 {
                b
            } else {
                C128
            }
        }
        (Kind::Float, Kind::Float) => match (a, b) {
            (F64, _) | (_, F64) => F64,
            _ => F32, // two different ones of float16, bfloat16, float32
        },
        (Kind::Float, _) => {
            if a == F64 {
                C128
            } else {
                b
            }
        }
        _ => C128,
    }
}

fn promote_ints(a: DType, b: DType) -> DType {
    use DType::*;
    if a.is_signed() == b.is_signed() {
        return if a.size() >= b.size() { a } else { b };
    }
    let (signed, unsigned) = if a.is_signed() { (a, b) } else { (b, a) };
    if signed.size() > unsigned.size() {
        return signed;
    }
    match unsigned {
        U8 => I16,
        U16 => I32,
        U32 => I64,
        _ => F64,
    }
}

/// The common dtype of the operands: strong dtypes promoted, weak scalars only lifting the kind. A Python
/// integer that the dtype cannot hold is an OverflowError, as in NumPy 2.
pub fn result_type(op: &'static str, ins: &[Meta], mode: Mode) -> Result<DType> {
    let dtype = result_type_unchecked(ins, mode);
    for scalar in ins.iter().filter_map(|m| m.scalar) {
        if let (Scalar::Int(v), false) = (scalar, scalar.fits(dtype)) {
            return Err(Error::new(
                ErrorKind::Overflow,
                op,
                format!("Python integer {v} out of bounds for {dtype}"),
            ));
        }
    }
    Ok(dtype)
}

/// [`result_type`] without the check that integer scalars fit.
pub fn result_type_unchecked(ins: &[Meta], mode: Mode) -> DType {
    let strong =
        ins.iter().filter(|m| m.scalar.is_none()).map(|m| m.dtype).reduce(|a, b| promote_types(a, b, mode));
    let weak = ins.iter().filter_map(|m| m.scalar);
    match strong {
        Some(dtype) => weak.fold(dtype, |d, s| lift(d, s, mode)),
        None => weak.fold(DType::Bool, |d, s| lift(d, s, mode)),
    }
}

/// The dtype of an operand of `dtype` with a weak scalar.
fn lift(dtype: DType, scalar: Scalar, mode: Mode) -> DType {
    let kind = match scalar {
        Scalar::Bool(_) => Kind::Bool,
        Scalar::Int(_) => Kind::Int,
        Scalar::Float(_) => Kind::Float,
        Scalar::Complex(..) => Kind::Complex,
    };
    if kind <= dtype.kind() {
        return dtype;
    }
    match (kind, dtype) {
        (Kind::Int, _) => DType::I64,
        (Kind::Float, _) => mode.default_float(),
        (_, DType::F64) => DType::C128,
        (_, d) if d.is_float() => DType::C64,
        _ => mode.default_complex(),
    }
}

/// The dtype a floating function computes in for an operand dtype: inexact ones stay; others become the
/// default float (in NumPy's mode NumPy's choice by size: float16, float32, float64).
pub fn to_float(dtype: DType, mode: Mode) -> DType {
    if dtype.is_inexact() {
        return dtype;
    }
    match (mode.numpy_dtype, dtype.size()) {
        (false, _) => DType::F32,
        (true, 1) => DType::F16,
        (true, 2) => DType::F32,
        _ => DType::F64,
    }
}

/// How strict a cast must be, as NumPy's `casting=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Casting {
    Safe,
    SameKind,
    Unsafe,
}

/// Whether `from` may be cast to `to`.
pub fn can_cast(from: DType, to: DType, casting: Casting) -> bool {
    let safe = || promote_types(from, to, Mode { numpy_dtype: true }) == to;
    match casting {
        Casting::Unsafe => true,
        Casting::Safe => safe(),
        Casting::SameKind => {
            safe()
                || match (from.kind(), to.kind()) {
                    (Kind::Int, Kind::Int) => from.is_unsigned() || to.is_signed(),
                    (a, b) => a <= b,
                }
        }
    }
}
