//! A pass made ready for one set of buffers: where each register lives, what is read and written without a
//! copy, and in which order loads, steps and stores run. Built once per run, read by every thread.

use crate::kernel::pass::{Load, Pass, Reg, Slot, Source, Store};
use crate::kernel::space::{Dims, Walk, is_contiguous};
use crate::kernel::step;
use crate::op::StepFn;
use crate::simd::stream;
use crate::{DType, Scalar};
use smallvec::SmallVec;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// One instruction of a tile's program; the number is an index into the pass's list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Instr {
    Load(usize),
    Step(usize),
    Store(usize),
}

/// How one load or store reaches memory.
#[derive(Clone, Debug)]
pub struct Access {
    /// Index into [`Program::walks`]; none for a scalar.
    pub walk: Option<usize>,
    pub contiguous: bool,
    /// The conversion between memory and register, where their dtypes differ.
    pub cast: Option<StepFn>,
    /// Load: the register's place is its own for the whole run, so an unmoved source needs no second read.
    pub keeps: bool,
    /// Store: the elements go past the caches, from a register in scratch memory.
    pub past: bool,
}

/// Where a register's elements are during a tile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Place {
    Unused,
    /// At this offset of the scratch memory.
    Scratch(usize),
    /// In the memory that this walk is at.
    Memory(usize),
}

/// A pass made ready for its layouts: all of a [`Program`] but addresses and scalars.
pub struct Frame {
    pub dims: Dims,
    pub loads: SmallVec<[Access; 6]>,
    pub stores: SmallVec<[Access; 2]>,
    pub places: SmallVec<[Place; 12]>,
    /// The registers that lie in memory, each with its walk.
    pub in_memory: SmallVec<[(Reg, usize); 6]>,
    pub code: SmallVec<[Instr; 16]>,
    /// The offset of a buffer for one tile of the widest elements, between gathering and converting.
    pub temporary: usize,
    pub scratch: usize,
    /// The most elements a tile has.
    pub tile: usize,
    /// Pairs (store, load) whose memory overlaps.
    aliases: SmallVec<[(usize, usize); 4]>,
}

pub struct Program<'a> {
    pub pass: &'a Pass,
    pub walks: Walks,
    /// The value of each scalar load, as an element of its register's dtype.
    pub constants: SmallVec<[[u8; 16]; 6]>,
    frame: Arc<Frame>,
}

impl Deref for Program<'_> {
    type Target = Frame;
    fn deref(&self) -> &Frame {
        &self.frame
    }
}

/// One for each store, then one for each load from an array.
pub type Walks = SmallVec<[Walk; 6]>;

/// A program kept for later runs of its pass on slots of the same layouts.
pub struct Kept {
    frame: Arc<Frame>,
    /// From address zero.
    walks: Walks,
}

// SAFETY: the addresses inside are only dereferenced under the contract of `pass::run`, whose chunks touch
// disjoint elements.
unsafe impl Sync for Program<'_> {}
// SAFETY: its walks hold offsets, no addresses.
unsafe impl Send for Kept {}
// SAFETY: as for `Send`; nothing inside changes.
unsafe impl Sync for Kept {}

/// The walks of a pass over its whole shape: its stores', then its array loads'.
pub fn walks(pass: &Pass, slots: &[Slot]) -> SmallVec<[Walk; 6]> {
    let stores = pass.stores.iter().map(|s| walk(&slots[s.target], s.dtype));
    let loads = pass.loads.iter().filter_map(|l| match l.source {
        Source::Array(slot) => Some(walk(&slots[slot], l.dtype)),
        Source::Scalar(_) => None,
    });
    stores.chain(loads).collect()
}

/// The walk over one slot.
pub fn walk(slot: &Slot, dtype: DType) -> Walk {
    let size = dtype.size();
    Walk {
        start: slot.base.wrapping_add(slot.layout.offset * size),
        steps: slot.layout.strides.iter().map(|s| s * size as isize).collect(),
        size,
    }
}

