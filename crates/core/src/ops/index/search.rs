//! Finding places: nonzero, searchsorted, and one_hot, which marks them.

use super::check_index_dtype;
use crate::error::ErrorKind;
use crate::kernel::bits::{counts_before, each_set};
use crate::kernel::moves::{Shared, dense};
use crate::kernel::sort::Order;
use crate::kernel::walk::{GRAIN, split};
use crate::op::{Grad, InferArgs, Inferred, KernelArgs, Meta, Op, Run};
use crate::promote::result_type;
use crate::shape::{Shape, checked_numel, display};
use crate::{Bool, DType, Element, Error, Result, Scalar, attrs, isa_versions, with_type};
use smallvec::smallvec;

attrs! {
    /// `count`: how many elements are not zero, as [`COUNT_NONZERO`] found.
    pub struct Count { count: i64 }
}

/// `count_nonzero(x)`: over all elements, an int64 without axes.
pub static COUNT_NONZERO: Op = Op {
    grad: Grad::Zero,
    ..Op::new(
        "count_nonzero",
        1,
        |_| {
            Ok(Inferred { ins: smallvec![DType::Bool], outs: smallvec![Meta::new(Shape::new(), DType::I64)] })
        },
        Run::Kernel(|a| {
            let before = counts_before(&dense::<Bool>(&a.ins[0], a.par), a.par);
            let total = before[before.len() - 1];
            // SAFETY: the output's one element.
            unsafe { *a.out(0).ptr::<i64>() = total as i64 };
            Ok(())
        }),
    )
};

fn infer_nonzero(a: &InferArgs) -> Result<Inferred> {
    let count = a.attrs.get::<Count>().count;
    let count = usize::try_from(count)
        .map_err(|_| Error::value(a.op, format!("count must not be negative, got {count}")))?;
    let shape = Shape::from_slice(&[count, a.ins[0].shape.len()]);
    checked_numel(a.op, &shape, 8)?;
    Ok(Inferred { ins: smallvec![DType::Bool], outs: smallvec![Meta::new(shape, DType::I64)] })
}

fn run_nonzero(a: &KernelArgs) -> Result<()> {
    let (x, out) = (&a.ins[0], a.out(0));
    let mask = dense::<Bool>(x, a.par);
    let before = counts_before(&mask, a.par);
    let total = before[before.len() - 1];
    if total != out.layout.shape[0] {
        let text = format!("{total} elements are not zero, but {} were counted before", out.layout.shape[0]);
        return Err(Error::new(ErrorKind::State, a.op, text));
    }
    let shape = &x.layout.shape;
    let Some((&inner, outer)) = shape.split_last() else {
        // An array without axes has rows without entries.
        return Ok(());
    };
    let (axes, to) = (shape.len(), Shared(out.ptr::<i64>()));
    split(a.par, mask.len(), GRAIN, |range| {
        let first = before[range.start / GRAIN];
        if axes == 1 {
            // SAFETY: rows of a chunk start after those of earlier chunks; their number was checked.
            return each_set(&mask, range, first, |at, n| unsafe { *to.at(n as isize) = at as i64 });
        }
        // The row of the last axis that the place is in: where it ends, and its other indices.
        let (mut end, mut index) = (0, vec![0i64; axes - 1]);
        each_set(&mask, range, first, |at, n| {
            if at >= end {
                end = at - at % inner + inner;
                let mut rest = at / inner;
                for (to, &size) in index.iter_mut().zip(outer).rev() {
                    *to = (rest % size) as i64;
                    rest /= size;
                }
            }
            // SAFETY: as above.
            let row = unsafe { std::slice::from_raw_parts_mut(to.at((n * axes) as isize), axes) };
            row[..axes - 1].copy_from_slice(&index);
            row[axes - 1] = (at + inner - end) as i64;
        });
    });
    Ok(())
}

/// `nonzero(x; count)`: the indices of the elements that are not zero, one row each, in row-major order.
pub static NONZERO: Op = Op {
    attrs: Count::read,
    grad: Grad::Zero,
    ..Op::new("nonzero", 1, infer_nonzero, Run::Kernel(run_nonzero))
};

attrs! {
    /// `depth`: the size of the new last axis; `on_value` where the index points, `off_value` elsewhere.
    pub struct OneHot { depth: i64, on_value: f64 = 1.0, off_value: f64 = 0.0, dtype: DType = DType::F32 }
}

fn infer_one_hot(a: &InferArgs) -> Result<Inferred> {
    let OneHot { depth, dtype, .. } = a.attrs.get::<OneHot>();
    check_index_dtype(a, &a.ins[0])?;
    let Ok(depth) = usize::try_from(*depth) else {
        return Err(Error::value(a.op, format!("depth must not be negative, got {depth}")));
    };
    let mut shape = a.ins[0].shape.clone();
    shape.push(depth);
    checked_numel(a.op, &shape, dtype.size())?;
    Ok(Inferred { ins: smallvec![DType::I64], outs: smallvec![Meta::new(shape, *dtype)] })
}

