//! Copies of strided blocks: how a load gathers into a register and a store scatters from one.

use crate::simd::stream;
use crate::simd::transpose::{Plane, transpose};
use smallvec::SmallVec;

/// One axis of a block: how many elements, and the byte steps of source and target.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    pub n: usize,
    pub src: isize,
    pub dst: isize,
}

/// Copies a block of elements of `size` bytes; `axes` from outer to inner. An empty list is one element. With `past`,
/// whole lines go past the caches, and `stream::fence` must follow.
///
/// # Safety
/// Every element named is readable at the source and writable at the target, both aligned to their size (8
/// byte elements to 4, 16 byte elements to 8); the two do not overlap.
pub unsafe fn copy_block(
    size: usize,
    axes: &mut SmallVec<[Axis; 6]>,
    src: *const u8,
    dst: *mut u8,
    past: bool,
) {
    arrange(axes);
    // SAFETY: the caller's contract; the order of axes does not change which elements are copied.
    unsafe {
        match size {
            1 => walk::<u8>(axes, src, dst, past),
            2 => walk::<u16>(axes, src, dst, past),
            4 => walk::<u32>(axes, src, dst, past),
            8 => walk::<[u32; 2]>(axes, src, dst, past),
            _ => walk::<[u64; 2]>(axes, src, dst, past),
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
unsafe fn walk<E: Copy>(axes: &[Axis], src: *const u8, dst: *mut u8, past: bool) {
    // SAFETY: every address computed is one of the block's (the caller's contract).
    unsafe {
        match axes {
            [] => *dst.cast::<E>() = *src.cast::<E>(),
            [axis] => line::<E>(*axis, src, dst, past),
            [outer, inner] if crosses(*outer, *inner, size_of::<E>() as isize) => {
                let (row, col) =
                    if inner.src == size_of::<E>() as isize { (outer, inner) } else { (inner, outer) };
                let plane = Plane { rows: row.n, cols: col.n, src: row.src, dst: col.dst };
                transpose::<E>(plane, src, dst, past);
            }
            [axis, rest @ ..] => {
                for i in 0..axis.n as isize {
                    walk::<E>(rest, src.offset(i * axis.src), dst.offset(i * axis.dst), past);
                }
            }
        }
    }
}

/// Whether source and target disagree on which axis is the row: a transposition.
fn crosses(outer: Axis, inner: Axis, size: isize) -> bool {
    (inner.src == size && outer.dst == size) || (inner.dst == size && outer.src == size)
}

/// # Safety
/// As [`copy_block`], for one axis of elements of `E`.
#[inline(always)]
unsafe fn line<E: Copy>(axis: Axis, src: *const u8, dst: *mut u8, past: bool) {
    let size = size_of::<E>() as isize;
    // SAFETY: the caller's contract.
    unsafe {
        if axis.dst == size && axis.src == size && past {
            stream::copy(src, dst, axis.n * size_of::<E>());
        } else if axis.dst == size && axis.src == size {
            std::ptr::copy_nonoverlapping(src.cast::<E>(), dst.cast::<E>(), axis.n);
        } else if axis.dst == size && axis.src == 0 {
            fill(*src.cast::<E>(), dst.cast::<E>(), axis.n);
        } else if axis.dst == size && axis.src == -size {
            // The same as below, with a step the compiler knows: vectors that it turns over.
            for i in 0..axis.n {
                *dst.cast::<E>().add(i) = *src.cast::<E>().offset(-(i as isize));
            }
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
