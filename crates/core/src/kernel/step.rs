//! Turns formulas into steps: one loop per arity over contiguous tiles, compiled for each instruction set.
//!
//! Rationale: results of a block go through a local array, because an output may lie on an input and the
//! compiler would otherwise guard its vector loop with an overlap check that such calls fail. Halves take the step of
//! their wide type (`halves`).

use crate::kernel::halves::{narrow_of, widen_of, widened};
use crate::kernel::lane::{Arithmetic, CastFrom, Contracted, Lane, Plain};
use crate::op::StepFn;
use crate::{DType, f16, isa_versions, with_type};
use std::mem::MaybeUninit;

/// Elements computed between reading and writing: so many that the compiler makes vectors of a block's loop before
/// it may unroll it. A short formula's loop over 32 was unrolled first, in release builds, and then pieced together
/// from single elements.
pub(super) const BLOCK: usize = 64;

/// A formula of one operand.
pub trait Formula1<W: Copy> {
    type O;
    fn f(a: W) -> Self::O;
    /// Whether `f` is wrong for `a` and `rare` must answer: what would spoil the vector loop.
    const HAS_RARE: bool = false;
    #[inline(always)]
    fn is_rare(_: W) -> bool {
        false
    }
    fn rare(a: W) -> Self::O {
        Self::f(a)
    }
}

/// A formula of two operands.
pub trait Formula2<W: Copy> {
    type O;
    fn f(a: W, b: W) -> Self::O;
    /// As [`Formula1::HAS_RARE`].
    const HAS_RARE: bool = false;
    #[inline(always)]
    fn is_rare(_: W, _: W) -> bool {
        false
    }
    fn rare(a: W, b: W) -> Self::O {
        Self::f(a, b)
    }
}

/// A formula of two operands of different types.
pub trait FormulaOfTwo<A, B> {
    type O;
    fn f(a: A, b: B) -> Self::O;
}

/// A formula of three operands, the first of which may have a type of its own.
pub trait Formula3<C, W> {
    type O;
    fn f(a: C, b: W, c: W) -> Self::O;
}

/// Runs `$block` with `$at` the addresses of a block and `$results` its results, of `$r`: first on all whole blocks,
/// then once more on what is left, staged in `pads`, whose results go through another. So the inner loop, of which
/// there is one, calls nothing, and constants stay in registers. A macro, because a long closure may stay a call,
/// which runs as baseline code. Results are stored whole, so that they need not be in memory before.
macro_rules! blocks {
    ($k:literal, $n:ident, $ins:expr, $out:ident: $r:ty, |$at:ident, $results:ident| $block:block) => {{
        let ins: [(*const u8, usize); $k] = $ins;
        let mut pads = [const { MaybeUninit::<[u128; BLOCK]>::uninit() }; $k];
        let mut spill = MaybeUninit::<[u128; BLOCK]>::uninit();
        let (mut starts, mut to) = (ins.map(|(start, _)| start), $out.cast::<$r>());
        let (mut count, left) = ($n / BLOCK, $n % BLOCK);
        let mut staged = false;
        loop {
            for i in 0..count {
                let mut $at = starts;
                for k in 0..$k {
                    // Whole blocks are readable from each start.
                    $at[k] = starts[k].add(i * (BLOCK * ins[k].1));
                }
                let mut $results = [<$r>::default(); BLOCK];
                $block
                to.add(i * BLOCK).cast::<[$r; BLOCK]>().write_unaligned($results);
            }
            let rest = $out.cast::<$r>().add($n - left);
            if staged {
                std::ptr::copy_nonoverlapping(to, rest, left);
            }
            if staged || left == 0 {
                break;
            }
            for k in 0..$k {
                let (start, size) = ins[k];
                // A pad holds a block of the widest element, of which all that is read is set.
                let pad = pads[k].as_mut_ptr().cast::<u8>();
                pad.write_bytes(0, BLOCK * size);
                std::ptr::copy_nonoverlapping(start.add(($n - left) * size), pad, left * size);
                starts[k] = pad;
            }
            (to, count, staged) = (spill.as_mut_ptr().cast::<$r>(), 1, true);
        }
    }};
}

pub(super) use blocks;

