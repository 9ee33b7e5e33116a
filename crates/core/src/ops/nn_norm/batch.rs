//! batch_norm and its fused gradient. Data is seen as (before, channels, after) around the channel axis.

use super::{check_eps, float_of, normalized};
use crate::kernel::moves::{Shared, dense};
use crate::kernel::real::{Real, wide_dtype};
use crate::kernel::walk::{GRAIN, split};
use crate::op::{Grad, InferArgs, Inferred, KernelArgs, Meta, Op, Run, Saves};
use crate::par::Parallel;
use crate::rules::{IntoOperand, Sym, Vjp};
use crate::shape::{Shape, check_axis, display};
use crate::view::{View, ViewMut};
use crate::{Error, Result, attrs, isa_versions, with_type};
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

/// The sizes before, of and after the channel axis.
#[derive(Clone, Copy)]
struct Block {
    before: usize,
    channels: usize,
    after: usize,
}

impl Block {
    fn new(shape: &[usize], axis: i64) -> Block {
        let axis = check_axis("", axis, shape.len()).unwrap_or(0);
        Block {
            before: shape[..axis].iter().product(),
            channels: shape[axis],
            after: shape[axis + 1..].iter().product(),
        }
    }

    fn count(&self) -> f64 {
        (self.before * self.after) as f64
    }

    /// Per channel, the sums of K terms of its elements: `term(channel, element)` in eight interleaved sums along
    /// `after`, added up over `before` in parts whose number depends on the sizes alone.
    fn sums<T: Real, const M: usize, const K: usize>(
        &self,
        par: &dyn Parallel,
        data: [&[T]; M],
        term: impl Fn(usize, [f64; M]) -> [f64; K] + Sync,
    ) -> Vec<[f64; K]> {
        let add = sum_loop_of::<T, _, M, K>(&term);
        let Block { before, channels, after } = *self;
        let parts = (before * channels * after / GRAIN).clamp(1, 16).min(before.max(1));
        let rows = before.div_ceil(parts);
        let mut partial = vec![[0f64; K]; parts * channels];
        let target = Shared(partial.as_mut_ptr());
        let width = if after >= 8 { 1 } else { 64 };
        let blocks = channels.div_ceil(width);
        split(par, parts * blocks, (GRAIN / (rows * width * after).max(1)).max(1), |units| {
            for unit in units {
                let (part, first) = (unit / blocks, unit % blocks * width);
                for b in part * rows..before.min((part + 1) * rows) {
                    for c in first..channels.min(first + width) {
                        let start = (b * channels + c) * after;
                        let run = data.map(|data| &data[start..start + after]);
                        // SAFETY: one unit adds to its own part and channels; runs have one length.
                        unsafe { add(&term, c, run, &mut *target.at((part * channels + c) as isize)) };
                    }
                }
            }
        });
        (0..channels)
            .map(|c| {
                let mut total = partial[c];
                for part in 1..parts {
                    (0..K).for_each(|k| total[k] += partial[part * channels + c][k]);
                }
                total
            })
            .collect()
    }

    /// Calls `body(channel, first element, count)` for every run of one channel.
    fn runs(&self, par: &dyn Parallel, body: impl Fn(usize, usize, usize) + Sync) {
        let Block { before, channels, after } = *self;
        split(par, before * channels, GRAIN / after.max(1), |units| {
            units.for_each(|unit| body(unit % channels, unit * after, after));
        });
    }
}

/// A loop of [`Block::sums`] over a run of one channel.
type Add<T, F, const M: usize, const K: usize> = unsafe fn(&F, usize, [&[T]; M], &mut [f64; K]);

