//! batch_norm and its fused gradient: checks, statistics and rules; the loops are in `channels`.

use super::channels::{self, Block, Span};
use super::{check_eps, float_of, normalized};
use crate::attrs::Attrs;
use crate::kernel::lane::Lane;
use crate::kernel::moves::{Shared, dense};
use crate::kernel::num::Float;
use crate::kernel::real::{Real, wide_dtype};
use crate::op::{Affine, Grad, InferArgs, Inferred, KernelArgs, Meta, Op, Run, Saves, Writes};
use crate::ops::exp_log::SQRT;
use crate::par::Parallel;
use crate::rules::{IntoOperand, Sym, Vjp};
use crate::shape::{Shape, check_axis, display};
use crate::simd::vector::Wide;
use crate::view::{View, ViewMut};
use crate::{DType, Error, Result, attrs, with_type};
use smallvec::{SmallVec, smallvec};

attrs! {
    /// MXNet's: `momentum` is the fraction of the running statistics that is kept; `fix_gamma` counts gamma as
    /// 1; `use_global_stats` normalises with the running statistics; `training`: the mode the call was made in.
    pub struct BatchNorm {
        eps: f64 = 1e-3,
        momentum: f64 = 0.9,
        fix_gamma: bool = true,
        use_global_stats: bool = false,
        axis: i64 = 1,
        training: bool = false,
    }
}

impl BatchNorm {
    /// Whether the batch's own statistics are used (and the running ones updated).
    fn uses_batch(&self) -> bool {
        self.training && !self.use_global_stats
    }
}

/// A vector of float32 or float64 numbers as float64.
fn vector(view: &View, par: &dyn Parallel) -> Vec<f64> {
    with_type!(floats view.dtype, T => dense::<T>(view, par).iter().map(|x| x.wide()).collect(), else vec![])
}

/// Writes a vector of any floating dtype and layout.
fn store(out: &ViewMut, values: &[f64]) {
    let stride = out.layout.strides.first().copied().unwrap_or(0);
    with_type!(floats out.dtype, T => for (i, &v) in values.iter().enumerate() {
        // SAFETY: element i of the vector.
        unsafe { *out.ptr::<T>().offset(i as isize * stride) = <T as Real>::narrow(v) };
    }, else {});
}

fn infer_batch_norm(a: &InferArgs) -> Result<Inferred> {
    let attrs = a.attrs.get::<BatchNorm>();
    check_eps(a, attrs.eps)?;
    let x = &a.ins[0];
    let axis = check_axis(a.op, attrs.axis, x.shape.len())?;
    let dtype = float_of(a, x)?;
    let vector: Shape = smallvec![x.shape[axis]];
    for (i, name) in [(1, "gamma"), (2, "beta"), (3, "running_mean"), (4, "running_var")] {
        let m = &a.ins[i];
        if m.shape != vector {
            let text = format!(
                "{name} must have shape {} (axis {axis} of the data), got {}",
                display(&vector),
                display(&m.shape)
            );
            return Err(Error::value(a.op, text));
        }
        if !m.dtype.is_float() {
            return Err(Error::DType {
                op: a.op,
                dtype: m.dtype,
                expected: "parameters and statistics are floats",
            });
        }
    }
    let wide = wide_dtype(dtype);
    let stat = Meta::new(vector, wide);
    Ok(Inferred {
        // Running statistics keep their dtype: they are written.
        ins: smallvec![dtype, wide, wide, a.ins[3].dtype, a.ins[4].dtype],
        outs: smallvec![Meta::new(x.shape.clone(), dtype), stat.clone(), stat],
    })
}

fn run_batch_norm(a: &KernelArgs) -> Result<()> {
    with_type!(floats a.out(0).dtype, T => batch_norm::<T>(a), else {});
    Ok(())
}

/// A channel's mean and variance from the sums of its elements less `near`, and of their squares.
fn moments(near: f64, sums: [f64; 2], n: f64) -> [f64; 2] {
    let rest = sums[0] / n;
    let variance = sums[1] / n - rest * rest;
    // A rounding error must not become the root of a negative number; NaN stays.
    [near + rest, if variance < 0.0 { 0.0 } else { variance }]
}

