//! Convolution and its adjoints over one to three axes, layouts NCW, NCHW and NCDHW. Each is linear in each of
//! its operands and the gradient of another, so that every order of gradient is a convolution again.

use crate::attrs::{Attrs, Ints};
use crate::kernel::conv::{self, Geometry, Real};
use crate::kernel::moves::{self, Shared, dense};
use crate::kernel::scratch::Space;
use crate::kernel::step::cast;
use crate::kernel::tail::Tail;
use crate::kernel::walk::{GRAIN, split};
use crate::op::{Affine, Arity, Grad, InferArgs, Inferred, KernelArgs, Meta, Op, Run, Saves};
use crate::par::Parallel;
use crate::promote::{result_type, to_float};
use crate::rules::{IntoOperand, Operand, Rules, Sym, Vjp, rescaled};
use crate::shape::{Shape, checked_numel, display};
use crate::view::View;
use crate::{DType, Element, Error, Result, attrs, bf16, f16, grads};
use smallvec::{SmallVec, smallvec};

attrs! {
    /// MXNet's: `kernel`, `stride`, `dilate` and `pad` have one entry for each axis after the channels (or none,
    /// for the default); `num_filter`: the outputs (None: the weight's); `num_group`; `no_bias`; `layout`.
    pub struct Convolution {
        kernel: Ints = Ints::new(),
        stride: Ints = Ints::new(),
        dilate: Ints = Ints::new(),
        pad: Ints = Ints::new(),
        num_filter: Option<i64> = None,
        num_group: i64 = 1,
        no_bias: bool = false,
        layout: Option<String> = None,
    }
}

attrs! {
    /// [`Convolution`] with `adj` (added to the result's sizes) and `target_shape` (which decides them).
    pub struct Deconvolution {
        kernel: Ints = Ints::new(),
        stride: Ints = Ints::new(),
        dilate: Ints = Ints::new(),
        pad: Ints = Ints::new(),
        adj: Ints = Ints::new(),
        target_shape: Ints = Ints::new(),
        num_filter: Option<i64> = None,
        num_group: i64 = 1,
        no_bias: bool = true,
        layout: Option<String> = None,
    }
}

attrs! {
    /// The convolution whose adjoint is taken, and the `shape` of the operand it gives the gradient of.
    pub struct ConvAdjoint { stride: Ints, dilate: Ints, pad: Ints, num_group: i64, shape: Shape }
}

/// One number for each axis: as given, or the default for all.
pub(super) fn each_axis(
    op: &'static str,
    name: &str,
    given: &[i64],
    default: usize,
    axes: usize,
    least: i64,
) -> Result<[usize; 3]> {
    let mut out = [default; 3];
    if !given.is_empty() && given.len() != axes {
        let text = format!("{name} must have {axes} entries, one for each axis, got {given:?}");
        return Err(Error::value(op, text));
    }
    for (i, &v) in given.iter().enumerate() {
        if v < least || v > i64::from(i32::MAX) {
            return Err(Error::value(op, format!("{name} must be at least {least}, got {given:?}")));
        }
        out[3 - axes + i] = v as usize;
    }
    Ok(out)
}

/// The trailing axes of a shape as three.
fn three(sizes: &[usize]) -> [usize; 3] {
    let mut out = [1; 3];
    out[3 - sizes.len()..].copy_from_slice(sizes);
    out
}

/// Strides, dilations, padding and groups as attributes give them.
struct Steps<'a> {
    stride: &'a [i64],
    dilate: &'a [i64],
    pad: &'a [i64],
    groups: i64,
}

