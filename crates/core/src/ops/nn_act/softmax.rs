//! The kernels of softmax: three sweeps over a line in scratch memory, with the exponential of `exp`.

use super::Softmax;
use crate::kernel::moves::{Shared, dense};
use crate::kernel::real::{Real, wide_dtype};
use crate::kernel::scratch::with_scratch;
use crate::kernel::walk::{offsets, split};
use crate::op::{KernelArgs, Run, StepFn};
use crate::ops::exp_log::EXP;
use crate::ops::nn_norm::row_sum;
use crate::ops::shape::with_size;
use crate::shape::check_axis;
use crate::{DType, Error, Result, with_type};

#[derive(Clone, Copy, PartialEq)]
enum Form {
    Soft,
    Min,
    Log,
}

pub fn softmax(a: &KernelArgs) -> Result<()> {
    run(a, Form::Soft)
}

pub fn softmin(a: &KernelArgs) -> Result<()> {
    run(a, Form::Min)
}

pub fn log_softmax(a: &KernelArgs) -> Result<()> {
    run(a, Form::Log)
}

fn run(a: &KernelArgs, form: Form) -> Result<()> {
    let wide = wide_dtype(a.out(0).dtype);
    let Run::Elementwise(step_of) = EXP.run else {
        return Err(Error::new(crate::error::ErrorKind::Internal, a.op, "exp is not elementwise"));
    };
    let Some(exp) = step_of(&[wide], wide) else {
        return Err(Error::new(crate::error::ErrorKind::Internal, a.op, "exp lacks a dtype"));
    };
    with_type!(floats a.out(0).dtype, T => match wide {
        DType::F64 => lines::<T, f64>(a, form, exp),
        _ => lines::<T, f32>(a, form, exp),
    }, else {});
    Ok(())
}

/// Computes line by line in W.
fn lines<T: Real, W: Real + PartialOrd>(a: &KernelArgs, form: Form, exp: StepFn) {
    let attrs = a.attrs.get::<Softmax>();
    let (x, out) = (&a.ins[0], a.out(0));
    let shape = &x.layout.shape;
    let axis = check_axis("", attrs.axis, shape.len()).unwrap_or(0);
    let n = shape[axis];
    if x.layout.size() == 0 {
        return;
    }
    let rest = with_size(shape, axis, 1);
    let (starts, targets) = (offsets(&rest, &x.layout.strides), offsets(&rest, &out.layout.strides));
    let (step, stride) = (x.layout.strides[axis], out.layout.strides[axis]);
    let lengths = a.ins.get(1).map(|length| dense::<i64>(length, a.par));
    let (from, to) = (Shared(x.ptr::<T>().cast_mut()), Shared(out.ptr::<T>()));
    let sign = if form == Form::Min { -1.0 } else { 1.0 };
    split(a.par, starts.len(), (8192 / n).max(1), |range| {
        with_scratch(2 * n * size_of::<W>(), |scratch| {
            let (buffer, powers) = (scratch.cast::<W>(), scratch.cast::<W>().wrapping_add(n));
            for line in range {
                let count = lengths.as_ref().map_or(n, |l| l[line].clamp(0, n as i64) as usize);
                // SAFETY: scratch has room for two lines; offsets come from the layouts; lines are disjoint.
                unsafe {
                    let row = std::slice::from_raw_parts_mut(buffer, count);
                    let mut most = f64::NEG_INFINITY;
                    for (i, value) in row.iter_mut().enumerate() {
                        let v = sign * (*from.at(starts[line] + i as isize * step)).wide();
                        most = if v > most { v } else { most };
                        *value = W::narrow(v);
                    }
                    row.iter_mut().for_each(|v| *v = W::narrow((v.wide() - most) * attrs.scale()));
                    exp(count, &[buffer.cast_const().cast()], powers.cast());
                    let powers = std::slice::from_raw_parts(powers.cast_const(), count);
                    let sum = row_sum(powers, W::wide);
                    let log = sum.ln();
                    for i in 0..n {
                        let value = match form {
                            _ if i >= count => 0.0,
                            Form::Log => row[i].wide() - log,
                            _ => powers[i].wide() / sum,
                        };
                        *to.at(targets[line] + i as isize * stride) = T::narrow(value);
                    }
                }
            }
        });
    });
}
