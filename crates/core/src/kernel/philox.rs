//! Random bits by counter: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC
//! 2011), and how bits become numbers. Element i of draw n is a function of (seed, n, i): nothing is kept.
//!
//! The formulas use IEEE basic operations and square roots only, so every instruction set gives equal results.
#![allow(clippy::needless_range_loop)] // lanes of one index are computed side by side

use crate::isa_versions;
use crate::op::Draw;
use std::ops::Range;

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

    /// L consecutive blocks: word w of block `first + l` is at `[w][l]`.
    #[inline(always)]
    fn blocks<const L: usize>(&self, first: u64) -> [[u32; L]; 4] {
        let mut x = [[0u32; L]; 4];
        for l in 0..L {
            let block = first.wrapping_add(l as u64);
            x[0][l] = block as u32;
            x[1][l] = (block >> 32) as u32;
            x[2][l] = self.counter[0];
            x[3][l] = self.counter[1];
        }
        let mut key = self.key;
        for _ in 0..10 {
            for l in 0..L {
                let a = u64::from(x[0][l]) * u64::from(MULTIPLIERS[0]);
                let b = u64::from(x[2][l]) * u64::from(MULTIPLIERS[1]);
                let (one, three) = (x[1][l], x[3][l]);
                x[0][l] = (b >> 32) as u32 ^ one ^ key[0];
                x[1][l] = b as u32;
                x[2][l] = (a >> 32) as u32 ^ three ^ key[1];
                x[3][l] = a as u32;
            }
            key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
        }
        x
    }

    /// Calls `body(i, word)` for the 32-bit words of `range`; word i is word i % 4 of block i / 4.
    #[inline(always)]
    pub fn words(&self, range: Range<usize>, mut body: impl FnMut(usize, u32)) {
        let mut start = range.start - range.start % 4;
        while start < range.end {
            let blocks = self.blocks::<LANES>(start as u64 / 4);
            let mut buffer = [0u32; 4 * LANES];
            for l in 0..LANES {
                for (w, words) in blocks.iter().enumerate() {
                    buffer[4 * l + w] = words[l];
                }
            }
            let from = range.start.saturating_sub(start);
            let to = (range.end - start).min(4 * LANES);
            for i in from..to {
                body(start + i, buffer[i]);
            }
            start += 4 * LANES;
        }
    }

    /// Calls `body(i, word)` for the 64-bit words of `range`; word i is 32-bit words 2i (low) and 2i + 1 (high).
    #[inline(always)]
    pub fn long_words(&self, range: Range<usize>, mut body: impl FnMut(usize, u64)) {
        let mut low = 0;
        self.words(2 * range.start..2 * range.end, |i, word| {
            if i % 2 == 0 {
                low = word;
            } else {
                body(i / 2, u64::from(word) << 32 | u64::from(low));
            }
        });
    }

    /// 32-bit word `i` alone.
    pub fn word(&self, i: usize) -> u32 {
        self.blocks::<1>(i as u64 / 4)[i % 4][0]
    }

    /// 64-bit word `i` alone.
    pub fn long_word(&self, i: usize) -> u64 {
        u64::from(self.word(2 * i + 1)) << 32 | u64::from(self.word(2 * i))
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
            let least = ((1u64 << 32) % bound) as u32;
            while ((word & 0xffff_ffff).wrapping_mul(bound) as u32) < least {
                word = u64::from(self.attempt(attempt).word(i));
                attempt += 1;
            }
            return ((word & 0xffff_ffff) * bound) >> 32;
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

/// Minus the logarithm of `u` in (0, 1), by the series of atanh around powers of two.
#[inline(always)]
pub fn minus_ln(u: f64) -> f64 {
    const LN2_HIGH: f64 = 0.693_147_180_369_123_8;
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    // Moves the mantissa to [sqrt(1/2), sqrt(2)).
    let bits = u.to_bits().wrapping_add(0x0010_0000_0000_0000 - 0x0006_A09E_667F_3BCD);
    let exponent = (bits >> 52) as i32 - 1023;
    let m = f64::from_bits((bits & 0x000F_FFFF_FFFF_FFFF) + 0x3FE6_A09E_667F_3BCD);
    let e = f64::from(exponent);
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let mut p = 1.0 / 23.0;
    for odd in [21.0, 19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0] {
        p = p * z + 1.0 / odd;
    }
    -(e * LN2_HIGH + (2.0 * s + (2.0 * s * z * p + e * LN2_LOW)))
}

/// The cosine and sine of a turn `t` in [0, 1).
#[inline(always)]
pub fn cos_sin(t: f64) -> (f64, f64) {
    // SAFETY: below 2^31 for a turn below 1; a checked conversion would not become one instruction.
    let quarter: i32 = unsafe { (t * 4.0 + 0.5).to_int_unchecked() };
    // Exact: the quotient is a multiple of 1/4 close to t.
    let x = (t - f64::from(quarter) * 0.25) * std::f64::consts::TAU;
    let z = x * x;
    let (mut s, mut c) = (1.0, 1.0);
    for n in [16.0, 14.0, 12.0, 10.0, 8.0, 6.0, 4.0, 2.0] {
        s = 1.0 - s * z / (n * (n + 1.0));
        c = 1.0 - c * z / (n * (n - 1.0));
    }
    let s = x * s;
    let (a, b) = if quarter & 1 == 0 { (c, s) } else { (s, c) };
    let flip_cos = quarter & 3 == 1 || quarter & 3 == 2;
    let flip_sin = quarter & 2 != 0;
    (if flip_cos { -a } else { a }, if flip_sin { -b } else { b })
}

/// Two independent standard normal numbers from u in (0, 1) and a turn in [0, 1): Box and Muller, 1958.
#[inline(always)]
pub fn normal_pair(u: f64, turn: f64) -> (f64, f64) {
    let r = (2.0 * minus_ln(u)).sqrt();
    let (c, s) = cos_sin(turn);
    (r * c, r * s)
}

/// Elements that are drawn together.
pub const TILE: usize = 256;

/// # Safety
/// None; the type is that of functions compiled for an instruction set.
#[inline(always)]
unsafe fn words_body(stream: &Stream, first: usize, out: &mut [u32]) {
    let (mut start, end) = (first - first % 4, first + out.len());
    while start < end {
        let blocks = stream.blocks::<LANES>(start as u64 / 4);
        let mut buffer = [[0u32; 4]; LANES];
        for l in 0..LANES {
            buffer[l] = [blocks[0][l], blocks[1][l], blocks[2][l], blocks[3][l]];
        }
        let (from, to) = (first.saturating_sub(start), (end - start).min(4 * LANES));
        let target = start + from - first;
        out[target..target + to - from].copy_from_slice(&buffer.as_flattened()[from..to]);
        start += 4 * LANES;
    }
}

isa_versions! {
    /// Fills `out` with the 32-bit words from `first` on.
    pub fn fill_words -> unsafe fn(&Stream, usize, &mut [u32]) = words_body;
    generics [] names [] fast true; args (stream: &Stream, first: usize, out: &mut [u32])
}

/// # Safety
/// As [`words_body`]. At most [`TILE`] elements.
#[inline(always)]
unsafe fn long_body(stream: &Stream, first: usize, out: &mut [u64]) {
    let mut words = [0u32; 2 * TILE];
    let words = &mut words[..2 * out.len()];
    // SAFETY: no condition.
    unsafe { words_body(stream, 2 * first, words) };
    for (out, pair) in out.iter_mut().zip(words.chunks_exact(2)) {
        *out = u64::from(pair[1]) << 32 | u64::from(pair[0]);
    }
}

isa_versions! {
    /// Fills `out`, of at most [`TILE`] elements, with the 64-bit words from `first` on.
    pub fn fill_long -> unsafe fn(&Stream, usize, &mut [u64]) = long_body;
    generics [] names [] fast true; args (stream: &Stream, first: usize, out: &mut [u64])
}

/// # Safety
/// As [`long_body`].
#[inline(always)]
unsafe fn units_body<const LONG: bool, const LOG: bool>(stream: &Stream, first: usize, out: &mut [f64]) {
    let n = out.len();
    // SAFETY: as many elements as the caller's.
    unsafe {
        if LONG {
            let mut words = [0u64; TILE];
            long_body(stream, first, &mut words[..n]);
            for (out, &word) in out.iter_mut().zip(&words[..n]) {
                *out = if LOG { minus_ln(open64(word)) } else { unit64(word) };
            }
        } else {
            let mut words = [0u32; TILE];
            words_body(stream, first, &mut words[..n]);
            for (out, &word) in out.iter_mut().zip(&words[..n]) {
                *out = if LOG { minus_ln(open32(word)) } else { f64::from(unit32(word)) };
            }
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
/// As [`long_body`].
#[inline(always)]
unsafe fn normals_body<const LONG: bool>(stream: &Stream, first: usize, out: &mut [f64]) {
    // Elements 2i and 2i + 1 share their bits.
    let skip = first % 2;
    let pairs = (skip + out.len()).div_ceil(2);
    let mut results = [[0f64; 2]; TILE / 2 + 1];
    let (mut u, mut turn) = ([0f64; TILE / 2 + 1], [0f64; TILE / 2 + 1]);
    // SAFETY: at most one element more than the tile, halved.
    unsafe {
        if LONG {
            let mut words = [0u64; TILE];
            // In two parts where the tile begins and ends inside of a pair.
            let head = pairs.min(TILE / 2);
            long_body(stream, first - skip, &mut words[..2 * head]);
            for i in 0..head {
                (u[i], turn[i]) = (open64(words[2 * i]), unit64(words[2 * i + 1]));
            }
            if pairs > head {
                let at = first - skip + 2 * head;
                (u[head], turn[head]) = (open64(stream.long_word(at)), unit64(stream.long_word(at + 1)));
            }
        } else {
            let mut words = [0u32; TILE + 2];
            words_body(stream, first - skip, &mut words[..2 * pairs]);
            for i in 0..pairs {
                (u[i], turn[i]) = (open32(words[2 * i]), f64::from(words[2 * i + 1]) / (1u64 << 32) as f64);
            }
        }
    }
    for i in 0..pairs {
        let (x, y) = normal_pair(u[i], turn[i]);
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
        let words = pi.blocks::<1>(0x85a3_08d3_243f_6a88);
        assert_eq!(words.map(|w| w[0]), [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]);
    }

    #[test]
    fn words_of_any_range_are_the_same_words() {
        let stream = Stream::new(Draw { seed: 7, counter: 3 });
        for range in [0..1, 3..9, 5..200, 31..33] {
            stream.words(range, |i, word| assert_eq!(word, stream.word(i)));
        }
        stream.long_words(3..50, |i, word| assert_eq!(word, stream.long_word(i)));
    }

    #[test]
    fn tiles_are_the_elements_alone_on_every_instruction_set() {
        let stream = Stream::new(Draw { seed: 11, counter: 5 });
        let now = crate::simd::isa();
        for isa in crate::simd::Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
            crate::simd::select(isa);
            for (first, n) in [(0, 1), (3, 6), (5, TILE), (8, TILE), (1, 2), (7, 201)] {
                let (mut words, mut units, mut normals) = (vec![0; n], vec![0.0; n], vec![0.0; n]);
                // SAFETY: at most a tile.
                unsafe { fill_words()(&stream, first, &mut words) };
                let alone = |i: usize| stream.word(first + i);
                assert!((0..n).all(|i| words[i] == alone(i)));
                // SAFETY: at most a tile.
                unsafe { fill_units::<true, true>()(&stream, first, &mut units) };
                assert!((0..n).all(|i| units[i] == minus_ln(open64(stream.long_word(first + i)))));
                // SAFETY: at most a tile.
                unsafe { fill_normals::<false>()(&stream, first, &mut normals) };
                for (i, &x) in normals.iter().enumerate() {
                    let at = first + i - (first + i) % 2;
                    let turn = f64::from(stream.word(at + 1)) / (1u64 << 32) as f64;
                    let pair = normal_pair(open32(stream.word(at)), turn);
                    assert_eq!(x, if (first + i) % 2 == 0 { pair.0 } else { pair.1 });
                }
                // SAFETY: at most a tile.
                unsafe { fill_normals::<true>()(&stream, first, &mut normals) };
                for (i, &x) in normals.iter().enumerate() {
                    let at = first + i - (first + i) % 2;
                    let pair = normal_pair(open64(stream.long_word(at)), unit64(stream.long_word(at + 1)));
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
            assert!(ulps(minus_ln(u), -u.ln()) <= 2.0, "ln {u}");
            let (c, s) = cos_sin(u);
            let exact = |q: f64| (u - q) * std::f64::consts::TAU;
            assert!((c - exact(0.0).cos()).abs() < 1e-15 && (s - exact(0.0).sin()).abs() < 1e-15);
        }
        for u in [f64::MIN_POSITIVE, 1e-300, 2f64.powi(-53), 1.0 - 2f64.powi(-53), 0.5, 0.75] {
            assert!(ulps(minus_ln(u), -u.ln()) <= 2.0, "ln {u}");
        }
        assert_eq!(cos_sin(0.25).0, 0.0);
        assert_eq!(cos_sin(0.5), (-1.0, 0.0));
        assert!(cos_sin(0.75).1 == -1.0);
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
