//! Watching a function run: while a trace is on, each call, view and tape node of this thread is noted as it is
//! made, and the notes become a graph. The function runs as ever; only what it must not do is refused here: to look
//! at data that another call of the graph would not have. Knows no Python.

use crate::array::Array;
use crate::call::{Call, In};
use crate::clean::Parts;
pub use crate::clean::Purpose;
use crate::compiled::{
    Arg, Argument, CallStep, Kept, NodeStep, Object, Origin, Output, Outside, Slot, Source, Spot, Step,
    Target, ViewStep,
};
use crate::error::{Error, Result};
use crate::hash::{AddressMap, key};
use crate::held::{HELD, Held};
use crate::inferred::{Form, Inference};
use crate::node::{Edge, Kind, Node, Saved};
use crate::place::Place;
use crate::stand_in::StandIns;
use crate::value::Value;
use crate::{Graph, elsewhere, modes};
use mxnp_core::attrs::Attrs;
use mxnp_core::op::Op;
use mxnp_core::ops::shape;
use mxnp_core::shape::display;
use mxnp_core::{ErrorKind, IndexItem};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::sync::{Arc, Weak};

/// What a value was made of: the greatest of what went into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Depends {
    /// Nothing but Python's constants: it may be looked at.
    Nothing,
    /// Arrays from outside that are not arguments: looking ends the trace, for they may change.
    Outside,
    /// Arguments, or random numbers.
    Arguments,
}

struct Known {
    slot: Slot,
    depends: Depends,
    /// Keeps the address from being used again, and lets the value itself go.
    _weak: Weak<Value>,
    /// A constant's value, should it be folded.
    kept: Option<Arc<Value>>,
    is_written: bool,
}

/// What has been noted so far.
struct Trace {
    known: Vec<Known>,
    by_value: AddressMap<u32>,
    steps: Vec<Step>,
    nodes: AddressMap<u32>,
    weak_nodes: Vec<Weak<Node>>,
    outside: Vec<Edge>,
    arguments: Vec<Argument>,
    argument_edges: Vec<Option<Edge>>,
    copied: StandIns,
    /// Why it ended early.
    ended: Option<&'static str>,
}

/// Constants up to this many bytes are kept, to be folded.
const MAX_CONSTANT: usize = 16 << 20;

thread_local! {
    static TRACES: RefCell<Vec<Trace>> = const { RefCell::new(Vec::new()) };
}

/// Whether the innermost trace takes notes.
const ON: modes::Flag = modes::TRACING;

/// Whether calls of this thread are being noted.
#[inline]
pub(crate) fn is_on() -> bool {
    ON.get()
}

/// Whether a trace of this thread is under way and has not ended early, paused or not.
pub fn is_tracing() -> bool {
    TRACES.with_borrow(|traces| traces.last().is_some_and(|trace| trace.ended.is_none()))
}

/// Stops taking notes, or goes on; gives what was set before.
pub fn set_paused(paused: bool) -> bool {
    let on = !paused && is_tracing();
    !ON.replace(on)
}

/// Ends the trace: what follows cannot be part of a graph. The function runs on.
pub fn end_early(why: &'static str) {
    if !ON.get() {
        return;
    }
    ON.set(false);
    with(|trace| trace.ended = Some(why));
}

fn with<R>(f: impl FnOnce(&mut Trace) -> R) -> Option<R> {
    TRACES.with_borrow_mut(|traces| traces.last_mut().map(f))
}

/// Starts a trace of a function of `arguments`; gives the arrays to call it with. One of [`finish`] and [`abandon`]
/// must follow on this thread.
pub fn begin(arguments: &[&Array]) -> Result<Vec<Array>> {
    let was_on = ON.replace(false);
    let mut copied = StandIns::default();
    let given = arguments.iter().map(|array| copied.stand_in(array, arguments)).collect::<Result<Vec<_>>>();
    let given = match given {
        Ok(given) => given,
        Err(error) => {
            ON.set(was_on);
            return Err(error);
        }
    };
    start(&given, copied);
    Ok(given)
}

/// Starts a trace of a function that can reach no other array than `arguments`.
pub(crate) fn begin_exact(arguments: &[Array]) {
    start(arguments, StandIns::default());
}

