//! The structure of a list of calls: what a plan depends on, and nothing else. Values are numbered in the order in
//! which the calls name them, scalars by their bits; two lists with equal structure run by one plan.

use crate::call::{Call, In, Number};
use crate::hash::{key, mix};
use crate::inferred::attrs_hash;
use crate::modes;
use crate::numbers::Numbers;
use crate::value::Value;
use mxnp_core::Scalar;
use mxnp_core::attrs::Attrs;
use mxnp_core::op::Run;
use mxnp_engine::{Kind, engine};
use std::sync::Arc;

/// Where a value is named first.
#[derive(Clone, Copy)]
struct Named {
    call: u32,
    /// Counts inputs, then outputs.
    place: u32,
}

/// What is known of one value of the list.
#[derive(Clone, Copy)]
struct Known {
    first: Named,
    /// How many references the calls hold.
    refs: u32,
    /// Whether somebody outside the list can look at it.
    observable: bool,
}

/// The numbers of values and scalars of one list of calls. Made anew for each flush in the same memory.
#[derive(Default)]
pub(crate) struct Structure {
    /// The structure as words; with the layouts and attributes of the calls, all that a plan depends on.
    pub words: Vec<u64>,
    values: Vec<Known>,
    pub scalars: Vec<Scalar>,
    numbers: Numbers,
}

impl Structure {
    /// Reads a list of calls, which holds the only references that do not make a value observable. Gives the
    /// program's scalars their slots.
    pub fn read(&mut self, calls: &mut [Call]) {
        self.words.clear();
        self.values.clear();
        self.scalars.clear();
        self.numbers.clear();
        let modes = [modes::fusion(), engine().kind() == Kind::Naive, modes::numpy_dtype()];
        let modes = modes.iter().fold(0, |word, &mode| word << 1 | mode as u64);
        self.words.push(mix(modes, calls.len() as u64));
        for (at, call) in calls.iter_mut().enumerate() {
            call.number = at as u32;
            let attrs = if call.attrs == Attrs::NONE { 0 } else { attrs_hash(&call.attrs) };
            let types = call.known.types.iter().fold(0, |word: u64, &dtype| mix(word, 1 + dtype as u64));
            self.words.push(std::ptr::from_ref(call.op).addr() as u64);
            self.words.push(mix(attrs, types));
            // The body of an op may look at its scalars, so they belong to the structure.
            let is_body = matches!(call.op.run, Run::Body(_));
            for (i, input) in call.ins.iter_mut().enumerate() {
                match input {
                    In::Place(place) => {
                        let number = self.number(&place.value, at, i);
                        self.words.push(1 | (place.dtype as u64) << 8 | number << 32);
                        self.words.push(place.layout.hash());
                    }
                    In::Scalar(scalar) if is_body => {
                        let (kind, low, high) = scalar.value.bits();
                        self.words.extend([2 | u64::from(kind) << 8, low as u64, (low >> 64) as u64, high]);
                    }
                    In::Scalar(scalar) => self.scalar(scalar),
                }
            }
            for (i, out) in call.outs.iter().enumerate() {
                let number = self.number(&out.at.value, at, call.ins.len() + i);
                let dtypes = (out.at.dtype as u64) << 8 | (out.computed as u64) << 16;
                self.words.push(4 | out.fresh as u64 | dtypes | number << 32);
                self.words.push(out.at.layout.hash());
            }
        }
        self.observe(calls);
    }

    /// The number of a value, given at its first use.
    fn number(&mut self, value: &Arc<Value>, call: usize, place: usize) -> u64 {
        let next = self.values.len() as u32;
        let number = self.numbers.get_or_insert(key(value), next);
        if number == next {
            let first = Named { call: call as u32, place: place as u32 };
            self.values.push(Known { first, refs: 0, observable: false });
        }
        self.values[number as usize].refs += 1;
        number.into()
    }

    fn scalar(&mut self, scalar: &mut Number) {
        let bits = scalar.value.bits();
        // A constant of the program usually comes again soon.
        let recent = self.scalars.len().saturating_sub(16);
        let known = self.scalars[recent..].iter().rposition(|seen| seen.bits() == bits);
        let slot = known.map(|at| recent + at).unwrap_or_else(|| {
            self.scalars.push(scalar.value);
            self.scalars.len() - 1
        });
        scalar.slot = Some(slot as u32);
        self.words.push(3 | u64::from(bits.0) << 8 | (slot as u64) << 32);
    }

    /// Finds which values somebody else holds: an array, the tape, another segment, an unfinished task.
    fn observe(&mut self, calls: &[Call]) {
        for at in 0..self.values.len() {
            let known = self.values[at];
            let value = named(calls, known.first);
            let shared = value.is_shared();
            let observable = shared || Arc::strong_count(value) > known.refs as usize;
            self.values[at].observable = observable;
            let device = u64::from(value.device.id) << 1 | (value.device.kind as u64) << 40;
            let word = mix(value.bytes as u64, device) << 2 | (shared as u64) << 1 | observable as u64;
            self.words.push(word);
        }
    }

    /// How many values the calls name.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// The value numbered `number` of the list that was read.
    pub fn value<'c>(&self, calls: &'c [Call], number: usize) -> &'c Arc<Value> {
        named(calls, self.values[number].first)
    }

    /// The number of a value, none for one that the list does not name.
    pub fn number_of(&self, value: &Arc<Value>) -> Option<usize> {
        self.numbers.get(key(value)).map(|number| number as usize)
    }

    /// Whether somebody outside the list can look at the value: false for one that the list does not name.
    pub fn is_observable(&self, value: &Arc<Value>) -> bool {
        self.number_of(value).is_some_and(|number| self.values[number].observable)
    }

    /// Takes the marks of segment `id` from every value that another thread can reach.
    pub fn clear_marks(&self, calls: &[Call], id: u32) {
        for known in &self.values {
            let made_here = known.first.place as usize >= calls[known.first.call as usize].ins.len();
            if known.observable || !made_here {
                named(calls, known.first).clear_marks(id);
            }
        }
    }

    /// A hash of the words.
    pub fn hash(&self) -> u64 {
        self.words.iter().fold(0, |hash, &word| mix(hash, word))
    }
}

fn named(calls: &[Call], at: Named) -> &Arc<Value> {
    let call = &calls[at.call as usize];
    let place = at.place as usize;
    match call.ins.get(place) {
        Some(In::Place(place)) => &place.value,
        _ => &call.outs[place - call.ins.len()].at.value,
    }
}
