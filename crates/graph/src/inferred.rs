//! What `infer` found for a call, remembered per thread: programs repeat their calls, and a lookup is much
//! cheaper than the checks. A hit needs the same op and equal attributes, layouts, dtypes and scalars.
//! What else an append or a flush would find again for each such call is found once, with it.

use crate::array::Input;
use crate::call::scalar_meta;
use crate::hash::{Mixer, mix};
use crate::modes;
use crate::place::{LayoutRef, Place};
use mxnp_core::attrs::Attrs;
use mxnp_core::op::{Inferred, Meta, Op};
use mxnp_core::promote::Mode;
use mxnp_core::shape::Shape;
use mxnp_core::{DType, Scalar};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Shape and dtype of an operand or result.
#[derive(Clone)]
pub(crate) struct Form {
    pub layout: LayoutRef,
    pub dtype: DType,
}

impl Form {
    /// A result's: C-contiguous.
    pub fn of(meta: &Meta) -> Form {
        Form { layout: LayoutRef::contiguous(&meta.shape), dtype: meta.dtype }
    }

    pub fn of_place(at: &Place) -> Form {
        Form { layout: at.layout.clone(), dtype: at.dtype }
    }

    pub fn of_input(input: &Input) -> Form {
        match input {
            Input::Array(array) => Form::of_place(&array.at),
            Input::Scalar(scalar) => Form::of(&scalar_meta(*scalar)),
        }
    }

    pub fn shape(&self) -> &[usize] {
        &self.layout.shape
    }

    pub fn meta(&self) -> Meta {
        Meta::new(Shape::from_slice(&self.layout.shape), self.dtype)
    }

    /// The size of a buffer for it.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.layout.size() * self.dtype.size()
    }
}

/// What `infer` found.
pub(crate) struct Inference {
    /// The dtypes the op wants its inputs in.
    pub types: SmallVec<[DType; 4]>,
    /// Visible outputs, then hidden ones.
    pub outs: SmallVec<[Form; 1]>,
    /// The types as words, no two lists of types as the same; the low [`FREE`] bits of the first are zero.
    pub words: SmallVec<[u64; 1]>,
    /// The bytes of the largest output.
    pub largest: usize,
}

/// Free bits in the first of an inference's words.
pub(crate) const FREE: u32 = 8;
/// Its bits that count the words after it; those above hold as many types as fit.
const COUNT: u32 = 16;
/// Bits of a type.
const BITS: u32 = 4;

impl Inference {
    pub fn new(types: SmallVec<[DType; 4]>, outs: SmallVec<[Form; 1]>) -> Arc<Inference> {
        let few = ((u64::BITS - FREE - COUNT) / BITS) as usize;
        let pack = |types: &[DType]| types.iter().fold(0, |word, &dtype| word << BITS | (1 + dtype as u64));
        let (first, rest) = types.split_at(types.len().min(few));
        let mut words: SmallVec<[u64; 1]> = SmallVec::from_elem(pack(first) << (FREE + COUNT), 1);
        words.extend(rest.chunks((u64::BITS / BITS) as usize).map(pack));
        words[0] |= (words.len() as u64 - 1) << FREE;
        let largest = outs.iter().map(Form::bytes).max().unwrap_or(0);
        Arc::new(Inference { types, outs, words, largest })
    }

    pub fn of(found: Inferred) -> Arc<Inference> {
        let outs = found.outs.iter().map(Form::of).collect();
        Inference::new(found.ins, outs)
    }
}

/// An operand as far as `infer` sees it.
enum Seen {
    Place(LayoutRef, DType),
    Scalar(Scalar),
}

impl Seen {
    fn of(input: &Input) -> Seen {
        match input {
            Input::Array(array) => Seen::Place(array.at.layout.clone(), array.at.dtype),
            Input::Scalar(scalar) => Seen::Scalar(*scalar),
        }
    }

    #[inline]
    fn is(&self, input: &Input) -> bool {
        match (self, input) {
            (Seen::Place(layout, dtype), Input::Array(a)) => *dtype == a.at.dtype && *layout == a.at.layout,
            (Seen::Scalar(a), Input::Scalar(b)) => a.bits() == b.bits(),
            _ => false,
        }
    }
}

