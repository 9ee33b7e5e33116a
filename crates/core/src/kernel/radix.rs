//! Radix sort of unsigned keys, alone or with the place each came from: stable, shared by all threads, with a result
//! that depends on the items only. Knows no dtype: [`super::sort`] makes the keys.
//!
//! Digits are taken from the least significant on, and only from bits in which keys differ. Of long keys the upper
//! bits alone are sorted by digits; the few items that agree in all of those are put in order afterwards.

use crate::kernel::moves::Shared;
use crate::kernel::walk::split;
use crate::par::Parallel;
use bytemuck::AnyBitPattern;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Mutex;

/// Keys below this number are sorted by comparing.
const FEW: usize = 384;
/// Bits of a digit: its counts and the ends of its buckets fit the first-level cache.
const DIGIT: u32 = 11;
/// Below this number of items shorter digits are faster, for there are as many counts as items.
const SOME: usize = 1 << 12;
/// From this number of items on the buckets lie on more pages than the processor remembers addresses of, and
/// shorter digits are faster.
const MANY: usize = 1 << 22;
/// Items a chunk has at least, and the most chunks.
const CHUNK: usize = 1 << 16;
const CHUNKS: usize = 64;
/// Items that agree in their upper bits and are more than this many are sorted by digits again.
const LONG: usize = 1 << 10;

/// An unsigned number that items are sorted by.
pub trait Key: Copy + Ord + Send + Sync + Debug + Default + AnyBitPattern {
    const BITS: u32;
    const MAX: Self;
    fn invert(self) -> Self;
    /// With the bits of `mask` turned over.
    fn flip(self, mask: Self) -> Self;
    /// The next one, if there is one.
    fn successor(self) -> Option<Self>;
    fn or(self, other: Self) -> Self;
    /// The lesser and the greater of two.
    fn in_order(self, other: Self) -> (Self, Self);
    /// The difference to a key that is not greater.
    fn minus(self, least: Self) -> Self;
    fn wide(self) -> u64;
    fn from_wide(wide: u64) -> Self;
    /// Bits `shift..` as an index, under `mask`.
    fn digit(self, shift: u32, mask: usize) -> usize;
}

macro_rules! keys {
    ($($t:ty),*) => { $(
        impl Key for $t {
            const BITS: u32 = <$t>::BITS;
            const MAX: $t = <$t>::MAX;
            #[inline(always)]
            fn invert(self) -> $t {
                !self
            }
            #[inline(always)]
            fn flip(self, mask: $t) -> $t {
                self ^ mask
            }
            #[inline(always)]
            fn successor(self) -> Option<$t> {
                self.checked_add(1)
            }
            #[inline(always)]
            fn or(self, other: $t) -> $t {
                self | other
            }
            #[inline(always)]
            fn in_order(self, other: $t) -> ($t, $t) {
                if <$t>::BITS < 64 {
                    return (self.min(other), self.max(other));
                }
                // The compiler makes no vectors of the least of 64-bit numbers.
                let change = <$t>::from(other < self).wrapping_neg() & (self ^ other);
                (self ^ change, other ^ change)
            }
            #[inline(always)]
            fn minus(self, least: $t) -> $t {
                self.wrapping_sub(least)
            }
            #[inline(always)]
            fn from_wide(wide: u64) -> $t {
                wide as $t
            }
            #[inline(always)]
            fn wide(self) -> u64 {
                u64::from(self)
            }
            #[inline(always)]
            fn digit(self, shift: u32, mask: usize) -> usize {
                (self >> shift) as usize & mask
            }
        }
    )* };
}
keys!(u8, u16, u32, u64);

/// What is sorted. The order of items is that of keys, then places.
pub trait Item: Copy + Ord + Send + Sync + Default + AnyBitPattern {
    type Key: Key;
    fn key(self) -> Self::Key;
    /// An item of a key at a place.
    fn new(key: Self::Key, place: usize) -> Self;
    /// Where it came from; of a key alone 0.
    fn place(self) -> usize;
    /// A number with the items' order, where there is one of up to 64 bits.
    type Number: Key;
    const HAS_NUMBER: bool = true;
    fn number(self) -> Self::Number;
    fn from_number(number: Self::Number) -> Self;
}

impl<K: Key> Item for K {
    type Key = K;
    type Number = K;
    #[inline(always)]
    fn key(self) -> K {
        self
    }
    #[inline(always)]
    fn new(key: K, _place: usize) -> K {
        key
    }
    #[inline(always)]
    fn place(self) -> usize {
        0
    }
    #[inline(always)]
    fn number(self) -> K {
        self
    }
    #[inline(always)]
    fn from_number(number: K) -> K {
        number
    }
}

