//! Which locks threads share whose tasks touch different things: the counts that ADR 0018 argues with.

use crate::sync::taken;
use crate::{Config, Engine, Hint, Kind, Task, Tracked, Var, VarRef};
use std::collections::BTreeSet;
use std::sync::{Arc, Barrier};

struct Slot(Var);

impl Tracked for Slot {
    fn var(&self) -> &Var {
        &self.0
    }
    fn has_contents(&self) -> bool {
        true
    }
}

const TASKS: usize = 100;
const THREADS: usize = 8;

/// Pushes tasks that read one thing and write another, runs them, and waits.
fn work(engine: &Engine, from: &Arc<Slot>, to: &Arc<Slot>) {
    for _ in 0..TASKS {
        let (reads, writes) = ([from.clone() as VarRef], [to.clone() as VarRef]);
        let (reads, writes) = (reads.into_iter().collect(), writes.into_iter().collect());
        let task = Task { name: "work", bytes: 8, reads, writes, run: Box::new(|_| Ok(())) };
        engine.push(task, Hint::Inline).expect("nothing is unfinished").run();
        engine.wait_read(&**to).unwrap();
    }
}

#[test]
fn threads_whose_tasks_touch_different_things_share_no_lock() {
    let config =
        Config { threads: 4, kind: Kind::Threaded, max_tasks: 100, max_bytes: 1 << 20, patient: true };
    let (engine, barrier) = (Engine::new(&config), Barrier::new(THREADS));
    let all: Vec<Vec<usize>> = std::thread::scope(|scope| {
        let worker = || {
            let (from, to) = (Arc::new(Slot(Var::new())), Arc::new(Slot(Var::new())));
            barrier.wait();
            let locks = taken::by(|| work(&engine, &from, &to));
            barrier.wait();
            locks
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(worker)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut seen = BTreeSet::new();
    for locks in all {
        // Both variables to register, the written one to finish; the task's body, and who waits for it: its node's.
        assert!(locks.len() <= 9 * TASKS, "{} locks for {TASKS} tasks", locks.len());
        let own: BTreeSet<usize> = locks.into_iter().collect();
        assert!(own.iter().all(|lock| seen.insert(*lock)), "a lock of two threads");
    }
}
