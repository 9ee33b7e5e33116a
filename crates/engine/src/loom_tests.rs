//! Exhaustive checks of the protocols, each with a few threads: dependencies, signals, sleep, gate.
//! Run by `cargo test -p mxnp-engine --features loom --lib loom_tests`.

use crate::gate::{Gate, Watch};
use crate::node::{Body, Node, register, signal};
use crate::parallel::Loops;
use crate::sleep::Sleep;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::{Arc, park, thread};
use crate::task::Task;
use crate::var::Var;
use loom::cell::UnsafeCell;
use std::time::Duration;

/// Runs a model with few enough preemptions to end soon; two find nearly all faults of such protocols
/// (Musuvathi and Qadeer, "Iterative context bounding", PLDI 2007).
fn model(f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(f);
}

fn empty_task() -> Body {
    let run = Box::new(|_: &crate::Context<'_>| Ok(()));
    Body::Task(Task { name: "op", bytes: 0, reads: Default::default(), writes: Default::default(), run })
}

/// Two variables with a number each, which the dependency protocol alone protects.
struct Pair {
    vars: [Var; 2],
    cells: [UnsafeCell<usize>; 2],
}

// SAFETY: the cells are only touched by nodes registered on the variables; loom reports any race.
unsafe impl Sync for Pair {}

impl Pair {
    fn new() -> Arc<Self> {
        Arc::new(Pair { vars: [Var::new(), Var::new()], cells: [UnsafeCell::new(0), UnsafeCell::new(0)] })
    }

    fn bump(&self, i: usize) {
        // SAFETY: loom checks that nobody else is at the cell.
        self.cells[i].with_mut(|n| unsafe { *n += 1 });
    }

    /// Registers a node on these variables and runs it if it may run; else whoever comes before runs it.
    fn push(&self, ticket: u64, reads: &[usize], writes: &[usize]) {
        let node = Node::new(ticket, 0);
        let vars = |which: &[usize]| which.iter().map(|i| &self.vars[*i]).collect::<Vec<_>>();
        register(&node, &vars(reads), &vars(writes));
        if node.arm(empty_task()) {
            self.run(node);
        }
    }

    /// Runs a node and all that may run after it. The ticket says what it touches: bit i is a write of
    /// variable i, bit i + 2 a read.
    fn run(&self, node: Arc<Node>) {
        let mut runnable = vec![node];
        while let Some(node) = runnable.pop() {
            assert!(matches!(node.take_body(), Some(Body::Task(_))), "run twice");
            for i in 0..2 {
                if node.ticket & (1 << i) != 0 {
                    self.bump(i);
                    self.vars[i].finish_write(&node, None);
                } else if node.ticket & (4 << i) != 0 {
                    // SAFETY: as above, but for writers.
                    self.cells[i].with(|n| unsafe { *n });
                }
            }
            runnable.extend(node.close().into_iter().filter(|later| later.release() && !later.fire()));
        }
    }

    /// Waits as a waiting thread does, then reads.
    fn wait(&self, i: usize, all: bool) -> usize {
        if let Some(signal) = signal(&self.vars[i], all) {
            while !signal.is_done() {
                park(None);
            }
        }
        // SAFETY: loom checks that no writer is at the cell.
        self.cells[i].with(|n| unsafe { *n })
    }
}

#[test]
fn overlapping_writes_from_two_threads_make_no_cycle() {
    model(|| {
        let pair = Pair::new();
        let other = pair.clone();
        let pusher = thread::spawn(move || other.push(0b0011, &[], &[1, 0]));
        pair.push(0b0011, &[], &[0, 1]);
        pusher.join().unwrap();
        assert_eq!((pair.wait(0, true), pair.wait(1, true)), (2, 2));
        assert!(pair.vars.iter().all(Var::is_clean));
    });
}

#[test]
fn reads_and_writes_cross_over() {
    model(|| {
        let pair = Pair::new();
        let other = pair.clone();
        // One writes 0 and reads 1, the other writes 1 and reads 0.
        let pusher = thread::spawn(move || other.push(0b0110, &[0], &[1]));
        pair.push(0b1001, &[1], &[0]);
        pusher.join().unwrap();
        assert_eq!((pair.wait(0, true), pair.wait(1, true)), (1, 1));
    });
}

#[test]
fn a_ready_variable_shows_its_write() {
    model(|| {
        let pair = Pair::new();
        let other = pair.clone();
        let node = Node::new(1, 0);
        register(&node, &[], &[&pair.vars[0]]);
        assert!(node.arm(empty_task()) && !pair.vars[0].is_ready());
        let runner = thread::spawn(move || other.run(node));
        if pair.vars[0].is_ready() {
            // SAFETY: loom checks that the writer's effects are visible.
            assert_eq!(pair.cells[0].with(|n| unsafe { *n }), 1);
        }
        runner.join().unwrap();
    });
}

#[test]
fn a_signal_is_never_lost() {
    model(|| {
        let pair = Pair::new();
        let node = Node::new(1, 0);
        register(&node, &[], &[&pair.vars[0]]);
        assert!(node.arm(empty_task()));
        let (waiter, runner) = (pair.clone(), pair.clone());
        let waiter = thread::spawn(move || waiter.wait(0, true));
        let runner = thread::spawn(move || runner.run(node));
        assert_eq!(pair.wait(0, false), 1);
        assert_eq!(waiter.join().unwrap(), 1);
        runner.join().unwrap();
    });
}

/// Work as a number, taken by threads that sleep while there is none.
#[derive(Default)]
struct Work {
    left: AtomicUsize,
    stop: AtomicBool,
    sleep: Sleep,
}

impl Work {
    fn take(&self) -> bool {
        let taken = self.left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| n.checked_sub(1)).is_ok();
        if taken && self.left.load(Ordering::Acquire) > 0 {
            self.sleep.notify();
        }
        taken
    }

    fn add(&self) {
        self.left.fetch_add(1, Ordering::Release);
        self.sleep.notify();
    }

    /// Takes one piece, as a worker does.
    fn take_one(&self) {
        while !self.take() {
            self.sleep.sleep(&|| self.left.load(Ordering::Acquire) > 0, None);
        }
    }
}

