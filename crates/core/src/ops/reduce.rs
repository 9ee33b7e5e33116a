//! Reductions over axes: sum, prod, max, min, any, all, argmax, argmin, mean, var, std.

use crate::attrs::{Attrs, Ints};
use crate::kernel::fold::{self, Reduction};
use crate::kernel::fold_arg::{Contest, First};
use crate::kernel::lane::{CastFrom, Lane};
use crate::kernel::num::{Num, Ordered};
use crate::kernel::reduce::Fold;
use crate::kernel::{packed, squares};
use crate::op::{Grad, InferArgs, Inferred, Meta, Op, Run, Saves};
use crate::ops::arith::select;
use crate::ops::scan::linear::product_before;
use crate::ops::{compare, exp_log};
use crate::promote::to_float;
use crate::rules::{Sym, Vjp};
use crate::shape::{AxisList, Shape, check_axes, numel, reduced};
use crate::{Bool, DType, Error, Result, attrs, grads, infer, with_type};
use smallvec::smallvec;

attrs! {
    /// `axis`: the axes to reduce (None: all); `keepdims`: keep them with size 1; `dtype`: of the result.
    pub struct Reduce { axis: Option<Ints> = None, keepdims: bool = false, dtype: Option<DType> = None }
}

attrs! {
    /// As [`Reduce`], for the index of an extreme: over one axis or (None) all of them.
    pub struct ArgReduce { axis: Option<i64> = None, keepdims: bool = false }
}

attrs! {
    /// As [`Reduce`]; `ddof` is taken from the number of elements.
    pub struct Moment { axis: Option<Ints> = None, keepdims: bool = false, dtype: Option<DType> = None, ddof: f64 = 0.0 }
}

/// The attributes of [`SUM`] over checked axes.
pub fn sum_attrs(axes: &[usize], keepdims: bool) -> Attrs {
    let axis = Some(axes.iter().map(|&a| a as i64).collect());
    Attrs::new(Reduce { axis, keepdims, dtype: None })
}

/// The axes of a call that `infer` has checked.
fn axes(attrs: &Attrs, ndim: usize) -> AxisList {
    check_axes("", attrs.get::<Reduce>().axis.as_deref(), ndim).unwrap_or_default()
}

fn arg_axes(attrs: &Attrs, ndim: usize) -> AxisList {
    check_axes("", attrs.get::<ArgReduce>().axis.as_ref().map(std::slice::from_ref), ndim).unwrap_or_default()
}

fn moment_axes(attrs: &Attrs, ndim: usize) -> AxisList {
    check_axes("", attrs.get::<Moment>().axis.as_deref(), ndim).unwrap_or_default()
}

/// The shape of a reduced input, axes checked.
fn shape_of(a: &InferArgs, axis: Option<&[i64]>, keepdims: bool) -> Result<(AxisList, crate::Shape)> {
    let x = &a.ins[0].shape;
    // A number may be asked for its only axis, as NumPy's.
    let of_number = x.is_empty() && axis.is_some_and(|axis| matches!(axis, [0 | -1]));
    let axes = if of_number { AxisList::new() } else { check_axes(a.op, axis, x.len())? };
    let shape = reduced(x, &axes, keepdims);
    Ok((axes, shape))
}

/// Sums of integers are int64 or uint64, as NumPy's.
fn infer_sum(a: &InferArgs) -> Result<Inferred> {
    let attrs = a.attrs.get::<Reduce>();
    let (_, shape) = shape_of(a, attrs.axis.as_deref(), attrs.keepdims)?;
    let out = attrs.dtype.unwrap_or(match a.ins[0].dtype {
        d if d.is_inexact() => d,
        d if d.is_unsigned() => DType::U64,
        _ => DType::I64,
    });
    let x = a.ins[0].dtype;
    let own = sum(x, out).is_some() && a.op == "sum";
    Ok(Inferred { ins: smallvec![if own { x } else { out }], outs: smallvec![Meta::new(shape, out)] })
}

