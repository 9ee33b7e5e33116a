//! Convolution without columns: images are copied once with their padding, and tiles of sums stay in registers
//! while the windows are read in place. For rows of outputs that fill vectors well; [`super::conv`] decides.
//!
//! Every result is one sum in a fixed order (channel, then place in the window), whatever tile it falls in.

use crate::kernel::conv::{Geometry, Real};
use crate::kernel::moves::Shared;
use crate::kernel::walk::split;
use crate::par::Parallel;
use crate::simd::vector::{Vector, lanes, rows};
use crate::with_vectors;

/// Vectors side by side in a tile.
const ACROSS: usize = 3;
/// Multiply-adds a chunk should have.
const WORK: usize = 1 << 19;
/// Bytes of prepared images that are kept together: about half of a second-level cache.
const TOGETHER: usize = 256 << 10;

/// How one image lies in memory once padded: rows are split by the remainder of the column by the stride, so
/// that neighbouring windows read neighbouring elements.
struct Padded {
    depth: usize,
    /// Planes, rows, and elements between a row and the next.
    planes: usize,
    rows: usize,
    row: usize,
    /// Elements between the parts of a row.
    phase: usize,
    lanes: usize,
    /// Vectors along a row of outputs.
    across: usize,
}

impl Padded {
    fn new(g: &Geometry, lanes: usize) -> Padded {
        let reach = |axis: usize| (g.kernel[axis] - 1) * g.dilate[axis];
        let across = g.output[2].div_ceil(lanes);
        let phase = across * lanes + reach(2) / g.stride[2] + 1;
        Padded {
            depth: g.depth(),
            planes: (g.output[0] - 1) * g.stride[0] + reach(0) + 1,
            rows: (g.output[1] - 1) * g.stride[1] + reach(1) + 1,
            row: phase * g.stride[2],
            phase,
            lanes,
            across,
        }
    }

    fn channel(&self) -> usize {
        self.planes * self.rows * self.row
    }

    fn size(&self) -> usize {
        self.depth * self.channel()
    }

    /// Vectors that the outputs of one channel take.
    fn vectors(&self, g: &Geometry) -> usize {
        g.output[0] * g.output[1] * self.across
    }

    /// Where the window of vector `v` begins.
    fn start(&self, g: &Geometry, v: usize) -> usize {
        let (line, x) = (v / self.across, v % self.across);
        let (d, h) = (line / g.output[1], line % g.output[1]);
        (d * g.stride[0] * self.rows + h * g.stride[1]) * self.row + x * self.lanes
    }

    /// The first output of vector `v`, and how many of its lanes are outputs.
    fn outputs(&self, g: &Geometry, v: usize) -> (usize, usize) {
        let (line, x) = (v / self.across, v % self.across * self.lanes);
        (line * g.output[2] + x, self.lanes.min(g.output[2] - x))
    }

    /// What each (channel, place in the window) adds to a window's start.
    fn offsets(&self, g: &Geometry) -> Vec<usize> {
        let mut out = Vec::with_capacity(self.depth * g.window());
        for c in 0..self.depth {
            for d in 0..g.kernel[0] {
                for h in 0..g.kernel[1] {
                    for w in (0..g.kernel[2]).map(|w| w * g.dilate[2]) {
                        let line = (c * self.planes + d * g.dilate[0]) * self.rows + h * g.dilate[1];
                        out.push(line * self.row + w % g.stride[2] * self.phase + w / g.stride[2]);
                    }
                }
            }
        }
        out
    }

