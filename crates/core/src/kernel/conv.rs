//! Convolution over one to three axes of contiguous NC(D)HW arrays: the product of the weight with windows
//! laid out as columns, and its two adjoints. Work is cut by shape alone; sums run in a fixed order. Where rows of
//! outputs fill vectors well, [`super::direct`] computes the same without columns; groups of one channel are
//! [`super::depthwise`]'s.

use crate::kernel::depthwise;
use crate::kernel::direct::{self, Packed};
use crate::kernel::gemm::{Mat, Product};
use crate::kernel::moves::Shared;
use crate::kernel::scratch::{with_elements, with_scratch};
use crate::kernel::tail::Tail;
use crate::kernel::walk::split;
use crate::par::Parallel;
use crate::simd::vector::{Vector, Wide};
use crate::with_vectors;
use std::ops::Range;

/// The sizes of a convolution; axes that are not there have size 1, stride 1 and no padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    pub samples: usize,
    pub channels: usize,
    pub filters: usize,
    pub groups: usize,
    pub input: [usize; 3],
    pub kernel: [usize; 3],
    pub output: [usize; 3],
    pub stride: [usize; 3],
    pub dilate: [usize; 3],
    pub pad: [usize; 3],
}

/// A type convolutions are computed in.
pub trait Real: Product + Wide + std::ops::Add<Output = Self> {}
impl Real for f32 {}
impl Real for f64 {}

/// Elements of a column buffer: about what a second-level cache holds of float32.
const BUFFER: usize = 1 << 16;
/// Multiply-adds a chunk should have.
const WORK: usize = 1 << 19;

impl Geometry {
    pub fn pixels(&self) -> usize {
        self.input.iter().product()
    }
    pub fn positions(&self) -> usize {
        self.output.iter().product()
    }
    pub fn window(&self) -> usize {
        self.kernel.iter().product()
    }
    /// Input channels of a group.
    pub fn depth(&self) -> usize {
        self.channels / self.groups
    }
    /// Filters of a group.
    pub fn width(&self) -> usize {
        self.filters / self.groups
    }
    /// Whether the columns are the input itself.
    fn is_pointwise(&self) -> bool {
        self.window() == 1 && self.stride == [1; 3] && self.pad == [0; 3]
    }

    /// Positions whose columns, `rows` high, fit the buffer.
    fn block(&self, rows: usize) -> usize {
        (BUFFER / rows.max(1)).max(64).min(self.positions()).max(1)
    }

    /// Channels that a unit of the adjoints handles: enough work, and enough units for many threads.
    fn channel_block(&self) -> usize {
        let work = self.width() * self.window() * self.positions();
        (WORK / work.max(1)).clamp(1, self.depth().max(1)).max(self.depth().div_ceil(16)).max(1)
    }

    /// Calls `run(row, start, inside, count)` for the runs of output positions along the last axis within
    /// `positions`, for every row (channel of `channels`, place in the window) of the columns: `count` positions
    /// from `start` on, counted from the first of `positions`. Of these `inside` lie in the input: (how many come
    /// before them, how many they are, where the first one is), in steps of the last stride.
    #[inline(always)]
    fn for_runs(
        &self,
        channels: Range<usize>,
        positions: Range<usize>,
        mut run: impl FnMut(usize, usize, Option<(usize, usize, usize)>, usize),
    ) {
        let ([id, ih, iw], [kd, kh, kw], [_, oh, ow]) = (self.input, self.kernel, self.output);
        if positions.is_empty() {
            return;
        }
        let (line, x) = (positions.start / ow, positions.start % ow);
        let first = [line / oh, line % oh];
        let mut row = 0;
        for c in channels {
            for w in 0..kd * kh * kw {
                let (wd, wh, ww) = (w / (kh * kw), w / kw % kh, w % kw);
                // The input place of output x along the last axis is x * step + shift.
                let (step, shift) = (self.stride[2], (ww * self.dilate[2]) as isize - self.pad[2] as isize);
                let low = ((-shift).max(0) as usize).div_ceil(step);
                let high = (iw as isize - shift).max(0) as usize;
                let high = high.div_ceil(step);
                let ([mut d, mut h], mut x, mut p) = (first, x, positions.start);
                while p < positions.end {
                    let count = (ow - x).min(positions.end - p);
                    let at = |o: usize, w: usize, axis: usize| {
                        (o * self.stride[axis] + w * self.dilate[axis]).wrapping_sub(self.pad[axis])
                    };
                    let (sd, sh) = (at(d, wd, 0), at(h, wh, 1));
                    let (from, to) = (low.max(x), high.min(x + count));
                    let inside = (sd < id && sh < ih && from < to).then(|| {
                        let source = ((c * id + sd) * ih + sh) * iw;
                        (from - x, to - from, source.wrapping_add_signed((from * step) as isize + shift))
                    });
                    run(row, p - positions.start, inside, count);
                    p += count;
                    x = 0;
                    h += 1;
                    if h == oh {
                        (d, h) = (d + 1, 0);
                    }
                }
                row += 1;
            }
        }
    }

