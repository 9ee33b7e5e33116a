//! Building one pass from a run of elementwise calls and perhaps a reduction at its end.
//!
//! Fusing never changes a bit: every step rounds to its dtype as the op alone would, a value that would have
//! gone through memory in another dtype is converted to it and back, and the reduction is the same driver. A
//! value written in the pass is read only through the same layout at the same element; otherwise the run ends.

use crate::call::{Call, In, Number, Out};
use crate::described::Part;
use crate::liveness::Liveness;
use crate::place::{LayoutRef, Place};
use crate::plan::PassUnit;
use crate::value::Value;
use mxnp_core::kernel::pass::{Load, Pass, ReduceTail, Reg, Source, Step, Store};
use mxnp_core::kernel::step;
use mxnp_core::op::Run;
use mxnp_core::ops::arith::pair;
use mxnp_core::shape::{AxisList, Shape};
use mxnp_core::{DType, Layout};
use smallvec::{SmallVec, smallvec};
use std::sync::{Arc, OnceLock};

/// A pass keeps its tiles in L1 and its program short.
const MAX_REGS: usize = 48;

/// A value that the pass has computed.
struct Produced {
    at: Place,
    reg: Reg,
    fresh: bool,
}

pub(crate) struct Fuser {
    shape: Shape,
    parts: Vec<Part>,
    regs: Vec<DType>,
    loads: Vec<Load>,
    steps: Vec<Step>,
    slots: Vec<Place>,
    scalars: Vec<Number>,
    produced: Vec<Produced>,
    reduce: Option<(ReduceTail, Place)>,
}

impl Fuser {
    /// Begins a pass with a call; None where the call is neither elementwise nor a reduction.
    pub fn begin(call: &Call) -> Option<Fuser> {
        let shape = match call.op.run {
            Run::Elementwise(_) => call.outs[0].at.layout.shape.clone(),
            Run::Reduce { .. } => call.ins[0].meta().shape,
            _ => return None,
        };
        let mut fuser = Fuser {
            shape,
            parts: Vec::with_capacity(8),
            regs: Vec::with_capacity(8),
            loads: Vec::with_capacity(4),
            steps: Vec::with_capacity(8),
            slots: Vec::with_capacity(4),
            scalars: vec![],
            produced: Vec::with_capacity(8),
            reduce: None,
        };
        fuser.add(call).then_some(fuser)
    }

    /// Whether the pass ends with a reduction and so takes no more calls.
    pub fn is_closed(&self) -> bool {
        self.reduce.is_some()
    }

    /// Adds a call to the pass, or says that it does not fit.
    pub fn add(&mut self, call: &Call) -> bool {
        let room = MAX_REGS.saturating_sub(self.regs.len());
        if self.is_closed() || (!self.regs.is_empty() && room < 2 * (call.ins.len() + 2)) {
            return false;
        }
        match call.op.run {
            Run::Elementwise(_) => self.add_elementwise(call),
            Run::Reduce { fold, axes } => {
                let axes = axes(&call.attrs, self.shape.len());
                let Some(fold) = fold(call.types()[0], call.outs[0].computed) else { return false };
                self.add_reduce(call, fold, axes)
            }
            _ => false,
        }
    }

    fn add_elementwise(&mut self, call: &Call) -> bool {
        let out = &call.outs[0];
        if out.at.layout.shape != self.shape || !self.reads_fit(call) || !self.write_fits(out) {
            return false;
        }
        let ins: SmallVec<[Reg; 3]> =
            call.ins.iter().zip(call.types()).map(|(input, &dtype)| self.operand(input, dtype)).collect();
        let result = if let (true, [only]) = (call.is_copy(), ins.as_slice()) {
            *only
        } else {
            let Run::Elementwise(step_of) = call.op.run else { return false };
            match step_of(call.types(), out.computed) {
                Some(f) => self.step(f, ins, out.computed),
                // `full` only spreads its operand.
                None => ins[0],
            }
        };
        let reg = self.convert(result, out.at.dtype);
        if !out.fresh {
            self.produced.retain(|p| !p.at.is(&out.at.value));
        }
        self.produced.push(Produced { at: out.at.clone(), reg, fresh: out.fresh });
        self.name(call);
        true
    }

    fn add_reduce(&mut self, call: &Call, fold: mxnp_core::kernel::reduce::Fold, axes: AxisList) -> bool {
        if call.ins[0].meta().shape != self.shape || !self.reads_fit(call) {
            return false;
        }
        let out = &call.outs[0];
        let reg = self.operand(&call.ins[0], call.types()[0]);
        let at = Place { layout: spread(&out.at.layout, &axes, &self.shape).into(), ..out.at.clone() };
        let tail =
            ReduceTail { reg, fold, result: out.computed, axes, target: usize::MAX, dtype: out.at.dtype };
        self.reduce = Some((tail, at));
        self.name(call);
        true
    }

