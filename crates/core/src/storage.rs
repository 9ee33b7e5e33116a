//! Memory of arrays: 64-byte aligned buffers from a caching pool, with a limit, statistics and release.
//!
//! Rationale: first-touch page faults cost more than the work of many kernels, so freed buffers stay mapped
//! and are handed out again, warm. Each size class has a lock of its own, held for one push or pop.
//! Every byte is initialised when the system gives it (large buffers come as zero pages, in huge pages where the
//! system has them), so a buffer's bytes may be borrowed as `[u8]` before anything was written.
//! Limitations: a class rounds sizes up by at most a quarter; what rounds up to more than `isize` is refused.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The alignment of every buffer: a cache line, and the widest vector register.
pub const ALIGN: usize = 64;

/// The process may hold twice the memory it has used at once, and this many bytes.
const SPARE: usize = 256 << 20;

/// Four classes per power of two, from 64 bytes up to the address space.
const CLASSES: usize = 4 * 58;

/// Memory of one array, given back to the pool on drop. The contents start as whatever was there before.
pub struct Buffer {
    ptr: NonNull<u8>,
    /// The bytes asked for.
    len: usize,
}

// SAFETY: a buffer owns its memory, like a Vec.
unsafe impl Send for Buffer {}
// SAFETY: `&Buffer` only gives the address; accesses through it are the callers' argument.
unsafe impl Sync for Buffer {}

/// What the pool holds, in bytes and counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Bytes of buffers in use (rounded up to their class).
    pub live: usize,
    /// The most that was in use at once.
    pub peak: usize,
    /// Bytes kept for reuse.
    pub cached: usize,
    /// Buffers handed out, and how many of them came from the cache.
    pub allocations: usize,
    pub hits: usize,
}

struct Pool {
    free: [Mutex<Vec<NonNullSend>>; CLASSES],
    live: AtomicUsize,
    peak: AtomicUsize,
    cached: AtomicUsize,
    allocations: AtomicUsize,
    hits: AtomicUsize,
    limit: AtomicUsize,
}

struct NonNullSend(NonNull<u8>);
// SAFETY: the pointer owns free memory that no one else refers to.
unsafe impl Send for NonNullSend {}

static POOL: Pool = Pool {
    free: [const { Mutex::new(Vec::new()) }; CLASSES],
    live: AtomicUsize::new(0),
    peak: AtomicUsize::new(0),
    cached: AtomicUsize::new(0),
    allocations: AtomicUsize::new(0),
    hits: AtomicUsize::new(0),
    limit: AtomicUsize::new(usize::MAX),
};

/// The class that holds `len` bytes and the bytes its buffers have. None: too large for the address space.
fn class_of(len: usize) -> Option<(usize, usize)> {
    if len > isize::MAX as usize / 2 {
        return None;
    }
    let len = len.max(64);
    let power = usize::BITS - 1 - (len - 1).leading_zeros(); // 2^power < len <= 2^(power+1), from 2^5
    let quarter = 1usize << (power - 2);
    let steps = (len - (1 << power)).div_ceil(quarter); // 1..=4
    Some(((power as usize - 5) * 4 + steps - 1, (1 << power) + steps * quarter))
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, ALIGN).expect("class sizes fit the address space")
}

impl Buffer {
    /// Memory of `len` bytes, or None where there is none even after the cache is given back.
    pub fn new(len: usize) -> Option<Buffer> {
        let (class, bytes) = class_of(len)?;
        POOL.allocations.fetch_add(1, Relaxed);
        let cached = POOL.free[class].lock().unwrap_or_else(|e| e.into_inner()).pop();
        let ptr = match cached {
            Some(NonNullSend(ptr)) => {
                POOL.hits.fetch_add(1, Relaxed);
                POOL.cached.fetch_sub(bytes, Relaxed);
                ptr
            }
            None => {
                // Sizes that change all the time would otherwise leave a full cache behind for each of them.
                let held = POOL.live.load(Relaxed) + POOL.cached.load(Relaxed) + bytes;
                if held > 2 * POOL.peak.load(Relaxed) + SPARE {
                    release();
                }
                allocate(bytes)?
            }
        };
        let live = POOL.live.fetch_add(bytes, Relaxed) + bytes;
        POOL.peak.fetch_max(live, Relaxed);
        Some(Buffer { ptr, len })
    }

