//! The kernels of batch_norm: data is seen as (before, channels, after) around the channel axis. Where a channel's
//! runs are long, a unit of work is a channel, whose data is read once from memory and then stays near; where they are
//! short, vectors go across channels. How work is cut, and so every bit, depends on the sizes alone.

use super::rows::first_mean;
use crate::isa_versions;
use crate::kernel::lane::Lane;
use crate::kernel::moves::Shared;
use crate::kernel::num::{Float, Num};
use crate::kernel::packed::{LEAF, SIDE as VECTORS, WIDEST, load, some, some_wide, store, total};
use crate::kernel::walk::{GRAIN, split};
use crate::par::Parallel;
use crate::shape::check_axis;
use crate::simd::float::FloatVector;
use crate::simd::vector::Wide;

/// Runs of at least this many elements are vectors of their own.
const RUN: usize = 16;
/// Columns side by side where runs are shorter.
const SIDE: usize = 64;
/// Rows whose sums are kept in the element's own precision.
const ROWS: usize = 64;
/// With this many channels or more, threads share channels only.
const CHANNELS: usize = 16;
/// Rows whose mean is near enough.
const FIRST: usize = 32;

/// The sizes before, of and after the channel axis.
#[derive(Clone, Copy)]
pub struct Block {
    before: usize,
    pub channels: usize,
    after: usize,
}

/// What a run is computed with, of one channel.
pub type Numbers<W, const K: usize> = [W; K];

impl Block {
    pub fn new(shape: &[usize], axis: i64) -> Block {
        let axis = check_axis("", axis, shape.len()).unwrap_or(0);
        Block {
            before: shape[..axis].iter().product(),
            channels: shape[axis],
            after: shape[axis + 1..].iter().product(),
        }
    }

    pub fn count(&self) -> f64 {
        (self.before * self.after) as f64
    }

    fn size(&self) -> usize {
        self.before * self.channels * self.after
    }

    fn start(&self, b: usize, c: usize) -> usize {
        (b * self.channels + c) * self.after
    }

    /// For each channel the mean of its first elements, a number near its mean.
    pub fn near<T: Lane<Wide: Float + Wide>>(&self, x: &[T], par: &dyn Parallel) -> Vec<T::Wide> {
        let mut near = vec![T::Wide::ZERO; self.channels];
        if self.after < RUN {
            let columns = self.channels * self.after;
            let rows = self.before.min(FIRST);
            let mut sums = vec![T::Wide::ZERO; columns];
            for row in x[..rows * columns].chunks_exact(columns.max(1)) {
                sums.iter_mut().zip(row).for_each(|(sum, x)| *sum = sum.add(x.widen()));
            }
            let each = 1.0 / (rows * self.after) as f64;
            for (near, of) in near.iter_mut().zip(sums.chunks_exact(self.after.max(1))) {
                *near = T::Wide::of(of.iter().map(|sum| sum.double()).sum::<f64>() * each);
            }
            return near;
        }
        let (to, mean) = (Shared(near.as_mut_ptr()), first_mean::<T>());
        split(par, self.channels, GRAIN / self.after, |channels| {
            for c in channels {
                let start = self.start(0, c);
                // SAFETY: a run of the data; each channel has a place of its own.
                unsafe {
                    let mut first = 0.0;
                    mean(x[start..start + self.after].as_ptr(), self.after, &mut first);
                    *to.at(c as isize) = T::Wide::of(first);
                }
            }
        });
        near
    }

