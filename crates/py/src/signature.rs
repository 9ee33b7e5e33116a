//! What a graph was traced for: the kinds of its arguments and the modes of the thread.

use crate::tree::{Flat, Token};
use mxnp_core::DType;
use mxnp_core::layout::Strides;
use mxnp_graph::{Array, device, modes, tape};
use pyo3::prelude::*;

/// What an array argument must have in common with the traced one.
#[derive(PartialEq)]
pub struct Form {
    shape: mxnp_core::Shape,
    strides: Strides,
    dtype: DType,
    device: mxnp_graph::Device,
    traced: Option<bool>,
}

impl Form {
    pub fn of(array: &Array) -> Form {
        let layout = array.layout();
        Form {
            shape: mxnp_core::Shape::from_slice(&layout.shape),
            strides: Strides::from_slice(&layout.strides),
            dtype: array.dtype(),
            device: array.device(),
            traced: tape::tracing(array),
        }
    }

    pub fn is_of(&self, array: &Array) -> bool {
        let layout = array.layout();
        self.dtype == array.dtype()
            && self.shape == layout.shape
            && self.strides == layout.strides
            && self.device == array.device()
            && self.traced == tape::tracing(array)
    }
}

/// The modes of a thread that a function may depend on.
#[derive(Clone, Copy, PartialEq)]
pub struct Modes {
    recording: bool,
    pub training: bool,
    numpy_dtype: bool,
    device: mxnp_graph::Device,
}

impl Modes {
    pub fn now() -> Modes {
        Modes {
            recording: modes::is_recording(),
            training: modes::is_training(),
            numpy_dtype: modes::numpy_dtype(),
            device: device::current(),
        }
    }
}

/// What a graph was traced for.
pub struct Key {
    pub modes: Modes,
    forms: Vec<Form>,
    tokens: Vec<Token>,
}

impl Key {
    pub fn of(py: Python<'_>, flat: &Flat<'_>, arrays: &[Array]) -> Key {
        Key {
            modes: Modes::now(),
            forms: arrays.iter().map(Form::of).collect(),
            tokens: flat.tokens.iter().map(|token| token.copy(py)).collect(),
        }
    }

    pub fn is(&self, other: &Key, py: Python<'_>) -> PyResult<bool> {
        if self.modes != other.modes || self.forms != other.forms || self.tokens.len() != other.tokens.len() {
            return Ok(false);
        }
        for (mine, theirs) in self.tokens.iter().zip(&other.tokens) {
            if !mine.same(theirs, py)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub fn fits(&self, py: Python<'_>, modes: Modes, flat: &Flat<'_>, arrays: &[Array]) -> PyResult<bool> {
        if self.modes != modes
            || self.forms.len() != arrays.len()
            || self.tokens.len() != flat.tokens.len()
            || !self.forms.iter().zip(arrays).all(|(form, array)| form.is_of(array))
        {
            return Ok(false);
        }
        for (mine, theirs) in self.tokens.iter().zip(&flat.tokens) {
            if !mine.same(theirs, py)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
