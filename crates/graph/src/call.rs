//! One use of an op in a segment: its operands, its results, and what `infer` found.

use crate::inferred::Inference;
use crate::place::Place;
use crate::value::Value;
use mxnp_core::attrs::Attrs;
use mxnp_core::op::{Draw, Meta};
use mxnp_core::{DType, Op, Scalar};
use smallvec::SmallVec;
use std::sync::Arc;

/// An operand.
#[derive(Clone)]
pub(crate) enum In<V = Arc<Value>> {
    Place(Place<V>),
    Scalar(Number),
}

/// A scalar operand. One that the program gave has a slot in a plan, which serves calls with other scalars too; a
/// constant of an op's body has none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Number {
    pub value: Scalar,
    pub slot: Option<u32>,
}

impl From<Scalar> for Number {
    fn from(value: Scalar) -> Number {
        Number { value, slot: None }
    }
}

impl In {
    pub fn meta(&self) -> Meta {
        match self {
            In::Place(place) => place.meta(),
            In::Scalar(number) => scalar_meta(number.value),
        }
    }
}

impl<V> In<V> {
    pub fn place(&self) -> Option<&Place<V>> {
        match self {
            In::Place(place) => Some(place),
            In::Scalar(_) => None,
        }
    }
}

/// What is known of a scalar operand; its dtype only names the kind, since it is weak.
pub(crate) fn scalar_meta(scalar: Scalar) -> Meta {
    let dtype = match scalar {
        Scalar::Bool(_) => DType::Bool,
        Scalar::Int(_) => DType::I64,
        Scalar::Float(_) => DType::F64,
        Scalar::Complex(..) => DType::C128,
    };
    Meta { shape: Default::default(), dtype, scalar: Some(scalar) }
}

/// A result.
#[derive(Clone)]
pub(crate) struct Out<V = Arc<Value>> {
    pub at: Place<V>,
    /// The dtype the op computes; converted to the place's on the way.
    pub computed: DType,
    /// The value is this call's own: C-contiguous, uninitialised until it runs.
    pub fresh: bool,
}

/// What an append must know of all that a call touches.
#[derive(Clone, Copy)]
pub(crate) struct Uses {
    /// How many elements it touches at most: a rough measure of its work.
    pub elements: usize,
    /// Whether foreign code sees some of the memory.
    pub shared: bool,
    /// Whether it writes into nothing that was there before.
    pub fresh: bool,
}

impl Call {
    /// Found in one go: this is asked for every call, and chained iterators take three times as long.
    #[inline]
    pub fn uses(&self) -> Uses {
        let mut uses = Uses { elements: 0, shared: false, fresh: true };
        for input in &self.ins {
            if let In::Place(place) = input {
                uses.elements = uses.elements.max(place.layout.size());
                uses.shared |= place.value.is_shared();
            }
        }
        for out in &self.outs {
            uses.elements = uses.elements.max(out.at.layout.size());
            uses.shared |= !out.fresh && out.at.value.is_shared();
            uses.fresh &= out.fresh;
        }
        uses
    }
}

/// A list of calls that the optimiser works on. A call is large and every step rewrites the list, so it holds boxes.
pub(crate) type Calls = Vec<Box<Call>>;

/// One call. In a plan its values are numbers.
#[derive(Clone)]
pub(crate) struct Call<V = Arc<Value>> {
    pub op: &'static Op,
    pub attrs: Attrs,
    pub ins: SmallVec<[In<V>; 2]>,
    pub known: Arc<Inference>,
    /// Visible outputs, hidden outputs, then the inputs the op updates.
    pub outs: SmallVec<[Out<V>; 1]>,
    pub draw: Draw,
    /// Its number in the list that is being planned.
    pub number: u32,
}

impl<V> Call<V> {
    /// The dtypes the op wants its inputs in.
    pub fn types(&self) -> &[DType] {
        &self.known.types
    }

    /// The places it reads, then those it writes.
    pub fn places(&self) -> impl Iterator<Item = &Place<V>> {
        self.ins.iter().filter_map(In::place).chain(self.outs.iter().map(|out| &out.at))
    }

    /// Every value it touches, with whether it writes it.
    pub fn touched(&self) -> impl Iterator<Item = (&V, bool)> {
        let reads = self.ins.iter().filter_map(In::place).map(|p| (&p.value, false));
        reads.chain(self.outs.iter().map(|o| (&o.at.value, true)))
    }

    /// Whether it only copies its input into its output, perhaps converting.
    pub fn is_copy(&self) -> bool {
        std::ptr::eq(self.op, &mxnp_core::ops::cast::ASTYPE)
    }

    /// The same call on what `value` and `number` give for its values and scalars.
    pub fn map<W>(&self, mut value: impl FnMut(&V) -> W, number: impl Fn(Number) -> Number) -> Call<W> {
        let input = |input: &In<V>, value: &mut dyn FnMut(&V) -> W| match input {
            In::Place(place) => In::Place(place.map(value)),
            In::Scalar(scalar) => In::Scalar(number(*scalar)),
        };
        Call {
            op: self.op,
            attrs: self.attrs.clone(),
            ins: self.ins.iter().map(|i| input(i, &mut value)).collect(),
            known: self.known.clone(),
            outs: self
                .outs
                .iter()
                .map(|out| Out { at: out.at.map(&mut value), computed: out.computed, fresh: out.fresh })
                .collect(),
            draw: self.draw,
            number: self.number,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls are moved into the segment and places are cloned on every append.
    #[test]
    fn calls_and_places_stay_small() {
        let sizes = [size_of::<Place>(), size_of::<In>(), size_of::<Call>(), size_of::<Value>()];
        assert!(sizes.iter().zip([24, 48, 208, 144]).all(|(size, most)| *size <= most), "{sizes:?}");
    }
}
