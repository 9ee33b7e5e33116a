//! Indexing by arrays: get, assign and accumulate at integer indices, and what is made of them. Basic
//! indices (slices) are views, in `shape`; boolean masks become integers by `nonzero`, except where one is all of
//! the index (`mask`).

use crate::attrs::{Attrs, Ints};
use crate::kernel::gather::{self, Add, Rows};
use crate::kernel::moves::{self, Shared, dense};
use crate::kernel::places::{Axis, Bound, Places, places};
use crate::kernel::walk::{GRAIN, split};
use crate::layout::contiguous_strides;
use crate::op::{Arity, Grad, InferArgs, Inferred, KernelArgs, Meta, Op, Run, Saves, Writes};
use crate::ops::shape::check_scalar_fits;
use crate::rules::{IntoOperand, Operand, Sym, Vjp};
use crate::shape::{Shape, broadcast, check_axis, checked_numel, display};
use crate::view::{View, ViewMut};
use crate::{DType, Error, Layout, Result, Scalar, attrs, bf16, f16, with_type};
use smallvec::{SmallVec, smallvec};

mod along;
mod mask;
mod search;

pub use along::{PICK, SCATTER_ALONG, TAKE_ALONG_AXIS, along, along_into};
pub use mask::{MASK_GET, MASK_PUT, MASK_SPREAD, masked};
pub use search::{COUNT_NONZERO, NONZERO, ONE_HOT, SEARCHSORTED};

attrs! {
    /// `axis`: the first indexed axis (index array k counts along `axis + k`); `mode`: what becomes of
    /// indices out of range, `raise`, `clip` or `wrap`; `names`: the axes' numbers in error messages.
    pub struct At { axis: i64 = 0, mode: String = "raise".into(), names: Option<Ints> = None }
}

attrs! {
    /// [`At`], with the `shape` of the array that is indexed.
    pub struct AtInto { axis: i64 = 0, mode: String = "raise".into(), shape: Shape }
}

/// The attributes of [`INDEX_GET`], [`TAKE`] and the like.
pub fn at(axis: usize, mode: &str) -> Attrs {
    Attrs::new(At { axis: axis as i64, mode: mode.into(), names: None })
}

/// The attributes of [`SCATTER_ADD`].
pub fn at_into(axis: usize, mode: &str, shape: &[usize]) -> Attrs {
    Attrs::new(AtInto { axis: axis as i64, mode: mode.into(), shape: shape.into() })
}

/// Reads a mode: NumPy's `raise`, `clip` and `wrap`, or `strict`, for which a negative index is out of range.
pub fn bound(op: &'static str, mode: &str) -> Result<Bound> {
    match mode {
        "raise" => Ok(Bound::Raise),
        "clip" => Ok(Bound::Clip),
        "wrap" => Ok(Bound::Wrap),
        "strict" => Ok(Bound::Strict),
        _ => Err(Error::value(op, format!("mode must be 'raise', 'strict', 'clip' or 'wrap', got '{mode}'"))),
    }
}

/// Accepts integers, and floats (truncated toward zero) where MXNet's dtypes hold: labels are floats there.
pub fn check_index_dtype(a: &InferArgs, index: &Meta) -> Result<()> {
    let fine = match index.dtype {
        d if d.is_integer() => true,
        d if d.is_float() => !a.mode.numpy_dtype,
        _ => false,
    };
    if fine {
        return Ok(());
    }
    let text = format!("arrays used as indices must be of integer (or boolean) type, got {}", index.dtype);
    let error = Error::new(crate::error::ErrorKind::Index, a.op, text);
    Err(if index.dtype == DType::Bool { error.with_hint("nonzero turns a mask into indices") } else { error })
}

