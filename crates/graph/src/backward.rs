//! Gradient rules of a compiled graph's nodes, compiled too: the first backward through a node traces its rule, later
//! ones replay the calls. Which gradients are added in which order stays the tape's, so that no bit changes.

use crate::array::Array;
use crate::clean::Purpose;
use crate::compiled::Graph;
use crate::error::Result;
use crate::inferred::Form;
use crate::node::{Node, Saved, SavedValues};
use crate::sync::Mutex;
use crate::tape::{self, Grads};
use crate::{modes, trace};
use mxnp_core::promote::Mode;
use smallvec::SmallVec;
use std::sync::Arc;

/// The rule of one node of a graph, for the head gradients it has been given so far.
#[derive(Default)]
pub(crate) struct Rule(Mutex<SmallVec<[Arc<Traced>; 1]>>);

/// More kinds of head gradients than this are rare: the rule is evaluated then.
const MAX: usize = 4;

struct Traced {
    mode: Mode,
    /// Which parents want a gradient.
    needs: u32,
    /// The head gradients there were.
    heads: SmallVec<[Option<Form>; 2]>,
    /// None where the rule is no graph.
    graph: Option<Graph>,
    /// Which parents get a gradient.
    given: SmallVec<[bool; 3]>,
}

impl Traced {
    fn is_for(&self, needs: u32, heads: &Grads) -> bool {
        let same = |(form, head): (&Option<Form>, &Option<Array>)| match (form, head) {
            (None, None) => true,
            (Some(form), Some(head)) => {
                let (was, is) = (&form.layout, &head.at.layout);
                form.dtype == head.at.dtype && was.shape == is.shape && was.strides == is.strides
            }
            _ => false,
        };
        self.mode == modes::mode()
            && self.needs == needs
            && self.heads.len() == heads.len()
            && self.heads.iter().zip(heads).all(same)
    }
}

impl Rule {
    /// As `tape::apply`, outside recording.
    pub fn apply(&self, node: &Arc<Node>, saved: &SavedValues, heads: Grads) -> Result<Grads> {
        let needs = saved.parents.iter().enumerate().map(|(i, p)| (p.is_traced() as u32) << i).sum();
        let mut arguments: SmallVec<[Array; 6]> = SmallVec::new();
        for kept in saved.ins.iter().chain(&saved.outs).flatten() {
            if let Saved::Place { at, version } = kept {
                if at.value.version() != *version {
                    return tape::apply(node, saved, heads); // which says so
                }
                arguments.push(Array::new(at.clone()));
            }
        }
        arguments.extend(heads.iter().flatten().map(Array::detach));
        let known = self.0.lock().clone();
        match known.iter().find(|traced| traced.is_for(needs, &heads)) {
            Some(traced) => match &traced.graph {
                Some(graph) if graph.fits(&arguments, &[]) => {
                    let made = graph.replay(&arguments, &[], &mut Vec::new())?;
                    let mut made = made.into_iter().flatten();
                    Ok(traced.given.iter().map(|&given| if given { made.next() } else { None }).collect())
                }
                _ => tape::apply(node, saved, heads),
            },
            None if known.len() < MAX => self.trace(node, saved, needs, heads, &arguments),
            None => tape::apply(node, saved, heads),
        }
    }

    fn trace(
        &self,
        node: &Arc<Node>,
        saved: &SavedValues,
        needs: u32,
        heads: Grads,
        arguments: &[Array],
    ) -> Result<Grads> {
        let forms = heads.iter().map(|head| head.as_ref().map(|head| Form::of_place(&head.at))).collect();
        trace::begin_exact(arguments);
        let found = tape::apply(node, saved, heads);
        let grads = match found {
            Ok(grads) => grads,
            Err(error) => {
                trace::abandon()?;
                return Err(error);
            }
        };
        let graph = trace::finish(
            &grads.iter().flatten().collect::<SmallVec<[&Array; 3]>>(),
            &[],
            Purpose::Replayed,
        )?
        .ok();
        let given = grads.iter().map(Option::is_some).collect();
        self.0.lock().push(Arc::new(Traced { mode: modes::mode(), needs, heads: forms, graph, given }));
        Ok(grads)
    }
}
