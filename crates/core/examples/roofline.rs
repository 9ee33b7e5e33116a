//! Measures what the machine can do, for the shares in benches/roofline.py: bandwidth of copies and reads far beyond
//! the caches and the peak of multiply-add, on each number of threads given: `cargo run --release -p mxnp-core
//! --example roofline [threads ...]`. Prints one line of JSON for each.

use mxnp_core::simd::{stream, vector, vector::Vector};
use mxnp_core::storage::Buffer;
use mxnp_core::{simd, with_vectors};
use std::hint::black_box;
use std::sync::{Barrier, Mutex};
use std::time::Instant;

/// Floats of each array: 64 MB.
const COUNT: usize = 16 << 20;
/// Registers of sums, enough to hide a multiply-add's latency; and rounds of all of them.
const SUMS: usize = 10;
const ROUNDS: usize = 2_000_000;
const RUNS: usize = 15;

/// # Safety
/// As [`Vector`]'s; `out` has room for one element.
#[inline(always)]
unsafe fn fma_body<V: Vector>(x: V::Item, y: V::Item, out: *mut V::Item) {
    // SAFETY: the caller's contract.
    unsafe {
        let (x, y) = (V::splat(x), V::splat(y));
        let mut sums = [y; SUMS];
        for _ in 0..ROUNDS {
            sums.iter_mut().for_each(|sum| *sum = sum.multiply_add(x, y));
        }
        *out = total(sums);
    }
}

/// # Safety
/// As [`Vector`]'s; `src` has `n` elements, `out` room for one.
#[inline(always)]
unsafe fn read_body<V: Vector>(src: *const V::Item, n: usize, out: *mut V::Item) {
    // SAFETY: whole groups of vectors within the `n` elements.
    unsafe {
        let mut sums = [V::zero(); SUMS];
        for at in (0..n + 1 - SUMS * V::LANES).step_by(SUMS * V::LANES) {
            for (k, sum) in sums.iter_mut().enumerate() {
                *sum = sum.add(V::load(src.add(at + k * V::LANES)));
            }
        }
        *out = total(sums);
    }
}

/// # Safety
/// As [`Vector`]'s.
#[inline(always)]
unsafe fn total<V: Vector>(sums: [V; SUMS]) -> V::Item {
    let mut all = sums[0];
    for sum in &sums[1..] {
        // SAFETY: the caller's contract.
        all = unsafe { all.add(*sum) };
    }
    // SAFETY: the caller's contract.
    unsafe { all.total() }
}

with_vectors! {
    /// # Safety
    /// `out` has room for one element.
    unsafe fn multiply_add<T>(x: T, y: T, out: *mut T) = fma_body
}
with_vectors! {
    /// # Safety
    /// `src` has `n` elements, `out` room for one.
    unsafe fn read<T>(src: *const T, n: usize, out: *mut T) = read_body
}

/// Seconds of the best run of `work` on all threads at once; it is told which of them it is.
fn best(threads: usize, work: impl Fn(usize) + Sync) -> f64 {
    let (barrier, least) = (Barrier::new(threads), Mutex::new(f64::INFINITY));
    std::thread::scope(|scope| {
        for id in 0..threads {
            let (work, barrier, least) = (&work, &barrier, &least);
            scope.spawn(move || {
                for _ in 0..RUNS {
                    barrier.wait();
                    let start = Instant::now();
                    work(id);
                    barrier.wait();
                    let seconds = start.elapsed().as_secs_f64();
                    let mut least = least.lock().expect("no thread panics");
                    *least = least.min(seconds);
                }
            });
        }
    });
    least.into_inner().expect("no thread panics")
}

/// An array from the pool that results come from, on pages of the same size, touched once.
struct Memory(Buffer);

impl Memory {
    fn new() -> Memory {
        let buffer = Buffer::new(COUNT * size_of::<f32>()).expect("64 MB of memory");
        // SAFETY: the buffer's bytes.
        unsafe { buffer.as_ptr().write_bytes(0, COUNT * size_of::<f32>()) };
        Memory(buffer)
    }

    /// Where thread `id` starts, if each has `each` floats.
    fn part(&self, id: usize, each: usize) -> *mut f32 {
        // SAFETY: parts lie within the array.
        unsafe { self.0.as_ptr().cast::<f32>().add(id * each) }
    }
}

fn main() {
    let threads: Vec<usize> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let (from, to) = (Memory::new(), Memory::new());
    let bytes = (COUNT * size_of::<f32>()) as f64;
    for n in if threads.is_empty() { vec![1, 2] } else { threads } {
        let each = COUNT / n;
        let streamed = best(n, |id| {
            let (src, dst) = (from.part(id, each), to.part(id, each));
            // SAFETY: this thread's parts, `each` elements long.
            unsafe { stream::copy(src.cast(), dst.cast(), each * size_of::<f32>()) };
            stream::fence();
        });
        let copied = best(n, |id| {
            // SAFETY: this thread's parts, `each` elements long.
            unsafe { to.part(id, each).copy_from_nonoverlapping(from.part(id, each), each) };
        });
        let reading = best(n, |id| {
            let mut sum = 0.0;
            // SAFETY: this thread's part.
            unsafe { read::<f32>(from.part(id, each), each, &mut sum) };
            black_box(sum);
        });
        let adding = best(n, |_| {
            let mut sum = 0.0;
            // SAFETY: a place for the answer.
            unsafe { multiply_add::<f32>(black_box(0.999), black_box(0.5), &mut sum) };
            black_box(sum);
        });
        let flops = (2 * n * ROUNDS * SUMS * vector::lanes::<f32>()) as f64;
        println!(
            r#"{{"threads": {n}, "isa": "{:?}", "copy_gb_s": {:.2}, "read_gb_s": {:.2}, "fma_gflop_s": {:.1}}}"#,
            simd::isa(),
            2.0 * bytes / streamed.min(copied) / 1e9,
            bytes / reading / 1e9,
            flops / adding / 1e9
        );
    }
}
