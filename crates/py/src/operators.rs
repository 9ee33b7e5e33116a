//! The operators of arrays, as native slots. An operand is an array, a Python scalar (weak), a NumPy array or
//! scalar, or a list; for anything else Python asks the other side.

// PyO3 writes `unsafe fn` trampolines; inside a macro of ours the lint takes their bodies for our code.
#![allow(unsafe_op_in_unsafe_fn)]

use crate::array::{NDArray, wrap, wrap_any};
use crate::error::type_error;
use crate::known::Known;
use crate::operand::{Operand, Source, beside, invoke_into, invoke_one};
use crate::wait::enter;
use mxnp_core::attrs::Attrs;
use mxnp_graph::Input;
use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use smallvec::smallvec;

/// `this op other`, or `other op this` where `swapped`.
#[inline]
fn binary(
    this: &Bound<'_, NDArray>,
    other: &Bound<'_, PyAny>,
    known: Known,
    swapped: bool,
) -> PyResult<Py<PyAny>> {
    let py = this.py();
    let Some(other) = beside(other, this.get())? else { return Ok(py.NotImplemented()) };
    enter(py)?;
    let op = known.op(py)?;
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
fn in_place(this: &Bound<'_, NDArray>, other: &Bound<'_, PyAny>, known: Known) -> PyResult<()> {
    let py = this.py();
    let Some(other) = beside(other, this.get())? else {
        let text = format!("unsupported operand for an in-place operator: '{}'", other.get_type().name()?);
        return Err(type_error(py, text));
    };
    enter(py)?;
    let op = known.op(py)?;
    invoke_into(py, op, Attrs::NONE, smallvec![Source::Object(this), other], &[this.get()])
}

fn unary(this: &Bound<'_, NDArray>, known: Known) -> PyResult<Py<NDArray>> {
    let py = this.py();
    enter(py)?;
    let op = known.op(py)?;
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
    let quotient = binary(this, other, Known::FloorDivide, swapped)?;
    if quotient.is(py.NotImplemented()) {
        return Ok(quotient);
    }
    let rest = binary(this, other, Known::Remainder, swapped)?;
    Ok((quotient, rest).into_pyobject(py)?.into_any().unbind())
}

fn no_modulus(modulus: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    match modulus {
        Some(m) if !m.is_none() => Err(type_error(m.py(), "pow() of an array takes no modulus")),
        _ => Ok(()),
    }
}

macro_rules! operators {
    (binary { $($forward:ident $reflected:ident $inplace:ident $op:ident),* $(,)? }
     unary { $($method:ident $unary:ident),* $(,)? }) => {
        #[pymethods]
        impl NDArray {
            $(
                fn $forward(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                    binary(slf, other, Known::$op, false)
                }
                fn $reflected(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                    binary(slf, other, Known::$op, true)
                }
                fn $inplace(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
                    in_place(slf, other, Known::$op)
                }
            )*
            $(
                fn $method(slf: &Bound<'_, Self>) -> PyResult<Py<NDArray>> {
                    unary(slf, Known::$unary)
                }
            )*
            fn __pow__(
                slf: &Bound<'_, Self>,
                other: &Bound<'_, PyAny>,
                modulus: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<Py<PyAny>> {
                no_modulus(modulus)?;
                binary(slf, other, Known::Power, false)
            }
            fn __rpow__(
                slf: &Bound<'_, Self>,
                other: &Bound<'_, PyAny>,
                modulus: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<Py<PyAny>> {
                no_modulus(modulus)?;
                binary(slf, other, Known::Power, true)
            }
            fn __ipow__(
                slf: &Bound<'_, Self>,
                other: &Bound<'_, PyAny>,
                modulus: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<()> {
                no_modulus(modulus)?;
                in_place(slf, other, Known::Power)
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
                let known = match op {
                    CompareOp::Eq => Known::Equal,
                    CompareOp::Ne => Known::NotEqual,
                    CompareOp::Lt => Known::Less,
                    CompareOp::Le => Known::LessEqual,
                    CompareOp::Gt => Known::Greater,
                    CompareOp::Ge => Known::GreaterEqual,
                };
                binary(slf, other, known, false)
            }
        }
    };
}

operators! {
    binary {
        __add__ __radd__ __iadd__ Add,
        __sub__ __rsub__ __isub__ Subtract,
        __mul__ __rmul__ __imul__ Multiply,
        __truediv__ __rtruediv__ __itruediv__ TrueDivide,
        __floordiv__ __rfloordiv__ __ifloordiv__ FloorDivide,
        __mod__ __rmod__ __imod__ Remainder,
        __matmul__ __rmatmul__ __imatmul__ Matmul,
        __and__ __rand__ __iand__ And,
        __or__ __ror__ __ior__ Or,
        __xor__ __rxor__ __ixor__ Xor,
        __lshift__ __rlshift__ __ilshift__ LeftShift,
        __rshift__ __rrshift__ __irshift__ RightShift,
    }
    unary { __neg__ Negative, __pos__ Positive, __abs__ Absolute, __invert__ Invert }
}

/// `item in this`: whether some element equals it.
pub fn contains(this: &Bound<'_, NDArray>, item: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = this.py();
    let Some(item) = beside(item, this.get())? else { return Ok(false) };
    enter(py)?;
    let equal = {
        let ins: [Operand<'_>; 2] = [Source::Object(this).operand(py), item.operand(py)];
        invoke_one(py, Known::Equal.op(py)?, Attrs::NONE, &[ins[0].input(), ins[1].input()])?
    };
    let any = Known::Any.op(py)?;
    let attrs = (any.attrs)(any.name, Vec::new()).map_err(|e| crate::error::core_error(py, e))?;
    let found = invoke_one(py, any, attrs, &[Input::Array(&equal)])?;
    crate::export::truth(py, &found)
}
