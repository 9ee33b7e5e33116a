//! The recorded history of an array as a list of nodes, for symbols. Arrays it starts from are variables, and so are
//! operands that were not recorded. Knows no file format.

use crate::array::Array;
use crate::inferred::Form;
use crate::listing::{From, Listed, Listing, What};
use crate::node::{Kind, Node, Parent, Saved, SavedValues};
use crate::place::Place;
use mxnp_core::op::Meta;
use std::collections::HashMap;
use std::sync::Arc;

/// What `x` was computed from, inputs before what uses them; the head is `x`. Or why there is no such list.
pub fn history(x: &Array) -> Result<Listing, &'static str> {
    let Some(edge) = &x.node else { return Err("it was not recorded") };
    let mut nodes = vec![edge.node.clone()];
    let mut places = HashMap::from([(Arc::as_ptr(&edge.node), 0)]);
    let mut next = 0;
    while next < nodes.len() {
        let node = nodes[next].clone();
        for parent in parents(&node)? {
            if let Some(edge) = parent.edge {
                places.entry(Arc::as_ptr(&edge.node)).or_insert_with(|| {
                    nodes.push(edge.node);
                    nodes.len() - 1
                });
            }
        }
        next += 1;
    }
    // A node's level is above those of its inputs; the walk came from the head.
    nodes.reverse();
    nodes.sort_by_key(|node| node.level);
    let mut lister = Lister::default();
    for node in &nodes {
        lister.node(node)?;
    }
    let head = (lister.numbers[&Arc::as_ptr(&edge.node)], edge.out);
    Ok((lister.list, vec![head]))
}

/// The inputs of a recorded call; none for what starts a tape.
fn parents(node: &Node) -> Result<Vec<Parent>, &'static str> {
    match node.kind {
        Kind::Leaf => Ok(Vec::new()),
        Kind::Constant => Err("it goes through an operation without gradient, which the tape does not keep"),
        Kind::Custom => Err("it goes through an autograd.Function, which no file can hold"),
        Kind::Call { .. } => {
            let saved = node.saved.lock();
            saved.as_ref().map(|saved| saved.parents.to_vec()).ok_or("backward has used it up")
        }
    }
}

#[derive(Default)]
struct Lister {
    list: Vec<Listed>,
    numbers: HashMap<*const Node, usize>,
    /// Operands that were not recorded, as far as the tape keeps them.
    seen: Vec<(Place, usize)>,
    variables: usize,
}

impl Lister {
    fn variable(&mut self, meta: Meta) -> usize {
        self.list.push(Listed { what: What::Argument(self.variables), ins: Vec::new(), outs: vec![meta] });
        self.variables += 1;
        self.list.len() - 1
    }

    fn node(&mut self, node: &Arc<Node>) -> Result<(), &'static str> {
        let outs = node.known.outs.iter().map(Form::meta).collect::<Vec<_>>();
        let number = match &node.kind {
            Kind::Call { op, attrs } => {
                let inputs = parents(node)?;
                let mut ins = Vec::with_capacity(inputs.len());
                for (i, parent) in inputs.iter().enumerate() {
                    ins.push(self.input(parent, node.saved.lock().as_ref(), i));
                }
                self.list.push(Listed { what: What::Call(op, attrs.clone()), ins, outs });
                self.list.len() - 1
            }
            _ => self.variable(outs[0].clone()),
        };
        self.numbers.insert(Arc::as_ptr(node), number);
        Ok(())
    }

    fn input(&mut self, parent: &Parent, saved: Option<&SavedValues>, i: usize) -> From {
        if let Some(edge) = &parent.edge {
            return From::Node(self.numbers[&Arc::as_ptr(&edge.node)], edge.out);
        }
        match saved.and_then(|saved| saved.ins.get(i)).and_then(Option::as_ref) {
            Some(Saved::Scalar(scalar)) => From::Scalar(*scalar),
            Some(Saved::Place { at, .. }) => {
                let known = self.seen.iter().find(|(place, _)| {
                    Arc::ptr_eq(&place.value, &at.value)
                        && *place.layout == *at.layout
                        && place.dtype == at.dtype
                });
                if let Some((_, number)) = known {
                    return From::Node(*number, 0);
                }
                let number = self.variable(parent.form.meta());
                self.seen.push((at.clone(), number));
                From::Node(number, 0)
            }
            None => From::Node(self.variable(parent.form.meta()), 0),
        }
    }
}
