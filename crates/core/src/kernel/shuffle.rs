//! Random permutations, shared by threads and kept to the caches: items go to buckets by random digits, and each bucket
//! is shuffled by exchanges (Rao, "Generation of random permutations of given number of elements using random sampling
//! numbers", Sankhya A 23, 1961; Sandelius, "A simple randomization procedure", JRSS B 24, 1962). Every order is equally
//! likely. Knows no op.

use crate::Result;
use crate::kernel::moves::Shared;
use crate::kernel::philox::{Stream, TILE, fill_words};
use crate::kernel::scratch::Space;
use crate::kernel::walk::{GRAIN, split};
use crate::par::Parallel;

/// Items a bucket has on average at most, while there are no more than [`BUCKETS`]: they fit the first-level cache.
const BUCKET: usize = 1 << 12;
/// The most buckets: their ends fit the first-level cache.
const BUCKETS: usize = 1 << 11;
/// Items a chunk has at least, and the most chunks.
const CHUNK: usize = 1 << 16;
const CHUNKS: usize = 64;
/// Which other bits of a draw ([`Stream::attempt`]) exchanges take: far from those that rejected bits lead to.
const EXCHANGES: u32 = 1 << 15;

/// Fills `out` with 0..n in random order.
pub fn permutation(op: &'static str, stream: &Stream, out: &mut [i64], par: &dyn Parallel) -> Result<()> {
    let n = out.len();
    let buckets = n.div_ceil(BUCKET).next_power_of_two().min(BUCKETS);
    let ends = if buckets == 1 {
        out.iter_mut().enumerate().for_each(|(i, out)| *out = i as i64);
        vec![n]
    } else {
        distribute(op, stream, out, buckets, par)?
    };
    let (to, exchanges) = (Shared(out.as_mut_ptr()), stream.attempt(EXCHANGES));
    split(par, buckets, GRAIN * buckets / n.max(1) / 2, |range| {
        for bucket in range {
            let start = if bucket == 0 { 0 } else { ends[bucket - 1] };
            // SAFETY: buckets are disjoint parts of the output.
            let part = unsafe { std::slice::from_raw_parts_mut(to.at(start as isize), ends[bucket] - start) };
            exchange(&exchanges, start, part);
        }
    });
    Ok(())
}

/// Puts each number into the bucket of its random digit, in order, and gives where the buckets end.
fn distribute(
    op: &'static str,
    stream: &Stream,
    out: &mut [i64],
    buckets: usize,
    par: &dyn Parallel,
) -> Result<Vec<usize>> {
    let n = out.len();
    let chunk = n.div_ceil(CHUNKS).max(CHUNK).next_multiple_of(2 * TILE);
    let mut digits = Space::<u16>::new(op, n)?;
    let mut counts = vec![0usize; n.div_ceil(chunk) * buckets];
    let (table, all) = (Shared(counts.as_mut_ptr()), Shared(digits.as_mut_ptr()));
    // SAFETY: a chunk has a row of the table for itself.
    let row = |chunk: usize| unsafe {
        std::slice::from_raw_parts_mut(table.at((chunk * buckets) as isize), buckets)
    };
    let (fill, mask) = (fill_words(), buckets - 1);
    split(par, n, chunk, |range| {
        let counts = row(range.start / chunk);
        let mut words = [0u32; TILE];
        for start in range.clone().step_by(2 * TILE) {
            let count = (2 * TILE).min(range.end - start);
            // SAFETY: no condition.
            unsafe { fill(stream, start / 2, &mut words[..count.div_ceil(2)]) };
            for i in 0..count {
                // Each word has the digits of two numbers.
                let digit = (words[i / 2] >> (i % 2 * 16)) as usize & mask;
                counts[digit] += 1;
                // SAFETY: entry start + i, this chunk's own.
                unsafe { *all.at((start + i) as isize) = digit as u16 };
            }
        }
    });
    let (mut start, mut ends) = (0, Vec::with_capacity(buckets));
    for bucket in 0..buckets {
        for count in counts.iter_mut().skip(bucket).step_by(buckets) {
            start += std::mem::replace(count, start);
        }
        ends.push(start);
    }
    let (to, digits) = (Shared(out.as_mut_ptr()), &*digits);
    split(par, n, chunk, |range| {
        let (ends, to) = (row(range.start / chunk), to);
        for (i, &digit) in range.clone().zip(&digits[range]) {
            let end = &mut ends[usize::from(digit)];
            // SAFETY: a bucket's part for this chunk has room for as many numbers as were counted.
            unsafe { *to.at(*end as isize) = i as i64 };
            *end += 1;
        }
    });
    Ok(ends)
}

