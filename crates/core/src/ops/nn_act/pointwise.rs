//! Activations of one element: sigmoid, relu, softplus, gelu, silu and mish.

use crate::attrs::Attrs;
use crate::kernel::float::Float;
use crate::kernel::math;
use crate::kernel::num::Ordered;
use crate::op::{Grad, Op, Saves};
use crate::ops::arith::{CLIP, select};
use crate::ops::special::ERF;
use crate::ops::trig::TANH;
use crate::ops::{compare, exp_log};
use crate::rules::{IntoOperand, Sym};
use crate::{elementwise, formula, grads, infer};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

formula!(Sigmoid: Float, |a| math::sigmoid(a));
formula!(Relu: Ordered, |a| a.maximum(W::ZERO));
formula!(Softplus: Float, |a| math::softplus(a));
formula!(Gelu: Float, |a| math::gelu(a));
formula!(Silu: Float, |a| math::silu(a));
formula!(Mish: Float, |a| share(a, math::tanh(math::softplus(a))));

/// A share p of a; none of minus infinity is 0.
#[inline(always)]
fn share<W: Float>(a: W, p: W) -> W {
    let part = a.mul(p);
    if p == W::ZERO { p } else { part }
}

/// Where a saturated activation is as at infinity: beyond this its slope is exactly 0 or 1 in every dtype, and
/// products with x must not meet an infinity there.
const FAR: f64 = 1000.0;

/// x, held within [-FAR, FAR].
fn near<'r>(x: Sym<'r>) -> Sym<'r> {
    x.apply(&CLIP, Attrs::NONE, &[(-FAR).operand(), FAR.operand()])
}

const X: Saves = Saves { inputs: 0b1, outputs: 0 };
const Y: Saves = Saves { inputs: 0, outputs: 0b1 };

/// 1 / (1 + exp(-x)).
pub static SIGMOID: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; v.g().times(v.y(0) * (1.0 - v.y(0))))),
    saves: Y,
    ..Op::new("sigmoid", 1, infer::float_real, elementwise!(floats: unary Sigmoid))
};

/// max(x, 0); the gradient at 0 is 0.
pub static RELU: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; select(v.y(0).binary(&compare::GREATER, 0i64), v.g(), 0.0))),
    saves: Y,
    ..Op::new("relu", 1, infer::same_real, elementwise!(ordered: unary Relu))
};

/// log(1 + exp(x)).
pub static SOFTPLUS: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; v.g().times(v.x(0).unary(&SIGMOID)))),
    saves: X,
    ..Op::new("softplus", 1, infer::float_real, elementwise!(floats: unary Softplus))
};

/// x Phi(x), Phi the normal distribution's, by the error function.
pub static GELU: Op = Op {
    grad: Grad::Vjp(|v| {
        let x = near(v.x(0));
        let phi = (x * FRAC_1_SQRT_2).unary(&ERF) * 0.5 + 0.5;
        let density = (x * x * -0.5).unary(&exp_log::EXP) * (FRAC_2_SQRT_PI * FRAC_1_SQRT_2 * 0.5);
        grads!(v; v.g().times(phi + x * density))
    }),
    saves: X,
    ..Op::new("gelu", 1, infer::float_real, elementwise!(floats: unary Gelu))
};

/// x sigmoid(x).
pub static SILU: Op = Op {
    grad: Grad::Vjp(|v| {
        let x = near(v.x(0));
        let s = x.unary(&SIGMOID);
        grads!(v; v.g().times(s * (x * (1.0 - s) + 1.0)))
    }),
    saves: X,
    ..Op::new("silu", 1, infer::float_real, elementwise!(floats: unary Silu))
};

/// x tanh(softplus(x)). Misra, "Mish: A Self Regularized Non-Monotonic Activation Function", 2019.
pub static MISH: Op = Op {
    grad: Grad::Vjp(|v| {
        let x = near(v.x(0));
        let t = x.unary(&SOFTPLUS).unary(&TANH);
        grads!(v; v.g().times(t + x * x.unary(&SIGMOID) * (1.0 - t * t)))
    }),
    saves: X,
    ..Op::new("mish", 1, infer::float_real, elementwise!(floats: unary Mish))
};
