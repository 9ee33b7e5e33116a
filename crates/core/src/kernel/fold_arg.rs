//! Loops of reductions that find where an extreme is: the value first, at full width, and then its place. Which
//! value wins is the contest's to say.

use crate::kernel::fold::{self, Reduction};
use crate::kernel::lane::Lane;
use crate::kernel::num::Ordered;
use crate::kernel::reduce::{Rows, SHORT};
use std::marker::PhantomData;

/// What is searched for.
pub trait Contest<W> {
    /// What every other value beats or equals.
    const WORST: W;
    /// Whether `x`, which comes later, takes the place of `best`: nothing takes the place of a NaN.
    fn beats(x: W, best: W) -> bool;
}

/// An element and where it was.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Found<W> {
    value: W,
    at: i64,
}

/// The winning value alone.
struct Value<C>(PhantomData<C>);

impl<C: Contest<A::Wide>, A: Lane<Wide: Ordered>> Reduction<A, A> for Value<C> {
    type Acc = A::Wide;
    const IDENTITY: A::Wide = C::WORST;
    #[inline(always)]
    fn lift(x: A::Wide, _: usize) -> A::Wide {
        x
    }
    #[inline(always)]
    fn combine(a: A::Wide, b: A::Wide) -> A::Wide {
        if C::beats(b, a) { b } else { a }
    }
    #[inline(always)]
    fn result(acc: A::Wide) -> A::Wide {
        acc
    }
}

/// The position of the first winner. Lanes meet out of order, so ties are settled by position.
pub struct First<C>(PhantomData<C>);

/// Columns that are folded across at once.
const COLUMNS: usize = 512;

#[inline(always)]
fn same<W: Ordered>(a: W, b: W) -> bool {
    (a == b) | (a.is_nan() & b.is_nan())
}

impl<C: Contest<A::Wide>, A: Lane<Wide: Ordered>> Reduction<A, i64> for First<C> {
    type Acc = Found<A::Wide>;
    const IDENTITY: Self::Acc = Found { value: C::WORST, at: i64::MAX };
    #[inline(always)]
    fn lift(x: A::Wide, position: usize) -> Self::Acc {
        Found { value: x, at: position as i64 }
    }
    #[inline(always)]
    fn combine(a: Self::Acc, b: Self::Acc) -> Self::Acc {
        let earlier = same(a.value, b.value) & (b.at < a.at);
        if C::beats(b.value, a.value) | earlier { b } else { a }
    }
    #[inline(always)]
    fn result(acc: Self::Acc) -> i64 {
        acc.at
    }

    #[inline(always)]
    unsafe fn fold_leaf(acc: Self::Acc, x: *const A, n: usize, position: usize) -> Self::Acc {
        // SAFETY: the caller's.
        unsafe {
            if n < SHORT {
                let mut best = acc;
                for k in 0..n {
                    let next = Found { value: (*x.add(k)).widen(), at: (position + k) as i64 };
                    best = <Self as Reduction<A, i64>>::combine(best, next);
                }
                return best;
            }
            let value = fold::leaf::<Value<C>, A, A>(x, n, 0);
            // Elements come in their order: an equal one stands behind, unless there was none yet.
            let wins = C::beats(value, acc.value) | (acc.at == i64::MAX);
            if wins { Found { value, at: (position + first(x, n, value)) as i64 } } else { acc }
        }
    }

    #[inline(always)]
    unsafe fn fold_across(acc: *mut Self::Acc, x: &Rows, position: usize, stride: usize) {
        let mut start = 0;
        while start < x.n {
            let n = COLUMNS.min(x.n - start);
            // SAFETY: the caller's; columns from `start` on.
            unsafe {
                if size_of::<A::Wide>() == 8 {
                    columns::<C, A, u64>(acc.add(start), x, start, n, position, stride);
                } else {
                    columns::<C, A, u32>(acc.add(start), x, start, n, position, stride);
                }
            }
            start += n;
        }
    }
}

/// The number of a row within a tile, as wide as an element so that both make vectors of equal length.
trait Count: Copy + Default {
    fn of(r: usize) -> Self;
    fn get(self) -> usize;
}

impl Count for u32 {
    #[inline(always)]
    fn of(r: usize) -> u32 {
        r as u32
    }
    #[inline(always)]
    fn get(self) -> usize {
        self as usize
    }
}

impl Count for u64 {
    #[inline(always)]
    fn of(r: usize) -> u64 {
        r as u64
    }
    #[inline(always)]
    fn get(self) -> usize {
        self as usize
    }
}

/// # Safety
/// As [`Fold::outer`](crate::kernel::reduce::Fold::outer), for `n` columns from `start` on.
#[inline(always)]
unsafe fn columns<C: Contest<A::Wide>, A: Lane<Wide: Ordered>, N: Count>(
    acc: *mut Found<A::Wide>,
    x: &Rows,
    start: usize,
    n: usize,
    position: usize,
    stride: usize,
) {
    if x.rows == 0 {
        return;
    }
    let mut values = [C::WORST; COLUMNS];
    let mut rows = [N::default(); COLUMNS];
    // SAFETY: the caller's.
    unsafe {
        let from = x.row::<A>(0).add(start);
        for k in 0..n {
            values[k] = (*from.add(k)).widen();
        }
        for r in 1..x.rows {
            let (from, number) = (x.row::<A>(r).add(start), N::of(r));
            for k in 0..n {
                let value = (*from.add(k)).widen();
                let wins = C::beats(value, values[k]);
                values[k] = if wins { value } else { values[k] };
                rows[k] = if wins { number } else { rows[k] };
            }
        }
        for k in 0..n {
            let found = Found { value: values[k], at: (position + rows[k].get() * stride) as i64 };
            *acc.add(k) = <First<C> as Reduction<A, i64>>::combine(*acc.add(k), found);
        }
    }
}

/// Where the first element is that equals `value`, which is among them.
///
/// # Safety
/// `n` elements are readable from `x`.
#[inline(always)]
unsafe fn first<A: Lane<Wide: Ordered>>(x: *const A, n: usize, value: A::Wide) -> usize {
    const BLOCK: usize = 64;
    let mut start = 0;
    // SAFETY: the caller's.
    unsafe {
        while start + BLOCK <= n {
            let mut any = false;
            for k in 0..BLOCK {
                any |= same((*x.add(start + k)).widen(), value);
            }
            if any {
                break;
            }
            start += BLOCK;
        }
        while start + 1 < n && !same((*x.add(start)).widen(), value) {
            start += 1;
        }
    }
    start
}
