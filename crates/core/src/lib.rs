//! What an array computation means: dtypes, layouts, kernels and the definition of every op.
//! Starts no thread (parallel loops take a handle) and knows nothing of Python, tasks or gradients' tapes.

pub mod attrs;
pub mod blocks;
pub mod cuda_src;
pub mod dtype;
pub mod error;
pub mod infer;
pub mod kernel;
pub mod layout;
pub mod op;
pub mod ops;
pub mod par;
pub mod promote;
pub mod rules;
pub mod scalar;
pub mod shape;
pub mod simd;
pub mod storage;
pub mod view;

pub use dtype::{Bool, DType, Element};
pub use error::{Error, ErrorKind, Result};
pub use half::{bf16, f16};
pub use layout::{IndexItem, Layout};
pub use num_complex::{Complex32, Complex64};
pub use op::{Meta, Op};
pub use scalar::Scalar;
pub use shape::Shape;