    /// Adds columns back to the places they came from.
    ///
    /// # Safety
    /// As [`lay_out`], with `x` writable.
    unsafe fn add_back<T: Real>(
        &self,
        columns: *const T,
        x: *mut T,
        channels: Range<usize>,
        positions: Range<usize>,
    ) {
        let (width, step) = (positions.len(), self.stride[2]);
        self.for_runs(channels, positions, |row, start, inside, _| {
            let Some((skip, valid, source)) = inside else { return };
            // SAFETY: runs lie within the rows of the columns; sources within the input.
            unsafe {
                let from = columns.add(row * width + start + skip);
                for i in 0..valid {
                    *x.add(source + i * step) += *from.add(i);
                }
            }
        });
    }
}

/// # Safety
/// As [`lay_out`].
#[inline(always)]
unsafe fn lay_out_body<V: Vector>(
    g: &Geometry,
    x: *const V::Item,
    columns: *mut V::Item,
    channels: &Range<usize>,
    positions: &Range<usize>,
) {
    let (width, step) = (positions.len(), g.stride[2]);
    g.for_runs(channels.clone(), positions.clone(), |row, start, inside, count| {
        let (skip, valid, source) = inside.unwrap_or((count, 0, 0));
        // SAFETY: runs lie within the rows of the columns; sources within the input.
        unsafe {
            let to = columns.add(row * width + start);
            for i in (0..skip).chain(skip + valid..count) {
                *to.add(i) = V::Item::default();
            }
            let (to, from) = (to.add(skip), x.add(source));
            if step == 1 {
                // Runs are short: a copy by masked vectors is over before one by a function begins.
                for i in (0..valid).step_by(V::LANES) {
                    let n = V::LANES.min(valid - i);
                    V::part(from.add(i), n).store_first(to.add(i), n);
                }
            } else {
                for i in 0..valid {
                    *to.add(i) = *from.add(i * step);
                }
            }
        }
    });
}

with_vectors! {
    /// Lays out the windows: rows are (channel, place in the window), columns are positions.
    ///
    /// # Safety
    /// `x` is one sample (or group) with these channels; `columns` has room for all rows and positions.
    unsafe fn lay_out<T>(
        g: &Geometry,
        x: *const T,
        columns: *mut T,
        channels: &Range<usize>,
        positions: &Range<usize>
    ) = lay_out_body
}

