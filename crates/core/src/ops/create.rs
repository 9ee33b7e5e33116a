//! Arrays from nothing: full, arange, ...

use crate::attrs::Attrs;
use crate::kernel::step;
use crate::op::{Grad, InferArgs, Inferred, Meta, Op, Run};
use crate::shape::{Shape, checked_numel};
use crate::{DType, Result, attrs};
use smallvec::smallvec;

attrs! {
    /// `shape` and `dtype` of the result; the value is the operand.
    pub struct Full { shape: Shape, dtype: DType }
}

/// The attributes of [`FULL`].
pub fn full(shape: &[usize], dtype: DType) -> Attrs {
    Attrs::new(Full { shape: Shape::from_slice(shape), dtype })
}

fn infer_full(a: &InferArgs) -> Result<Inferred> {
    let Full { shape, dtype } = a.attrs.get::<Full>();
    checked_numel(a.op, shape, dtype.size())?;
    crate::shape::broadcast(a.op, &[shape, &a.ins[0].shape])?;
    Ok(Inferred { ins: smallvec![*dtype], outs: smallvec![Meta::new(shape.clone(), *dtype)] })
}

/// `full(value)`: the operand broadcast to a new array.
pub static FULL: Op = Op {
    attrs: Full::read,
    grad: Grad::Vjp(|v| crate::grads!(v; v.g().sum_to(v.shape(0)))),
    ..Op::new("full", 1, infer_full, Run::Elementwise(|ins, out| Some(step::cast(ins[0], out))))
};

pub const OPS: &[&Op] = &[&FULL];
