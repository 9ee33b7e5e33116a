//! Arithmetic: add, divide, remainders, powers, extremes, where.

use crate::kernel::float::Fused;
use crate::kernel::num::{Divide as Division, Float, Inexact, Num, Ordered};
use crate::kernel::step::{self, Formula3};
use crate::op::{Grad, InferArgs, Inferred, Meta, Op, Run, Saves};
use crate::ops::{compare, rounding};
use crate::promote::{result_type, result_type_unchecked};
use crate::rules::{IntoOperand, Sym};
use crate::{
    Bool, Complex32, Complex64, DType, Result, complex_formulas, elementwise, formula, grads, infer,
    real_or_complex,
};
use smallvec::smallvec;

mod factor;
mod pairs;
mod power;

pub use factor::{SCALE, UNSCALE};
pub use pairs::pair;
pub use power::{INTEGER_POWER, POWER};

formula!(Add: Num, |a, b| a.add(b));
formula!(Subtract: Num, |a, b| a.sub(b));
formula!(Multiply: Num, |a, b| a.mul(b));
formula!(Quotient: Inexact, |a, b| a.div(b));
formula!(FloorDivide: Division, |a, b| a.floor_divide(b));
formula!(Mod: Division, |a, b| a.modulo(b));
formula!(Fmod: Division, |a, b| a.fmod(b));
formula!(Negative: Num, |a| a.neg());
formula!(Absolute: Ordered, |a| a.absolute());
formula!(Sign: Ordered, |a| a.sign());
formula!(Square: Num, |a| a.mul(a));
formula!(Maximum: Ordered, |a, b| a.maximum(b));
formula!(Minimum: Ordered, |a, b| a.minimum(b));
formula!(Fmax: Ordered, |a, b| if a.lt(b) | a.is_nan() { b } else { a });
formula!(Fmin: Ordered, |a, b| if b.lt(a) | a.is_nan() { b } else { a });
formula!(Copysign: Float, |a, b| a.with_sign_of(b));
formula!(Hypot: Float, |a, b| W::of(a.double().hypot(b.double())));

/// The operands that a rule reads, by name.
const X: Saves = Saves { inputs: 0b1, outputs: 0 };
const XY: Saves = Saves { inputs: 0b11, outputs: 0 };

pub static ADD: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; v.g(), v.g())),
    ..Op::new("add", 2, infer::same, elementwise!(all: binary Add))
};

pub static SUBTRACT: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; v.g(), -v.g())),
    ..Op::new("subtract", 2, infer::same_not_bool, elementwise!(all: binary Subtract))
};

pub static MULTIPLY: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; v.g().times(v.x(1)), v.g().times(v.x(0)))),
    saves: XY,
    cross: 0b11,
    ..Op::new("multiply", 2, infer::same, elementwise!(all: binary Multiply))
};

/// Integers of any size divide as the default float: NumPy has no smaller loop for them.
fn infer_true_divide(a: &InferArgs) -> Result<Inferred> {
    let dtype = result_type_unchecked(a.ins, a.mode);
    let dtype = if dtype.is_inexact() { dtype } else { a.mode.default_float() };
    infer::elementwise(a, dtype, dtype)
}

pub static TRUE_DIVIDE: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; v.g().over(v.x(1)), -v.g().over(v.x(1)).times(v.x(0) / v.x(1)))),
    saves: XY,
    cross: 0b01,
    ..Op::new("true_divide", 2, infer_true_divide, elementwise!(inexact: binary Quotient))
};

/// As [`infer::same_real`]; two bools divide as int8, as NumPy's.
fn infer_division(a: &InferArgs) -> Result<Inferred> {
    let dtype = result_type(a.op, a.ins, a.mode)?;
    infer::refuse_complex(a.op, dtype)?;
    let dtype = if dtype == DType::Bool { DType::I8 } else { dtype };
    infer::elementwise(a, dtype, dtype)
}

pub static FLOOR_DIVIDE: Op = Op {
    grad: Grad::Zero,
    ..Op::new("floor_divide", 2, infer_division, elementwise!(reals: binary FloorDivide))
};

/// Python's remainder: it has the divisor's sign.
pub static MOD: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; v.g(), -v.g().times(v.x(0).binary(&FLOOR_DIVIDE, v.x(1))))),
    saves: XY,
    ..Op::new("mod", 2, infer_division, elementwise!(reals: binary Mod))
};

/// C's remainder: it has the dividend's sign.
pub static FMOD: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; v.g(), -v.g().times((v.x(0) / v.x(1)).unary(&rounding::TRUNC)))),
    saves: XY,
    ..Op::new("fmod", 2, infer_division, elementwise!(reals: binary Fmod))
};

pub static NEGATIVE: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; -v.g())),
    ..Op::new("negative", 1, infer::same_not_bool, elementwise!(all: unary Negative))
};

pub static POSITIVE: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; v.g())),
    ..Op::new("positive", 1, infer::same_not_bool, Run::Elementwise(|ins, out| Some(step::cast(ins[0], out))))
};

