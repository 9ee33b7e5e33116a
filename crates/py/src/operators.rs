//! The operators of arrays, as native slots. An operand is an array, a Python scalar (weak), a NumPy array or
//! scalar, or a list; for anything else Python asks the other side.

// PyO3 writes `unsafe fn` trampolines; inside a macro of ours the lint takes their bodies for our code.
#![allow(unsafe_op_in_unsafe_fn)]

use crate::array::{NDArray, wrap, wrap_any};
use crate::error::type_error;
use crate::operand::{Operand, Source, beside, invoke_into, invoke_one};
use crate::wait::enter;
use mxnp_core::Op;
use mxnp_core::attrs::Attrs;
use mxnp_core::ops::{arith, bitwise, compare, linalg, reduce};
use mxnp_graph::Input;
use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use smallvec::smallvec;

/// `this op other`, or `other op this` where `swapped`.
#[inline]
fn binary(
    this: &Bound<'_, NDArray>,
    other: &Bound<'_, PyAny>,
    op: &'static Op,
    swapped: bool,
) -> PyResult<Py<PyAny>> {
    let py = this.py();
    let Some(other) = beside(other, this.get())? else { return Ok(py.NotImplemented()) };
    enter(py)?;
    let result = {
        let this = this.get().get(py);
        let other = other.operand(py);
        let (a, b) = (Input::Array(&this), other.input());
        let ins = if swapped { [b, a] } else { [a, b] };
        invoke_one(py, op, Attrs::NONE, &ins)?
    };
    wrap_any(py, result)
}

/// `this op= other`: the result is written into `this`.
fn in_place(this: &Bound<'_, NDArray>, other: &Bound<'_, PyAny>, op: &'static Op) -> PyResult<()> {
    let py = this.py();
    let Some(other) = beside(other, this.get())? else {
        let text = format!("unsupported operand for an in-place operator: '{}'", other.get_type().name()?);
        return Err(type_error(py, text));
    };
    enter(py)?;
    invoke_into(py, op, Attrs::NONE, smallvec![Source::Object(this), other], &[this.get()])
}

fn unary(this: &Bound<'_, NDArray>, op: &'static Op) -> PyResult<Py<NDArray>> {
    let py = this.py();
    enter(py)?;
    let result = invoke_one(py, op, Attrs::NONE, &[Input::Array(&this.get().get(py))])?;
    wrap(py, result)
}

/// Quotient and remainder, `other` first where `swapped`.
fn quotient_and_rest(
    this: &Bound<'_, NDArray>,
    other: &Bound<'_, PyAny>,
    swapped: bool,
) -> PyResult<Py<PyAny>> {
    let py = this.py();
    let quotient = binary(this, other, &arith::FLOOR_DIVIDE, swapped)?;
    if quotient.is(py.NotImplemented()) {
        return Ok(quotient);
    }
    let rest = binary(this, other, &arith::MOD, swapped)?;
    Ok((quotient, rest).into_pyobject(py)?.into_any().unbind())
}

fn no_modulus(modulus: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    match modulus {
        Some(m) if !m.is_none() => Err(type_error(m.py(), "pow() of an array takes no modulus")),
        _ => Ok(()),
    }
}

macro_rules! operators {
    (binary { $($forward:ident $reflected:ident $inplace:ident $op:path),* $(,)? }
     unary { $($method:ident $unary:path),* $(,)? }) => {
        #[pymethods]
        impl NDArray {
            $(
                fn $forward(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                    binary(slf, other, &$op, false)
                }
                fn $reflected(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                    binary(slf, other, &$op, true)
                }
                fn $inplace(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
                    in_place(slf, other, &$op)
                }
            )*
            $(
                fn $method(slf: &Bound<'_, Self>) -> PyResult<Py<NDArray>> {
                    unary(slf, &$unary)
                }
            )*
            fn __pow__(
                slf: &Bound<'_, Self>,
                other: &Bound<'_, PyAny>,
                modulus: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<Py<PyAny>> {
                no_modulus(modulus)?;
                binary(slf, other, &arith::POWER, false)
            }
            fn __rpow__(
                slf: &Bound<'_, Self>,
                other: &Bound<'_, PyAny>,
                modulus: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<Py<PyAny>> {
                no_modulus(modulus)?;
                binary(slf, other, &arith::POWER, true)
            }
            fn __ipow__(
                slf: &Bound<'_, Self>,
                other: &Bound<'_, PyAny>,
                modulus: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<()> {
                no_modulus(modulus)?;
                in_place(slf, other, &arith::POWER)
            }
            fn __divmod__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                quotient_and_rest(slf, other, false)
            }
            fn __rdivmod__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                quotient_and_rest(slf, other, true)
            }
            fn __richcmp__(
                slf: &Bound<'_, Self>,
                other: &Bound<'_, PyAny>,
                op: CompareOp,
            ) -> PyResult<Py<PyAny>> {
                let op = match op {
                    CompareOp::Eq => &compare::EQUAL,
                    CompareOp::Ne => &compare::NOT_EQUAL,
                    CompareOp::Lt => &compare::LESS,
                    CompareOp::Le => &compare::LESS_EQUAL,
                    CompareOp::Gt => &compare::GREATER,
                    CompareOp::Ge => &compare::GREATER_EQUAL,
                };
                binary(slf, other, op, false)
            }
        }
    };
}

operators! {
    binary {
        __add__ __radd__ __iadd__ arith::ADD,
        __sub__ __rsub__ __isub__ arith::SUBTRACT,
        __mul__ __rmul__ __imul__ arith::MULTIPLY,
        __truediv__ __rtruediv__ __itruediv__ arith::TRUE_DIVIDE,
        __floordiv__ __rfloordiv__ __ifloordiv__ arith::FLOOR_DIVIDE,
        __mod__ __rmod__ __imod__ arith::MOD,
        __matmul__ __rmatmul__ __imatmul__ linalg::MATMUL,
        __and__ __rand__ __iand__ bitwise::BITWISE_AND,
        __or__ __ror__ __ior__ bitwise::BITWISE_OR,
        __xor__ __rxor__ __ixor__ bitwise::BITWISE_XOR,
        __lshift__ __rlshift__ __ilshift__ bitwise::LEFT_SHIFT,
        __rshift__ __rrshift__ __irshift__ bitwise::RIGHT_SHIFT,
    }
    unary { __neg__ arith::NEGATIVE, __pos__ arith::POSITIVE, __abs__ arith::ABSOLUTE, __invert__ bitwise::BITWISE_NOT }
}

/// `item in this`: whether some element equals it.
pub fn contains(this: &Bound<'_, NDArray>, item: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = this.py();
    let Some(item) = beside(item, this.get())? else { return Ok(false) };
    enter(py)?;
    let equal = {
        let ins: [Operand<'_>; 2] = [Source::Object(this).operand(py), item.operand(py)];
        invoke_one(py, &compare::EQUAL, Attrs::NONE, &[ins[0].input(), ins[1].input()])?
    };
    let any = &reduce::ANY;
    let attrs = (any.attrs)(any.name, Vec::new()).map_err(|e| crate::error::core_error(py, e))?;
    let found = invoke_one(py, any, attrs, &[Input::Array(&equal)])?;
    crate::export::truth(py, &found)
}
