//! Layers without spatial structure: fully_connected, dropout.

use crate::attrs::{Attrs, Ints};
use crate::kernel::moves::{Shared, copy};
use crate::kernel::philox::{Stream, TILE, fill_words, unit32};
use crate::kernel::real::Real;
use crate::kernel::walk::{GRAIN, Walk, split};
use crate::op::{Affine, Arity, Grad, InferArgs, Inferred, KernelArgs, Meta, Op, Run, Saves};
use crate::ops::linalg::MATMUL;
use crate::promote::{result_type, to_float};
use crate::rules::{Rules, Sym, Vjp, rescaled};
use crate::shape::{Shape, check_axes, display, numel};
use crate::{Error, Layout, Result, attrs, grads, isa_versions, with_type};
use smallvec::{SmallVec, smallvec};

attrs! {
    /// `num_hidden`: the number of outputs (None: the weight's); `no_bias`; `flatten`: all axes of x but the
    /// first become one.
    pub struct FullyConnected { num_hidden: Option<i64> = None, no_bias: bool = false, flatten: bool = true }
}

/// x as a matrix, and the shape of the result.
fn dense_shapes(flatten: bool, x: &[usize], hidden: usize) -> ([usize; 2], Shape) {
    if flatten {
        let rows = *x.first().unwrap_or(&1);
        return ([rows, numel(x.get(1..).unwrap_or(&[]))], smallvec![rows, hidden]);
    }
    let lead = x.len().saturating_sub(1);
    let mut shape = Shape::from_slice(&x[..lead]);
    shape.push(hidden);
    ([numel(&x[..lead]), *x.last().unwrap_or(&1)], shape)
}

fn infer_dense(a: &InferArgs) -> Result<Inferred> {
    let attrs = a.attrs.get::<FullyConnected>();
    let want = if attrs.no_bias { 2 } else { 3 };
    if a.ins.len() != want {
        let text = format!("no_bias={} takes {want} arrays, got {}", attrs.no_bias, a.ins.len());
        return Err(Error::type_(a.op, text));
    }
    let dtype = result_type(a.op, a.ins, a.mode)?;
    let (x, w) = (&a.ins[0].shape, &a.ins[1].shape);
    if x.is_empty() {
        return Err(Error::value(a.op, "the data must have at least one axis, got ()"));
    }
    if w.len() != 2 {
        let text = format!("the weight must have shape (num_hidden, inputs), got {}", display(w));
        return Err(Error::value(a.op, text));
    }
    if attrs.num_hidden.is_some_and(|n| n != w[0] as i64) {
        let text = format!(
            "num_hidden is {}, but the weight has shape {}",
            attrs.num_hidden.unwrap_or(0),
            display(w)
        );
        return Err(Error::value(a.op, text));
    }
    let ([_, k], shape) = dense_shapes(attrs.flatten, x, w[0]);
    if k != w[1] {
        return Err(Error::value(
            a.op,
            format!(
                "data of shape {} gives {k} inputs (flatten={}), but the weight has shape {}",
                display(x),
                attrs.flatten,
                display(w)
            ),
        ));
    }
    if let Some(b) = a.ins.get(2).filter(|b| b.shape.as_slice() != [w[0]]) {
        let text = format!("the bias must have shape ({},), got {}", w[0], display(&b.shape));
        return Err(Error::value(a.op, text));
    }
    Ok(Inferred { ins: SmallVec::from_elem(dtype, want), outs: smallvec![Meta::new(shape, dtype)] })
}

fn dense_body<'r>(attrs: &Attrs, _: &'r dyn Rules, x: &[Sym<'r>]) -> SmallVec<[Sym<'r>; 2]> {
    let (rows, shape) = dense_shapes(attrs.get::<FullyConnected>().flatten, &x[0].shape(), x[1].shape()[0]);
    let y = x[0].reshape(&rows).binary(&MATMUL, x[1].transpose(&[1, 0])).reshape(&shape);
    smallvec![if let Some(&bias) = x.get(2) { y + bias } else { y }]
}

