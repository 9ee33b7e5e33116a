//! Normalisation: normalize, group_norm, instance_norm; layer_norm and batch_norm are in files of their own, the loops
//! in `rows` and `channels`. Statistics are kept in float32 for half types.

use crate::attrs::{Attrs, Ints};
use crate::kernel::lane::Lane;
use crate::kernel::moves::{Shared, copy, dense};
use crate::kernel::num::Float;
use crate::kernel::real::wide_dtype;
use crate::kernel::walk::{GRAIN, split};
use crate::op::{Grad, InferArgs, Inferred, KernelArgs, Meta, Op, Run, Saves};
use crate::promote::to_float;
use crate::rules::{Sym, Vjp};
use crate::shape::{AxisList, Shape, check_axes, check_axis, display, reduced};
use crate::simd::vector::Wide;
use crate::view::{View, ViewMut};
use crate::{DType, Error, Layout, Result, attrs, with_type};
use smallvec::{SmallVec, smallvec};

mod batch;
mod channels;
mod layer;
mod rows;

pub use batch::{BATCH_NORM, BATCH_NORM_GRAD};
pub use layer::{LAYER_NORM, LAYER_NORM_GRAD};

attrs! {
    /// `axes`: over which mean and variance are taken; `eps` is added to the variance.
    pub struct Normalize { axes: Ints, eps: f64 }
}

fn infer_normalize(a: &InferArgs) -> Result<Inferred> {
    let attrs = a.attrs.get::<Normalize>();
    let x = &a.ins[0];
    let axes = check_axes(a.op, Some(&attrs.axes), x.shape.len())?;
    let dtype = float_of(a, x)?;
    let stat = Meta::new(reduced(&x.shape, &axes, true), wide_dtype(dtype));
    Ok(Inferred {
        ins: smallvec![dtype],
        outs: smallvec![Meta::new(x.shape.clone(), dtype), stat.clone(), stat],
    })
}

fn float_of(a: &InferArgs, x: &Meta) -> Result<DType> {
    let dtype = to_float(x.dtype, a.mode);
    crate::infer::refuse_complex(a.op, dtype)?;
    Ok(dtype)
}

fn check_eps(a: &InferArgs, eps: f64) -> Result<()> {
    if eps >= 0.0 { Ok(()) } else { Err(Error::value(a.op, format!("eps must not be negative, got {eps}"))) }
}

/// Writes a statistic as `dtype`, float32 or float64.
unsafe fn put(out: Shared<u8>, i: usize, dtype: DType, value: f64) {
    // SAFETY: element i of an output of that dtype, by the caller's word.
    unsafe {
        match dtype {
            DType::F64 => *out.0.cast::<f64>().add(i) = value,
            _ => *out.0.cast::<f32>().add(i) = value as f32,
        }
    }
}

fn run_normalize(a: &KernelArgs) -> Result<()> {
    with_type!(floats a.out(0).dtype, T => normalize_rows::<T>(a), else {});
    Ok(())
}

/// Reduced axes become the last ones, so that what is normalised together is a row.
fn normalize_rows<T: Lane<Wide: Float + Wide>>(a: &KernelArgs) {
    let attrs = a.attrs.get::<Normalize>();
    let (x, out) = (&a.ins[0], a.out(0));
    let ndim = x.layout.ndim();
    let axes = check_axes("", Some(&attrs.axes), ndim).unwrap_or_default();
    let mut order: AxisList = (0..ndim).filter(|i| !axes.contains(i)).collect();
    order.extend_from_slice(&axes);
    let (from, to) = (x.layout.transpose(&order), out.layout.transpose(&order));
    // SAFETY: the same memory seen with its axes in another order.
    let (from, to) =
        unsafe { (View::new(x.base(), &from, x.dtype), ViewMut::new(out.base(), &to, out.dtype)) };
    let data = dense::<T>(&from, a.par);
    let width: usize = axes.iter().map(|&i| x.layout.shape[i]).product();
    if data.is_empty() {
        return;
    }
    let in_place = to.layout.is_contiguous();
    let mut turned: Vec<T> = vec![T::default(); if in_place { 0 } else { data.len() }];
    let target = Shared(if in_place { out.ptr::<T>() } else { turned.as_mut_ptr() });
    let (mean_out, inv_out) = (a.out(1), a.out(2));
    let stat = mean_out.dtype;
    let (means, invs) = (Shared(mean_out.start()), Shared(inv_out.start()));
    let normalize = rows::normalize_row::<T>();
    split(a.par, data.len() / width, GRAIN / 2 / width, |rows| {
        for r in rows {
            let row = &data[r * width..(r + 1) * width];
            // SAFETY: row r of the outputs, this chunk's own; statistics lie in the order of rows.
            unsafe {
                let mut stats = [0.0; 2];
                normalize(row.as_ptr(), width, attrs.eps, target.at((r * width) as isize), &mut stats);
                put(means, r, stat, stats[0]);
                put(invs, r, stat, stats[1]);
            }
        }
    });
    if !in_place {
        let layout = Layout::contiguous(&to.layout.shape);
        // SAFETY: all of `turned`.
        let turned = unsafe { View::new(turned.as_ptr().cast(), &layout, T::DTYPE) };
        copy(&turned, &to, a.par);
    }
}

