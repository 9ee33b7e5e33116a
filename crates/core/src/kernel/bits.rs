//! Truth values sixty-four at a time: counting those that hold, and visiting their places. Knows no op.

use crate::Bool;
use crate::kernel::moves::Shared;
use crate::kernel::walk::{GRAIN, split};
use crate::par::Parallel;
use std::ops::Range;

/// How many hold before each chunk of [`GRAIN`], and at the end how many in all.
pub fn counts_before(mask: &[Bool], par: &dyn Parallel) -> Vec<usize> {
    let mut out = vec![0usize; mask.len().div_ceil(GRAIN) + 1];
    let target = Shared(out.as_mut_ptr());
    split(par, mask.len(), GRAIN, |range| {
        let chunk = range.start / GRAIN;
        let mut count = 0;
        // Sums of bytes, which fit a vector register, of no more than a byte holds.
        for part in mask[range].chunks(128) {
            let mut sum = 0u8;
            for b in part {
                sum += u8::from(b.get());
            }
            count += usize::from(sum);
        }
        // SAFETY: one chunk, one entry.
        unsafe { *target.at(chunk as isize + 1) = count };
    });
    for i in 1..out.len() {
        out[i] += out[i - 1];
    }
    out
}

/// Which of up to 64 truth values hold, the first one in the lowest bit.
#[inline(always)]
fn word(mask: &[Bool]) -> u64 {
    if let Ok(all) = <&[Bool; 64]>::try_from(mask) {
        // Eight bytes of 0 or 1 at once: the product moves bit 8 i to bit 56 + i.
        let mut bits = 0;
        for k in 0..8 {
            let mut bytes = [0u8; 8];
            for i in 0..8 {
                bytes[i] = all[8 * k + i].get().into();
            }
            bits |= u64::from_le_bytes(bytes).wrapping_mul(0x0102_0408_1020_4080) >> 56 << (8 * k);
        }
        return bits;
    }
    mask.iter().enumerate().fold(0, |bits, (i, b)| bits | u64::from(b.get()) << i)
}

/// Calls `body(place, n)` for the places in `range` that hold, in order; n counts on from `first`.
#[inline(always)]
pub fn each_set(mask: &[Bool], range: Range<usize>, first: usize, mut body: impl FnMut(usize, usize)) {
    let mut n = first;
    for start in range.clone().step_by(64) {
        let mut bits = word(&mask[start..range.end.min(start + 64)]);
        while bits != 0 {
            body(start + bits.trailing_zeros() as usize, n);
            bits &= bits - 1;
            n += 1;
        }
    }
}