/// The greatest of nothing has no value.
fn infer_extreme(a: &InferArgs) -> Result<Inferred> {
    let attrs = a.attrs.get::<Reduce>();
    let x = &a.ins[0];
    infer::refuse_complex(a.op, x.dtype)?;
    let (axes, shape) = shape_of(a, attrs.axis.as_deref(), attrs.keepdims)?;
    if axes.iter().any(|&axis| x.shape[axis] == 0) && numel(&shape) > 0 {
        let name = if a.op == "max" { "maximum" } else { "minimum" };
        return Err(Error::value(
            a.op,
            format!("zero-size array to reduction operation {name} which has no identity"),
        ));
    }
    Ok(Inferred { ins: smallvec![x.dtype], outs: smallvec![Meta::new(shape, x.dtype)] })
}

fn infer_truth(a: &InferArgs) -> Result<Inferred> {
    let attrs = a.attrs.get::<Reduce>();
    let (_, shape) = shape_of(a, attrs.axis.as_deref(), attrs.keepdims)?;
    Ok(Inferred { ins: smallvec![a.ins[0].dtype], outs: smallvec![Meta::new(shape, DType::Bool)] })
}

fn infer_arg(a: &InferArgs) -> Result<Inferred> {
    let attrs = a.attrs.get::<ArgReduce>();
    let x = &a.ins[0];
    infer::refuse_complex(a.op, x.dtype)?;
    let (axes, shape) = shape_of(a, attrs.axis.as_ref().map(std::slice::from_ref), attrs.keepdims)?;
    if axes.iter().any(|&axis| x.shape[axis] == 0) && numel(&shape) > 0 {
        return Err(Error::value(a.op, format!("attempt to get {} of an empty sequence", a.op)));
    }
    Ok(Inferred { ins: smallvec![x.dtype], outs: smallvec![Meta::new(shape, DType::I64)] })
}

/// Folds wide values by an operation with an identity.
macro_rules! simple_fold {
    ($name:ident, $bound:path, $identity:ident, |$a:ident, $b:ident| $e:expr) => {
        struct $name;
        impl<W: $bound, A: Lane<Wide = W>> Reduction<A, A> for $name {
            type Acc = W;
            const IDENTITY: W = W::$identity;
            #[inline(always)]
            fn lift(x: W, _: usize) -> W {
                x
            }
            #[inline(always)]
            fn combine($a: W, $b: W) -> W {
                $e
            }
            #[inline(always)]
            fn result(acc: W) -> W {
                acc
            }
        }
    };
}
simple_fold!(Sum, Num, ZERO, |a, b| a.add(b));

/// A sum of elements that are converted first.
struct WideSum;
impl<A: Lane, R: Lane<Wide: Num + CastFrom<A::Wide>>> Reduction<A, R> for WideSum {
    type Acc = R::Wide;
    const IDENTITY: R::Wide = R::Wide::ZERO;
    #[inline(always)]
    fn lift(x: A::Wide, _: usize) -> R::Wide {
        CastFrom::cast_from(x)
    }
    #[inline(always)]
    fn combine(a: R::Wide, b: R::Wide) -> R::Wide {
        a.add(b)
    }
    #[inline(always)]
    fn result(acc: R::Wide) -> R::Wide {
        acc
    }
}

/// Whether any, or all, of the elements differ from zero.
macro_rules! truth_fold {
    ($name:ident, $identity:literal, |$a:ident, $b:ident| $e:expr) => {
        struct $name;
        impl<A: Lane<Wide: Num>> Reduction<A, Bool> for $name {
            type Acc = Bool;
            const IDENTITY: Bool = Bool::new($identity);
            #[inline(always)]
            fn lift(x: A::Wide, _: usize) -> Bool {
                Bool::new(x != A::Wide::ZERO)
            }
            #[inline(always)]
            fn combine($a: Bool, $b: Bool) -> Bool {
                $e
            }
            #[inline(always)]
            fn result(acc: Bool) -> Bool {
                acc
            }
        }
    };
}
truth_fold!(Any, false, |a, b| a.add(b));
truth_fold!(All, true, |a, b| a.mul(b));
simple_fold!(Product, Num, ONE, |a, b| a.mul(b));
simple_fold!(Maximum, Ordered, LEAST, |a, b| a.maximum(b));
simple_fold!(Minimum, Ordered, GREATEST, |a, b| a.minimum(b));

