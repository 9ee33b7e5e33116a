//! Which locks threads share that work on arrays of their own: the counts that ADR 0018 argues with.

use crate::sync::taken;
use crate::{Array, Device, Input, invoke};
use mxnp_core::DType;
use mxnp_core::attrs::Attrs;
use mxnp_core::ops::arith;
use std::collections::BTreeSet;
use std::sync::Barrier;

const CALLS: usize = 1000;

fn ones() -> Array {
    Array::from_bytes(&[4], DType::F32, Device::CPU, |bytes| bytes.fill(0)).unwrap()
}

fn chain(a: &Array, b: &Array) {
    let mut c = a.clone();
    for _ in 0..CALLS {
        c = invoke(&arith::ADD, Attrs::NONE, &[Input::Array(&c), Input::Array(b)]).unwrap().swap_remove(0);
    }
    c.wait_to_read().unwrap();
}

#[test]
fn threads_with_arrays_of_their_own_share_no_lock() {
    const THREADS: usize = 8;
    let barrier = Barrier::new(THREADS);
    let all: Vec<Vec<usize>> = std::thread::scope(|scope| {
        let worker = || {
            let (a, b) = (ones(), ones());
            // What a thread does once: its segment, its plans, the layouts it meets.
            (0..3).for_each(|_| chain(&a, &b));
            barrier.wait();
            let locks = taken::by(|| chain(&a, &b));
            barrier.wait();
            locks
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(worker)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut seen = BTreeSet::new();
    for locks in all {
        assert_eq!(
            locks.len(),
            CALLS + 1,
            "an append takes its segment's lock, and so does the wait's flush"
        );
        let own: BTreeSet<usize> = locks.into_iter().collect();
        assert_eq!(own.len(), 1, "it is always the same one");
        assert!(own.iter().all(|lock| seen.insert(*lock)), "and no other thread's");
    }
}
