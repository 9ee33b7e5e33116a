//! Before optimising: ops written with other ops become those ops, and the inputs of kernels are converted to
//! the dtypes the kernels want.

use crate::call::{Call, Calls, In, Out, scalar_meta};
use crate::inferred::{Form, Inference};
use crate::invoke::fresh_out;
use crate::modes;
use crate::place::{LayoutRef, Place};
use crate::value::Value;
use mxnp_core::attrs::Attrs;
use mxnp_core::op::{Draw, Meta, Op, Run};
use mxnp_core::ops::cast;
use mxnp_core::rules::{Operand, Rules, Sym};
use mxnp_core::{DType, ErrorKind};
use smallvec::{SmallVec, smallvec};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Expands every body, and converts kernels' inputs. A body that goes wrong is a defect of mxnp: its call is
/// kept, and fails as a task.
pub(crate) fn expand(calls: Calls) -> Calls {
    let mut out = Calls::with_capacity(calls.len());
    for call in calls {
        expand_one(call, &mut out);
    }
    out
}

fn expand_one(call: Box<Call>, out: &mut Calls) {
    match call.op.run {
        Run::Body(_) => match body(&call) {
            Ok(inner) => inner.into_iter().for_each(|mut inner| {
                inner.number = call.number;
                expand_one(inner, out);
            }),
            Err(_) => out.push(call),
        },
        Run::Kernel(_) => convert_inputs(call, out),
        _ => out.push(call),
    }
}

/// Puts conversions in front of a kernel whose inputs have other dtypes.
fn convert_inputs(mut call: Box<Call>, out: &mut Calls) {
    for (input, &want) in call.ins.iter_mut().zip(&call.known.types) {
        if let In::Place(place) = input
            && place.dtype != want
        {
            let form = Form::of(&Meta::new(place.layout.shape.clone(), want));
            let device = place.value.device;
            let Ok(to) = fresh_out(call.op.name, &form, device, 0) else { continue };
            let converted = to.at.clone();
            let mut copy = copy_call(In::Place(place.clone()), place.dtype, to);
            copy.number = call.number;
            out.push(copy);
            *input = In::Place(converted);
        }
    }
    out.push(call);
}

/// A call that copies `from`, read as `dtype`, into `to`.
pub(crate) fn copy_call(from: In, dtype: DType, mut to: Out) -> Box<Call> {
    to.computed = dtype;
    Box::new(Call {
        op: &cast::ASTYPE,
        attrs: Attrs::NONE,
        ins: smallvec![from],
        known: Inference::new(smallvec![dtype], smallvec![Form::of_place(&to.at)]),
        outs: smallvec![to],
        draw: Draw::default(),
        number: 0,
    })
}

/// A value in a body: a place, or a scalar operand of the call.
#[derive(Clone)]
struct Term(In);

/// Collects the calls of a body.
struct Collector {
    calls: RefCell<Calls>,
    terms: RefCell<Vec<Term>>,
    error: RefCell<Option<mxnp_core::Error>>,
    device: crate::Device,
}

/// A body that went wrong.
fn internal(op: &'static Op) -> mxnp_core::Error {
    mxnp_core::Error::new(ErrorKind::Internal, op.name, "its body failed")
}

/// The calls of a body whose results go where the call's outputs are.
fn body(call: &Call) -> mxnp_core::Result<Calls> {
    let Run::Body(write) = call.op.run else { return Ok(vec![Box::new(call.clone())]) };
    let device = call.outs[0].at.value.device;
    let collector =
        Collector { calls: RefCell::default(), terms: RefCell::default(), error: RefCell::default(), device };
    let ins: SmallVec<[Sym; 4]> = call
        .ins
        .iter()
        .zip(call.types())
        .map(|(input, &dtype)| Sym::new(&collector, collector.input(input, dtype)))
        .collect();
    let written = catch_unwind(AssertUnwindSafe(|| write(&call.attrs, &collector, &ins)));
    if let Some(error) = collector.error.take() {
        return Err(error);
    }
    let written = written.map_err(|_| internal(call.op))?;
    if written.len() < call.outs.len() {
        return Err(internal(call.op));
    }
    let results: SmallVec<[u32; 2]> = written.iter().map(|sym| sym.handle()).collect();
    let terms = collector.terms.take();
    let mut calls = collector.calls.take();
    for (out, handle) in call.outs.iter().zip(results) {
        deliver(&terms[handle as usize].0, out, &mut calls);
    }
    Ok(calls)
}

