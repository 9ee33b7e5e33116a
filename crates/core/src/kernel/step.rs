//! Turns formulas into steps: one loop per arity over contiguous tiles, compiled for each instruction set.
//!
//! Rationale: results of a block go through a local array, because an output may lie on an input and the
//! compiler would otherwise guard its vector loop with an overlap check that such calls fail. Halves are widened
//! and narrowed around the step of their wide type, tile by tile: one loop for each formula, not three.

use crate::kernel::lane::{Arithmetic, CastFrom, Contracted, Lane, Plain};
use crate::op::StepFn;
use crate::{DType, isa_versions, with_type};
use std::mem::MaybeUninit;

/// Elements computed between reading and writing.
const BLOCK: usize = 32;

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

/// Runs `$block` with `$at` the addresses of whole blocks and `$results` their results, of `$r`; the last, partial
/// block is staged in `pads`, its results in another. A macro, because a long closure may stay a call, which runs as
/// baseline code. Results are stored whole, so that they need not be in memory before.
macro_rules! blocks {
    ($k:literal, $n:ident, $ins:expr, $out:ident: $r:ty, |$at:ident, $results:ident| $block:block) => {{
        let (ins, out): ([(*const u8, usize); $k], _) = ($ins, $out.cast::<$r>());
        let mut pads = [const { MaybeUninit::<[u128; BLOCK]>::uninit() }; $k];
        let mut spill = MaybeUninit::<[u128; BLOCK]>::uninit();
        let mut done = 0;
        while done < $n {
            let take = ($n - done).min(BLOCK);
            let mut $at = [std::ptr::null(); $k];
            for k in 0..$k {
                let (start, size) = ins[k];
                // `done < n` elements of `size` bytes are readable from `start`.
                $at[k] = start.add(done * size);
                if take < BLOCK {
                    // A pad holds a block of the widest element, of which all that is read is set.
                    let pad = pads[k].as_mut_ptr().cast::<u8>();
                    pad.write_bytes(0, BLOCK * size);
                    std::ptr::copy_nonoverlapping($at[k], pad, take * size);
                    $at[k] = pad;
                }
            }
            let mut $results = [<$r>::default(); BLOCK];
            $block
            // The spill holds a block of the widest element; a whole block lies within the `n` that are writable.
            let to = if take < BLOCK { spill.as_mut_ptr().cast::<$r>() } else { out.add(done) };
            to.cast::<[$r; BLOCK]>().write_unaligned($results);
            if take < BLOCK {
                std::ptr::copy_nonoverlapping(to, out.add(done), take);
            }
            done += take;
        }
    }};
}

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

/// Elements that are wide at once.
const WIDENED: usize = 512;

/// Runs the wide types' step `f` between conversions: on up to three operands, the first of `C` and the others of `A`.
///
/// # Safety
/// As [`StepFn`].
#[inline(always)]
unsafe fn widened<C: Lane, A: Lane, R: Lane>(f: StepFn, n: usize, ins: &[*const u8], out: *mut u8) {
    // Room for the widest element, float32.
    let mut tiles = [[0u32; WIDENED]; 3];
    let mut results = [0u32; WIDENED];
    let mut done = 0;
    while done < n {
        let take = WIDENED.min(n - done);
        let mut at = [std::ptr::null(); 3];
        // SAFETY: `take` elements from `done` on are readable and writable; tiles hold halves' wide elements.
        unsafe {
            for (k, &start) in ins.iter().enumerate() {
                let (half, size) = if k == 0 { (C::HALF, size_of::<C>()) } else { (A::HALF, size_of::<A>()) };
                at[k] = start.add(done * size);
                if half {
                    let tile = tiles[k].as_mut_ptr().cast();
                    (if k == 0 { widen_of::<C>() } else { widen_of::<A>() })(take, &[at[k]], tile);
                    at[k] = tile;
                }
            }
            let to = out.add(done * size_of::<R>());
            if R::HALF {
                let result = results.as_mut_ptr().cast();
                f(take, &at[..ins.len()], result);
                narrow_of::<R>()(take, &[result], to);
            } else {
                f(take, &at[..ins.len()], to);
            }
        }
        done += take;
    }
}

/// # Safety
/// As [`StepFn`], from `A` to its wide type.
#[inline(always)]
unsafe fn widen_body<A: Lane>(n: usize, ins: &[*const u8], out: *mut u8) {
    // SAFETY: the caller's contract; a block is readable where `blocks` points.
    unsafe {
        blocks!(1, n, [(ins[0], size_of::<A>())], out: A::Wide, |at, results| {
            for k in 0..BLOCK {
                results[k] = (*at[0].cast::<A>().add(k)).widen();
            }
        })
    }
}

/// # Safety
/// As [`StepFn`], to `A` from its wide type.
#[inline(always)]
unsafe fn narrow_body<A: Lane>(n: usize, ins: &[*const u8], out: *mut u8) {
    // SAFETY: the caller's contract; a block is readable where `blocks` points.
    unsafe {
        blocks!(1, n, [(ins[0], size_of::<A::Wide>())], out: A, |at, results| {
            for k in 0..BLOCK {
                results[k] = A::narrow(*at[0].cast::<A::Wide>().add(k));
            }
        })
    }
}

isa_versions! {
    fn widen_of -> StepFn = widen_body;
    generics [A: Lane] names [A] fast A::HALF; args (n: usize, ins: &[*const u8], out: *mut u8)
}

isa_versions! {
    fn narrow_of -> StepFn = narrow_body;
    generics [A: Lane] names [A] fast A::HALF; args (n: usize, ins: &[*const u8], out: *mut u8)
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
    with_type!(all from, A => with_type!(all to, B => cast_of::<A, B>()))
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
