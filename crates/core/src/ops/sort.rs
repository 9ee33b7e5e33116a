//! Sorting along an axis: sort, argsort, topk. All are stable, with NaN as the greatest value.

use crate::kernel::moves::Shared;
use crate::kernel::sort::{Order, stable};
use crate::kernel::walk::{offsets, split};
use crate::op::{Grad, InferArgs, Inferred, KernelArgs, Meta, Op, Run, Saves};
use crate::ops::index::{SCATTER_ALONG, along_into};
use crate::ops::shape::with_size;
use crate::par::{Parallel, Serial};
use crate::rules::{IntoOperand, Sym, Vjp};
use crate::shape::{Shape, check_axis};
use crate::view::ViewMut;
use crate::{DType, Element, Error, Result, Scalar, attrs, with_type};
use smallvec::{SmallVec, smallvec};
use std::cmp::Reverse;

/// Whether `a` comes before `b`.
pub fn less<T: Order>(a: &T, b: &T) -> bool {
    a.key() < b.key()
}

attrs! {
    /// `axis`: the axis to sort along; `is_ascend`: least first.
    pub struct Sort { axis: i64 = -1, is_ascend: bool = true }
}

/// The axis of a call; an array without axes counts as one element along axis 0 or -1.
fn sort_axis(op: &'static str, axis: i64, shape: &[usize]) -> Result<usize> {
    check_axis(op, axis, shape.len().max(1))
}

/// The lines of a shape along an axis: where each begins, and its length and step.
struct Lines {
    starts: Vec<isize>,
    len: usize,
    step: isize,
}

impl Lines {
    fn new(layout: &crate::Layout, axis: usize) -> Lines {
        match layout.shape.get(axis) {
            None => Lines { starts: vec![0], len: 1, step: 1 },
            Some(&len) => {
                let rest: Shape = if len == 0 { smallvec![0] } else { with_size(&layout.shape, axis, 1) };
                let strides = if len == 0 { &[0][..] } else { &layout.strides };
                Lines { starts: offsets(&rest, strides), len, step: layout.strides[axis] }
            }
        }
    }
}

/// Calls `body(line, how)` for every line: a few long lines one after the other, each using all threads;
/// many lines beside each other.
fn each_line(par: &dyn Parallel, lines: &Lines, body: impl Fn(usize, &dyn Parallel) + Sync) {
    if lines.len > 1 << 16 {
        (0..lines.starts.len()).for_each(|line| body(line, par));
    } else {
        // Sorting costs tens of nanoseconds an element.
        split(par, lines.starts.len(), (4096 / lines.len.max(1)).max(1), |range| {
            range.for_each(|line| body(line, &Serial));
        });
    }
}

/// The elements of a line with their positions, in order.
fn ordered<T: Order>(
    from: Shared<T>,
    start: isize,
    lines: &Lines,
    ascending: bool,
    par: &dyn Parallel,
) -> Vec<(T::Key, usize)> {
    let mut items: Vec<(T::Key, usize)> =
        (0..lines.len).map(|i| (from.at_line(start, i, lines.step).key(), i)).collect();
    if ascending {
        stable(&mut items, |item| item.0, par);
    } else {
        stable(&mut items, |item| Reverse(item.0), par);
    }
    items
}

fn infer_argsort(a: &InferArgs) -> Result<Inferred> {
    let x = &a.ins[0];
    sort_axis(a.op, a.attrs.get::<Sort>().axis, &x.shape)?;
    Ok(Inferred { ins: smallvec![x.dtype], outs: smallvec![Meta::new(x.shape.clone(), DType::I64)] })
}

fn run_argsort(a: &KernelArgs) -> Result<()> {
    with_type!(all a.ins[0].dtype, T => argsort::<T>(a, None, &a.out(0)))
}

/// Writes positions to `indices` and, where asked, the elements to `values`.
fn argsort<T: Order>(a: &KernelArgs, values: Option<&ViewMut>, indices: &ViewMut) -> Result<()> {
    let (x, attrs) = (&a.ins[0], a.attrs.get::<Sort>());
    let axis = sort_axis(a.op, attrs.axis, &x.layout.shape)?;
    let (lines, targets) = (Lines::new(x.layout, axis), Lines::new(indices.layout, axis));
    let from = Shared(x.ptr::<T>().cast_mut());
    let to = Shared(indices.ptr::<i64>());
    let values = values.map(|v| Shared(v.ptr::<T>()));
    each_line(a.par, &lines, |line, par| {
        let items = ordered(from, lines.starts[line], &lines, attrs.is_ascend, par);
        for (i, &(_, position)) in items.iter().enumerate() {
            let at = targets.starts[line] + i as isize * targets.step;
            // SAFETY: offsets of the layouts; both outputs are contiguous and of one shape; lines are disjoint.
            unsafe {
                *to.at(at) = position as i64;
                if let Some(values) = values {
                    *values.at(at) = *from.at(lines.starts[line] + position as isize * lines.step);
                }
            }
        }
    });
    Ok(())
}

