//! Optimizers' updates in one sweep over weight, gradient and state, of any number of weights in one call:
//! sgd_update, sgd_mom_update, adam_update. They write in place; the learning rates, weight decays and the gradients'
//! scale are operands, since they change from step to step. Computed in the weight's precision, half types in float32.

use crate::kernel::lane::Lane;
use crate::kernel::moves::Shared;
use crate::kernel::num::Float;
use crate::kernel::walk::{GRAIN, Walk};
use crate::layout::Layout;
use crate::op::{Arity, Grad, InferArgs, Inferred, KernelArgs, Op, Run, Writes};
use crate::par::{Parallel, Serial};
use crate::shape::display;
use crate::view::View;
use crate::{DType, Element, Error, Result, attrs, isa_versions, with_type};
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

/// How many weights there are among the inputs: K arrays for each, then the three numbers.
fn weights_among(inputs: usize, k: usize) -> usize {
    (inputs - 3) / k
}

/// What an update of weights with K arrays each writes: all but the gradients, which come second.
fn written<const K: usize>(inputs: usize) -> SmallVec<[usize; 4]> {
    let n = weights_among(inputs, K);
    (0..n * K).filter(|i| i / n != 1).collect()
}

/// The weights, their gradients, their states (each kind by itself, in the same order), of one shape a weight and
/// one dtype; then the learning rates and weight decays (one, or one a weight) and the gradients' scale.
fn infer_update<const K: usize>(a: &InferArgs) -> Result<Inferred> {
    let n = weights_among(a.ins.len(), K);
    let (arrays, numbers) = a.ins.split_at(n * K);
    if numbers.len() != 3 {
        let text = format!("takes {K} arrays for each weight and 3 numbers, got {} inputs", a.ins.len());
        return Err(Error::type_(a.op, text));
    }
    let dtype = arrays[0].dtype;
    if !dtype.is_float() {
        return Err(Error::DType { op: a.op, dtype, expected: "weights are floats" });
    }
    for (i, x) in arrays.iter().enumerate() {
        let weight = &arrays[i % n];
        if x.shape != weight.shape {
            let text = format!(
                "gradient and states must have the weight's shape {}, got {}",
                display(&weight.shape),
                display(&x.shape)
            );
            return Err(Error::value(a.op, text));
        }
        if x.dtype.is_complex() {
            let text = format!("the gradient of a weight of dtype {dtype} must be real, got {}", x.dtype);
            return Err(Error::type_(a.op, text).with_hint("take .real first"));
        }
        if x.dtype != dtype && i / n != 1 {
            let text = format!("weights and states must have one dtype, got {dtype} and {}", x.dtype);
            return Err(Error::type_(a.op, text));
        }
    }
    let [rates @ .., scale] = numbers else { unreachable!("three, as checked") };
    if let Some(x) = rates.iter().find(|x| !x.shape.is_empty() && x.shape[..] != [n]) {
        let text =
            format!("lr and wd must be single numbers or one a weight, got shape {}", display(&x.shape));
        return Err(Error::value(a.op, text));
    }
    if !scale.shape.is_empty() {
        let text = format!("rescale_grad must be a single number, got shape {}", display(&scale.shape));
        return Err(Error::value(a.op, text));
    }
    let mut ins: SmallVec<[DType; 4]> = SmallVec::from_elem(dtype, n * K);
    ins.extend([DType::F64; 3]);
    Ok(Inferred { ins, outs: smallvec![] })
}

/// A dtype of weights; its updates are computed in its wide type.
trait Weight: Lane<Wide: Float + Sync> {}
impl<T: Lane<Wide: Float + Sync>> Weight for T {}

