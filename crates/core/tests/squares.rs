//! Sums of squares about a mean far from zero, where the sum of squares less the square of the sum has no digits left:
//! along rows and across them, in parts.

use mxnp_core::kernel::reduce::{Fold, Rows};
use mxnp_core::kernel::squares;

fn data() -> Vec<f32> {
    (0..4096).map(|i| 1e4 + (i * 37 % 101) as f32 * 0.01).collect()
}

fn expected(x: impl Iterator<Item = f32> + Clone) -> f64 {
    let n = x.clone().count() as f64;
    let mean = x.clone().map(f64::from).sum::<f64>() / n;
    x.map(|v| (f64::from(v) - mean).powi(2)).sum()
}

/// What folding gives, of `n` accumulators.
fn folded(fold: &Fold, n: usize, parts: impl Fn(*mut u8)) -> Vec<f32> {
    let mut acc = vec![0u128; (fold.size * n).div_ceil(16)];
    let mut out = vec![0f32; n];
    // SAFETY: accumulators and results for n, aligned to 16 bytes.
    unsafe {
        (fold.init)(acc.as_mut_ptr().cast(), n);
        parts(acc.as_mut_ptr().cast());
        (fold.finish)(acc.as_ptr().cast(), out.as_mut_ptr().cast(), n);
    }
    out
}

#[test]
fn along_rows() {
    let (x, fold) = (data(), squares::fold::<f32>());
    for n in [1, 5, 16, 63, 64, 1000, 4096] {
        let rows = Rows { x: x.as_ptr().cast(), n, rows: 1, step: 0 };
        // SAFETY: one row and its accumulator.
        let out = folded(&fold, 1, |acc| unsafe { (fold.inner)(acc, &rows, 1024, 0) });
        let want = expected(x[..n].iter().copied());
        assert!((f64::from(out[0]) - want).abs() <= 1e-5 * want, "{n}: {} {want}", out[0]);
    }
}

#[test]
fn across_rows() {
    let (x, fold) = (data(), squares::fold::<f32>());
    for columns in [1, 3, 20, 64, 100] {
        let count = 4096 / columns;
        let part = |first: usize, rows| Rows {
            x: x[first * columns..].as_ptr().cast(),
            n: columns,
            rows,
            step: 4 * columns as isize,
        };
        // SAFETY: all rows, in two parts, and an accumulator for each column.
        let out = folded(&fold, columns, |acc| unsafe {
            (fold.outer)(acc, &part(0, 7), 0, 0);
            (fold.outer)(acc, &part(7, count - 7), 0, 0);
        });
        for k in 0..columns {
            let want = expected((0..count).map(|r| x[r * columns + k]));
            assert!((f64::from(out[k]) - want).abs() <= 1e-4 * want, "{columns}: {} {want}", out[k]);
        }
    }
}

#[test]
fn nothing_joined_with_nothing_is_nothing() {
    let fold = squares::fold::<f64>();
    let (mut a, mut b) = ([0u128; 2], [0u128; 2]);
    let mut out = [1f64];
    // SAFETY: one accumulator each.
    unsafe {
        (fold.init)(a.as_mut_ptr().cast(), 1);
        (fold.init)(b.as_mut_ptr().cast(), 1);
        (fold.combine)(a.as_mut_ptr().cast(), b.as_ptr().cast(), 1);
        (fold.finish)(a.as_ptr().cast(), out.as_mut_ptr().cast(), 1);
    }
    assert_eq!(out, [0.0]);
}
