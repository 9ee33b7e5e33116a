//! Measures the cost of appending and running small ops:
//! `cargo run --release -p mxnp-graph --example small_ops [part of a name]`.

use mxnp_core::attrs::Attrs;
use mxnp_core::ops::{arith, reduce};
use mxnp_core::{DType, Scalar};
use mxnp_graph::tape::{self, GradReq};
use mxnp_graph::{Array, Device, Handle, Input, invoke, modes};
use std::sync::Barrier;
use std::time::Instant;

/// As in the extension.
#[global_allocator]
static BLOCKS: mxnp_core::blocks::Blocks = mxnp_core::blocks::Blocks;

fn ones(n: usize) -> Array {
    Array::from_bytes(&[n], DType::F32, Device::CPU, |dst| {
        dst.chunks_exact_mut(4).for_each(|d| d.copy_from_slice(&1f32.to_ne_bytes()));
    })
    .unwrap()
}

fn op2(op: &'static mxnp_core::Op, a: &Array, b: Input) -> Array {
    invoke(op, Attrs::NONE, &[Input::Array(a), b]).unwrap().swap_remove(0)
}

/// Whether the command line asks for this row.
fn wanted(name: &str) -> bool {
    std::env::args().nth(1).is_none_or(|only| name.contains(&only))
}

fn time(name: &str, per: usize, mut f: impl FnMut()) {
    if !wanted(name) {
        return;
    }
    for _ in 0..20 {
        f();
    }
    let mut best = f64::MAX;
    for _ in 0..15 {
        let start = Instant::now();
        for _ in 0..20 {
            f();
        }
        best = best.min(start.elapsed().as_secs_f64() / 20.0);
    }
    println!("{name}: {:.0} ns each", best * 1e9 / per as f64);
}

/// What all of `threads` threads append and run together in a second, each on arrays of its own, `length` adds between
/// two waits.
fn together(threads: usize, length: usize) -> f64 {
    let rounds = 400_000 / threads / length.max(10);
    let barrier = Barrier::new(threads + 1);
    let work = || {
        let (a, b) = (ones(4), ones(4));
        let round = || {
            let mut c = a.clone();
            for _ in 0..length {
                c = op2(&arith::ADD, &c, Input::Array(&b));
            }
            c.wait_to_read().unwrap();
        };
        (0..3).for_each(|_| round());
        barrier.wait();
        (0..rounds).for_each(|_| round());
    };
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        barrier.wait();
        let start = Instant::now();
        handles.into_iter().for_each(|handle| handle.join().unwrap());
        (threads * rounds * length) as f64 / start.elapsed().as_secs_f64()
    })
}

fn main() {
    let (a, b) = (ones(4), ones(4));
    time("1000 adds of 4 elements", 1000, || {
        let mut c = a.clone();
        for _ in 0..1000 {
            c = op2(&arith::ADD, &c, Input::Array(&b));
        }
        c.wait_to_read().unwrap();
    });
    time("one add and wait", 1, || op2(&arith::ADD, &a, Input::Array(&b)).wait_to_read().unwrap());
    for threads in [1, 2, 4, 8, 16, 32, 64].into_iter().filter(|_| wanted("threads")) {
        let (long, short) = (together(threads, 1000) / 1e6, together(threads, 1) / 1e6);
        println!(
            "{threads} threads: {long:.2} million adds a second, {short:.2} million with a wait for each"
        );
    }
    let mut x = Handle::new(ones(8));
    tape::attach_grad(&mut x, None, GradReq::Write).unwrap();
    time("chain, sum and backward of 8 elements", 1, || {
        modes::set_recording(true);
        let y =
            op2(&arith::MULTIPLY, &op2(&arith::ADD, &x, Input::Scalar(Scalar::Float(1.0))), Input::Array(&x));
        let s = invoke(&reduce::SUM, reduce::sum_attrs(&[0], false), &[Input::Array(&y)]).unwrap();
        modes::set_recording(false);
        tape::backward(&[&s[0]], &[None], false, true).unwrap();
        tape::grad_of(&x).unwrap().wait_to_read().unwrap();
    });
    for n in [1_000_000, 10_000_000].into_iter().filter(|_| wanted("(a * b + c) * 0.5 - a / 3")) {
        let (a, b, c) = (ones(n), ones(n), ones(n));
        time(&format!("(a * b + c) * 0.5 - a / 3 of {n}"), n, || {
            let t = op2(&arith::ADD, &op2(&arith::MULTIPLY, &a, Input::Array(&b)), Input::Array(&c));
            let t = op2(&arith::MULTIPLY, &t, Input::Scalar(Scalar::Float(0.5)));
            let u = op2(&arith::TRUE_DIVIDE, &a, Input::Scalar(Scalar::Int(3)));
            op2(&arith::SUBTRACT, &t, Input::Array(&u)).wait_to_read().unwrap();
        });
    }
}
