//! Activations over an axis (softmax, log_softmax, softmin, masked ones) and MXNet's leaky_relu family; those of
//! one element (relu, sigmoid, ...) are in `pointwise`.

use crate::attrs::Attrs;
use crate::infer::refuse_complex;
use crate::op::{Arity, Grad, InferArgs, Inferred, Meta, Op, Run, Saves};
use crate::ops::arith::{MINIMUM, select};
use crate::ops::compare;
use crate::ops::exp_log::{EXP, EXPM1};
use crate::promote::to_float;
use crate::rules::{IntoOperand, Rules, Sym, Vjp};
use crate::shape::{Shape, broadcast, check_axis, display};
use crate::{DType, Error, Result, attrs, grads};
use smallvec::{SmallVec, smallvec};

mod pointwise;
mod softmax;

pub use pointwise::{GELU, MISH, RELU, SIGMOID, SILU, SOFTPLUS};

attrs! {
    /// `axis`: over which the results sum to 1; `temperature`: what x is divided by; `dtype`: of the computation
    /// and the result; `use_length`: a second operand says how many elements count along the axis.
    pub struct Softmax {
        axis: i64 = -1,
        temperature: Option<f64> = None,
        dtype: Option<DType> = None,
        use_length: bool = false,
    }
}

impl Softmax {
    /// What x is multiplied by.
    fn scale(&self) -> f64 {
        1.0 / self.temperature.unwrap_or(1.0)
    }
}

fn infer_softmax(a: &InferArgs) -> Result<Inferred> {
    let attrs = a.attrs.get::<Softmax>();
    let x = &a.ins[0];
    let axis = check_axis(a.op, attrs.axis, x.shape.len())?;
    let dtype = attrs.dtype.unwrap_or(to_float(x.dtype, a.mode));
    if !dtype.is_float() || x.dtype.is_complex() {
        return Err(Error::DType { op: a.op, dtype, expected: "softmax is of real numbers" });
    }
    if attrs.temperature.is_some_and(|t| t <= 0.0 || t.is_nan()) {
        let text = format!("temperature must be positive, got {}", attrs.temperature.unwrap_or(0.0));
        return Err(Error::value(a.op, text));
    }
    let mut ins: SmallVec<[DType; 4]> = smallvec![dtype];
    if a.ins.len() != 1 + usize::from(attrs.use_length) {
        let text =
            format!("use_length={} takes {} arrays", attrs.use_length, 1 + usize::from(attrs.use_length));
        return Err(Error::type_(a.op, text));
    }
    if let Some(length) = a.ins.get(1) {
        crate::ops::index::check_index_dtype(a, length)?;
        let mut want = x.shape.clone();
        want.remove(axis);
        if length.shape != want {
            let text = format!("length must have shape {}, got {}", display(&want), display(&length.shape));
            return Err(Error::value(a.op, text));
        }
        ins.push(DType::I64);
    }
    Ok(Inferred { ins, outs: smallvec![Meta::new(x.shape.clone(), dtype)] })
}

attrs! {
    /// `axis` of the softmax; `scale`: what its input was multiplied by.
    pub struct SoftmaxBack { axis: i64 = -1, scale: f64 = 1.0 }
}

fn infer_softmax_grad(a: &InferArgs) -> Result<Inferred> {
    let (y, g) = (&a.ins[0], &a.ins[1]);
    if y.shape != g.shape {
        return Err(Error::Broadcast { op: a.op, shapes: vec![y.shape.clone(), g.shape.clone()] });
    }
    check_axis(a.op, a.attrs.get::<SoftmaxBack>().axis, y.shape.len())?;
    let dtype = to_float(y.dtype, a.mode);
    refuse_complex(a.op, dtype)?;
    Ok(Inferred { ins: smallvec![dtype, dtype], outs: smallvec![Meta::new(y.shape.clone(), dtype)] })
}

/// The gradient through a softmax of result `y`.
fn softmax_back<'r>(y: Sym<'r>, g: Sym<'r>, axis: i64, scale: f64) -> Sym<'r> {
    y.apply(&SOFTMAX_GRAD, Attrs::new(SoftmaxBack { axis, scale }), &[g.operand()])
}

/// The gradient through its logarithm.
fn log_softmax_back<'r>(y: Sym<'r>, g: Sym<'r>, axis: i64, scale: f64) -> Sym<'r> {
    y.apply(&LOG_SOFTMAX_GRAD, Attrs::new(SoftmaxBack { axis, scale }), &[g.operand()])
}

