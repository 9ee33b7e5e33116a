//! What gradient rules multiply and divide by: an exact zero stays zero, whatever the factor. So the branch that a
//! `where` did not take adds nothing to a gradient, also where its own slope is infinite or not a number.

use super::{XY, select};
use crate::kernel::num::{Inexact, Num};
use crate::op::{Grad, Op, Saves};
use crate::ops::compare;
use crate::rules::{IntoOperand, Sym};
use crate::{elementwise, formula, grads, infer};

formula!(Scale: Num, |g, d| {
    let product = g.mul(d);
    if g == W::ZERO { g } else { product }
});
formula!(Unscale: Inexact, |g, d| {
    let quotient = g.div(d);
    if g == W::ZERO { g } else { quotient }
});

/// What flows to the factor of g: nothing where g is 0, and the result with it, whatever the factor is.
fn beside<'r>(g: Sym<'r>, flow: Sym<'r>) -> Sym<'r> {
    select(g.binary(&compare::EQUAL, 0i64), 0.0, flow)
}

/// `g * d`, and 0 where g is 0: a constant zero there, in its own gradient too.
pub static SCALE: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; v.g().times(v.x(1)), beside(v.x(0), v.g().times(v.x(0))))),
    saves: XY,
    cross: 0b11,
    ..Op::new("_scale", 2, infer::same, elementwise!(all: binary Scale))
};

/// `g / d`, and 0 where g is 0.
pub static UNSCALE: Op = Op {
    grad: Grad::Vjp(|v| {
        let d = v.x(1);
        grads!(v; v.g().over(d), -beside(v.x(0), v.g().over(d).over(d).times(v.x(0))))
    }),
    saves: Saves { inputs: 0b11, outputs: 0 },
    cross: 0b01,
    ..Op::new("_unscale", 2, infer::float, elementwise!(inexact: binary Unscale))
};

impl<'r> Sym<'r> {
    /// This gradient times a slope: 0 where the gradient is, even if the slope is infinite or not a number.
    pub fn times(self, slope: impl IntoOperand) -> Sym<'r> {
        self.binary(&SCALE, slope)
    }

    /// This gradient divided by `d`, with the same exception.
    pub fn over(self, d: impl IntoOperand) -> Sym<'r> {
        self.binary(&UNSCALE, d)
    }
}
