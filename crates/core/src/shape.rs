//! Shapes, axes and broadcasting: the checks that every op's `infer` is made of.

use crate::error::{Error, Result};
use smallvec::SmallVec;

/// The sizes of an array's axes.
pub type Shape = SmallVec<[usize; 6]>;

/// Axis numbers, non-negative once checked.
pub type AxisList = SmallVec<[usize; 6]>;

/// NumPy's limit on the number of axes.
pub const MAX_NDIM: usize = 64;

/// The number of elements of a shape that was checked when its array was made.
pub fn numel(shape: &[usize]) -> usize {
    shape.iter().product()
}

/// A shape as NumPy prints it: `(2, 3)`, `(4,)`, `()`.
pub fn display(shape: &[usize]) -> String {
    match shape {
        [n] => format!("({n},)"),
        _ => format!("({})", shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// The number of elements, or an error where the bytes would not fit the address space.
pub fn checked_numel(op: &'static str, shape: &[usize], item_size: usize) -> Result<usize> {
    if shape.len() > MAX_NDIM {
        return Err(Error::value(
            op,
            format!("maximum supported dimension for an ndarray is {MAX_NDIM}, found {}", shape.len()),
        ));
    }
    let count = shape.iter().try_fold(1usize, |n, &d| if d == 0 { Some(0) } else { n.checked_mul(d) });
    // A zero anywhere makes the array empty, but the others must still be addressable, as in NumPy.
    let extent = shape.iter().filter(|&&d| d != 0).try_fold(item_size, |n, &d| n.checked_mul(d));
    match (count, extent) {
        (Some(n), Some(bytes)) if bytes <= isize::MAX as usize => Ok(n),
        (_, Some(bytes)) if bytes <= isize::MAX as usize => Ok(0),
        _ => Err(Error::value(op, format!("array is too big: shape {} overflows memory", display(shape)))),
    }
}

/// The shape all of `shapes` broadcast to.
pub fn broadcast(op: &'static str, shapes: &[&[usize]]) -> Result<Shape> {
    let ndim = shapes.iter().map(|s| s.len()).max().unwrap_or(0);
    let mut out: Shape = SmallVec::from_elem(1, ndim);
    for shape in shapes {
        let lead = ndim - shape.len();
        for (i, &n) in shape.iter().enumerate() {
            let o = &mut out[lead + i];
            if *o == 1 {
                *o = n;
            } else if n != 1 && n != *o {
                return Err(Error::Broadcast {
                    op,
                    shapes: shapes.iter().map(|s| Shape::from_slice(s)).collect(),
                });
            }
        }
    }
    Ok(out)
}

/// Axis `axis` of an array of `ndim` axes, counted from the end when negative.
pub fn check_axis(op: &'static str, axis: i64, ndim: usize) -> Result<usize> {
    let found = if axis < 0 { axis + ndim as i64 } else { axis };
    if found < 0 || found >= ndim as i64 { Err(Error::Axis { op, axis, ndim }) } else { Ok(found as usize) }
}

/// Checks a list of axes; None means all. Repeats are refused. The result is sorted.
pub fn check_axes(op: &'static str, axes: Option<&[i64]>, ndim: usize) -> Result<AxisList> {
    let Some(axes) = axes else { return Ok((0..ndim).collect()) };
    let mut out = AxisList::new();
    for &axis in axes {
        let axis = check_axis(op, axis, ndim)?;
        if out.contains(&axis) {
            return Err(Error::value(op, "duplicate value in 'axis'"));
        }
        out.push(axis);
    }
    out.sort_unstable();
    Ok(out)
}

/// The shape left when `axes` (checked, sorted) are reduced.
pub fn reduced(shape: &[usize], axes: &[usize], keepdims: bool) -> Shape {
    let mut out = Shape::new();
    for (i, &n) in shape.iter().enumerate() {
        match (axes.contains(&i), keepdims) {
            (false, _) => out.push(n),
            (true, true) => out.push(1),
            (true, false) => {}
        }
    }
    out
}