/// What an index selects: the first indexed axis, the shape the index arrays broadcast to, and the result's.
fn selection(a: &InferArgs, axis: i64, x: &[usize], indices: &[Meta]) -> Result<(usize, Shape)> {
    let count = indices.len();
    if count > x.len() {
        return Err(Error::new(
            crate::error::ErrorKind::Index,
            a.op,
            format!("too many indices: array is {}-dimensional, but {count} were indexed", x.len()),
        ));
    }
    let axis = check_axis(a.op, axis, x.len())?;
    if axis + count > x.len() {
        return Err(Error::Axis { op: a.op, axis: (axis + count - 1) as i64, ndim: x.len() });
    }
    indices.iter().try_for_each(|index| check_index_dtype(a, index))?;
    let shapes: SmallVec<[&[usize]; 4]> = indices.iter().map(|m| m.shape.as_slice()).collect();
    let middle = broadcast(a.op, &shapes).map_err(|_| {
        let shown: Vec<String> = shapes.iter().map(|s| display(s).replace(", ", ",")).collect();
        Error::new(
            crate::error::ErrorKind::Index,
            a.op,
            format!(
                "shape mismatch: indexing arrays could not be broadcast together with shapes {}",
                shown.join(" ")
            ),
        )
    })?;
    let mut shape = Shape::from_slice(&x[..axis]);
    shape.extend_from_slice(&middle);
    shape.extend_from_slice(&x[axis + count..]);
    Ok((axis, shape))
}

/// The shape of the index arrays together, in a call that `infer` has passed.
fn middle(indices: &[View]) -> Shape {
    let shapes: SmallVec<[&[usize]; 4]> = indices.iter().map(|v| v.layout.shape.as_slice()).collect();
    broadcast("", &shapes).unwrap_or_default()
}

/// Checked places of the index arrays in an array of `layout`, and its rows around them.
fn resolve(
    a: &KernelArgs,
    layout: &Layout,
    indices: &[View],
    axis: i64,
    mode: &str,
    names: Option<&[i64]>,
) -> Result<(Rows, Places)> {
    let axis = check_axis(a.op, axis, layout.ndim())?;
    let axes: SmallVec<[Axis; 4]> = (0..indices.len())
        .map(|k| Axis {
            size: layout.shape[axis + k],
            stride: layout.strides[axis + k],
            number: names.and_then(|n| n.get(k)).map_or(axis + k, |&n| n as usize),
        })
        .collect();
    let found = places(a.op, indices, &middle(indices), &axes, bound(a.op, mode)?, a.par)?;
    Ok((Rows::new(layout, axis, indices.len()), found))
}

/// The dtypes of an array (and a value of the same) followed by index arrays.
fn with_indices(dtypes: &[DType], count: usize) -> SmallVec<[DType; 4]> {
    let mut ins: SmallVec<[DType; 4]> = dtypes.into();
    ins.extend(std::iter::repeat_n(DType::I64, count));
    ins
}

fn infer_get(a: &InferArgs) -> Result<Inferred> {
    let At { axis, mode, .. } = a.attrs.get::<At>();
    bound(a.op, mode)?;
    let (_, shape) = selection(a, *axis, &a.ins[0].shape, &a.ins[1..])?;
    let dtype = a.ins[0].dtype;
    checked_numel(a.op, &shape, dtype.size())?;
    Ok(Inferred { ins: with_indices(&[dtype], a.ins.len() - 1), outs: smallvec![Meta::new(shape, dtype)] })
}

fn run_get(a: &KernelArgs) -> Result<()> {
    let At { axis, mode, names } = a.attrs.get::<At>();
    let (rows, found) = resolve(a, a.ins[0].layout, &a.ins[1..], *axis, mode, names.as_deref())?;
    gather::gather(&a.ins[0], &rows, &found, &a.out(0), a.tail, a.par);
    Ok(())
}

/// The saved index arrays, as operands.
fn indices_of(v: &Vjp, first: usize) -> SmallVec<[Operand; 4]> {
    (first..v.ins.len()).map(|i| v.x(i).operand()).collect()
}

/// Gradients of the first inputs; indices have none.
fn then_none<'r>(first: SmallVec<[Option<Sym<'r>>; 3]>, count: usize) -> SmallVec<[Option<Sym<'r>>; 3]> {
    let mut out = first;
    out.resize(count, None);
    out
}

fn grad_get<'r>(v: &Vjp<'r>) -> SmallVec<[Option<Sym<'r>>; 3]> {
    let At { axis, mode, .. } = v.attrs.get::<At>();
    let into = Attrs::new(AtInto { axis: *axis, mode: mode.clone(), shape: v.shape(0).clone() });
    let gx = v.needs(0).then(|| v.g().apply(&SCATTER_ADD, into, &indices_of(v, 1)));
    then_none(smallvec![gx], v.ins.len())
}

/// `index_get(x, i0, i1, ...)`: integer arrays, broadcast together, index consecutive axes of x.
pub static INDEX_GET: Op = Op {
    arity: Arity::AtLeast(2),
    attrs: At::read,
    grad: Grad::Vjp(grad_get),
    saves: Saves { inputs: !1, outputs: 0 },
    tail: true,
    ..Op::new("index_get", 2, infer_get, Run::Kernel(run_get))
};

