//! The reduction at a pass's end: which elements are folded in which order, over tiles, blocks and segments.
//!
//! Rationale: the tree is a function of the shape and the reduced axes alone, never of strides, threads or
//! what was fused in front. Tiles fold into accumulators one after the other within a block; blocks, and
//! then segments (which threads take), are combined pairwise in order.

use crate::Scalar;
use crate::kernel::copy::{Axis, copy_block};
use crate::kernel::machine::{Machine, position};
use crate::kernel::pass::{Pass, ReduceTail, Slot};
use crate::kernel::program::{self, Program};
use crate::kernel::reduce::Fold;
use crate::kernel::scratch::with_scratch;
use crate::kernel::space::{Dim, Dims, Tile, Walk, even_block};
use crate::kernel::step;
use crate::par::Parallel;
use smallvec::SmallVec;

/// Elements of a tile that is folded along its rows.
const TILE: usize = 1024;
/// Elements of a tile whose rows are folded into a row of accumulators: long rows read memory page by page.
const WIDE_TILE: usize = 4096;
/// Where rows are folded into a row of accumulators: the most rows of one tile.
const ROWS: usize = 64;
/// Fold calls per accumulator before a block ends and pairwise combining begins.
const CALLS: usize = 16;
/// Elements that are worth a chunk of their own.
const CHUNK: usize = 32 * 1024;
/// With this many cells of outputs or more, threads share cells only.
const CELLS: usize = 64;
/// The most segments one cell is cut into.
const SEGMENTS: usize = 256;

/// The shape of one reduction: a grid of cells (blocks of outputs) by tiles along the reduced axes.
struct Plan<'a> {
    program: Program<'a>,
    tail: &'a ReduceTail,
    /// For each axis, whether it is reduced, and its step in the position along the reduced axes.
    reduced: SmallVec<[bool; 6]>,
    position_steps: SmallVec<[usize; 6]>,
    target: Walk,
    cells: usize,
    /// Elements of each output; tiles of one cell, and of one block.
    along: usize,
    tiles: usize,
    block: usize,
    /// Accumulators of a cell, at most.
    accs: usize,
}

// SAFETY: as Program; cells write disjoint outputs.
unsafe impl Sync for Plan<'_> {}

/// Runs a pass that ends in a reduction.
///
/// # Safety
/// The contract of `pass::run`.
pub unsafe fn run(pass: &Pass, tail: &ReduceTail, slots: &[Slot], scalars: &[Scalar], par: &dyn Parallel) {
    let plan = Plan::new(pass, tail, slots, scalars);
    if plan.cells == 0 {
        return;
    }
    let per_cell = plan.accs.saturating_mul(plan.along);
    let blocks = plan.tiles.div_ceil(plan.block);
    let wanted = if plan.cells < CELLS { (per_cell / CHUNK).clamp(1, SEGMENTS) } else { 1 };
    let each = blocks.div_ceil(wanted.min(blocks.max(1)));
    let segments = if blocks == 0 { 1 } else { blocks.div_ceil(each) };
    // SAFETY: the caller's contract; each chunk has its own cells or segments.
    unsafe {
        if segments == 1 {
            let together = (CHUNK / per_cell.max(1)).max(1);
            par.run(plan.cells.div_ceil(together), &|chunk| {
                let cells = chunk * together..((chunk + 1) * together).min(plan.cells);
                plan.with_worker(|mut worker| {
                    for cell in cells.clone() {
                        let acc = worker.fold(cell, 0..blocks);
                        worker.finish(cell, acc);
                    }
                });
            });
        } else {
            plan.run_segments(segments, each, blocks, par);
        }
    }
}

