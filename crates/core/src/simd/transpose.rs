//! Transposition of planes of plain elements, in registers where there are some. Knows no formula.

use crate::simd::stream;

/// A plane: `rows` by `cols` elements; an element's neighbour in the row follows it in the source, its neighbour in
/// the column in the target. Steps are in bytes.
#[derive(Clone, Copy)]
pub struct Plane {
    pub rows: usize,
    pub cols: usize,
    /// From one row to the next in the source.
    pub src: isize,
    /// From one column to the next in the target.
    pub dst: isize,
}

/// Bytes of a cache line.
const LINE: usize = 64;
/// Bytes of a strip of rows that is read at once: several lines of each row, whose addresses the hardware foresees.
const STRIP: usize = 8192;

/// Copies a plane of elements of `E`, of 1, 2, 4, 8 or 16 bytes. With `past` whole lines go past the caches where
/// they are aligned, and [`stream::fence`] must follow.
///
/// # Safety
/// The plane's elements are readable at `src` and writable at `dst`, both aligned for `E`; the two do not overlap.
pub unsafe fn transpose<E: Copy>(plane: Plane, src: *const u8, dst: *mut u8, past: bool) {
    let size = size_of::<E>();
    let side = LINE / size; // a line of each
    let (rows, cols) = (plane.rows / side * side, plane.cols / side * side);
    let past = past && dst.align_offset(LINE) == 0 && plane.dst % LINE as isize == 0;
    // SAFETY: strips and edges are parts of the plane.
    unsafe {
        let at = |i: usize, j: usize| {
            let src = src.offset(i as isize * plane.src).add(j * size);
            (src, dst.offset(j as isize * plane.dst).add(i * size))
        };
        let width = (STRIP / side / LINE).clamp(1, 8) * side;
        for i in (0..rows).step_by(side) {
            for j in (0..cols).step_by(width) {
                let (src, dst) = at(i, j);
                strip::<E>(Plane { cols: width.min(cols - j), ..plane }, src, dst, past);
            }
        }
        let edges = [(0..rows, cols..plane.cols), (rows..plane.rows, 0..plane.cols)];
        for (outer, inner) in edges {
            // Few rows: along them. Few columns: along those.
            if outer.len() < inner.len() {
                for j in inner {
                    for i in outer.clone() {
                        let (src, dst) = at(i, j);
                        *dst.cast::<E>() = *src.cast::<E>();
                    }
                }
            } else {
                for i in outer {
                    for j in inner.clone() {
                        let (src, dst) = at(i, j);
                        *dst.cast::<E>() = *src.cast::<E>();
                    }
                }
            }
        }
    }
}

/// [`transpose`] of a small plane within the first-level cache, whose rows need not be brought together first.
///
/// # Safety
/// As [`transpose`].
pub unsafe fn transpose_near<E: Copy>(plane: Plane, src: *const u8, dst: *mut u8) {
    let size = size_of::<E>();
    let side = LINE / size;
    // SAFETY: squares are parts of the plane; the caller's contract.
    unsafe {
        if !plane.rows.is_multiple_of(side) || !plane.cols.is_multiple_of(side) {
            return transpose::<E>(plane, src, dst, false);
        }
        for i in (0..plane.rows).step_by(side) {
            for j in (0..plane.cols).step_by(side) {
                let src = src.offset(i as isize * plane.src).add(j * size);
                small_squares::<E>(plane, src, dst.offset(j as isize * plane.dst).add(i * size));
            }
        }
    }
}

