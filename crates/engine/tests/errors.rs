//! Errors: who inherits them, who raises them, how often, and what they cost.
#![cfg(not(any(feature = "loom", feature = "shuttle")))]

mod common;

use common::{Slot, engines, fail, map, push, task, threaded};
use mxnp_engine::{EngineError, Hint, TaskError};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn text(result: Result<(), TaskError>) -> String {
    result.expect_err("an error was expected").to_string()
}

#[test]
fn a_failed_write_keeps_the_contents_and_is_raised_once() {
    for engine in engines() {
        let weights = Slot::new(7);
        fail(&engine, &weights, "bad batch");
        assert_eq!(text(engine.wait_read(&*weights)), "fail: bad batch");
        assert_eq!(weights.get(), 7);
        engine.wait_read(&*weights).unwrap();
        map(&engine, &weights, &weights, |x| x + 1);
        engine.wait_read(&*weights).unwrap();
        assert_eq!(weights.get(), 8);
        engine.wait_all().unwrap();
    }
}

#[test]
fn readers_inherit_until_a_wait_has_raised_it() {
    for engine in engines() {
        let (weights, loss, later) = (Slot::new(7), Slot::pending(), Slot::pending());
        fail(&engine, &weights, "bad batch");
        map(&engine, &weights, &loss, |x| x);
        map(&engine, &weights, &weights, |x| x + 1);
        assert_eq!(text(engine.wait_read(&*weights)), "fail: bad batch");
        map(&engine, &weights, &later, |x| x);
        engine.wait_read(&*later).unwrap();
        assert_eq!((weights.get(), later.get()), (7, 7));
        // Never computed: it keeps its error for ever, and so does what is computed from it.
        for _ in 0..2 {
            assert_eq!(text(engine.wait_read(&*loss)), "fail: bad batch");
        }
        map(&engine, &loss, &later, |x| x + 1);
        assert_eq!(text(engine.wait_write(&*loss)), "fail: bad batch");
        engine.wait_read(&*later).unwrap();
        assert_eq!(later.get(), 7);
        engine.wait_all().unwrap();
    }
}

#[test]
fn wait_all_raises_each_first_error_in_program_order_once() {
    for engine in engines() {
        let slots: Vec<Arc<Slot>> = (0..4).map(|_| Slot::new(0)).collect();
        for (slot, why) in slots.iter().zip(["one", "two", "three", "four"]) {
            fail(&engine, slot, why);
        }
        assert_eq!(text(engine.wait_read(&*slots[1])), "fail: two");
        assert_eq!(text(engine.wait_all()), "fail: one");
        assert_eq!(text(engine.wait_all()), "fail: three");
        engine.wait_read(&*slots[0]).unwrap();
        assert_eq!(text(engine.wait_read(&*slots[3])), "fail: four");
        engine.wait_all().unwrap();
    }
}

#[test]
fn an_error_of_a_dropped_thing_is_still_raised_by_wait_all() {
    for engine in engines() {
        let slot = Slot::pending();
        fail(&engine, &slot, "lost");
        drop(slot);
        assert_eq!(text(engine.wait_all()), "fail: lost");
        engine.wait_all().unwrap();
    }
}

#[test]
fn the_kind_of_an_error_comes_back_as_it_went_in() {
    #[derive(Debug, thiserror::Error)]
    #[error("index {0} is out of range")]
    struct Index(i64);
    let engine = threaded(2);
    let slot = Slot::pending();
    push(&engine, task("take", &[], &[&slot], |_| Err(TaskError::new("take", Index(9)))), Hint::Queue);
    let error = engine.wait_read(&*slot).unwrap_err();
    assert_eq!(error.op(), "take");
    assert_eq!(error.kind().downcast_ref::<Index>().unwrap().0, 9);
    assert_eq!(error.to_string(), "take: index 9 is out of range");
}