/// # Safety
/// Runs have one length.
#[inline(always)]
unsafe fn sum_body<T: Real, F: Fn(usize, [f64; M]) -> [f64; K], const M: usize, const K: usize>(
    term: &F,
    channel: usize,
    run: [&[T]; M],
    sum: &mut [f64; K],
) {
    let mut lanes = [[0f64; 8]; K];
    let (n, whole) = (run[0].len(), run[0].len() / 8 * 8);
    // SAFETY: within the runs.
    let at = |m: usize, i: usize| unsafe { run[m].get_unchecked(i) }.wide();
    for start in (0..whole).step_by(8) {
        for l in 0..8 {
            let terms = term(channel, std::array::from_fn(|m| at(m, start + l)));
            for k in 0..K {
                lanes[k][l] += terms[k];
            }
        }
    }
    for l in 0..n - whole {
        let terms = term(channel, std::array::from_fn(|m| at(m, whole + l)));
        for k in 0..K {
            lanes[k][l] += terms[k];
        }
    }
    for k in 0..K {
        sum[k] += lanes[k].iter().sum::<f64>();
    }
}

isa_versions! {
    /// Adds a run's terms to the sums.
    fn sum_loop -> Add<T, F, M, K> = sum_body;
    generics [T: Real, F: Fn(usize, [f64; M]) -> [f64; K], const M: usize, const K: usize] names [T, F, M, K]
    fast true; args (term: &F, channel: usize, run: [&[T]; M], sum: &mut [f64; K])
}

/// [`sum_loop`] for the type of `term`.
fn sum_loop_of<T: Real, F: Fn(usize, [f64; M]) -> [f64; K], const M: usize, const K: usize>(
    _: &F,
) -> Add<T, F, M, K> {
    sum_loop::<T, F, M, K>()
}

/// # Safety
/// Runs are as long as `out`.
#[inline(always)]
unsafe fn affine_body<T: Real>(x: &[T], [mean, scale, shift]: [f64; 3], out: &mut [T]) {
    out.iter_mut().zip(x).for_each(|(y, x)| *y = T::narrow((x.wide() - mean) * scale + shift));
}

isa_versions! {
    /// `(x - mean) * scale + shift`, with the three in this order.
    fn affine_loop -> unsafe fn(&[T], [f64; 3], &mut [T]) = affine_body;
    generics [T: Real] names [T] fast true; args (x: &[T], numbers: [f64; 3], out: &mut [T])
}

/// What the gradient of a run is computed from.
#[derive(Clone, Copy)]
struct Back {
    mean: f64,
    inv: f64,
    scale: f64,
    /// The means over the channel of the gradient, and of its product with y.
    a: f64,
    b: f64,
}

/// # Safety
/// Runs are as long as `out`.
#[inline(always)]
unsafe fn back_body<T: Real>(g: &[T], x: &[T], n: Back, out: &mut [T]) {
    for ((out, g), x) in out.iter_mut().zip(g).zip(x) {
        let y = (x.wide() - n.mean) * n.inv;
        *out = T::narrow(n.scale * (g.wide() - n.a - y * n.b));
    }
}

