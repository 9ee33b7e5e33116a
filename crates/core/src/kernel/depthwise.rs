//! Convolution of each channel with filters of its own, and its adjoints: a plane is copied once with its padding, in
//! parts by the remainders of row and column by the strides, so that neighbouring windows have neighbouring elements
//! everywhere; the sums then run over all rows as one, and those at the rows' ends are dropped.
//!
//! Every result is one sum in a fixed order (place in the window; for weights, rows and samples).

use crate::kernel::conv::{Geometry, Real, finish};
use crate::kernel::moves::Shared;
use crate::kernel::tail::Tail;
use crate::kernel::walk::split;
use crate::par::Parallel;
use crate::simd::vector::Vector;
use crate::with_vectors;
use std::ops::Range;

/// Multiply-adds a chunk should have.
const WORK: usize = 1 << 18;
/// Vectors of sums that are computed together.
const ACROSS: usize = 4;
/// Places in the window whose dot products are computed together.
const PLACES: usize = 9;
/// Elements past the end of a plane that whole vectors may touch.
const SLACK: usize = 16 * ACROSS;

/// Whether a convolution over rows and columns has one channel in a group, and filters that are worth it.
pub fn fits(g: &Geometry) -> bool {
    g.depth() == 1 && g.window() > 1 && [g.input[0], g.kernel[0], g.output[0]] == [1; 3] && g.pad[0] == 0
}

/// How far a window reaches beyond its first row and column.
fn reach(g: &Geometry) -> [usize; 2] {
    [1, 2].map(|axis| (g.kernel[axis] - 1) * g.dilate[axis])
}

/// Where rows of an array come to lie in a plane: row i, column j at `first + i * row + j * column`.
#[derive(Clone, Copy)]
struct Grid {
    rows: usize,
    columns: usize,
    first: usize,
    row: usize,
    column: usize,
}

/// A plane with its padding, in `stride` times `stride` parts of `rows` times `row` elements.
#[derive(Clone, Copy)]
struct Split {
    rows: usize,
    row: usize,
    stride: [usize; 2],
    pad: [usize; 2],
    input: [usize; 2],
}

impl Split {
    fn new(g: &Geometry) -> Split {
        let [rh, rw] = reach(g);
        Split {
            rows: g.output[1] + rh / g.stride[1],
            row: g.output[2] + rw / g.stride[2],
            stride: [g.stride[1], g.stride[2]],
            pad: [g.pad[1], g.pad[2]],
            input: [g.input[1], g.input[2]],
        }
    }

    fn size(&self) -> usize {
        self.stride[0] * self.stride[1] * self.rows * self.row
    }

    /// Where element (h, w) of the padded plane is.
    fn at(&self, h: usize, w: usize) -> usize {
        let [sh, sw] = self.stride;
        ((h % sh * sw + w % sw) * self.rows + h / sh) * self.row + w / sw
    }

    /// What each place in the window adds to its start.
    fn offsets(&self, g: &Geometry) -> Vec<usize> {
        let [_, kh, kw] = g.kernel;
        (0..kh * kw).map(|k| self.at(k / kw * g.dilate[1], k % kw * g.dilate[2])).collect()
    }
}

/// An image to copy into a plane, whose padding is there already.
struct Fill<T> {
    split: Split,
    image: *const T,
    plane: *mut T,
}

/// # Safety
/// The image and the plane have the sizes of the split.
#[inline(always)]
unsafe fn fill_body<V: Vector>(f: &Fill<V::Item>) {
    let s = &f.split;
    let ([ih, iw], [sh, sw], [ph, pw]) = (s.input, s.stride, s.pad);
    for part in 0..sw {
        // Columns first..end of a part's rows are columns of the image.
        let first = pw.saturating_sub(part).div_ceil(sw);
        let end = (iw + pw).saturating_sub(part).div_ceil(sw).min(s.row);
        if first >= end {
            continue;
        }
        let column = first * sw + part - pw;
        for i in 0..ih {
            let h = i + ph;
            if h / sh >= s.rows {
                continue;
            }
            // SAFETY: the row's elements in the image, and their places in the plane.
            unsafe {
                let to = f.plane.add(((h % sh * sw + part) * s.rows + h / sh) * s.row);
                let from = f.image.add(i * iw + column);
                for x in (first..end).step_by(V::LANES) {
                    let (n, from) = (V::LANES.min(end - x), from.add((x - first) * sw));
                    let values = if sw == 1 { V::first(from, n) } else { spaced::<V>(from, sw, n) };
                    values.store_first(to.add(x), n);
                }
            }
        }
    }
}

