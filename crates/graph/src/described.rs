//! What a plan runs, in names, shapes and bytes, for whoever looks at it. Made when a log is open, once for a plan.

use crate::call::{Call, In};
use crate::place::Place;
use crate::plan::{Kernel, PassUnit, Unit};
use mxnp_core::kernel::pass::Source;
use mxnp_core::{DType, Layout};
use std::collections::BTreeSet;
use std::sync::Arc;

/// An array that a unit reads or writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operand {
    pub dtype: DType,
    /// Without what is only repeated.
    pub shape: Vec<usize>,
    /// Bytes of different elements: what has to move at least.
    pub bytes: usize,
}

/// A step of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub op: &'static str,
    /// The number of the flush's call that it comes from.
    pub call: usize,
}

/// A unit of a plan.
#[derive(Debug)]
pub struct DescribedUnit {
    /// A short text: the names of its ops.
    pub label: Arc<str>,
    /// Whether it is a pass of steps over tiles, and not a kernel of one op.
    pub is_pass: bool,
    pub parts: Vec<Part>,
    /// What it goes over: a pass's elements, a kernel's first result.
    pub shape: Vec<usize>,
    pub reads: Vec<Operand>,
    pub writes: Vec<Operand>,
    pub scalars: usize,
    /// For each result in the memory of an array that is not needed any more: its number in `writes`.
    pub reuses: Vec<usize>,
    /// Multiplications with an addition, for products.
    pub products: Option<u64>,
}

/// A plan.
#[derive(Debug)]
pub struct Described {
    /// The ops that were called.
    pub calls: Vec<&'static str>,
    pub units: Vec<DescribedUnit>,
    /// The calls whose results nobody could see.
    pub dead: Vec<usize>,
    /// The copies that are gone because the kernel before them wrote where they would have.
    pub merged: Vec<usize>,
    /// Bytes that would have moved had each call run by itself.
    pub unfused: usize,
}

impl Described {
    pub(crate) fn new(calls: &[Box<Call>], units: &[Unit<u32>], merged: &[u32]) -> Described {
        let names: Vec<&'static str> = calls.iter().map(|call| call.op.name).collect();
        let units: Vec<DescribedUnit> = units.iter().map(|unit| described(unit, &names)).collect();
        let alive: BTreeSet<usize> =
            units.iter().flat_map(|unit| unit.parts.iter().map(|p| p.call)).collect();
        let merged = merged.iter().map(|&number| number as usize);
        let merged: Vec<usize> = merged.filter(|number| !alive.contains(number)).collect();
        let is_dead = |at: &usize| !alive.contains(at) && !merged.contains(at);
        let dead = (0..calls.len()).filter(is_dead).collect();
        let unfused = calls.iter().flat_map(|call| call.places()).map(|place| operand(place).bytes).sum();
        Described { calls: names, units, dead, merged, unfused }
    }
}

fn described(unit: &Unit<u32>, names: &[&'static str]) -> DescribedUnit {
    match unit {
        Unit::Pass(pass) => described_pass(pass, names),
        Unit::Kernel(kernel) => described_kernel(kernel, names),
    }
}

fn described_pass(unit: &PassUnit<u32>, names: &[&'static str]) -> DescribedUnit {
    let slots: Vec<Operand> = unit.slots.iter().map(operand).collect();
    let arrays = |source| match source {
        Source::Array(slot) => Some(slots[slot].clone()),
        Source::Scalar(_) => None,
    };
    let scalars = unit.pass.loads.iter().filter(|load| matches!(load.source, Source::Scalar(_))).count();
    DescribedUnit {
        label: label(&unit.parts, names).into(),
        is_pass: true,
        parts: unit.parts.to_vec(),
        shape: unit.pass.shape.to_vec(),
        reads: unit.pass.loads.iter().filter_map(|load| arrays(load.source)).collect(),
        writes: slots[unit.reads..].to_vec(),
        scalars,
        reuses: unit.donations.iter().map(|&(_, to)| to - unit.reads).collect(),
        products: None,
    }
}

fn described_kernel(kernel: &Kernel<u32>, names: &[&'static str]) -> DescribedUnit {
    let Kernel { call, wanted, tail } = kernel;
    let places = |layout: &Layout| layout.shape.to_vec();
    let outs = call.outs.iter().zip(wanted).filter(|(_, wanted)| **wanted).map(|(out, _)| &out.at);
    let shapes: Vec<Vec<usize>> = call.ins.iter().filter_map(In::place).map(|p| places(&p.layout)).collect();
    let ins: Vec<&[usize]> = shapes.iter().map(|shape| &shape[..]).collect();
    let shape = call.outs.first().map(|out| places(&out.at.layout)).unwrap_or_default();
    let made = DescribedUnit {
        label: call.op.name.into(),
        is_pass: false,
        parts: vec![Part { op: call.op.name, call: call.number as usize }],
        reads: call.ins.iter().filter_map(In::place).map(operand).collect(),
        writes: outs.map(operand).collect(),
        scalars: call.ins.iter().filter(|input| input.place().is_none()).count(),
        reuses: vec![],
        products: call.op.products.map(|count| count(&ins, &shape)),
        shape,
    };
    match tail {
        Some(tail) => with_tail(made, &call.outs[0].at, tail, names),
        None => made,
    }
}

/// A kernel whose `result` a pass goes over in the cache: there it is neither read nor, where its memory is another
/// result's, written for itself.
fn with_tail(
    mut made: DescribedUnit,
    result: &Place<u32>,
    tail: &PassUnit<u32>,
    names: &[&'static str],
) -> DescribedUnit {
    let is_result = |slot: usize| tail.slots[slot].value == result.value;
    if tail.donations.iter().any(|&(from, _)| is_result(from)) {
        made.writes.clear();
    }
    let others = tail.pass.loads.iter().filter_map(|load| match load.source {
        Source::Array(slot) if !is_result(slot) => Some(operand(&tail.slots[slot])),
        _ => None,
    });
    made.reads.extend(others);
    let first = made.writes.len();
    let donated = tail.donations.iter().filter(|&&(from, _)| !is_result(from));
    made.reuses = donated.map(|&(_, to)| first + to - tail.reads).collect();
    let after = described_pass(tail, names);
    made.writes.extend(after.writes);
    made.parts.extend(after.parts);
    made.scalars += after.scalars;
    made.label = label(&made.parts, names).into();
    made
}

/// The array at a place. What a layout repeats (stride 0) is there once.
fn operand<V>(place: &Place<V>) -> Operand {
    let layout = &*place.layout;
    let axes = layout.shape.iter().zip(&layout.strides);
    let own = axes.filter(|&(&size, &stride)| stride != 0 || size <= 1).map(|(&size, _)| size);
    let shape: Vec<usize> = own.collect();
    let elements = if layout.shape.contains(&0) { 0 } else { shape.iter().product() };
    Operand { dtype: place.dtype, bytes: elements * place.dtype.size(), shape }
}

/// How many ops a label names.
const NAMED: usize = 6;

/// `multiply+add`; where all of it is the body of one call, `softmax: max+subtract+exp`.
fn label(parts: &[Part], names: &[&'static str]) -> String {
    let mut text = String::new();
    if let Some(first) = parts.first()
        && parts.iter().all(|part| part.call == first.call)
        && names[first.call] != first.op
    {
        text.push_str(names[first.call]);
        text.push_str(": ");
    }
    let ops: Vec<&str> = parts.iter().take(NAMED).map(|part| part.op).collect();
    text.push_str(&ops.join("+"));
    if parts.len() > NAMED {
        text.push_str(&format!("+{} more", parts.len() - NAMED));
    }
    text
}
