//! layer_norm and its fused gradient: rows along the axis, which become the last ones where they are not.

use super::rows::{BackRows, back_rows, scaled_rows, together};
use super::{LayerNorm, infer_form, layer_form, mean, normalized};
use crate::kernel::lane::Lane;
use crate::kernel::moves::{Shared, copy, dense};
use crate::kernel::num::{Float, Num};
use crate::kernel::real::wide_dtype;
use crate::kernel::walk::{GRAIN, split};
use crate::op::{Grad, InferArgs, Inferred, KernelArgs, Meta, Op, Run, Saves};
use crate::rules::{IntoOperand, Sym, Vjp};
use crate::shape::{AxisList, Shape, check_axis};
use crate::simd::vector::Wide;
use crate::view::{View, ViewMut};
use crate::{Element, Layout, Result, with_type};
use smallvec::{SmallVec, smallvec};
use std::borrow::Cow;

/// An operand with the axis last, in rows.
fn rows_of<'a, T: Element>(view: &View<'a>, order: &[usize], a: &KernelArgs) -> Cow<'a, [T]> {
    let layout = view.layout.transpose(order);
    // SAFETY: the same memory seen with its axes in another order.
    let turned = unsafe { View::new(view.base(), &layout, view.dtype) };
    match dense::<T>(&turned, a.par) {
        Cow::Borrowed(rows) => {
            // SAFETY: what is borrowed is the operand's memory, which outlives this view of it.
            Cow::Borrowed(unsafe { std::slice::from_raw_parts(rows.as_ptr(), rows.len()) })
        }
        Cow::Owned(rows) => Cow::Owned(rows),
    }
}

/// Where rows of results go: to the output's memory, or to a copy that is turned at the end.
struct Target<T> {
    rows: Shared<T>,
    turned: Vec<T>,
}

impl<T: Element> Target<T> {
    fn new(out: &ViewMut, in_place: bool) -> Target<T> {
        let mut turned = vec![T::default(); if in_place { 0 } else { out.layout.size() }];
        let rows = Shared(if in_place { out.ptr::<T>() } else { turned.as_mut_ptr() });
        Target { rows, turned }
    }

    fn deliver(self, out: &ViewMut, order: &[usize], a: &KernelArgs) {
        if self.turned.is_empty() {
            return;
        }
        let to = out.layout.transpose(order);
        let layout = Layout::contiguous(&to.shape);
        // SAFETY: all of `turned`, and the output's memory with its axes in another order.
        unsafe {
            let from = View::new(self.turned.as_ptr().cast(), &layout, T::DTYPE);
            copy(&from, &ViewMut::new(out.base(), &to, out.dtype), a.par);
        }
    }
}

/// The axes with the normalised one last, whether that is how they come, and the length of a row.
fn order_of(a: &KernelArgs, shape: &[usize]) -> (AxisList, bool, usize) {
    let axis = check_axis("", a.attrs.get::<LayerNorm>().axis, shape.len()).unwrap_or(0);
    let mut order: AxisList = (0..shape.len()).filter(|&i| i != axis).collect();
    order.push(axis);
    // Axes of one element do not matter.
    let last = shape[axis + 1..].iter().all(|&n| n == 1);
    (order, last, shape[axis])
}

fn run_layer_norm(a: &KernelArgs) -> Result<()> {
    with_type!(floats a.out(0).dtype, T => layer_norm::<T>(a), else {});
    Ok(())
}

fn layer_norm<T: Lane<Wide: Float + Wide>>(a: &KernelArgs) {
    let out = a.out(0);
    if out.layout.size() == 0 {
        return;
    }
    let (order, last, n) = order_of(a, &out.layout.shape);
    let x = rows_of::<T>(&a.ins[0], &order, a);
    let [gamma, beta] = [1, 2].map(|i| dense::<T::Wide>(&a.ins[i], a.par));
    let target = Target::<T>::new(&out, last);
    let (to, eps, kernel) = (target.rows, a.attrs.get::<LayerNorm>().eps, scaled_rows::<T>());
    let (rows, group) = (x.len() / n, together(n));
    split(a.par, rows.div_ceil(group), GRAIN / 2 / (n * group), |groups| {
        for first in groups.map(|i| i * group) {
            let sizes = [group.min(rows - first), n];
            // SAFETY: rows of the operand and of the output, this chunk's own; parameters are as long as a row.
            unsafe {
                let from = x[first * n..].as_ptr();
                kernel(from, sizes, eps, [gamma.as_ptr(), beta.as_ptr()], to.at((first * n) as isize));
            }
        }
    });
    target.deliver(&out, &order, a);
}

/// `layer_norm(x, gamma, beta; axis, eps)`.
pub static LAYER_NORM: Op = Op {
    attrs: LayerNorm::read,
    grad: Grad::Vjp(|v| {
        let ins = [v.g(), v.x(0), v.x(1)].map(IntoOperand::operand);
        let outs = v.rules.call(&LAYER_NORM_GRAD, v.attrs.clone(), &ins);
        (0..3).map(|i| v.needs(i).then(|| Sym::new(v.rules, outs[i]).cast(v.ins[i].0.dtype))).collect()
    }),
    saves: Saves { inputs: 0b11, outputs: 0 },
    ..Op::new("layer_norm", 3, |a| infer_form(a, layer_form), Run::Kernel(run_layer_norm))
};

