//! Writes to existing arrays: basic-index assignment and ops that update their first input. While recording, a
//! write to the only array of its value is a functional update; one that would spoil a gradient is refused.

use crate::array::{Array, Handle, Input};
use crate::call::Out;
use crate::error::{Error, Result};
use crate::inferred::{Form, Inference};
use crate::invoke::{
    add_updates, append, derived, invoke, is_recorded, is_traced, meta_of, new_call, record,
};
use crate::node::{Edge, Kind, Node, Parent, SavedValues};
use crate::place::Place;
use crate::registry::with_own;
use crate::{modes, trace};
use mxnp_core::attrs::Attrs;
use mxnp_core::op::{Meta, Op};
use mxnp_core::ops::{cast, shape};
use mxnp_core::{IndexItem, Layout};
use smallvec::SmallVec;

/// The view that a checked basic index gives.
pub fn slice(a: &Array, items: &[IndexItem]) -> Result<Array> {
    let at = Place { layout: a.at.layout.index(items).into(), ..a.at.clone() };
    if trace::is_on() {
        trace::note_slice(items, &a.at, &at);
    }
    let node = match &a.node {
        Some(edge) if modes::is_recording() => {
            let (from, to) = (Form::of_place(&a.at), Form::of_place(&at));
            Some(derived(&shape::SLICE, shape::basic(items), edge.clone(), from, to))
        }
        _ => None,
    };
    Ok(Array { at, node })
}

/// `target[items] = value` for a checked basic index (empty: all of it), the value broadcast and converted.
pub fn assign(target: &mut Handle, items: &[IndexItem], value: Input) -> Result<()> {
    let recorded = check_write("assign", target, &[value])?;
    let place = Place { layout: target.at.layout.index(items).into(), ..target.at.clone() };
    let meta = meta_of(&value);
    check_broadcast(&meta, &place.layout)?;
    let computed = match value {
        Input::Array(array) => array.dtype(),
        Input::Scalar(scalar) => match scalar.refusal(place.dtype) {
            Some((kind, text)) => return Err(Error::Op(mxnp_core::Error::new(kind, "assign", text))),
            None => place.dtype,
        },
    };
    let source = drop_lead(value, place.layout.ndim())?;
    let input = source.as_ref().map_or(value, Input::Array);
    let out = Out { at: place.clone(), computed, fresh: false };
    if let Input::Array(array) = input
        && array.same_value(target)
        && array.at.layout != place.layout
    {
        // The source is read before the target is written, as if through a copy.
        let copy = invoke(&cast::ASTYPE, cast::astype(array.dtype()), &[Input::Array(&array.detach())])?;
        push_copy(Input::Array(&copy[0]), out)?;
    } else {
        push_copy(input, out)?;
    }
    if recorded {
        functional_update(target, items, value, &place)?;
    }
    Ok(())
}

fn push_copy(input: Input, out: Out) -> Result<()> {
    let known =
        Inference::new(SmallVec::from_iter([out.computed]), SmallVec::from_iter([Form::of_place(&out.at)]));
    let call =
        new_call(&cast::ASTYPE, cast::astype(out.at.dtype), &[input], known, SmallVec::from_iter([out]));
    with_own(|own| append(own, call))
}

/// NumPy lets a value have more axes than the target where the extra ones are of size 1.
fn drop_lead(value: Input, ndim: usize) -> Result<Option<Array>> {
    match value {
        Input::Array(array) if array.ndim() > ndim => {
            let shape = &array.shape()[array.ndim() - ndim..];
            let view = invoke(&shape::RESHAPE, shape::reshape(shape), &[Input::Array(&array.detach())])?;
            Ok(Some(view[0].clone()))
        }
        _ => Ok(None),
    }
}

fn check_broadcast(value: &Meta, target: &Layout) -> Result<()> {
    let extra = value.shape.len().saturating_sub(target.ndim());
    let rest = Layout::contiguous(&value.shape[extra..]);
    if value.shape[..extra].iter().all(|&n| n == 1) && rest.broadcast_to(&target.shape).is_some() {
        return Ok(());
    }
    use mxnp_core::shape::display;
    let compact = |s: &[usize]| display(s).replace(", ", ",");
    let text = format!(
        "could not broadcast input array from shape {} into shape {}",
        compact(&value.shape),
        compact(&target.shape)
    );
    Err(Error::value("assign", text))
}