#[test]
fn a_sleeper_is_woken_for_each_piece_of_work() {
    model(|| {
        let work = Arc::new(Work::default());
        let takers: Vec<_> = (0..2)
            .map(|_| {
                let work = work.clone();
                thread::spawn(move || work.take_one())
            })
            .collect();
        work.add();
        work.add();
        for taker in takers {
            taker.join().unwrap();
        }
    });
}

#[test]
fn a_waiter_that_leaves_passes_the_wake_up_on() {
    model(|| {
        let work = Arc::new(Work::default());
        let (worker, waiter) = (work.clone(), work.clone());
        let worker = thread::spawn(move || worker.take_one());
        // Sleeps on the same list, but leaves without taking the work it may have been woken for.
        let waiter = thread::spawn(move || {
            let done = || waiter.stop.load(Ordering::Acquire);
            waiter.sleep.sleep(&|| done() || waiter.left.load(Ordering::Acquire) > 0, None);
            if waiter.left.load(Ordering::Acquire) > 0 {
                waiter.sleep.notify();
            }
        });
        work.add();
        worker.join().unwrap();
        work.stop.store(true, Ordering::Release);
        work.sleep.notify_all();
        waiter.join().unwrap();
    });
}

#[test]
fn nobody_is_behind_a_closed_and_quiet_gate() {
    model(|| {
        let (gate, quiet) = (Arc::new(Gate::new()), Arc::new(AtomicBool::new(false)));
        let pusher = {
            let (gate, quiet) = (gate.clone(), quiet.clone());
            thread::spawn(move || {
                let epoch = gate.enter(0);
                assert!(!quiet.load(Ordering::Relaxed));
                gate.leave(epoch, 0);
            })
        };
        let visitor = {
            let (gate, quiet) = (gate.clone(), quiet.clone());
            thread::spawn(move || {
                gate.visit();
                assert!(!quiet.load(Ordering::Relaxed));
                gate.end_visit();
            })
        };
        gate.close();
        gate.watch(Watch::Quiet);
        while !gate.holds(Watch::Quiet) {
            park(None);
        }
        gate.unwatch();
        quiet.store(true, Ordering::Relaxed);
        thread::yield_now();
        quiet.store(false, Ordering::Relaxed);
        gate.open();
        pusher.join().unwrap();
        visitor.join().unwrap();
        assert_eq!(gate.tasks(), 0);
    });
}

#[test]
fn an_epoch_drains_although_another_goes_on() {
    model(|| {
        let gate = Arc::new(Gate::new());
        let first = gate.enter(0);
        let pusher = {
            let gate = gate.clone();
            // This one stays inside: if it is counted in the new epoch, nobody waits for it.
            thread::spawn(move || gate.enter(0))
        };
        let leaver = {
            let gate = gate.clone();
            thread::spawn(move || gate.leave(first, 0))
        };
        assert!(gate.take_turn() && gate.holds(Watch::Drained(gate.resting_epoch())));
        let old = gate.change_epoch();
        assert_eq!(old, first);
        let late = pusher.join().unwrap();
        if late != old {
            gate.watch(Watch::Drained(old));
            while !gate.holds(Watch::Drained(old)) {
                park(None);
            }
            gate.unwatch();
        }
        gate.end_turn();
        leaver.join().unwrap();
        assert_eq!(gate.tasks(), 1);
    });
}

#[test]
fn a_loop_ends_after_its_chunks_and_shows_their_effects() {
    model(|| {
        let loops = Arc::new(Loops::default());
        let joiner = {
            let loops = loops.clone();
            thread::spawn(move || {
                if let Some(run) = loops.find() {
                    run.work(|| ());
                }
            })
        };
        let pair = Pair::new();
        loops.run(2, 2, &|i| pair.bump(i), Duration::ZERO, || ());
        assert_eq!((pair.wait(0, false), pair.wait(1, false)), (1, 1));
        assert!(!loops.is_open());
        joiner.join().unwrap();
    });
}
