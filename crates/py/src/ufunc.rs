//! Elementwise ops as NumPy's universal functions: native callables with `out`, `where`, `dtype`, `casting`.

use crate::array::{NDArray, wrap_any};
use crate::error::{core_error, type_error, value_error};
use crate::operand::{self, Operand, Results, Source, argument, device_of};
use crate::wait::enter;
use crate::{convert, dtype, ops};
use mxnp_core::attrs::Attrs;
use mxnp_core::op::{Arity, Meta};
use mxnp_core::promote::{Casting, can_cast};
use mxnp_core::{DType, Op};
use mxnp_graph::{Array, Input, modes};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyTuple};
use smallvec::SmallVec;

/// An elementwise op of the core under its NumPy name.
#[pyclass(module = "mxnp._core", frozen, weakref, dict)]
pub struct Ufunc {
    op: &'static Op,
    /// The defaults of its attributes.
    attrs: Attrs,
    name: String,
    signature: Option<String>,
    nin: usize,
}

static TABLE: PyOnceLock<Py<PyDict>> = PyOnceLock::new();

/// The Ufuncs made so far, by NumPy's name.
pub fn table(py: Python<'_>) -> &Bound<'_, PyDict> {
    TABLE.get_or_init(py, || PyDict::new(py).unbind()).bind(py)
}

#[pyfunction]
pub fn ufunc_names(py: Python<'_>) -> PyResult<Vec<String>> {
    table(py).keys().extract()
}

/// What a call's keywords ask for.
struct Options<'py> {
    outs: SmallVec<[Option<Bound<'py, NDArray>>; 2]>,
    mask: Option<Bound<'py, PyAny>>,
    dtype: Option<DType>,
    casting: Casting,
}

impl<'py> Options<'py> {
    fn read(
        ufunc: &Ufunc,
        args: &Bound<'py, PyTuple>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Self> {
        let py = args.py();
        let mut options =
            Options { outs: SmallVec::new(), mask: None, dtype: None, casting: Casting::SameKind };
        for arg in args.iter().skip(ufunc.nin) {
            options.outs.push(target(ufunc, &arg)?);
        }
        for (key, value) in keywords.into_iter().flatten() {
            match key.extract::<&str>()? {
                "out" if !options.outs.is_empty() && !value.is_none() => {
                    let text = format!(
                        "{}: cannot specify 'out' as both a positional and keyword argument",
                        ufunc.name
                    );
                    return Err(type_error(py, text));
                }
                "out" => match value.cast::<PyTuple>() {
                    Ok(tuple) => {
                        for item in tuple {
                            options.outs.push(target(ufunc, &item)?);
                        }
                    }
                    Err(_) => options.outs.push(target(ufunc, &value)?),
                },
                "where" => options.mask = (!is_true(&value)).then_some(value),
                "dtype" => options.dtype = dtype::parse_optional(Some(&value))?,
                "casting" => options.casting = dtype::parse_casting(py, value.extract()?)?,
                "order" | "subok" | "name" => {}
                other => {
                    let text = format!("{}() got an unexpected keyword argument '{other}'", ufunc.name);
                    return Err(type_error(py, text));
                }
            }
        }
        if options.outs.iter().all(Option::is_none) {
            options.outs.clear();
        }
        Ok(options)
    }
}

fn is_true(value: &Bound<'_, PyAny>) -> bool {
    value.cast::<PyBool>().is_ok_and(|b| b.is_true())
}

fn target<'py>(ufunc: &Ufunc, obj: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, NDArray>>> {
    if obj.is_none() {
        return Ok(None);
    }
    let found = obj.cast::<NDArray>().cloned();
    found.map(Some).map_err(|_| {
        type_error(obj.py(), format!("{}: return arrays must be of ArrayType (mxnp.np.ndarray)", ufunc.name))
    })
}

