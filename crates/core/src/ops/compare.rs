//! Comparisons, truth values and tests of numbers; all answer bool.

use crate::kernel::num::{Float, Num, Ordered};
use crate::kernel::step::{self, Formula2, FormulaOfTwo};
use crate::op::{Grad, InferArgs, Inferred, Op, Run};
use crate::promote::result_type;
use crate::{Bool, Complex32, Complex64, DType, Result, elementwise, formula, infer, with_type};
use std::marker::PhantomData;

formula!(Equal: Num, |a, b| -> Bool { Bool::new(a == b) });
formula!(NotEqual: Num, |a, b| -> Bool { Bool::new(a != b) });
formula!(Less: Ordered, |a, b| -> Bool { Bool::new(a.lt(b)) });
formula!(LessEqual: Ordered, |a, b| -> Bool { Bool::new(a.lt(b) | (a == b)) });
formula!(Greater: Ordered, |a, b| -> Bool { Bool::new(b.lt(a)) });
formula!(GreaterEqual: Ordered, |a, b| -> Bool { Bool::new(b.lt(a) | (a == b)) });
formula!(And: Num, |a, b| -> Bool { Bool::new((a != W::ZERO) & (b != W::ZERO)) });
formula!(Or: Num, |a, b| -> Bool { Bool::new((a != W::ZERO) | (b != W::ZERO)) });
formula!(Xor: Num, |a, b| -> Bool { Bool::new((a != W::ZERO) ^ (b != W::ZERO)) });
formula!(Not: Num, |a| -> Bool { Bool::new(a == W::ZERO) });
formula!(Unequal: Num, |a| -> Bool { Bool::new(a != a) });
formula!(IsInf: Float, |a| -> Bool { Bool::new(a.absolute() == W::INFINITY) });
formula!(IsFinite: Float, |a| -> Bool { Bool::new(a.absolute() < W::INFINITY) });
formula!(IsNegative: Ordered, |a| -> Bool { Bool::new(a.lt(W::ZERO)) });
formula!(SignBit: Float, |a| -> Bool { Bool::new(a.is_negative()) });
formula!(Always: Num, |_a| -> Bool { Bool::new(true) });
formula!(Never: Num, |_a| -> Bool { Bool::new(false) });

/// A comparison of operands of two types (see [`infer::compare`]).
struct Mixed<F>(PhantomData<F>);

impl<F> FormulaOfTwo<i64, u64> for Mixed<F>
where
    F: Formula2<i64, O = Bool> + Formula2<u64, O = Bool>,
{
    type O = Bool;
    #[inline(always)]
    fn f(a: i64, b: u64) -> Bool {
        if a < 0 { F::f(-1i64, 0i64) } else { F::f(a as u64, b) }
    }
}
impl<F> FormulaOfTwo<u64, i64> for Mixed<F>
where
    F: Formula2<i64, O = Bool> + Formula2<u64, O = Bool>,
{
    type O = Bool;
    #[inline(always)]
    fn f(a: u64, b: i64) -> Bool {
        if b < 0 { F::f(0i64, -1i64) } else { F::f(a, b as u64) }
    }
}
impl<F: Formula2<f64, O = Bool>> FormulaOfTwo<Bool, f64> for Mixed<F> {
    type O = Bool;
    #[inline(always)]
    fn f(_: Bool, b: f64) -> Bool {
        F::f(0.0, b)
    }
}
impl<F: Formula2<f64, O = Bool>> FormulaOfTwo<f64, Bool> for Mixed<F> {
    type O = Bool;
    #[inline(always)]
    fn f(a: f64, _: Bool) -> Bool {
        F::f(a, 0.0)
    }
}

/// How a comparison runs: a step per dtype, and those of [`Mixed`] operands.
macro_rules! comparison {
    ($set:ident $f:ident) => {
        Run::Elementwise(|ins, _| match (ins[0], ins[1]) {
            (DType::I64, DType::U64) => Some(step::mixed::<Mixed<$f>, i64, u64, Bool>()),
            (DType::U64, DType::I64) => Some(step::mixed::<Mixed<$f>, u64, i64, Bool>()),
            (DType::Bool, DType::F64) => Some(step::mixed::<Mixed<$f>, Bool, f64, Bool>()),
            (DType::F64, DType::Bool) => Some(step::mixed::<Mixed<$f>, f64, Bool, Bool>()),
            (d, _) => with_type!($set d, T => Some(step::binary::<$f, T, Bool>()), else None),
        })
    };
}

