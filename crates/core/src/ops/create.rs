//! Arrays from nothing: full, arange, ...

use crate::attrs::Attrs;
use crate::kernel::lane::CastFrom;
use crate::kernel::step;
use crate::op::{Grad, InferArgs, Inferred, KernelArgs, Meta, Op, Run};
use crate::par::Parallel;
use crate::shape::{Shape, checked_numel};
use crate::view::ViewMut;
use crate::{DType, Element, Error, Layout, Result, attrs, with_type};
use smallvec::smallvec;

attrs! {
    /// `shape` and `dtype` of the result; the value is the operand.
    pub struct Full { shape: Shape, dtype: DType }
}

/// The attributes of [`FULL`].
pub fn full(shape: &[usize], dtype: DType) -> Attrs {
    Attrs::new(Full { shape: Shape::from_slice(shape), dtype })
}

fn infer_full(a: &InferArgs) -> Result<Inferred> {
    let Full { shape, dtype } = a.attrs.get::<Full>();
    checked_numel(a.op, shape, dtype.size())?;
    if Layout::contiguous(&a.ins[0].shape).broadcast_to(shape).is_none() {
        use crate::shape::display;
        let text = format!(
            "could not broadcast input array from shape {} into shape {}",
            display(&a.ins[0].shape),
            display(shape)
        );
        return Err(Error::value(a.op, text));
    }
    crate::ops::shape::check_scalar_fits(a.op, *dtype, &a.ins[0])?;
    Ok(Inferred { ins: smallvec![*dtype], outs: smallvec![Meta::new(shape.clone(), *dtype)] })
}

/// `full(value)`: the operand broadcast to a new array.
pub static FULL: Op = Op {
    attrs: Full::read,
    grad: Grad::Vjp(|v| crate::grads!(v; v.g().sum_to(v.shape(0)))),
    ..Op::new("full", 1, infer_full, Run::Elementwise(|ins, out| Some(step::cast(ins[0], out))))
};

attrs! {
    /// Element i is `start + i * step`, in integers for integer dtypes and in doubles for others.
    pub struct Arange {
        start: f64 = 0.0, step: f64 = 1.0, int_start: i64 = 0, int_step: i64 = 1, num: i64, dtype: DType,
    }
}

attrs! {
    /// `num` elements from `start` to `stop`, which is the last one if `endpoint`.
    pub struct Linspace { start: f64, stop: f64, num: i64 = 50, endpoint: bool = true, dtype: DType }
}

attrs! {
    /// An `n` by `m` matrix with ones on diagonal `k`.
    pub struct Eye { n: i64, m: i64, k: i64 = 0, dtype: DType }
}

fn infer_length(a: &InferArgs, num: i64, dtype: DType) -> Result<Inferred> {
    let Ok(n) = usize::try_from(num) else {
        return Err(Error::value(a.op, format!("Number of samples, {num}, must be non-negative.")));
    };
    checked_numel(a.op, &[n], dtype.size())?;
    Ok(Inferred { ins: smallvec![], outs: smallvec![Meta::new(Shape::from_slice(&[n]), dtype)] })
}

fn infer_eye(a: &InferArgs) -> Result<Inferred> {
    let Eye { n, m, dtype, .. } = *a.attrs.get::<Eye>();
    let (Ok(n), Ok(m)) = (usize::try_from(n), usize::try_from(m)) else {
        return Err(Error::value(a.op, "negative dimensions are not allowed"));
    };
    checked_numel(a.op, &[n, m], dtype.size())?;
    Ok(Inferred { ins: smallvec![], outs: smallvec![Meta::new(Shape::from_slice(&[n, m]), dtype)] })
}

/// Writes element i of a fresh contiguous output as `value(i)`, in parallel.
fn fill<T: Element>(out: ViewMut, par: &dyn Parallel, value: impl Fn(usize) -> T + Sync) {
    const CHUNK: usize = 32 * 1024;
    let n = out.layout.size();
    let start = out.ptr::<T>() as usize;
    par.run(n.div_ceil(CHUNK), &|chunk| {
        for i in chunk * CHUNK..((chunk + 1) * CHUNK).min(n) {
            // SAFETY: i < n elements; chunks are disjoint.
            unsafe { *(start as *mut T).add(i) = value(i) }
        }
    });
}

fn run_arange(args: &KernelArgs) -> Result<()> {
    let a = args.attrs.get::<Arange>();
    if a.dtype.is_integer() {
        with_type!(ints a.dtype, T => fill::<T>(args.out(0), args.par, |i| {
            a.int_start.wrapping_add(a.int_step.wrapping_mul(i as i64)) as T
        }), else ());
    } else {
        with_type!(all a.dtype, T => fill::<T>(args.out(0), args.par, |i| {
            T::cast_from(a.start + i as f64 * a.step)
        }));
    }
    Ok(())
}

fn run_linspace(args: &KernelArgs) -> Result<()> {
    let a = args.attrs.get::<Linspace>();
    let parts = (a.num - a.endpoint as i64) as f64;
    let value = |i: usize| {
        // The last element is exactly `stop`; a single one is `start`.
        if a.endpoint && i > 0 && i as i64 == a.num - 1 {
            a.stop
        } else if parts > 0.0 {
            a.start + i as f64 * ((a.stop - a.start) / parts)
        } else {
            a.start
        }
    };
    // NumPy rounds down where the dtype is an integer's.
    let value = |i| if a.dtype.is_integer() { f64::floor(value(i)) } else { value(i) };
    with_type!(all a.dtype, T => fill::<T>(args.out(0), args.par, |i| T::cast_from(value(i))));
    Ok(())
}

fn run_eye(args: &KernelArgs) -> Result<()> {
    let a = args.attrs.get::<Eye>();
    let m = a.m.max(1) as usize;
    with_type!(all a.dtype, T => fill::<T>(args.out(0), args.par, |i| {
        T::cast_from(((i % m) as i64 - (i / m) as i64 == a.k) as u8)
    }));
    Ok(())
}

pub static ARANGE: Op = Op {
    attrs: Arange::read,
    grad: Grad::Zero,
    ..Op::new(
        "arange",
        0,
        |a| {
            let attrs = a.attrs.get::<Arange>();
            infer_length(a, attrs.num, attrs.dtype)
        },
        Run::Kernel(run_arange),
    )
};

pub static LINSPACE: Op = Op {
    attrs: Linspace::read,
    grad: Grad::Zero,
    ..Op::new(
        "linspace",
        0,
        |a| {
            let attrs = a.attrs.get::<Linspace>();
            infer_length(a, attrs.num, attrs.dtype)
        },
        Run::Kernel(run_linspace),
    )
};

/// `eye(n, m, k)`; `identity(n)` is `eye(n, n)`.
pub static EYE: Op =
    Op { attrs: Eye::read, grad: Grad::Zero, ..Op::new("eye", 0, infer_eye, Run::Kernel(run_eye)) };

pub const OPS: &[&Op] = &[&FULL, &ARANGE, &LINSPACE, &EYE];
