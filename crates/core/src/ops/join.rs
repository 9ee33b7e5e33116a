//! Putting arrays together and repeating them: concatenate, stack, repeat, tile, roll, pad.

use crate::attrs::{Attrs, Ints};
use crate::kernel::moves::{self, Shared};
use crate::kernel::walk::{GRAIN, split};
use crate::op::{Arity, Grad, InferArgs, Inferred, KernelArgs, Meta, Op, Run};
use crate::ops::shape::{SLICE, basic, with_size};
use crate::promote::result_type;
use crate::rules::{IntoOperand, Operand, Sym, Vjp, call};
use crate::shape::{Shape, check_axis, checked_numel, display};
use crate::simd::stream;
use crate::view::ViewMut;
use crate::{Error, IndexItem, Layout, Result, attrs, grads};
use smallvec::{SmallVec, smallvec};

attrs! {
    /// `axis`: along which the arrays follow each other (stack: where the new axis goes).
    pub struct Join { axis: i64 = 0 }
}

/// The attributes of [`CONCATENATE`] and [`STACK`].
pub fn join(axis: usize) -> Attrs {
    Attrs::new(Join { axis: axis as i64 })
}

/// The index that takes `len` elements from `start` along `axis`.
pub fn range_index(shape: &[usize], axis: usize, start: usize, len: usize) -> SmallVec<[IndexItem; 6]> {
    let part = |i| if i == axis { (start, len) } else { (0, shape[i]) };
    (0..shape.len()).map(part).map(|(start, len)| IndexItem::Slice { start, step: 1, len }).collect()
}

fn infer_concatenate(a: &InferArgs) -> Result<Inferred> {
    let first = &a.ins[0].shape;
    if first.is_empty() {
        let text =
            format!("zero-dimensional arrays cannot be concatenated, got {} arrays of shape ()", a.ins.len());
        return Err(Error::value(a.op, text).with_hint("stack() joins them along a new axis"));
    }
    let axis = check_axis(a.op, a.attrs.get::<Join>().axis, first.len())?;
    let mut total = 0usize;
    for (i, x) in a.ins.iter().enumerate() {
        if x.shape.len() != first.len() {
            return Err(Error::value(
                a.op,
                format!(
                    "all the input array dimensions must match in number, but the array at index 0 has {} \
                     dimension(s) and the array at index {i} has {} dimension(s)",
                    first.len(),
                    x.shape.len()
                ),
            ));
        }
        if let Some(d) = (0..first.len()).find(|&d| d != axis && x.shape[d] != first[d]) {
            return Err(Error::value(
                a.op,
                format!(
                    "all the input array dimensions except for the concatenation axis must match exactly, but \
                     along dimension {d}, the array at index 0 has size {} and the array at index {i} has \
                     size {}",
                    first[d], x.shape[d]
                ),
            ));
        }
        total = total.saturating_add(x.shape[axis]);
    }
    joined(a, with_size(first, axis, total))
}

fn joined(a: &InferArgs, shape: Shape) -> Result<Inferred> {
    let dtype = result_type(a.op, a.ins, a.mode)?;
    checked_numel(a.op, &shape, dtype.size())?;
    Ok(Inferred { ins: SmallVec::from_elem(dtype, a.ins.len()), outs: smallvec![Meta::new(shape, dtype)] })
}

/// Copies input `i` to the part of the output that `index` selects.
fn place(a: &KernelArgs, i: usize, index: &[IndexItem]) {
    let out = a.out(0);
    let region = out.layout.index(index);
    // SAFETY: `region` selects elements of the output, which is valid for this run.
    let target = unsafe { ViewMut::new(out.base(), &region, out.dtype) };
    moves::copy(&a.ins[i], &target, a.par);
}

