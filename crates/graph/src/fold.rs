//! What a compiled graph makes of arrays from outside alone: computed once, kept, and made anew when one of those was
//! written. Exact. Knows how such calls are found in a trace and how their results are kept; `absorb` adds some.

use crate::array::Array;
use crate::clean::{Parts, Purpose};
use crate::compiled::{Arg, Graph, Origin, Output, Slot, Spot, Step};
use crate::error::Result;
use crate::place::Place;
use crate::sync::Mutex;
use crate::value::Value;
use mxnp_engine::Tracked;
use smallvec::SmallVec;
use std::sync::Arc;

/// Some values of a graph, and the graph that makes them of others.
pub(crate) struct Part {
    pub graph: Graph,
    /// The arguments of `graph`: places in slots from outside.
    pub arguments: SmallVec<[Spot; 6]>,
    /// The slots that get its outputs' values.
    pub targets: SmallVec<[u32; 2]>,
}

/// The values that a graph keeps.
pub(crate) struct Fold {
    parts: Vec<Part>,
    /// The slots from outside that the values depend on.
    sources: Vec<u32>,
    kept: Mutex<Option<Arc<Kept>>>,
}

struct Kept {
    /// Of the sources, before they were read.
    versions: Vec<u64>,
    values: Vec<Arc<Value>>,
}

impl Kept {
    /// Whether the values are there or on their way; one whose task failed has no contents.
    fn is_sound(&self) -> bool {
        self.values.iter().all(|v| v.has_contents() || v.writer() != 0 || !v.var().is_ready())
    }
}

impl Fold {
    pub fn new(parts: Vec<Part>) -> Option<Fold> {
        let is_outside = |graph: &Graph, spot: &Spot| {
            let slot = &graph.slots[spot.slot as usize];
            matches!(slot.origin, Origin::Captured(_)) && !slot.constant
        };
        let mut sources: Vec<u32> = Vec::new();
        for part in &parts {
            let read =
                part.graph.steps.iter().flat_map(Step::spots).filter(|spot| is_outside(&part.graph, spot));
            // A part with arguments has numbers of its own; the others have the whole graph's.
            match part.arguments.is_empty() {
                true => sources.extend(read.map(|spot| spot.slot)),
                false => sources.extend(part.arguments.iter().map(|spot| spot.slot)),
            }
        }
        sources.sort_unstable();
        sources.dedup();
        (!parts.is_empty()).then(|| Fold { parts, sources, kept: Mutex::default() })
    }

    /// Sets the values of the folded slots for a replay whose outside values are set.
    pub fn fill(&self, values: &mut [Option<Arc<Value>>]) -> Result<()> {
        let sources = || self.sources.iter().filter_map(|&slot| values[slot as usize].as_ref());
        let versions: Vec<u64> = sources().map(|value| value.version()).collect();
        // Foreign code writes without a version.
        let is_shared = sources().any(|value| value.is_shared());
        let known = self.kept.lock().clone();
        let kept = match known {
            Some(kept) if !is_shared && kept.versions == versions && kept.is_sound() => kept,
            _ => {
                let kept = Arc::new(Kept { versions, values: self.make(values)? });
                // What was there is dropped after the lock is given up.
                let _old = std::mem::replace(&mut *self.kept.lock(), (!is_shared).then(|| kept.clone()));
                kept
            }
        };
        let targets = self.parts.iter().flat_map(|part| &part.targets);
        for (&slot, value) in targets.zip(&kept.values) {
            values[slot as usize] = Some(value.clone());
        }
        Ok(())
    }

    fn make(&self, values: &[Option<Arc<Value>>]) -> Result<Vec<Arc<Value>>> {
        let mut made = Vec::new();
        for part in &self.parts {
            let array = |spot: &Spot| {
                let value = values[spot.slot as usize].clone();
                let value = value.expect("values from outside are set before the first step");
                Array::new(Place { value, layout: spot.layout.clone(), dtype: spot.dtype })
            };
            let arguments: SmallVec<[Array; 6]> = part.arguments.iter().map(array).collect();
            let outputs = part.graph.replay(&arguments, &[], &mut Vec::new())?;
            made.extend(outputs.into_iter().flatten().map(|array| array.at.value));
        }
        Ok(made)
    }
}

impl Parts {
    /// Takes out the calls that read nothing but arrays from outside which no step writes, and that make no more than
    /// they read; their results are neither written nor given out.
    pub fn split_off(&mut self) -> Result<Option<Part>> {
        let fixed = self.fixed();
        let is_outside = |slot: &Slot| matches!(slot.origin, Origin::Captured(_));
        let mut folded: Vec<bool> = self.slots.iter().map(is_outside).collect();
        (0..folded.len()).for_each(|slot| folded[slot] &= !fixed[slot]);
        let bytes = |spot: &Spot| spot.layout.size() * spot.dtype.size();
        let (mut taken, mut left) = (Vec::new(), Vec::new());
        for step in std::mem::take(&mut self.steps) {
            let Step::Call(call) = &step else {
                left.push(step);
                continue;
            };
            let read = || call.ins.iter().filter_map(Arg::spot);
            let folds = !call.op.random
                && read().next().is_some()
                && read().all(|spot| folded[spot.slot as usize])
                && call.outs.iter().all(|out| out.fresh && !fixed[out.at.slot as usize])
                && call.outs.iter().map(|out| bytes(&out.at)).sum::<usize>() <= read().map(bytes).sum();
            if folds {
                call.outs.iter().for_each(|out| folded[out.at.slot as usize] = true);
                taken.push(step);
            } else {
                left.push(step);
            }
        }
        self.steps = left;
        if taken.is_empty() { Ok(None) } else { self.part_of(taken).map(Some) }
    }

    /// The part that makes what `steps` give to the steps that are left.
    fn part_of(&self, steps: Vec<Step>) -> Result<Part> {
        let used: Vec<u32> = self.steps.iter().flat_map(Step::spots).map(|spot| spot.slot).collect();
        let made = steps.iter().flat_map(|step| match step {
            Step::Call(call) => call.outs.as_slice(),
            _ => &[],
        });
        let outputs: Vec<Output> = made
            .filter(|out| used.contains(&out.at.slot))
            .map(|out| Output { at: out.at.clone(), source: None, copied: false })
            .collect();
        let targets = outputs.iter().map(|output| output.at.slot).collect();
        // It has no arguments, and reads nothing that is made of any.
        let without = |slot: &Slot| match slot.origin {
            Origin::Input { .. } => Slot { origin: Origin::Made, ..slot.clone() },
            _ => slot.clone(),
        };
        let parts = Parts {
            slots: self.slots.iter().map(without).collect(),
            arguments: Vec::new(),
            objects: Vec::new(),
            steps,
            outside: Vec::new(),
            outputs,
            nodes: 0,
            written: Vec::new(),
            strangers: Vec::new(),
            constants: vec![None; self.slots.len()],
        };
        Ok(Part { graph: parts.graph(Purpose::Replayed)?, arguments: SmallVec::new(), targets })
    }
}
