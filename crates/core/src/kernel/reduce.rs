//! What a reduction is made of: `init`, `fold` and `combine` over accumulators, so that one driver runs
//! every reduction, alone or at the end of a fused pass, with the same tree.

/// The pieces of one reduction for one pair of dtypes. An accumulator is `size` bytes, any content.
#[derive(Clone, Copy)]
pub struct Fold {
    /// Bytes of one accumulator (a multiple of its alignment, which is at most 16).
    pub size: usize,
    /// Sets `n` accumulators to the identity.
    pub init: unsafe fn(acc: *mut u8, n: usize),
    /// Folds `n` contiguous elements, whose positions along the reduced axes start at `position`, into ONE
    /// accumulator, by a tree that depends on `n` alone.
    pub inner: unsafe fn(acc: *mut u8, x: *const u8, n: usize, position: usize),
    /// Folds element i into accumulator i for `n` accumulators; all elements are at `position`.
    pub outer: unsafe fn(acc: *mut u8, x: *const u8, n: usize, position: usize),
    /// Accumulator i becomes `acc[i] combined with other[i]`; `other` comes later in the reduced order.
    pub combine: unsafe fn(acc: *mut u8, other: *const u8, n: usize),
    /// Writes the results of `n` accumulators.
    pub finish: unsafe fn(acc: *const u8, out: *mut u8, n: usize),
}