/// Copies inputs whose elements follow each other to a contiguous output, piece by piece: those of one input lie one
/// after the other in it, and as many bytes as a step of the output apart there. False where an input is not such.
fn join_pieces(a: &KernelArgs, outer: usize) -> bool {
    let (out, count) = (a.out(0), a.ins.len());
    let size = out.dtype.size();
    // Few pieces of few bytes each are planes, which `moves` copies a register at a time.
    let is_fine = count >= 8 || out.layout.size() * size >= 256 * count * outer;
    if outer == 0 || !is_fine || !a.ins.iter().all(|x| x.layout.is_contiguous()) {
        return false;
    }
    let past = 2 * out.layout.size() * size >= stream::LARGE;
    // The first byte of each input's piece in a row of the output, and at the end the bytes of a row.
    let mut starts: Vec<usize> = Vec::with_capacity(a.ins.len() + 1);
    let mut row = 0;
    for x in a.ins {
        starts.push(row);
        row += x.layout.size() / outer * size;
    }
    starts.push(row);
    let to = Shared(out.start());
    // Single long pieces are cut, so that threads share them.
    let block = row.div_ceil(row.div_ceil(BYTES).max(1)).max(1);
    split(a.par, outer * row.div_ceil(block), (BYTES / block).max(1), |range| {
        for unit in range {
            let blocks = row.div_ceil(block);
            let (o, first) = (unit / blocks, unit % blocks * block);
            let end = (first + block).min(row);
            let mut i = if first == 0 { 0 } else { starts.partition_point(|&start| start <= first) - 1 };
            while i < count && starts[i] < end {
                let (from, till) = (first.max(starts[i]), end.min(starts[i + 1]));
                // SAFETY: bytes of row `o` of input i and of the output, this unit's own there.
                unsafe {
                    let source = a.ins[i].start().add(o * (starts[i + 1] - starts[i]) + from - starts[i]);
                    let target = to.at((o * row + from) as isize);
                    if past && till - from >= 1 << 10 {
                        stream::copy(source, target, till - from);
                    } else {
                        std::ptr::copy_nonoverlapping(source, target, till - from);
                    }
                }
                i += 1;
            }
        }
        if past {
            stream::fence();
        }
    });
    true
}

/// Bytes that a thread copies at least.
const BYTES: usize = 4 * GRAIN;

fn run_concatenate(a: &KernelArgs) -> Result<()> {
    let shape = &a.out(0).layout.shape;
    let axis = check_axis(a.op, a.attrs.get::<Join>().axis, shape.len())?;
    if join_pieces(a, shape[..axis].iter().product()) {
        return Ok(());
    }
    let mut start = 0;
    for i in 0..a.ins.len() {
        let len = a.ins[i].layout.shape[axis];
        place(a, i, &range_index(shape, axis, start, len));
        start += len;
    }
    Ok(())
}

fn grad_concatenate<'r>(v: &Vjp<'r>) -> SmallVec<[Option<Sym<'r>>; 3]> {
    let g = v.g();
    let shape = g.shape();
    let axis = check_axis("", v.attrs.get::<Join>().axis, shape.len()).unwrap_or(0);
    let mut start = 0;
    (0..v.ins.len())
        .map(|i| {
            let len = v.shape(i)[axis];
            let index = range_index(&shape, axis, start, len);
            start += len;
            v.needs(i).then(|| g.with(&SLICE, basic(&index)))
        })
        .collect()
}

/// `concatenate(x0, x1, ...; axis)`.
pub static CONCATENATE: Op = Op {
    arity: Arity::AtLeast(1),
    attrs: Join::read,
    grad: Grad::Vjp(grad_concatenate),
    ..Op::new("concatenate", 1, infer_concatenate, Run::Kernel(run_concatenate))
};

fn infer_stack(a: &InferArgs) -> Result<Inferred> {
    let first = &a.ins[0].shape;
    let axis = check_axis(a.op, a.attrs.get::<Join>().axis, first.len() + 1)?;
    if let Some(other) = a.ins.iter().find(|x| x.shape != *first) {
        return Err(Error::value(
            a.op,
            format!(
                "all input arrays must have the same shape, got {} and {}",
                display(first),
                display(&other.shape)
            ),
        ));
    }
    let mut shape = first.clone();
    shape.insert(axis, a.ins.len());
    joined(a, shape)
}

/// The index of entry `i` along `axis`.
fn entry(axis: usize, i: usize, shape: &[usize]) -> SmallVec<[IndexItem; 6]> {
    let mut index = range_index(shape, axis, 0, 1);
    index[axis] = IndexItem::At(i);
    index
}

