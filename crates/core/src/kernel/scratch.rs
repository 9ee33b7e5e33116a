//! Scratch memory: each thread's own, kept between passes so that a tile costs no allocation, and large pieces from
//! the pool of buffers, which are warm.

use crate::error::{Error, ErrorKind, Result};
use crate::storage::Buffer;
use bytemuck::{AnyBitPattern, NoUninit};
use std::cell::RefCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// One cache line; scratch is handed out in whole ones.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Scratch above this many bytes is given back to the system after use.
const KEEP: usize = 4 << 20;

thread_local! {
    /// One piece for each depth of nesting.
    static SCRATCH: RefCell<Vec<Vec<Line>>> = const { RefCell::new(Vec::new()) };
}

/// Calls `body` with `bytes` of 64-byte aligned memory of any content. A nested call gets memory of its own.
pub fn with_scratch<R>(bytes: usize, body: impl FnOnce(*mut u8) -> R) -> R {
    // A thread that is being torn down has lost its own.
    let mut lines = SCRATCH.try_with(|kept| kept.borrow_mut().pop()).ok().flatten().unwrap_or_default();
    let need = bytes.div_ceil(size_of::<Line>());
    if lines.len() < need {
        lines.resize(need, Line([0; 64]));
    }
    let result = body(lines.as_mut_ptr().cast());
    if lines.len() * size_of::<Line>() <= KEEP {
        let _ = SCRATCH.try_with(|kept| kept.borrow_mut().push(lines));
    }
    result
}

/// As [`with_scratch`], as slices of these lengths.
pub fn with_elements<T: AnyBitPattern + NoUninit, const N: usize, R>(
    counts: [usize; N],
    body: impl FnOnce([&mut [T]; N]) -> R,
) -> R {
    let mut bytes = 0;
    let starts = counts.map(|n| {
        let start = bytes;
        bytes += (n * size_of::<T>()).next_multiple_of(size_of::<Line>());
        start
    });
    with_scratch(bytes, |scratch| {
        // SAFETY: disjoint parts of initialised memory, aligned for any element, of which any content is one.
        body(std::array::from_fn(|i| unsafe {
            std::slice::from_raw_parts_mut(scratch.add(starts[i]).cast(), counts[i])
        }))
    })
}

/// Elements of any content, in memory of the pool that arrays come from.
pub struct Space<T> {
    buffer: Buffer,
    len: usize,
    elements: PhantomData<T>,
}

impl<T: AnyBitPattern> Space<T> {
    /// Room for `len` elements for a kernel of `op`.
    pub fn new(op: &'static str, len: usize) -> Result<Space<T>> {
        let bytes = len.checked_mul(size_of::<T>());
        let Some(buffer) = bytes.and_then(|bytes| Buffer::new(bytes.max(1))) else {
            let text = format!("no memory for {len} elements of {} bytes to work with", size_of::<T>());
            return Err(Error::new(ErrorKind::Memory, op, text));
        };
        Ok(Space { buffer, len, elements: PhantomData })
    }
}

impl<T> Deref for Space<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: the buffer has room for the elements, is aligned for any, and its bytes are initialised; any are
        // an element.
        unsafe { std::slice::from_raw_parts(self.buffer.as_ptr().cast(), self.len) }
    }
}

impl<T> DerefMut for Space<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above; the buffer is this one's own.
        unsafe { std::slice::from_raw_parts_mut(self.buffer.as_ptr().cast(), self.len) }
    }
}
