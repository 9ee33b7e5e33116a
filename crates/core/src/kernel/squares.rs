//! Sums of squares about the mean in one pass over memory: leaves in two passes near the machine, rows across by
//! Welford's method ("Note on a method for calculating corrected sums of squares and products", 1962), parts joined by
//! Chan's formula ("Updating formulae and a pairwise algorithm for computing sample variances", 1979).

use crate::isa_versions;
use crate::kernel::fold::{self, Reduction};
use crate::kernel::lane::Lane;
use crate::kernel::num::Float;
use crate::kernel::packed::{SIDE, about, some_wide, sum};
use crate::kernel::reduce::{Fold, Leaf, Rows, SHORT};
use crate::simd::float::FloatVector;
use crate::simd::vector::Wide;
use std::marker::PhantomData;

/// Columns that are added to at once, at most.
const COLUMNS: usize = 512;
/// Rows whose moments are kept in the element's precision.
const PART: usize = 256;

/// The moments of some elements.
#[derive(Clone, Copy)]
struct Moments {
    count: f64,
    /// The mean as the sum of a number near it and the rest, which is small and so exact.
    near: f64,
    rest: f64,
    /// The sum of squares about the mean.
    squares: f64,
}

/// The reduction to the sum of squares about the mean.
struct Squares;

impl<A: Lane<Wide: Float>> Reduction<A, A> for Squares {
    type Acc = Moments;
    const IDENTITY: Moments = Moments { count: 0.0, near: 0.0, rest: 0.0, squares: 0.0 };
    #[inline(always)]
    fn lift(x: A::Wide, _: usize) -> Moments {
        Moments { count: 1.0, near: x.double(), rest: 0.0, squares: 0.0 }
    }
    #[inline(always)]
    fn combine(a: Moments, b: Moments) -> Moments {
        let count = a.count + b.count;
        let (apart, share) = (b.near - a.near + (b.rest - a.rest), b.count / count);
        let squares = a.squares + b.squares + apart * (apart * (a.count * share));
        let both = Moments { count, near: a.near, rest: a.rest + apart * share, squares };
        // Nothing changes nothing: the formula would divide it by itself.
        let both = if b.count == 0.0 { a } else { both };
        if a.count == 0.0 { b } else { both }
    }
    #[inline(always)]
    fn result(acc: Moments) -> A::Wide {
        A::Wide::of(acc.squares)
    }
}

fn joined<A: Lane<Wide: Float>>(a: Moments, b: Moments) -> Moments {
    <Squares as Reduction<A, A>>::combine(a, b)
}

/// Leaves in two passes.
struct Leaves<V>(PhantomData<V>);

impl<A: Lane<Wide: Float>, V: FloatVector<Item = A::Wide>> Leaf<A> for Leaves<V> {
    type Acc = Moments;
    #[inline(always)]
    unsafe fn fold(acc: Moments, x: *const A, n: usize, _: usize) -> Moments {
        let count = n as f64;
        // SAFETY: the caller's.
        let (near, [one, two]) = unsafe {
            let near = V::Item::of(sum::<A, V>(x, n).double() / count);
            (near, about::<A, V>(x, n, V::splat(near)))
        };
        let rest = one / count;
        let squares = two - one * rest;
        // A rounding error must not make it negative; NaN stays.
        let squares = if squares < 0.0 { 0.0 } else { squares };
        joined::<A>(acc, Moments { count, near: near.double(), rest, squares })
    }
}

/// # Safety
/// As [`Fold::inner`].
#[inline(always)]
unsafe fn along_body<A: Lane<Wide: Float>, V: FloatVector<Item = A::Wide>>(
    acc: *mut u8,
    x: &Rows,
    leaf: usize,
    position: usize,
) {
    // SAFETY: the contract.
    unsafe { x.fold_along::<Leaves<V>, A>(acc, leaf, position) }
}

isa_versions! {
    fn along -> unsafe fn(*mut u8, &Rows, usize, usize) = along_body;
    generics [A: Lane<Wide: Float + Wide>] names [A] vectors [A::Wide] fast true;
    args (acc: *mut u8, x: &Rows, leaf: usize, position: usize)
}

