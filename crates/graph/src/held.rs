//! The call that stands for a branch or loop by data in a graph that is only looked at: whoever had it noted knows, by
//! its number, the graphs of the functions it would run. It is listed and never run.

use mxnp_core::attrs;
use mxnp_core::error::{Error, Result};
use mxnp_core::op::{Arity, Grad, InferArgs, Inferred, KernelArgs, Op, Run};

attrs! {
    /// `number`: which one it is, for whoever had it noted.
    pub struct Held { number: i64 }
}

fn refused<T>(op: &'static str) -> Result<T> {
    Err(Error::value(op, "a branch or loop that a graph holds is written to files only"))
}

fn infer(args: &InferArgs) -> Result<Inferred> {
    refused(args.op)
}

fn run(args: &KernelArgs) -> Result<()> {
    refused(args.op)
}

/// Takes the arrays that the functions use, those from outside them too, and gives their results.
pub static HELD: Op = Op {
    arity: Arity::AtLeast(0),
    attrs: Held::read,
    grad: Grad::None("it is never run"),
    ..Op::new("held", 0, infer, Run::Kernel(run))
};
