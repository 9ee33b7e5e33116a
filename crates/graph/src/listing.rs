//! A graph as a list of nodes, for files and symbols: variables, calls and views in an order in which inputs come
//! before what uses them. Knows no file format.

use crate::array::Array;
use crate::compiled::{Arg, CallStep, Graph, Origin, Spot, Step};
use crate::place::Place;
use mxnp_core::Scalar;
use mxnp_core::attrs::Attrs;
use mxnp_core::op::{Meta, Op};
use smallvec::SmallVec;
use std::collections::HashMap;

/// What a node stands for.
pub enum What {
    /// The array argument of this number.
    Argument(usize),
    /// The object of this number in [`Graph::objects`].
    Object(usize),
    /// Another array from outside.
    Captured(Array),
    /// An array of the function's own that is the same in every call.
    Constant(Array),
    Call(&'static Op, Attrs),
}

/// An input: output `.1` of node `.0`, or a number.
#[derive(Clone, Copy)]
pub enum From {
    Node(usize, usize),
    Scalar(Scalar),
}

pub struct Listed {
    pub what: What,
    pub ins: Vec<From>,
    /// Shapes and dtypes: of visible outputs, then hidden ones.
    pub outs: Vec<Meta>,
}

/// The nodes, and which output of which node each output of the graph is.
pub type Listing = (Vec<Listed>, Vec<(usize, usize)>);

/// The nodes and, for each output of the graph, which output of which node it is; or why it has no such form.
pub fn list(graph: &Graph) -> Result<Listing, &'static str> {
    let mut lister = Lister { graph, nodes: Vec::new(), known: HashMap::new() };
    for (i, argument) in graph.arguments.iter().enumerate() {
        let at = Spot { slot: argument.slot, layout: argument.layout.clone(), dtype: argument.dtype };
        lister.variable(What::Argument(i), at);
    }
    for step in &graph.steps {
        match step {
            Step::Call(call) => lister.call(call)?,
            Step::View(view) => {
                if let Some(from) = lister.find(&view.from)
                    && !lister.known.contains_key(&view.to)
                {
                    let what = What::Call(view.op, view.attrs.clone());
                    lister.push(what, vec![From::Node(from.0, from.1)], vec![meta_of(&view.to)]);
                    lister.known.insert(view.to.clone(), (lister.nodes.len() - 1, 0));
                }
            }
            Step::Guard { .. } => return Err("it branches by the data of arrays"),
            Step::Node(_) | Step::Draw => {}
        }
    }
    if graph.fold.is_some() {
        return Err("it keeps what it makes of parameters");
    }
    let heads =
        graph.outputs.iter().map(|output| lister.find(&output.at).ok_or(LOST)).collect::<Result<_, _>>()?;
    Ok(pruned(lister.nodes, heads, graph.arguments.len()))
}

const LOST: &str = "it writes to parts of arrays";

struct Lister<'a> {
    graph: &'a Graph,
    nodes: Vec<Listed>,
    known: HashMap<Spot, (usize, usize)>,
}

fn meta_of(spot: &Spot) -> Meta {
    Meta::new(mxnp_core::Shape::from_slice(&spot.layout.shape), spot.dtype)
}

impl Lister<'_> {
    fn push(&mut self, what: What, ins: Vec<From>, outs: Vec<Meta>) {
        self.nodes.push(Listed { what, ins, outs });
    }

    fn variable(&mut self, what: What, at: Spot) -> (usize, usize) {
        self.push(what, Vec::new(), vec![meta_of(&at)]);
        let found = (self.nodes.len() - 1, 0);
        self.known.insert(at, found);
        found
    }

    /// Which node's output lies there now; an array from outside becomes a variable at its first use.
    fn find(&mut self, spot: &Spot) -> Option<(usize, usize)> {
        if let Some(&found) = self.known.get(spot) {
            return Some(found);
        }
        let slot = &self.graph.slots[spot.slot as usize];
        let Origin::Captured(value) = &slot.origin else { return None };
        let object = self.graph.objects.iter().position(|object| object.at == *spot);
        let array =
            || Array::new(Place { value: value.clone(), layout: spot.layout.clone(), dtype: spot.dtype });
        let what = match object {
            Some(object) => What::Object(object),
            None if slot.constant => What::Constant(array()),
            None => What::Captured(array()),
        };
        Some(self.variable(what, spot.clone()))
    }

    fn call(&mut self, call: &CallStep) -> Result<(), &'static str> {
        let mut ins = Vec::with_capacity(call.ins.len());
        for arg in &call.ins {
            ins.push(match arg {
                Arg::Scalar(scalar) => From::Scalar(*scalar),
                Arg::Spot(spot) => {
                    let (node, out) = self.find(spot).ok_or(LOST)?;
                    From::Node(node, out)
                }
            });
        }
        let updates = call.op.updates(&call.attrs, call.ins.len()).len();
        let results = call.outs.len() - updates;
        let outs: SmallVec<[&Spot; 2]> = call.outs[..results].iter().map(|out| &out.at).collect();
        for out in call.outs[..results].iter().filter(|out| !out.fresh) {
            // A write to all of an array makes it this call's result; its views are those of the old one.
            if !self.known.contains_key(&out.at) {
                return Err(LOST);
            }
            self.known.retain(|spot, _| spot.slot != out.at.slot);
        }
        if results == 0 && updates > 0 {
            return Err(LOST);
        }
        let number = self.nodes.len();
        for (i, out) in outs.iter().enumerate() {
            self.known.insert((*out).clone(), (number, i));
        }
        let metas = outs.iter().map(|out| meta_of(out)).collect();
        self.push(What::Call(call.op, call.attrs.clone()), ins, metas);
        Ok(())
    }
}

/// Only what the outputs are made of, and the arguments.
fn pruned(nodes: Vec<Listed>, heads: Vec<(usize, usize)>, arguments: usize) -> Listing {
    let mut lives = vec![false; nodes.len()];
    lives[..arguments].fill(true);
    heads.iter().for_each(|&(node, _)| lives[node] = true);
    for (i, node) in nodes.iter().enumerate().rev() {
        for from in node.ins.iter().filter(|_| lives[i]).copied().collect::<Vec<_>>() {
            if let From::Node(node, _) = from {
                lives[node] = true;
            }
        }
    }
    let mut numbers = vec![0; nodes.len()];
    let mut kept: Vec<Listed> = Vec::new();
    for (i, mut node) in nodes.into_iter().enumerate().filter(|(i, _)| lives[*i]) {
        numbers[i] = kept.len();
        for from in &mut node.ins {
            if let From::Node(node, _) = from {
                *node = numbers[*node];
            }
        }
        kept.push(node);
    }
    (kept, heads.into_iter().map(|(node, out)| (numbers[node], out)).collect())
}