isa_versions! {
    /// The gradient of a run.
    fn back_loop -> unsafe fn(&[T], &[T], Back, &mut [T]) = back_body;
    generics [T: Real] names [T] fast true; args (g: &[T], x: &[T], n: Back, out: &mut [T])
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
        unsafe { *out.ptr::<T>().offset(i as isize * stride) = T::narrow(v) };
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

fn batch_norm<T: Real>(a: &KernelArgs) {
    let attrs = a.attrs.get::<BatchNorm>();
    let x = dense::<T>(&a.ins[0], a.par);
    let block = Block::new(&a.ins[0].layout.shape, attrs.axis);
    let (mut means, mut vars) = (vector(&a.ins[3], a.par), vector(&a.ins[4], a.par));
    if attrs.uses_batch() && block.count() > 0.0 {
        let n = block.count();
        let (running_mean, running_var) = (means, vars);
        means = block.sums(a.par, [&x[..]], |_, x: [f64; 1]| x).iter().map(|s| s[0] / n).collect();
        let squares = block.sums(a.par, [&x[..]], |c, [x]| {
            let d = x - means[c];
            [d * d]
        });
        vars = squares.iter().map(|s| s[0] / n).collect();
        let keep = attrs.momentum;
        let mix = |old: &[f64], new: &[f64]| -> Vec<f64> {
            old.iter().zip(new).map(|(o, n)| keep * o + (1.0 - keep) * n).collect()
        };
        if let [Some(mean), Some(var)] = &a.outs[a.outs.len() - 2..] {
            store(mean, &mix(&running_mean, &means));
            store(var, &mix(&running_var, &vars));
        }
    }
    let invs: Vec<f64> = vars.iter().map(|v| 1.0 / (v + attrs.eps).sqrt()).collect();
    for (out, values) in [(&a.outs[1], &means), (&a.outs[2], &invs)] {
        if let Some(out) = out {
            store(out, values);
        }
    }
    let (gamma, beta) = (vector(&a.ins[1], a.par), vector(&a.ins[2], a.par));
    let y = Shared(a.out(0).ptr::<T>());
    let affine = affine_loop::<T>();
    block.runs(a.par, |c, start, n| {
        let scale = if attrs.fix_gamma { invs[c] } else { gamma[c] * invs[c] };
        // SAFETY: elements of this run, this chunk's own.
        unsafe {
            let y = std::slice::from_raw_parts_mut(y.at(start as isize), n);
            affine(&x[start..start + n], [means[c], scale, beta[c]], y);
        }
    });
}

fn grad_batch_norm<'r>(v: &Vjp<'r>) -> SmallVec<[Option<Sym<'r>>; 3]> {
    let ins = [v.g(), v.x(0), v.x(1), v.y(1), v.y(2)].map(IntoOperand::operand);
    let outs = v.rules.call(&BATCH_NORM_GRAD, v.attrs.clone(), &ins);
    let mut grads: SmallVec<[Option<Sym<'r>>; 3]> =
        (0..3).map(|i| v.needs(i).then(|| Sym::new(v.rules, outs[i]))).collect();
    grads.resize(5, None);
    grads
}

/// `batch_norm(x, gamma, beta, running_mean, running_var)`: normalised over all axes but the channels', with the
/// batch's statistics in training (biased variance; the running ones are updated in place) and the running
/// ones otherwise. Mean and inverse deviation are hidden outputs.
pub static BATCH_NORM: Op = Op {
    attrs: BatchNorm::read,
    grad: Grad::Vjp(grad_batch_norm),
    saves: Saves { inputs: 0b11, outputs: 0b110 },
    hidden: 2,
    writes: &[3, 4],
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

fn batch_norm_grad<T: Real>(a: &KernelArgs) {
    let attrs = a.attrs.get::<BatchNorm>();
    let (g, x) = (dense::<T>(&a.ins[0], a.par), dense::<T>(&a.ins[1], a.par));
    let block = Block::new(&a.ins[1].layout.shape, attrs.axis);
    let [gamma, means, invs] = [2, 3, 4].map(|i| vector(&a.ins[i], a.par));
    let sums = block.sums(a.par, [&g[..], &x[..]], |c, [g, x]| [g, g * ((x - means[c]) * invs[c])]);
    let of_gamma: Vec<f64> = sums.iter().map(|s| if attrs.fix_gamma { 0.0 } else { s[1] }).collect();
    store(&a.out(1), &of_gamma);
    store(&a.out(2), &sums.iter().map(|s| s[0]).collect::<Vec<_>>());
    let n = block.count();
    let (out, back) = (Shared(a.out(0).ptr::<T>()), back_loop::<T>());
    block.runs(a.par, |c, start, count| {
        let scale = if attrs.fix_gamma { invs[c] } else { gamma[c] * invs[c] };
        let (a, b) = if attrs.uses_batch() { (sums[c][0] / n, sums[c][1] / n) } else { (0.0, 0.0) };
        let run = start..start + count;
        // SAFETY: elements of this run, this chunk's own.
        unsafe {
            let out = std::slice::from_raw_parts_mut(out.at(start as isize), count);
            back(&g[run.clone()], &x[run], Back { mean: means[c], inv: invs[c], scale, a, b }, out);
        }
    });
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
