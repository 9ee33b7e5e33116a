//! Powers. Integers are multiplied by squaring; a negative exponent of an integer is refused.

use super::select;
use crate::kernel::float::Fused;
use crate::kernel::math;
use crate::kernel::moves::dense;
use crate::kernel::num::Num;
use crate::kernel::pass::{self, Load, Pass, Slot, Source, Step, Store};
use crate::kernel::step::{self, Formula2};
use crate::op::{Grad, InferArgs, Inferred, KernelArgs, Meta, Op, Run, Saves};
use crate::ops::{compare, exp_log};
use crate::promote::{Mode, result_type, result_type_unchecked};
use crate::rules::{Sym, Vjp};
use crate::{
    Complex32, Complex64, DType, Error, ErrorKind, Result, Scalar, Shape, elementwise, grads, infer,
    with_type,
};
use smallvec::{SmallVec, smallvec};

struct Power;

macro_rules! power_ints {
    ($($t:ty),*) => { $(
        impl Formula2<$t> for Power {
            type O = $t;
            #[inline(always)]
            fn f(a: $t, b: $t) -> $t { power_int(a, b, |b| b < 0 as $t, |b| b >> 1, |b| b & 1 == 1) }
        }
    )* };
}
#[allow(unused_comparisons)] // unsigned exponents are never negative
mod ints {
    use super::{Formula2, Power, power_int};
    power_ints!(i8, i16, i32, i64, u8, u16, u32, u64);
}

/// By squaring, wrapping. A negative power is 0 but for 1 and -1, as the reciprocal truncated.
#[inline(always)]
fn power_int<T: Num>(
    a: T,
    mut b: T,
    negative: impl Fn(T) -> bool,
    half: impl Fn(T) -> T,
    odd: impl Fn(T) -> bool,
) -> T {
    if negative(b) {
        let one_or_minus = a == T::ONE || a == T::ONE.neg();
        return if !one_or_minus {
            T::ZERO
        } else if odd(b) {
            a
        } else {
            T::ONE
        };
    }
    let (mut result, mut square) = (T::ONE, a);
    while b != T::ZERO {
        if odd(b) {
            result = result.mul(square);
        }
        square = square.mul(square);
        b = half(b);
    }
    result
}

macro_rules! power_floats {
    ($($t:ty: |$a:ident, $b:ident| $rare:expr;)*) => { $(
        impl Formula2<$t> for Power {
            type O = $t;
            #[inline(always)]
            fn f(a: $t, b: $t) -> $t { math::power(a, b) }
            const HAS_RARE: bool = true;
            #[inline(always)]
            fn is_rare(a: $t, b: $t) -> bool { math::power_is_rare(a, b) }
            fn rare($a: $t, $b: $t) -> $t { $rare }
        }
    )* };
}
power_floats! {
    f32: |a, b| a.powf(b);
    f64: |a, b| a.powf(b);
    Fused<f32>: |a, b| Fused(a.0.powf(b.0));
    Fused<f64>: |a, b| Fused(a.0.powf(b.0));
}
impl Formula2<Complex32> for Power {
    type O = Complex32;
    #[inline(always)]
    fn f(a: Complex32, b: Complex32) -> Complex32 {
        if b == Complex32::ZERO { Complex32::ONE } else { a.powc(b) }
    }
}
impl Formula2<Complex64> for Power {
    type O = Complex64;
    #[inline(always)]
    fn f(a: Complex64, b: Complex64) -> Complex64 {
        if b == Complex64::ZERO { Complex64::ONE } else { a.powc(b) }
    }
}

const NEGATIVE: &str = "Integers to negative integer powers are not allowed.";

fn infer_power(a: &InferArgs) -> Result<Inferred> {
    let dtype = result_type(a.op, a.ins, a.mode)?;
    let dtype = if dtype == DType::Bool { DType::I8 } else { dtype };
    if let (true, Some(Scalar::Int(e))) = (dtype.is_integer(), a.ins[1].scalar)
        && e < 0
    {
        return Err(Error::value(a.op, NEGATIVE).with_hint("convert the base to a floating dtype first"));
    }
    infer::elementwise(a, dtype, dtype)
}

fn grad_power<'r>(v: &Vjp<'r>) -> SmallVec<[Option<Sym<'r>>; 3]> {
    // x ** 0 is 1 everywhere, at 0 too; 0 ** p is 0 beside every p but 0 itself.
    let (x, p) = (v.x(0), v.x(1));
    grads!(v;
            v.g().times(p.times(x.binary(&POWER, p - 1.0))),
            v.g().times(select(x.binary(&compare::EQUAL, 0i64), 0.0, v.y(0) * x.unary(&exp_log::LOG))))
}

const SAVES: Saves = Saves { inputs: 0b11, outputs: 0b1 };

/// An exponent that may be negative under an integer base.
fn on_integers(ins: &[Meta]) -> Option<&'static Op> {
    let [_, exponent] = ins else { return None };
    let is_open = exponent.scalar.is_none() && exponent.dtype.is_signed();
    // Of integers alone: uint64 with a signed one is a float, in either mode.
    (is_open && result_type_unchecked(ins, Mode::default()).is_integer()).then_some(&INTEGER_POWER)
}

pub static POWER: Op = Op {
    grad: Grad::Vjp(grad_power),
    saves: SAVES,
    instead: Some(on_integers),
    ..Op::new("power", 2, infer_power, elementwise!(numbers: binary Power))
};

fn run_integers(a: &KernelArgs) -> Result<()> {
    let out = a.out(0);
    let is_negative = with_type!(ints out.dtype, T => {
        dense::<T>(&a.ins[1], a.par).iter().any(|&b| b < T::default())
    }, else false);
    if is_negative {
        return Err(Error::value(a.op, NEGATIVE));
    }
    let Some(step) = with_type!(ints out.dtype, T => Some(step::binary::<Power, T, T>()), else None) else {
        return Err(Error::new(ErrorKind::Internal, a.op, "has no loop for its dtype"));
    };
    let shape = Shape::from_slice(&out.layout.shape);
    let spread = |i: usize| a.ins[i].layout.broadcast_to(&shape);
    let (Some(x), Some(y)) = (spread(0), spread(1)) else {
        return Err(Error::new(ErrorKind::Internal, a.op, "its operands do not broadcast"));
    };
    let load = |i: usize| Load { source: Source::Array(i), dtype: out.dtype, reg: i };
    let pass = Pass {
        shape,
        regs: vec![out.dtype; 3],
        loads: vec![load(0), load(1)],
        steps: vec![Step { f: step, ins: smallvec![0, 1], out: 2 }],
        stores: vec![Store { reg: 2, target: 2, dtype: out.dtype }],
        reduce: None,
    };
    let slots = [
        Slot { base: a.ins[0].base().cast_mut(), layout: &x },
        Slot { base: a.ins[1].base().cast_mut(), layout: &y },
        Slot { base: out.base(), layout: out.layout },
    ];
    // SAFETY: the views are valid (contract of View), and fresh outputs overlap no input.
    unsafe { pass::run(&pass, &slots, &[], a.par) };
    Ok(())
}

/// [`POWER`] of integers to exponents that only the data shows: a negative one is an error.
pub static INTEGER_POWER: Op = Op {
    grad: Grad::Vjp(grad_power),
    saves: SAVES,
    ..Op::new("integer_power", 2, infer_power, Run::Kernel(run_integers))
};
