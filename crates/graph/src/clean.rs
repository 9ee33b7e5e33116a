//! From the notes of a trace to a graph: constants are folded, calls made twice are made once, calls that nobody needs
//! are left out, and each value is given up after its last use. Nothing in this file changes a bit of a result.

use crate::compiled::{
    Arg, Argument, CallStep, Graph, Object, Origin, Output, Outside, Slot, Source, Spot, Step,
};
use crate::error::Result;
use crate::fold::Fold;
use crate::value::Value;
use mxnp_core::DType;
use mxnp_core::attrs::Attrs;
use mxnp_core::op::Run;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// What a graph is made for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To be looked at: every call the outputs need is there.
    Shown,
    /// To be replayed as it is.
    Replayed,
    /// To be replayed in prediction: it keeps what it makes of arrays from outside alone, and its normalisations
    /// become part of weights.
    Folded,
}

/// A graph before it is cleaned.
pub(crate) struct Parts {
    pub slots: Vec<Slot>,
    pub arguments: Vec<Argument>,
    pub objects: Vec<Object>,
    pub steps: Vec<Step>,
    pub outside: Vec<Outside>,
    pub outputs: Vec<Output>,
    pub nodes: usize,
    pub written: Vec<u32>,
    pub strangers: Vec<(u32, bool)>,
    /// The values of constants, by slot.
    pub constants: Vec<Option<Arc<Value>>>,
}

impl Parts {
    pub fn graph(mut self, purpose: Purpose) -> Result<Graph> {
        if purpose != Purpose::Shown {
            self.fold();
        }
        self.merge();
        self.drop_dead();
        let mut parts = Vec::new();
        if purpose == Purpose::Folded && self.nodes == 0 {
            parts = self.absorb()?;
            parts.extend(self.split_off()?);
        }
        let fold = Fold::new(parts);
        let releases = self.releases();
        let Parts { slots, arguments, objects, steps, outside, outputs, nodes, written, strangers, .. } =
            self;
        Ok(Graph {
            slots,
            arguments,
            objects,
            steps,
            releases,
            outside,
            outputs,
            nodes,
            written,
            strangers,
            fold,
        })
    }

    /// Which slots are given out.
    pub fn escaping(&self) -> Vec<bool> {
        let mut escapes = vec![false; self.slots.len()];
        self.outputs.iter().for_each(|output| escapes[output.at.slot as usize] = true);
        escapes
    }

    /// Which slots are given out or written: their values must stay what the program made them.
    pub fn fixed(&self) -> Vec<bool> {
        let mut fixed = self.escaping();
        for step in &self.steps {
            written_by(step).for_each(|slot| fixed[slot as usize] = true);
        }
        fixed
    }

    /// Values made of constants alone become constants, unless the program may write to them. Filling an array is
    /// left: a pass that reads the number is faster than one that reads the array.
    fn fold(&mut self) {
        let escapes = self.escaping();
        for step in &mut self.steps {
            let Step::Call(call) = step else { continue };
            let has_arrays = call.ins.iter().any(|arg| arg.spot().is_some());
            let is_kernel = !matches!(call.op.run, Run::Elementwise(_));
            let folds = |slot: usize| !escapes[slot] && self.constants[slot].is_some();
            let all = call.outs.iter().all(|out| out.fresh && folds(out.at.slot as usize));
            if all && (has_arrays || is_kernel && call.op.name != "full") {
                for out in &call.outs {
                    let slot = out.at.slot as usize;
                    if let Some(value) = self.constants[slot].take() {
                        self.slots[slot].origin = Origin::Captured(value);
                    }
                }
                *step = Step::Draw;
            }
        }
        self.steps.retain(|step| !matches!(step, Step::Draw));
    }

