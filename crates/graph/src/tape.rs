//! Gradients: `attach_grad`, `backward`, `grad`. The walk is iterative and appends the rules' calls to the
//! segment, lazy and fused like the forward pass.

use crate::array::{Array, Handle, Input};
use crate::assign;
use crate::device::{self, Device};
use crate::error::{Error, Result};
use crate::hash::AddressMap;
use crate::inferred::{Form, Inference};
use crate::invoke::invoke;
use crate::node::{Edge, Kind, Node, Parent, Saved, SavedValues, Slot};
use crate::rules::Eager;
use crate::{modes, record, trace};
use mxnp_core::op::{Grad, Meta, Run};
use mxnp_core::ops::{arith, cast, create};
use mxnp_core::rules::{Sym, Vjp};
use mxnp_core::shape::display;
use mxnp_core::{DType, ErrorKind, Scalar};
use smallvec::SmallVec;
use std::collections::BinaryHeap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

pub use crate::node::{Custom, GradReq};

/// Makes `a` a place where gradients are kept: in `grad`, or in zeros. The history of an intermediate result
/// stays. A second call replaces the gradient array.
pub fn attach_grad(a: &mut Handle, grad: Option<Array>, req: GradReq) -> Result<()> {
    trace::end_early("attaches a gradient");
    let slot = match (req, grad) {
        (GradReq::Null, _) => None,
        (_, Some(grad)) => {
            if grad.shape() != a.shape() {
                let text = format!(
                    "gradient of shape {} for an array of shape {}",
                    display(grad.shape()),
                    display(a.shape())
                );
                return Err(Error::value("attach_grad", text));
            }
            // Its memory alone: with a history that leads back to `a` the two would keep each other alive.
            Some(Slot { grad: grad.detach(), req, fresh: false })
        }
        (_, None) => Some(Slot { grad: full(a, 0.0)?, req, fresh: false }),
    };
    let edge = match (&a.node, &slot) {
        (None, None) => return Ok(()),
        (Some(edge), None) if edge.node.is_leaf() => {
            let at = a.at.clone();
            a.set(Array::new(at));
            return Ok(());
        }
        (Some(edge), None) if !edge.is_traced() => return Ok(()),
        (Some(edge), _) if edge.is_traced() => edge.clone(),
        (before, _) => {
            let edge = Edge { node: Arc::new(Node::leaf(Form::of_place(&a.at), before.clone())), out: 0 };
            let at = a.at.clone();
            a.set(Array { at, node: Some(edge.clone()) });
            edge
        }
    };
    edge.node.set_slot(edge.out, slot);
    Ok(())
}

/// An array like `a` filled with `value`.
fn full(a: &Array, value: f64) -> Result<Array> {
    let scalar = if a.dtype().is_inexact() { Scalar::Float(value) } else { Scalar::Int(value as i128) };
    let _device = OnDevice::of(a);
    let result = invoke(&create::FULL, create::full(a.shape(), a.dtype()), &[Input::Scalar(scalar)]);
    Ok(result?[0].clone())
}

/// The array that holds the gradient of `a`.
pub fn grad_of(a: &Array) -> Option<Array> {
    let edge = a.node.as_ref()?;
    edge.node.with_slot(edge.out, |slot| slot.grad.clone())
}

/// What is done with the gradient of `a`.
pub fn grad_req(a: &Array) -> GradReq {
    let slot = |edge: &Edge| edge.node.with_slot(edge.out, |slot| slot.req);
    a.node.as_ref().and_then(slot).unwrap_or(GradReq::Null)
}

/// Gives `a` the place on the tape that a stand-in for it has come to have.
pub fn take_place(a: &mut Handle, from: &Array) {
    let is_same = match (&a.node, &from.node) {
        (None, None) => true,
        (Some(mine), Some(its)) => Arc::ptr_eq(&mine.node, &its.node) && mine.out == its.out,
        _ => false,
    };
    if !is_same {
        let at = a.at.clone();
        a.set(Array { at, node: from.node.clone() });
    }
}