/// The target becomes the result of `slice_assign(target, value)` on the tape.
fn functional_update(target: &mut Handle, items: &[IndexItem], value: Input, place: &Place) -> Result<()> {
    let edge_of = |input: &Input| match input {
        Input::Array(array) => array.node.clone(),
        Input::Scalar(_) => None,
    };
    if edge_of(&value).is_none() && target.node.is_none() {
        return Ok(());
    }
    let whole = place.layout == target.at.layout;
    let parents = SmallVec::from_iter([
        Parent { edge: if whole { None } else { target.node.clone() }, form: Form::of_place(&target.at) },
        Parent { edge: edge_of(&value), form: Form::of_input(&value) },
    ]);
    let (op, attrs) = (&shape::SLICE_ASSIGN, shape::basic(items));
    let outs = SmallVec::from_iter([Form::of_place(&target.at)]);
    let known = Inference::new(SmallVec::from_elem(target.dtype(), 2), outs);
    let saved = SavedValues { parents, ..SavedValues::default() };
    let node = Node::new(Kind::Call { op, attrs }, known, saved);
    let at = target.at.clone();
    target.set(Array { at, node: Some(Edge { node: node.on_tape(), out: 0 }) });
    Ok(())
}

/// Runs an op whose first input it updates in place (`Op::writes` is `[0]` and it has no visible outputs).
pub fn update(op: &'static Op, attrs: Attrs, target: &mut Handle, rest: &[Input]) -> Result<()> {
    let recorded = check_write(op.name, target, rest)?;
    let own = target.detach();
    let first = Array { node: target.node.clone(), ..own };
    let mut ins: SmallVec<[Input; 4]> = SmallVec::from_iter([Input::Array(&first)]);
    ins.extend_from_slice(rest);
    let found = with_own(|own| own.inferences.infer(op, &attrs, &ins))?;
    // On the tape the target is its result.
    let known = Inference::new(found.types.clone(), SmallVec::from_iter([Form::of_place(&target.at)]));
    let mut outs = SmallVec::new();
    add_updates(op, &attrs, &ins, &mut outs)?;
    let call = new_call(op, attrs, &ins, known, outs);
    let node = (recorded && is_recorded(&ins)).then(|| record(&call, &ins));
    with_own(|own| append(own, call))?;
    if let Some(node) = node {
        let at = target.at.clone();
        target.set(Array { at, node: Some(Edge { node: node.on_tape(), out: 0 }) });
    }
    Ok(())
}

/// Whether a write to `target` from `values` goes on the tape; refuses one that no tape could follow.
pub(crate) fn check_write(op: &'static str, target: &Handle, values: &[Input]) -> Result<bool> {
    let original = trace::original_of(target);
    let value = original.as_ref().map_or(&target.at.value, |original| &original.at.value);
    if !target.is_writable() || !value.is_writable() {
        return Err(Error::value(op, "assignment destination is read-only"));
    }
    if !modes::is_recording() {
        return Ok(false);
    }
    if trace::is_on() {
        trace::note_recorded_write(target);
    }
    let (handles, nodes) = value.handles();
    let is_traced = target.is_traced() || values.iter().any(is_traced);
    if target.node.as_ref().is_some_and(|edge| edge.node.is_leaf()) {
        let text = "an array with attach_grad() cannot be written in place while recording: \
                    its gradient would be wrong";
        return Err(write_refused(op, text, "write it outside autograd.record(), or in autograd.pause()"));
    }
    if handles > 1 && (is_traced || nodes > 0) {
        let text = "this array shares its memory with other arrays, and a gradient runs through them: \
                    it cannot be written in place while recording";
        return Err(write_refused(op, text, "write to a copy: x = x.copy()"));
    }
    Ok(is_traced)
}

fn write_refused(op: &'static str, text: &str, hint: &str) -> Error {
    Error::Op(mxnp_core::Error::new(mxnp_core::ErrorKind::State, op, text).with_hint(hint))
}
