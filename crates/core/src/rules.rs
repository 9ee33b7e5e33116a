//! How gradients and bodies are written: with ops, as formulas over [`Sym`]. The graph crate implements
//! [`Rules`]: it turns each call into an op call of the segment (or of a graph).

use crate::attrs::Attrs;
use crate::op::{Affine, Meta, Op};
use crate::ops::{arith, cast, reduce, shape as shape_ops};
use crate::shape::Shape;
use crate::{DType, Scalar};
use smallvec::{SmallVec, smallvec};

/// Where the calls of a formula go. Errors are kept inside and end the formula when it returns.
pub trait Rules {
    /// Appends a call and gives the handles of its visible outputs.
    fn call(&self, op: &'static Op, attrs: Attrs, ins: &[Operand]) -> SmallVec<[u32; 2]>;
    fn meta(&self, handle: u32) -> Meta;
}

/// An operand of a call in a formula.
#[derive(Clone, Copy, Debug)]
pub enum Operand {
    Sym(u32),
    Scalar(Scalar),
}

/// A value in a formula: an operand or result of ops, with the usual operators.
#[derive(Clone, Copy)]
pub struct Sym<'r> {
    rules: &'r dyn Rules,
    handle: u32,
}

/// What may stand beside a [`Sym`] in a formula.
pub trait IntoOperand {
    fn operand(self) -> Operand;
}
impl IntoOperand for Sym<'_> {
    fn operand(self) -> Operand {
        Operand::Sym(self.handle)
    }
}
impl IntoOperand for f64 {
    fn operand(self) -> Operand {
        Operand::Scalar(Scalar::Float(self))
    }
}
impl IntoOperand for i64 {
    fn operand(self) -> Operand {
        Operand::Scalar(Scalar::Int(self as i128))
    }
}

/// Calls an op with one visible output.
pub fn call<'r>(rules: &'r dyn Rules, op: &'static Op, attrs: Attrs, ins: &[Operand]) -> Sym<'r> {
    Sym { rules, handle: rules.call(op, attrs, ins)[0] }
}

impl<'r> Sym<'r> {
    pub fn new(rules: &'r dyn Rules, handle: u32) -> Sym<'r> {
        Sym { rules, handle }
    }

    pub fn handle(self) -> u32 {
        self.handle
    }

    pub fn rules(self) -> &'r dyn Rules {
        self.rules
    }

    pub fn meta(self) -> Meta {
        self.rules.meta(self.handle)
    }

    pub fn shape(self) -> Shape {
        self.meta().shape
    }

    pub fn dtype(self) -> DType {
        self.meta().dtype
    }

    /// `op(self)`.
    pub fn unary(self, op: &'static Op) -> Sym<'r> {
        call(self.rules, op, Attrs::NONE, &[self.operand()])
    }

    /// `op(self, other)`.
    pub fn binary(self, op: &'static Op, other: impl IntoOperand) -> Sym<'r> {
        call(self.rules, op, Attrs::NONE, &[self.operand(), other.operand()])
    }

    /// `op(self)` with attributes.
    pub fn with(self, op: &'static Op, attrs: Attrs) -> Sym<'r> {
        call(self.rules, op, attrs, &[self.operand()])
    }

    /// `op(self, others...)` with attributes.
    pub fn apply(self, op: &'static Op, attrs: Attrs, others: &[Operand]) -> Sym<'r> {
        let mut ins: SmallVec<[Operand; 4]> = smallvec![self.operand()];
        ins.extend_from_slice(others);
        call(self.rules, op, attrs, &ins)
    }

    /// The value in another dtype.
    pub fn cast(self, dtype: DType) -> Sym<'r> {
        if self.dtype() == dtype { self } else { self.with(&cast::ASTYPE, cast::astype(dtype)) }
    }

    /// The sum over `axes`.
    pub fn sum(self, axes: &[usize], keepdims: bool) -> Sym<'r> {
        if axes.is_empty() { self } else { self.with(&reduce::SUM, reduce::sum_attrs(axes, keepdims)) }
    }

    pub fn reshape(self, shape: &[usize]) -> Sym<'r> {
        if self.shape().as_slice() == shape {
            self
        } else {
            self.with(&shape_ops::RESHAPE, shape_ops::reshape(shape))
        }
    }

    pub fn broadcast_to(self, shape: &[usize]) -> Sym<'r> {
        if self.shape().as_slice() == shape {
            return self;
        }
        self.with(&shape_ops::BROADCAST_TO, shape_ops::broadcast_to(shape))
    }

    pub fn transpose(self, axes: &[usize]) -> Sym<'r> {
        self.with(&shape_ops::TRANSPOSE, shape_ops::transpose(axes))
    }

    /// Undoes a broadcast: sums over the axes that were added or stretched.
    pub fn sum_to(self, shape: &[usize]) -> Sym<'r> {
        let from = self.shape();
        if from.as_slice() == shape {
            return self;
        }
        // Fewer axes than asked for: a call before this one failed, and the formula is about to end.
        let Some(lead) = from.len().checked_sub(shape.len()) else { return self };
        let axes: SmallVec<[usize; 6]> =
            (0..from.len()).filter(|&i| i < lead || (shape[i - lead] == 1 && from[i] != 1)).collect();
        self.sum(&axes, true).reshape(shape)
    }
}

