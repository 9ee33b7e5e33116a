//! The innermost loops of products: tiles of sums in registers over rows of vectors.
//! Knows vectors and addresses; how operands got there is the caller's ([`super::block`]).

use crate::simd::vector::{Vector, Wide, lanes, rows};
use crate::with_vectors;

/// Vectors across a tile of few rows.
const THIN: usize = 6;

/// Whether tiles of `M` rows by `N` vectors keep their sums in the registers of the set: 32 or 16 of them.
const fn fits<V: Vector>(m: usize, n: usize) -> bool {
    let (tall, across, thin) = if V::ROWS == 8 { (8, 3, 4) } else { (6, 2, 2) };
    m <= thin && n <= THIN || m <= tall && n <= across
}

/// The most rows of a tile.
const fn tall<V: Vector>() -> usize {
    if V::ROWS == 8 { 8 } else { 6 }
}

/// The most vectors side by side in a strip of `m` rows, for the current instruction set.
pub fn across<T: Wide>(m: usize) -> usize {
    let (across, thin) = if rows::<T>() == 8 { (3, 4) } else { (2, 2) };
    if m <= thin { THIN } else { across }
}

/// `c = a b` for some columns of the result, at most [`across`] vectors.
pub struct Strip<T> {
    pub m: usize,
    pub k: usize,
    pub columns: usize,
    pub a: *const T,
    pub a_row: isize,
    pub a_step: isize,
    /// Columns lie side by side.
    pub b: *const T,
    pub b_step: isize,
    /// Whether rows of `b` have room for whole vectors.
    pub padded: bool,
    /// Columns lie side by side.
    pub c: *mut T,
    pub c_row: isize,
    /// Whether the products are added to what `c` holds.
    pub add: bool,
}

/// Where the last vector of a strip is cut: nowhere, in the result alone, in the right operand too.
const WHOLE: u8 = 0;
const PADDED: u8 = 1;
const CUT: u8 = 2;

/// One tile: `M` rows of `N` vectors.
///
/// # Safety
/// The strip's pointers are valid for its sizes, and rows from `i` to `i + M` are in it.
#[inline(always)]
unsafe fn tile<V: Vector, const M: usize, const N: usize, const EDGE: u8>(s: &Strip<V::Item>, i: usize) {
    let last = s.columns - (N - 1) * V::LANES;
    // SAFETY: the caller's; a vector that may reach beyond the columns is masked.
    unsafe {
        let mut sums = [[V::zero(); N]; M];
        let mut a = [s.a; M];
        for m in 0..M {
            a[m] = s.a.offset((i + m) as isize * s.a_row);
        }
        let mut b = s.b;
        for _ in 0..s.k {
            if N <= M {
                let mut x = [V::zero(); N];
                for j in 0..N {
                    x[j] = if EDGE == CUT {
                        part::<V, N, CUT>(b, j, last)
                    } else {
                        V::load(b.add(j * V::LANES))
                    };
                }
                for m in 0..M {
                    let w = V::splat(*a[m]);
                    for j in 0..N {
                        sums[m][j] = w.multiply_add(x[j], sums[m][j]);
                    }
                }
            } else {
                let mut w = [V::zero(); M];
                for m in 0..M {
                    w[m] = V::splat(*a[m]);
                }
                for j in 0..N {
                    let x = if EDGE == CUT {
                        part::<V, N, CUT>(b, j, last)
                    } else {
                        V::load(b.add(j * V::LANES))
                    };
                    for m in 0..M {
                        sums[m][j] = w[m].multiply_add(x, sums[m][j]);
                    }
                }
            }
            for m in 0..M {
                a[m] = a[m].wrapping_offset(s.a_step);
            }
            b = b.wrapping_offset(s.b_step);
        }
        // Loops so short that they are unrolled: a sum reached by a variable index would live in memory.
        let mut c = [s.c; M];
        for m in 0..M {
            c[m] = s.c.offset((i + m) as isize * s.c_row);
        }
        if s.add {
            for m in 0..M {
                for j in 0..N {
                    sums[m][j] = part::<V, N, EDGE>(c[m], j, last).add(sums[m][j]);
                }
            }
        }
        for m in 0..M {
            for j in 0..N {
                let to = c[m].add(j * V::LANES);
                if EDGE != WHOLE && j == N - 1 {
                    sums[m][j].store_first(to, last)
                } else {
                    sums[m][j].store(to)
                }
            }
        }
    }
}

