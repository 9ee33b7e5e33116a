//! Rows of floats in vectors: elements as their wide type and back, and sums whose tree is the same on every
//! instruction set. Knows no op.
//!
//! Rationale: loops over short rows, whose ends are part of a vector, do not vectorise by themselves.

use crate::isa_versions;
use crate::kernel::lane::Lane;
use crate::kernel::num::{Float, Num};
use crate::kernel::reduce::{Leaf, Rows};
use crate::simd::float::FloatVector;
use crate::simd::vector::{Vector, Wide};
use std::marker::PhantomData;

/// Lanes that sums are kept in, on every instruction set.
pub const LANES: usize = 64;
/// Vectors that hold them, at most.
const VECTORS: usize = 32;
/// Elements of the widest vector.
pub const WIDEST: usize = 16;
/// Vectors that loops take at once where sums may differ between instruction sets.
pub const SIDE: usize = 4;
/// Elements whose sums are kept in the element's own precision.
pub const LEAF: usize = 1024;

/// As many vectors as have [`LANES`] lanes.
pub const fn vectors<V: Vector>() -> usize {
    LANES / V::LANES
}

/// Sums in all lanes.
#[derive(Clone, Copy)]
pub struct Sums<V>([V; VECTORS]);

impl<V: Vector> Sums<V> {
    /// # Safety
    /// As [`Vector`]'s.
    #[inline(always)]
    pub unsafe fn zero() -> Sums<V> {
        // SAFETY: the caller's.
        Sums(unsafe { [V::zero(); VECTORS] })
    }

    /// Adds to vector `j` of the lanes.
    ///
    /// # Safety
    /// As [`Vector`]'s.
    #[inline(always)]
    pub unsafe fn add(&mut self, j: usize, x: V) {
        // SAFETY: the caller's.
        self.0[j] = unsafe { self.0[j].add(x) };
    }

    /// Adds a product to vector `j` of the lanes.
    ///
    /// # Safety
    /// As [`Vector`]'s.
    #[inline(always)]
    pub unsafe fn add_product(&mut self, j: usize, x: V, y: V) {
        // SAFETY: the caller's.
        self.0[j] = unsafe { x.multiply_add(y, self.0[j]) };
    }

    /// The sum of all lanes, half by half.
    ///
    /// # Safety
    /// As [`Vector`]'s.
    #[inline(always)]
    pub unsafe fn total(mut self) -> V::Item {
        let mut half = vectors::<V>() / 2;
        while half > 0 {
            for j in 0..half {
                // SAFETY: the caller's.
                self.0[j] = unsafe { self.0[j].add(self.0[j + half]) };
            }
            half /= 2;
        }
        // SAFETY: the caller's.
        unsafe { self.0[0].total() }
    }
}

/// The sum of `n` elements: element i goes to lane i modulo [`LANES`].
///
/// # Safety
/// As [`Vector`]'s, of `n` elements.
#[inline(always)]
pub unsafe fn sum<T: Lane, V: FloatVector<Item = T::Wide>>(x: *const T, n: usize) -> V::Item {
    // SAFETY: the caller's.
    unsafe {
        let mut sums = Sums::<V>::zero();
        let mut at = 0;
        while at + LANES <= n {
            for j in 0..vectors::<V>() {
                sums.add(j, load::<T, V>(x.add(at + j * V::LANES)));
            }
            at += LANES;
        }
        if T::HALF {
            // Through a pad, whose zeros change no sum: lanes never hold a negative one.
            let mut pad = [T::Wide::default(); LANES];
            for k in 0..n - at {
                pad[k] = (*x.add(at + k)).widen();
            }
            for j in 0..vectors::<V>() {
                sums.add(j, V::load(pad.as_ptr().add(j * V::LANES)));
            }
            return sums.total();
        }
        for j in 0..vectors::<V>() {
            if at < n {
                sums.add(j, some_wide(x.cast::<T::Wide>().add(at), n - at, V::zero()));
            }
            at += V::LANES;
        }
        sums.total()
    }
}

/// The sum of a few vectors' lanes.
///
/// # Safety
/// As [`Vector`]'s.
#[inline(always)]
pub unsafe fn total<V: FloatVector<Item: Float>>(sums: [V; SIDE]) -> f64 {
    // SAFETY: the caller's.
    unsafe { sums[0].add(sums[1]).add(sums[2].add(sums[3])).total().double() }
}

/// The sums of the elements less `near`, and of their squares.
///
/// # Safety
/// As [`Vector`]'s, of `n` elements.
#[inline(always)]
pub unsafe fn about<T: Lane<Wide: Float>, V: FloatVector<Item = T::Wide>>(
    x: *const T,
    n: usize,
    near: V,
) -> [f64; 2] {
    let (mut sums, mut at) = ([0.0; 2], 0);
    // SAFETY: the caller's.
    unsafe {
        while at < n {
            let end = n.min(at + LEAF);
            let (mut ones, mut twos) = ([V::zero(); SIDE], [V::zero(); SIDE]);
            while at + SIDE * V::LANES <= end {
                for j in 0..SIDE {
                    let d = load::<T, V>(x.add(at + j * V::LANES)).sub(near);
                    ones[j] = ones[j].add(d);
                    twos[j] = d.multiply_add(d, twos[j]);
                }
                at += SIDE * V::LANES;
            }
            while at < end {
                let d = some::<T, V>(x.add(at), end - at, near).sub(near);
                ones[0] = ones[0].add(d);
                twos[0] = d.multiply_add(d, twos[0]);
                at += V::LANES;
            }
            at = end;
            sums[0] += total(ones);
            sums[1] += total(twos);
        }
    }
    sums
}

