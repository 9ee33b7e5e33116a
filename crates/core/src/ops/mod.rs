//! The ops, one file per family; the list of families is here and nowhere else.

use crate::op::Op;

pub mod arith;
pub mod bitwise;
pub mod cast;
pub mod compare;
pub mod create;
pub mod exp_log;
pub mod index;
pub mod join;
pub mod linalg;
pub mod loss;
pub mod nn_act;
pub mod nn_conv;
pub mod nn_dense;
pub mod nn_embed;
pub mod nn_norm;
pub mod nn_pool;
pub mod optim;
pub mod random;
pub mod reduce;
pub mod rounding;
pub mod scan;
pub mod shape;
pub mod sort;
pub mod special;
pub mod trig;

const FAMILIES: &[&[&Op]] = &[
    arith::OPS,
    bitwise::OPS,
    cast::OPS,
    compare::OPS,
    create::OPS,
    exp_log::OPS,
    index::OPS,
    join::OPS,
    linalg::OPS,
    loss::OPS,
    nn_act::OPS,
    nn_conv::OPS,
    nn_dense::OPS,
    nn_embed::OPS,
    nn_norm::OPS,
    nn_pool::OPS,
    optim::OPS,
    random::OPS,
    reduce::OPS,
    rounding::OPS,
    scan::OPS,
    shape::OPS,
    sort::OPS,
    special::OPS,
    trig::OPS,
];

/// Every op, by family.
pub fn all() -> impl Iterator<Item = &'static Op> {
    FAMILIES.iter().flat_map(|family| family.iter().copied())
}

/// The op called `name`.
pub fn find(name: &str) -> Option<&'static Op> {
    all().find(|op| op.name == name)
}
