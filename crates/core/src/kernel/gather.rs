//! Reading and writing rows of an array at places that [`super::places`] has checked. Of several writes to one place
//! the order is that of the positions, whoever makes them.

use crate::isa_versions;
use crate::kernel::moves::Shared;
use crate::kernel::places::Places;
use crate::kernel::radix::{self, Item, Packed};
use crate::kernel::scratch::Space;
use crate::kernel::tail::Tail;
use crate::kernel::walk::{GRAIN, offsets, split};
use crate::layout::Layout;
use crate::par::Parallel;
use crate::view::{View, ViewMut};
use crate::{Element, bf16, f16};
use std::ops::Range;

/// An array seen as rows: axes before the indexed ones, and axes after them, as offsets.
pub struct Rows {
    outer: Vec<isize>,
    width: usize,
    /// None: the elements of a row follow each other.
    inner: Option<Vec<isize>>,
}

impl Rows {
    /// The axes of `layout` before `axis` and from `axis + count` on.
    pub fn new(layout: &Layout, axis: usize, count: usize) -> Rows {
        let end = axis + count;
        let inner =
            Layout { shape: layout.shape[end..].into(), strides: layout.strides[end..].into(), offset: 0 };
        Rows {
            outer: offsets(&layout.shape[..axis], &layout.strides[..axis]),
            width: inner.size(),
            inner: (!inner.is_contiguous()).then(|| offsets(&inner.shape, &inner.strides)),
        }
    }
}

/// `out[o, p, i] = x[outer[o] + places[p] + inner[i]]`; `out` is contiguous. The tail runs over each chunk of rows.
pub fn gather(
    x: &View,
    rows: &Rows,
    places: &[isize],
    out: &ViewMut,
    tail: Option<&Tail>,
    par: &dyn Parallel,
) {
    crate::with_word!(x.dtype.size(), W => gather_words::<W>(x, rows, places, out, tail, par));
}

fn gather_words<W: Copy>(
    x: &View,
    rows: &Rows,
    places: &[isize],
    out: &ViewMut,
    tail: Option<&Tail>,
    par: &dyn Parallel,
) {
    let (from, to) = (Shared(x.start().cast::<W>().cast_mut()), Shared(out.start().cast::<W>()));
    let (width, count) = (rows.width, places.len());
    if width == 0 {
        return;
    }
    split(par, rows.outer.len() * count, GRAIN / width, |range| {
        let (from, to) = (from, to);
        let (first, elements) = (range.start * width, range.len() * width);
        let mut row = range.start;
        while row < range.end {
            let (o, p) = (row / count, row % count);
            let part = &places[p..count.min(p + range.end - row)];
            // SAFETY: places were checked against the layout that `rows` comes from; chunks write disjoint rows.
            unsafe {
                let (from, to) = (from.at(rows.outer[o]), to.at((row * width) as isize));
                match &rows.inner {
                    None if width == 1 => {
                        for (k, &place) in part.iter().enumerate() {
                            *to.add(k) = *from.offset(place);
                        }
                    }
                    None => {
                        for (k, &place) in part.iter().enumerate() {
                            std::ptr::copy_nonoverlapping(from.offset(place), to.add(k * width), width);
                        }
                    }
                    Some(inner) => {
                        for (k, &place) in part.iter().enumerate() {
                            for (i, &at) in inner.iter().enumerate() {
                                *to.add(k * width + i) = *from.offset(place + at);
                            }
                        }
                    }
                }
            }
            row += part.len();
        }
        if let Some(tail) = tail {
            // SAFETY: this chunk's rows, which are complete.
            unsafe { tail.run(first, 1, elements, elements) };
        }
    });
}

/// The positions put together by the neighbourhood of their places, in order within each: what different threads can
/// write, and each of them within its cache.
struct Groups {
    items: Space<Packed<u32>>,
    starts: Vec<usize>,
    least: isize,
}

impl Groups {
    /// Bits of a place that tell groups apart.
    const BITS: u32 = 8;

    /// None where places or positions are too many for 32 bits, or memory is short: then they stay in one.
    fn new(places: &Places, par: &dyn Parallel) -> Option<Groups> {
        let (n, least) = (places.len(), places.least);
        if u32::try_from(places.span).is_err() || u32::try_from(n).is_err() {
            return None;
        }
        let mut found = Space::<Packed<u32>>::new("scatter", n).ok()?;
        let mut items = Space::<Packed<u32>>::new("scatter", n).ok()?;
        let to = Shared(found.as_mut_ptr());
        split(par, n, GRAIN, |range| {
            let (to, places) = (to, &places[range.clone()]);
            for (k, &place) in places.iter().enumerate() {
                let p = range.start + k;
                // SAFETY: item p, this chunk's own.
                unsafe { *to.at(p as isize) = Packed::new((place - least) as u32, p) };
            }
        });
        let bits = usize::BITS - places.span.leading_zeros();
        let starts = radix::group(&found, &mut items, bits.saturating_sub(Self::BITS)..bits, par);
        Some(Groups { items, starts, least })
    }

    fn count(&self) -> usize {
        self.starts.len() - 1
    }
}

/// Elements of rows that are written by one thread: wider rows are cut.
const COLUMNS: usize = 1 << 13;

