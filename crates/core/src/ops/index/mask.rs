//! A mask as the only index: reading, spreading and assigning the entries where it holds. Their number is an attribute,
//! which [`COUNT_NONZERO`](super::COUNT_NONZERO) finds.

use super::{overlaps, spread};
use crate::attrs::Attrs;
use crate::error::ErrorKind;
use crate::kernel::bits::{counts_before, each_set};
use crate::kernel::moves::{self, Shared, dense};
use crate::kernel::walk::{GRAIN, offsets, split};
use crate::op::{Grad, InferArgs, Inferred, KernelArgs, Meta, Op, Run, Saves, Writes};
use crate::ops::shape::check_scalar_fits;
use crate::rules::IntoOperand;
use crate::shape::{Shape, checked_numel, display};
use crate::view::{View, ViewMut};
use crate::{Bool, DType, Error, Layout, Result, attrs, with_type, with_word};
use smallvec::{SmallVec, smallvec};

attrs! {
    /// `count`: in how many places the mask holds.
    pub struct Masked { count: i64 }
}

/// The attributes of [`MASK_GET`] and [`MASK_PUT`].
pub fn masked(count: usize) -> Attrs {
    Attrs::new(Masked { count: count as i64 })
}

/// Checks a mask of the first axes of `x`, and gives the shape of the entries where it holds.
fn selected(a: &InferArgs, x: &[usize], mask: &Meta) -> Result<Shape> {
    let count = a.attrs.get::<Masked>().count;
    let Ok(count) = usize::try_from(count) else {
        return Err(Error::value(a.op, format!("count must not be negative, got {count}")));
    };
    if mask.dtype != DType::Bool {
        return Err(Error::DType { op: a.op, dtype: mask.dtype, expected: "a mask is an array of bool" });
    }
    if mask.shape.is_empty() || !x.starts_with(&mask.shape) {
        let text =
            format!("a mask of shape {} does not fit an array of shape {}", display(&mask.shape), display(x));
        return Err(Error::new(ErrorKind::Index, a.op, text));
    }
    let mut shape: Shape = smallvec![count];
    shape.extend_from_slice(&x[mask.shape.len()..]);
    Ok(shape)
}

/// How many hold before each chunk of the mask; an error where they are not as many as were counted.
fn counted(a: &KernelArgs, mask: &[Bool], count: usize) -> Result<Vec<usize>> {
    let before = counts_before(mask, a.par);
    match before[before.len() - 1] {
        total if total == count => Ok(before),
        total => {
            let text = format!("the mask holds in {total} places, but {count} were counted before");
            Err(Error::new(ErrorKind::State, a.op, text))
        }
    }
}

/// Where the entries of an array lie: the places that a mask of its first `axes` axes speaks of, and the elements in
/// each.
struct Entries {
    places: Option<Vec<isize>>,
    inner: Vec<isize>,
    whole: bool,
}

impl Entries {
    fn new(layout: &Layout, axes: usize) -> Entries {
        let inner =
            Layout { shape: layout.shape[axes..].into(), strides: layout.strides[axes..].into(), offset: 0 };
        Entries {
            places: (!layout.is_contiguous())
                .then(|| offsets(&layout.shape[..axes], &layout.strides[..axes])),
            whole: inner.is_contiguous(),
            inner: offsets(&inner.shape, &inner.strides),
        }
    }

    #[inline(always)]
    fn place(&self, at: usize) -> isize {
        match &self.places {
            None => (at * self.inner.len()) as isize,
            Some(places) => places[at],
        }
    }
}

/// Copies entry `at` of `x` to entry n of `packed` for each place where the mask holds, or (`PUT`) from there to x.
///
/// # Safety
/// `x` has the entries, and is writable where it is put to; `packed` is contiguous, with one for each place that holds.
unsafe fn exchange<W: Copy, const PUT: bool>(
    x: Shared<W>,
    entries: &Entries,
    packed: Shared<W>,
    mask: &[Bool],
    before: &[usize],
    par: &dyn crate::par::Parallel,
) {
    let width = entries.inner.len();
    split(par, mask.len(), GRAIN, |range| {
        let (x, packed) = (x, packed);
        let first = before[range.start / GRAIN];
        // SAFETY: the caller's; chunks have entries of their own on both sides.
        each_set(mask, range, first, |at, n| unsafe {
            let (x, packed) = (x.at(entries.place(at)), packed.at((n * width) as isize));
            let (from, to) = if PUT { (packed, x) } else { (x, packed) };
            if width == 1 {
                *to = *from;
            } else if entries.whole {
                std::ptr::copy_nonoverlapping(from, to, width);
            } else {
                for (i, &inner) in entries.inner.iter().enumerate() {
                    let (x, packed) = (x.offset(inner), packed.add(i));
                    if PUT { *x = *packed } else { *packed = *x }
                }
            }
        });
    });
}

fn infer_get(a: &InferArgs) -> Result<Inferred> {
    let (x, mask) = (&a.ins[0], &a.ins[1]);
    let shape = selected(a, &x.shape, mask)?;
    checked_numel(a.op, &shape, x.dtype.size())?;
    Ok(Inferred { ins: smallvec![x.dtype, DType::Bool], outs: smallvec![Meta::new(shape, x.dtype)] })
}

