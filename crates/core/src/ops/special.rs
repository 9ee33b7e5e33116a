//! Special functions: the error function and its inverse.

use crate::kernel::float::Float;
use crate::kernel::math;
use crate::op::{Grad, Op, Saves};
use crate::ops::arith::SQUARE;
use crate::ops::exp_log;
use crate::{elementwise, formula, grads, infer};
use std::f64::consts::FRAC_2_SQRT_PI;

formula!(Erf: Float, |a| math::erf(a));
formula!(Erfinv: Float, |a| math::erfinv(a));

const X: Saves = Saves { inputs: 0b1, outputs: 0 };
const Y: Saves = Saves { inputs: 0, outputs: 0b1 };

pub static ERF: Op = Op {
    grad: Grad::Vjp(
        |v| grads!(v; v.g().times((-v.x(0).unary(&SQUARE)).unary(&exp_log::EXP) * FRAC_2_SQRT_PI)),
    ),
    saves: X,
    ..Op::new("erf", 1, infer::float_real, elementwise!(floats: unary Erf))
};

pub static ERFINV: Op = Op {
    grad: Grad::Vjp(
        |v| grads!(v; v.g().times(v.y(0).unary(&SQUARE).unary(&exp_log::EXP) * (1.0 / FRAC_2_SQRT_PI))),
    ),
    saves: Y,
    ..Op::new("erfinv", 1, infer::float_real, elementwise!(floats: unary Erfinv))
};

pub const OPS: &[&Op] = &[&ERF, &ERFINV];
