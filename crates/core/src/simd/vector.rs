//! Vectors of one instruction set, for kernels that keep a tile of sums in registers and so must say how many
//! there are. Everything else is plain loops, compiled once for each set. Knows no formula.

use crate::Element;
use crate::simd::float::FloatVector;

/// A register full of `Item`s.
///
/// # Safety
/// Methods may be called only where the instruction set is enabled: inside a function compiled for it (all are
/// inlined). Pointers must be valid for `LANES` elements; they need no alignment beyond the element's.
pub unsafe trait Vector: Copy {
    type Item: Element + std::ops::AddAssign;
    const LANES: usize;
    /// The most rows of a tile three vectors wide whose sums stay in registers, up to 8.
    const ROWS: usize;
    /// Rows and columns of a tile of dot products.
    const DOTS: [usize; 2];
    /// Rows and columns of the blocks that [`Vector::turn`] transposes.
    const SIDE: usize;
    /// Whether a masked load costs no more than a whole one.
    const MASKS: bool;
    /// # Safety
    /// As the trait's.
    unsafe fn zero() -> Self;
    /// # Safety
    /// As the trait's.
    unsafe fn load(from: *const Self::Item) -> Self;
    /// Every lane the same.
    ///
    /// # Safety
    /// As the trait's.
    unsafe fn splat(x: Self::Item) -> Self;
    /// `self * x + sum`; rounded once where the set has the instruction.
    ///
    /// # Safety
    /// As the trait's.
    unsafe fn multiply_add(self, x: Self, sum: Self) -> Self;
    /// The first `n` lanes, zeros after them; no more than `n` elements are read.
    ///
    /// # Safety
    /// As the trait's.
    unsafe fn first(from: *const Self::Item, n: usize) -> Self;
    /// The first `n` lanes, zeros after them; reads no more than `n` elements.
    ///
    /// # Safety
    /// Only `n` elements need to be valid.
    unsafe fn part(from: *const Self::Item, n: usize) -> Self;
    /// # Safety
    /// As the trait's.
    unsafe fn add(self, x: Self) -> Self;
    /// # Safety
    /// As the trait's.
    unsafe fn store(self, to: *mut Self::Item);
    /// Transposes a block of [`Vector::SIDE`] by as many: rows of `from` become columns of `to`; steps from row to
    /// row are in elements.
    ///
    /// # Safety
    /// Both blocks are valid.
    unsafe fn turn(from: *const Self::Item, from_row: isize, to: *mut Self::Item, to_row: isize);
    /// Stores the first `n` lanes.
    ///
    /// # Safety
    /// As the trait's.
    unsafe fn store_first(self, to: *mut Self::Item, n: usize);
    /// The sum of all lanes, half by half.
    ///
    /// # Safety
    /// As the trait's.
    unsafe fn total(self) -> Self::Item;
}

/// An element type with a vector for each instruction set.
pub trait Wide: Element + std::ops::AddAssign {
    type Baseline: FloatVector<Item = Self>;
    #[cfg(target_arch = "x86_64")]
    type Avx2: FloatVector<Item = Self>;
    #[cfg(target_arch = "x86_64")]
    type Avx512: FloatVector<Item = Self>;
}

/// Sixteen bytes, by lanes, where there is no module for the set.
#[cfg(not(target_arch = "x86_64"))]
#[derive(Clone, Copy)]
pub struct Plain<T, const N: usize>(pub(super) [T; N]);