    /// A call like an earlier one, of values that were not written in between, gives way to it; neither result is
    /// written or given out.
    fn merge(&mut self) {
        let fixed = self.fixed();
        let mut versions = vec![0; self.slots.len()];
        let mut instead: Vec<u32> = (0..self.slots.len() as u32).collect();
        let mut seen: HashMap<Same, SmallVec<[u32; 2]>> = HashMap::new();
        let mut kept = Vec::with_capacity(self.steps.len());
        for mut step in std::mem::take(&mut self.steps) {
            step.spots_mut().for_each(|spot| spot.slot = instead[spot.slot as usize]);
            if let Step::Call(call) = &step
                && !call.op.random
                && call.outs.iter().all(|out| out.fresh && !fixed[out.at.slot as usize])
            {
                let outs: SmallVec<[u32; 2]> = call.outs.iter().map(|out| out.at.slot).collect();
                match seen.entry(Same::of(call, &versions)) {
                    Entry::Occupied(earlier) => {
                        for (&mine, &theirs) in outs.iter().zip(earlier.get()) {
                            instead[mine as usize] = theirs;
                        }
                        continue;
                    }
                    Entry::Vacant(place) => {
                        place.insert(outs);
                    }
                }
            }
            written_by(&step).for_each(|slot| versions[slot as usize] += 1);
            kept.push(step);
        }
        self.steps = kept;
    }

    /// Leaves out nodes that no output's history reaches, and calls that nothing needs.
    fn drop_dead(&mut self) {
        let mut live_nodes = vec![false; self.nodes];
        fn mark(source: &Option<Source>, nodes: &mut [bool]) {
            if let Some(Source::Node { node, .. }) = source {
                nodes[*node as usize] = true;
            }
        }
        let mut needed = self.escaping();
        self.outputs.iter().for_each(|output| mark(&output.source, &mut live_nodes));
        self.written.iter().for_each(|&slot| needed[slot as usize] = true);
        let mut kept = Vec::with_capacity(self.steps.len());
        for step in std::mem::take(&mut self.steps).into_iter().rev() {
            let lives = match &step {
                Step::Call(call) => call.outs.iter().any(|out| needed[out.at.slot as usize]),
                Step::Node(node) => live_nodes[node.number as usize],
                Step::View(_) | Step::Draw | Step::Guard { .. } => true,
            };
            if !lives {
                if matches!(&step, Step::Call(call) if call.op.random) {
                    kept.push(Step::Draw);
                }
                continue;
            }
            step.spots().iter().for_each(|spot| needed[spot.slot as usize] = true);
            if let Step::Node(node) = &step {
                node.parents.iter().for_each(|(source, _)| mark(source, &mut live_nodes));
            }
            kept.push(step);
        }
        kept.reverse();
        self.steps = kept;
    }

    /// After each step, which values are not used again.
    fn releases(&self) -> Vec<SmallVec<[u32; 2]>> {
        let mut used = self.escaping();
        let mut releases = vec![SmallVec::new(); self.steps.len()];
        for (step, release) in self.steps.iter().zip(&mut releases).rev() {
            for spot in step.spots() {
                if !std::mem::replace(&mut used[spot.slot as usize], true) {
                    release.push(spot.slot);
                }
            }
        }
        releases
    }
}

/// The existing slots that a step writes to.
fn written_by(step: &Step) -> impl Iterator<Item = u32> + '_ {
    let outs = match step {
        Step::Call(call) => call.outs.as_slice(),
        _ => &[],
    };
    outs.iter().filter(|out| !out.fresh).map(|out| out.at.slot)
}

/// What makes two calls give the same: the op, its attributes and its operands, which of their versions.
#[derive(PartialEq, Eq, Hash)]
struct Same {
    op: usize,
    attrs: Attrs,
    ins: Vec<Operand>,
    types: SmallVec<[DType; 4]>,
}

#[derive(PartialEq, Eq, Hash)]
enum Operand {
    Spot(Spot, u32),
    /// Its bits.
    Scalar((u8, i128, u64)),
}

impl Same {
    fn of(call: &CallStep, versions: &[u32]) -> Same {
        let operand = |arg: &Arg| match arg {
            Arg::Spot(spot) => Operand::Spot(spot.clone(), versions[spot.slot as usize]),
            Arg::Scalar(scalar) => Operand::Scalar(scalar.bits()),
        };
        Same {
            op: std::ptr::from_ref(call.op).addr(),
            attrs: call.attrs.clone(),
            ins: call.ins.iter().map(operand).collect(),
            types: call.known.types.clone(),
        }
    }
}