/// Makes `a`, which was not recorded, a result that is locally constant in `of`: a backward from it gives zeros.
pub fn set_constant_in(a: &mut Handle, of: &Array) {
    if modes::is_recording() && a.node.is_none() && of.node.is_some() {
        let parents = SmallVec::from_iter([Parent { edge: of.node.clone(), form: Form::of_place(&of.at) }]);
        let known = Inference::new(SmallVec::new(), SmallVec::from_iter([Form::of_place(&a.at)]));
        let saved = SavedValues { parents, ..SavedValues::default() };
        let node = Node::new(Kind::Constant, known, saved).on_tape();
        let at = a.at.clone();
        a.set(Array { at, node: Some(Edge { node, out: 0 }) });
    }
}

/// Whether a gradient can flow to `a`.
pub fn is_traced(a: &Array) -> bool {
    a.is_traced()
}

/// Whether `a` takes part in the recorded graph, perhaps as a constant.
pub fn has_history(a: &Array) -> bool {
    a.node.is_some()
}

/// Whether a gradient flows to `a`; None where it is not on the tape.
pub fn tracing(a: &Array) -> Option<bool> {
    a.node.as_ref().map(Edge::is_traced)
}

/// Whether a backward has written the gradient of `a` since [`set_fresh_grad`] cleared this.
pub fn is_fresh_grad(a: &Array) -> bool {
    let slot = |edge: &Edge| edge.node.with_slot(edge.out, |slot| slot.fresh);
    a.node.as_ref().and_then(slot).unwrap_or(false)
}

pub fn set_fresh_grad(a: &Array, fresh: bool) {
    if let Some(edge) = &a.node {
        edge.node.with_slot(edge.out, |slot| slot.fresh = fresh);
    }
}

/// Records a call with a rule of the user's: `outs` get its node.
pub fn record_custom(ins: &[&Array], outs: &mut [&mut Handle], rule: Arc<dyn Custom>) {
    trace::end_early("calls a function with a gradient of its own");
    let parent = |a: &&Array| Parent { edge: a.node.clone(), form: Form::of_place(&a.at) };
    let forms = outs.iter().map(|out| Form::of_place(&out.at)).collect();
    let parents = ins.iter().map(parent).collect();
    let saved = SavedValues { parents, rule: Some(rule), ..SavedValues::default() };
    let node = Node::new(Kind::Custom, Inference::new(SmallVec::new(), forms), saved);
    let node = Arc::new(node);
    for (i, out) in outs.iter_mut().enumerate() {
        let at = out.at.clone();
        out.set(Array { at, node: Some(Edge { node: node.clone(), out: i }) });
    }
}

/// Computes the gradients of `heads` and puts them where `attach_grad` said.
pub fn backward(
    heads: &[&Array],
    head_grads: &[Option<&Array>],
    retain_graph: bool,
    train_mode: bool,
) -> Result<()> {
    trace::end_early("computes gradients");
    let _span = record::span("backward");
    let _modes = Modes::set(false, train_mode);
    let mut walk = Walk { keep: retain_graph, ..Walk::default() };
    walk.start(heads, head_grads)?;
    walk.run(None)
}

/// The gradients of `heads` with respect to `vars`; zeros for one that they do not depend on. Gradient arrays
/// of the program stay as they are.
pub fn grad(
    heads: &[&Array],
    vars: &[&Array],
    head_grads: &[Option<&Array>],
    retain_graph: bool,
    create_graph: bool,
    train_mode: bool,
) -> Result<Vec<Array>> {
    if let Some(var) = vars.iter().find(|var| !var.is_traced()) {
        let why =
            if var.node.is_some() { "is locally constant" } else { "is not part of the recorded graph" };
        let text = format!("a variable of shape {} {why}", display(var.shape()));
        let error = mxnp_core::Error::new(ErrorKind::State, "grad", text);
        return Err(Error::Op(error.with_hint("call attach_grad() on it before autograd.record()")));
    }
    trace::end_early("computes gradients");
    let _span = record::span("grad");
    let _modes = Modes::set(create_graph, train_mode);
    let mut walk = Walk { keep: retain_graph || create_graph, ..Walk::default() };
    walk.start(heads, head_grads)?;
    let mut found = vec![None; vars.len()];
    walk.run(Some((vars, &mut found)))?;
    let mut grads: Vec<Array> = Vec::with_capacity(vars.len());
    for (g, var) in found.into_iter().zip(vars) {
        grads.push(match g {
            Some(g) => private(g, &grads)?,
            None => full(var, 0.0)?,
        });
    }
    Ok(grads)
}