    /// Runs `of(channel, sums)` over all channels, where `sums` are the channel's, of K terms each: `along` adds a run
    /// of one channel, `across` rows of 64 columns. `then` is called with a channel's sums while its data is near, if
    /// one thread has all of it; says whether it was.
    pub fn sums<T: Lane<Wide: Float + Wide>, const M: usize>(
        &self,
        par: &dyn Parallel,
        data: [&[T]; M],
        terms: &Terms<T, M>,
        numbers: &(dyn Fn(usize) -> Numbers<T::Wide, 2> + Sync),
        then: &(dyn Fn(usize, [f64; 2]) + Sync),
    ) -> (Vec<[f64; 2]>, bool) {
        if self.after < RUN {
            return (self.sums_across(par, data, terms, numbers), false);
        }
        let Block { before, channels, after } = *self;
        let whole = channels >= CHANNELS;
        let parts = if whole { 1 } else { (self.size() / GRAIN).clamp(1, 16).min(before.max(1)) };
        let each = before.div_ceil(parts);
        let mut partial = vec![[0f64; 2]; parts * channels];
        let target = Shared(partial.as_mut_ptr());
        split(par, parts * channels, (GRAIN / (each * after).max(1)).max(1), |units| {
            for unit in units {
                let (part, c) = (unit / channels, unit % channels);
                let numbers = numbers(c);
                let mut sums = [0.0; 2];
                let rows = part * each..before.min((part + 1) * each);
                if !rows.is_empty() {
                    let start = self.start(rows.start, c);
                    let runs = Runs { n: after, count: rows.len(), step: channels * after };
                    // SAFETY: runs of one channel.
                    unsafe { (terms.along)(data.map(|d| d[start..].as_ptr()), &runs, numbers, &mut sums) }
                }
                // SAFETY: one unit, one place.
                unsafe { *target.at(unit as isize) = sums };
                if whole {
                    then(c, sums);
                }
            }
        });
        (add_parts(&partial, channels), whole)
    }

    /// As [`Block::sums`], rows by rows of columns.
    fn sums_across<T: Lane<Wide: Float + Wide>, const M: usize>(
        &self,
        par: &dyn Parallel,
        data: [&[T]; M],
        terms: &Terms<T, M>,
        numbers: &(dyn Fn(usize) -> Numbers<T::Wide, 2> + Sync),
    ) -> Vec<[f64; 2]> {
        let Block { before, channels, after } = *self;
        let columns = channels * after;
        let blocks = columns.div_ceil(SIDE);
        let parts = (self.size() / GRAIN).clamp(1, 16).min(before.div_ceil(ROWS).max(1));
        let each = before.div_ceil(parts);
        let mut partial = vec![[0f64; 2]; parts * columns];
        let target = Shared(partial.as_mut_ptr());
        split(par, parts * blocks, (GRAIN / (each * SIDE).max(1)).max(1), |units| {
            for unit in units {
                let (part, first) = (unit / blocks, unit % blocks * SIDE);
                let count = SIDE.min(columns - first);
                let mut own = [[T::Wide::ZERO; SIDE]; 2];
                for k in 0..count {
                    let [a, b] = numbers((first + k) / after);
                    (own[0][k], own[1][k]) = (a, b);
                }
                let rows = part * each..before.min((part + 1) * each);
                if rows.is_empty() {
                    continue;
                }
                let mut sums = [[0f64; SIDE]; 2];
                let from = data.map(|d| d[rows.start * columns + first..].as_ptr());
                // SAFETY: rows of `count` columns from `first` on.
                unsafe { (terms.across)(from, [rows.len(), columns, count], &own, &mut sums) };
                for k in 0..count {
                    // SAFETY: one unit has its own columns of its own part.
                    unsafe {
                        *target.at((part * columns + first + k) as isize) = [sums[0][k], sums[1][k]];
                    }
                }
            }
        });
        let columns = add_parts(&partial, columns);
        columns.chunks_exact(after.max(1)).map(|of| add_parts(of, 1)[0]).collect()
    }

    /// Calls `body` with parts of all runs.
    pub fn runs(&self, par: &dyn Parallel, body: impl Fn(&Span) + Sync) {
        let Block { before, channels, after } = *self;
        split(par, before * channels, GRAIN / after.max(1), |units| {
            body(&Span { first: units.start, count: units.len(), step: 1, n: after, channels });
        });
    }

    /// The runs of channel `c`, as of the only one.
    pub fn runs_of(&self, c: usize) -> Span {
        Span { first: c, count: self.before, step: self.channels, n: self.after, channels: 1 }
    }

    /// Whether runs are too short for vectors of their own.
    pub fn is_narrow(&self) -> bool {
        self.after < RUN
    }

