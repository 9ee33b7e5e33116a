//! Nested lists and tuples become arrays: which dtype their leaves ask for, and arrays of ours among them.

use crate::array::NDArray;
use crate::convert::{default_dtype, finish, from_numpy};
use crate::error::adopt;
use crate::{dtype, operand};
use mxnp_core::{DType, Scalar};
use mxnp_graph::{Array, modes};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

/// What the leaves of nested lists are.
#[derive(Default)]
struct Leaves {
    bools: bool,
    integers: bool,
    floats: bool,
    complexes: bool,
    /// The common dtype of leaves that have one.
    strong: Option<DType>,
    /// An mxnp array is among them.
    arrays: bool,
    /// Something that NumPy must judge.
    others: bool,
}

impl Leaves {
    fn scan(&mut self, obj: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
        let nested = |items: Vec<Bound<'_, PyAny>>, leaves: &mut Leaves| {
            items.iter().try_for_each(|item| leaves.scan(item, depth + 1))
        };
        if depth > mxnp_core::shape::MAX_NDIM {
            return Ok(()); // NumPy names the limit
        }
        if let Ok(list) = obj.cast::<PyList>() {
            return nested(list.iter().collect(), self);
        }
        if let Ok(tuple) = obj.cast::<PyTuple>() {
            return nested(tuple.iter().collect(), self);
        }
        match operand::scalar(obj)? {
            Some(Scalar::Bool(_)) => self.bools = true,
            Some(Scalar::Int(_)) => self.integers = true,
            Some(Scalar::Float(_)) => self.floats = true,
            Some(Scalar::Complex(..)) => self.complexes = true,
            None => self.scan_array(obj)?,
        }
        Ok(())
    }

    fn scan_array(&mut self, obj: &Bound<'_, PyAny>) -> PyResult<()> {
        let found = match obj.cast::<NDArray>() {
            Ok(array) => {
                self.arrays = true;
                Some(array.get().get(obj.py()).dtype())
            }
            Err(_) if operand::is_numpy(obj)? => Some(dtype::from_numpy(&obj.getattr("dtype")?)?),
            Err(_) => None,
        };
        match (self.strong, found) {
            (_, None) => self.others = true,
            (None, some) => self.strong = some,
            (Some(a), Some(b)) => {
                self.strong = Some(mxnp_core::promote::promote_types(a, b, modes::mode()));
            }
        }
        Ok(())
    }

    /// The dtype of the array, None where NumPy's choice stands.
    fn dtype(&self) -> Option<DType> {
        if self.others {
            return None;
        }
        let mode = modes::mode();
        let weak = match self {
            Leaves { complexes: true, .. } => Some(Scalar::Complex(0.0, 0.0)),
            Leaves { floats: true, .. } => Some(Scalar::Float(0.0)),
            Leaves { integers: true, .. } => Some(Scalar::Int(0)),
            Leaves { bools: true, .. } => Some(Scalar::Bool(false)),
            _ => None,
        };
        match (self.strong, weak) {
            (Some(strong), weak) => {
                let mut metas = vec![mxnp_core::Meta::new(mxnp_core::Shape::new(), strong)];
                metas.extend(weak.map(|s| mxnp_core::Meta {
                    scalar: Some(s),
                    ..mxnp_core::Meta::new(mxnp_core::Shape::new(), dtype::scalar_dtype(s))
                }));
                Some(mxnp_core::promote::result_type_unchecked(&metas, mode))
            }
            (None, Some(weak)) => Some(default_dtype(weak)),
            (None, None) => Some(mode.default_float()), // no element at all
        }
    }
}

/// An array from nested lists and tuples, which may hold arrays.
pub fn from_list(
    obj: &Bound<'_, PyAny>,
    dtype: Option<DType>,
    device: mxnp_graph::Device,
) -> PyResult<Array> {
    let py = obj.py();
    let mut leaves = Leaves::default();
    leaves.scan(obj, 0)?;
    let wanted = dtype.or_else(|| leaves.dtype());
    let source = if leaves.arrays { with_numpy(obj)? } else { obj.clone() };
    // bfloat16 comes by way of float32: NumPy may not know the type.
    let direct = wanted.map(|d| if d == DType::BF16 { DType::F32 } else { d });
    let arguments = match direct {
        Some(direct) => (source, dtype::object(py, direct)?),
        None => (source, py.None().into_bound(py)),
    };
    let made = py.import("numpy")?.call_method1("array", arguments).map_err(|e| adopt(py, e))?;
    let array = from_numpy(&made, device)?;
    finish(py, array, wanted)
}

/// The same nested lists with NumPy arrays in place of ours.
pub fn with_numpy<'py>(obj: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = obj.py();
    if let Ok(array) = obj.cast::<NDArray>() {
        let array = array.get().array(py);
        mxnp_graph::trace::end_to_look(&array);
        return crate::export::asnumpy(py, &array);
    }
    if let Ok(list) = obj.cast::<PyList>() {
        let items: Vec<_> = list.iter().map(|item| with_numpy(&item)).collect::<PyResult<_>>()?;
        return Ok(PyList::new(py, items)?.into_any());
    }
    if let Ok(tuple) = obj.cast_exact::<PyTuple>() {
        let items: Vec<_> = tuple.iter().map(|item| with_numpy(&item)).collect::<PyResult<_>>()?;
        return Ok(PyTuple::new(py, items)?.into_any());
    }
    if let Ok(dict) = obj.cast_exact::<PyDict>() {
        let out = PyDict::new(py);
        for (key, value) in dict.iter() {
            out.set_item(key, with_numpy(&value)?)?;
        }
        return Ok(out.into_any());
    }
    Ok(obj.clone())
}
