//! Reading and writing rows of an array at computed places, and the check that finds every index in range
//! before the first store.

use crate::kernel::moves::Shared;
use crate::kernel::scratch::Space;
use crate::kernel::walk::{GRAIN, Walk, offsets, split};
use crate::layout::{Layout, contiguous_strides};
use crate::par::Parallel;
use crate::view::{View, ViewMut};
use crate::{Element, Error, Result, bf16, f16};
use std::sync::atomic::{AtomicUsize, Ordering};

/// What becomes of an index out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// It is an error; negative ones in range count from the end.
    Raise,
    /// It is an error, and so is every negative one: labels, rows of an embedding.
    Strict,
    /// It is moved to the nearest end; negative ones become 0.
    Clip,
    /// It is taken modulo the size.
    Wrap,
}

impl Bound {
    #[inline(always)]
    fn place(self, index: i64, size: usize) -> Option<usize> {
        let n = size as i64;
        let at = match self {
            Bound::Raise if index < 0 => index.wrapping_add(n),
            Bound::Raise | Bound::Strict => index,
            Bound::Clip => index.min(n - 1).max(0),
            Bound::Wrap if n > 0 => index.rem_euclid(n),
            Bound::Wrap => 0,
        };
        (at >= 0 && at < n).then_some(at as usize)
    }
}

/// One axis that an index array counts along.
#[derive(Clone, Copy)]
pub struct Axis {
    pub size: usize,
    /// What one step adds to a place.
    pub stride: isize,
    /// The axis an error names.
    pub number: usize,
}

/// The place of each position of `shape`: the sum of its indices times their strides. `arrays` are int64 of
/// any shape that broadcasts to `shape`. The first index out of range, array by array, is the error.
pub fn places(
    op: &'static str,
    arrays: &[View],
    shape: &[usize],
    axes: &[Axis],
    bound: Bound,
    par: &dyn Parallel,
) -> Result<Space<isize>> {
    let mut out = Space::<isize>::new(op, shape.iter().product())?;
    let target = Shared(out.as_mut_ptr());
    let rows = contiguous_strides(shape);
    if arrays.is_empty() {
        out.fill(0);
    }
    for (nth, (array, axis)) in arrays.iter().zip(axes).enumerate() {
        let Some(spread) = array.layout.broadcast_to(shape) else {
            return Err(Error::Broadcast { op, shapes: vec![array.layout.shape.clone(), shape.into()] });
        };
        let from = Shared(array.ptr::<i64>().cast_mut());
        let walk = Walk::new(shape, [&spread.strides, &rows]);
        let (_, [s, d]) = walk.inner();
        let bad = AtomicUsize::new(usize::MAX);
        walk.run(par, GRAIN, |[i, j], n| {
            for k in 0..n as isize {
                // SAFETY: offsets come from the layouts; chunks write disjoint positions.
                unsafe {
                    let at = j + k * d;
                    match bound.place(*from.at(i + k * s), axis.size) {
                        // The memory is not new: the first array sets what the others add to.
                        Some(place) if nth == 0 => *target.at(at) = place as isize * axis.stride,
                        Some(place) => *target.at(at) += place as isize * axis.stride,
                        None => {
                            bad.fetch_min(at as usize, Ordering::Relaxed);
                        }
                    }
                }
            }
        });
        let bad = bad.into_inner();
        if bad != usize::MAX {
            let at = offsets(shape, &spread.strides)[bad];
            // SAFETY: an offset of the layout.
            let index = unsafe { *from.at(at) };
            return Err(Error::Index { op, index, axis: axis.number, size: axis.size });
        }
    }
    Ok(out)
}

/// An array seen as rows: axes before the indexed ones, and axes after them, as offsets.
pub struct Rows {
    outer: Vec<isize>,
    inner: Vec<isize>,
    inner_contiguous: bool,
}

impl Rows {
    /// The axes of `layout` before `axis` and from `axis + count` on.
    pub fn new(layout: &Layout, axis: usize, count: usize) -> Rows {
        let end = axis + count;
        let inner =
            Layout { shape: layout.shape[end..].into(), strides: layout.strides[end..].into(), offset: 0 };
        Rows {
            outer: offsets(&layout.shape[..axis], &layout.strides[..axis]),
            inner_contiguous: inner.is_contiguous(),
            inner: offsets(&inner.shape, &inner.strides),
        }
    }
}

/// `out[o, p, i] = x[outer[o] + places[p] + inner[i]]`; `out` is contiguous.
pub fn gather(x: &View, rows: &Rows, places: &[isize], out: &ViewMut, par: &dyn Parallel) {
    crate::with_word!(x.dtype.size(), W => gather_words::<W>(x, rows, places, out, par));
}