fn start(given: &[Array], copied: StandIns) {
    let mut trace = Trace {
        known: Vec::new(),
        by_value: AddressMap::default(),
        steps: Vec::new(),
        nodes: AddressMap::default(),
        weak_nodes: Vec::new(),
        outside: Vec::new(),
        arguments: Vec::new(),
        argument_edges: given.iter().map(|array| array.node.clone()).collect(),
        copied,
        ended: None,
    };
    for (index, array) in given.iter().enumerate() {
        trace.argument(index, array);
    }
    elsewhere::begin();
    TRACES.with_borrow_mut(|traces| traces.push(trace));
    ON.set(true);
}

/// How many traces of this thread are under way.
pub(crate) fn depth() -> usize {
    TRACES.with_borrow(Vec::len)
}

/// Ends the innermost trace without a graph. What the function wrote to its arguments is there.
pub fn abandon() -> Result<()> {
    let trace = TRACES.with_borrow_mut(Vec::pop);
    ON.set(false);
    trace.map_or(Ok(()), |trace| {
        elsewhere::end();
        trace.copied.write_back()
    })
}

/// Ends the innermost trace: a graph of the outputs, or why there is none. `objects` are arrays the caller holds
/// and looks up at each replay, such as parameters.
pub fn finish(
    outputs: &[&Array],
    objects: &[&Array],
    purpose: Purpose,
) -> Result<std::result::Result<Graph, &'static str>> {
    let Some(mut trace) = TRACES.with_borrow_mut(Vec::pop) else { return Ok(Err("no trace was begun")) };
    ON.set(false);
    let is_mixed = trace.is_mixed(outputs, objects);
    elsewhere::end();
    trace.copied.write_back()?;
    if let Some(why) = trace.ended {
        return Ok(Err(why));
    }
    if is_mixed {
        return Ok(Err("uses what another thread computed meanwhile"));
    }
    if objects.iter().any(|object| trace.is_argument(object)) {
        return Ok(Err("is called with a parameter of its own"));
    }
    let outputs = outputs.iter().map(|array| trace.output(array)).collect();
    let is_prediction = !modes::is_recording() && !modes::is_training();
    let purpose = match purpose {
        Purpose::Folded if !modes::folding() || !is_prediction => Purpose::Replayed,
        purpose => purpose,
    };
    trace.graph(outputs, objects, purpose).map(Ok)
}

/// Notes a call that is about to be appended.
pub(crate) fn note_call(call: &Call) {
    with(|trace| trace.call(call));
}

/// Notes a node that was put on the tape.
pub(crate) fn note_node(node: &Arc<Node>) {
    with(|trace| trace.node(node));
}

/// Notes a view; `items` of a basic index.
pub(crate) fn note_view(op: &'static Op, attrs: Attrs, from: &Place, to: &Place) {
    with(|trace| {
        let (from, to) = (trace.spot(from), trace.spot(to));
        trace.steps.push(Step::View(ViewStep { op, attrs, from, to }));
    });
}

pub(crate) fn note_slice(items: &[IndexItem], from: &Place, to: &Place) {
    note_view(&shape::SLICE, shape::basic(items), from, to);
}

/// Notes that `outs`, made for it, are the results of branch or loop `number`, which uses `ins`. The graph can be
/// listed and not replayed.
pub fn note_held(number: i64, ins: &[&Array], outs: &[&Array]) {
    with(|trace| {
        let types = ins.iter().map(|array| array.dtype()).collect();
        let forms = outs.iter().map(|array| Form::of_place(&array.at)).collect();
        let ins = ins.iter().map(|array| Arg::Spot(trace.spot(&array.at))).collect();
        let mut targets = SmallVec::new();
        for array in outs {
            trace.add(&array.at.value, Origin::Made, Depends::Arguments);
            targets.push(Target { at: trace.spot(&array.at), computed: array.dtype(), fresh: true });
        }
        let (attrs, known) = (Attrs::new(Held { number }), Inference::new(types, forms));
        trace.steps.push(Step::Call(CallStep { op: &HELD, attrs, ins, known, outs: targets }));
    });
}