fn infer_layer_norm_grad(a: &InferArgs) -> Result<Inferred> {
    let (g, x) = (&a.ins[0], &a.ins[1]);
    if g.shape != x.shape {
        return Err(crate::Error::Broadcast { op: a.op, shapes: vec![g.shape.clone(), x.shape.clone()] });
    }
    check_axis(a.op, a.attrs.get::<LayerNorm>().axis, x.shape.len())?;
    let dtype = super::float_of(a, x)?;
    let wide = wide_dtype(dtype);
    let params = Meta::new(a.ins[2].shape.clone(), wide);
    Ok(Inferred {
        ins: smallvec![dtype, dtype, wide],
        outs: smallvec![Meta::new(x.shape.clone(), dtype), params.clone(), params],
    })
}

fn run_layer_norm_grad(a: &KernelArgs) -> Result<()> {
    with_type!(floats a.out(0).dtype, T => layer_norm_grad::<T>(a), else {});
    Ok(())
}

/// Rows are taken in parts, whose number depends on the shape alone; each adds up the parameters' gradients of its
/// own, and those of the parts are added in order.
fn layer_norm_grad<T: Lane<Wide: Float + Wide>>(a: &KernelArgs) {
    let out = a.out(0);
    let (order, last, n) = order_of(a, &out.layout.shape);
    let [g, x] = [0, 1].map(|i| rows_of::<T>(&a.ins[i], &order, a));
    let gamma = dense::<T::Wide>(&a.ins[2], a.par);
    let rows = x.len() / n.max(1);
    // A part's sums go through memory once more: they must be few beside its rows.
    let parts = (x.len() / GRAIN).min(rows / 8).clamp(1, 64);
    let each = rows.div_ceil(parts);
    let mut sums = vec![T::Wide::ZERO; parts * 2 * n];
    let target = Target::<T>::new(&out, last);
    let (to, sums_at, eps) = (target.rows, Shared(sums.as_mut_ptr()), a.attrs.get::<LayerNorm>().eps);
    let back = back_rows::<T>();
    split(a.par, parts, 1, |range| {
        for part in range {
            let end = rows.min((part + 1) * each);
            for r in (part * each..end).step_by(together(n)) {
                // SAFETY: rows of the operands and of the output, and sums that are this part's own.
                unsafe {
                    back(&BackRows {
                        g: g[r * n..].as_ptr(),
                        x: x[r * n..].as_ptr(),
                        gamma: gamma.as_ptr(),
                        count: together(n).min(end - r),
                        n,
                        eps,
                        to_gamma: sums_at.at((part * 2 * n) as isize),
                        to_beta: sums_at.at((part * 2 * n + n) as isize),
                        out: to.at((r * n) as isize),
                    });
                }
            }
        }
    });
    target.deliver(&out, &order, a);
    for (i, out) in [(0, a.out(1)), (1, a.out(2))] {
        let mut totals = vec![0f64; n];
        for part in 0..parts {
            let from = &sums[(part * 2 + i) * n..][..n];
            totals.iter_mut().zip(from).for_each(|(sum, x)| *sum += x.double());
        }
        let to = out.ptr::<T::Wide>();
        for (k, sum) in totals.iter().enumerate() {
            // SAFETY: element k of a parameter's gradient, which is contiguous.
            unsafe { *to.add(k) = T::Wide::of(*sum) };
        }
    }
}

/// The second order. With y the normalised rows, s the inverse deviation, m the mean along a row, P(u) = u - m(u) -
/// y m(u y), and h, hγ, hβ the heads, the first-order results are gx = s P(γ g), gγ = Σ g y, gβ = Σ g; what follows
/// are their derivatives. `normalize` gives y and s again, so that higher orders go through x as they must.
fn grad_layer_norm_grad<'r>(v: &Vjp<'r>) -> SmallVec<[Option<Sym<'r>>; 3]> {
    let (g, x) = (v.x(0), v.x(1));
    let shape = x.shape();
    let LayerNorm { axis, eps } = *v.attrs.get::<LayerNorm>();
    let axis = check_axis("", axis, shape.len()).unwrap_or(0);
    let mut along: Shape = SmallVec::from_elem(1, shape.len());
    along[axis] = shape[axis];
    let [y, _, s] = normalized(x, &[axis], eps);
    let gamma = v.x(2).reshape(&along);
    let mean = |x: Sym<'r>| mean(x, &[axis]);
    let project = |u: Sym<'r>| u - mean(u) - y * mean(u * y);
    let (h, hg, hb) = (v.head(0), v.head(1).reshape(&along), v.head(2).reshape(&along));
    crate::grads!(v;
        (gamma * s * project(h) + hg * y + hb).cast(v.ins[0].0.dtype),
        {
            let u = g * gamma;
            let (b, c) = (mean(u * y), mean(h * y));
            let q = mean(h * u) - mean(h) * mean(u) - b * c;
            (s * project(hg * g - s * (h * b + u * c)) - q * s * s * y).cast(v.ins[1].0.dtype)
        },
        (g * s * project(h)).cast(v.ins[2].0.dtype).sum_to(&along).reshape(v.shape(2)),
    )
}

/// `layer_norm_grad(g, x, gamma; axis, eps)`: the gradients of x, gamma and beta, rows read once. Private to gradients.
pub static LAYER_NORM_GRAD: Op = Op {
    attrs: LayerNorm::read,
    grad: Grad::Vjp(grad_layer_norm_grad),
    saves: Saves { inputs: 0b111, outputs: 0 },
    ..Op::new("layer_norm_grad", 3, infer_layer_norm_grad, Run::Kernel(run_layer_norm_grad))
};
