//! Indices made into places: each is found in range, or is the error, before anybody reads or writes there. Moves no
//! element.

use crate::isa_versions;
use crate::kernel::moves::Shared;
use crate::kernel::scratch::Space;
use crate::kernel::walk::{GRAIN, Walk, offsets};
use crate::layout::contiguous_strides;
use crate::par::Parallel;
use crate::view::View;
use crate::{Error, Result};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};

/// What becomes of an index out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// It is an error; negative ones in range count from the end.
    Raise,
    /// It is an error, and so is every negative one: labels, rows of an embedding.
    Strict,
    /// It is moved to the nearest end; negative ones become 0.
    Clip,
    /// It is taken modulo the size.
    Wrap,
}

impl Bound {
    /// Where an index points; it is in range where that is at least 0 and below `size`.
    #[inline(always)]
    fn place(self, index: i64, size: i64) -> i64 {
        match self {
            Bound::Raise => index.wrapping_add((index >> 63) & size),
            Bound::Strict => index,
            Bound::Clip => index.min(size - 1).max(0),
            Bound::Wrap if size > 0 => index.rem_euclid(size),
            Bound::Wrap => 0,
        }
    }
}

/// One axis that an index array counts along.
#[derive(Clone, Copy)]
pub struct Axis {
    pub size: usize,
    /// What one step adds to a place.
    pub stride: isize,
    /// The axis an error names.
    pub number: usize,
}

/// Places that were found in range, as offsets from an array's first element.
pub struct Places {
    at: Space<isize>,
    /// The least place there can be, and how far the greatest is from it.
    pub least: isize,
    pub span: usize,
}

impl Deref for Places {
    type Target = [isize];
    fn deref(&self) -> &[isize] {
        &self.at
    }
}

/// The place of each position of `shape`: the sum of its indices times their strides. `arrays` are int64 of
/// any shape that broadcasts to `shape`. The first index out of range, array by array, is the error.
pub fn places(
    op: &'static str,
    arrays: &[View],
    shape: &[usize],
    axes: &[Axis],
    bound: Bound,
    par: &dyn Parallel,
) -> Result<Places> {
    let mut out = Space::<isize>::new(op, shape.iter().product())?;
    let target = Shared(out.as_mut_ptr());
    let rows = contiguous_strides(shape);
    if arrays.is_empty() {
        out.fill(0);
    }
    for (nth, (array, axis)) in arrays.iter().zip(axes).enumerate() {
        let Some(spread) = array.layout.broadcast_to(shape) else {
            return Err(Error::Broadcast { op, shapes: vec![array.layout.shape.clone(), shape.into()] });
        };
        let from = Shared(array.ptr::<i64>().cast_mut());
        let walk = Walk::new(shape, [&spread.strides, &rows]);
        let (_, steps) = walk.inner();
        let rule = Rule { bound, size: axis.size as i64, stride: axis.stride, steps };
        // The memory is not new: the first array sets what the others add to.
        let row = if nth == 0 { row::<true>() } else { row::<false>() };
        let bad = AtomicBool::new(false);
        walk.run(par, GRAIN, |[i, j], n| {
            let mut fine = true;
            // SAFETY: offsets come from the layouts; chunks write disjoint positions.
            unsafe { row(from.at(i), target.at(j), n, &rule, &mut fine) };
            if !fine {
                bad.store(true, Ordering::Relaxed);
            }
        });
        if bad.into_inner() {
            // SAFETY: offsets of the layout.
            let index = |at: &isize| unsafe { *from.at(*at) };
            let is_bad = |i: &i64| !(0..rule.size).contains(&bound.place(*i, rule.size));
            let first = offsets(shape, &spread.strides).iter().map(index).find(is_bad);
            let (axis, size) = (axis.number, axis.size);
            return Err(Error::Index { op, index: first.unwrap_or_default(), axis, size });
        }
    }
    let ends = axes.iter().map(|axis| axis.stride * axis.size.saturating_sub(1) as isize);
    let least = ends.clone().filter(|&end| end < 0).sum();
    Ok(Places { at: out, least, span: ends.map(isize::unsigned_abs).sum() })
}

/// What becomes of the indices of a row, and how far apart they and their places are.
struct Rule {
    bound: Bound,
    size: i64,
    stride: isize,
    steps: [isize; 2],
}

/// A function that makes `n` indices into places, and says whether all are in range.
type Row = unsafe fn(*const i64, *mut isize, usize, &Rule, &mut bool);

/// # Safety
/// `n` indices are readable and as many places writable, by the rule's steps.
#[inline(always)]
unsafe fn row_body<const FIRST: bool>(
    from: *const i64,
    to: *mut isize,
    n: usize,
    rule: &Rule,
    fine: &mut bool,
) {
    // SAFETY: the caller's. The same code for each bound, and for neighbours, so that the loop has no choice to make.
    unsafe {
        macro_rules! by_bound {
            ($steps:expr) => {
                match rule.bound {
                    Bound::Raise => steps::<FIRST>(from, to, n, rule, Bound::Raise, $steps, fine),
                    Bound::Strict => steps::<FIRST>(from, to, n, rule, Bound::Strict, $steps, fine),
                    Bound::Clip => steps::<FIRST>(from, to, n, rule, Bound::Clip, $steps, fine),
                    Bound::Wrap => steps::<FIRST>(from, to, n, rule, Bound::Wrap, $steps, fine),
                }
            };
        }
        if rule.steps == [1, 1] { by_bound!([1, 1]) } else { by_bound!(rule.steps) }
    }
}

/// # Safety
/// As [`row_body`].
#[inline(always)]
unsafe fn steps<const FIRST: bool>(
    from: *const i64,
    to: *mut isize,
    n: usize,
    rule: &Rule,
    bound: Bound,
    [s, d]: [isize; 2],
    fine: &mut bool,
) {
    let (size, stride) = (rule.size, rule.stride);
    let mut all = true;
    for k in 0..n as isize {
        // SAFETY: the caller's.
        unsafe {
            let at = bound.place(*from.offset(k * s), size);
            all &= (at as u64) < size as u64;
            let place = (at as isize).wrapping_mul(stride);
            let to = to.offset(k * d);
            *to = if FIRST { place } else { (*to).wrapping_add(place) };
        }
    }
    *fine = all;
}

isa_versions! {
    /// Sets a row of places (`FIRST`), or adds to it.
    fn row -> Row = row_body;
    generics [const FIRST: bool] names [FIRST] fast true;
    args (from: *const i64, to: *mut isize, n: usize, rule: &Rule, fine: &mut bool)
}