struct Entry {
    op: &'static Op,
    attrs: Attrs,
    mode: Mode,
    ins: SmallVec<[Seen; 3]>,
    found: Arc<Inference>,
}

impl Entry {
    #[inline]
    fn is(&self, op: &'static Op, attrs: &Attrs, ins: &[Input]) -> bool {
        std::ptr::eq(self.op, op)
            && self.ins.len() == ins.len()
            && (0..ins.len()).all(|i| self.ins[i].is(&ins[i]))
            && self.mode == modes::mode()
            && self.attrs == *attrs
    }
}

/// How many calls a thread remembers.
const REMEMBERED: usize = 512;
/// Calls with more operands (concatenations) are not remembered: comparing them costs what checking them does.
const MAX_INS: usize = 8;

/// What a thread's last calls were found to be.
#[derive(Default)]
pub(crate) struct Inferences(RefCell<Vec<Option<Entry>>>);

impl Inferences {
    /// What `infer` finds for the call. Every argument error comes from here.
    #[inline]
    pub fn infer(&self, op: &'static Op, attrs: &Attrs, ins: &[Input]) -> mxnp_core::Result<Arc<Inference>> {
        if ins.len() > MAX_INS {
            return find(op, attrs, ins);
        }
        let at = hash(op, attrs, ins) as usize % REMEMBERED;
        if let Some(Some(entry)) = self.0.borrow().get(at)
            && entry.is(op, attrs, ins)
        {
            return Ok(entry.found.clone());
        }
        self.learn(at, op, attrs, ins)
    }

    #[inline(never)]
    fn learn(
        &self,
        at: usize,
        op: &'static Op,
        attrs: &Attrs,
        ins: &[Input],
    ) -> mxnp_core::Result<Arc<Inference>> {
        let found = find(op, attrs, ins)?;
        let (mode, seen) = (modes::mode(), ins.iter().map(Seen::of).collect());
        let entry = Entry { op, attrs: attrs.clone(), mode, ins: seen, found: found.clone() };
        let mut table = self.0.borrow_mut();
        table.resize_with(REMEMBERED, || None);
        let old = table[at].replace(entry);
        drop((table, old));
        Ok(found)
    }
}

fn find(op: &'static Op, attrs: &Attrs, ins: &[Input]) -> mxnp_core::Result<Arc<Inference>> {
    let metas: SmallVec<[Meta; 4]> = ins.iter().map(crate::invoke::meta_of).collect();
    Ok(Inference::of(op.infer(attrs, &metas, modes::mode())?))
}

#[inline]
fn hash(op: &'static Op, attrs: &Attrs, ins: &[Input]) -> u64 {
    let mut hash = std::ptr::from_ref(op).addr() as u64;
    for input in ins {
        hash = match input {
            Input::Array(array) => mix(hash, array.at.layout.hash() ^ (array.at.dtype as u64) << 56),
            Input::Scalar(scalar) => {
                let (kind, low, high) = scalar.bits();
                mix(hash, low as u64 ^ (low >> 64) as u64 ^ high ^ u64::from(kind) << 61)
            }
        };
    }
    if *attrs != Attrs::NONE {
        hash = mix(hash, attrs_hash(attrs));
    }
    hash ^ hash >> 29
}

/// The same for equal attributes.
pub(crate) fn attrs_hash(attrs: &Attrs) -> u64 {
    let mut mixer = Mixer::default();
    attrs.hash(&mut mixer);
    mixer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_lists_of_types_have_the_same_words() {
        let lists = [DType::Bool, DType::F32, DType::C128].map(|dtype| {
            (0..70).map(move |n| {
                let same: SmallVec<[DType; 4]> = SmallVec::from_elem(dtype, n);
                let last = same.iter().copied().take(n.saturating_sub(1)).chain([DType::I8]).collect();
                [same, last]
            })
        });
        let mut seen = std::collections::HashMap::new();
        for types in lists.into_iter().flatten().flatten() {
            let words = Inference::new(types.clone(), SmallVec::new()).words.clone();
            assert_eq!(words[0] & ((1 << FREE) - 1), 0);
            assert_eq!((words[0] >> FREE) as u16 as usize, words.len() - 1);
            let other = seen.entry(words).or_insert_with(|| types.clone());
            assert_eq!(*other, types);
        }
    }
}