impl<'a> Plan<'a> {
    fn new(pass: &'a Pass, tail: &'a ReduceTail, slots: &[Slot], scalars: &[Scalar]) -> Plan<'a> {
        let is_reduced = |axis: &usize| tail.axes.contains(axis);
        let empty = tail.axes.iter().any(|&axis| pass.shape[axis] == 0);
        // Of an empty reduction only the kept axes are walked, to write the identity.
        let axes: SmallVec<[usize; 6]> =
            (0..pass.shape.len()).filter(|a| pass.shape[*a] != 1 && !(empty && is_reduced(a))).collect();
        let reduced: SmallVec<[bool; 6]> = axes.iter().map(is_reduced).collect();
        let along = |mut walk: Walk| {
            walk.steps = axes.iter().map(|&a| walk.steps[a]).collect();
            walk
        };
        let dims = cut(axes.iter().map(|&a| pass.shape[a]), &reduced);
        let product = |f: &dyn Fn(&Dim) -> usize, which: bool| -> usize {
            dims.iter().zip(&reduced).filter(|(_, r)| **r == which).map(|(d, _)| f(d)).product()
        };
        let trailing_reduced = reduced.last() == Some(&true);
        let run: usize =
            dims.iter().zip(&reduced).rev().take_while(|(_, r)| **r).map(|(d, _)| d.block).product();
        let calls = product(&|d| d.block, true) / if trailing_reduced { run } else { 1 };
        let mut step = 1;
        let mut position_steps: SmallVec<[usize; 6]> = SmallVec::from_elem(0, axes.len());
        for d in (0..axes.len()).rev().filter(|&d| reduced[d]) {
            position_steps[d] = step;
            step *= dims[d].n;
        }
        let tiles = if empty { 0 } else { product(&|d| d.tiles(), true) };
        let (cells, accs) = (product(&|d| d.tiles(), false), product(&|d| d.block, false));
        let walks = program::walks(pass, slots).into_iter().map(along).collect();
        Plan {
            target: along(program::walk(&slots[tail.target], tail.dtype)),
            block: (CALLS / calls.max(1)).max(1),
            program: Program::new(pass, scalars, dims, walks),
            tail,
            reduced,
            position_steps,
            along: step,
            cells,
            tiles,
            accs,
        }
    }

    /// Bytes of the accumulators of one cell, in whole cache lines.
    fn acc_bytes(&self) -> usize {
        (self.accs * self.tail.fold.size).next_multiple_of(64)
    }

    /// Levels of pairwise combining that any number of blocks needs, and one to fold into.
    fn levels(&self) -> usize {
        self.tiles.div_ceil(self.block).max(1).ilog2() as usize + 2
    }

    fn with_worker<R>(&self, body: impl FnOnce(Worker) -> R) -> R {
        let own = self.program.scratch.next_multiple_of(64);
        let results = self.accs * 16;
        with_scratch(own + self.levels() * self.acc_bytes() + 2 * results, |scratch| {
            // SAFETY: the first part of the scratch is the machine's, 64-byte aligned.
            let machine = unsafe { Machine::new(&self.program, scratch) };
            body(Worker { plan: self, machine, stack: scratch.wrapping_add(own) })
        })
    }

    /// # Safety
    /// As [`run`].
    unsafe fn run_segments(&self, segments: usize, each: usize, blocks: usize, par: &dyn Parallel) {
        let bytes = self.acc_bytes();
        let mut partial = vec![[0u128; 4]; self.cells * segments * bytes / 64];
        let partial = Shared(partial.as_mut_ptr().cast());
        let at = |cell: usize, segment: usize| partial.add((cell * segments + segment) * bytes);
        par.run(self.cells * segments, &|chunk| {
            let (cell, segment) = (chunk / segments, chunk % segments);
            self.with_worker(|mut worker| {
                let range = segment * each..((segment + 1) * each).min(blocks);
                // SAFETY: the caller's contract; each chunk has a place of its own in `partial`.
                unsafe {
                    let acc = worker.fold(cell, range);
                    std::ptr::copy_nonoverlapping(acc, at(cell, segment), bytes);
                }
            });
        });
        par.run(self.cells, &|cell| {
            let n = self.outputs(&self.cell(cell));
            // SAFETY: all segments are folded, and each cell has its own.
            unsafe {
                let mut apart = 1;
                while apart < segments {
                    for left in (0..segments - apart).step_by(2 * apart) {
                        (self.tail.fold.combine)(at(cell, left), at(cell, left + apart), n);
                    }
                    apart *= 2;
                }
                self.with_worker(|worker| worker.finish(cell, at(cell, 0)));
            }
        });
    }

    /// The first tile of a cell.
    fn cell(&self, mut index: usize) -> Tile {
        let dims = &self.program.dims;
        let mut tile = Tile::at(dims, 0);
        for d in (0..dims.len()).rev().filter(|&d| !self.reduced[d]) {
            tile.place(dims, d, index % dims[d].tiles());
            index /= dims[d].tiles();
        }
        tile
    }

    /// How many outputs a tile has.
    fn outputs(&self, tile: &Tile) -> usize {
        tile.counts.iter().zip(&self.reduced).filter(|(_, r)| !**r).map(|(n, _)| n).product()
    }
}

