//! Running sums and products along an axis.

use crate::attrs::Attrs;
use crate::kernel::lane::Lane;
use crate::kernel::moves::{Shared, dense};
use crate::kernel::num::Num;
use crate::kernel::pass::{self, Load, Pass, Slot, Source, Store};
use crate::kernel::walk::split;
use crate::op::{Grad, InferArgs, Inferred, KernelArgs, Meta, Op, Run, Saves};
use crate::par::Parallel;
use crate::shape::{Shape, check_axis, numel};
use crate::view::{View, ViewMut};
use crate::{DType, Layout, Result, attrs, grads, with_type};
use smallvec::smallvec;
use std::ops::Range;

pub mod linear;

attrs! {
    /// `axis`: the axis to run along (None: the flattened array); `dtype`: of the result; `reverse`: from the
    /// end to the start, as gradients need.
    pub struct Scan { axis: Option<i64> = None, dtype: Option<DType> = None, reverse: bool = false }
}

/// Integers run in int64 or uint64, as NumPy's.
fn infer(a: &InferArgs) -> Result<Inferred> {
    let attrs = a.attrs.get::<Scan>();
    let x = &a.ins[0];
    let shape: Shape = match attrs.axis {
        Some(axis) => {
            check_axis(a.op, axis, x.shape.len())?;
            x.shape.clone()
        }
        None => smallvec![numel(&x.shape)],
    };
    let out = attrs.dtype.unwrap_or(match x.dtype {
        d if d.is_inexact() => d,
        d if d.is_unsigned() => DType::U64,
        _ => DType::I64,
    });
    Ok(Inferred { ins: a.ins.iter().map(|_| out).collect(), outs: smallvec![Meta::new(shape, out)] })
}

/// How many lines an array has, their length, and the distance between their elements; line (i, j) starts at
/// i * length * apart + j.
struct Lines {
    outer: usize,
    length: usize,
    apart: usize,
}

impl Lines {
    fn of(shape: &[usize], axis: Option<i64>) -> Lines {
        match axis.and_then(|axis| check_axis("", axis, shape.len()).ok()) {
            Some(axis) => Lines {
                outer: shape[..axis].iter().product(),
                length: shape[axis],
                apart: shape[axis + 1..].iter().product(),
            },
            None => Lines { outer: 1, length: numel(shape), apart: 1 },
        }
    }

    /// Calls `body(start, width)` for strips of neighbouring lines, in parallel; `start` is the first
    /// element of the first of `width` lines.
    fn each_strip(&self, par: &dyn Parallel, body: &(dyn Fn(usize, usize) + Sync)) {
        const STRIP: usize = 64;
        let strips = self.apart.div_ceil(STRIP);
        let total = self.outer * strips;
        let together = (32 * 1024 / (self.length * self.apart.clamp(1, STRIP)).max(1)).max(1);
        par.run(total.div_ceil(together), &|chunk| {
            for index in chunk * together..((chunk + 1) * together).min(total) {
                let (i, j) = (index / strips, index % strips * STRIP);
                body(i * self.length * self.apart + j, STRIP.min(self.apart - j));
            }
        });
    }
}

/// Copies `from` in row-major order into contiguous memory of the same dtype.
fn copy(from: &View, to: &ViewMut, par: &dyn Parallel) {
    let shape = from.layout.shape.clone();
    let target = Layout { offset: to.layout.offset, ..Layout::contiguous(&shape) };
    let copy = Pass {
        shape,
        regs: vec![from.dtype],
        loads: vec![Load { source: Source::Array(0), dtype: from.dtype, reg: 0 }],
        steps: vec![],
        stores: vec![Store { reg: 0, target: 1, dtype: from.dtype }],
        reduce: None,
    };
    let slots = [
        Slot { base: from.base().cast_mut(), layout: from.layout },
        Slot { base: to.base(), layout: &target },
    ];
    // SAFETY: both views are valid (contract of View), and fresh outputs overlap no input.
    unsafe { pass::run(&copy, &slots, &[], par) }
}

