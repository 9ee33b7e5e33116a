//! The reduction at a pass's end: which elements are folded in which order, over tiles, blocks and segments.
//!
//! Rationale: the tree is a function of the shape and the reduced axes alone, never of strides, threads or
//! what was fused in front (`reduce_tree`). Tiles fold into accumulators one after the other within a block;
//! blocks, and segments of blocks (which threads take), are combined pairwise in order. A segment is a power of
//! two of blocks, so that where it ends makes no difference to the tree.

use crate::Scalar;
use crate::kernel::copy::{Axis, copy_block};
use crate::kernel::machine::{Machine, position};
use crate::kernel::pass::{Pass, ReduceTail, Slot, Source};
use crate::kernel::program::{self, Program};
use crate::kernel::reduce::{Rows, SHORT};
use crate::kernel::reduce_tree::{self, Sizes, Tree};
use crate::kernel::scratch::with_scratch;
use crate::kernel::space::{Dim, Dims, Tile, Walk};
use crate::kernel::step;
use crate::par::Parallel;
use smallvec::SmallVec;
use std::ops::Range;

/// Elements that are worth a chunk of their own, and chunks that are enough: each sets up a machine.
const CHUNK: usize = 64 * 1024;
const CHUNKS: usize = 64;
/// With this many cells of outputs or more, threads share cells only.
const CELLS: usize = 64;
/// Bytes of a tile's registers.
const NEAR: usize = 24 * 1024;
/// The most segments one cell is cut into.
const SEGMENTS: usize = 256;