    fn name(&mut self, call: &Call) {
        self.parts.push(Part { op: call.op.name, call: call.number as usize });
    }

    /// Whether what the call reads was either not written in this pass, or at the same elements.
    fn reads_fit(&self, call: &Call) -> bool {
        call.ins.iter().filter_map(In::place).all(|place| {
            let mut made = self.produced.iter().filter(|p| p.at.is(&place.value)).peekable();
            if made.peek().is_none() {
                return true;
            }
            let Some(layout) = self.spread_over(place) else { return false };
            made.all(|p| p.at.layout == layout)
        })
    }

    /// Whether what the call writes was read or written in this pass at the same elements only.
    fn write_fits(&self, out: &Out) -> bool {
        if out.fresh {
            return true;
        }
        let same = |at: &Place| !at.is(&out.at.value) || at.layout == out.at.layout;
        self.slots.iter().all(same) && self.produced.iter().all(|p| same(&p.at))
    }

    /// The register that holds an operand in `dtype`.
    fn operand(&mut self, input: &In, dtype: DType) -> Reg {
        let place = match input {
            In::Scalar(number) => return self.scalar(*number, dtype),
            In::Place(place) => place,
        };
        let made = self.produced.iter().rev().find(|p| p.at.is(&place.value)).map(|p| p.reg);
        let reg = made.unwrap_or_else(|| self.load(place));
        self.convert(reg, dtype)
    }

    /// The place's layout over the iteration space.
    fn spread_over(&self, place: &Place) -> Option<LayoutRef> {
        if place.layout.shape == self.shape {
            return Some(place.layout.clone());
        }
        place.layout.broadcast_to(&self.shape).map(LayoutRef::new)
    }

    fn scalar(&mut self, number: Number, dtype: DType) -> Reg {
        let known = self.loads.iter().find(|load| match load.source {
            Source::Scalar(slot) => {
                let known = self.scalars[slot];
                known.slot == number.slot
                    && known.value.bits() == number.value.bits()
                    && self.regs[load.reg] == dtype
            }
            Source::Array(_) => false,
        });
        if let Some(load) = known {
            return load.reg;
        }
        let reg = self.reg(dtype);
        self.scalars.push(number);
        self.loads.push(Load { source: Source::Scalar(self.scalars.len() - 1), dtype, reg });
        reg
    }

    fn load(&mut self, place: &Place) -> Reg {
        let layout = self.spread_over(place).expect("infer has checked the shapes");
        let known = self.loads.iter().find(|load| match load.source {
            Source::Array(slot) => {
                let at = &self.slots[slot];
                at.is(&place.value) && at.dtype == place.dtype && at.layout == layout
            }
            Source::Scalar(_) => false,
        });
        if let Some(load) = known {
            return load.reg;
        }
        let reg = self.reg(place.dtype);
        self.slots.push(Place { layout, ..place.clone() });
        self.loads.push(Load { source: Source::Array(self.slots.len() - 1), dtype: place.dtype, reg });
        reg
    }

    fn reg(&mut self, dtype: DType) -> Reg {
        self.regs.push(dtype);
        self.regs.len() - 1
    }

    fn step(&mut self, f: mxnp_core::op::StepFn, ins: SmallVec<[Reg; 3]>, dtype: DType) -> Reg {
        let out = self.reg(dtype);
        self.steps.push(Step { f, ins, out });
        out
    }

    fn convert(&mut self, reg: Reg, dtype: DType) -> Reg {
        let from = self.regs[reg];
        if from == dtype { reg } else { self.step(step::cast(from, dtype), smallvec![reg], dtype) }
    }

    /// Whether the pass can run over each part of the kernel's result as soon as that is there: it reads the result
    /// element by element, as it lies, and writes nothing that the kernel still reads.
    pub fn follows(&self, kernel: &Call) -> bool {
        let [Out { at: result, .. }] = kernel.outs.as_slice() else { return false };
        if !kernel.op.tail || self.is_closed() || result.layout.size() == 0 || !result.is_whole() {
            return false;
        }
        let mut reads = self.slots.iter().filter(|slot| slot.is(&result.value)).peekable();
        let reads_result = reads.peek().is_some();
        let fits = |slot: &Place| {
            slot.dtype == result.dtype
                && slot.layout.is_contiguous()
                && slot.layout.size() == result.layout.size()
        };
        let is_read =
            |made: &Produced| kernel.ins.iter().filter_map(In::place).any(|at| at.is(&made.at.value));
        reads_result && reads.all(fits) && !self.produced.iter().any(is_read)
    }