    /// Copies an image with its padding.
    fn fill<T: Real>(&self, g: &Geometry, x: &[T], to: &mut [T]) {
        let ([id, ih, iw], [pd, ph, pw], step) = (g.input, g.pad, g.stride[2]);
        for (line, to) in to.chunks_exact_mut(self.row).enumerate() {
            let (c, d, h) =
                (line / (self.planes * self.rows), line / self.rows % self.planes, line % self.rows);
            let (d, h) = (d.wrapping_sub(pd), h.wrapping_sub(ph));
            if d >= id || h >= ih {
                to.fill(T::default());
                continue;
            }
            let from = &x[((c * id + d) * ih + h) * iw..][..iw];
            for (phase, to) in to.chunks_exact_mut(self.phase).enumerate() {
                // Element i is column i * step + phase - pad.
                let skip = pw.saturating_sub(phase).div_ceil(step).min(to.len());
                let end = (iw + pw).saturating_sub(phase).div_ceil(step).clamp(skip, to.len());
                to[..skip].fill(T::default());
                to[end..].fill(T::default());
                let first = skip * step + phase - pw.min(skip * step + phase);
                if step == 1 {
                    to[skip..end].copy_from_slice(&from[first..first + end - skip]);
                } else {
                    let values = from[first.min(iw)..].iter().step_by(step);
                    to[skip..end].iter_mut().zip(values).for_each(|(to, &x)| *to = x);
                }
            }
        }
    }
}

/// Whether rows of this many outputs leave few lanes empty.
pub fn fits<T: Real>(outputs: usize) -> bool {
    let lanes = lanes::<T>();
    outputs * 4 >= outputs.div_ceil(lanes) * lanes * 3
}

/// Weights by blocks of filters: for each block of each group, rows (channel, place) of one number per filter.
pub struct Packed<T> {
    values: Vec<T>,
    /// First filter of each block of a group, and the end.
    blocks: Vec<usize>,
}

impl<T: Real> Packed<T> {
    /// `weight(filter, row)` is asked for all filters (group by group) and rows of a group.
    pub fn new(g: &Geometry, weight: impl Fn(usize, usize) -> T) -> Packed<T> {
        let (width, rows) = (g.width(), g.depth() * g.window());
        let count = width.div_ceil(self::rows::<T>());
        let blocks: Vec<usize> = (0..=count).map(|b| b * width / count.max(1)).collect();
        let mut values = Vec::with_capacity(g.filters * rows);
        for group in 0..g.groups {
            for pair in blocks.windows(2) {
                for row in 0..rows {
                    values.extend((pair[0]..pair[1]).map(|f| weight(group * width + f, row)));
                }
            }
        }
        Packed { values, blocks }
    }
}

/// A tile: the sums of `filters` filters at [`ACROSS`] vectors of outputs.
struct Tile<T> {
    rows: usize,
    weight: *const T,
    filters: usize,
    offsets: *const usize,
    starts: [*const T; ACROSS],
    /// Where the first filter's sums at each vector go, how many of them count, and how far the next filter's are.
    out: [*mut T; ACROSS],
    valid: [usize; ACROSS],
    stride: usize,
    /// What is added for each filter; may be null.
    bias: *const T,
    one: T,
}

/// # Safety
/// The tile's pointers are valid for its sizes; `M` filters.
#[inline(always)]
unsafe fn sums<V: Vector, const M: usize>(t: &Tile<V::Item>) {
    // SAFETY: the caller's.
    unsafe {
        let mut sums = [[V::zero(); ACROSS]; M];
        for row in 0..t.rows {
            let (at, weight) = (*t.offsets.add(row), t.weight.add(row * M));
            let x: [V; ACROSS] =
                [V::load(t.starts[0].add(at)), V::load(t.starts[1].add(at)), V::load(t.starts[2].add(at))];
            for m in 0..M {
                let w = V::splat(*weight.add(m));
                for j in 0..ACROSS {
                    sums[m][j] = w.multiply_add(x[j], sums[m][j]);
                }
            }
        }
        for m in 0..M {
            let b = if t.bias.is_null() { V::zero() } else { V::splat(*t.bias.add(m)) };
            for j in 0..ACROSS {
                let sum =
                    if t.bias.is_null() { sums[m][j] } else { b.multiply_add(V::splat(t.one), sums[m][j]) };
                sum.store_first(t.out[j].add(m * t.stride), t.valid[j]);
            }
        }
    }
}