with_vectors! {
    /// # Safety
    /// As [`fill_body`].
    unsafe fn fill_split<T>(f: &Fill<T>) = fill_body
}

/// Sums over a plane: `len` of them.
struct Sums<'a, T> {
    plane: *const T,
    /// What each place in the window adds to a sum's start, and its weight.
    offsets: &'a [usize],
    weight: *const T,
    len: usize,
    out: *mut T,
}

/// # Safety
/// The plane has every window of the sums and [`SLACK`] more elements, and so has `out` for the sums.
#[inline(always)]
unsafe fn sums_body<V: Vector>(s: &Sums<V::Item>) {
    let mut x = 0;
    while x < s.len {
        // SAFETY: the caller's.
        x += unsafe {
            match (s.len - x).div_ceil(V::LANES) {
                1 => sums_at::<V, 1>(s, x),
                2 => sums_at::<V, 2>(s, x),
                3 => sums_at::<V, 3>(s, x),
                _ => sums_at::<V, ACROSS>(s, x),
            }
        };
    }
}

/// The sums of N vectors from x on; how many they are.
///
/// # Safety
/// As [`sums_body`].
#[inline(always)]
unsafe fn sums_at<V: Vector, const N: usize>(s: &Sums<V::Item>, x: usize) -> usize {
    // SAFETY: the caller's.
    unsafe {
        let mut sums = [V::zero(); N];
        for (k, &offset) in s.offsets.iter().enumerate() {
            let (w, from) = (V::splat(*s.weight.add(k)), s.plane.add(x + offset));
            for j in 0..N {
                sums[j] = w.multiply_add(V::load(from.add(j * V::LANES)), sums[j]);
            }
        }
        for j in 0..N {
            sums[j].store_first(s.out.add(x + j * V::LANES), V::LANES);
        }
    }
    N * V::LANES
}

with_vectors! {
    /// # Safety
    /// As [`sums_body`].
    unsafe fn sums<T>(s: &Sums<T>) = sums_body
}

/// Rows to copy: between contiguous ones of `grid.columns` and a plane.
struct Copy<T> {
    plane: *mut T,
    rows: *mut T,
    grid: Grid,
    /// What is added to what is taken from the plane.
    bias: T,
    one: T,
}

/// # Safety
/// The plane has every place of the grid (and [`SLACK`] more elements), and `rows` its rows.
#[inline(always)]
unsafe fn put_body<V: Vector>(c: &Copy<V::Item>) {
    let g = &c.grid;
    // SAFETY: the caller's.
    unsafe {
        for i in 0..g.rows {
            let (to, from) = (c.plane.add(g.first + i * g.row), c.rows.add(i * g.columns));
            if g.column == 1 {
                for x in (0..g.columns).step_by(V::LANES) {
                    let n = V::LANES.min(g.columns - x);
                    V::first(from.add(x), n).store_first(to.add(x), n);
                }
            } else {
                for j in 0..g.columns {
                    *to.add(j * g.column) = *from.add(j);
                }
            }
        }
    }
}

with_vectors! {
    /// Copies rows into a plane.
    ///
    /// # Safety
    /// As [`put_body`].
    unsafe fn put<T>(c: &Copy<T>) = put_body
}

/// # Safety
/// As [`put_body`].
#[inline(always)]
unsafe fn take_body<V: Vector>(c: &Copy<V::Item>) {
    let g = &c.grid;
    // SAFETY: the caller's.
    unsafe {
        let (bias, one) = (V::splat(c.bias), V::splat(c.one));
        for i in 0..g.rows {
            let (from, to) = (c.plane.add(g.first + i * g.row), c.rows.add(i * g.columns));
            for x in (0..g.columns).step_by(V::LANES) {
                let n = V::LANES.min(g.columns - x);
                let from = from.add(x);
                bias.multiply_add(one, V::load(from)).store_first(to.add(x), n);
            }
        }
    }
}