/// Vector `j` of `N` side by side; the last one may be cut.
///
/// # Safety
/// Its elements are valid.
#[inline(always)]
unsafe fn part<V: Vector, const N: usize, const EDGE: u8>(from: *const V::Item, j: usize, last: usize) -> V {
    // SAFETY: the caller's.
    unsafe {
        let from = from.add(j * V::LANES);
        if EDGE != WHOLE && j == N - 1 { V::part(from, last) } else { V::load(from) }
    }
}

/// All rows of a strip of `N` vectors, in tiles of nearly equal heights.
///
/// # Safety
/// As [`strip`].
#[inline(always)]
unsafe fn tiles<V: Vector, const N: usize, const EDGE: u8>(s: &Strip<V::Item>) {
    let count = s.m.div_ceil(tall::<V>());
    for t in 0..count {
        let (i, end) = (t * s.m / count, (t + 1) * s.m / count);
        // SAFETY: rows of the strip.
        unsafe {
            match end - i {
                1 => tile::<V, 1, N, EDGE>(s, i),
                2 => tile::<V, 2, N, EDGE>(s, i),
                3 if const { fits::<V>(3, N) } => tile::<V, 3, N, EDGE>(s, i),
                4 if const { fits::<V>(4, N) } => tile::<V, 4, N, EDGE>(s, i),
                5 if const { fits::<V>(5, N) } => tile::<V, 5, N, EDGE>(s, i),
                6 if const { fits::<V>(6, N) } => tile::<V, 6, N, EDGE>(s, i),
                7 if const { fits::<V>(7, N) } => tile::<V, 7, N, EDGE>(s, i),
                8 if const { fits::<V>(8, N) } => tile::<V, 8, N, EDGE>(s, i),
                _ => debug_assert!(false, "a strip too wide for its rows"),
            }
        }
    }
}

/// # Safety
/// As [`strip`].
#[inline(always)]
unsafe fn strip_body<V: Vector>(s: &Strip<V::Item>) {
    let edge = if V::MASKS {
        CUT
    } else if s.columns % V::LANES == 0 {
        WHOLE
    } else if s.padded {
        PADDED
    } else {
        CUT
    };
    // SAFETY: the caller's.
    unsafe {
        match edge {
            WHOLE if !V::MASKS => strip_of::<V, WHOLE>(s),
            PADDED if !V::MASKS => strip_of::<V, PADDED>(s),
            _ => strip_of::<V, CUT>(s),
        }
    }
}

/// # Safety
/// As [`strip`].
#[inline(always)]
unsafe fn strip_of<V: Vector, const EDGE: u8>(s: &Strip<V::Item>) {
    // SAFETY: the caller's.
    unsafe {
        match s.columns.div_ceil(V::LANES) {
            1 => tiles::<V, 1, EDGE>(s),
            2 => tiles::<V, 2, EDGE>(s),
            3 => tiles::<V, 3, EDGE>(s),
            4 => tiles::<V, 4, EDGE>(s),
            5 => tiles::<V, 5, EDGE>(s),
            _ => tiles::<V, 6, EDGE>(s),
        }
    }
}

with_vectors! {
    /// Computes a strip.
    ///
    /// # Safety
    /// The pointers are valid for the sizes; at least one column and one row, at most [`across`] vectors.
    pub unsafe fn strip<T>(s: &Strip<T>) = strip_body
}

/// Vectors in a number of columns, for the current instruction set.
pub fn vectors<T: Wide>(columns: usize) -> usize {
    columns.div_ceil(lanes::<T>())
}
