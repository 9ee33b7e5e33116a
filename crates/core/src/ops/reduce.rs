//! Reductions over axes: sum, prod, max, min, argmax, ...

use crate::attrs::{Attrs, Ints};
use crate::kernel::fold::{self, Reduction};
use crate::kernel::lane::Lane;
use crate::kernel::num::Num;
use crate::kernel::reduce::Fold;
use crate::op::{Grad, InferArgs, Inferred, Meta, Op, Run};
use crate::shape::{AxisList, check_axes, reduced};
use crate::{DType, Result, attrs, grads, with_type};
use smallvec::smallvec;

attrs! {
    /// `axis`: the axes to reduce (None: all); `keepdims`: keep them with size 1; `dtype`: of the result.
    pub struct Reduce { axis: Option<Ints> = None, keepdims: bool = false, dtype: Option<DType> = None }
}

/// The attributes of [`SUM`] over checked axes.
pub fn sum_attrs(axes: &[usize], keepdims: bool) -> Attrs {
    let axis = Some(axes.iter().map(|&a| a as i64).collect());
    Attrs::new(Reduce { axis, keepdims, dtype: None })
}

/// The axes of a call that `infer` has checked.
fn axes(attrs: &Attrs, ndim: usize) -> AxisList {
    check_axes("", attrs.get::<Reduce>().axis.as_deref(), ndim).unwrap_or_default()
}

/// Sums of integers are int64 or uint64, as NumPy's.
fn infer_sum(a: &InferArgs) -> Result<Inferred> {
    let attrs = a.attrs.get::<Reduce>();
    let x = &a.ins[0];
    let axes = check_axes(a.op, attrs.axis.as_deref(), x.shape.len())?;
    let out = attrs.dtype.unwrap_or(match x.dtype {
        d if d.is_inexact() => d,
        d if d.is_unsigned() => DType::U64,
        _ => DType::I64,
    });
    Ok(Inferred {
        ins: smallvec![out],
        outs: smallvec![Meta::new(reduced(&x.shape, &axes, attrs.keepdims), out)],
    })
}

struct Sum;
impl<A: Lane<Wide: Num>> Reduction<A, A> for Sum {
    type Acc = A::Wide;
    const IDENTITY: A::Wide = A::Wide::ZERO;
    #[inline(always)]
    fn lift(x: A::Wide, _: usize) -> A::Wide {
        x
    }
    #[inline(always)]
    fn combine(a: A::Wide, b: A::Wide) -> A::Wide {
        a.add(b)
    }
    #[inline(always)]
    fn result(acc: A::Wide) -> A::Wide {
        acc
    }
}

fn sum(_: DType, out: DType) -> Option<Fold> {
    with_type!(all out, T => Some(fold::of::<Sum, T, T>()))
}

pub static SUM: Op = Op {
    attrs: Reduce::read,
    grad: Grad::Vjp(|v| {
        let x = v.shape(0);
        let kept = reduced(x, &axes(v.attrs, x.len()), true);
        grads!(v; v.g().reshape(&kept).broadcast_to(x))
    }),
    ..Op::new("sum", 1, infer_sum, Run::Reduce { fold: sum, axes })
};

pub const OPS: &[&Op] = &[&SUM];
