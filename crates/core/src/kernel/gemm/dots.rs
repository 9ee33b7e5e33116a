//! Products that are dot products: where a vector of the right operand lies along the inner axis, or the left
//! operand is one row. Knows vectors and addresses; [`super::block`] decides.

use crate::simd::vector::Vector;
use crate::with_vectors;
use std::mem::MaybeUninit;

/// `c = a b` for few rows of `a`, where rows of `a` and columns of `b` lie in memory one element after the other.
pub struct Dots<T> {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub a: *const T,
    pub a_row: isize,
    pub b: *const T,
    pub b_column: isize,
    pub c: *mut T,
    pub c_row: isize,
    pub add: bool,
}

/// `M` rows by `N` columns of dot products.
///
/// # Safety
/// As [`dots`]; rows `i..i + M` and columns `j..j + N` are in it.
#[inline(always)]
unsafe fn dot_tile<V: Vector, const M: usize, const N: usize>(d: &Dots<V::Item>, i: usize, j: usize) {
    // SAFETY: the caller's; the last step reads only what is left.
    unsafe {
        let (mut a, mut b) = ([d.a; M], [d.b; N]);
        for m in 0..M {
            a[m] = d.a.offset((i + m) as isize * d.a_row);
        }
        for n in 0..N {
            b[n] = d.b.offset((j + n) as isize * d.b_column);
        }
        let mut sums = [[V::zero(); N]; M];
        let whole = d.k / V::LANES * V::LANES;
        let mut p = 0;
        while p < whole {
            let mut x = [V::zero(); M];
            for m in 0..M {
                x[m] = V::load(a[m].add(p));
            }
            for n in 0..N {
                let y = V::load(b[n].add(p));
                for m in 0..M {
                    sums[m][n] = x[m].multiply_add(y, sums[m][n]);
                }
            }
            p += V::LANES;
        }
        if whole < d.k {
            let rest = d.k - whole;
            for n in 0..N {
                let y = V::part(b[n].add(p), rest);
                for m in 0..M {
                    sums[m][n] = V::part(a[m].add(p), rest).multiply_add(y, sums[m][n]);
                }
            }
        }
        // Through memory: the totals are too long to be unrolled, and then the sums would live there all along.
        let mut kept = [MaybeUninit::<[V; N]>::uninit(); M];
        for m in 0..M {
            for n in 0..N {
                sums[m][n].store(kept[m].as_mut_ptr().cast::<V>().add(n).cast());
            }
        }
        for m in 0..M {
            let c = d.c.offset((i + m) as isize * d.c_row).add(j);
            for n in 0..N {
                let mut sum = if d.add { *c.add(n) } else { V::Item::default() };
                sum += V::load(kept[m].as_ptr().cast::<V>().add(n).cast()).total();
                *c.add(n) = sum;
            }
        }
    }
}

/// All rows for `N` columns from `j` on, which stay in the cache meanwhile.
///
/// # Safety
/// As [`dots`].
#[inline(always)]
unsafe fn dot_columns<V: Vector, const N: usize>(d: &Dots<V::Item>, j: usize) {
    let mut i = 0;
    // SAFETY: rows and columns of the product.
    unsafe {
        // Four rows by six columns fill 32 registers, two by four 16.
        while V::ROWS == 8 && i + 4 <= d.m {
            dot_tile::<V, 4, N>(d, i, j);
            i += 4;
        }
        while i + 2 <= d.m {
            dot_tile::<V, 2, N>(d, i, j);
            i += 2;
        }
        while i < d.m {
            dot_tile::<V, 1, N>(d, i, j);
            i += 1;
        }
    }
}

/// # Safety
/// As [`dots`].
#[inline(always)]
unsafe fn dots_body<V: Vector>(d: &Dots<V::Item>) {
    let mut j = 0;
    // SAFETY: columns of the product.
    unsafe {
        while V::ROWS == 8 && j + 6 <= d.n {
            dot_columns::<V, 6>(d, j);
            j += 6;
        }
        while j + 4 <= d.n {
            dot_columns::<V, 4>(d, j);
            j += 4;
        }
        while j < d.n {
            dot_columns::<V, 1>(d, j);
            j += 1;
        }
    }
}

