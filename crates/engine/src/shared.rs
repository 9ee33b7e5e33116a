//! What all threads of one engine share, and how one task is run. It must not know who calls it.

use crate::config::{Config, Kind};
use crate::fault::{EngineError, Fault, FaultLog, TaskError, panic_text};
use crate::gate::Gate;
use crate::naive::Line;
use crate::node::{Body, Node};
use crate::parallel::Loops;
use crate::pool::Crew;
use crate::queue::Queue;
use crate::role::Role;
use crate::sleep::Sleep;
use crate::stats::{Count, Counters};
use crate::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex};
use crate::task::{Context, Run, Task, Tracked, VarRef};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Weak;

/// The parts of one engine. A forked child gets a new one: no lock in it can be held by a lost thread.
pub(crate) struct Shared {
    pub(crate) me: Weak<Shared>,
    pub(crate) gate: Gate,
    pub(crate) queue: Queue,
    pub(crate) line: Line,
    pub(crate) loops: Loops,
    pub(crate) sleep: Sleep,
    pub(crate) crew: Mutex<Crew>,
    /// Whether the workers have been started; changes under the lock of `crew`.
    pub(crate) started: AtomicBool,
    pub(crate) faults: FaultLog,
    pub(crate) counters: Counters,
    /// Whether tasks that have not begun are to be skipped.
    pub(crate) cancelled: AtomicBool,
    pub(crate) threads: AtomicUsize,
    pub(crate) kind: AtomicU8,
    pub(crate) max_tasks: AtomicUsize,
    pub(crate) max_bytes: AtomicUsize,
    patient: bool,
    tickets: AtomicU64,
    first_ticket: u64,
}

impl Shared {
    pub(crate) fn new(config: &Config, first_ticket: u64) -> Arc<Self> {
        let shared = Arc::new_cyclic(|me| Shared {
            me: me.clone(),
            gate: Gate::new(),
            queue: Queue::default(),
            line: Line::default(),
            loops: Loops::default(),
            sleep: Sleep::default(),
            crew: Mutex::default(),
            started: AtomicBool::new(false),
            faults: FaultLog::default(),
            counters: Counters::default(),
            cancelled: AtomicBool::new(false),
            threads: AtomicUsize::new(1),
            kind: AtomicU8::new(config.kind as u8),
            max_tasks: AtomicUsize::new(config.max_tasks),
            max_bytes: AtomicUsize::new(config.max_bytes),
            patient: config.patient,
            tickets: AtomicU64::new(first_ticket),
            first_ticket,
        });
        shared.set_threads(config.threads);
        shared
    }

    /// Sets the number of threads. No workers are running.
    pub(crate) fn set_threads(&self, threads: usize) {
        let threads = threads.max(1);
        self.threads.store(threads, Ordering::Relaxed);
        self.sleep.set_patient(self.config().awake(threads));
    }

    /// The settings in force.
    pub(crate) fn config(&self) -> Config {
        Config {
            threads: self.threads.load(Ordering::Relaxed),
            kind: self.kind(),
            max_tasks: self.max_tasks.load(Ordering::Relaxed),
            max_bytes: self.max_bytes.load(Ordering::Relaxed),
            patient: self.patient,
        }
    }

    #[inline]
    pub(crate) fn kind(&self) -> Kind {
        if self.kind.load(Ordering::Relaxed) == Kind::Naive as u8 { Kind::Naive } else { Kind::Threaded }
    }

    pub(crate) fn next_ticket(&self) -> u64 {
        self.tickets.fetch_add(1, Ordering::Relaxed)
    }

    /// The ticket of the next task: larger than that of every task the calling thread knows of.
    pub(crate) fn now(&self) -> u64 {
        self.tickets.load(Ordering::Relaxed)
    }

    pub(crate) fn pushed(&self) -> u64 {
        self.now() - self.first_ticket
    }

    /// Runs the task of a node that waits for nothing any more, and releases what waited for it. Gives one
    /// task that may run now; others are queued.
    pub(crate) fn run_node(&self, node: &Arc<Node>, by: Count) -> Option<Arc<Node>> {
        let Some(Body::Task(task)) = node.take_body() else { return None };
        let bytes = task.bytes;
        self.counters.add(by);
        self.perform(node, task);
        let mut next = None;
        for later in node.close() {
            if !later.release() || later.fire() {
                continue;
            }
            if next.is_none() {
                next = Some(later);
            } else {
                self.enqueue(later);
            }
        }
        self.gate.leave(node.epoch, bytes);
        next
    }

    /// Runs or skips a task, and brings its variables up to date.
    fn perform(&self, node: &Arc<Node>, task: Task) {
        let Task { name, reads, writes, run, .. } = task;
        let inherited =
            inherited_fault(node.ticket, &writes).or_else(|| inherited_fault(node.ticket, &reads));
        let fault = if inherited.is_some() {
            self.counters.add(Count::Skipped);
            drop_quietly(run);
            inherited
        } else if self.cancelled.load(Ordering::Relaxed) {
            self.counters.add(Count::Skipped);
            drop_quietly(run);
            Some(Fault::new(TaskError::new(name, EngineError::Cancelled), node.ticket))
        } else {
            self.call(name, run).err().map(|error| {
                self.counters.add(Count::Errors);
                let fault = Fault::new(error, node.ticket);
                self.faults.add(fault.clone());
                fault
            })
        };
        drop_quietly(reads);
        for thing in &writes {
            thing.var().finish_write(node, fault.as_ref());
        }
        drop_quietly(writes);
    }

    /// Calls a task's body; a panic becomes an error.
    fn call(&self, name: &'static str, run: Run) -> Result<(), TaskError> {
        let _role = Role::Task.take();
        let context = Context::new(self);
        catch_unwind(AssertUnwindSafe(|| run(&context))).unwrap_or_else(|payload| {
            let error = EngineError::Panic(panic_text(&*payload));
            drop_quietly(payload);
            Err(TaskError::new(name, error))
        })
    }

    /// Raises the fault that `thing` carries, once while it has contents, always while it has none.
    pub(crate) fn raise(&self, thing: &dyn Tracked) -> Result<(), TaskError> {
        let var = thing.var();
        let Some(fault) = var.fault() else { return Ok(()) };
        let first = fault.report(self.now());
        let has_contents = thing.has_contents();
        if has_contents {
            var.forget_fault(&fault);
        }
        if first || !has_contents { Err(fault.error.clone()) } else { Ok(()) }
    }
}

/// The first fault among `things` that a task with this ticket inherits.
fn inherited_fault(ticket: u64, things: &[VarRef]) -> Option<Arc<Fault>> {
    things
        .iter()
        .find_map(|thing| thing.var().fault().filter(|fault| fault.strikes(ticket, thing.has_contents())))
}

/// Drops a value of the caller's; a panic in its destructor must not end a worker.
fn drop_quietly<T>(value: T) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(value)));
}