/// The mean over axes, kept.
fn mean<'r>(x: Sym<'r>, axes: &[usize]) -> Sym<'r> {
    let shape = x.shape();
    let n: usize = axes.iter().map(|&i| shape[i]).product();
    x.sum(axes, true) * (1.0 / n.max(1) as f64)
}

/// `y`, the inverse deviation and a gradient of y: the gradient of what was normalised.
fn normalize_back<'r>(y: Sym<'r>, inv: Sym<'r>, g: Sym<'r>, axes: &[usize]) -> Sym<'r> {
    (g - mean(g, axes) - mean(g.times(y), axes).times(y)).times(inv)
}

/// `normalize(x; axes, eps)`: (x - mean) / sqrt(variance + eps), the mean, and the inverse deviation, all with
/// gradients of every order. The other normalisations are written with it.
pub static NORMALIZE: Op = Op {
    attrs: Normalize::read,
    grad: Grad::Vjp(|v| {
        let x = v.shape(0);
        let axes = check_axes("", Some(&v.attrs.get::<Normalize>().axes), x.len()).unwrap_or_default();
        let n: usize = axes.iter().map(|&i| x[i]).product();
        let each = 1.0 / n.max(1) as f64;
        let (y, inv) = (v.y(0), v.y(2));
        let mut parts: SmallVec<[Sym; 3]> = SmallVec::new();
        if let Some(g) = v.heads[0] {
            parts.push(normalize_back(y, inv, g, &axes));
        }
        if let Some(g) = v.heads[1] {
            parts.push((g * each).broadcast_to(x));
        }
        if let Some(g) = v.heads[2] {
            parts.push(g.times(inv * inv * -each).times(y));
        }
        smallvec![parts.into_iter().reduce(|a, b| a + b).map(|g| g.cast(v.ins[0].0.dtype))]
    }),
    saves: Saves { inputs: 0, outputs: 0b101 },
    ..Op::new("normalize", 1, infer_normalize, Run::Kernel(run_normalize))
};

/// `normalize` in a formula: y, mean, inverse deviation.
pub(crate) fn normalized<'r>(x: Sym<'r>, axes: &[usize], eps: f64) -> [Sym<'r>; 3] {
    use crate::rules::IntoOperand;
    let attrs = Normalize { axes: axes.iter().map(|&i| i as i64).collect(), eps };
    let outs = x.rules().call(&NORMALIZE, Attrs::new(attrs), &[x.operand()]);
    std::array::from_fn(|i| Sym::new(x.rules(), outs[i]))
}

attrs! {
    /// `axis`: the normalised one; `eps`.
    pub struct LayerNorm { axis: i64 = -1, eps: f64 = 1e-5 }
}

attrs! {
    /// `num_groups`: into how many groups the channels (axis 1) are cut; `eps`.
    pub struct GroupNorm { num_groups: i64 = 1, eps: f64 = 1e-5 }
}

attrs! {
    /// `eps`.
    pub struct InstanceNorm { eps: f64 = 1e-3 }
}

/// How a layer normalises: x is reshaped to `work`, normalised over `axes` and shaped back; gamma and beta have
/// shape `affine` beside it.
struct Form {
    work: Shape,
    axes: AxisList,
    affine: Shape,
    /// The shape that gamma and beta come in.
    params: Shape,
    eps: f64,
}

