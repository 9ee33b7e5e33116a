//! Calls of ops by name: `Op` takes arrays and keyword attributes. One object per op, made once.

use crate::array::{NDArray, wrap_any};
use crate::error::{type_error, value_error};
use crate::operand::{self, Results, Source, argument, device_of};
use crate::wait::{enter, pay};
use crate::{attrs, device};
use mxnp_core::attrs::Attrs;
use mxnp_core::op::{Arity, Grad};
use mxnp_core::ops as core_ops;
use mxnp_graph::Input;
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PySequence, PyTuple};
use smallvec::SmallVec;

/// An op of the core: `op(*inputs, out=None, device=None, **attributes)`.
#[pyclass(name = "Op", module = "mxnp._core", frozen)]
pub struct PyOp(pub &'static mxnp_core::Op);

static TABLE: PyOnceLock<Py<PyDict>> = PyOnceLock::new();

/// The object of the op called `name`.
pub fn find<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyOp>> {
    let table = TABLE.get_or_init(py, || PyDict::new(py).unbind()).bind(py);
    if let Some(known) = table.get_item(name)? {
        return Ok(known.cast_into()?);
    }
    let op = core_ops::find(name)
        .ok_or_else(|| PyAttributeError::new_err(format!("there is no op called '{name}'")))?;
    let made = Bound::new(py, PyOp(op))?;
    table.set_item(name, &made)?;
    Ok(made)
}

/// The op called `name`; AttributeError where there is none.
#[pyfunction]
pub fn op<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyOp>> {
    find(py, name)
}

#[pyfunction]
pub fn op_names() -> Vec<&'static str> {
    core_ops::all().map(|op| op.name).collect()
}

