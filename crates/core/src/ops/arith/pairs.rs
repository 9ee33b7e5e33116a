//! Two steps of arithmetic as one, whose result between them stays in a register. Each rounds on its own, as alone.

use super::{Add, Multiply, Subtract};
use crate::kernel::step::{Formula2, Formula3, binary, ternary};
use crate::op::StepFn;
use std::marker::PhantomData;

/// `(a F b) G c`.
struct Before<F, G>(PhantomData<(F, G)>);
/// `c G (a F b)`.
struct Behind<F, G>(PhantomData<(F, G)>);

impl<W: Copy, F: Formula2<W, O = W>, G: Formula2<W, O = W>> Formula3<W, W> for Before<F, G> {
    type O = W;
    #[inline(always)]
    fn f(a: W, b: W, c: W) -> W {
        G::f(F::f(a, b), c)
    }
}

impl<W: Copy, F: Formula2<W, O = W>, G: Formula2<W, O = W>> Formula3<W, W> for Behind<F, G> {
    type O = W;
    #[inline(always)]
    fn f(a: W, b: W, c: W) -> W {
        G::f(c, F::f(a, b))
    }
}

/// The step on `a`, `b`, `c` that does what `first` on `a`, `b` does and then `second` on its result and `c`, where the
/// result is operand number `place`; none where there is no such step.
///
/// Steps are known by their addresses, which two may share only if they are the same code.
pub fn pair(first: StepFn, second: StepFn, place: usize) -> Option<StepFn> {
    macro_rules! row {
        ($t:ty, $f:ty: $($g:ty),*) => {
            [$([ternary::<Before<$f, $g>, $t, $t> as fn() -> StepFn, ternary::<Behind<$f, $g>, $t, $t>]),*]
        };
    }
    macro_rules! of {
        ($t:ty) => {{
            let alone = [binary::<Add, $t, $t>(), binary::<Subtract, $t, $t>(), binary::<Multiply, $t, $t>()];
            let find = |f: StepFn| alone.iter().position(|&known| std::ptr::fn_addr_eq(known, f));
            if let (Some(i), Some(j)) = (find(first), find(second)) {
                let steps = [
                    row!($t, Add: Add, Subtract, Multiply),
                    row!($t, Subtract: Add, Subtract, Multiply),
                    row!($t, Multiply: Add, Subtract, Multiply),
                ];
                return Some(steps[i][j][place]());
            }
        }};
    }
    of!(f32);
    of!(f64);
    None
}