fn run_stack(a: &KernelArgs) -> Result<()> {
    let shape = &a.out(0).layout.shape;
    let axis = check_axis(a.op, a.attrs.get::<Join>().axis, shape.len())?;
    if join_pieces(a, shape[..axis].iter().product()) {
        return Ok(());
    }
    for i in 0..a.ins.len() {
        place(a, i, &entry(axis, i, shape));
    }
    Ok(())
}

fn grad_stack<'r>(v: &Vjp<'r>) -> SmallVec<[Option<Sym<'r>>; 3]> {
    let g = v.g();
    let shape = g.shape();
    let axis = check_axis("", v.attrs.get::<Join>().axis, shape.len()).unwrap_or(0);
    (0..v.ins.len()).map(|i| v.needs(i).then(|| g.with(&SLICE, basic(&entry(axis, i, &shape))))).collect()
}

/// `stack(x0, x1, ...; axis)`: joined along a new axis.
pub static STACK: Op = Op {
    arity: Arity::AtLeast(1),
    attrs: Join::read,
    grad: Grad::Vjp(grad_stack),
    ..Op::new("stack", 1, infer_stack, Run::Kernel(run_stack))
};

attrs! {
    /// `repeats`: how often each element stands in the result; `axis`: along which.
    pub struct Repeat { repeats: i64, axis: i64 }
}

/// The shapes of a repeat: with the new axis of size 1, stretched, and folded into `axis`.
fn repeat_shapes(op: &'static str, attrs: &Repeat, shape: &[usize]) -> Result<[Shape; 3]> {
    let axis = check_axis(op, attrs.axis, shape.len())?;
    let Ok(repeats) = usize::try_from(attrs.repeats) else {
        return Err(Error::value(op, format!("repeats may not be negative, got {}", attrs.repeats)));
    };
    let mut thin = Shape::from_slice(shape);
    thin.insert(axis + 1, 1);
    let wide = with_size(&thin, axis + 1, repeats);
    let Some(size) = shape[axis].checked_mul(repeats) else {
        return Err(Error::value(op, format!("repeats {repeats} make the array too big")));
    };
    Ok([thin, wide, with_size(shape, axis, size)])
}

fn infer_repeat(a: &InferArgs) -> Result<Inferred> {
    let [_, _, out] = repeat_shapes(a.op, a.attrs.get::<Repeat>(), &a.ins[0].shape)?;
    let dtype = a.ins[0].dtype;
    checked_numel(a.op, &out, dtype.size())?;
    Ok(Inferred { ins: smallvec![dtype], outs: smallvec![Meta::new(out, dtype)] })
}

/// `repeat(x, repeats, axis)`: each element repeated along an axis, the same number for all.
pub static REPEAT: Op = Op {
    attrs: Repeat::read,
    grad: Grad::Vjp(|v| {
        let axis = check_axis("", v.attrs.get::<Repeat>().axis, v.shape(0).len()).unwrap_or(0);
        match repeat_shapes("", v.attrs.get::<Repeat>(), v.shape(0)) {
            Ok([_, wide, _]) => grads!(v; v.g().reshape(&wide).sum(&[axis + 1], false)),
            Err(_) => smallvec![None],
        }
    }),
    ..Op::new(
        "repeat",
        1,
        infer_repeat,
        Run::Body(|attrs, _, x| match repeat_shapes("", attrs.get::<Repeat>(), &x[0].shape()) {
            Ok([thin, wide, out]) => smallvec![x[0].reshape(&thin).broadcast_to(&wide).reshape(&out)],
            Err(_) => smallvec![],
        }),
    )
};

attrs! {
    /// `reps`: how often the array stands along each axis of the result.
    pub struct Tile { reps: Ints }
}

/// The shapes of a tile: each axis with one of size 1 before it, those stretched, folded together.
fn tile_shapes(op: &'static str, reps: &[i64], shape: &[usize]) -> Result<[Shape; 3]> {
    let ndim = shape.len().max(reps.len());
    let (mut thin, mut wide, mut out) = (Shape::new(), Shape::new(), Shape::new());
    for i in 0..ndim {
        let n = (i + shape.len()).checked_sub(ndim).map_or(1, |k| shape[k]);
        let r = (i + reps.len()).checked_sub(ndim).map_or(1, |k| reps[k]);
        let Ok(r) = usize::try_from(r) else {
            return Err(Error::value(op, format!("negative dimensions are not allowed: reps {reps:?}")));
        };
        let Some(size) = n.checked_mul(r) else {
            return Err(Error::value(op, format!("reps {reps:?} make the array too big")));
        };
        thin.extend([1, n]);
        wide.extend([r, n]);
        out.push(size);
    }
    Ok([thin, wide, out])
}

