//! One index per position along an axis: take_along_axis, pick, and the scatter that is their gradient.

use super::{bound, check_index_dtype};
use crate::attrs::Attrs;
use crate::kernel::gather::Add;
use crate::kernel::moves::{self, Shared};
use crate::kernel::places::{Axis, Places, places};
use crate::kernel::walk::{GRAIN, Walk};
use crate::layout::{Strides, contiguous_strides};
use crate::op::{Grad, InferArgs, Inferred, KernelArgs, Meta, Op, Run, Saves};
use crate::ops::shape::with_size;
use crate::rules::IntoOperand;
use crate::shape::{Shape, broadcast, check_axis, display};
use crate::view::View;
use crate::{DType, Error, Layout, Result, attrs, with_type, with_word};
use smallvec::smallvec;

attrs! {
    /// `axis`: the axis the indices count along; `mode`: `raise`, `strict`, `clip` or `wrap`; `caller`: by whose name
    /// errors go.
    pub struct Along { axis: i64, mode: String = "raise".into(), caller: Option<String> = None }
}

/// The functions that are written with ops of this file, and whose names their errors have.
const CALLERS: [&str; 3] = ["choose", "sequence_last", "sequence_reverse"];

/// The name that errors of a call have.
fn named(op: &'static str, caller: &Option<String>) -> &'static str {
    let is_caller = |name: &&&str| caller.as_deref() == Some(**name);
    CALLERS.iter().find(is_caller).copied().unwrap_or(op)
}

attrs! {
    /// [`Along`], with the `size` of the axis.
    pub struct AlongInto { axis: i64, mode: String = "raise".into(), size: i64 }
}

/// The attributes of [`TAKE_ALONG_AXIS`].
pub fn along(axis: usize, mode: &str) -> Attrs {
    Attrs::new(Along { axis: axis as i64, mode: mode.into(), caller: None })
}

/// The attributes of [`SCATTER_ALONG`].
pub fn along_into(axis: usize, mode: &str, size: usize) -> Attrs {
    Attrs::new(AlongInto { axis: axis as i64, mode: mode.into(), size: size as i64 })
}

/// The shape of x and the indices broadcast on every axis but `axis`, with the indices' size there.
fn along_shape(a: &InferArgs, axis: i64) -> Result<(usize, Shape)> {
    let (x, index) = (&a.ins[0], &a.ins[1]);
    check_index_dtype(a, index)?;
    let axis = check_axis(a.op, axis, x.shape.len())?;
    if x.shape.len() != index.shape.len() {
        return Err(Error::value(
            a.op,
            format!(
                "the indices and the array must have the same number of dimensions, got {} and {}",
                display(&index.shape),
                display(&x.shape)
            ),
        ));
    }
    let one = |shape: &[usize]| with_size(shape, axis, 1);
    let mut shape = broadcast(a.op, &[&one(&x.shape), &one(&index.shape)])?;
    shape[axis] = index.shape[axis];
    Ok((axis, shape))
}

fn infer_take_along(a: &InferArgs) -> Result<Inferred> {
    let Along { axis, mode, caller } = a.attrs.get::<Along>();
    let a = &InferArgs { op: named(a.op, caller), ..*a };
    bound(a.op, mode)?;
    let (_, shape) = along_shape(a, *axis)?;
    let dtype = a.ins[0].dtype;
    Ok(Inferred { ins: smallvec![dtype, DType::I64], outs: smallvec![Meta::new(shape, dtype)] })
}

/// The strides of a layout broadcast to `shape` on all axes but `axis`, where the stride stays.
fn strides_to(view: &View, shape: &[usize], axis: usize) -> Strides {
    let own = with_size(shape, axis, view.layout.shape[axis]);
    match view.layout.broadcast_to(&own) {
        Some(layout) => layout.strides,
        None => contiguous_strides(&own),
    }
}

/// The offsets along `axis` of an array of `layout` that the indices (a dense array of `index`'s shape) ask for, checked.
fn offsets_along(
    a: &KernelArgs,
    op: &'static str,
    index: &View,
    layout: &Layout,
    axis: usize,
    mode: &str,
) -> Result<Places> {
    let axes = [Axis { size: layout.shape[axis], stride: layout.strides[axis], number: axis }];
    places(op, &[*index], &index.layout.shape, &axes, bound(op, mode)?, a.par)
}

fn run_take_along(a: &KernelArgs) -> Result<()> {
    let Along { axis, mode, caller } = a.attrs.get::<Along>();
    let (x, index, out) = (&a.ins[0], &a.ins[1], a.out(0));
    let axis = check_axis(a.op, *axis, x.layout.ndim())?;
    let found = offsets_along(a, named(a.op, caller), index, x.layout, axis, mode)?;
    let shape = &out.layout.shape;
    let mut from = strides_to(x, shape, axis);
    from[axis] = 0;
    let dense = Layout::contiguous(&index.layout.shape);
    // SAFETY: the layout of `found`.
    let found_view = unsafe { View::new(found.as_ptr().cast(), &dense, DType::I64) };
    let which = strides_to(&found_view, shape, axis);
    take_found(a, &Walk::new(shape, [&from, &which, &out.layout.strides]), &found);
    Ok(())
}

/// Copies from the first input to the output: `walk` has the strides of the input, of `found` and of the output, and
/// what was found is added to the input's offset.
fn take_found(a: &KernelArgs, walk: &Walk<3>, found: &[isize]) {
    let (x, out) = (&a.ins[0], a.out(0));
    let (_, steps) = walk.inner();
    let found = Shared(found.as_ptr().cast_mut());
    with_word!(x.dtype.size(), W => {
        let (from, to) = (Shared(x.start().cast::<W>().cast_mut()), Shared(out.start().cast::<W>()));
        let row = |[i, j, o]: [isize; 3], n: usize, [s, t, d]: [isize; 3]| {
            for k in 0..n as isize {
                // SAFETY: offsets come from the layouts and were checked; chunks write disjoint elements.
                unsafe { *to.at(o + k * d) = *from.at(i + k * s + *found.at(j + k * t)) };
            }
        };
        // The same code, known to the compiler to go through neighbours in the first two cases.
        walk.run(a.par, GRAIN, |at, n| match steps {
            [0, 1, 1] => row(at, n, [0, 1, 1]),
            [1, 1, 1] => row(at, n, [1, 1, 1]),
            _ => row(at, n, steps),
        });
    });
}

/// `take_along_axis(x, indices, axis)`: `x[..., indices[..., k, ...], ...]`, other axes broadcast.
pub static TAKE_ALONG_AXIS: Op = Op {
    attrs: Along::read,
    grad: Grad::Vjp(|v| {
        let Along { axis, mode, .. } = v.attrs.get::<Along>();
        let axis = check_axis("", *axis, v.shape(0).len()).unwrap_or(0);
        let into = along_into(axis, mode, v.shape(0)[axis]);
        let gx =
            v.needs(0).then(|| v.g().apply(&SCATTER_ALONG, into, &[v.x(1).operand()]).sum_to(v.shape(0)));
        smallvec![gx, None]
    }),
    saves: Saves { inputs: 0b10, outputs: 0 },
    ..Op::new("take_along_axis", 2, infer_take_along, Run::Kernel(run_take_along))
};

fn infer_scatter_along(a: &InferArgs) -> Result<Inferred> {
    let AlongInto { axis, mode, size } = a.attrs.get::<AlongInto>();
    bound(a.op, mode)?;
    let (axis, mut shape) = along_shape(a, *axis)?;
    if a.ins[0].shape != shape {
        return Err(Error::Broadcast { op: a.op, shapes: vec![a.ins[0].shape.clone(), shape] });
    }
    shape[axis] = usize::try_from(*size)
        .map_err(|_| Error::value(a.op, format!("size must not be negative, got {size}")))?;
    crate::shape::checked_numel(a.op, &shape, a.ins[0].dtype.size())?;
    let dtype = a.ins[0].dtype;
    Ok(Inferred { ins: smallvec![dtype, DType::I64], outs: smallvec![Meta::new(shape, dtype)] })
}

fn run_scatter_along(a: &KernelArgs) -> Result<()> {
    let AlongInto { axis, mode, .. } = a.attrs.get::<AlongInto>();
    let (g, index, out) = (&a.ins[0], &a.ins[1], a.out(0));
    let axis = check_axis(a.op, *axis, g.layout.ndim())?;
    let found = offsets_along(a, a.op, index, out.layout, axis, mode)?;
    moves::zero(&out, a.par);
    let dense = Layout::contiguous(&index.layout.shape);
    // SAFETY: the layout of `found`.
    let found_view = unsafe { View::new(found.as_ptr().cast(), &dense, DType::I64) };
    let which = strides_to(&found_view, &g.layout.shape, axis);
    with_type!(all g.dtype, T => add_along::<T>(a, &found, &which, axis));
    Ok(())
}

/// Adds line by line: a line's elements are visited in order, on one thread.
fn add_along<T: Add>(a: &KernelArgs, found: &[isize], which: &[isize], axis: usize) {
    let (g, out) = (&a.ins[0], a.out(0));
    let count = g.layout.shape[axis];
    let lines = with_size(&g.layout.shape, axis, 1);
    let walk = Walk::new(&lines, [&g.layout.strides, which, &out.layout.strides]);
    let (_, [s, t, d]) = walk.inner();
    let (gs, ts) = (g.layout.strides[axis], which[axis]);
    let (from, to) = (Shared(g.ptr::<T>().cast_mut()), Shared(out.ptr::<T>()));
    walk.run(a.par, GRAIN / count.max(1), |[i, j, o], n| {
        for line in 0..n as isize {
            for k in 0..count as isize {
                // SAFETY: offsets come from the layouts, steps were checked; chunks write disjoint lines.
                unsafe {
                    let target = to.at(o + line * d + found[(j + line * t + k * ts) as usize]);
                    *target = (*target).add(*from.at(i + line * s + k * gs));
                }
            }
        }
    });
}

/// `scatter_along(g, indices, axis, size)`: zeros with `g` added up at the indices along `axis`; the gradient
/// of [`TAKE_ALONG_AXIS`].
pub static SCATTER_ALONG: Op = Op {
    attrs: AlongInto::read,
    grad: Grad::Vjp(|v| {
        let AlongInto { axis, mode, .. } = v.attrs.get::<AlongInto>();
        let axis = check_axis("", *axis, v.shape(0).len()).unwrap_or(0);
        let g = v.needs(0).then(|| v.g().apply(&TAKE_ALONG_AXIS, along(axis, mode), &[v.x(1).operand()]));
        smallvec![g, None]
    }),
    saves: Saves { inputs: 0b10, outputs: 0 },
    ..Op::new("scatter_along", 2, infer_scatter_along, Run::Kernel(run_scatter_along))
};

attrs! {
    /// `axis`: the axis to pick along; `keepdims`: keep it with size 1; `mode`: `clip` (MXNet's default),
    /// `wrap`, `raise` or `strict`; `caller`: by whose name errors go.
    pub struct Pick {
        axis: i64 = -1,
        keepdims: bool = false,
        mode: String = "clip".into(),
        caller: Option<String> = None,
    }
}

/// The axis, and the shapes with it (size 1) and without it.
fn pick_shapes(op: &'static str, axis: i64, x: &[usize]) -> Result<(usize, Shape, Shape)> {
    let axis = check_axis(op, axis, x.len())?;
    let kept = with_size(x, axis, 1);
    let mut dropped = kept.clone();
    dropped.remove(axis);
    Ok((axis, kept, dropped))
}

fn infer_pick(a: &InferArgs) -> Result<Inferred> {
    let Pick { axis, keepdims, mode, caller } = a.attrs.get::<Pick>();
    let a = &InferArgs { op: named(a.op, caller), ..*a };
    bound(a.op, mode)?;
    let (x, index) = (&a.ins[0], &a.ins[1]);
    check_index_dtype(a, index)?;
    let (_, kept, dropped) = pick_shapes(a.op, *axis, &x.shape)?;
    if index.shape != kept && index.shape != dropped {
        return Err(Error::value(
            a.op,
            format!(
                "one index for each position is due: shape {} or {}, got {}",
                display(&dropped),
                display(&kept),
                display(&index.shape)
            ),
        ));
    }
    let shape = if *keepdims { kept } else { dropped };
    Ok(Inferred { ins: smallvec![x.dtype, DType::I64], outs: smallvec![Meta::new(shape, x.dtype)] })
}

fn run_pick(a: &KernelArgs) -> Result<()> {
    let Pick { axis, mode, caller, .. } = a.attrs.get::<Pick>();
    let (x, index, out) = (&a.ins[0], &a.ins[1], a.out(0));
    let axis = check_axis(a.op, *axis, x.layout.ndim())?;
    let found = offsets_along(a, named(a.op, caller), index, x.layout, axis, mode)?;
    let mut shape = x.layout.shape.clone();
    shape.remove(axis);
    let others = |layout: &Layout| {
        let mut strides = layout.strides.clone();
        if strides.len() > shape.len() {
            strides.remove(axis);
        }
        strides
    };
    let (from, to) = (others(x.layout), others(out.layout));
    let walk = Walk::new(&shape, [&from, &contiguous_strides(&shape), &to]);
    take_found(a, &walk, &found);
    Ok(())
}

/// `pick(x, index, axis, keepdims, mode)`: one element for each position of the other axes.
pub static PICK: Op = Op {
    attrs: Pick::read,
    grad: Grad::Vjp(|v| {
        let Pick { axis, mode, .. } = v.attrs.get::<Pick>();
        let Ok((axis, kept, _)) = pick_shapes("", *axis, v.shape(0)) else { return smallvec![None, None] };
        let gx = v.needs(0).then(|| {
            let into = along_into(axis, mode, v.shape(0)[axis]);
            v.g().reshape(&kept).apply(&SCATTER_ALONG, into, &[v.x(1).reshape(&kept).operand()])
        });
        smallvec![gx, None]
    }),
    saves: Saves { inputs: 0b10, outputs: 0 },
    ..Op::new("pick", 2, infer_pick, Run::Kernel(run_pick))
};
