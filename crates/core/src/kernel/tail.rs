//! A pass at the end of a heavy kernel: it runs over each part of the kernel's result as soon as that is computed,
//! while it is in the cache. Steps and rounding are those of the same pass alone; only the order in which elements
//! are visited differs.

use crate::Scalar;
use crate::kernel::machine::Machine;
use crate::kernel::pass::{Kept, Pass, Slot, tile_elements};
use crate::kernel::program::{self, Program};
use crate::kernel::scratch::with_scratch;
use crate::kernel::space::{Dims, Tile, even_block, in_order};
use crate::kernel::walk::{GRAIN, split};
use crate::par::Parallel;
use std::sync::OnceLock;

/// A pass made ready for one run of a kernel, whose result it reads as it lies in memory: element i of the result
/// is element i of the pass in row-major order.
pub struct Tail<'a>(Program<'a>);

impl<'a> Tail<'a> {
    /// The pass on these slots; what is made ready is kept in `kept` for later runs on slots of the same layouts. A
    /// pass with a reduction is none.
    ///
    /// # Safety
    /// As for [`super::pass::run_again`], for as long as the tail is used; the slots of what the kernel reads overlap
    /// none that the pass writes.
    pub unsafe fn new(
        pass: &'a Pass,
        kept: &OnceLock<Kept>,
        slots: &[Slot],
        scalars: &[Scalar],
    ) -> Option<Tail<'a>> {
        if pass.reduce.is_some() {
            return None;
        }
        let bases = || program::walked(pass).map(|slot| slots[slot].base);
        let known = kept.get().and_then(|kept| kept.program(pass, scalars, bases()));
        Some(Tail(known.unwrap_or_else(|| {
            let mut walks = program::walks(pass, slots);
            let mut dims = in_order(&pass.shape, &mut walks);
            cut(&mut dims, tile_elements(pass));
            let program = Program::new(pass, scalars, dims, walks);
            kept.get_or_init(|| Kept::new(&program, bases()));
            program
        })))
    }

    /// Runs the pass over `rows` rows of `columns` elements of the result that are `step` apart, from element
    /// `first` on.
    ///
    /// # Safety
    /// The kernel has computed these elements and touches them no more; nobody else runs the pass over them.
    pub unsafe fn run(&self, first: usize, rows: usize, columns: usize, step: usize) {
        if columns == 0 || rows == 0 {
            return;
        }
        let (rows, columns) = if step == columns { (1, rows * columns) } else { (rows, columns) };
        with_scratch(self.0.scratch, |scratch| {
            // SAFETY: the scratch is this call's alone; the elements are too (the caller's contract).
            let mut machine = unsafe { Machine::new(&self.0, scratch) };
            let mut tile = Tile::at(&self.0.dims, 0);
            for row in 0..rows {
                let from = first + row * step;
                // SAFETY: as above.
                unsafe { self.range(&mut machine, &mut tile, from, columns) };
            }
        });
    }

    /// Runs the pass over the whole result.
    ///
    /// # Safety
    /// As [`Tail::run`].
    pub unsafe fn all(&self, par: &dyn Parallel) {
        let size = self.0.dims.iter().map(|d| d.n).product();
        split(par, size, GRAIN, |range| {
            // SAFETY: the caller's; chunks have elements of their own.
            unsafe { self.run(range.start, 1, range.len(), range.len()) }
        });
    }

    /// Tiles that cover `count` elements from `first` on.
    ///
    /// # Safety
    /// As [`Tail::run`].
    unsafe fn range(&self, machine: &mut Machine, tile: &mut Tile, first: usize, count: usize) {
        let dims = &self.0.dims;
        let Some(inner) = dims.len().checked_sub(1) else {
            // SAFETY: the caller's: the only element.
            return unsafe { machine.run(tile) };
        };
        let n = dims[inner].n;
        let (mut at, end) = (first, first + count);
        while at < end {
            let (mut line, x) = (at / n, at % n);
            tile.starts[inner] = x;
            let mut taken = dims[inner].block.min(n - x).min(end - at);
            tile.counts[inner] = taken;
            for d in (0..inner).rev() {
                tile.starts[d] = line % dims[d].n;
                tile.counts[d] = 1;
                line /= dims[d].n;
            }
            if inner > 0 && taken == n {
                let outer = &dims[inner - 1];
                let lines = outer.block.min(outer.n - tile.starts[inner - 1]).min((end - at) / n);
                tile.counts[inner - 1] = lines;
                taken *= lines;
            }
            // SAFETY: the caller's: elements of the range.
            unsafe { machine.run(tile) };
            at += taken;
        }
    }
}

/// Blocks of about `elements`: of the inner axis, and of the next one where that is whole.
fn cut(dims: &mut Dims, elements: usize) {
    let Some(inner) = dims.len().checked_sub(1) else { return };
    dims[inner].block = even_block(dims[inner].n, elements);
    if inner > 0 && dims[inner].block == dims[inner].n {
        dims[inner - 1].block = even_block(dims[inner - 1].n, (elements / dims[inner].n).max(1));
    }
}
