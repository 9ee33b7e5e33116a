//! Plans: what a flush runs, with numbers in place of values and scalars, so that it serves every list of calls of
//! one structure; and a cache of them.

use crate::call::{Call, Calls, Number};
use crate::described::{Described, Part};
use crate::device::Device;
use crate::exec;
use crate::hash::{AddressMap, key};
use crate::optimise;
use crate::place::{LayoutRef, Place};
use crate::record::Flush;
use crate::structure::Structure;
use crate::value::Value;
use crate::watch::Watch;
use mxnp_core::Scalar;
use mxnp_core::attrs::Attrs;
use mxnp_core::kernel::pass::{Kept, Pass};
use mxnp_engine::Task;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// How many plans the process has made. Counted only where one is made, which is rare and dear.
static MADE: AtomicUsize = AtomicUsize::new(0);

/// How often a flush had to be optimised because its structure was new, in all threads.
pub fn plans_made() -> usize {
    MADE.load(Relaxed)
}

/// A pass with the memory it works on.
pub(crate) struct PassUnit<V = Arc<Value>> {
    pub name: &'static str,
    pub pass: Pass,
    /// What it reads, then what it writes.
    pub slots: Vec<Place<V>>,
    pub scalars: Vec<Number>,
    /// How many of the slots are read.
    pub reads: usize,
    /// Slots whose buffers go to results: (from, to).
    pub donations: Vec<(usize, usize)>,
    /// The ops it is made of.
    pub parts: Box<[Part]>,
    /// What the first run of the pass made ready for the next.
    pub program: OnceLock<Kept>,
}

/// A call that runs over views, with which of its outputs somebody wants.
pub(crate) struct Kernel<V = Arc<Value>> {
    pub call: Box<Call<V>>,
    pub wanted: SmallVec<[bool; 4]>,
    /// The pass that runs over each finished part of the result.
    pub tail: Option<Box<PassUnit<V>>>,
}

/// One piece of work.
pub(crate) enum Unit<V = Arc<Value>> {
    Pass(Box<PassUnit<V>>),
    Kernel(Kernel<V>),
}

/// A value that the plan makes for itself, between its units.
struct Temporary {
    bytes: usize,
    device: Device,
}

/// What a flush of some structure runs, in program order. Numbers below the structure's count are its values, those
/// from there on the plan's own.
pub(crate) struct Plan {
    units: Vec<Unit<u32>>,
    temporaries: Vec<Temporary>,
    /// The calls that the kernels before them took over.
    merged: Vec<u32>,
    described: OnceLock<Arc<Described>>,
}

impl Plan {
    /// Optimises the calls.
    pub fn new(calls: Calls, structure: &Structure) -> Plan {
        let mut own: AddressMap<u32> = AddressMap::default();
        let mut temporaries = Vec::new();
        let mut number = |value: &Arc<Value>| match structure.number_of(value) {
            Some(number) => number as u32,
            None => *own.entry(key(value)).or_insert_with(|| {
                temporaries.push(Temporary { bytes: value.bytes, device: value.device });
                (structure.len() + temporaries.len() - 1) as u32
            }),
        };
        let (real, merged) = optimise::units(calls, structure);
        let units = real.iter().map(|unit| numbered(unit, &mut number)).collect();
        Plan { units, temporaries, merged, described: OnceLock::new() }
    }

    /// What it runs on calls of its structure, in words.
    pub fn described(&self, calls: &[Box<Call>]) -> Arc<Described> {
        self.described.get_or_init(|| Arc::new(Described::new(calls, &self.units, &self.merged))).clone()
    }

    /// The tasks that run the plan on a list of calls of its structure, and note it for `flush`.
    pub fn tasks(
        self: &Arc<Plan>,
        calls: &[Box<Call>],
        structure: &Structure,
        flush: Option<&Arc<Flush>>,
    ) -> impl Iterator<Item = Task> {
        let made = |t: &Temporary| Arc::new(Value::pending(t.bytes, t.device, 0));
        let temporaries: Vec<Arc<Value>> = self.temporaries.iter().map(made).collect();
        let value = move |number: &u32| match (*number as usize).checked_sub(structure.len()) {
            None => structure.value(calls, *number as usize).clone(),
            Some(own) => temporaries[own].clone(),
        };
        self.units.iter().enumerate().map(move |(at, unit)| {
            let watch = flush.map(|flush| Watch::new(flush, at));
            match unit {
                Unit::Pass(pass) => exec::pass_task(self.bind(at, pass, &value, structure), watch),
                Unit::Kernel(Kernel { call, wanted, tail }) => {
                    let tail = tail.as_ref().map(|pass| self.bind(at, pass, &value, structure));
                    let mut call = call.map(&value, |number| bound(number, structure));
                    call.draw = calls[call.number as usize].draw;
                    let kernel = Kernel { call: Box::new(call), wanted: wanted.clone(), tail: None };
                    exec::kernel_task(kernel, tail, watch)
                }
            }
        })
    }

    /// The pass of unit `at` with the values that `value` gives.
    fn bind(
        self: &Arc<Plan>,
        at: usize,
        pass: &PassUnit<u32>,
        value: impl Fn(&u32) -> Arc<Value>,
        structure: &Structure,
    ) -> BoundPass {
        let (mut values, mut scalars) = (SmallVec::new(), SmallVec::new());
        for slot in &pass.slots {
            values.push(value(&slot.value));
        }
        for &number in &pass.scalars {
            scalars.push(bound(number, structure).value);
        }
        BoundPass { plan: self.clone(), at, values, scalars }
    }
}

