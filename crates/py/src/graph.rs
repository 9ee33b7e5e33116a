//! Compiled functions as Python sees them: tracing a call, replaying it for other arrays, and looking at the graph.

use crate::array::{NDArray, wrap};
use crate::cell::GilCell;
use crate::dtype;
use crate::error::{call, call_detached, type_error, value_error};
use crate::export::number;
use crate::signature::{Key, Modes};
use crate::tree::{Builder, Flat, Token};
use crate::wait::{enter, pay};
use mxnp_graph::listing::{self, From, Listed, What};
use mxnp_graph::trace::{self, Purpose};
use mxnp_graph::{Array, Graph, tape};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyEllipsis, PyList, PyNotImplemented, PyTuple};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts what makes graphs stale anywhere: a cast, a new child, a hook.
static EPOCH: AtomicU64 = AtomicU64::new(0);

/// Graphs kept for each block; the oldest gives way.
const MAX_GRAPHS: usize = 64;
/// Graphs kept for calls of one kind, which go different ways by the data of arrays; then such calls run in Python.
const MAX_BRANCHES: usize = 8;

/// Makes every compiled function forget its graphs before its next call.
#[pyfunction]
pub fn drop_graphs() {
    EPOCH.fetch_add(1, Ordering::Relaxed);
}

/// Whether this thread is tracing a function.
#[pyfunction]
pub fn is_tracing() -> bool {
    trace::is_tracing()
}

/// Ends the trace under way, if there is one: the function runs on, and is not compiled for such arguments. With an
/// array, only where its data may differ from call to call.
#[pyfunction]
#[pyo3(signature = (why, x = None))]
pub fn end_trace(why: &str, x: Option<&Bound<'_, NDArray>>) {
    if let Some(x) = x {
        trace::end_to_look(&x.get().array(x.py()));
    } else if trace::is_tracing() {
        // A handful of texts, each leaked once per end of a trace.
        trace::end_early(Box::leak(why.to_string().into_boxed_str()));
    }
}

/// `bool(x)` for a branch that may be part of a graph: the graph is then one of those that went this way.
#[pyfunction]
pub fn decide(x: &Bound<'_, NDArray>) -> PyResult<bool> {
    let py = x.py();
    enter(py)?;
    let array = x.get().array(py);
    if array.size() != 1 {
        return crate::export::truth(py, &array);
    }
    call_detached(py, || trace::decide(&array))
}

/// Stops or goes on taking notes of calls; gives what was set before.
#[pyfunction]
pub fn set_trace_paused(paused: bool) -> bool {
    trace::set_paused(paused)
}