fn run_one_hot(a: &KernelArgs) -> Result<()> {
    let OneHot { on_value, off_value, .. } = a.attrs.get::<OneHot>();
    let out = a.out(0);
    let depth = out.layout.shape[out.layout.ndim() - 1];
    let indices = dense::<i64>(&a.ins[0], a.par);
    with_type!(all out.dtype, T => {
        let (on, off) = (element::<T>(*on_value), element::<T>(*off_value));
        let to = Shared(out.ptr::<T>());
        split(a.par, indices.len(), GRAIN / depth.max(1), |range| {
            for row in range {
                // SAFETY: row `row` of the contiguous output, this chunk's own.
                let row_out =
                    unsafe { std::slice::from_raw_parts_mut(to.at((row * depth) as isize), depth) };
                row_out.fill(off);
                if let Some(at) = usize::try_from(indices[row]).ok().and_then(|i| row_out.get_mut(i)) {
                    *at = on;
                }
            }
        });
    });
    Ok(())
}

/// A number as an element of T's dtype.
fn element<T: Element>(value: f64) -> T {
    let mut bytes = [0u8; 16];
    Scalar::Float(value).write(T::DTYPE, &mut bytes);
    bytemuck::pod_read_unaligned(&bytes[..size_of::<T>()])
}

/// `one_hot(indices, depth, on_value, off_value, dtype)`: a row of `off_value` with `on_value` at the index;
/// an index out of range (negative ones too) marks nothing.
pub static ONE_HOT: Op = Op {
    attrs: OneHot::read,
    grad: Grad::Zero,
    ..Op::new("one_hot", 1, infer_one_hot, Run::Kernel(run_one_hot))
};

attrs! {
    /// `side`: `left` gives the first place where the value could go in, `right` the last.
    pub struct Search { side: String = "left".into() }
}

fn infer_searchsorted(a: &InferArgs) -> Result<Inferred> {
    let side = &a.attrs.get::<Search>().side;
    if side != "left" && side != "right" {
        return Err(Error::value(a.op, format!("search side must be 'left' or 'right', got '{side}'")));
    }
    if a.ins[0].shape.len() != 1 {
        let got = display(&a.ins[0].shape);
        return Err(Error::value(a.op, format!("the sorted array must have one dimension, got shape {got}")));
    }
    let dtype = result_type(a.op, a.ins, a.mode)?;
    crate::infer::refuse_complex(a.op, dtype)?;
    Ok(Inferred {
        ins: smallvec![dtype, dtype],
        outs: smallvec![Meta::new(a.ins[1].shape.clone(), DType::I64)],
    })
}

fn run_searchsorted(a: &KernelArgs) -> Result<()> {
    let right = a.attrs.get::<Search>().side == "right";
    let out = Shared(a.out(0).ptr::<i64>());
    with_type!(all a.ins[0].dtype, T => {
        let (sorted, values) = (dense::<T>(&a.ins[0], a.par), dense::<T>(&a.ins[1], a.par));
        let search = if right { searcher::<T, true>() } else { searcher::<T, false>() };
        split(a.par, values.len(), GRAIN / 16, |range| {
            // SAFETY: elements of the contiguous output, this chunk's own; the search has no condition.
            unsafe {
                let out = std::slice::from_raw_parts_mut(out.at(range.start as isize), range.len());
                search(&sorted, &values[range], out);
            }
        });
    });
    Ok(())
}

/// Values whose places are sought side by side: each step waits for memory.
const ABREAST: usize = 16;

/// For each value, how many of the sorted ones go before it (`RIGHT`: or are equal). The steps are those of a binary
/// search and the same for all values, so that there is no branch to guess.
///
/// # Safety
/// None; the type is that of functions compiled for an instruction set.
#[inline(always)]
unsafe fn search_body<T: Order, const RIGHT: bool>(sorted: &[T], values: &[T], out: &mut [i64]) {
    let before = |x: &T, v: T::Key| if RIGHT { x.key() <= v } else { x.key() < v };
    let Some(&first) = values.first().filter(|_| !sorted.is_empty()) else { return out.fill(0) };
    for (values, out) in values.chunks(ABREAST).zip(out.chunks_mut(ABREAST)) {
        let mut keys = [first.key(); ABREAST];
        for l in 0..values.len() {
            keys[l] = values[l].key();
        }
        let mut at = [0usize; ABREAST];
        let mut len = sorted.len();
        while len > 1 {
            let half = len / 2;
            for l in 0..ABREAST {
                // SAFETY: a place is at most the length less `len`.
                let probe = unsafe { sorted.get_unchecked(at[l] + half - 1) };
                at[l] += half & usize::from(before(probe, keys[l])).wrapping_neg();
            }
            len -= half;
        }
        for l in 0..values.len() {
            // SAFETY: as above.
            let probe = unsafe { sorted.get_unchecked(at[l]) };
            out[l] = (at[l] + usize::from(before(probe, keys[l]))) as i64;
        }
    }
}

isa_versions! {
    /// The search for elements of a type.
    fn searcher -> unsafe fn(&[T], &[T], &mut [i64]) = search_body;
    generics [T: Order, const RIGHT: bool] names [T, RIGHT] fast true;
    args (sorted: &[T], values: &[T], out: &mut [i64])
}

/// `searchsorted(a, v, side)`: where each value would go into the sorted array; NaN is the greatest.
pub static SEARCHSORTED: Op = Op {
    attrs: Search::read,
    grad: Grad::Zero,
    ..Op::new("searchsorted", 2, infer_searchsorted, Run::Kernel(run_searchsorted))
};
