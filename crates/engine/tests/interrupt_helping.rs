//! The interrupt check is asked also by a wait that always finds other work to do.
#![cfg(not(any(feature = "loom", feature = "shuttle")))]

mod common;

use common::{Slot, push, task, threaded};
use mxnp_engine::{Context, Engine, EngineError, Hint};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

static STOP: AtomicBool = AtomicBool::new(false);

/// Pushes a task that pushes the next one: there is always one to run.
fn go_on(engine: &'static Engine, slot: Arc<Slot>) {
    let target = slot.clone();
    let next = task("next", &[], &[&slot], move |_: &Context<'_>| {
        if !STOP.load(Ordering::Relaxed) {
            go_on(engine, target);
        }
        Ok(())
    });
    push(engine, next, Hint::Queue);
}

#[test]
fn a_wait_with_endless_other_work_is_interrupted() {
    Engine::set_interrupt_check(|| true);
    let engine: &'static Engine = Box::leak(Box::new(threaded(2)));
    let (slot, (go, gate), (begun, has_begun)) = (Slot::pending(), channel::<()>(), channel());
    let target = slot.clone();
    let slow = task("slow", &[], &[&slot], move |_: &Context<'_>| {
        begun.send(()).unwrap();
        gate.recv().unwrap();
        target.set(1);
        Ok(())
    });
    push(engine, slow, Hint::Queue);
    // The only worker has it; the endless work is left to the waiting thread.
    has_begun.recv().unwrap();
    go_on(engine, Slot::new(0));
    let error = engine.wait_read(&*slot).expect_err("the slow task has not ended");
    assert_eq!(error.kind().downcast_ref(), Some(&EngineError::Interrupted));
    STOP.store(true, Ordering::Relaxed);
    go.send(()).unwrap();
}
