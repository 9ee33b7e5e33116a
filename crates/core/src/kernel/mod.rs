//! Loop drivers: how kernels walk memory. No formula of any op is here, and no op is known.

pub mod conv;
mod copy;
mod direct;
pub mod fold;
pub mod gather;
pub mod gemm;
pub mod lane;
mod machine;
pub mod math;
pub mod moves;
pub mod num;
pub mod pass;
pub mod philox;
mod program;
pub mod real;
pub mod reduce;
mod reduction;
pub(crate) mod scratch;
pub mod sort;
mod space;
pub mod step;
pub mod walk;