fn infer_tile(a: &InferArgs) -> Result<Inferred> {
    let [_, _, out] = tile_shapes(a.op, &a.attrs.get::<Tile>().reps, &a.ins[0].shape)?;
    let dtype = a.ins[0].dtype;
    checked_numel(a.op, &out, dtype.size())?;
    Ok(Inferred { ins: smallvec![dtype], outs: smallvec![Meta::new(out, dtype)] })
}

/// `tile(x, reps)`: the whole array repeated along each axis.
pub static TILE: Op = Op {
    attrs: Tile::read,
    grad: Grad::Vjp(|v| match tile_shapes("", &v.attrs.get::<Tile>().reps, v.shape(0)) {
        Ok([_, wide, _]) => {
            let added: SmallVec<[usize; 6]> = (0..wide.len()).step_by(2).collect();
            grads!(v; v.g().reshape(&wide).sum(&added, false).reshape(v.shape(0)))
        }
        Err(_) => smallvec![None],
    }),
    ..Op::new(
        "tile",
        1,
        infer_tile,
        Run::Body(|attrs, _, x| match tile_shapes("", &attrs.get::<Tile>().reps, &x[0].shape()) {
            Ok([thin, wide, out]) => smallvec![x[0].reshape(&thin).broadcast_to(&wide).reshape(&out)],
            Err(_) => smallvec![],
        }),
    )
};

attrs! {
    /// `shift`: by how many places; `axis`: along which axes, one for each shift.
    pub struct Roll { shift: Ints, axis: Ints }
}

fn infer_roll(a: &InferArgs) -> Result<Inferred> {
    let Roll { shift, axis } = a.attrs.get::<Roll>();
    if shift.len() != axis.len() {
        return Err(Error::value(a.op, format!("got {} shifts for {} axes", shift.len(), axis.len())));
    }
    let x = &a.ins[0];
    for &axis in axis {
        check_axis(a.op, axis, x.shape.len())?;
    }
    Ok(Inferred { ins: smallvec![x.dtype], outs: smallvec![Meta::new(x.shape.clone(), x.dtype)] })
}

/// `roll(x, shift, axis)`: the elements moved along the axes, the last coming round to the front.
pub static ROLL: Op = Op {
    attrs: Roll::read,
    grad: Grad::Vjp(|v| {
        let Roll { shift, axis } = v.attrs.get::<Roll>();
        let back = Roll { shift: shift.iter().map(|s| s.wrapping_neg()).collect(), axis: axis.clone() };
        grads!(v; v.g().with(&ROLL, Attrs::new(back)))
    }),
    ..Op::new("roll", 1, infer_roll, Run::Kernel(run_roll))
};

/// Each axis is cut in two parts that change places: with k axes, 2^k blocks are copied.
fn run_roll(a: &KernelArgs) -> Result<()> {
    let Roll { shift, axis } = a.attrs.get::<Roll>();
    let (x, out) = (&a.ins[0], a.out(0));
    let shape = &x.layout.shape;
    let mut by: SmallVec<[usize; 6]> = smallvec![0; shape.len()];
    for (&shift, &axis) in shift.iter().zip(axis) {
        let axis = check_axis(a.op, axis, shape.len())?;
        let n = shape[axis].max(1);
        by[axis] = (by[axis] + shift.rem_euclid(n as i64) as usize) % n;
    }
    let moved: SmallVec<[usize; 6]> = (0..shape.len()).filter(|&i| by[i] != 0).collect();
    for block in 0..1usize << moved.len() {
        let mut from = range_index(shape, 0, 0, *shape.first().unwrap_or(&0));
        let mut to = from.clone();
        for (bit, &axis) in moved.iter().enumerate() {
            let (n, s) = (shape[axis], by[axis]);
            let (start, target, len) = if block >> bit & 1 == 0 { (0, s, n - s) } else { (n - s, 0, s) };
            from[axis] = IndexItem::Slice { start, step: 1, len };
            to[axis] = IndexItem::Slice { start: target, step: 1, len };
        }
        let (from, to): (Layout, Layout) = (x.layout.index(&from), out.layout.index(&to));
        // SAFETY: both layouts select elements of views that are valid for this run.
        let (from, to) = unsafe {
            (crate::view::View::new(x.base(), &from, x.dtype), ViewMut::new(out.base(), &to, out.dtype))
        };
        moves::copy(&from, &to, a.par);
    }
    Ok(())
}