/// Makes the call that computes `found` write to `out`, or copies it there.
fn deliver(found: &In, out: &Out, calls: &mut Calls) {
    if let In::Place(place) = found
        && out.fresh
        && place.dtype == out.at.dtype
        && place.is_whole()
        && place.layout.shape == out.at.layout.shape
        && calls.iter().any(|c| c.outs.iter().any(|o| o.fresh && o.at.is(&place.value)))
    {
        let from = place.value.clone();
        for call in calls.iter_mut() {
            for at in places_mut(call) {
                if at.is(&from) {
                    at.value = out.at.value.clone();
                }
            }
        }
        return;
    }
    let dtype = match found {
        In::Place(place) => place.dtype,
        In::Scalar(_) => out.at.dtype,
    };
    calls.push(copy_call(found.clone(), dtype, out.clone()));
}

fn places_mut(call: &mut Call) -> impl Iterator<Item = &mut Place> {
    let ins = call.ins.iter_mut().filter_map(|input| match input {
        In::Place(place) => Some(place),
        In::Scalar(_) => None,
    });
    ins.chain(call.outs.iter_mut().map(|out| &mut out.at))
}

impl Collector {
    fn push(&self, term: In) -> u32 {
        let mut terms = self.terms.borrow_mut();
        terms.push(Term(term));
        terms.len() as u32 - 1
    }

    /// An input of the body, converted to the dtype that `infer` asked for.
    fn input(&self, input: &In, dtype: DType) -> u32 {
        match input {
            In::Place(place) if place.dtype != dtype => {
                let handle = self.push(input.clone());
                self.call(&cast::ASTYPE, cast::astype(dtype), &[Operand::Sym(handle)])[0]
            }
            _ => self.push(input.clone()),
        }
    }

    fn try_call(&self, op: &'static Op, attrs: Attrs, ins: &[Operand]) -> mxnp_core::Result<Vec<In>> {
        let ins: SmallVec<[In; 2]> = ins
            .iter()
            .map(|operand| match operand {
                Operand::Sym(handle) => self.terms.borrow()[*handle as usize].0.clone(),
                Operand::Scalar(scalar) => In::Scalar((*scalar).into()),
            })
            .collect();
        let metas: SmallVec<[Meta; 4]> = ins.iter().map(In::meta).collect();
        let known = Inference::of(op.infer(&attrs, &metas, modes::mode())?);
        if let (Run::View(layout), In::Place(place)) = (op.run, &ins[0]) {
            let copy = || {
                let dense = self.fresh(op.name, &Form::of(&place.meta()))?;
                let copied = dense.at.clone();
                self.calls.borrow_mut().push(copy_call(ins[0].clone(), place.dtype, dense));
                Ok(copied)
            };
            return Ok(vec![In::Place(place.view(&attrs, layout, copy)?)]);
        }
        let outs: SmallVec<[Out; 1]> =
            known.outs.iter().map(|form| self.fresh(op.name, form)).collect::<mxnp_core::Result<_>>()?;
        let visible = outs.len() - op.hidden;
        let results = outs[..visible].iter().map(|out| In::Place(out.at.clone())).collect();
        let call = Call { op, attrs, ins, known, outs, draw: Draw::default(), number: 0 };
        self.calls.borrow_mut().push(Box::new(call));
        Ok(results)
    }

    fn fresh(&self, op: &'static str, form: &Form) -> mxnp_core::Result<Out> {
        fresh_out(op, form, self.device, 0).map_err(|error| match error {
            crate::Error::Op(error) => error,
            other => mxnp_core::Error::new(ErrorKind::Internal, op, other.to_string()),
        })
    }
}

impl Rules for Collector {
    fn call(&self, op: &'static Op, attrs: Attrs, ins: &[Operand]) -> SmallVec<[u32; 2]> {
        match self.try_call(op, attrs, ins) {
            Ok(results) => results.into_iter().map(|term| self.push(term)).collect(),
            Err(error) => {
                self.error.borrow_mut().get_or_insert(error);
                let value = Arc::new(Value::pending(0, self.device, 0));
                let layout = LayoutRef::contiguous(&[]);
                let place = Place { value, layout, dtype: DType::F32 };
                smallvec![self.push(In::Place(place))]
            }
        }
    }

    fn meta(&self, handle: u32) -> Meta {
        match &self.terms.borrow()[handle as usize].0 {
            In::Place(place) => place.meta(),
            In::Scalar(number) => scalar_meta(number.value),
        }
    }
}
