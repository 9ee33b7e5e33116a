//! Loop drivers: how kernels walk memory. No formula of any op is here, and no op is known.

pub mod pass;
pub mod reduce;
