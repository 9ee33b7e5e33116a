//! Appending a call: checks, results, the gradient node, and the hand-over to the segment.

use crate::array::{Array, Handle, Input};
use crate::assign;
use crate::call::{Call, In, Out, Uses, scalar_meta};
use crate::device::{self, Device, DeviceKind};
use crate::error::{Error, Result};
use crate::inferred::{Form, Inference};
use crate::node::{self, Edge, Kind, Node, Parent, Saved, SavedValues};
use crate::place::Place;
use crate::registry::with_own;
use crate::value::{SegmentId, Value};
use crate::{elsewhere, modes, outline, owed, random, segment, trace};
use mxnp_core::attrs::Attrs;
use mxnp_core::op::{Draw, Meta, Op, Run, Writes};
use mxnp_core::ops::cast;
use mxnp_core::promote::{Casting, can_cast};
use mxnp_core::{ErrorKind, Layout};
use mxnp_engine::engine;
use smallvec::SmallVec;
use std::sync::Arc;

/// Results of a call.
pub type Arrays = SmallVec<[Array; 1]>;

/// What a caller wants to have of a call's visible results.
trait Results: Sized {
    /// The arrays of these outputs.
    fn of(outs: &[Out]) -> Self;
    fn arrays(&mut self) -> &mut [Array];
    /// The result of a view.
    fn one(array: Array) -> Self;
}

impl Results for Arrays {
    fn of(outs: &[Out]) -> Arrays {
        outs.iter().map(|out| Array::new(out.at.clone())).collect()
    }
    fn arrays(&mut self) -> &mut [Array] {
        self
    }
    fn one(array: Array) -> Arrays {
        SmallVec::from_iter([array])
    }
}

/// The only result; a list of one costs more to hand around than an array does.
impl Results for Array {
    #[inline]
    fn of(outs: &[Out]) -> Array {
        Array::new(outs[0].at.clone())
    }
    #[inline]
    fn arrays(&mut self) -> &mut [Array] {
        std::slice::from_mut(self)
    }
    fn one(array: Array) -> Array {
        array
    }
}

/// Appends a call and gives its visible results, pending. Every argument error is raised here.
pub fn invoke(op: &'static Op, attrs: Attrs, ins: &[Input]) -> Result<Arrays> {
    invoke_for(op, attrs, ins)
}

/// As [`invoke`], of an op with one visible result.
pub fn invoke_one(op: &'static Op, attrs: Attrs, ins: &[Input]) -> Result<Array> {
    invoke_for(op, attrs, ins)
}

#[inline]
fn invoke_for<R: Results>(op: &'static Op, attrs: Attrs, ins: &[Input]) -> Result<R> {
    let op = chosen(op, ins);
    let device = device_of(op, ins)?;
    with_own(|own| {
        let known = own.inferences.infer(op, &attrs, ins)?;
        if let Run::View(layout) = op.run {
            return view(op, attrs, ins, &known, layout).map(R::one);
        }
        check_size(op.name, known.largest)?;
        let mut outs: SmallVec<[Out; 1]> = SmallVec::new();
        for form in &known.outs {
            outs.push(new_out(form, device, own.id));
        }
        let visible = outs.len() - op.hidden;
        add_updates(op, &attrs, ins, &mut outs)?;
        let call = new_call(op, attrs, ins, known, outs);
        let node = is_recorded(ins).then(|| record(&call, ins));
        let mut results = R::of(&call.outs[..visible]);
        append(own, call)?;
        attach(results.arrays(), node);
        Ok(results)
    })
}

