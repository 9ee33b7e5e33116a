//! Random programs of reads, writes, failures and waits, against a serial loop that follows the contract.
#![cfg(not(any(feature = "loom", feature = "shuttle")))]

mod common;

use common::{Rng, Slot, engines, push, refs, threaded};
use mxnp_engine::{Engine, Hint, Task, TaskError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const SLOTS: usize = 12;
const STEPS: usize = 300;

/// One line of a random program.
#[derive(Clone, Debug)]
enum Step {
    Run {
        reads: Vec<usize>,
        writes: Vec<usize>,
        fails: bool,
        inline: bool,
    },
    /// A slot that was never computed takes the place of the old one.
    Renew(usize),
    WaitRead(usize),
    WaitWrite(usize),
    WaitAll,
}

fn program(rng: &mut Rng) -> Vec<Step> {
    let pick = |rng: &mut Rng, most: usize| (0..rng.below(most + 1)).map(|_| rng.below(SLOTS)).collect();
    let mut steps: Vec<Step> = Vec::new();
    for _ in 0..STEPS {
        steps.push(match rng.below(40) {
            0 => Step::WaitRead(rng.below(SLOTS)),
            1 => Step::WaitWrite(rng.below(SLOTS)),
            2 => Step::WaitAll,
            3 => Step::Renew(rng.below(SLOTS)),
            _ => Step::Run {
                reads: pick(rng, 5),
                writes: pick(rng, 3),
                fails: rng.below(25) == 0,
                inline: rng.below(2) == 0,
            },
        });
    }
    steps
}

/// What a successful step stores: depends on every input and on the order of the steps.
fn mix(step: usize, inputs: impl Iterator<Item = u64>, old: u64) -> u64 {
    let seed = (step as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ old.rotate_left(7);
    inputs.fold(seed, |h, x| (h ^ x).wrapping_mul(0x100_0000_01B3).rotate_left(23))
}

/// What a program showed: each wait's outcome (the failed step) and the slots at the end.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    waits: Vec<Option<usize>>,
    values: Vec<Option<u64>>,
}

/// The contract as a serial loop.
fn serial(steps: &[Step]) -> Outcome {
    let mut values: Vec<Option<u64>> = (0..SLOTS).map(|i| Some(i as u64)).collect();
    let mut carried: Vec<Option<usize>> = vec![None; SLOTS];
    // Failed steps in program order; true once reported.
    let mut faults: std::collections::BTreeMap<usize, bool> = Default::default();
    let mut waits = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        match step {
            Step::Renew(i) => (values[*i], carried[*i]) = (None, None),
            Step::WaitRead(i) | Step::WaitWrite(i) => waits.push(carried[*i].and_then(|fault| {
                let first = !std::mem::replace(faults.get_mut(&fault).unwrap(), true);
                (first || values[*i].is_none()).then_some(fault)
            })),
            Step::WaitAll => {
                let first = faults.iter_mut().find(|(_, reported)| !**reported);
                waits.push(first.map(|(fault, reported)| {
                    *reported = true;
                    *fault
                }));
            }
            Step::Run { reads, writes, fails, .. } => {
                let strikes = |i: &usize| carried[*i].filter(|f| !faults[f] || values[*i].is_none());
                let inherited = writes.iter().chain(reads).find_map(strikes);
                if inherited.is_none() && !*fails {
                    let inputs: Vec<u64> = reads.iter().map(|i| values[*i].unwrap_or(0)).collect();
                    let old: Vec<Option<u64>> = values.clone();
                    for i in writes {
                        values[*i] = Some(mix(at, inputs.iter().copied(), old[*i].unwrap_or(0)));
                    }
                }
                if inherited.is_none() && *fails {
                    faults.insert(at, false);
                }
                for i in writes {
                    carried[*i] = inherited.or(fails.then_some(at));
                }
            }
        }
    }
    Outcome { waits, values }
}

