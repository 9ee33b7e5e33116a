//! The windows of one plane side by side: for each place in the window, what all windows have there is gathered
//! into a row, and one loop takes it into the maxima or sums. Places are visited in the order of the window.

use crate::isa_versions;
use crate::kernel::float::Float;
use crate::kernel::lane::Lane;
use crate::kernel::num::Num;
use crate::kernel::real::Real;
use std::ops::Range;

/// A type that pooling is computed in.
pub trait Pooled: Real + Lane<Wide: Float> {}
impl<T: Real + Lane<Wide: Float>> Pooled for T {}

/// One place in the window: along each axis, the outputs whose window has it inside the data, and the input
/// place that output 0 has there (negative where that is padding).
#[derive(Clone, Debug)]
pub struct Place {
    pub outputs: [Range<usize>; 3],
    pub shift: [isize; 3],
}

/// The sizes that a gathering needs.
#[derive(Clone, Copy)]
pub struct Sizes {
    pub input: [usize; 3],
    pub output: [usize; 3],
    pub stride: [usize; 3],
}

/// # Safety
/// `x` is a plane of the input and `row` has an element for each output.
#[inline(always)]
unsafe fn gather_body<T: Pooled>(x: &[T], s: Sizes, place: &Place, outside: T, row: &mut [T]) {
    let width = s.output[2];
    let inside = place.outputs[2].clone();
    let at = |axis: usize, o: usize| ((o * s.stride[axis]) as isize + place.shift[axis]) as usize;
    for d in 0..s.output[0] {
        for h in 0..s.output[1] {
            let row = &mut row[(d * s.output[1] + h) * width..][..width];
            if inside.is_empty() || !place.outputs[0].contains(&d) || !place.outputs[1].contains(&h) {
                row.fill(outside);
                continue;
            }
            row[..inside.start].fill(outside);
            row[inside.end..].fill(outside);
            let first = (at(0, d) * s.input[1] + at(1, h)) * s.input[2] + at(2, inside.start);
            let (row, step) = (&mut row[inside.clone()], s.stride[2]);
            let from = &x[first..first + (row.len() - 1) * step + 1];
            match step {
                1 => row.copy_from_slice(from),
                2 => {
                    for (l, to) in row.iter_mut().enumerate() {
                        // SAFETY: `from` ends with the last output's element.
                        *to = unsafe { *from.get_unchecked(2 * l) };
                    }
                }
                _ => {
                    for (l, to) in row.iter_mut().enumerate() {
                        // SAFETY: `from` has `step` elements an output but for the last, which has one.
                        *to = unsafe { *from.get_unchecked(step * l) };
                    }
                }
            }
        }
    }
}

isa_versions! {
    /// What every window has at a place; `outside` where that is padding.
    pub fn gather -> unsafe fn(&[T], Sizes, &Place, T, &mut [T]) = gather_body;
    generics [T: Pooled] names [T] fast true;
    args (x: &[T], s: Sizes, place: &Place, outside: T, row: &mut [T])
}

/// # Safety
/// The slices have one length.
#[inline(always)]
unsafe fn max_body<T: Pooled>(row: &[T], starts: &[i32], offset: i32, best: &mut [T], places: &mut [i32]) {
    for i in 0..best.len() {
        // SAFETY: the slices have one length.
        unsafe {
            let (x, most) = (*row.get_unchecked(i), best.get_unchecked_mut(i));
            let (v, b) = (x.widen(), most.widen());
            // The first NaN wins.
            #[allow(clippy::eq_op)]
            let wins = (v > b) | ((v != v) & (b == b));
            let place = places.get_unchecked_mut(i);
            *most = if wins { x } else { *most };
            *place = if wins { *starts.get_unchecked(i) + offset } else { *place };
        }
    }
}

/// A loop over rows, starts, an offset, maxima and their places.
type Max<T> = unsafe fn(&[T], &[i32], i32, &mut [T], &mut [i32]);

isa_versions! {
    /// Takes a row into the maxima; window i has the element at input place `starts[i] + offset`.
    pub fn max -> Max<T> = max_body;
    generics [T: Pooled] names [T] fast true;
    args (row: &[T], starts: &[i32], offset: i32, best: &mut [T], places: &mut [i32])
}

/// # Safety
/// The slices have one length.
#[inline(always)]
unsafe fn sum_body<T: Pooled>(row: &[T], sums: &mut [f64]) {
    sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x.wide());
}

