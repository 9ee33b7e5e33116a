//! Transpositions of small blocks in registers, for x86-64's vectors of 16 and 32 bytes.

use std::arch::x86_64::*;

/// Transposes 8 by 8 float32 numbers; steps from row to row are in elements.
///
/// # Safety
/// Both blocks are valid; AVX2 is enabled where this is inlined.
#[inline(always)]
pub unsafe fn singles(from: *const f32, from_row: isize, to: *mut f32, to_row: isize) {
    // SAFETY: the caller's; each row has eight numbers.
    unsafe {
        let row = |i: isize| _mm256_loadu_ps(from.offset(i * from_row));
        let put = |i: isize, x: __m256| _mm256_storeu_ps(to.offset(i * to_row), x);
        // Pairs of rows, then fours, then the halves of the registers.
        let pair = |i: isize| {
            let (x, y) = (row(i), row(i + 1));
            (_mm256_unpacklo_ps(x, y), _mm256_unpackhi_ps(x, y))
        };
        let four = |i: isize| {
            let ((a, b), (c, d)) = (pair(i), pair(i + 2));
            [
                _mm256_shuffle_ps::<0b01_00_01_00>(a, c),
                _mm256_shuffle_ps::<0b11_10_11_10>(a, c),
                _mm256_shuffle_ps::<0b01_00_01_00>(b, d),
                _mm256_shuffle_ps::<0b11_10_11_10>(b, d),
            ]
        };
        let (low, high) = (four(0), four(4));
        for i in 0..4 {
            put(i as isize, _mm256_permute2f128_ps::<0x20>(low[i], high[i]));
            put(i as isize + 4, _mm256_permute2f128_ps::<0x31>(low[i], high[i]));
        }
    }
}

/// Transposes 4 by 4 float64 numbers; steps from row to row are in elements.
///
/// # Safety
/// Both blocks are valid; AVX2 is enabled where this is inlined.
#[inline(always)]
pub unsafe fn doubles(from: *const f64, from_row: isize, to: *mut f64, to_row: isize) {
    // SAFETY: the caller's; each row has four numbers.
    unsafe {
        let row = |i: isize| _mm256_loadu_pd(from.offset(i * from_row));
        let put = |i: isize, x: __m256d| _mm256_storeu_pd(to.offset(i * to_row), x);
        let pair = |i: isize| {
            let (x, y) = (row(i), row(i + 1));
            [_mm256_unpacklo_pd(x, y), _mm256_unpackhi_pd(x, y)]
        };
        let (low, high) = (pair(0), pair(2));
        for i in 0..2 {
            put(i as isize, _mm256_permute2f128_pd::<0x20>(low[i], high[i]));
            put(i as isize + 2, _mm256_permute2f128_pd::<0x31>(low[i], high[i]));
        }
    }
}

/// Transposes 4 by 4 float32 numbers; steps from row to row are in elements.
///
/// # Safety
/// Both blocks are valid.
#[inline(always)]
pub unsafe fn single_fours(from: *const f32, from_row: isize, to: *mut f32, to_row: isize) {
    // SAFETY: the caller's; each row has four numbers.
    unsafe {
        let row = |i: isize| _mm_loadu_ps(from.offset(i * from_row));
        let (mut a, mut b, mut c, mut d) = (row(0), row(1), row(2), row(3));
        _MM_TRANSPOSE4_PS(&mut a, &mut b, &mut c, &mut d);
        for (i, x) in [a, b, c, d].into_iter().enumerate() {
            _mm_storeu_ps(to.offset(i as isize * to_row), x);
        }
    }
}

/// Transposes 2 by 2 float64 numbers; steps from row to row are in elements.
///
/// # Safety
/// Both blocks are valid.
#[inline(always)]
pub unsafe fn double_twos(from: *const f64, from_row: isize, to: *mut f64, to_row: isize) {
    // SAFETY: the caller's; each row has two numbers.
    unsafe {
        let (a, b) = (_mm_loadu_pd(from), _mm_loadu_pd(from.offset(from_row)));
        _mm_storeu_pd(to, _mm_unpacklo_pd(a, b));
        _mm_storeu_pd(to.offset(to_row), _mm_unpackhi_pd(a, b));
    }
}