/// The op, or the one that takes its place for these operands.
#[inline]
fn chosen(op: &'static Op, ins: &[Input]) -> &'static Op {
    let Some(instead) = op.instead else { return op };
    let metas: SmallVec<[Meta; 4]> = ins.iter().map(meta_of).collect();
    instead(&metas).unwrap_or(op)
}

/// The same with the results written into existing arrays: `out=`, `a += b`. Conversions follow NumPy's
/// same-kind rule. While recording, the targets take the call's node.
pub fn invoke_into(op: &'static Op, attrs: Attrs, ins: &[Input], outs: &mut [&mut Handle]) -> Result<()> {
    let op = chosen(op, ins);
    let known = with_own(|own| own.inferences.infer(op, &attrs, ins))?;
    let visible = known.outs.len() - op.hidden;
    if outs.len() != visible {
        return Err(Error::value(op.name, format!("takes {visible} output arrays, got {}", outs.len())));
    }
    for (out, form) in outs.iter().zip(&known.outs) {
        check_target(op, out, form)?;
    }
    let is_direct = matches!(op.run, Run::Elementwise(_)) && !overlaps(ins, outs[0]);
    if !is_direct {
        let results = invoke(op, attrs, ins)?;
        for (out, result) in outs.iter_mut().zip(&results) {
            assign::assign(out, &[], Input::Array(result))?;
        }
        return Ok(());
    }
    let target = &mut *outs[0];
    check_devices(op, ins, target)?;
    let recorded = assign::check_write(op.name, target, ins)?;
    let at = Out { at: target.at.clone(), computed: known.outs[0].dtype, fresh: false };
    let call = new_call(op, attrs, ins, known, SmallVec::from_iter([at]));
    let node = recorded.then(|| is_recorded(ins).then(|| record(&call, ins)));
    with_own(|own| append(own, call))?;
    if let Some(node) = node {
        let edge = node.map(|node| converted(node, target));
        target.set(Array { at: target.at.clone(), node: edge });
    }
    Ok(())
}

/// Refuses operands on another device than the target's.
fn check_devices(op: &'static Op, ins: &[Input], target: &Array) -> Result<()> {
    let mut all: SmallVec<[Input; 4]> = SmallVec::from_slice(ins);
    all.push(Input::Array(target));
    device_of(op, &all).map(drop)
}

/// The edge of a result that was broadcast and converted into `target`.
fn converted(node: Node, target: &Array) -> Edge {
    let mut form = node.known.outs[0].clone();
    let mut edge = Edge { node: node.on_tape(), out: 0 };
    if form.dtype != target.dtype() {
        let to = Form { dtype: target.dtype(), ..form.clone() };
        edge = derived(&cast::ASTYPE, cast::astype(target.dtype()), edge, form, to.clone());
        form = to;
    }
    if form.shape() != target.shape() {
        use mxnp_core::ops::shape;
        let to = Form::of_place(&target.at);
        edge = derived(&shape::BROADCAST_TO, shape::broadcast_to(target.shape()), edge, form, to);
    }
    edge
}

/// A node of a one-input op that saves nothing, on top of `edge`.
pub(crate) fn derived(op: &'static Op, attrs: Attrs, edge: Edge, from: Form, to: Form) -> Edge {
    let known = Inference::new(SmallVec::from_iter([from.dtype]), SmallVec::from_iter([to]));
    let parents = SmallVec::from_iter([Parent { edge: Some(edge), form: from }]);
    let saved = SavedValues { parents, ..SavedValues::default() };
    let node = Node::new(Kind::Call { op, attrs }, known, saved);
    Edge { node: node.on_tape(), out: 0 }
}

fn check_target(op: &'static Op, out: &Array, form: &Form) -> Result<()> {
    // An elementwise result may be broadcast into its target; NumPy refuses that of a reduction or product.
    let fits = match op.run {
        Run::Elementwise(_) => form.layout.broadcast_to(out.shape()).is_some(),
        _ => form.shape() == out.shape(),
    };
    if !fits {
        use mxnp_core::shape::display;
        let text = format!(
            "non-broadcastable output operand with shape {} doesn't match the broadcast shape {}",
            display(out.shape()),
            display(form.shape())
        );
        return Err(Error::value(op.name, text));
    }
    if !can_cast(form.dtype, out.dtype(), Casting::SameKind) {
        let text = format!(
            "Cannot cast ufunc '{}' output from dtype('{}') to dtype('{}') with casting rule 'same_kind'",
            op.name,
            form.dtype,
            out.dtype()
        );
        return Err(Error::Op(mxnp_core::Error::type_(op.name, text)));
    }
    Ok(())
}

/// Whether an input shares memory with the target other than element by element.
fn overlaps(ins: &[Input], target: &Array) -> bool {
    ins.iter().any(|input| match input {
        Input::Array(a) => a.same_value(target) && a.at.layout != target.at.layout,
        Input::Scalar(_) => false,
    })
}

pub(crate) fn meta_of(input: &Input) -> Meta {
    match input {
        Input::Array(array) => array.meta(),
        Input::Scalar(scalar) => scalar_meta(*scalar),
    }
}

#[inline]
fn in_of(input: &Input) -> In {
    match input {
        Input::Array(array) => In::Place(array.at.clone()),
        Input::Scalar(scalar) => In::Scalar((*scalar).into()),
    }
}

/// The device all arrays are on; the current one for a call without arrays.
#[inline]
fn device_of(op: &'static Op, ins: &[Input]) -> Result<Device> {
    let mut arrays = ins.iter().filter_map(|input| match input {
        Input::Array(array) => Some(array.device()),
        Input::Scalar(_) => None,
    });
    let device = arrays.next().unwrap_or_else(device::current);
    for other in arrays {
        if other != device {
            return Err(apart(op, device, other));
        }
    }
    if device.kind == DeviceKind::Gpu { Err(beyond(op, device)) } else { Ok(device) }
}

#[cold]
fn apart(op: &'static Op, first: Device, other: Device) -> Error {
    let text = format!("the operands are on different devices: {first} and {other}");
    let error = mxnp_core::Error::value(op.name, text);
    Error::Op(error.with_hint("move one of them with .to_device(...)"))
}

#[cold]
fn beyond(op: &'static Op, device: Device) -> Error {
    let text = format!("no array can be computed on {device}: this build runs on the CPU");
    Error::Op(mxnp_core::Error::new(ErrorKind::NotImplemented, op.name, text))
}

/// Refuses a result that no memory can hold.
#[inline]
fn check_size(op: &'static str, bytes: usize) -> Result<()> {
    if bytes > 1 << 30 && !outline::is_on() && bytes as u64 > mxnp_engine::memory_limit() {
        return Err(Error::memory(op, bytes));
    }
    Ok(())
}

/// A result with a value of its own; one that no memory can hold is refused at once.
pub(crate) fn fresh_out(op: &'static str, form: &Form, device: Device, segment: SegmentId) -> Result<Out> {
    check_size(op, form.bytes())?;
    Ok(new_out(form, device, segment))
}

#[inline]
fn new_out(form: &Form, device: Device, segment: SegmentId) -> Out {
    let value = Value::new_pending(form.bytes(), device, segment);
    Out {
        at: Place { value, layout: form.layout.clone(), dtype: form.dtype },
        computed: form.dtype,
        fresh: true,
    }
}

/// Adds the inputs that the op updates to its outputs.
#[inline]
pub(crate) fn add_updates(
    op: &'static Op,
    attrs: &Attrs,
    ins: &[Input],
    outs: &mut SmallVec<[Out; 1]>,
) -> Result<()> {
    if matches!(op.writes, Writes::These([])) {
        return Ok(());
    }
    for i in op.updates(attrs, ins.len()) {
        match &ins[i] {
            Input::Array(array) if array.is_writable() => {
                outs.push(Out { at: array.at.clone(), computed: array.dtype(), fresh: false });
            }
            Input::Array(_) => return Err(Error::value(op.name, format!("input {i} is read-only"))),
            Input::Scalar(_) => return Err(Error::value(op.name, format!("input {i} must be an array"))),
        }
    }
    Ok(())
}

/// Puts a call together.
#[inline]
pub(crate) fn new_call(
    op: &'static Op,
    attrs: Attrs,
    ins: &[Input],
    known: Arc<Inference>,
    outs: SmallVec<[Out; 1]>,
) -> Box<Call> {
    let draw = if op.random { random::next_draw() } else { Draw::default() };
    let mut inputs = SmallVec::new();
    for input in ins {
        inputs.push(in_of(input));
    }
    Box::new(Call { op, attrs, ins: inputs, known, outs, draw, number: 0 })
}

/// Hands a call to the segment. One on memory that foreign code sees is flushed, and owed; in the naive engine it is
/// finished, and its error raised here.
#[inline]
pub(crate) fn append(own: &segment::Segment, call: Box<Call>) -> Result<()> {
    if modes::is_diverted() {
        if outline::is_on() {
            outline::leave_out(&call, own.id);
            return Ok(());
        }
        trace::note_call(&call);
    }
    if elsewhere::is_watched() {
        elsewhere::note(&call);
    }
    let uses = call.uses();
    if uses.shared || engine().kind() == mxnp_engine::Kind::Naive {
        return append_and_flush(own, call, uses);
    }
    own.append(call, uses);
    Ok(())
}

#[cold]
fn append_and_flush(own: &segment::Segment, call: Box<Call>, uses: Uses) -> Result<()> {
    let shared = call.touched().filter(|(value, is_write)| *is_write || value.is_shared());
    let awaited: SmallVec<[Arc<Value>; 4]> = shared.map(|(value, _)| value.clone()).collect();
    own.append(call, uses);
    own.flush();
    owed::owe(awaited.into_iter());
    if engine().kind() == mxnp_engine::Kind::Naive { owed::pay() } else { Ok(()) }
}

/// Whether the tape gets a node for this call.
#[inline]
pub(crate) fn is_recorded(ins: &[Input]) -> bool {
    let has_node = |input: &Input| matches!(input, Input::Array(array) if array.node.is_some());
    modes::is_recording() && ins.iter().any(has_node)
}

/// Whether a gradient flows to an operand.
pub(crate) fn is_traced(input: &Input) -> bool {
    matches!(input, Input::Array(array) if array.is_traced())
}

/// The node of a call that is about to be appended: the versions are those it will read.
pub(crate) fn record(call: &Call, ins: &[Input]) -> Node {
    let parents: SmallVec<[Parent; 3]> = ins
        .iter()
        .map(|input| Parent {
            edge: match input {
                Input::Array(array) => array.node.clone(),
                Input::Scalar(_) => None,
            },
            form: Form::of_input(input),
        })
        .collect();
    let kind = Kind::Call { op: call.op, attrs: call.attrs.clone() };
    if !node::flows(call.op, &parents, &call.known) {
        return Node::new(kind, call.known.clone(), SavedValues { parents, ..SavedValues::default() });
    }
    let keep = |at: &Place| Saved::Place { at: at.clone(), version: at.value.version() };
    let saves = call.op.saves;
    let is_read = |i: usize| {
        let others = || ins.iter().enumerate().any(|(j, input)| j != i && is_traced(input));
        saves.inputs >> i & 1 == 1 && (call.op.cross >> i & 1 == 0 || others())
    };
    let saved_in = |(i, input): (usize, &In)| {
        match input {
            In::Place(at) => is_read(i).then(|| keep(at)),
            // Whether the rule reads it or not: the history of an array is written with it.
            In::Scalar(number) => Some(Saved::Scalar(number.value)),
        }
    };
    let saved_out = |(i, out): (usize, &Out)| {
        // A result written into an existing array is saved as it will be after the write.
        (saves.outputs >> i & 1 == 1)
            .then(|| Saved::Place { at: out.at.clone(), version: out.at.value.version() + !out.fresh as u64 })
    };
    let saved = SavedValues {
        ins: call.ins.iter().enumerate().map(saved_in).collect(),
        outs: call.outs.iter().take(call.known.outs.len()).enumerate().map(saved_out).collect(),
        parents,
        ..SavedValues::default()
    };
    Node::new(kind, call.known.clone(), saved)
}

/// Gives the visible results their places on the tape.
#[inline]
fn attach(results: &mut [Array], node: Option<Node>) {
    if let Some(node) = node.map(Node::on_tape) {
        for (out, array) in results.iter_mut().enumerate() {
            array.node = Some(Edge { node: node.clone(), out });
        }
    }
}

type ViewLayout = fn(&Attrs, &Layout) -> Option<Layout>;

/// A view: another layout of the same value, or of a contiguous copy where the strides do not allow it.
fn view(
    op: &'static Op,
    attrs: Attrs,
    ins: &[Input],
    known: &Inference,
    layout: ViewLayout,
) -> Result<Array> {
    let Input::Array(x) = ins[0] else {
        return Err(Error::Op(mxnp_core::Error::type_(op.name, "takes an array, got a scalar")));
    };
    let at = x.at.view(&attrs, layout, || {
        let copy = invoke(&cast::ASTYPE, cast::astype(x.dtype()), &[Input::Array(&x.detach())])?;
        Ok::<_, Error>(copy[0].at.clone())
    })?;
    if trace::is_on() && !outline::is_on() {
        trace::note_view(op, attrs.clone(), &x.at, &at);
    }
    let edge = match &x.node {
        Some(edge) if modes::is_recording() => {
            Some(derived(op, attrs, edge.clone(), Form::of_place(&x.at), known.outs[0].clone()))
        }
        _ => None,
    };
    Ok(Array { at, node: edge })
}