/// Notes an array made from Python's numbers.
pub(crate) fn note_constant(value: &Arc<Value>) {
    with(|trace| {
        let slot = trace.slot(value) as usize;
        trace.known[slot].depends = Depends::Nothing;
        trace.known[slot].slot.constant = true;
    });
}

/// Notes that the program writes to an array while recording: to one from outside, the write depends on who else
/// holds it, which differs from call to call.
pub(crate) fn note_recorded_write(target: &Array) {
    let outside = with(|trace| match trace.by_value.get(&key(&target.at.value)) {
        Some(&slot) => !matches!(trace.known[slot as usize].slot.origin, Origin::Made),
        None => true,
    });
    if outside == Some(true) {
        end_early("writes to an array from outside while recording");
    }
}

/// What an argument that was copied stands for.
pub(crate) fn original_of(array: &Array) -> Option<Array> {
    if !ON.get() {
        return None;
    }
    with(|trace| trace.copied.original_of(array).cloned()).flatten()
}

/// The array that an output is part of a stand-in for: itself where no argument was copied.
pub fn given_out(output: &Array) -> Array {
    with(|trace| trace.copied.given_out(output)).unwrap_or_else(|| output.clone())
}

/// Whether the data of an array is that of one call alone, so that it prints as a placeholder.
pub fn is_traced(array: &Array) -> bool {
    ON.get() && depends_of(array) == Some(Depends::Arguments)
}

fn depends_of(array: &Array) -> Option<Depends> {
    with(|trace| trace.by_value.get(&key(&array.at.value)).map(|&slot| trace.known[slot as usize].depends))?
}

/// Ends the trace where the data of an array is needed, unless it is constant.
pub fn end_to_look(array: &Array) {
    if ON.get() && depends_of(array) != Some(Depends::Nothing) {
        end_early("needs the data of an array in Python");
    }
}

/// Whether the program may look at an array's data now.
pub(crate) fn check_read(array: &Array) -> Result<()> {
    if !ON.get() {
        return Ok(());
    }
    match depends_of(array) {
        Some(Depends::Nothing) => Ok(()),
        Some(Depends::Arguments) => {
            let text = format!(
                "the data of an array of shape {} and dtype {} was asked for while its block is compiled",
                display(array.shape()),
                array.dtype()
            );
            let error = mxnp_core::Error::new(ErrorKind::State, "hybridize", text);
            let hint = "choose elements with np.where, branch with npx.cond, or leave the block as it is: \
                        hybridize(active=False)";
            Err(Error::Op(error.with_hint(hint)))
        }
        Some(Depends::Outside) | None => {
            end_early("looks at the data of an array");
            Ok(())
        }
    }
}

/// Whether the one element of an array is true, for a branch of the function: a graph that went the other way is
/// another one. Waits.
pub fn decide(array: &Array) -> Result<bool> {
    if !ON.get() || depends_of(array) == Some(Depends::Nothing) {
        return Ok(array.item(0)?.is_true());
    }
    let outsider = |known: &Known| known.is_written && !matches!(known.slot.origin, Origin::Made);
    if with(|trace| trace.known.iter().any(outsider)) == Some(true) {
        // A replay that finds the branch going the other way could not start over.
        end_early("branches by data after it wrote to an array from outside");
    }
    let was_paused = set_paused(true);
    let found = array.item(0);
    set_paused(was_paused);
    let truth = found?.is_true();
    if ON.get() {
        with(|trace| {
            let at = trace.spot(&array.at);
            trace.steps.push(Step::Guard { at, truth });
        });
    }
    Ok(truth)
}

impl Trace {
    fn add(&mut self, value: &Arc<Value>, origin: Origin, depends: Depends) -> u32 {
        let slot = Slot { origin, bytes: value.bytes, device: value.device, constant: false };
        let number = self.known.len() as u32;
        let weak = Arc::downgrade(value);
        self.known.push(Known { slot, depends, _weak: weak, kept: None, is_written: false });
        self.by_value.insert(key(value), number);
        number
    }

