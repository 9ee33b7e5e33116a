//! What `infer` found for a call, remembered per thread: programs repeat their calls, and a lookup is much
//! cheaper than the checks. A hit needs the same op and equal attributes, layouts, dtypes and scalars.

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
}

impl Inference {
    pub fn new(types: SmallVec<[DType; 4]>, outs: SmallVec<[Form; 1]>) -> Arc<Inference> {
        Arc::new(Inference { types, outs })
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
    fn is(&self, op: &'static Op, attrs: &Attrs, mode: Mode, ins: &[Input]) -> bool {
        std::ptr::eq(self.op, op)
            && self.mode == mode
            && self.ins.len() == ins.len()
            && self.ins.iter().zip(ins).all(|(seen, input)| seen.is(input))
            && self.attrs == *attrs
    }
}

/// How many calls a thread remembers.
const REMEMBERED: usize = 512;
/// Calls with more operands (concatenations) are not remembered: comparing them costs what checking them does.
const MAX_INS: usize = 8;

thread_local! {
    static KNOWN: RefCell<Vec<Option<Entry>>> = const { RefCell::new(Vec::new()) };
}

/// What `infer` finds for the call. Every argument error comes from here.
pub(crate) fn infer(op: &'static Op, attrs: &Attrs, ins: &[Input]) -> mxnp_core::Result<Arc<Inference>> {
    let mode = modes::mode();
    if ins.len() > MAX_INS {
        return find(op, attrs, ins, mode);
    }
    let at = hash(op, attrs, ins) as usize % REMEMBERED;
    let known = KNOWN.try_with(|table| {
        let table = table.borrow();
        let entry = table.get(at)?.as_ref()?;
        entry.is(op, attrs, mode, ins).then(|| entry.found.clone())
    });
    if let Ok(Some(found)) = known {
        return Ok(found);
    }
    let found = find(op, attrs, ins, mode)?;
    let entry = Entry { op, attrs: attrs.clone(), mode, ins: ins.iter().map(Seen::of).collect(), found };
    let found = entry.found.clone();
    // While a thread is torn down nothing is remembered.
    let _ = KNOWN.try_with(|table| {
        let mut table = table.borrow_mut();
        table.resize_with(REMEMBERED, || None);
        table[at] = Some(entry);
    });
    Ok(found)
}

fn find(op: &'static Op, attrs: &Attrs, ins: &[Input], mode: Mode) -> mxnp_core::Result<Arc<Inference>> {
    let metas: SmallVec<[Meta; 4]> = ins.iter().map(crate::invoke::meta_of).collect();
    Ok(Inference::of(op.infer(attrs, &metas, mode)?))
}

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
