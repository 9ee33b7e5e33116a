//! Gradient rules run eagerly: each call of a formula is appended to the segment like the program's own.

use crate::array::{Array, Input};
use crate::device::Device;
use crate::error::Error;
use crate::invoke::{Arrays, invoke};
use crate::place::{LayoutRef, Place};
use crate::value::Value;
use mxnp_core::DType;
use mxnp_core::attrs::Attrs;
use mxnp_core::op::{Meta, Op};
use mxnp_core::rules::{Operand, Rules};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::sync::Arc;

/// The arrays a formula has made so far, and the first error.
#[derive(Default)]
pub(crate) struct Eager {
    arrays: RefCell<Vec<Array>>,
    error: RefCell<Option<Error>>,
}

impl Eager {
    /// Gives a formula an array to work with.
    pub fn put(&self, array: Array) -> u32 {
        let mut arrays = self.arrays.borrow_mut();
        arrays.push(array);
        arrays.len() as u32 - 1
    }

    pub fn get(&self, handle: u32) -> Array {
        self.arrays.borrow()[handle as usize].clone()
    }

    /// The first error, if a call went wrong.
    pub fn check(&self) -> Result<(), Error> {
        self.error.take().map_or(Ok(()), Err)
    }

    fn try_call(&self, op: &'static Op, attrs: Attrs, ins: &[Operand]) -> Result<Arrays, Error> {
        let arrays: SmallVec<[Option<Array>; 4]> = ins
            .iter()
            .map(|operand| match operand {
                Operand::Sym(handle) => Some(self.get(*handle)),
                Operand::Scalar(_) => None,
            })
            .collect();
        let inputs: SmallVec<[Input; 4]> = ins
            .iter()
            .zip(&arrays)
            .map(|(operand, array)| match (operand, array) {
                (_, Some(array)) => Input::Array(array),
                (Operand::Scalar(scalar), _) => Input::Scalar(*scalar),
                (Operand::Sym(_), None) => unreachable!("every handle has an array"),
            })
            .collect();
        invoke(op, attrs, &inputs)
    }
}

impl Rules for Eager {
    fn call(&self, op: &'static Op, attrs: Attrs, ins: &[Operand]) -> SmallVec<[u32; 2]> {
        if self.error.borrow().is_none() {
            match self.try_call(op, attrs, ins) {
                Ok(results) => return results.into_iter().map(|array| self.put(array)).collect(),
                Err(error) => *self.error.borrow_mut() = Some(error),
            }
        }
        // The formula goes on with a stand-in until it returns.
        let value = Arc::new(Value::pending(0, Device::CPU, 0));
        let at = Place { value, layout: LayoutRef::contiguous(&[]), dtype: DType::F32 };
        SmallVec::from_elem(self.put(Array::new(at)), 2)
    }

    fn meta(&self, handle: u32) -> Meta {
        self.arrays.borrow()[handle as usize].meta()
    }
}