/// The geometry of a convolution of data of shape `x` with a weight of shape `w`, all checked.
fn geometry(op: &'static str, x: &[usize], w: &[usize], steps: &Steps) -> Result<Geometry> {
    if !(3..=5).contains(&x.len()) {
        let text = format!("data must have 3 to 5 axes (N, C and 1 to 3 more), got shape {}", display(x));
        return Err(Error::value(op, text));
    }
    let axes = x.len() - 2;
    if w.len() != x.len() {
        let text = format!(
            "data has shape {}, so the weight needs {} axes, got {}",
            display(x),
            x.len(),
            display(w)
        );
        return Err(Error::value(op, text));
    }
    let stride = each_axis(op, "stride", steps.stride, 1, axes, 1)?;
    let dilate = each_axis(op, "dilate", steps.dilate, 1, axes, 1)?;
    let pad = each_axis(op, "pad", steps.pad, 0, axes, 0)?;
    let Some(groups) = usize::try_from(steps.groups).ok().filter(|&n| n > 0) else {
        return Err(Error::value(op, format!("num_group must be positive, got {}", steps.groups)));
    };
    let (channels, filters) = (x[1], w[0]);
    if !channels.is_multiple_of(groups) || !filters.is_multiple_of(groups) {
        let text = format!("num_group={groups} must divide {channels} channels and {filters} filters");
        return Err(Error::value(op, text));
    }
    if w[1] != channels / groups {
        let text = format!(
            "data has {channels} channels in {groups} groups, so the weight must have shape ({filters}, {}, ...), got {}",
            channels / groups,
            display(w)
        );
        return Err(Error::value(op, text));
    }
    let (input, kernel) = (three(&x[2..]), three(&w[2..]));
    let mut output = [1; 3];
    for i in 3 - axes..3 {
        let reach = kernel[i].saturating_sub(1).saturating_mul(dilate[i]) + 1;
        let room = input[i] + 2 * pad[i];
        if kernel[i] == 0 || reach > room {
            let text = format!(
                "the kernel reaches over {reach} places along axis {}, but the data has {} with padding",
                i + axes - 1,
                room
            );
            return Err(Error::value(op, text));
        }
        output[i] = (room - reach) / stride[i] + 1;
    }
    Ok(Geometry { samples: x[0], channels, filters, groups, input, kernel, output, stride, dilate, pad })
}

/// The shape of a convolution's result.
fn output_shape(g: &Geometry, axes: usize) -> Shape {
    let mut shape: Shape = smallvec![g.samples, g.filters];
    shape.extend_from_slice(&g.output[3 - axes..]);
    shape
}

fn check_layout(op: &'static str, layout: &Option<String>) -> Result<()> {
    match layout.as_deref() {
        None | Some("NCW" | "NCHW" | "NCDHW" | "None") => Ok(()),
        Some(other) => Err(Error::value(op, format!("layout {other} is not supported"))
            .with_hint("transpose the data to NCW, NCHW or NCDHW")),
    }
}

/// Checks attributes that repeat what the weight's shape says.
fn check_named(
    op: &'static str,
    kernel: &[i64],
    filters: Option<i64>,
    w: &[usize],
    found: usize,
) -> Result<()> {
    if !kernel.is_empty() && !kernel.iter().copied().eq(w[2..].iter().map(|&n| n as i64)) {
        let text = format!("kernel is {kernel:?}, but the weight has shape {}", display(w));
        return Err(Error::value(op, text));
    }
    match filters {
        Some(n) if n != found as i64 => {
            Err(Error::value(op, format!("num_filter is {n}, but the weight has shape {}", display(w))))
        }
        _ => Ok(()),
    }
}

fn check_bias(a: &InferArgs, no_bias: bool, filters: usize) -> Result<()> {
    let want = if no_bias { 2 } else { 3 };
    if a.ins.len() != want {
        let text = format!("no_bias={no_bias} takes {want} arrays, got {}", a.ins.len());
        return Err(Error::type_(a.op, text));
    }
    match a.ins.get(2) {
        Some(b) if b.shape.as_slice() != [filters] => Err(Error::value(
            a.op,
            format!("the bias must have shape ({filters},), got {}", display(&b.shape)),
        )),
        _ => Ok(()),
    }
}

fn float_of(a: &InferArgs) -> Result<DType> {
    let dtype = to_float(result_type(a.op, a.ins, a.mode)?, a.mode);
    crate::infer::refuse_complex(a.op, dtype)?;
    Ok(dtype)
}

fn found(a: &InferArgs, dtype: DType, shape: Shape) -> Result<Inferred> {
    checked_numel(a.op, &shape, dtype.size())?;
    Ok(Inferred { ins: SmallVec::from_elem(dtype, a.ins.len()), outs: smallvec![Meta::new(shape, dtype)] })
}