    pub fn as_ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let (class, bytes) = class_of(self.len).expect("it was allocated");
        POOL.live.fetch_sub(bytes, Relaxed);
        if POOL.cached.load(Relaxed) + bytes > POOL.limit.load(Relaxed) {
            // SAFETY: allocated for this class, and nobody refers to it any more.
            unsafe { system_free(self.ptr, bytes) };
            return;
        }
        POOL.cached.fetch_add(bytes, Relaxed);
        POOL.free[class].lock().unwrap_or_else(|e| e.into_inner()).push(NonNullSend(self.ptr));
    }
}

fn allocate(bytes: usize) -> Option<NonNull<u8>> {
    system_allocate(bytes).or_else(|| {
        release();
        system_allocate(bytes)
    })
}

/// From this size on, memory is mapped directly: zero pages cost nothing until they are touched.
const MAPPED: usize = 1 << 20;

#[cfg(unix)]
fn is_mapped(bytes: usize) -> bool {
    bytes >= MAPPED
}

#[cfg(not(unix))]
fn is_mapped(_bytes: usize) -> bool {
    false
}

/// Zeroed memory of `bytes`, a class size.
fn system_allocate(bytes: usize) -> Option<NonNull<u8>> {
    #[cfg(unix)]
    if is_mapped(bytes) {
        let (read_write, private) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new anonymous mapping touches no existing memory.
        let ptr = unsafe { libc::mmap(std::ptr::null_mut(), bytes, read_write, private, -1, 0) };
        if ptr == libc::MAP_FAILED {
            return None;
        }
        #[cfg(target_os = "linux")]
        // SAFETY: advice on the mapping just made; whether it is taken does not matter.
        unsafe {
            libc::madvise(ptr, bytes, libc::MADV_HUGEPAGE);
        }
        return NonNull::new(ptr.cast());
    }
    // SAFETY: the layout's size is at least 64.
    NonNull::new(unsafe { alloc_zeroed(layout(bytes)) })
}

/// # Safety
/// `ptr` came from `system_allocate(bytes)` and nobody refers to it any more.
unsafe fn system_free(ptr: NonNull<u8>, bytes: usize) {
    #[cfg(unix)]
    if is_mapped(bytes) {
        // SAFETY: the caller's contract.
        unsafe { libc::munmap(ptr.as_ptr().cast(), bytes) };
        return;
    }
    // SAFETY: the caller's contract; the same layout.
    unsafe { dealloc(ptr.as_ptr(), layout(bytes)) };
}

/// Gives every cached buffer back to the system.
pub fn release() {
    for (class, free) in POOL.free.iter().enumerate() {
        let list = std::mem::take(&mut *free.lock().unwrap_or_else(|e| e.into_inner()));
        let power = class / 4 + 5;
        let bytes = (1usize << power) + (class % 4 + 1) * (1 << (power - 2));
        for NonNullSend(ptr) in list {
            POOL.cached.fetch_sub(bytes, Relaxed);
            // SAFETY: allocated for this class; the list owned it.
            unsafe { system_free(ptr, bytes) };
        }
    }
}

/// Sets how many bytes the cache may keep; what it has beyond that is given back.
pub fn set_cache_limit(bytes: usize) {
    POOL.limit.store(bytes, Relaxed);
    if POOL.cached.load(Relaxed) > bytes {
        release();
    }
}

/// Takes every lock of the pool, over a fork.
pub fn lock() -> impl Sized + 'static {
    POOL.free.each_ref().map(|free| free.lock().unwrap_or_else(|e| e.into_inner()))
}

pub fn stats() -> Stats {
    Stats {
        live: POOL.live.load(Relaxed),
        peak: POOL.peak.load(Relaxed),
        cached: POOL.cached.load(Relaxed),
        allocations: POOL.allocations.load(Relaxed),
        hits: POOL.hits.load(Relaxed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_what_they_are_asked_for() {
        for len in (0..5000).chain([1 << 20, (1 << 20) + 1, 3 << 30, isize::MAX as usize / 2]) {
            let (class, bytes) = class_of(len).unwrap();
            let power = class / 4 + 5;
            assert_eq!(bytes, (1usize << power) + (class % 4 + 1) * (1 << (power - 2)), "{len}");
            assert!(bytes >= len && bytes <= (len + len / 4 + 1).max(64), "{len}: {bytes}");
            assert!(class < CLASSES);
        }
        assert!(class_of(usize::MAX).is_none());
    }

    #[test]
    fn freed_memory_is_handed_out_again_and_aligned() {
        let len = 123_457_000; // a class no other test uses
        let first = Buffer::new(len).unwrap().as_ptr();
        let again = Buffer::new(len).unwrap();
        assert_eq!(again.as_ptr(), first);
        assert_eq!(first as usize % ALIGN, 0);
        assert!(Buffer::new(usize::MAX / 2).is_none());
    }
}
