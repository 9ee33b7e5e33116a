//! Running what the optimiser made: one task per pass or kernel, and reads by the program itself.

use crate::array::view_of;
use crate::call::In;
use crate::error::{Error, Result};
use crate::plan::{BoundPass, Kernel, PassUnit};
use crate::value::Value;
use crate::watch::Watch;
use crate::{record, segment};
use mxnp_core::kernel::pass::{self, Slot};
use mxnp_core::kernel::tail::Tail;
use mxnp_core::op::{KernelArgs, Run};
use mxnp_core::par::Parallel;
use mxnp_core::view::{View, ViewMut};
use mxnp_core::{ErrorKind, Layout};
use mxnp_engine::{Context, Hint, Task, TaskError, Tracked, Var, VarRef, engine};
use smallvec::SmallVec;
use std::sync::Arc;

fn var(value: &Arc<Value>) -> VarRef {
    value.clone()
}

/// The engine's form of a pass.
pub(crate) fn pass_task(bound: BoundPass, watch: Option<Box<Watch>>) -> Task {
    let unit = bound.unit();
    // Loops: `collect` costs a small pass more than they do.
    let (mut reads, mut writes, mut bytes) = (SmallVec::new(), SmallVec::new(), 0);
    for (at, value) in bound.values.iter().enumerate() {
        if at < unit.reads {
            reads.push(var(value));
        } else {
            writes.push(var(value));
        }
        bytes += value.bytes;
    }
    for donor in bound.donors() {
        writes.push(var(donor));
    }
    let name = unit.name;
    let run = Box::new(move |ctx: &Context| watched(watch, ctx, |par| run_pass(&bound, par)));
    Task { name, bytes, reads, writes, run }
}

/// Runs a task's body, and notes it where somebody asked for that.
fn watched(
    watch: Option<Box<Watch>>,
    ctx: &Context,
    body: impl FnOnce(&dyn Parallel) -> std::result::Result<(), TaskError>,
) -> std::result::Result<(), TaskError> {
    match watch {
        None => body(ctx.parallel()),
        Some(watch) => watch.run(ctx.parallel(), body),
    }
}

fn run_pass(bound: &BoundPass, par: &dyn Parallel) -> std::result::Result<(), TaskError> {
    let (unit, values) = (bound.unit(), &bound.values);
    let bases = bases(bound).map_err(|e| TaskError::new(unit.name, e))?;
    let slots = slots(unit, &bases);
    // SAFETY: every slot has memory for its layout; the optimiser kept the aliasing rules of a pass. The unit's
    // layouts are always the same.
    unsafe { pass::run_again(&unit.pass, &unit.program, &slots, &bound.scalars, par) };
    values[unit.reads..].iter().for_each(|value| value.set_computed());
    Ok(())
}

/// The memory of each value of a pass, allocated or taken over from a donor where it has none.
fn bases(bound: &BoundPass) -> mxnp_core::Result<SmallVec<[*mut u8; 8]>> {
    let (unit, values) = (bound.unit(), &bound.values);
    for &(from, to) in &unit.donations {
        // SAFETY: the task lists both among its writes; the optimiser found that nobody reads `from` later.
        unsafe { values[from].bequeath(&values[to]) };
    }
    let mut bases: SmallVec<[*mut u8; 8]> = SmallVec::new();
    for value in values {
        let donation = unit.donations.iter().find(|&&(from, _)| Arc::ptr_eq(&values[from], value));
        let at = match donation {
            // SAFETY: the task lists both.
            Some(&(from, to)) if unsafe { values[from].base() }.is_null() => &values[to],
            _ => value,
        };
        // SAFETY: listed by the task, its contents computed by an earlier one, or allocated just below.
        bases.push(unsafe { at.base() });
    }
    for (value, base) in values.iter().zip(&mut bases) {
        if base.is_null() {
            // SAFETY: only results have no memory yet, and the task lists them among its writes.
            *base = unsafe { value.allocate(unit.name) }?;
        }
    }
    Ok(bases)
}

fn slots<'a>(unit: &'a PassUnit<u32>, bases: &[*mut u8]) -> SmallVec<[Slot<'a>; 8]> {
    let mut slots = SmallVec::new();
    for (place, &base) in unit.slots.iter().zip(bases) {
        slots.push(Slot { base, layout: &place.layout });
    }
    slots
}

/// The engine's form of a kernel and its tail.
pub(crate) fn kernel_task(kernel: Kernel, tail: Option<BoundPass>, watch: Option<Box<Watch>>) -> Task {
    let call = &kernel.call;
    let mut reads: SmallVec<_> =
        call.ins.iter().filter_map(In::place).map(|place| var(&place.value)).collect();
    let mut writes: SmallVec<_> = call.outs.iter().map(|out| var(&out.at.value)).collect();
    let mut bytes = call.touched().map(|(value, _)| value.bytes).sum();
    let name = call.op.name;
    if let Some(bound) = &tail {
        // The kernel's result is a donor or a read of the tail's, and a write of this task's.
        let is_result = |value: &Arc<Value>| Arc::ptr_eq(value, &call.outs[0].at.value);
        let (read, written) = bound.values.split_at(bound.unit().reads);
        reads.extend(read.iter().filter(|value| !is_result(value)).map(var));
        writes.extend(written.iter().chain(bound.donors()).filter(|value| !is_result(value)).map(var));
        bytes +=
            bound.values.iter().filter(|value| !is_result(value)).map(|value| value.bytes).sum::<usize>();
    }
    let body = move |par: &dyn Parallel| {
        run_kernel(&kernel, tail.as_ref(), par).map_err(|e| TaskError::new(name, e))
    };
    let run = Box::new(move |ctx: &Context| watched(watch, ctx, body));
    Task { name, bytes, reads, writes, run }
}