/// A key of up to 32 bits, and in the lower half the place it came from, below 2^32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, AnyBitPattern)]
#[repr(transparent)]
pub struct Packed<K> {
    bits: u64,
    key: PhantomData<K>,
}

impl<K: Key> Item for Packed<K> {
    type Key = K;
    type Number = u64;
    #[inline(always)]
    fn key(self) -> K {
        K::from_wide(self.bits >> 32)
    }
    #[inline(always)]
    fn new(key: K, place: usize) -> Packed<K> {
        Packed { bits: key.wide() << 32 | place as u64, key: PhantomData }
    }
    #[inline(always)]
    fn place(self) -> usize {
        self.bits as u32 as usize
    }
    #[inline(always)]
    fn number(self) -> u64 {
        self.bits
    }
    #[inline(always)]
    fn from_number(bits: u64) -> Packed<K> {
        Packed { bits, key: PhantomData }
    }
}

/// A key, and the place it came from, below 2^32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, AnyBitPattern)]
pub struct At<K> {
    pub key: K,
    pub place: u32,
}

impl<K: Key> Item for At<K> {
    type Key = K;
    type Number = u8;
    const HAS_NUMBER: bool = false;
    #[inline(always)]
    fn key(self) -> K {
        self.key
    }
    #[inline(always)]
    fn new(key: K, place: usize) -> At<K> {
        At { key, place: place as u32 }
    }
    #[inline(always)]
    fn place(self) -> usize {
        self.place as usize
    }
    fn number(self) -> u8 {
        0
    }
    fn from_number(_: u8) -> At<K> {
        At::default()
    }
}

/// Sorts `items`, whose places (if they have any) grow; `spare` has as many. Says whether the result is in `spare`.
pub fn sort<I: Item>(items: &mut [I], spare: &mut [I], par: &dyn Parallel) -> bool {
    let n = items.len();
    if n < FEW {
        items.sort_unstable();
        return false;
    }
    let (least, bits) = span(items, par);
    if bits.is_empty() {
        return false;
    }
    let (most, digits) = if (SOME..MANY).contains(&n) { (DIGIT, 3) } else { (8, 4) };
    let top = most * digits;
    let low = bits.start.max(bits.end.saturating_sub(top));
    let passes = (bits.end - low).div_ceil(most);
    let width = (bits.end - low).div_ceil(passes);
    let (mut from, mut to) = (&mut *items, &mut *spare);
    for shift in (low..bits.end).step_by(width as usize) {
        let digit = Digit { least, shift, width: width.min(bits.end - shift) };
        pass(from, to, digit, None, par);
        std::mem::swap(&mut from, &mut to);
    }
    if low > bits.start {
        finish(from, to, least, low, par);
    }
    passes % 2 == 1
}

/// The least key, and the bits in which keys differ from it, from the lowest to the highest.
fn span<I: Item>(items: &[I], par: &dyn Parallel) -> (I::Key, Range<u32>) {
    let first = items[0].key();
    let all = Mutex::new((first, first, I::Key::default()));
    split(par, items.len(), CHUNK, |range| {
        let mut own = (first, first, I::Key::default());
        for item in &items[range] {
            let key = item.key();
            own = (own.0.min(key), own.1.max(key), own.2.or(key.flip(first)));
        }
        let mut all = all.lock().unwrap_or_else(|e| e.into_inner());
        *all = (all.0.min(own.0), all.1.max(own.1), all.2.or(own.2));
    });
    let (least, greatest, differ) = all.into_inner().unwrap_or_else(|e| e.into_inner());
    let range = greatest.wide() - least.wide();
    // Bits below which all keys agree are the same in the differences.
    (least, if range == 0 { 0..0 } else { differ.wide().trailing_zeros()..64 - range.leading_zeros() })
}

/// Some bits of the difference to the least key.
#[derive(Clone, Copy)]
struct Digit<K> {
    least: K,
    shift: u32,
    width: u32,
}

impl<K: Key> Digit<K> {
    #[inline(always)]
    fn of(&self, key: K, mask: usize) -> usize {
        key.minus(self.least).digit(self.shift, mask)
    }
}

/// Moves items into groups of equal `bits` of their keys, which are not set above them, and gives where each group
/// starts and the last one ends. Within a group items keep their order. There are at most 2^11 groups.
pub fn group<I: Item>(from: &[I], to: &mut [I], bits: Range<u32>, par: &dyn Parallel) -> Vec<usize> {
    let digit = Digit { least: I::Key::default(), shift: bits.start, width: bits.end - bits.start };
    let mut starts = Vec::with_capacity((1 << digit.width) + 1);
    pass(from, to, digit, Some(&mut starts), par);
    starts.push(from.len());
    starts
}

