//! Comparisons, truth values and tests of numbers; all answer bool.

use crate::kernel::num::{Float, Num, Ordered};
use crate::kernel::step;
use crate::op::{Grad, InferArgs, Inferred, Op, Run};
use crate::promote::result_type;
use crate::{Bool, Complex32, Complex64, DType, Result, elementwise, formula, infer, with_type};

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

/// As [`infer::compare`], for numbers with an order.
fn infer_order(a: &InferArgs) -> Result<Inferred> {
    let found = infer::compare(a)?;
    infer::refuse_complex(a.op, found.ins[0])?;
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
    EQUAL "equal" 2 infer::compare, elementwise!(all: binary Equal -> Bool);
    NOT_EQUAL "not_equal" 2 infer::compare, elementwise!(all: binary NotEqual -> Bool);
    LESS "less" 2 infer_order, elementwise!(ordered: binary Less -> Bool);
    LESS_EQUAL "less_equal" 2 infer_order, elementwise!(ordered: binary LessEqual -> Bool);
    GREATER "greater" 2 infer_order, elementwise!(ordered: binary Greater -> Bool);
    GREATER_EQUAL "greater_equal" 2 infer_order, elementwise!(ordered: binary GreaterEqual -> Bool);
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
