//! Arithmetic: add, subtract, multiply, divide, negative, ...

use crate::DType;
use crate::kernel::num::{Inexact, Num};
use crate::kernel::step::{binary, unary};
use crate::op::{Grad, Op, Run, Saves, StepFn};
use crate::{formula, grads, infer, with_type};

formula!(Add: Num, |a, b| a.add(b));
formula!(Subtract: Num, |a, b| a.sub(b));
formula!(Multiply: Num, |a, b| a.mul(b));
formula!(Divide: Inexact, |a, b| a.div(b));
formula!(Negative: Num, |a| a.neg());

fn add(ins: &[DType], _: DType) -> Option<StepFn> {
    with_type!(all ins[0], T => Some(binary::<Add, T, T>()))
}
fn subtract(ins: &[DType], _: DType) -> Option<StepFn> {
    with_type!(all ins[0], T => Some(binary::<Subtract, T, T>()))
}
fn multiply(ins: &[DType], _: DType) -> Option<StepFn> {
    with_type!(all ins[0], T => Some(binary::<Multiply, T, T>()))
}
fn true_divide(ins: &[DType], _: DType) -> Option<StepFn> {
    with_type!(inexact ins[0], T => Some(binary::<Divide, T, T>()), else None)
}
fn negative(ins: &[DType], _: DType) -> Option<StepFn> {
    with_type!(all ins[0], T => Some(unary::<Negative, T, T>()))
}

pub static ADD: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; v.g(), v.g())),
    ..Op::new("add", 2, infer::same, Run::Elementwise(add))
};

pub static SUBTRACT: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; v.g(), -v.g())),
    ..Op::new("subtract", 2, infer::same_not_bool, Run::Elementwise(subtract))
};

pub static MULTIPLY: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; v.g() * v.x(1), v.g() * v.x(0))),
    saves: Saves { inputs: 0b11, outputs: 0 },
    ..Op::new("multiply", 2, infer::same, Run::Elementwise(multiply))
};

pub static TRUE_DIVIDE: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; v.g() / v.x(1), -(v.g() * v.x(0)) / (v.x(1) * v.x(1)))),
    saves: Saves { inputs: 0b11, outputs: 0 },
    ..Op::new("true_divide", 2, infer::float, Run::Elementwise(true_divide))
};

pub static NEGATIVE: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; -v.g())),
    ..Op::new("negative", 1, infer::same_not_bool, Run::Elementwise(negative))
};

pub const OPS: &[&Op] = &[&ADD, &SUBTRACT, &MULTIPLY, &TRUE_DIVIDE, &NEGATIVE];