    fn argument(&mut self, index: usize, array: &Array) {
        let value = &array.at.value;
        let slot = match self.by_value.get(&key(value)) {
            Some(&slot) => slot,
            None => {
                let offset = array.at.layout.offset;
                self.add(value, Origin::Input { index, offset }, Depends::Arguments)
            }
        };
        self.arguments.push(Argument { slot, layout: array.at.layout.clone(), dtype: array.dtype() });
    }

    /// Whether an array shares the memory of an argument: what was made of the one is not told from the other.
    fn is_argument(&self, array: &Array) -> bool {
        self.arguments.iter().any(|argument| self.by_value.get(&key(&array.at.value)) == Some(&argument.slot))
    }

    /// Whether another thread took part: in a value that the trace made, or by one that it made itself since the trace
    /// began. `objects` are looked up at each replay, whoever made them.
    fn is_mixed(&self, outputs: &[&Array], objects: &[&Array]) -> bool {
        let is_foreign = |value: &Arc<Value>| {
            elsewhere::made(value) && !objects.iter().any(|object| Arc::ptr_eq(&object.at.value, value))
        };
        let is_touched = |(&address, &slot): (&usize, &u32)| match &self.known[slot as usize].slot.origin {
            Origin::Made => elsewhere::written(address),
            Origin::Captured(value) => is_foreign(value),
            Origin::Input { .. } => false,
        };
        self.by_value.iter().any(is_touched) || outputs.iter().any(|array| is_foreign(&array.at.value))
    }

    /// The slot of a value; one not seen before comes from outside.
    fn slot(&mut self, value: &Arc<Value>) -> u32 {
        match self.by_value.get(&key(value)) {
            Some(&slot) => slot,
            None => self.add(value, Origin::Captured(value.clone()), Depends::Outside),
        }
    }

    fn spot(&mut self, at: &Place) -> Spot {
        Spot { slot: self.slot(&at.value), layout: at.layout.clone(), dtype: at.dtype }
    }

    fn arg(&mut self, input: &In) -> Arg {
        match input {
            In::Place(at) => Arg::Spot(self.spot(at)),
            In::Scalar(number) => Arg::Scalar(number.value),
        }
    }

    fn call(&mut self, call: &Call) {
        let ins: SmallVec<[Arg; 2]> = call.ins.iter().map(|input| self.arg(input)).collect();
        let of = |arg: &Arg| arg.spot().map(|spot| self.known[spot.slot as usize].depends);
        let from_ins = ins.iter().filter_map(of).max().unwrap_or(Depends::Nothing);
        let depends = if call.op.random { Depends::Arguments } else { from_ins };
        let mut outs = SmallVec::new();
        for out in &call.outs {
            let value = &out.at.value;
            if out.fresh && !self.by_value.contains_key(&key(value)) {
                let slot = self.add(value, Origin::Made, depends) as usize;
                if depends == Depends::Nothing && value.bytes <= MAX_CONSTANT {
                    self.known[slot].kept = Some(value.clone());
                    self.known[slot].slot.constant = true;
                }
            } else {
                self.write(value, depends);
            }
            outs.push(Target { at: self.spot(&out.at), computed: out.computed, fresh: out.fresh });
        }
        let (attrs, known) = (call.attrs.clone(), call.known.clone());
        self.steps.push(Step::Call(CallStep { op: call.op, attrs, ins, known, outs }));
    }

    /// Notes a write to a value that exists.
    fn write(&mut self, value: &Arc<Value>, depends: Depends) {
        let slot = self.slot(value) as usize;
        let known = &mut self.known[slot];
        known.depends = known.depends.max(depends);
        known.is_written = true;
        if matches!(known.slot.origin, Origin::Captured(_)) && known.slot.constant {
            // Its first contents are gone: a replay could not start from them.
            self.ended = Some("writes to an array made of Python's numbers");
            ON.set(false);
        }
        known.slot.constant = false;
        known.kept = None;
    }

    fn source(&mut self, edge: &Edge) -> Source {
        if let Some(&node) = self.nodes.get(&(Arc::as_ptr(&edge.node) as usize)) {
            return Source::Node { node, out: edge.out as u32 };
        }
        let same = |known: &Edge| Arc::ptr_eq(&known.node, &edge.node) && known.out == edge.out;
        let at = self.outside.iter().position(same).unwrap_or_else(|| {
            self.outside.push(edge.clone());
            self.outside.len() - 1
        });
        Source::Outside(at as u32)
    }

