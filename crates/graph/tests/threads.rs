//! Several threads with one memory: pending calls of one thread are seen by another in the order in which the
//! program has synchronised them, whatever is still unflushed.

use mxnp_core::attrs::Attrs;
use mxnp_core::ops::{arith, reduce};
use mxnp_core::{DType, Scalar};
use mxnp_engine::{Kind, engine};
use mxnp_graph::{Array, Device, Handle, Input, assign, invoke, invoke_into};
use std::sync::{Arc, Barrier, Mutex, mpsc};

fn filled(n: usize, x: f64) -> Array {
    Array::from_bytes(&[n], DType::F64, Device::CPU, |dst| {
        dst.chunks_exact_mut(8).for_each(|d| d.copy_from_slice(&x.to_ne_bytes()));
    })
    .unwrap()
}

fn first(a: &Array) -> f64 {
    match a.item(0).unwrap() {
        Scalar::Float(x) => x,
        other => panic!("{other:?}"),
    }
}

fn add(a: &Array, b: Input) -> Array {
    invoke(&arith::ADD, Attrs::NONE, &[Input::Array(a), b]).unwrap()[0].clone()
}

/// Workers read a weight and leave their results pending; the main thread writes the weight in between.
fn weights_and_readers(workers: usize, rounds: usize, n: usize) {
    let weight = Arc::new(Mutex::new(Handle::new(filled(n, 0.0))));
    let start = Arc::new(Barrier::new(workers + 1));
    let (send, receive) = mpsc::channel();
    let threads: Vec<_> = (0..workers)
        .map(|k| {
            let (weight, start, send) = (weight.clone(), start.clone(), send.clone());
            std::thread::spawn(move || {
                for round in 0..rounds {
                    start.wait();
                    let w = (**weight.lock().unwrap()).clone();
                    let y = add(&w, Input::Scalar(Scalar::Int(k as i128)));
                    let z = invoke(&arith::MULTIPLY, Attrs::NONE, &[(&y).into(), (&w).into()]).unwrap();
                    send.send((round, k, y, z[0].clone())).unwrap();
                }
            })
        })
        .collect();
    for round in 0..rounds {
        start.wait();
        let results: Vec<_> = (0..workers).map(|_| receive.recv().unwrap()).collect();
        // Every reader has appended its calls; now the weight changes in place.
        let mut w = weight.lock().unwrap();
        let old = (**w).clone();
        let ins = [Input::Array(&old), Input::Scalar(Scalar::Int(1))];
        invoke_into(&arith::ADD, Attrs::NONE, &ins, &mut [&mut w]).unwrap();
        drop(w);
        for (r, k, y, z) in results {
            assert_eq!(r, round);
            assert_eq!(first(&y), round as f64 + k as f64);
            assert_eq!(first(&z), (round as f64 + k as f64) * round as f64);
        }
    }
    threads.into_iter().for_each(|t| t.join().unwrap());
}

/// A baton: each thread updates the array in place and passes it on unread.
fn relay(threads: usize, rounds: usize, n: usize) {
    let channels: Vec<_> = (0..threads).map(|_| mpsc::channel::<Handle>()).collect();
    let (senders, receivers): (Vec<_>, Vec<_>) = channels.into_iter().unzip();
    let handles: Vec<_> = receivers
        .into_iter()
        .enumerate()
        .map(|(i, receive)| {
            let next = senders[(i + 1) % threads].clone();
            std::thread::spawn(move || {
                for _ in 0..rounds {
                    let mut a = receive.recv().unwrap();
                    let old = (*a).clone();
                    let ins = [Input::Array(&old), Input::Scalar(Scalar::Int(2))];
                    invoke_into(&arith::MULTIPLY, Attrs::NONE, &ins, &mut [&mut a]).unwrap();
                    let total =
                        invoke(&reduce::SUM, reduce::sum_attrs(&[0], false), &[Input::Array(&a)]).unwrap();
                    let share = [(&total[0]).into(), Input::Scalar(Scalar::Int(2 * n as i128))];
                    let half = invoke(&arith::TRUE_DIVIDE, Attrs::NONE, &share).unwrap();
                    assign(&mut a, &[], Input::Array(&half[0])).unwrap();
                    let old = (*a).clone();
                    let ins = [Input::Array(&old), Input::Scalar(Scalar::Int(1))];
                    invoke_into(&arith::ADD, Attrs::NONE, &ins, &mut [&mut a]).unwrap();
                    // The last hop finds the ring gone; its array is dropped with everything pending.
                    let _ = next.send(a);
                }
            })
        })
        .collect();
    let a = Handle::new(filled(n, 0.0));
    let watch = (*a).clone();
    senders[0].send(a).unwrap();
    drop(senders);
    handles.into_iter().for_each(|t| t.join().unwrap());
    assert_eq!(first(&watch), (threads * rounds) as f64);
}

/// Threads write to arrays that others read in calls which write to theirs, in every direction at once.
fn crossing(threads: usize, rounds: usize) {
    let arrays: Vec<Array> = (0..3).map(|i| filled(4, i as f64)).collect();
    let start = Arc::new(Barrier::new(threads));
    let handles: Vec<_> = (0..threads)
        .map(|k| {
            let (arrays, start) = (arrays.clone(), start.clone());
            std::thread::spawn(move || {
                start.wait();
                for round in 0..rounds {
                    let (to, from) = (k % 3, (k + 1 + round % 2) % 3);
                    let mut target = Handle::new(arrays[to].clone());
                    let ins = [Input::Array(&arrays[to]), Input::Array(&arrays[from])];
                    invoke_into(&arith::MAXIMUM, Attrs::NONE, &ins, &mut [&mut target]).unwrap();
                }
            })
        })
        .collect();
    handles.into_iter().for_each(|t| t.join().unwrap());
    assert!(arrays.iter().all(|a| first(a) == 2.0));
}

#[test]
fn writes_that_cross_end() {
    for threads in [2, 3, 6] {
        crossing(threads, 20_000);
    }
}

#[test]
fn readers_and_a_writer_and_a_relay() {
    for kind in [Kind::Threaded, Kind::Naive] {
        engine().set_kind(kind);
        for threads in [1, 2, 64] {
            engine().set_num_threads(threads);
            weights_and_readers(6, 60, 5);
            weights_and_readers(3, 20, 50_000);
            relay(5, 40, 3);
            relay(3, 10, 40_000);
        }
    }
}
