//! The lines of an array along an axis, and the sorting of each. Knows no op.

use crate::kernel::moves::Shared;
use crate::kernel::network;
use crate::kernel::radix::{self, Item, Key};
use crate::kernel::scratch::{Space, with_scratch};
use crate::kernel::sort::{Order, stable};
use crate::kernel::walk::{GRAIN, Walk, offsets, split};
use crate::layout::Layout;
use crate::par::{Parallel, Serial};
use crate::shape::Shape;
use crate::simd::transpose::{Plane, transpose_near};
use crate::view::View;
use crate::{Element, Result};
use smallvec::smallvec;
use std::cmp::Reverse;
use std::sync::atomic::{AtomicBool, Ordering};

/// Lines longer than this are sorted one after the other, each by all threads.
pub const LONG: usize = 1 << 16;
/// Neighbouring lines whose elements do not follow each other are read and written this many at once: elements of a
/// cache line.
const TOGETHER: usize = 16;
/// Elements a chunk of short lines has at least.
const CHUNK: usize = 1 << 12;

/// The lines of a shape along an axis: where each begins, and their length and step.
pub struct Lines {
    pub starts: Vec<isize>,
    pub len: usize,
    pub step: isize,
}

impl Lines {
    /// An array without axes is one line of one element.
    pub fn new(layout: &Layout, axis: usize) -> Lines {
        let Some(&len) = layout.shape.get(axis) else {
            return Lines { starts: vec![0], len: 1, step: 1 };
        };
        let mut rest: Shape = if len == 0 { smallvec![0] } else { layout.shape.clone() };
        let strides = if len == 0 { &[0][..] } else { &layout.strides };
        if len > 0 {
            rest[axis] = 1;
        }
        Lines { starts: offsets(&rest, strides), len, step: layout.strides[axis] }
    }

    /// How many lines to read and write together.
    fn together(&self) -> usize {
        if self.step == 1 { 1 } else { TOGETHER.min(self.starts.len()).max(1) }
    }

    /// The offset of element `i` of a line.
    #[inline(always)]
    pub fn at(&self, line: usize, i: usize) -> isize {
        self.starts[line] + i as isize * self.step
    }
}

impl<T: Element> Shared<T> {
    /// The element of an input at an offset of its layout.
    #[inline(always)]
    pub fn read(self, at: isize) -> T {
        // SAFETY: called with offsets of this pointer's own layout only.
        unsafe { *self.at(at) }
    }
}

/// An item that knows where in its line it came from.
pub trait Placed {
    fn place(&self) -> usize;
}

impl<I: Item> Placed for I {
    #[inline(always)]
    fn place(&self) -> usize {
        Item::place(*self)
    }
}

impl<K> Placed for (K, usize) {
    #[inline(always)]
    fn place(&self) -> usize {
        self.1
    }
}

/// Whether [`sorted`] can sort such lines with their places.
pub fn has_places<T: Order>(lines: &Lines) -> bool {
    T::HAS_BITS && lines.len as u64 <= 1 << 32
}

/// Whether some element shares its key with others that differ from it.
pub fn has_merged<T: Order>(x: &View, par: &dyn Parallel) -> bool {
    let found = AtomicBool::new(false);
    let walk = Walk::new(&x.layout.shape, [&x.layout.strides]);
    let (_, [step]) = walk.inner();
    let from = Shared(x.ptr::<T>().cast_mut());
    walk.run(par, GRAIN, |[start], n| {
        let any = if step == 1 {
            // SAFETY: a row of the layout.
            let row = unsafe { std::slice::from_raw_parts(from.at(start), n) };
            let mut any = false;
            for x in row {
                any |= x.is_merged();
            }
            any
        } else {
            (0..n as isize).fold(false, |any, i| any | from.read(start + i * step).is_merged())
        };
        if any {
            found.store(true, Ordering::Relaxed);
        }
    });
    found.into_inner()
}

/// The elements of lines as items to sort.
struct Reader<'a, T> {
    from: Shared<T>,
    lines: &'a Lines,
    ascending: bool,
}