macro_rules! operator {
    ($($trait:ident $method:ident $op:path),*) => { $(
        impl<'r, T: IntoOperand> std::ops::$trait<T> for Sym<'r> {
            type Output = Sym<'r>;
            fn $method(self, other: T) -> Sym<'r> {
                self.binary(&$op, other)
            }
        }
        impl<'r> std::ops::$trait<Sym<'r>> for f64 {
            type Output = Sym<'r>;
            fn $method(self, other: Sym<'r>) -> Sym<'r> {
                call(other.rules, &$op, Attrs::NONE, &[self.operand(), other.operand()])
            }
        }
    )* };
}
operator!(Add add arith::ADD, Sub sub arith::SUBTRACT, Mul mul arith::MULTIPLY, Div div arith::TRUE_DIVIDE);

impl<'r> std::ops::Neg for Sym<'r> {
    type Output = Sym<'r>;
    fn neg(self) -> Sym<'r> {
        self.unary(&arith::NEGATIVE)
    }
}

/// Weight and bias (or none) of a layer whose results along the weight's first axis are scaled and shifted, computed in
/// float64. None for the half types, whose rounding would show.
pub fn rescaled<'r>(rest: &[Sym<'r>], by: &Affine<'r>) -> Option<SmallVec<[Sym<'r>; 2]>> {
    let (weight, bias) = (*rest.first()?, rest.get(1));
    let dtype = weight.dtype();
    if !matches!(dtype, DType::F32 | DType::F64) || bias.is_some_and(|bias| bias.dtype() != dtype) {
        return None;
    }
    let mut along: Shape = SmallVec::from_elem(1, weight.shape().len());
    along[0] = weight.shape()[0];
    let scaled = weight.cast(DType::F64) * by.scale.reshape(&along);
    let shift = match bias {
        Some(bias) => bias.cast(DType::F64) * by.scale + by.shift,
        None => by.shift,
    };
    Some(smallvec![scaled.cast(dtype), shift.cast(dtype)])
}

/// What a gradient rule is given: the call's attributes, the values it saved, and the heads' gradients.
pub struct Vjp<'r> {
    pub rules: &'r dyn Rules,
    pub attrs: &'r Attrs,
    /// Inputs: shape and dtype of each (after the conversion that `infer` asked for), and its value where saved.
    pub ins: SmallVec<[(Meta, Option<Sym<'r>>); 3]>,
    /// Outputs, hidden ones last, likewise.
    pub outs: SmallVec<[(Meta, Option<Sym<'r>>); 2]>,
    /// The gradient of each visible output, None where it is zero.
    pub heads: SmallVec<[Option<Sym<'r>>; 2]>,
    pub needs: u32,
}

impl<'r> Vjp<'r> {
    /// Whether input `i` wants a gradient.
    pub fn needs(&self, i: usize) -> bool {
        self.needs >> i & 1 == 1
    }

    /// The value of input `i`, which `saves.inputs` names.
    pub fn x(&self, i: usize) -> Sym<'r> {
        self.ins[i].1.expect("the rule reads an input that `saves` does not name")
    }

    /// The value of output `i`, which `saves.outputs` names.
    pub fn y(&self, i: usize) -> Sym<'r> {
        self.outs[i].1.expect("the rule reads an output that `saves` does not name")
    }

    /// The gradient of the only (or first) output; rules run only where some head has one.
    pub fn g(&self) -> Sym<'r> {
        self.head(0)
    }

    /// The gradient of output `i`, zeros where it has none.
    pub fn head(&self, i: usize) -> Sym<'r> {
        match self.heads[i] {
            Some(g) => g,
            None => {
                let meta = &self.outs[i].0;
                let attrs = crate::ops::create::full(&meta.shape, meta.dtype);
                call(self.rules, &crate::ops::create::FULL, attrs, &[0.0f64.operand()])
            }
        }
    }

    pub fn shape(&self, i: usize) -> &Shape {
        &self.ins[i].0.shape
    }
}

/// The gradients of the inputs, each formula evaluated only where its input needs one:
/// `grads!(v; v.g() * v.x(1), v.g() * v.x(0))`.
#[macro_export]
macro_rules! grads {
    ($v:ident; $($formula:expr),+ $(,)?) => {{
        let mut i = 0usize;
        let mut out: smallvec::SmallVec<[Option<$crate::rules::Sym<'_>>; 3]> = smallvec::SmallVec::new();
        $({ out.push(if $v.needs(i) { Some($formula) } else { None }); i += 1; })+
        let _ = i;
        out
    }};
}