/// # Safety
/// As [`StepFn`], for one input of `A` and an output of `R`.
#[inline(always)]
unsafe fn unary_body<F, A: Lane, R: Lane, M>(n: usize, ins: &[*const u8], out: *mut u8)
where
    M: Arithmetic<A> + Arithmetic<R>,
    F: Formula1<<M as Arithmetic<A>>::Wide, O = <M as Arithmetic<R>>::Wide>,
{
    let widen = <M as Arithmetic<A>>::widen;
    let narrow = <M as Arithmetic<R>>::narrow;
    let size = size_of::<A>();
    // SAFETY: the caller's contract; a block is readable where `blocks` points.
    unsafe {
        blocks!(1, n, [(ins[0], size)], out: R, |at, results| {
            let a = at[0].cast::<A>();
            for k in 0..BLOCK {
                results[k] = narrow(F::f(widen(*a.add(k))));
            }
            if F::HAS_RARE {
                let mut any = false;
                for k in 0..BLOCK {
                    any |= F::is_rare(widen(*a.add(k)));
                }
                for k in (0..BLOCK).filter(|_| any) {
                    let a = widen(*a.add(k));
                    if F::is_rare(a) {
                        results[k] = narrow(F::rare(a));
                    }
                }
            }
        })
    }
}

/// # Safety
/// As [`StepFn`], for two inputs of `A` and an output of `R`.
#[inline(always)]
unsafe fn binary_body<F, A: Lane, R: Lane, M>(n: usize, ins: &[*const u8], out: *mut u8)
where
    M: Arithmetic<A> + Arithmetic<R>,
    F: Formula2<<M as Arithmetic<A>>::Wide, O = <M as Arithmetic<R>>::Wide>,
{
    let widen = <M as Arithmetic<A>>::widen;
    let narrow = <M as Arithmetic<R>>::narrow;
    let size = size_of::<A>();
    // SAFETY: the caller's contract; a block is readable where `blocks` points.
    unsafe {
        blocks!(2, n, [(ins[0], size), (ins[1], size)], out: R, |at, results| {
            let (a, b) = (at[0].cast::<A>(), at[1].cast::<A>());
            for k in 0..BLOCK {
                results[k] = narrow(F::f(widen(*a.add(k)), widen(*b.add(k))));
            }
            if F::HAS_RARE {
                let mut any = false;
                for k in 0..BLOCK {
                    any |= F::is_rare(widen(*a.add(k)), widen(*b.add(k)));
                }
                for k in (0..BLOCK).filter(|_| any) {
                    let (a, b) = (widen(*a.add(k)), widen(*b.add(k)));
                    if F::is_rare(a, b) {
                        results[k] = narrow(F::rare(a, b));
                    }
                }
            }
        })
    }
}

/// # Safety
/// As [`StepFn`], for inputs of `A` and `B` and an output of `R`.
#[inline(always)]
unsafe fn mixed_body<F, A: Lane, B: Lane, R: Lane>(n: usize, ins: &[*const u8], out: *mut u8)
where
    F: FormulaOfTwo<A::Wide, B::Wide, O = R::Wide>,
{
    let ins = [(ins[0], size_of::<A>()), (ins[1], size_of::<B>())];
    // SAFETY: the caller's contract; a block is readable where `blocks` points.
    unsafe {
        blocks!(2, n, ins, out: R, |at, results| {
            let (a, b) = (at[0].cast::<A>(), at[1].cast::<B>());
            for k in 0..BLOCK {
                results[k] = R::narrow(F::f((*a.add(k)).widen(), (*b.add(k)).widen()));
            }
        })
    }
}

/// # Safety
/// As [`StepFn`], for inputs of `C`, `A` and `A` and an output of `A`.
#[inline(always)]
unsafe fn ternary_body<F, C: Lane, A: Lane>(n: usize, ins: &[*const u8], out: *mut u8)
where
    F: Formula3<C::Wide, A::Wide, O = A::Wide>,
{
    let size = size_of::<A>();
    let ins = [(ins[0], size_of::<C>()), (ins[1], size), (ins[2], size)];
    // SAFETY: the caller's contract; a block is readable where `blocks` points.
    unsafe {
        blocks!(3, n, ins, out: A, |at, results| {
            let (a, b, c) = (at[0].cast::<C>(), at[1].cast::<A>(), at[2].cast::<A>());
            for k in 0..BLOCK {
                results[k] = A::narrow(F::f((*a.add(k)).widen(), (*b.add(k)).widen(), (*c.add(k)).widen()));
            }
        })
    }
}

/// # Safety
/// As [`StepFn`], for an input of `A` and an output of `R`.
#[inline(always)]
unsafe fn cast_body<A: Lane, R: Lane + CastFrom<A::Wide>>(n: usize, ins: &[*const u8], out: *mut u8) {
    let size = size_of::<A>();
    // SAFETY: the caller's contract; a block is readable where `blocks` points.
    unsafe {
        blocks!(1, n, [(ins[0], size)], out: R, |at, results| {
            let a = at[0].cast::<A>();
            for k in 0..BLOCK {
                results[k] = R::cast_from((*a.add(k)).widen());
            }
        })
    }
}