/// The sum along the axis of a gradient's call, kept.
fn along<'r>(v: &Vjp<'r>, x: Sym<'r>) -> Sym<'r> {
    let axis = check_axis("", v.attrs.get::<SoftmaxBack>().axis, v.shape(0).len()).unwrap_or(0);
    x.sum(&[axis], true)
}

/// `softmax_grad(y, g; axis, scale)`: scale y (g - Σ g y), a line read once. Private to gradients.
pub static SOFTMAX_GRAD: Op = Op {
    attrs: SoftmaxBack::read,
    grad: Grad::Vjp(|v| {
        let SoftmaxBack { axis, scale } = *v.attrs.get::<SoftmaxBack>();
        let (y, g, h) = (v.x(0), v.x(1), v.g());
        grads!(v; (h * (g - along(v, g * y)) - g * along(v, h * y)) * scale, softmax_back(y, h, axis, scale))
    }),
    saves: Saves { inputs: 0b11, outputs: 0 },
    ..Op::new("softmax_grad", 2, infer_softmax_grad, Run::Kernel(softmax::softmax_grad))
};

/// `log_softmax_grad(y, g; axis, scale)`: scale (g - exp(y) Σ g), likewise. Private to gradients.
pub static LOG_SOFTMAX_GRAD: Op = Op {
    attrs: SoftmaxBack::read,
    grad: Grad::Vjp(|v| {
        let scale = v.attrs.get::<SoftmaxBack>().scale;
        let (y, g, h) = (v.x(0), v.x(1), v.g());
        let p = y.unary(&EXP);
        grads!(v; h * p * along(v, g) * -scale, (h - along(v, h * p)) * scale)
    }),
    saves: Saves { inputs: 0b11, outputs: 0 },
    ..Op::new("log_softmax_grad", 2, infer_softmax_grad, Run::Kernel(softmax::log_softmax_grad))
};

fn grad_softmax<'r>(v: &Vjp<'r>, sign: f64) -> SmallVec<[Option<Sym<'r>>; 3]> {
    let attrs = v.attrs.get::<Softmax>();
    let mut out = grads!(v; softmax_back(v.y(0), v.g(), attrs.axis, sign * attrs.scale()));
    out.resize(v.ins.len(), None);
    out
}

/// `softmax(x, length; axis, temperature)`: exp(x / t), normalised to sum 1 along the axis; elements from
/// `length` on do not count and give 0.
pub static SOFTMAX: Op = Op {
    arity: Arity::Between(1, 2),
    attrs: Softmax::read,
    grad: Grad::Vjp(|v| grad_softmax(v, 1.0)),
    saves: Saves { inputs: 0, outputs: 1 },
    ..Op::new("softmax", 1, infer_softmax, Run::Kernel(softmax::softmax))
};

/// `softmin(x, length; axis, temperature)`: the softmax of -x.
pub static SOFTMIN: Op = Op {
    arity: Arity::Between(1, 2),
    attrs: Softmax::read,
    grad: Grad::Vjp(|v| grad_softmax(v, -1.0)),
    saves: Saves { inputs: 0, outputs: 1 },
    ..Op::new("softmin", 1, infer_softmax, Run::Kernel(softmax::softmin))
};

/// `log_softmax(x; axis, temperature)`: the logarithm of the softmax, without its rounding to 0.
pub static LOG_SOFTMAX: Op = Op {
    attrs: Softmax::read,
    grad: Grad::Vjp(|v| {
        let attrs = v.attrs.get::<Softmax>();
        grads!(v; log_softmax_back(v.y(0), v.g(), attrs.axis, attrs.scale()))
    }),
    saves: Saves { inputs: 0, outputs: 1 },
    ..Op::new("log_softmax", 1, infer_softmax, Run::Kernel(softmax::log_softmax))
};

attrs! {
    /// `axis`; `temperature`: what x is divided by.
    pub struct MaskedSoftmax { axis: i64 = -1, temperature: f64 = 1.0 }
}

fn infer_masked(a: &InferArgs) -> Result<Inferred> {
    let attrs = a.attrs.get::<MaskedSoftmax>();
    let (x, mask) = (&a.ins[0], &a.ins[1]);
    check_axis(a.op, attrs.axis, x.shape.len())?;
    let dtype = to_float(x.dtype, a.mode);
    refuse_complex(a.op, dtype)?;
    if attrs.temperature <= 0.0 || attrs.temperature.is_nan() {
        return Err(Error::value(a.op, format!("temperature must be positive, got {}", attrs.temperature)));
    }
    if broadcast(a.op, &[&x.shape, &mask.shape])? != x.shape {
        return Err(Error::Broadcast { op: a.op, shapes: vec![x.shape.clone(), mask.shape.clone()] });
    }
    Ok(Inferred { ins: smallvec![dtype, DType::Bool], outs: smallvec![Meta::new(x.shape.clone(), dtype)] })
}

