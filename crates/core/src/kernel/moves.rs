//! Moving elements without looking at them: copies between layouts, fills, contiguous forms. The dtype
//! counts only by its size, so there is one loop per size.

use crate::Element;
use crate::kernel::walk::{GRAIN, Walk};
use crate::par::Parallel;
use crate::view::{View, ViewMut};
use std::borrow::Cow;

/// Evaluates `$body` with `$w` bound to a plain type of `$size` bytes (1, 2, 4, 8 or 16) whose alignment no
/// dtype of that size falls short of.
#[macro_export]
macro_rules! with_word {
    ($size:expr, $w:ident => $body:expr) => {
        match $size {
            1 => {
                type $w = u8;
                $body
            }
            2 => {
                type $w = u16;
                $body
            }
            4 => {
                type $w = u32;
                $body
            }
            8 => {
                // complex64 is aligned to 4 only.
                type $w = [u32; 2];
                $body
            }
            _ => {
                type $w = [u64; 2];
                $body
            }
        }
    };
}

/// A pointer that chunks of one loop share; each writes elements of its own.
pub struct Shared<T>(pub *mut T);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Shared<T> {
        *self
    }
}

impl<T> Copy for Shared<T> {}

// SAFETY: only an address; whoever writes through it argues that no other thread touches the element.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: sharing gives the address away and no more; the threads write disjoint elements, each by its own argument.
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// The address `i` elements on.
    ///
    /// # Safety
    /// As `pointer::offset`.
    #[inline(always)]
    pub unsafe fn at(self, i: isize) -> *mut T {
        // SAFETY: the caller's.
        unsafe { self.0.offset(i) }
    }
}

/// Copies `src` into `dst`: the same shape (stride 0 repeats) and dtype, memory that does not overlap.
pub fn copy(src: &View, dst: &ViewMut, par: &dyn Parallel) {
    debug_assert_eq!(src.layout.shape, dst.layout.shape);
    debug_assert_eq!(src.dtype, dst.dtype);
    with_word!(src.dtype.size(), W => copy_words::<W>(src, dst, par));
}

fn copy_words<W: Copy>(src: &View, dst: &ViewMut, par: &dyn Parallel) {
    let from = Shared(src.start().cast::<W>().cast_mut());
    let to = Shared(dst.start().cast::<W>());
    let walk = Walk::new(&dst.layout.shape, [&src.layout.strides, &dst.layout.strides]);
    let (_, [s, d]) = walk.inner();
    walk.run(par, GRAIN, |[i, j], n| {
        // SAFETY: offsets come from the views' layouts; chunks write disjoint elements of `dst`.
        unsafe {
            let (from, to) = (from.at(i), to.at(j));
            match (s, d) {
                (1, 1) => std::ptr::copy_nonoverlapping(from, to, n),
                (0, 1) => std::slice::from_raw_parts_mut(to, n).fill(*from),
                _ => {
                    for k in 0..n as isize {
                        *to.offset(k * d) = *from.offset(k * s);
                    }
                }
            }
        }
    });
}

/// Sets every element to zero bytes (zero, or false, of each dtype).
pub fn zero(dst: &ViewMut, par: &dyn Parallel) {
    with_word!(dst.dtype.size(), W => fill_words::<W>(dst, bytemuck::Zeroable::zeroed(), par));
}

fn fill_words<W: Copy + Sync>(dst: &ViewMut, value: W, par: &dyn Parallel) {
    let to = Shared(dst.start().cast::<W>());
    let walk = Walk::new(&dst.layout.shape, [&dst.layout.strides]);
    let (_, [d]) = walk.inner();
    walk.run(par, GRAIN, |[j], n| {
        for k in 0..n as isize {
            // SAFETY: offsets come from the view's layout; chunks write disjoint elements.
            unsafe { *to.at(j + k * d) = value };
        }
    });
}

/// Sets every element to `value`.
pub fn fill<T: Element>(dst: &ViewMut, value: T, par: &dyn Parallel) {
    debug_assert_eq!(dst.dtype, T::DTYPE);
    fill_words(dst, value, par);
}

/// The elements in row-major order: the view's own memory where it is contiguous, else a copy.
pub fn dense<'a, T: Element>(view: &View<'a>, par: &dyn Parallel) -> Cow<'a, [T]> {
    match view.slice::<T>() {
        Some(slice) => Cow::Borrowed(slice),
        None => {
            let mut copy: Vec<T> = Vec::with_capacity(view.layout.size());
            let layout = crate::Layout::contiguous(&view.layout.shape);
            // SAFETY: the vector has room for every element of the layout; `copy` writes them all.
            unsafe {
                let target = ViewMut::new(copy.as_mut_ptr().cast(), &layout, T::DTYPE);
                self::copy(view, &target, par);
                copy.set_len(layout.size());
            }
            Cow::Owned(copy)
        }
    }
}