fn grad_dense<'r>(v: &Vjp<'r>) -> SmallVec<[Option<Sym<'r>>; 3]> {
    let hidden = v.shape(1)[0];
    let (rows, _) = dense_shapes(v.attrs.get::<FullyConnected>().flatten, v.shape(0), hidden);
    let g = v.g().reshape(&[rows[0], hidden]);
    let mut out = grads!(v;
        g.binary(&MATMUL, v.x(1)).reshape(v.shape(0)),
        g.transpose(&[1, 0]).binary(&MATMUL, v.x(0).reshape(&rows)),
    );
    if v.ins.len() == 3 {
        out.push(v.needs(2).then(|| g.sum(&[0], false)));
    }
    out
}

fn absorb_in_dense<'r>(
    attrs: &Attrs,
    x: &Meta,
    rest: &[Sym<'r>],
    by: &Affine<'r>,
) -> Option<(Attrs, SmallVec<[Sym<'r>; 2]>)> {
    let attrs = FullyConnected { no_bias: false, ..attrs.get::<FullyConnected>().clone() };
    let last = if attrs.flatten { 1 } else { x.shape.len() - 1 };
    (by.axis == last).then(|| rescaled(rest, by))?.map(|rest| (Attrs::new(attrs), rest))
}

/// `fully_connected(x, weight, bias; num_hidden, no_bias, flatten)`: `x weightᵀ + bias`.
pub static FULLY_CONNECTED: Op = Op {
    arity: Arity::Between(2, 3),
    attrs: FullyConnected::read,
    grad: Grad::Vjp(grad_dense),
    absorb: Some(absorb_in_dense),
    saves: Saves { inputs: 0b11, outputs: 0 },
    cross: 0b11,
    heavy: true,
    ..Op::new("fully_connected", 2, infer_dense, Run::Body(dense_body))
};

attrs! {
    /// `p`: the fraction dropped; `mode`: `training`, or `always` also in prediction; `axes`: those along which
    /// one decision counts for all; `training`: the mode the call was made in.
    pub struct Dropout {
        p: f64 = 0.5,
        mode: String = "training".into(),
        axes: Ints = Ints::new(),
        training: bool = false,
    }
}

impl Dropout {
    fn drops(&self) -> bool {
        (self.training || self.mode == "always") && self.p > 0.0
    }

    /// The shape of the mask for data of shape `x`.
    fn mask_shape(&self, op: &'static str, x: &[usize]) -> Result<Shape> {
        let shared = check_axes(op, Some(&self.axes), x.len())?;
        Ok((0..x.len()).map(|i| if shared.contains(&i) { x[i].min(1) } else { x[i] }).collect())
    }
}

fn infer_dropout(a: &InferArgs) -> Result<Inferred> {
    let attrs = a.attrs.get::<Dropout>();
    if !(0.0..=1.0).contains(&attrs.p) {
        let text = format!("p is the fraction to drop, from 0 to 1, got {}", attrs.p);
        return Err(Error::value(a.op, text));
    }
    if attrs.mode != "training" && attrs.mode != "always" {
        return Err(Error::value(a.op, format!("mode must be 'training' or 'always', got '{}'", attrs.mode)));
    }
    let x = &a.ins[0];
    let dtype = to_float(x.dtype, a.mode);
    crate::infer::refuse_complex(a.op, dtype)?;
    let mask = attrs.mask_shape(a.op, &x.shape)?;
    let outs = smallvec![Meta::new(x.shape.clone(), dtype), Meta::new(mask, dtype)];
    Ok(Inferred { ins: smallvec![dtype], outs })
}

fn run_dropout(a: &KernelArgs) -> Result<()> {
    with_type!(floats a.out(0).dtype, T => dropout::<T>(a), else {});
    Ok(())
}

fn dropout<T: Real>(a: &KernelArgs) {
    let attrs = a.attrs.get::<Dropout>();
    let (x, out) = (&a.ins[0], a.out(0));
    if !attrs.drops() {
        copy(x, &out, a.par);
        if let Some(mask) = &a.outs[1] {
            crate::kernel::moves::fill(mask, T::narrow(1.0), a.par);
        }
        return;
    }
    let shape = &out.layout.shape;
    let own = attrs.mask_shape(a.op, shape).unwrap_or_default();
    let mut memory: Vec<T> = Vec::new();
    let count = numel(&own);
    let mask = match &a.outs[1] {
        Some(mask) => Shared(mask.ptr::<T>()),
        None => {
            memory.resize(count, T::default());
            Shared(memory.as_mut_ptr())
        }
    };
    let keep = 1.0 - attrs.p;
    let scale = if keep > 0.0 { T::narrow(1.0 / keep) } else { T::default() };
    let (stream, masks) = (Stream::new(a.draw), mask_loop::<T>());
    split(a.par, count, GRAIN, |range| {
        // SAFETY: elements of the mask, this chunk's own.
        unsafe {
            let own = std::slice::from_raw_parts_mut(mask.at(range.start as isize), range.len());
            masks(&stream, range.start, keep, scale, own);
        }
    });
    let Some(spread) = Layout::contiguous(&own).broadcast_to(shape) else { return };
    let walk = Walk::new(shape, [&x.layout.strides, &spread.strides, &out.layout.strides]);
    let (_, [s, t, d]) = walk.inner();
    let (from, to) = (Shared(x.ptr::<T>().cast_mut()), Shared(out.ptr::<T>()));
    let product = product_loop::<T>();
    walk.run(a.par, GRAIN, |[i, j, o], n| {
        // SAFETY: offsets come from the layouts; chunks write disjoint elements.
        unsafe {
            if (s, t, d) == (1, 1, 1) {
                let part = |from: *const T| std::slice::from_raw_parts(from, n);
                let out = std::slice::from_raw_parts_mut(to.at(o), n);
                product(part(from.at(i)), part(mask.at(j)), out);
                return;
            }
            for k in 0..n as isize {
                *to.at(o + k * d) = T::narrow((*from.at(i + k * s)).wide() * (*mask.at(j + k * t)).wide());
            }
        }
    });
}

/// # Safety
/// None; the type is that of functions compiled for an instruction set.
#[inline(always)]
unsafe fn mask_body<T: Real>(stream: &Stream, first: usize, keep: f64, scale: T, mask: &mut [T]) {
    let mut words = [0u32; TILE];
    let fill = fill_words();
    for (tile, mask) in mask.chunks_mut(TILE).enumerate() {
        // SAFETY: no condition.
        unsafe { fill(stream, first + tile * TILE, &mut words[..mask.len()]) };
        for (mask, &word) in mask.iter_mut().zip(&words) {
            *mask = if f64::from(unit32(word)) < keep { scale } else { T::default() };
        }
    }
}

isa_versions! {
    /// Writes the mask's elements from `first` on.
    fn mask_loop -> unsafe fn(&Stream, usize, f64, T, &mut [T]) = mask_body;
    generics [T: Real] names [T] fast true;
    args (stream: &Stream, first: usize, keep: f64, scale: T, mask: &mut [T])
}

/// # Safety
/// As [`mask_body`].
#[inline(always)]
unsafe fn product_body<T: Real>(x: &[T], mask: &[T], out: &mut [T]) {
    for ((out, &x), &m) in out.iter_mut().zip(x).zip(mask) {
        *out = T::narrow(x.wide() * m.wide());
    }
}

isa_versions! {
    /// Multiplies rows.
    fn product_loop -> unsafe fn(&[T], &[T], &mut [T]) = product_body;
    generics [T: Real] names [T] fast true; args (x: &[T], mask: &[T], out: &mut [T])
}

/// `dropout(x; p, mode, axes, training)`: elements dropped at random, the others scaled by 1 / (1 - p). The
/// mask (0 or the scale) is a hidden output.
pub static DROPOUT: Op = Op {
    attrs: Dropout::read,
    grad: Grad::Vjp(|v| grads!(v; v.g() * v.y(1))),
    saves: Saves { inputs: 0, outputs: 0b10 },
    hidden: 1,
    random: true,
    ..Op::new("dropout", 1, infer_dropout, Run::Kernel(run_dropout))
};

pub const OPS: &[&Op] = &[&FULLY_CONNECTED, &DROPOUT];