/// The softmax (or its logarithm) of what the mask leaves.
fn masked<'r>(attrs: &Attrs, x: &[Sym<'r>], op: &'static Op) -> Sym<'r> {
    let MaskedSoftmax { axis, temperature } = *attrs.get::<MaskedSoftmax>();
    let soft = Softmax { axis, temperature: Some(temperature), dtype: None, use_length: false };
    select(x[1], x[0], f64::NEG_INFINITY).with(op, Attrs::new(soft))
}

/// `masked_softmax(x, mask; axis, temperature)`: 0 where the mask is false; a row without any true is all 0.
pub static MASKED_SOFTMAX: Op = Op {
    attrs: MaskedSoftmax::read,
    grad: Grad::Vjp(|v| {
        let attrs = v.attrs.get::<MaskedSoftmax>();
        let mut out = grads!(v; softmax_back(v.y(0), v.g(), attrs.axis, 1.0 / attrs.temperature));
        out.push(None);
        out
    }),
    saves: Saves { inputs: 0, outputs: 1 },
    ..Op::new(
        "masked_softmax",
        2,
        infer_masked,
        Run::Body(|attrs, _, x| smallvec![select(x[1], masked(attrs, x, &SOFTMAX), 0.0)]),
    )
};

/// `masked_log_softmax(x, mask; axis, temperature)`: minus infinity where the mask is false.
pub static MASKED_LOG_SOFTMAX: Op = Op {
    attrs: MaskedSoftmax::read,
    grad: Grad::Vjp(|v| {
        let attrs = v.attrs.get::<MaskedSoftmax>();
        let mut out = grads!(v; {
            let g = select(v.x(1), v.g(), 0.0);
            select(v.x(1), log_softmax_back(v.y(0), g, attrs.axis, 1.0 / attrs.temperature), 0.0)
        });
        out.push(None);
        out
    }),
    saves: Saves { inputs: 0b10, outputs: 1 },
    ..Op::new(
        "masked_log_softmax",
        2,
        infer_masked,
        Run::Body(|attrs, _, x| smallvec![select(x[1], masked(attrs, x, &LOG_SOFTMAX), f64::NEG_INFINITY)]),
    )
};

attrs! {
    /// `act_type`: `leaky`, `prelu`, `elu`, `selu`, `gelu` or `rrelu`; `slope`: of leaky and elu; the bounds: of
    /// the slope of rrelu, whose mean counts in prediction.
    pub struct LeakyRelu {
        act_type: String = "leaky".into(),
        slope: f64 = 0.25,
        lower_bound: f64 = 0.125,
        upper_bound: f64 = 0.334,
    }
}

/// Klambauer et al., "Self-normalizing neural networks", 2017.
const SELU_ALPHA: f64 = 1.673_263_242_354_377_2;
const SELU_SCALE: f64 = 1.050_700_987_355_480_5;

impl LeakyRelu {
    /// What a negative x is multiplied by.
    fn slope(&self) -> f64 {
        if self.act_type == "rrelu" { (self.lower_bound + self.upper_bound) / 2.0 } else { self.slope }
    }

    /// The factors of an exponential unit: of negative and of all results.
    fn exponential(&self) -> (f64, f64) {
        if self.act_type == "selu" { (SELU_ALPHA, SELU_SCALE) } else { (self.slope, 1.0) }
    }
}

/// The shape of prelu's gamma beside x: along the channels, axis 1.
fn gamma_shape(x: &[usize], gamma: &[usize]) -> Option<Shape> {
    match gamma {
        [] | [1] => Some(SmallVec::from_elem(1, x.len())),
        &[n] => {
            let axis = 1.min(x.len().checked_sub(1)?);
            let mut shape: Shape = SmallVec::from_elem(1, x.len());
            shape[axis] = n;
            (x[axis] == n).then_some(shape)
        }
        _ => None,
    }
}

