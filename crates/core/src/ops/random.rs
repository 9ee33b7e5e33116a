//! Random draws: uniform, normal, exponential, bernoulli, randint, permutation. Element i of a draw is a
//! function of (seed, draw number, i); bits become numbers as `kernel::philox` says. Parameters are operands,
//! scalars or arrays, read in float64.

use crate::kernel::lane::Lane;
use crate::kernel::moves::Shared;
use crate::kernel::philox::{Stream, TILE, fill_normals, fill_units, fill_words, may_reject};
use crate::kernel::shuffle;
use crate::kernel::walk::{GRAIN, Walk, split};
use crate::op::{Grad, InferArgs, Inferred, KernelArgs, Meta, Op, Run, Saves};
use crate::shape::{Shape, checked_numel, display};
use crate::{
    DType, Element, Error, Layout, Result, Scalar, attrs, bf16, f16, grads, isa_versions, with_type,
};
use smallvec::{SmallVec, smallvec};
use std::sync::{Mutex, PoisonError};

attrs! {
    /// `size`: the result's shape (None: that of the parameters); `dtype`: None is the default.
    pub struct Sample { size: Option<Shape> = None, dtype: Option<DType> = None }
}

/// The result's shape: `size`, which the parameters must broadcast to.
fn sample_shape(a: &InferArgs) -> Result<Shape> {
    let own = crate::infer::broadcast_shape(a)?;
    match &a.attrs.get::<Sample>().size {
        None => Ok(own),
        Some(size) if Layout::contiguous(&own).broadcast_to(size).is_some() => Ok(size.clone()),
        Some(size) => {
            let text =
                format!("parameters of shape {} do not broadcast to size {}", display(&own), display(size));
            Err(Error::value(a.op, text))
        }
    }
}

fn sample(a: &InferArgs, dtype: DType, params: DType) -> Result<Inferred> {
    if let Some(bad) = a.ins.iter().find(|m| m.dtype.is_complex()) {
        return Err(Error::DType { op: a.op, dtype: bad.dtype, expected: "parameters are real numbers" });
    }
    let shape = sample_shape(a)?;
    checked_numel(a.op, &shape, dtype.size())?;
    Ok(Inferred { ins: SmallVec::from_elem(params, a.ins.len()), outs: smallvec![Meta::new(shape, dtype)] })
}

/// Refuses a scalar parameter for which `fine` does not hold.
fn check_scalar(a: &InferArgs, i: usize, name: &str, want: &str, fine: impl Fn(f64) -> bool) -> Result<()> {
    match a.ins[i].scalar.map(Scalar::as_f64) {
        Some(v) if !fine(v) => Err(Error::value(a.op, format!("{name} must be {want}, got {v}"))),
        _ => Ok(()),
    }
}

fn float_sample(a: &InferArgs) -> Result<Inferred> {
    let dtype = a.attrs.get::<Sample>().dtype.unwrap_or(a.mode.default_float());
    if !dtype.is_float() {
        return Err(Error::DType { op: a.op, dtype, expected: "draws have a floating dtype" });
    }
    sample(a, dtype, DType::F64)
}

/// A floating type of draws.
trait Drawn: Element {
    /// Whether draws use 64 bits an element.
    const LONG: bool = false;
    /// The value as float64.
    fn exact(self) -> f64;
    /// The value near a float64; the half types round by way of float32, which has instructions.
    fn near(x: f64) -> Self;
    /// The next value below.
    fn down(self) -> Self;
}

macro_rules! drawn {
    ($($t:ty, $long:literal: |$x:ident| $exact:expr, $near:expr, $down:expr);*) => { $(
        impl Drawn for $t {
            const LONG: bool = $long;
            #[inline(always)]
            fn exact(self) -> f64 {
                let $x = self;
                $exact
            }
            #[inline(always)]
            fn near($x: f64) -> $t {
                $near
            }
            #[inline(always)]
            fn down(self) -> $t {
                let $x = self;
                $down
            }
        }
    )* };
}
drawn!(f64, true: |x| x, x, x.next_down();
    f32, false: |x| x.into(), x as f32, x.next_down();
    f16, false: |x| x.widen().into(), <f16 as Lane>::narrow(x as f32), f16::from_bits(bits_down(x.to_bits()));
    bf16, false: |x| x.widen().into(), <bf16 as Lane>::narrow(x as f32), bf16::from_bits(bits_down(x.to_bits())));

