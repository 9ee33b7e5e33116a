//! Rounding to whole numbers. Integers are returned as they are, but by rint, whose result is floating.

use crate::kernel::float::Float;
use crate::kernel::step;
use crate::op::{Grad, Op, Run};
use crate::{complex_formulas, formula, infer, real_or_complex, with_type};

formula!(Floor: Float, |a| a.floor());
formula!(Ceil: Float, |a| a.ceil());
formula!(Trunc: Float, |a| a.trunc());
formula!(Rint: Float, |a| a.rint());
complex_formulas! {
    ComplexRint rint;
}

macro_rules! ops {
    ($($(#[$meta:meta])* $op:ident $name:literal $formula:ident;)*) => {
        $(
            $(#[$meta])*
            pub static $op: Op = Op {
                grad: Grad::Zero,
                ..Op::new($name, 1, infer::same_real, Run::Elementwise(|ins, out| {
                    let whole = Some(step::cast(ins[0], out));
                    with_type!(floats ins[0], T => Some(step::unary::<$formula, T, T>()), else whole)
                }))
            };
        )*
        pub const OPS: &[&Op] = &[$(&$op,)* &RINT];
    };
}
ops! {
    FLOOR "floor" Floor;
    CEIL "ceil" Ceil;
    TRUNC "trunc" Trunc;
    /// Toward zero: NumPy's other name for trunc.
    FIX "fix" Trunc;
}

/// Halves go to the even neighbour.
pub static RINT: Op =
    Op { grad: Grad::Zero, ..Op::new("rint", 1, infer::float, real_or_complex!(floats Rint, ComplexRint)) };
