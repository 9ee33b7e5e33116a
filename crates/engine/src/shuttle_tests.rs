//! The whole engine under random schedules. Run by
//! `cargo test -p mxnp-engine --features shuttle --lib shuttle_tests`.

use crate::{Config, Context, Engine, Hint, Kind, Task, TaskError, Tracked, Var, VarRef};
use mxnp_core::par::Parallel;
use shuttle::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use shuttle::thread;
use std::sync::Arc;

const SCHEDULES: usize = 1000;

struct Slot {
    var: Var,
    value: AtomicUsize,
    busy: AtomicBool,
}

impl Tracked for Slot {
    fn var(&self) -> &Var {
        &self.var
    }

    fn has_contents(&self) -> bool {
        true
    }
}

impl Slot {
    fn new() -> Arc<Self> {
        Arc::new(Slot { var: Var::new(), value: AtomicUsize::new(0), busy: AtomicBool::new(false) })
    }

    fn get(&self) -> usize {
        self.value.load(Ordering::SeqCst)
    }
}

/// Random schedules, and schedules with priorities and few preemptions, which find what needs one thread to
/// be late for long (Burckhardt et al., "A randomized scheduler with probabilistic guarantees", ASPLOS 2010).
fn check(f: impl Fn() + Send + Sync + 'static) {
    let f = Arc::new(f);
    let again = f.clone();
    shuttle::check_random(move || again(), SCHEDULES);
    shuttle::check_pct(move || f(), SCHEDULES, 3);
}

fn engine(threads: usize, kind: Kind) -> Arc<Engine> {
    Arc::new(Engine::new(&Config { threads, kind, max_tasks: 4, max_bytes: usize::MAX, patient: true }))
}

fn push_task(engine: &Engine, slot: &Arc<Slot>, hint: Hint, run: crate::Run) {
    let writes = [slot.clone() as VarRef].into_iter().collect();
    let task = Task { name: "op", bytes: 1, reads: Default::default(), writes, run };
    if let Some(ready) = engine.push(task, hint) {
        ready.run();
    }
}

fn add_one(engine: &Engine, slot: &Arc<Slot>, hint: Hint) {
    let target = slot.clone();
    let run = move |_: &Context<'_>| {
        assert!(!target.busy.swap(true, Ordering::SeqCst), "two writers at once");
        let old = target.get();
        thread::yield_now();
        target.value.store(old + 1, Ordering::SeqCst);
        target.busy.store(false, Ordering::SeqCst);
        Ok(())
    };
    push_task(engine, slot, hint, Box::new(run));
}

/// Two pushing threads, which also wait, on engines of `threads` threads.
fn pushes_and_waits(threads: usize, kind: Kind) {
    let (engine, shared) = (engine(threads, kind), Slot::new());
    let pushers: Vec<_> = (0..2)
        .map(|i| {
            let (engine, shared, own) = (engine.clone(), shared.clone(), Slot::new());
            thread::spawn(move || {
                for n in 0..2 {
                    add_one(&engine, &shared, Hint::Queue);
                    add_one(&engine, &own, if n == i { Hint::Inline } else { Hint::Queue });
                    engine.throttle().unwrap();
                }
                engine.wait_read(&*own).unwrap();
                assert_eq!(own.get(), 2);
                engine.wait_all().unwrap();
                assert!(shared.get() >= 2);
            })
        })
        .collect();
    for pusher in pushers {
        pusher.join().unwrap();
    }
    engine.wait_write(&*shared).unwrap();
    assert_eq!(shared.get(), 4);
    assert_eq!(engine.stats().unfinished, 0);
}

#[test]
fn pushes_and_waits_with_workers() {
    check(|| pushes_and_waits(3, Kind::Threaded));
}

#[test]
fn pushes_and_waits_without_workers() {
    check(|| pushes_and_waits(1, Kind::Threaded));
}

#[test]
fn pushes_and_waits_on_the_naive_engine() {
    check(|| pushes_and_waits(1, Kind::Naive));
}

