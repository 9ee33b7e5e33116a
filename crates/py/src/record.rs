//! Logs of what ran, as plain data for Python. Which words and pictures are made of them is Python's.

use crate::error::call_detached;
use crate::wait;
use mxnp_core::DType;
use mxnp_graph::record::{self, Event, Flush, Outcome, Ran};
use mxnp_graph::{Described, DescribedUnit, Operand};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Nanoseconds, on the clock of all records.
#[pyfunction]
pub fn record_now() -> u64 {
    record::now()
}

/// Gives the calling thread a name in records, and gives its number.
#[pyfunction]
pub fn record_thread(name: &str) -> u32 {
    record::name_thread(Some(name))
}

/// The names of threads by number: of those that run, and of those that a log may speak of.
#[pyfunction]
pub fn record_threads() -> BTreeMap<u32, String> {
    record::threads()
}

/// Waits for everything and raises no error of a task.
#[pyfunction]
pub fn settle(py: Python<'_>) -> PyResult<()> {
    wait::enter(py)?;
    call_detached(py, mxnp_graph::settle)
}

/// What ran while it was open: the newest events, and totals of all.
#[pyclass(module = "mxnp._core", frozen)]
pub struct Log(Arc<record::Log>);

#[pymethods]
impl Log {
    #[new]
    fn new(capacity: usize) -> Log {
        Log(record::Log::new(capacity))
    }

    fn open(&self) {
        self.0.open();
    }

    fn close(&self) {
        self.0.close();
    }

    /// The events, oldest first, and how many older ones were dropped.
    fn events<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyList>, u64)> {
        let (events, dropped) = self.0.events();
        let mut plans = Plans { py, known: HashMap::new() };
        let list = PyList::empty(py);
        for event in &events {
            list.append(plans.event(event)?)?;
        }
        Ok((list, dropped))
    }

    /// For each kind and name: how often, and the sum, least and most of nanoseconds (for "memory", bytes).
    fn totals(&self) -> Vec<(&'static str, String, u64, u64, u64, u64)> {
        let row = |((kind, name), t): ((_, Arc<str>), record::Total)| {
            (kind, name.to_string(), t.count, t.sum, t.min, t.max)
        };
        self.0.totals().into_iter().map(row).collect()
    }

    fn clear_events(&self) {
        self.0.clear_events();
    }

    fn clear_totals(&self) {
        self.0.clear_totals();
    }
}

/// Makes Python's form of events; that of a plan once.
struct Plans<'py> {
    py: Python<'py>,
    known: HashMap<*const Described, Bound<'py, PyDict>>,
}

impl<'py> Plans<'py> {
    fn event(&mut self, event: &Event) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(self.py);
        match event {
            Event::Flush { flush, end } => {
                dict.set_item("kind", "flush")?;
                self.flush(&dict, flush)?;
                times(&dict, flush.thread, flush.start, *end)?;
                dict.set_item("cached", flush.cached)?;
            }
            Event::Ran(ran) => self.ran(&dict, ran)?,
            Event::Span { name, thread, start, end } => {
                dict.set_item("kind", "span")?;
                dict.set_item("name", name)?;
                times(&dict, *thread, *start, *end)?;
            }
        }
        Ok(dict)
    }

    fn flush(&mut self, dict: &Bound<'py, PyDict>, flush: &Flush) -> PyResult<()> {
        dict.set_item("flush", flush.number)?;
        let plan = match self.known.get(&Arc::as_ptr(&flush.plan)) {
            Some(plan) => plan.clone(),
            None => {
                let plan = plan_dict(self.py, &flush.plan)?;
                self.known.insert(Arc::as_ptr(&flush.plan), plan.clone());
                plan
            }
        };
        dict.set_item("plan", plan)
    }

    fn ran(&mut self, dict: &Bound<'py, PyDict>, ran: &Ran) -> PyResult<()> {
        dict.set_item("kind", "unit")?;
        self.flush(dict, &ran.flush)?;
        times(dict, ran.thread, ran.start, ran.end)?;
        dict.set_item("unit", ran.unit)?;
        dict.set_item("queued", ran.queued)?;
        let (outcome, error) = match &ran.outcome {
            Outcome::Done => ("done", None),
            Outcome::Failed(text) => ("failed", Some(text)),
            Outcome::Skipped => ("skipped", None),
        };
        dict.set_item("outcome", outcome)?;
        dict.set_item("error", error)?;
        let shares = ran.shares.iter().map(|s| (s.run, s.thread, s.start, s.end, s.chunks));
        dict.set_item("shares", shares.collect::<Vec<_>>())?;
        dict.set_item("live", ran.live)?;
        dict.set_item("unfinished", ran.unfinished)
    }
}

fn times(dict: &Bound<'_, PyDict>, thread: u32, start: u64, end: u64) -> PyResult<()> {
    dict.set_item("thread", thread)?;
    dict.set_item("start", start)?;
    dict.set_item("end", end)
}

fn plan_dict<'py>(py: Python<'py>, plan: &Described) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("calls", &plan.calls)?;
    let units = plan.units.iter().map(|unit| unit_dict(py, unit)).collect::<PyResult<Vec<_>>>()?;
    dict.set_item("units", units)?;
    dict.set_item("dead", &plan.dead)?;
    dict.set_item("merged", &plan.merged)?;
    dict.set_item("unfused", plan.unfused)?;
    Ok(dict)
}

fn unit_dict<'py>(py: Python<'py>, unit: &DescribedUnit) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("label", &*unit.label)?;
    dict.set_item("kind", if unit.is_pass { "pass" } else { "kernel" })?;
    dict.set_item("ops", unit.parts.iter().map(|part| part.op).collect::<Vec<_>>())?;
    dict.set_item("calls", unit.parts.iter().map(|part| part.call).collect::<Vec<_>>())?;
    dict.set_item("shape", PyTuple::new(py, &unit.shape)?)?;
    dict.set_item("reads", operands(py, &unit.reads)?)?;
    dict.set_item("writes", operands(py, &unit.writes)?)?;
    dict.set_item("scalars", unit.scalars)?;
    dict.set_item("reuses", &unit.reuses)?;
    dict.set_item("products", unit.products)?;
    Ok(dict)
}

/// For each array its dtype's name, shape and bytes.
fn operands<'py>(py: Python<'py>, operands: &[Operand]) -> PyResult<Bound<'py, PyList>> {
    let row = |o: &Operand| Ok((DType::name(o.dtype), PyTuple::new(py, &o.shape)?, o.bytes));
    let rows = operands.iter().map(row).collect::<PyResult<Vec<_>>>()?;
    PyList::new(py, rows)
}
