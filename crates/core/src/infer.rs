//! The `infer` functions that many ops share: what an elementwise family does with shapes and dtypes.

use crate::DType;
use crate::dtype::Kind;
use crate::error::{Error, Result};
use crate::op::{InferArgs, Inferred, Meta};
use crate::promote::{result_type, result_type_unchecked, to_float};
use crate::shape::{Shape, broadcast};
use smallvec::{SmallVec, smallvec};

/// The shape the operands broadcast to.
pub fn broadcast_shape(a: &InferArgs) -> Result<Shape> {
    if let [only] = a.ins {
        return Ok(only.shape.clone());
    }
    let shapes: SmallVec<[&[usize]; 4]> = a.ins.iter().map(|m| m.shape.as_slice()).collect();
    broadcast(a.op, &shapes)
}

/// One output of `out`, from inputs all converted to `dtype`.
pub fn elementwise(a: &InferArgs, dtype: DType, out: DType) -> Result<Inferred> {
    Ok(Inferred {
        ins: SmallVec::from_elem(dtype, a.ins.len()),
        outs: smallvec![Meta::new(broadcast_shape(a)?, out)],
    })
}

/// Computes and answers in the operands' common dtype: add, maximum, ...
pub fn same(a: &InferArgs) -> Result<Inferred> {
    let dtype = result_type(a.op, a.ins, a.mode)?;
    elementwise(a, dtype, dtype)
}

/// As [`same`], refusing bool: subtract, negative.
pub fn same_not_bool(a: &InferArgs) -> Result<Inferred> {
    let dtype = result_type(a.op, a.ins, a.mode)?;
    if dtype == DType::Bool {
        return Err(Error::DType {
            op: a.op,
            dtype,
            expected: "use bitwise_xor, logical_xor or logical_not for bools",
        });
    }
    elementwise(a, dtype, dtype)
}

/// As [`same`], for real numbers only: maximum of complex numbers has no order here.
pub fn same_real(a: &InferArgs) -> Result<Inferred> {
    let dtype = result_type(a.op, a.ins, a.mode)?;
    refuse_complex(a.op, dtype)?;
    elementwise(a, dtype, dtype)
}

/// Computes in floating point: integers and bools become the default float. exp, true_divide, ...
pub fn float(a: &InferArgs) -> Result<Inferred> {
    let dtype = to_float(result_type(a.op, a.ins, a.mode)?, a.mode);
    elementwise(a, dtype, dtype)
}

/// As [`float`], refusing complex operands.
pub fn float_real(a: &InferArgs) -> Result<Inferred> {
    let dtype = to_float(result_type(a.op, a.ins, a.mode)?, a.mode);
    refuse_complex(a.op, dtype)?;
    elementwise(a, dtype, dtype)
}

/// Compares in the common dtype, answers bool. An integer scalar no operand dtype can hold is compared as
/// a wider number, as NumPy 2 does.
pub fn compare(a: &InferArgs) -> Result<Inferred> {
    let mut dtype = result_type_unchecked(a.ins, a.mode);
    if a.ins.iter().filter_map(|m| m.scalar).any(|s| !s.fits(dtype)) {
        let fits = |d: DType| a.ins.iter().filter_map(|m| m.scalar).all(|s| s.fits(d));
        dtype =
            [DType::I64, DType::U64].into_iter().find(|&d| fits(d) && widens(dtype, d)).unwrap_or(DType::F64);
    }
    elementwise(a, dtype, DType::Bool)
}

/// Whether every value of integer dtype `from` is one of `to`.
fn widens(from: DType, to: DType) -> bool {
    match (from.int_range(), to.int_range()) {
        (Some((a, b)), Some((c, d))) => c <= a && b <= d,
        _ => false,
    }
}

/// Reads any dtype as a truth value, answers bool: logical_and, isnan, ...
pub fn predicate(a: &InferArgs) -> Result<Inferred> {
    let dtype = result_type(a.op, a.ins, a.mode)?;
    elementwise(a, dtype, DType::Bool)
}

/// Integers and bools only: bitwise_and, left_shift, ...
pub fn integer(a: &InferArgs) -> Result<Inferred> {
    let dtype = result_type(a.op, a.ins, a.mode)?;
    if dtype.kind() > Kind::Int {
        return Err(Error::DType { op: a.op, dtype, expected: "bitwise ops take integers and bools" });
    }
    elementwise(a, dtype, dtype)
}

/// An error where `dtype` is complex.
pub fn refuse_complex(op: &'static str, dtype: DType) -> Result<()> {
    if dtype.is_complex() {
        Err(Error::DType { op, dtype, expected: "take .real or abs() first" })
    } else {
        Ok(())
    }
}
