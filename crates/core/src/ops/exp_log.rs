//! Exponentials, logarithms and roots.

use crate::kernel::float::Float;
use crate::kernel::math;
use crate::op::{Grad, Op, Saves};
use crate::ops::arith::select;
use crate::ops::{compare, nn_act};
use crate::{complex_formulas, elementwise, formula, grads, infer, real_or_complex};
use std::f64::consts::{LN_2, LN_10};

formula!(Exp: Float, |a| math::exp(a));
formula!(Expm1: Float, |a| math::expm1(a));
formula!(Exp2: Float, |a| math::exp2(a));
formula!(Log: Float, |a| math::log(a));
formula!(Log2: Float, |a| math::log2(a));
formula!(Log10: Float, |a| math::log10(a));
formula!(Log1p: Float, |a| math::log1p(a));
formula!(Sqrt: Float, |a| a.sqrt());
formula!(Cbrt: Float, |a| math::cbrt(a));
formula!(Rsqrt: Float, |a| W::ONE.div(a.sqrt()));
formula!(LogAddExp: Float, |a, b| math::logaddexp(a, b));

complex_formulas! {
    ComplexExp exp;
    ComplexExpm1 expm1;
    ComplexExp2 exp2;
    ComplexLog log;
    ComplexLog2 log2;
    ComplexLog10 log10;
    ComplexLog1p log1p;
    ComplexSqrt sqrt;
}

const X: Saves = Saves { inputs: 0b1, outputs: 0 };
const Y: Saves = Saves { inputs: 0, outputs: 0b1 };

pub static EXP: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; v.g().times(v.y(0)))),
    saves: Y,
    ..Op::new("exp", 1, infer::float, real_or_complex!(floats Exp, ComplexExp))
};

pub static EXPM1: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; v.g().times(v.y(0) + 1.0))),
    saves: Y,
    ..Op::new("expm1", 1, infer::float, real_or_complex!(floats Expm1, ComplexExpm1))
};

pub static EXP2: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; v.g().times(v.y(0) * LN_2))),
    saves: Y,
    ..Op::new("exp2", 1, infer::float, real_or_complex!(floats Exp2, ComplexExp2))
};

pub static LOG: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; v.g().over(v.x(0)))),
    saves: X,
    ..Op::new("log", 1, infer::float, real_or_complex!(floats Log, ComplexLog))
};

pub static LOG2: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; v.g().over(v.x(0) * LN_2))),
    saves: X,
    ..Op::new("log2", 1, infer::float, real_or_complex!(floats Log2, ComplexLog2))
};

pub static LOG10: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; v.g().over(v.x(0) * LN_10))),
    saves: X,
    ..Op::new("log10", 1, infer::float, real_or_complex!(floats Log10, ComplexLog10))
};

pub static LOG1P: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; v.g().over(v.x(0) + 1.0))),
    saves: X,
    ..Op::new("log1p", 1, infer::float, real_or_complex!(floats Log1p, ComplexLog1p))
};

pub static SQRT: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; v.g().over(v.y(0) * 2.0))),
    saves: Y,
    ..Op::new("sqrt", 1, infer::float, real_or_complex!(floats Sqrt, ComplexSqrt))
};

pub static CBRT: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; v.g().over(v.y(0) * v.y(0) * 3.0))),
    saves: Y,
    ..Op::new("cbrt", 1, infer::float_real, elementwise!(floats: unary Cbrt))
};

/// 1 / sqrt(x).
pub static RSQRT: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; v.g().times(v.y(0) * v.y(0) * v.y(0) * -0.5))),
    saves: Y,
    ..Op::new("rsqrt", 1, infer::float_real, elementwise!(floats: unary Rsqrt))
};

/// log(exp(a) + exp(b)).
pub static LOGADDEXP: Op = Op {
    grad: Grad::Vjp(|v| {
        // Equal infinities have no difference: each counts half.
        let (a, b) = (v.x(0), v.x(1));
        let equal = a.binary(&compare::EQUAL, b);
        let alike = equal.binary(&compare::LOGICAL_AND, a.unary(&compare::ISINF));
        let apart = select(alike, 0.0, a - b);
        grads!(v; v.g().times(apart.unary(&nn_act::SIGMOID)), v.g().times((-apart).unary(&nn_act::SIGMOID)))
    }),
    saves: Saves { inputs: 0b11, outputs: 0 },
    ..Op::new("logaddexp", 2, infer::float_real, elementwise!(floats: binary LogAddExp))
};

pub const OPS: &[&Op] = &[&EXP, &EXPM1, &EXP2, &LOG, &LOG2, &LOG10, &LOG1P, &SQRT, &CBRT, &RSQRT, &LOGADDEXP];
