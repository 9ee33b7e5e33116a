//! Nodes of the gradient tape: what a recorded call was, what its rule needs, and where gradients go.
//! Calls own their inputs' nodes, outputs own their call: dropping the outputs frees the tape, iteratively.

use crate::array::Array;
use crate::backward::Rule;
use crate::error::Result;
use crate::inferred::{Form, Inference};
use crate::place::Place;
use crate::sync::Mutex;
use crate::trace;
use mxnp_core::attrs::Attrs;
use mxnp_core::op::{Grad, Op};
use mxnp_core::{DType, Scalar};
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

#[derive(Clone)]
pub(crate) enum Kind {
    /// An array that `attach_grad` made the start of a tape. It may have a constant before it.
    Leaf,
    /// A result that is locally constant in everything before it (a comparison, a rounded number). No gradient
    /// flows back; backward only comes by to say that it is zero.
    Constant,
    Call {
        op: &'static Op,
        attrs: Attrs,
    },
    /// A user's function; its rule is among the saved things, so that a cycle through what the rule holds ends
    /// with the backward that uses it up.
    Custom,
}

/// An input of a recorded call.
#[derive(Clone)]
pub(crate) struct Parent {
    pub edge: Option<Edge>,
    pub form: Form,
}

impl Parent {
    /// Whether a gradient flows to it.
    pub fn is_traced(&self) -> bool {
        self.edge.as_ref().is_some_and(Edge::is_traced)
    }
}

impl Edge {
    /// Whether a gradient flows along it.
    pub fn is_traced(&self) -> bool {
        !self.node.is_constant()
    }
}

/// A value that the rule reads, as it was when the call was appended.
#[derive(Clone)]
pub(crate) enum Saved {
    Place { at: Place, version: u64 },
    Scalar(Scalar),
}

/// What the way back needs: the inputs' places on the tape, and saved inputs and outputs; one of those is there
/// where the op's `saves` names it.
#[derive(Clone, Default)]
pub(crate) struct SavedValues {
    pub parents: SmallVec<[Parent; 3]>,
    pub ins: SmallVec<[Option<Saved>; 3]>,
    pub outs: SmallVec<[Option<Saved>; 2]>,
    /// Of a [`Kind::Custom`].
    pub rule: Option<Arc<dyn Custom>>,
    /// Of a node that a compiled graph made: its op's rule, compiled too.
    pub compiled: Option<Arc<Rule>>,
}

pub(crate) struct Node {
    /// One more than the inputs' greatest: walking down by level meets every node after all its users.
    pub level: u64,
    pub kind: Kind,
    /// The dtypes the op computed in, and its outputs, hidden ones last.
    pub known: Arc<Inference>,
    /// Taken by the first backward that does not retain the graph.
    pub saved: Mutex<Option<SavedValues>>,
    pub slots: Mutex<SmallVec<[Option<Slot>; 1]>>,
}

impl Node {
    pub fn new(kind: Kind, known: Arc<Inference>, saved: SavedValues) -> Node {
        match kind {
            Kind::Call { op, .. } if !flows(op, &saved.parents, &known) => {
                Node::constant(&saved.parents, known)
            }
            Kind::Constant => Node::constant(&saved.parents, known),
            kind => Node::made(kind, known, saved),
        }
    }