fn conv_steps(c: &Convolution) -> Steps<'_> {
    Steps { stride: &c.stride, dilate: &c.dilate, pad: &c.pad, groups: c.num_group }
}

fn infer_convolution(a: &InferArgs) -> Result<Inferred> {
    let attrs = a.attrs.get::<Convolution>();
    check_layout(a.op, &attrs.layout)?;
    let (x, w) = (&a.ins[0].shape, &a.ins[1].shape);
    let g = geometry(a.op, x, w, &conv_steps(attrs))?;
    check_named(a.op, &attrs.kernel, attrs.num_filter, w, g.filters)?;
    check_bias(a, attrs.no_bias, g.filters)?;
    found(a, float_of(a)?, output_shape(&g, x.len() - 2))
}

/// What a kernel computes from dense operands into a dense result, over which a tail may run.
type Compute<'a, T> = &'a dyn Fn(&[&[T]], Shared<T>, Option<&Tail>);

/// Runs `single` or `double` on dense operands; half types are widened to float32 and rounded.
fn dispatch(a: &KernelArgs, single: Compute<f32>, double: Compute<f64>) -> Result<()> {
    match a.out(0).dtype {
        DType::F16 => widened::<f16>(a, single),
        DType::BF16 => widened::<bf16>(a, single),
        DType::F64 => direct(a, double),
        _ => direct(a, single),
    }
}

fn direct<T: Element>(a: &KernelArgs, f: Compute<T>) -> Result<()> {
    let ins: Vec<_> = a.ins.iter().map(|x| dense::<T>(x, a.par)).collect();
    let ins: Vec<&[T]> = ins.iter().map(|x| &x[..]).collect();
    f(&ins, Shared(a.out(0).ptr::<T>()), a.tail);
    Ok(())
}

fn widened<T: Element>(a: &KernelArgs, f: Compute<f32>) -> Result<()> {
    let wide = |x: &View| {
        let x = dense::<T>(x, a.par);
        let mut wide = Space::<f32>::new(a.op, x.len())?;
        convert((T::DTYPE, x.as_ptr().cast()), (DType::F32, wide.as_mut_ptr().cast()), x.len(), a.par);
        Ok(wide)
    };
    let ins: Vec<Space<f32>> = a.ins.iter().map(wide).collect::<Result<_>>()?;
    let ins: Vec<&[f32]> = ins.iter().map(|x| &x[..]).collect();
    let out = a.out(0);
    let n = out.layout.size();
    let mut result = Space::<f32>::new(a.op, n)?;
    result.fill(0.0);
    f(&ins, Shared(result.as_mut_ptr()), None);
    convert((DType::F32, result.as_ptr().cast()), (T::DTYPE, out.ptr::<T>().cast()), n, a.par);
    if let Some(tail) = a.tail {
        // SAFETY: the result is finished.
        unsafe { tail.all(a.par) };
    }
    Ok(())
}

/// Converts `n` contiguous elements.
fn convert((from, source): (DType, *const u8), (to, target): (DType, *mut u8), n: usize, par: &dyn Parallel) {
    let step = cast(from, to);
    let (source, target) = (Shared(source.cast_mut()), Shared(target));
    split(par, n, GRAIN, |range| {
        let (i, j) = ((range.start * from.size()) as isize, (range.start * to.size()) as isize);
        // SAFETY: elements of this chunk.
        unsafe { step(range.len(), &[source.at(i).cast_const()], target.at(j)) };
    });
}

fn run_convolution(a: &KernelArgs) -> Result<()> {
    let steps = conv_steps(a.attrs.get::<Convolution>());
    let g = geometry(a.op, &a.ins[0].layout.shape, &a.ins[1].layout.shape, &steps)?;
    fn go<T: Real>(g: &Geometry, one: T, a: &KernelArgs, ins: &[&[T]], out: Shared<T>, tail: Option<&Tail>) {
        conv::forward(g, ins[0], ins[1], ins.get(2).copied(), out, one, tail, a.par);
    }
    dispatch(a, &|ins, out, tail| go(&g, 1.0, a, ins, out, tail), &|ins, out, tail| {
        go(&g, 1.0, a, ins, out, tail)
    })
}

