//! Running sums and products along an axis.

use crate::attrs::Attrs;
use crate::kernel::lane::Lane;
use crate::kernel::num::Num;
use crate::kernel::pass::{self, Load, Pass, Slot, Source, Store};
use crate::op::{Grad, InferArgs, Inferred, KernelArgs, Meta, Op, Run, Saves};
use crate::par::Parallel;
use crate::shape::{Shape, check_axis, numel};
use crate::view::{View, ViewMut};
use crate::{DType, Layout, Result, attrs, grads, with_type};
use smallvec::smallvec;

pub mod linear;

attrs! {
    /// `axis`: the axis to run along (None: the flattened array); `dtype`: of the result; `reverse`: from the
    /// end to the start, as gradients need.
    pub struct Scan { axis: Option<i64> = None, dtype: Option<DType> = None, reverse: bool = false }
}

/// Integers run in int64 or uint64, as NumPy's.
fn infer(a: &InferArgs) -> Result<Inferred> {
    let attrs = a.attrs.get::<Scan>();
    let x = &a.ins[0];
    let shape: Shape = match attrs.axis {
        Some(axis) => {
            check_axis(a.op, axis, x.shape.len())?;
            x.shape.clone()
        }
        None => smallvec![numel(&x.shape)],
    };
    let out = attrs.dtype.unwrap_or(match x.dtype {
        d if d.is_inexact() => d,
        d if d.is_unsigned() => DType::U64,
        _ => DType::I64,
    });
    Ok(Inferred { ins: a.ins.iter().map(|_| out).collect(), outs: smallvec![Meta::new(shape, out)] })
}

/// How many lines an array has, their length, and the distance between their elements; line (i, j) starts at
/// i * length * apart + j.
struct Lines {
    outer: usize,
    length: usize,
    apart: usize,
}

impl Lines {
    fn of(shape: &[usize], axis: Option<i64>) -> Lines {
        match axis.and_then(|axis| check_axis("", axis, shape.len()).ok()) {
            Some(axis) => Lines {
                outer: shape[..axis].iter().product(),
                length: shape[axis],
                apart: shape[axis + 1..].iter().product(),
            },
            None => Lines { outer: 1, length: numel(shape), apart: 1 },
        }
    }

    /// Calls `body(start, width)` for strips of neighbouring lines, in parallel; `start` is the first
    /// element of the first of `width` lines.
    fn each_strip(&self, par: &dyn Parallel, body: &(dyn Fn(usize, usize) + Sync)) {
        const STRIP: usize = 64;
        let strips = self.apart.div_ceil(STRIP);
        let total = self.outer * strips;
        let together = (32 * 1024 / (self.length * self.apart.clamp(1, STRIP)).max(1)).max(1);
        par.run(total.div_ceil(together), &|chunk| {
            for index in chunk * together..((chunk + 1) * together).min(total) {
                let (i, j) = (index / strips, index % strips * STRIP);
                body(i * self.length * self.apart + j, STRIP.min(self.apart - j));
            }
        });
    }
}

/// Copies `from` in row-major order into contiguous memory of the same dtype.
fn copy(from: &View, to: &ViewMut, par: &dyn Parallel) {
    let shape = from.layout.shape.clone();
    let target = Layout { offset: to.layout.offset, ..Layout::contiguous(&shape) };
    let copy = Pass {
        shape,
        regs: vec![from.dtype],
        loads: vec![Load { source: Source::Array(0), dtype: from.dtype, reg: 0 }],
        steps: vec![],
        stores: vec![Store { reg: 0, target: 1, dtype: from.dtype }],
        reduce: None,
    };
    let slots = [
        Slot { base: from.base().cast_mut(), layout: from.layout },
        Slot { base: to.base(), layout: &target },
    ];
    // SAFETY: both views are valid (contract of View), and fresh outputs overlap no input.
    unsafe { pass::run(&copy, &slots, &[], par) }
}

/// A number's address for several threads.
struct Start<T>(*mut T);
// SAFETY: only an address; strips are disjoint.
unsafe impl<T> Sync for Start<T> {}
impl<T> Start<T> {
    fn at(&self, i: usize) -> *mut T {
        self.0.wrapping_add(i)
    }
}

/// Accumulates in place; half precision keeps its running value in float32.
fn run_lines<T: Lane>(args: &KernelArgs, combine: impl Fn(T::Wide, T::Wide) -> T::Wide + Sync) {
    let (x, out) = (&args.ins[0], args.out(0));
    copy(x, &out, args.par);
    let attrs = args.attrs.get::<Scan>();
    let lines = Lines::of(&x.layout.shape, attrs.axis);
    if numel(&x.layout.shape) == 0 {
        return;
    }
    let start = Start(out.ptr::<T>());
    lines.each_strip(args.par, &|first, width| {
        let mut running = [T::Wide::default(); 64];
        for step in 0..lines.length {
            let row = if attrs.reverse { lines.length - 1 - step } else { step };
            let at = start.at(first + row * lines.apart);
            for (k, running) in running[..width].iter_mut().enumerate() {
                // SAFETY: row `row` of the strip's line k lies within the output, and strips are disjoint.
                unsafe {
                    let value = (*at.add(k)).widen();
                    *running = if step == 0 { value } else { combine(*running, value) };
                    *at.add(k) = T::narrow(*running);
                }
            }
        }
    });
}

fn cumsum(args: &KernelArgs) -> Result<()> {
    with_type!(all args.ins[0].dtype, T => run_lines::<T>(args, |a, b| a.add(b)));
    Ok(())
}

fn cumprod(args: &KernelArgs) -> Result<()> {
    with_type!(all args.ins[0].dtype, T => run_lines::<T>(args, |a, b| a.mul(b)));
    Ok(())
}

pub static CUMSUM: Op = Op {
    attrs: Scan::read,
    grad: Grad::Vjp(|v| {
        let attrs = v.attrs.get::<Scan>();
        let back = Scan { axis: attrs.axis, dtype: None, reverse: !attrs.reverse };
        grads!(v; v.g().with(&CUMSUM, Attrs::new(back)).reshape(v.shape(0)))
    }),
    ..Op::new("cumsum", 1, infer, Run::Kernel(cumsum))
};

pub static CUMPROD: Op = Op {
    attrs: Scan::read,
    grad: Grad::Vjp(|v| {
        let Scan { axis, reverse, .. } = *v.attrs.get::<Scan>();
        grads!(v; {
            let x = v.x(0).reshape(&v.outs[0].0.shape);
            linear::cumprod_back(x, v.g(), axis.unwrap_or(0), reverse).reshape(v.shape(0))
        })
    }),
    saves: Saves { inputs: 0b1, outputs: 0 },
    ..Op::new("cumprod", 1, infer, Run::Kernel(cumprod))
};

pub const OPS: &[&Op] = &[&CUMSUM, &CUMPROD, &linear::RECURRENCE];
