//! From a list of calls to units of work: expands bodies, drops what nobody can observe, lets kernels write where
//! their results are copied anyway, and makes passes of runs of fusable calls, or tails of kernels.

use crate::call::{Call, Calls};
use crate::expand;
use crate::fuse::Fuser;
use crate::liveness::{Liveness, drop_dead};
use crate::modes;
use crate::plan::{Kernel, Unit};
use crate::structure::Structure;
use mxnp_core::op::Run;
use mxnp_engine::{Kind, engine};
use std::sync::Arc;

/// The work of a flush, in program order; and the numbers of the calls that kernels before them took over.
pub(crate) fn units(calls: Calls, structure: &Structure) -> (Vec<Unit>, Vec<u32>) {
    let fuse = modes::fusion() && engine().kind() != Kind::Naive;
    let mut calls = expand::expand(calls);
    let mut life = Liveness::of(&calls, structure);
    let dropped = drop_dead(&mut calls, &life);
    let merged = if fuse { retarget(&mut calls, &life) } else { vec![] };
    if dropped || !merged.is_empty() {
        life = Liveness::of(&calls, structure);
    }
    (group(calls, &life, fuse), merged)
}

/// Groups runs of fusable calls into passes; everything else is a unit of its own.
fn group(calls: Calls, life: &Liveness, fuse: bool) -> Vec<Unit> {
    let mut units = Vec::new();
    let mut open: Option<Fuser> = None;
    let mut last = 0;
    for (at, call) in calls.into_iter().enumerate() {
        let joined = fuse && open.as_mut().is_some_and(|fuser| fuser.add(&call));
        if !joined {
            close(&mut units, open.take(), last, life, fuse);
            open = Fuser::begin(&call);
            if open.is_none() {
                units.push(Unit::Kernel(kernel_of(call, life)));
            }
        }
        last = at;
    }
    close(&mut units, open, last, life, fuse);
    units
}

/// Ends a pass: as the tail of the kernel before it where it runs over what that makes, else as a unit of its own.
fn close(units: &mut Vec<Unit>, fuser: Option<Fuser>, last: usize, life: &Liveness, fuse: bool) {
    let Some(fuser) = fuser else { return };
    match units.last_mut() {
        Some(Unit::Kernel(kernel)) if fuse && kernel.tail.is_none() && fuser.follows(&kernel.call) => {
            kernel.tail = Some(Box::new(fuser.finish(last, life, Some(&kernel.call))));
        }
        _ => units.push(Unit::Pass(Box::new(fuser.finish(last, life, None)))),
    }
}

/// A kernel with only those hidden outputs that somebody reads.
fn kernel_of(call: Box<Call>, life: &Liveness) -> Kernel {
    let visible = call.outs.len() - call.op.updates(&call.attrs, call.ins.len()).len() - call.op.hidden;
    let hidden = visible..visible + call.op.hidden;
    let wanted = (0..call.outs.len())
        .map(|i| {
            let seen = life.get(&call.outs[i].at.value);
            // A value touched once is touched by this call alone.
            !hidden.contains(&i) || seen.is_observable() || seen.is_used_elsewhere()
        })
        .collect();
    Kernel { call, wanted, tail: None }
}

/// Where a kernel's result is only copied into existing memory of the same form (a gradient into its buffer),
/// the kernel writes there at once. Gives the numbers of the copies that are gone.
fn retarget(calls: &mut Calls, life: &Liveness) -> Vec<u32> {
    let mut merged = Vec::new();
    let mut at = 0;
    while at < calls.len() {
        match producer(calls, at, life) {
            Some((maker, out)) => {
                let mut copy = calls.remove(at);
                merged.push(copy.number);
                let target = copy.outs.swap_remove(0);
                let fresh = &mut calls[maker].outs[out];
                // Both are all of their values, but the copy may see the result in another shape.
                fresh.at.value = target.at.value;
                fresh.fresh = false;
            }
            None => at += 1,
        }
    }
    merged
}

/// The kernel call, and which of its outputs, that the copy numbered `at` only passes on.
fn producer(calls: &[Box<Call>], at: usize, life: &Liveness) -> Option<(usize, usize)> {
    let copy = &calls[at];
    if !copy.is_copy() {
        return None;
    }
    let (from, to) = (copy.ins[0].place()?, &copy.outs[0]);
    let seen = life.get(&from.value);
    let plain = !to.fresh
        && !to.at.value.is_shared()
        && from.dtype == to.at.dtype
        && from.is_whole()
        && to.at.is_whole()
        && from.layout.shape == to.at.layout.shape
        && !seen.is_observable()
        && seen.is_touched_twice();
    if !plain {
        return None;
    }
    let maker = calls[..at].iter().rposition(|c| c.outs.iter().any(|o| o.at.is(&from.value)))?;
    let out = calls[maker].outs.iter().position(|o| o.fresh && o.at.is(&from.value))?;
    let is_kernel = matches!(calls[maker].op.run, Run::Kernel(_));
    let touches = |c: &Call| c.touched().any(|(value, _)| Arc::ptr_eq(value, &to.at.value));
    (is_kernel && !calls[maker..at].iter().any(|c| touches(c))).then_some((maker, out))
}
