//! The tiled interpreter: one pass over memory that runs a short program of steps on tiles that stay in L1.
//! A single elementwise op, a fused chain and a reduction at its end are all a [`Pass`].

use crate::kernel::reduce::Fold;
use crate::layout::Layout;
use crate::op::StepFn;
use crate::par::Parallel;
use crate::shape::{AxisList, Shape};
use crate::{DType, Scalar};
use smallvec::SmallVec;

/// The index of a register: one tile of elements of one dtype.
pub type Reg = usize;

/// Where a load takes its elements from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The array in this slot.
    Array(usize),
    /// The scalar in this slot, repeated.
    Scalar(usize),
}

/// Fills a register; a memory dtype other than the register's is converted.
#[derive(Clone, Debug)]
pub struct Load {
    pub source: Source,
    /// The dtype in memory (unused for scalars).
    pub dtype: DType,
    pub reg: Reg,
}

/// Computes a register from others.
#[derive(Clone, Debug)]
pub struct Step {
    pub f: StepFn,
    pub ins: SmallVec<[Reg; 3]>,
    pub out: Reg,
}

/// Writes a register to the array in slot `target`, converting to `dtype`.
#[derive(Clone, Debug)]
pub struct Store {
    pub reg: Reg,
    pub target: usize,
    pub dtype: DType,
}

/// Reduces a register over `axes` (sorted) of the iteration space into slot `target`.
#[derive(Clone)]
pub struct ReduceTail {
    pub reg: Reg,
    pub fold: Fold,
    /// The dtype `fold.finish` writes.
    pub result: DType,
    pub axes: AxisList,
    pub target: usize,
    /// The dtype in the target's memory.
    pub dtype: DType,
}

/// A program over an iteration space. Registers are single-assignment; `regs[r]` is register r's dtype.
#[derive(Clone)]
pub struct Pass {
    pub shape: Shape,
    pub regs: Vec<DType>,
    pub loads: Vec<Load>,
    pub steps: Vec<Step>,
    pub stores: Vec<Store>,
    pub reduce: Option<ReduceTail>,
}

/// The memory of one slot: the buffer's start and a layout of the pass's whole shape (broadcast axes and,
/// for a reduction's target, reduced axes have stride 0).
#[derive(Clone, Copy)]
pub struct Slot<'a> {
    pub base: *mut u8,
    pub layout: &'a Layout,
}

/// Runs the pass.
///
/// # Safety
/// Slots are valid for the accesses that loads and stores make of them. A store's memory overlaps that of a
/// load only through the same layout at the same element, and no other store's.
pub unsafe fn run(pass: &Pass, slots: &[Slot], scalars: &[Scalar], par: &dyn Parallel) {
    let _ = (pass, slots, scalars, par);
    unimplemented!("being written")
}