/// `c = a b`, or `c += a b`; matrices as (start, row stride, column stride).
///
/// # Safety
/// The matrices are valid for m by n, m by k and k by n.
unsafe fn product<T: Real>(
    sizes: [usize; 3],
    c: (*mut T, usize),
    a: (*const T, usize, usize),
    b: (*const T, usize, usize),
    add: bool,
) {
    let [m, n, k] = sizes;
    if m == 0 || n == 0 || k == 0 {
        for i in (0..m).filter(|_| !add) {
            // SAFETY: row i of c.
            unsafe { std::slice::from_raw_parts_mut(c.0.add(i * c.1), n) }.fill(T::default());
        }
        return;
    }
    let matrix =
        |(start, row, column): (*const T, usize, usize)| Mat::new(start, row as isize, column as isize);
    // SAFETY: the caller's.
    unsafe { T::block(sizes, matrix(a), matrix(b), matrix((c.0, c.1, 1)), add) }
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
    let (rows, positions) = (g.depth() * g.window(), g.positions());
    let direct = rows > 0 && g.width() > 0 && !g.is_pointwise() && direct::fits::<T>(g.output[2], g.width());
    // From a few filters on, reading a window once for all of them is worth the lanes that are left empty.
    if depthwise::fits(g) && !(direct && g.width() > 2) {
        return depthwise::forward(g, x, w, bias, y, one, tail, par);
    }
    if direct {
        let packed = Packed::new(g, |filter, row| w[filter * rows + row]);
        return direct::forward(g, x, &packed, bias, y, one, tail, par);
    }
    let block = g.block(rows);
    let blocks = positions.div_ceil(block);
    let grain = (WORK / (g.width() * rows * block).max(1)).max(1);
    split(par, g.samples * g.groups * blocks, grain, |range| {
        with_scratch(if g.is_pointwise() { 0 } else { rows * block * size_of::<T>() }, |scratch| {
            let columns = scratch.cast::<T>();
            for unit in range.clone() {
                let (image, part) =
                    (unit / blocks, unit % blocks * block..positions.min((unit % blocks + 1) * block));
                let (n, group) = (image / g.groups, image % g.groups);
                let input = &x[(n * g.channels + group * g.depth()) * g.pixels()..];
                let filters = &w[group * g.width() * rows..];
                // SAFETY: one unit writes the positions `part` of its own filters; sizes are the arrays'.
                unsafe {
                    let out = y.at(((n * g.filters + group * g.width()) * positions + part.start) as isize);
                    let sizes = [g.width(), part.len(), rows];
                    let from = if g.is_pointwise() {
                        (input.as_ptr().add(part.start), positions, 1)
                    } else {
                        lay_out(g, input.as_ptr(), columns, &(0..g.depth()), &part);
                        (columns.cast_const(), part.len(), 1)
                    };
                    product(sizes, (out, positions), (filters.as_ptr(), rows, 1), from, false);
                    if let Some(bias) = bias {
                        for f in 0..g.width() {
                            let row = std::slice::from_raw_parts_mut(out.add(f * positions), part.len());
                            let b = bias[group * g.width() + f];
                            row.iter_mut().for_each(|v| *v += b);
                        }
                    }
                }
            }
        });
        for unit in range.filter(|_| tail.is_some()) {
            let (image, start) = (unit / blocks, unit % blocks * block);
            let first = image * g.width() * positions + start;
            // SAFETY: this chunk's own results, finished.
            unsafe { finish(tail, first, [g.width(), block.min(positions - start)], positions) };
        }
    });
}

/// Runs the tail over rows of outputs that are `step` apart, from output `first` on.
///
/// # Safety
/// As [`Tail::run`].
pub unsafe fn finish(tail: Option<&Tail>, first: usize, [rows, columns]: [usize; 2], step: usize) {
    if let Some(tail) = tail {
        // SAFETY: the caller's.
        unsafe { tail.run(first, rows, columns, step) };
    }
}

/// Sets `x` (zeros before) to the adjoint in the data: every output gradient goes back to its window.
pub fn data_gradient<T: Real>(g: &Geometry, gy: &[T], w: &[T], x: Shared<T>, one: T, par: &dyn Parallel) {
    if depthwise::gradient_fits(g) {
        return depthwise::data_gradient(g, gy, w, x, one, par);
    }
    let (window, positions, depth) = (g.window(), g.positions(), g.depth());
    let direct = depth > 0 && g.width() > 0 && !g.is_pointwise() && direct::fits::<T>(g.input[2], depth);
    if direct && let Some(back) = direct::mirrored(g) {
        let packed = direct::mirrored_weight(g, &back, w);
        return direct::forward(&back, gy, &packed, None, x, one, None, par);
    }
    let channels = g.channel_block();
    let parts = depth.div_ceil(channels);
    let block = g.block(channels * window);
    let grain = (WORK / (g.width() * channels * window * positions).max(1)).max(1);
    split(par, g.samples * g.groups * parts, grain, |range| {
        with_scratch(channels * window * block * size_of::<T>(), |scratch| {
            let columns = scratch.cast::<T>();
            for unit in range {
                let (image, first) = (unit / parts, unit % parts * channels);
                let (n, group) = (image / g.groups, image % g.groups);
                let own = first..depth.min(first + channels);
                let rows = own.len() * window;
                let gy = &gy[(n * g.filters + group * g.width()) * positions..];
                let filters = &w[group * g.width() * depth * window + first * window..];
                for start in (0..positions).step_by(block) {
                    let part = start..positions.min(start + block);
                    // SAFETY: one unit adds to its own channels only; sizes are the arrays'.
                    unsafe {
                        let image = x.at(((n * g.channels + group * depth) * g.pixels()) as isize);
                        product(
                            [rows, part.len(), g.width()],
                            (columns, part.len()),
                            (filters.as_ptr(), 1, depth * window),
                            (gy.as_ptr().add(start), positions, 1),
                            false,
                        );
                        g.add_back(columns, image, own.clone(), part);
                    }
                }
            }
        });
    });
}

