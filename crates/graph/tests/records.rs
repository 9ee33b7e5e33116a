//! Records of what ran, without Python: what a log holds, several logs, and many threads that make and read them.

use mxnp_core::attrs::Attrs;
use mxnp_core::ops::arith;
use mxnp_core::{DType, Scalar};
use mxnp_graph::record::{Event, Log, Outcome, Ran, name_thread, threads};
use mxnp_graph::{Array, Device, Input, flush_current, invoke, settle};
use std::sync::{Arc, Barrier, Mutex};

/// The tests share one process, and logs hold the work of all its threads.
static ALONE: Mutex<()> = Mutex::new(());

fn ones(n: usize) -> Array {
    Array::from_bytes(&[n], DType::F64, Device::CPU, |dst| {
        dst.chunks_exact_mut(8).for_each(|d| d.copy_from_slice(&1f64.to_ne_bytes()));
    })
    .unwrap()
}

fn plus(a: &Array, x: f64) -> Array {
    let ins = [Input::Array(a), Input::Scalar(Scalar::Float(x))];
    invoke(&arith::ADD, Attrs::NONE, &ins).unwrap()[0].clone()
}

/// The units in a log.
fn ran(log: &Log) -> Vec<Arc<Ran>> {
    let units = log.events().0.into_iter();
    units.filter_map(|event| if let Event::Ran(ran) = event { Some(ran) } else { None }).collect()
}

#[test]
fn a_log_holds_what_was_asked_for_while_it_was_open() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let a = ones(100);
    let (outer, inner) = (Log::new(100), Log::new(100));
    let early = plus(&a, 1.0);
    flush_current();
    outer.open();
    let both = plus(&plus(&a, 2.0), 3.0);
    both.wait_to_read().unwrap();
    inner.open();
    let last = plus(&a, 4.0);
    last.wait_to_read().unwrap();
    inner.close();
    outer.close();
    let late = plus(&a, 5.0);
    settle().unwrap();
    let units = ran(&outer);
    assert_eq!(units.len(), 2);
    assert_eq!(ran(&inner).len(), 1);
    assert!(Arc::ptr_eq(&units[1], &ran(&inner)[0]));
    let plan = &units[0].flush.plan;
    assert_eq!((&plan.calls[..], plan.units.len(), plan.dead.len()), (&["add", "add"][..], 1, 0));
    assert_eq!((plan.units[0].reads[0].bytes, plan.units[0].writes[0].bytes), (800, 800));
    assert!(units.iter().all(|u| u.outcome == Outcome::Done && u.queued <= u.start && u.start <= u.end));
    drop((early, late));
}

#[test]
fn many_threads_beside_logs_that_come_and_go() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let (threads, rounds) = (8, 200);
    let start = Arc::new(Barrier::new(threads + 1));
    let whole = Log::new(usize::MAX);
    whole.open();
    let work = |_| {
        let start = start.clone();
        std::thread::spawn(move || {
            let a = ones(50);
            start.wait();
            for round in 0..rounds {
                let b = plus(&plus(&a, round as f64), 1.0);
                b.wait_to_read().unwrap();
                assert!(matches!(b.item(49).unwrap(), Scalar::Float(x) if x == round as f64 + 2.0));
            }
        })
    };
    let working: Vec<_> = (0..threads).map(work).collect();
    start.wait();
    for _ in 0..100 {
        let log = Log::new(10);
        log.open();
        let (events, dropped) = log.events();
        assert!(events.len() <= 10);
        let _ = (dropped, log.totals());
        log.close();
    }
    working.into_iter().for_each(|thread| thread.join().unwrap());
    settle().unwrap();
    whole.close();
    let parts: usize = ran(&whole).iter().map(|unit| unit.flush.plan.units[unit.unit].parts.len()).sum();
    assert_eq!(parts, 2 * threads * rounds);
    let adds: u64 =
        whole.totals().iter().filter(|((kind, _), _)| *kind == "operator").map(|(_, t)| t.count).sum();
    assert_eq!(adds as usize, ran(&whole).len());
}

#[test]
fn names_of_threads_go_with_them_and_the_logs() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let work = |name: &'static str| {
        std::thread::spawn(move || {
            let number = name_thread(Some(name));
            assert_eq!(threads()[&number], name);
            number
        })
    };
    let early = work("early").join().unwrap();
    assert!(!threads().contains_key(&early), "no log speaks of it");
    let (first, second) = (Log::new(1), Log::new(1));
    let late = work("late").join().unwrap();
    drop(first);
    assert_eq!(threads()[&late], "late", "the second log may speak of it");
    drop(second);
    assert!(!threads().contains_key(&late));
    assert_ne!(early, late, "numbers do not come again");
}
