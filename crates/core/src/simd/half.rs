//! float16 to float32 and back by the instructions for it. NaN, of which the instructions keep other bits than the
//! plain formulas, is left to the caller. Knows no formula.

/// Converts the first elements of `n`: all but at most 15, or up to less than 16 before a NaN. Says how many.
///
/// # Safety
/// `n` elements are readable and writable, on a machine that has the instruction (see [`converters`]).
pub type Convert<A, B> = unsafe fn(n: usize, from: *const A, to: *mut B) -> usize;

/// The conversions to and from float32 for the current instruction set; none where it lacks them.
pub fn converters() -> Option<(Convert<u16, f32>, Convert<f32, u16>)> {
    #[cfg(target_arch = "x86_64")]
    match super::isa() {
        super::Isa::Avx2 if is_x86_feature_detected!("f16c") => return Some((x86::widen, x86::narrow)),
        super::Isa::Avx512 => return Some((x86::widen_long, x86::narrow_long)),
        _ => {}
    }
    None
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    /// Runs `$vector` with `$at` the places of whole vectors, until it says that one holds a NaN.
    macro_rules! vectors {
        ($n:ident by $lanes:literal, |$at:ident| $vector:expr) => {{
            let mut $at = 0;
            while $at + $lanes <= $n && !$vector {
                $at += $lanes;
            }
            $at
        }};
    }

    /// # Safety
    /// As [`super::Convert`], with AVX and F16C.
    #[target_feature(enable = "avx,f16c")]
    pub unsafe fn widen(n: usize, from: *const u16, to: *mut f32) -> usize {
        vectors!(n by 8, |i| {
            // SAFETY: eight of the `n` elements.
            let wide = _mm256_cvtph_ps(unsafe { _mm_loadu_si128(from.add(i).cast()) });
            // SAFETY: as above.
            unsafe { _mm256_storeu_ps(to.add(i), wide) };
            _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_UNORD_Q>(wide, wide)) != 0
        })
    }

    /// # Safety
    /// As [`super::Convert`], with AVX and F16C.
    #[target_feature(enable = "avx,f16c")]
    pub unsafe fn narrow(n: usize, from: *const f32, to: *mut u16) -> usize {
        vectors!(n by 8, |i| {
            // SAFETY: eight of the `n` elements.
            let wide = unsafe { _mm256_loadu_ps(from.add(i)) };
            let half = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(wide);
            // SAFETY: as above.
            unsafe { _mm_storeu_si128(to.add(i).cast(), half) };
            _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_UNORD_Q>(wide, wide)) != 0
        })
    }

    /// # Safety
    /// As [`super::Convert`], with AVX-512.
    #[target_feature(enable = "avx512f")]
    pub unsafe fn widen_long(n: usize, from: *const u16, to: *mut f32) -> usize {
        vectors!(n by 16, |i| {
            // SAFETY: sixteen of the `n` elements.
            let wide = _mm512_cvtph_ps(unsafe { _mm256_loadu_si256(from.add(i).cast()) });
            // SAFETY: as above.
            unsafe { _mm512_storeu_ps(to.add(i), wide) };
            _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(wide, wide) != 0
        })
    }

    /// # Safety
    /// As [`super::Convert`], with AVX-512.
    #[target_feature(enable = "avx512f")]
    pub unsafe fn narrow_long(n: usize, from: *const f32, to: *mut u16) -> usize {
        vectors!(n by 16, |i| {
            // SAFETY: sixteen of the `n` elements.
            let wide = unsafe { _mm512_loadu_ps(from.add(i)) };
            let half = _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(wide);
            // SAFETY: as above.
            unsafe { _mm256_storeu_si256(to.add(i).cast(), half) };
            _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(wide, wide) != 0
        })
    }
}