impl<'a> Program<'a> {
    /// `dims` are cut into blocks, and `walks` (from [`walks`]) have steps along them.
    pub fn new(pass: &'a Pass, scalars: &[Scalar], dims: Dims, walks: Walks) -> Program<'a> {
        let aliases = aliases(pass, &dims, &walks);
        let frame = Arc::new(Frame::new(pass, dims, &walks, aliases));
        Program { pass, walks, constants: constants(pass, scalars), frame }
    }
}

impl Kept {
    /// `dims` and `walks` as for [`Program::new`], where the slots begin at `bases`.
    pub fn new(program: &Program, bases: impl Iterator<Item = *mut u8>) -> Kept {
        let mut walks = program.walks.clone();
        for (walk, base) in walks.iter_mut().zip(bases) {
            walk.start = std::ptr::without_provenance_mut(walk.start.addr().wrapping_sub(base.addr()));
        }
        Kept { frame: program.frame.clone(), walks }
    }

    /// The program for slots that begin at `bases`; none where they overlap otherwise than those it was made for.
    pub fn program<'a>(
        &self,
        pass: &'a Pass,
        scalars: &[Scalar],
        bases: impl Iterator<Item = *mut u8>,
    ) -> Option<Program<'a>> {
        let mut walks = self.walks.clone();
        for (walk, base) in walks.iter_mut().zip(bases) {
            walk.start = base.wrapping_add(walk.start.addr());
        }
        let same = aliases(pass, &self.frame.dims, &walks) == self.frame.aliases;
        same.then(|| Program { pass, walks, constants: constants(pass, scalars), frame: self.frame.clone() })
    }
}

/// The slots that the walks of a pass go over, in their order.
pub fn walked(pass: &Pass) -> impl Iterator<Item = usize> + '_ {
    let loads = pass.loads.iter().filter_map(|load| match load.source {
        Source::Array(slot) => Some(slot),
        Source::Scalar(_) => None,
    });
    pass.stores.iter().map(|store| store.target).chain(loads)
}

fn constants(pass: &Pass, scalars: &[Scalar]) -> SmallVec<[[u8; 16]; 6]> {
    let mut constants = SmallVec::new();
    for load in &pass.loads {
        let mut bytes = [0; 16];
        if let Source::Scalar(i) = load.source {
            scalars[i].write(pass.regs[load.reg], &mut bytes);
        }
        constants.push(bytes);
    }
    constants
}

/// Pairs (store, load) whose memory overlaps.
fn aliases(pass: &Pass, dims: &Dims, walks: &Walks) -> SmallVec<[(usize, usize); 4]> {
    let mut found = SmallVec::new();
    let extents: SmallVec<[(usize, usize); 8]> = walks.iter().map(|walk| extent(dims, walk)).collect();
    let arrays = pass.loads.iter().enumerate().filter(|(_, l)| matches!(l.source, Source::Array(_)));
    for (walk, (l, _)) in (pass.stores.len()..).zip(arrays) {
        let (low, high) = extents[walk];
        for s in 0..pass.stores.len() {
            if extents[s].0 < high && low < extents[s].1 {
                found.push((s, l));
            }
        }
    }
    found.sort_unstable();
    found
}

/// Whether the walks reach over so much memory that results are better written past the caches.
pub fn is_large(dims: &Dims, walks: &[Walk]) -> bool {
    let reach = |walk| extent(dims, walk);
    walks.iter().map(reach).map(|(low, high)| high - low).sum::<usize>() >= stream::LARGE
}

/// The first and last byte a walk touches.
fn extent(dims: &Dims, walk: &Walk) -> (usize, usize) {
    let (mut low, mut high) = (walk.start as isize, walk.start as isize + walk.size as isize);
    for (dim, step) in dims.iter().zip(&walk.steps) {
        let reach = (dim.n as isize - 1) * step;
        if reach < 0 { low += reach } else { high += reach }
    }
    (low as usize, high as usize)
}

/// A frame while it is built.
struct Draft<'a> {
    pass: &'a Pass,
    walks: &'a Walks,
    frame: Frame,
}

impl Deref for Draft<'_> {
    type Target = Frame;
    fn deref(&self) -> &Frame {
        &self.frame
    }
}

impl DerefMut for Draft<'_> {
    fn deref_mut(&mut self) -> &mut Frame {
        &mut self.frame
    }
}