/// Calls `body(target, row, columns)` with the first element of row (o, p) in the target, the row's number, and some
/// of its columns. For one target and column the calls come from one thread, in the order of the positions.
fn each_position<F>(rows: &Rows, places: &Places, par: &dyn Parallel, body: F)
where
    F: Fn(isize, usize, Range<usize>) + Sync,
{
    let (count, width) = (places.len(), rows.width);
    if width == 0 || count == 0 {
        return;
    }
    let (work, outer) = (count * width, rows.outer.len());
    // Finding the groups costs about as much as writing four elements for each position.
    let is_worth = outer < 8 && work >= GRAIN && (width >= 8 || work >= 8 * GRAIN);
    let groups = if is_worth && count > 1 { Groups::new(places, par) } else { None };
    let block = width.min(COLUMNS);
    let blocks = width.div_ceil(block);
    let parts = groups.as_ref().map_or(1, Groups::count);
    split(par, outer * parts * blocks, GRAIN / (work / (parts * blocks)).max(1), |range| {
        for unit in range {
            let (o, part, start) = (unit / blocks / parts, unit / blocks % parts, unit % blocks * block);
            let columns = start..(start + block).min(width);
            let (first, row) = (rows.outer[o], o * count);
            match &groups {
                None => {
                    for (p, &place) in places.iter().enumerate() {
                        body(first + place, row + p, columns.clone());
                    }
                }
                Some(groups) => {
                    let first = first + groups.least;
                    for item in &groups.items[groups.starts[part]..groups.starts[part + 1]] {
                        body(first + item.key() as isize, row + item.place(), columns.clone());
                    }
                }
            }
        }
    });
}

/// `x[outer[o] + places[p] + inner[i]] = values[o, p, i]`, later positions winning; `values` are contiguous rows of x's
/// dtype, or (`one`) one row for all.
pub fn scatter(x: &ViewMut, rows: &Rows, places: &Places, values: *const u8, one: bool, par: &dyn Parallel) {
    crate::with_word!(x.dtype.size(), W => scatter_words::<W>(x, rows, places, values.cast(), one, par));
}

fn scatter_words<W: Copy>(
    x: &ViewMut,
    rows: &Rows,
    places: &Places,
    values: *const W,
    one: bool,
    par: &dyn Parallel,
) {
    let (to, from) = (Shared(x.start().cast::<W>()), Shared(values.cast_mut()));
    let step = if one { 0 } else { rows.width };
    // SAFETY, for all three: places were checked, and no two threads have a target and column in common.
    match &rows.inner {
        None if rows.width == 1 => each_position(rows, places, par, |target, row, _| {
            // SAFETY: as above.
            unsafe { *to.at(target) = *from.at((row * step) as isize) };
        }),
        None => each_position(rows, places, par, |target, row, columns| {
            // SAFETY: as above.
            unsafe {
                let from = from.at((row * step + columns.start) as isize);
                std::ptr::copy_nonoverlapping(from, to.at(target + columns.start as isize), columns.len());
            }
        }),
        Some(inner) => each_position(rows, places, par, |target, row, columns| {
            for i in columns {
                // SAFETY: as above.
                unsafe { *to.at(target + inner[i]) = *from.at((row * step + i) as isize) };
            }
        }),
    }
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

/// # Safety
/// `n` elements are writable at `to` and readable at `from`, elsewhere.
#[inline(always)]
unsafe fn add_body<T: Add>(to: *mut T, from: *const T, n: usize) {
    for i in 0..n {
        // SAFETY: the caller's.
        unsafe { *to.add(i) = (*to.add(i)).add(*from.add(i)) };
    }
}

isa_versions! {
    /// Adds a row to another.
    fn add_row -> unsafe fn(*mut T, *const T, usize) = add_body;
    generics [T: Add] names [T] fast true; args (to: *mut T, from: *const T, n: usize)
}

/// `x[outer[o] + places[p] + inner[i]] += values[o, p, i]`, summed in the order of p. `values` are contiguous rows, or
/// (`one`) one row for all.
///
/// # Safety
/// `x` is valid for every place of `rows` and `places`, and nobody else touches it.
pub unsafe fn scatter_add<T: Add>(
    x: *mut T,
    rows: &Rows,
    places: &Places,
    values: &[T],
    one: bool,
    par: &dyn Parallel,
) {
    let (to, from) = (Shared(x), Shared(values.as_ptr().cast_mut()));
    let step = if one { 0 } else { rows.width };
    let add = add_row::<T>();
    match &rows.inner {
        None if rows.width == 1 => each_position(rows, places, par, |target, row, _| {
            // SAFETY: places were checked, and no two threads have a target and column in common.
            unsafe {
                let target = to.at(target);
                *target = (*target).add(*from.at((row * step) as isize));
            }
        }),
        None => each_position(rows, places, par, |target, row, columns| {
            // SAFETY: as above.
            unsafe {
                let from = from.at((row * step + columns.start) as isize);
                add(to.at(target + columns.start as isize), from, columns.len());
            }
        }),
        Some(inner) => each_position(rows, places, par, |target, row, columns| {
            for i in columns {
                // SAFETY: as above.
                unsafe {
                    let target = to.at(target + inner[i]);
                    *target = (*target).add(*from.at((row * step + i) as isize));
                }
            }
        }),
    }
}
