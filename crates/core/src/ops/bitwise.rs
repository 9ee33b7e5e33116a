//! Operations on the bits of integers and bools.

use crate::kernel::num::Bits;
use crate::op::{Grad, InferArgs, Inferred, Op};
use crate::promote::result_type;
use crate::{DType, Result, elementwise, formula, infer};

formula!(And: Bits, |a, b| a.and(b));
formula!(Or: Bits, |a, b| a.or(b));
formula!(Xor: Bits, |a, b| a.xor(b));
formula!(Not: Bits, |a| a.not());
formula!(LeftShift: Bits, |a, b| a.shl(b));
formula!(RightShift: Bits, |a, b| a.shr(b));

/// Bools shift as int8, as NumPy's.
fn infer_shift(a: &InferArgs) -> Result<Inferred> {
    let found = infer::integer(a)?;
    if result_type(a.op, a.ins, a.mode)? == DType::Bool {
        return infer::elementwise(a, DType::I8, DType::I8);
    }
    Ok(found)
}

pub static BITWISE_AND: Op =
    Op { grad: Grad::Zero, ..Op::new("bitwise_and", 2, infer::integer, elementwise!(bits: binary And)) };

pub static BITWISE_OR: Op =
    Op { grad: Grad::Zero, ..Op::new("bitwise_or", 2, infer::integer, elementwise!(bits: binary Or)) };

pub static BITWISE_XOR: Op =
    Op { grad: Grad::Zero, ..Op::new("bitwise_xor", 2, infer::integer, elementwise!(bits: binary Xor)) };

pub static BITWISE_NOT: Op =
    Op { grad: Grad::Zero, ..Op::new("bitwise_not", 1, infer::integer, elementwise!(bits: unary Not)) };

pub static LEFT_SHIFT: Op =
    Op { grad: Grad::Zero, ..Op::new("left_shift", 2, infer_shift, elementwise!(bits: binary LeftShift)) };

pub static RIGHT_SHIFT: Op =
    Op { grad: Grad::Zero, ..Op::new("right_shift", 2, infer_shift, elementwise!(bits: binary RightShift)) };

pub const OPS: &[&Op] = &[&BITWISE_AND, &BITWISE_OR, &BITWISE_XOR, &BITWISE_NOT, &LEFT_SHIFT, &RIGHT_SHIFT];