/// `n` elements that are `step` apart.
///
/// # Safety
/// They are readable.
#[inline(always)]
unsafe fn spaced<V: Vector>(from: *const V::Item, step: usize, n: usize) -> V {
    let mut values = [V::Item::default(); 16];
    // SAFETY: the caller's; no vector has more lanes than 16.
    unsafe {
        if step == 2 && n == V::LANES {
            for l in 0..V::LANES {
                values[l] = *from.add(2 * l);
            }
        } else {
            for l in 0..n {
                values[l] = *from.add(step * l);
            }
        }
        V::load(values.as_ptr())
    }
}

with_vectors! {
    /// Copies rows out of a plane.
    ///
    /// # Safety
    /// As [`put_body`], with [`SLACK`] more elements in the plane.
    unsafe fn take<T>(c: &Copy<T>) = take_body
}

/// What each place in the window adds to its start, in rows of `row` elements.
fn offsets(g: &Geometry, row: usize) -> Vec<usize> {
    let [_, kh, kw] = g.kernel;
    (0..kh * kw).map(|k| k / kw * g.dilate[1] * row + k % kw * g.dilate[2]).collect()
}

/// Sets the output to the convolution of `x` with `w`, plus `bias` for each filter; then the tail runs over it.
pub fn forward<T: Real>(
    g: &Geometry,
    x: &[T],
    w: &[T],
    bias: Option<&[T]>,
    y: Shared<T>,
    one: T,
    tail: Option<&Tail>,
    par: &dyn Parallel,
) {
    let (s, [_, oh, ow]) = (Split::new(g), g.output);
    let (offsets, window, positions) = (s.offsets(g), g.window(), g.positions());
    let grain = (WORK / (g.width() * window * positions).max(1)).max(1);
    split(par, g.samples * g.groups, grain, |range| {
        let mut plane = vec![T::default(); s.size() + SLACK];
        let mut found = vec![T::default(); s.rows * s.row + SLACK];
        for unit in range.clone() {
            let group = unit % g.groups;
            // SAFETY: an image and a plane of the split's sizes, in which every window lies; outputs are this
            // unit's own.
            unsafe {
                let image = x[unit * g.pixels()..].as_ptr();
                fill_split(&Fill { split: s, image, plane: plane.as_mut_ptr() });
                for f in 0..g.width() {
                    let filter = group * g.width() + f;
                    sums(&Sums {
                        plane: plane.as_ptr(),
                        offsets: &offsets,
                        weight: w[filter * window..].as_ptr(),
                        len: (oh - 1) * s.row + ow,
                        out: found.as_mut_ptr(),
                    });
                    take(&Copy {
                        plane: found.as_mut_ptr(),
                        rows: y.at(((unit * g.width() + f) * positions) as isize),
                        grid: Grid { rows: oh, columns: ow, first: 0, row: s.row, column: 1 },
                        bias: bias.map_or(T::default(), |bias| bias[filter]),
                        one,
                    });
                }
            }
        }
        let size = g.width() * positions;
        // SAFETY: this chunk's own outputs, finished.
        unsafe { finish(tail, range.start * size, [range.len(), size], size) };
    });
}

/// Whether [`data_gradient`] can be used: one filter for each channel, no more padding than the window reaches.
pub fn gradient_fits(g: &Geometry) -> bool {
    let [rh, rw] = reach(g);
    fits(g) && g.width() == 1 && g.pad[1] <= rh && g.pad[2] <= rw
}

