//! The tiled interpreter: one pass over memory that runs a short program of steps on tiles that stay in L1.
//! A single elementwise op, a fused chain and a reduction at its end are all a [`Pass`].

use crate::kernel::machine::Machine;
use crate::kernel::moves;
pub use crate::kernel::program::Kept;
use crate::kernel::program::{self, Program};
use crate::kernel::reduce::Fold;
use crate::kernel::reduction;
use crate::kernel::scratch::with_scratch;
use crate::kernel::space::{Dims, Tile, Walk, cut, simplify};
use crate::kernel::step;
use crate::layout::Layout;
use crate::op::StepFn;
use crate::par::Parallel;
use crate::shape::{AxisList, Shape};
use crate::{DType, Scalar};
use smallvec::SmallVec;
use std::sync::OnceLock;

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

/// Bytes of the tiles that a pass has to do with at once: they stay in L1.
const TILES_BYTES: usize = 24 * 1024;
/// The most bytes of one tile.
const TILE_BYTES: usize = 4 * 1024;
/// Elements that are worth a chunk of their own; below it a pass runs on the calling thread.
const CHUNK: usize = 32 * 1024;

/// Runs a pass that only copies elements by the driver for copies; false, and nothing done, if it is another.
///
/// # Safety
/// As [`run`].
unsafe fn copied(pass: &Pass, slots: &[Slot], par: &dyn Parallel) -> bool {
    let Some((load, store)) = plain_copy(pass) else { return false };
    let mut walks =
        [program::walk(&slots[store.target], store.dtype), program::walk(&slots[load], store.dtype)];
    if walks[0].start != walks[1].start || walks[0].steps != walks[1].steps {
        // SAFETY: the caller's contract; what overlaps would have the same layout.
        unsafe { moves::copy_walks(&pass.shape, &mut walks, par) };
    }
    true
}

/// The slot that is read and the store of a pass that only copies elements as they are.
fn plain_copy(pass: &Pass) -> Option<(usize, &Store)> {
    let ([load], [store]) = (&pass.loads[..], &pass.stores[..]) else { return None };
    let Source::Array(slot) = load.source else { return None };
    let dtypes = [load.dtype, store.dtype, pass.regs[load.reg], pass.regs[store.reg]];
    let same = match &pass.steps[..] {
        [] => load.reg == store.reg,
        [step] => step.ins[..] == [load.reg] && step.out == store.reg && step::is_copy(step.f, load.dtype),
        _ => false,
    };
    (same && dtypes.iter().all(|&d| d == load.dtype)).then_some((slot, store))
}

/// Runs the pass.
///
/// # Safety
/// Slots are valid for the accesses that loads and stores make of them. A store's memory overlaps that of a
/// load only through the same layout at the same element, and no other store's.
pub unsafe fn run(pass: &Pass, slots: &[Slot], scalars: &[Scalar], par: &dyn Parallel) {
    if let Some(tail) = &pass.reduce {
        // SAFETY: the caller's contract.
        return unsafe { reduction::run(pass, tail, slots, scalars, par) };
    }
    if pass.shape.contains(&0) {
        return;
    }
    // SAFETY: the caller's contract.
    if unsafe { copied(pass, slots, par) } {
        return;
    }
    // SAFETY: the caller's contract.
    unsafe { run_program(&program_for(pass, slots, scalars), par) }
}

/// As [`run`], with what it makes ready kept in `kept` for later runs on slots of the same layouts.
///
/// # Safety
/// As [`run`], and all runs with one `kept` are of one pass on slots of the same layouts.
pub unsafe fn run_again(
    pass: &Pass,
    kept: &OnceLock<Kept>,
    slots: &[Slot],
    scalars: &[Scalar],
    par: &dyn Parallel,
) {
    if pass.reduce.is_some() || pass.shape.contains(&0) {
        // SAFETY: the caller's contract.
        return unsafe { run(pass, slots, scalars, par) };
    }
    // Elements that are worth a copy of their own.
    const MANY: usize = 4096;
    // SAFETY: the caller's contract.
    if pass.shape.iter().product::<usize>() >= MANY && unsafe { copied(pass, slots, par) } {
        return;
    }
    let bases = || program::walked(pass).map(|slot| slots[slot].base);
    let known = kept.get().and_then(|kept| kept.program(pass, scalars, bases()));
    let program = known.unwrap_or_else(|| {
        let program = program_for(pass, slots, scalars);
        kept.get_or_init(|| Kept::new(&program, bases()));
        program
    });
    // SAFETY: the caller's contract.
    unsafe { run_program(&program, par) }
}

/// Elements of a tile of this pass.
pub(super) fn tile_elements(pass: &Pass) -> usize {
    let widest = pass.regs.iter().map(|d| d.size()).max().unwrap_or(1);
    // What is read and written, and two results in between.
    let tiles = pass.loads.len() + pass.stores.len() + 2;
    (TILES_BYTES / tiles).min(TILE_BYTES).div_ceil(64 * widest).clamp(512 / 64, 4096 / 64) * 64
}

/// Whether one step reads and writes memory as it lies: then nothing has to stay in L1.
fn is_direct(pass: &Pass, dims: &Dims, walks: &[Walk]) -> bool {
    let as_is = |load: &Load| matches!(load.source, Source::Array(_)) && load.dtype == pass.regs[load.reg];
    pass.steps.len() == 1
        && dims.len() == 1
        && walks.iter().all(|walk| walk.steps[0] == walk.size as isize)
        && pass.loads.iter().all(as_is)
        && pass.stores.iter().all(|store| store.dtype == pass.regs[store.reg])
}

fn program_for<'a>(pass: &'a Pass, slots: &[Slot], scalars: &[Scalar]) -> Program<'a> {
    let mut walks = program::walks(pass, slots);
    let mut dims = simplify(&pass.shape, &mut walks);
    let direct = is_direct(pass, &dims, &walks) && !program::is_large(&dims, &walks);
    let tile = if direct { CHUNK } else { tile_elements(pass) };
    cut(&mut dims, &walks, tile);
    Program::new(pass, scalars, dims, walks)
}

/// # Safety
/// As [`run`].
unsafe fn run_program(program: &Program, par: &dyn Parallel) {
    let tiles: usize = program.dims.iter().map(|d| d.tiles()).product();
    let together = CHUNK.div_ceil(program.tile.max(1));
    par.run(tiles.div_ceil(together), &|chunk| {
        let first = chunk * together;
        with_scratch(program.scratch, |scratch| {
            // SAFETY: the scratch is this call's alone; chunks have tiles, and so elements, of their own.
            unsafe {
                let mut machine = Machine::new(program, scratch);
                let mut tile = Tile::at(&program.dims, first);
                for _ in first..(first + together).min(tiles) {
                    machine.run(&tile);
                    tile.advance(&program.dims);
                }
            }
        });
    });
}