/// A gradient as an array of its own: a rule may pass on its head gradient or a broadcast view of it, and writing
/// to the result must change neither the caller's arrays nor the gradients in `others`.
fn private(g: Array, others: &[Array]) -> Result<Array> {
    let (handles, _) = g.at.value.handles();
    if handles == 0 && g.at.is_whole() && !others.iter().any(|other| other.same_value(&g)) {
        return Ok(g);
    }
    copy(&g)
}

/// A copy, with the history of `g`.
fn copy(g: &Array) -> Result<Array> {
    Ok(invoke(&cast::ASTYPE, cast::astype(g.dtype()), &[Input::Array(g)])?[0].clone())
}

/// The modes of a backward, undone when it ends.
struct Modes {
    recording: bool,
    training: bool,
}

impl Modes {
    fn set(recording: bool, training: bool) -> Modes {
        Modes { recording: modes::set_recording(recording), training: modes::set_training(training) }
    }
}

impl Drop for Modes {
    fn drop(&mut self) {
        modes::set_recording(self.recording);
        modes::set_training(self.training);
    }
}

/// While it lives, new arrays are made on the device of an array.
struct OnDevice {
    before: Device,
}

impl OnDevice {
    fn of(a: &Array) -> OnDevice {
        OnDevice { before: device::set_current(a.device()) }
    }
}

impl Drop for OnDevice {
    fn drop(&mut self) {
        device::set_current(self.before);
    }
}

/// Gradients of a node's outputs, or of its inputs.
pub(crate) type Grads = SmallVec<[Option<Array>; 2]>;

/// A walk down the tape: nodes to visit, the deepest first, and the gradients gathered for their outputs.
#[derive(Default)]
struct Walk {
    keep: bool,
    queue: BinaryHeap<Visit>,
    grads: AddressMap<Grads>,
    /// Breaks ties between nodes of one level: the one that a gradient reached first comes first, whatever is between
    /// them that no gradient flows through. Of that a trace keeps more than the tape does.
    order: u64,
}

/// Comes after every node that a gradient reached.
const UNREACHED: u64 = u64::MAX;

struct Visit {
    level: u64,
    order: u64,
    node: Arc<Node>,
}

impl PartialEq for Visit {
    fn eq(&self, other: &Visit) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Visit {}
impl PartialOrd for Visit {
    fn partial_cmp(&self, other: &Visit) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Visit {
    fn cmp(&self, other: &Visit) -> std::cmp::Ordering {
        self.level.cmp(&other.level).then(other.order.cmp(&self.order))
    }
}

impl Walk {
    fn start(&mut self, heads: &[&Array], head_grads: &[Option<&Array>]) -> Result<()> {
        for (i, head) in heads.iter().enumerate() {
            let Some(edge) = &head.node else {
                let text = "this array has no history: it was not computed from arrays with attach_grad() \
                            inside autograd.record()";
                let error = mxnp_core::Error::new(ErrorKind::State, "backward", text);
                return Err(Error::Op(error.with_hint("compute it in a `with autograd.record():` block")));
            };
            let g = match head_grads.get(i).copied().flatten() {
                Some(g) if g.shape() == head.shape() => cast_to(g, head)?,
                Some(g) => {
                    let (got, want) = (display(g.shape()), display(head.shape()));
                    let text = format!("head gradient of shape {got} for an array of shape {want}");
                    return Err(Error::value("backward", text));
                }
                None => full(head, 1.0)?,
            };
            self.add(edge, g)?;
        }
        Ok(())
    }

    /// Lets the walk come by a node, whether or not a gradient reaches it.
    fn pass(&mut self, edge: &Edge) {
        let Walk { queue, grads, .. } = self;
        grads.entry(Arc::as_ptr(&edge.node) as usize).or_insert_with(|| {
            queue.push(Visit { level: edge.node.level, order: UNREACHED, node: edge.node.clone() });
            SmallVec::from_elem(None, edge.node.known.outs.len())
        });
    }

