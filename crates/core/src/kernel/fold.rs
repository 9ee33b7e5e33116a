//! Turns the formula of a reduction into a [`Fold`]: lanes, trees and loops are here, formulas in `ops`.
//!
//! Rationale: vector loops run over a row of accumulators in memory, several rows of elements at a time, which
//! every instruction set compiles well; accumulators in registers alone do not survive without reassociation.

use crate::isa_versions;
use crate::kernel::lane::Lane;
use crate::kernel::reduce::{Fold, Leaf, Rows, SHORT, together};
use std::marker::PhantomData;

/// Accumulators that a long row is folded into at once, the same on every instruction set.
const LANES: usize = 64;
/// Accumulators of a row that is shorter than [`LONG`].
const FEW: usize = 16;
const LONG: usize = 256;
/// Rows no wider than this are folded across in blocks of accumulators that stay near.
const NARROW: usize = 256;

/// The formula of a reduction over elements of `A` with results of `R`.
pub trait Reduction<A: Lane, R: Lane>: Sized {
    type Acc: Copy;
    const IDENTITY: Self::Acc;
    /// The accumulator of one element at `position` along the reduced axes.
    fn lift(x: A::Wide, position: usize) -> Self::Acc;
    /// `b` comes later in the reduced order than `a`.
    fn combine(a: Self::Acc, b: Self::Acc) -> Self::Acc;
    fn result(acc: Self::Acc) -> R::Wide;

    /// `acc` and then `n` elements, at most a leaf of them.
    ///
    /// # Safety
    /// `n` elements are readable from `x`.
    #[inline(always)]
    unsafe fn fold_leaf(acc: Self::Acc, x: *const A, n: usize, position: usize) -> Self::Acc {
        // SAFETY: the caller's.
        unsafe { Self::combine(acc, leaf::<Self, A, R>(x, n, position)) }
    }

    /// As [`Fold::outer`].
    ///
    /// # Safety
    /// As [`Fold::outer`].
    #[inline(always)]
    unsafe fn fold_across(acc: *mut Self::Acc, x: &Rows, position: usize, stride: usize) {
        // SAFETY: the caller's.
        unsafe { across::<Self, A, R>(acc, x, position, stride) }
    }
}

/// The accumulator of a leaf.
///
/// # Safety
/// `n` elements are readable from `x`.
#[inline(always)]
pub unsafe fn leaf<F: Reduction<A, R>, A: Lane, R: Lane>(x: *const A, n: usize, position: usize) -> F::Acc {
    // SAFETY: the caller's.
    unsafe {
        if n >= LONG {
            return lanes::<F, A, R, LANES>(x, n, position);
        }
        if n >= SHORT {
            return lanes::<F, A, R, FEW>(x, n, position);
        }
        let mut acc = F::IDENTITY;
        for k in 0..n {
            acc = F::combine(acc, F::lift((*x.add(k)).widen(), position + k));
        }
        acc
    }
}

/// Element i goes to lane i modulo `L`; lanes are combined half by half.
///
/// # Safety
/// As [`leaf`].
#[inline(always)]
unsafe fn lanes<F: Reduction<A, R>, A: Lane, R: Lane, const L: usize>(
    x: *const A,
    n: usize,
    position: usize,
) -> F::Acc {
    let mut acc = [F::IDENTITY; L];
    let whole = n / L;
    // SAFETY: the caller's.
    unsafe {
        let rows = Rows { x: x.cast(), n: L, rows: whole, step: (L * size_of::<A>()) as isize };
        add_rows::<F, A, R>(&mut acc, &rows, 0, position, L, 1);
        for k in 0..n - whole * L {
            let at = whole * L + k;
            acc[k] = F::combine(acc[k], F::lift((*x.add(at)).widen(), position + at));
        }
    }
    halve::<F, A, R>(&mut acc, 1)
}

/// Combines the accumulators half by half, `width` side by side, into the first `width`; gives the first.
#[inline(always)]
fn halve<F: Reduction<A, R>, A: Lane, R: Lane>(acc: &mut [F::Acc], width: usize) -> F::Acc {
    let mut half = acc.len() / 2;
    while half >= width {
        for k in 0..half {
            acc[k] = F::combine(acc[k], acc[k + half]);
        }
        half /= 2;
    }
    acc[0]
}

