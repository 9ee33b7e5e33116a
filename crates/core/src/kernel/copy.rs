//! Copies of strided blocks: how a load gathers into a register and a store scatters from one.

use smallvec::SmallVec;

/// One axis of a block: how many elements, and the byte steps of source and target.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    pub n: usize,
    pub src: isize,
    pub dst: isize,
}

/// Copies a block of elements of `size` bytes; `axes` from outer to inner. An empty list is one element.
///
/// # Safety
/// Every element named is readable at the source and writable at the target, both aligned to their size (16
/// byte elements to 8); the two do not overlap.
pub unsafe fn copy_block(size: usize, axes: &mut SmallVec<[Axis; 6]>, src: *const u8, dst: *mut u8) {
    arrange(axes);
    // SAFETY: the caller's contract; the order of axes does not change which elements are copied.
    unsafe {
        match size {
            1 => walk::<u8>(axes, src, dst),
            2 => walk::<u16>(axes, src, dst),
            4 => walk::<u32>(axes, src, dst),
            8 => walk::<u64>(axes, src, dst),
            _ => walk::<[u64; 2]>(axes, src, dst),
        }
    }
}

/// Drops axes of one element, puts the axis with the smallest steps innermost and merges what lies in one row.
fn arrange(axes: &mut SmallVec<[Axis; 6]>) {
    axes.retain(|axis| axis.n != 1);
    // The side that is not a register has the greater steps and decides; a repeated source stays outside.
    let cost = |axis: &Axis| match axis.src {
        0 => axis.dst.unsigned_abs() * 2,
        s => s.unsigned_abs().max(axis.dst.unsigned_abs()),
    };
    for i in 1..axes.len() {
        let mut j = i;
        while j > 0 && cost(&axes[j - 1]) < cost(&axes[j]) {
            axes.swap(j - 1, j);
            j -= 1;
        }
    }
    let mut i = 1;
    while i < axes.len() {
        let (outer, inner) = (axes[i - 1], axes[i]);
        let n = inner.n as isize;
        if outer.src == inner.src * n && outer.dst == inner.dst * n {
            axes[i].n = outer.n * inner.n;
            axes.remove(i - 1);
        } else {
            i += 1;
        }
    }
}

/// # Safety
/// As [`copy_block`], for elements of `E`.
unsafe fn walk<E: Copy>(axes: &[Axis], src: *const u8, dst: *mut u8) {
    // SAFETY: every address computed is one of the block's (the caller's contract).
    unsafe {
        match axes {
            [] => *dst.cast::<E>() = *src.cast::<E>(),
            [axis] => line::<E>(*axis, src, dst),
            [outer, inner] if crosses(*outer, *inner, size_of::<E>() as isize) => {
                plane::<E>(*outer, *inner, src, dst);
            }
            [axis, rest @ ..] => {
                for i in 0..axis.n as isize {
                    walk::<E>(rest, src.offset(i * axis.src), dst.offset(i * axis.dst));
                }
            }
        }
    }
}

/// Whether source and target disagree on which axis is the row: a transposition.
fn crosses(outer: Axis, inner: Axis, size: isize) -> bool {
    (inner.src == size && outer.dst == size) || (inner.dst == size && outer.src == size)
}

/// A transposition: strips of the outer axis, so that the lines of both sides that a strip touches stay near.
///
/// # Safety
/// As [`copy_block`], for two axes of elements of `E`.
unsafe fn plane<E: Copy>(outer: Axis, inner: Axis, src: *const u8, dst: *mut u8) {
    // Rows a power of two apart fall on one set of the L1 cache, which has eight places.
    const STRIP: usize = 4;
    let mut start = 0;
    while start < outer.n {
        let end = (start + STRIP).min(outer.n);
        for j in 0..inner.n as isize {
            let (src, dst) = (src.wrapping_offset(j * inner.src), dst.wrapping_offset(j * inner.dst));
            if end - start == STRIP {
                for i in 0..STRIP as isize {
                    let i = start as isize + i;
                    // SAFETY: element (i, j) of the block (the caller's contract).
                    unsafe { *dst.offset(i * outer.dst).cast::<E>() = *src.offset(i * outer.src).cast::<E>() }
                }
            } else {
                for i in start as isize..end as isize {
                    // SAFETY: element (i, j) of the last, narrower strip: `end` is at most the outer axis's size.
                    unsafe { *dst.offset(i * outer.dst).cast::<E>() = *src.offset(i * outer.src).cast::<E>() }
                }
            }
        }
        start = end;
    }
}

/// # Safety
/// As [`copy_block`], for one axis of elements of `E`.
#[inline(always)]
unsafe fn line<E: Copy>(axis: Axis, src: *const u8, dst: *mut u8) {
    let size = size_of::<E>() as isize;
    // SAFETY: the caller's contract.
    unsafe {
        if axis.dst == size && axis.src == size {
            std::ptr::copy_nonoverlapping(src.cast::<E>(), dst.cast::<E>(), axis.n);
        } else if axis.dst == size && axis.src == 0 {
            fill(*src.cast::<E>(), dst.cast::<E>(), axis.n);
        } else if axis.dst == size {
            for i in 0..axis.n {
                *dst.cast::<E>().add(i) = *src.offset(i as isize * axis.src).cast::<E>();
            }
        } else if axis.src == size {
            for i in 0..axis.n {
                *dst.offset(i as isize * axis.dst).cast::<E>() = *src.cast::<E>().add(i);
            }
        } else {
            for i in 0..axis.n as isize {
                *dst.offset(i * axis.dst).cast::<E>() = *src.offset(i * axis.src).cast::<E>();
            }
        }
    }
}

/// # Safety
/// `n` elements are writable from `dst`.
#[inline(always)]
unsafe fn fill<E: Copy>(value: E, dst: *mut E, n: usize) {
    for i in 0..n {
        // SAFETY: i < n.
        unsafe { *dst.add(i) = value }
    }
}

/// Repeats one element of `size` bytes `n` times.
///
/// # Safety
/// `value` holds an element; `n` of them are writable from `dst`, which is aligned for them.
pub unsafe fn splat(size: usize, value: *const u8, dst: *mut u8, n: usize) {
    // SAFETY: the caller's contract.
    unsafe {
        match size {
            1 => fill(*value, dst, n),
            2 => fill(*value.cast::<u16>(), dst.cast(), n),
            4 => fill(*value.cast::<u32>(), dst.cast(), n),
            8 => fill(*value.cast::<u64>(), dst.cast(), n),
            _ => fill(*value.cast::<[u64; 2]>(), dst.cast::<[u64; 2]>(), n),
        }
    }
}
