//! Parallel loops: every chunk once, joined by workers, safe when nested and when a chunk panics.
#![cfg(not(any(feature = "loom", feature = "shuttle")))]

mod common;

use common::{Slot, engines, push, task, threaded};
use mxnp_engine::{Context, Hint};
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};

fn counters(n: usize) -> Vec<AtomicUsize> {
    (0..n).map(|_| AtomicUsize::new(0)).collect()
}

fn all_once(counts: &[AtomicUsize]) -> bool {
    counts.iter().all(|count| count.load(Ordering::Relaxed) == 1)
}

#[test]
fn every_chunk_runs_once() {
    for engine in engines() {
        for chunks in [0, 1, 2, 3, 7, 64, 1000] {
            for _ in 0..50 {
                let counts = counters(chunks);
                engine.parallel().run(chunks, &|i| {
                    counts[i].fetch_add(1, Ordering::Relaxed);
                });
                assert!(all_once(&counts), "{chunks} chunks on {} threads", engine.num_threads());
            }
        }
    }
}

#[test]
fn idle_workers_join_a_loop() {
    let engine = threaded(4);
    // Each chunk waits for the three others: the loop ends only if four threads run it.
    let (barrier, ids) = (Barrier::new(4), Mutex::new(HashSet::new()));
    engine.parallel().run(4, &|_| {
        ids.lock().unwrap().insert(std::thread::current().id());
        barrier.wait();
    });
    assert_eq!(ids.into_inner().unwrap().len(), 4);
    assert_eq!(engine.stats().workers, 3);
}

#[test]
fn each_thread_begins_with_its_own_part() {
    let engine = threaded(2);
    let caller = std::thread::current().id();
    for chunks in [2, 4, 9, 100] {
        // Nobody goes on from its first chunk before the other has one.
        let (barrier, firsts) = (Barrier::new(2), Mutex::new(Vec::new()));
        engine.parallel().run(chunks, &|i| {
            let me = std::thread::current().id();
            let mut list = firsts.lock().unwrap();
            let is_first = list.iter().all(|(id, _)| *id != me);
            if is_first {
                list.push((me, i));
            }
            drop(list);
            if is_first {
                barrier.wait();
            }
        });
        for (id, first) in firsts.into_inner().unwrap() {
            assert_eq!(first, if id == caller { 0 } else { chunks / 2 });
        }
    }
}

#[test]
fn nested_loops_finish() {
    for engine in engines() {
        let counts = counters(8 * 8 * 8);
        let parallel = engine.parallel();
        parallel.run(8, &|i| {
            parallel.run(8, &|j| {
                parallel.run(8, &|k| {
                    counts[(i * 8 + j) * 8 + k].fetch_add(1, Ordering::Relaxed);
                });
            });
        });
        assert!(all_once(&counts));
    }
}

#[test]
fn a_panic_reaches_the_caller_after_all_chunks() {
    for threads in [2, 8, 64] {
        let engine = threaded(threads);
        for _ in 0..20 {
            let counts = counters(100);
            let result = catch_unwind(AssertUnwindSafe(|| {
                engine.parallel().run(100, &|i| {
                    counts[i].fetch_add(1, Ordering::Relaxed);
                    assert!(i % 10 != 5, "chunk {i}");
                });
            }));
            let payload = result.expect_err("the panic was lost");
            assert!(payload.downcast_ref::<String>().unwrap().starts_with("chunk "));
            assert!(all_once(&counts));
        }
        let counts = counters(10);
        engine.parallel().run(10, &|i| {
            counts[i].fetch_add(1, Ordering::Relaxed);
        });
        assert!(all_once(&counts));
    }
}

#[test]
fn loops_in_many_tasks_and_threads_at_once() {
    for engine in engines() {
        let total = Arc::new(AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let (slot, sum) = (Slot::pending(), total.clone());
                        let run = move |context: &Context<'_>| {
                            context.parallel().run(5, &|i| {
                                sum.fetch_add(i, Ordering::Relaxed);
                            });
                            Ok(())
                        };
                        push(&engine, task("loop", &[], &[&slot], run), Hint::Queue);
                        engine.parallel().run(3, &|i| {
                            total.fetch_add(i, Ordering::Relaxed);
                        });
                    }
                });
            }
        });
        engine.wait_all().unwrap();
        assert_eq!(total.load(Ordering::Relaxed), 200 * (10 + 3));
    }
}