/// As many rows as a line has elements, and several times as many columns. Rows far apart may fall on one set of the
/// L1 cache, which cannot hold them all: they are read whole, and put side by side.
///
/// # Safety
/// As [`transpose`]; where `past`, columns are aligned to lines.
#[inline(always)]
unsafe fn strip<E: Copy>(plane: Plane, src: *const u8, dst: *mut u8, past: bool) {
    /// A strip, and a line between rows.
    #[repr(align(64))]
    struct Strip([u8; STRIP + LINE * LINE]);
    #[repr(align(64))]
    struct Square([u8; LINE * LINE]);
    let size = size_of::<E>();
    let side = LINE / size;
    let row = plane.cols * size;
    let apart = row + LINE;
    let mut near = std::mem::MaybeUninit::<Strip>::uninit();
    let mut lines = std::mem::MaybeUninit::<Square>::uninit();
    // SAFETY: the caller's contract; the strip holds `side` rows and gaps, the lines a square.
    unsafe {
        let near = (&raw mut (*near.as_mut_ptr()).0).cast::<u8>();
        let lines = (&raw mut (*lines.as_mut_ptr()).0).cast::<u8>();
        for i in 0..side {
            std::ptr::copy_nonoverlapping(src.offset(i as isize * plane.src), near.add(i * apart), row);
        }
        for j in (0..plane.cols).step_by(side) {
            let (from, to) = (near.add(j * size), dst.offset(j as isize * plane.dst));
            let square =
                Plane { src: apart as isize, dst: if past { LINE as isize } else { plane.dst }, ..plane };
            small_squares::<E>(square, from, if past { lines } else { to });
            for j in 0..if past { side } else { 0 } {
                stream::copy(lines.add(j * LINE), to.offset(j as isize * plane.dst), LINE);
            }
        }
    }
}

/// # Safety
/// As [`strip`], for one square.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn small_squares<E: Copy>(plane: Plane, src: *const u8, dst: *mut u8) {
    use std::arch::x86_64::*;
    // Interleaving the first half of the rows with the second, as often as the side has bits, transposes.
    macro_rules! squares {
        ($n:literal, $low:ident, $high:ident, $($time:literal)*) => {
            for i in (0..4 * $n).step_by($n) {
                for j in 0..4usize {
                    let from = src.offset(i as isize * plane.src).add(j * 16);
                    let to = dst.offset((j * $n) as isize * plane.dst).add(i * (16 / $n));
                    // Loops, not closures: what is not inlined here runs baseline code.
                    let mut rows = [_mm_setzero_si128(); $n];
                    for k in 0..$n {
                        rows[k] = _mm_loadu_si128(from.offset(k as isize * plane.src).cast());
                    }
                    $(
                        let _ = $time;
                        let before = rows;
                        for k in 0..$n {
                            let (a, b) = (before[k / 2], before[k / 2 + $n / 2]);
                            rows[k] = if k % 2 == 0 { $low(a, b) } else { $high(a, b) };
                        }
                    )*
                    for k in 0..$n {
                        _mm_storeu_si128(to.offset(k as isize * plane.dst).cast(), rows[k]);
                    }
                }
            }
        };
    }
    // SAFETY: 16 bytes of each row and of each column lie within the square (the caller's contract).
    unsafe {
        match size_of::<E>() {
            1 => squares!(16, _mm_unpacklo_epi8, _mm_unpackhi_epi8, 1 2 3 4),
            2 => squares!(8, _mm_unpacklo_epi16, _mm_unpackhi_epi16, 1 2 3),
            4 => squares!(4, _mm_unpacklo_epi32, _mm_unpackhi_epi32, 1 2),
            8 => squares!(2, _mm_unpacklo_epi64, _mm_unpackhi_epi64, 1),
            _ => {
                for i in 0..4 {
                    for j in 0..4usize {
                        let from = src.offset(i as isize * plane.src).add(j * 16);
                        let to = dst.offset(j as isize * plane.dst).add(i * 16);
                        _mm_storeu_si128(to.cast(), _mm_loadu_si128(from.cast()));
                    }
                }
            }
        }
    }
}

/// # Safety
/// As [`strip`], for one square.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
unsafe fn small_squares<E: Copy>(plane: Plane, src: *const u8, dst: *mut u8) {
    let side = 64 / size_of::<E>();
    for i in 0..side {
        for j in 0..side {
            // SAFETY: element (i, j) of the square (the caller's contract).
            unsafe {
                let to = dst.offset(j as isize * plane.dst).cast::<E>().add(i);
                *to = *src.offset(i as isize * plane.src).cast::<E>().add(j);
            }
        }
    }
}