/// A scalar with the value it has in this list of calls.
fn bound(number: Number, structure: &Structure) -> Number {
    match number.slot {
        Some(slot) => Number { value: structure.scalars[slot as usize], ..number },
        None => number,
    }
}

fn numbered(unit: &Unit, number: &mut dyn FnMut(&Arc<Value>) -> u32) -> Unit<u32> {
    let mut numbered_pass = |pass: &PassUnit| {
        Box::new(PassUnit {
            name: pass.name,
            pass: pass.pass.clone(),
            slots: pass.slots.iter().map(|place| place.map(&mut *number)).collect(),
            scalars: pass.scalars.clone(),
            reads: pass.reads,
            donations: pass.donations.clone(),
            parts: pass.parts.clone(),
            program: OnceLock::new(),
        })
    };
    match unit {
        Unit::Pass(pass) => Unit::Pass(numbered_pass(pass)),
        Unit::Kernel(Kernel { call, wanted, tail }) => {
            let tail = tail.as_deref().map(numbered_pass);
            let call = Box::new(call.map(number, |n| n));
            Unit::Kernel(Kernel { call, wanted: wanted.clone(), tail })
        }
    }
}

/// A pass of a plan, or the tail of a kernel, with the values and scalars of one flush.
pub(crate) struct BoundPass {
    plan: Arc<Plan>,
    at: usize,
    /// One for each slot.
    pub values: SmallVec<[Arc<Value>; 6]>,
    pub scalars: SmallVec<[Scalar; 4]>,
}

impl BoundPass {
    /// The values whose buffers go to results.
    pub fn donors(&self) -> impl Iterator<Item = &Arc<Value>> {
        self.unit().donations.iter().map(|&(from, _)| &self.values[from])
    }

    pub fn unit(&self) -> &PassUnit<u32> {
        match &self.plan.units[self.at] {
            Unit::Pass(unit) => unit,
            Unit::Kernel(kernel) => kernel.tail.as_ref().expect("it was made from a tail"),
        }
    }
}

/// The plans a segment has made, by structure.
#[derive(Default)]
pub(crate) struct Plans {
    entries: Vec<Entry>,
    /// Hashes of structures that came once, oldest first: only what comes again is worth keeping.
    seen: VecDeque<u64>,
    clock: u64,
}

struct Entry {
    hash: u64,
    words: Box<[u64]>,
    layouts: Box<[LayoutRef]>,
    attrs: Box<[Attrs]>,
    plan: Arc<Plan>,
    used: u64,
}

/// How many plans a segment keeps.
const KEPT: usize = 128;
/// How many hashes of structures that came once.
const SEEN: usize = 256;

impl Plans {
    /// The plan for a list of calls of this structure, and whether it was there.
    pub fn find(&mut self, calls: &[Box<Call>], structure: &mut Structure) -> (Arc<Plan>, bool) {
        self.clock += 1;
        let (hash, structure) = (structure.hash(), &*structure);
        let fits = |entry: &&mut Entry| entry.hash == hash && entry.is_for(calls, structure);
        if let Some(entry) = self.entries.iter_mut().find(fits) {
            entry.used = self.clock;
            return (entry.plan.clone(), true);
        }
        MADE.fetch_add(1, Relaxed);
        let plan = Arc::new(Plan::new(calls.to_vec(), structure));
        if self.came_before(hash) {
            self.keep(Entry::new(hash, calls, structure, plan.clone(), self.clock));
        }
        (plan, false)
    }

    /// Whether a structure of this hash came before; notes it if not. A search: in a table, two that take turns at one
    /// place would push each other out for ever.
    fn came_before(&mut self, hash: u64) -> bool {
        if let Some(at) = self.seen.iter().position(|&each| each == hash) {
            self.seen.remove(at);
            return true;
        }
        if self.seen.len() == SEEN {
            self.seen.pop_front();
        }
        self.seen.push_back(hash);
        false
    }

    fn keep(&mut self, entry: Entry) {
        if self.entries.len() < KEPT {
            return self.entries.push(entry);
        }
        if let Some(oldest) = self.entries.iter_mut().min_by_key(|entry| entry.used) {
            *oldest = entry;
        }
    }
}

impl Entry {
    fn new(hash: u64, calls: &[Box<Call>], structure: &Structure, plan: Arc<Plan>, used: u64) -> Entry {
        let layouts = structure.layouts.iter().map(|at| at.place(calls).layout.clone()).collect();
        let attrs = structure.attrs.iter().map(|at| at.attrs(calls).clone()).collect();
        Entry { hash, words: structure.words.clone().into(), layouts, attrs, plan, used }
    }

    fn is_for(&self, calls: &[Box<Call>], structure: &Structure) -> bool {
        // The words agree, so as many places and calls are named, and the same ones.
        *self.words == *structure.words
            && self.layouts.iter().zip(&structure.layouts).all(|(a, at)| *a == at.place(calls).layout)
            && self.attrs.iter().zip(&structure.attrs).all(|(a, at)| a == at.attrs(calls))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_that_take_turns_are_both_kept() {
        for distance in 1..=SEEN as u64 {
            let mut plans = Plans::default();
            let found: Vec<bool> =
                [7, 7 + distance].repeat(2).into_iter().map(|h| plans.came_before(h)).collect();
            assert_eq!(found, [false, false, true, true], "{distance} apart");
        }
        let mut plans = Plans::default();
        assert!((0..SEEN as u64 + 1).all(|hash| !plans.came_before(hash)));
        assert!(!plans.came_before(0) && plans.came_before(SEEN as u64));
    }
}
