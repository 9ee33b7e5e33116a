//! Sorting many short lines side by side: each lane of a vector is one line, and the same comparisons are made in all
//! of them (Batcher, "Sorting networks and their applications", AFIPS 1968: the odd-even merge sort). Knows no dtype.

use crate::isa_versions;
use crate::kernel::radix::Key;

/// Lines that are sorted together.
pub const LANES: usize = 16;

/// Whether lines of `len` keys are sorted faster by a network than by digits.
pub fn fits<K: Key>(len: usize) -> bool {
    len <= if K::BITS > 32 { 320 } else { 1024 }
}

/// # Safety
/// None; the type is that of functions compiled for an instruction set.
#[inline(always)]
unsafe fn sort_body<K: Key>(rows: &mut [[K; LANES]]) {
    let n = rows.len();
    let mut p = 1;
    while p < n {
        let mut k = p;
        while k >= 1 {
            let mut j = k % p;
            while j + k < n {
                // Both ends lie in one of the pieces, 2 p long, that are being merged: for all of a run or none.
                if j & !(2 * p - 1) == (j + k) & !(2 * p - 1) {
                    for low in j..(j + k).min(n - k) {
                        // SAFETY: low + k < n.
                        unsafe { order(rows.as_mut_ptr().add(low), rows.as_mut_ptr().add(low + k)) };
                    }
                }
                j += 2 * k;
            }
            k /= 2;
        }
        p *= 2;
    }
}

/// Puts the lesser key of each lane into the first row.
///
/// # Safety
/// Two rows.
#[inline(always)]
unsafe fn order<K: Key>(first: *mut [K; LANES], second: *mut [K; LANES]) {
    for l in 0..LANES {
        // SAFETY: the caller's.
        unsafe {
            let (low, high) = (*first)[l].in_order((*second)[l]);
            (*first)[l] = low;
            (*second)[l] = high;
        }
    }
}

isa_versions! {
    /// Sorts each lane: row i comes to hold the lanes' i-th keys.
    pub fn sorter -> unsafe fn(&mut [[K; LANES]]) = sort_body;
    generics [K: Key] names [K] fast true; args (rows: &mut [[K; LANES]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorts_lines_of_every_length_on_every_instruction_set() {
        let now = crate::simd::isa();
        for isa in crate::simd::Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
            crate::simd::select(isa);
            for n in (0..70).chain([127, 128, 129, 320, 1000, 1024]) {
                let key = |i: usize, l: usize| (i * 7919 + l * 104_729) as u32 % 251;
                let mut rows: Vec<[u32; LANES]> =
                    (0..n).map(|i| std::array::from_fn(|l| key(i, l))).collect();
                // SAFETY: no condition.
                unsafe { sorter::<u32>()(&mut rows) };
                for l in 0..LANES {
                    let mut want: Vec<u32> = (0..n).map(|i| key(i, l)).collect();
                    want.sort_unstable();
                    assert!(rows.iter().map(|row| row[l]).eq(want), "{n} {isa:?}");
                }
            }
        }
        crate::simd::select(now);
    }
}
