//! Runs a program on tiles: one machine per thread at work, with its own scratch memory.

use crate::kernel::copy::{Axis, copy_block, splat};
use crate::kernel::pass::Source;
use crate::kernel::program::{Instr, Place, Program};
use crate::kernel::space::{Tile, Walk};
use crate::simd::stream;
use smallvec::SmallVec;

/// The most operands a step has: the formulas of `step` take up to three.
const MAX_INS: usize = 3;

pub struct Machine<'p> {
    program: &'p Program<'p>,
    scratch: *mut u8,
    /// Where each register's elements are in the present tile.
    regs: SmallVec<[*mut u8; 12]>,
    /// Where each walk is in the present tile.
    at: SmallVec<[*mut u8; 6]>,
    /// What each load that keeps its register read last.
    last: SmallVec<[*const u8; 6]>,
    counts: SmallVec<[usize; 6]>,
}

impl<'p> Machine<'p> {
    /// # Safety
    /// `scratch` is 64-byte aligned memory of `program.scratch` bytes, this machine's alone.
    pub unsafe fn new(program: &'p Program<'p>, scratch: *mut u8) -> Machine<'p> {
        let mut regs: SmallVec<[*mut u8; 12]> =
            SmallVec::from_elem(std::ptr::null_mut(), program.places.len());
        for (reg, place) in regs.iter_mut().zip(&program.places) {
            if let Place::Scratch(at) = *place {
                *reg = scratch.wrapping_add(at);
            }
        }
        let machine = Machine {
            program,
            scratch,
            regs,
            at: SmallVec::from_elem(std::ptr::null_mut(), program.walks.len()),
            last: SmallVec::from_elem(std::ptr::null(), program.loads.len()),
            counts: SmallVec::new(),
        };
        for (l, load) in program.pass.loads.iter().enumerate() {
            if let (Source::Scalar(_), Place::Scratch(_)) = (load.source, program.places[load.reg]) {
                let size = program.pass.regs[load.reg].size();
                // SAFETY: the register's buffer holds a tile, and no other register ever shares it.
                unsafe { splat(size, program.constants[l].as_ptr(), machine.regs[load.reg], program.tile) };
            }
        }
        machine
    }

    /// The elements of a register after [`Machine::run`], until the next tile.
    pub fn register(&self, reg: usize) -> *const u8 {
        self.regs[reg]
    }

    /// Runs the program on one tile.
    ///
    /// # Safety
    /// The contract of `pass::run`; no other thread runs the same tile.
    pub unsafe fn run(&mut self, tile: &Tile) {
        let program = self.program;
        for (at, walk) in self.at.iter_mut().zip(&program.walks) {
            *at = position(walk, tile);
        }
        for &(reg, walk) in &program.in_memory {
            self.regs[reg] = self.at[walk];
        }
        // Few numbers: a comparison of memory would be a call.
        if !self.counts.iter().eq(&tile.counts) {
            self.counts.clone_from(&tile.counts);
            self.last.fill(std::ptr::null());
        }
        let n = tile.len();
        for instr in &program.code {
            // SAFETY: the caller's contract; registers hold a tile (`Program::new`).
            unsafe {
                match *instr {
                    Instr::Load(l) => self.load(l, n),
                    Instr::Step(i) => {
                        let step = &program.pass.steps[i];
                        let mut ins = [std::ptr::null(); MAX_INS];
                        for (at, &reg) in ins.iter_mut().zip(&step.ins) {
                            *at = self.regs[reg].cast_const();
                        }
                        (step.f)(n, &ins[..step.ins.len()], self.regs[step.out]);
                    }
                    Instr::Store(s) => self.store(s, n),
                }
            }
        }
    }

    /// # Safety
    /// As [`Machine::run`].
    unsafe fn load(&mut self, l: usize, n: usize) {
        let access = &self.program.loads[l];
        let Some(w) = access.walk else { return }; // a scalar: filled at the start
        let (walk, from) = (&self.program.walks[w], self.at[w]);
        if access.keeps && self.last[l] == from {
            return;
        }
        self.last[l] = from;
        let reg = self.regs[self.program.pass.loads[l].reg];
        // SAFETY: the tile's elements are readable; register and temporary hold a tile.
        unsafe {
            match (access.cast, access.contiguous) {
                (None, _) => self.gather(walk, from, reg),
                (Some(cast), true) => cast(n, &[from], reg),
                (Some(cast), false) => {
                    let temporary = self.scratch.add(self.program.temporary);
                    self.gather(walk, from, temporary);
                    cast(n, &[temporary], reg);
                }
            }
        }
    }

    /// # Safety
    /// As [`Machine::run`].
    unsafe fn store(&mut self, s: usize, n: usize) {
        let access = &self.program.stores[s];
        let walk = &self.program.walks[s];
        let (to, reg) = (self.at[s], self.regs[self.program.pass.stores[s].reg]);
        // SAFETY: the tile's elements are writable, and past the caches overlap none that are read; the temporary holds
        // a tile.
        unsafe {
            match (access.cast, access.contiguous) {
                (None, true) if access.past => stream::copy(reg, to, n * walk.size),
                (None, true) => std::ptr::copy(reg, to, n * walk.size),
                (None, false) => self.scatter(walk, reg, to),
                (Some(cast), true) => cast(n, &[reg], to),
                (Some(cast), false) => {
                    let temporary = self.scratch.add(self.program.temporary);
                    cast(n, &[reg], temporary);
                    self.scatter(walk, temporary, to);
                }
            }
        }
    }

    /// # Safety
    /// The tile of `walk` at `from` is readable, `to` holds a tile.
    unsafe fn gather(&self, walk: &Walk, from: *const u8, to: *mut u8) {
        let mut axes = self.axes(walk, |n, walked, packed| Axis { n, src: walked, dst: packed });
        // SAFETY: the caller's contract.
        unsafe { copy_block(walk.size, &mut axes, from, to, false) }
    }

    /// # Safety
    /// The tile of `walk` at `to` is writable, `from` holds a tile.
    unsafe fn scatter(&self, walk: &Walk, from: *const u8, to: *mut u8) {
        let mut axes = self.axes(walk, |n, walked, packed| Axis { n, src: packed, dst: walked });
        // SAFETY: the caller's contract.
        unsafe { copy_block(walk.size, &mut axes, from, to, false) }
    }

    fn axes(&self, walk: &Walk, axis: impl Fn(usize, isize, isize) -> Axis) -> SmallVec<[Axis; 6]> {
        let mut packed = walk.size as isize;
        let mut axes: SmallVec<[Axis; 6]> = SmallVec::new();
        for (&n, &step) in self.counts.iter().zip(&walk.steps).rev() {
            axes.push(axis(n, step, packed));
            packed *= n as isize;
        }
        axes.reverse();
        axes
    }
}

impl Drop for Machine<'_> {
    /// Whoever goes on after this thread's tiles sees what went past the caches.
    fn drop(&mut self) {
        if self.program.stores.iter().any(|store| store.past) {
            stream::fence();
        }
    }
}

/// Where a walk is at the start of a tile.
pub fn position(walk: &Walk, tile: &Tile) -> *mut u8 {
    let bytes: isize = tile.starts.iter().zip(&walk.steps).map(|(&i, &s)| i as isize * s).sum();
    walk.start.wrapping_offset(bytes)
}