/// `op(name)(*inputs, out=out, **attrs)`.
#[pyfunction]
#[pyo3(signature = (name, inputs, out = None, **attrs))]
pub fn call(
    py: Python<'_>,
    name: &str,
    inputs: &Bound<'_, PySequence>,
    out: Option<&Bound<'_, PyAny>>,
    attrs: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyAny>> {
    let op = find(py, name)?;
    run(op.get().0, &inputs.to_tuple()?, out, attrs)
}

/// Calls `op` with the attributes in `keywords` (its keys 'out' and 'device' are not attributes).
pub fn run(
    op: &'static mxnp_core::Op,
    args: &Bound<'_, PyTuple>,
    out: Option<&Bound<'_, PyAny>>,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyAny>> {
    let py = args.py();
    enter(py)?;
    let attrs = attrs::read(py, op, keywords, &["out", "device"])?;
    let wanted = match keywords {
        Some(keywords) => keywords.get_item("device")?.filter(|d| !d.is_none()),
        None => None,
    };
    let device = match &wanted {
        Some(device) => device::Device::parse(device)?,
        None => device_of(args),
    };
    let args: SmallVec<[Bound<'_, PyAny>; 4]> = args.iter().collect();
    let sources: SmallVec<[Source<'_, '_>; 4]> =
        args.iter().map(|arg| argument(arg, device)).collect::<PyResult<_>>()?;
    check_updated(py, op, &attrs, &args, &sources)?;
    if let Some(out) = out.filter(|out| !out.is_none()) {
        let targets = targets(op.name, out)?;
        let outs: SmallVec<[&NDArray; 2]> = targets.iter().map(|t| t.get()).collect();
        operand::invoke_into(py, op, attrs, sources, &outs)?;
        return Ok(out.clone().unbind());
    }
    let results = {
        let operands: SmallVec<[operand::Operand<'_>; 4]> =
            sources.into_iter().map(|source| source.operand(py)).collect();
        let inputs: SmallVec<[Input<'_>; 4]> = operands.iter().map(operand::Operand::input).collect();
        // A call without arrays makes its result on the thread's device: that is `device` for its length.
        let before = mxnp_graph::device::set_current(device);
        let results = operand::invoke(py, op, attrs, &inputs);
        mxnp_graph::device::set_current(before);
        results?
    };
    give(py, results)
}

/// Refuses anything but arrays where the op updates in place: a copy made for the call would take what it writes.
fn check_updated(
    py: Python<'_>,
    op: &mxnp_core::Op,
    attrs: &Attrs,
    args: &[Bound<'_, PyAny>],
    sources: &[Source<'_, '_>],
) -> PyResult<()> {
    let (Arity::Exactly(least) | Arity::Between(least, _) | Arity::AtLeast(least)) = op.arity;
    if sources.len() < least {
        return Ok(()); // which is said when the call is made
    }
    let mut updated = op.updates(attrs, sources.len()).into_iter().filter(|&i| i < sources.len());
    match updated.find(|&i| !matches!(sources[i], Source::Object(_))) {
        None => Ok(()),
        Some(i) => {
            let got = args[i].get_type().fully_qualified_name()?;
            let text =
                format!("{}: input {i} is updated in place, so it must be an array, got {got}", op.name);
            Err(type_error(py, text + "\nhint: make one of it with mxnp.np.array and keep that"))
        }
    }
}

/// The results as Python gets them: an array, a tuple of several, None where there is none.
pub fn give(py: Python<'_>, mut results: Results) -> PyResult<Py<PyAny>> {
    match results.len() {
        0 => pay(py).map(|()| py.None()),
        1 => wrap_any(py, results.swap_remove(0)),
        _ => {
            let arrays: Vec<Py<PyAny>> =
                results.into_iter().map(|array| wrap_any(py, array)).collect::<PyResult<_>>()?;
            Ok(PyTuple::new(py, arrays)?.into_any().unbind())
        }
    }
}

/// The arrays that `out=` names.
pub fn targets<'py>(op: &str, out: &Bound<'py, PyAny>) -> PyResult<SmallVec<[Bound<'py, NDArray>; 2]>> {
    let one = |obj: &Bound<'py, PyAny>| {
        obj.cast::<NDArray>().cloned().map_err(|_| {
            type_error(obj.py(), format!("{op}: return arrays must be of ArrayType (mxnp.np.ndarray)"))
        })
    };
    match out.cast::<PyTuple>() {
        Ok(tuple) if tuple.is_empty() => Err(value_error(out.py(), format!("{op}: out is an empty tuple"))),
        Ok(tuple) => tuple.iter().map(|obj| one(&obj)).collect(),
        Err(_) => Ok(SmallVec::from_iter([one(out)?])),
    }
}

#[pymethods]
impl PyOp {
    #[pyo3(signature = (*inputs, **attrs))]
    fn __call__(
        &self,
        inputs: &Bound<'_, PyTuple>,
        attrs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let out = match attrs {
            Some(attrs) => attrs.get_item("out")?,
            None => None,
        };
        run(self.0, inputs, out.as_ref(), attrs)
    }

    #[getter]
    fn name(&self) -> &'static str {
        self.0.name
    }

    #[getter]
    fn hidden(&self) -> usize {
        self.0.hidden
    }

    #[getter]
    fn is_random(&self) -> bool {
        self.0.random
    }

    #[getter]
    fn is_elementwise(&self) -> bool {
        self.0.is_fusable()
    }

    /// 'vjp', 'zero', or the reason why there is none.
    #[getter]
    fn gradient(&self) -> &'static str {
        match self.0.grad {
            Grad::Vjp(_) => "vjp",
            Grad::Zero | Grad::RealZero(_) => "zero",
            Grad::None(why) => why,
        }
    }

    /// The least and the greatest number of inputs, None for no limit.
    #[getter]
    fn arity(&self) -> (usize, Option<usize>) {
        match self.0.arity {
            Arity::Exactly(n) => (n, Some(n)),
            Arity::Between(low, high) => (low, Some(high)),
            Arity::AtLeast(low) => (low, None),
        }
    }

    fn __repr__(&self) -> String {
        format!("<op '{}'>", self.0.name)
    }

    fn __reduce__(&self, py: Python<'_>) -> PyResult<(Py<PyAny>, (&'static str,))> {
        Ok((py.import("mxnp._core")?.getattr("op")?.unbind(), (self.0.name,)))
    }
}
