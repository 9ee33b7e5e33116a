//! Optimizers' updates in one sweep over weight, gradient and state: sgd_update, sgd_mom_update, adam_update.
//! They write in place; the learning rate, weight decay and gradient scale are operands, since they change from
//! step to step. Computed in the weight's precision, half types in float32.

use crate::kernel::lane::Lane;
use crate::kernel::moves::Shared;
use crate::kernel::num::Float;
use crate::kernel::walk::{GRAIN, Walk};
use crate::op::{Grad, InferArgs, Inferred, KernelArgs, Op, Run};
use crate::shape::display;
use crate::view::View;
use crate::{DType, Error, Result, attrs, isa_versions, with_type};
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

/// A dtype of weights; its updates are computed in its wide type.
trait Weight: Lane<Wide: Float + Sync> {}
impl<T: Lane<Wide: Float + Sync>> Weight for T {}

/// The numbers of a step. What an update does not use is zero.
struct Step<A> {
    lr: A,
    wd: A,
    rescale: A,
    /// The bound of the gradient, infinite where there is none.
    clip: A,
    /// What the momentum or first moment keeps and takes, and the second.
    keep: [A; 2],
    take: [A; 2],
    epsilon: A,
}

impl<A: Float> Step<A> {
    fn of(a: &KernelArgs, clip: Option<f64>, keep: [f64; 2], epsilon: f64) -> Step<A> {
        let [lr, wd, rescale] = [3, 2, 1].map(|back| {
            let view: &View = &a.ins[a.ins.len() - back];
            // SAFETY: the one element of a view without axes.
            A::of(unsafe { *view.ptr::<f64>() })
        });
        let clip = clip.map_or(A::INFINITY, A::of);
        let (take, keep, epsilon) = (keep.map(|k| A::of(1.0 - k)), keep.map(A::of), A::of(epsilon));
        Step { lr, wd, rescale, clip, keep, take, epsilon }
    }

    /// The gradient scaled and clipped (NaN stays), with the decay of the weight.
    #[inline(always)]
    fn gradient(&self, weight: A, g: A) -> A {
        let g = g.mul(self.rescale);
        let g = if g > self.clip { self.clip } else { g };
        let least = self.clip.neg();
        let g = if g < least { least } else { g };
        g.add(self.wd.mul(weight))
    }
}

/// One optimizer's update of K numbers: the weight, the gradient, the states.
trait Update<const K: usize> {
    fn update<A: Float>(step: &Step<A>, values: [A; K]) -> [A; K];

    /// Updates rows that lie densely: a loop over slices by name is what the compiler makes vectors of.
    fn dense<T: Weight>(step: &Step<T::Wide>, weight: &mut [T], grad: &[T], states: [&mut [T]; 2]);
}

/// # Safety
/// `n` elements from each of `at`, `steps` apart, may be read and, all but those of the gradient, written.
#[inline(always)]
unsafe fn update_body<T: Weight, U: Update<K>, const K: usize>(
    step: &Step<T::Wide>,
    at: [*mut T; K],
    steps: [isize; K],
    n: usize,
) {
    let are_apart = |i: usize, j: usize| at[i].addr().abs_diff(at[j].addr()) >= n * size_of::<T>();
    let apart = (0..K).all(|i| (0..i).all(|j| are_apart(i, j)));
    // SAFETY: the caller's contract; slices are made of rows that do not overlap.
    unsafe {
        if steps == [1; K] && apart {
            let state = |k: usize| match at.get(k) {
                Some(&from) => std::slice::from_raw_parts_mut(from, n),
                None => &mut [],
            };
            let (weight, grad) =
                (std::slice::from_raw_parts_mut(at[0], n), std::slice::from_raw_parts(at[1], n));
            return U::dense(step, weight, grad, [state(2), state(3)]);
        }
        for i in 0..n as isize {
            let place = |k: usize| at[k].offset(i * steps[k]);
            let values = U::update(step, std::array::from_fn(|k| (*place(k)).widen()));
            for k in (0..K).filter(|&k| k != 1) {
                *place(k) = T::narrow(values[k]);
            }
        }
    }
}

/// The update of a row: where its arrays begin, their steps, and how many elements.
type UpdateRow<T, const K: usize> = unsafe fn(&Step<<T as Lane>::Wide>, [*mut T; K], [isize; K], usize);