/// # Safety
/// As [`sums`], for the tile's own number of filters.
#[inline(always)]
unsafe fn tile_body<V: Vector>(t: &Tile<V::Item>) {
    // SAFETY: the caller's.
    unsafe {
        match t.filters {
            1 => sums::<V, 1>(t),
            2 => sums::<V, 2>(t),
            3 => sums::<V, 3>(t),
            4 => sums::<V, 4>(t),
            // A set of few registers asks for no more.
            _ if V::ROWS == 4 => {}
            5 => sums::<V, 5>(t),
            6 => sums::<V, 6>(t),
            7 => sums::<V, 7>(t),
            _ => sums::<V, 8>(t),
        }
    }
}

with_vectors! {
    /// # Safety
    /// As [`sums`], for the tile's own number of filters.
    unsafe fn tile<T>(t: &Tile<T>) = tile_body
}

/// Sets the output to the convolution of `x` with packed weights, plus `bias` for each filter.
pub fn forward<T: Real>(
    g: &Geometry,
    x: &[T],
    w: &Packed<T>,
    bias: Option<&[T]>,
    y: Shared<T>,
    one: T,
    par: &dyn Parallel,
) {
    let lanes = lanes::<T>();
    let padded = Padded::new(g, lanes);
    let (offsets, vectors) = (padded.offsets(g), padded.vectors(g));
    let blocks = w.blocks.len() - 1;
    // Several small images at once; a part of the filters where there are few images.
    let images = g.samples * g.groups;
    let work = g.width() * offsets.len() * g.positions();
    let batch = (TOGETHER / (padded.size() * size_of::<T>()).max(1)).clamp(1, (images / 16).max(1));
    let batch = batch.min((4 * WORK / work.max(1)).max(1));
    let parts = (16 / images.max(1)).clamp(1, blocks.max(1)).min((work / WORK).max(1));
    let units = images.div_ceil(batch) * parts;
    split(par, units, (WORK / (work * batch / parts).max(1)).max(1), |range| {
        let mut space = vec![T::default(); padded.size() * batch];
        let mut filled = usize::MAX;
        for unit in range {
            let (first, part) = (unit / parts * batch, unit % parts);
            let count = batch.min(images - first);
            if filled != first {
                for i in 0..count {
                    let image = &x[(first + i) * g.depth() * g.pixels()..];
                    padded.fill(g, image, &mut space[i * padded.size()..(i + 1) * padded.size()]);
                }
                filled = first;
            }
            let own = part * blocks / parts..(part + 1) * blocks / parts;
            // Groups have weights of their own, so that a tile stays within one image there.
            let piece = if g.groups == 1 { count } else { 1 };
            for image in (0..count).step_by(piece) {
                let run = Run { g, padded: &padded, offsets: &offsets, w, bias, y, vectors, one };
                run.images(first + image, piece, &space[image * padded.size()..], own.clone());
            }
        }
    });
}

/// What the tiles of one call have in common.
struct Run<'a, T> {
    g: &'a Geometry,
    padded: &'a Padded,
    offsets: &'a [usize],
    w: &'a Packed<T>,
    bias: Option<&'a [T]>,
    y: Shared<T>,
    vectors: usize,
    one: T,
}