isa_versions! {
    /// Adds a row to the sums.
    pub fn sum -> unsafe fn(&[T], &mut [f64]) = sum_body;
    generics [T: Pooled] names [T] fast true; args (row: &[T], sums: &mut [f64])
}

/// # Safety
/// `x` has `pixels` elements for each of the sums.
#[inline(always)]
unsafe fn totals_body<T: Pooled>(x: &[T], pixels: usize, sums: &mut [f64]) {
    const LANES: usize = 16;
    for (plane, sum) in x.chunks_exact(pixels).zip(sums) {
        let mut lanes = [0f64; LANES];
        let parts = plane.chunks_exact(LANES);
        let rest = parts.remainder();
        for part in parts {
            for l in 0..LANES {
                lanes[l] += part[l].wide();
            }
        }
        let mut width = LANES / 2;
        while width > 0 {
            for l in 0..width {
                lanes[l] += lanes[l + width];
            }
            width /= 2;
        }
        *sum = rest.iter().fold(lanes[0], |sum, x| sum + x.wide());
    }
}

isa_versions! {
    /// The sums of whole planes.
    pub fn totals -> unsafe fn(&[T], usize, &mut [f64]) = totals_body;
    generics [T: Pooled] names [T] fast true; args (x: &[T], pixels: usize, sums: &mut [f64])
}

/// # Safety
/// `shares` has an element for each output, `sums` one for each input place.
#[inline(always)]
unsafe fn scatter_body<T: Pooled>(shares: &[f64], s: Sizes, place: &Place, sums: &mut [f64]) {
    let inside = place.outputs[2].clone();
    if inside.is_empty() {
        return;
    }
    let at = |axis: usize, o: usize| ((o * s.stride[axis]) as isize + place.shift[axis]) as usize;
    let step = s.stride[2];
    for d in place.outputs[0].clone() {
        for h in place.outputs[1].clone() {
            let shares = &shares[(d * s.output[1] + h) * s.output[2]..][inside.clone()];
            let first = (at(0, d) * s.input[1] + at(1, h)) * s.input[2] + at(2, inside.start);
            let to = &mut sums[first..first + (shares.len() - 1) * step + 1];
            if step == 1 {
                to.iter_mut().zip(shares).for_each(|(sum, share)| *sum += share);
                continue;
            }
            for (l, share) in shares.iter().enumerate() {
                // SAFETY: `to` has `step` elements an output but for the last, which has one.
                unsafe { *to.get_unchecked_mut(step * l) += share };
            }
        }
    }
}

isa_versions! {
    /// The adjoint of [`gather`]: adds to each input place what the outputs have whose window has it at `place`.
    pub fn scatter -> unsafe fn(&[f64], Sizes, &Place, &mut [f64]) = scatter_body;
    generics [T: Pooled] names [T] fast true;
    args (shares: &[f64], s: Sizes, place: &Place, sums: &mut [f64])
}

/// # Safety
/// The slices have one length.
#[inline(always)]
unsafe fn quotients_body<T: Pooled>(x: &[T], by: &[f64], out: &mut [f64]) {
    // No closure: one that stays a call runs as baseline code.
    for (out, (x, by)) in out.iter_mut().zip(x.iter().zip(by)) {
        *out = x.wide() / by;
    }
}

isa_versions! {
    /// Elements divided by numbers.
    pub fn quotients -> unsafe fn(&[T], &[f64], &mut [f64]) = quotients_body;
    generics [T: Pooled] names [T] fast true; args (x: &[T], by: &[f64], out: &mut [f64])
}

/// # Safety
/// The slices have one length.
#[inline(always)]
unsafe fn narrowed_body<T: Pooled>(sums: &[f64], out: &mut [T]) {
    out.iter_mut().zip(sums).for_each(|(out, &sum)| *out = <T as Real>::narrow(sum));
}

isa_versions! {
    /// Sums rounded to the type.
    pub fn narrowed -> unsafe fn(&[f64], &mut [T]) = narrowed_body;
    generics [T: Pooled] names [T] fast true; args (sums: &[f64], out: &mut [T])
}

/// Less than every number.
pub fn lowest<T: Pooled>() -> T {
    <T as Lane>::narrow(T::Wide::INFINITY.neg())
}