/// The numbers of one weight's step. What an update does not use is zero.
#[derive(Clone, Copy)]
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
    /// The step of weight `i`.
    fn of(a: &KernelArgs, i: usize, clip: Option<f64>, keep: [f64; 2], epsilon: f64) -> Step<A> {
        let [lr, wd, rescale] = [3, 2, 1].map(|back| {
            let view: &View = &a.ins[a.ins.len() - back];
            let step = view.layout.strides.first().map_or(0, |stride| stride * i as isize);
            // SAFETY: the one element of a view without axes, or that of weight i.
            A::of(unsafe { *view.ptr::<f64>().offset(step) })
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

/// Updates every weight in place, with K - 2 states each: large ones one after the other in chunks, small ones side
/// by side. `step(i)` is that of weight i.
fn sweep<T: Weight, U: Update<K>, const K: usize>(
    a: &KernelArgs,
    step: impl Fn(usize) -> Step<T::Wide> + Sync,
) {
    let n = weights_among(a.ins.len(), K);
    let size = |i: usize| a.ins[i].layout.shape.iter().product::<usize>();
    if overlap::<T, K>(a, n) {
        (0..n).for_each(|i| update_weight::<T, U, K>(a, n, i, &step(i), &Serial));
        return;
    }
    let mut groups: SmallVec<[SmallVec<[usize; 16]>; 4]> = SmallVec::new();
    let mut room = 0;
    for i in 0..n {
        if n == 1 || size(i) >= GRAIN {
            update_weight::<T, U, K>(a, n, i, &step(i), a.par);
            continue;
        }
        if groups.is_empty() || room < size(i) {
            groups.push(SmallVec::new());
            room = GRAIN;
        }
        room -= size(i);
        groups.last_mut().expect("one was pushed").push(i);
    }
    let run = |group: usize, par: &dyn Parallel| {
        groups[group].iter().for_each(|&i| update_weight::<T, U, K>(a, n, i, &step(i), par));
    };
    match groups.len() {
        0 => {}
        1 => run(0, &Serial),
        many => a.par.run(many, &|group| run(group, &Serial)),
    }
}

/// Array `k` of weight `i`: its first element and its layout. 0 is the weight, 1 the gradient, the others states.
fn array<'a, T: Element>(a: &'a KernelArgs, n: usize, i: usize, k: usize) -> (*mut T, &'a Layout) {
    let at = k * n + i;
    if k == 1 {
        return (a.ins[at].ptr::<T>().cast_mut(), a.ins[at].layout);
    }
    let target = a.outs[if k == 0 { i } else { at - n }].as_ref().expect("what is written has memory");
    (target.ptr::<T>(), target.layout)
}

/// Whether any two of the arrays may share memory: then the weights must be updated one after the other, and the
/// elements of each in their order, since one may read what another writes.
fn overlap<T: Element, const K: usize>(a: &KernelArgs, n: usize) -> bool {
    let span = |(from, layout): (*mut T, &Layout)| {
        let (low, high) = layout.bounds()?;
        let address = |at: usize| from.wrapping_sub(layout.offset).wrapping_add(at).addr();
        Some((address(low), address(high)))
    };
    let mut spans: Vec<_> = (0..n * K).filter_map(|at| span(array::<T>(a, n, at % n, at / n))).collect();
    spans.sort_unstable();
    spans.windows(2).any(|pair| pair[1].0 <= pair[0].1)
}

/// Updates every element of weight `i` of `n`.
fn update_weight<T: Weight, U: Update<K>, const K: usize>(
    a: &KernelArgs,
    n: usize,
    i: usize,
    step: &Step<T::Wide>,
    par: &dyn Parallel,
) {
    let arrays: [(*mut T, &Layout); K] = std::array::from_fn(|k| array::<T>(a, n, i, k));
    let starts = arrays.map(|(from, _)| Shared(from));
    let walk = Walk::new(&arrays[0].1.shape, arrays.map(|(_, layout)| &layout.strides[..]));
    let (_, steps) = walk.inner();
    let row = update_loop::<T, U, K>();
    walk.run(par, GRAIN, |offsets, n| {
        let at = std::array::from_fn(|k| starts[k].0.wrapping_offset(offsets[k]));
        // SAFETY: offsets come from the layouts; chunks touch disjoint elements.
        unsafe { row(step, at, steps, n) }
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

/// `sgd_update(weights.., grads.., lr, wd, rescale_grad; clip_gradient)`: weight -= lr (clip(rescale grad) + wd weight).
pub static SGD_UPDATE: Op = Op {
    attrs: Sgd::read,
    grad: Grad::None("an optimizer's update is not differentiated"),
    arity: Arity::AtLeast(5),
    writes: Writes::Of(written::<2>),
    ..Op::new(
        "sgd_update",
        5,
        infer_update::<2>,
        Run::Kernel(|a| {
            let clip = a.attrs.get::<Sgd>().clip_gradient;
            with_type!(floats a.ins[0].dtype, T => {
                sweep::<T, SgdUpdate, 2>(a, |i| Step::of(a, i, clip, [0.0; 2], 0.0))
            }, else {});
            Ok(())
        }),
    )
};

/// `sgd_mom_update(weights.., grads.., moms.., lr, wd, rescale_grad; momentum, clip_gradient)`: the momentum keeps its
/// fraction and takes -lr times the gradient; the weight moves by it.
pub static SGD_MOM_UPDATE: Op = Op {
    attrs: Sgd::read,
    grad: Grad::None("an optimizer's update is not differentiated"),
    arity: Arity::AtLeast(6),
    writes: Writes::Of(written::<3>),
    ..Op::new(
        "sgd_mom_update",
        6,
        infer_update::<3>,
        Run::Kernel(|a| {
            let attrs = a.attrs.get::<Sgd>();
            with_type!(floats a.ins[0].dtype, T => {
                let keep = [attrs.momentum, 0.0];
                sweep::<T, MomentumUpdate, 3>(a, |i| Step::of(a, i, attrs.clip_gradient, keep, 0.0))
            }, else {});
            Ok(())
        }),
    )
};

/// `adam_update(weights.., grads.., means.., vars.., lr, wd, rescale_grad; beta1, beta2, epsilon, clip_gradient)`: Kingma and
/// Ba, 2015; the bias correction is part of `lr`.
pub static ADAM_UPDATE: Op = Op {
    attrs: Adam::read,
    grad: Grad::None("an optimizer's update is not differentiated"),
    arity: Arity::AtLeast(7),
    writes: Writes::Of(written::<4>),
    ..Op::new(
        "adam_update",
        7,
        infer_update::<4>,
        Run::Kernel(|a| {
            let attrs = a.attrs.get::<Adam>();
            with_type!(floats a.ins[0].dtype, T => {
                let keep = [attrs.beta1, attrs.beta2];
                let step = |i| Step::of(a, i, attrs.clip_gradient, keep, attrs.epsilon);
                sweep::<T, AdamUpdate, 4>(a, step)
            }, else {});
            Ok(())
        }),
    )
};

pub const OPS: &[&Op] = &[&SGD_UPDATE, &SGD_MOM_UPDATE, &ADAM_UPDATE];