/// Moves every item to its bucket, in order, and notes where each bucket starts.
fn pass<I: Item>(
    from: &[I],
    to: &mut [I],
    digit: Digit<I::Key>,
    mut starts: Option<&mut Vec<usize>>,
    par: &dyn Parallel,
) {
    let n = from.len();
    let chunk = n.div_ceil(CHUNKS).max(CHUNK);
    let (chunks, buckets) = (n.div_ceil(chunk), 1usize << digit.width);
    let mask = buckets - 1;
    let mut own = [0u32; 1 << DIGIT];
    let mut many = Vec::new();
    let counts: &mut [u32] = if chunks == 1 {
        &mut own[..buckets]
    } else {
        many.resize(chunks * buckets, 0);
        &mut many
    };
    let (table, to) = (Shared(counts.as_mut_ptr()), Shared(to.as_mut_ptr()));
    // SAFETY: a chunk has a row of the table for itself.
    let row = |chunk: usize| unsafe {
        std::slice::from_raw_parts_mut(table.at((chunk * buckets) as isize), buckets)
    };
    split(par, n, chunk, |range| {
        let (counts, digit, mask) = (row(range.start / chunk), digit, mask);
        for item in &from[range] {
            // SAFETY: a digit is below the number of buckets.
            unsafe { *counts.get_unchecked_mut(digit.of(item.key(), mask)) += 1 };
        }
    });
    let mut start = 0;
    for bucket in 0..buckets {
        if let Some(starts) = &mut starts {
            starts.push(start as usize);
        }
        for chunk in 0..chunks {
            let count = &mut counts[chunk * buckets + bucket];
            start += std::mem::replace(count, start);
        }
    }
    split(par, n, chunk, |range| {
        // Copies: what a closure refers to would be read again after every store.
        let (ends, digit, mask, to) = (row(range.start / chunk), digit, mask, to);
        for &item in &from[range] {
            // SAFETY: a digit is below the number of buckets; a bucket's part for this chunk has room for as many
            // items as were counted, and no other chunk writes there.
            unsafe {
                let end = ends.get_unchecked_mut(digit.of(item.key(), mask));
                *to.at(*end as isize) = item;
                *end += 1;
            }
        }
    });
}

fn copy<I: Item>(from: &[I], to: &mut [I], par: &dyn Parallel) {
    let to = Shared(to.as_mut_ptr());
    split(par, from.len(), CHUNK, |range| {
        // SAFETY: the slices have one length; chunks are disjoint.
        unsafe {
            let target = to.at(range.start as isize);
            std::ptr::copy_nonoverlapping(from[range.clone()].as_ptr(), target, range.len());
        }
    });
}

/// Sorts items that are in order of the bits from `low` on, counted from the least key, by the bits below.
fn finish<I: Item>(items: &mut [I], spare: &mut [I], least: I::Key, low: u32, par: &dyn Parallel) {
    let n = items.len();
    let upper = |item: &I| item.key().minus(least).wide() >> low;
    // Chunks end where a run of equal upper bits does.
    let mut ends = vec![0];
    while let Some(&last) = ends.last().filter(|&&last| last < n) {
        let mut end = (last + CHUNK).min(n);
        while end < n && upper(&items[end]) == upper(&items[end - 1]) {
            end += 1;
        }
        ends.push(end);
    }
    let long: Mutex<Vec<Range<usize>>> = Mutex::new(Vec::new());
    let all = Shared(items.as_mut_ptr());
    par.run(ends.len() - 1, &|chunk| {
        let (first, len) = (ends[chunk], ends[chunk + 1] - ends[chunk]);
        // SAFETY: chunks are disjoint parts of the items.
        let part = unsafe { std::slice::from_raw_parts_mut(all.at(first as isize), len) };
        let mut start = 0;
        while start < len {
            let prefix = upper(&part[start]);
            let run = part[start..].iter().take_while(|item| upper(item) == prefix).count();
            if run > LONG {
                let range = first + start..first + start + run;
                long.lock().unwrap_or_else(|e| e.into_inner()).push(range);
            } else if run > 1 {
                part[start..start + run].sort_unstable();
            }
            start += run;
        }
    });
    for run in long.into_inner().unwrap_or_else(|e| e.into_inner()) {
        if sort(&mut items[run.clone()], &mut spare[run.clone()], par) {
            copy(&spare[run.clone()], &mut items[run], par);
        }
    }
}