impl Ufunc {
    /// The call without keywords or output arguments.
    #[inline]
    fn plain(&self, args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        let py = args.py();
        enter(py)?;
        let device = device_of(args);
        let args: SmallVec<[Bound<'_, PyAny>; 3]> = args.iter().collect();
        let sources: SmallVec<[Source<'_, '_>; 3]> =
            args.iter().map(|arg| argument(arg, device)).collect::<PyResult<_>>()?;
        let results = {
            let operands: SmallVec<[Operand<'_>; 3]> =
                sources.into_iter().map(|source| source.operand(py)).collect();
            let inputs: SmallVec<[Input<'_>; 3]> = operands.iter().map(Operand::input).collect();
            operand::invoke(py, self.op, self.attrs.clone(), &inputs)?
        };
        ops::give(py, results)
    }

    fn with_options(
        &self,
        args: &Bound<'_, PyTuple>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let py = args.py();
        let options = Options::read(self, args, keywords)?;
        enter(py)?;
        let device = device_of(args);
        let args: SmallVec<[Bound<'_, PyAny>; 3]> = args.iter().take(self.nin).collect();
        let mut operands: SmallVec<[Operand<'_>; 4]> = SmallVec::new();
        for arg in &args {
            operands.push(argument(arg, device)?.owned(py));
        }
        if let Some(dtype) = options.dtype {
            self.convert_inputs(py, &mut operands, dtype, options.casting)?;
        }
        let inputs: SmallVec<[Input<'_>; 4]> = operands.iter().map(Operand::input).collect();
        let is_simple =
            options.mask.is_none() && options.dtype.is_none() && options.casting == Casting::SameKind;
        if is_simple
            && options.outs.len() == 1
            && let Some(Some(out)) = options.outs.first()
        {
            out.get()
                .write(py, |out| mxnp_graph::invoke_into(self.op, self.attrs.clone(), &inputs, &mut [out]))?;
            return Ok(out.clone().into_any().unbind());
        }
        let mut results = operand::invoke(py, self.op, self.attrs.clone(), &inputs)?;
        if let Some(dtype) = options.dtype {
            for result in results.iter_mut().filter(|r| r.dtype() != dtype) {
                *result = convert::astype(py, result, dtype)?;
            }
        }
        self.deliver(py, results, &options)
    }

    /// Converts the inputs so that the op computes in `dtype`, unless it already gives that dtype.
    fn convert_inputs(
        &self,
        py: Python<'_>,
        operands: &mut [Operand<'_>],
        dtype: DType,
        casting: Casting,
    ) -> PyResult<()> {
        let metas: Vec<Meta> = operands.iter().map(|o| meta(&o.input())).collect();
        let natural = self.op.infer(&self.attrs, &metas, modes::mode());
        if natural.is_ok_and(|found| found.outs.first().is_some_and(|out| out.dtype == dtype)) {
            return Ok(());
        }
        for operand in operands {
            let made = match operand {
                Operand::Made(array) if array.dtype() != dtype => {
                    if !can_cast(array.dtype(), dtype, casting) {
                        let text = format!(
                            "Cannot cast ufunc '{}' input from dtype('{}') to dtype('{dtype}') with casting rule \
                             'same_kind'",
                            self.name,
                            array.dtype()
                        );
                        return Err(type_error(py, text));
                    }
                    convert::astype(py, array, dtype)?
                }
                Operand::Scalar(scalar) => {
                    convert::from_scalar(py, *scalar, dtype, crate::device::current())?
                }
                _ => continue,
            };
            *operand = Operand::Made(made);
        }
        Ok(())
    }

    /// Puts results where `out` says, under the mask.
    fn deliver(&self, py: Python<'_>, results: Results, options: &Options<'_>) -> PyResult<Py<PyAny>> {
        let mask = match &options.mask {
            Some(mask) => Some(convert::array(mask, None, crate::device::current())?),
            None => None,
        };
        let mut given: Vec<Py<PyAny>> = Vec::new();
        for (i, result) in results.into_iter().enumerate() {
            let out = options.outs.get(i).and_then(Option::as_ref);
            let result = match &mask {
                Some(mask) => self.masked(py, mask, &result, out)?,
                None => result,
            };
            let Some(out) = out else {
                given.push(wrap_any(py, result)?);
                continue;
            };
            let to = out.get().get(py).dtype();
            if !can_cast(result.dtype(), to, options.casting) {
                let text = format!(
                    "Cannot cast ufunc '{}' output from dtype('{}') to dtype('{to}') with casting rule 'same_kind'",
                    self.name,
                    result.dtype()
                );
                return Err(type_error(py, text));
            }
            let fits = result.shape() == out.get().get(py).shape();
            if !fits && out.get().get(py).ndim() < result.ndim() {
                return Err(value_error(py, format!("{}: output array has the wrong shape", self.name)));
            }
            out.get().write(py, |out| mxnp_graph::assign(out, &[], Input::Array(&result)))?;
            given.push(out.clone().into_any().unbind());
        }
        match given.len() {
            1 => Ok(given.swap_remove(0)),
            _ => Ok(PyTuple::new(py, given)?.into_any().unbind()),
        }
    }

    /// `result` where the mask holds, else what was in `out` (zero where there is none).
    fn masked(
        &self,
        py: Python<'_>,
        mask: &Array,
        result: &Array,
        out: Option<&Bound<'_, NDArray>>,
    ) -> PyResult<Array> {
        let select = &mxnp_core::ops::arith::WHERE;
        match out {
            Some(out) => {
                let old = out.get().array(py);
                let new = match old.dtype() == result.dtype() {
                    true => result.clone(),
                    false => convert::astype(py, result, old.dtype())?,
                };
                let ins = [Input::Array(mask), Input::Array(&new), Input::Array(&old)];
                operand::invoke_one(py, select, Attrs::NONE, &ins)
            }
            None => {
                let zero = mxnp_core::Scalar::Bool(false);
                let ins = [Input::Array(mask), Input::Array(result), Input::Scalar(zero)];
                operand::invoke_one(py, select, Attrs::NONE, &ins)
            }
        }
    }
}

fn meta(input: &Input<'_>) -> Meta {
    match input {
        Input::Array(array) => array.meta(),
        Input::Scalar(scalar) => {
            Meta { scalar: Some(*scalar), ..Meta::new(mxnp_core::Shape::new(), dtype::scalar_dtype(*scalar)) }
        }
    }
}

#[pymethods]
impl Ufunc {
    #[new]
    #[pyo3(signature = (op, name = None, doc = "", signature = None))]
    fn py_new(
        py: Python<'_>,
        op: &str,
        name: Option<&str>,
        doc: &str,
        signature: Option<String>,
    ) -> PyResult<Py<Ufunc>> {
        let op = ops::find(py, op)?.get().0;
        let Arity::Exactly(nin) = op.arity else {
            return Err(value_error(py, format!("{}: a ufunc has a fixed number of inputs", op.name)));
        };
        let attrs = (op.attrs)(op.name, Vec::new()).map_err(|error| core_error(py, error))?;
        let name = name.unwrap_or(op.name).to_string();
        let made = Py::new(py, Ufunc { op, attrs, name: name.clone(), signature, nin })?;
        made.setattr(py, "__doc__", doc)?; // shadows the class's own
        table(py).set_item(name, &made)?;
        Ok(made)
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<Py<PyAny>> {
        if args.len() == self.nin && kwargs.is_none() {
            return self.plain(args);
        }
        if args.len() < self.nin || args.len() > self.nin + self.nout() {
            let text = format!(
                "{}() takes from {} to {} positional arguments but {} were given",
                self.name,
                self.nin,
                self.nin + self.nout(),
                args.len()
            );
            return Err(type_error(args.py(), text));
        }
        self.with_options(args, kwargs)
    }

    #[getter]
    fn __name__(&self) -> &str {
        &self.name
    }

    #[getter]
    fn __qualname__(&self) -> &str {
        &self.name
    }

    /// An inspect.Signature, made from the text.
    #[getter]
    fn __signature__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let this = slf.get();
        let made;
        let text = match &this.signature {
            Some(text) => text.trim(),
            None => {
                let names: Vec<String> = match this.nin {
                    1 => vec!["x".into()],
                    n => (1..=n).map(|i| format!("x{i}")).collect(),
                };
                made = format!(
                    "({}, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None, subok=True)",
                    names.join(", ")
                );
                &made
            }
        };
        let inner = text.trim_start_matches('(').trim_end_matches(')');
        let code = std::ffi::CString::new(format!("lambda {inner}: None"))?;
        let function = py.eval(&code, None, None)?;
        py.import("inspect")?.call_method1("signature", (function,))
    }

    #[getter]
    fn nin(&self) -> usize {
        self.nin
    }

    #[getter]
    fn nout(&self) -> usize {
        // Only divmod, modf and frexp have two results; their infer says so.
        let metas = vec![Meta::new(mxnp_core::Shape::new(), DType::F32); self.nin];
        let found = self.op.infer(&self.attrs, &metas, modes::mode());
        found.map_or(1, |found| found.outs.len() - self.op.hidden)
    }

    #[getter]
    fn nargs(&self) -> usize {
        self.nin + self.nout()
    }

    #[getter(op)]
    fn py_op<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, ops::PyOp>> {
        ops::find(slf.py(), slf.get().op.name)
    }

    fn __repr__(&self) -> String {
        format!("<ufunc '{}'>", self.name)
    }

    fn __reduce__(&self, py: Python<'_>) -> PyResult<(Py<PyAny>, (&'static str, String))> {
        Ok((py.import("mxnp._core")?.getattr("_ufunc")?.unbind(), (self.op.name, self.name.clone())))
    }
}

/// The Ufunc of a name: what pickles call.
#[pyfunction]
pub fn _ufunc<'py>(py: Python<'py>, op: &str, name: &str) -> PyResult<Bound<'py, PyAny>> {
    match table(py).get_item(name)? {
        Some(known) => Ok(known),
        None => Ok(Ufunc::py_new(py, op, Some(name), "", None)?.into_bound(py).into_any()),
    }
}