isa_versions! {
    fn unary_of -> StepFn = unary_body;
    generics [F: Formula1<A::Wide, O = R::Wide> + Formula1<A::Fused, O = R::Fused>, A: Lane, R: Lane]
    names [F, A, R] modes [Plain, Contracted]
    fast A::FAST && R::FAST; args (n: usize, ins: &[*const u8], out: *mut u8)
}

/// The step of a formula of one operand.
pub fn unary<F, A: Lane, R: Lane>() -> StepFn
where
    F: Formula1<A::Wide, O = R::Wide> + Formula1<A::Fused, O = R::Fused>,
{
    /// # Safety
    /// As [`StepFn`], for an input of `A` and an output of `R`.
    unsafe fn halves<F, A: Lane, R: Lane>(n: usize, ins: &[*const u8], out: *mut u8)
    where
        F: Formula1<A::Wide, O = R::Wide> + Formula1<A::Fused, O = R::Fused>,
    {
        // SAFETY: the caller's contract.
        unsafe { widened::<A, A, R>(unary_of::<F, A::Wide, R::Wide>(), n, ins, out) }
    }
    if A::HALF || R::HALF { halves::<F, A, R> } else { unary_of::<F, A, R>() }
}

/// The step of a formula of one operand whose result is of another kind, compiled for the baseline only.
pub fn unary_to<F: Formula1<A::Wide, O = R::Wide>, A: Lane, R: Lane>() -> StepFn {
    /// # Safety
    /// As [`StepFn`], for an input of `A` and an output of `R`.
    unsafe fn run<F: Formula1<A::Wide, O = R::Wide>, A: Lane, R: Lane>(
        n: usize,
        ins: &[*const u8],
        out: *mut u8,
    ) {
        // SAFETY: the caller's contract is the body's.
        unsafe { unary_body::<F, A, R, Plain>(n, ins, out) }
    }
    run::<F, A, R>
}

isa_versions! {
    fn binary_of -> StepFn = binary_body;
    generics [F: Formula2<A::Wide, O = R::Wide> + Formula2<A::Fused, O = R::Fused>, A: Lane, R: Lane]
    names [F, A, R] modes [Plain, Contracted]
    fast A::FAST && R::FAST; args (n: usize, ins: &[*const u8], out: *mut u8)
}

/// The step of a formula of two operands.
pub fn binary<F, A: Lane, R: Lane>() -> StepFn
where
    F: Formula2<A::Wide, O = R::Wide> + Formula2<A::Fused, O = R::Fused>,
{
    /// # Safety
    /// As [`StepFn`], for two inputs of `A` and an output of `R`.
    unsafe fn halves<F, A: Lane, R: Lane>(n: usize, ins: &[*const u8], out: *mut u8)
    where
        F: Formula2<A::Wide, O = R::Wide> + Formula2<A::Fused, O = R::Fused>,
    {
        // SAFETY: the caller's contract.
        unsafe { widened::<A, A, R>(binary_of::<F, A::Wide, R::Wide>(), n, ins, out) }
    }
    if A::HALF || R::HALF { halves::<F, A, R> } else { binary_of::<F, A, R>() }
}

isa_versions! {
    /// The step of a formula of two operands of different types.
    pub fn mixed -> StepFn = mixed_body;
    generics [F: FormulaOfTwo<A::Wide, B::Wide, O = R::Wide>, A: Lane, B: Lane, R: Lane] names [F, A, B, R]
    fast A::FAST && B::FAST && R::FAST; args (n: usize, ins: &[*const u8], out: *mut u8)
}

isa_versions! {
    fn ternary_of -> StepFn = ternary_body;
    generics [F: Formula3<C::Wide, A::Wide, O = A::Wide>, C: Lane, A: Lane] names [F, C, A]
    fast A::FAST; args (n: usize, ins: &[*const u8], out: *mut u8)
}

/// The step of a formula of three operands.
pub fn ternary<F: Formula3<C::Wide, A::Wide, O = A::Wide>, C: Lane, A: Lane>() -> StepFn {
    /// # Safety
    /// As [`StepFn`], for inputs of `C`, `A` and `A` and an output of `A`.
    unsafe fn halves<F: Formula3<C::Wide, A::Wide, O = A::Wide>, C: Lane, A: Lane>(
        n: usize,
        ins: &[*const u8],
        out: *mut u8,
    ) {
        // SAFETY: the caller's contract.
        unsafe { widened::<C, A, A>(ternary_of::<F, C::Wide, A::Wide>(), n, ins, out) }
    }
    if A::HALF { halves::<F, C, A> } else { ternary_of::<F, C, A>() }
}