/// Shuffles (Durstenfeld, "Algorithm 235", CACM 7, 1964); the item at place `first + i` uses the bits of that number.
fn exchange(stream: &Stream, first: usize, part: &mut [i64]) {
    let n = part.len();
    let fill = fill_words();
    let mut words = [0u32; TILE];
    for start in (0..n).step_by(TILE) {
        let count = TILE.min(n - start);
        // SAFETY: no condition.
        unsafe { fill(stream, first + start, &mut words[..count]) };
        for (k, &word) in words[..count].iter().enumerate() {
            let i = start + k;
            part.swap(i, i + stream.integer(first + i, word, (n - i) as u64) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::Draw;
    use crate::par::Serial;

    fn drawn(n: usize, counter: u64) -> Vec<i64> {
        let mut out = vec![0; n];
        permutation("permutation", &Stream::new(Draw { seed: 3, counter }), &mut out, &Serial).unwrap();
        out
    }

    #[test]
    fn every_number_comes_once() {
        for n in [0, 1, 2, 255, 256, BUCKET, BUCKET + 1, 100_003, CHUNK * 2 + 5] {
            let mut out = drawn(n, 1);
            out.sort_unstable();
            assert!(out.iter().copied().eq(0..n as i64), "{n}");
        }
    }

    /// Chi-squared over (item's part, place's part): with 63 x 63 degrees of freedom the sum is 3969 +- 89.
    #[test]
    fn every_item_is_equally_likely_at_every_place() {
        for n in [64usize, 4096, 64 * 1024] {
            let mut table = vec![0f64; 64 * 64];
            let draws = (1 << 20) / n as u64;
            for counter in 0..draws {
                for (place, item) in drawn(n, counter).into_iter().enumerate() {
                    table[place * 64 / n * 64 + item as usize * 64 / n] += 1.0;
                }
            }
            let mean = draws as f64 * n as f64 / 4096.0;
            let sum: f64 = table.iter().map(|count| (count - mean).powi(2) / mean).sum();
            // Without replacement the cells vary by the factor (1 - 1/64)^2 n / (n - 1) about less or more.
            assert!((3300.0..4500.0).contains(&sum), "{n}: {sum}");
        }
    }

    /// All orders of four of the numbers, and of neighbours in different buckets.
    #[test]
    fn every_order_is_equally_likely() {
        for n in [4usize, 3 * BUCKET] {
            let mut counts = std::collections::BTreeMap::new();
            let draws = if n == 4 { 24_000 } else { 2_400 };
            for counter in 0..draws {
                let out = drawn(n, counter);
                let mut order: Vec<(usize, i64)> = out.into_iter().enumerate().filter(|x| x.1 < 4).collect();
                order.sort_unstable();
                *counts.entry(order.into_iter().map(|x| x.1).collect::<Vec<_>>()).or_insert(0) += 1;
            }
            let mean = draws as f64 / 24.0;
            let sum: f64 = counts.values().map(|&c| (f64::from(c) - mean).powi(2) / mean).sum();
            // 23 degrees of freedom: above 50 once in a thousand.
            assert!(counts.len() == 24 && sum < 50.0, "{n}: {sum}");
        }
    }
}