/// The operand itself in new memory: what copies and assignments are made of.
pub static COPY: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; v.g())),
    ..Op::new("copy", 1, infer::same, Run::Elementwise(|ins, out| Some(step::cast(ins[0], out))))
};

/// The modulus of a complex number is real.
fn infer_absolute(a: &InferArgs) -> Result<Inferred> {
    let dtype = result_type(a.op, a.ins, a.mode)?;
    infer::elementwise(a, dtype, dtype.real())
}

struct Modulus;
impl step::Formula1<Complex32> for Modulus {
    type O = f32;
    #[inline(always)]
    fn f(a: Complex32) -> f32 {
        a.norm()
    }
}
impl step::Formula1<Complex64> for Modulus {
    type O = f64;
    #[inline(always)]
    fn f(a: Complex64) -> f64 {
        a.norm()
    }
}

pub static ABSOLUTE: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; v.g().times(v.x(0).unary(&SIGN)))),
    saves: X,
    ..Op::new(
        "absolute",
        1,
        infer_absolute,
        Run::Elementwise(|ins, _| match ins[0] {
            DType::C64 => Some(step::unary_to::<Modulus, Complex32, f32>()),
            DType::C128 => Some(step::unary_to::<Modulus, Complex64, f64>()),
            other => crate::with_type!(ordered other, T => Some(step::unary::<Absolute, T, T>()), else None),
        }),
    )
};

/// [`ABSOLUTE`] in floating point.
pub static FABS: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; v.g().times(v.x(0).unary(&SIGN)))),
    saves: X,
    ..Op::new("fabs", 1, infer::float_real, elementwise!(floats: unary Absolute))
};

complex_formulas! {
    ComplexSign sign;
}

/// -1, 0 or 1; z / |z| of a complex number.
pub static SIGN: Op = Op {
    grad: Grad::RealZero("the sign of a complex number is not locally constant, and has no rule"),
    ..Op::new("sign", 1, infer::same_not_bool, real_or_complex!(reals Sign, ComplexSign))
};

struct Conjugate;
impl step::Formula1<Complex32> for Conjugate {
    type O = Complex32;
    #[inline(always)]
    fn f(a: Complex32) -> Complex32 {
        a.conj()
    }
}
impl step::Formula1<Complex64> for Conjugate {
    type O = Complex64;
    #[inline(always)]
    fn f(a: Complex64) -> Complex64 {
        a.conj()
    }
}

pub static CONJUGATE: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; v.g().unary(&CONJUGATE))),
    ..Op::new(
        "conjugate",
        1,
        infer::same_bool_as_int8,
        Run::Elementwise(|ins, out| match ins[0] {
            DType::C64 => Some(step::unary::<Conjugate, Complex32, Complex32>()),
            DType::C128 => Some(step::unary::<Conjugate, Complex64, Complex64>()),
            other => Some(step::cast(other, out)),
        }),
    )
};

struct Reciprocal;

macro_rules! reciprocal {
    ($($t:ty: |$x:ident| $e:expr;)*) => { $(
        impl step::Formula1<$t> for Reciprocal {
            type O = $t;
            #[inline(always)]
            fn f($x: $t) -> $t { $e }
        }
    )* };
}
reciprocal! {
    f32: |x| 1.0 / x;
    f64: |x| 1.0 / x;
    Fused<f32>: |x| Fused(1.0 / x.0);
    Fused<f64>: |x| Fused(1.0 / x.0);
    Complex32: |z| Complex32::ONE.div(z);
    Complex64: |z| Complex64::ONE.div(z);
    i8: |x| if x == 0 { 0 } else { 1 / x };
    i16: |x| if x == 0 { 0 } else { 1 / x };
    i32: |x| if x == 0 { i32::MIN } else { 1 / x };
    i64: |x| if x == 0 { i64::MIN } else { 1 / x };
    u8: |x| (x == 1) as u8;
    u16: |x| (x == 1) as u16;
    u32: |x| (x == 1) as u32;
    u64: |x| (x == 1) as u64;
}

/// 1 / x; of integers truncated, and of 0 what NumPy gives: the least integer, or 0 for the small and unsigned.
pub static RECIPROCAL: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; -v.g().times(v.y(0) * v.y(0)))),
    saves: Saves { inputs: 0, outputs: 0b1 },
    ..Op::new("reciprocal", 1, infer::same_bool_as_int8, elementwise!(numbers: unary Reciprocal))
};

pub static SQUARE: Op = Op {
    grad: Grad::Vjp(|v| grads!(v; v.g().times(v.x(0) * 2.0))),
    saves: X,
    ..Op::new("square", 1, infer::same_bool_as_int8, elementwise!(numbers: unary Square))
};