    /// Ends the pass, whose last call is number `last` of the list: what must be stored, and where. As a tail, it takes
    /// over nothing that the kernel reads.
    pub fn finish(mut self, last: usize, life: &Liveness, kernel: Option<&Call>) -> PassUnit {
        let reads = self.slots.len();
        let mut stores = Vec::new();
        let mut donations: Vec<(usize, usize)> = Vec::new();
        for made in std::mem::take(&mut self.produced) {
            let seen = life.get(&made.at.value);
            if !seen.is_observable() && seen.last <= last {
                continue;
            }
            if made.fresh {
                let donor = self.donor(&made.at, reads, last, life, &donations, kernel);
                donations.extend(donor.map(|from| (from, self.slots.len())));
            }
            let dtype = made.at.dtype;
            self.slots.push(made.at);
            stores.push(Store { reg: made.reg, target: self.slots.len() - 1, dtype });
        }
        let reduce = self.reduce.take().map(|(mut tail, at)| {
            self.slots.push(at);
            tail.target = self.slots.len() - 1;
            tail
        });
        let Fuser { shape, regs, loads, mut steps, slots, scalars, parts, .. } = self;
        let kept = stores.iter().map(|store| store.reg).chain(reduce.as_ref().map(|tail| tail.reg));
        pair_up(&mut steps, &kept.collect::<SmallVec<[Reg; 4]>>());
        let pass = Pass { shape, regs, loads, steps, stores, reduce };
        PassUnit {
            name: parts[parts.len() - 1].op,
            pass,
            slots,
            scalars,
            reads,
            donations,
            parts: parts.into(),
            program: OnceLock::new(),
        }
    }

    /// The slot of an input of the pass that nobody reads any more and whose buffer the result `at` can take.
    fn donor(
        &self,
        at: &Place,
        reads: usize,
        last: usize,
        life: &Liveness,
        taken: &[(usize, usize)],
        kernel: Option<&Call>,
    ) -> Option<usize> {
        let is_read = |value: &Arc<Value>| {
            kernel.is_some_and(|call| call.ins.iter().filter_map(In::place).any(|at| at.is(value)))
        };
        let fits = |slot: &&Place| {
            let seen = life.get(&slot.value);
            !seen.is_observable()
                && seen.last <= last
                && !is_read(&slot.value)
                && slot.layout == at.layout
                && slot.dtype.size() == at.dtype.size()
                && slot.value.bytes == at.value.bytes
                && !taken.iter().any(|&(from, _)| slot.is(&self.slots[from].value))
                && self.slots[..reads].iter().all(|s| !s.is(&slot.value) || s.layout == slot.layout)
        };
        self.slots[..reads].iter().position(|slot| fits(&slot))
    }
}

/// Makes one step of two where the first one's result is an operand of the second and nothing else; `kept` are the
/// registers that are stored or reduced.
fn pair_up(steps: &mut Vec<Step>, kept: &[Reg]) {
    let mut at = 0;
    while at < steps.len() {
        match paired(steps, at, kept) {
            Some((first, step)) => {
                steps[at] = step;
                steps.remove(first);
            }
            None => at += 1,
        }
    }
}

/// Step number `at` with the step before it that it can take in, and the number of that.
fn paired(steps: &[Step], at: usize, kept: &[Reg]) -> Option<(usize, Step)> {
    let &[a, b] = &steps[at].ins[..] else { return None };
    [(0, a, b), (1, b, a)].into_iter().find_map(|(place, made, other)| {
        let first = steps[..at].iter().position(|step| step.out == made)?;
        let &[x, y] = &steps[first].ins[..] else { return None };
        let reads = steps.iter().flat_map(|step| &step.ins).filter(|&&reg| reg == made).count();
        if reads > 1 || kept.contains(&made) {
            return None;
        }
        let f = pair(steps[first].f, steps[at].f, place)?;
        Some((first, Step { f, ins: smallvec![x, y, other], out: steps[at].out }))
    })
}

/// The layout of a reduction's result over the whole iteration space: stride 0 along the reduced axes. The
/// result has the other axes alone, or the reduced ones with size 1.
fn spread(out: &Layout, axes: &[usize], shape: &[usize]) -> Layout {
    let keeps = out.ndim() == shape.len();
    let mut kept = 0;
    let strides = (0..shape.len())
        .map(|i| {
            let at = if keeps { i } else { kept };
            if axes.contains(&i) {
                return 0;
            }
            kept += 1;
            out.strides[at]
        })
        .collect();
    Layout { shape: Shape::from_slice(shape), strides, offset: out.offset }
}
