//! `x[key]` and `x[key] = value`: views for basic keys, gathering and scattering for index arrays and masks.

use crate::array::{NDArray, transpose, wrap};
use crate::error::{call, type_error};
use crate::index::{self, Index};
use crate::operand::{self, Operand, Source};
use crate::wait::{enter, pay};
use mxnp_core::attrs::{Attrs, Ints};
use mxnp_core::ops::{arith, index as ops};
use mxnp_core::{DType, IndexItem};
use mxnp_graph::{Array, Handle, Input, modes, tape};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use smallvec::SmallVec;

/// A view whose indexed axes are neighbours, and how it was turned for that.
struct Turned {
    view: Array,
    axis: usize,
    /// The order of the axes, where it was changed.
    order: Option<Vec<i64>>,
}

/// Slices, then brings the indexed axes to the front where they do not stay in place.
fn turn(py: Python<'_>, array: &Array, index: &Index) -> PyResult<Turned> {
    let view = call(py, || mxnp_graph::slice(array, &index.items))?;
    let axes: SmallVec<[usize; 4]> = index.arrays.iter().map(|(axis, _)| *axis).collect();
    let are_consecutive = axes.windows(2).all(|pair| pair[1] == pair[0] + 1);
    if are_consecutive && (index.stays || axes[0] == 0) {
        return Ok(Turned { view, axis: axes[0], order: None });
    }
    let rest = (0..view.ndim()).filter(|axis| !axes.contains(axis));
    let order: Vec<i64> = axes.iter().copied().chain(rest).map(|axis| axis as i64).collect();
    let view = transpose(py, &view, &order)?;
    Ok(Turned { view, axis: 0, order: Some(order) })
}

fn attrs_of(turned: &Turned, index: &Index) -> Attrs {
    let names = Some(Ints::from_slice(&index.names));
    Attrs::new(ops::At { axis: turned.axis as i64, mode: "raise".into(), names })
}

