//! Turns the formula of a reduction into a [`Fold`]: lanes, trees and loops are here, formulas in `ops`.

use crate::isa_versions;
use crate::kernel::lane::Lane;
use crate::kernel::reduce::Fold;

/// Accumulators that a row is folded into at once, the same on every instruction set.
const LANES: usize = 32;

/// Rows no longer than this are folded one element after the other: lanes would cost more than they save.
const SHORT: usize = 8;

/// The formula of a reduction over elements of `A` with results of `R`.
pub trait Reduction<A: Lane, R: Lane> {
    type Acc: Copy;
    const IDENTITY: Self::Acc;
    /// The accumulator of one element at `position` along the reduced axes.
    fn lift(x: A::Wide, position: usize) -> Self::Acc;
    /// `b` comes later in the reduced order than `a`.
    fn combine(a: Self::Acc, b: Self::Acc) -> Self::Acc;
    fn result(acc: Self::Acc) -> R::Wide;
}

/// # Safety
/// As [`Fold::inner`].
#[inline(always)]
unsafe fn inner_body<F: Reduction<A, R>, A: Lane, R: Lane>(
    acc: *mut u8,
    x: *const u8,
    n: usize,
    position: usize,
) {
    let (acc, x) = (acc.cast::<F::Acc>(), x.cast::<A>());
    if n <= SHORT {
        // SAFETY: `n` elements are readable from `x`; `acc` is one accumulator (contract).
        unsafe {
            let mut sum = *acc;
            for k in 0..n {
                sum = F::combine(sum, F::lift((*x.add(k)).widen(), position + k));
            }
            *acc = sum;
        }
        return;
    }
    let mut lanes = [F::IDENTITY; LANES];
    let whole = n / LANES * LANES;
    // SAFETY: `n` elements are readable from `x`; `acc` is one accumulator (contract).
    unsafe {
        let mut i = 0;
        while i < whole {
            for k in 0..LANES {
                lanes[k] = F::combine(lanes[k], F::lift((*x.add(i + k)).widen(), position + i + k));
            }
            i += LANES;
        }
        for k in 0..n - whole {
            lanes[k] = F::combine(lanes[k], F::lift((*x.add(whole + k)).widen(), position + whole + k));
        }
        let mut width = LANES / 2;
        while width > 0 {
            for k in 0..width {
                lanes[k] = F::combine(lanes[k], lanes[k + width]);
            }
            width /= 2;
        }
        *acc = F::combine(*acc, lanes[0]);
    }
}

/// # Safety
/// As [`Fold::outer`].
#[inline(always)]
unsafe fn outer_body<F: Reduction<A, R>, A: Lane, R: Lane>(
    acc: *mut u8,
    x: *const u8,
    n: usize,
    position: usize,
) {
    // SAFETY: `n` accumulators and elements, which do not overlap (contract).
    let (acc, x) = unsafe {
        (
            std::slice::from_raw_parts_mut(acc.cast::<F::Acc>(), n),
            std::slice::from_raw_parts(x.cast::<A>(), n),
        )
    };
    fold_rows::<F, A, R>(acc, x, position);
}

#[inline(always)]
fn fold_rows<F: Reduction<A, R>, A: Lane, R: Lane>(acc: &mut [F::Acc], x: &[A], position: usize) {
    for (acc, x) in acc.iter_mut().zip(x) {
        *acc = F::combine(*acc, F::lift(x.widen(), position));
    }
}

isa_versions! {
    fn inner_of -> unsafe fn(*mut u8, *const u8, usize, usize) = inner_body;
    generics [F: Reduction<A, R>, A: Lane, R: Lane] names [F, A, R]
    fast A::FAST; args (acc: *mut u8, x: *const u8, n: usize, position: usize)
}

isa_versions! {
    fn outer_of -> unsafe fn(*mut u8, *const u8, usize, usize) = outer_body;
    generics [F: Reduction<A, R>, A: Lane, R: Lane] names [F, A, R]
    fast A::FAST; args (acc: *mut u8, x: *const u8, n: usize, position: usize)
}

/// # Safety
/// As [`Fold::init`].
unsafe fn init<F: Reduction<A, R>, A: Lane, R: Lane>(acc: *mut u8, n: usize) {
    for i in 0..n {
        // SAFETY: `n` accumulators (contract).
        unsafe { *acc.cast::<F::Acc>().add(i) = F::IDENTITY }
    }
}

/// # Safety
/// As [`Fold::combine`].
unsafe fn combine<F: Reduction<A, R>, A: Lane, R: Lane>(acc: *mut u8, other: *const u8, n: usize) {
    let (acc, other) = (acc.cast::<F::Acc>(), other.cast::<F::Acc>());
    for i in 0..n {
        // SAFETY: `n` accumulators each (contract).
        unsafe { *acc.add(i) = F::combine(*acc.add(i), *other.add(i)) }
    }
}

/// # Safety
/// As [`Fold::finish`].
unsafe fn finish<F: Reduction<A, R>, A: Lane, R: Lane>(acc: *const u8, out: *mut u8, n: usize) {
    for i in 0..n {
        // SAFETY: `n` accumulators and results (contract).
        unsafe { *out.cast::<R>().add(i) = R::narrow(F::result(*acc.cast::<F::Acc>().add(i))) }
    }
}

/// The fold of a reduction.
pub fn of<F: Reduction<A, R>, A: Lane, R: Lane>() -> Fold {
    const { assert!(align_of::<F::Acc>() <= 16 && size_of::<F::Acc>() % align_of::<F::Acc>() == 0) }
    Fold {
        size: size_of::<F::Acc>(),
        init: init::<F, A, R>,
        inner: inner_of::<F, A, R>(),
        outer: outer_of::<F, A, R>(),
        combine: combine::<F, A, R>,
        finish: finish::<F, A, R>,
    }
}
