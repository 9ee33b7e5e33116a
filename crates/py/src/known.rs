//! The ops that operators and indexing call, looked up by name once.

use crate::error::raise;
use mxnp_core::{ErrorKind, Op, ops};
use pyo3::prelude::*;
use std::sync::OnceLock;

macro_rules! known {
    ($($variant:ident $name:literal),* $(,)?) => {
        /// An op that native code calls.
        #[derive(Clone, Copy)]
        pub enum Known { $($variant),* }

        const NAMES: &[&str] = &[$($name),*];
    };
}

known! {
    Add "add", Subtract "subtract", Multiply "multiply", TrueDivide "true_divide", FloorDivide "floor_divide",
    Remainder "mod", Power "power", Matmul "matmul", And "bitwise_and", Or "bitwise_or",
    Xor "bitwise_xor", LeftShift "left_shift", RightShift "right_shift", Negative "negative",
    Positive "positive", Absolute "absolute", Invert "bitwise_not", Equal "equal", NotEqual "not_equal", Less "less",
    LessEqual "less_equal", Greater "greater", GreaterEqual "greater_equal", Where "where",
    Any "any",
}

impl Known {
    /// The op itself.
    #[inline]
    pub fn op(self, py: Python<'_>) -> PyResult<&'static Op> {
        static OPS: OnceLock<Vec<Option<&'static Op>>> = OnceLock::new();
        let table = OPS.get_or_init(|| NAMES.iter().map(|name| ops::find(name)).collect());
        table[self as usize].ok_or_else(|| {
            let text = format!("{}: this build has no such op", NAMES[self as usize]);
            raise(py, ErrorKind::NotImplemented, text)
        })
    }
}