/// The attributes of an adjoint of the same convolution.
fn adjoint(stride: &Ints, dilate: &Ints, pad: &Ints, num_group: i64, shape: &[usize]) -> Attrs {
    let (stride, dilate, pad) = (stride.clone(), dilate.clone(), pad.clone());
    Attrs::new(ConvAdjoint { stride, dilate, pad, num_group, shape: shape.into() })
}

/// The attributes of the convolution without bias whose adjoint `c` is.
fn plain(c: &ConvAdjoint) -> Attrs {
    Attrs::new(Convolution {
        kernel: Ints::new(),
        stride: c.stride.clone(),
        dilate: c.dilate.clone(),
        pad: c.pad.clone(),
        num_filter: None,
        num_group: c.num_group,
        no_bias: true,
        layout: None,
    })
}

/// The sum over all axes but the channels.
fn bias_gradient(g: Sym<'_>) -> Sym<'_> {
    let axes: SmallVec<[usize; 6]> = (0..g.shape().len()).filter(|&i| i != 1).collect();
    g.sum(&axes, false)
}

fn grad_convolution<'r>(v: &Vjp<'r>) -> SmallVec<[Option<Sym<'r>>; 3]> {
    let c = v.attrs.get::<Convolution>();
    let to = |shape: &[usize]| adjoint(&c.stride, &c.dilate, &c.pad, c.num_group, shape);
    let mut out = grads!(v;
        v.g().apply(&CONV_DATA_GRAD, to(v.shape(0)), &[v.x(1).operand()]),
        v.x(0).apply(&CONV_WEIGHT_GRAD, to(v.shape(1)), &[v.g().operand()]),
    );
    if v.ins.len() == 3 {
        out.push(v.needs(2).then(|| bias_gradient(v.g())));
    }
    out
}

/// The products that a convolution's result of shape `y` sums: for each of its elements one for each of a filter's.
fn products(y: &[usize], w: &[usize]) -> u64 {
    (y.iter().product::<usize>() * w[1..].iter().product::<usize>()) as u64
}

fn absorb_in_convolution<'r>(
    attrs: &Attrs,
    _: &Meta,
    rest: &[Sym<'r>],
    by: &Affine<'r>,
) -> Option<(Attrs, SmallVec<[Sym<'r>; 2]>)> {
    let attrs = Convolution { no_bias: false, ..attrs.get::<Convolution>().clone() };
    (by.axis == 1).then(|| rescaled(rest, by))?.map(|rest| (Attrs::new(attrs), rest))
}

/// `convolution(x, weight, bias)`: the cross-correlation that MXNet calls convolution. x is (N, C, ...), the
/// weight (num_filter, C / num_group, *kernel).
pub static CONVOLUTION: Op = Op {
    arity: Arity::Between(2, 3),
    attrs: Convolution::read,
    grad: Grad::Vjp(grad_convolution),
    saves: Saves { inputs: 0b11, outputs: 0 },
    absorb: Some(absorb_in_convolution),
    heavy: true,
    products: Some(|ins, out| products(out, ins[1])),
    tail: true,
    ..Op::new("convolution", 2, infer_convolution, Run::Kernel(run_convolution))
};

fn adjoint_steps(c: &ConvAdjoint) -> Steps<'_> {
    Steps { stride: &c.stride, dilate: &c.dilate, pad: &c.pad, groups: c.num_group }
}

/// The geometry of an adjoint: `y` must have the shape of the convolution's result.
fn adjoint_geometry(
    op: &'static str,
    c: &ConvAdjoint,
    x: &[usize],
    w: &[usize],
    y: &[usize],
) -> Result<Geometry> {
    let g = geometry(op, x, w, &adjoint_steps(c))?;
    let want = output_shape(&g, x.len() - 2);
    if want.as_slice() != y {
        let text = format!("the convolution's result has shape {}, got {}", display(&want), display(y));
        return Err(Error::value(op, text));
    }
    Ok(g)
}

fn run_data_grad(a: &KernelArgs) -> Result<()> {
    let c = a.attrs.get::<ConvAdjoint>();
    let g = adjoint_geometry(a.op, c, &c.shape, &a.ins[1].layout.shape, &a.ins[0].layout.shape)?;
    moves::zero(&a.out(0), a.par);
    dispatch(a, &|ins, out, _| conv::data_gradient(&g, ins[0], ins[1], out, 1.0, a.par), &|ins, out, _| {
        conv::data_gradient(&g, ins[0], ins[1], out, 1.0, a.par)
    })
}