/// Sets `gw` to the adjoint in the weight. Samples are summed in groups, whose sums are added in order.
pub fn weight_gradient<T: Real>(g: &Geometry, x: &[T], gy: &[T], gw: &mut [T], par: &dyn Parallel) {
    let size = gw.len();
    // At most 16 partial sums, in at most 16 MiB of float32.
    let sums = g.samples.min(16).min((1 << 22) / size.max(1)).max(1);
    let together = g.samples.div_ceil(sums);
    let sums = g.samples.div_ceil(together.max(1)).max(1);
    let all = WeightSums { g, x, gy, count: sums, together, size };
    if sums == 1 {
        return all.write(Shared(gw.as_mut_ptr()), par);
    }
    with_elements([size * sums], |[partial]| {
        all.write(Shared(partial.as_mut_ptr()), par);
        let out = Shared(gw.as_mut_ptr());
        split(par, size, 1 << 14, |range| {
            for i in range {
                let mut total = partial[i];
                (1..sums).for_each(|s| total += partial[s * size + i]);
                // SAFETY: element i, this chunk's own.
                unsafe { *out.at(i as isize) = total };
            }
        });
    });
}

/// Sums of the weight's gradient over groups of samples.
struct WeightSums<'a, T> {
    g: &'a Geometry,
    x: &'a [T],
    gy: &'a [T],
    /// How many there are.
    count: usize,
    /// Samples of each, but for the last.
    together: usize,
    /// Elements of each.
    size: usize,
}

impl<T: Real> WeightSums<'_, T> {
    fn samples(&self, sum: usize) -> Range<usize> {
        sum * self.together..self.g.samples.min((sum + 1) * self.together)
    }

    /// Writes them one after the other.
    fn write(&self, target: Shared<T>, par: &dyn Parallel) {
        let WeightSums { g, x, gy, size, .. } = *self;
        // SAFETY: that part of the sums is the caller's alone.
        let zeros = |at: usize, n: usize| unsafe {
            let out = std::slice::from_raw_parts_mut(target.at(at as isize), n);
            out.fill(T::default());
            out
        };
        if depthwise::fits(g) && g.width() == 1 {
            let work = g.window() * g.positions() * self.together;
            return split(par, self.count * g.groups, ((WORK / 2) / work.max(1)).max(1), |range| {
                for unit in range {
                    let (sum, channel) = (unit / g.groups, unit % g.groups);
                    // The window of this unit's own sum and channel.
                    let out = zeros(sum * size + channel * g.window(), g.window());
                    depthwise::weight_gradient(g, x, gy, channel, self.samples(sum), out);
                }
            });
        }
        if size > 0 && !g.is_pointwise() && direct::weight_fits::<T>(g) {
            return split(par, self.count, 1, |range| {
                for sum in range {
                    direct::weight_gradient(g, x, gy, self.samples(sum), zeros(sum * size, size));
                }
            });
        }
        if g.samples == 0 || g.positions() == 0 {
            zeros(0, self.count * size);
        }
        self.by_columns(target, par);
    }

    /// The same as products with columns.
    fn by_columns(&self, target: Shared<T>, par: &dyn Parallel) {
        let WeightSums { g, x, gy, size, .. } = *self;
        let (window, positions, depth) = (g.window(), g.positions(), g.depth());
        let channels = g.channel_block();
        let parts = depth.div_ceil(channels);
        let block = g.block(channels * window);
        split(par, self.count * g.groups * parts, 1, |range| {
            with_scratch(channels * window * block * size_of::<T>(), |scratch| {
                let columns = scratch.cast::<T>();
                for unit in range {
                    let (sum, rest) = (unit / (g.groups * parts), unit % (g.groups * parts));
                    let (group, first) = (rest / parts, rest % parts * channels);
                    let own = first..depth.min(first + channels);
                    let rows = own.len() * window;
                    let place = (sum * size + (group * g.width() * depth + first) * window) as isize;
                    let mut add = false;
                    for n in self.samples(sum) {
                        let image = &x[(n * g.channels + group * depth) * g.pixels()..];
                        let gy = &gy[(n * g.filters + group * g.width()) * positions..];
                        for start in (0..positions).step_by(block) {
                            let part = start..positions.min(start + block);
                            // SAFETY: one unit writes its own sum, group and channels; sizes are the arrays'.
                            unsafe {
                                lay_out(g, image.as_ptr(), columns, &own, &part);
                                product(
                                    [g.width(), rows, part.len()],
                                    (target.at(place), depth * window),
                                    (gy.as_ptr().add(start), positions, 1),
                                    (columns.cast_const(), 1, part.len()),
                                    add,
                                );
                            }
                            add = true;
                        }
                    }
                }
            });
        });
    }
}
