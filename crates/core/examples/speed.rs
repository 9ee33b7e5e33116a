//! Measures the interpreter and its kernels on one thread: `cargo run --release -p mxnp-core --example speed`.
//! Prints the best time of several runs, in milliseconds, and what it means per second.

use mxnp_core::kernel::pass::{self, Load, Pass, ReduceTail, Slot, Source, Step, Store};
use mxnp_core::op::{Run, StepFn};
use mxnp_core::par::Serial;
use mxnp_core::{DType, Layout, Scalar, ops};
use smallvec::{SmallVec, smallvec};
use std::time::Instant;

fn step(name: &str, ins: &[DType], out: DType) -> StepFn {
    match ops::find(name).map(|op| op.run) {
        Some(Run::Elementwise(of)) => of(ins, out).expect("a step for these dtypes"),
        _ => panic!("no elementwise op {name}"),
    }
}

/// The best of several runs, in seconds.
fn best(mut body: impl FnMut()) -> f64 {
    let time = |body: &mut dyn FnMut()| {
        let start = Instant::now();
        body();
        start.elapsed().as_secs_f64()
    };
    (0..7).map(|_| time(&mut body)).fold(f64::INFINITY, f64::min)
}

struct Bench {
    memory: Vec<Vec<f32>>,
    layouts: Vec<Layout>,
}

impl Bench {
    fn new(shape: &[usize], arrays: usize) -> Bench {
        let n = shape.iter().product::<usize>();
        let values = |seed: usize| (0..n).map(|i| ((i * 7 + seed) % 1000) as f32 * 0.01 - 3.0).collect();
        Bench { memory: (0..arrays).map(values).collect(), layouts: vec![Layout::contiguous(shape); arrays] }
    }

    fn time(&mut self, pass: &Pass, scalars: &[Scalar]) -> f64 {
        let slots: Vec<Slot> = self
            .memory
            .iter_mut()
            .zip(&self.layouts)
            .map(|(m, layout)| Slot { base: m.as_mut_ptr().cast(), layout })
            .collect();
        // SAFETY: layouts lie in their memory; no two slots share it.
        best(|| unsafe { pass::run(pass, &slots, scalars, &Serial) })
    }
}

fn load(slot: usize) -> Load {
    Load { source: Source::Array(slot), dtype: DType::F32, reg: slot }
}

/// One op of `arity` inputs over float32 arrays of `shape`; the result goes to the last slot.
fn one(name: &str, shape: &[usize], arity: usize) -> Pass {
    let f = step(name, &vec![DType::F32; arity], DType::F32);
    Pass {
        shape: shape.into(),
        regs: vec![DType::F32; arity + 1],
        loads: (0..arity).map(load).collect(),
        steps: vec![Step { f, ins: (0..arity).collect(), out: arity }],
        stores: vec![Store { reg: arity, target: arity, dtype: DType::F32 }],
        reduce: None,
    }
}

/// `(a * b + c) * 0.5 - a / 3`.
fn chain(shape: &[usize]) -> Pass {
    let f = |name| step(name, &[DType::F32; 2], DType::F32);
    let mut loads: Vec<Load> = (0..3).map(load).collect();
    for i in 0..2 {
        loads.push(Load { source: Source::Scalar(i), dtype: DType::F32, reg: 3 + i });
    }
    let step = |name, a, b, out| Step { f: f(name), ins: smallvec![a, b], out };
    Pass {
        shape: shape.into(),
        regs: vec![DType::F32; 10],
        loads,
        steps: vec![
            step("multiply", 0, 1, 5),
            step("add", 5, 2, 6),
            step("multiply", 6, 3, 7),
            step("true_divide", 0, 4, 8),
            step("subtract", 7, 8, 9),
        ],
        stores: vec![Store { reg: 9, target: 3, dtype: DType::F32 }],
        reduce: None,
    }
}

