//! Measures products of matrices on one thread against the peak of fused multiply-adds:
//! `cargo run --release -p mxnp-core --example products`. Rows: mxnp's own blocks and the `gemm` crate, in GFlop/s.

use mxnp_core::kernel::gemm::{Mat, batched};
use mxnp_core::par::Serial;
use std::hint::black_box;
use std::time::Instant;

/// The least seconds of one call over a fifth of a second.
fn best(mut body: impl FnMut()) -> f64 {
    body();
    let start = Instant::now();
    body();
    let calls = (2e-3 / start.elapsed().as_secs_f64().max(1e-8)).ceil() as usize;
    let mut least = f64::INFINITY;
    let all = Instant::now();
    while all.elapsed().as_secs_f64() < 0.12 {
        let start = Instant::now();
        (0..calls).for_each(|_| body());
        least = least.min(start.elapsed().as_secs_f64() / calls as f64);
    }
    least
}

/// GFlop/s of sixteen independent chains of the widest fused multiply-adds: what no product can exceed.
#[cfg(target_arch = "x86_64")]
fn peak() -> f64 {
    use std::arch::x86_64::*;
    const STEPS: usize = 1 << 16;
    #[target_feature(enable = "avx512f")]
    fn wide() {
        let mut sums = [_mm512_setzero_ps(); 16];
        let x = _mm512_set1_ps(black_box(1.0));
        for _ in 0..STEPS {
            sums.iter_mut().for_each(|s| *s = _mm512_fmadd_ps(x, x, *s));
        }
        black_box(sums);
    }
    #[target_feature(enable = "avx2,fma")]
    fn narrow() {
        let mut sums = [_mm256_setzero_ps(); 12];
        let x = _mm256_set1_ps(black_box(1.0));
        for _ in 0..STEPS {
            sums.iter_mut().for_each(|s| *s = _mm256_fmadd_ps(x, x, *s));
        }
        black_box(sums);
    }
    if is_x86_feature_detected!("avx512f") {
        // SAFETY: the machine has the feature.
        return 16.0 * 32.0 * STEPS as f64 / best(|| unsafe { wide() }) * 1e-9;
    }
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the machine has the features.
        return 12.0 * 16.0 * STEPS as f64 / best(|| unsafe { narrow() }) * 1e-9;
    }
    f64::NAN
}
#[cfg(not(target_arch = "x86_64"))]
fn peak() -> f64 {
    f64::NAN
}

fn row(name: &str, [m, n, k]: [usize; 3], turned: [bool; 2]) {
    let number = |i: usize| (i.wrapping_mul(2_654_435_761) % 10_007) as f32 / 5000.0 - 1.0;
    let a: Vec<f32> = (0..m * k).map(number).collect();
    let b: Vec<f32> = (0..k * n).map(|i| number(i + 7)).collect();
    let mut c = vec![0f32; m * n];
    let strides = |turned: bool, rows: usize, columns: usize| {
        if turned { (1, rows as isize) } else { (columns as isize, 1) }
    };
    let (ar, ac) = strides(turned[0], m, k);
    let (br, bc) = strides(turned[1], k, n);
    let c_start = c.as_mut_ptr();
    let own = best(|| {
        let c = Mat::new(c_start.cast_const(), n as isize, 1);
        // SAFETY: matrices of these sizes; the result overlaps nothing.
        unsafe {
            let (a, b) = (Mat::new(a.as_ptr(), ar, ac), Mat::new(b.as_ptr(), br, bc));
            batched([m, n, k], a, b, c, &[[0; 3]], None, &Serial);
        }
    });
    let other = best(|| {
        // SAFETY: as above.
        unsafe {
            gemm::gemm(
                m,
                n,
                k,
                c_start,
                1,
                n as isize,
                false,
                a.as_ptr(),
                ac,
                ar,
                b.as_ptr(),
                bc,
                br,
                0.0,
                1.0,
                false,
                false,
                false,
                gemm::Parallelism::None,
            );
        }
    });
    let rate = |s: f64| 2e-9 * (m * n * k) as f64 / s;
    println!(
        "{name:28} {:10.2} us {:7.1} GF   crate {:10.2} us {:7.1} GF",
        own * 1e6,
        rate(own),
        other * 1e6,
        rate(other)
    );
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    println!("isa {}, peak of one thread {:.1} GF", mxnp_core::simd::isa().name(), peak());
    let show = |name: String, sizes, turned| {
        if words.is_empty() || words.iter().any(|w| name.contains(w.as_str())) {
            row(&name, sizes, turned);
        }
    };
    for n in [4, 8, 16, 31, 48, 63, 64, 65, 96, 128, 192, 256, 257, 384, 512, 768, 1000, 1024, 1536] {
        show(format!("square {n}"), [n; 3], [false; 2]);
    }
    for n in [64, 256, 1024] {
        show(format!("x wT {n}"), [n; 3], [false, true]);
        show(format!("xT g {n}"), [n; 3], [true, false]);
        show(format!("xT wT {n}"), [n; 3], [true, true]);
    }
    for [m, k, n] in
        [[8, 784, 256], [128, 784, 256], [128, 256, 10], [32, 768, 768], [128, 768, 3072], [1024, 256, 256]]
    {
        show(format!("dense {m}x{k}x{n}"), [m, n, k], [false, true]);
        show(format!("dense data {m}x{k}x{n}"), [m, k, n], [false; 2]);
        show(format!("dense weight {m}x{k}x{n}"), [n, k, m], [true, false]);
    }
    for [m, k, n] in [
        [1, 256, 256],
        [1, 1000, 1000],
        [1, 4096, 1000],
        [2, 768, 768],
        [4, 768, 768],
        [8, 768, 768],
        [16, 768, 768],
    ] {
        show(format!("thin {m}x{k}x{n}"), [m, n, k], [false; 2]);
        show(format!("thin {m}x{k}x{n} wT"), [m, n, k], [false, true]);
    }
    for [m, k, n] in
        [[256, 256, 1], [1000, 1000, 1], [1000, 4096, 1], [1, 10000, 1], [1, 1000000, 1], [1000, 1, 1000]]
    {
        show(format!("vector {m}x{k}x{n}"), [m, n, k], [false; 2]);
        show(format!("vector {m}x{k}x{n} xT"), [m, n, k], [true, false]);
    }
}