/// Sets `x` to the adjoint in the data: the output gradients, set apart by the strides, with the window turned round.
pub fn data_gradient<T: Real>(g: &Geometry, gy: &[T], w: &[T], x: Shared<T>, one: T, par: &dyn Parallel) {
    let ([_, ih, iw], [_, oh, ow], [_, sh, sw]) = (g.input, g.output, g.stride);
    let [rh, rw] = reach(g);
    let (rows, row) = (ih + rh, iw + rw);
    let (offsets, window, positions) = (offsets(g, row), g.window(), g.positions());
    let first = (rh - g.pad[1]) * row + rw - g.pad[2];
    let grain = (WORK / (window * ih * iw).max(1)).max(1);
    split(par, g.samples * g.groups, grain, |range| {
        let mut plane = vec![T::default(); rows * row + SLACK];
        let mut found = vec![T::default(); rows * row + SLACK];
        for unit in range {
            let channel = unit % g.groups;
            let turned: Vec<T> = w[channel * window..][..window].iter().rev().copied().collect();
            // SAFETY: an output's place, set apart, is below the input's size plus the reach; every window lies in
            // the plane; the image is this unit's own.
            unsafe {
                let from = gy[unit * positions..].as_ptr().cast_mut();
                put(&Copy {
                    plane: plane.as_mut_ptr(),
                    rows: from,
                    grid: Grid { rows: oh, columns: ow, first, row: sh * row, column: sw },
                    bias: T::default(),
                    one,
                });
                sums(&Sums {
                    plane: plane.as_ptr(),
                    offsets: &offsets,
                    weight: turned.as_ptr(),
                    len: (ih - 1) * row + iw,
                    out: found.as_mut_ptr(),
                });
                take(&Copy {
                    plane: found.as_mut_ptr(),
                    rows: x.at((unit * ih * iw) as isize),
                    grid: Grid { rows: ih, columns: iw, first: 0, row, column: 1 },
                    bias: T::default(),
                    one,
                });
            }
        }
    });
}

/// Products of a plane's rows with output gradients, summed for up to [`PLACES`] places in the window.
struct Dots<'a, T> {
    plane: *const T,
    offsets: &'a [usize],
    /// Rows of a plane, how far apart, and outputs in each.
    rows: usize,
    row: usize,
    columns: usize,
    gy: *const T,
    /// Sums are added to `out[place]`.
    out: *mut T,
}

/// # Safety
/// The plane has every window; there are gradients for every output; `out` has an element for each offset.
#[inline(always)]
unsafe fn dots_body<V: Vector>(d: &Dots<V::Item>) {
    // SAFETY: the caller's; loads of a row's last vector are cut off at its end.
    unsafe {
        for block in (0..d.offsets.len()).step_by(PLACES) {
            // Places beyond the end repeat the last one; their sums are dropped.
            let last = d.offsets.len() - 1;
            let offsets: [usize; PLACES] = std::array::from_fn(|k| d.offsets[(block + k).min(last)]);
            let mut sums = [V::zero(); PLACES];
            for i in 0..d.rows {
                let (plane, gy) = (d.plane.add(i * d.row), d.gy.add(i * d.columns));
                let mut x = 0;
                while x + V::LANES <= d.columns {
                    let g = V::load(gy.add(x));
                    for k in 0..PLACES {
                        sums[k] = g.multiply_add(V::load(plane.add(x + offsets[k])), sums[k]);
                    }
                    x += V::LANES;
                }
                if x < d.columns {
                    let n = d.columns - x;
                    let g = V::first(gy.add(x), n);
                    for k in 0..PLACES {
                        sums[k] = g.multiply_add(V::first(plane.add(x + offsets[k]), n), sums[k]);
                    }
                }
            }
            for k in 0..PLACES.min(d.offsets.len() - block) {
                *d.out.add(block + k) += sums[k].total();
            }
        }
    }
}

with_vectors! {
    /// # Safety
    /// As [`dots_body`].
    unsafe fn dots<T>(d: &Dots<T>) = dots_body
}

/// Adds to `out`, one element for each place in the window, the gradient of a channel's weight over some samples.
pub fn weight_gradient<T: Real>(
    g: &Geometry,
    x: &[T],
    gy: &[T],
    channel: usize,
    samples: Range<usize>,
    out: &mut [T],
) {
    let (s, [_, oh, ow]) = (Split::new(g), g.output);
    let offsets = s.offsets(g);
    let mut plane = vec![T::default(); s.size() + SLACK];
    for n in samples {
        let image = x[(n * g.channels + channel) * g.pixels()..].as_ptr();
        // SAFETY: an image and a plane of the split's sizes, in which every window lies.
        unsafe {
            fill_split(&Fill { split: s, image, plane: plane.as_mut_ptr() });
            dots(&Dots {
                plane: plane.as_ptr(),
                offsets: &offsets,
                rows: oh,
                row: s.row,
                columns: ow,
                gy: gy[(n * g.filters + channel) * oh * ow..].as_ptr(),
                out: out.as_mut_ptr(),
            });
        }
    }
}