impl<T: Order> Reader<'_, T> {
    /// Whether `n` elements of a line from `start` on, and the one before them, are in order. Looks at no more than it
    /// has to: of lines that are not, a few elements.
    fn in_order(&self, line: usize, start: usize, n: usize) -> bool {
        const BLOCK: usize = 64;
        let flip = if self.ascending { T::Bits::default() } else { T::Bits::MAX };
        let key = |i: usize| self.from.read(self.lines.at(line, i)).bits().flip(flip);
        let mut first = start.max(1);
        while first < start + n {
            let end = (first + BLOCK).min(start + n);
            let mut any = false;
            for i in first..end {
                any |= key(i) < key(i - 1);
            }
            if any {
                return false;
            }
            first = end;
        }
        true
    }

    /// Whether a long line is in order.
    fn all_in_order(&self, line: usize, par: &dyn Parallel) -> bool {
        let broken = AtomicBool::new(false);
        split(par, self.lines.len, GRAIN, |range| {
            if !broken.load(Ordering::Relaxed) && !self.in_order(line, range.start, range.len()) {
                broken.store(true, Ordering::Relaxed);
            }
        });
        !broken.into_inner()
    }

    /// Elements of a line from `start` on.
    fn read<I: Item<Key = T::Bits>>(&self, line: usize, start: usize, to: &mut [I]) {
        let (from, step) = (self.lines.at(line, start), self.lines.step);
        let flip = if self.ascending { T::Bits::default() } else { T::Bits::MAX };
        if step == 1 {
            // SAFETY: elements of one line, which follow each other.
            let row = unsafe { std::slice::from_raw_parts(self.from.at(from), to.len()) };
            for (i, (to, x)) in to.iter_mut().zip(row).enumerate() {
                *to = I::new(x.bits().flip(flip), start + i);
            }
        } else {
            for (i, to) in to.iter_mut().enumerate() {
                *to = I::new(self.from.read(from + i as isize * step).bits().flip(flip), start + i);
            }
        }
    }
}

/// Sorts every line by its keys (the greatest first where `ascending` is false), equal ones by place, and calls
/// `write(line, start, items)` for pieces of lines: item i is what comes to `start + i`.
///
/// The type's keys are numbers ([`Order::HAS_BITS`]), and with places a line has at most 2^32 elements.
pub fn sorted<T: Order, I: Item<Key = T::Bits>>(
    op: &'static str,
    x: &View,
    lines: &Lines,
    ascending: bool,
    par: &dyn Parallel,
    write: impl Fn(usize, usize, &[I]) + Sync,
) -> Result<()> {
    let reader = Reader { from: Shared(x.ptr::<T>().cast_mut()), lines, ascending };
    let len = lines.len;
    if len > LONG {
        let (mut items, mut spare) = (Space::<I>::new(op, len)?, Space::<I>::new(op, len)?);
        for line in 0..lines.starts.len() {
            let to = Shared(items.as_mut_ptr());
            split(par, len, GRAIN, |range| {
                // SAFETY: chunks are disjoint.
                let to = unsafe { std::slice::from_raw_parts_mut(to.at(range.start as isize), range.len()) };
                reader.read(line, range.start, to);
            });
            let moved = !reader.all_in_order(line, par) && radix::sort(&mut items, &mut spare, par);
            let items = if moved { &spare } else { &items };
            split(par, len, GRAIN, |range| write(line, range.start, &items[range]));
        }
        return Ok(());
    }
    if I::HAS_NUMBER && network::fits::<I::Number>(len) && lines.starts.len() >= network::LANES / 2 {
        side_by_side(&reader, par, write);
    } else {
        one_by_one(&reader, par, write);
    }
    Ok(())
}

/// Sorts lines by digits, some of which are read and written together.
fn one_by_one<T: Order, I: Item<Key = T::Bits>>(
    reader: &Reader<T>,
    par: &dyn Parallel,
    write: impl Fn(usize, usize, &[I]) + Sync,
) {
    let lines = reader.lines;
    let (len, together) = (lines.len, lines.together());
    let piece = if together == 1 { len.max(1) } else { TOGETHER };
    let groups = lines.starts.len().div_ceil(together);
    split(par, groups, (CHUNK / (len * together).max(1)).max(1), |range| {
        with_scratch((together + 1) * len * size_of::<I>(), |scratch| {
            // SAFETY: scratch has room for the lines of a group and one more, and any bytes are an item.
            let all = unsafe { std::slice::from_raw_parts_mut(scratch.cast::<I>(), (together + 1) * len) };
            let (items, spare) = all.split_at_mut(together * len);
            for group in range {
                let own = group * together..((group + 1) * together).min(lines.starts.len());
                for start in (0..len).step_by(piece) {
                    let piece = piece.min(len - start);
                    for (k, line) in own.clone().enumerate() {
                        reader.read(line, start, &mut items[k * len + start..][..piece]);
                    }
                }
                for (items, line) in items.chunks_exact_mut(len.max(1)).zip(own.clone()) {
                    if !reader.in_order(line, 0, len) && radix::sort(items, spare, &Serial) {
                        items.copy_from_slice(spare);
                    }
                }
                for start in (0..len).step_by(piece) {
                    let piece = piece.min(len - start);
                    for (k, line) in own.clone().enumerate() {
                        write(line, start, &items[k * len + start..][..piece]);
                    }
                }
            }
        });
    });
}

