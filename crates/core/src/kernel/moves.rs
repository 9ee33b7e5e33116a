//! Moving elements without looking at them: copies between layouts, fills, contiguous forms. The dtype
//! counts only by its size, so there is one loop per size.

use crate::Element;
use crate::kernel::copy::{Axis, copy_block};
use crate::kernel::space;
use crate::kernel::walk::{GRAIN, Walk, split};
use crate::par::Parallel;
use crate::simd::stream;
use crate::view::{View, ViewMut};
use smallvec::SmallVec;
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
    let size = dst.dtype.size();
    let walk = |start: *mut u8, strides: &[isize]| space::Walk {
        start,
        steps: strides.iter().map(|s| s * size as isize).collect(),
        size,
    };
    let mut walks =
        [walk(dst.start(), &dst.layout.strides), walk(src.start().cast_mut(), &src.layout.strides)];
    // SAFETY: the views are of one shape and apart.
    unsafe { copy_walks(&dst.layout.shape, &mut walks, par) }
}

/// Copies what the second walk reads to where the first one goes.
///
/// # Safety
/// Every element is readable and writable there; the two do not overlap.
pub(crate) unsafe fn copy_walks(shape: &[usize], walks: &mut [space::Walk; 2], par: &dyn Parallel) {
    if shape.contains(&0) {
        return;
    }
    let mut dims = space::simplify(shape, walks);
    let size = walks[0].size;
    space::cut_squares(&mut dims, walks, GRAIN);
    let [to, from] = &*walks;
    let past = 2 * size * shape.iter().product::<usize>() >= stream::LARGE;
    let tiles: usize = dims.iter().map(|d| d.tiles()).product();
    let each: usize = dims.iter().map(|d| d.block).product();
    let (starts, dims) = ([Shared(to.start), Shared(from.start)], &dims);
    let (to, from) = (&to.steps, &from.steps);
    split(par, tiles, (GRAIN / each).max(1), |range| {
        let mut tile = space::Tile::at(dims, range.start);
        for _ in range {
            let mut axes: SmallVec<[Axis; 6]> = SmallVec::new();
            let (mut target, mut source) = (0, 0);
            for d in 0..dims.len() {
                target += tile.starts[d] as isize * to[d];
                source += tile.starts[d] as isize * from[d];
                axes.push(Axis { n: tile.counts[d], src: from[d], dst: to[d] });
            }
            // SAFETY: the tile's elements are the walks' (the caller's contract); tiles have elements of their own.
            unsafe { copy_block(size, &mut axes, starts[1].at(source), starts[0].at(target), past) };
            tile.advance(dims);
        }
        if past {
            stream::fence();
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