fn gather_words<W: Copy>(x: &View, rows: &Rows, places: &[isize], out: &ViewMut, par: &dyn Parallel) {
    let (from, to) = (Shared(x.start().cast::<W>().cast_mut()), Shared(out.start().cast::<W>()));
    let width = rows.inner.len();
    if width == 0 {
        return;
    }
    split(par, rows.outer.len() * places.len(), GRAIN / width, |range| {
        for row in range {
            let (o, p) = (row / places.len(), row % places.len());
            // SAFETY: places were checked against the layout that `rows` comes from; chunks write disjoint rows.
            unsafe {
                let from = from.at(rows.outer[o] + places[p]);
                let to = to.at((row * width) as isize);
                if width == 1 {
                    *to = *from;
                } else if rows.inner_contiguous {
                    std::ptr::copy_nonoverlapping(from, to, width);
                } else {
                    for (i, &at) in rows.inner.iter().enumerate() {
                        *to.add(i) = *from.offset(at);
                    }
                }
            }
        }
    });
}

/// Calls `body(o, columns)` for every outer row and range of inner columns: the pieces within which the
/// positions are visited in order, so that the last write and the order of sums are the same for any
/// number of threads.
fn column_pieces<F>(rows: &Rows, positions: usize, par: &dyn Parallel, body: F)
where
    F: Fn(usize, std::ops::Range<usize>) + Sync,
{
    let width = rows.inner.len();
    let block = width.min(if positions * width < GRAIN { width } else { (GRAIN / positions).max(64) }).max(1);
    let blocks = width.div_ceil(block);
    let units = (GRAIN / (positions * block).max(1)).max(1);
    split(par, rows.outer.len() * blocks, units, |range| {
        for unit in range {
            let start = unit % blocks * block;
            body(unit / blocks, start..(start + block).min(width));
        }
    });
}

/// `x[outer[o] + places[p] + inner[i]] = values[o, p, i]`, later positions winning; `values` is contiguous
/// and of x's dtype.
pub fn scatter(x: &ViewMut, rows: &Rows, places: &[isize], values: &View, par: &dyn Parallel) {
    crate::with_word!(x.dtype.size(), W => scatter_words::<W>(x, rows, places, values, par));
}

fn scatter_words<W: Copy>(x: &ViewMut, rows: &Rows, places: &[isize], values: &View, par: &dyn Parallel) {
    let to = Shared(x.start().cast::<W>());
    let from = Shared(values.start().cast::<W>().cast_mut());
    let width = rows.inner.len();
    column_pieces(rows, places.len(), par, |o, columns| {
        for (p, &place) in places.iter().enumerate() {
            let row = ((o * places.len() + p) * width) as isize;
            for i in columns.clone() {
                // SAFETY: places were checked; pieces write disjoint columns.
                unsafe { *to.at(rows.outer[o] + place + rows.inner[i]) = *from.at(row + i as isize) };
            }
        }
    });
}

/// A type whose elements can be added up, wrapping where integers do.
pub trait Add: Element {
    fn add(self, other: Self) -> Self;
}

macro_rules! add {
    ($($t:ty: |$a:ident, $b:ident| $e:expr),* $(,)?) => { $(
        impl Add for $t {
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                let ($a, $b) = (self, other);
                $e
            }
        }
    )* };
}
add!(i8: |a, b| a.wrapping_add(b), i16: |a, b| a.wrapping_add(b), i32: |a, b| a.wrapping_add(b),
    i64: |a, b| a.wrapping_add(b), u8: |a, b| a.wrapping_add(b), u16: |a, b| a.wrapping_add(b),
    u32: |a, b| a.wrapping_add(b), u64: |a, b| a.wrapping_add(b), f32: |a, b| a + b, f64: |a, b| a + b,
    f16: |a, b| f16::from_f32(a.to_f32() + b.to_f32()), bf16: |a, b| bf16::from_f32(a.to_f32() + b.to_f32()),
    crate::Bool: |a, b| crate::Bool::new(a.get() || b.get()),
    crate::Complex32: |a, b| a + b, crate::Complex64: |a, b| a + b);

/// `x[outer[o] + places[p] + inner[i]] += values[o, p, i]`, summed in the order of p.
///
/// # Safety
/// `x` is valid for every place of `rows` and `places`, and nobody else touches it.
pub unsafe fn scatter_add<T: Add>(
    x: *mut T,
    rows: &Rows,
    places: &[isize],
    values: &[T],
    par: &dyn Parallel,
) {
    let to = Shared(x);
    let width = rows.inner.len();
    column_pieces(rows, places.len(), par, |o, columns| {
        for (p, &place) in places.iter().enumerate() {
            let row = (o * places.len() + p) * width;
            let values = &values[row + columns.start..row + columns.end];
            if rows.inner_contiguous {
                // SAFETY: contiguous columns of one row; pieces write disjoint columns.
                let target = unsafe {
                    let first = rows.outer[o] + place + rows.inner[columns.start];
                    std::slice::from_raw_parts_mut(to.at(first), values.len())
                };
                target.iter_mut().zip(values).for_each(|(t, &v)| *t = t.add(v));
            } else {
                for (&i, &v) in rows.inner[columns.clone()].iter().zip(values) {
                    // SAFETY: places were checked; pieces write disjoint columns.
                    unsafe {
                        let target = to.at(rows.outer[o] + place + i);
                        *target = (*target).add(v);
                    }
                }
            }
        }
    });
}