fn step_task(at: usize, slots: &[Arc<Slot>], reads: &[usize], writes: &[usize], fails: bool) -> Task {
    let ins: Vec<Arc<Slot>> = reads.iter().map(|i| slots[*i].clone()).collect();
    let mut distinct = writes.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let only_read: Vec<Arc<Slot>> =
        reads.iter().filter(|i| !writes.contains(i)).map(|i| slots[*i].clone()).collect();
    let outs: Vec<Arc<Slot>> = distinct.iter().map(|i| slots[*i].clone()).collect();
    Task {
        name: "step",
        bytes: 8,
        reads: refs(&ins),
        writes: writes.iter().map(|i| slots[*i].clone() as mxnp_engine::VarRef).collect(),
        run: Box::new(move |context| {
            only_read.iter().for_each(|slot| slot.begin_read());
            outs.iter().for_each(|slot| slot.begin_write());
            let inputs: Vec<u64> = ins.iter().map(|slot| slot.get()).collect();
            let done: Vec<AtomicBool> = outs.iter().map(|_| AtomicBool::new(false)).collect();
            if !fails {
                context.parallel().run(outs.len(), &|i| {
                    outs[i].set(mix(at, inputs.iter().copied(), outs[i].get()));
                    assert!(!done[i].swap(true, Ordering::Relaxed), "a chunk ran twice");
                });
                assert!(done.iter().all(|d| d.load(Ordering::Relaxed)), "a chunk was left out");
            }
            outs.iter().for_each(|slot| slot.end_write());
            only_read.iter().for_each(|slot| slot.end_read());
            if fails { Err(TaskError::new("step", at.to_string())) } else { Ok(()) }
        }),
    }
}

fn failed_step(result: Result<(), TaskError>) -> Option<usize> {
    let error = result.err()?;
    Some(error.kind().to_string().parse().unwrap_or_else(|_| panic!("not a step: {error}")))
}

/// Runs a program on an engine; waits for single slots only if `own` (other threads' errors are theirs).
fn run(engine: &Engine, steps: &[Step]) -> Outcome {
    let mut slots: Vec<Arc<Slot>> = (0..SLOTS).map(|i| Slot::new(i as u64)).collect();
    let mut waits = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        match step {
            Step::Renew(i) => slots[*i] = Slot::pending(),
            Step::WaitRead(i) => waits.push(failed_step(engine.wait_read(&*slots[*i]))),
            Step::WaitWrite(i) => waits.push(failed_step(engine.wait_write(&*slots[*i]))),
            Step::WaitAll => waits.push(failed_step(engine.wait_all())),
            Step::Run { reads, writes, fails, inline } => {
                let hint = if *inline { Hint::Inline } else { Hint::Queue };
                push(engine, step_task(at, &slots, reads, writes, *fails), hint);
            }
        }
    }
    for slot in &slots {
        let _ = engine.wait_write(&**slot);
    }
    use mxnp_engine::Tracked;
    let values = slots.iter().map(|slot| slot.has_contents().then(|| slot.get())).collect();
    Outcome { waits, values }
}

#[test]
fn programs_equal_the_serial_loop() {
    for engine in engines() {
        let mut rng = Rng(0x5EED_0001);
        for n in 0..40 {
            let steps = program(&mut rng);
            assert_eq!(run(&engine, &steps), serial(&steps), "program {n}, {} threads", engine.num_threads());
            while engine.wait_all().is_err() {}
        }
    }
}

#[test]
fn threads_with_their_own_slots_do_not_disturb_each_other() {
    for engine in engines() {
        std::thread::scope(|scope| {
            for seed in 1..6_u64 {
                let engine = &engine;
                scope.spawn(move || {
                    let mut rng = Rng(seed * 0x1234_5678_9ABC);
                    for _ in 0..10 {
                        let mut steps = program(&mut rng);
                        steps.retain(|step| !matches!(step, Step::WaitAll));
                        assert_eq!(run(engine, &steps), serial(&steps));
                    }
                });
            }
        });
    }
}