/// The next value below, by the bits of a half type.
fn bits_down(bits: u16) -> u16 {
    match bits {
        0 => 0x8001,
        _ if bits & 0x8000 == 0 => bits - 1,
        _ => bits + 1,
    }
}

/// Writes `finish(i, x, p, q)` to element i: x is what `fill` wrote for it to a buffer, p and q the element's
/// parameters (the same one twice where there is one).
fn draw<T: Element, P: Element, B: Copy + Default>(
    a: &KernelArgs,
    fill: unsafe fn(&Stream, usize, &mut [B]),
    finish: impl Fn(usize, B, P, P) -> T + Sync,
) {
    let (p, q, out) = (&a.ins[0], a.ins.last().unwrap_or(&a.ins[0]), a.out(0));
    let shape = &out.layout.shape;
    let (Some(pl), Some(ql)) = (p.layout.broadcast_to(shape), q.layout.broadcast_to(shape)) else { return };
    let walk = Walk::new(shape, [&pl.strides, &ql.strides, &out.layout.strides]);
    let (_, [s, t, d]) = walk.inner();
    let (p, q) = (Shared(p.ptr::<P>().cast_mut()), Shared(q.ptr::<P>().cast_mut()));
    let to = Shared(out.ptr::<T>());
    let stream = Stream::new(a.draw);
    let same = same_parameters(&finish);
    walk.run(a.par, GRAIN / 4, |[i, j, o], n| {
        let mut buffer = [B::default(); TILE];
        for start in (0..n).step_by(TILE) {
            let count = TILE.min(n - start);
            // The output is contiguous, so an element's offset is its number.
            let first = o as usize + start * d as usize;
            // SAFETY: at most a tile; offsets come from the layouts; chunks write disjoint elements.
            unsafe {
                fill(&stream, first, &mut buffer[..count]);
                if (s, t, d) == (0, 0, 1) {
                    let out = std::slice::from_raw_parts_mut(to.at(first as isize), count);
                    same(&finish, first, &buffer[..count], *p.at(i), *q.at(j), out);
                    continue;
                }
                for (k, &x) in buffer[..count].iter().enumerate() {
                    let number = first + k * d as usize;
                    let k = (start + k) as isize;
                    *to.at(o + k * d) = finish(number, x, *p.at(i + k * s), *q.at(j + k * t));
                }
            }
        }
    });
}

/// A loop of [`draw`] where all elements have the same parameters.
type Same<F, T, P, B> = unsafe fn(&F, usize, &[B], P, P, &mut [T]);

/// # Safety
/// None; the type is that of functions compiled for an instruction set.
#[inline(always)]
unsafe fn same_body<F: Fn(usize, B, P, P) -> T, T, P: Copy, B: Copy>(
    finish: &F,
    first: usize,
    buffer: &[B],
    p: P,
    q: P,
    out: &mut [T],
) {
    for (i, (out, &x)) in out.iter_mut().zip(buffer).enumerate() {
        *out = finish(first + i, x, p, q);
    }
}

isa_versions! {
    /// The loop for elements with the same parameters.
    fn same_loop -> Same<F, T, P, B> = same_body;
    generics [F: Fn(usize, B, P, P) -> T, T, P: Copy, B: Copy] names [F, T, P, B] fast true;
    args (finish: &F, first: usize, buffer: &[B], p: P, q: P, out: &mut [T])
}

/// [`same_loop`] for the type of `finish`.
fn same_parameters<F: Fn(usize, B, P, P) -> T, T, P: Copy, B: Copy>(_: &F) -> Same<F, T, P, B> {
    same_loop::<F, T, P, B>()
}

/// Evaluates `$body` with the type of a floating output.
macro_rules! by_float {
    ($a:ident, $t:ident => $body:expr) => {
        with_type!(floats $a.out(0).dtype, $t => $body, else {})
    };
}

fn run_uniform(a: &KernelArgs) -> Result<()> {
    fn unit<T: Drawn>() -> unsafe fn(&Stream, usize, &mut [f64]) {
        if T::LONG { fill_units::<true, false>() } else { fill_units::<false, false>() }
    }
    by_float!(a, T => draw::<T, f64, f64>(a, unit::<T>(), |_, u, low, high| {
        let x = T::near(low + (high - low) * u);
        // Rounding may reach the upper end, which the interval leaves out.
        if x.exact() >= high && low < high { x.down() } else { x }
    }));
    Ok(())
}

