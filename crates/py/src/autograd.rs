//! Recording, gradients and user-defined rules, as thin calls of the tape.

use crate::array::{NDArray, wrap};
use crate::error::{call, call_detached, set_pending, type_error, value_error};
use crate::wait::enter;
use mxnp_core::ErrorKind;
use mxnp_graph::tape::{self, Custom, GradReq};
use mxnp_graph::{Array, Handle, modes};
use pyo3::prelude::*;
use pyo3::types::{PyList, PySequence, PyString};
use std::sync::Arc;

/// Switches recording on or off for this thread; gives the state before.
#[pyfunction]
pub fn set_recording(on: bool) -> bool {
    modes::set_recording(on)
}

/// Switches the training mode on or off for this thread; gives the state before.
#[pyfunction]
pub fn set_training(on: bool) -> bool {
    modes::set_training(on)
}

/// Switches the outline mode of this thread on or off; gives the state before. In it, calls are checked and give
/// arrays of the right shape and dtype without contents.
#[pyfunction]
pub fn set_outline(on: bool) -> bool {
    mxnp_graph::outline::set_outline(on)
}

/// Whether operations of this thread are recorded for `backward`.
#[pyfunction]
pub fn is_recording() -> bool {
    modes::is_recording()
}

/// Whether layers behave as in training (dropout, batch statistics) on this thread.
#[pyfunction]
pub fn is_training() -> bool {
    modes::is_training()
}

fn parse_req(py: Python<'_>, text: &str) -> PyResult<GradReq> {
    match text {
        "write" => Ok(GradReq::Write),
        "add" => Ok(GradReq::Add),
        "null" => Ok(GradReq::Null),
        _ => Err(value_error(py, format!("grad_req must be 'write', 'add' or 'null', got '{text}'"))),
    }
}

/// What is done with the gradient of an array: 'write', 'add' or 'null'.
#[pyfunction]
pub fn grad_req(x: &Bound<'_, NDArray>) -> &'static str {
    match tape::grad_req(&x.get().get(x.py())) {
        GradReq::Null => "null",
        GradReq::Write => "write",
        GradReq::Add => "add",
    }
}

/// Whether an array takes part in the recorded graph.
#[pyfunction]
pub fn has_history(x: &Bound<'_, NDArray>) -> bool {
    tape::has_history(&x.get().get(x.py()))
}

/// `y`, a new array, as a result that is constant in `x`: no gradient flows through it, and a backward from it gives
/// zeros.
#[pyfunction]
pub fn constant_in<'py>(y: Bound<'py, NDArray>, x: &Bound<'py, NDArray>) -> Bound<'py, NDArray> {
    let of = x.get().array(x.py());
    y.get().change(x.py(), |y| tape::set_constant_in(y, &of));
    y
}

/// Whether a backward has written the gradient since `set_fresh_grad(x, False)`.
#[pyfunction]
pub fn is_fresh_grad(x: &Bound<'_, NDArray>) -> bool {
    tape::is_fresh_grad(&x.get().get(x.py()))
}

#[pyfunction]
pub fn set_fresh_grad(x: &Bound<'_, NDArray>, fresh: bool) {
    tape::set_fresh_grad(&x.get().get(x.py()), fresh);
}

/// Gives arrays the gradient arrays that backward writes to.
#[pyfunction]
#[pyo3(signature = (variables, gradients, grad_reqs = None))]
pub fn mark_variables(
    variables: &Bound<'_, PySequence>,
    gradients: &Bound<'_, PySequence>,
    grad_reqs: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let py = variables.py();
    enter(py)?;
    let variables = objects("mark_variables", variables)?;
    let gradients = objects("mark_variables", gradients)?;
    let reqs: Vec<String> = match grad_reqs {
        None => vec!["write".into(); variables.len()],
        Some(one) if one.is_instance_of::<PyString>() => vec![one.extract()?; variables.len()],
        Some(many) => many.extract()?,
    };
    if variables.len() != gradients.len() || variables.len() != reqs.len() {
        let text = "mark_variables: variables, gradients and grad_reqs must have the same length";
        return Err(value_error(py, text));
    }
    for ((variable, gradient), req) in variables.iter().zip(&gradients).zip(&reqs) {
        let req = parse_req(py, req)?;
        let grad = gradient.get().array(py);
        call(py, || variable.get().change(py, |x| tape::attach_grad(x, Some(grad), req)))?;
        variable.get().grad.set(py, Some(gradient.clone().unbind()));
    }
    Ok(())
}

fn objects<'py>(what: &str, items: &Bound<'py, PySequence>) -> PyResult<Vec<Bound<'py, NDArray>>> {
    let read = |item: PyResult<Bound<'py, PyAny>>| {
        let item = item?;
        item.cast_into::<NDArray>().map_err(|error| {
            let found = error.into_inner().get_type().name();
            let found = found.map_or_else(|_| "?".to_string(), |name| name.to_string());
            type_error(items.py(), format!("{what}: takes arrays, got {found}"))
        })
    };
    items.try_iter()?.map(read).collect()
}