isa_versions! {
    /// The step that converts.
    pub fn cast_of -> StepFn = cast_body;
    generics [A: Lane, R: Lane + CastFrom<A::Wide>] names [A, R]
    fast (A::FAST || A::HALF) && (R::FAST || R::HALF); args (n: usize, ins: &[*const u8], out: *mut u8)
}

/// The step that converts `from` to `to` (a copy where they are the same).
pub fn cast(from: DType, to: DType) -> StepFn {
    if from == to {
        return match from.size() {
            1 => copy::<1>,
            2 => copy::<2>,
            4 => copy::<4>,
            8 => copy::<8>,
            _ => copy::<16>,
        };
    }
    match (from, to) {
        (DType::F16, DType::F32) => widen_of::<f16>(),
        (DType::F32, DType::F16) => narrow_of::<f16>(),
        _ => with_type!(all from, A => with_type!(all to, B => cast_of::<A, B>())),
    }
}

/// Whether `f` only copies elements of `dtype`; false if in doubt.
pub fn is_copy(f: StepFn, dtype: DType) -> bool {
    std::ptr::fn_addr_eq(f, cast(dtype, dtype))
}

/// # Safety
/// As [`StepFn`], for elements of `SIZE` bytes.
unsafe fn copy<const SIZE: usize>(n: usize, ins: &[*const u8], out: *mut u8) {
    // SAFETY: the caller's contract; the two may be the same address.
    unsafe { std::ptr::copy(ins[0], out, n * SIZE) }
}

/// How an elementwise op runs: `elementwise!(floats: unary Exp)` expands the formula over the dtypes of a
/// `with_type!` set and answers in the operands' dtype; `-> Bool` names another; `select` chooses by a bool.
#[macro_export]
macro_rules! elementwise {
    ($set:ident: unary $f:ident) => {
        $crate::elementwise!(@run $set, 0, T => $crate::kernel::step::unary::<$f, T, T>())
    };
    ($set:ident: unary $f:ident -> $o:ty) => {
        $crate::elementwise!(@run $set, 0, T => $crate::kernel::step::unary::<$f, T, $o>())
    };
    ($set:ident: binary $f:ident) => {
        $crate::elementwise!(@run $set, 0, T => $crate::kernel::step::binary::<$f, T, T>())
    };
    ($set:ident: binary $f:ident -> $o:ty) => {
        $crate::elementwise!(@run $set, 0, T => $crate::kernel::step::binary::<$f, T, $o>())
    };
    ($set:ident: ternary $f:ident) => {
        $crate::elementwise!(@run $set, 0, T => $crate::kernel::step::ternary::<$f, T, T>())
    };
    ($set:ident: select $f:ident) => {
        $crate::elementwise!(@run $set, 1, T => $crate::kernel::step::ternary::<$f, $crate::Bool, T>())
    };
    (@run $set:ident, $i:expr, $t:ident => $step:expr) => {
        $crate::op::Run::Elementwise(|ins, _| $crate::with_type!($set ins[$i], $t => Some($step), else None))
    };
}

/// Declares a formula: a name, the bound of the types it holds for, and the expression.
/// `formula!(Add: Num, |a, b| a.add(b))` answers in the operands' type; `-> Bool` names another.
#[macro_export]
macro_rules! formula {
    ($name:ident: $bound:path, |$a:ident| $e:expr) => {
        $crate::formula!(@one $name, $bound, W, $a, $e);
    };
    ($name:ident: $bound:path, |$a:ident| -> $o:ty { $e:expr }) => {
        $crate::formula!(@one $name, $bound, $o, $a, $e);
    };
    ($name:ident: $bound:path, |$a:ident, $b:ident| $e:expr) => {
        $crate::formula!(@two $name, $bound, W, $a, $b, $e);
    };
    ($name:ident: $bound:path, |$a:ident, $b:ident| -> $o:ty { $e:expr }) => {
        $crate::formula!(@two $name, $bound, $o, $a, $b, $e);
    };
    (@one $name:ident, $bound:path, $o:ty, $a:ident, $e:expr) => {
        pub(crate) struct $name;
        impl<W: $bound> $crate::kernel::step::Formula1<W> for $name {
            type O = $o;
            #[inline(always)]
            fn f($a: W) -> $o { $e }
        }
    };
    (@two $name:ident, $bound:path, $o:ty, $a:ident, $b:ident, $e:expr) => {
        pub(crate) struct $name;
        impl<W: $bound> $crate::kernel::step::Formula2<W> for $name {
            type O = $o;
            #[inline(always)]
            fn f($a: W, $b: W) -> $o { $e }
        }
    };
}