fn run_get(a: &KernelArgs) -> Result<()> {
    let (x, out) = (&a.ins[0], a.out(0));
    let mask = dense::<Bool>(&a.ins[1], a.par);
    let before = counted(a, &mask, out.layout.shape[0])?;
    let entries = Entries::new(x.layout, a.ins[1].layout.ndim());
    with_word!(x.dtype.size(), W => {
        let (from, to) = (Shared(x.start().cast::<W>().cast_mut()), Shared(out.start().cast::<W>()));
        // SAFETY: x's entries, and as many of the output as hold; x is only read.
        unsafe { exchange::<W, false>(from, &entries, to, &mask, &before, a.par) };
    });
    Ok(())
}

/// `mask_get(x, mask; count)`: the entries of x where the mask of its first axes holds, in row-major order.
pub static MASK_GET: Op = Op {
    attrs: Masked::read,
    grad: Grad::Vjp(|v| {
        let gx = v.needs(0).then(|| v.g().apply(&MASK_SPREAD, Attrs::NONE, &[v.x(1).operand()]));
        smallvec![gx, None]
    }),
    saves: Saves { inputs: 0b10, outputs: 0 },
    ..Op::new("mask_get", 2, infer_get, Run::Kernel(run_get))
};

fn infer_spread(a: &InferArgs) -> Result<Inferred> {
    let (g, mask) = (&a.ins[0], &a.ins[1]);
    if mask.dtype != DType::Bool || g.shape.is_empty() {
        let text = format!("entries and a mask are due, got shape {} and {}", display(&g.shape), mask.dtype);
        return Err(Error::value(a.op, text));
    }
    let mut shape = mask.shape.clone();
    shape.extend_from_slice(&g.shape[1..]);
    checked_numel(a.op, &shape, g.dtype.size())?;
    Ok(Inferred { ins: smallvec![g.dtype, DType::Bool], outs: smallvec![Meta::new(shape, g.dtype)] })
}

fn run_spread(a: &KernelArgs) -> Result<()> {
    let (g, out) = (&a.ins[0], a.out(0));
    let mask = dense::<Bool>(&a.ins[1], a.par);
    let before = counted(a, &mask, g.layout.shape[0])?;
    moves::zero(&out, a.par);
    with_type!(all g.dtype, T => put(a, &dense::<T>(g, a.par), &out, &mask, &before));
    Ok(())
}

/// Writes packed entries to the places of `target` where the mask holds.
fn put<T: crate::Element>(a: &KernelArgs, values: &[T], target: &ViewMut, mask: &[Bool], before: &[usize]) {
    let axes = a.ins[a.ins.len() - 1].layout.ndim();
    let from = Shared(values.as_ptr().cast_mut());
    let entries = Entries::new(target.layout, axes);
    // SAFETY: the target's entries, which this call writes; as many values as hold, only read.
    unsafe { exchange::<T, true>(Shared(target.ptr::<T>()), &entries, from, mask, before, a.par) };
}

/// `mask_spread(g, mask)`: zeros with the entries of g where the mask holds; the gradient of [`MASK_GET`].
pub static MASK_SPREAD: Op = Op {
    grad: Grad::Vjp(|v| {
        let to = masked(v.shape(0)[0]);
        smallvec![v.needs(0).then(|| v.g().apply(&MASK_GET, to, &[v.x(1).operand()])), None]
    }),
    saves: Saves { inputs: 0b10, outputs: 0 },
    ..Op::new("mask_spread", 2, infer_spread, Run::Kernel(run_spread))
};

fn infer_put(a: &InferArgs) -> Result<Inferred> {
    let (x, value) = (&a.ins[0], &a.ins[1]);
    let shape = selected(a, &x.shape, &a.ins[2])?;
    if Layout::contiguous(&value.shape).broadcast_to(&shape).is_none() {
        let text = format!(
            "shape mismatch: value array of shape {} could not be broadcast to indexing result of shape {}",
            display(&value.shape),
            display(&shape)
        );
        return Err(Error::value(a.op, text));
    }
    check_scalar_fits(a.op, x.dtype, value)?;
    Ok(Inferred { ins: smallvec![x.dtype, x.dtype, DType::Bool], outs: SmallVec::new() })
}

fn run_put(a: &KernelArgs) -> Result<()> {
    let Some(Some(target)) = a.outs.last() else {
        return Err(Error::new(ErrorKind::Internal, a.op, "got no array to write to"));
    };
    let (value, mask) = (&a.ins[1], &a.ins[2]);
    let axes = mask.layout.ndim();
    let mut mask = dense::<Bool>(mask, a.par);
    if overlaps(&a.ins[2], target) {
        mask.to_mut();
    }
    let count = a.attrs.get::<Masked>().count as usize;
    let before = counted(a, &mask, count)?;
    let mut shape: Shape = smallvec![count];
    shape.extend_from_slice(&target.layout.shape[axes..]);
    let layout = spread(value, &shape);
    // SAFETY: the same memory as the input, repeated by strides of 0.
    let repeated = unsafe { View::new(value.base(), &layout, value.dtype) };
    with_type!(all value.dtype, T => {
        let mut values = dense::<T>(&repeated, a.par);
        if overlaps(value, target) {
            values.to_mut();
        }
        put(a, &values, target, &mask, &before);
    });
    Ok(())
}

/// `mask_put(x, value, mask; count)`: x[mask] = value, in place.
pub static MASK_PUT: Op = Op {
    attrs: Masked::read,
    grad: Grad::None("an in-place write; index_assign is its recorded form"),
    writes: Writes::These(&[0]),
    ..Op::new("mask_put", 3, infer_put, Run::Kernel(run_put))
};