/// The shape of one reduction: a grid of cells (tiles of outputs) by blocks along the reduced axes.
struct Plan<'a> {
    program: Program<'a>,
    tail: &'a ReduceTail,
    tree: Tree,
    /// For each axis, whether it is reduced, and its step in the position along the reduced axes.
    reduced: SmallVec<[bool; 6]>,
    position_steps: Sizes,
    target: Walk,
    /// The walk that is folded without running the program, where nothing is computed.
    direct: Option<usize>,
    cells: usize,
    /// Elements of each output, and blocks.
    along: usize,
    blocks: usize,
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
    let has_output = (0..pass.shape.len()).all(|axis| pass.shape[axis] != 0 || tail.axes.contains(&axis));
    if !has_output {
        return;
    }
    let plan = Plan::new(pass, tail, slots, scalars);
    let per_cell = plan.accs.saturating_mul(plan.along);
    // A segment's accumulators go through memory once more: they must be few beside its elements.
    let chunk = CHUNK.max(per_cell.saturating_mul(plan.cells) / CHUNKS);
    let worth = chunk.max(32 * plan.accs);
    let wanted = if plan.cells < CELLS { (per_cell / worth).clamp(1, SEGMENTS) } else { 1 };
    let each = plan.blocks.div_ceil(wanted).next_power_of_two();
    let segments = plan.blocks.div_ceil(each).max(1);
    // SAFETY: the caller's contract; each chunk has its own cells or segments.
    unsafe {
        if segments == 1 {
            let together = (chunk / per_cell.max(1)).max(1);
            par.run(plan.cells.div_ceil(together), &|chunk| {
                let cells = chunk * together..((chunk + 1) * together).min(plan.cells);
                plan.with_worker(|mut worker| {
                    for cell in cells.clone() {
                        let acc = worker.fold(cell, 0..plan.blocks);
                        worker.finish(cell, acc);
                    }
                });
            });
        } else {
            plan.run_segments(segments, each, par);
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
        let sizes: Sizes = axes.iter().map(|&a| pass.shape[a]).collect();
        let along = |mut walk: Walk| {
            walk.steps = axes.iter().map(|&a| walk.steps[a]).collect();
            walk
        };
        let walks: SmallVec<[Walk; 6]> = program::walks(pass, slots).into_iter().map(along).collect();
        let tree = reduce_tree::tree(&sizes, &reduced);
        let source = plain_source(pass, tail);
        let direct = source.filter(|&w| {
            let tile = reduce_tree::tiles(&sizes, &reduced, &tree, None, None);
            folds_in_place(&walks[w], &sizes, &reduced, &tile)
        });
        let narrow = source.filter(|_| direct.is_none()).and_then(|w| crossing(&walks[w], &reduced));
        let elements = direct.is_none().then(|| tile_elements(pass));
        let tile = reduce_tree::tiles(&sizes, &reduced, &tree, elements, narrow);
        let dims: Dims = sizes.iter().zip(&tile).map(|(&n, &block)| Dim { n, block }).collect();
        let mut step = 1;
        let mut position_steps = Sizes::from_elem(0, axes.len());
        for d in (0..axes.len()).rev().filter(|&d| reduced[d]) {
            position_steps[d] = step;
            step *= sizes[d];
        }
        let product = |f: &dyn Fn(usize) -> usize, which: bool| -> usize {
            (0..axes.len()).filter(|&d| reduced[d] == which).map(f).product()
        };
        Plan {
            target: along(program::walk(&slots[tail.target], tail.dtype)),
            cells: product(&|d| dims[d].tiles(), false),
            accs: product(&|d| dims[d].block, false),
            blocks: if empty { 0 } else { product(&|d| sizes[d].div_ceil(tree.blocks[d]), true) },
            program: Program::new(pass, scalars, dims, walks),
            tail,
            tree,
            reduced,
            position_steps,
            direct,
            along: step,
        }
    }

    /// Bytes of the accumulators of one cell, in whole cache lines.
    fn acc_bytes(&self) -> usize {
        (self.accs * self.tail.fold.size).next_multiple_of(64)
    }

    /// Levels of pairwise combining that any number of blocks needs, and one to fold into.
    fn levels(&self) -> usize {
        self.blocks.max(1).ilog2() as usize + 2
    }

    fn with_worker<R>(&self, body: impl FnOnce(Worker) -> R) -> R {
        let own = if self.direct.is_some() { 0 } else { self.program.scratch.next_multiple_of(64) };
        let results = self.accs * 16;
        with_scratch(own + self.levels() * self.acc_bytes() + 2 * results, |scratch| {
            // SAFETY: the first part of the scratch is the machine's, 64-byte aligned; where memory is folded
            // directly it has none and is never run.
            let machine = unsafe { Machine::new(&self.program, scratch) };
            body(Worker { plan: self, machine, stack: scratch.wrapping_add(own), shape: None })
        })
    }

    /// # Safety
    /// As [`run`].
    unsafe fn run_segments(&self, segments: usize, each: usize, par: &dyn Parallel) {
        let bytes = self.acc_bytes();
        let mut partial = vec![[0u128; 4]; self.cells * segments * bytes / 64];
        let partial = Shared(partial.as_mut_ptr().cast());
        let at = |cell: usize, segment: usize| partial.add((cell * segments + segment) * bytes);
        par.run(self.cells * segments, &|chunk| {
            let (cell, segment) = (chunk / segments, chunk % segments);
            self.with_worker(|mut worker| {
                let range = segment * each..((segment + 1) * each).min(self.blocks);
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

    /// The steps in bytes from element to element of what is folded.
    fn steps(&self, tile: &Tile) -> SmallVec<[isize; 6]> {
        if let Some(walk) = self.direct {
            return self.program.walks[walk].steps.clone();
        }
        let mut steps = SmallVec::from_elem(0, tile.counts.len());
        let mut step = self.program.pass.regs[self.tail.reg].size() as isize;
        for (d, &n) in tile.counts.iter().enumerate().rev() {
            steps[d] = step;
            step *= n as isize;
        }
        steps
    }
}

/// Elements of a tile that steps compute and that is folded along its rows: as many as leave all registers in a
/// first-level cache, since a tile costs as much to set up as some hundred elements to add.
fn tile_elements(pass: &Pass) -> usize {
    let bytes = pass.regs.iter().map(|dtype| dtype.size()).sum::<usize>();
    (NEAR / bytes.max(1)).clamp(1024, 4096)
}

/// The walk of what is folded, where it is an array as it is and nothing else is computed.
fn plain_source(pass: &Pass, tail: &ReduceTail) -> Option<usize> {
    let mut walk = 0;
    for load in &pass.loads {
        if let Source::Array(_) = load.source {
            let plain = pass.steps.is_empty() && pass.stores.is_empty();
            if load.reg == tail.reg && plain && load.dtype == pass.regs[load.reg] {
                return Some(walk);
            }
            walk += 1;
        }
    }
    None
}

/// Whether rows of a tile lie in memory as a fold wants them.
fn folds_in_place(walk: &Walk, sizes: &[usize], reduced: &[bool], tile: &[usize]) -> bool {
    let first = reduce_tree::split(reduced);
    let across = !reduce_tree::is_inner(reduced);
    let mut expect = walk.size as isize;
    let mut from = first;
    if across && sizes[first..].iter().product::<usize>() < SHORT {
        // Short rows follow each other without a gap.
        from = (0..first).rposition(|d| !reduced[d]).map_or(0, |d| d + 1);
    }
    for d in (from..sizes.len()).rev() {
        if tile[d] == 1 && sizes[d] != 1 {
            continue;
        }
        if walk.steps[d] != expect {
            return false;
        }
        expect *= sizes[d] as isize;
    }
    true
}

/// The kept axis along which memory is contiguous, where it is not along the reduced rows: tiles take a cache
/// line of it.
fn crossing(walk: &Walk, reduced: &[bool]) -> Option<usize> {
    let size = walk.size as isize;
    let crosses = reduce_tree::is_inner(reduced) && walk.steps.last().is_some_and(|s| s.abs() > size);
    (0..reduced.len()).filter(|_| crosses).find(|&d| !reduced[d] && walk.steps[d].abs() == size)
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

/// How tiles of one size are folded: found once for the many that have it.
struct Shape {
    counts: SmallVec<[usize; 6]>,
    steps: SmallVec<[isize; 6]>,
    acc_steps: Sizes,
    /// Axes before `outer` are walked; those up to `split` make rows of what follows.
    outer: usize,
    rows: usize,
    row_step: isize,
    n: usize,
}

/// One thread at work on cells.
struct Worker<'p> {
    plan: &'p Plan<'p>,
    machine: Machine<'p>,
    /// Accumulators of the levels, one after the other, then room for results.
    stack: *mut u8,
    /// Of the tiles folded last.
    shape: Option<Shape>,
}

impl Worker<'_> {
    fn level(&self, i: usize) -> *mut u8 {
        self.stack.wrapping_add(i * self.plan.acc_bytes())
    }

    /// Folds blocks `range` of a cell; gives the accumulators.
    ///
    /// # Safety
    /// As [`run`].
    unsafe fn fold(&mut self, cell: usize, range: Range<usize>) -> *const u8 {
        let plan = self.plan;
        let fold = &plan.tail.fold;
        let mut tile = plan.cell(cell);
        let n = plan.outputs(&tile);
        let (mut level, mut done) = (0, 0usize);
        for block in range {
            // SAFETY: levels suffice for the number of blocks; accumulators hold a cell.
            unsafe {
                (fold.init)(self.level(level), n);
                self.fold_block(&mut tile, block, self.level(level));
                done += 1;
                level += 1;
                for _ in 0..done.trailing_zeros() {
                    level -= 1;
                    (fold.combine)(self.level(level - 1), self.level(level), n);
                }
            }
        }
        // SAFETY: levels below `level` hold a cell's accumulators that the loop filled; level 0 always exists.
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

    /// Folds one block, tile by tile; `tile` is any of the cell's.
    ///
    /// # Safety
    /// As [`run`]; `acc` holds a cell's accumulators.
    unsafe fn fold_block(&mut self, tile: &mut Tile, mut block: usize, acc: *mut u8) {
        let plan = self.plan;
        let dims = &plan.program.dims;
        let mut limits = Sizes::from_elem(0, dims.len());
        let mut starts = Sizes::from_elem(0, dims.len());
        for d in (0..dims.len()).rev().filter(|&d| plan.reduced[d]) {
            let size = plan.tree.blocks[d];
            let blocks = dims[d].n.div_ceil(size);
            starts[d] = block % blocks * size;
            limits[d] = (starts[d] + size).min(dims[d].n);
            block /= blocks;
            tile.starts[d] = starts[d];
            tile.counts[d] = dims[d].block.min(limits[d] - starts[d]);
        }
        loop {
            // SAFETY: the caller's contract.
            unsafe {
                if plan.direct.is_none() {
                    self.machine.run(tile);
                }
                self.fold_tile(tile, acc);
            }
            let mut done = true;
            for d in (0..dims.len()).rev().filter(|&d| plan.reduced[d]) {
                let next = tile.starts[d] + tile.counts[d];
                done = next >= limits[d];
                tile.starts[d] = if done { starts[d] } else { next };
                tile.counts[d] = dims[d].block.min(limits[d] - tile.starts[d]);
                if !done {
                    break;
                }
            }
            if done {
                return;
            }
        }
    }

    /// Finds how tiles with these counts are folded.
    fn measure(&self, tile: &Tile) -> Shape {
        let plan = self.plan;
        let reduced = &plan.reduced;
        let split = reduce_tree::split(reduced);
        let steps = plan.steps(tile);
        let mut acc_steps = Sizes::from_elem(0, reduced.len());
        let mut step = 1;
        for d in (0..reduced.len()).rev().filter(|&d| !reduced[d]) {
            acc_steps[d] = step;
            step *= tile.counts[d];
        }
        let mut outer = split.saturating_sub(1);
        let row_step = if split == 0 { 0 } else { steps[split - 1] };
        let mut rows = if split == 0 { 1 } else { tile.counts[split - 1] };
        while outer > 0
            && reduced[outer - 1] == reduced[split - 1]
            && steps[outer - 1] == row_step * rows as isize
        {
            outer -= 1;
            rows *= tile.counts[outer];
        }
        let n = tile.counts[split..].iter().product();
        Shape { counts: tile.counts.clone(), steps, acc_steps, outer, rows, row_step, n }
    }

    /// Folds the reduced register's tile: rows of its innermost axes of one kind.
    ///
    /// # Safety
    /// As [`run`]; `acc` holds a cell's accumulators.
    unsafe fn fold_tile(&mut self, tile: &Tile, acc: *mut u8) {
        let shape = match self.shape.take() {
            Some(shape) if shape.counts == tile.counts => shape,
            _ => self.measure(tile),
        };
        let plan = self.plan;
        let fold = &plan.tail.fold;
        let x = match plan.direct {
            Some(walk) => position(&plan.program.walks[walk], tile).cast_const(),
            None => self.machine.register(plan.tail.reg),
        };
        let inner = reduce_tree::is_inner(&plan.reduced);
        let split = reduce_tree::split(&plan.reduced);
        let mut along = 0;
        for d in 0..plan.reduced.len() {
            along += tile.starts[d] * plan.position_steps[d];
        }
        let stride = if split == 0 { 0 } else { plan.position_steps[split - 1] };
        let mut rows = Rows { x, n: shape.n, rows: shape.rows, step: shape.row_step };
        let mut index = Sizes::from_elem(0, shape.outer);
        let mut output = 0;
        for _ in 0..tile.counts[..shape.outer].iter().product() {
            // SAFETY: the rows lie within the tile, their accumulators within the cell's.
            unsafe {
                let acc = acc.add(output * fold.size);
                if inner {
                    (fold.inner)(acc, &rows, plan.tree.leaf, along);
                } else {
                    (fold.outer)(acc, &rows, along, stride);
                }
            }
            for d in (0..shape.outer).rev() {
                index[d] += 1;
                output += shape.acc_steps[d];
                along += plan.position_steps[d];
                rows.x = rows.x.wrapping_offset(shape.steps[d]);
                if index[d] < tile.counts[d] {
                    break;
                }
                output -= index[d] * shape.acc_steps[d];
                along -= index[d] * plan.position_steps[d];
                rows.x = rows.x.wrapping_offset(-(index[d] as isize) * shape.steps[d]);
                index[d] = 0;
            }
        }
        self.shape = Some(shape);
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
            copy_block(tail.dtype.size(), &mut axes, from, to, false);
        }
    }
}