/// On ties the first operand gets the gradient.
macro_rules! extreme {
    ($($(#[$meta:meta])* $op:ident $name:literal $formula:ident $first:path, $second:path;)*) => { $(
        $(#[$meta])*
        pub static $op: Op = Op {
            grad: Grad::Vjp(|v| grads!(v;
                select(v.x(0).binary(&$first, v.x(1)), v.g(), 0.0),
                select(v.x(0).binary(&$second, v.x(1)), v.g(), 0.0))),
            saves: XY,
            ..Op::new($name, 2, infer::same_real, elementwise!(ordered: binary $formula))
        };
    )* };
}
extreme! {
    /// The greater operand; NaN where either is.
    MAXIMUM "maximum" Maximum compare::GREATER_EQUAL, compare::LESS;
    /// The lesser operand; NaN where either is.
    MINIMUM "minimum" Minimum compare::LESS_EQUAL, compare::GREATER;
    /// The greater operand; NaN only where both are.
    FMAX "fmax" Fmax compare::GREATER_EQUAL, compare::LESS;
    /// The lesser operand; NaN only where both are.
    FMIN "fmin" Fmin compare::LESS_EQUAL, compare::GREATER;
}

pub static COPYSIGN: Op = Op {
    grad: Grad::Vjp(|v| {
        let mut out = grads!(v; v.g().times(v.x(0).unary(&SIGN) * v.y(0).unary(&SIGN)));
        out.push(None);
        out
    }),
    saves: Saves { inputs: 0b1, outputs: 0b1 },
    ..Op::new("copysign", 2, infer::float_real, elementwise!(floats: binary Copysign))
};

pub static HYPOT: Op = Op {
    grad: Grad::Vjp(|v| {
        // 0 at the tip of the cone.
        let at_tip = v.y(0).binary(&compare::EQUAL, 0i64);
        grads!(v;
            v.g().times(select(at_tip, 0.0, v.x(0) / v.y(0))),
            v.g().times(select(at_tip, 0.0, v.x(1) / v.y(0))))
    }),
    saves: Saves { inputs: 0b11, outputs: 0b1 },
    ..Op::new("hypot", 2, infer::float_real, elementwise!(floats: binary Hypot))
};

struct Clip;
impl<W: Ordered> Formula3<W, W> for Clip {
    type O = W;
    #[inline(always)]
    fn f(a: W, low: W, high: W) -> W {
        a.maximum(low).minimum(high)
    }
}

/// `clip(a, a_min, a_max)`; at the bounds the gradient is 1.
pub static CLIP: Op = Op {
    grad: Grad::Vjp(|v| {
        let (a, low, high) = (v.x(0), v.x(1), v.x(2));
        let (under, over) = (a.binary(&compare::LESS, low), a.binary(&compare::GREATER, high));
        grads!(v;
            select(under.binary(&compare::LOGICAL_OR, over), 0.0, v.g()),
            select(under.binary(&compare::LOGICAL_AND, low.binary(&compare::LESS_EQUAL, high)), v.g(), 0.0),
            select(over.binary(&compare::LOGICAL_OR, low.binary(&compare::GREATER, high)), v.g(), 0.0))
    }),
    saves: Saves { inputs: 0b111, outputs: 0 },
    ..Op::new("clip", 3, infer::same_real, elementwise!(ordered: ternary Clip))
};

struct Where;
impl<W: Copy> Formula3<Bool, W> for Where {
    type O = W;
    #[inline(always)]
    fn f(condition: Bool, x: W, y: W) -> W {
        if condition.get() { x } else { y }
    }
}

fn infer_where(a: &InferArgs) -> Result<Inferred> {
    let dtype = result_type(a.op, &a.ins[1..], a.mode)?;
    let shape = infer::broadcast_shape(a)?;
    Ok(Inferred { ins: smallvec![DType::Bool, dtype, dtype], outs: smallvec![Meta::new(shape, dtype)] })
}

/// `where(condition, x, y)`. The gradient of the branch not taken is 0 whatever its value.
pub static WHERE: Op = Op {
    grad: Grad::Vjp(|v| {
        // The condition is a truth value: nothing flows to it.
        smallvec![
            None,
            v.needs(1).then(|| select(v.x(0), v.g(), 0.0)),
            v.needs(2).then(|| select(v.x(0), 0.0, v.g())),
        ]
    }),
    saves: X,
    ..Op::new("where", 3, infer_where, elementwise!(all: select Where))
};

/// `where(condition, x, y)` in a formula.
pub fn select<'r>(condition: Sym<'r>, x: impl IntoOperand, y: impl IntoOperand) -> Sym<'r> {
    condition.apply(&WHERE, crate::attrs::Attrs::NONE, &[x.operand(), y.operand()])
}

pub const OPS: &[&Op] = &[
    &ADD,
    &SUBTRACT,
    &MULTIPLY,
    &TRUE_DIVIDE,
    &FLOOR_DIVIDE,
    &MOD,
    &FMOD,
    &POWER,
    &INTEGER_POWER,
    &NEGATIVE,
    &POSITIVE,
    &COPY,
    &ABSOLUTE,
    &FABS,
    &SIGN,
    &CONJUGATE,
    &RECIPROCAL,
    &SQUARE,
    &MAXIMUM,
    &MINIMUM,
    &FMAX,
    &FMIN,
    &COPYSIGN,
    &HYPOT,
    &CLIP,
    &WHERE,
    &SCALE,
    &UNSCALE,
];
