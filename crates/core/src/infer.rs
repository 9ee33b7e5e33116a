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

/// As [`same`]; bools count as int8: square, power, ...
pub fn same_bool_as_int8(a: &InferArgs) -> Result<Inferred> {
    let dtype = result_type(a.op, a.ins, a.mode)?;
    let dtype = if dtype == DType::Bool { DType::I8 } else { dtype };
    elementwise(a, dtype, dtype)
}

/// As [`same`], for real numbers only: maximum of complex numbers has no order here.
pub fn same_real(a: &InferArgs) -> Result<Inferred> {
    let dtype = result_type(a.op, a.ins, a.mode)?;
    refuse_complex(a.op, dtype)?;
    elementwise(a, dtype, dtype)
}

/// Computes in floating point: integers and bools become the default float. exp, logaddexp, ... An integer scalar
/// may be beyond the range of the array's integers: it is a floating number too.
pub fn float(a: &InferArgs) -> Result<Inferred> {
    let dtype = to_float(result_type_unchecked(a.ins, a.mode), a.mode);
    elementwise(a, dtype, dtype)
}

/// As [`float`], refusing complex operands.
pub fn float_real(a: &InferArgs) -> Result<Inferred> {
    let dtype = to_float(result_type_unchecked(a.ins, a.mode), a.mode);
    refuse_complex(a.op, dtype)?;
    elementwise(a, dtype, dtype)
}

/// Compares in the common dtype, answers bool. What no dtype holds both of is compared as it is: the operands of a
/// signed and an unsigned 64-bit integer keep their dtypes, and beside an integer scalar that is out of an array's
/// range (float64 here: its sign decides) the array's values do not matter (bool).
pub fn compare(a: &InferArgs) -> Result<Inferred> {
    let dtype = result_type_unchecked(a.ins, a.mode);
    let mut found = elementwise(a, dtype, DType::Bool)?;
    let is_out = |m: &Meta| m.scalar.is_some_and(|s| !s.fits(dtype));
    if let Some(i) = a.ins.iter().position(is_out) {
        // Two scalars that no dtype holds both of are rare enough to be compared as doubles.
        let other = if a.ins.len() == 2 && a.ins[1 - i].scalar.is_none() { DType::Bool } else { DType::F64 };
        found.ins.fill(other);
        found.ins[i] = DType::F64;
    } else if dtype == DType::F64 && a.ins.iter().all(|m| m.scalar.is_none() && m.dtype.is_integer()) {
        for (want, m) in found.ins.iter_mut().zip(a.ins) {
            *want = if m.dtype.is_signed() { DType::I64 } else { DType::U64 };
        }
    }
    Ok(found)
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
