//! Random bits by counter: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC
//! 2011), and how bits become numbers. Element i of draw n is a function of (seed, n, i): nothing is kept.
//!
//! The formulas use IEEE basic operations and square roots only, so every instruction set gives equal results.
#![allow(clippy::needless_range_loop)] // lanes of one index are computed side by side

use crate::isa_versions;
use crate::op::Draw;
use bytemuck::Pod;

const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

/// Blocks that are computed beside each other, so that the compiler can use vectors.
const LANES: usize = 16;

/// The random bits of one draw.
#[derive(Clone, Copy)]
pub struct Stream {
    key: [u32; 2],
    counter: [u32; 2],
}

impl Stream {
    pub fn new(draw: Draw) -> Stream {
        let halves = |x: u64| [x as u32, (x >> 32) as u32];
        Stream { key: halves(draw.seed), counter: halves(draw.counter) }
    }

    /// Other bits of the same draw, for what an element that rejects its first bits takes next. Draws are far
    /// fewer than 2^48, so the counter's upper 16 bits are free.
    pub fn attempt(self, n: u32) -> Stream {
        Stream { counter: [self.counter[0], self.counter[1] ^ (n << 16)], ..self }
    }

    /// L consecutive blocks: words 0 and (in the upper half) 1 of block `first + l` at `[0][l]`, words 2 and 3 at
    /// `[1][l]`.
    #[inline(always)]
    fn blocks<const L: usize>(&self, first: u64) -> [[u64; L]; 2] {
        const LOW: u64 = 0xffff_ffff;
        let mut pairs = [[0u64; L]; 2];
        // One lane after the other, each a value of its own: what the compiler makes vectors of without arrays between.
        for l in 0..L {
            let block = first.wrapping_add(l as u64);
            // Words are the lower halves; what is above them no multiplication reads.
            let (mut x, mut y) = ([block, block >> 32], [self.counter[0].into(), self.counter[1].into()]);
            let mut key = self.key;
            for _ in 0..10 {
                let a = (x[0] & LOW) * u64::from(MULTIPLIERS[0]);
                let b = (y[0] & LOW) * u64::from(MULTIPLIERS[1]);
                x = [(b >> 32) ^ x[1] ^ u64::from(key[0]), b];
                y = [(a >> 32) ^ y[1] ^ u64::from(key[1]), a];
                key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
            }
            pairs[0][l] = x[0] & LOW | x[1] << 32;
            pairs[1][l] = y[0] & LOW | y[1] << 32;
        }
        pairs
    }

    /// 32-bit word `i` alone.
    pub fn word(&self, i: usize) -> u32 {
        (self.blocks::<1>(i as u64 / 4)[i % 4 / 2][0] >> (i % 2 * 32)) as u32
    }

    /// 64-bit word `i` alone.
    pub fn long_word(&self, i: usize) -> u64 {
        self.blocks::<1>(i as u64 / 2)[i % 2][0]
    }

    /// An unbiased integer below `bound` (0 stands for 2^64) for element i, whose first bits are `word` (32 of
    /// them where the bound fits): Lemire, "Fast random integer generation in an interval", 2019.
    pub fn below(&self, i: usize, bound: u64, word: u64) -> u64 {
        if bound == 0 {
            return word;
        }
        let mut word = word;
        let mut attempt = 1;
        if bound <= 1 << 32 {
            let mut product = (word & 0xffff_ffff) * bound;
            // The least that counts is below the bound, and costs a division.
            if may_reject(product, bound) {
                let least = (1u64 << 32) % bound;
                while (product & 0xffff_ffff) < least {
                    product = u64::from(self.attempt(attempt).word(i)) * bound;
                    attempt += 1;
                }
            }
            return product >> 32;
        }
        let least = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(word) * u128::from(bound);
            if product as u64 >= least {
                return (product >> 64) as u64;
            }
            word = self.attempt(attempt).long_word(i);
            attempt += 1;
        }
    }

    /// [`Stream::below`] for element i, of whose bits a 32-bit word is at hand.
    pub fn integer(&self, i: usize, word: u32, bound: u64) -> u64 {
        let short = bound != 0 && bound <= 1 << 32;
        self.below(i, bound, if short { u64::from(word) } else { self.long_word(i) })
    }
}

