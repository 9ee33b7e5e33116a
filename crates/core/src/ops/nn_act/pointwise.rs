//! Activations of one element: sigmoid, relu, softplus, gelu and silu.

use crate::kernel::math;
use crate::kernel::num::{Float, Ordered};
use crate::op::{Grad, Op, Saves};
use crate::ops::arith::select;
use crate::ops::special::ERF;
use crate::ops::{compare, exp_log};
use crate::{elementwise, formula, grads, infer};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

formula!(Sigmoid: Float, |a| math::sigmoid(a));
formula!(Relu: Ordered, |a| a.maximum(W::ZERO));
formula!(Softplus: Float, |a| math::softplus(a));
formula!(Gelu: Float, |a| {
    let half = W::of(0.5);
    a.mul(half.add(half.mul(math::erf(a.mul(W::of(FRAC_1_SQRT_2))))))
});
formula!(Silu: Float, |a| a.mul(math::sigmoid(a)));

const X: Saves = Saves { inputs: 0b1, outputs: 0 };
const Y: Saves = Saves { inputs: 0, outputs: 0b1 };

/// 1 / (1 + exp(-x)).
pub static SIGMOID: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; v.g() * (v.y(0) * (1.0 - v.y(0))))),
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
    grad: Grad::Vjp(|v| grads!(v; v.g() * v.x(0).unary(&SIGMOID))),
    saves: X,
    ..Op::new("softplus", 1, infer::float_real, elementwise!(floats: unary Softplus))
};

/// x Phi(x), Phi the normal distribution's, by the error function.
pub static GELU: Op = Op {
    grad: Grad::Vjp(|v| {
        let x = v.x(0);
        let phi = (x * FRAC_1_SQRT_2).unary(&ERF) * 0.5 + 0.5;
        let density = (x * x * -0.5).unary(&exp_log::EXP) * (FRAC_2_SQRT_PI * FRAC_1_SQRT_2 * 0.5);
        grads!(v; v.g() * (phi + x * density))
    }),
    saves: X,
    ..Op::new("gelu", 1, infer::float_real, elementwise!(floats: unary Gelu))
};

/// x sigmoid(x).
pub static SILU: Op = Op {
    grad: Grad::Vjp(|v| {
        let s = v.x(0).unary(&SIGMOID);
        grads!(v; v.g() * (s * (v.x(0) * (1.0 - s) + 1.0)))
    }),
    saves: X,
    ..Op::new("silu", 1, infer::float_real, elementwise!(floats: unary Silu))
};