fn batch_norm<T: Lane<Wide: Float + Wide>>(a: &KernelArgs) {
    let attrs = a.attrs.get::<BatchNorm>();
    let x = dense::<T>(&a.ins[0], a.par);
    let block = Block::new(&a.ins[0].layout.shape, attrs.axis);
    let (gamma, beta) = (vector(&a.ins[1], a.par), vector(&a.ins[2], a.par));
    let running = [3, 4].map(|i| vector(&a.ins[i], a.par));
    let (y, affine) = (Shared(a.out(0).ptr::<T>()), channels::affine::<T>());
    let inverse = |variance: f64| 1.0 / (variance + attrs.eps).sqrt();
    let numbers = |c: usize, [mean, variance]: [f64; 2]| {
        let scale = if attrs.fix_gamma { 1.0 } else { gamma[c] } * inverse(variance);
        [mean, scale, beta[c]].map(T::Wide::of)
    };
    let apply = |span: &Span, numbers: &[[T::Wide; 3]]| {
        // SAFETY: runs that one thread has.
        unsafe { affine([x.as_ptr()], numbers, y.at(0), span) }
    };
    let mut stats: Vec<[f64; 2]> = running[0].iter().zip(&running[1]).map(|(m, v)| [*m, *v]).collect();
    let mut done = false;
    if attrs.uses_batch() && block.count() > 0.0 {
        let n = block.count();
        let near = block.near(&x, a.par);
        let (sums, applied) =
            block.sums(a.par, [&x[..]], &channels::statistics::<T>(), &|c| [near[c], near[c]], &|c, sums| {
                apply(&block.runs_of(c), &[numbers(c, moments(near[c].double(), sums, n))]);
            });
        stats = sums.iter().zip(&near).map(|(sums, near)| moments(near.double(), *sums, n)).collect();
        done = applied;
        let keep = attrs.momentum;
        let mix = |i: usize| -> Vec<f64> {
            running[i].iter().zip(&stats).map(|(old, new)| keep * old + (1.0 - keep) * new[i]).collect()
        };
        if let [Some(mean), Some(var)] = &a.outs[a.outs.len() - 2..] {
            store(mean, &mix(0));
            store(var, &mix(1));
        }
    }
    if let Some(out) = &a.outs[1] {
        store(out, &stats.iter().map(|s| s[0]).collect::<Vec<_>>());
    }
    if let Some(out) = &a.outs[2] {
        store(out, &stats.iter().map(|s| inverse(s[1])).collect::<Vec<_>>());
    }
    if done {
        return;
    }
    if block.is_narrow() {
        let each = channels::affine_each::<T>();
        block.pieces(
            a.par,
            |c| numbers(c, stats[c]),
            |start, n, rows| {
                // SAFETY: elements of this piece, which one thread has.
                unsafe { each([x[start..start + n].as_ptr()], rows, y.at(start as isize), n) }
            },
        );
    } else {
        let all: Vec<[T::Wide; 3]> = (0..block.channels).map(|c| numbers(c, stats[c])).collect();
        block.runs(a.par, |span| apply(span, &all));
    }
}

fn grad_batch_norm<'r>(v: &Vjp<'r>) -> SmallVec<[Option<Sym<'r>>; 3]> {
    let ins = [v.g(), v.x(0), v.x(1), v.y(1), v.y(2)].map(IntoOperand::operand);
    let outs = v.rules.call(&BATCH_NORM_GRAD, v.attrs.clone(), &ins);
    let mut grads: SmallVec<[Option<Sym<'r>>; 3]> =
        (0..3).map(|i| v.needs(i).then(|| Sym::new(v.rules, outs[i]))).collect();
    grads.resize(5, None);
    grads
}

/// With the running statistics, scale and shift do not depend on x.
fn affine_batch_norm<'r>(attrs: &Attrs, x: &Meta, rest: &[Sym<'r>]) -> Option<Affine<'r>> {
    let attrs = attrs.get::<BatchNorm>();
    let axis = check_axis("batch_norm", attrs.axis, x.shape.len()).ok()?;
    let [gamma, beta, mean, variance] = rest else { return None };
    // An epsilon of nothing may give an infinite scale, and infinite weights in a product give NaN, not infinity.
    if attrs.uses_batch() || attrs.eps < f32::MIN_POSITIVE as f64 {
        return None;
    }
    let wide = |s: &Sym<'r>| s.cast(DType::F64);
    let inverse = 1.0 / (wide(variance) + attrs.eps).unary(&SQRT);
    let scale = if attrs.fix_gamma { inverse } else { wide(gamma) * inverse };
    Some(Affine { axis, scale, shift: wide(beta) - wide(mean) * scale })
}