#[test]
fn a_panic_in_a_task_or_a_chunk_becomes_its_error() {
    for engine in engines() {
        let (a, b, c) = (Slot::pending(), Slot::new(3), Slot::new(1));
        push(&engine, task("boom", &[], &[&a], |_| panic!("at {}", 5)), Hint::Queue);
        let chunks = task("chunks", &[], &[&b], |context| {
            context.parallel().run(8, &|i| assert!(i != 3, "chunk three"));
            Ok(())
        });
        push(&engine, chunks, Hint::Inline);
        map(&engine, &c, &c, |x| x + 1);
        let error = engine.wait_read(&*a).unwrap_err();
        let kind = EngineError::Panic("at 5".into());
        assert_eq!(error.kind().downcast_ref::<EngineError>(), Some(&kind));
        assert_eq!(text(engine.wait_read(&*b)), "chunks: internal error: chunk three");
        engine.wait_read(&*c).unwrap();
        assert_eq!(c.get(), 2);
    }
}

#[test]
fn a_panic_while_a_task_is_dropped_hurts_nobody() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                panic!("in a destructor");
            }
        }
    }
    for engine in engines() {
        let (a, b) = (Slot::new(1), Slot::new(1));
        fail(&engine, &a, "first");
        let bomb = Bomb;
        let skipped = task("skipped", &[&a], &[&b], move |_| {
            let _bomb = &bomb;
            Ok(())
        });
        push(&engine, skipped, Hint::Queue);
        assert_eq!(text(engine.wait_read(&*b)), "fail: first");
        map(&engine, &b, &b, |x| x + 1);
        engine.wait_read(&*b).unwrap();
        assert_eq!(b.get(), 2);
    }
}

#[test]
fn a_task_that_waits_gets_an_error_instead_of_a_deadlock() {
    let engine: &'static mxnp_engine::Engine = Box::leak(Box::new(threaded(2)));
    let (a, b) = (Slot::new(1), Slot::new(1));
    let inner = b.clone();
    let waits = move |_: &mxnp_engine::Context<'_>| {
        engine.throttle()?;
        engine.wait_write(&*inner)
    };
    push(engine, task("waits", &[], &[&a, &b], waits), Hint::Queue);
    let error = engine.wait_read(&*a).unwrap_err();
    assert_eq!(error.kind().downcast_ref::<EngineError>(), Some(&EngineError::WaitInTask));
    engine.shutdown();
}

#[test]
fn unreported_errors_do_not_pile_up() {
    static ALIVE: AtomicUsize = AtomicUsize::new(0);
    #[derive(Debug, thiserror::Error)]
    #[error("counted")]
    struct Counted;
    impl Drop for Counted {
        fn drop(&mut self) {
            ALIVE.fetch_sub(1, Ordering::Relaxed);
        }
    }
    for engine in engines() {
        for _ in 0..2000 {
            let slot = Slot::pending();
            let run = |_: &mxnp_engine::Context<'_>| {
                ALIVE.fetch_add(1, Ordering::Relaxed);
                Err(TaskError::new("op", Counted))
            };
            push(&engine, task("op", &[], &[&slot], run), Hint::Inline);
        }
        assert!(ALIVE.load(Ordering::Relaxed) <= 100, "{} errors kept", ALIVE.load(Ordering::Relaxed));
        while engine.wait_all().is_err() {}
        assert_eq!(ALIVE.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn a_reported_fault_is_let_go() {
    for engine in engines() {
        let slot = Slot::new(1);
        let payload = Arc::new(());
        let weak = Arc::downgrade(&payload);
        #[derive(Debug, thiserror::Error)]
        #[error("held")]
        struct Held(#[allow(dead_code)] Arc<()>);
        let run = move |_: &mxnp_engine::Context<'_>| Err(TaskError::new("op", Held(payload)));
        push(&engine, task("op", &[], &[&slot], run), Hint::Queue);
        drop(engine.wait_read(&*slot).unwrap_err());
        let _ = engine.wait_all();
        assert!(weak.upgrade().is_none());
        use mxnp_engine::Tracked;
        assert!(slot.var().is_clean());
    }
}