    /// Calls `body(first element, count, rows of numbers)` for pieces of several whole rows, of which `numbers(channel)`
    /// gives each element's.
    pub fn pieces<W: Float + Sync, const K: usize>(
        &self,
        par: &dyn Parallel,
        numbers: impl Fn(usize) -> [W; K],
        body: impl Fn(usize, usize, [&[W]; K]) + Sync,
    ) {
        let columns = self.channels * self.after;
        if columns == 0 || self.before == 0 {
            return;
        }
        let side = (4 * SIDE).div_ceil(columns);
        let mut rows: [Vec<W>; K] = std::array::from_fn(|_| Vec::with_capacity(side * columns));
        for _ in 0..side {
            for c in 0..self.channels {
                let own = numbers(c);
                for k in 0..K {
                    rows[k].extend(std::iter::repeat_n(own[k], self.after));
                }
            }
        }
        let piece = side * columns;
        let size = self.size();
        let rows = rows.each_ref().map(Vec::as_slice);
        split(par, size.div_ceil(piece), (GRAIN / piece).max(1), |range| {
            for i in range {
                let start = i * piece;
                let count = piece.min(size - start);
                body(start, count, rows.map(|row| &row[..count]));
            }
        });
    }
}

fn add_parts(partial: &[[f64; 2]], n: usize) -> Vec<[f64; 2]> {
    let mut totals = vec![[0f64; 2]; n];
    for part in partial.chunks_exact(n.max(1)) {
        for (total, sums) in totals.iter_mut().zip(part) {
            total[0] += sums[0];
            total[1] += sums[1];
        }
    }
    totals
}

/// `count` runs of `n` elements, each `step` elements after the one before.
#[derive(Clone, Copy)]
pub struct Runs {
    n: usize,
    count: usize,
    step: usize,
}

/// `count` runs of `n` elements: from run `first` on every `step`th; run i is of channel i modulo `channels`.
#[derive(Clone, Copy)]
pub struct Span {
    first: usize,
    count: usize,
    step: usize,
    n: usize,
    channels: usize,
}

type Along<T, W, const M: usize> = unsafe fn([*const T; M], &Runs, [W; 2], &mut [f64; 2]);
type Across<T, W, const M: usize> =
    unsafe fn([*const T; M], [usize; 3], &[[W; SIDE]; 2], &mut [[f64; SIDE]; 2]);

/// Loops that add two terms of each element of a run, or of rows of columns: `[rows, elements to the next, columns]`.
pub struct Terms<T: Lane, const M: usize> {
    along: Along<T, T::Wide, M>,
    across: Across<T, T::Wide, M>,
}

/// The terms of a batch's statistics: elements less the channel's number, and their squares.
pub fn statistics<T: Lane<Wide: Float + Wide>>() -> Terms<T, 1> {
    Terms { along: statistics_along::<T>(), across: statistics_across::<T>() }
}

/// The terms of the gradient: g, and its product with x normalised by the channel's mean and inverse deviation.
pub fn gradients<T: Lane<Wide: Float + Wide>>() -> Terms<T, 2> {
    Terms { along: gradients_along::<T>(), across: gradients_across::<T>() }
}