isa_versions! {
    fn update_loop -> UpdateRow<T, K> = update_body;
    generics [T: Weight, U: Update<K>, const K: usize] names [T, U, K] fast true;
    args (step: &Step<T::Wide>, at: [*mut T; K], steps: [isize; K], n: usize)
}

/// Updates every element; K - 2 states are read and written in place.
fn sweep<T: Weight, U: Update<K>, const K: usize>(a: &KernelArgs, step: Step<T::Wide>) {
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
    let row = update_loop::<T, U, K>();
    walk.run(a.par, GRAIN, |offsets, n| {
        let at = std::array::from_fn(|k| starts[k].0.wrapping_offset(offsets[k]));
        // SAFETY: offsets come from the layouts; chunks touch disjoint elements.
        unsafe { row(&step, at, steps, n) }
    });
}

struct SgdUpdate;

impl Update<2> for SgdUpdate {
    #[inline(always)]
    fn update<A: Float>(step: &Step<A>, [w, g]: [A; 2]) -> [A; 2] {
        [w.sub(step.lr.mul(step.gradient(w, g))), g]
    }

    #[inline(always)]
    fn dense<T: Weight>(step: &Step<T::Wide>, weight: &mut [T], grad: &[T], _: [&mut [T]; 2]) {
        for (w, g) in weight.iter_mut().zip(grad) {
            *w = T::narrow(Self::update(step, [w.widen(), g.widen()])[0]);
        }
    }
}

struct MomentumUpdate;

impl Update<3> for MomentumUpdate {
    #[inline(always)]
    fn update<A: Float>(step: &Step<A>, [w, g, mom]: [A; 3]) -> [A; 3] {
        let mom = step.keep[0].mul(mom).sub(step.lr.mul(step.gradient(w, g)));
        [w.add(mom), g, mom]
    }

    #[inline(always)]
    fn dense<T: Weight>(step: &Step<T::Wide>, weight: &mut [T], grad: &[T], [mom, _]: [&mut [T]; 2]) {
        for ((w, g), mom) in weight.iter_mut().zip(grad).zip(mom) {
            let [new, _, moved] = Self::update(step, [w.widen(), g.widen(), mom.widen()]);
            (*w, *mom) = (T::narrow(new), T::narrow(moved));
        }
    }
}

struct AdamUpdate;

impl Update<4> for AdamUpdate {
    #[inline(always)]
    fn update<A: Float>(step: &Step<A>, [w, g, mean, var]: [A; 4]) -> [A; 4] {
        let scaled = step.gradient(w, g);
        let mean = step.keep[0].mul(mean).add(step.take[0].mul(scaled));
        let var = step.keep[1].mul(var).add(step.take[1].mul(scaled).mul(scaled));
        [w.sub(step.lr.mul(mean).div(var.sqrt().add(step.epsilon))), g, mean, var]
    }

    #[inline(always)]
    fn dense<T: Weight>(step: &Step<T::Wide>, weight: &mut [T], grad: &[T], [mean, var]: [&mut [T]; 2]) {
        for (((w, g), mean), var) in weight.iter_mut().zip(grad).zip(mean).zip(var) {
            let [new, _, m, v] = Self::update(step, [w.widen(), g.widen(), mean.widen(), var.widen()]);
            (*w, *mean, *var) = (T::narrow(new), T::narrow(m), T::narrow(v));
        }
    }
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
            let clip = a.attrs.get::<Sgd>().clip_gradient;
            with_type!(floats a.ins[0].dtype, T => {
                sweep::<T, SgdUpdate, 2>(a, Step::of(a, clip, [0.0; 2], 0.0))
            }, else {});
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
            with_type!(floats a.ins[0].dtype, T => {
                let step = Step::of(a, attrs.clip_gradient, [attrs.momentum, 0.0], 0.0);
                sweep::<T, MomentumUpdate, 3>(a, step)
            }, else {});
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
            with_type!(floats a.ins[0].dtype, T => {
                let keep = [attrs.beta1, attrs.beta2];
                sweep::<T, AdamUpdate, 4>(a, Step::of(a, attrs.clip_gradient, keep, attrs.epsilon))
            }, else {});
            Ok(())
        }),
    )
};

pub const OPS: &[&Op] = &[&SGD_UPDATE, &SGD_MOM_UPDATE, &ADAM_UPDATE];