/// `take(x, indices, axis, mode)`.
pub static TAKE: Op = Op {
    attrs: At::read,
    grad: Grad::Vjp(grad_get),
    saves: Saves { inputs: 0b10, outputs: 0 },
    tail: true,
    ..Op::new("take", 2, infer_get, Run::Kernel(run_get))
};

fn infer_scatter_add(a: &InferArgs) -> Result<Inferred> {
    let AtInto { axis, mode, shape } = a.attrs.get::<AtInto>();
    bound(a.op, mode)?;
    let (_, selected) = selection(a, *axis, shape, &a.ins[1..])?;
    let g = &a.ins[0];
    if Layout::contiguous(&g.shape).broadcast_to(&selected).is_none() {
        return Err(Error::Broadcast { op: a.op, shapes: vec![g.shape.clone(), selected] });
    }
    checked_numel(a.op, shape, g.dtype.size())?;
    Ok(Inferred {
        ins: with_indices(&[g.dtype], a.ins.len() - 1),
        outs: smallvec![Meta::new(shape.clone(), g.dtype)],
    })
}

fn run_scatter_add(a: &KernelArgs) -> Result<()> {
    let AtInto { axis, mode, .. } = a.attrs.get::<AtInto>();
    let out = a.out(0);
    let (rows, found) = resolve(a, out.layout, &a.ins[1..], *axis, mode, None)?;
    let axis = check_axis(a.op, *axis, out.layout.ndim())?;
    let selected = selected_shape(&out.layout.shape, axis, &a.ins[1..]);
    let (values, one) = as_rows(&a.ins[0], &selected, out.layout.ndim() - axis - (a.ins.len() - 1));
    // SAFETY: the same memory as the input, repeated by strides of 0.
    let values = unsafe { View::new(a.ins[0].base(), &values, a.ins[0].dtype) };
    match out.dtype {
        DType::F16 => add_rounded::<f16>(a, &values, one, &rows, &found, f16::to_f32, f16::from_f32),
        DType::BF16 => add_rounded::<bf16>(a, &values, one, &rows, &found, bf16::to_f32, bf16::from_f32),
        dtype => with_type!(all dtype, T => {
            moves::zero(&out, a.par);
            let values = dense::<T>(&values, a.par);
            // SAFETY: the output is this run's; its places were checked.
            unsafe { gather::scatter_add(out.ptr::<T>(), &rows, &found, &values, one, a.par) }
        }),
    }
    Ok(())
}

/// Adds up in float32 and rounds once.
fn add_rounded<T: Add>(
    a: &KernelArgs,
    values: &View,
    one: bool,
    rows: &Rows,
    found: &Places,
    widen: fn(T) -> f32,
    round: fn(f32) -> T,
) {
    let out = a.out(0);
    let values: Vec<f32> = dense::<T>(values, a.par).iter().map(|&v| widen(v)).collect();
    let mut sums = vec![0f32; out.layout.size()];
    // SAFETY: the output is contiguous, so its places are places of `sums` too.
    unsafe { gather::scatter_add(sums.as_mut_ptr(), rows, found, &values, one, a.par) };
    let to = Shared(out.ptr::<T>());
    split(a.par, sums.len(), GRAIN, |range| {
        for i in range {
            // SAFETY: element i of the contiguous output, this chunk's own.
            unsafe { *to.at(i as isize) = round(sums[i]) };
        }
    });
}

/// The layout of a view broadcast to `shape`, whose last `inner` axes are a row; or, with true, of its one row where
/// all are the same.
fn as_rows(view: &View, shape: &[usize], inner: usize) -> (Layout, bool) {
    let all = spread(view, shape);
    let outer = shape.len() - inner;
    if !all.strides[..outer].iter().zip(shape).all(|(&stride, &n)| stride == 0 || n == 1) {
        return (all, false);
    }
    let (shape, strides) = (all.shape[outer..].into(), all.strides[outer..].into());
    (Layout { shape, strides, offset: all.offset }, true)
}

/// The shape that index arrays select from an array of `shape`.
fn selected_shape(shape: &[usize], axis: usize, indices: &[View]) -> Shape {
    let mut out = Shape::from_slice(&shape[..axis]);
    out.extend_from_slice(&middle(indices));
    out.extend_from_slice(&shape[axis + indices.len()..]);
    out
}

