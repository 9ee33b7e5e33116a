//! Views: reshape, transpose, broadcast_to, basic indexing, ... Nothing here moves an element.

use crate::attrs::{Attrs, Ints};
use crate::op::{Grad, InferArgs, Inferred, Meta, Op, Run};
use crate::shape::{AxisList, Shape, numel};
use crate::{Error, Layout, Result, attrs, grads};
use smallvec::smallvec;

attrs! {
    /// `shape`: the new shape, all sizes known.
    pub struct ToShape { shape: Shape }
}

attrs! {
    /// `axes`: the order of the axes, a permutation.
    pub struct Axes { axes: Ints }
}

/// The attributes of [`RESHAPE`].
pub fn reshape(shape: &[usize]) -> Attrs {
    Attrs::new(ToShape { shape: Shape::from_slice(shape) })
}

/// The attributes of [`BROADCAST_TO`].
pub fn broadcast_to(shape: &[usize]) -> Attrs {
    reshape(shape)
}

/// The attributes of [`TRANSPOSE`].
pub fn transpose(axes: &[usize]) -> Attrs {
    Attrs::new(Axes { axes: axes.iter().map(|&a| a as i64).collect() })
}

fn view_of(a: &InferArgs, shape: Shape) -> Result<Inferred> {
    let dtype = a.ins[0].dtype;
    Ok(Inferred { ins: smallvec![dtype], outs: smallvec![Meta::new(shape, dtype)] })
}

fn infer_reshape(a: &InferArgs) -> Result<Inferred> {
    let shape = &a.attrs.get::<ToShape>().shape;
    let size = numel(&a.ins[0].shape);
    if shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d)) != Some(size) {
        return Err(Error::Reshape { size, shape: shape.clone() });
    }
    view_of(a, shape.clone())
}

pub static RESHAPE: Op = Op {
    attrs: ToShape::read,
    grad: Grad::Vjp(|v| grads!(v; v.g().reshape(v.shape(0)))),
    ..Op::new("reshape", 1, infer_reshape, Run::View(|attrs, x| x.reshape(&attrs.get::<ToShape>().shape)))
};

fn infer_broadcast_to(a: &InferArgs) -> Result<Inferred> {
    let shape = &a.attrs.get::<ToShape>().shape;
    let from = Layout::contiguous(&a.ins[0].shape);
    if from.broadcast_to(shape).is_none() {
        return Err(Error::Broadcast { op: a.op, shapes: vec![a.ins[0].shape.clone(), shape.clone()] });
    }
    view_of(a, shape.clone())
}

pub static BROADCAST_TO: Op = Op {
    attrs: ToShape::read,
    grad: Grad::Vjp(|v| grads!(v; v.g().sum_to(v.shape(0)))),
    ..Op::new(
        "broadcast_to",
        1,
        infer_broadcast_to,
        Run::View(|attrs, x| x.broadcast_to(&attrs.get::<ToShape>().shape)),
    )
};

/// The permutation of a transpose whose `infer` has passed.
fn permutation(attrs: &Attrs) -> AxisList {
    attrs.get::<Axes>().axes.iter().map(|&a| a as usize).collect()
}

fn infer_transpose(a: &InferArgs) -> Result<Inferred> {
    let axes = &a.attrs.get::<Axes>().axes;
    let shape = &a.ins[0].shape;
    let mut seen = vec![false; shape.len()];
    for &axis in axes {
        match usize::try_from(axis).ok().and_then(|i| seen.get_mut(i)) {
            Some(s) if !*s => *s = true,
            _ => {
                return Err(Error::value(
                    a.op,
                    format!("axes {axes:?} are not a permutation of the array's axes"),
                ));
            }
        }
    }
    if axes.len() != shape.len() {
        return Err(Error::value(a.op, "axes don't match array"));
    }
    view_of(a, axes.iter().map(|&i| shape[i as usize]).collect())
}

pub static TRANSPOSE: Op = Op {
    attrs: Axes::read,
    grad: Grad::Vjp(|v| {
        let axes = permutation(v.attrs);
        let mut inverse: AxisList = smallvec![0; axes.len()];
        for (i, &axis) in axes.iter().enumerate() {
            inverse[axis] = i;
        }
        grads!(v; v.g().transpose(&inverse))
    }),
    ..Op::new("transpose", 1, infer_transpose, Run::View(|attrs, x| Some(x.transpose(&permutation(attrs)))))
};

pub const OPS: &[&Op] = &[&RESHAPE, &BROADCAST_TO, &TRANSPOSE];