/// The first greatest element, or the first NaN.
struct Greatest;
impl<W: Ordered> Contest<W> for Greatest {
    const WORST: W = W::LEAST;
    #[inline(always)]
    fn beats(x: W, best: W) -> bool {
        x.exceeds(best) & !best.is_nan()
    }
}

/// The first least element, or the first NaN.
struct Least;
impl<W: Ordered> Contest<W> for Least {
    const WORST: W = W::GREATEST;
    #[inline(always)]
    fn beats(x: W, best: W) -> bool {
        best.exceeds(x) & !best.is_nan()
    }
}

/// The head's gradient seen by every element that was reduced.
fn spread<'r>(v: &Vjp<'r>, y: Sym<'r>) -> Sym<'r> {
    let x = v.shape(0);
    y.reshape(&reduced(x, &axes(v.attrs, x.len()), true)).broadcast_to(x)
}

/// Sums in the operand's dtype, and of narrow integers in 64 bits.
fn sum(x: DType, out: DType) -> Option<Fold> {
    macro_rules! wide {
        ($($x:ident: $a:ty => $o:ident: $r:ty),*) => {
            match (x, out) {
                $((DType::$x, DType::$o) => Some(fold::of::<WideSum, $a, $r>()),)*
                _ => None,
            }
        };
    }
    if x == out {
        let fold = with_type!(all out, T => fold::of::<Sum, T, T>());
        return Some(
            with_type!(floats out, T => Fold { inner: packed::fold_sums::<T>(), ..fold }, else fold),
        );
    }
    wide!(Bool: Bool => I64: i64, I8: i8 => I64: i64, I16: i16 => I64: i64, I32: i32 => I64: i64,
        U8: u8 => U64: u64, U16: u16 => U64: u64, U32: u32 => U64: u64)
}

pub static SUM: Op = Op {
    attrs: Reduce::read,
    grad: Grad::Vjp(|v| grads!(v; spread(v, v.g()))),
    ..Op::new("sum", 1, infer_sum, Run::Reduce { fold: sum, axes })
};

/// For each element the product of the others over the reduced axes.
fn product_of_others<'r>(v: &Vjp<'r>) -> Sym<'r> {
    let shape = v.shape(0);
    let over = axes(v.attrs, shape.len());
    let mut order: AxisList = (0..shape.len()).filter(|i| !over.contains(i)).collect();
    let rows: usize = order.iter().map(|&i| shape[i]).product();
    order.extend_from_slice(&over);
    let turned: Shape = order.iter().map(|&i| shape[i]).collect();
    let mut back: AxisList = smallvec![0; shape.len()];
    order.iter().enumerate().for_each(|(i, &axis)| back[axis] = i);
    let width = over.iter().map(|&i| shape[i]).product();
    let x = v.x(0).transpose(&order).reshape(&[rows, width]);
    let others = product_before(x, 1, false) * product_before(x, 1, true);
    others.reshape(&turned).transpose(&back)
}

/// The product; its gradient is right where elements are 0.
pub static PROD: Op = Op {
    attrs: Reduce::read,
    grad: Grad::Vjp(|v| grads!(v; spread(v, v.g()).times(product_of_others(v)))),
    saves: Saves { inputs: 0b1, outputs: 0 },
    ..Op::new(
        "prod",
        1,
        infer_sum,
        Run::Reduce { fold: |_, out| with_type!(all out, T => Some(fold::of::<Product, T, T>())), axes },
    )
};

