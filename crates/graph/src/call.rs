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
pub(crate) enum In {
    Place(Place),
    Scalar(Scalar),
}

impl In {
    pub fn meta(&self) -> Meta {
        match self {
            In::Place(place) => place.meta(),
            In::Scalar(scalar) => scalar_meta(*scalar),
        }
    }

    pub fn place(&self) -> Option<&Place> {
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
pub(crate) struct Out {
    pub at: Place,
    /// The dtype the op computes; converted to the place's on the way.
    pub computed: DType,
    /// The value is this call's own: C-contiguous, uninitialised until it runs.
    pub fresh: bool,
}

/// A list of calls. A call is large and the list is rewritten by every step of the optimiser, so it holds boxes.
pub(crate) type Calls = Vec<Box<Call>>;

/// One call.
#[derive(Clone)]
pub(crate) struct Call {
    pub op: &'static Op,
    pub attrs: Attrs,
    pub ins: SmallVec<[In; 2]>,
    pub known: Arc<Inference>,
    /// Visible outputs, hidden outputs, then the inputs the op updates.
    pub outs: SmallVec<[Out; 1]>,
    pub draw: Draw,
}

impl Call {
    /// The dtypes the op wants its inputs in.
    pub fn types(&self) -> &[DType] {
        &self.known.types
    }

    /// Every value it touches, with whether it writes it.
    pub fn touched(&self) -> impl Iterator<Item = (&Arc<Value>, bool)> {
        let reads = self.ins.iter().filter_map(In::place).map(|p| (&p.value, false));
        reads.chain(self.outs.iter().map(|o| (&o.at.value, true)))
    }

    /// How many elements it touches at most: a rough measure of its work.
    pub fn elements(&self) -> usize {
        let ins = self.ins.iter().filter_map(In::place).map(|p| p.layout.size());
        ins.chain(self.outs.iter().map(|o| o.at.layout.size())).max().unwrap_or(1)
    }

    /// Whether it only copies its input into its output, perhaps converting.
    pub fn is_copy(&self) -> bool {
        std::ptr::eq(self.op, &mxnp_core::ops::cast::ASTYPE)
    }
}
