//! The structure of a list of calls: what a plan depends on, and nothing else. Values are numbered in the order in
//! which the calls name them, scalars by their bits; two lists with equal structure run by one plan.

use crate::call::{Call, In, Number};
use crate::hash::{key, mix};
use crate::inferred::{FREE, attrs_hash};
use crate::modes;
use crate::numbers::Numbers;
use crate::place::Place;
use crate::value::{SegmentId, Value};
use mxnp_core::Scalar;
use mxnp_core::attrs::Attrs;
use mxnp_core::op::Run;
use mxnp_engine::{Kind, engine};
use std::sync::Arc;

/// Where a list names something.
#[derive(Clone, Copy)]
pub(crate) struct Named {
    call: u32,
    /// Counts inputs, then outputs.
    place: u32,
}

impl Named {
    /// The place there; inputs that are scalars have none.
    #[inline]
    pub fn place(self, calls: &[Box<Call>]) -> &Place {
        let call = &calls[self.call as usize];
        let place = self.place as usize;
        match call.ins.get(place) {
            Some(In::Place(place)) => place,
            _ => &call.outs[place - call.ins.len()].at,
        }
    }

    /// The attributes of the call.
    pub fn attrs(self, calls: &[Box<Call>]) -> &Attrs {
        &calls[self.call as usize].attrs
    }
}

/// What the low bits of a word say that it is; an op's address has none there. So no two structures have the same words
/// but where only hashes of layouts, attributes and sizes of values stand in them.
mod word {
    pub const IN: u64 = 1;
    pub const BODY_SCALAR: u64 = 2;
    pub const SCALAR: u64 = 3;
    pub const OUT: u64 = 4;
    /// With [`OUT`].
    pub const FRESH: u64 = 1;
    /// Of the word after an op's: the call has attributes.
    pub const ATTRS: u64 = 1 << (super::FREE - 1);
}

/// What is known of one value of the list.
#[derive(Clone, Copy)]
struct Known {
    key: usize,
    first: Named,
    /// How many references the calls hold.
    refs: u32,
    /// Whether somebody outside the list can look at it.
    observable: bool,
}

/// The numbers of values and scalars of one list of calls, noted call by call. Made anew for each list in the same
/// memory.
#[derive(Default)]
pub(crate) struct Structure {
    /// The structure as words; with the layouts and attributes named below, all that a plan depends on.
    pub words: Vec<u64>,
    /// Places whose layouts are not common ones, of which the words have the numbers.
    pub layouts: Vec<Named>,
    /// Calls that have attributes.
    pub attrs: Vec<Named>,
    values: Vec<Known>,
    pub scalars: Vec<Scalar>,
    numbers: Numbers,
    hashed: Hashed,
}

/// How many of the words are in these two hashes: of those at even places, and of the others.
#[derive(Clone, Copy, Default)]
struct Hashed {
    words: usize,
    even: u64,
    odd: u64,
}

impl Structure {
    /// Forgets the list.
    pub fn clear(&mut self) {
        self.words.clear();
        self.layouts.clear();
        self.attrs.clear();
        self.values.clear();
        self.scalars.clear();
        self.numbers.clear();
        self.hashed = Hashed::default();
    }

    /// Notes the next call of the list, the `at`th, which segment `id` has marked its values for. Gives the program's
    /// scalars their slots.
    #[inline]
    pub fn add(&mut self, at: usize, call: &mut Call, id: SegmentId) {
        let at = at as u32;
        call.number = at;
        self.op(at, call);
        // The body of an op may look at its scalars, so they belong to the structure.
        let is_body = matches!(call.op.run, Run::Body(_));
        let outs = call.ins.len() as u32;
        for (i, input) in (0..).zip(&mut call.ins) {
            match input {
                In::Place(place) => {
                    let at = Named { call: at, place: i };
                    let number = self.number(&place.value, at, id);
                    self.place(word::IN, at, place, number);
                }
                In::Scalar(scalar) if is_body => {
                    let (kind, low, high) = scalar.value.bits();
                    let head = word::BODY_SCALAR | u64::from(kind) << 8;
                    self.words.extend([head, low as u64, (low >> 64) as u64, high]);
                }
                In::Scalar(scalar) => self.scalar(scalar),
            }
        }
        for (i, out) in (outs..).zip(&call.outs) {
            let (at, computed) = (Named { call: at, place: i }, (out.computed as u64) << 12);
            let value = &out.at.value;
            if out.fresh {
                // Nobody has seen it, and other segments will not before this list is with the engine.
                let number = self.values.len() as u32;
                self.values.push(Known { key: key(value), first: at, refs: 1, observable: false });
                value.set_number(number);
                self.place(word::OUT | word::FRESH | computed, at, &out.at, number);
            } else {
                let number = self.number(value, at, id);
                self.place(word::OUT | computed, at, &out.at, number);
            }
        }
    }