/// Every element that equals the extreme gets the gradient.
macro_rules! extreme {
    ($op:ident $name:literal $fold:ident) => {
        pub static $op: Op = Op {
            attrs: Reduce::read,
            grad: Grad::Vjp(|v| {
                let hit = v.x(0).binary(&compare::EQUAL, spread(v, v.y(0)));
        grads!(v; select(hit, spread(v, v.g()), 0.0))
            }),
            saves: Saves { inputs: 0b1, outputs: 0b1 },
            ..Op::new(
                $name,
                1,
                infer_extreme,
                Run::Reduce {
            fold: |x, _| with_type!(ordered x, T => Some(fold::of::<$fold, T, T>()), else None),
                    axes,
                },
            )
        };
    };
}
extreme!(MAX "max" Maximum);
extreme!(MIN "min" Minimum);

macro_rules! truth {
    ($op:ident $name:literal $fold:ident) => {
        pub static $op: Op = Op {
            attrs: Reduce::read,
            grad: Grad::Zero,
            ..Op::new(
                $name,
                1,
                infer_truth,
        Run::Reduce { fold: |x, _| with_type!(all x, T => Some(fold::of::<$fold, T, Bool>())), axes },
            )
        };
    };
}
truth!(ANY "any" Any);
truth!(ALL "all" All);

/// The position of the first extreme along the axis (of the flattened array without one), int64.
macro_rules! arg {
    ($op:ident $name:literal $fold:ident) => {
        pub static $op: Op = Op {
            attrs: ArgReduce::read,
            grad: Grad::Zero,
            ..Op::new(
                $name,
                1,
                infer_arg,
                Run::Reduce {
            fold: |x, _| with_type!(ordered x, T => Some(fold::of::<First<$fold>, T, i64>()), else None),
                    axes: arg_axes,
                },
            )
        };
    };
}
arg!(ARGMAX "argmax" Greatest);
arg!(ARGMIN "argmin" Least);

/// Means are floating: integers become the default float.
fn infer_mean(a: &InferArgs) -> Result<Inferred> {
    let attrs = a.attrs.get::<Reduce>();
    let (_, shape) = shape_of(a, attrs.axis.as_deref(), attrs.keepdims)?;
    let dtype = attrs.dtype.unwrap_or_else(|| mean_dtype(a));
    Ok(Inferred { ins: smallvec![dtype], outs: smallvec![Meta::new(shape, dtype)] })
}

fn mean_dtype(a: &InferArgs) -> DType {
    match a.ins[0].dtype {
        d if d.is_inexact() => d,
        // NumPy's mean of any integers is float64.
        _ if a.mode.numpy_dtype => DType::F64,
        d => to_float(d, a.mode),
    }
}

fn infer_moment(a: &InferArgs) -> Result<Inferred> {
    let attrs = a.attrs.get::<Moment>();
    let (_, shape) = shape_of(a, attrs.axis.as_deref(), attrs.keepdims)?;
    let dtype = attrs.dtype.unwrap_or_else(|| mean_dtype(a));
    infer::refuse_complex(a.op, dtype)?;
    Ok(Inferred { ins: smallvec![dtype], outs: smallvec![Meta::new(shape, dtype)] })
}

/// Where a mean is accumulated: half precision in float32.
fn wide(x: Sym) -> Sym {
    let dtype = x.dtype();
    if dtype.is_float() && dtype.size() == 2 { x.cast(DType::F32) } else { x }
}

/// The number of elements that one output is made of.
fn count(shape: &[usize], axes: &[usize]) -> f64 {
    axes.iter().map(|&axis| shape[axis] as f64).product()
}

/// The sum over `axes`, also where there are none.
fn total<'r>(x: Sym<'r>, axes: &[usize], keepdims: bool) -> Sym<'r> {
    x.with(&SUM, sum_attrs(axes, keepdims))
}

pub static MEAN: Op = Op {
    attrs: Reduce::read,
    grad: Grad::Vjp(|v| {
        let n = count(v.shape(0), &axes(v.attrs, v.shape(0).len()));
        grads!(v; spread(v, v.g() * (1.0 / n)))
    }),
    ..Op::new(
        "mean",
        1,
        infer_mean,
        Run::Body(|attrs, _, ins| {
            let (x, shape) = (ins[0], ins[0].shape());
            let over = axes(attrs, shape.len());
            let sum = total(wide(x), &over, attrs.get::<Reduce>().keepdims);
            smallvec![(sum / count(&shape, &over)).cast(x.dtype())]
        }),
    )
};