    fn kept(&mut self, saved: &Option<Saved>) -> Option<Kept> {
        saved.as_ref().map(|saved| match saved {
            Saved::Place { at, version } => {
                let later = version.wrapping_sub(at.value.version()) as i64;
                Kept::Spot { at: self.spot(at), later }
            }
            Saved::Scalar(scalar) => Kept::Scalar(*scalar),
        })
    }

    fn node(&mut self, node: &Arc<Node>) {
        if !matches!(node.kind, Kind::Call { .. } | Kind::Constant) {
            return;
        }
        let parent = |p: &crate::node::Parent| (p.edge.clone(), p.form.clone());
        let saved = node.saved.lock().clone().unwrap_or_default();
        let parents: Vec<_> = saved.parents.iter().map(parent).collect();
        let parents = parents.into_iter().map(|(edge, form)| (edge.map(|e| self.source(&e)), form)).collect();
        let number = self.weak_nodes.len() as u32;
        let step = NodeStep {
            number,
            kind: node.kind.clone(),
            parents,
            known: node.known.clone(),
            saved_ins: saved.ins.iter().map(|kept| self.kept(kept)).collect(),
            rule: Arc::default(),
            saved_outs: saved.outs.iter().map(|kept| self.kept(kept)).collect(),
        };
        self.nodes.insert(Arc::as_ptr(node) as usize, number);
        self.weak_nodes.push(Arc::downgrade(node));
        self.steps.push(Step::Node(Box::new(step)));
    }

    fn output(&mut self, array: &Array) -> Output {
        let at = self.spot(&array.at);
        let source = array.node.as_ref().map(|edge| self.source(edge));
        let slot = &self.known[at.slot as usize].slot;
        let copied = slot.constant && matches!(slot.origin, Origin::Captured(_));
        Output { at, source, copied }
    }

    fn graph(self, outputs: Vec<Output>, objects: &[&Array], purpose: Purpose) -> Result<Graph> {
        let slot_of = |array: &Array| self.by_value.get(&key(&array.at.value)).copied();
        let is_captured = |slot: u32| matches!(self.known[slot as usize].slot.origin, Origin::Captured(_));
        let mut found: Vec<Object> = Vec::new();
        for (index, array) in objects.iter().enumerate() {
            if let Some(slot) = slot_of(array).filter(|&slot| is_captured(slot))
                && !found.iter().any(|object| object.at.slot == slot)
            {
                let at = Spot { slot, layout: array.at.layout.clone(), dtype: array.dtype() };
                found.push(Object { index, traced: crate::tape::tracing(array), at });
            }
        }
        let bind = |edge: Edge| {
            let is = |node: &Option<Edge>| {
                node.as_ref().is_some_and(|e| Arc::ptr_eq(&e.node, &edge.node) && e.out == edge.out)
            };
            if let Some(argument) = self.argument_edges.iter().position(is) {
                return Outside::Input(argument);
            }
            match found.iter().position(|object| is(&objects[object.index].node)) {
                Some(object) => Outside::Object(object),
                None => Outside::Held(edge),
            }
        };
        let outside = self.outside.into_iter().map(bind).collect();
        let outsiders = |known: &Known| known.is_written && !matches!(known.slot.origin, Origin::Made);
        let written = (0..self.known.len() as u32).filter(|&i| outsiders(&self.known[i as usize])).collect();
        let mut strangers = Vec::new();
        for (i, known) in self.known.iter().enumerate() {
            if let Origin::Captured(value) = &known.slot.origin
                && !known.slot.constant
                && !found.iter().any(|object| object.at.slot == i as u32)
            {
                strangers.push((i as u32, value.handles().1 > 0));
            }
        }
        let parts = Parts {
            strangers,
            constants: self.known.iter().map(|known| known.kept.clone()).collect(),
            slots: self.known.into_iter().map(|known| known.slot).collect(),
            arguments: self.arguments,
            objects: found,
            steps: self.steps,
            outside,
            outputs,
            nodes: self.weak_nodes.len(),
            written,
        };
        parts.graph(purpose)
    }
}