/// Notes that `outs`, arrays made for it, are the results of branch or loop `number`, which uses `ins`: a call `held`.
#[pyfunction]
pub fn note_held(py: Python<'_>, number: i64, ins: Vec<Bound<'_, NDArray>>, outs: Vec<Bound<'_, NDArray>>) {
    let arrays = |given: &[Bound<'_, NDArray>]| given.iter().map(|x| x.get().array(py)).collect::<Vec<_>>();
    let (ins, outs) = (arrays(&ins), arrays(&outs));
    trace::note_held(number, &ins.iter().collect::<Vec<_>>(), &outs.iter().collect::<Vec<_>>());
}

/// Where an array object of the result comes from.
enum Given {
    Argument(usize),
    /// An object the caller holds, such as a parameter's array.
    Held(Py<NDArray>),
    /// Output of the graph.
    Made,
}

struct Plan {
    graph: Arc<Graph>,
    /// Those the graph asks for, in its order, with their names.
    objects: Vec<Py<NDArray>>,
    names: Vec<String>,
    results: Vec<Given>,
    tokens: Vec<Token>,
}

enum Kind {
    Graph(Plan),
    /// It could not be compiled, for the reason given.
    Eager(&'static str),
}

struct Entry {
    key: Key,
    kind: Kind,
}

/// The graphs of one function, by what they were traced for.
#[pyclass(module = "mxnp._core", frozen, weakref)]
pub struct Compiled {
    /// Whether graphs are replayed, those of prediction with what they make of parameters folded; others are shown.
    folds: bool,
    entries: GilCell<Vec<Arc<Entry>>>,
    epoch: AtomicU64,
}

impl Compiled {
    /// The entries, without those of an earlier epoch.
    fn current(&self, py: Python<'_>) -> SmallVec<[Arc<Entry>; 4]> {
        let epoch = EPOCH.load(Ordering::Relaxed);
        if self.epoch.swap(epoch, Ordering::Relaxed) != epoch {
            self.entries.set(py, Vec::new());
        }
        self.entries.get(py).iter().cloned().collect()
    }
}

fn flatten<'py>(args: &Bound<'py, PyTuple>, kwargs: &Bound<'py, PyDict>) -> PyResult<Option<Flat<'py>>> {
    let mut flat = Flat::default();
    let whole = flat.add(args.as_any())? && (kwargs.is_empty() || flat.add_dict(kwargs)?);
    Ok(whole.then_some(flat))
}

#[pymethods]
impl Compiled {
    #[new]
    #[pyo3(signature = (folds = false))]
    fn py_new(folds: bool) -> Compiled {
        let epoch = AtomicU64::new(EPOCH.load(Ordering::Relaxed));
        Compiled { folds, entries: GilCell::new(Vec::new()), epoch }
    }

    /// The result for these arguments by a graph; NotImplemented where there is none yet, and Ellipsis where
    /// there cannot be one.
    fn run(&self, args: &Bound<'_, PyTuple>, kwargs: &Bound<'_, PyDict>) -> PyResult<Py<PyAny>> {
        let py = args.py();
        enter(py)?;
        let Some(flat) = flatten(args, kwargs)? else {
            return Ok(PyEllipsis::get(py).to_owned().into_any().unbind());
        };
        let arrays = flat.values(py);
        let now = Modes::now();
        // How this call's branches go, as far as the graphs tried so far have found out.
        let mut seen = Vec::new();
        for entry in self.current(py) {
            if !entry.key.fits(py, now, &flat, &arrays)? {
                continue;
            }
            match &entry.kind {
                Kind::Eager(_) => return Ok(PyEllipsis::get(py).to_owned().into_any().unbind()),
                Kind::Graph(plan) => {
                    let goes_so = plan.graph.branches().zip(&seen).all(|(one, other)| one == *other);
                    if goes_so && let Some(result) = plan.run(py, &flat, &arrays, &mut seen)? {
                        return Ok(result);
                    }
                }
            }
        }
        Ok(PyNotImplemented::get(py).to_owned().into_any().unbind())
    }

    /// Starts a trace: the arguments to call the function with. Its `finish` or `abandon` must follow.
    fn begin(
        slf: &Bound<'_, Self>,
        args: &Bound<'_, PyTuple>,
        kwargs: &Bound<'_, PyDict>,
    ) -> PyResult<(Tracing, Py<PyAny>, Py<PyAny>)> {
        let py = slf.py();
        enter(py)?;
        let Some(flat) = flatten(args, kwargs)? else {
            return Err(type_error(py, "these arguments cannot be traced"));
        };
        let arrays = flat.values(py);
        let key = Key::of(py, &flat, &arrays);
        let given = call(py, || trace::begin(&arrays.iter().collect::<Vec<_>>()))?;
        let mut objects: Vec<Py<NDArray>> = Vec::with_capacity(given.len());
        let mut is_same = true;
        for ((object, array), given) in flat.arrays.iter().zip(&arrays).zip(given) {
            let same = given.same_value(array);
            is_same &= same;
            objects.push(if same { object.clone().unbind() } else { wrap(py, given)? });
        }
        let originals = flat.arrays.iter().map(|object| object.clone().unbind()).collect();
        let (mut new_args, mut new_kwargs) = (args.clone().into_any(), kwargs.clone().into_any());
        if !is_same {
            let mut builder = Builder { py, tokens: flat.tokens.iter(), arrays: &objects };
            new_args = builder.build()?;
            if !kwargs.is_empty() {
                new_kwargs = builder.build()?;
            }
        }
        let owner = slf.clone().unbind();
        let state = State { key, objects, originals };
        let tracing = Tracing { owner, state: GilCell::new(Some(state)) };
        Ok((tracing, new_args.unbind(), new_kwargs.unbind()))
    }

    /// Forgets all graphs.
    fn clear(&self, py: Python<'_>) {
        self.entries.set(py, Vec::new());
    }

    /// The graphs there are, oldest first.
    fn graphs(&self, py: Python<'_>) -> PyResult<Vec<Py<PyGraph>>> {
        let mut found = Vec::new();
        for entry in self.current(py) {
            if let Kind::Graph(plan) = &entry.kind {
                let objects = plan.objects.iter().map(|object| object.clone_ref(py)).collect();
                let (graph, names) = (plan.graph.clone(), plan.names.clone());
                let training = entry.key.modes.training;
                found.push(Py::new(py, PyGraph { graph, objects, names, training })?);
            }
        }
        Ok(found)
    }

    /// Why calls run in Python, one text for each kind of arguments that could not be compiled.
    fn reasons(&self, py: Python<'_>) -> Vec<&'static str> {
        let why = |entry: &Arc<Entry>| match entry.kind {
            Kind::Eager(why) => Some(why),
            Kind::Graph(_) => None,
        };
        self.current(py).iter().filter_map(why).collect()
    }

    fn __copy__(&self) -> Compiled {
        Compiled::py_new(self.folds)
    }

    fn __deepcopy__(&self, memo: &Bound<'_, PyAny>) -> Compiled {
        let _ = memo;
        Compiled::py_new(self.folds)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (bool,)) {
        (slf.get_type().into_any(), (slf.get().folds,))
    }
}

impl Plan {
    fn new(
        graph: Graph,
        names: &[String],
        objects: &[Bound<'_, NDArray>],
        results: Vec<Given>,
        tokens: Vec<Token>,
    ) -> Plan {
        let used = || graph.objects().iter().map(|object| object.index);
        Plan {
            objects: used().map(|i| objects[i].clone().unbind()).collect(),
            names: used().map(|i| names[i].clone()).collect(),
            graph: Arc::new(graph),
            results,
            tokens,
        }
    }

    /// None where the arrays share memory in another way, another parameter wants a gradient, or a branch goes the
    /// other way.
    fn run(
        &self,
        py: Python<'_>,
        flat: &Flat<'_>,
        arguments: &[Array],
        seen: &mut Vec<bool>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let objects: SmallVec<[Array; 8]> =
            self.objects.iter().map(|object| object.get().array(py)).collect();
        if !self.graph.fits(arguments, &objects) {
            return Ok(None);
        }
        let made = match self.graph.branches().next() {
            None => call(py, || self.graph.replay(arguments, &objects, seen))?,
            Some(_) => call_detached(py, || self.graph.replay(arguments, &objects, seen))?,
        };
        pay(py)?; // the result may be no array
        let Some(made) = made else { return Ok(None) };
        let mut made = made.into_iter();
        let mut arrays: SmallVec<[Py<NDArray>; 4]> = SmallVec::new();
        for result in &self.results {
            arrays.push(match result {
                Given::Argument(i) => flat.arrays[*i].clone().unbind(),
                Given::Held(object) => object.clone_ref(py),
                Given::Made => match made.next() {
                    Some(array) => wrap(py, array)?,
                    None => return Ok(None),
                },
            });
        }
        let mut builder = Builder { py, tokens: self.tokens.iter(), arrays: &arrays };
        builder.build().map(|built| Some(built.unbind()))
    }
}

impl State {
    /// What happened to the stand-ins' places on the tape happens to the arguments.
    fn hand_back(&self, py: Python<'_>) {
        for (object, original) in self.objects.iter().zip(&self.originals) {
            if !object.is(original) {
                let stand_in = object.get().array(py);
                original.get().change(py, |original| tape::take_place(original, &stand_in));
            }
        }
    }
}

struct State {
    key: Key,
    /// The arguments the function was called with, and those it stands in for.
    objects: Vec<Py<NDArray>>,
    originals: Vec<Py<NDArray>>,
}

/// A trace under way.
#[pyclass(module = "mxnp._core", frozen)]
pub struct Tracing {
    owner: Py<Compiled>,
    state: GilCell<Option<State>>,
}

#[pymethods]
impl Tracing {
    /// Ends the trace without a graph; what was written to the arguments is there.
    fn abandon(&self, py: Python<'_>) -> PyResult<()> {
        let Some(state) = self.state.change(py, Option::take) else { return Ok(()) };
        call(py, trace::abandon)?;
        state.hand_back(py);
        pay(py)
    }

    /// Ends the trace, keeps its graph, and gives the function's result for the caller. `objects` are arrays whose
    /// place on the tape is looked up at each replay (parameters), `names` what they are called.
    fn finish<'py>(
        &self,
        py: Python<'py>,
        result: &Bound<'py, PyAny>,
        names: Vec<String>,
        objects: Vec<Bound<'py, NDArray>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(state) = self.state.change(py, Option::take) else {
            return Err(value_error(py, "this trace is over"));
        };
        let mut flat = Flat::default();
        let is_plain = flat.add(result)?;
        if !is_plain {
            trace::end_early("returns an object that is no array, number, text, list, tuple or dict");
        }
        let outputs = flat.values(py);
        let shown: Vec<Array> = outputs.iter().map(trace::given_out).collect();
        let held: Vec<Array> = objects.iter().map(|object| object.get().array(py)).collect();
        let place = |object: &Bound<'_, NDArray>| {
            let argument = state.objects.iter().zip(&state.originals);
            let mut argument = argument.enumerate().filter(|(_, (a, b))| a.is(object) || b.is(object));
            match argument.next() {
                Some((i, _)) => Given::Argument(i),
                None => match objects.iter().find(|held| held.is(object)) {
                    Some(held) => Given::Held(held.clone().unbind()),
                    None => Given::Made,
                },
            }
        };
        let results: Vec<Given> = flat.arrays.iter().map(place).collect();
        let is_made = |i: &usize| matches!(results[*i], Given::Made);
        let made: Vec<&Array> = (0..results.len()).filter(is_made).map(|i| &outputs[i]).collect();
        let purpose = if self.owner.get().folds { Purpose::Folded } else { Purpose::Shown };
        let graph = call(py, || trace::finish(&made, &held.iter().collect::<Vec<_>>(), purpose))?;
        state.hand_back(py);
        pay(py)?;
        let mut given: Vec<Py<NDArray>> = Vec::with_capacity(results.len());
        for (i, result) in results.iter().enumerate() {
            given.push(match result {
                Given::Argument(at) => state.originals[*at].clone_ref(py),
                Given::Held(held) => held.clone_ref(py),
                Given::Made if shown[i].same_value(&outputs[i]) => flat.arrays[i].clone().unbind(),
                Given::Made => wrap(py, shown[i].clone())?,
            });
        }
        let is_same = given.iter().zip(&flat.arrays).all(|(a, b)| a.is(b));
        let built = match is_same || !is_plain {
            true => result.clone(),
            false => Builder { py, tokens: flat.tokens.iter(), arrays: &given }.build()?,
        };
        let kind = match graph {
            Err(why) => Kind::Eager(why),
            Ok(graph) => Kind::Graph(Plan::new(graph, &names, &objects, results, flat.tokens)),
        };
        self.owner.get().keep(py, Entry { key: state.key, kind })?;
        Ok(built)
    }
}

impl Compiled {
    fn keep(&self, py: Python<'_>, mut entry: Entry) -> PyResult<()> {
        let mut entries: Vec<Arc<Entry>> = self.current(py).into_vec();
        let mut same = 0;
        for earlier in &entries {
            same += earlier.key.is(&entry.key, py)? as usize;
        }
        if same >= MAX_BRANCHES {
            entry.kind = Kind::Eager("branches by data in too many ways");
        }
        if entries.len() >= MAX_GRAPHS {
            entries.remove(0);
        }
        entries.push(Arc::new(entry));
        self.entries.set(py, entries);
        Ok(())
    }
}

/// Nodes as dicts, and the heads.
type Nodes<'py> = (Bound<'py, PyList>, Vec<(usize, usize)>);

