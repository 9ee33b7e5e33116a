//! The dependency protocol: a node counts what it waits for and lists what waits for it.
//! It must not know queues or threads, apart from the one a signal wakes.
//!
//! A node starts with a count of one for its registration. Each edge adds one to the count of the later
//! node and its handle to the list of the earlier one, unless that has finished. Whoever takes the count
//! to zero owns the node from then on. A node that finishes closes its list and takes one from each
//! count in it. Lists are emptied by finishing, never by dropping, so no chain of drops recurses.

use crate::sync::MutexGuard;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex, thread};
use crate::task::{Task, Tracked};
use crate::var::{Var, VarState};
use smallvec::SmallVec;

/// The nodes that wait for one node.
pub(crate) type Dependents = SmallVec<[Arc<Node>; 2]>;

/// What a node does when its count reaches zero.
pub(crate) enum Body {
    /// It runs.
    Task(Task),
    /// It wakes a thread that waits for it.
    Signal(thread::Thread),
}

/// One registered task or signal.
pub(crate) struct Node {
    /// The task's place in program order (each thread's own order; between threads, some order).
    pub(crate) ticket: u64,
    /// Which of the gate's two counts the task is in.
    pub(crate) epoch: u32,
    /// Unfinished predecessors, plus one until registration is complete.
    pending: AtomicUsize,
    done: AtomicBool,
    /// None once finished.
    dependents: Mutex<Option<Dependents>>,
    body: Mutex<Option<Body>>,
}

impl Node {
    pub(crate) fn new(ticket: u64, epoch: u32) -> Arc<Self> {
        Arc::new(Node {
            ticket,
            epoch,
            pending: AtomicUsize::new(1),
            done: AtomicBool::new(false),
            dependents: Mutex::new(Some(Dependents::new())),
            body: Mutex::new(None),
        })
    }

    /// Whether the node has finished (a signal: has fired) and its effects are visible.
    pub(crate) fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    /// Makes `later` wait for this node, unless it has finished.
    pub(crate) fn precede(&self, later: &Arc<Node>) {
        if let Some(dependents) = &mut *self.dependents.lock() {
            later.pending.fetch_add(1, Ordering::Relaxed);
            dependents.push(later.clone());
        }
    }

    /// Gives the node its body and ends its registration; true if it waits for nothing.
    #[must_use]
    pub(crate) fn arm(&self, body: Body) -> bool {
        *self.body.lock() = Some(body);
        self.release()
    }

    /// Takes one from the count; true if the node is now the caller's to run.
    #[must_use]
    pub(crate) fn release(&self) -> bool {
        self.pending.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// The body; there once, for the owner.
    pub(crate) fn take_body(&self) -> Option<Body> {
        self.body.lock().take()
    }

    /// Marks the node finished and gives the nodes that waited for it; each must be released.
    #[must_use]
    pub(crate) fn close(&self) -> Dependents {
        let dependents = self.dependents.lock().take();
        self.done.store(true, Ordering::Release);
        dependents.unwrap_or_default()
    }

    /// If the node is a signal, fires it and says so.
    pub(crate) fn fire(&self) -> bool {
        let mut body = self.body.lock();
        if !matches!(*body, Some(Body::Signal(_))) {
            return false;
        }
        let Some(Body::Signal(thread)) = body.take() else { return false };
        drop(body);
        drop(self.close());
        thread.unpark();
        true
    }
}

/// Registers `node` after every earlier access that conflicts with these reads and writes.
///
/// The locks of all variables are taken in one global order and held together, so two threads that
/// push overlapping sets can never each come before the other. The node cannot start before it is armed.
pub(crate) fn register(node: &Arc<Node>, reads: &[&Var], writes: &[&Var]) {
    let mut accesses: SmallVec<[(&Var, bool); 8]> = SmallVec::new();
    accesses.extend(reads.iter().map(|var| (*var, false)));
    accesses.extend(writes.iter().map(|var| (*var, true)));
    accesses.sort_unstable_by_key(|(var, is_write)| (var.rank(), !is_write));
    accesses.dedup_by_key(|(var, _)| var.rank());
    let mut locked: SmallVec<[MutexGuard<'_, VarState>; 8]> = SmallVec::new();
    locked.extend(accesses.iter().map(|(var, _)| var.lock()));
    for (state, (var, is_write)) in locked.iter_mut().zip(&accesses) {
        if *is_write {
            var.add_writer();
            state.add_write(node);
        } else {
            state.add_read(node);
        }
    }
}

/// The variables of a list of things.
pub(crate) fn vars(things: &[Arc<dyn Tracked>]) -> SmallVec<[&Var; 6]> {
    // A loop: `collect` costs a small task more than it takes.
    let mut vars = SmallVec::new();
    for thing in things {
        vars.push(thing.var());
    }
    vars
}

/// A signal that wakes the calling thread after the last write to `var` (and the reads since, if `all`);
/// none if they have finished.
pub(crate) fn signal(var: &Var, all: bool) -> Option<Arc<Node>> {
    let node = Node::new(0, 0);
    let state = var.lock();
    if all {
        state.follow_all(&node);
    } else {
        state.follow_writer(&node);
    }
    drop(state);
    if node.arm(Body::Signal(thread::current())) { None } else { Some(node) }
}