/// Sorts short lines, as many at once as a vector has lanes.
fn side_by_side<T: Order, I: Item<Key = T::Bits>>(
    reader: &Reader<T>,
    par: &dyn Parallel,
    write: impl Fn(usize, usize, &[I]) + Sync,
) {
    const LANES: usize = network::LANES;
    let (lines, len) = (reader.lines, reader.lines.len);
    let groups = lines.starts.len().div_ceil(LANES);
    let sort = network::sorter::<I::Number>();
    split(par, groups, (CHUNK / (len * LANES).max(1)).max(1), |range| {
        with_scratch(len * size_of::<[I::Number; LANES]>(), |scratch| {
            // SAFETY: scratch has room for the rows, and any bytes are a number.
            let rows = unsafe { std::slice::from_raw_parts_mut(scratch.cast::<[I::Number; LANES]>(), len) };
            let mut piece = [I::default(); TOGETHER];
            // Pieces of the lines, one in each row.
            let mut block = [[I::Number::default(); TOGETHER]; LANES];
            for group in range {
                let own = group * LANES..((group + 1) * LANES).min(lines.starts.len());
                for start in (0..len).step_by(TOGETHER) {
                    let count = TOGETHER.min(len - start);
                    for (block, line) in block.iter_mut().zip(own.clone()) {
                        reader.read(line, start, &mut piece[..count]);
                        for i in 0..count {
                            block[i] = piece[i].number();
                        }
                    }
                    let rows = &mut rows[start..start + count];
                    // SAFETY: the block has as many columns as there are rows here.
                    unsafe { turn(&block, LANES, count, rows.as_mut_ptr()) };
                }
                // SAFETY: no condition; lanes without a line hold anything.
                unsafe { sort(rows) };
                for start in (0..len).step_by(TOGETHER) {
                    let count = TOGETHER.min(len - start);
                    // SAFETY: the block has a row for each lane, and room for as many elements.
                    unsafe { turn(&rows[start..start + count], count, LANES, block.as_mut_ptr()) };
                    for (block, line) in block.iter().zip(own.clone()) {
                        for i in 0..count {
                            piece[i] = I::from_number(block[i]);
                        }
                        write(line, start, &piece[..count]);
                    }
                }
            }
        });
    });
}

/// Copies a block so that its rows become columns.
///
/// # Safety
/// `from` has `rows` rows, of at least `cols` numbers that count; `to` has room for `cols` rows.
unsafe fn turn<K: Key, const N: usize>(from: &[[K; N]], rows: usize, cols: usize, to: *mut [K; N]) {
    let step = size_of::<[K; N]>() as isize;
    let plane = Plane { rows, cols, src: step, dst: step };
    // SAFETY: the caller's; numbers are plain elements of the sizes there are.
    unsafe { transpose_near::<K>(plane, from.as_ptr().cast(), to.cast()) }
}

/// The same for what [`sorted`] cannot: the places of a line, one line at a time.
pub fn sorted_places<T: Order>(
    x: &View,
    lines: &Lines,
    ascending: bool,
    par: &dyn Parallel,
    write: impl Fn(usize, &[(T::Key, usize)]) + Sync,
) {
    let from = Shared(x.ptr::<T>().cast_mut());
    let one = |line: usize, par: &dyn Parallel| {
        let key = |i| (from.read(lines.at(line, i)).key(), i);
        let mut items: Vec<(T::Key, usize)> = (0..lines.len).map(key).collect();
        if ascending {
            stable(&mut items, |item| item.0, par);
        } else {
            stable(&mut items, |item| Reverse(item.0), par);
        }
        write(line, &items);
    };
    if lines.len > LONG {
        return (0..lines.starts.len()).for_each(|line| one(line, par));
    }
    split(par, lines.starts.len(), (CHUNK / lines.len.max(1)).max(1), |range| {
        range.for_each(|line| one(line, &Serial));
    });
}
