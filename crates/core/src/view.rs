//! Memory as kernels see it: a pointer with a layout and a dtype, borrowed for one run.
//!
//! Rationale: several threads write disjoint parts of one output, and an output may alias an input, so
//! views hand out raw pointers; a slice is given only where the caller can argue that nobody writes.

use crate::layout::Layout;
use crate::{DType, Element};

/// Memory that a kernel reads.
#[derive(Clone, Copy)]
pub struct View<'a> {
    ptr: *const u8,
    pub layout: &'a Layout,
    pub dtype: DType,
}

/// Memory that a kernel writes.
#[derive(Clone, Copy)]
pub struct ViewMut<'a> {
    ptr: *mut u8,
    pub layout: &'a Layout,
    pub dtype: DType,
}

// SAFETY: a view is only an address; whoever reads or writes through it argues the absence of races.
unsafe impl Send for View<'_> {}
// SAFETY: shared, it still only gives the address away; its layout and dtype never change.
unsafe impl Sync for View<'_> {}
// SAFETY: the address of memory that the sender lent for the view's lifetime, whichever thread writes it.
unsafe impl Send for ViewMut<'_> {}
// SAFETY: it has no method that writes: threads that share it write through addresses, each to its own elements.
unsafe impl Sync for ViewMut<'_> {}

impl<'a> View<'a> {
    /// # Safety
    /// `base` (the buffer's start, which `layout.offset` counts from) is aligned for `dtype` and every element
    /// of `layout` stays readable for `'a`.
    pub unsafe fn new(base: *const u8, layout: &'a Layout, dtype: DType) -> View<'a> {
        View { ptr: base, layout, dtype }
    }

    /// The address of element zero of the view.
    ///
    /// # Panics
    /// If `T` is not the view's type: a defect of the kernel.
    pub fn ptr<T: Element>(&self) -> *const T {
        assert_eq!(T::DTYPE, self.dtype, "a kernel read the wrong dtype");
        // SAFETY: the offset lies within the buffer (contract of `new`).
        unsafe { self.ptr.cast::<T>().add(self.layout.offset) }
    }

    /// The address of element zero, untyped.
    pub fn start(&self) -> *const u8 {
        // SAFETY: the offset lies within the buffer (contract of `new`).
        unsafe { self.ptr.add(self.layout.offset * self.dtype.size()) }
    }

    /// The start of the buffer that the layout's offset counts from.
    pub fn base(&self) -> *const u8 {
        self.ptr
    }

    /// All elements, where they lie one after the other.
    pub fn slice<T: Element>(&self) -> Option<&'a [T]> {
        if !self.layout.is_contiguous() {
            return None;
        }
        if self.layout.size() == 0 {
            return Some(&[]);
        }
        // SAFETY: contiguous, readable for 'a (contract of `new`); the engine orders writes after this read.
        Some(unsafe { std::slice::from_raw_parts(self.ptr::<T>(), self.layout.size()) })
    }
}

impl<'a> ViewMut<'a> {
    /// # Safety
    /// As [`View::new`], and every element stays writable for `'a`.
    pub unsafe fn new(base: *mut u8, layout: &'a Layout, dtype: DType) -> ViewMut<'a> {
        ViewMut { ptr: base, layout, dtype }
    }

    /// The address of element zero of the view.
    ///
    /// # Panics
    /// If `T` is not the view's type: a defect of the kernel.
    pub fn ptr<T: Element>(&self) -> *mut T {
        assert_eq!(T::DTYPE, self.dtype, "a kernel wrote the wrong dtype");
        // SAFETY: the offset lies within the buffer (contract of `new`).
        unsafe { self.ptr.cast::<T>().add(self.layout.offset) }
    }

    /// The address of element zero, untyped.
    pub fn start(&self) -> *mut u8 {
        // SAFETY: the offset lies within the buffer (contract of `new`).
        unsafe { self.ptr.add(self.layout.offset * self.dtype.size()) }
    }

    /// The start of the buffer that the layout's offset counts from.
    pub fn base(&self) -> *mut u8 {
        self.ptr
    }

    /// All elements, where they lie one after the other.
    ///
    /// # Safety
    /// No other thread touches them while the slice lives, and no other slice of them lives.
    pub unsafe fn slice<T: Element>(&self) -> Option<&'a mut [T]> {
        if !self.layout.is_contiguous() {
            return None;
        }
        if self.layout.size() == 0 {
            return Some(&mut []);
        }
        // SAFETY: contiguous and writable for 'a (contract of `new`), not aliased (contract of this function).
        Some(unsafe { std::slice::from_raw_parts_mut(self.ptr::<T>(), self.layout.size()) })
    }
}