/// `argsort(x, axis)`: the positions that sort x, equal ones in order.
pub static ARGSORT: Op = Op {
    attrs: Sort::read,
    grad: Grad::Zero,
    heavy: true,
    ..Op::new("argsort", 1, infer_argsort, Run::Kernel(run_argsort))
};

fn infer_sort(a: &InferArgs) -> Result<Inferred> {
    let x = &a.ins[0];
    sort_axis(a.op, a.attrs.get::<Sort>().axis, &x.shape)?;
    let outs = smallvec![Meta::new(x.shape.clone(), x.dtype), Meta::new(x.shape.clone(), DType::I64)];
    Ok(Inferred { ins: smallvec![x.dtype], outs })
}

fn run_sort(a: &KernelArgs) -> Result<()> {
    let out = a.out(0);
    with_type!(all out.dtype, T => match &a.outs[1] {
        Some(positions) => argsort::<T>(a, Some(&out), positions),
        None => sort_values::<T>(a),
    })
}

fn sort_values<T: Order>(a: &KernelArgs) -> Result<()> {
    let (x, out, attrs) = (&a.ins[0], a.out(0), a.attrs.get::<Sort>());
    let axis = sort_axis(a.op, attrs.axis, &x.layout.shape)?;
    let (lines, targets) = (Lines::new(x.layout, axis), Lines::new(out.layout, axis));
    let (from, to) = (Shared(x.ptr::<T>().cast_mut()), Shared(out.ptr::<T>()));
    each_line(a.par, &lines, |line, par| {
        let read = |i| from.at_line(lines.starts[line], i, lines.step);
        let mut items: Vec<T> = (0..lines.len).map(read).collect();
        if attrs.is_ascend {
            stable(&mut items, |x| x.key(), par);
        } else {
            stable(&mut items, |x| Reverse(x.key()), par);
        }
        for (i, &item) in items.iter().enumerate() {
            // SAFETY: offsets of the output's layout; lines are disjoint.
            unsafe { *to.at(targets.starts[line] + i as isize * targets.step) = item };
        }
    });
    Ok(())
}

impl<T: Element> Shared<T> {
    /// Element `i` of a line of the input.
    fn at_line(self, start: isize, i: usize, step: isize) -> T {
        // SAFETY: called for the lines of this pointer's own layout only.
        unsafe { *self.at(start + i as isize * step) }
    }
}

/// The gradient of sorted or selected values goes back to where they came from.
fn back_along<'r>(v: &Vjp<'r>, g: Sym<'r>, axis: i64, positions: usize) -> SmallVec<[Option<Sym<'r>>; 3]> {
    let shape = v.shape(0);
    if shape.is_empty() {
        return smallvec![Some(g.reshape(shape))];
    }
    let axis = check_axis("", axis, shape.len()).unwrap_or(0);
    let into = along_into(axis, "raise", shape[axis]);
    smallvec![Some(g.apply(&SCATTER_ALONG, into, &[v.y(positions).operand()]))]
}

/// `sort(x, axis)`, with the positions as a hidden output for the gradient.
pub static SORT: Op = Op {
    attrs: Sort::read,
    grad: Grad::Vjp(|v| back_along(v, v.g(), v.attrs.get::<Sort>().axis, 1)),
    saves: Saves { inputs: 0, outputs: 0b10 },
    hidden: 1,
    heavy: true,
    ..Op::new("sort", 1, infer_sort, Run::Kernel(run_sort))
};

attrs! {
    /// `axis`, `k` (below 1: the whole axis), `ret_typ` (`value`, `indices`, `both` or `mask`), `is_ascend`
    /// (least first), and the `dtype` of indices.
    pub struct TopK {
        axis: i64 = -1,
        k: i64 = 1,
        ret_typ: String = "indices".into(),
        is_ascend: bool = false,
        dtype: DType = DType::F32,
    }
}

/// The greatest integer up to which a dtype holds every integer.
fn exact_integers(dtype: DType) -> i128 {
    match dtype {
        DType::F16 => 1 << 11,
        DType::BF16 => 1 << 8,
        DType::F32 => 1 << 24,
        DType::F64 => 1 << 53,
        other => other.int_range().map_or(0, |(_, high)| high),
    }
}

fn infer_topk(a: &InferArgs) -> Result<Inferred> {
    let attrs = a.attrs.get::<TopK>();
    let x = &a.ins[0];
    let axis = check_axis(a.op, attrs.axis, x.shape.len())?;
    let size = x.shape[axis];
    let k = if attrs.k < 1 { size } else { attrs.k as usize };
    if k > size {
        return Err(Error::value(a.op, format!("k={k} is more than the {size} elements along axis {axis}")));
    }
    if size as i128 - 1 > exact_integers(attrs.dtype) {
        let text = format!("dtype {} cannot hold every index of an axis of size {size}", attrs.dtype);
        return Err(Error::value(a.op, text).with_hint("pass dtype='int64'"));
    }
    let shape = with_size(&x.shape, axis, k);
    let (values, indices) = (Meta::new(shape.clone(), x.dtype), Meta::new(shape.clone(), attrs.dtype));
    let mut outs: SmallVec<[Meta; 2]> = match attrs.ret_typ.as_str() {
        "value" => smallvec![values],
        "indices" => smallvec![indices],
        "both" => smallvec![values, indices],
        "mask" => smallvec![Meta::new(x.shape.clone(), x.dtype)],
        other => {
            let text = format!("ret_typ must be 'value', 'indices', 'both' or 'mask', got '{other}'");
            return Err(Error::value(a.op, text));
        }
    };
    outs.push(Meta::new(shape, DType::I64));
    Ok(Inferred { ins: smallvec![x.dtype], outs })
}