/// `conv_data_grad(g, weight; shape)`: the adjoint of [`CONVOLUTION`] in its data, of `shape`.
pub static CONV_DATA_GRAD: Op = Op {
    attrs: ConvAdjoint::read,
    grad: Grad::Vjp(|v| {
        let c = v.attrs.get::<ConvAdjoint>();
        let to = adjoint(&c.stride, &c.dilate, &c.pad, c.num_group, v.shape(1));
        grads!(v;
            v.g().apply(&CONVOLUTION, plain(c), &[v.x(1).operand()]),
            v.g().apply(&CONV_WEIGHT_GRAD, to, &[v.x(0).operand()]),
        )
    }),
    saves: Saves { inputs: 0b11, outputs: 0 },
    heavy: true,
    products: Some(|ins, _| products(ins[0], ins[1])),
    ..Op::new(
        "conv_data_grad",
        2,
        |a| {
            let c = a.attrs.get::<ConvAdjoint>();
            adjoint_geometry(a.op, c, &c.shape, &a.ins[1].shape, &a.ins[0].shape)?;
            found(a, float_of(a)?, c.shape.clone())
        },
        Run::Kernel(run_data_grad),
    )
};

fn run_weight_grad(a: &KernelArgs) -> Result<()> {
    let c = a.attrs.get::<ConvAdjoint>();
    let g = adjoint_geometry(a.op, c, &a.ins[0].layout.shape, &c.shape, &a.ins[1].layout.shape)?;
    let size = a.out(0).layout.size();
    fn go<T: Real>(g: &Geometry, size: usize, a: &KernelArgs, ins: &[&[T]], out: Shared<T>) {
        // SAFETY: all elements of the contiguous result.
        let gw = unsafe { std::slice::from_raw_parts_mut(out.0, size) };
        conv::weight_gradient(g, ins[0], ins[1], gw, a.par);
    }
    dispatch(a, &|ins, out, _| go(&g, size, a, ins, out), &|ins, out, _| go(&g, size, a, ins, out))
}

/// `conv_weight_grad(x, g; shape)`: the adjoint of [`CONVOLUTION`] in its weight, of `shape`.
pub static CONV_WEIGHT_GRAD: Op = Op {
    attrs: ConvAdjoint::read,
    grad: Grad::Vjp(|v| {
        let c = v.attrs.get::<ConvAdjoint>();
        let to = adjoint(&c.stride, &c.dilate, &c.pad, c.num_group, v.shape(0));
        grads!(v;
            v.x(1).apply(&CONV_DATA_GRAD, to, &[v.g().operand()]),
            v.x(0).apply(&CONVOLUTION, plain(c), &[v.g().operand()]),
        )
    }),
    saves: Saves { inputs: 0b11, outputs: 0 },
    heavy: true,
    products: Some(|ins, out| products(ins[1], out)),
    ..Op::new(
        "conv_weight_grad",
        2,
        |a| {
            let c = a.attrs.get::<ConvAdjoint>();
            adjoint_geometry(a.op, c, &a.ins[0].shape, &c.shape, &a.ins[1].shape)?;
            found(a, float_of(a)?, c.shape.clone())
        },
        Run::Kernel(run_weight_grad),
    )
};

