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
use crate::{DType, Error, Result, isa_versions, with_type};

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
    let (read, shift, total, write) =
        (read_loop::<T, W>(), shift_loop::<W>(), sum_loop::<W>(), write_loop::<T, W>());
    split(a.par, starts.len(), (8192 / n).max(1), |range| {
        with_scratch(2 * n * size_of::<W>(), |scratch| {
            let (buffer, powers) = (scratch.cast::<W>(), scratch.cast::<W>().wrapping_add(n));
            for line in range {
                let count = lengths.as_ref().map_or(n, |l| l[line].clamp(0, n as i64) as usize);
                // SAFETY: scratch has room for two lines; offsets come from the layouts; lines are disjoint.
                unsafe {
                    let row = std::slice::from_raw_parts_mut(buffer, count);
                    let (mut most, mut sum) = (f64::NEG_INFINITY, 0.0);
                    read(Line(from.at(starts[line]), step), sign, row, &mut most);
                    shift(row, most, attrs.scale());
                    exp(count, &[buffer.cast_const().cast()], powers.cast());
                    let powers = std::slice::from_raw_parts(powers.cast_const(), count);
                    total(powers, &mut sum);
                    let target = Line(to.at(targets[line]), stride);
                    if form == Form::Log {
                        write(row, 1.0, sum.ln(), target);
                    } else {
                        write(powers, 1.0 / sum, 0.0, target);
                    }
                    for i in count..n {
                        *target.at(i) = T::default();
                    }
                }
            }
        });
    });
}

/// The first element of a line, and the step to the next.
#[derive(Clone, Copy)]
struct Line<T>(*mut T, isize);

impl<T> Line<T> {
    #[inline(always)]
    fn at(self, i: usize) -> *mut T {
        self.0.wrapping_offset(i as isize * self.1)
    }
}

/// # Safety
/// The line has as many elements as `row`.
#[inline(always)]
unsafe fn read_body<T: Real, W: Real + PartialOrd>(from: Line<T>, sign: f64, row: &mut [W], most: &mut f64) {
    // SAFETY: the caller's.
    unsafe {
        if from.1 == 1 {
            let from = std::slice::from_raw_parts(from.0, row.len());
            row.iter_mut().zip(from).for_each(|(value, x)| *value = W::narrow(sign * x.wide()));
        } else {
            for (i, value) in row.iter_mut().enumerate() {
                *value = W::narrow(sign * (*from.at(i)).wide());
            }
        }
    }
    // NaN loses here, and comes back with the subtraction.
    let mut lanes = [W::narrow(f64::NEG_INFINITY); 16];
    let (chunks, rest) = row.as_chunks::<16>();
    for (lane, &v) in lanes.iter_mut().zip(rest) {
        *lane = if v > *lane { v } else { *lane };
    }
    for chunk in chunks {
        for l in 0..16 {
            lanes[l] = if chunk[l] > lanes[l] { chunk[l] } else { lanes[l] };
        }
    }
    *most = lanes.iter().fold(f64::NEG_INFINITY, |most, v| if v.wide() > most { v.wide() } else { most });
}

isa_versions! {
    /// Reads a line, times `sign`, and finds the greatest element.
    fn read_loop -> unsafe fn(Line<T>, f64, &mut [W], &mut f64) = read_body;
    generics [T: Real, W: Real + PartialOrd] names [T, W] fast true;
    args (from: Line<T>, sign: f64, row: &mut [W], most: &mut f64)
}

/// # Safety
/// None; the type is that of functions compiled for an instruction set.
#[inline(always)]
unsafe fn shift_body<W: Real>(row: &mut [W], most: f64, scale: f64) {
    row.iter_mut().for_each(|v| *v = W::narrow((v.wide() - most) * scale));
}

isa_versions! {
    /// Subtracts the greatest element and scales.
    fn shift_loop -> unsafe fn(&mut [W], f64, f64) = shift_body;
    generics [W: Real] names [W] fast true; args (row: &mut [W], most: f64, scale: f64)
}

/// # Safety
/// As [`shift_body`].
#[inline(always)]
unsafe fn sum_body<W: Real>(row: &[W], sum: &mut f64) {
    *sum = row_sum(row, W::wide);
}

isa_versions! {
    /// The sum of a row.
    fn sum_loop -> unsafe fn(&[W], &mut f64) = sum_body;
    generics [W: Real] names [W] fast true; args (row: &[W], sum: &mut f64)
}

/// # Safety
/// The line has as many elements as `row`.
#[inline(always)]
unsafe fn write_body<T: Real, W: Real>(row: &[W], factor: f64, less: f64, to: Line<T>) {
    // SAFETY: the caller's.
    unsafe {
        if to.1 == 1 {
            let to = std::slice::from_raw_parts_mut(to.0, row.len());
            to.iter_mut().zip(row).for_each(|(to, x)| *to = T::narrow(x.wide() * factor - less));
        } else {
            for (i, x) in row.iter().enumerate() {
                *to.at(i) = T::narrow(x.wide() * factor - less);
            }
        }
    }
}

isa_versions! {
    /// Writes `row * factor - less`.
    fn write_loop -> unsafe fn(&[W], f64, f64, Line<T>) = write_body;
    generics [T: Real, W: Real] names [T, W] fast true; args (row: &[W], factor: f64, less: f64, to: Line<T>)
}