/// `batch_norm(x, gamma, beta, running_mean, running_var)`: normalised over all axes but the channels', with the
/// batch's statistics in training (biased variance; the running ones are updated in place) and the running
/// ones otherwise. Mean and inverse deviation are hidden outputs.
pub static BATCH_NORM: Op = Op {
    attrs: BatchNorm::read,
    grad: Grad::Vjp(grad_batch_norm),
    saves: Saves { inputs: 0b11, outputs: 0b110 },
    hidden: 2,
    writes: Writes::These(&[3, 4]),
    writes_when: Some(|attrs| attrs.get::<BatchNorm>().uses_batch()),
    affine: Some(affine_batch_norm),
    ..Op::new("batch_norm", 5, infer_batch_norm, Run::Kernel(run_batch_norm))
};

fn infer_batch_norm_grad(a: &InferArgs) -> Result<Inferred> {
    let (g, x) = (&a.ins[0], &a.ins[1]);
    if g.shape != x.shape {
        return Err(Error::Broadcast { op: a.op, shapes: vec![g.shape.clone(), x.shape.clone()] });
    }
    let axis = check_axis(a.op, a.attrs.get::<BatchNorm>().axis, x.shape.len())?;
    let dtype = float_of(a, x)?;
    let wide = wide_dtype(dtype);
    let stat = Meta::new(Shape::from_slice(&[x.shape[axis]]), wide);
    Ok(Inferred {
        ins: smallvec![dtype, dtype, wide, wide, wide],
        outs: smallvec![Meta::new(x.shape.clone(), dtype), stat.clone(), stat],
    })
}

fn run_batch_norm_grad(a: &KernelArgs) -> Result<()> {
    with_type!(floats a.out(0).dtype, T => batch_norm_grad::<T>(a), else {});
    Ok(())
}

fn batch_norm_grad<T: Lane<Wide: Float + Wide>>(a: &KernelArgs) {
    let attrs = a.attrs.get::<BatchNorm>();
    let (g, x) = (dense::<T>(&a.ins[0], a.par), dense::<T>(&a.ins[1], a.par));
    let block = Block::new(&a.ins[1].layout.shape, attrs.axis);
    let [gamma, means, invs] = [2, 3, 4].map(|i| vector(&a.ins[i], a.par));
    let n = block.count();
    let numbers = |c: usize, sums: [f64; 2]| {
        let scale = if attrs.fix_gamma { invs[c] } else { gamma[c] * invs[c] };
        let [a, b] = if attrs.uses_batch() { sums.map(|sum| sum / n) } else { [0.0; 2] };
        [means[c], scale, a, b * invs[c]].map(T::Wide::of)
    };
    let (out, back) = (Shared(a.out(0).ptr::<T>()), channels::back::<T>());
    let apply = |span: &Span, numbers: &[[T::Wide; 4]]| {
        // SAFETY: runs that one thread has.
        unsafe { back([g.as_ptr(), x.as_ptr()], numbers, out.at(0), span) }
    };
    let (sums, done) = block.sums(
        a.par,
        [&g[..], &x[..]],
        &channels::gradients::<T>(),
        &|c| [means[c], invs[c]].map(T::Wide::of),
        &|c, sums| apply(&block.runs_of(c), &[numbers(c, sums)]),
    );
    let of_gamma: Vec<f64> = sums.iter().map(|s| if attrs.fix_gamma { 0.0 } else { s[1] }).collect();
    store(&a.out(1), &of_gamma);
    store(&a.out(2), &sums.iter().map(|s| s[0]).collect::<Vec<_>>());
    if done {
        return;
    }
    if block.is_narrow() {
        let each = channels::back_each::<T>();
        block.pieces(
            a.par,
            |c| numbers(c, sums[c]),
            |start, n, rows| {
                let run = start..start + n;
                // SAFETY: elements of this piece, which one thread has.
                unsafe { each([g[run.clone()].as_ptr(), x[run].as_ptr()], rows, out.at(start as isize), n) }
            },
        );
    } else {
        let all: Vec<[T::Wide; 4]> = (0..block.channels).map(|c| numbers(c, sums[c])).collect();
        block.runs(a.par, |span| apply(span, &all));
    }
}