fn infer_leaky(a: &InferArgs) -> Result<Inferred> {
    let attrs = a.attrs.get::<LeakyRelu>();
    let x = &a.ins[0];
    if !matches!(attrs.act_type.as_str(), "leaky" | "prelu" | "elu" | "selu" | "gelu" | "rrelu") {
        let text = format!(
            "act_type must be 'leaky', 'prelu', 'elu', 'selu', 'gelu' or 'rrelu', got '{}'",
            attrs.act_type
        );
        return Err(Error::value(a.op, text));
    }
    let want = 1 + usize::from(attrs.act_type == "prelu");
    if a.ins.len() != want {
        let text = format!("act_type '{}' takes {want} arrays, got {}", attrs.act_type, a.ins.len());
        return Err(Error::type_(a.op, text));
    }
    let dtype = to_float(x.dtype, a.mode);
    refuse_complex(a.op, dtype)?;
    if let Some(gamma) = a.ins.get(1)
        && gamma_shape(&x.shape, &gamma.shape).is_none()
    {
        let text = format!(
            "gamma needs one entry, or one for each channel of data of shape {}; got {}",
            display(&x.shape),
            display(&gamma.shape)
        );
        return Err(Error::value(a.op, text));
    }
    Ok(Inferred {
        ins: SmallVec::from_elem(dtype, a.ins.len()),
        outs: smallvec![Meta::new(x.shape.clone(), dtype)],
    })
}

fn leaky_body<'r>(attrs: &Attrs, _: &'r dyn Rules, ins: &[Sym<'r>]) -> SmallVec<[Sym<'r>; 2]> {
    let attrs = attrs.get::<LeakyRelu>();
    let x = ins[0];
    let positive = || x.binary(&compare::GREATER, 0i64);
    smallvec![match attrs.act_type.as_str() {
        "gelu" => x.unary(&GELU),
        "elu" | "selu" => {
            let (negative, all) = attrs.exponential();
            let y = select(positive(), x, x.unary(&EXPM1) * negative);
            if all == 1.0 { y } else { y * all }
        }
        "prelu" => {
            let shape = gamma_shape(&x.shape(), &ins[1].shape()).unwrap_or_default();
            select(positive(), x, x * ins[1].reshape(&shape))
        }
        _ => select(positive(), x, x * attrs.slope()),
    }]
}

fn grad_leaky<'r>(v: &Vjp<'r>) -> SmallVec<[Option<Sym<'r>>; 3]> {
    let attrs = v.attrs.get::<LeakyRelu>();
    let (x, g) = (v.x(0), v.g());
    let positive = || x.binary(&compare::GREATER, 0i64);
    match attrs.act_type.as_str() {
        "gelu" => match GELU.grad {
            Grad::Vjp(rule) => rule(v),
            _ => smallvec![None],
        },
        "elu" | "selu" => {
            let (negative, all) = attrs.exponential();
            // The smaller of x and 0: exp must not overflow in the branch not taken.
            let slope = select(positive(), all, x.binary(&MINIMUM, 0i64).unary(&EXP) * (negative * all));
            grads!(v; g.times(slope))
        }
        "prelu" => {
            let shape = gamma_shape(v.shape(0), v.shape(1)).unwrap_or_default();
            grads!(v;
                select(positive(), g, g.times(v.x(1).reshape(&shape))),
                select(positive(), 0.0, g.times(x)).sum_to(&shape).reshape(v.shape(1)),
            )
        }
        _ => grads!(v; select(positive(), g, g * attrs.slope())),
    }
}

/// `leaky_relu(x, gamma; act_type, slope, ...)`: x where positive; below, x times a slope (`leaky`), times gamma
/// (`prelu`), or slope (exp(x) - 1) (`elu`, `selu`); or x Phi(x) (`gelu`).
pub static LEAKY_RELU: Op = Op {
    arity: Arity::Between(1, 2),
    attrs: LeakyRelu::read,
    grad: Grad::Vjp(grad_leaky),
    saves: Saves { inputs: 0b11, outputs: 0 },
    ..Op::new("leaky_relu", 1, infer_leaky, Run::Body(leaky_body))
};

pub const OPS: &[&Op] = &[
    &SIGMOID,
    &RELU,
    &SOFTPLUS,
    &GELU,
    &SILU,
    &MISH,
    &SOFTMAX,
    &SOFTMIN,
    &LOG_SOFTMAX,
    &SOFTMAX_GRAD,
    &LOG_SOFTMAX_GRAD,
    &MASKED_SOFTMAX,
    &MASKED_LOG_SOFTMAX,
    &LEAKY_RELU,
];