impl Frame {
    fn new(pass: &Pass, dims: Dims, walks: &Walks, aliases: SmallVec<[(usize, usize); 4]>) -> Frame {
        let frame = Frame {
            loads: SmallVec::new(),
            stores: SmallVec::new(),
            places: SmallVec::from_elem(Place::Unused, pass.regs.len()),
            in_memory: SmallVec::new(),
            code: SmallVec::new(),
            temporary: 0,
            scratch: 0,
            tile: dims.iter().map(|d| d.block).product(),
            dims,
            aliases,
        };
        let mut draft = Draft { pass, walks, frame };
        draft.find_accesses();
        Planner::new(&draft).plan(&mut draft);
        draft.frame
    }
}

impl Draft<'_> {
    fn find_accesses(&mut self) {
        let (pass, walks, dims) = (self.pass, self.walks, self.frame.dims.clone());
        let access = |walk: usize, from: DType, to: DType| Access {
            walk: Some(walk),
            contiguous: is_contiguous(&dims, &walks[walk]),
            cast: (from != to).then(|| step::cast(from, to)),
            keeps: dims.iter().zip(&walks[walk].steps).any(|(d, &s)| s == 0 && d.tiles() > 1),
            past: false,
        };
        let large = is_large(&dims, walks);
        self.stores = (pass.stores.iter().enumerate())
            .map(|(i, store)| {
                let access = access(i, pass.regs[store.reg], store.dtype);
                // What is also read has its lines in the caches already.
                let apart = self.aliases.iter().all(|&(s, _)| s != i);
                Access { past: large && apart && access.contiguous && access.cast.is_none(), ..access }
            })
            .collect();
        let mut next = pass.stores.len();
        for load in &pass.loads {
            self.loads.push(match load.source {
                Source::Array(_) => {
                    next += 1;
                    access(next - 1, load.dtype, pass.regs[load.reg])
                }
                Source::Scalar(_) => {
                    Access { walk: None, contiguous: false, cast: None, keeps: true, past: false }
                }
            });
        }
    }
}

/// After the last step.
const END: usize = usize::MAX;

/// Finds the order of instructions and the registers' places.
struct Planner {
    /// For each register: the last step that reads it (END for late stores and reductions), if any does.
    last_read: SmallVec<[Option<usize>; 12]>,
    /// Pairs (store, load) whose memory overlaps.
    aliases: SmallVec<[(usize, usize); 4]>,
    /// For each store: the step after which it runs, END where it must wait for all of them.
    store_after: SmallVec<[usize; 2]>,
    /// Free scratch buffers: element size and offset.
    free: SmallVec<[(usize, usize); 8]>,
}

impl Planner {
    fn new(program: &Draft) -> Planner {
        let pass = program.pass;
        let mut planner = Planner {
            last_read: SmallVec::from_elem(None, pass.regs.len()),
            aliases: program.aliases.clone(),
            store_after: SmallVec::new(),
            free: SmallVec::new(),
        };
        for (i, step) in pass.steps.iter().enumerate() {
            for &r in &step.ins {
                planner.last_read[r] = Some(i);
            }
        }
        if let Some(tail) = &pass.reduce {
            planner.last_read[tail.reg] = Some(END);
        }
        let steps_only = planner.last_read.clone();
        let direct = |l: &Load| pass.stores.iter().any(|s| s.reg == l.reg);
        for (s, store) in pass.stores.iter().enumerate() {
            let defined = pass.steps.iter().position(|step| step.out == store.reg);
            // A store may run early if nothing read afterwards lies in its memory.
            let early = defined.filter(|&at| {
                planner.aliases.iter().filter(|(t, _)| *t == s).all(|&(_, l)| {
                    let load = &pass.loads[l];
                    !direct(load) && steps_only[load.reg].is_none_or(|last| last <= at)
                })
            });
            planner.store_after.push(early.unwrap_or(END));
            if early.is_none() {
                planner.last_read[store.reg] = Some(END);
            }
        }
        planner
    }