/// The shape of a deconvolution's result: the data whose convolution with `w` has shape `x`.
fn deconvolved(op: &'static str, d: &Deconvolution, x: &[usize], w: &[usize]) -> Result<Shape> {
    if !(3..=5).contains(&x.len()) || w.len() != x.len() || w[0] != x[1] {
        let text = format!(
            "data (N, C, ...) and weight (C, num_filter / num_group, *kernel) do not fit: {} and {}",
            display(x),
            display(w)
        );
        return Err(Error::value(op, text));
    }
    let axes = x.len() - 2;
    let stride = each_axis(op, "stride", &d.stride, 1, axes, 1)?;
    let dilate = each_axis(op, "dilate", &d.dilate, 1, axes, 1)?;
    let pad = each_axis(op, "pad", &d.pad, 0, axes, 0)?;
    let adj = each_axis(op, "adj", &d.adj, 0, axes, 0)?;
    let target = each_axis(op, "target_shape", &d.target_shape, 0, axes, 0)?;
    let groups = usize::try_from(d.num_group).unwrap_or(0).max(1);
    let mut shape: Shape = smallvec![x[0], w[1].saturating_mul(groups)];
    for i in 3 - axes..3 {
        let (n, k) = (x[2 + i + axes - 3], w[2 + i + axes - 3]);
        let whole = (n.max(1) - 1) * stride[i] + k.saturating_sub(1) * dilate[i] + 1;
        let size = if d.target_shape.is_empty() {
            (whole + adj[i]).checked_sub(2 * pad[i])
        } else {
            Some(target[i])
        };
        let Some(size) = size.filter(|_| adj[i] < stride[i].max(1) || adj[i] == 0) else {
            let text =
                format!("pad {:?} and adj {:?} leave nothing, or adj is not below stride", d.pad, d.adj);
            return Err(Error::value(op, text));
        };
        shape.push(size);
    }
    Ok(shape)
}

fn infer_deconvolution(a: &InferArgs) -> Result<Inferred> {
    let d = a.attrs.get::<Deconvolution>();
    check_layout(a.op, &d.layout)?;
    let (x, w) = (&a.ins[0].shape, &a.ins[1].shape);
    let shape = deconvolved(a.op, d, x, w)?;
    let steps = Steps { stride: &d.stride, dilate: &d.dilate, pad: &d.pad, groups: d.num_group };
    let g = geometry(a.op, &shape, w, &steps)?;
    if output_shape(&g, x.len() - 2) != *x {
        let text = format!("no data of shape {} has a convolution of shape {}", display(&shape), display(x));
        return Err(Error::value(a.op, text).with_hint("leave target_shape out, or change pad"));
    }
    check_named(a.op, &d.kernel, d.num_filter, w, shape[1])?;
    check_bias(a, d.no_bias, shape[1])?;
    found(a, float_of(a)?, shape)
}

fn deconvolution_body<'r>(attrs: &Attrs, _: &'r dyn Rules, x: &[Sym<'r>]) -> SmallVec<[Sym<'r>; 2]> {
    let d = attrs.get::<Deconvolution>();
    let Ok(shape) = deconvolved("", d, &x[0].shape(), &x[1].shape()) else { return smallvec![] };
    let to = adjoint(&d.stride, &d.dilate, &d.pad, d.num_group, &shape);
    let y = x[0].apply(&CONV_DATA_GRAD, to, &[x[1].operand()]);
    smallvec![match x.get(2) {
        Some(bias) => {
            let mut spread: Shape = SmallVec::from_elem(1, shape.len() - 1);
            spread[0] = shape[1];
            y + bias.reshape(&spread)
        }
        None => y,
    }]
}

/// `deconvolution(x, weight, bias)`: the adjoint of a convolution, as a layer.
pub static DECONVOLUTION: Op = Op {
    arity: Arity::Between(2, 3),
    attrs: Deconvolution::read,
    grad: Grad::Vjp(|v| {
        let d = v.attrs.get::<Deconvolution>();
        let to = adjoint(&d.stride, &d.dilate, &d.pad, d.num_group, v.shape(1));
        let weight: [Operand; 1] = [v.x(1).operand()];
        let mut out = grads!(v;
            v.g().apply(&CONVOLUTION, plain(to.get::<ConvAdjoint>()), &weight),
            v.g().apply(&CONV_WEIGHT_GRAD, to.clone(), &[v.x(0).operand()]),
        );
        if v.ins.len() == 3 {
            out.push(v.needs(2).then(|| bias_gradient(v.g())));
        }
        out
    }),
    saves: Saves { inputs: 0b11, outputs: 0 },
    heavy: true,
    ..Op::new("deconvolution", 2, infer_deconvolution, Run::Body(deconvolution_body))
};

pub const OPS: &[&Op] = &[&CONVOLUTION, &CONV_DATA_GRAD, &CONV_WEIGHT_GRAD, &DECONVOLUTION];
