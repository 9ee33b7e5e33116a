//! NumPy's index language: what the entries of `x[...]` mean for a shape. Only reads keys; `subscript` acts on them.

use crate::array::NDArray;
use crate::convert;
use crate::error::index_error;
use crate::export;
use crate::operand::{self, is_numpy};
use mxnp_core::ops::index as ops;
use mxnp_core::shape::MAX_NDIM;
use mxnp_core::{DType, IndexItem, Layout, Scalar};
use mxnp_graph::{Array, Device, Input, modes, trace};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyList, PySequence, PySlice, PyTuple};
use smallvec::SmallVec;

/// An index whose entries were checked: a basic index, and the arrays that index axes of its view.
pub struct Index {
    pub items: SmallVec<[IndexItem; 6]>,
    /// Index arrays with the axis of the view that each indexes, in order of the axes.
    pub arrays: SmallVec<[(usize, Array); 2]>,
    /// The number in the indexed array of each such axis, for messages.
    pub names: SmallVec<[i64; 4]>,
    /// Whether the axes of the result that come from index arrays stay in their place (NumPy: all of the
    /// entries that are integers or arrays are neighbours); else they come first.
    pub stays: bool,
}

/// One entry of a key.
enum Entry<'py> {
    At(i64),
    Slice(Bound<'py, PySlice>),
    NewAxis,
    Ellipsis,
    Truth(bool),
    Mask(Array),
    Array(Array),
}

impl Entry<'_> {
    /// How many axes of the indexed array it takes.
    fn axes(&self) -> usize {
        match self {
            Entry::At(_) | Entry::Slice(_) | Entry::Array(_) => 1,
            Entry::NewAxis | Entry::Ellipsis | Entry::Truth(_) => 0,
            Entry::Mask(mask) => mask.ndim(),
        }
    }

    fn is_advanced(&self) -> bool {
        matches!(self, Entry::At(_) | Entry::Truth(_) | Entry::Mask(_) | Entry::Array(_))
    }
}

const KINDS: &str = "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean \
                     arrays are valid indices";

fn entry<'py>(obj: &Bound<'py, PyAny>, device: Device) -> PyResult<Entry<'py>> {
    let py = obj.py();
    if let Ok(number) = obj.cast_exact::<PyInt>() {
        return Ok(Entry::At(
            number.extract().map_err(|_| index_error(py, "cannot fit 'int' into an index-sized integer"))?,
        ));
    }
    if let Ok(slice) = obj.cast::<PySlice>() {
        return Ok(Entry::Slice(slice.clone()));
    }
    if obj.is_none() {
        return Ok(Entry::NewAxis);
    }
    if obj.is(py.Ellipsis()) {
        return Ok(Entry::Ellipsis);
    }
    if let Ok(truth) = obj.cast::<PyBool>() {
        return Ok(Entry::Truth(truth.is_true()));
    }
    if let Ok(array) = obj.cast::<NDArray>() {
        return array_entry(py, array.get().array(py));
    }
    if is_numpy(obj)? || obj.is_instance_of::<PyList>() || obj.is_instance_of::<PyTuple>() {
        return array_entry(py, index_array(obj, device)?);
    }
    if obj.hasattr("__index__")? {
        let number = obj.call_method0("__index__")?;
        return entry(&number, device);
    }
    // A range and other sequences are lists of integers, as for NumPy: `scores[range(n), labels]`.
    if obj.hasattr("__array__")? || obj.cast::<PySequence>().is_ok() {
        return array_entry(py, index_array(obj, device)?);
    }
    Err(index_error(py, KINDS))
}

/// An index array with the dtype NumPy gives it: a list of integers is not float32 here.
fn index_array(obj: &Bound<'_, PyAny>, device: Device) -> PyResult<Array> {
    let py = obj.py();
    let made = py.import("numpy")?.call_method1("asarray", (crate::lists::with_numpy(obj)?,))?;
    let is_empty = made.getattr("size")?.extract::<usize>()? == 0;
    // An empty list is an empty list of integers.
    let dtype = (is_empty && !is_numpy(obj)?).then_some(DType::I64);
    let kind: String = made.getattr("dtype")?.getattr("kind")?.extract()?;
    if !"biuf".contains(&kind) && kind != "V" {
        return Err(index_error(py, KINDS));
    }
    convert::array(&made, dtype, device)
}