#[cfg(not(target_arch = "x86_64"))]
macro_rules! plain {
    ($t:ty, $n:literal) => {
        // SAFETY: plain code.
        unsafe impl Vector for Plain<$t, $n> {
            type Item = $t;
            const LANES: usize = $n;
            const ROWS: usize = if cfg!(target_arch = "aarch64") { 8 } else { 4 };
            const DOTS: [usize; 2] = if cfg!(target_arch = "aarch64") { [4, 6] } else { [3, 3] };
            const SIDE: usize = 4;
            const MASKS: bool = false;
            #[inline(always)]
            unsafe fn zero() -> Self {
                Plain([0.0; $n])
            }
            #[inline(always)]
            unsafe fn load(from: *const $t) -> Self {
                // SAFETY: the caller's.
                Plain(unsafe { from.cast::<[$t; $n]>().read() })
            }
            #[inline(always)]
            unsafe fn splat(x: $t) -> Self {
                Plain([x; $n])
            }
            #[inline(always)]
            unsafe fn multiply_add(self, x: Self, sum: Self) -> Self {
                Plain(std::array::from_fn(|l| {
                    if cfg!(target_arch = "aarch64") {
                        self.0[l].mul_add(x.0[l], sum.0[l])
                    } else {
                        self.0[l] * x.0[l] + sum.0[l]
                    }
                }))
            }
            #[inline(always)]
            unsafe fn first(from: *const $t, n: usize) -> Self {
                // SAFETY: the caller's.
                Plain(std::array::from_fn(|l| if l < n { unsafe { *from.add(l) } } else { 0.0 }))
            }
            #[inline(always)]
            unsafe fn part(from: *const $t, n: usize) -> Self {
                // SAFETY: the caller's.
                Plain(std::array::from_fn(|l| if l < n { unsafe { *from.add(l) } } else { 0.0 }))
            }
            #[inline(always)]
            unsafe fn add(self, x: Self) -> Self {
                Plain(std::array::from_fn(|l| self.0[l] + x.0[l]))
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $t) {
                // SAFETY: the caller's.
                unsafe { to.cast::<[$t; $n]>().write(self.0) }
            }
            #[inline(always)]
            unsafe fn turn(from: *const $t, from_row: isize, to: *mut $t, to_row: isize) {
                for i in 0..4 {
                    for j in 0..4 {
                        // SAFETY: elements of the blocks.
                        unsafe { *to.offset(j * to_row + i) = *from.offset(i * from_row + j) };
                    }
                }
            }
            #[inline(always)]
            unsafe fn store_first(self, to: *mut $t, n: usize) {
                for l in 0..n.min($n) {
                    // SAFETY: the caller's.
                    unsafe { *to.add(l) = self.0[l] };
                }
            }
            #[inline(always)]
            unsafe fn total(self) -> $t {
                let (mut x, mut half) = (self.0, $n / 2);
                while half > 0 {
                    for l in 0..half {
                        x[l] += x[l + half];
                    }
                    half /= 2;
                }
                x[0]
            }
        }
    };
}
#[cfg(not(target_arch = "x86_64"))]
plain!(f32, 4);
#[cfg(not(target_arch = "x86_64"))]
plain!(f64, 2);

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Vector;
    use crate::simd::turn;
    use std::arch::x86_64::*;

    macro_rules! vector {
        ($v:ty, $t:ty, $lanes:literal, $rows:literal, $dots:expr, $masks:literal, $side:literal $turn:ident;
         $zero:ident $load:ident $store_whole:ident $splat:ident $fma:ident $add:ident;
         first |$p:ident, $n:ident| $first:expr; store |$v_:ident, $to:ident, $m:ident| $store:expr; total |$x:ident| $total:expr) => {
            // SAFETY: each method is the instruction of its name.
            unsafe impl Vector for $v {
                type Item = $t;
                const LANES: usize = $lanes;
                const ROWS: usize = $rows;
                const DOTS: [usize; 2] = $dots;
                const SIDE: usize = $side;
                const MASKS: bool = $masks;
                #[inline(always)]
                unsafe fn zero() -> Self {
                    // SAFETY: the caller's.
                    unsafe { $zero() }
                }
                #[inline(always)]
                unsafe fn load(from: *const $t) -> Self {
                    // SAFETY: the caller's.
                    unsafe { $load(from) }
                }
                #[inline(always)]
                unsafe fn splat(x: $t) -> Self {
                    // SAFETY: the caller's.
                    unsafe { $splat(x) }
                }
                #[inline(always)]
                unsafe fn multiply_add(self, x: Self, sum: Self) -> Self {
                    // SAFETY: the caller's.
                    unsafe { $fma(self, x, sum) }
                }
                #[inline(always)]
                unsafe fn first($p: *const $t, $n: usize) -> Self {
                    // SAFETY: the caller's.
                    unsafe { $first }
                }
                #[inline(always)]
                unsafe fn part(from: *const $t, n: usize) -> Self {
                    // SAFETY: the caller's; masked elements are not read.
                    unsafe { Self::first(from, n) }
                }
                #[inline(always)]
                unsafe fn add(self, x: Self) -> Self {
                    // SAFETY: the caller's.
                    unsafe { $add(self, x) }
                }
                #[inline(always)]
                unsafe fn store(self, to: *mut $t) {
                    // SAFETY: the caller's.
                    unsafe { $store_whole(to, self) }
                }
                #[inline(always)]
                unsafe fn turn(from: *const $t, from_row: isize, to: *mut $t, to_row: isize) {
                    // SAFETY: the caller's.
                    unsafe { turn::$turn(from, from_row, to, to_row) }
                }
                #[inline(always)]
                unsafe fn store_first(self, $to: *mut $t, $m: usize) {
                    let $v_ = self;
                    // SAFETY: the caller's.
                    unsafe { $store }
                }
                #[inline(always)]
                unsafe fn total(self) -> $t {
                    let $x = self;
                    // SAFETY: the caller's.
                    unsafe { $total }
                }
            }
        };
    }

    vector!(__m512, f32, 16, 8, [4, 6], true, 8 singles;
        _mm512_setzero_ps _mm512_loadu_ps _mm512_storeu_ps _mm512_set1_ps
        _mm512_fmadd_ps _mm512_add_ps;
        first |p, n| _mm512_maskz_loadu_ps(((1u32 << n) - 1) as u16, p);
        store |v, to, n| _mm512_mask_storeu_ps(to, ((1u32 << n) - 1) as u16, v);
        total |x| _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps::<1>(x)).total());
    vector!(__m512d, f64, 8, 8, [4, 6], true, 4 doubles;
        _mm512_setzero_pd _mm512_loadu_pd _mm512_storeu_pd _mm512_set1_pd
        _mm512_fmadd_pd _mm512_add_pd;
        first |p, n| _mm512_maskz_loadu_pd(((1u32 << n) - 1) as u8, p);
        store |v, to, n| _mm512_mask_storeu_pd(to, ((1u32 << n) - 1) as u8, v);
        total |x| _mm256_add_pd(_mm512_castpd512_pd256(x), _mm512_extractf64x4_pd::<1>(x)).total());
    vector!(__m256, f32, 8, 4, [3, 3], false, 8 singles;
    _mm256_setzero_ps _mm256_loadu_ps _mm256_storeu_ps _mm256_set1_ps
    _mm256_fmadd_ps _mm256_add_ps;
    first |p, n| {
        let places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        _mm256_maskload_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32(n as i32), places))
    };
    store |v, to, n| {
        let places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        _mm256_maskstore_ps(to, _mm256_cmpgt_epi32(_mm256_set1_epi32(n as i32), places), v)
    };
    total |x| {
        let half = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
        let pair = _mm_add_ps(half, _mm_movehl_ps(half, half));
        _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)))
    });
    vector!(__m256d, f64, 4, 4, [3, 3], false, 4 doubles;
    _mm256_setzero_pd _mm256_loadu_pd _mm256_storeu_pd _mm256_set1_pd
    _mm256_fmadd_pd _mm256_add_pd;
    first |p, n| {
        let places = _mm256_setr_epi64x(0, 1, 2, 3);
        _mm256_maskload_pd(p, _mm256_cmpgt_epi64(_mm256_set1_epi64x(n as i64), places))
    };
    store |v, to, n| {
        let places = _mm256_setr_epi64x(0, 1, 2, 3);
        _mm256_maskstore_pd(to, _mm256_cmpgt_epi64(_mm256_set1_epi64x(n as i64), places), v)
    };
    total |x| {
        let half = _mm_add_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd::<1>(x));
        _mm_cvtsd_f64(_mm_add_sd(half, _mm_unpackhi_pd(half, half)))
    });

    #[inline(always)]
    unsafe fn multiply_add_ps(x: __m128, y: __m128, sum: __m128) -> __m128 {
        // SAFETY: the caller's.
        unsafe { _mm_add_ps(_mm_mul_ps(x, y), sum) }
    }
    #[inline(always)]
    unsafe fn multiply_add_pd(x: __m128d, y: __m128d, sum: __m128d) -> __m128d {
        // SAFETY: the caller's.
        unsafe { _mm_add_pd(_mm_mul_pd(x, y), sum) }
    }
    vector!(__m128, f32, 4, 4, [3, 3], false, 4 single_fours; _mm_setzero_ps _mm_loadu_ps _mm_storeu_ps _mm_set1_ps
    multiply_add_ps _mm_add_ps;
    first |p, n| {
        let mut x = [0f32; 4];
        std::ptr::copy_nonoverlapping(p, x.as_mut_ptr(), n.min(4));
        _mm_loadu_ps(x.as_ptr())
    };
    store |v, to, n| {
        let mut x = [0f32; 4];
        _mm_storeu_ps(x.as_mut_ptr(), v);
        std::ptr::copy_nonoverlapping(x.as_ptr(), to, n.min(4))
    };
    total |x| {
        let pair = _mm_add_ps(x, _mm_movehl_ps(x, x));
        _mm_cvtss_f32(_mm_add_ss(pair, _mm_shuffle_ps::<1>(pair, pair)))
    });
    vector!(__m128d, f64, 2, 4, [3, 3], false, 2 double_twos; _mm_setzero_pd _mm_loadu_pd _mm_storeu_pd _mm_set1_pd
    multiply_add_pd _mm_add_pd;
    first |p, n| if n < 2 { if n == 0 { _mm_setzero_pd() } else { _mm_load_sd(p) } } else { _mm_loadu_pd(p) };
    store |v, to, n| match n {
        0 => {}
        1 => _mm_store_sd(to, v),
        _ => _mm_storeu_pd(to, v),
    };
    total |x| _mm_cvtsd_f64(_mm_add_sd(x, _mm_unpackhi_pd(x, x))));

    impl super::Wide for f32 {
        type Baseline = __m128;
        type Avx2 = __m256;
        type Avx512 = __m512;
    }
    impl super::Wide for f64 {
        type Baseline = __m128d;
        type Avx2 = __m256d;
        type Avx512 = __m512d;
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl Wide for f32 {
    type Baseline = Plain<f32, 4>;
}
#[cfg(not(target_arch = "x86_64"))]
impl Wide for f64 {
    type Baseline = Plain<f64, 2>;
}

/// Defines a function that runs a generic body over [`Vector`]s with the vectors of the current instruction set.
/// The body, and all it calls, must be `#[inline(always)]`.
#[macro_export]
macro_rules! with_vectors {
    ($(#[$meta:meta])* $vis:vis unsafe fn $pick:ident<$t:ident>($($arg:ident : $argty:ty),*) = $body:ident) => {
        $(#[$meta])*
        $vis unsafe fn $pick<$t: $crate::simd::vector::Wide>($($arg: $argty),*) {
            #[cfg(target_arch = "x86_64")]
            {
                /// # Safety
                /// As the body's, on a machine with these features.
                #[target_feature(enable = "avx2,fma")]
                unsafe fn avx2<$t: $crate::simd::vector::Wide>($($arg: $argty),*) {
                    // SAFETY: the caller's contract is the body's; the features are on.
                    unsafe { $body::<$t::Avx2>($($arg),*) }
                }
                /// # Safety
                /// As the body's, on a machine with these features.
                #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
                unsafe fn avx512<$t: $crate::simd::vector::Wide>($($arg: $argty),*) {
                    // SAFETY: the caller's contract is the body's; the features are on.
                    unsafe { $body::<$t::Avx512>($($arg),*) }
                }
                match $crate::simd::isa() {
                    // SAFETY: the caller's contract is the body's; the machine has the set that `isa` names.
                    $crate::simd::Isa::Avx2 => return unsafe { avx2::<$t>($($arg),*) },
                    // SAFETY: the body's contract is the caller's; `isa` found AVX-512 on this machine.
                    $crate::simd::Isa::Avx512 => return unsafe { avx512::<$t>($($arg),*) },
                    _ => {}
                }
            }
            // SAFETY: the caller's contract is the body's.
            unsafe { $body::<$t::Baseline>($($arg),*) }
        }
    };
}

/// The lanes of the current instruction set's vectors.
pub fn lanes<T: Wide>() -> usize {
    #[cfg(target_arch = "x86_64")]
    match super::isa() {
        super::Isa::Avx2 => return T::Avx2::LANES,
        super::Isa::Avx512 => return T::Avx512::LANES,
        _ => {}
    }
    T::Baseline::LANES
}

/// The most rows of a tile, for the current instruction set.
pub fn rows<T: Wide>() -> usize {
    #[cfg(target_arch = "x86_64")]
    match super::isa() {
        super::Isa::Avx2 => return T::Avx2::ROWS,
        super::Isa::Avx512 => return T::Avx512::ROWS,
        _ => {}
    }
    T::Baseline::ROWS
}
