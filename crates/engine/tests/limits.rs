//! Memory and queue lengths: backpressure, long chains, many readers.
#![cfg(not(any(feature = "loom", feature = "shuttle")))]

mod common;

use common::{Slot, engines, map, push, task, threaded};
use mxnp_engine::{Context, Hint};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts live bytes.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator; only sizes are counted beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise about `layout` is the one `System` needs.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: `ptr` came from `System` with this layout.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The tests of this file measure the process and run one at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn a_million_reads_of_one_thing_keep_memory_flat() {
    let _alone = alone();
    for engine in engines() {
        let weights = Slot::new(1);
        let read = |n: usize| {
            for i in 0..n {
                let hint = if i % 2 == 0 { Hint::Inline } else { Hint::Queue };
                push(&engine, task("read", &[&weights], &[], |_| Ok(())), hint);
                if i % 100 == 0 {
                    engine.wait_write(&*weights).unwrap();
                }
            }
            engine.wait_all().unwrap();
        };
        read(10_000);
        let before = LIVE.load(Ordering::Relaxed);
        read(1_000_000);
        let grown = LIVE.load(Ordering::Relaxed).saturating_sub(before);
        assert!(grown < 100_000, "{grown} bytes more, {} threads", engine.num_threads());
    }
}

#[test]
fn long_chains_are_run_and_dropped_without_recursion() {
    let _alone = alone();
    const LINKS: usize = 100_000;
    // A small stack makes a recursion of any depth show.
    let run = || {
        for engine in engines() {
            let mut slot = Slot::new(0);
            for _ in 0..LINKS {
                let next = Slot::pending();
                map(&engine, &slot, &next, |x| x + 1);
                slot = next;
            }
            engine.wait_read(&*slot).unwrap();
            assert_eq!(slot.get(), LINKS as u64);
            // A chain that nobody waits for is cancelled when the engine goes.
            for _ in 0..LINKS {
                let next = Slot::pending();
                map(&engine, &slot, &next, |x| x + 1);
                slot = next;
            }
        }
    };
    std::thread::Builder::new().stack_size(256 << 10).spawn(run).unwrap().join().unwrap();
}

#[test]
fn everything_is_freed() {
    let _alone = alone();
    for engine in engines() {
        let slots: Vec<Arc<Slot>> = (0..10).map(|_| Slot::new(1)).collect();
        for i in 0..1000 {
            map(&engine, &slots[i % 10], &slots[(i * 7 + 3) % 10], |x| x + 1);
        }
        engine.wait_all().unwrap();
        for slot in &slots {
            assert_eq!(Arc::strong_count(slot), 1);
        }
    }
}

#[test]
fn a_pushing_thread_is_held_back_by_tasks_and_by_bytes() {
    let _alone = alone();
    for threads in [1, 2, 8] {
        let engine = threaded(threads);
        for (tasks, bytes) in [(10, usize::MAX), (usize::MAX, 80)] {
            engine.set_queue_limits(tasks, bytes);
            assert_eq!(engine.queue_limits(), (tasks, bytes));
            let slot = Slot::new(0);
            for _ in 0..500 {
                map(&engine, &slot, &slot, |x| x + 1);
                engine.throttle().unwrap();
                let stats = engine.stats();
                assert!(stats.unfinished <= 10 && stats.unfinished_bytes <= 80, "{stats:?}");
            }
            engine.wait_read(&*slot).unwrap();
            assert_eq!(slot.get(), 500);
        }
        assert_eq!(engine.stats().unfinished_bytes, 0);
    }
}

#[test]
fn a_task_larger_than_the_limit_passes_when_it_is_alone() {
    let _alone = alone();
    let engine = threaded(2);
    engine.set_queue_limits(1000, 100);
    let slot = Slot::new(0);
    for _ in 0..10 {
        let s = slot.clone();
        let mut large = task("large", &[], &[&slot], move |_| {
            s.set(s.get() + 1);
            Ok(())
        });
        large.bytes = 1 << 40;
        push(&engine, large, Hint::Queue);
        engine.throttle().unwrap();
    }
    engine.wait_read(&*slot).unwrap();
    assert_eq!(slot.get(), 10);
}

#[test]
fn a_task_is_never_held_back() {
    let _alone = alone();
    let engine: &'static mxnp_engine::Engine = Box::leak(Box::new(threaded(2)));
    engine.set_queue_limits(0, 0);
    let reached = Arc::new(AtomicBool::new(false));
    let (slot, flag) = (Slot::new(0), reached.clone());
    let run = move |_: &Context<'_>| {
        assert!(engine.is_crowded());
        engine.throttle()?;
        flag.store(true, Ordering::Relaxed);
        Ok(())
    };
    push(engine, task("crowded", &[], &[&slot], run), Hint::Queue);
    engine.wait_read(&*slot).unwrap();
    assert!(reached.load(Ordering::Relaxed));
    engine.shutdown();
}