/// The second order. With y the normalised data, s the inverse deviation, m the mean over a channel and h, hγ,
/// hβ the heads, the first-order results are gx = γ s (g - m(g) - y m(g y)), gγ = Σ g y, gβ = Σ g; what
/// follows are their derivatives, with those of y and s in training. `normalize` gives y and s again, so that
/// higher orders go through x as they must.
fn grad_batch_norm_grad<'r>(v: &Vjp<'r>) -> SmallVec<[Option<Sym<'r>>; 3]> {
    let attrs = v.attrs.get::<BatchNorm>();
    let (g, x) = (v.x(0), v.x(1));
    let shape = x.shape();
    let axis = check_axis("", attrs.axis, shape.len()).unwrap_or(0);
    let axes: SmallVec<[usize; 6]> = (0..shape.len()).filter(|&i| i != axis).collect();
    let mut along: Shape = SmallVec::from_elem(1, shape.len());
    along[axis] = shape[axis];
    let channel = |x: Sym<'r>| x.reshape(&along);
    let gamma = if attrs.fix_gamma { None } else { Some(channel(v.x(2))) };
    let scaled = |x: Sym<'r>| gamma.map_or(x, |gamma| x * gamma);
    let mean = |x: Sym<'r>| super::mean(x, &axes);
    let (y, s) = if attrs.uses_batch() {
        let [y, _, s] = normalized(x, &axes, attrs.eps);
        (y, s)
    } else {
        let s = channel(v.x(4));
        ((x - channel(v.x(3))) * s, s)
    };
    let (h, hb) = (v.head(0), channel(v.head(2)));
    let hg = if attrs.fix_gamma { None } else { Some(channel(v.head(1))) };
    // What is left of a gradient when mean and deviation are functions of x.
    let project = |u: Sym<'r>| if attrs.uses_batch() { u - mean(u) - y * mean(u * y) } else { u };
    let dtype = |i: usize| v.ins[i].0.dtype;
    let to_g = |_: ()| {
        let first = scaled(s * project(h)) + hb;
        hg.map_or(first, |hg| first + hg * y).cast(dtype(0))
    };
    let to_x = |_: ()| {
        let by_gamma = hg.map(|hg| hg * g);
        if !attrs.uses_batch() {
            return by_gamma.map(|u| (u * s).cast(dtype(1)));
        }
        let (b, c) = (mean(g * y), mean(h * y));
        let u = -scaled(s * (h * b + g * c));
        let u = by_gamma.map_or(u, |w| u + w);
        let q = mean(h * g) - mean(h) * mean(g) - c * b;
        Some((s * project(u) - scaled(q * s * s) * y).cast(dtype(1)))
    };
    let to_gamma = |_: ()| hg.map(|_| (h * s * project(g)).sum(&axes, false).cast(dtype(2)));
    smallvec![
        v.needs(0).then(|| to_g(())),
        if v.needs(1) { to_x(()) } else { None },
        if v.needs(2) { to_gamma(()) } else { None },
        None,
        None
    ]
}

/// `batch_norm_grad(g, x, gamma, mean, inverse deviation)`: the gradients of x, gamma and beta in one sweep.
/// Private to gradients.
pub static BATCH_NORM_GRAD: Op = Op {
    attrs: BatchNorm::read,
    grad: Grad::Vjp(grad_batch_norm_grad),
    saves: Saves { inputs: 0b11111, outputs: 0 },
    ..Op::new("batch_norm_grad", 5, infer_batch_norm_grad, Run::Kernel(run_batch_norm_grad))
};