/// x less its mean over the axes, and what its squares are divided by.
fn deviation<'r>(attrs: &Attrs, x: Sym<'r>) -> (Sym<'r>, AxisList, f64) {
    let shape = x.shape();
    let over = moment_axes(attrs, shape.len());
    let n = count(&shape, &over);
    let x = wide(x);
    let mean = total(x, &over, true) / n;
    (x - mean, over, (n - attrs.get::<Moment>().ddof).max(0.0))
}

fn infer_squares(a: &InferArgs) -> Result<Inferred> {
    let attrs = a.attrs.get::<Reduce>();
    let (_, shape) = shape_of(a, attrs.axis.as_deref(), attrs.keepdims)?;
    let dtype = a.ins[0].dtype;
    Ok(Inferred { ins: smallvec![dtype], outs: smallvec![Meta::new(shape, dtype)] })
}

/// The sum of squares of float32 or float64 about their mean, read once. Private to the bodies of moments.
pub static SQUARES: Op = Op {
    attrs: Reduce::read,
    grad: Grad::None("it stands in bodies only"),
    ..Op::new(
        "_squares",
        1,
        infer_squares,
        Run::Reduce {
            fold: |x, _| match x {
                DType::F32 => Some(squares::fold::<f32>()),
                DType::F64 => Some(squares::fold::<f64>()),
                _ => None,
            },
            axes,
        },
    )
};

fn variance<'r>(attrs: &Attrs, x: Sym<'r>) -> Sym<'r> {
    let shape = x.shape();
    let over = moment_axes(attrs, shape.len());
    let Moment { keepdims, ddof, .. } = *attrs.get::<Moment>();
    wide(x).with(&SQUARES, sum_attrs(&over, keepdims)) / (count(&shape, &over) - ddof).max(0.0)
}

/// The gradient of a moment as its input sees it, kept axes restored.
fn spread_moment<'r>(v: &Vjp<'r>, y: Sym<'r>) -> Sym<'r> {
    let x = v.shape(0);
    y.reshape(&reduced(x, &moment_axes(v.attrs, x.len()), true)).broadcast_to(x)
}

pub static VAR: Op = Op {
    attrs: Moment::read,
    grad: Grad::Vjp(|v| {
        let (d, _, n) = deviation(v.attrs, v.x(0));
        grads!(v; spread_moment(v, v.g()).times((d * (2.0 / n)).cast(v.ins[0].0.dtype)))
    }),
    saves: Saves { inputs: 0b1, outputs: 0 },
    ..Op::new(
        "var",
        1,
        infer_moment,
        Run::Body(|attrs, _, ins| smallvec![variance(attrs, ins[0]).cast(ins[0].dtype())]),
    )
};

/// The square root of [`VAR`]; its gradient is 0 where the deviation is.
pub static STD: Op = Op {
    attrs: Moment::read,
    grad: Grad::Vjp(|v| {
        let (d, _, n) = deviation(v.attrs, v.x(0));
        let y = v.y(0);
        let inverse = select(y.binary(&compare::EQUAL, 0i64), 0.0, 1.0 / y);
        grads!(v; spread_moment(v, v.g().times(inverse)).times((d * (1.0 / n)).cast(v.ins[0].0.dtype)))
    }),
    saves: Saves { inputs: 0b1, outputs: 0b1 },
    ..Op::new(
        "std",
        1,
        infer_moment,
        Run::Body(|attrs, _, ins| {
            smallvec![variance(attrs, ins[0]).unary(&exp_log::SQRT).cast(ins[0].dtype())]
        }),
    )
};

pub const OPS: &[&Op] = &[&SUM, &PROD, &MAX, &MIN, &ANY, &ALL, &ARGMAX, &ARGMIN, &MEAN, &SQUARES, &VAR, &STD];