#[test]
fn threads_that_share_slots_never_meet_in_one_and_lose_nothing() {
    const PUSHES: usize = 400;
    for engine in engines() {
        let slots: Vec<Arc<Slot>> = (0..6).map(|_| Slot::new(0)).collect();
        let totals: Vec<u64> = std::thread::scope(|scope| {
            let pushers: Vec<_> = (1..5_u64)
                .map(|seed| {
                    let (engine, slots) = (&engine, &slots);
                    scope.spawn(move || {
                        let mut rng = Rng(seed * 77_777);
                        let mut added = vec![0; slots.len()];
                        for _ in 0..PUSHES {
                            let (a, b, c) = (rng.below(6), rng.below(6), rng.below(6));
                            let hint = if rng.below(2) == 0 { Hint::Inline } else { Hint::Queue };
                            add(engine, slots, a, b, c, hint);
                            added[a] += 1;
                            if b != a {
                                added[b] += 1;
                            }
                        }
                        added
                    })
                })
                .collect();
            let added: Vec<Vec<u64>> = pushers.into_iter().map(|p| p.join().unwrap()).collect();
            (0..slots.len()).map(|i| added.iter().map(|a| a[i]).sum()).collect()
        });
        engine.wait_all().unwrap();
        assert_eq!(slots.iter().map(|slot| slot.get()).collect::<Vec<_>>(), totals);
    }
}

/// Pushes a task that adds one to slots `a` and `b` and reads `c`, each variable in an order of its own.
fn add(engine: &Engine, slots: &[Arc<Slot>], a: usize, b: usize, c: usize, hint: Hint) {
    let (x, y, z) = (slots[a].clone(), slots[b].clone(), slots[c].clone());
    let run = move |_: &mxnp_engine::Context<'_>| {
        let reads_apart = c != a && c != b;
        x.begin_write();
        if a != b {
            y.begin_write();
            y.set(y.get() + 1);
        }
        if reads_apart {
            z.begin_read();
            z.end_read();
        }
        x.set(x.get() + 1);
        x.end_write();
        if a != b {
            y.end_write();
        }
        Ok(())
    };
    push(engine, common::task("add", &[&slots[c]], &[&slots[a], &slots[b]], run), hint);
}

#[test]
fn independent_tasks_run_at_the_same_time() {
    let engine = threaded(2);
    let barrier = Arc::new(std::sync::Barrier::new(2));
    let slots = [Slot::pending(), Slot::pending()];
    for slot in &slots {
        let barrier = barrier.clone();
        let meet = move |_: &mxnp_engine::Context<'_>| {
            barrier.wait();
            Ok(())
        };
        push(&engine, common::task("meet", &[], &[slot], meet), Hint::Queue);
    }
    engine.wait_all().unwrap();
}

#[test]
fn inline_is_given_back_only_when_nothing_conflicts() {
    let engine = threaded(1);
    let slot = Slot::new(1);
    map_queue(&engine, &slot);
    assert!(!slot_ready(&slot));
    assert!(engine.push(common::task("read", &[&slot], &[], |_| Ok(())), Hint::Inline).is_none());
    engine.wait_write(&*slot).unwrap();
    assert!(slot_ready(&slot));
    let ready = engine.push(common::task("write", &[], &[&slot], |_| Ok(())), Hint::Inline).unwrap();
    assert!(!slot_ready(&slot));
    // Not yet run, it already orders what comes after it.
    assert!(engine.push(common::task("read", &[&slot], &[], |_| Ok(())), Hint::Inline).is_none());
    ready.run();
    assert!(slot_ready(&slot));
    engine.wait_all().unwrap();
}

fn slot_ready(slot: &Slot) -> bool {
    use mxnp_engine::Tracked;
    slot.var().is_ready()
}

fn map_queue(engine: &Engine, slot: &Arc<Slot>) {
    common::map(engine, slot, slot, |x| x + 1);
}

#[test]
fn a_ready_dropped_without_running_is_not_lost() {
    for engine in engines() {
        let slot = Slot::new(1);
        let s = slot.clone();
        let bump = move |_: &mxnp_engine::Context<'_>| {
            s.set(s.get() + 1);
            Ok(())
        };
        drop(engine.push(common::task("bump", &[], &[&slot], bump), Hint::Inline));
        engine.wait_read(&*slot).unwrap();
        assert_eq!(slot.get(), 2);
    }
}