impl<T: Real> Run<'_, T> {
    /// All outputs of `count` prepared images (and groups) from `first` on, for some blocks of filters.
    fn images(&self, first: usize, count: usize, space: &[T], blocks: std::ops::Range<usize>) {
        let (g, padded) = (self.g, self.padded);
        let (rows, positions) = (self.offsets.len(), g.positions());
        let group = first % g.groups;
        let total = count * self.vectors;
        for from in (0..total).step_by(ACROSS) {
            // A tile beyond the end computes its last vector again.
            let at: [usize; ACROSS] = std::array::from_fn(|j| (from + j).min(total - 1));
            let starts = at.map(|v| {
                let start = v / self.vectors * padded.size() + padded.start(g, v % self.vectors);
                space[start..].as_ptr()
            });
            let places = at.map(|v| {
                let (place, valid) = padded.outputs(g, v % self.vectors);
                // Images of all groups lie one after the other, and so do the filters of all groups.
                ((first + v / self.vectors) * g.width() * positions + place, valid)
            });
            for block in blocks.clone() {
                let (low, high) = (self.w.blocks[block], self.w.blocks[block + 1]);
                let bias =
                    self.bias.map_or(std::ptr::null(), |bias| bias[group * g.width() + low..].as_ptr());
                // SAFETY: a vector's windows lie within its prepared image, whose rows have room for whole
                // vectors; the weights are packed for this block; outputs are of this unit's own images and
                // filters.
                unsafe {
                    tile(&Tile {
                        rows,
                        weight: self.w.values[(group * g.width() + low) * rows..].as_ptr(),
                        filters: high - low,
                        offsets: self.offsets.as_ptr(),
                        starts,
                        out: places.map(|(place, _)| self.y.at((place + low * positions) as isize)),
                        valid: places.map(|(_, valid)| valid),
                        stride: positions,
                        bias,
                        one: self.one,
                    })
                };
            }
        }
    }
}

/// The convolution of output gradients that gives the data's, where it is one: unit strides, no more padding
/// than the window reaches.
pub fn mirrored(g: &Geometry) -> Option<Geometry> {
    let reach: [usize; 3] = std::array::from_fn(|i| (g.kernel[i] - 1) * g.dilate[i]);
    let fits = g.stride == [1; 3] && (0..3).all(|i| g.pad[i] <= reach[i]);
    fits.then(|| Geometry {
        channels: g.filters,
        filters: g.channels,
        input: g.output,
        output: g.input,
        pad: std::array::from_fn(|i| reach[i] - g.pad[i]),
        ..*g
    })
}

/// The weight of [`mirrored`]: channels and filters change places, windows are read backwards.
pub fn mirrored_weight<T: Real>(g: &Geometry, back: &Geometry, w: &[T]) -> Packed<T> {
    let (window, depth, width) = (g.window(), g.depth(), g.width());
    Packed::new(back, |channel, row| {
        let (group, channel) = (channel / depth, channel % depth);
        let (filter, place) = (row / window, row % window);
        w[((group * width + filter) * depth + channel) * window + window - 1 - place]
    })
}

/// Dot products over vectors of positions: output gradients of some filters with shifted inputs.
struct Dots<'a, T> {
    /// Where each vector's window begins in the prepared images.
    starts: &'a [usize],
    /// How many lanes of each vector count.
    valid: &'a [usize],
    x: *const T,
    offsets: &'a [usize],
    /// Prepared gradients: filter by filter, vector by vector; unused lanes are zeros.
    g: *const T,
    filters: usize,
    /// Sums are added to `out[filter * offsets + offset]`.
    out: *mut T,
}

/// # Safety
/// The pointers are valid for the sizes.
#[inline(always)]
unsafe fn dots_of<V: Vector, const M: usize, const N: usize>(d: &Dots<V::Item>) {
    let (columns, count) = (d.offsets.len(), d.starts.len());
    for f in (0..d.filters).step_by(M) {
        for c in (0..columns).step_by(N) {
            // Rows and columns beyond the end repeat the last ones; their sums are dropped.
            let rows: [usize; M] = std::array::from_fn(|m| (f + m).min(d.filters - 1));
            let offsets: [usize; N] = std::array::from_fn(|n| d.offsets[(c + n).min(columns - 1)]);
            // SAFETY: windows lie within the prepared images (the caller's contract).
            unsafe {
                let mut sums = [[V::zero(); N]; M];
                let g = rows.map(|row| d.g.add(row * count * V::LANES));
                let x = offsets.map(|offset| d.x.add(offset));
                for v in 0..count {
                    let (start, valid) = (*d.starts.get_unchecked(v), *d.valid.get_unchecked(v));
                    let mut gs = [V::zero(); M];
                    for m in 0..M {
                        gs[m] = V::load(g[m].add(v * V::LANES));
                    }
                    for n in 0..N {
                        // Lanes beyond the row read other places, which must not count even if infinite.
                        let x = V::first(x[n].add(start), valid);
                        for m in 0..M {
                            sums[m][n] = gs[m].multiply_add(x, sums[m][n]);
                        }
                    }
                }
                for m in 0..M.min(d.filters - f) {
                    for n in 0..N.min(columns - c) {
                        *d.out.add((f + m) * columns + c + n) += sums[m][n].total();
                    }
                }
            }
        }
    }
}

