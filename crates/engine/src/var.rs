//! The variable: who still reads and writes a thing, and whether it carries a fault.
//! It must not know how tasks are run or what the thing is.

use crate::fault::Fault;
use crate::node::Node;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard};
use smallvec::SmallVec;

/// Bit of `status`: the variable carries a fault.
const FAULTED: u32 = 1;
/// Unit of `status`: one unfinished writer.
const WRITER: u32 = 2;

/// Orders the accesses to one thing. Made without an allocation; must not move once a task names it.
pub struct Var {
    /// Unfinished writers times [`WRITER`], plus [`FAULTED`]; zero is the answer of nearly every check.
    status: AtomicU32,
    state: Mutex<VarState>,
}

/// What the lock of a variable guards.
pub(crate) struct VarState {
    /// The last writer, until it has finished.
    writer: Option<Arc<Node>>,
    /// The readers since the last writer was pushed; finished ones stay until there is no room.
    readers: SmallVec<[Arc<Node>; 2]>,
    fault: Option<Arc<Fault>>,
}

impl Default for Var {
    fn default() -> Self {
        Var::new()
    }
}

impl Var {
    /// A variable without accesses.
    #[inline]
    pub fn new() -> Self {
        let state = VarState { writer: None, readers: SmallVec::new(), fault: None };
        Var { status: AtomicU32::new(0), state: Mutex::new(state) }
    }

    /// Whether every write pushed so far has finished. Takes no lock; true means their effects are visible.
    pub fn is_ready(&self) -> bool {
        self.status.load(Ordering::Acquire) < WRITER
    }

    /// Whether it is ready and carries no fault: a wait would return at once without an error.
    #[inline]
    pub fn is_clean(&self) -> bool {
        self.status.load(Ordering::Acquire) == 0
    }

    /// Whether it may carry a fault.
    pub(crate) fn is_faulted(&self) -> bool {
        self.status.load(Ordering::Acquire) & FAULTED != 0
    }

    /// The place of this variable in the global order in which locks are taken.
    pub(crate) fn rank(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, VarState> {
        self.state.lock()
    }

    /// Counts a writer in; called with the lock held.
    pub(crate) fn add_writer(&self) {
        self.status.fetch_add(WRITER, Ordering::Relaxed);
    }

    /// Counts the writer `node` out and leaves `fault` behind (none: the write succeeded).
    pub(crate) fn finish_write(&self, node: &Arc<Node>, fault: Option<&Arc<Fault>>) {
        let mut state = self.lock();
        let left = state.writer.take_if(|writer| Arc::ptr_eq(writer, node));
        let old = std::mem::replace(&mut state.fault, fault.cloned());
        self.mark(&state);
        drop(state);
        self.status.fetch_sub(WRITER, Ordering::Release);
        drop((left, old));
    }

    /// The fault carried, if any.
    pub(crate) fn fault(&self) -> Option<Arc<Fault>> {
        if self.is_faulted() { self.lock().fault.clone() } else { None }
    }

    /// Lets go of `fault`, unless a task pushed earlier may still have to inherit it.
    pub(crate) fn forget_fault(&self, fault: &Arc<Fault>) {
        let mut state = self.lock();
        state.prune();
        if state.writer.is_none() && state.readers.is_empty() {
            let old = state.fault.take_if(|f| Arc::ptr_eq(f, fault));
            self.mark(&state);
            drop(state);
            drop(old);
        }
    }

    /// Brings the fault bit in line with the state; called with the lock held.
    fn mark(&self, state: &VarState) {
        if state.fault.is_some() {
            self.status.fetch_or(FAULTED, Ordering::Release);
        } else {
            self.status.fetch_and(!FAULTED, Ordering::Release);
        }
    }
}

impl VarState {
    /// Makes `node` wait for what a read must wait for, and later writes wait for `node`.
    pub(crate) fn add_read(&mut self, node: &Arc<Node>) {
        self.follow_writer(node);
        if self.readers.len() == self.readers.capacity() {
            self.prune();
        }
        self.readers.push(node.clone());
    }

    /// Makes `node` wait for all earlier accesses, and later ones wait for `node`.
    pub(crate) fn add_write(&mut self, node: &Arc<Node>) {
        self.follow_all(node);
        self.readers.clear();
        self.writer = Some(node.clone());
    }

    /// Makes `node` wait for the last write.
    pub(crate) fn follow_writer(&self, node: &Arc<Node>) {
        if let Some(writer) = &self.writer {
            writer.precede(node);
        }
    }

    /// Makes `node` wait for the last write and the reads since.
    pub(crate) fn follow_all(&self, node: &Arc<Node>) {
        self.follow_writer(node);
        for reader in &self.readers {
            reader.precede(node);
        }
    }

    /// Forgets the readers that have finished: a thing that is only read must not grow.
    fn prune(&mut self) {
        self.readers.retain(|reader| !reader.is_done());
    }
}
