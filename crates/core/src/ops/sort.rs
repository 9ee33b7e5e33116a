//! Sorting along an axis: sort, argsort, topk. All are stable, with NaN as the greatest value.

use crate::kernel::lines::{self, Lines, Placed};
use crate::kernel::moves::Shared;
use crate::kernel::radix::Key;
use crate::kernel::select;
use crate::kernel::sort::Order;
use crate::op::{Grad, InferArgs, Inferred, KernelArgs, Meta, Op, Run, Saves};
use crate::ops::index::{SCATTER_ALONG, along_into};
use crate::ops::shape::with_size;
use crate::rules::{IntoOperand, Sym, Vjp};
use crate::shape::check_axis;
use crate::view::ViewMut;
use crate::{DType, Element, Error, Layout, Result, Scalar, attrs, with_type};
use smallvec::{SmallVec, smallvec};

attrs! {
    /// `axis`: the axis to sort along; `is_ascend`: least first.
    pub struct Sort { axis: i64 = -1, is_ascend: bool = true }
}

/// The axis of a call; an array without axes counts as one element along axis 0 or -1.
fn sort_axis(op: &'static str, axis: i64, shape: &[usize]) -> Result<usize> {
    check_axis(op, axis, shape.len().max(1))
}

fn infer_argsort(a: &InferArgs) -> Result<Inferred> {
    let x = &a.ins[0];
    sort_axis(a.op, a.attrs.get::<Sort>().axis, &x.shape)?;
    Ok(Inferred { ins: smallvec![x.dtype], outs: smallvec![Meta::new(x.shape.clone(), DType::I64)] })
}

fn run_argsort(a: &KernelArgs) -> Result<()> {
    with_type!(all a.ins[0].dtype, T => argsort::<T>(a, None, Some(&a.out(0))))
}

/// Where sorted elements and their positions go; all are of one shape, the outputs contiguous.
struct Sorted<'a, T> {
    from: Shared<T>,
    lines: &'a Lines,
    targets: &'a Lines,
    values: Option<Shared<T>>,
    positions: Option<Shared<i64>>,
}

impl<T: Element> Sorted<'_, T> {
    /// Writes what comes to `start..` of a line.
    fn write<P: Placed>(&self, line: usize, start: usize, items: &[P]) {
        let (first, step) = (self.targets.at(line, start), self.targets.step);
        if let Some(to) = self.positions {
            for (i, item) in items.iter().enumerate() {
                // SAFETY: an offset of the contiguous output; lines are disjoint.
                unsafe { *to.at(first + i as isize * step) = item.place() as i64 };
            }
        }
        if let Some(to) = self.values {
            for (i, item) in items.iter().enumerate() {
                // SAFETY: as above.
                unsafe {
                    *to.at(first + i as isize * step) = self.from.read(self.lines.at(line, item.place()))
                };
            }
        }
    }
}

/// Writes positions to `indices` and the elements to `values`, where asked.
fn argsort<T: Order>(a: &KernelArgs, values: Option<&ViewMut>, indices: Option<&ViewMut>) -> Result<()> {
    let (x, attrs) = (&a.ins[0], a.attrs.get::<Sort>());
    let axis = sort_axis(a.op, attrs.axis, &x.layout.shape)?;
    let lines = Lines::new(x.layout, axis);
    let sorted = Sorted {
        from: Shared(x.ptr::<T>().cast_mut()),
        lines: &lines,
        targets: &Lines::new(&Layout::contiguous(&x.layout.shape), axis),
        values: values.map(|v| Shared(v.ptr::<T>())),
        positions: indices.map(|v| Shared(v.ptr::<i64>())),
    };
    if lines::has_places::<T>(&lines) {
        return lines::sorted::<T, T::Placed>(
            a.op,
            x,
            &lines,
            attrs.is_ascend,
            a.par,
            |line, start, items| {
                sorted.write(line, start, items);
            },
        );
    }
    lines::sorted_places::<T>(x, &lines, attrs.is_ascend, a.par, |line, items| sorted.write(line, 0, items));
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
        // Equal keys of different elements keep their order, so their places must be known.
        Some(positions) => argsort::<T>(a, Some(&out), Some(positions)),
        None if !T::HAS_BITS || lines::has_merged::<T>(&a.ins[0], a.par) => argsort::<T>(a, Some(&out), None),
        None => sort_values::<T>(a),
    })
}

fn sort_values<T: Order>(a: &KernelArgs) -> Result<()> {
    let (x, out, attrs) = (&a.ins[0], a.out(0), a.attrs.get::<Sort>());
    let axis = sort_axis(a.op, attrs.axis, &x.layout.shape)?;
    let (lines, targets) = (Lines::new(x.layout, axis), Lines::new(out.layout, axis));
    let (to, ascending) = (Shared(out.ptr::<T>()), attrs.is_ascend);
    let flip = if ascending { T::Bits::default() } else { T::Bits::MAX };
    lines::sorted::<T, T::Bits>(a.op, x, &lines, ascending, a.par, |line, start, items| {
        let (first, step) = (targets.at(line, start), targets.step);
        // SAFETY: offsets of the output's layout; lines are disjoint.
        unsafe {
            if step == 1 {
                let row = std::slice::from_raw_parts_mut(to.at(first), items.len());
                row.iter_mut().zip(items).for_each(|(to, bits)| *to = T::from_bits(bits.flip(flip)));
            } else {
                for (i, bits) in items.iter().enumerate() {
                    *to.at(first + i as isize * step) = T::from_bits(bits.flip(flip));
                }
            }
        }
    })
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
    let kind = attrs.ret_typ.as_str();
    let (value, mask) = (matches!(kind, "value" | "both"), kind == "mask");
    let put = number_writer(first.dtype);
    let others = [second, hidden].map(|out| out.map(|out| (Shared(out.start()), number_writer(out.dtype))));
    let first = Shared(first.start());
    select::first_places::<T>(a.op, x, &lines, k, attrs.is_ascend, a.par, |line, i, place| {
        let at = targets.at(line, i);
        // SAFETY: offsets of the contiguous outputs, of their dtypes; lines are disjoint.
        unsafe {
            if value {
                *first.at(0).cast::<T>().offset(at) = from.read(lines.at(line, place));
            } else if mask {
                put(first.at(0), whole.at(line, place), 1);
            } else {
                put(first.at(0), at, place);
            }
            for (to, put) in others.iter().flatten() {
                put(to.at(0), at, place);
            }
        }
    })
}

/// Writes an integer as element `at` of memory of a dtype.
type WriteNumber = unsafe fn(*mut u8, isize, usize);

/// How to write an integer to an array of a dtype.
fn number_writer(dtype: DType) -> WriteNumber {
    /// # Safety
    /// `to` has an element `at` of the type.
    unsafe fn write<T: Element>(to: *mut u8, at: isize, number: usize) {
        let mut bytes = [0u8; 16];
        Scalar::Int(number as i128).write(T::DTYPE, &mut bytes);
        // SAFETY: the caller's.
        unsafe { *to.cast::<T>().offset(at) = bytemuck::pod_read_unaligned(&bytes[..size_of::<T>()]) };
    }
    match dtype {
        // SAFETY: the caller's.
        DType::I64 => |to, at, number| unsafe { *to.cast::<i64>().offset(at) = number as i64 },
        // SAFETY: the caller's.
        DType::F32 => |to, at, number| unsafe { *to.cast::<f32>().offset(at) = number as f32 },
        other => with_type!(all other, T => write::<T>),
    }
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
