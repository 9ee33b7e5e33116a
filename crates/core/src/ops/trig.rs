//! Circular and hyperbolic functions, their inverses, degrees and radians.

use crate::kernel::float::Float;
use crate::kernel::math::{self, TRIG_LIMIT};
use crate::kernel::step::{Formula1, Formula2};
use crate::op::{Grad, Op, Saves};
use crate::ops::arith::{self, select};
use crate::ops::compare;
use crate::ops::exp_log::SQRT;
use crate::{complex_formulas, elementwise, formula, grads, infer, real_or_complex};

/// A function of `math`, with the library's own far out.
macro_rules! circular {
    ($name:ident, $function:ident) => {
        struct $name;
        impl<W: Float> Formula1<W> for $name {
            type O = W;
            #[inline(always)]
            fn f(a: W) -> W {
                math::$function(a)
            }
            const HAS_RARE: bool = true;
            #[inline(always)]
            fn is_rare(a: W) -> bool {
                !(a.absolute() < W::of(TRIG_LIMIT))
            }
            fn rare(a: W) -> W {
                W::of(a.double().$function())
            }
        }
    };
}
circular!(Sin, sin);
circular!(Cos, cos);
circular!(Tan, tan);

struct Arctan2;
impl<W: Float> Formula2<W> for Arctan2 {
    type O = W;
    #[inline(always)]
    fn f(y: W, x: W) -> W {
        math::arctan2(y, x)
    }
    const HAS_RARE: bool = true;
    #[inline(always)]
    fn is_rare(y: W, x: W) -> bool {
        math::arctan2_is_rare(y, x)
    }
    fn rare(y: W, x: W) -> W {
        W::of(y.double().atan2(x.double()))
    }
}

formula!(Arcsin: Float, |a| math::arcsin(a));
formula!(Arccos: Float, |a| math::arccos(a));
formula!(Arctan: Float, |a| math::arctan(a));
formula!(Sinh: Float, |a| math::sinh(a));
formula!(Cosh: Float, |a| math::cosh(a));
formula!(Tanh: Float, |a| math::tanh(a));
formula!(Arcsinh: Float, |a| math::arcsinh(a));
formula!(Arccosh: Float, |a| math::arccosh(a));
formula!(Arctanh: Float, |a| math::arctanh(a));
formula!(Degrees: Float, |a| a.mul(W::of(180.0 / std::f64::consts::PI)));
formula!(Radians: Float, |a| a.mul(W::of(std::f64::consts::PI / 180.0)));

complex_formulas! {
    ComplexSin sin;
    ComplexCos cos;
    ComplexTan tan;
    ComplexArcsin arcsin;
    ComplexArccos arccos;
    ComplexArctan arctan;
    ComplexSinh sinh;
    ComplexCosh cosh;
    ComplexTanh tanh;
    ComplexArcsinh arcsinh;
    ComplexArccosh arccosh;
    ComplexArctanh arctanh;
}

const X: Saves = Saves { inputs: 0b1, outputs: 0 };
const Y: Saves = Saves { inputs: 0, outputs: 0b1 };

macro_rules! ops {
    ($($op:ident $name:literal $infer:ident, $run:expr, $saves:ident |$v:ident| $grad:expr;)*) => {
        $(
            pub static $op: Op = Op {
                grad: Grad::Vjp(|$v| grads!($v; $grad)),
                saves: $saves,
                ..Op::new($name, 1, infer::$infer, $run)
            };
        )*
        pub const OPS: &[&Op] = &[$(&$op,)* &ARCTAN2];
    };
}
ops! {
    SIN "sin" float, real_or_complex!(floats Sin, ComplexSin), X |v| v.g().times(v.x(0).unary(&COS));
    COS "cos" float, real_or_complex!(floats Cos, ComplexCos), X |v| -v.g().times(v.x(0).unary(&SIN));
    TAN "tan" float, real_or_complex!(floats Tan, ComplexTan), Y |v| v.g().times(v.y(0) * v.y(0) + 1.0);
    ARCSIN "arcsin" float, real_or_complex!(floats Arcsin, ComplexArcsin), X
        |v| v.g().over((1.0 - v.x(0) * v.x(0)).unary(&SQRT));
    ARCCOS "arccos" float, real_or_complex!(floats Arccos, ComplexArccos), X
        |v| -v.g().over((1.0 - v.x(0) * v.x(0)).unary(&SQRT));
    ARCTAN "arctan" float, real_or_complex!(floats Arctan, ComplexArctan), X
        |v| v.g().over(v.x(0) * v.x(0) + 1.0);
    SINH "sinh" float, real_or_complex!(floats Sinh, ComplexSinh), X |v| v.g().times(v.x(0).unary(&COSH));
    COSH "cosh" float, real_or_complex!(floats Cosh, ComplexCosh), X |v| v.g().times(v.x(0).unary(&SINH));
    TANH "tanh" float, real_or_complex!(floats Tanh, ComplexTanh), Y |v| v.g().times(1.0 - v.y(0) * v.y(0));
    ARCSINH "arcsinh" float, real_or_complex!(floats Arcsinh, ComplexArcsinh), X
        |v| v.g().over((v.x(0) * v.x(0) + 1.0).unary(&SQRT));
    ARCCOSH "arccosh" float, real_or_complex!(floats Arccosh, ComplexArccosh), X
        |v| v.g().over((v.x(0) * v.x(0) - 1.0).unary(&SQRT));
    ARCTANH "arctanh" float, real_or_complex!(floats Arctanh, ComplexArctanh), X
        |v| v.g().over(1.0 - v.x(0) * v.x(0));
    DEGREES "degrees" float_real, elementwise!(floats: unary Degrees), NOTHING
        |v| v.g() * (180.0 / std::f64::consts::PI);
    RADIANS "radians" float_real, elementwise!(floats: unary Radians), NOTHING
        |v| v.g() * (std::f64::consts::PI / 180.0);
}
const NOTHING: Saves = Saves { inputs: 0, outputs: 0 };

pub static ARCTAN2: Op = Op {
    grad: Grad::Vjp(|v| {
        // In steps that neither overflow nor underflow; 0 at the origin, which has no angle, and far out.
        let (y, x) = (v.x(0), v.x(1));
        let r = y.binary(&arith::HYPOT, x);
        let none = r.binary(&compare::EQUAL, 0i64).binary(&compare::LOGICAL_OR, r.unary(&compare::ISINF));
        grads!(v; v.g().times(select(none, 0.0, x / r / r)), -v.g().times(select(none, 0.0, y / r / r)))
    }),
    saves: Saves { inputs: 0b11, outputs: 0 },
    ..Op::new("arctan2", 2, infer::float_real, elementwise!(floats: binary Arctan2))
};
