//! The interrupt check ends a long wait and loses nothing.
#![cfg(not(any(feature = "loom", feature = "shuttle")))]

mod common;

use common::{Slot, push, task, threaded};
use mxnp_engine::{Context, Engine, EngineError, Hint, TaskError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

fn is_interrupted(result: Result<(), TaskError>) -> bool {
    let error = result.expect_err("the wait ended before its task");
    error.kind().downcast_ref() == Some(&EngineError::Interrupted)
}

#[test]
fn an_interrupted_wait_can_be_taken_up_again() {
    Engine::set_interrupt_check(|| INTERRUPTED.load(Ordering::Relaxed));
    for threads in [2, 8] {
        let engine = threaded(threads);
        let (slot, (go, gate)) = (Slot::pending(), channel::<()>());
        let (begun, has_begun) = channel();
        let target = slot.clone();
        let slow = task("slow", &[], &[&slot], move |_: &Context<'_>| {
            begun.send(()).unwrap();
            gate.recv().unwrap();
            target.set(1);
            Ok(())
        });
        push(&engine, slow, Hint::Queue);
        // A worker has it, so the waits below do not run it themselves.
        has_begun.recv().unwrap();
        INTERRUPTED.store(true, Ordering::Relaxed);
        for _ in 0..3 {
            assert!(is_interrupted(engine.wait_all()));
            assert!(is_interrupted(engine.wait_read(&*slot)));
        }
        engine.set_queue_limits(0, 0);
        assert!(is_interrupted(engine.throttle()));
        INTERRUPTED.store(false, Ordering::Relaxed);
        go.send(()).unwrap();
        engine.wait_all().unwrap();
        assert_eq!(slot.get(), 1);
    }
}
