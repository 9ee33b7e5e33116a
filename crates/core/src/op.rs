//! What an op is: one block of facts and functions, from argument checks to gradient.
//! Knows how ops are described, not which ones exist (see `ops`).

use crate::attrs::{Attrs, ReadAttrs};
use crate::error::{Error, Result};
use crate::kernel::reduce::Fold;
use crate::kernel::tail::Tail;
use crate::layout::Layout;
use crate::par::Parallel;
use crate::promote::Mode;
use crate::rules::{Rules, Sym, Vjp};
use crate::shape::{Shape, checked_numel};
use crate::view::{View, ViewMut};
use crate::{DType, Scalar};
use smallvec::SmallVec;

/// What is known of an operand or a result before anything runs.
#[derive(Debug, PartialEq)]
pub struct Meta {
    pub shape: Shape,
    pub dtype: DType,
    /// The value, where the operand is a Python scalar: weak in promotion.
    pub scalar: Option<Scalar>,
}

impl Clone for Meta {
    fn clone(&self) -> Meta {
        Meta { shape: Shape::from_slice(&self.shape), ..*self }
    }
}

impl Meta {
    pub fn new(shape: impl Into<Shape>, dtype: DType) -> Meta {
        Meta { shape: shape.into(), dtype, scalar: None }
    }
}

/// What `infer` is given.
pub struct InferArgs<'a> {
    pub op: &'static str,
    pub attrs: &'a Attrs,
    pub ins: &'a [Meta],
    pub mode: Mode,
}

/// What `infer` finds: the dtypes the inputs are converted to before the op runs, and the results.
#[derive(Clone, Debug, PartialEq)]
pub struct Inferred {
    pub ins: SmallVec<[DType; 4]>,
    /// Visible outputs first, then hidden ones.
    pub outs: SmallVec<[Meta; 2]>,
}

/// Checks every argument and finds the results' shapes and dtypes.
pub type InferFn = fn(&InferArgs) -> Result<Inferred>;

/// The kernel of an elementwise op on one contiguous tile: reads `n` elements from each of `ins`, writes `n`
/// to `out`. `out` may be the same address as an input whose elements have the same size, and otherwise
/// overlaps none.
///
/// # Safety
/// The pointers are valid and aligned for `n` elements of the dtypes the step was chosen for.
pub type StepFn = unsafe fn(n: usize, ins: &[*const u8], out: *mut u8);

/// Chooses the step for input dtypes and the output dtype that `infer` gave, for this machine's ISA.
/// None where the op has no such loop (`infer` must have refused it).
pub type StepOf = fn(ins: &[DType], out: DType) -> Option<StepFn>;

/// What a kernel is given. Inputs have the dtypes of `Inferred::ins` and any layout.
pub struct KernelArgs<'a> {
    pub op: &'static str,
    pub attrs: &'a Attrs,
    pub ins: &'a [View<'a>],
    /// Visible outputs, hidden outputs (None: nobody reads it), then the inputs named by `Op::writes`.
    /// Fresh outputs are C-contiguous and uninitialised.
    pub outs: &'a [Option<ViewMut<'a>>],
    pub par: &'a dyn Parallel,
    /// The key of this draw, for random ops.
    pub draw: Draw,
    /// A pass to run over each finished part of the result; only for ops that have the fact [`Op::tail`].
    pub tail: Option<&'a Tail<'a>>,
}

impl<'a> KernelArgs<'a> {
    /// Visible output `i`.
    pub fn out(&self, i: usize) -> ViewMut<'a> {
        self.outs[i].expect("a visible output always has memory")
    }
}

/// The key of one random draw: element i is a function of (seed, counter, i).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Draw {
    pub seed: u64,
    pub counter: u64,
}

/// How an op runs on the CPU.
#[derive(Clone, Copy)]
pub enum Run {
    /// One step per dtype; broadcasts, strides and casts are done around it.
    Elementwise(StepOf),
    /// A reduction of the axes that `axes` gives (sorted); the fold is chosen by input and output dtype.
    Reduce { fold: fn(DType, DType) -> Option<Fold>, axes: fn(&Attrs, ndim: usize) -> SmallVec<[usize; 6]> },
    /// Only another layout of the first input, or None where that takes a contiguous copy first.
    View(fn(&Attrs, &Layout) -> Option<Layout>),
    /// A function over views.
    Kernel(fn(&KernelArgs) -> Result<()>),
    /// Written with other ops; expanded by the optimiser only.
    Body(BodyFn),
}

/// The body of an op written with other ops. Inputs have the dtypes of `Inferred::ins`.
pub type BodyFn = for<'r> fn(&Attrs, &'r dyn Rules, &[Sym<'r>]) -> SmallVec<[Sym<'r>; 2]>;

/// The gradient of an op.
#[derive(Clone, Copy)]
pub enum Grad {
    /// The rule, written with ops: one optional gradient per input. For elementwise ops, casts and
    /// broadcasts are undone by the caller.
    Vjp(VjpFn),
    /// The results are locally constant in the inputs, or integers: no gradient flows (and that is right).
    Zero,
    /// As `Zero` of real numbers; of complex ones no rule exists, for the reason given.
    RealZero(&'static str),
    /// No rule exists, for the reason given: recording is allowed, `backward` through it raises.
    None(&'static str),
}

pub type VjpFn = for<'r> fn(&Vjp<'r>) -> SmallVec<[Option<Sym<'r>>; 3]>;

/// Which values the gradient rule reads, as bit masks (shapes and dtypes are always there).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Saves {
    pub inputs: u32,
    /// Visible and hidden outputs, numbered as in `Inferred::outs`.
    pub outputs: u32,
}

/// `x * scale + shift`, where both are float64 vectors along one axis of x.
pub struct Affine<'r> {
    pub axis: usize,
    pub scale: Sym<'r>,
    pub shift: Sym<'r>,
}