/// The form that a call's attributes and x's shape give.
type FormOf = fn(&'static str, &Attrs, &[usize]) -> Result<Form>;

fn layer_form(op: &'static str, attrs: &Attrs, x: &[usize]) -> Result<Form> {
    let LayerNorm { axis, eps } = attrs.get::<LayerNorm>();
    let axis = check_axis(op, *axis, x.len())?;
    let mut affine: Shape = SmallVec::from_elem(1, x.len());
    affine[axis] = x[axis];
    Ok(Form { work: x.into(), axes: smallvec![axis], affine, params: smallvec![x[axis]], eps: *eps })
}

fn channel_shapes(op: &'static str, x: &[usize], least: usize) -> Result<(Shape, Shape)> {
    if x.len() < least {
        let text = format!("data needs at least {least} axes (N, C, ...), got shape {}", display(x));
        return Err(Error::value(op, text));
    }
    let mut affine: Shape = SmallVec::from_elem(1, x.len());
    affine[1] = x[1];
    Ok((affine, smallvec![x[1]]))
}

fn group_form(op: &'static str, attrs: &Attrs, x: &[usize]) -> Result<Form> {
    let GroupNorm { num_groups, eps } = attrs.get::<GroupNorm>();
    let (affine, params) = channel_shapes(op, x, 2)?;
    let groups = usize::try_from(*num_groups).unwrap_or(0);
    if groups == 0 || !x[1].is_multiple_of(groups) {
        return Err(Error::value(op, format!("num_groups={num_groups} must divide {} channels", x[1])));
    }
    let mut work: Shape = smallvec![x[0], groups, x[1] / groups];
    work.extend_from_slice(&x[2..]);
    Ok(Form { axes: (2..work.len()).collect(), work, affine, params, eps: *eps })
}

fn instance_form(op: &'static str, attrs: &Attrs, x: &[usize]) -> Result<Form> {
    let (affine, params) = channel_shapes(op, x, 3)?;
    let eps = attrs.get::<InstanceNorm>().eps;
    Ok(Form { work: x.into(), axes: (2..x.len()).collect(), affine, params, eps })
}

fn infer_form(a: &InferArgs, form: FormOf) -> Result<Inferred> {
    let x = &a.ins[0];
    let form = form(a.op, a.attrs, &x.shape)?;
    check_eps(a, form.eps)?;
    let dtype = float_of(a, x)?;
    for (i, name) in [(1, "gamma"), (2, "beta")] {
        if a.ins[i].shape != form.params {
            let text =
                format!("{name} must have shape {}, got {}", display(&form.params), display(&a.ins[i].shape));
            return Err(Error::value(a.op, text));
        }
        crate::infer::refuse_complex(a.op, a.ins[i].dtype)?;
    }
    let wide = wide_dtype(dtype);
    Ok(Inferred { ins: smallvec![dtype, wide, wide], outs: smallvec![Meta::new(x.shape.clone(), dtype)] })
}

fn form_body<'r>(form: FormOf, attrs: &Attrs, x: &[Sym<'r>]) -> SmallVec<[Sym<'r>; 2]> {
    let shape = x[0].shape();
    let Ok(form) = form("", attrs, &shape) else { return smallvec![] };
    let [y, _, _] = normalized(x[0].reshape(&form.work), &form.axes, form.eps);
    let scaled = y.reshape(&shape) * x[1].reshape(&form.affine) + x[2].reshape(&form.affine);
    smallvec![scaled.cast(x[0].dtype())]
}

fn form_grad<'r>(form: FormOf, v: &Vjp<'r>) -> SmallVec<[Option<Sym<'r>>; 3]> {
    let shape = v.shape(0);
    let Ok(form) = form("", v.attrs, shape) else { return smallvec![None; 3] };
    let [y, _, inv] = normalized(v.x(0).reshape(&form.work), &form.axes, form.eps);
    let g = v.g();
    let to_params =
        |g: Sym<'r>, i: usize| g.cast(v.ins[i].0.dtype).sum_to(&form.affine).reshape(&form.params);
    crate::grads!(v;
        {
            let scaled = (g.times(v.x(1).reshape(&form.affine))).reshape(&form.work);
            normalize_back(y, inv, scaled, &form.axes).reshape(shape).cast(v.ins[0].0.dtype)
        },
        to_params(g.times(y.reshape(shape)), 1),
        to_params(g, 2),
    )
}

/// `group_norm(x, gamma, beta; num_groups, eps)`: over groups of channels and all later axes.
pub static GROUP_NORM: Op = Op {
    attrs: GroupNorm::read,
    grad: Grad::Vjp(|v| form_grad(group_form, v)),
    saves: Saves { inputs: 0b11, outputs: 0 },
    ..Op::new(
        "group_norm",
        3,
        |a| infer_form(a, group_form),
        Run::Body(|attrs, _, x| form_body(group_form, attrs, x)),
    )
};

/// `instance_norm(x, gamma, beta; eps)`: over the axes after the channels.
pub static INSTANCE_NORM: Op = Op {
    attrs: InstanceNorm::read,
    grad: Grad::Vjp(|v| form_grad(instance_form, v)),
    saves: Saves { inputs: 0b11, outputs: 0 },
    ..Op::new(
        "instance_norm",
        3,
        |a| infer_form(a, instance_form),
        Run::Body(|attrs, _, x| form_body(instance_form, attrs, x)),
    )
};

pub const OPS: &[&Op] =
    &[&NORMALIZE, &LAYER_NORM, &LAYER_NORM_GRAD, &GROUP_NORM, &INSTANCE_NORM, &BATCH_NORM, &BATCH_NORM_GRAD];
