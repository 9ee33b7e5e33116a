//! The threaded engine: registration by dependencies, and threads that wait and help meanwhile.
//! It must not know how workers are started.

use crate::fault::{EngineError, TaskError};
use crate::gate::Watch;
use crate::node::{Body, Node, register, signal, vars};
use crate::pool::Visit;
use crate::shared::Shared;
use crate::stats::Count;
use crate::sync::Arc;
use crate::task::{Hint, Task, Tracked};
use std::cell::Cell;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How often a wait asks the interrupt check.
const CHECK_EVERY: Duration = Duration::from_millis(50);

/// Asked by threads that wait for long; true ends the wait.
pub(crate) static INTERRUPT: OnceLock<fn() -> bool> = OnceLock::new();

impl Shared {
    /// Registers a task. Gives it back if it may run at once and should on this thread; else it is queued.
    pub(crate) fn push_threaded(&self, task: Task, hint: Hint, epoch: u32) -> Option<Arc<Node>> {
        let node = Node::new(self.next_ticket(), epoch);
        register(&node, &vars(&task.reads), &vars(&task.writes));
        if !node.arm(Body::Task(task)) {
            return None;
        }
        if hint == Hint::Inline {
            return Some(node);
        }
        self.enqueue(node);
        None
    }

    /// Waits for the last write to `thing` (and the reads since, if `all`).
    pub(crate) fn wait_for(&self, thing: &dyn Tracked, all: bool) -> Result<(), TaskError> {
        let visit = Visit::new(self);
        let signal = signal(thing.var(), all);
        drop(visit);
        match signal {
            Some(signal) => self.block_until(&|| signal.is_done()),
            None => Ok(()),
        }
    }

    /// Waits for every task pushed so far.
    pub(crate) fn wait_for_all(&self) -> Result<(), TaskError> {
        let mine = Cell::new(self.gate.take_turn());
        if !mine.get() {
            self.gate.watch(Watch::Turn);
            let turn = self.block_until(&|| {
                // Asked again after it succeeded, it must not try again.
                mine.set(mine.get() || self.gate.take_turn());
                mine.get()
            });
            self.gate.unwatch();
            turn?;
        }
        // Usually empty: a wait that was interrupted leaves tasks behind.
        let result = self.watch_until(Watch::Drained(self.gate.resting_epoch())).and_then(|()| {
            let old = self.gate.change_epoch();
            self.watch_until(Watch::Drained(old))
        });
        self.gate.end_turn();
        result
    }

    /// Waits until `watch` holds, helping meanwhile.
    pub(crate) fn watch_until(&self, watch: Watch) -> Result<(), TaskError> {
        if self.gate.holds(watch) {
            return Ok(());
        }
        self.gate.watch(watch);
        let result = self.block_until(&|| self.gate.holds(watch));
        self.gate.unwatch();
        result
    }

    /// Runs tasks and chunks, and sleeps while there are none, until `done()`. Whoever makes `done()` true
    /// must unpark this thread.
    fn block_until(&self, done: &dyn Fn() -> bool) -> Result<(), TaskError> {
        let check = INTERRUPT.get();
        let asked = Cell::new(Instant::now());
        let is_due = || check.is_some() && asked.get().elapsed() >= CHECK_EVERY;
        let result = loop {
            let visit = Visit::new(self);
            // Helping ends when the check is due: with enough work it would go on for as long as the work does.
            while !done() && !is_due() && self.help(Count::RanByWaiters) {}
            drop(visit);
            if done() {
                break Ok(());
            }
            if let Some(interrupted) = check
                && is_due()
            {
                if interrupted() {
                    break Err(TaskError::new("wait", EngineError::Interrupted));
                }
                asked.set(Instant::now());
            }
            self.doze(done, check.map(|_| CHECK_EVERY));
        };
        self.pass_on();
        result
    }

    /// Empties the closed engine: until nothing is unfinished and no other thread is inside.
    pub(crate) fn drain(&self) {
        self.gate.watch(Watch::Quiet);
        let quiet = || self.gate.holds(Watch::Quiet);
        while !quiet() {
            if !self.help(Count::RanByWaiters) {
                self.doze(&quiet, None);
            }
        }
        self.gate.unwatch();
    }

    fn doze(&self, done: &dyn Fn() -> bool, limit: Option<Duration>) {
        if self.sleep.sleep(&|| done() || self.has_work(), limit) {
            self.counters.add(Count::Sleeps);
        }
    }
}