#[test]
fn a_worker_runs_what_a_leaving_waiter_was_woken_for() {
    check(|| {
        let (engine, slot, other) = (engine(2, Kind::Threaded), Slot::new(), Slot::new());
        // Starts the worker, which then sleeps.
        add_one(&engine, &other, Hint::Queue);
        engine.wait_read(&*other).unwrap();
        let writes = [slot.clone() as VarRef].into_iter().collect();
        let task =
            Task { name: "op", bytes: 1, reads: Default::default(), writes, run: Box::new(|_| Ok(())) };
        let ready = engine.push(task, Hint::Inline).unwrap();
        let waiter = {
            let (engine, slot) = (engine.clone(), slot.clone());
            thread::spawn(move || engine.wait_read(&*slot).unwrap())
        };
        thread::yield_now();
        ready.run();
        // Nobody waits for this one: if the waiter swallows its wake-up, it never runs.
        let (sender, receiver) = shuttle::sync::mpsc::channel();
        let run = move |_: &Context<'_>| {
            sender.send(()).unwrap();
            Ok(())
        };
        push_task(&engine, &other, Hint::Queue, Box::new(run));
        receiver.recv().unwrap();
        waiter.join().unwrap();
    });
}

#[test]
fn settings_change_under_way() {
    check(|| {
        let (engine, slot) = (engine(2, Kind::Threaded), Slot::new());
        let pusher = {
            let (engine, slot) = (engine.clone(), slot.clone());
            thread::spawn(move || {
                for _ in 0..3 {
                    add_one(&engine, &slot, Hint::Queue);
                }
                engine.wait_read(&*slot).unwrap();
                assert_eq!(slot.get(), 3);
            })
        };
        engine.set_num_threads(3);
        engine.set_kind(Kind::Naive);
        engine.prepare_fork();
        engine.after_fork_parent();
        pusher.join().unwrap();
    });
}

#[test]
fn exit_frees_everyone() {
    check(|| {
        let (engine, slot) = (engine(2, Kind::Threaded), Slot::new());
        let pusher = {
            let (engine, slot) = (engine.clone(), slot.clone());
            thread::spawn(move || {
                for _ in 0..3 {
                    add_one(&engine, &slot, Hint::Queue);
                }
                let _ = engine.wait_read(&*slot);
                let _ = engine.wait_all();
            })
        };
        engine.shutdown();
        pusher.join().unwrap();
        let before = slot.get();
        let _ = engine.wait_read(&*slot);
        add_one(&engine, &slot, Hint::Queue);
        assert_eq!(slot.get(), before + 1);
    });
}

#[test]
fn an_error_is_raised_once_by_one_of_two_waits() {
    check(|| {
        let (engine, slot) = (engine(2, Kind::Threaded), Slot::new());
        push_task(&engine, &slot, Hint::Queue, Box::new(|_| Err(TaskError::new("op", "bad"))));
        let other = {
            let (engine, slot) = (engine.clone(), slot.clone());
            thread::spawn(move || usize::from(engine.wait_read(&*slot).is_err()))
        };
        let mine = usize::from(engine.wait_all().is_err());
        assert_eq!(mine + other.join().unwrap(), 1);
        add_one(&engine, &slot, Hint::Queue);
        engine.wait_read(&*slot).unwrap();
        assert_eq!(slot.get(), 1);
    });
}

#[test]
fn loops_within_and_beside_tasks() {
    check(|| {
        let (engine, slot) = (engine(3, Kind::Threaded), Slot::new());
        let count = |parallel: &dyn Parallel, slot: &Slot| {
            parallel.run(3, &|_| {
                slot.value.fetch_add(1, Ordering::SeqCst);
            });
        };
        let target = slot.clone();
        let run = move |context: &Context<'_>| {
            count(context.parallel(), &target);
            assert!(target.get() >= 3);
            Ok(())
        };
        push_task(&engine, &slot, Hint::Queue, Box::new(run));
        let beside = Slot::new();
        count(engine.parallel(), &beside);
        assert_eq!(beside.get(), 3);
        engine.wait_read(&*slot).unwrap();
        assert_eq!(slot.get(), 3);
    });
}