fn array_entry<'py>(py: Python<'py>, array: Array) -> PyResult<Entry<'py>> {
    let dtype = array.dtype();
    if dtype == DType::Bool {
        if array.ndim() > 0 {
            return Ok(Entry::Mask(array));
        }
        trace::end_to_look(&array);
        return Ok(Entry::Truth(export::truth(py, &array)?));
    }
    if !dtype.is_integer() && (modes::numpy_dtype() || !dtype.is_float()) {
        return Err(index_error(py, "arrays used as indices must be of integer (or boolean) type"));
    }
    if array.ndim() > 0 {
        return Ok(Entry::Array(array));
    }
    // A 0-d array is an integer. Floats are truncated toward zero: labels are floats in MXNet.
    trace::end_to_look(&array);
    match export::scalar_at(py, &array, 0)? {
        Scalar::Float(v) if !v.is_finite() => Err(index_error(py, format!("index {v} is not an integer"))),
        scalar => i64::try_from(scalar.as_i128())
            .map(Entry::At)
            .map_err(|_| index_error(py, "cannot fit the index into an index-sized integer")),
    }
}

/// Whether a key is an array, or has one among its entries.
pub fn names_array(key: &Bound<'_, PyAny>) -> bool {
    match key.cast_exact::<PyTuple>() {
        Ok(tuple) => tuple.iter().any(|entry| entry.is_instance_of::<NDArray>()),
        Err(_) => key.is_instance_of::<NDArray>(),
    }
}

/// Reads a key for an array of `shape`.
pub fn read(key: &Bound<'_, PyAny>, shape: &[usize], device: Device) -> PyResult<Index> {
    let py = key.py();
    let entries: SmallVec<[Entry<'_>; 4]> = match key.cast_exact::<PyTuple>() {
        Ok(tuple) => tuple.iter().map(|obj| entry(&obj, device)).collect::<PyResult<_>>()?,
        Err(_) => SmallVec::from_iter([entry(key, device)?]),
    };
    let taken: usize = entries.iter().map(Entry::axes).sum();
    let ellipses = entries.iter().filter(|e| matches!(e, Entry::Ellipsis)).count();
    if ellipses > 1 {
        return Err(index_error(py, "an index can only have a single ellipsis ('...')"));
    }
    if taken > shape.len() {
        let text = format!(
            "too many indices for array: array is {}-dimensional, but {taken} were indexed",
            shape.len()
        );
        return Err(index_error(py, text));
    }
    let added = entries.iter().filter(|e| matches!(e, Entry::NewAxis | Entry::Truth(_))).count();
    if shape.len() + added > MAX_NDIM {
        let text =
            format!("number of dimensions must be within [0, {MAX_NDIM}], indexing result would have more");
        return Err(index_error(py, text));
    }
    let has_arrays = entries.iter().any(|e| matches!(e, Entry::Mask(_) | Entry::Array(_) | Entry::Truth(_)));
    let mut reader = Reader {
        py,
        shape,
        axis: 0,
        view_axis: 0,
        whole: shape.len() - taken,
        out: Index {
            items: SmallVec::new(),
            arrays: SmallVec::new(),
            names: SmallVec::new(),
            stays: has_arrays && are_neighbours(&entries),
        },
    };
    for entry in entries {
        reader.take(entry)?;
    }
    Ok(reader.out)
}

