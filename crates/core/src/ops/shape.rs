//! Views: reshape, transpose, broadcast_to, basic indexing, ... and the two ops that undo a basic index in
//! gradients. Only those two move elements.

use crate::attrs::{Attrs, Index, Ints};
use crate::kernel::moves;
use crate::op::{Grad, InferArgs, Inferred, KernelArgs, Meta, Op, Run};
use crate::shape::{AxisList, Shape, check_axes, checked_numel, display, numel};
use crate::view::ViewMut;
use crate::{Error, IndexItem, Layout, Result, attrs, grads};
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
                    format!("axes {axes:?} are not a permutation of the array's {} axes", shape.len()),
                ));
            }
        }
    }
    if axes.len() != shape.len() {
        let text = format!("axes don't match array: {axes:?} for an array of shape {}", display(shape));
        return Err(Error::value(a.op, text));
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

attrs! {
    /// `axis`: one axis or several.
    pub struct AxisSet { axis: Option<Ints> = None }
}

/// The new shape: axes are positions in the result, as in NumPy.
fn expanded(op: &'static str, axis: &Option<Ints>, shape: &[usize]) -> Result<Shape> {
    let Some(axis) = axis else { return Err(Error::type_(op, "missing required argument 'axis'")) };
    let ndim = shape.len() + axis.len();
    let at = check_axes(op, Some(axis), ndim)?;
    let mut rest = shape.iter();
    Ok((0..ndim).map(|i| if at.contains(&i) { 1 } else { *rest.next().unwrap_or(&1) }).collect())
}

fn infer_expand_dims(a: &InferArgs) -> Result<Inferred> {
    let shape = expanded(a.op, &a.attrs.get::<AxisSet>().axis, &a.ins[0].shape)?;
    checked_numel(a.op, &shape, a.ins[0].dtype.size())?;
    view_of(a, shape)
}

/// `expand_dims(x, axis)`: axes of size 1 at these positions of the result.
pub static EXPAND_DIMS: Op = Op {
    attrs: AxisSet::read,
    grad: Grad::Vjp(|v| grads!(v; v.g().reshape(v.shape(0)))),
    ..Op::new(
        "expand_dims",
        1,
        infer_expand_dims,
        Run::View(|attrs, x| x.reshape(&expanded("", &attrs.get::<AxisSet>().axis, &x.shape).ok()?)),
    )
};

/// The shape without the axes of size 1 that `axis` names (None: all of them).
fn squeezed(op: &'static str, axis: &Option<Ints>, shape: &[usize]) -> Result<Shape> {
    let Some(axis) = axis else { return Ok(shape.iter().copied().filter(|&n| n != 1).collect()) };
    let axes = check_axes(op, Some(axis), shape.len())?;
    if let Some(&i) = axes.iter().find(|&&i| shape[i] != 1) {
        let text = format!(
            "cannot select an axis to squeeze out which has size not equal to one: axis {i} of shape {}",
            display(shape)
        );
        return Err(Error::value(op, text));
    }
    Ok((0..shape.len()).filter(|i| !axes.contains(i)).map(|i| shape[i]).collect())
}

/// `squeeze(x, axis)`: without axes of size 1.
pub static SQUEEZE: Op = Op {
    attrs: AxisSet::read,
    grad: Grad::Vjp(|v| grads!(v; v.g().reshape(v.shape(0)))),
    ..Op::new(
        "squeeze",
        1,
        |a| view_of(a, squeezed(a.op, &a.attrs.get::<AxisSet>().axis, &a.ins[0].shape)?),
        Run::View(|attrs, x| x.reshape(&squeezed("", &attrs.get::<AxisSet>().axis, &x.shape).ok()?)),
    )
};

/// `flip(x, axis)`: the elements in reverse order along the axes (None: all).
pub static FLIP: Op = Op {
    attrs: AxisSet::read,
    grad: Grad::Vjp(|v| grads!(v; v.g().with(&FLIP, v.attrs.clone()))),
    ..Op::new(
        "flip",
        1,
        |a| {
            check_axes(a.op, a.attrs.get::<AxisSet>().axis.as_deref(), a.ins[0].shape.len())?;
            view_of(a, a.ins[0].shape.clone())
        },
        Run::View(|attrs, x| {
            let axes = check_axes("", attrs.get::<AxisSet>().axis.as_deref(), x.ndim()).ok()?;
            Some(axes.iter().fold(x.clone(), |layout, &axis| layout.flip(axis)))
        }),
    )
};

attrs! {
    /// `index`: a basic index, one item for each axis it covers.
    pub struct Basic { index: Index }
}

attrs! {
    /// `index`: a basic index into an array of `shape`.
    pub struct BasicInto { index: Index, shape: Shape }
}

/// The attributes of [`SLICE`] and [`SLICE_ASSIGN`].
pub fn basic(index: &[IndexItem]) -> Attrs {
    Attrs::new(Basic { index: Index::from_slice(index) })
}

/// The attributes of [`SLICE_ZERO`].
pub fn basic_into(index: &[IndexItem], shape: &[usize]) -> Attrs {
    Attrs::new(BasicInto { index: Index::from_slice(index), shape: Shape::from_slice(shape) })
}

/// Refuses an index that leaves the array; gives the shape it selects.
fn selected(op: &'static str, shape: &[usize], index: &[IndexItem]) -> Result<Shape> {
    let used = index.iter().filter(|item| !matches!(item, IndexItem::NewAxis)).count();
    if used > shape.len() {
        return Err(Error::new(
            crate::error::ErrorKind::Index,
            op,
            format!(
                "too many indices for array: array is {}-dimensional, but {used} were indexed",
                shape.len()
            ),
        ));
    }
    let mut axis = 0;
    for item in index {
        let size = shape.get(axis).copied().unwrap_or(1);
        let (first, last) = match *item {
            IndexItem::NewAxis => continue,
            IndexItem::At(at) => (at as i64, at as i64),
            IndexItem::Slice { len: 0, .. } => {
                axis += 1;
                continue;
            }
            IndexItem::Slice { start, step, len } => {
                (start as i64, (start as i64).saturating_add((step as i64).saturating_mul(len as i64 - 1)))
            }
        };
        for index in [first, last] {
            if index < 0 || index >= size as i64 {
                return Err(Error::Index { op, index, axis, size });
            }
        }
        axis += 1;
    }
    Ok(Layout::contiguous(shape).index(index).shape)
}

/// `slice(x, index)`: a basic index, as a view.
pub static SLICE: Op = Op {
    attrs: Basic::read,
    grad: Grad::Vjp(
        |v| grads!(v; v.g().with(&SLICE_ZERO, basic_into(&v.attrs.get::<Basic>().index, v.shape(0)))),
    ),
    ..Op::new(
        "slice",
        1,
        |a| view_of(a, selected(a.op, &a.ins[0].shape, &a.attrs.get::<Basic>().index)?),
        Run::View(|attrs, x| Some(x.index(&attrs.get::<Basic>().index))),
    )
};

fn infer_slice_zero(a: &InferArgs) -> Result<Inferred> {
    let BasicInto { index, shape } = a.attrs.get::<BasicInto>();
    let region = selected(a.op, shape, index)?;
    if region != a.ins[0].shape {
        return Err(Error::Broadcast { op: a.op, shapes: vec![a.ins[0].shape.clone(), region] });
    }
    view_of(a, shape.clone())
}

fn run_slice_zero(a: &KernelArgs) -> Result<()> {
    let out = a.out(0);
    moves::zero(&out, a.par);
    write_region(a, &a.ins[0], &out, &a.attrs.get::<BasicInto>().index);
    Ok(())
}

/// Copies `value`, broadcast, into the part of `out` that `index` selects.
fn write_region(a: &KernelArgs, value: &crate::view::View, out: &ViewMut, index: &[IndexItem]) {
    let region = out.layout.index(index);
    let Some(spread) = value.layout.broadcast_to(&region.shape) else { return };
    // SAFETY: both layouts select elements of views that are valid for this run; the value is another buffer.
    let (from, to) = unsafe {
        (
            crate::view::View::new(value.base(), &spread, value.dtype),
            ViewMut::new(out.base(), &region, out.dtype),
        )
    };
    moves::copy(&from, &to, a.par);
}

/// `slice_zero(g, index, shape)`: zeros of `shape` with `g` at the index; the gradient of [`SLICE`].
pub static SLICE_ZERO: Op = Op {
    attrs: BasicInto::read,
    grad: Grad::Vjp(|v| grads!(v; v.g().with(&SLICE, basic(&v.attrs.get::<BasicInto>().index)))),
    ..Op::new("slice_zero", 1, infer_slice_zero, Run::Kernel(run_slice_zero))
};

/// Refuses a Python number that `dtype` cannot hold, as NumPy 2 does on assignment.
pub fn check_scalar_fits(op: &'static str, dtype: crate::DType, value: &Meta) -> Result<()> {
    match value.scalar.and_then(|scalar| scalar.refusal(dtype)) {
        Some((kind, text)) => Err(Error::new(kind, op, text)),
        None => Ok(()),
    }
}

fn infer_slice_assign(a: &InferArgs) -> Result<Inferred> {
    let (x, value) = (&a.ins[0], &a.ins[1]);
    let region = selected(a.op, &x.shape, &a.attrs.get::<Basic>().index)?;
    if Layout::contiguous(&value.shape).broadcast_to(&region).is_none() {
        return Err(Error::value(
            a.op,
            format!(
                "could not broadcast input array from shape {} into shape {}",
                crate::shape::display(&value.shape),
                crate::shape::display(&region)
            ),
        ));
    }
    check_scalar_fits(a.op, x.dtype, value)?;
    Ok(Inferred { ins: smallvec![x.dtype, x.dtype], outs: smallvec![Meta::new(x.shape.clone(), x.dtype)] })
}

fn run_slice_assign(a: &KernelArgs) -> Result<()> {
    let out = a.out(0);
    moves::copy(&a.ins[0], &out, a.par);
    write_region(a, &a.ins[1], &out, &a.attrs.get::<Basic>().index);
    Ok(())
}

/// `slice_assign(x, value, index)`: x with the indexed part replaced by `value` (broadcast to it).
pub static SLICE_ASSIGN: Op = Op {
    attrs: Basic::read,
    grad: Grad::Vjp(|v| {
        let index = &v.attrs.get::<Basic>().index;
        grads!(v;
            v.g().apply(&SLICE_ASSIGN, v.attrs.clone(), &[crate::rules::Operand::Scalar(crate::Scalar::Int(0))]),
            v.g().with(&SLICE, basic(index)).sum_to(v.shape(1)),
        )
    }),
    ..Op::new("slice_assign", 2, infer_slice_assign, Run::Kernel(run_slice_assign))
};

/// The shape with `axis` (checked) set to `size`.
pub fn with_size(shape: &[usize], axis: usize, size: usize) -> Shape {
    let mut out = Shape::from_slice(shape);
    out[axis] = size;
    out
}

pub const OPS: &[&Op] =
    &[&RESHAPE, &BROADCAST_TO, &TRANSPOSE, &EXPAND_DIMS, &SQUEEZE, &FLIP, &SLICE, &SLICE_ZERO, &SLICE_ASSIGN];