/// As [`infer::compare`], for numbers with an order.
fn infer_order(a: &InferArgs) -> Result<Inferred> {
    let found = infer::compare(a)?;
    found.ins.iter().try_for_each(|&dtype| infer::refuse_complex(a.op, dtype))?;
    Ok(found)
}

fn infer_real_test(a: &InferArgs) -> Result<Inferred> {
    infer::refuse_complex(a.op, result_type(a.op, a.ins, a.mode)?)?;
    infer::predicate(a)
}

macro_rules! ops {
    ($($op:ident $name:literal $arity:literal $infer:path, $run:expr;)*) => { $(
        pub static $op: Op = Op { grad: Grad::Zero, ..Op::new($name, $arity, $infer, $run) };
    )* };
}

macro_rules! complex_test {
    ($name:ident, |$z:ident| $e:expr) => {
        struct $name;
        impl step::Formula1<Complex32> for $name {
            type O = Bool;
            #[inline(always)]
            fn f($z: Complex32) -> Bool {
                Bool::new($e)
            }
        }
        impl step::Formula1<Complex64> for $name {
            type O = Bool;
            #[inline(always)]
            fn f($z: Complex64) -> Bool {
                Bool::new($e)
            }
        }
    };
}
complex_test!(ComplexInf, |z| z.re.is_infinite() || z.im.is_infinite());
complex_test!(ComplexFinite, |z| z.re.is_finite() && z.im.is_finite());

/// A test that floats, complex numbers and whole numbers have each a formula for.
macro_rules! test {
    ($float:ident, $complex:ident, $whole:ident) => {
        Run::Elementwise(|ins, _| match ins[0] {
            DType::C64 => Some(step::unary::<$complex, Complex32, Bool>()),
            DType::C128 => Some(step::unary::<$complex, Complex64, Bool>()),
            d if d.is_float() => with_type!(floats d, T => Some(step::unary::<$float, T, Bool>()), else None),
            d => with_type!(bits d, T => Some(step::unary::<$whole, T, Bool>()), else None),
        })
    };
}

ops! {
    EQUAL "equal" 2 infer::compare, comparison!(all Equal);
    NOT_EQUAL "not_equal" 2 infer::compare, comparison!(all NotEqual);
    LESS "less" 2 infer_order, comparison!(ordered Less);
    LESS_EQUAL "less_equal" 2 infer_order, comparison!(ordered LessEqual);
    GREATER "greater" 2 infer_order, comparison!(ordered Greater);
    GREATER_EQUAL "greater_equal" 2 infer_order, comparison!(ordered GreaterEqual);
    LOGICAL_AND "logical_and" 2 infer::predicate, elementwise!(all: binary And -> Bool);
    LOGICAL_OR "logical_or" 2 infer::predicate, elementwise!(all: binary Or -> Bool);
    LOGICAL_XOR "logical_xor" 2 infer::predicate, elementwise!(all: binary Xor -> Bool);
    LOGICAL_NOT "logical_not" 1 infer::predicate, elementwise!(all: unary Not -> Bool);
    ISNAN "isnan" 1 infer::predicate, elementwise!(all: unary Unequal -> Bool);
    ISINF "isinf" 1 infer::predicate, test!(IsInf, ComplexInf, Never);
    ISFINITE "isfinite" 1 infer::predicate, test!(IsFinite, ComplexFinite, Always);
    SIGNBIT "signbit" 1 infer_real_test, Run::Elementwise(|ins, _| match ins[0] {
        d if d.is_float() => with_type!(floats d, T => Some(step::unary::<SignBit, T, Bool>()), else None),
        d => with_type!(bits d, T => Some(step::unary::<IsNegative, T, Bool>()), else None),
    });
}

pub const OPS: &[&Op] = &[
    &EQUAL,
    &NOT_EQUAL,
    &LESS,
    &LESS_EQUAL,
    &GREATER,
    &GREATER_EQUAL,
    &LOGICAL_AND,
    &LOGICAL_OR,
    &LOGICAL_XOR,
    &LOGICAL_NOT,
    &ISNAN,
    &ISINF,
    &ISFINITE,
    &SIGNBIT,
];
