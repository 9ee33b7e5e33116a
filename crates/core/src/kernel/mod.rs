//! Loop drivers: how kernels walk memory. No formula of any op is here, and no op is known.

pub mod moves;
pub mod pass;
pub mod reduce;
pub mod walk;