/// `array[key]`.
fn get(array: &Array, key: &Bound<'_, PyAny>) -> PyResult<Array> {
    let py = key.py();
    if let Some(item) = index::plain(key, array.shape())? {
        return call(py, || mxnp_graph::slice(array, &[item]));
    }
    if let Some((mask, count)) = index::only_mask(key, array.shape())? {
        let ins = [Input::Array(array), Input::Array(&mask)];
        return operand::invoke_one(py, &ops::MASK_GET, ops::masked(count), &ins);
    }
    let index = index::read(key, array.shape(), array.device())?;
    if index.arrays.is_empty() {
        let view = call(py, || mxnp_graph::slice(array, &index.items))?;
        // An array without axes counts as an integer, but gives a copy as every index array does.
        return match index::names_array(key) {
            true => operand::invoke_one(py, &arith::COPY, Attrs::NONE, &[Input::Array(&view)]),
            false => Ok(view),
        };
    }
    let turned = turn(py, array, &index)?;
    let mut ins: SmallVec<[Input<'_>; 4]> = SmallVec::from_iter([Input::Array(&turned.view)]);
    ins.extend(index.arrays.iter().map(|(_, array)| Input::Array(array)));
    operand::invoke_one(py, &ops::INDEX_GET, attrs_of(&turned, &index), &ins)
}

/// `target[key] = value`.
fn set(target: &NDArray, key: &Bound<'_, PyAny>, value: &Operand<'_>) -> PyResult<()> {
    let py = key.py();
    let array = target.array(py);
    if let Some(mask) = whole_mask(key, &array, value)? {
        return set_where(target, &array, &mask, value, py);
    }
    let is_traced = tape::is_traced(&array) || matches!(value, Operand::Made(v) if tape::is_traced(v));
    let is_recorded = modes::is_recording() && is_traced;
    if !is_recorded && let Some((mask, count)) = index::only_mask(key, array.shape())? {
        let rest = [value.input(), Input::Array(&mask)];
        return target
            .write(py, |target| mxnp_graph::update(&ops::MASK_PUT, ops::masked(count), target, &rest));
    }
    let index = index::read(key, array.shape(), array.device())?;
    if index.arrays.is_empty() {
        return set_basic(py, target, &array, &index.items, value);
    }
    if is_recorded {
        return set_recorded(py, target, &array, &index, value);
    }
    let turned = turn(py, &array, &index)?;
    let attrs = attrs_of(&turned, &index);
    let mut rest: SmallVec<[Input<'_>; 4]> = SmallVec::from_iter([value.input()]);
    rest.extend(index.arrays.iter().map(|(_, array)| Input::Array(array)));
    if turned.order.is_none() && is_whole(&turned.view, &array) {
        return target.write(py, |target| mxnp_graph::update(&ops::INDEX_PUT, attrs, target, &rest));
    }
    let mut view = Handle::new(turned.view);
    call(py, || mxnp_graph::update(&ops::INDEX_PUT, attrs, &mut view, &rest))?;
    pay(py)
}

/// Whether a view shows all of an array as it is.
fn is_whole(view: &Array, array: &Array) -> bool {
    view.layout() == array.layout()
}

fn set_basic(
    py: Python<'_>,
    target: &NDArray,
    array: &Array,
    items: &[IndexItem],
    value: &Operand<'_>,
) -> PyResult<()> {
    if let Operand::Made(value) = value
        && index::is_itself(array, items, value)
    {
        return Ok(());
    }
    target.write(py, |target| mxnp_graph::assign(target, items, value.input()))
}

/// While recording: the indexed part is made anew, with a gradient for both, and assigned.
fn set_recorded(
    py: Python<'_>,
    target: &NDArray,
    array: &Array,
    index: &Index,
    value: &Operand<'_>,
) -> PyResult<()> {
    let turned = turn(py, array, index)?;
    let attrs = attrs_of(&turned, index);
    let mut ins: SmallVec<[Input<'_>; 4]> = SmallVec::from_iter([Input::Array(&turned.view), value.input()]);
    ins.extend(index.arrays.iter().map(|(_, array)| Input::Array(array)));
    let mut made = operand::invoke_one(py, &ops::INDEX_ASSIGN, attrs, &ins)?;
    if let Some(order) = &turned.order {
        let mut back = vec![0; order.len()];
        for (i, &axis) in order.iter().enumerate() {
            back[axis as usize] = i as i64;
        }
        made = transpose(py, &made, &back)?;
    }
    target.write(py, |target| mxnp_graph::assign(target, &index.items, Input::Array(&made)))
}

/// The mask of `x[mask] = number` with a mask of x's shape: a choice by element, which nothing waits for.
fn whole_mask(key: &Bound<'_, PyAny>, array: &Array, value: &Operand<'_>) -> PyResult<Option<Array>> {
    let py = key.py();
    let Ok(mask) = key.cast::<NDArray>() else { return Ok(None) };
    let mask = mask.get().array(py);
    let is_number = match value {
        Operand::Scalar(_) => true,
        Operand::Made(value) => value.ndim() == 0,
        Operand::Object(value) => value.ndim() == 0,
    };
    let fits = mask.dtype() == DType::Bool && mask.ndim() > 0 && mask.shape() == array.shape();
    Ok((is_number && fits).then_some(mask))
}

fn set_where(
    target: &NDArray,
    array: &Array,
    mask: &Array,
    value: &Operand<'_>,
    py: Python<'_>,
) -> PyResult<()> {
    // In the target's dtype: a wider number must not widen the whole before it is assigned.
    let number;
    let value = match value {
        Operand::Made(v) if v.dtype() != array.dtype() => {
            number = crate::convert::astype(py, v, array.dtype())?;
            Input::Array(&number)
        }
        Operand::Scalar(scalar) => {
            number = crate::convert::from_scalar(py, *scalar, array.dtype(), array.device())?;
            Input::Array(&number)
        }
        other => other.input(),
    };
    let ins = [Input::Array(mask), value, Input::Array(array)];
    let made = operand::invoke_one(py, &mxnp_core::ops::arith::WHERE, Attrs::NONE, &ins)?;
    target.write(py, |target| mxnp_graph::assign(target, &[], Input::Array(&made)))
}

#[pymethods]
impl NDArray {
    fn __getitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<Py<NDArray>> {
        let py = slf.py();
        enter(py)?;
        let array = slf.get().array(py);
        wrap(py, get(&array, key)?)
    }

    fn __setitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = slf.py();
        enter(py)?;
        let (device, dtype) = {
            let array = slf.get().get(py);
            (array.device(), array.dtype())
        };
        // A list is read in the target's dtype: large integers must not pass through float32.
        let is_list = value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>();
        let source: Source<'_, '_> = match is_list {
            true => Source::Made(crate::convert::array(value, Some(dtype), device)?),
            false => operand::argument(value, device)?,
        };
        set(slf.get(), key, &source.owned(py))
    }

    fn __delitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let _ = key;
        Err(type_error(slf.py(), "cannot delete array elements"))
    }
}