/// Arrays and, for each, the head gradient or None.
fn heads_and_grads(
    what: &str,
    heads: &Bound<'_, PySequence>,
    head_grads: Option<&Bound<'_, PySequence>>,
) -> PyResult<(Vec<Array>, Vec<Option<Array>>)> {
    let py = heads.py();
    let heads: Vec<Array> = objects(what, heads)?.iter().map(|head| head.get().array(py)).collect();
    let grads = match head_grads {
        None => vec![None; heads.len()],
        Some(given) => optional_arrays(what, given.as_any())?,
    };
    if grads.len() != heads.len() {
        let text = format!("{what}: {} heads, but {} head gradients", heads.len(), grads.len());
        return Err(value_error(py, text));
    }
    Ok((heads, grads))
}

fn optional_arrays(what: &str, items: &Bound<'_, PyAny>) -> PyResult<Vec<Option<Array>>> {
    let py = items.py();
    let read = |item: PyResult<Bound<'_, PyAny>>| {
        let item = item?;
        if item.is_none() {
            return Ok(None);
        }
        match item.cast::<NDArray>() {
            Ok(array) => Ok(Some(array.get().array(py))),
            Err(_) => {
                let found = item.get_type().name()?.to_string();
                Err(type_error(py, format!("{what}: takes arrays or None, got {found}")))
            }
        }
    };
    items.try_iter()?.map(read).collect()
}

/// Computes the gradients of `heads` into the arrays that `attach_grad` made.
#[pyfunction]
#[pyo3(signature = (heads, head_grads = None, retain_graph = false, train_mode = true))]
pub fn backward(
    heads: &Bound<'_, PySequence>,
    head_grads: Option<&Bound<'_, PySequence>>,
    retain_graph: bool,
    train_mode: bool,
) -> PyResult<()> {
    let py = heads.py();
    enter(py)?;
    let (heads, grads) = heads_and_grads("backward", heads, head_grads)?;
    run_backward(py, &heads, &grads, retain_graph, train_mode)
}

fn run_backward(
    py: Python<'_>,
    heads: &[Array],
    grads: &[Option<Array>],
    retain_graph: bool,
    train_mode: bool,
) -> PyResult<()> {
    call_detached(py, || {
        let heads: Vec<&Array> = heads.iter().collect();
        let grads: Vec<Option<&Array>> = grads.iter().map(Option::as_ref).collect();
        tape::backward(&heads, &grads, retain_graph, train_mode)
    })
}

/// The gradients of `heads` with respect to `variables`, as a list.
#[pyfunction]
#[pyo3(signature = (heads, variables, head_grads = None, retain_graph = None, create_graph = false, train_mode = true))]
pub fn grad(
    heads: &Bound<'_, PySequence>,
    variables: &Bound<'_, PySequence>,
    head_grads: Option<&Bound<'_, PySequence>>,
    retain_graph: Option<bool>,
    create_graph: bool,
    train_mode: bool,
) -> PyResult<Vec<Py<NDArray>>> {
    let py = heads.py();
    enter(py)?;
    let (heads, grads) = heads_and_grads("grad", heads, head_grads)?;
    let variables: Vec<Array> = objects("grad", variables)?.iter().map(|v| v.get().array(py)).collect();
    let retain_graph = retain_graph.unwrap_or(create_graph);
    let found = call_detached(py, || {
        let heads: Vec<&Array> = heads.iter().collect();
        let grads: Vec<Option<&Array>> = grads.iter().map(Option::as_ref).collect();
        let variables: Vec<&Array> = variables.iter().collect();
        tape::grad(&heads, &variables, &grads, retain_graph, create_graph, train_mode)
    })?;
    found.into_iter().map(|array| wrap(py, array)).collect()
}

/// A user's gradient rule: a Python callable.
struct PyRule(Py<PyAny>);

impl PyRule {
    fn call(&self, py: Python<'_>, heads: Vec<Option<Array>>) -> PyResult<Vec<Option<Array>>> {
        let heads: Vec<Option<Py<NDArray>>> =
            heads.into_iter().map(|g| g.map(|g| wrap(py, g)).transpose()).collect::<PyResult<_>>()?;
        let given = self.0.bind(py).call1((PyList::new(py, heads)?,))?;
        optional_arrays("Function.backward", &given)
    }
}