/// `uniform(low, high; size, dtype)`: in [low, high).
pub static UNIFORM: Op = Op {
    attrs: Sample::read,
    grad: Grad::Vjp(|v| {
        let g = || v.g().cast(DType::F64);
        let unit = || (v.y(0).cast(DType::F64) - v.x(0)) / (v.x(1) - v.x(0));
        grads!(v; g().times(1.0 - unit()).sum_to(v.shape(0)), g().times(unit()).sum_to(v.shape(1)))
    }),
    saves: Saves { inputs: 0b11, outputs: 1 },
    random: true,
    ..Op::new("uniform", 2, float_sample, Run::Kernel(run_uniform))
};

fn run_normal(a: &KernelArgs) -> Result<()> {
    fn pairs<T: Drawn>() -> unsafe fn(&Stream, usize, &mut [f64]) {
        if T::LONG { fill_normals::<true>() } else { fill_normals::<false>() }
    }
    by_float!(a, T => draw::<T, f64, f64>(a, pairs::<T>(), |_, x, loc, scale| T::near(loc + scale * x)));
    Ok(())
}

/// `normal(loc, scale; size, dtype)`: the normal distribution.
pub static NORMAL: Op = Op {
    attrs: Sample::read,
    grad: Grad::Vjp(|v| {
        let g = || v.g().cast(DType::F64);
        let standard = || (v.y(0).cast(DType::F64) - v.x(0)) / v.x(1);
        grads!(v; g().sum_to(v.shape(0)), g().times(standard()).sum_to(v.shape(1)))
    }),
    saves: Saves { inputs: 0b11, outputs: 1 },
    random: true,
    ..Op::new(
        "normal",
        2,
        |a| {
            check_scalar(a, 1, "scale", "non-negative", |v| v >= 0.0)?;
            float_sample(a)
        },
        Run::Kernel(run_normal),
    )
};

fn run_exponential(a: &KernelArgs) -> Result<()> {
    fn log<T: Drawn>() -> unsafe fn(&Stream, usize, &mut [f64]) {
        if T::LONG { fill_units::<true, true>() } else { fill_units::<false, true>() }
    }
    by_float!(a, T => draw::<T, f64, f64>(a, log::<T>(), |_, x, scale, _| T::near(scale * x)));
    Ok(())
}

/// `exponential(scale; size, dtype)`.
pub static EXPONENTIAL: Op = Op {
    attrs: Sample::read,
    grad: Grad::Vjp(|v| {
        let g = v.g().cast(DType::F64);
        grads!(v; g.times(v.y(0).cast(DType::F64) / v.x(0)).sum_to(v.shape(0)))
    }),
    saves: Saves { inputs: 1, outputs: 1 },
    random: true,
    ..Op::new(
        "exponential",
        1,
        |a| {
            check_scalar(a, 0, "scale", "non-negative", |v| v >= 0.0)?;
            float_sample(a)
        },
        Run::Kernel(run_exponential),
    )
};

fn infer_bernoulli(a: &InferArgs) -> Result<Inferred> {
    check_scalar(a, 0, "prob", "from 0 to 1", |v| (0.0..=1.0).contains(&v))?;
    sample(a, a.attrs.get::<Sample>().dtype.unwrap_or(DType::F32), DType::F64)
}

