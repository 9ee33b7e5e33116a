//! The gradient of a weight without columns: dot products of output gradients with shifted images, along vectors of
//! outputs, in bands of rows that stay in the cache.

use super::{Padded, TOGETHER, fits};
use crate::kernel::conv::{Geometry, Real};
use crate::kernel::scratch::with_elements;
use crate::simd::vector::{Vector, lanes};
use crate::with_vectors;

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

/// Rows of outputs whose images and gradients of one group are prepared together, as a geometry of their own; None
/// where so few would fit the cache that sums of vectors would cost more than the products.
fn band<T: Real>(g: &Geometry) -> Option<Geometry> {
    /// Vectors whose sum is worth adding up.
    const LEAST: usize = 32;
    let mut band = *g;
    loop {
        let padded = Padded::new(&band, lanes::<T>());
        let vectors = padded.vectors(&band);
        if (padded.size() + g.width() * vectors * padded.lanes) * size_of::<T>() <= 2 * TOGETHER {
            return (vectors >= LEAST || band.output == g.output).then_some(band);
        }
        if band.output[1] == 1 {
            return None;
        }
        band.output[1] = band.output[1].div_ceil(2);
    }
}

/// Whether [`weight_gradient`] is worth while.
pub fn weight_fits<T: Real>(g: &Geometry) -> bool {
    fits::<T>(g.output[2], g.width()) && band::<T>(g).is_some()
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
    let band = band::<T>(g).unwrap_or(*g);
    let padded = Padded::new(&band, lanes);
    let (offsets, vectors) = (padded.offsets(g), padded.vectors(&band));
    let bytes = (padded.size() + g.width() * vectors * lanes) * size_of::<T>();
    let batch = (2 * TOGETHER / bytes.max(1)).clamp(1, range.len().max(1));
    let size = g.width() * offsets.len();
    with_elements([padded.size() * batch, g.width() * vectors * lanes * batch], |[images, gradients]| {
        for group in 0..g.groups {
            for first in range.clone().step_by(batch) {
                for top in (0..g.output[1]).step_by(band.output[1]) {
                    let count = batch.min(range.end - first);
                    let b = Band { g, padded: &padded, top, places: padded.places(g, &band, top) };
                    let (mut starts, mut valid) = (Vec::new(), Vec::new());
                    for i in 0..count {
                        let images = &mut images[i * padded.size()..(i + 1) * padded.size()];
                        b.prepare(x, gy, [first + i, group], images, gradients, |f| {
                            let at = (f * count + i) * vectors * lanes;
                            at..at + vectors * lanes
                        });
                        starts.extend((0..vectors).map(|v| i * padded.size() + padded.start(&band, v)));
                        valid.extend(b.places.iter().map(|place| place.1));
                    }
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
    });
}

/// The outputs from row `top` on whose part in a weight's gradient is computed together.
struct Band<'a> {
    g: &'a Geometry,
    padded: &'a Padded,
    top: usize,
    /// For each vector: its first output, and how many of its lanes are outputs.
    places: Vec<(usize, usize)>,
}

impl Band<'_> {
    /// Copies a sample's image, and its gradients by filters to the ranges that `to` gives.
    fn prepare<T: Real>(
        &self,
        x: &[T],
        gy: &[T],
        [sample, group]: [usize; 2],
        image: &mut [T],
        gradients: &mut [T],
        to: impl Fn(usize) -> std::ops::Range<usize>,
    ) {
        let (g, positions) = (self.g, self.g.positions());
        let from = &x[(sample * g.channels + group * g.depth()) * g.pixels()..];
        self.padded.fill(g, from, self.top, image);
        for f in 0..g.width() {
            let from = &gy[(sample * g.filters + group * g.width() + f) * positions..][..positions];
            let vectors = gradients[to(f)].chunks_exact_mut(self.padded.lanes);
            for (to, &(place, n)) in vectors.zip(&self.places) {
                to[..n].copy_from_slice(&from[place..place + n]);
                to[n..].fill(T::default());
            }
        }
    }
}
