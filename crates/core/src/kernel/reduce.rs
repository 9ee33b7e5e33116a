//! What a reduction is made of: `init`, `fold` and `combine` over accumulators, so that one driver runs
//! every reduction, alone or at the end of a fused pass, with the same tree.

/// Rows of elements that lie evenly spaced: row r starts `r * step` bytes after `x`, and its `n` elements are
/// contiguous.
#[derive(Clone, Copy)]
pub struct Rows {
    pub x: *const u8,
    pub n: usize,
    pub rows: usize,
    pub step: isize,
}

impl Rows {
    /// The first element of row `r`.
    #[inline(always)]
    pub fn row<A>(&self, r: usize) -> *const A {
        self.x.wrapping_offset(r as isize * self.step).cast()
    }

    /// [`Fold::inner`] of a reduction whose leaves are folded by `L`.
    ///
    /// # Safety
    /// As [`Fold::inner`].
    #[inline(always)]
    pub unsafe fn fold_along<L: Leaf<A>, A>(&self, acc: *mut u8, leaf: usize, position: usize) {
        let acc = acc.cast::<L::Acc>();
        for r in 0..self.rows {
            let row = self.row::<A>(r);
            let mut done = 0;
            // SAFETY: `n` elements are readable from each row; there is an accumulator for each (contract).
            unsafe {
                let mut all = *acc.add(r);
                while done < self.n {
                    let n = leaf.min(self.n - done);
                    all = L::fold(all, row.add(done), n, position + done);
                    done += n;
                }
                *acc.add(r) = all;
            }
        }
    }
}

/// How a leaf joins an accumulator. A trait, not a closure: what is called in a loop for an instruction set must be
/// inlined there.
pub trait Leaf<A> {
    type Acc: Copy;

    /// `acc` and then `n` elements, at most a leaf of them, the first at `position` along the reduced axes.
    ///
    /// # Safety
    /// `n` elements are readable from `x`, and the code runs where the instruction set it is for is enabled.
    unsafe fn fold(acc: Self::Acc, x: *const A, n: usize, position: usize) -> Self::Acc;
}

/// Rows shorter than this are folded element by element along them, and several at once across them. The driver
/// hands rows that are folded across only where they follow each other without a gap.
pub const SHORT: usize = 16;

/// How many rows of `n` elements are folded side by side across short rows: a power of two.
pub const fn together(n: usize) -> usize {
    if n < SHORT { 64 / n.next_power_of_two() } else { 1 }
}

/// The pieces of one reduction for one pair of dtypes. An accumulator is `size` bytes, any content.
#[derive(Clone, Copy)]
pub struct Fold {
    /// Bytes of one accumulator (a multiple of its alignment, which is at most 16).
    pub size: usize,
    /// Sets `n` accumulators to the identity.
    pub init: unsafe fn(acc: *mut u8, n: usize),
    /// Folds row r into accumulator r, in leaves of `leaf` elements one after the other. The first element of
    /// every row is at `position` along the reduced axes. The tree depends on `n` and `leaf` alone.
    pub inner: unsafe fn(acc: *mut u8, x: &Rows, leaf: usize, position: usize),
    /// Folds element i of every row into accumulator i; row r is at `position + r * stride`. The tree depends on
    /// `n` and `rows` alone. Rows shorter than [`SHORT`] follow each other without a gap.
    pub outer: unsafe fn(acc: *mut u8, x: &Rows, position: usize, stride: usize),
    /// Accumulator i becomes `acc[i] combined with other[i]`; `other` comes later in the reduced order.
    pub combine: unsafe fn(acc: *mut u8, other: *const u8, n: usize),
    /// Writes the results of `n` accumulators.
    pub finish: unsafe fn(acc: *const u8, out: *mut u8, n: usize),
}
