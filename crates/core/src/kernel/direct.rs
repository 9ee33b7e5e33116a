//! Convolution without columns: images are copied once with their padding, and tiles of sums stay in registers
//! while the windows are read in place. For rows of outputs that fill vectors well; [`super::conv`] decides.
//!
//! Every result is one sum in a fixed order (channel, then place in the window), whatever tile it falls in.

mod weight;

use crate::kernel::conv::{Geometry, Real, finish};
use crate::kernel::moves::Shared;
use crate::kernel::scratch::with_elements;
use crate::kernel::tail::Tail;
use crate::kernel::walk::split;
use crate::par::Parallel;
use crate::simd::vector::{Vector, lanes, rows};
use crate::with_vectors;
pub use weight::{weight_fits, weight_gradient};

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

    /// For each vector of a band of `g` from output row `top` on: its first output, and how many of its lanes are
    /// outputs; none in rows beyond the last.
    fn places(&self, g: &Geometry, band: &Geometry, top: usize) -> Vec<(usize, usize)> {
        let [_, rows, ow] = g.output;
        let place = |v| {
            let (line, x) = (v / self.across, v % self.across * self.lanes);
            let (d, h) = (line / band.output[1], line % band.output[1] + top);
            if h < rows { ((d * rows + h) * ow + x, self.lanes.min(ow - x)) } else { (0, 0) }
        };
        (0..self.vectors(band)).map(place).collect()
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

    /// Copies what the outputs from row `top` on see of an image, with its padding.
    fn fill<T: Real>(&self, g: &Geometry, x: &[T], top: usize, to: &mut [T]) {
        let ([id, ih, iw], [pd, ph, pw], step) = (g.input, g.pad, g.stride[2]);
        for (line, to) in to.chunks_exact_mut(self.row).enumerate() {
            let (c, d, h) =
                (line / (self.planes * self.rows), line / self.rows % self.planes, line % self.rows);
            let (d, h) = (d.wrapping_sub(pd), (h + top * g.stride[1]).wrapping_sub(ph));
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

/// Whether rows of this many outputs leave so few lanes empty that this costs less than columns, which each of the
/// filters of a group reads.
pub fn fits<T: Real>(outputs: usize, filters: usize) -> bool {
    // Filters whose sums take the time that laying out their columns does.
    const LAYING: usize = 20;
    let lanes = outputs.next_multiple_of(lanes::<T>());
    outputs * 4 >= lanes * 3 || lanes * filters < outputs * (filters + LAYING)
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

/// Sets the output to the convolution of `x` with packed weights, plus `bias` for each filter; then the tail runs
/// over it.
pub fn forward<T: Real>(
    g: &Geometry,
    x: &[T],
    w: &Packed<T>,
    bias: Option<&[T]>,
    y: Shared<T>,
    one: T,
    tail: Option<&Tail>,
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
        with_elements([padded.size() * batch], |[space]| {
            let mut filled = usize::MAX;
            for unit in range {
                let (first, part) = (unit / parts * batch, unit % parts);
                let count = batch.min(images - first);
                if filled != first {
                    for i in 0..count {
                        let image = &x[(first + i) * g.depth() * g.pixels()..];
                        padded.fill(g, image, 0, &mut space[i * padded.size()..(i + 1) * padded.size()]);
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
                let (low, high) = (w.blocks[own.start], w.blocks[own.end]);
                let (place, image) = (first * g.width() + low, g.width() * g.positions());
                let part = [count, (high - low) * g.positions()];
                // SAFETY: this unit's own outputs, finished.
                unsafe { finish(tail, place * g.positions(), part, image) };
            }
        })
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