fn sum(shape: &[usize], axes: &[usize]) -> Pass {
    let Some(Run::Reduce { fold, .. }) = ops::find("sum").map(|op| op.run) else { panic!("no sum") };
    let tail = ReduceTail {
        reg: 0,
        fold: fold(DType::F32, DType::F32).expect("a fold"),
        result: DType::F32,
        axes: SmallVec::from_slice(axes),
        target: 1,
        dtype: DType::F32,
    };
    Pass {
        shape: shape.into(),
        regs: vec![DType::F32],
        loads: vec![load(0)],
        steps: vec![],
        stores: vec![],
        reduce: Some(tail),
    }
}

fn time_sum(what: &str, shape: &[usize], axes: &[usize]) {
    let mut bench = Bench::new(shape, 2);
    let kept: Vec<usize> =
        shape.iter().enumerate().map(|(a, &n)| if axes.contains(&a) { 1 } else { n }).collect();
    bench.layouts[1] = Layout::contiguous(&kept).broadcast_to(shape).expect("a broadcast");
    let time = bench.time(&sum(shape, axes), &[]);
    let bytes = shape.iter().product::<usize>() as f64 * 4.0;
    println!("{what:32} {:8.2} ms {:8.2} GB/s", time * 1e3, bytes / time / 1e9);
}

fn main() {
    let n = 10_000_000;
    let bytes = n as f64 * 4.0;
    println!("isa {}", mxnp_core::simd::isa().name());
    let (source, mut target) = (vec![1f32; n], vec![0f32; n]);
    let copy = best(|| target.copy_from_slice(&source));
    println!("{:32} {:8.2} ms {:8.2} GB/s", "memcpy 1e7 f32", copy * 1e3, 2.0 * bytes / copy / 1e9);
    let add = Bench::new(&[n], 3).time(&one("add", &[n], 2), &[]);
    println!("{:32} {:8.2} ms {:8.2} GB/s", "add 1e7 f32", add * 1e3, 3.0 * bytes / add / 1e9);
    let time = Bench::new(&[n], 4).time(&chain(&[n]), &[Scalar::Float(0.5), Scalar::Float(3.0)]);
    println!("{:32} {:8.2} ms {:8.2} GB/s", "(a*b+c)*0.5-a/3", time * 1e3, 4.0 * bytes / time / 1e9);
    for name in std::env::args().skip(1) {
        let small = [20_000];
        let pass = one(&name, &small, 1);
        let mut bench = Bench::new(&small, 2);
        let time = (0..20).map(|_| bench.time(&pass, &[])).fold(f64::INFINITY, f64::min);
        println!("{:32} {:8.3} ns/element", format!("{name} f32"), time * 1e9 / 20_000.0);
    }
    time_sum("sum 1e7 f32", &[n], &[0]);
    time_sum("sum (10000, 1000) axis 1", &[10_000, 1000], &[1]);
    time_sum("sum (10000, 1000) axis 0", &[10_000, 1000], &[0]);
    time_sum("sum (3162, 3162) axis 0", &[3162, 3162], &[0]);
    time_sum("sum (100, 1000, 100) axis 1", &[100, 1000, 100], &[1]);
    time_sum("sum (3000000, 3) axis 0", &[3_000_000, 3], &[0]);
    time_sum("sum (3000000, 3) axis 1", &[3_000_000, 3], &[1]);
    let square = [4096, 4096];
    let mut bench = Bench::new(&square, 2);
    let copy = Pass {
        shape: square.as_slice().into(),
        regs: vec![DType::F32],
        loads: vec![load(0)],
        steps: vec![],
        stores: vec![Store { reg: 0, target: 1, dtype: DType::F32 }],
        reduce: None,
    };
    println!("{:32} {:8.2} ms", "copy 4096^2", bench.time(&copy, &[]) * 1e3);
    bench.layouts[0] = bench.layouts[0].transpose(&[1, 0]);
    println!("{:32} {:8.2} ms", "transpose copy 4096^2", bench.time(&copy, &[]) * 1e3);
    let tiny = [16];
    let pass = one("add", &tiny, 2);
    let mut bench = Bench::new(&tiny, 3);
    let time = (0..1000).map(|_| bench.time(&pass, &[])).fold(f64::INFINITY, f64::min);
    println!("{:32} {:8.0} ns", "add of 16 f32", time * 1e9);
}