/// The loops of two terms of the elements at one place, of which there are `$m`, given two numbers; where an element
/// is its `$rest`, terms are zero. Along runs lanes go on from run to run.
macro_rules! terms {
    ($along_body:ident $along:ident, $across_body:ident $across:ident, $m:literal,
     |$x:ident, $a:ident, $b:ident| $terms:expr, rest $rest:expr) => {
        /// # Safety
        /// The runs are readable.
        #[inline(always)]
        unsafe fn $along_body<T: Lane<Wide: Float>, V: FloatVector<Item = T::Wide>>(
            from: [*const T; $m],
            runs: &Runs,
            numbers: [T::Wide; 2],
            sums: &mut [f64; 2],
        ) {
            // SAFETY: the caller's.
            unsafe {
                let ($a, $b) = (V::splat(numbers[0]), V::splat(numbers[1]));
                let rest: [V; $m] = $rest;
                let (mut ones, mut twos, mut held) = ([V::zero(); VECTORS], [V::zero(); VECTORS], 0);
                for r in 0..runs.count {
                    let mut start = 0;
                    while start < runs.n {
                        let end = runs.n.min(start + LEAF);
                        held += end - start;
                        while start + VECTORS * V::LANES <= end {
                            for j in 0..VECTORS {
                                let mut $x = rest;
                                for m in 0..$m {
                                    $x[m] = load::<T, V>(from[m].add(r * runs.step + start + j * V::LANES));
                                }
                                let [one, two] = $terms;
                                (ones[j], twos[j]) = (ones[j].add(one), twos[j].add(two));
                            }
                            start += VECTORS * V::LANES;
                        }
                        while start < end {
                            let mut $x = rest;
                            for m in 0..$m {
                                $x[m] =
                                    some::<T, V>(from[m].add(r * runs.step + start), end - start, rest[m]);
                            }
                            let [one, two] = $terms;
                            (ones[0], twos[0]) = (ones[0].add(one), twos[0].add(two));
                            start += V::LANES;
                        }
                        start = end;
                        if held >= LEAF {
                            sums[0] += total(ones);
                            sums[1] += total(twos);
                            (ones, twos, held) = ([V::zero(); VECTORS], [V::zero(); VECTORS], 0);
                        }
                    }
                }
                sums[0] += total(ones);
                sums[1] += total(twos);
            }
        }

        isa_versions! {
            fn $along -> Along<T, T::Wide, $m> = $along_body;
            generics [T: Lane<Wide: Float + Wide>] names [T] vectors [T::Wide] fast true;
            args (from: [*const T; $m], runs: &Runs, numbers: [T::Wide; 2], sums: &mut [f64; 2])
        }

        /// # Safety
        /// The rows' columns are readable.
        #[inline(always)]
        unsafe fn $across_body<T: Lane<Wide: Float>, V: FloatVector<Item = T::Wide>>(
            from: [*const T; $m],
            [rows, step, count]: [usize; 3],
            numbers: &[[T::Wide; SIDE]; 2],
            sums: &mut [[f64; SIDE]; 2],
        ) {
            let mut pad = [T::Wide::ZERO; WIDEST];
            for first in (0..count).step_by(V::LANES) {
                let left = count - first;
                // SAFETY: the caller's; numbers and sums are of whole vectors, a pad holds the widest.
                unsafe {
                    let $a = V::load(numbers[0].as_ptr().add(first));
                    let $b = V::load(numbers[1].as_ptr().add(first));
                    let rest: [V; $m] = $rest;
                    let mut r = 0;
                    while r < rows {
                        let end = rows.min(r + ROWS);
                        let (mut ones, mut twos) = (V::zero(), V::zero());
                        while r < end {
                            let mut $x = rest;
                            for m in 0..$m {
                                $x[m] = some::<T, V>(from[m].add(r * step + first), left, rest[m]);
                            }
                            let [one, two] = $terms;
                            (ones, twos) = (ones.add(one), twos.add(two));
                            r += 1;
                        }
                        for (sums, lanes) in sums.iter_mut().zip([ones, twos]) {
                            lanes.store(pad.as_mut_ptr());
                            for k in 0..V::LANES {
                                sums[first + k] += pad[k].double();
                            }
                        }
                    }
                }
            }
        }

        isa_versions! {
            fn $across -> Across<T, T::Wide, $m> = $across_body;
            generics [T: Lane<Wide: Float + Wide>] names [T] vectors [T::Wide] fast true;
            args (from: [*const T; $m], sizes: [usize; 3], numbers: &[[T::Wide; SIDE]; 2],
                sums: &mut [[f64; SIDE]; 2])
        }
    };
}
terms!(statistics_along_body statistics_along, statistics_across_body statistics_across, 1,
    |x, near, _b| {
        let d = x[0].sub(near);
        [d, d.mul(d)]
    }, rest [near]);
terms!(gradients_along_body gradients_along, gradients_across_body gradients_across, 2,
    |x, mean, inv| [x[0], x[0].mul(x[1].sub(mean).mul(inv))], rest [V::zero(), mean]);