/// The view's layout broadcast to `shape`, which `infer` has checked.
fn spread(view: &View, shape: &[usize]) -> Layout {
    view.layout.broadcast_to(shape).unwrap_or_else(|| Layout::contiguous(shape))
}

/// `scatter_add(g, i0, i1, ...; shape)`: zeros of `shape` with g added up at the indices, in their order; the
/// gradient of [`INDEX_GET`] and [`TAKE`].
pub static SCATTER_ADD: Op = Op {
    arity: Arity::AtLeast(2),
    attrs: AtInto::read,
    grad: Grad::Vjp(|v| {
        let AtInto { axis, mode, .. } = v.attrs.get::<AtInto>();
        let at = Attrs::new(At { axis: *axis, mode: mode.clone(), names: None });
        let g = v.needs(0).then(|| v.g().apply(&INDEX_GET, at, &indices_of(v, 1)).sum_to(v.shape(0)));
        then_none(smallvec![g], v.ins.len())
    }),
    saves: Saves { inputs: !1, outputs: 0 },
    ..Op::new("scatter_add", 2, infer_scatter_add, Run::Kernel(run_scatter_add))
};

/// `(x, value, i0, ...)`: the value must broadcast to what the indices select.
fn check_assign(a: &InferArgs) -> Result<SmallVec<[DType; 4]>> {
    let At { axis, mode, .. } = a.attrs.get::<At>();
    bound(a.op, mode)?;
    let (x, value) = (&a.ins[0], &a.ins[1]);
    let (_, selected) = selection(a, *axis, &x.shape, &a.ins[2..])?;
    if Layout::contiguous(&value.shape).broadcast_to(&selected).is_none() {
        return Err(Error::value(
            a.op,
            format!(
                "shape mismatch: value array of shape {} could not be broadcast to indexing result of shape {}",
                display(&value.shape),
                display(&selected)
            ),
        ));
    }
    check_scalar_fits(a.op, x.dtype, value)?;
    Ok(with_indices(&[x.dtype, x.dtype], a.ins.len() - 2))
}

/// Writes the value to the indexed places of `target`; nothing is written where an index is out of range.
/// With `before`, runs it between the check and the stores.
fn assign(a: &KernelArgs, target: &ViewMut, before: impl FnOnce()) -> Result<()> {
    let At { axis, mode, names } = a.attrs.get::<At>();
    let indices = &a.ins[2..];
    let (rows, found) = resolve(a, target.layout, indices, *axis, mode, names.as_deref())?;
    let axis = check_axis(a.op, *axis, target.layout.ndim())?;
    let value = &a.ins[1];
    let selected = selected_shape(&target.layout.shape, axis, indices);
    let (layout, one) = as_rows(value, &selected, target.layout.ndim() - axis - indices.len());
    // SAFETY: the same memory as the input, repeated by strides of 0.
    let values = unsafe { View::new(value.base(), &layout, value.dtype) };
    with_type!(all value.dtype, T => {
        let mut values = dense::<T>(&values, a.par);
        if overlaps(value, target) {
            values.to_mut();
        }
        before();
        gather::scatter(target, &rows, &found, values.as_ptr().cast(), one, a.par);
    });
    Ok(())
}

/// Whether reading one may see what writing the other stores.
fn overlaps(x: &View, y: &ViewMut) -> bool {
    let span = |base: *const u8, layout: &Layout, size: usize| {
        layout.bounds().map(|(low, high)| (base as usize + low * size, base as usize + (high + 1) * size))
    };
    match (span(x.base(), x.layout, x.dtype.size()), span(y.base(), y.layout, y.dtype.size())) {
        (Some((a, b)), Some((c, d))) => a < d && c < b,
        _ => false,
    }
}

/// `index_put(x, value, i0, i1, ...)`: x[i0, i1, ...] = value, in place; of equal indices the last counts.
pub static INDEX_PUT: Op = Op {
    arity: Arity::AtLeast(3),
    attrs: At::read,
    grad: Grad::None("an in-place write; index_assign is its recorded form"),
    writes: Writes::These(&[0]),
    ..Op::new(
        "index_put",
        3,
        |a| Ok(Inferred { ins: check_assign(a)?, outs: smallvec![] }),
        Run::Kernel(|a| match a.outs.last() {
            Some(Some(target)) => assign(a, target, || {}),
            _ => Err(Error::new(crate::error::ErrorKind::Internal, a.op, "got no array to write to")),
        }),
    )
};