    /// Ends the list: notes the modes it runs in, and finds which values somebody else holds. The calls of the list
    /// hold the only references that do not make a value observable.
    pub fn close(&mut self, calls: &[Box<Call>]) {
        let modes = [modes::fusion(), engine().kind() == Kind::Naive, modes::numpy_dtype()];
        let modes = modes.iter().fold(0, |word, &mode| word << 1 | mode as u64);
        self.words.push(modes << 32 | calls.len() as u64);
        self.observe(calls);
    }

    /// Notes the op of a call, the dtypes it wants its inputs in, and its attributes.
    #[inline]
    fn op(&mut self, at: u32, call: &Call) {
        let words = call.known.words.as_slice();
        let has_attrs = call.attrs != Attrs::NONE;
        self.words.push(std::ptr::from_ref(call.op).addr() as u64);
        self.words.push(words[0] | if has_attrs { word::ATTRS } else { 0 });
        if words.len() > 1 {
            self.words.extend_from_slice(&words[1..]);
        }
        if has_attrs {
            self.words.push(attrs_hash(&call.attrs));
            self.attrs.push(Named { call: at, place: 0 });
        }
    }

    /// Notes a place in the value numbered `number`.
    #[inline]
    fn place(&mut self, head: u64, at: Named, place: &Place, number: u32) {
        let layout = place.layout.number();
        self.words.push(head | (place.dtype as u64) << 8 | u64::from(layout) << 16 | u64::from(number) << 32);
        if layout == 0 {
            self.words.push(place.layout.hash());
            self.layouts.push(at);
        }
    }

    /// The number of a value, given at its first use.
    #[inline]
    fn number(&mut self, value: &Arc<Value>, first: Named, id: SegmentId) -> u32 {
        let number = value.number();
        match self.values.get_mut(number as usize) {
            Some(known) if known.key == key(value) => {
                known.refs += 1;
                number
            }
            _ => self.look_up(value, first, id),
        }
    }

    /// The number of a value that does not know it: it was not in the list, or other segments number it too.
    fn look_up(&mut self, value: &Arc<Value>, first: Named, id: SegmentId) -> u32 {
        let next = self.values.len() as u32;
        let number = self.numbers.get_or_insert(key(value), next);
        if number < next {
            self.values[number as usize].refs += 1;
            return number;
        }
        self.values.push(Known { key: key(value), first, refs: 1, observable: false });
        // What threads share they only read.
        if value.readers() == id || value.writer() == id {
            value.set_number(number);
        }
        number
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
        self.words.push(word::SCALAR | u64::from(bits.0) << 8 | (slot as u64) << 32);
    }

    /// Finds which values somebody else holds: an array, the tape, another segment, an unfinished task.
    fn observe(&mut self, calls: &[Box<Call>]) {
        for known in &mut self.values {
            let value = &known.first.place(calls).value;
            let shared = value.is_shared();
            let observable = shared || Arc::strong_count(value) > known.refs as usize;
            known.observable = observable;
            let device = u64::from(value.device.id) << 1 | (value.device.kind as u64) << 40;
            let word = mix(value.bytes as u64, device) << 2 | (shared as u64) << 1 | observable as u64;
            self.words.push(word);
        }
    }

    /// How many values the calls name.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// The value numbered `number`.
    pub fn value<'c>(&self, calls: &'c [Box<Call>], number: usize) -> &'c Arc<Value> {
        &self.values[number].first.place(calls).value
    }

    /// The number of a value, none for one that the list does not name.
    pub fn number_of(&self, value: &Arc<Value>) -> Option<usize> {
        let number = value.number();
        match self.values.get(number as usize) {
            Some(known) if known.key == key(value) => Some(number as usize),
            _ => self.numbers.get(key(value)).map(|number| number as usize),
        }
    }

    /// Whether somebody outside the list can look at the value: false for one that the list does not name.
    pub fn is_observable(&self, value: &Arc<Value>) -> bool {
        self.number_of(value).is_some_and(|number| self.values[number].observable)
    }

    /// Takes the marks of segment `id` from every value that another thread can reach.
    pub fn clear_marks(&self, calls: &[Box<Call>], id: SegmentId) {
        for known in &self.values {
            let made_here = known.first.place as usize >= calls[known.first.call as usize].ins.len();
            if known.observable || !made_here {
                known.first.place(calls).value.clear_marks(id);
            }
        }
    }

    /// A hash of the words so far. What was hashed before is not hashed again.
    pub fn hash(&mut self) -> u64 {
        let Hashed { words, mut even, mut odd } = self.hashed;
        // Two at a time: each waits for the one before it alone.
        let mut pairs = self.words[words..].chunks_exact(2);
        for pair in pairs.by_ref() {
            (even, odd) = (mix(even, pair[0]), mix(odd, pair[1]));
        }
        let rest = pairs.remainder();
        self.hashed = Hashed { words: self.words.len() - rest.len(), even, odd };
        rest.iter().fold(mix(even, odd), |hash, &word| mix(hash, word))
    }
}