/// `(x - mean) * scale + shift`, with the three in this order.
///
/// # Safety
/// As `Vector`'s.
#[inline(always)]
unsafe fn affine_of<V: FloatVector>([x]: [V; 1], [mean, scale, shift]: [V; 3]) -> V {
    // SAFETY: the caller's.
    unsafe { x.sub(mean).multiply_add(scale, shift) }
}

/// `scale (g - a - (x - mean) b)`, with mean, scale, a and b in this order.
///
/// # Safety
/// As `Vector`'s.
#[inline(always)]
unsafe fn back_of<V: FloatVector>([g, x]: [V; 2], [mean, scale, a, b]: [V; 4]) -> V {
    // SAFETY: the caller's.
    unsafe { g.sub(a).sub(x.sub(mean).mul(b)).mul(scale) }
}

/// The loops that compute every element of `$m` from `$k` numbers: of runs, with one set of numbers for each channel,
/// and of any elements, with numbers for each.
macro_rules! elements {
    ($formula:ident, $runs_body:ident $runs:ident, $each_body:ident $each:ident, $m:literal, $k:literal) => {
        /// # Safety
        /// The runs are readable and writable, and each channel has its numbers.
        #[inline(always)]
        unsafe fn $runs_body<T: Lane<Wide: Float>, V: FloatVector<Item = T::Wide>>(
            from: [*const T; $m],
            numbers: &[[T::Wide; $k]],
            to: *mut T,
            span: &Span,
        ) {
            let mut channel = span.first % span.channels;
            for i in 0..span.count {
                let start = (span.first + i * span.step) * span.n;
                // SAFETY: the caller's.
                unsafe {
                    let mut own = [V::zero(); $k];
                    for k in 0..$k {
                        own[k] = V::splat(numbers.get_unchecked(channel)[k]);
                    }
                    let mut at = 0;
                    while at < span.n {
                        let left = span.n - at;
                        let mut x = [V::zero(); $m];
                        for m in 0..$m {
                            x[m] = some::<T, V>(from[m].add(start + at), left, x[m]);
                        }
                        store::<T, V>($formula(x, own), to.add(start + at), left);
                        at += V::LANES;
                    }
                }
                channel += 1;
                channel = if channel == span.channels { 0 } else { channel };
            }
        }

        isa_versions! {
            pub fn $runs -> unsafe fn([*const T; $m], &[[T::Wide; $k]], *mut T, &Span) = $runs_body;
            generics [T: Lane<Wide: Float + Wide>] names [T] vectors [T::Wide] fast true;
            args (from: [*const T; $m], numbers: &[[T::Wide; $k]], to: *mut T, span: &Span)
        }

        /// # Safety
        /// `n` elements are readable from each of `from` and the numbers, and writable from `to`.
        #[inline(always)]
        unsafe fn $each_body<T: Lane<Wide: Float>, V: FloatVector<Item = T::Wide>>(
            from: [*const T; $m],
            numbers: [&[T::Wide]; $k],
            to: *mut T,
            n: usize,
        ) {
            let mut at = 0;
            while at < n {
                let left = n - at;
                // SAFETY: the caller's.
                unsafe {
                    let (mut x, mut own) = ([V::zero(); $m], [V::zero(); $k]);
                    for m in 0..$m {
                        x[m] = some::<T, V>(from[m].add(at), left, x[m]);
                    }
                    for k in 0..$k {
                        own[k] = some_wide(numbers[k].as_ptr().add(at), left, own[k]);
                    }
                    store::<T, V>($formula(x, own), to.add(at), left);
                }
                at += V::LANES;
            }
        }

        isa_versions! {
            pub fn $each -> unsafe fn([*const T; $m], [&[T::Wide]; $k], *mut T, usize) = $each_body;
            generics [T: Lane<Wide: Float + Wide>] names [T] vectors [T::Wide] fast true;
            args (from: [*const T; $m], numbers: [&[T::Wide]; $k], to: *mut T, n: usize)
        }
    };
}
elements!(affine_of, affine_body affine, affine_each_body affine_each, 1, 3);
elements!(back_of, back_body back, back_each_body back_each, 2, 4);