/// `index_assign(x, value, i0, i1, ...)`: x with the value at the indices, as a new array.
pub static INDEX_ASSIGN: Op = Op {
    arity: Arity::AtLeast(3),
    attrs: At::read,
    grad: Grad::Vjp(|v| {
        let indices = indices_of(v, 2);
        let gx = v.needs(0).then(|| {
            let mut others: SmallVec<[Operand; 4]> = smallvec![Operand::Scalar(Scalar::Int(0))];
            others.extend_from_slice(&indices);
            v.g().apply(&INDEX_ASSIGN, v.attrs.clone(), &others)
        });
        let gv =
            v.needs(1).then(|| v.g().apply(&INDEX_GET_LAST, v.attrs.clone(), &indices).sum_to(v.shape(1)));
        then_none(smallvec![gx, gv], v.ins.len())
    }),
    saves: Saves { inputs: !0b11, outputs: 0 },
    ..Op::new(
        "index_assign",
        3,
        |a| {
            let out = Meta::new(a.ins[0].shape.clone(), a.ins[0].dtype);
            Ok(Inferred { ins: check_assign(a)?, outs: smallvec![out] })
        },
        Run::Kernel(|a| {
            let out = a.out(0);
            assign(a, &out, || moves::copy(&a.ins[0], &out, a.par))
        }),
    )
};

fn run_get_last(a: &KernelArgs) -> Result<()> {
    run_get(a)?;
    let At { axis, mode, .. } = a.attrs.get::<At>();
    let axis = check_axis(a.op, *axis, a.ins[0].layout.ndim())?;
    let indices = &a.ins[1..];
    let indexed = &a.ins[0].layout.shape[axis..axis + indices.len()];
    let strides = contiguous_strides(indexed);
    let axes: SmallVec<[Axis; 4]> =
        (0..indices.len()).map(|k| Axis { size: indexed[k], stride: strides[k], number: axis + k }).collect();
    let found = places(a.op, indices, &middle(indices), &axes, bound(a.op, mode)?, a.par)?;
    let mut last = vec![usize::MAX; indexed.iter().product()];
    for (p, &place) in found.iter().enumerate() {
        last[place as usize] = p;
    }
    let out = a.out(0);
    let outer: usize = a.ins[0].layout.shape[..axis].iter().product();
    let width: usize = a.ins[0].layout.shape[axis + indices.len()..].iter().product();
    let bytes = width * out.dtype.size();
    for o in 0..outer {
        for (p, &place) in found.iter().enumerate() {
            if last[place as usize] != p {
                // SAFETY: row (o, p) of the contiguous output.
                unsafe { std::ptr::write_bytes(out.start().add((o * found.len() + p) * bytes), 0, bytes) };
            }
        }
    }
    Ok(())
}

/// `index_get` with zeros at positions whose place a later position names too: what an assignment's value
/// gets of the gradient. Private to gradients.
pub static INDEX_GET_LAST: Op = Op {
    arity: Arity::AtLeast(2),
    attrs: At::read,
    grad: Grad::Vjp(|v| {
        let gx = v.needs(0).then(|| {
            let meta = &v.ins[0].0;
            let zero = [0.0f64.operand()];
            let attrs = crate::ops::create::full(&meta.shape, meta.dtype);
            let zeros = crate::rules::call(v.rules, &crate::ops::create::FULL, attrs, &zero);
            let mut others: SmallVec<[Operand; 4]> = smallvec![v.g().operand()];
            others.extend(indices_of(v, 1));
            zeros.apply(&INDEX_ASSIGN, v.attrs.clone(), &others)
        });
        then_none(smallvec![gx], v.ins.len())
    }),
    saves: Saves { inputs: !1, outputs: 0 },
    ..Op::new("index_get_last", 2, infer_get, Run::Kernel(run_get_last))
};

pub const OPS: &[&Op] = &[
    &INDEX_GET,
    &TAKE,
    &SCATTER_ADD,
    &INDEX_PUT,
    &INDEX_ASSIGN,
    &INDEX_GET_LAST,
    &TAKE_ALONG_AXIS,
    &SCATTER_ALONG,
    &PICK,
    &MASK_GET,
    &MASK_SPREAD,
    &MASK_PUT,
    &NONZERO,
    &COUNT_NONZERO,
    &ONE_HOT,
    &SEARCHSORTED,
];
