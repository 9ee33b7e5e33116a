//! Rows of a table by number: embedding.

use crate::kernel::gather::{Rows, gather};
use crate::kernel::places::{Axis, Bound, places};
use crate::op::{Grad, InferArgs, Inferred, KernelArgs, Meta, Op, Run, Saves};
use crate::ops::index::{SCATTER_ADD, at_into, check_index_dtype};
use crate::rules::IntoOperand;
use crate::shape::{checked_numel, display};
use crate::{DType, Error, Result, attrs};
use smallvec::smallvec;

attrs! {
    /// `input_dim` and `output_dim`: the weight's sizes, where given; `sparse_grad` is accepted: gradients are
    /// dense.
    pub struct Embedding {
        input_dim: Option<i64> = None,
        output_dim: Option<i64> = None,
        dtype: Option<DType> = None,
        sparse_grad: bool = false,
    }
}

fn infer_embedding(a: &InferArgs) -> Result<Inferred> {
    let attrs = a.attrs.get::<Embedding>();
    let (indices, weight) = (&a.ins[0], &a.ins[1]);
    check_index_dtype(a, indices)?;
    let [rows, width] = weight.shape[..] else {
        let text =
            format!("the weight must have shape (input_dim, output_dim), got {}", display(&weight.shape));
        return Err(Error::value(a.op, text));
    };
    for (name, given, size) in [("input_dim", attrs.input_dim, rows), ("output_dim", attrs.output_dim, width)]
    {
        if let Some(n) = given.filter(|&n| n != size as i64) {
            let text = format!("{name} is {n}, but the weight has shape {}", display(&weight.shape));
            return Err(Error::value(a.op, text));
        }
    }
    let mut shape = indices.shape.clone();
    shape.push(width);
    checked_numel(a.op, &shape, weight.dtype.size())?;
    Ok(Inferred { ins: smallvec![DType::I64, weight.dtype], outs: smallvec![Meta::new(shape, weight.dtype)] })
}

fn run_embedding(a: &KernelArgs) -> Result<()> {
    let (indices, weight) = (&a.ins[0], &a.ins[1]);
    let axes = [Axis { size: weight.layout.shape[0], stride: weight.layout.strides[0], number: 0 }];
    let found = places(a.op, &[*indices], &indices.layout.shape, &axes, Bound::Strict, a.par)?;
    gather(weight, &Rows::new(weight.layout, 0, 1), &found, &a.out(0), a.tail, a.par);
    Ok(())
}

/// `embedding(indices, weight)`: a row of the weight for each index; one out of range or negative is an error.
pub static EMBEDDING: Op = Op {
    attrs: Embedding::read,
    grad: Grad::Vjp(|v| {
        let gw = v
            .needs(1)
            .then(|| v.g().apply(&SCATTER_ADD, at_into(0, "raise", v.shape(1)), &[v.x(0).operand()]));
        smallvec![None, gw]
    }),
    saves: Saves { inputs: 1, outputs: 0 },
    tail: true,
    ..Op::new("embedding", 2, infer_embedding, Run::Kernel(run_embedding))
};

pub const OPS: &[&Op] = &[&EMBEDDING];