/// A vector of elements.
///
/// # Safety
/// As [`Vector`]'s.
#[inline(always)]
pub unsafe fn load<T: Lane, V: Vector<Item = T::Wide>>(x: *const T) -> V {
    // SAFETY: the caller's; a pad holds the widest vector.
    unsafe {
        if !T::HALF {
            return V::load(x.cast());
        }
        let mut pad = [T::Wide::default(); WIDEST];
        for k in 0..V::LANES {
            pad[k] = (*x.add(k)).widen();
        }
        V::load(pad.as_ptr())
    }
}

/// A vector of the first `n` elements, or all its lanes of more; the other lanes are those of `rest`.
///
/// # Safety
/// As [`Vector`]'s, of `n` elements.
#[inline(always)]
pub unsafe fn some<T: Lane, V: FloatVector<Item = T::Wide>>(x: *const T, n: usize, rest: V) -> V {
    // SAFETY: the caller's; a pad holds the widest vector.
    unsafe {
        if !T::HALF {
            return some_wide(x.cast(), n, rest);
        }
        if n >= V::LANES {
            return load::<T, V>(x);
        }
        let mut pad = [T::Wide::default(); WIDEST];
        for k in 0..n {
            pad[k] = (*x.add(k)).widen();
        }
        V::first_or(pad.as_ptr(), n, rest)
    }
}

/// As [`some`], of elements that are wide.
///
/// # Safety
/// As [`Vector`]'s, of `n` elements.
#[inline(always)]
pub unsafe fn some_wide<V: FloatVector>(x: *const V::Item, n: usize, rest: V) -> V {
    // SAFETY: the caller's.
    unsafe { if n >= V::LANES { V::load(x) } else { V::first_or(x, n, rest) } }
}

/// As [`store`], to elements that are wide.
///
/// # Safety
/// As [`Vector`]'s, of `n` elements.
#[inline(always)]
pub unsafe fn store_wide<V: Vector>(x: V, y: *mut V::Item, n: usize) {
    // SAFETY: the caller's.
    unsafe { if n >= V::LANES { x.store(y) } else { x.store_first(y, n) } }
}

/// Writes the first `n` lanes, or all where there are fewer.
///
/// # Safety
/// As [`Vector`]'s, of `n` elements.
#[inline(always)]
pub unsafe fn store<T: Lane, V: Vector<Item = T::Wide>>(x: V, y: *mut T, n: usize) {
    // SAFETY: the caller's; a pad holds the widest vector.
    unsafe {
        if !T::HALF {
            return store_wide(x, y.cast(), n);
        }
        let mut pad = [T::Wide::default(); WIDEST];
        x.store(pad.as_mut_ptr());
        let mut narrow = [T::default(); WIDEST];
        for k in 0..V::LANES {
            narrow[k] = T::narrow(pad[k]);
        }
        if n >= V::LANES {
            for k in 0..V::LANES {
                *y.add(k) = narrow[k];
            }
        } else {
            std::ptr::copy_nonoverlapping(narrow.as_ptr(), y, n);
        }
    }
}

/// Leaves as sums of lanes.
struct Leaves<V>(PhantomData<V>);

impl<T: Lane<Wide: Num>, V: FloatVector<Item = T::Wide>> Leaf<T> for Leaves<V> {
    type Acc = T::Wide;
    #[inline(always)]
    unsafe fn fold(acc: T::Wide, x: *const T, n: usize, _: usize) -> T::Wide {
        // SAFETY: the caller's.
        unsafe { acc.add(sum::<T, V>(x, n)) }
    }
}

/// Rows of at most [`LANES`] elements, for sets with masks: where a row ends is found once for all.
///
/// # Safety
/// As `Fold::inner`.
#[inline(always)]
unsafe fn fold_short<V: FloatVector<Item: Num>>(acc: *mut V::Item, x: &Rows) {
    for r in 0..x.rows {
        let row = x.row::<V::Item>(r);
        // SAFETY: elements of row r, which has an accumulator (contract).
        unsafe {
            let mut sums = Sums::<V>::zero();
            for j in 0..vectors::<V>() {
                let left = x.n.saturating_sub(j * V::LANES).min(V::LANES);
                // Set, not added to zero: negative zeros alone would tell, and no accumulator is one.
                sums.0[j] = V::part(row.wrapping_add(j * V::LANES), left);
            }
            *acc.add(r) = (*acc.add(r)).add(sums.total());
        }
    }
}

/// # Safety
/// As `Fold::inner`.
#[inline(always)]
unsafe fn fold_body<T: Lane<Wide: Num>, V: FloatVector<Item = T::Wide>>(
    acc: *mut u8,
    x: &Rows,
    leaf: usize,
    position: usize,
) {
    // SAFETY: the contract.
    unsafe {
        if V::MASKS && !T::HALF && x.n <= LANES.min(leaf) {
            fold_short::<V>(acc.cast(), x)
        } else {
            x.fold_along::<Leaves<V>, T>(acc, leaf, position)
        }
    }
}

isa_versions! {
    /// `Fold::inner` of sums of floats, whose accumulators are wide elements.
    pub fn fold_sums -> unsafe fn(*mut u8, &Rows, usize, usize) = fold_body;
    generics [T: Lane<Wide: Num + Wide>] names [T] vectors [T::Wide] fast true;
    args (acc: *mut u8, x: &Rows, leaf: usize, position: usize)
}
