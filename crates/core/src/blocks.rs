//! An allocator for the extension's small objects: each thread keeps the blocks it frees, by size, for its next ones.
//! It must not know what they hold.
//!
//! Rationale: a flush frees hundreds of calls' values at once, and the append of the next hundreds asks for them again.
//! The system's allocator keeps seven of a size at hand and merges and splits the others, which costs more than the
//! rest of making a value.
//! Limitations: a block that one thread makes and another frees stays with the latter, up to [`KEPT`] bytes of each
//! size; beyond that, and when the thread ends, blocks go back to the system.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::null_mut;

/// Sizes are multiples of this, which is what the system aligns to.
const UNIT: usize = 16;
/// The largest block kept.
const MOST: usize = 512;
/// The bytes a thread keeps of one size: the values of a full segment, and as many more.
const KEPT: usize = 64 << 10;

/// The allocator; a library names it as its `#[global_allocator]`.
pub struct Blocks;

/// A free block: its first word is the next one.
type Block = *mut *mut u8;

/// The free blocks of one size.
struct List {
    first: Cell<*mut u8>,
    room: Cell<usize>,
}

struct Lists([List; MOST / UNIT]);

thread_local! {
    static LISTS: Lists = const { Lists([const { List { first: Cell::new(null_mut()), room: Cell::new(KEPT) } }; MOST / UNIT]) };
}

impl Drop for Lists {
    fn drop(&mut self) {
        for (at, list) in self.0.iter().enumerate() {
            while let Some(block) = list.take(size_of_class(at)) {
                // SAFETY: a free block of this class, which the system gave.
                unsafe { System.dealloc(block, class_layout(at)) };
            }
        }
    }
}

impl List {
    fn take(&self, size: usize) -> Option<*mut u8> {
        let block = self.first.get();
        if block.is_null() {
            return None;
        }
        // SAFETY: a free block is this list's alone, at least a word long, and holds the next one.
        self.first.set(unsafe { *block.cast::<*mut u8>() });
        self.room.set(self.room.get() + size);
        Some(block)
    }

    /// Keeps a free block if there is room.
    ///
    /// # Safety
    /// The block has `size` bytes, which the system gave and nobody uses any more.
    unsafe fn keep(&self, block: *mut u8, size: usize) -> bool {
        let Some(room) = self.room.get().checked_sub(size) else { return false };
        let at: Block = block.cast();
        // SAFETY: the caller's contract; blocks are aligned for a word.
        unsafe { *at = self.first.get() };
        self.first.set(block);
        self.room.set(room);
        true
    }
}

/// The list of a layout; none for what the system keeps itself.
#[inline]
fn class_of(layout: Layout) -> Option<usize> {
    let fits = layout.align() <= UNIT && layout.size() <= MOST && layout.size() > 0;
    fits.then(|| (layout.size() - 1) / UNIT)
}

fn size_of_class(class: usize) -> usize {
    (class + 1) * UNIT
}

fn class_layout(class: usize) -> Layout {
    // SAFETY: the alignment is a power of two, and the size a small multiple of it.
    unsafe { Layout::from_size_align_unchecked(size_of_class(class), UNIT) }
}

// SAFETY: every block comes from the system with its class's layout, and goes back with the same one; between the two
// it is with whoever allocated it or on one thread's list, never both. Nothing here panics or allocates.
unsafe impl GlobalAlloc for Blocks {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(class) = class_of(layout) else {
            // SAFETY: the caller's contract.
            return unsafe { System.alloc(layout) };
        };
        // While a thread is torn down its lists are gone.
        match LISTS.try_with(|lists| lists.0[class].take(size_of_class(class))) {
            Ok(Some(block)) => block,
            // SAFETY: a class's layout has a size.
            _ => unsafe { System.alloc(class_layout(class)) },
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let Some(class) = class_of(layout) else {
            // SAFETY: the caller's contract; such blocks come from the system as they are.
            return unsafe { System.dealloc(block, layout) };
        };
        // SAFETY: the caller's contract; the block was allocated with the class's size.
        let keep = |lists: &Lists| unsafe { lists.0[class].keep(block, size_of_class(class)) };
        if !LISTS.try_with(keep).unwrap_or(false) {
            // SAFETY: as above, and the list did not take it.
            unsafe { System.dealloc(block, class_layout(class)) };
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if class_of(layout).is_none() {
            // SAFETY: the caller's contract. The system has zeroed pages at hand.
            return unsafe { System.alloc_zeroed(layout) };
        }
        // SAFETY: the caller's contract.
        let block = unsafe { self.alloc(layout) };
        if !block.is_null() {
            // SAFETY: a new block of at least this size.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's contract: the size is valid for the alignment.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        match (class_of(layout), class_of(new)) {
            // SAFETY: the caller's contract; the system gave the block as it is.
            (None, None) => unsafe { System.realloc(block, layout, size) },
            (Some(old), Some(new)) if old == new => block,
            _ => {
                // SAFETY: the caller's contract.
                let moved = unsafe { self.alloc(new) };
                if !moved.is_null() {
                    // SAFETY: both have this many bytes, and a new block overlaps none.
                    unsafe { block.copy_to_nonoverlapping(moved, layout.size().min(size)) };
                    // SAFETY: the caller's contract.
                    unsafe { self.dealloc(block, layout) };
                }
                moved
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(size: usize) -> Layout {
        Layout::from_size_align(size, 8).unwrap()
    }

    /// Runs `f` on a thread of its own, whose lists are empty.
    fn fresh(f: impl FnOnce() + Send + 'static) {
        std::thread::spawn(f).join().unwrap();
    }

    #[test]
    fn a_freed_block_is_the_next_of_its_size() {
        fresh(|| {
            // SAFETY: each block is freed once, with the layout it was allocated with.
            unsafe {
                let (a, b) = (Blocks.alloc(layout(152)), Blocks.alloc(layout(152)));
                a.write_bytes(1, 152);
                b.write_bytes(2, 152);
                assert_eq!((*a.add(151), *b.add(151)), (1, 2));
                Blocks.dealloc(a, layout(152));
                Blocks.dealloc(b, layout(152));
                assert_eq!(Blocks.alloc(layout(160)), b, "one size with 152");
                assert_ne!(Blocks.alloc(layout(161)), a);
                let c = Blocks.alloc_zeroed(layout(152));
                assert_eq!((c, *c, *c.add(151)), (a, 0, 0));
            }
        });
    }

    #[test]
    fn blocks_grow_and_shrink_between_sizes_and_the_system() {
        fresh(|| {
            let mut size = 8;
            // SAFETY: the layout follows the block.
            unsafe {
                let mut block = Blocks.alloc(layout(size));
                block.write_bytes(7, 8);
                for next in [16, 24, 500, 512, 513, 5000, 40, 8] {
                    block = Blocks.realloc(block, layout(size), next);
                    size = next;
                    assert_eq!(std::slice::from_raw_parts(block, 8), [7; 8], "{next}");
                }
                Blocks.dealloc(block, layout(size));
            }
        });
    }

    #[test]
    fn a_thread_keeps_so_much_and_no_more() {
        fresh(|| {
            let many = 2 * KEPT / 512;
            // SAFETY: as above.
            unsafe {
                let blocks: Vec<_> = (0..many).map(|_| Blocks.alloc(layout(512))).collect();
                for block in blocks {
                    Blocks.dealloc(block, layout(512));
                }
            }
            assert_eq!(LISTS.with(|lists| lists.0[511 / UNIT].room.get()), 0);
        });
    }
}