/// A pair of parameters for which `fine` does not hold: the first that one of the threads met.
fn unfit<P: Element>(a: &KernelArgs, fine: impl Fn(P, P) -> bool + Sync) -> Option<(P, P)> {
    let (p, q) = (&a.ins[0], a.ins.last().unwrap_or(&a.ins[0]));
    // `infer` has seen that they broadcast.
    let shape = crate::shape::broadcast(a.op, &[&p.layout.shape, &q.layout.shape]).ok()?;
    let (pl, ql) = (p.layout.broadcast_to(&shape)?, q.layout.broadcast_to(&shape)?);
    let walk = Walk::new(&shape, [&pl.strides, &ql.strides]);
    let (_, [s, t]) = walk.inner();
    let (p, q) = (Shared(p.ptr::<P>().cast_mut()), Shared(q.ptr::<P>().cast_mut()));
    let found = Mutex::new(None);
    walk.run(a.par, GRAIN, |[i, j], n| {
        // SAFETY: offsets come from the layouts, and the parameters are only read.
        let pair = |k: isize| unsafe { (*p.at(i + k * s), *q.at(j + k * t)) };
        if let Some(pair) = (0..n as isize).map(pair).find(|&(p, q)| !fine(p, q)) {
            found.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(pair);
        }
    });
    found.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn run_bernoulli(a: &KernelArgs) -> Result<()> {
    if let Some((p, _)) = unfit::<f64>(a, |p, _| (0.0..=1.0).contains(&p)) {
        return Err(Error::value(a.op, format!("prob must be from 0 to 1, got {p}")));
    }
    with_type!(all a.out(0).dtype, T => {
        let one = element::<T>(1);
        // All 32 bits decide, so that small probabilities are met.
        let below = |word: u32, p: f64| f64::from(word) < p * (1u64 << 32) as f64;
        draw::<T, f64, u32>(a, fill_words(), |_, word, p, _| if below(word, p) { one } else { T::default() });
    });
    Ok(())
}

/// An integer as an element of T's dtype.
fn element<T: Element>(value: i128) -> T {
    let mut bytes = [0u8; 16];
    Scalar::Int(value).write(T::DTYPE, &mut bytes);
    bytemuck::pod_read_unaligned(&bytes[..size_of::<T>()])
}

/// `bernoulli(prob; size, dtype)`: 1 with probability `prob`, else 0; float32 by default.
pub static BERNOULLI: Op = Op {
    attrs: Sample::read,
    grad: Grad::Zero,
    random: true,
    ..Op::new("bernoulli", 1, infer_bernoulli, Run::Kernel(run_bernoulli))
};

fn infer_randint(a: &InferArgs) -> Result<Inferred> {
    let dtype = a.attrs.get::<Sample>().dtype.unwrap_or(DType::I64);
    if !dtype.is_integer() {
        return Err(Error::DType { op: a.op, dtype, expected: "random integers have an integer dtype" });
    }
    if let (Some(low), Some(high)) = (a.ins[0].scalar, a.ins[1].scalar) {
        let (low, high) = (low.as_i128(), high.as_i128());
        if low >= high {
            return Err(Error::value(a.op, format!("low >= high: {low} >= {high}")));
        }
        if !Scalar::Int(low).fits(dtype) || !Scalar::Int(high - 1).fits(dtype) {
            let text = format!("[{low}, {high}) is out of bounds for {dtype}");
            return Err(Error::value(a.op, text));
        }
    }
    // uint64 bounds may lie beyond int64; high itself may be one more than the dtype holds.
    sample(a, dtype, if dtype == DType::U64 { DType::U64 } else { DType::I64 })
}

fn run_randint(a: &KernelArgs) -> Result<()> {
    let out = a.out(0);
    let stream = Stream::new(a.draw);
    let (least, greatest) = out.dtype.int_range().unwrap_or((0, 0));
    if out.dtype == DType::U64 {
        // high == 0 stands for 2^64.
        let fine = |low: u64, high: u64| high == 0 || low < high;
        if let Some((low, high)) = unfit::<u64>(a, fine) {
            return Err(Error::value(a.op, format!("low >= high: {low} and {high}")));
        }
        draw::<u64, u64, u32>(a, fill_words(), |i, word, low, high| {
            low.wrapping_add(stream.integer(i, word, high.wrapping_sub(low)))
        });
        return Ok(());
    }
    let fine = |low: i64, high: i64| {
        low < high && i128::from(low) >= least && i128::from(high) - 1 <= greatest
            || (high == i64::MIN && out.dtype == DType::I64)
    };
    if let Some((low, high)) = unfit::<i64>(a, fine) {
        let text =
            format!("each low must be below its high, and both within {}; got {low} and {high}", out.dtype);
        return Err(Error::value(a.op, text));
    }
    if a.ins[0].layout.size() == 1 && a.ins[1].layout.size() == 1 {
        // SAFETY: the one element of each.
        let (low, high) = unsafe { (*a.ins[0].ptr::<i64>(), *a.ins[1].ptr::<i64>()) };
        let bound = high.wrapping_sub(low) as u64;
        if bound != 0 && bound <= 1 << 32 {
            with_type!(ints out.dtype, T => short_integers::<T>(a, &stream, low, bound), else {});
            return Ok(());
        }
    }
    with_type!(ints out.dtype, T => draw::<T, i64, u32>(a, fill_words(), |i, word, low, high| {
        T::of(low.wrapping_add(stream.integer(i, word, high.wrapping_sub(low) as u64) as i64))
    }), else {});
    Ok(())
}

/// An integer type of draws.
trait Whole: Element {
    /// The lower bits.
    fn of(x: i64) -> Self;
}

macro_rules! whole {
    ($($t:ty),*) => { $(
        impl Whole for $t {
            #[inline(always)]
            fn of(x: i64) -> $t {
                x as $t
            }
        }
    )* };
}
whole!(i8, i16, i32, i64, u8, u16, u32, u64);

/// Integers from `low` on, all of one bound that 32 bits are enough for.
fn short_integers<T: Whole>(a: &KernelArgs, stream: &Stream, low: i64, bound: u64) {
    let to = Shared(a.out(0).ptr::<T>());
    let (fill, below) = (fill_words(), below_loop::<T>());
    split(a.par, a.out(0).layout.size(), GRAIN / 4, |range| {
        let mut words = [0u32; TILE];
        for start in range.clone().step_by(TILE) {
            let words = &mut words[..TILE.min(range.end - start)];
            // SAFETY: elements of the contiguous output, this chunk's own.
            let out = unsafe { std::slice::from_raw_parts_mut(to.at(start as isize), words.len()) };
            let mut any = false;
            // SAFETY: no condition.
            unsafe {
                fill(stream, start, words);
                below(words, low, bound, out, &mut any);
            }
            if any {
                for (i, (out, &word)) in out.iter_mut().zip(&*words).enumerate() {
                    *out = T::of(low.wrapping_add(stream.integer(start + i, word, bound) as i64));
                }
            }
        }
    });
}

/// # Safety
/// None; the type is that of functions compiled for an instruction set.
#[inline(always)]
unsafe fn below_body<T: Whole>(words: &[u32], low: i64, bound: u64, out: &mut [T], any: &mut bool) {
    let mut found = false;
    for (out, &word) in out.iter_mut().zip(words) {
        let product = u64::from(word) * bound;
        found |= may_reject(product, bound);
        *out = T::of(low.wrapping_add((product >> 32) as i64));
    }
    *any = found;
}

isa_versions! {
    /// Integers by their first bits, and whether one of them may have to be drawn again.
    fn below_loop -> unsafe fn(&[u32], i64, u64, &mut [T], &mut bool) = below_body;
    generics [T: Whole] names [T] fast true;
    args (words: &[u32], low: i64, bound: u64, out: &mut [T], any: &mut bool)
}

/// `randint(low, high; size, dtype)`: integers in [low, high), each equally likely; int64 by default.
pub static RANDINT: Op = Op {
    attrs: Sample::read,
    grad: Grad::Zero,
    random: true,
    ..Op::new("randint", 2, infer_randint, Run::Kernel(run_randint))
};

attrs! {
    /// `n`: the number of items.
    pub struct Permutation { n: i64 }
}

fn run_permutation(a: &KernelArgs) -> Result<()> {
    // SAFETY: the contiguous output, which is this run's.
    let out = unsafe { std::slice::from_raw_parts_mut(a.out(0).ptr::<i64>(), a.out(0).layout.size()) };
    shuffle::permutation(a.op, &Stream::new(a.draw), out, a.par)
}

/// `permutation(; n)`: 0..n in random order, int64.
pub static PERMUTATION: Op = Op {
    attrs: Permutation::read,
    grad: Grad::Zero,
    random: true,
    heavy: true,
    ..Op::new(
        "permutation",
        0,
        |a| {
            let n = a.attrs.get::<Permutation>().n;
            let Ok(n) = usize::try_from(n) else {
                return Err(Error::value(a.op, format!("n must not be negative, got {n}")));
            };
            checked_numel(a.op, &[n], 8)?;
            Ok(Inferred { ins: smallvec![], outs: smallvec![Meta::new(Shape::from_slice(&[n]), DType::I64)] })
        },
        Run::Kernel(run_permutation),
    )
};

pub const OPS: &[&Op] = &[&UNIFORM, &NORMAL, &EXPONENTIAL, &BERNOULLI, &RANDINT, &PERMUTATION];
