//! Copies that go past the caches: for results so large that they would push everything else out and be gone
//! themselves before they are read. Knows no formula.

/// Bytes that a loop reads and writes together from which its stores go past the caches: about the last level's
/// size where there are several megabytes of it for each core.
pub const LARGE: usize = 32 << 20;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Copies whole lines past the caches, and what is left of them at both ends as usual. [`fence`] must follow before
/// another thread may read.
///
/// # Safety
/// `bytes` are readable from `src` and writable from `dst`; the two do not overlap.
pub unsafe fn copy(src: *const u8, dst: *mut u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
        let head = dst.align_offset(LINE).min(bytes);
        let lines = (bytes - head) / LINE;
        // SAFETY: head, lines and tail are parts of the range; a line starts at a multiple of 64.
        unsafe {
            std::ptr::copy_nonoverlapping(src, dst, head);
            let (from, to) = (src.add(head), dst.add(head));
            for i in 0..lines * (LINE / 16) {
                _mm_stream_si128(to.cast::<__m128i>().add(i), _mm_loadu_si128(from.cast::<__m128i>().add(i)));
            }
            let done = head + lines * LINE;
            std::ptr::copy_nonoverlapping(src.add(done), dst.add(done), bytes - done);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: the caller's contract.
    unsafe {
        let _ = LINE;
        std::ptr::copy_nonoverlapping(src, dst, bytes)
    }
}

/// Orders this thread's stores past the caches before its later ones.
pub fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 machine has it.
    unsafe {
        std::arch::x86_64::_mm_sfence()
    }
}
