//! Orders of elements (NaN last, as NumPy) and stable sorts that many threads share.

use crate::kernel::moves::Shared;
use crate::kernel::walk::split;
use crate::par::Parallel;
use crate::{Bool, Complex32, Complex64, Element, bf16, f16};

/// Elements a parallel sort sorts as one run.
const RUN: usize = 1 << 15;

/// A type whose elements have an order: that of their keys.
pub trait Order: Element {
    type Key: Ord + Copy + Send + Sync;
    fn key(self) -> Self::Key;
}

macro_rules! own_order {
    ($($t:ty),*) => { $(
        impl Order for $t {
            type Key = $t;
            #[inline(always)]
            fn key(self) -> $t {
                self
            }
        }
    )* };
}
own_order!(i8, i16, i32, i64, u8, u16, u32, u64);

impl Order for Bool {
    type Key = bool;
    #[inline(always)]
    fn key(self) -> bool {
        self.get()
    }
}

macro_rules! float_order {
    ($($t:ty, $bits:ty, $widen:expr);*) => { $(
        impl Order for $t {
            type Key = $bits;
            /// The bits as an unsigned number that grows with the value; zeros are equal, NaN is last.
            #[inline(always)]
            fn key(self) -> $bits {
                const SIGN: $bits = 1 << (<$bits>::BITS - 1);
                let x = $widen(self);
                if x.is_nan() {
                    return <$bits>::MAX;
                }
                let bits = (x + 0.0).to_bits();
                if bits & SIGN != 0 { !bits } else { bits | SIGN }
            }
        }
    )* };
}
float_order!(f32, u32, |x| x; f64, u64, |x| x; f16, u32, f16::to_f32; bf16, u32, bf16::to_f32);

macro_rules! complex_order {
    ($($t:ty, $bits:ty);*) => { $(
        impl Order for $t {
            type Key = (bool, bool, $bits, $bits);
            /// By real part, then imaginary part; numbers with a NaN part last, those with a NaN real part after all.
            #[inline(always)]
            fn key(self) -> Self::Key {
                (self.re.is_nan(), self.im.is_nan(), self.re.key(), self.im.key())
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
