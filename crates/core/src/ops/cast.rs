//! Conversion between dtypes.

use crate::attrs::Attrs;
use crate::kernel::step;
use crate::op::{Grad, InferArgs, Inferred, Meta, Op, Run};
use crate::{DType, Result, attrs, grads};
use smallvec::smallvec;

attrs! {
    /// `dtype`: the dtype to convert to.
    pub struct AsType { dtype: DType }
}

/// The attributes of [`ASTYPE`].
pub fn astype(dtype: DType) -> Attrs {
    Attrs::new(AsType { dtype })
}

fn infer(a: &InferArgs) -> Result<Inferred> {
    let dtype = a.attrs.get::<AsType>().dtype;
    Ok(Inferred { ins: smallvec![a.ins[0].dtype], outs: smallvec![Meta::new(a.ins[0].shape.clone(), dtype)] })
}

pub static ASTYPE: Op = Op {
    attrs: AsType::read,
    grad: Grad::Vjp(|v| grads!(v; v.g().cast(v.ins[0].0.dtype))),
    ..Op::new("astype", 1, infer, Run::Elementwise(|ins, out| Some(step::cast(ins[0], out))))
};

pub const OPS: &[&Op] = &[&ASTYPE];
