//! Loop drivers: how kernels walk memory. No formula of any op is here, and no op is known.

mod copy;
pub mod fold;
pub mod lane;
mod machine;
pub mod moves;
pub mod num;
pub mod pass;
mod program;
pub mod reduce;
mod reduction;
mod scratch;
mod space;
pub mod step;
pub mod walk;
