//! What kernels of rows ask of a vector beyond sums of products: differences, the greatest lanes, powers of two.
//! Knows no formula.

use super::vector::Vector;

/// A vector of floats.
///
/// # Safety
/// As [`Vector`]'s.
pub unsafe trait FloatVector: Vector {
    /// # Safety
    /// As the trait's.
    unsafe fn sub(self, x: Self) -> Self;
    /// # Safety
    /// As the trait's.
    unsafe fn mul(self, x: Self) -> Self;
    /// The greater lanes; those of `x` where either is NaN.
    ///
    /// # Safety
    /// As the trait's.
    unsafe fn max(self, x: Self) -> Self;
    /// The product, but zero where `self` is, whatever it meets there.
    ///
    /// # Safety
    /// As the trait's.
    unsafe fn times(self, x: Self) -> Self;
    /// The first `n` lanes from memory, the others of `rest`; no more than `n` elements are read.
    ///
    /// # Safety
    /// As the trait's, of `n` elements.
    unsafe fn first_or(from: *const Self::Item, n: usize, rest: Self) -> Self;
    /// 2^n of shifted numbers (as of `Float::shifted`) whose n is an exponent, and 0 of the one below the least.
    ///
    /// # Safety
    /// As the trait's.
    unsafe fn power_of_two(self) -> Self;
    /// The greatest lane, where none is NaN.
    ///
    /// # Safety
    /// As the trait's.
    unsafe fn greatest(self) -> Self::Item;
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::FloatVector;
    use std::arch::x86_64::*;

    macro_rules! float_vector {
        ($v:ty: $sub:ident $mul:ident $max:ident; times |$a:ident, $b:ident| $times:expr;
         first_or |$p:ident, $n:ident, $rest:ident| $first:expr; power |$x:ident| $power:expr;
         greatest |$g:ident| $greatest:expr) => {
            // SAFETY: each method is the instruction of its name.
            unsafe impl FloatVector for $v {
                #[inline(always)]
                unsafe fn sub(self, x: Self) -> Self {
                    // SAFETY: the caller's.
                    unsafe { $sub(self, x) }
                }
                #[inline(always)]
                unsafe fn mul(self, x: Self) -> Self {
                    // SAFETY: the caller's.
                    unsafe { $mul(self, x) }
                }
                #[inline(always)]
                unsafe fn max(self, x: Self) -> Self {
                    // SAFETY: the caller's.
                    unsafe { $max(self, x) }
                }
                #[inline(always)]
                unsafe fn times(self, $b: Self) -> Self {
                    let $a = self;
                    // SAFETY: the caller's.
                    unsafe { $times }
                }
                #[inline(always)]
                unsafe fn first_or($p: *const Self::Item, $n: usize, $rest: Self) -> Self {
                    // SAFETY: the caller's.
                    unsafe { $first }
                }
                #[inline(always)]
                unsafe fn power_of_two(self) -> Self {
                    let $x = self;
                    // SAFETY: the caller's.
                    unsafe { $power }
                }
                #[inline(always)]
                unsafe fn greatest(self) -> Self::Item {
                    let $g = self;
                    // SAFETY: the caller's.
                    unsafe { $greatest }
                }
            }
        };
    }

    /// The bits of 1.
    const ONE: i32 = 127 << 23;
    const ONE_WIDE: i64 = 1023 << 52;