/// A compiled graph, to look at.
#[pyclass(name = "Graph", module = "mxnp._core", frozen)]
pub struct PyGraph {
    graph: Arc<Graph>,
    objects: Vec<Py<NDArray>>,
    names: Vec<String>,
    training: bool,
}

#[pymethods]
impl PyGraph {
    /// Whether it was traced in training mode.
    #[getter]
    fn is_training(&self) -> bool {
        self.training
    }

    /// How many calls a replay makes.
    #[getter]
    fn num_calls(&self) -> usize {
        self.graph.num_calls()
    }

    /// The graph as plain data: `(nodes, heads)`. See the stub for its form.
    fn nodes<'py>(&self, py: Python<'py>) -> PyResult<Nodes<'py>> {
        let (nodes, heads) = listing::list(&self.graph)
            .map_err(|why| value_error(py, format!("the graph has no form as a list of calls: {why}")))?;
        let object = |i: usize| (&self.objects[i], &*self.names[i]);
        Ok((rows(py, nodes, object)?, heads))
    }
}

/// A listed graph as plain data; `object` gives the array and name of a parameter.
fn rows<'py, 'a>(
    py: Python<'py>,
    nodes: Vec<Listed>,
    object: impl Fn(usize) -> (&'a Py<NDArray>, &'a str),
) -> PyResult<Bound<'py, PyList>> {
    let made = PyList::empty(py);
    for node in nodes {
        let row = PyDict::new(py);
        let attrs = PyDict::new(py);
        let (kind, name) = match &node.what {
            What::Argument(i) => ("argument", format!("data{i}")),
            What::Object(i) => {
                let (value, name) = object(*i);
                row.set_item("value", value)?;
                ("parameter", name.to_string())
            }
            What::Captured(array) => {
                row.set_item("value", wrap(py, array.clone())?)?;
                ("captured", String::new())
            }
            What::Constant(array) => {
                row.set_item("value", wrap(py, array.clone())?)?;
                ("constant", String::new())
            }
            What::Call(op, of) => {
                for (key, value) in of.strings() {
                    attrs.set_item(key, value)?;
                }
                row.set_item("hidden", op.hidden)?;
                row.set_item("writes", op.writes.among(node.ins.len()).to_vec())?;
                ("call", op.name.to_string())
            }
        };
        row.set_item("kind", kind)?;
        row.set_item("name", name)?;
        row.set_item("attrs", attrs)?;
        let inputs = PyList::empty(py);
        for from in &node.ins {
            match from {
                From::Node(node, out) => inputs.append((*node, *out))?,
                From::Scalar(scalar) => inputs.append(number(py, *scalar)?)?,
            }
        }
        row.set_item("inputs", inputs)?;
        let outputs = PyList::empty(py);
        for meta in &node.outs {
            outputs.append((PyTuple::new(py, meta.shape.iter())?, dtype::object(py, meta.dtype)?))?;
        }
        row.set_item("outputs", outputs)?;
        made.append(row)?;
    }
    Ok(made)
}

/// What `x` was recorded from, in the form of `Graph.nodes`; ValueError where the tape does not hold it.
#[pyfunction]
pub fn history<'py>(x: &Bound<'py, NDArray>) -> PyResult<Nodes<'py>> {
    let py = x.py();
    let (nodes, heads) = mxnp_graph::history::history(&x.get().array(py))
        .map_err(|why| value_error(py, format!("the history of this array cannot be listed: {why}")))?;
    Ok((rows(py, nodes, |_| unreachable!("a history has no parameters"))?, heads))
}
