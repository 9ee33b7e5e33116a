//! A call that only scales and shifts by channel (a normalisation in prediction), after one that can take that into its
//! weights (a convolution), becomes part of it. Sums are associated in another way than in eager code: results differ in
//! the last places. Knows no op: which calls are of these kinds, and the new weights' formulas, are facts of the ops.

use crate::array::Array;
use crate::clean::{Parts, Purpose};
use crate::compiled::{Arg, CallStep, Origin, Slot, Spot, Step};
use crate::error::Result;
use crate::fold::Part;
use crate::inferred::Inference;
use crate::place::Place;
use crate::rules::Eager;
use crate::{modes, trace};
use mxnp_core::attrs::Attrs;
use mxnp_core::op::Meta;
use mxnp_core::rules::Sym;
use smallvec::SmallVec;

/// New operands of a call, as arrays and as what makes them.
struct Found {
    attrs: Attrs,
    part: Part,
    arrays: SmallVec<[Array; 2]>,
}

impl Parts {
    /// Makes one call of each such pair; gives what makes the new weights.
    pub fn absorb(&mut self) -> Result<Vec<Part>> {
        let mut uses = vec![0; self.slots.len()];
        self.steps.iter().flat_map(Step::spots).for_each(|spot| uses[spot.slot as usize] += 1);
        let fixed = self.fixed();
        let mut parts = Vec::new();
        let mut at = 0;
        while at < self.steps.len() {
            let before = self.before(at, &uses, &fixed);
            let found = before.map(|before| self.absorbed(before, at, &fixed)).transpose()?.flatten();
            let (Some(before), Some(found)) = (before, found) else {
                at += 1;
                continue;
            };
            parts.push(self.put(before, at, found)?);
        }
        Ok(parts)
    }

    /// The call whose result nobody reads but the call numbered `at`, as its first input.
    fn before(&self, at: usize, uses: &[usize], fixed: &[bool]) -> Option<usize> {
        let Step::Call(call) = &self.steps[at] else { return None };
        let from = call.ins.first()?.spot()?;
        let slot = from.slot as usize;
        let hidden_is_read = call.outs.iter().skip(1).any(|out| uses[out.at.slot as usize] > 1);
        if call.op.affine.is_none() || hidden_is_read || uses[slot] != 2 || fixed[slot] {
            return None;
        }
        let makes = |step: &Step| match step {
            Step::Call(call) => {
                call.op.absorb.is_some()
                    && call.outs.len() == 1
                    && call.outs[0].fresh
                    && call.outs[0].at == *from
            }
            _ => false,
        };
        self.steps[..at].iter().rposition(makes)
    }

    /// The arrays from outside that a call reads beside its first input; None where there are others, or one is written.
    fn outside(&self, call: &CallStep, fixed: &[bool]) -> Option<SmallVec<[Spot; 6]>> {
        // Slots that `put` has added are not from outside, and not in `fixed`.
        let is_captured = |slot: usize| matches!(self.slots[slot].origin, Origin::Captured(_));
        let is_outside = |arg: &Arg| {
            let spot = arg.spot()?;
            let slot = spot.slot as usize;
            (is_captured(slot) && !fixed[slot]).then(|| spot.clone())
        };
        call.ins.iter().skip(1).map(is_outside).collect()
    }

    fn absorbed(&self, before: usize, at: usize, fixed: &[bool]) -> Result<Option<Found>> {
        let (Step::Call(first), Step::Call(second)) = (&self.steps[before], &self.steps[at]) else {
            return Ok(None);
        };
        let (Some(ours), Some(theirs)) = (self.outside(first, fixed), self.outside(second, fixed)) else {
            return Ok(None);
        };
        let array = |spot: &Spot| match &self.slots[spot.slot as usize].origin {
            Origin::Captured(value) => {
                let (value, layout) = (value.clone(), spot.layout.clone());
                Some(Array::new(Place { value, layout, dtype: spot.dtype }))
            }
            _ => None,
        };
        let arguments: SmallVec<[Spot; 6]> = ours.iter().chain(&theirs).cloned().collect();
        let arrays: SmallVec<[Array; 6]> = arguments.iter().filter_map(array).collect();
        trace::begin_exact(&arrays);
        match rescaled(first, second, &arrays, ours.len()) {
            Some((attrs, made)) => {
                let graph = trace::finish(&made.iter().collect::<Vec<_>>(), &[], Purpose::Replayed)?;
                let part = graph.ok().map(|graph| Part { graph, arguments, targets: SmallVec::new() });
                Ok(part.map(|part| Found { attrs, part, arrays: made }))
            }
            None => trace::abandon().map(|()| None),
        }
    }

    /// Puts the new call in the first one's place, with the second one's result.
    fn put(&mut self, before: usize, at: usize, found: Found) -> Result<Part> {
        let Found { attrs, mut part, arrays } = found;
        let Step::Call(second) = self.steps.remove(at) else { return Ok(part) };
        let spots: SmallVec<[Spot; 2]> = arrays.iter().map(|array| self.new_slot(array)).collect();
        part.targets = spots.iter().map(|spot| spot.slot).collect();
        if let Step::Call(call) = &mut self.steps[before] {
            call.ins.truncate(1);
            call.ins.extend(spots.into_iter().map(Arg::Spot));
            let metas: SmallVec<[Meta; 4]> = call.ins.iter().filter_map(Arg::spot).map(meta_of).collect();
            let known = call.op.infer(&attrs, &metas, modes::mode()).map_err(crate::Error::Op)?;
            (call.attrs, call.known) = (attrs, Inference::of(known));
            call.outs = second.outs.into_iter().take(1).collect();
        }
        Ok(part)
    }

    /// A place for an array that the graph will find in a slot of its own.
    fn new_slot(&mut self, array: &Array) -> Spot {
        let value = &array.at.value;
        self.slots.push(Slot {
            origin: Origin::Made,
            bytes: value.bytes,
            device: value.device,
            constant: false,
        });
        self.constants.push(None);
        let slot = self.slots.len() as u32 - 1;
        Spot { slot, layout: array.at.layout.clone(), dtype: array.dtype() }
    }
}

fn meta_of(spot: &Spot) -> Meta {
    Meta::new(mxnp_core::Shape::from_slice(&spot.layout.shape), spot.dtype)
}

/// The attributes and operands of `first` when it does the work of `second` too: `arrays` are the operands of both, the
/// first `ours` those of `first`.
fn rescaled(
    first: &CallStep,
    second: &CallStep,
    arrays: &[Array],
    ours: usize,
) -> Option<(Attrs, SmallVec<[Array; 2]>)> {
    let (affine, absorb) = (second.op.affine?, first.op.absorb?);
    let (x, y) = (first.ins.first()?.spot()?, second.ins.first()?.spot()?);
    let rules = Eager::default();
    let syms: SmallVec<[Sym; 6]> =
        arrays.iter().map(|array| Sym::new(&rules, rules.put(array.clone()))).collect();
    let by = affine(&second.attrs, &meta_of(y), &syms[ours..])?;
    let (attrs, operands) = absorb(&first.attrs, &meta_of(x), &syms[..ours], &by)?;
    rules.check().ok()?;
    Some((attrs, operands.iter().map(|operand| rules.get(operand.handle())).collect()))
}