/// Partial results that chunks write at places of their own.
struct Shared(*mut u8);
// SAFETY: only an address; each chunk writes its own part.
unsafe impl Sync for Shared {}
impl Shared {
    fn add(&self, bytes: usize) -> *mut u8 {
        self.0.wrapping_add(bytes)
    }
}

/// Blocks: the kept axes' part of a tile is a cell, of up to WIDE_TILE outputs.
fn cut(sizes: impl DoubleEndedIterator<Item = usize> + ExactSizeIterator, reduced: &[bool]) -> Dims {
    let mut dims: Dims = sizes.map(|n| Dim { n, block: 1 }).collect();
    let (mut room, mut rows) = if reduced.last() == Some(&true) { (TILE, TILE) } else { (WIDE_TILE, ROWS) };
    for (dim, &reduced) in dims.iter_mut().zip(reduced).rev() {
        let most = if reduced { room.min(rows) } else { room };
        dim.block = if most <= 1 || dim.n == 0 { 1 } else { even_block(dim.n, most) };
        if dim.block < dim.n {
            break;
        }
        room /= dim.n.max(1);
        rows /= if reduced { dim.n.max(1) } else { 1 };
    }
    dims
}

/// One thread at work on cells.
struct Worker<'p> {
    plan: &'p Plan<'p>,
    machine: Machine<'p>,
    /// Accumulators of the levels, one after the other, then room for results.
    stack: *mut u8,
}