/// Adds rows to the means and sums of squares of up to [`COLUMNS`] columns, in the element's precision.
///
/// # Safety
/// `columns` elements are readable from each row's element `first` on, and there is an accumulator for each.
#[inline(always)]
unsafe fn add_rows<A: Lane<Wide: Float>, V: FloatVector<Item = A::Wide>>(
    acc: &mut [Moments],
    x: &Rows,
    first: usize,
) {
    let columns = acc.len();
    let mut state = [[A::Wide::of(0.0); COLUMNS]; 3];
    let before = acc[0].count;
    // SAFETY: columns of the rows; the state holds as many as there are.
    unsafe {
        for (k, acc) in acc.iter().enumerate() {
            let first = *x.row::<A::Wide>(0).add(first + k);
            state[0][k] = if before == 0.0 { first } else { A::Wide::of(acc.near) };
            (state[1][k], state[2][k]) = (A::Wide::of(acc.rest), A::Wide::of(acc.squares));
        }
        // Several rows side by side, along the columns: as memory is read best.
        let mut done = 0;
        while done < x.rows {
            let rows = SIDE.min(x.rows - done);
            let mut shares = [V::zero(); SIDE];
            for r in 0..rows {
                shares[r] = V::splat(A::Wide::of(1.0 / (before + (done + r) as f64 + 1.0)));
            }
            for at in (0..columns).step_by(V::LANES) {
                let near = V::load(state[0].as_ptr().add(at));
                let mut rest = V::load(state[1].as_ptr().add(at));
                let mut squares = V::load(state[2].as_ptr().add(at));
                for r in 0..SIDE {
                    if r < rows {
                        let row = x.row::<A::Wide>(done + r).add(first + at);
                        let d = some_wide(row, columns - at, near).sub(near);
                        let apart = d.sub(rest);
                        rest = apart.multiply_add(shares[r], rest);
                        squares = apart.multiply_add(d.sub(rest), squares);
                    }
                }
                rest.store(state[1].as_mut_ptr().add(at));
                squares.store(state[2].as_mut_ptr().add(at));
            }
            done += rows;
        }
    }
    let count = before + x.rows as f64;
    for (k, acc) in acc.iter_mut().enumerate() {
        let [near, rest, squares] = [0, 1, 2].map(|i| state[i][k].double());
        *acc = Moments { count, near, rest, squares };
    }
}

/// Long blocks of short rows, which come whole, are joined from parts; of others the accumulators, which hold the
/// element's precision between calls, go on.
///
/// # Safety
/// As [`Fold::outer`].
#[inline(always)]
unsafe fn across_body<A: Lane<Wide: Float>, V: FloatVector<Item = A::Wide>>(
    acc: *mut u8,
    x: &Rows,
    _: usize,
    _: usize,
) {
    let acc = acc.cast::<Moments>();
    // SAFETY: rows of the caller's, and an accumulator for each column.
    unsafe {
        if x.n < SHORT {
            for start in (0..x.rows).step_by(PART) {
                let part = Rows { x: x.row(start), rows: PART.min(x.rows - start), ..*x };
                let mut own = [<Squares as Reduction<A, A>>::IDENTITY; SHORT];
                add_rows::<A, V>(&mut own[..x.n], &part, 0);
                for (k, own) in own[..x.n].iter().enumerate() {
                    *acc.add(k) = joined::<A>(*acc.add(k), *own);
                }
            }
            return;
        }
        for first in (0..x.n).step_by(COLUMNS) {
            let columns = COLUMNS.min(x.n - first);
            add_rows::<A, V>(std::slice::from_raw_parts_mut(acc.add(first), columns), x, first);
        }
    }
}

isa_versions! {
    fn across -> unsafe fn(*mut u8, &Rows, usize, usize) = across_body;
    generics [A: Lane<Wide: Float + Wide>] names [A] vectors [A::Wide] fast true;
    args (acc: *mut u8, x: &Rows, position: usize, stride: usize)
}

/// The fold to the sum of squares about the mean, of float32 or float64.
pub fn fold<A: Lane<Wide: Float + Wide>>() -> Fold {
    const { assert!(!A::HALF) }
    Fold { inner: along::<A>(), outer: across::<A>(), ..fold::of::<Squares, A, A>() }
}
