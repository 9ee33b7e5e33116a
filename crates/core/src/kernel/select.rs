//! The k least items of lines, in order, equal ones by place: found without sorting the rest. Knows no op.

use crate::Result;
use crate::isa_versions;
use crate::kernel::lines::{LONG, Lines, has_places, sorted, sorted_places};
use crate::kernel::moves::Shared;
use crate::kernel::radix::{At, Item, Key};
use crate::kernel::sort::Order;
use crate::kernel::walk::split;
use crate::par::Parallel;
use crate::view::View;
use std::ops::Range;

/// Elements that are looked at together: most blocks have nothing that counts.
const BLOCK: usize = 32;
/// Columns of which the least each give the first bound; of more than half as many items it would be a bad one.
const COLUMNS: usize = 64;
/// Elements a chunk of short lines has at least.
const CHUNK: usize = 1 << 14;

/// The best items so far. Places grow, so that of equal keys the first ones are kept.
struct Best<K> {
    k: usize,
    items: Vec<At<K>>,
    /// Keys from here on do not count. None: all do.
    below: Option<K>,
}

impl<K: Key> Best<K> {
    fn new(k: usize) -> Best<K> {
        Best { k, items: Vec::with_capacity(2 * k + BLOCK), below: None }
    }

    #[inline(always)]
    fn counts(&self, key: K) -> bool {
        self.below.is_none_or(|below| key < below)
    }

    fn push(&mut self, item: At<K>) {
        self.items.push(item);
        if self.items.len() == 2 * self.k + BLOCK {
            self.shrink();
        }
    }

    /// Drops what is not among the best k.
    fn shrink(&mut self) {
        if self.items.len() >= self.k {
            self.items.select_nth_unstable(self.k - 1);
            self.items.truncate(self.k);
            self.below = Some(self.items[self.k - 1].key);
        }
    }

    /// The best k in order.
    fn finish(&mut self) -> &[At<K>] {
        self.shrink();
        self.items.sort_unstable();
        &self.items
    }
}

/// Elements of a line: the first one's address and place, how far the next is, and which order is asked for.
#[derive(Clone, Copy)]
struct Part<T> {
    from: Shared<T>,
    step: isize,
    place: usize,
    count: usize,
    ascending: bool,
}

impl<T: Order> Part<T> {
    #[inline(always)]
    fn key(&self, i: usize) -> T::Bits {
        let bits = self.from.read(i as isize * self.step).bits();
        if self.ascending { bits } else { bits.invert() }
    }
}

/// # Safety
/// None; the type is that of functions compiled for an instruction set.
#[inline(always)]
unsafe fn scan_body<T: Order>(part: &Part<T>, best: &mut Best<T::Bits>) {
    // The same code, known to the compiler to read neighbours in the first two cases.
    match (part.step, part.ascending) {
        (1, true) => scan_part(&Part { step: 1, ascending: true, ..*part }, best),
        (1, false) => scan_part(&Part { step: 1, ascending: false, ..*part }, best),
        _ => scan_part(part, best),
    }
}

#[inline(always)]
fn scan_part<T: Order>(part: &Part<T>, best: &mut Best<T::Bits>) {
    let n = part.count;
    if best.items.is_empty() && best.k <= COLUMNS / 2 && n >= 4 * COLUMNS {
        let mut least = [T::Bits::MAX; COLUMNS];
        for row in 0..n / COLUMNS {
            for (c, least) in least.iter_mut().enumerate() {
                let key = part.key(row * COLUMNS + c);
                *least = if key < *least { key } else { *least };
            }
        }
        least.select_nth_unstable(best.k - 1);
        best.below = least[best.k - 1].successor();
    }
    let mut start = 0;
    while start < n {
        let count = BLOCK.min(n - start);
        if count == BLOCK
            && let Some(below) = best.below
        {
            let mut any = false;
            for i in 0..BLOCK {
                any |= part.key(start + i) < below;
            }
            if !any {
                start += BLOCK;
                continue;
            }
        }
        for i in start..start + count {
            let key = part.key(i);
            if best.counts(key) {
                best.push(At { key, place: (part.place + i) as u32 });
            }
        }
        start += count;
    }
}

isa_versions! {
    /// Takes the elements of a part into the best.
    fn scan -> unsafe fn(&Part<T>, &mut Best<T::Bits>) = scan_body;
    generics [T: Order] names [T] fast true; args (part: &Part<T>, best: &mut Best<T::Bits>)
}

/// Calls `write(line, i, place)` for the places of the k first elements of each line in order of their keys (the
/// greatest first where `ascending` is false), equal ones by place. `k` is at most the lines' length.
pub fn first_places<T: Order>(
    op: &'static str,
    x: &View,
    lines: &Lines,
    k: usize,
    ascending: bool,
    par: &dyn Parallel,
    write: impl Fn(usize, usize, usize) + Sync,
) -> Result<()> {
    if k == 0 {
        return Ok(());
    }
    if !has_places::<T>(lines) {
        sorted_places::<T>(x, lines, ascending, par, |line, items| {
            items[..k].iter().enumerate().for_each(|(i, item)| write(line, i, item.1));
        });
        return Ok(());
    }
    if k * 16 > lines.len.min(LONG) {
        return sorted::<T, T::Placed>(op, x, lines, ascending, par, |line, start, items| {
            let count = items.len().min(k.saturating_sub(start));
            items[..count].iter().enumerate().for_each(|(i, item)| write(line, start + i, item.place()));
        });
    }
    let from = Shared(x.ptr::<T>().cast_mut());
    let scan = scan::<T>();
    let take = |line: usize, range: Range<usize>, best: &mut Best<T::Bits>| {
        // SAFETY: an offset of the input's layout.
        let from = Shared(unsafe { from.at(lines.at(line, range.start)) });
        let part = Part { from, step: lines.step, place: range.start, count: range.len(), ascending };
        // SAFETY: the line has these elements.
        unsafe { scan(&part, best) };
    };
    let give = |line: usize, best: &mut Best<T::Bits>| {
        best.finish().iter().enumerate().for_each(|(i, item)| write(line, i, item.place as usize));
    };
    if lines.len <= LONG {
        split(par, lines.starts.len(), (CHUNK / lines.len.max(1)).max(1), |range| {
            let mut best = Best::new(k);
            for line in range {
                best.items.clear();
                best.below = None;
                take(line, 0..lines.len, &mut best);
                give(line, &mut best);
            }
        });
        return Ok(());
    }
    for line in 0..lines.starts.len() {
        let mut parts: Vec<Best<T::Bits>> = (0..lines.len.div_ceil(LONG)).map(|_| Best::new(k)).collect();
        let all = Shared(parts.as_mut_ptr());
        split(par, lines.len, LONG, |range| {
            // SAFETY: one chunk, one entry.
            let best = unsafe { &mut *all.at((range.start / LONG) as isize) };
            take(line, range, best);
            best.shrink();
        });
        let mut best = Best::new(k);
        best.items.extend(parts.iter().flat_map(|part| &part.items));
        give(line, &mut best);
    }
    Ok(())
}