    /// Adds a gradient for an output; the node is visited once all its users have been.
    fn add(&mut self, edge: &Edge, g: Array) -> Result<()> {
        let Walk { queue, grads, order, .. } = self;
        let entry = grads
            .entry(Arc::as_ptr(&edge.node) as usize)
            .or_insert_with(|| SmallVec::from_elem(None, edge.node.known.outs.len()));
        if entry.iter().all(Option::is_none) {
            // Where it stands among the unreached too, it is found to be done there.
            queue.push(Visit { level: edge.node.level, order: *order, node: edge.node.clone() });
            *order += 1;
        }
        let sum = match entry[edge.out].take() {
            Some(sum) => invoke(&arith::ADD, Default::default(), &[(&sum).into(), (&g).into()])?[0].clone(),
            None => g,
        };
        entry[edge.out] = Some(sum);
        Ok(())
    }

    fn run(&mut self, mut vars: Option<(&[&Array], &mut Vec<Option<Array>>)>) -> Result<()> {
        while let Some(Visit { node, .. }) = self.queue.pop() {
            let key = Arc::as_ptr(&node) as usize;
            let Some(heads) = self.grads.remove(&key) else { continue };
            match &mut vars {
                Some((vars, found)) => {
                    for (var, found) in vars.iter().zip(found.iter_mut()) {
                        if let Some(edge) = var.node.as_ref().filter(|e| Arc::ptr_eq(&e.node, &node)) {
                            *found = heads[edge.out].clone();
                        }
                    }
                }
                None => deliver(&node, &heads)?,
            }
            let nothing_flows = node.is_leaf() || node.is_constant() || heads.iter().all(Option::is_none);
            if nothing_flows {
                node.before().iter().for_each(|edge| self.pass(edge));
            } else {
                self.visit(&node, heads)?;
                // A long tape appends more than the queue should hold; no lock is held here.
                crate::registry::throttle()?;
            }
        }
        Ok(())
    }