/// # Safety
/// As [`dots_of`].
#[inline(always)]
unsafe fn dots_body<V: Vector>(d: &Dots<V::Item>) {
    // SAFETY: the caller's.
    unsafe { if V::DOTS[0] == 4 { dots_of::<V, 4, 6>(d) } else { dots_of::<V, 3, 3>(d) } }
}

with_vectors! {
    /// # Safety
    /// As [`dots_of`].
    unsafe fn dots<T>(d: &Dots<T>) = dots_body
}

/// Whether images and gradients of one group are small enough to be prepared as a whole.
pub fn weight_fits<T: Real>(g: &Geometry) -> bool {
    let padded = Padded::new(g, lanes::<T>());
    fits::<T>(g.output[2])
        && (padded.size() + g.width() * padded.vectors(g) * padded.lanes) * size_of::<T>() <= 2 * TOGETHER
}

/// Adds to `out`, (groups, filters, rows), the weight's gradient over the samples of `range`.
pub fn weight_gradient<T: Real>(
    g: &Geometry,
    x: &[T],
    gy: &[T],
    range: std::ops::Range<usize>,
    out: &mut [T],
) {
    let lanes = lanes::<T>();
    let padded = Padded::new(g, lanes);
    let (offsets, vectors, positions) = (padded.offsets(g), padded.vectors(g), g.positions());
    let bytes = (padded.size() + g.width() * vectors * lanes) * size_of::<T>();
    let batch = (2 * TOGETHER / bytes.max(1)).clamp(1, range.len().max(1));
    let mut images = vec![T::default(); padded.size() * batch];
    let mut gradients = vec![T::default(); g.width() * vectors * lanes * batch];
    let places: Vec<(usize, usize)> = (0..vectors).map(|v| padded.outputs(g, v)).collect();
    for group in 0..g.groups {
        for first in range.clone().step_by(batch) {
            let count = batch.min(range.end - first);
            let (mut starts, mut valid) = (Vec::new(), Vec::new());
            for i in 0..count {
                let image = &x[((first + i) * g.channels + group * g.depth()) * g.pixels()..];
                padded.fill(g, image, &mut images[i * padded.size()..(i + 1) * padded.size()]);
                starts.extend((0..vectors).map(|v| i * padded.size() + padded.start(g, v)));
                valid.extend(places.iter().map(|p| p.1));
                for f in 0..g.width() {
                    let from =
                        &gy[((first + i) * g.filters + group * g.width() + f) * positions..][..positions];
                    let to = &mut gradients[(f * count + i) * vectors * lanes..][..vectors * lanes];
                    for (to, &(place, n)) in to.chunks_exact_mut(lanes).zip(&places) {
                        to[..n].copy_from_slice(&from[place..place + n]);
                        to[n..].fill(T::default());
                    }
                }
            }
            let size = g.width() * offsets.len();
            let d = Dots {
                starts: &starts,
                valid: &valid,
                x: images.as_ptr(),
                offsets: &offsets,
                g: gradients.as_ptr(),
                filters: g.width(),
                out: out[group * size..(group + 1) * size].as_mut_ptr(),
            };
            // SAFETY: windows of every vector lie within the prepared images; gradients are there for every
            // filter and vector; `out` has a place for every filter and offset.
            unsafe { dots(&d) };
        }
    }
}
