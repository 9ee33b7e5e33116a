//! Optimizers' updates in one sweep over weight, gradient and state: sgd_update, sgd_mom_update, adam_update.
//! They write in place; the learning rate, weight decay and gradient scale are operands, since they change from
//! step to step. Computed in float64 and rounded once.

use crate::kernel::moves::Shared;
use crate::kernel::real::Real;
use crate::kernel::walk::{GRAIN, Walk};
use crate::op::{Grad, InferArgs, Inferred, KernelArgs, Op, Run};
use crate::shape::display;
use crate::view::View;
use crate::{DType, Error, Result, attrs, with_type};
use smallvec::{SmallVec, smallvec};

attrs! {
    /// `momentum`; `clip_gradient`: the bound of the scaled gradient (None: unbounded).
    pub struct Sgd { momentum: f64 = 0.0, clip_gradient: Option<f64> = None }
}

attrs! {
    /// `beta1`, `beta2`: what the moments keep; `epsilon`; `clip_gradient` as in [`Sgd`].
    pub struct Adam {
        beta1: f64 = 0.9,
        beta2: f64 = 0.999,
        epsilon: f64 = 1e-8,
        clip_gradient: Option<f64> = None,
    }
}

/// Weight, gradient and states of one shape and dtype, then the three scalars.
fn infer_update(a: &InferArgs) -> Result<Inferred> {
    let arrays = a.ins.len() - 3;
    let weight = &a.ins[0];
    if !weight.dtype.is_float() {
        return Err(Error::DType { op: a.op, dtype: weight.dtype, expected: "weights are floats" });
    }
    for x in &a.ins[1..arrays] {
        if x.shape != weight.shape {
            let text = format!(
                "gradient and states must have the weight's shape {}, got {}",
                display(&weight.shape),
                display(&x.shape)
            );
            return Err(Error::value(a.op, text));
        }
    }
    for state in &a.ins[2..arrays] {
        if state.dtype != weight.dtype {
            let text = format!("states must have the weight's dtype {}, got {}", weight.dtype, state.dtype);
            return Err(Error::type_(a.op, text));
        }
    }
    if let Some(x) = a.ins[arrays..].iter().find(|x| !x.shape.is_empty()) {
        let text = format!("lr, wd and rescale_grad must be single numbers, got shape {}", display(&x.shape));
        return Err(Error::value(a.op, text));
    }
    let mut ins: SmallVec<[DType; 4]> = SmallVec::from_elem(weight.dtype, arrays);
    ins.extend([DType::F64; 3]);
    Ok(Inferred { ins, outs: smallvec![] })
}

/// The scalars of a step.
struct Step {
    lr: f64,
    wd: f64,
    rescale: f64,
    clip: Option<f64>,
}

impl Step {
    fn of(a: &KernelArgs, clip: Option<f64>) -> Step {
        let [lr, wd, rescale] = [3, 2, 1].map(|back| {
            let view: &View = &a.ins[a.ins.len() - back];
            // SAFETY: the one element of a view without axes.
            unsafe { *view.ptr::<f64>() }
        });
        Step { lr, wd, rescale, clip }
    }

    /// The gradient scaled and clipped, with the decay of the weight.
    #[inline(always)]
    fn gradient(&self, weight: f64, g: f64) -> f64 {
        let g = g * self.rescale;
        let g = self.clip.map_or(g, |c| g.max(-c).min(c));
        g + self.wd * weight
    }
}

