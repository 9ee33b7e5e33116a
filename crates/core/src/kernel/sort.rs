//! Orders of elements (NaN last, as NumPy), their keys for [`super::radix`], and a stable sort by comparing for what
//! has no such key.

use crate::kernel::moves::Shared;
use crate::kernel::radix::{At, Item, Key, Packed};
use crate::kernel::walk::split;
use crate::par::Parallel;
use crate::{Bool, Complex32, Complex64, Element, bf16, f16};

/// Elements a parallel sort sorts as one run.
const RUN: usize = 1 << 15;

/// A type whose elements have an order: that of their keys.
pub trait Order: Element {
    type Key: Ord + Copy + Send + Sync;
    /// An unsigned number of the element's size with the same order.
    type Bits: Key;
    /// Such a number with a place.
    type Placed: Item<Key = Self::Bits>;
    /// Whether there is one.
    const HAS_BITS: bool = true;
    fn key(self) -> Self::Key;
    fn bits(self) -> Self::Bits;
    /// An element with these bits: the one they came from, unless it [`is_merged`](Order::is_merged).
    fn from_bits(bits: Self::Bits) -> Self;
    /// Whether other elements have the same key: a zero that is negative, a NaN.
    #[inline(always)]
    fn is_merged(self) -> bool {
        false
    }
}

macro_rules! own_order {
    ($($t:ty, $bits:ty, $placed:ty, $flip:expr);*) => { $(
        impl Order for $t {
            type Key = $t;
            type Bits = $bits;
            type Placed = $placed;
            #[inline(always)]
            fn key(self) -> $t {
                self
            }
            /// With the sign turned over, so that negative numbers come first.
            #[inline(always)]
            fn bits(self) -> $bits {
                self as $bits ^ $flip
            }
            #[inline(always)]
            fn from_bits(bits: $bits) -> $t {
                (bits ^ $flip) as $t
            }
        }
    )* };
}
own_order!(i8, u8, Packed<u8>, 1 << 7; i16, u16, Packed<u16>, 1 << 15; i32, u32, Packed<u32>, 1 << 31;
    i64, u64, At<u64>, 1 << 63; u8, u8, Packed<u8>, 0; u16, u16, Packed<u16>, 0; u32, u32, Packed<u32>, 0;
    u64, u64, At<u64>, 0);

impl Order for Bool {
    type Key = bool;
    type Bits = u8;
    type Placed = Packed<u8>;
    #[inline(always)]
    fn key(self) -> bool {
        self.get()
    }
    #[inline(always)]
    fn bits(self) -> u8 {
        self.get().into()
    }
    #[inline(always)]
    fn from_bits(bits: u8) -> Bool {
        Bool::new(bits != 0)
    }
}

macro_rules! float_order {
    ($($t:ty, $bits:ty, $placed:ty, $infinity:expr);*) => { $(
        impl Order for $t {
            type Key = $bits;
            type Bits = $bits;
            type Placed = $placed;
            #[inline(always)]
            fn key(self) -> $bits {
                self.bits()
            }
            /// The bits as an unsigned number that grows with the value; zeros are equal, NaN is last.
            #[inline(always)]
            fn bits(self) -> $bits {
                const SIGN: $bits = 1 << (<$bits>::BITS - 1);
                let bits = self.to_bits();
                let magnitude = bits & !SIGN;
                let ordered = if bits > SIGN { !bits } else { bits | SIGN };
                if magnitude > $infinity { <$bits>::MAX } else { ordered }
            }
            #[inline(always)]
            fn from_bits(bits: $bits) -> $t {
                const SIGN: $bits = 1 << (<$bits>::BITS - 1);
                <$t>::from_bits(if bits & SIGN != 0 { bits ^ SIGN } else { !bits })
            }
            #[inline(always)]
            fn is_merged(self) -> bool {
                const SIGN: $bits = 1 << (<$bits>::BITS - 1);
                let bits = self.to_bits();
                (bits == SIGN) | (bits & !SIGN > $infinity)
            }
        }
    )* };
}
float_order!(f32, u32, Packed<u32>, 0x7f80_0000; f64, u64, At<u64>, 0x7ff0_0000_0000_0000;
    f16, u16, Packed<u16>, 0x7c00; bf16, u16, Packed<u16>, 0x7f80);

macro_rules! complex_order {
    ($($t:ty, $bits:ty);*) => { $(
        impl Order for $t {
            type Key = (bool, bool, $bits, $bits);
            type Bits = u8;
            type Placed = Packed<u8>;
            const HAS_BITS: bool = false;
            /// By real part, then imaginary part; numbers with a NaN part last, those with a NaN real part after all.
            #[inline(always)]
            fn key(self) -> Self::Key {
                (self.re.is_nan(), self.im.is_nan(), self.re.key(), self.im.key())
            }
            fn bits(self) -> u8 {
                0
            }
            fn from_bits(_: u8) -> Self {
                Self::default()
            }
        }
    )* };
}
complex_order!(Complex32, u32; Complex64, u64);

/// Sorts by `key`, keeping the order of equal ones. Long slices are sorted in runs of a fixed size that are
/// then merged, each step in parallel.
pub fn stable<T, K, F>(items: &mut [T], key: F, par: &dyn Parallel)
where
    T: Copy + Send + Sync,
    K: Ord,
    F: Fn(&T) -> K + Sync,
{
    let n = items.len();
    if n <= 2 * RUN {
        items.sort_by_key(&key);
        return;
    }
    let base = Shared(items.as_mut_ptr());
    split(par, n, RUN, |range| {
        // SAFETY: chunks are disjoint parts of the slice.
        let run = unsafe { std::slice::from_raw_parts_mut(base.at(range.start as isize), range.len()) };
        run.sort_by_key(&key);
    });
    let mut spare = items.to_vec();
    let (mut from, mut to) = (base, Shared(spare.as_mut_ptr()));
    let mut width = RUN;
    while width < n {
        split(par, n, 2 * width, |range| {
            let middle = (range.start + width).min(n);
            // SAFETY: the two buffers do not overlap, and chunks are disjoint parts of them.
            unsafe {
                let part = |a: usize, b: usize| std::slice::from_raw_parts(from.at(a as isize), b - a);
                let out = std::slice::from_raw_parts_mut(to.at(range.start as isize), range.len());
                merge(part(range.start, middle), part(middle, range.end), out, &key);
            }
        });
        std::mem::swap(&mut from, &mut to);
        width *= 2;
    }
    if from.0 != items.as_mut_ptr() {
        items.copy_from_slice(&spare);
    }
}

fn merge<T: Copy, K: Ord>(a: &[T], b: &[T], out: &mut [T], key: &impl Fn(&T) -> K) {
    let (mut i, mut j) = (0, 0);
    for slot in out {
        let left = j == b.len() || (i < a.len() && key(&a[i]) <= key(&b[j]));
        *slot = if left { a[i] } else { b[j] };
        if left { i += 1 } else { j += 1 }
    }
}