/// Whether [`Stream::below`] has to look at its first bits twice; `product` is theirs with the bound.
#[inline(always)]
pub fn may_reject(product: u64, bound: u64) -> bool {
    (product & 0xffff_ffff) < bound
}

/// The upper 24 bits as a number in [0, 1).
#[inline(always)]
pub fn unit32(word: u32) -> f32 {
    (word >> 8) as f32 * (1.0 / (1u32 << 24) as f32)
}

/// The upper 53 bits as a number in [0, 1).
#[inline(always)]
pub fn unit64(word: u64) -> f64 {
    (word >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// All 32 bits as a number in (0, 1): the middle of its interval.
#[inline(always)]
pub fn open32(word: u32) -> f64 {
    (f64::from(word) + 0.5) * (1.0 / (1u64 << 32) as f64)
}

/// The upper 52 bits as a number in (0, 1): the middle of its interval.
#[inline(always)]
pub fn open64(word: u64) -> f64 {
    ((word >> 12) as f64 + 0.5) * (1.0 / (1u64 << 52) as f64)
}

/// Minus the logarithm of `u` in (0, 1), by the series of atanh around powers of two; without `LONG` to the precision
/// of float32 alone.
#[inline(always)]
pub fn minus_ln<const LONG: bool>(u: f64) -> f64 {
    const LN2_HIGH: f64 = 0.693_147_180_369_123_8;
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    // Moves the mantissa to [sqrt(1/2), sqrt(2)).
    let bits = u.to_bits().wrapping_add(0x0010_0000_0000_0000 - 0x0006_A09E_667F_3BCD);
    let exponent = (bits >> 52) as i32 - 1023;
    let m = f64::from_bits((bits & 0x000F_FFFF_FFFF_FFFF) + 0x3FE6_A09E_667F_3BCD);
    let e = f64::from(exponent);
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let p = if LONG { horner(z, &Odd::<11>::INVERSES) } else { horner(z, &Odd::<5>::INVERSES) };
    -(e * LN2_HIGH + (2.0 * s + (2.0 * s * z * p + e * LN2_LOW)))
}

/// A polynomial; the highest coefficient comes first.
#[inline(always)]
fn horner<const N: usize>(z: f64, coefficients: &'static [f64; N]) -> f64 {
    let mut p = coefficients[0];
    for k in 1..N {
        p = p * z + coefficients[k];
    }
    p
}

/// 1 / (2 N + 1), ..., 1 / 5, 1 / 3.
struct Odd<const N: usize>;

impl<const N: usize> Odd<N> {
    const INVERSES: [f64; N] = {
        let mut out = [0.0; N];
        let mut k = 0;
        while k < N {
            out[k] = 1.0 / (2 * (N - k) + 1) as f64;
            k += 1;
        }
        out
    };
}

/// The coefficients of a series in z, from the N-th on down: (-1)^k over the factorial of 2k + `ODD`.
struct Alternating<const N: usize, const ODD: usize>;

impl<const N: usize, const ODD: usize> Alternating<N, ODD> {
    const TERMS: [f64; N] = {
        let mut out = [1.0; N];
        let (mut k, mut term) = (1, 1.0);
        while k < N {
            term *= ((2 * k - 1 + ODD) * (2 * k + ODD)) as f64;
            out[N - 1 - k] = if k % 2 == 1 { -1.0 / term } else { 1.0 / term };
            k += 1;
        }
        out
    };
}

/// The cosine and sine of a turn `t` in [0, 1); without `LONG` to the precision of float32 alone.
#[inline(always)]
pub fn cos_sin<const LONG: bool>(t: f64) -> (f64, f64) {
    // SAFETY: below 2^31 for a turn below 1; a checked conversion would not become one instruction.
    let quarter: i32 = unsafe { (t * 4.0 + 0.5).to_int_unchecked() };
    // Exact: the quotient is a multiple of 1/4 close to t.
    let x = (t - f64::from(quarter) * 0.25) * std::f64::consts::TAU;
    let z = x * x;
    let (c, s) = if LONG {
        (horner(z, &Alternating::<10, 0>::TERMS), horner(z, &Alternating::<9, 1>::TERMS))
    } else {
        (horner(z, &Alternating::<6, 0>::TERMS), horner(z, &Alternating::<6, 1>::TERMS))
    };
    let s = x * s;
    let (a, b) = if quarter & 1 == 0 { (c, s) } else { (s, c) };
    let flip_cos = quarter & 3 == 1 || quarter & 3 == 2;
    let flip_sin = quarter & 2 != 0;
    (if flip_cos { -a } else { a }, if flip_sin { -b } else { b })
}

/// Two independent standard normal numbers from u in (0, 1) and a turn in [0, 1): Box and Muller, 1958.
#[inline(always)]
pub fn normal_pair<const LONG: bool>(u: f64, turn: f64) -> (f64, f64) {
    let r = (2.0 * minus_ln::<LONG>(u)).sqrt();
    let (c, s) = cos_sin::<LONG>(turn);
    (r * c, r * s)
}

/// Elements that are drawn together.
pub const TILE: usize = 256;

/// Fills `out` with words of 32 or 64 bits from `first` on.
#[inline(always)]
fn fill<W: Pod>(stream: &Stream, first: usize, out: &mut [W]) {
    let each = 16 / size_of::<W>();
    let (mut start, end) = (first - first % each, first + out.len());
    while start < end {
        let pairs = stream.blocks::<LANES>((start / each) as u64);
        let mut buffer = [[0u64; 2]; LANES];
        for l in 0..LANES {
            let halves = |pair: u64| {
                // The lower half is the first word in memory, whatever the machine's order.
                if cfg!(target_endian = "big") && size_of::<W>() == 4 { pair.rotate_left(32) } else { pair }
            };
            buffer[l] = [halves(pairs[0][l]), halves(pairs[1][l])];
        }
        let words: &[W] = bytemuck::cast_slice(&buffer);
        if start >= first && start + words.len() <= end {
            out[start - first..][..words.len()].copy_from_slice(words);
        } else {
            let (from, to) = (first.saturating_sub(start), (end - start).min(words.len()));
            out[start + from - first..][..to - from].copy_from_slice(&words[from..to]);
        }
        start += words.len();
    }
}

/// # Safety
/// None; the type is that of functions compiled for an instruction set.
#[inline(always)]
unsafe fn words_body(stream: &Stream, first: usize, out: &mut [u32]) {
    fill(stream, first, out);
}

isa_versions! {
    /// Fills `out` with the 32-bit words from `first` on.
    pub fn fill_words -> unsafe fn(&Stream, usize, &mut [u32]) = words_body;
    generics [] names [] fast true; args (stream: &Stream, first: usize, out: &mut [u32])
}

/// # Safety
/// As [`words_body`].
#[inline(always)]
unsafe fn long_body(stream: &Stream, first: usize, out: &mut [u64]) {
    fill(stream, first, out);
}

isa_versions! {
    /// Fills `out` with the 64-bit words from `first` on.
    pub fn fill_long -> unsafe fn(&Stream, usize, &mut [u64]) = long_body;
    generics [] names [] fast true; args (stream: &Stream, first: usize, out: &mut [u64])
}

/// # Safety
/// As [`words_body`]. At most [`TILE`] elements.
#[inline(always)]
unsafe fn units_body<const LONG: bool, const LOG: bool>(stream: &Stream, first: usize, out: &mut [f64]) {
    let n = out.len();
    if LONG {
        let mut words = [0u64; TILE];
        fill(stream, first, &mut words[..n]);
        for (out, &word) in out.iter_mut().zip(&words[..n]) {
            *out = if LOG { minus_ln::<true>(open64(word)) } else { unit64(word) };
        }
    } else {
        let mut words = [0u32; TILE];
        fill(stream, first, &mut words[..n]);
        for (out, &word) in out.iter_mut().zip(&words[..n]) {
            *out = if LOG { minus_ln::<false>(open32(word)) } else { f64::from(unit32(word)) };
        }
    }
}

isa_versions! {
    /// Fills `out`, of at most [`TILE`] elements, with numbers in [0, 1) for the elements from `first` on, or
    /// (`LOG`) with minus the logarithms of numbers in (0, 1). `LONG`: from 64 bits each.
    pub fn fill_units -> unsafe fn(&Stream, usize, &mut [f64]) = units_body;
    generics [const LONG: bool, const LOG: bool] names [LONG, LOG] fast true;
    args (stream: &Stream, first: usize, out: &mut [f64])
}

/// # Safety
/// As [`units_body`].
#[inline(always)]
unsafe fn normals_body<const LONG: bool>(stream: &Stream, first: usize, out: &mut [f64]) {
    // Elements 2i and 2i + 1 share their bits.
    let skip = first % 2;
    let pairs = (skip + out.len()).div_ceil(2);
    let mut results = [[0f64; 2]; TILE / 2 + 1];
    let (mut u, mut turn) = ([0f64; TILE / 2 + 1], [0f64; TILE / 2 + 1]);
    if LONG {
        let mut words = [0u64; TILE + 2];
        fill(stream, first - skip, &mut words[..2 * pairs]);
        for i in 0..pairs {
            (u[i], turn[i]) = (open64(words[2 * i]), unit64(words[2 * i + 1]));
        }
    } else {
        let mut words = [0u32; TILE + 2];
        fill(stream, first - skip, &mut words[..2 * pairs]);
        for i in 0..pairs {
            (u[i], turn[i]) = (open32(words[2 * i]), f64::from(words[2 * i + 1]) / (1u64 << 32) as f64);
        }
    }
    for i in 0..pairs {
        let (x, y) = normal_pair::<LONG>(u[i], turn[i]);
        results[i] = [x, y];
    }
    out.copy_from_slice(&results.as_flattened()[skip..skip + out.len()]);
}

isa_versions! {
    /// Fills `out`, of at most [`TILE`] elements, with standard normal numbers for the elements from `first` on.
    pub fn fill_normals -> unsafe fn(&Stream, usize, &mut [f64]) = normals_body;
    generics [const LONG: bool] names [LONG] fast true; args (stream: &Stream, first: usize, out: &mut [f64])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers of the reference implementation (Random123, kat_vectors).
    #[test]
    fn known_answers() {
        let zero = Stream { key: [0; 2], counter: [0; 2] };
        let first: Vec<u32> = (0..4).map(|i| zero.word(i)).collect();
        assert_eq!(first, [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        let pi = Stream { key: [0xa409_3822, 0x299f_31d0], counter: [0x1319_8a2e, 0x0370_7344] };
        let pairs = pi.blocks::<1>(0x85a3_08d3_243f_6a88);
        assert_eq!(pairs.map(|w| w[0]), [0x94fd_cceb_d16c_fe09, 0x2412_6ea1_5001_e420]);
    }

    #[test]
    fn tiles_are_the_elements_alone_on_every_instruction_set() {
        let stream = Stream::new(Draw { seed: 11, counter: 5 });
        let now = crate::simd::isa();
        for isa in crate::simd::Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
            crate::simd::select(isa);
            for (first, n) in [(0, 1), (3, 6), (5, TILE), (8, TILE), (1, 2), (7, 201)] {
                let (mut words, mut long) = (vec![0; n], vec![0; n]);
                let (mut units, mut normals) = (vec![0.0; n], vec![0.0; n]);
                // SAFETY: at most a tile.
                unsafe { fill_words()(&stream, first, &mut words) };
                let alone = |i: usize| stream.word(first + i);
                assert!((0..n).all(|i| words[i] == alone(i)));
                // SAFETY: no condition.
                unsafe { fill_long()(&stream, first, &mut long) };
                assert!((0..n).all(|i| long[i] == stream.long_word(first + i)));
                let halves =
                    |i: usize| u64::from(stream.word(2 * i)) | u64::from(stream.word(2 * i + 1)) << 32;
                assert!((0..n).all(|i| long[i] == halves(first + i)));
                // SAFETY: at most a tile.
                unsafe { fill_units::<true, true>()(&stream, first, &mut units) };
                assert!((0..n).all(|i| units[i] == minus_ln::<true>(open64(stream.long_word(first + i)))));
                // SAFETY: at most a tile.
                unsafe { fill_normals::<false>()(&stream, first, &mut normals) };
                for (i, &x) in normals.iter().enumerate() {
                    let at = first + i - (first + i) % 2;
                    let turn = f64::from(stream.word(at + 1)) / (1u64 << 32) as f64;
                    let pair = normal_pair::<false>(open32(stream.word(at)), turn);
                    assert_eq!(x, if (first + i) % 2 == 0 { pair.0 } else { pair.1 });
                }
                // SAFETY: at most a tile.
                unsafe { fill_normals::<true>()(&stream, first, &mut normals) };
                for (i, &x) in normals.iter().enumerate() {
                    let at = first + i - (first + i) % 2;
                    let (u, turn) = (open64(stream.long_word(at)), unit64(stream.long_word(at + 1)));
                    let pair = normal_pair::<true>(u, turn);
                    assert_eq!(x, if (first + i) % 2 == 0 { pair.0 } else { pair.1 });
                }
            }
        }
        crate::simd::select(now);
    }

    #[test]
    fn formulas_agree_with_the_standard_library() {
        let ulps = |a: f64, b: f64| (a - b).abs() / (b.abs() * f64::EPSILON).max(1e-300);
        for i in 0..20_000u64 {
            let u = (i as f64 + 0.5) / 20_000.0;
            assert!(ulps(minus_ln::<true>(u), -u.ln()) <= 2.0, "ln {u}");
            assert!((minus_ln::<false>(u) / -u.ln() - 1.0).abs() <= 1e-9, "ln {u}");
            let exact = |q: f64| (u - q) * std::f64::consts::TAU;
            for ((c, s), tolerance) in [(cos_sin::<true>(u), 1e-15), (cos_sin::<false>(u), 1e-9)] {
                assert!((c - exact(0.0).cos()).abs() < tolerance && (s - exact(0.0).sin()).abs() < tolerance);
            }
        }
        for u in [f64::MIN_POSITIVE, 1e-300, 2f64.powi(-53), 1.0 - 2f64.powi(-53), 0.5, 0.75] {
            assert!(ulps(minus_ln::<true>(u), -u.ln()) <= 2.0, "ln {u}");
        }
        assert_eq!(cos_sin::<true>(0.25).0, 0.0);
        assert_eq!(cos_sin::<false>(0.5), (-1.0, 0.0));
        assert!(cos_sin::<true>(0.75).1 == -1.0);
    }

    #[test]
    fn integers_below_are_unbiased() {
        let stream = Stream::new(Draw { seed: 1, counter: 0 });
        // With 3/4 of 2^32 half of the results would be twice as likely without rejection.
        let bound = 3 << 30;
        let mut low = 0;
        for i in 0..30_000 {
            let x = stream.below(i, bound, u64::from(stream.word(i)));
            assert!(x < bound);
            low += u32::from(x < bound / 2);
        }
        assert!((i64::from(low) - 15_000).abs() < 400, "{low}");
        let wide = (1 << 63) + 1;
        assert!((0..1000).all(|i| stream.below(i, wide, stream.long_word(i)) < wide));
    }
}
