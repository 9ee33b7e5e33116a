//! Arithmetic: add, subtract, multiply, divide, negative, ...

use crate::op::{Grad, Op, Run, Saves};
use crate::{grads, infer};

pub static ADD: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; v.g(), v.g())),
    ..Op::new("add", 2, infer::same, Run::Elementwise(|_, _| None))
};

pub static SUBTRACT: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; v.g(), -v.g())),
    ..Op::new("subtract", 2, infer::same_not_bool, Run::Elementwise(|_, _| None))
};

pub static MULTIPLY: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; v.g() * v.x(1), v.g() * v.x(0))),
    saves: Saves { inputs: 0b11, outputs: 0 },
    ..Op::new("multiply", 2, infer::same, Run::Elementwise(|_, _| None))
};

pub static TRUE_DIVIDE: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; v.g() / v.x(1), -(v.g() * v.x(0)) / (v.x(1) * v.x(1)))),
    saves: Saves { inputs: 0b11, outputs: 0 },
    ..Op::new("true_divide", 2, infer::float, Run::Elementwise(|_, _| None))
};

pub static NEGATIVE: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; -v.g())),
    ..Op::new("negative", 1, infer::same_not_bool, Run::Elementwise(|_, _| None))
};

pub const OPS: &[&Op] = &[&ADD, &SUBTRACT, &MULTIPLY, &TRUE_DIVIDE, &NEGATIVE];