    fn plan(mut self, program: &mut Draft) {
        let pass = program.pass;
        for (l, load) in pass.loads.iter().enumerate() {
            // Read before any store could change it: what a store or the reduction takes at the end.
            if self.aliases.iter().any(|&(_, a)| a == l) && self.last_read[load.reg] == Some(END) {
                self.load(program, l, true);
            }
        }
        for (i, step) in pass.steps.iter().enumerate() {
            for &r in &step.ins {
                self.load_register(program, r);
            }
            for (k, &r) in step.ins.iter().enumerate() {
                if self.last_read[r] == Some(i) && !step.ins[..k].contains(&r) {
                    self.release(program, r);
                }
            }
            program.places[step.out] = match self.direct_target(program, i) {
                Some(walk) => Place::Memory(walk),
                None => self.claim(program, pass.regs[step.out].size()),
            };
            program.code.push(Instr::Step(i));
            self.stores_after(program, i);
            if self.last_read[step.out].is_none() {
                self.release(program, step.out);
            }
        }
        for store in &pass.stores {
            self.load_register(program, store.reg);
        }
        if let Some(tail) = &pass.reduce {
            self.load_register(program, tail.reg);
        }
        self.stores_after(program, END);
        program.temporary = program.scratch;
        let through = |access: &Access| access.cast.is_some() && !access.contiguous;
        if program.loads.iter().any(through) || program.stores.iter().any(through) {
            program.scratch += program.tile * 16;
        }
        let placed = program.frame.places.iter().enumerate();
        program.frame.in_memory = placed
            .filter_map(|(reg, place)| match *place {
                Place::Memory(walk) => Some((reg, walk)),
                _ => None,
            })
            .collect();
    }

    /// Emits the stores that run after step `at`, but those that the step wrote in place.
    fn stores_after(&self, program: &mut Draft, at: usize) {
        for (s, store) in program.pass.stores.iter().enumerate() {
            if self.store_after[s] == at && program.places[store.reg] != Place::Memory(s) {
                program.code.push(Instr::Store(s));
            }
        }
    }

    /// The walk of a store whose memory step `i` may write itself.
    fn direct_target(&self, program: &Draft, i: usize) -> Option<usize> {
        let pass = program.pass;
        let fits = |(s, store): (usize, &Store)| {
            let access = &program.stores[s];
            let same_place = self.aliases.iter().filter(|(t, _)| *t == s).all(|&(_, l)| {
                let here = pass.steps[i].ins.contains(&pass.loads[l].reg);
                !here || program.walks[program.loads[l].walk.unwrap_or(s)].size == store.dtype.size()
            });
            let ok = store.reg == pass.steps[i].out
                && self.store_after[s] == i
                && access.contiguous
                && access.cast.is_none()
                && !access.past
                && same_place;
            ok.then_some(s)
        };
        pass.stores.iter().enumerate().find_map(fits)
    }

    /// Makes sure that a register which a load defines is loaded.
    fn load_register(&mut self, program: &mut Draft, reg: Reg) {
        if program.places[reg] == Place::Unused
            && let Some(l) = program.pass.loads.iter().position(|l| l.reg == reg)
        {
            self.load(program, l, false);
        }
    }

    fn load(&mut self, program: &mut Draft, l: usize, copy: bool) {
        let reg = program.pass.loads[l].reg;
        if program.places[reg] != Place::Unused {
            return;
        }
        let access = &program.loads[l];
        program.places[reg] = match access.walk {
            Some(walk) if access.contiguous && access.cast.is_none() && !copy => Place::Memory(walk),
            // What is kept from tile to tile shares its buffer with no other register.
            _ if access.keeps => Self::fresh(program, program.pass.regs[reg].size()),
            _ => self.claim(program, program.pass.regs[reg].size()),
        };
        if let Place::Scratch(_) = program.places[reg] {
            program.code.push(Instr::Load(l));
        }
    }

    fn claim(&mut self, program: &mut Draft, size: usize) -> Place {
        if let Some(i) = self.free.iter().rposition(|&(s, _)| s == size) {
            return Place::Scratch(self.free.swap_remove(i).1);
        }
        Self::fresh(program, size)
    }

    fn fresh(program: &mut Draft, size: usize) -> Place {
        let at = program.scratch;
        // The gap keeps buffers from lying whole pages apart, where a load would wait for another's store.
        program.scratch += (program.tile * size).next_multiple_of(64) + 192;
        Place::Scratch(at)
    }

    fn release(&mut self, program: &Draft, reg: Reg) {
        let kept =
            program.pass.loads.iter().position(|l| l.reg == reg).is_some_and(|l| program.loads[l].keeps);
        if let (Place::Scratch(at), false) = (program.places[reg], kept) {
            self.free.push((program.pass.regs[reg].size(), at));
        }
    }
}
