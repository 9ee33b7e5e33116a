//! The kernels of batch_norm: data is seen as (before, channels, after) around the channel axis. Where a channel's
//! runs are long, a unit of work is a channel, whose data is read once from memory and then stays near; where they are
//! short, vectors go across channels. How work is cut, and so every bit, depends on the sizes alone.

use super::rows::{mean_of, total};
use crate::isa_versions;
use crate::kernel::lane::Lane;
use crate::kernel::moves::Shared;
use crate::kernel::num::{Float, Num};
use crate::kernel::walk::{GRAIN, split};
use crate::par::Parallel;
use crate::shape::check_axis;

/// Runs of at least this many elements are vectors of their own.
const RUN: usize = 16;
/// Columns side by side where runs are shorter.
const SIDE: usize = 64;
/// Rows whose sums are kept in the element's own precision.
const ROWS: usize = 64;
/// With this many channels or more, threads share channels only.
const CHANNELS: usize = 16;
const LANES: usize = 64;
const FEW: usize = 16;
const LONG: usize = 256;
/// Elements after which sums go to float64.
const LEAF: usize = 1024;

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

    /// Per channel: the mean of its first elements, a number near its mean.
    pub fn near<T: Lane<Wide: Float>>(&self, x: &[T], channel: usize) -> T::Wide {
        let rows = if self.after >= RUN { 1 } else { self.before.min(32) };
        let mut sum = 0.0;
        for b in 0..rows {
            let start = self.start(b, channel);
            // SAFETY: a run of the data.
            sum += unsafe { mean_of(x[start..start + self.after].as_ptr(), self.after) };
        }
        T::Wide::of(sum / rows as f64)
    }

    /// Runs `of(channel, sums)` over all channels, where `sums` are the channel's, of K terms each: `along` adds a run
    /// of one channel, `across` rows of 64 columns. `then` is called with a channel's sums while its data is near, if
    /// one thread has all of it; says whether it was.
    pub fn sums<T: Lane<Wide: Float>, const M: usize>(
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
    fn sums_across<T: Lane<Wide: Float>, const M: usize>(
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

    /// Calls `body(channel, first element, runs)` for pieces of one channel's runs.
    pub fn runs(&self, par: &dyn Parallel, body: impl Fn(usize, usize, Runs) + Sync) {
        let Block { before, channels, after } = *self;
        split(par, before * channels, GRAIN / after.max(1), |units| {
            let one = Runs { n: after, count: 1, step: 0 };
            units.for_each(|unit| body(unit % channels, unit * after, one));
        });
    }

    /// The first element and the runs of channel `c`.
    pub fn runs_of(&self, c: usize) -> (usize, Runs) {
        let step = self.channels * self.after;
        (self.start(0, c), Runs { n: self.after, count: self.before, step })
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

type Along<T, W, const M: usize> = unsafe fn([*const T; M], &Runs, [W; 2], &mut [f64; 2]);
type Across<T, W, const M: usize> =
    unsafe fn([*const T; M], [usize; 3], &[[W; SIDE]; 2], &mut [[f64; SIDE]; 2]);

/// Loops that add two terms of each element of a run, or of rows of columns: `[rows, elements to the next, columns]`.
pub struct Terms<T: Lane, const M: usize> {
    along: Along<T, T::Wide, M>,
    across: Across<T, T::Wide, M>,
}

/// The terms of a batch's statistics: elements less the channel's number, and their squares.
pub fn statistics<T: Lane<Wide: Float>>() -> Terms<T, 1> {
    Terms { along: statistics_along::<T>(), across: statistics_across::<T>() }
}

/// The terms of the gradient: g, and its product with x normalised by the channel's mean and inverse deviation.
pub fn gradients<T: Lane<Wide: Float>>() -> Terms<T, 2> {
    Terms { along: gradients_along::<T>(), across: gradients_across::<T>() }
}

/// The loop along runs: `$terms` of the elements at one place, of which there are `$m`. Lanes go on from run to run.
macro_rules! along {
    ($name:ident, $lanes:ident, $pick:ident, $m:literal, |$x:ident, $a:ident, $b:ident| $terms:expr) => {
        /// # Safety
        /// The runs are readable.
        #[inline(always)]
        unsafe fn $lanes<T: Lane<Wide: Float>, const L: usize>(
            from: [*const T; $m],
            runs: &Runs,
            [$a, $b]: [T::Wide; 2],
            sums: &mut [f64; 2],
        ) {
            let (mut ones, mut twos, mut held) = ([T::Wide::ZERO; L], [T::Wide::ZERO; L], 0);
            for r in 0..runs.count {
                let mut start = 0;
                while start < runs.n {
                    let end = runs.n.min(start + LEAF);
                    held += end - start;
                    while start < end {
                        let count = L.min(end - start);
                        let at = r * runs.step + start;
                        // A whole round is a loop of its own, whose length is known.
                        let (whole, rest) = if count == L { (L, 0) } else { (0, count) };
                        if whole == L {
                            for k in 0..L {
                                let mut $x = [T::Wide::ZERO; $m];
                                for m in 0..$m {
                                    // SAFETY: the caller's.
                                    $x[m] = unsafe { *from[m].add(at + k) }.widen();
                                }
                                let [one, two] = $terms;
                                ones[k] = ones[k].add(one);
                                twos[k] = twos[k].add(two);
                            }
                        }
                        for k in 0..rest {
                            let mut $x = [T::Wide::ZERO; $m];
                            for m in 0..$m {
                                // SAFETY: the caller's.
                                $x[m] = unsafe { *from[m].add(at + k) }.widen();
                            }
                            let [one, two] = $terms;
                            ones[k] = ones[k].add(one);
                            twos[k] = twos[k].add(two);
                        }
                        start += count;
                    }
                    if held >= LEAF {
                        sums[0] += total(&mut ones);
                        sums[1] += total(&mut twos);
                        (ones, twos, held) = ([T::Wide::ZERO; L], [T::Wide::ZERO; L], 0);
                    }
                }
            }
            sums[0] += total(&mut ones);
            sums[1] += total(&mut twos);
        }

        /// # Safety
        /// The runs are readable.
        #[inline(always)]
        unsafe fn $name<T: Lane<Wide: Float>>(
            from: [*const T; $m],
            runs: &Runs,
            numbers: [T::Wide; 2],
            sums: &mut [f64; 2],
        ) {
            // SAFETY: the caller's.
            unsafe {
                if runs.n < LONG {
                    $lanes::<T, FEW>(from, runs, numbers, sums);
                } else {
                    $lanes::<T, LANES>(from, runs, numbers, sums);
                }
            }
        }

        isa_versions! {
            fn $pick -> Along<T, T::Wide, $m> = $name;
            generics [T: Lane<Wide: Float>] names [T] fast true;
            args (from: [*const T; $m], runs: &Runs, numbers: [T::Wide; 2], sums: &mut [f64; 2])
        }
    };
}
along!(statistics_along_body, statistics_lanes, statistics_along, 1, |x, near, _b| {
    let d = x[0].sub(near);
    [d, d.mul(d)]
});
along!(gradients_along_body, gradients_lanes, gradients_along, 2, |x, mean, inv| {
    [x[0], x[0].mul(x[1].sub(mean).mul(inv))]
});

/// The loop across columns: `$terms` of the elements at one place, of which there are `$m`.
macro_rules! across {
    ($name:ident, $pick:ident, $m:literal, |$x:ident, $a:ident, $b:ident| $terms:expr) => {
        /// # Safety
        /// The rows' columns are readable.
        #[inline(always)]
        unsafe fn $name<T: Lane<Wide: Float>>(
            from: [*const T; $m],
            [rows, step, count]: [usize; 3],
            numbers: &[[T::Wide; SIDE]; 2],
            sums: &mut [[f64; SIDE]; 2],
        ) {
            let mut r = 0;
            while r < rows {
                let end = rows.min(r + ROWS);
                let (mut ones, mut twos) = ([T::Wide::ZERO; SIDE], [T::Wide::ZERO; SIDE]);
                while r < end {
                    for k in 0..count {
                        let mut $x = [T::Wide::ZERO; $m];
                        for m in 0..$m {
                            // SAFETY: the caller's.
                            $x[m] = unsafe { *from[m].add(r * step + k) }.widen();
                        }
                        let ($a, $b) = (numbers[0][k], numbers[1][k]);
                        let [one, two] = $terms;
                        ones[k] = ones[k].add(one);
                        twos[k] = twos[k].add(two);
                    }
                    r += 1;
                }
                for k in 0..count {
                    sums[0][k] += ones[k].double();
                    sums[1][k] += twos[k].double();
                }
            }
        }

        isa_versions! {
            fn $pick -> Across<T, T::Wide, $m> = $name;
            generics [T: Lane<Wide: Float>] names [T] fast true;
            args (from: [*const T; $m], sizes: [usize; 3], numbers: &[[T::Wide; SIDE]; 2],
                sums: &mut [[f64; SIDE]; 2])
        }
    };
}
across!(statistics_across_body, statistics_across, 1, |x, near, _b| {
    let d = x[0].sub(near);
    [d, d.mul(d)]
});
across!(gradients_across_body, gradients_across, 2, |x, mean, inv| [x[0], x[0].mul(x[1].sub(mean).mul(inv))]);

/// # Safety
/// The runs are readable from `x` and writable from `y`.
#[inline(always)]
unsafe fn affine_body<T: Lane<Wide: Float>>(
    x: *const T,
    [mean, scale, shift]: [T::Wide; 3],
    y: *mut T,
    runs: &Runs,
) {
    for r in 0..runs.count {
        // SAFETY: the caller's.
        unsafe {
            let (x, y) = (x.add(r * runs.step), y.add(r * runs.step));
            for k in 0..runs.n {
                *y.add(k) = T::narrow((*x.add(k)).widen().sub(mean).mul(scale).add(shift));
            }
        }
    }
}

isa_versions! {
    /// `(x - mean) * scale + shift` of runs, with the three in this order.
    pub fn affine -> unsafe fn(*const T, [T::Wide; 3], *mut T, &Runs) = affine_body;
    generics [T: Lane<Wide: Float>] names [T] fast true;
    args (x: *const T, numbers: [T::Wide; 3], y: *mut T, runs: &Runs)
}

/// # Safety
/// `n` elements are readable from `x` and writable from `y`.
#[inline(always)]
unsafe fn affine_each_body<T: Lane<Wide: Float>>(
    x: *const T,
    [mean, scale, shift]: [&[T::Wide]; 3],
    y: *mut T,
    n: usize,
) {
    for k in 0..n.min(mean.len()).min(scale.len()).min(shift.len()) {
        // SAFETY: the caller's.
        unsafe { *y.add(k) = T::narrow((*x.add(k)).widen().sub(mean[k]).mul(scale[k]).add(shift[k])) };
    }
}

type AffineEach<T, W> = unsafe fn(*const T, [&[W]; 3], *mut T, usize);

isa_versions! {
    /// As [`affine`], with numbers for each element.
    pub fn affine_each -> AffineEach<T, T::Wide> = affine_each_body;
    generics [T: Lane<Wide: Float>] names [T] fast true;
    args (x: *const T, numbers: [&[T::Wide]; 3], y: *mut T, n: usize)
}

/// # Safety
/// The runs are readable from `g` and `x` and writable from `out`.
#[inline(always)]
unsafe fn back_body<T: Lane<Wide: Float>>(
    [g, x]: [*const T; 2],
    [mean, scale, a, b]: [T::Wide; 4],
    out: *mut T,
    runs: &Runs,
) {
    for r in 0..runs.count {
        // SAFETY: the caller's.
        unsafe {
            let (g, x, out) = (g.add(r * runs.step), x.add(r * runs.step), out.add(r * runs.step));
            for k in 0..runs.n {
                let (g, x) = ((*g.add(k)).widen(), (*x.add(k)).widen());
                *out.add(k) = T::narrow(g.sub(a).sub(x.sub(mean).mul(b)).mul(scale));
            }
        }
    }
}

isa_versions! {
    /// `scale (g - a - (x - mean) b)` of runs, with mean, scale, a and b in this order.
    pub fn back -> unsafe fn([*const T; 2], [T::Wide; 4], *mut T, &Runs) = back_body;
    generics [T: Lane<Wide: Float>] names [T] fast true;
    args (from: [*const T; 2], numbers: [T::Wide; 4], out: *mut T, runs: &Runs)
}

/// # Safety
/// `n` elements are readable from `g` and `x` and writable from `out`.
#[inline(always)]
unsafe fn back_each_body<T: Lane<Wide: Float>>(
    [g, x]: [*const T; 2],
    [mean, scale, a, b]: [&[T::Wide]; 4],
    out: *mut T,
    n: usize,
) {
    for k in 0..n.min(mean.len()).min(scale.len()).min(a.len()).min(b.len()) {
        // SAFETY: the caller's.
        unsafe {
            let (g, x) = ((*g.add(k)).widen(), (*x.add(k)).widen());
            *out.add(k) = T::narrow(g.sub(a[k]).sub(x.sub(mean[k]).mul(b[k])).mul(scale[k]));
        }
    }
}

type BackEach<T, W> = unsafe fn([*const T; 2], [&[W]; 4], *mut T, usize);

isa_versions! {
    /// As [`back`], with numbers for each element.
    pub fn back_each -> BackEach<T, T::Wide> = back_each_body;
    generics [T: Lane<Wide: Float>] names [T] fast true;
    args (from: [*const T; 2], numbers: [&[T::Wide]; 4], out: *mut T, n: usize)
}
