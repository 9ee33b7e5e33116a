//! What core's tests share: a small generator of numbers, orders of chunks, and addresses of elements.
#![allow(dead_code)] // each test file uses a part

use mxnp_core::Layout;
use mxnp_core::par::Parallel;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A generator (splitmix64) that gives the same numbers everywhere.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// A number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

/// Runs chunks on this thread in a random order.
pub struct Shuffled(pub u64);

impl Parallel for Shuffled {
    fn run(&self, chunks: usize, body: &(dyn Fn(usize) + Sync)) {
        let mut order: Vec<usize> = (0..chunks).collect();
        Rng(self.0).shuffle(&mut order);
        order.into_iter().for_each(body);
    }
}

/// Runs chunks on this many threads.
pub struct Threads(pub usize);

impl Parallel for Threads {
    fn run(&self, chunks: usize, body: &(dyn Fn(usize) + Sync)) {
        let next = AtomicUsize::new(0);
        if chunks == 1 {
            return body(0);
        }
        std::thread::scope(|scope| {
            for _ in 0..self.0 {
                scope.spawn(|| {
                    loop {
                        let chunk = next.fetch_add(1, Ordering::Relaxed);
                        if chunk >= chunks {
                            break;
                        }
                        body(chunk);
                    }
                });
            }
        });
    }
}

/// The offset in elements of element `i`, in row-major order of `shape`, of a layout.
pub fn element(layout: &Layout, shape: &[usize], mut i: usize) -> usize {
    let mut at = layout.offset as isize;
    for (&n, &stride) in shape.iter().zip(&layout.strides).rev() {
        at += (i % n) as isize * stride;
        i /= n;
    }
    at as usize
}