/// A number's address for several threads.
struct Start<T>(*mut T);
// SAFETY: only an address; strips are disjoint.
unsafe impl<T> Sync for Start<T> {}
impl<T> Start<T> {
    fn at(&self, i: usize) -> *mut T {
        self.0.wrapping_add(i)
    }
}

/// Elements of a line that are summed from their first one on; what comes before is added to the results. So a long
/// line is shared by threads, and its sums grow where its elements are positive. Not a power of two: elements of blocks
/// that are run through side by side would fall on one set of the first-level cache.
const BLOCK: usize = (1 << 11) + 16;
/// Blocks that are run through side by side: each waits for its own last sum only.
const ABREAST: usize = 8;

/// Half precision keeps its running value in float32. `blocks`: whether long lines may be cut.
fn run_lines<T: Lane<Wide: Num + Send + Sync>>(
    args: &KernelArgs,
    blocks: bool,
    combine: impl Fn(T::Wide, T::Wide) -> T::Wide + Sync,
) {
    let (shape, attrs) = (&args.ins[0].layout.shape, args.attrs.get::<Scan>());
    if numel(shape) == 0 {
        return;
    }
    let x = dense::<T>(&args.ins[0], args.par);
    let lines = Lines::of(shape, attrs.axis);
    let start = Start(args.out(0).ptr::<T>());
    if lines.apart == 1 {
        let block = if blocks { BLOCK } else { lines.length };
        let rows = Rows { x: &x, out: start, length: lines.length, block, reverse: attrs.reverse };
        return rows.run(lines.outer, combine, args.par);
    }
    lines.each_strip(args.par, &|first, width| {
        let mut running = [T::Wide::default(); 64];
        for step in 0..lines.length {
            let row = if attrs.reverse { lines.length - 1 - step } else { step };
            let first = first + row * lines.apart;
            let (from, at) = (&x[first..first + width], start.at(first));
            for (k, (running, x)) in running.iter_mut().zip(from).enumerate() {
                let value = x.widen();
                *running = if step == 0 { value } else { combine(*running, value) };
                // SAFETY: row `row` of the strip's line k lies within the output, and strips are disjoint.
                unsafe { *at.add(k) = T::narrow(*running) };
            }
        }
    });
}

/// Lines whose elements follow each other, in blocks.
struct Rows<'a, T> {
    x: &'a [T],
    out: Start<T>,
    length: usize,
    block: usize,
    reverse: bool,
}