attrs! {
    /// `pad_width`: (before, after) for each axis, flattened.
    pub struct Pad { pad_width: Ints }
}

/// The attributes of [`PAD`].
pub fn pad(widths: &[(usize, usize)]) -> Attrs {
    Attrs::new(Pad { pad_width: widths.iter().flat_map(|&(b, a)| [b as i64, a as i64]).collect() })
}

fn infer_pad(a: &InferArgs) -> Result<Inferred> {
    let x = &a.ins[0];
    let width = &a.attrs.get::<Pad>().pad_width;
    if width.len() != 2 * x.shape.len() {
        return Err(Error::value(
            a.op,
            format!("pad_width needs a pair for each of {} axes, got {width:?}", x.shape.len()),
        ));
    }
    if width.iter().any(|&w| w < 0) {
        return Err(Error::value(a.op, "index can't contain negative values"));
    }
    let shape: Shape = (0..x.shape.len())
        .map(|i| x.shape[i].saturating_add(width[2 * i] as usize).saturating_add(width[2 * i + 1] as usize))
        .collect();
    if !a.ins[1].shape.is_empty() {
        let text = format!(
            "the padding value must be one number, got an array of shape {}",
            display(&a.ins[1].shape)
        );
        return Err(Error::value(a.op, text));
    }
    crate::ops::shape::check_scalar_fits(a.op, x.dtype, &a.ins[1])?;
    checked_numel(a.op, &shape, x.dtype.size())?;
    Ok(Inferred { ins: smallvec![x.dtype, x.dtype], outs: smallvec![Meta::new(shape, x.dtype)] })
}

/// The index of the original elements in the padded array.
fn inside(attrs: &Attrs, shape: &[usize]) -> SmallVec<[IndexItem; 6]> {
    let width = &attrs.get::<Pad>().pad_width;
    (0..shape.len())
        .map(|i| IndexItem::Slice { start: width[2 * i] as usize, step: 1, len: shape[i] })
        .collect()
}

fn run_pad(a: &KernelArgs) -> Result<()> {
    let (out, value) = (a.out(0), &a.ins[1]);
    if let Some(spread) = value.layout.broadcast_to(&out.layout.shape) {
        // SAFETY: the one element of the value, repeated by strides of 0.
        let everywhere = unsafe { crate::view::View::new(value.base(), &spread, value.dtype) };
        moves::copy(&everywhere, &out, a.par);
    }
    place(a, 0, &inside(a.attrs, &a.ins[0].layout.shape));
    Ok(())
}

/// `pad(x, value, pad_width)`: x with `value` around it.
pub static PAD: Op = Op {
    attrs: Pad::read,
    grad: Grad::Vjp(|v| {
        let index = inside(v.attrs, v.shape(0));
        grads!(v;
            v.g().with(&SLICE, basic(&index)),
            {
                let border = v.g().apply(&crate::ops::shape::SLICE_ASSIGN, basic(&index),
                    &[Operand::Scalar(crate::Scalar::Int(0))]);
                border.sum_to(&[])
            },
        )
    }),
    ..Op::new("pad", 2, infer_pad, Run::Kernel(run_pad))
};

/// `concatenate` in a formula.
pub fn concatenated<'r>(parts: &[Sym<'r>], axis: usize) -> Sym<'r> {
    let ins: SmallVec<[Operand; 4]> = parts.iter().map(|p| p.operand()).collect();
    call(parts[0].rules(), &CONCATENATE, join(axis), &ins)
}

pub const OPS: &[&Op] = &[&CONCATENATE, &STACK, &REPEAT, &TILE, &ROLL, &PAD];