    /// Applies a node's rule and passes the gradients on.
    fn visit(&mut self, node: &Arc<Node>, heads: Grads) -> Result<()> {
        let saved = match self.keep {
            true => node.saved.lock().clone(),
            false => node.saved.lock().take(),
        };
        let Some(saved) = saved else {
            let text = "this graph was already freed by an earlier backward";
            let error = mxnp_core::Error::new(ErrorKind::State, "backward", text);
            return Err(Error::Op(error.with_hint("pass retain_graph=True to the first backward")));
        };
        let grads = match &saved.rule {
            Some(rule) => {
                // Copies: the user's rule may write to them, and others may still read the originals.
                let own =
                    heads.iter().map(|g| g.as_ref().map(copy).transpose()).collect::<Result<Vec<_>>>()?;
                rule.backward(own)?.into()
            }
            None => match &saved.compiled {
                Some(rule) if !modes::is_recording() => rule.apply(node, &saved, heads)?,
                _ => apply(node, &saved, heads)?,
            },
        };
        let mut grads = grads.into_iter();
        for parent in &saved.parents {
            match (&parent.edge, grads.next().flatten()) {
                (Some(edge), Some(g)) if edge.is_traced() => self.add(edge, g)?,
                (Some(edge), _) => self.pass(edge),
                (None, _) => (),
            }
        }
        Ok(())
    }
}

/// Writes the gradients of a node's outputs to the arrays that keep them.
fn deliver(node: &Node, heads: &Grads) -> Result<()> {
    for (out, g) in heads.iter().enumerate() {
        let kept = node.with_slot(out, |slot| {
            slot.fresh = true;
            (slot.grad.clone(), slot.req)
        });
        let Some((grad, req)) = kept else { continue };
        let g = g.as_ref().map(Array::detach);
        // Nothing flowed here: zero.
        let g = g.as_ref().map_or(Input::Scalar(Scalar::Int(0)), Input::Array);
        let recording = modes::set_recording(false);
        let mut target = Handle::new(grad.detach());
        let done = match req {
            GradReq::Null => Ok(()),
            GradReq::Write => assign::assign(&mut target, &[], g),
            GradReq::Add => {
                let ins = [Input::Array(&grad.detach()), g];
                crate::invoke_into(&arith::ADD, Default::default(), &ins, &mut [&mut target])
            }
        };
        modes::set_recording(recording);
        done?;
    }
    Ok(())
}

/// The gradients of a call's inputs.
pub(crate) fn apply(node: &Arc<Node>, saved: &SavedValues, heads: Grads) -> Result<Grads> {
    let Kind::Call { op, attrs } = &node.kind else { return Ok(Grads::new()) };
    let Grad::Vjp(rule) = op.grad else {
        let why = match op.grad {
            Grad::None(why) | Grad::RealZero(why) => why,
            _ => "its result has no gradient",
        };
        return Err(Error::state(op.name, format!("no gradient: {why}")));
    };
    // What a rule makes without an array (a saved scalar, a constant) belongs beside its gradients.
    let _device = heads.iter().flatten().next().map(OnDevice::of);
    let rules = Eager::default();
    let mut ins = SmallVec::new();
    for (i, parent) in saved.parents.iter().enumerate() {
        let dtype = node.known.types.get(i).copied().unwrap_or(parent.form.dtype);
        let value = restore(op.name, saved.ins.get(i), parent.edge.clone(), dtype, &rules)?;
        let value = value.map(|handle| Sym::new(&rules, handle).cast(dtype));
        ins.push((Meta { dtype, ..parent.form.meta() }, value));
    }
    let mut outs = SmallVec::new();
    for (i, form) in node.known.outs.iter().enumerate() {
        let own = Edge { node: node.clone(), out: i };
        let value = restore(op.name, saved.outs.get(i), Some(own), form.dtype, &rules)?;
        outs.push((form.meta(), value.map(|handle| Sym::new(&rules, handle))));
    }
    let visible = node.known.outs.len() - op.hidden;
    let heads =
        heads.into_iter().take(visible.max(1)).map(|g| g.map(|g| Sym::new(&rules, rules.put(g)))).collect();
    let needs = saved.parents.iter().enumerate().map(|(i, p)| (p.is_traced() as u32) << i).sum();
    let vjp = Vjp { rules: &rules, attrs, ins, outs, heads, needs };
    let spread = matches!(op.run, Run::Elementwise(_));
    let mut grads = Grads::new();
    let found = catch_unwind(AssertUnwindSafe(|| rule(&vjp)));
    rules.check()?;
    let found = found.map_err(|_| {
        Error::Op(mxnp_core::Error::new(ErrorKind::Internal, op.name, "its gradient rule failed"))
    })?;
    for (parent, g) in saved.parents.iter().zip(found) {
        grads.push(g.map(|g| {
            let g = if spread { g.sum_to(parent.form.shape()) } else { g };
            rules.get(g.cast(parent.form.dtype).handle())
        }));
        rules.check()?;
    }
    Ok(grads)
}

/// A saved value as the rule reads it; one that was written since is an error.
fn restore(
    op: &'static str,
    saved: Option<&Option<Saved>>,
    node: Option<Edge>,
    dtype: DType,
    rules: &Eager,
) -> Result<Option<u32>> {
    match saved {
        Some(Some(Saved::Place { at, version })) => {
            if at.value.version() != *version {
                let text = "an array that its gradient needs was modified in place after it was used";
                let error = mxnp_core::Error::new(ErrorKind::State, op, text);
                return Err(Error::Op(error.with_hint("write to a copy, or after backward()")));
            }
            Ok(Some(rules.put(Array { at: at.clone(), node })))
        }
        Some(Some(Saved::Scalar(scalar))) => {
            let ins = [Input::Scalar(*scalar)];
            let array = invoke(&create::FULL, create::full(&[], dtype), &ins)?;
            Ok(Some(rules.put(array[0].clone())))
        }
        _ => Ok(None),
    }
}

/// A head gradient in its head's dtype.
fn cast_to(g: &Array, head: &Array) -> Result<Array> {
    if g.dtype().is_complex() && !head.dtype().is_complex() {
        let text =
            format!("the head gradient of an array of {} must be real, got {}", head.dtype(), g.dtype());
        return Err(Error::Op(mxnp_core::Error::type_("backward", text).with_hint("take .real first")));
    }
    if g.dtype() == head.dtype() {
        return Ok(g.clone());
    }
    Ok(invoke(&cast::ASTYPE, cast::astype(head.dtype()), &[Input::Array(g)])?[0].clone())
}