/// From the attributes, the first input's shape and dtype, and the other inputs.
pub type AffineFn = for<'r> fn(&Attrs, &Meta, &[Sym<'r>]) -> Option<Affine<'r>>;

/// The attributes and the inputs but the first of the call whose result is scaled and shifted; takes what [`AffineFn`]
/// takes. None where it cannot be, or not in the precision of the operands.
pub type AbsorbFn =
    for<'r> fn(&Attrs, &Meta, &[Sym<'r>], &Affine<'r>) -> Option<(Attrs, SmallVec<[Sym<'r>; 2]>)>;

/// Chooses another op for some operands.
pub type Instead = fn(&[Meta]) -> Option<&'static Op>;

/// Counts multiplications with an addition: (shapes of the operands, shape of the first result).
pub type Products = fn(&[&[usize]], &[usize]) -> u64;

/// Which of its inputs an op updates in place.
#[derive(Clone, Copy)]
pub enum Writes {
    These(&'static [usize]),
    /// Of an op that takes any number of arrays: by how many inputs it has.
    Of(fn(inputs: usize) -> SmallVec<[usize; 4]>),
}

impl Writes {
    /// The positions among so many inputs.
    pub fn among(self, inputs: usize) -> SmallVec<[usize; 4]> {
        match self {
            Writes::These(these) => these.iter().copied().collect(),
            Writes::Of(of) => of(inputs),
        }
    }
}

/// How many inputs an op takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    Exactly(usize),
    Between(usize, usize),
    AtLeast(usize),
}

/// One op: its name, checks, kernel, gradient and facts.
pub struct Op {
    pub name: &'static str,
    pub arity: Arity,
    pub attrs: ReadAttrs,
    pub infer: InferFn,
    pub run: Run,
    pub grad: Grad,
    pub saves: Saves,
    /// Which saved inputs the rule reads only for the other inputs' gradients (both factors of a product): one
    /// that no other input's gradient asks for is not kept, and may be written.
    pub cross: u32,
    /// How many of the outputs are hidden (batch statistics, pool indices): the last ones.
    pub hidden: usize,
    /// Which inputs the op updates in place (running statistics); see [`Op::updates`].
    pub writes: Writes,
    /// For which attributes it does so; None: always.
    pub writes_when: Option<fn(&Attrs) -> bool>,
    /// How its result is its first input times a scale plus a shift, both along an axis, where it is such a thing.
    pub affine: Option<AffineFn>,
    /// How scale and shift of its result become part of its other operands (a convolution's weight and bias).
    pub absorb: Option<AbsorbFn>,
    /// Whether it draws random numbers.
    pub random: bool,
    /// Which op takes its place for such operands, if any: what the elementwise loop cannot refuse.
    pub instead: Option<Instead>,
    /// Heavy enough to flush what came before it and to open a segment of its own.
    pub heavy: bool,
    /// How many products it sums, for operands of these shapes and a first result of that one.
    pub products: Option<Products>,
    /// Whether the kernel runs a pass over its result as it comes ([`KernelArgs::tail`]); it has one output.
    pub tail: bool,
}

impl Op {
    /// The defaults from which every op is made: `Op { grad: ..., ..Op::new("add", 2, infer, run) }`.
    pub const fn new(name: &'static str, arity: usize, infer: InferFn, run: Run) -> Op {
        Op {
            name,
            arity: Arity::Exactly(arity),
            attrs: crate::attrs::no_attrs,
            infer,
            run,
            grad: Grad::None("no gradient rule is written yet"),
            saves: Saves { inputs: 0, outputs: 0 },
            cross: 0,
            hidden: 0,
            writes: Writes::These(&[]),
            writes_when: None,
            affine: None,
            absorb: None,
            random: false,
            instead: None,
            heavy: false,
            products: None,
            tail: false,
        }
    }

    /// Which inputs a call with these attributes and so many inputs updates in place.
    pub fn updates(&self, attrs: &Attrs, inputs: usize) -> SmallVec<[usize; 4]> {
        let writes = self.writes_when.is_none_or(|writes| writes(attrs));
        if writes { self.writes.among(inputs) } else { SmallVec::new() }
    }

    /// Whether a fused pass may contain it.
    pub fn is_fusable(&self) -> bool {
        matches!(self.run, Run::Elementwise(_))
    }

    /// Checks the number of inputs and infers; every argument error comes from here.
    pub fn infer(&'static self, attrs: &Attrs, ins: &[Meta], mode: Mode) -> Result<Inferred> {
        let (low, high) = match self.arity {
            Arity::Exactly(n) => (n, n),
            Arity::Between(low, high) => (low, high),
            Arity::AtLeast(low) => (low, usize::MAX),
        };
        if ins.len() < low || ins.len() > high {
            let want = if low == high { format!("{low}") } else { format!("at least {low}") };
            return Err(Error::type_(self.name, format!("takes {want} arrays, got {}", ins.len())));
        }
        let found = (self.infer)(&InferArgs { op: self.name, attrs, ins, mode })?;
        // Sizes below are computed without checks.
        for out in &found.outs {
            checked_numel(self.name, &out.shape, out.dtype.size())?;
        }
        Ok(found)
    }
}

impl std::fmt::Debug for Op {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Op({})", self.name)
    }
}

impl PartialEq for Op {
    fn eq(&self, other: &Op) -> bool {
        std::ptr::eq(self, other)
    }
}