/// Folds rows into `acc` element by element, beginning at element `first` of each; element k of row r is at
/// `position + r * stride + k * along`.
///
/// # Safety
/// Rows have `acc.len()` readable elements from `first` on, which `acc` does not overlap.
#[inline(always)]
unsafe fn add_rows<F: Reduction<A, R>, A: Lane, R: Lane>(
    acc: &mut [F::Acc],
    x: &Rows,
    first: usize,
    position: usize,
    stride: usize,
    along: usize,
) {
    let n = acc.len();
    let mut r = 0;
    // SAFETY: the caller's.
    unsafe {
        while r + 4 <= x.rows {
            let (a, b) = (x.row::<A>(r).add(first), x.row::<A>(r + 1).add(first));
            let (c, d) = (x.row::<A>(r + 2).add(first), x.row::<A>(r + 3).add(first));
            let from = position + r * stride;
            for k in 0..n {
                let at = from + k * along;
                let mut sum = F::combine(acc[k], F::lift((*a.add(k)).widen(), at));
                sum = F::combine(sum, F::lift((*b.add(k)).widen(), at + stride));
                sum = F::combine(sum, F::lift((*c.add(k)).widen(), at + 2 * stride));
                acc[k] = F::combine(sum, F::lift((*d.add(k)).widen(), at + 3 * stride));
            }
            r += 4;
        }
        while r < x.rows {
            let a = x.row::<A>(r).add(first);
            let from = position + r * stride;
            for k in 0..n {
                acc[k] = F::combine(acc[k], F::lift((*a.add(k)).widen(), from + k * along));
            }
            r += 1;
        }
    }
}

/// The default of [`Reduction::fold_across`].
///
/// # Safety
/// As [`Fold::outer`].
#[inline(always)]
unsafe fn across<F: Reduction<A, R>, A: Lane, R: Lane>(
    acc: *mut F::Acc,
    x: &Rows,
    position: usize,
    stride: usize,
) {
    // SAFETY: the caller's; blocks are parts of the row of accumulators.
    unsafe {
        if x.n < SHORT && x.rows > 1 {
            let side = together(x.n);
            let width = side * x.n;
            let mut sums = [F::IDENTITY; LANES];
            let wide = Rows { rows: x.rows / side, n: width, step: x.step * side as isize, ..*x };
            add_rows::<F, A, R>(&mut sums[..width], &wide, 0, position, 0, 0);
            let rest = (x.rows % side) * x.n;
            let tail = Rows { x: x.row::<u8>(wide.rows * side), n: rest, rows: 1, step: 0 };
            add_rows::<F, A, R>(&mut sums[..rest], &tail, 0, position, 0, 0);
            halve::<F, A, R>(&mut sums[..width], x.n);
            for k in 0..x.n {
                *acc.add(k) = F::combine(*acc.add(k), sums[k]);
            }
        } else if x.n <= NARROW {
            let mut first = 0;
            while first + LANES <= x.n {
                // A copy that nothing can overlap.
                let mut block: [F::Acc; LANES] = acc.add(first).cast::<[F::Acc; LANES]>().read_unaligned();
                add_rows::<F, A, R>(&mut block, x, first, position, stride, 0);
                acc.add(first).cast::<[F::Acc; LANES]>().write_unaligned(block);
                first += LANES;
            }
            let n = x.n - first;
            let mut block = [F::IDENTITY; LANES];
            std::ptr::copy_nonoverlapping(acc.add(first), block.as_mut_ptr(), n);
            add_rows::<F, A, R>(&mut block[..n], x, first, position, stride, 0);
            std::ptr::copy_nonoverlapping(block.as_ptr(), acc.add(first), n);
        } else {
            let acc = std::slice::from_raw_parts_mut(acc, x.n);
            add_rows::<F, A, R>(acc, x, 0, position, stride, 0);
        }
    }
}

/// Leaves by the formula.
struct Formula<F, R>(PhantomData<(F, R)>);

impl<F: Reduction<A, R>, A: Lane, R: Lane> Leaf<A> for Formula<F, R> {
    type Acc = F::Acc;
    #[inline(always)]
    unsafe fn fold(acc: F::Acc, x: *const A, n: usize, position: usize) -> F::Acc {
        // SAFETY: the caller's.
        unsafe { F::fold_leaf(acc, x, n, position) }
    }
}

/// # Safety
/// As [`Fold::inner`].
#[inline(always)]
unsafe fn inner_body<F: Reduction<A, R>, A: Lane, R: Lane>(
    acc: *mut u8,
    x: &Rows,
    leaf: usize,
    position: usize,
) {
    // SAFETY: the contract.
    unsafe { x.fold_along::<Formula<F, R>, A>(acc, leaf, position) }
}

/// # Safety
/// As [`Fold::outer`].
#[inline(always)]
unsafe fn outer_body<F: Reduction<A, R>, A: Lane, R: Lane>(
    acc: *mut u8,
    x: &Rows,
    position: usize,
    stride: usize,
) {
    // SAFETY: the contract.
    unsafe { F::fold_across(acc.cast(), x, position, stride) }
}

isa_versions! {
    fn inner_of -> unsafe fn(*mut u8, &Rows, usize, usize) = inner_body;
    generics [F: Reduction<A, R>, A: Lane, R: Lane] names [F, A, R]
    fast A::FOLDS; args (acc: *mut u8, x: &Rows, leaf: usize, position: usize)
}

isa_versions! {
    fn outer_of -> unsafe fn(*mut u8, &Rows, usize, usize) = outer_body;
    generics [F: Reduction<A, R>, A: Lane, R: Lane] names [F, A, R]
    fast A::FOLDS; args (acc: *mut u8, x: &Rows, position: usize, stride: usize)
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