with_vectors! {
    /// Computes dot products.
    ///
    /// # Safety
    /// The pointers are valid for the sizes.
    pub unsafe fn dots<T>(d: &Dots<T>) = dots_body
}

/// The sum of products of two vectors, with several sums side by side.
///
/// # Safety
/// `a` and `b` are valid for `k` elements, `c` for one.
#[inline(always)]
unsafe fn dot_body<V: Vector>(k: usize, a: *const V::Item, b: *const V::Item, c: *mut V::Item) {
    const SUMS: usize = 8;
    // SAFETY: the caller's.
    unsafe {
        let mut sums = [V::zero(); SUMS];
        let step = SUMS * V::LANES;
        let mut p = 0;
        while p + step <= k {
            for s in 0..SUMS {
                let at = p + s * V::LANES;
                sums[s] = V::load(a.add(at)).multiply_add(V::load(b.add(at)), sums[s]);
            }
            p += step;
        }
        while p < k {
            let n = V::LANES.min(k - p);
            sums[0] = V::part(a.add(p), n).multiply_add(V::part(b.add(p), n), sums[0]);
            p += V::LANES;
        }
        let mut width = SUMS;
        while width > 1 {
            width /= 2;
            for s in 0..width {
                sums[s] = sums[s].add(sums[s + width]);
            }
        }
        *c = sums[0].total();
    }
}

with_vectors! {
    /// Sets `c` to the dot product of two vectors of `k` elements.
    ///
    /// # Safety
    /// `a` and `b` are valid for `k` elements, `c` for one.
    pub unsafe fn dot<T>(k: usize, a: *const T, b: *const T, c: *mut T) = dot_body
}

/// One row of a result as a sum of rows: `c = a b` for a vector `a`.
pub struct Sweep<T> {
    pub n: usize,
    pub k: usize,
    pub a: *const T,
    pub a_step: isize,
    /// Elements of a row lie side by side.
    pub b: *const T,
    pub b_row: isize,
    pub c: *mut T,
    pub add: bool,
}

/// Adds `M` rows from `p` on to the row of sums.
///
/// # Safety
/// As [`sweep`]; the rows are in it.
#[inline(always)]
unsafe fn sweep_rows<V: Vector, const M: usize>(s: &Sweep<V::Item>, p: usize, add: bool) {
    // SAFETY: the caller's; the last vector is masked.
    unsafe {
        let (mut w, mut rows) = ([V::zero(); M], [s.b; M]);
        for m in 0..M {
            w[m] = V::splat(*s.a.wrapping_offset((p + m) as isize * s.a_step));
            rows[m] = s.b.wrapping_offset((p + m) as isize * s.b_row);
        }
        let mut j = 0;
        while j + V::LANES <= s.n {
            let mut sum = if add { V::load(s.c.add(j)) } else { V::zero() };
            for m in 0..M {
                sum = w[m].multiply_add(V::load(rows[m].add(j)), sum);
            }
            sum.store(s.c.add(j));
            j += V::LANES;
        }
        if j < s.n {
            let rest = s.n - j;
            let mut sum = if add { V::part(s.c.add(j), rest) } else { V::zero() };
            for m in 0..M {
                sum = w[m].multiply_add(V::part(rows[m].add(j), rest), sum);
            }
            sum.store_first(s.c.add(j), rest);
        }
    }
}

/// # Safety
/// As [`sweep`].
#[inline(always)]
unsafe fn sweep_body<V: Vector>(s: &Sweep<V::Item>) {
    let mut p = 0;
    // SAFETY: rows of the product.
    unsafe {
        while p + 8 <= s.k {
            sweep_rows::<V, 8>(s, p, s.add || p > 0);
            p += 8;
        }
        while p + 2 <= s.k {
            sweep_rows::<V, 2>(s, p, s.add || p > 0);
            p += 2;
        }
        if p < s.k {
            sweep_rows::<V, 1>(s, p, s.add || p > 0);
        }
    }
}

with_vectors! {
    /// Computes a row in the order in which the rows it is a sum of lie in memory.
    ///
    /// # Safety
    /// The pointers are valid for the sizes.
    pub unsafe fn sweep<T>(s: &Sweep<T>) = sweep_body
}