/// Whether no slice, new axis or ellipsis stands between the entries that are integers or arrays.
fn are_neighbours(entries: &[Entry<'_>]) -> bool {
    let first = entries.iter().position(Entry::is_advanced);
    let last = entries.iter().rposition(Entry::is_advanced);
    match (first, last) {
        (Some(first), Some(last)) => entries[first..=last].iter().all(Entry::is_advanced),
        _ => true,
    }
}

/// Goes through the entries, counting axes of the array and of the view.
struct Reader<'a, 'py> {
    py: Python<'py>,
    shape: &'a [usize],
    axis: usize,
    view_axis: usize,
    /// How many axes the ellipsis stands for.
    whole: usize,
    out: Index,
}

impl Reader<'_, '_> {
    fn push(&mut self, item: IndexItem) {
        match item {
            IndexItem::At(_) => self.axis += 1,
            IndexItem::Slice { .. } => {
                self.axis += 1;
                self.view_axis += 1;
            }
            IndexItem::NewAxis => self.view_axis += 1,
        }
        self.out.items.push(item);
    }

    fn push_whole(&mut self) {
        let len = self.shape[self.axis];
        self.push(IndexItem::Slice { start: 0, step: 1, len });
    }

    fn push_array(&mut self, array: Array) {
        self.out.arrays.push((self.view_axis, array));
        self.out.names.push(self.axis as i64);
        self.push_whole();
    }

    fn take(&mut self, entry: Entry<'_>) -> PyResult<()> {
        match entry {
            Entry::At(i) => {
                let at = at(self.py, i, self.axis, self.shape[self.axis])?;
                self.push(IndexItem::At(at));
            }
            Entry::Slice(slice) => {
                let found = slice.indices(self.shape[self.axis] as isize)?;
                let (start, len) = (found.start.max(0) as usize, found.slicelength);
                self.push(IndexItem::Slice { start, step: found.step, len });
            }
            Entry::NewAxis => self.push(IndexItem::NewAxis),
            Entry::Ellipsis => (0..self.whole).for_each(|_| self.push_whole()),
            Entry::Truth(truth) => {
                // A new axis of size 1, of which one element or none is taken.
                let device = mxnp_graph::device::current();
                let indices = crate::error::call(self.py, || {
                    Array::from_bytes(&[truth as usize], DType::I64, device, |out| out.fill(0))
                })?;
                self.out.arrays.push((self.view_axis, indices));
                self.out.names.push(self.axis as i64);
                self.push(IndexItem::NewAxis);
            }
            Entry::Mask(mask) => self.take_mask(&mask)?,
            Entry::Array(array) => self.push_array(array),
        }
        Ok(())
    }

    /// A mask becomes one integer array per axis; its count is waited for.
    fn take_mask(&mut self, mask: &Array) -> PyResult<()> {
        check_mask(self.py, mask, self.shape, self.axis)?;
        let rows = nonzero(self.py, mask)?;
        for axis in 0..mask.ndim() {
            let whole = IndexItem::Slice { start: 0, step: 1, len: rows.shape()[0] };
            let column =
                crate::error::call(self.py, || mxnp_graph::slice(&rows, &[whole, IndexItem::At(axis)]))?;
            self.push_array(column);
        }
        Ok(())
    }
}

/// Refuses a mask that has not the sizes of the axes from `first` on. One of size 0 fits any axis, as in NumPy: it
/// takes nothing.
fn check_mask(py: Python<'_>, mask: &Array, shape: &[usize], first: usize) -> PyResult<()> {
    for (axis, (&n, &size)) in (first..).zip(mask.shape().iter().zip(&shape[first..])) {
        if n != size && n != 0 {
            let text = format!(
                "boolean index did not match indexed array along axis {axis}; size of axis is {size} but size of \
                 corresponding boolean axis is {n}"
            );
            return Err(index_error(py, text));
        }
    }
    Ok(())
}

/// The key, where it is one mask and nothing else, with the number of places where it holds. Waits for the mask.
pub fn only_mask(key: &Bound<'_, PyAny>, shape: &[usize]) -> PyResult<Option<(Array, usize)>> {
    let Ok(mask) = key.cast::<NDArray>() else { return Ok(None) };
    let py = key.py();
    let mask = mask.get().array(py);
    if mask.dtype() != DType::Bool || mask.ndim() == 0 || mask.ndim() > shape.len() {
        return Ok(None);
    }
    check_mask(py, &mask, shape, 0)?;
    if mask.shape() != &shape[..mask.ndim()] {
        return Ok(None);
    }
    let mask = mask.detach();
    let count = count_nonzero(py, &mask)?;
    Ok(Some((mask, count as usize)))
}

/// How many elements are not zero. Waits for the array.
fn count_nonzero(py: Python<'_>, array: &Array) -> PyResult<i64> {
    trace::end_early("has a result whose size depends on data");
    let none = mxnp_core::attrs::Attrs::NONE;
    let count = operand::invoke_one(py, &ops::COUNT_NONZERO, none, &[Input::Array(array)])?;
    Ok(export::scalar_at(py, &count, 0)?.as_i128() as i64)
}

/// The indices of the elements that are not zero, one row each. Waits for the mask.
pub fn nonzero(py: Python<'_>, mask: &Array) -> PyResult<Array> {
    let mask = mask.detach();
    let count = count_nonzero(py, &mask)?;
    let attrs = crate::attrs::from_pairs(py, &ops::NONZERO, [("count", count)])?;
    operand::invoke_one(py, &ops::NONZERO, attrs, &[Input::Array(&mask)])
}

/// A checked integer index, counted from the end where negative.
fn at(py: Python<'_>, i: i64, axis: usize, size: usize) -> PyResult<usize> {
    let found = if i < 0 { i + size as i64 } else { i };
    if found < 0 || found >= size as i64 {
        let text = format!("index {i} is out of bounds for axis {axis} with size {size}");
        return Err(index_error(py, text));
    }
    Ok(found as usize)
}

/// The basic index for `x[i]` with a plain integer, where that is all.
#[inline]
pub fn plain(key: &Bound<'_, PyAny>, shape: &[usize]) -> PyResult<Option<IndexItem>> {
    let Ok(number) = key.cast_exact::<PyInt>() else { return Ok(None) };
    match (number.extract::<i64>(), shape) {
        (Ok(i), [size, ..]) => at(key.py(), i, 0, *size).map(|i| Some(IndexItem::At(i))),
        _ => Ok(None),
    }
}

/// Whether `value` is just the view of `target` that a basic index gives: `x[i] += 1` assigns it to itself.
pub fn is_itself(target: &Array, items: &[IndexItem], value: &Array) -> bool {
    let layout: Layout = target.layout().index(items);
    target.same_value(value) && target.dtype() == value.dtype() && layout == *value.layout()
}
