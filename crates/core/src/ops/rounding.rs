//! Rounding to whole numbers. Integers are returned as they are.

use crate::kernel::num::Float;
use crate::kernel::step;
use crate::op::{Grad, Op, Run};
use crate::{formula, infer, with_type};

formula!(Floor: Float, |a| a.floor());
formula!(Ceil: Float, |a| a.ceil());
formula!(Trunc: Float, |a| a.trunc());
formula!(Rint: Float, |a| a.rint());

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
        pub const OPS: &[&Op] = &[$(&$op),*];
    };
}
ops! {
    FLOOR "floor" Floor;
    CEIL "ceil" Ceil;
    TRUNC "trunc" Trunc;
    /// Toward zero: NumPy's other name for trunc.
    FIX "fix" Trunc;
    /// Halves go to the even neighbour.
    RINT "rint" Rint;
}