impl<T: Lane<Wide: Num + Send + Sync>> Rows<'_, T> {
    fn run(&self, lines: usize, combine: impl Fn(T::Wide, T::Wide) -> T::Wide + Sync, par: &dyn Parallel) {
        let each = self.length.div_ceil(self.block);
        let total = lines * each;
        let grain = (32 * 1024 / self.block.min(self.length)).max(1).next_multiple_of(ABREAST);
        if each == 1 {
            return split(par, total, grain, |range| self.groups::<false, true>(range, &mut [], &combine));
        }
        let mut sums = vec![T::Wide::default(); total];
        let shared = Shared(sums.as_mut_ptr());
        // SAFETY: chunks have sums of their own.
        let own = |range: &Range<usize>| unsafe {
            std::slice::from_raw_parts_mut(shared.at(range.start as isize), range.len())
        };
        split(par, total, grain, |range| {
            self.groups::<true, false>(range.clone(), own(&range), &combine);
        });
        for line in sums.chunks_exact_mut(each) {
            // Adding a negative zero changes nothing, not even a zero's sign.
            let mut before = T::Wide::default().neg();
            for sum in line {
                before = combine(before, std::mem::replace(sum, before));
            }
        }
        split(par, total, grain, |range| {
            self.groups::<true, true>(range.clone(), own(&range), &combine);
        });
    }

    /// The first element of block `i`, in the order of the scan, and how many it has.
    fn place(&self, i: usize) -> (usize, usize) {
        let each = self.length.div_ceil(self.block);
        let (line, first) = (i / each, i % each * self.block);
        let count = self.block.min(self.length - first);
        let at = if self.reverse { self.length - 1 - first } else { first };
        (line * self.length + at, count)
    }

    /// Some blocks: with `STORE`, their results, after what `sums` has for each (with `SUMS`); without, their sums.
    fn groups<const SUMS: bool, const STORE: bool>(
        &self,
        blocks: Range<usize>,
        sums: &mut [T::Wide],
        combine: &impl Fn(T::Wide, T::Wide) -> T::Wide,
    ) {
        let mut i = blocks.start;
        while i < blocks.end {
            let places: [(usize, usize); ABREAST] =
                std::array::from_fn(|k| self.place((i + k).min(blocks.end - 1)));
            let all = i + ABREAST <= blocks.end && places.iter().all(|p| p.1 == places[0].1);
            let width = if all { ABREAST } else { 1 };
            let at = i - blocks.start;
            let sums = if SUMS { &mut sums[at..at + width] } else { &mut [] };
            if all {
                self.scan::<ABREAST, SUMS, STORE>(places.map(|p| p.0), places[0].1, sums, combine);
            } else {
                self.scan::<1, SUMS, STORE>([places[0].0], places[0].1, sums, combine);
            }
            i += width;
        }
    }

    /// N blocks of `count` elements.
    fn scan<const N: usize, const SUMS: bool, const STORE: bool>(
        &self,
        starts: [usize; N],
        count: usize,
        sums: &mut [T::Wide],
        combine: &impl Fn(T::Wide, T::Wide) -> T::Wide,
    ) {
        let step = if self.reverse { -1isize } else { 1 };
        let (x, out) = (self.x.as_ptr(), self.out.at(0));
        let mut running = [T::Wide::default(); N];
        let before: [T::Wide; N] =
            std::array::from_fn(|k| if SUMS && STORE { sums[k] } else { T::Wide::default() });
        for i in 0..count {
            for k in 0..N {
                let at = starts[k] as isize + i as isize * step;
                // SAFETY: the blocks' elements lie within the arrays, and blocks are disjoint.
                unsafe {
                    let value = (*x.offset(at)).widen();
                    running[k] = if i == 0 { value } else { combine(running[k], value) };
                    if STORE {
                        let all = if SUMS { combine(before[k], running[k]) } else { running[k] };
                        *out.offset(at) = T::narrow(all);
                    }
                }
            }
        }
        if SUMS && !STORE {
            sums.copy_from_slice(&running);
        }
    }
}

fn cumsum(args: &KernelArgs) -> Result<()> {
    let dtype = args.ins[0].dtype;
    with_type!(all dtype, T => run_lines::<T>(args, dtype != DType::Bool, |a, b| a.add(b)));
    Ok(())
}

/// Products of blocks may overflow where those of the line do not, so that its lines are not cut.
fn cumprod(args: &KernelArgs) -> Result<()> {
    with_type!(all args.ins[0].dtype, T => run_lines::<T>(args, false, |a, b| a.mul(b)));
    Ok(())
}

pub static CUMSUM: Op = Op {
    attrs: Scan::read,
    grad: Grad::Vjp(|v| {
        let attrs = v.attrs.get::<Scan>();
        let back = Scan { axis: attrs.axis, dtype: None, reverse: !attrs.reverse };
        grads!(v; v.g().with(&CUMSUM, Attrs::new(back)).reshape(v.shape(0)))
    }),
    ..Op::new("cumsum", 1, infer, Run::Kernel(cumsum))
};

pub static CUMPROD: Op = Op {
    attrs: Scan::read,
    grad: Grad::Vjp(|v| {
        let Scan { axis, reverse, .. } = *v.attrs.get::<Scan>();
        grads!(v; {
            let x = v.x(0).reshape(&v.outs[0].0.shape);
            linear::cumprod_back(x, v.g(), axis.unwrap_or(0), reverse).reshape(v.shape(0))
        })
    }),
    saves: Saves { inputs: 0b1, outputs: 0 },
    ..Op::new("cumprod", 1, infer, Run::Kernel(cumprod))
};

pub const OPS: &[&Op] = &[&CUMSUM, &CUMPROD, &linear::RECURRENCE];