fn run_kernel(kernel: &Kernel, tail: Option<&BoundPass>, par: &dyn Parallel) -> mxnp_core::Result<()> {
    let call = &kernel.call;
    let Run::Kernel(run) = call.op.run else {
        return Err(mxnp_core::Error::new(ErrorKind::Internal, call.op.name, "its body failed"));
    };
    let point = Layout::contiguous(&[]);
    let mut scalars: SmallVec<[Element; 4]> = SmallVec::new();
    for (input, &dtype) in call.ins.iter().zip(call.types()) {
        let mut bytes = Element([0; 16]);
        if let In::Scalar(number) = input {
            number.value.write(dtype, &mut bytes.0);
        }
        scalars.push(bytes);
    }
    let ins: SmallVec<[View; 4]> = call
        .ins
        .iter()
        .zip(call.types())
        .zip(&scalars)
        .map(|((input, &dtype), bytes)| match input {
            // SAFETY: the task lists the value and an earlier task has computed it.
            In::Place(place) => unsafe { view_of(place) },
            // SAFETY: one aligned element that lives as long as the call.
            In::Scalar(_) => unsafe { View::new(bytes.0.as_ptr(), &point, dtype) },
        })
        .collect();
    let mut outs: SmallVec<[Option<ViewMut>; 4]> = SmallVec::new();
    for (out, &wanted) in call.outs.iter().zip(&kernel.wanted) {
        outs.push(if wanted {
            // SAFETY: the task lists the value among its writes.
            let base = unsafe { out.at.value.allocate(call.op.name)? };
            // SAFETY: the buffer has the layout's elements, and only this task reaches them.
            Some(unsafe { ViewMut::new(base, &out.at.layout, out.at.dtype) })
        } else {
            None
        });
    }
    // What the tail takes over from the result has the memory that the kernel was given just now.
    let bases = tail.map(bases).transpose()?;
    let tail_slots = tail.zip(bases.as_ref()).map(|(bound, bases)| (bound, slots(bound.unit(), bases)));
    let after = tail_slots.as_ref().and_then(|(bound, slots)| {
        let unit = bound.unit();
        // SAFETY: every slot has memory for its layout, always the same; the optimiser kept the aliasing rules of a
        // pass, and what the tail writes is none of the kernel's inputs.
        unsafe { Tail::new(&unit.pass, &unit.program, slots, &bound.scalars) }
    });
    let args = KernelArgs {
        op: call.op.name,
        attrs: &call.attrs,
        ins: &ins,
        outs: &outs,
        par,
        draw: call.draw,
        tail: after.as_ref(),
    };
    run(&args)?;
    let mut made = call.outs.iter().map(|out| &out.at.value);
    if let Some(bound) = tail {
        // SAFETY: the task writes the result, whose memory the tail may have taken over.
        made.next().filter(|value| !unsafe { value.base() }.is_null()).inspect(|value| value.set_computed());
        bound.values[bound.unit().reads..].iter().for_each(|value| value.set_computed());
    }
    made.for_each(|value| value.set_computed());
    Ok(())
}

/// The bytes of one element, aligned for every dtype.
#[repr(align(16))]
struct Element([u8; 16]);

/// A task's body that borrows from its pusher.
type ScopedRun<'a> = Box<dyn FnOnce(&Context) -> std::result::Result<(), TaskError> + Send + 'a>;

/// A variable to wait for that nothing else uses.
struct Done(Var);

impl Tracked for Done {
    fn var(&self) -> &Var {
        &self.0
    }
    fn has_contents(&self) -> bool {
        false
    }
}

/// Waits for a value and calls `f` with its memory, ordered by the engine like any other read. May block.
pub(crate) fn read(value: &Arc<Value>, f: impl FnOnce(*const u8) + Send) -> Result<()> {
    let span = record::wait_to_read(value);
    segment::flush_writer(value);
    engine().wait_read(&**value)?;
    drop(span);
    let done: Arc<Done> = Arc::new(Done(Var::new()));
    let source = value.clone();
    let body: ScopedRun<'_> = Box::new(move |_| {
        // SAFETY: the task lists the value among its reads, and it was waited for.
        f(unsafe { source.base() });
        Ok(())
    });
    // SAFETY: only the lifetime changes; this function does not return before the task has run or was dropped.
    let run: mxnp_engine::Run = unsafe { std::mem::transmute(body) };
    let task = Task {
        name: "read",
        bytes: 0,
        reads: SmallVec::from_iter([var(value)]),
        writes: SmallVec::from_iter([done.clone() as VarRef]),
        run,
    };
    if let Some(ready) = engine().push(task, Hint::Inline) {
        ready.run();
    }
    let mut interrupt = None;
    loop {
        match engine().wait_read(&*done).map_err(Error::from) {
            // The closure borrows the caller's memory: it must be over before this returns.
            Err(error) if error.is_interrupt() => interrupt = Some(error),
            other => return interrupt.map_or(other, Err),
        }
    }
}
