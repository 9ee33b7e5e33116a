//! Steps of halves: they are widened and narrowed around the step of their wide type, tile by tile. So there is one
//! loop for each formula, not three.

use crate::kernel::lane::Lane;
use crate::kernel::step::{BLOCK, blocks};
use crate::op::StepFn;
use crate::simd::half::{self, Convert};
use crate::{DType, f16, isa_versions};
use std::mem::MaybeUninit;

/// Elements that are wide at once.
const WIDENED: usize = 512;

/// Runs the wide types' step `f` between conversions: on up to three operands, the first of `C` and the others of `A`.
///
/// # Safety
/// As [`StepFn`].
#[inline(always)]
pub(super) unsafe fn widened<C: Lane, A: Lane, R: Lane>(
    f: StepFn,
    n: usize,
    ins: &[*const u8],
    out: *mut u8,
) {
    // Room for the widest element, float32; what is read of it is written before.
    let mut tiles = [const { MaybeUninit::<[u32; WIDENED]>::uninit() }; 3];
    let mut results = MaybeUninit::<[u32; WIDENED]>::uninit();
    let mut done = 0;
    while done < n {
        let take = WIDENED.min(n - done);
        let mut at = [std::ptr::null(); 3];
        // SAFETY: `take` elements from `done` on are readable and writable; tiles hold halves' wide elements.
        unsafe {
            for (k, &start) in ins.iter().enumerate() {
                let (half, size) = if k == 0 { (C::HALF, size_of::<C>()) } else { (A::HALF, size_of::<A>()) };
                at[k] = start.add(done * size);
                if half {
                    let tile = tiles[k].as_mut_ptr().cast();
                    (if k == 0 { widen_of::<C>() } else { widen_of::<A>() })(take, &[at[k]], tile);
                    at[k] = tile;
                }
            }
            let to = out.add(done * size_of::<R>());
            if R::HALF {
                let result = results.as_mut_ptr().cast();
                f(take, &at[..ins.len()], result);
                narrow_of::<R>()(take, &[result], to);
            } else {
                f(take, &at[..ins.len()], to);
            }
        }
        done += take;
    }
}

/// # Safety
/// As [`StepFn`], from `A` to its wide type.
#[inline(always)]
unsafe fn widen_body<A: Lane>(n: usize, ins: &[*const u8], out: *mut u8) {
    // SAFETY: the caller's contract; a block is readable where `blocks` points.
    unsafe {
        blocks!(1, n, [(ins[0], size_of::<A>())], out: A::Wide, |at, results| {
            for k in 0..BLOCK {
                results[k] = (*at[0].cast::<A>().add(k)).widen();
            }
        })
    }
}

/// # Safety
/// As [`StepFn`], to `A` from its wide type.
#[inline(always)]
unsafe fn narrow_body<A: Lane>(n: usize, ins: &[*const u8], out: *mut u8) {
    // SAFETY: the caller's contract; a block is readable where `blocks` points.
    unsafe {
        blocks!(1, n, [(ins[0], size_of::<A::Wide>())], out: A, |at, results| {
            for k in 0..BLOCK {
                results[k] = A::narrow(*at[0].cast::<A::Wide>().add(k));
            }
        })
    }
}

isa_versions! {
    fn widen_plain -> StepFn = widen_body;
    generics [A: Lane] names [A] fast A::HALF; args (n: usize, ins: &[*const u8], out: *mut u8)
}

isa_versions! {
    fn narrow_plain -> StepFn = narrow_body;
    generics [A: Lane] names [A] fast A::HALF; args (n: usize, ins: &[*const u8], out: *mut u8)
}

/// The step from a half to float32.
pub(super) fn widen_of<A: Lane>() -> StepFn {
    /// # Safety
    /// As [`StepFn`], from float16 to float32.
    unsafe fn run(n: usize, ins: &[*const u8], out: *mut u8) {
        // SAFETY: the caller's contract; the conversion is the machine's.
        unsafe {
            match half::converters() {
                Some((convert, _)) => in_turn(convert, widen_plain::<f16>(), n, ins[0].cast(), out.cast()),
                None => widen_plain::<f16>()(n, ins, out),
            }
        }
    }
    if A::DTYPE == DType::F16 { run } else { widen_plain::<A>() }
}

/// The step from float32 to a half.
pub(super) fn narrow_of<A: Lane>() -> StepFn {
    /// # Safety
    /// As [`StepFn`], from float32 to float16.
    unsafe fn run(n: usize, ins: &[*const u8], out: *mut u8) {
        // SAFETY: the caller's contract; the conversion is the machine's.
        unsafe {
            match half::converters() {
                Some((_, convert)) => in_turn(convert, narrow_plain::<f16>(), n, ins[0].cast(), out.cast()),
                None => narrow_plain::<f16>()(n, ins, out),
            }
        }
    }
    if A::DTYPE == DType::F16 { run } else { narrow_plain::<A>() }
}

/// Converts by `convert` as far as it goes, and sixteen elements by the step `plain` wherever it stops.
///
/// # Safety
/// `n` elements are readable and writable; the machine has what `convert` needs.
unsafe fn in_turn<A, B>(convert: Convert<A, B>, plain: StepFn, n: usize, from: *const A, to: *mut B) {
    let mut done = 0;
    while done < n {
        // SAFETY: the elements from `done` on, of `n`.
        unsafe {
            done += convert(n - done, from.add(done), to.add(done));
            let next = (done + 16).min(n);
            if done < next {
                plain(next - done, &[from.add(done).cast()], to.add(done).cast());
            }
            done = next;
        }
    }
}