impl Worker<'_> {
    fn level(&self, i: usize) -> *mut u8 {
        self.stack.wrapping_add(i * self.plan.acc_bytes())
    }

    /// Folds blocks `range` of a cell; gives the accumulators.
    ///
    /// # Safety
    /// As [`run`].
    unsafe fn fold(&mut self, cell: usize, range: std::ops::Range<usize>) -> *const u8 {
        let plan = self.plan;
        let fold = &plan.tail.fold;
        let mut tile = plan.cell(cell);
        let n = plan.outputs(&tile);
        self.seek(&mut tile, range.start * plan.block);
        let (mut level, mut done) = (0, 0usize);
        for block in range {
            // SAFETY: levels suffice for the number of blocks; accumulators hold a cell.
            unsafe {
                (fold.init)(self.level(level), n);
                for _ in block * plan.block..((block + 1) * plan.block).min(plan.tiles) {
                    self.machine.run(&tile);
                    self.fold_tile(fold, &tile, self.level(level));
                    self.advance(&mut tile);
                }
                done += 1;
                level += 1;
                for _ in 0..done.trailing_zeros() {
                    level -= 1;
                    (fold.combine)(self.level(level - 1), self.level(level), n);
                }
            }
        }
        // SAFETY: as above.
        unsafe {
            if level == 0 {
                (fold.init)(self.level(0), n);
            }
            for i in (1..level).rev() {
                (fold.combine)(self.level(i - 1), self.level(i), n);
            }
        }
        self.level(0)
    }

    /// Moves to tile `index` along the reduced axes.
    fn seek(&self, tile: &mut Tile, mut index: usize) {
        let dims = &self.plan.program.dims;
        for d in (0..dims.len()).rev().filter(|&d| self.plan.reduced[d]) {
            tile.place(dims, d, index % dims[d].tiles());
            index /= dims[d].tiles();
        }
    }

    fn advance(&self, tile: &mut Tile) {
        let dims = &self.plan.program.dims;
        for d in (0..dims.len()).rev().filter(|&d| self.plan.reduced[d]) {
            let next = tile.starts[d] + dims[d].block;
            if next < dims[d].n {
                tile.place(dims, d, next / dims[d].block);
                return;
            }
            tile.place(dims, d, 0);
        }
    }

    /// Folds the reduced register's tile: row by row along its innermost axes of one kind.
    ///
    /// # Safety
    /// As [`run`]; `acc` holds a cell's accumulators.
    unsafe fn fold_tile(&self, fold: &Fold, tile: &Tile, acc: *mut u8) {
        let plan = self.plan;
        let x = self.machine.register(plan.tail.reg);
        let size = plan.program.pass.regs[plan.tail.reg].size();
        let inner = plan.reduced.last() != Some(&false);
        let split = plan.reduced.iter().rposition(|&r| r != inner).map_or(0, |d| d + 1);
        let row: usize = tile.counts[split..].iter().product();
        let mut start = 0;
        for d in 0..plan.reduced.len() {
            start += tile.starts[d] * plan.position_steps[d];
        }
        let mut acc_steps: SmallVec<[usize; 6]> = SmallVec::from_elem(0, plan.reduced.len());
        let mut step = 1;
        for d in (0..plan.reduced.len()).rev().filter(|&d| !plan.reduced[d]) {
            acc_steps[d] = step;
            step *= tile.counts[d];
        }
        let mut index: SmallVec<[usize; 6]> = SmallVec::from_elem(0, split);
        let (mut output, mut along) = (0, start);
        for i in 0..tile.counts[..split].iter().product() {
            // SAFETY: row i lies within the register's tile, its accumulators within the cell's.
            unsafe {
                let (acc, x) = (acc.add(output * fold.size), x.add(i * row * size));
                if inner { (fold.inner)(acc, x, row, along) } else { (fold.outer)(acc, x, row, along) }
            }
            for d in (0..split).rev() {
                index[d] += 1;
                output += acc_steps[d];
                along += plan.position_steps[d];
                if index[d] < tile.counts[d] {
                    break;
                }
                output -= index[d] * acc_steps[d];
                along -= index[d] * plan.position_steps[d];
                index[d] = 0;
            }
        }
    }

    /// Writes a cell's results.
    ///
    /// # Safety
    /// As [`run`]; `acc` holds the cell's accumulators.
    unsafe fn finish(&self, cell: usize, acc: *const u8) {
        let plan = self.plan;
        let tail = plan.tail;
        let tile = plan.cell(cell);
        let n = plan.outputs(&tile);
        let results = self.level(plan.levels());
        let mut packed = tail.dtype.size() as isize;
        let mut axes: SmallVec<[Axis; 6]> = SmallVec::new();
        for d in (0..plan.reduced.len()).rev().filter(|&d| !plan.reduced[d]) {
            axes.push(Axis { n: tile.counts[d], src: packed, dst: plan.target.steps[d] });
            packed *= tile.counts[d] as isize;
        }
        axes.reverse();
        // The reduced axes have step 0 in the target, so where a cell starts depends on the kept ones only.
        let to = position(&plan.target, &tile);
        // SAFETY: two cells' worth of the widest element lie behind the levels; the target holds the outputs.
        unsafe {
            (tail.fold.finish)(acc, results, n);
            let mut from = results;
            if tail.result != tail.dtype {
                from = results.add(plan.accs * 16);
                step::cast(tail.result, tail.dtype)(n, &[results], from);
            }
            copy_block(tail.dtype.size(), &mut axes, from, to);
        }
    }
}
