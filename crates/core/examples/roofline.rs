//! Measures what the machine can do, for the shares in benches/roofline.py: bandwidths of copies, reads and sums of two
//! arrays of so many float32, the peaks of multiply-add and of vector arithmetic. Each line of its input is a name, a
//! number of elements and a number of threads, each line of its output the median of some runs, in GB/s, Gflop/s or
//! 1e9 lanes of instructions a second: `echo "copy 16777216 2" | cargo run --release -p mxnp-core --example roofline`.

use mxnp_core::simd::{stream, vector, vector::Vector};
use mxnp_core::storage::Buffer;
use mxnp_core::with_vectors;
use std::hint::black_box;
use std::io::Write;
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};

/// The most floats of an array (64 MB).
const LARGE: usize = 16 << 20;
/// Floats of a block that stays near, from which streams go past the caches.
const BLOCK: usize = 1024;
/// Registers of sums, enough to hide an instruction's latency; and rounds of all of them.
const SUMS: usize = 10;
const ROUNDS: usize = 500_000;
/// How long one figure is measured, after one run that warms up.
const SAMPLE: Duration = Duration::from_millis(30);

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

/// As many additions as multiply-adds: the units of both are busy.
///
/// # Safety
/// As [`Vector`]'s; `out` has room for one element.
#[inline(always)]
unsafe fn arithmetic_body<V: Vector>(x: V::Item, y: V::Item, out: *mut V::Item) {
    // SAFETY: the caller's contract.
    unsafe {
        let (x, y) = (V::splat(x), V::splat(y));
        let (mut sums, mut others) = ([y; SUMS], [x; SUMS]);
        for _ in 0..ROUNDS {
            for k in 0..SUMS {
                sums[k] = sums[k].multiply_add(x, y);
                others[k] = others[k].add(y);
            }
        }
        *out = total(sums);
        *out += total(others);
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
/// As [`Vector`]'s; all have `n` elements, a whole number of vectors.
#[inline(always)]
unsafe fn sum_body<V: Vector>(x: *const V::Item, y: *const V::Item, out: *mut V::Item, n: usize) {
    for at in (0..n).step_by(V::LANES) {
        // SAFETY: a vector within the `n` elements.
        unsafe { V::load(x.add(at)).add(V::load(y.add(at))).store(out.add(at)) };
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
    /// `out` has room for one element.
    unsafe fn arithmetic<T>(x: T, y: T, out: *mut T) = arithmetic_body
}
with_vectors! {
    /// # Safety
    /// `src` has `n` elements, `out` room for one.
    unsafe fn read<T>(src: *const T, n: usize, out: *mut T) = read_body
}
with_vectors! {
    /// # Safety
    /// All have `n` elements, a whole number of vectors.
    unsafe fn sum<T>(x: *const T, y: *const T, out: *mut T, n: usize) = sum_body
}

/// The median seconds of a run of `work` on all threads at once; it is told which of them it is.
fn median(threads: usize, work: impl Fn(usize) + Sync) -> f64 {
    let (barrier, times) = (Barrier::new(threads), Mutex::new(Vec::new()));
    let run = |id: usize| {
        loop {
            barrier.wait();
            let start = Instant::now();
            work(id);
            barrier.wait();
            if id == 0 {
                times.lock().expect("no thread panics").push(start.elapsed().as_secs_f64());
            }
            // Nobody counts while others look at the count.
            barrier.wait();
            let times = times.lock().expect("no thread panics");
            if times.iter().sum::<f64>() >= SAMPLE.as_secs_f64() && times.len() > 3 {
                return;
            }
        }
    };
    // The calling thread is number 0, as in the engine's loops.
    std::thread::scope(|scope| {
        for id in 1..threads {
            let run = &run;
            scope.spawn(move || run(id));
        }
        run(0);
    });
    let mut times = times.into_inner().expect("no thread panics").split_off(1);
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// An array from the pool that results come from, on pages of the same size, touched once.
struct Memory(Buffer);

impl Memory {
    fn new(count: usize) -> Memory {
        let buffer = Buffer::new(count * size_of::<f32>()).expect("memory for the arrays");
        // SAFETY: the buffer's bytes.
        unsafe { buffer.as_ptr().write_bytes(0, count * size_of::<f32>()) };
        Memory(buffer)
    }

    /// Where thread `id` starts, if each has `each` floats.
    fn part(&self, id: usize, each: usize) -> *mut f32 {
        // SAFETY: parts lie within the array.
        unsafe { self.0.as_ptr().cast::<f32>().add(id * each) }
    }
}

/// What one figure is for `count` elements on `n` threads, in units of 1e9 a second; None for a name that is none.
fn figure(name: &str, count: usize, n: usize, [x, y, z]: &[Memory; 3]) -> Option<f64> {
    // Whole blocks for each thread.
    let each = (count.min(LARGE) / n / BLOCK).max(1) * BLOCK;
    let bytes = (n * each * size_of::<f32>()) as f64;
    let (amount, seconds) = match name {
        "copy" => {
            let streamed = median(n, |id| {
                let (src, dst) = (x.part(id, each), z.part(id, each));
                // SAFETY: this thread's parts, `each` elements long.
                unsafe { stream::copy(src.cast(), dst.cast(), each * size_of::<f32>()) };
                stream::fence();
            });
            let copied = median(n, |id| {
                // SAFETY: this thread's parts, `each` elements long.
                unsafe { z.part(id, each).copy_from_nonoverlapping(x.part(id, each), each) };
            });
            (2.0 * bytes, streamed.min(copied))
        }
        "read" => {
            let reading = |id| {
                let mut sum = 0.0;
                // SAFETY: this thread's part.
                unsafe { read::<f32>(x.part(id, each), each, &mut sum) };
                black_box(sum);
            };
            (bytes, median(n, reading))
        }
        "sum" => {
            let streamed = median(n, |id| {
                let mut block = [0f32; BLOCK];
                let [x, y, z] = [x, y, z].map(|memory| memory.part(id, each));
                for at in (0..each).step_by(BLOCK) {
                    // SAFETY: blocks of this thread's parts.
                    unsafe {
                        sum::<f32>(x.add(at), y.add(at), block.as_mut_ptr(), BLOCK);
                        stream::copy(block.as_ptr().cast(), z.add(at).cast(), size_of_val(&block));
                    }
                }
                stream::fence();
            });
            let stored = median(n, |id| {
                // SAFETY: this thread's parts, `each` elements long, whole vectors.
                unsafe { sum::<f32>(x.part(id, each), y.part(id, each), z.part(id, each), each) };
            });
            (3.0 * bytes, streamed.min(stored))
        }
        "fma" | "arithmetic" => {
            let computing = |_| {
                let (a, b, mut sum) = (black_box(0.999), black_box(0.5), 0.0);
                // SAFETY: a place for the answer.
                unsafe {
                    if name == "fma" {
                        multiply_add::<f32>(a, b, &mut sum)
                    } else {
                        arithmetic::<f32>(a, b, &mut sum)
                    }
                };
                black_box(sum);
            };
            // Two operations each: a multiplication and an addition, or an instruction of either kind.
            ((2 * n * ROUNDS * SUMS * vector::lanes::<f32>()) as f64, median(n, computing))
        }
        _ => return None,
    };
    Some(amount / seconds / 1e9)
}

fn main() {
    let memory = [(); 3].map(|()| Memory::new(LARGE));
    for line in std::io::stdin().lines() {
        let line = line.expect("lines of text");
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or("");
        let mut number = || words.next().and_then(|word| word.parse().ok()).unwrap_or(1);
        match figure(name, number(), number(), &memory) {
            Some(rate) => println!("{rate:.3}"),
            None => println!("no such figure: {name}"),
        }
        std::io::stdout().flush().expect("somebody listens");
    }
}