    float_vector!(__m512: _mm512_sub_ps _mm512_mul_ps _mm512_max_ps;
        times |a, b| _mm512_maskz_mul_ps(_mm512_cmp_ps_mask::<_CMP_NEQ_UQ>(a, _mm512_setzero_ps()), a, b);
        first_or |p, n, rest| _mm512_mask_loadu_ps(rest, ((1u32 << n) - 1) as u16, p);
        power |x| {
            let bits = _mm512_slli_epi32::<23>(_mm512_castps_si512(x));
            _mm512_castsi512_ps(_mm512_add_epi32(bits, _mm512_set1_epi32(ONE)))
        };
        greatest |x| _mm256_max_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps::<1>(x)).greatest());
    float_vector!(__m512d: _mm512_sub_pd _mm512_mul_pd _mm512_max_pd;
        times |a, b| _mm512_maskz_mul_pd(_mm512_cmp_pd_mask::<_CMP_NEQ_UQ>(a, _mm512_setzero_pd()), a, b);
        first_or |p, n, rest| _mm512_mask_loadu_pd(rest, ((1u32 << n) - 1) as u8, p);
        power |x| {
            let bits = _mm512_slli_epi64::<52>(_mm512_castpd_si512(x));
            _mm512_castsi512_pd(_mm512_add_epi64(bits, _mm512_set1_epi64(ONE_WIDE)))
        };
        greatest |x| _mm256_max_pd(_mm512_castpd512_pd256(x), _mm512_extractf64x4_pd::<1>(x)).greatest());
    float_vector!(__m256: _mm256_sub_ps _mm256_mul_ps _mm256_max_ps;
        times |a, b| _mm256_and_ps(_mm256_cmp_ps::<_CMP_NEQ_UQ>(a, _mm256_setzero_ps()), _mm256_mul_ps(a, b));
        first_or |p, n, rest| {
            let places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            let mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(n as i32), places);
            _mm256_blendv_ps(rest, _mm256_maskload_ps(p, mask), _mm256_castsi256_ps(mask))
        };
        power |x| {
            let bits = _mm256_slli_epi32::<23>(_mm256_castps_si256(x));
            _mm256_castsi256_ps(_mm256_add_epi32(bits, _mm256_set1_epi32(ONE)))
        };
        greatest |x| _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x)).greatest());
    float_vector!(__m256d: _mm256_sub_pd _mm256_mul_pd _mm256_max_pd;
        times |a, b| _mm256_and_pd(_mm256_cmp_pd::<_CMP_NEQ_UQ>(a, _mm256_setzero_pd()), _mm256_mul_pd(a, b));
        first_or |p, n, rest| {
            let places = _mm256_setr_epi64x(0, 1, 2, 3);
            let mask = _mm256_cmpgt_epi64(_mm256_set1_epi64x(n as i64), places);
            _mm256_blendv_pd(rest, _mm256_maskload_pd(p, mask), _mm256_castsi256_pd(mask))
        };
        power |x| {
            let bits = _mm256_slli_epi64::<52>(_mm256_castpd_si256(x));
            _mm256_castsi256_pd(_mm256_add_epi64(bits, _mm256_set1_epi64x(ONE_WIDE)))
        };
        greatest |x| _mm_max_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd::<1>(x)).greatest());
    float_vector!(__m128: _mm_sub_ps _mm_mul_ps _mm_max_ps;
    times |a, b| _mm_and_ps(_mm_cmpneq_ps(a, _mm_setzero_ps()), _mm_mul_ps(a, b));
    first_or |p, n, rest| {
        let mut x = [0f32; 4];
        _mm_storeu_ps(x.as_mut_ptr(), rest);
        std::ptr::copy_nonoverlapping(p, x.as_mut_ptr(), n.min(4));
        _mm_loadu_ps(x.as_ptr())
    };
    power |x| {
        let bits = _mm_slli_epi32::<23>(_mm_castps_si128(x));
        _mm_castsi128_ps(_mm_add_epi32(bits, _mm_set1_epi32(ONE)))
    };
    greatest |x| {
        let pair = _mm_max_ps(x, _mm_movehl_ps(x, x));
        _mm_cvtss_f32(_mm_max_ss(pair, _mm_shuffle_ps::<1>(pair, pair)))
    });
    float_vector!(__m128d: _mm_sub_pd _mm_mul_pd _mm_max_pd;
        times |a, b| _mm_and_pd(_mm_cmpneq_pd(a, _mm_setzero_pd()), _mm_mul_pd(a, b));
        first_or |p, n, rest| match n {
            0 => rest,
            1 => _mm_move_sd(rest, _mm_load_sd(p)),
            _ => _mm_loadu_pd(p),
        };
        power |x| {
            let bits = _mm_slli_epi64::<52>(_mm_castpd_si128(x));
            _mm_castsi128_pd(_mm_add_epi64(bits, _mm_set1_epi64x(ONE_WIDE)))
        };
        greatest |x| _mm_cvtsd_f64(_mm_max_sd(x, _mm_unpackhi_pd(x, x))));
}

#[cfg(not(target_arch = "x86_64"))]
macro_rules! plain {
    ($t:ty, $n:literal) => {
        // SAFETY: plain code.
        unsafe impl FloatVector for super::vector::Plain<$t, $n> {
            #[inline(always)]
            unsafe fn sub(self, x: Self) -> Self {
                super::vector::Plain(std::array::from_fn(|l| self.0[l] - x.0[l]))
            }
            #[inline(always)]
            unsafe fn mul(self, x: Self) -> Self {
                super::vector::Plain(std::array::from_fn(|l| self.0[l] * x.0[l]))
            }
            #[inline(always)]
            unsafe fn max(self, x: Self) -> Self {
                super::vector::Plain(std::array::from_fn(
                    |l| if self.0[l] > x.0[l] { self.0[l] } else { x.0[l] },
                ))
            }
            #[inline(always)]
            unsafe fn times(self, x: Self) -> Self {
                super::vector::Plain(std::array::from_fn(|l| {
                    if self.0[l] == 0.0 { 0.0 } else { self.0[l] * x.0[l] }
                }))
            }
            #[inline(always)]
            unsafe fn first_or(from: *const $t, n: usize, rest: Self) -> Self {
                // SAFETY: the caller's.
                super::vector::Plain(std::array::from_fn(|l| {
                    if l < n { unsafe { *from.add(l) } } else { rest.0[l] }
                }))
            }
            #[inline(always)]
            unsafe fn power_of_two(self) -> Self {
                use crate::kernel::float::Float;
                super::vector::Plain(self.0.map(Float::power_of_two))
            }
            #[inline(always)]
            unsafe fn greatest(self) -> $t {
                self.0.into_iter().fold(<$t>::NEG_INFINITY, |a, b| if b > a { b } else { a })
            }
        }
    };
}
#[cfg(not(target_arch = "x86_64"))]
plain!(f32, 4);
#[cfg(not(target_arch = "x86_64"))]
plain!(f64, 2);
