//! Linear recurrences along an axis, and the products of all other elements that they give: what the gradients of
//! cumprod and prod are written with, exact where elements are 0 and to every order.

use super::{Lines, Start, copy};
use crate::attrs::Attrs;
use crate::kernel::lane::Lane;
use crate::kernel::num::Num;
use crate::op::{Grad, InferArgs, Inferred, KernelArgs, Meta, Op, Run, Saves};
use crate::ops::{create, shape};
use crate::rules::{IntoOperand, Sym, call};
use crate::shape::{check_axis, display};
use crate::view::ViewMut;
use crate::{Error, IndexItem, Layout, Result, attrs, grads, with_type};
use smallvec::smallvec;

attrs! {
    /// `axis`; `reverse`: from the end to the start; `shifted`: each step takes the coefficient of the element
    /// before it.
    pub struct Linear { axis: i64 = 0, reverse: bool = false, shifted: bool = false }
}

fn infer(a: &InferArgs) -> Result<Inferred> {
    let (x, y) = (&a.ins[0], &a.ins[1]);
    check_axis(a.op, a.attrs.get::<Linear>().axis, x.shape.len())?;
    if x.shape != y.shape || x.dtype != y.dtype {
        let text = format!(
            "takes two arrays alike, got {} of {} and {} of {}",
            display(&x.shape),
            x.dtype,
            display(&y.shape),
            y.dtype
        );
        return Err(Error::value(a.op, text));
    }
    Ok(Inferred { ins: smallvec![x.dtype, x.dtype], outs: smallvec![Meta::new(x.shape.clone(), x.dtype)] })
}

fn run(args: &KernelArgs) -> Result<()> {
    with_type!(all args.ins[0].dtype, T => run_lines::<T>(args));
    Ok(())
}

fn run_lines<T: Lane<Wide: Num>>(args: &KernelArgs) {
    let (a, b, out) = (&args.ins[0], &args.ins[1], args.out(0));
    let size = a.layout.size();
    if size == 0 {
        return;
    }
    copy(b, &out, args.par);
    // The coefficients in row-major order, where they are not already.
    let mut owned = vec![T::default(); size];
    let layout = Layout::contiguous(&a.layout.shape);
    // SAFETY: `owned` has room for the layout, and nothing else refers to it while it is filled.
    let packed = unsafe { ViewMut::new(owned.as_mut_ptr().cast(), &layout, a.dtype) };
    copy(a, &packed, args.par);
    let attrs = args.attrs.get::<Linear>();
    let lines = Lines::of(&a.layout.shape, Some(attrs.axis));
    let (start, a) = (Start(out.ptr::<T>()), &owned);
    lines.each_strip(args.par, &|first, width| {
        for line in first..first + width {
            let index = |step: usize| {
                let row = if attrs.reverse { lines.length - 1 - step } else { step };
                line + row * lines.apart
            };
            let mut running = T::Wide::ZERO;
            for step in 0..lines.length {
                // A zero stays zero beside an infinite coefficient, as in every gradient. Of a shifted one
                // the first is read too, but multiplies the zero it starts from.
                let factor = a[index(if attrs.shifted { step.max(1) - 1 } else { step })].widen();
                let carried = if running == T::Wide::ZERO { running } else { running.mul(factor) };
                // SAFETY: element `step` of a line of the strip lies within the output; strips are disjoint.
                unsafe {
                    let at = start.at(index(step));
                    running = (*at).widen().add(carried);
                    *at = T::narrow(running);
                }
            }
        }
    });
}

/// `_recurrence(a, b; axis, reverse, shifted)`: y[k] = b[k] + a[k] y[k-1] along the axis, or with a[k-1].
pub static RECURRENCE: Op = Op {
    attrs: Linear::read,
    grad: Grad::Vjp(|v| {
        let Linear { axis, reverse, shifted } = *v.attrs.get::<Linear>();
        let back = Linear { axis, reverse: !reverse, shifted: !shifted };
        let s = v.x(0).apply(&RECURRENCE, Attrs::new(back), &[v.g().operand()]);
        grads!(v;
            if shifted { moved(s, axis, !reverse).times(v.y(0)) } else { s.times(moved(v.y(0), axis, reverse)) },
            s)
    }),
    saves: Saves { inputs: 0b1, outputs: 0b1 },
    ..Op::new("_recurrence", 2, infer, Run::Kernel(run))
};

/// The elements of an axis from `start` on.
fn part(shape: &[usize], axis: i64, start: usize, len: usize) -> Vec<IndexItem> {
    let axis = check_axis("", axis, shape.len()).unwrap_or(0);
    let all = shape.iter().map(|&len| IndexItem::Slice { start: 0, step: 1, len });
    let mut index: Vec<IndexItem> = all.collect();
    index[axis] = IndexItem::Slice { start, step: 1, len };
    index
}

/// `y` one place on along the axis (back, where `reverse`); a zero comes in.
fn moved<'r>(y: Sym<'r>, axis: i64, reverse: bool) -> Sym<'r> {
    let shape = y.shape();
    let rest = shape[check_axis("", axis, shape.len()).unwrap_or(0)].saturating_sub(1);
    let (from, to) = if reverse { (1, 0) } else { (0, 1) };
    y.with(&shape::SLICE, shape::basic(&part(&shape, axis, from, rest)))
        .with(&shape::SLICE_ZERO, shape::basic_into(&part(&shape, axis, to, rest), &shape))
}

/// The product of the elements before each one along the axis (after it, where `reverse`).
pub fn product_before<'r>(x: Sym<'r>, axis: i64, reverse: bool) -> Sym<'r> {
    let shape = x.shape();
    let at = check_axis("", axis, shape.len()).unwrap_or(0);
    if shape[at] == 0 {
        return x;
    }
    let first = part(&shape, axis, if reverse { shape[at] - 1 } else { 0 }, 1);
    let one = create::full(&shape::with_size(&shape, at, 1), x.dtype());
    let ones = call(x.rules(), &create::FULL, one, &[1i64.operand()]);
    let start = ones.with(&shape::SLICE_ZERO, shape::basic_into(&first, &shape));
    x.apply(&RECURRENCE, Attrs::new(Linear { axis, reverse, shifted: true }), &[start.operand()])
}

/// The gradient of a running product of x: sum over k >= i of g[k] times the product of the others up to k, as
/// the product before i times t[i] = g[i] + x[i+1] t[i+1].
pub fn cumprod_back<'r>(x: Sym<'r>, g: Sym<'r>, axis: i64, reverse: bool) -> Sym<'r> {
    let back = Linear { axis, reverse: !reverse, shifted: true };
    x.apply(&RECURRENCE, Attrs::new(back), &[g.operand()]).times(product_before(x, axis, reverse))
}