    fn made(kind: Kind, known: Arc<Inference>, saved: SavedValues) -> Node {
        Node {
            level: level_above(&saved.parents),
            kind,
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

    /// A locally constant result. It keeps what is before its constant inputs in their place, less what a
    /// backward has used up: a count that a training loop carries along stays as small as in its first step.
    fn constant(parents: &[Parent], known: Arc<Inference>) -> Node {
        /// Beyond this many a constant input is kept as it is.
        const MANY: usize = 16;
        let mut kept: SmallVec<[Parent; 3]> = SmallVec::new();
        let mut keep = |parent: &Parent, edge: &Edge| {
            let is_there = |p: &Parent| p.edge.as_ref().is_some_and(|e| Arc::ptr_eq(&e.node, &edge.node));
            if !kept.iter().any(is_there) {
                kept.push(parent.clone());
            }
        };
        for parent in parents {
            let Some(edge) = &parent.edge else { continue };
            let saved = edge.node.saved.lock();
            match saved.as_ref() {
                None => (),
                // A trace keeps the steps as they came: a replay has other places before them.
                Some(saved) if edge.node.is_constant() && saved.parents.len() <= MANY && !trace::is_on() => {
                    for before in &saved.parents {
                        if let Some(edge) = &before.edge
                            && !edge.node.is_used_up()
                        {
                            keep(before, edge);
                        }
                    }
                }
                Some(_) => keep(parent, edge),
            }
        }
        let mut node =
            Node::made(Kind::Constant, known, SavedValues { parents: kept, ..SavedValues::default() });
        // As if nothing had been left out: the order of a walk must not depend on that.
        node.level = level_above(parents);
        node
    }

    /// The start of a tape, after a constant or nothing.
    pub fn leaf(form: Form, before: Option<Edge>) -> Node {
        let parents =
            before.into_iter().map(|edge| Parent { edge: Some(edge), form: form.clone() }).collect();
        let known = Inference::new(SmallVec::new(), SmallVec::from_iter([form]));
        Node::made(Kind::Leaf, known, SavedValues { parents, ..SavedValues::default() })
    }

    pub fn is_leaf(&self) -> bool {
        matches!(self.kind, Kind::Leaf)
    }

    pub fn is_constant(&self) -> bool {
        matches!(self.kind, Kind::Constant)
    }

    /// Whether a backward has taken what it needed here.
    fn is_used_up(&self) -> bool {
        self.saved.lock().is_none()
    }

    /// The places before it on the tape.
    pub fn before(&self) -> SmallVec<[Edge; 3]> {
        let saved = self.saved.lock();
        saved.iter().flat_map(|saved| &saved.parents).filter_map(|p| p.edge.clone()).collect()
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

/// One more than the greatest level of what is before a node.
fn level_above(parents: &[Parent]) -> u64 {
    parents.iter().filter_map(|p| p.edge.as_ref()).map(|edge| edge.node.level + 1).max().unwrap_or(0)
}

/// Whether a gradient flows from the results of `op` to its inputs. Truth values are locally constant.
pub(crate) fn flows(op: &Op, parents: &[Parent], known: &Inference) -> bool {
    let is_constant = match op.grad {
        Grad::Zero => true,
        Grad::RealZero(_) => known.outs.iter().all(|form| !form.dtype.is_complex()),
        _ => false,
    };
    !is_constant
        && parents.iter().any(Parent::is_traced)
        && known.outs.iter().any(|form| form.dtype != DType::Bool)
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
    let saved = node.saved.get_mut();
    let parents = saved.iter_mut().flat_map(|saved| &mut saved.parents);
    parents.filter_map(|p| p.edge.take()).map(|e| e.node)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Array, Handle, Input, invoke, modes, tape};
    use mxnp_core::ops::{arith, create, rounding};

    fn call(op: &'static Op, ins: &[&Array]) -> Array {
        let ins: Vec<Input> = ins.iter().map(|a| Input::Array(a)).collect();
        invoke(op, Attrs::NONE, &ins).unwrap()[0].clone()
    }

    #[test]
    fn a_sum_of_constants_keeps_no_chain_and_nothing_used_up() {
        let one = invoke(&create::FULL, create::full(&[1], DType::F32), &[Input::Scalar(Scalar::Int(1))]);
        let mut x = Handle::new(one.unwrap()[0].clone());
        tape::attach_grad(&mut x, None, GradReq::Write).unwrap();
        modes::set_recording(true);
        let mut count = call(&rounding::FLOOR, &[&x]);
        for _ in 0..100 {
            let y = call(&arith::MULTIPLY, &[&x, &x]);
            count = call(&arith::ADD, &[&count, &call(&rounding::FLOOR, &[&y])]);
            tape::backward(&[&y], &[None], false, true).unwrap();
        }
        modes::set_recording(false);
        let node = &count.node.as_ref().unwrap().node;
        assert!(node.is_constant());
        assert_eq!(node.before().len(), 2, "x, and the last y");
    }
}
