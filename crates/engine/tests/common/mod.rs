//! A tracked number, short ways to push tasks on it, and a small random generator.
#![allow(dead_code)] // each test file uses a part

use mxnp_engine::{Config, Context, Engine, Hint, Kind, Task, TaskError, Tracked, Var, VarRef};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

/// A number with a variable. It notices accesses that the engine should have kept apart.
pub struct Slot {
    var: Var,
    value: AtomicU64,
    computed: AtomicBool,
    /// Readers inside, or -1 for a writer.
    users: AtomicI32,
}

impl Tracked for Slot {
    fn var(&self) -> &Var {
        &self.var
    }

    fn has_contents(&self) -> bool {
        self.computed.load(Ordering::Acquire)
    }
}

impl Slot {
    /// With contents.
    pub fn new(value: u64) -> Arc<Slot> {
        let slot = Slot::pending();
        slot.set(value);
        slot
    }

    /// Not computed yet.
    pub fn pending() -> Arc<Slot> {
        Arc::new(Slot {
            var: Var::new(),
            value: AtomicU64::new(0),
            computed: AtomicBool::new(false),
            users: AtomicI32::new(0),
        })
    }

    /// The number; relaxed on purpose: the engine alone makes writes visible.
    pub fn get(&self) -> u64 {
        self.value.load(Ordering::Relaxed)
    }

    pub fn set(&self, value: u64) {
        self.value.store(value, Ordering::Relaxed);
        self.computed.store(true, Ordering::Release);
    }

    pub fn begin_read(&self) {
        assert!(self.users.fetch_add(1, Ordering::Relaxed) >= 0, "a read beside a write");
    }

    pub fn end_read(&self) {
        self.users.fetch_sub(1, Ordering::Relaxed);
    }

    pub fn begin_write(&self) {
        assert_eq!(self.users.swap(-1, Ordering::Relaxed), 0, "a write beside another access");
    }

    pub fn end_write(&self) {
        self.users.store(0, Ordering::Relaxed);
    }
}

pub fn refs<'a, B: FromIterator<VarRef>>(slots: impl IntoIterator<Item = &'a Arc<Slot>>) -> B {
    slots.into_iter().map(|slot| slot.clone() as VarRef).collect()
}

pub fn task<F>(name: &'static str, reads: &[&Arc<Slot>], writes: &[&Arc<Slot>], run: F) -> Task
where
    F: FnOnce(&Context<'_>) -> Result<(), TaskError> + Send + 'static,
{
    Task {
        name,
        bytes: 8,
        reads: refs(reads.iter().copied()),
        writes: refs(writes.iter().copied()),
        run: Box::new(run),
    }
}

/// Pushes, and runs at once what comes back.
pub fn push(engine: &Engine, task: Task, hint: Hint) {
    if let Some(ready) = engine.push(task, hint) {
        ready.run();
    }
}

/// Queues `to = f(from)`.
pub fn map(engine: &Engine, from: &Arc<Slot>, to: &Arc<Slot>, f: impl FnOnce(u64) -> u64 + Send + 'static) {
    let (a, b) = (from.clone(), to.clone());
    let run = move |_: &Context<'_>| {
        b.set(f(a.get()));
        Ok(())
    };
    push(engine, task("map", &[from], &[to], run), Hint::Queue);
}

/// Queues a write to `to` that fails with `why`.
pub fn fail(engine: &Engine, to: &Arc<Slot>, why: &'static str) {
    push(engine, task("fail", &[], &[to], move |_| Err(TaskError::new("fail", why))), Hint::Queue);
}

pub fn config(threads: usize, kind: Kind) -> Config {
    Config { threads, kind, max_tasks: 1 << 20, max_bytes: usize::MAX, patient: true }
}

pub fn threaded(threads: usize) -> Engine {
    Engine::new(&config(threads, Kind::Threaded))
}

/// Both engines, the threaded one with few and many threads.
pub fn engines() -> Vec<Engine> {
    let mut all: Vec<Engine> = [1, 2, 8, 64].into_iter().map(threaded).collect();
    all.push(Engine::new(&config(2, Kind::Naive)));
    all
}

/// Marsaglia's xorshift64 (Journal of Statistical Software 8(14), 2003).
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}