/// Calls `update(weight, gradient, states)` for every element; K - 2 states are read and written in place.
fn sweep<T: Real, const K: usize>(a: &KernelArgs, update: impl Fn(&mut [f64; K]) + Sync) {
    let targets: SmallVec<[_; 3]> = a.outs.iter().flatten().copied().collect();
    let grad = &a.ins[1];
    // Array 0 is the weight, 1 the gradient, the others states.
    let strides: [&[isize]; K] = std::array::from_fn(|k| match k {
        0 => &targets[0].layout.strides[..],
        1 => &grad.layout.strides[..],
        _ => &targets[k - 1].layout.strides[..],
    });
    let starts: [Shared<T>; K] = std::array::from_fn(|k| match k {
        0 => Shared(targets[0].ptr::<T>()),
        1 => Shared(grad.ptr::<T>().cast_mut()),
        _ => Shared(targets[k - 1].ptr::<T>()),
    });
    let walk = Walk::new(&grad.layout.shape, strides);
    let (_, steps) = walk.inner();
    walk.run(a.par, GRAIN, |offsets, n| {
        for i in 0..n as isize {
            let place = |k: usize| starts[k].0.wrapping_offset(offsets[k] + i * steps[k]);
            // SAFETY: offsets come from the layouts; chunks touch disjoint elements.
            unsafe {
                let mut values: [f64; K] = std::array::from_fn(|k| (*place(k)).wide());
                update(&mut values);
                for k in (0..K).filter(|&k| k != 1) {
                    *place(k) = T::narrow(values[k]);
                }
            }
        }
    });
}

/// `sgd_update(weight, grad, lr, wd, rescale_grad; clip_gradient)`: weight -= lr (clip(rescale grad) + wd weight).
pub static SGD_UPDATE: Op = Op {
    attrs: Sgd::read,
    grad: Grad::None("an optimizer's update is not differentiated"),
    writes: &[0],
    ..Op::new(
        "sgd_update",
        5,
        infer_update,
        Run::Kernel(|a| {
            let step = Step::of(a, a.attrs.get::<Sgd>().clip_gradient);
            with_type!(floats a.ins[0].dtype, T => sweep::<T, 2>(a, |[w, g]| {
                *w -= step.lr * step.gradient(*w, *g);
            }), else {});
            Ok(())
        }),
    )
};

/// `sgd_mom_update(weight, grad, mom, lr, wd, rescale_grad; momentum, clip_gradient)`: the momentum keeps its
/// fraction and takes -lr times the gradient; the weight moves by it.
pub static SGD_MOM_UPDATE: Op = Op {
    attrs: Sgd::read,
    grad: Grad::None("an optimizer's update is not differentiated"),
    writes: &[0, 2],
    ..Op::new(
        "sgd_mom_update",
        6,
        infer_update,
        Run::Kernel(|a| {
            let attrs = a.attrs.get::<Sgd>();
            let step = Step::of(a, attrs.clip_gradient);
            with_type!(floats a.ins[0].dtype, T => sweep::<T, 3>(a, |[w, g, mom]| {
                *mom = attrs.momentum * *mom - step.lr * step.gradient(*w, *g);
                *w += *mom;
            }), else {});
            Ok(())
        }),
    )
};

/// `adam_update(weight, grad, mean, var, lr, wd, rescale_grad; beta1, beta2, epsilon, clip_gradient)`: Kingma and
/// Ba, 2015; the bias correction is part of `lr`.
pub static ADAM_UPDATE: Op = Op {
    attrs: Adam::read,
    grad: Grad::None("an optimizer's update is not differentiated"),
    writes: &[0, 2, 3],
    ..Op::new(
        "adam_update",
        7,
        infer_update,
        Run::Kernel(|a| {
            let attrs = a.attrs.get::<Adam>();
            let step = Step::of(a, attrs.clip_gradient);
            with_type!(floats a.ins[0].dtype, T => sweep::<T, 4>(a, |[w, g, mean, var]| {
                let g = step.gradient(*w, *g);
                *mean = attrs.beta1 * *mean + (1.0 - attrs.beta1) * g;
                *var = attrs.beta2 * *var + (1.0 - attrs.beta2) * g * g;
                *w -= step.lr * *mean / (var.sqrt() + attrs.epsilon);
            }), else {});
            Ok(())
        }),
    )
};

pub const OPS: &[&Op] = &[&SGD_UPDATE, &SGD_MOM_UPDATE, &ADAM_UPDATE];
