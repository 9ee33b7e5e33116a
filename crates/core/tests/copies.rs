//! Copies between layouts: transpositions, permutations, steps and broadcasts of every element size, against a walk
//! element by element. Large ones go past the caches.

mod support;

use mxnp_core::kernel::moves;
use mxnp_core::view::{View, ViewMut};
use mxnp_core::{DType, Layout};
use support::{Rng, Threads};

const DTYPES: [DType; 5] = [DType::U8, DType::F16, DType::F32, DType::C64, DType::C128];

/// Copies from a layout over `src` bytes into one over `dst` bytes, and compares.
fn check(dtype: DType, from: &Layout, to: &Layout, elements: (usize, usize)) {
    let size = dtype.size();
    let bytes = |n: usize| vec![0u128; (n * size).div_ceil(16) + 1];
    let (mut src, mut dst) = (bytes(elements.0), bytes(elements.1));
    let base = src.as_mut_ptr().cast::<u8>();
    for i in 0..elements.0 * size {
        // SAFETY: byte i of the memory.
        unsafe { *base.add(i) = (i.wrapping_mul(2_654_435_761) >> 7) as u8 };
    }
    let target = dst.as_mut_ptr().cast::<u8>();
    // SAFETY: both layouts lie within their memory.
    unsafe {
        moves::copy(&View::new(base, from, dtype), &ViewMut::new(target, to, dtype), &Threads(2));
    }
    let (a, b) = (addresses(from), addresses(to));
    let mut written = vec![false; elements.1];
    for (a, b) in a.iter().zip(&b) {
        // SAFETY: elements of both.
        let (x, y) = unsafe {
            (
                std::slice::from_raw_parts(base.add(*a * size), size),
                std::slice::from_raw_parts(target.add(*b * size), size),
            )
        };
        assert_eq!(x, y, "{dtype} {from:?} -> {to:?}");
        written[*b] = true;
    }
    for (i, _) in written.iter().enumerate().filter(|(_, w)| !**w) {
        // SAFETY: element i of the target.
        let untouched = unsafe { std::slice::from_raw_parts(target.add(i * size), size) };
        assert!(untouched.iter().all(|b| *b == 0), "{dtype} {from:?} -> {to:?} wrote beside its elements");
    }
}

/// The offset of each element, in row-major order.
fn addresses(layout: &Layout) -> Vec<usize> {
    mxnp_core::kernel::walk::offsets(&layout.shape, &layout.strides)
        .into_iter()
        .map(|o| (layout.offset as isize + o) as usize)
        .collect()
}

fn permuted(shape: &[usize], axes: &[usize]) -> (Layout, Layout) {
    let from = Layout::contiguous(shape).transpose(axes);
    let to = Layout::contiguous(&from.shape);
    (from, to)
}

#[test]
fn permutations_of_every_size() {
    let cases: &[(&[usize], &[usize])] = &[
        (&[16, 16], &[1, 0]),
        (&[64, 64], &[1, 0]),
        (&[67, 130], &[1, 0]),
        (&[1, 40], &[1, 0]),
        (&[3, 1000], &[1, 0]),
        (&[1000, 3], &[1, 0]),
        (&[16, 64, 4, 8], &[0, 2, 1, 3]),
        (&[2, 3, 33, 35], &[0, 2, 3, 1]),
        (&[2, 33, 35, 3], &[0, 3, 1, 2]),
        (&[5, 7, 9], &[2, 0, 1]),
        (&[5, 70, 66], &[2, 1, 0]),
        (&[0, 4], &[1, 0]),
        (&[], &[]),
    ];
    for dtype in DTYPES {
        for (shape, axes) in cases {
            let (from, to) = permuted(shape, axes);
            let n = shape.iter().product();
            check(dtype, &from, &to, (n, n));
            // The other way: a contiguous source into a permuted target.
            check(dtype, &to, &from, (n, n));
        }
    }
}

#[test]
fn steps_broadcasts_and_turned_axes() {
    let mut rng = Rng(21);
    for round in 0..400 {
        let dims = 1 + rng.below(4);
        let dtype = DTYPES[round % DTYPES.len()];
        let mut axes: Vec<usize> = (0..dims).collect();
        rng.shuffle(&mut axes);
        let shape: Vec<usize> = (0..dims).map(|_| 1 + rng.below(if dims < 3 { 90 } else { 20 })).collect();
        let make = |rng: &mut Rng, axes: &[usize], repeat: bool| {
            let mut strides = vec![0isize; dims];
            let (mut step, mut offset) = (1usize, 0usize);
            for &axis in axes.iter().rev() {
                if repeat && rng.one_in(6) {
                    continue;
                }
                let skip = if rng.one_in(4) { 2 } else { 1 };
                strides[axis] = (step * skip) as isize;
                let span = (shape[axis] - 1) * step * skip;
                if rng.one_in(4) {
                    strides[axis] = -strides[axis];
                    offset += span;
                }
                step += span;
            }
            (Layout { shape: shape.as_slice().into(), strides: strides.as_slice().into(), offset }, step)
        };
        let (from, a) = make(&mut rng, &axes, true);
        let order: Vec<usize> = (0..dims).collect();
        let (to, b) = make(&mut rng, &order, false);
        check(dtype, &from, &to, (a, b));
    }
}

#[test]
fn large_copies_that_go_past_the_caches() {
    // The target starts at every residue of a cache line.
    for (offset, shape) in [(0, [2100, 2048]), (3, [2048, 2100]), (16, [2111, 2003])] {
        let n = shape[0] * shape[1];
        let from = Layout::contiguous(&shape);
        let mut to = Layout::contiguous(&shape);
        to.offset = offset;
        check(DType::F32, &from, &to, (n, n + offset));
        let from = Layout::contiguous(&[shape[1], shape[0]]).transpose(&[1, 0]);
        check(DType::F32, &from, &to, (n, n + offset));
    }
}
