//! Nodes of the gradient tape: what a recorded call was, what its rule needs, and where gradients go.
//! Calls own their inputs' nodes, outputs own their call: dropping the outputs frees the tape, iteratively.

use crate::array::Array;
use crate::error::Result;
use crate::inferred::{Form, Inference};
use crate::place::Place;
use crate::sync::Mutex;
use crate::trace;
use mxnp_core::Scalar;
use mxnp_core::attrs::Attrs;
use mxnp_core::op::Op;
use smallvec::SmallVec;
use std::sync::Arc;

/// Where the gradient of an array comes from: output `out` of `node`.
#[derive(Clone)]
pub(crate) struct Edge {
    pub node: Arc<Node>,
    pub out: usize,
}

/// What is done with a gradient that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GradReq {
    Null,
    Write,
    Add,
}

/// Where a gradient is kept: an array the program can see.
pub(crate) struct Slot {
    pub grad: Array,
    pub req: GradReq,
    /// Whether a backward has written it since this was last cleared.
    pub fresh: bool,
}

/// A gradient rule of the user's (`autograd.Function`).
pub trait Custom: Send + Sync {
    /// The inputs' gradients from the outputs'; called by the thread that calls `backward`, no lock held.
    fn backward(&self, heads: Vec<Option<Array>>) -> Result<Vec<Option<Array>>>;
}

pub(crate) enum Kind {
    /// An array that `attach_grad` made the start of a tape.
    Leaf,
    Call {
        op: &'static Op,
        attrs: Attrs,
    },
    /// A user's function; its rule is among the saved things, so that a cycle through what the rule holds ends
    /// with the backward that uses it up.
    Custom,
}

/// An input of a recorded call.
pub(crate) struct Parent {
    pub edge: Option<Edge>,
    pub form: Form,
}

/// A value that the rule reads, as it was when the call was appended.
#[derive(Clone)]
pub(crate) enum Saved {
    Place { at: Place, version: u64 },
    Scalar(Scalar),
}

/// The saved inputs and outputs; an entry is there where the op's `saves` names it.
#[derive(Clone, Default)]
pub(crate) struct SavedValues {
    pub ins: SmallVec<[Option<Saved>; 3]>,
    pub outs: SmallVec<[Option<Saved>; 2]>,
    /// Of a [`Kind::Custom`].
    pub rule: Option<Arc<dyn Custom>>,
}

pub(crate) struct Node {
    /// One more than the inputs' greatest: walking down by level meets every node after all its users.
    pub level: u64,
    pub kind: Kind,
    pub parents: SmallVec<[Parent; 3]>,
    /// The dtypes the op computed in, and its outputs, hidden ones last.
    pub known: Arc<Inference>,
    /// Taken by the first backward that does not retain the graph.
    pub saved: Mutex<Option<SavedValues>>,
    pub slots: Mutex<SmallVec<[Option<Slot>; 1]>>,
}

impl Node {
    pub fn new(
        kind: Kind,
        parents: SmallVec<[Parent; 3]>,
        known: Arc<Inference>,
        saved: SavedValues,
    ) -> Node {
        let level = parents.iter().filter_map(|p| p.edge.as_ref()).map(|e| e.node.level + 1).max();
        Node {
            level: level.unwrap_or(0),
            kind,
            parents,
            known,
            saved: Mutex::new(Some(saved)),
            slots: Mutex::default(),
        }
    }

    /// The node, put on the tape.
    pub fn on_tape(self) -> Arc<Node> {
        let node = Arc::new(self);
        if trace::is_on() {
            trace::note_node(&node);
        }
        node
    }

    /// The start of a tape.
    pub fn leaf(form: Form) -> Node {
        let known = Inference::new(SmallVec::new(), SmallVec::from_iter([form]));
        Node::new(Kind::Leaf, SmallVec::new(), known, SavedValues::default())
    }

    pub fn is_leaf(&self) -> bool {
        matches!(self.kind, Kind::Leaf)
    }

    /// Sets where the gradient of output `out` goes.
    pub fn set_slot(&self, out: usize, slot: Option<Slot>) {
        let mut slots = self.slots.lock();
        if slots.len() <= out {
            slots.resize_with(out + 1, || None);
        }
        // The old one is dropped after the lock is given up: it may own foreign memory.
        let old = std::mem::replace(&mut slots[out], slot);
        drop(slots);
        drop(old);
    }

    /// Looks at the slot of output `out`.
    pub fn with_slot<R>(&self, out: usize, f: impl FnOnce(&mut Slot) -> R) -> Option<R> {
        self.slots.lock().get_mut(out).and_then(Option::as_mut).map(f)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // A long tape is a long list: free it in a loop, not by recursion.
        let mut stack: Vec<Arc<Node>> = take_parents(self).collect();
        while let Some(node) = stack.pop() {
            if let Some(mut last) = Arc::into_inner(node) {
                stack.extend(take_parents(&mut last));
            }
        }
    }
}

fn take_parents(node: &mut Node) -> impl Iterator<Item = Arc<Node>> + '_ {
    node.parents.iter_mut().filter_map(|p| p.edge.take()).map(|e| e.node)
}