impl Custom for PyRule {
    fn backward(&self, heads: Vec<Option<Array>>) -> mxnp_graph::Result<Vec<Option<Array>>> {
        Python::attach(|py| self.call(py, heads)).map_err(|error| {
            set_pending(error);
            let text = "the user's backward raised";
            mxnp_graph::Error::Op(mxnp_core::Error::new(ErrorKind::State, "Function", text))
        })
    }
}

/// Makes `outputs` the results of a user's function of `inputs`.
#[pyfunction]
pub fn record_custom(
    inputs: &Bound<'_, PySequence>,
    outputs: &Bound<'_, PySequence>,
    backward: Py<PyAny>,
) -> PyResult<()> {
    let py = inputs.py();
    enter(py)?;
    let inputs: Vec<Array> = objects("Function", inputs)?.iter().map(|x| x.get().array(py)).collect();
    let outputs = objects("Function", outputs)?;
    for (i, output) in outputs.iter().enumerate() {
        if outputs[..i].iter().any(|earlier| earlier.is(output)) {
            return Err(value_error(py, "Function: forward returned one array twice"));
        }
    }
    let inputs: Vec<&Array> = inputs.iter().collect();
    call(py, || {
        // Handles of the outputs' values take the node, and give it to the objects.
        let mut handles: Vec<Handle> = outputs.iter().map(|y| Handle::new(y.get().array(py))).collect();
        let mut slots: Vec<&mut Handle> = handles.iter_mut().collect();
        tape::record_custom(&inputs, &mut slots, Arc::new(PyRule(backward)));
        for (output, handle) in outputs.iter().zip(&handles) {
            output.get().change(py, |y| y.set((**handle).clone()));
        }
        Ok(())
    })
}

impl NDArray {
    fn forget_grad(&self, py: Python<'_>) -> PyResult<()> {
        self.grad.set(py, None);
        call(py, || self.change(py, |x| tape::attach_grad(x, None, GradReq::Null)))
    }
}

/// `x.drop_grad()` for a parameter's array, whose place on the tape graphs look up at each call.
#[pyfunction]
pub fn forget_grad(x: &Bound<'_, NDArray>) -> PyResult<()> {
    x.get().forget_grad(x.py())
}

#[pymethods]
impl NDArray {
    /// The gradient that backward writes; the same object each time.
    #[getter(grad)]
    fn py_grad(slf: &Bound<'_, Self>) -> PyResult<Option<Py<NDArray>>> {
        let py = slf.py();
        let Some(found) = tape::grad_of(&slf.get().get(py)) else { return Ok(None) };
        if let Some(known) = &*slf.get().grad.get(py)
            && known.get().get(py).same_value(&found)
            && known.get().get(py).layout() == found.layout()
        {
            return Ok(Some(known.clone_ref(py)));
        }
        let made = wrap(py, found)?;
        slf.get().grad.set(py, Some(made.clone_ref(py)));
        Ok(Some(made))
    }

    /// Makes the array a place where gradients are kept, zero at first.
    #[pyo3(signature = (grad_req = "write", stype = None))]
    fn attach_grad(&self, py: Python<'_>, grad_req: &str, stype: Option<&str>) -> PyResult<()> {
        enter(py)?;
        if stype.is_some_and(|s| s != "default") {
            return Err(value_error(py, "attach_grad: only stype 'default' exists"));
        }
        let req = parse_req(py, grad_req)?;
        call(py, || self.change(py, |x| tape::attach_grad(x, None, req)))
    }

    /// Forgets the gradient array.
    fn drop_grad(&self, py: Python<'_>) -> PyResult<()> {
        // A graph may lead to the place on the tape that this array had.
        crate::graph::drop_graphs();
        self.forget_grad(py)
    }

    /// The same memory without history.
    fn detach(&self, py: Python<'_>) -> PyResult<Py<NDArray>> {
        wrap(py, self.array(py).detach())
    }

    /// Computes the gradients of this array's history.
    #[pyo3(signature = (out_grad = None, retain_graph = false, train_mode = true))]
    fn backward(
        &self,
        py: Python<'_>,
        out_grad: Option<&Bound<'_, NDArray>>,
        retain_graph: bool,
        train_mode: bool,
    ) -> PyResult<()> {
        enter(py)?;
        let grad = out_grad.map(|g| g.get().array(py));
        run_backward(py, &[self.array(py)], &[grad], retain_graph, train_mode)
    }
}