fn run_topk(a: &KernelArgs) -> Result<()> {
    with_type!(all a.ins[0].dtype, T => topk::<T>(a))
}

fn topk<T: Order>(a: &KernelArgs) -> Result<()> {
    let (x, attrs) = (&a.ins[0], a.attrs.get::<TopK>());
    let axis = check_axis(a.op, attrs.axis, x.layout.ndim())?;
    let lines = Lines::new(x.layout, axis);
    let k = if attrs.k < 1 { lines.len } else { attrs.k as usize };
    let shape = with_size(&x.layout.shape, axis, k);
    let targets = Lines::new(&crate::Layout::contiguous(&shape), axis);
    let whole = Lines::new(&crate::Layout::contiguous(&x.layout.shape), axis);
    let (first, second) = (a.out(0), if attrs.ret_typ == "both" { Some(a.out(1)) } else { None });
    if attrs.ret_typ == "mask" {
        crate::kernel::moves::zero(&first, a.par);
    }
    let hidden = a.outs.get(if second.is_some() { 2 } else { 1 }).copied().flatten();
    let from = Shared(x.ptr::<T>().cast_mut());
    each_line(a.par, &lines, |line, par| {
        let items = selected::<T>(from, lines.starts[line], &lines, k, attrs.is_ascend, par);
        for (i, &(_, position)) in items.iter().enumerate() {
            let at = targets.starts[line] + i as isize * targets.step;
            let value = from.at_line(lines.starts[line], position, lines.step);
            match attrs.ret_typ.as_str() {
                "mask" => write_index(&first, whole.starts[line] + position as isize * whole.step, 1),
                "indices" => write_index(&first, at, position),
                // SAFETY: an offset of the contiguous output; lines are disjoint.
                _ => unsafe { *Shared(first.ptr::<T>()).at(at) = value },
            }
            if let Some(second) = &second {
                write_index(second, at, position);
            }
            if let Some(hidden) = &hidden {
                write_index(hidden, at, position);
            }
        }
    });
    Ok(())
}

/// The first `k` elements of a line in order; equal ones by position.
fn selected<T: Order>(
    from: Shared<T>,
    start: isize,
    lines: &Lines,
    k: usize,
    ascending: bool,
    par: &dyn Parallel,
) -> Vec<(T::Key, usize)> {
    if k * 4 > lines.len {
        let mut items = ordered(from, start, lines, ascending, par);
        items.truncate(k);
        return items;
    }
    let read = |i| (from.at_line(start, i, lines.step).key(), i);
    let mut items: Vec<(T::Key, usize)> = (0..lines.len).map(read).collect();
    let order = |a: &(T::Key, usize), b: &(T::Key, usize)| {
        let by_key = if ascending { a.0.cmp(&b.0) } else { b.0.cmp(&a.0) };
        by_key.then(a.1.cmp(&b.1))
    };
    if k > 0 && k < items.len() {
        items.select_nth_unstable_by(k - 1, order);
    }
    items.truncate(k);
    items.sort_unstable_by(order);
    items
}

/// Writes an integer at offset `at` of a contiguous output of any dtype.
fn write_index(out: &ViewMut, at: isize, index: usize) {
    let mut bytes = [0u8; 16];
    Scalar::Int(index as i128).write(out.dtype, &mut bytes);
    let size = out.dtype.size();
    // SAFETY: an offset of the contiguous output; lines are disjoint.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), out.start().offset(at * size as isize), size) };
}

fn grad_topk<'r>(v: &Vjp<'r>) -> SmallVec<[Option<Sym<'r>>; 3]> {
    let attrs = v.attrs.get::<TopK>();
    match (attrs.ret_typ.as_str(), v.heads[0]) {
        ("value" | "both", Some(g)) => back_along(v, g, attrs.axis, v.outs.len() - 1),
        _ => smallvec![None],
    }
}

/// `topk(x, axis, k, ret_typ, is_ascend, dtype)`: the k greatest (or least) elements along an axis, in order.
/// The positions are a hidden output for the gradient of the values.
pub static TOPK: Op = Op {
    attrs: TopK::read,
    grad: Grad::Vjp(grad_topk),
    // The hidden positions are output 1 or, with `both`, output 2.
    saves: Saves { inputs: 0, outputs: 0b110 },
    hidden: 1,
    heavy: true,
    ..Op::new("topk", 1, infer_topk, Run::Kernel(run_topk))
};

pub const OPS: &[&Op] = &[&SORT, &ARGSORT, &TOPK];
