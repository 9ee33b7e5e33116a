//! The life of a few arrays: pending values, views, in-place writes, aliasing, errors and gradients.

use mxnp_core::attrs::Attrs;
use mxnp_core::ops::{arith, create, reduce, rounding, shape};
use mxnp_core::{DType, IndexItem, Scalar};
use mxnp_graph::tape::{self, GradReq};
use mxnp_graph::{Array, Device, Handle, Input, assign, invoke, invoke_into, modes, slice};

fn array(shape: &[usize], data: &[f32]) -> Array {
    Array::from_bytes(shape, DType::F32, Device::CPU, |dst| {
        for (d, x) in dst.chunks_exact_mut(4).zip(data) {
            d.copy_from_slice(&x.to_ne_bytes());
        }
    })
    .unwrap()
}

fn values(a: &Array) -> Vec<f32> {
    let mut bytes = vec![0; a.size() * 4];
    a.read_into(&mut bytes).unwrap();
    bytes.chunks_exact(4).map(|b| f32::from_ne_bytes(b.try_into().unwrap())).collect()
}

fn op2(op: &'static mxnp_core::Op, a: &Array, b: &Array) -> Array {
    invoke(op, Attrs::NONE, &[a.into(), b.into()]).unwrap()[0].clone()
}

#[test]
fn a_chain_is_pending_until_it_is_read() {
    let (a, b) = (array(&[3], &[1., 2., 3.]), array(&[3], &[10., 20., 30.]));
    let c = op2(&arith::MULTIPLY, &op2(&arith::ADD, &a, &b), &b);
    assert_eq!(values(&c), [110., 440., 990.]);
    let d = invoke(&arith::ADD, Attrs::NONE, &[(&c).into(), Input::Scalar(Scalar::Float(0.5))]).unwrap();
    assert_eq!(values(&d[0]), [110.5, 440.5, 990.5]);
}

#[test]
fn views_share_memory_and_writes_are_seen() {
    let mut a = Handle::new(array(&[2, 3], &[1., 2., 3., 4., 5., 6.]));
    let t = invoke(&shape::TRANSPOSE, shape::transpose(&[1, 0]), &[Input::Array(&a)]).unwrap()[0].clone();
    let row = slice(&a, &[IndexItem::At(1)]).unwrap();
    assign(&mut a, &[IndexItem::At(1)], Input::Scalar(Scalar::Float(9.))).unwrap();
    assert_eq!(values(&row), [9., 9., 9.]);
    assert_eq!(values(&t), [1., 9., 2., 9., 3., 9.]);
}

#[test]
fn overlapping_assignment_reads_before_it_writes() {
    let mut a = Handle::new(array(&[5], &[1., 2., 3., 4., 5.]));
    let front = slice(&a, &[IndexItem::Slice { start: 0, step: 1, len: 4 }]).unwrap();
    let tail = [IndexItem::Slice { start: 1, step: 1, len: 4 }];
    assign(&mut a, &tail, Input::Array(&front)).unwrap();
    assert_eq!(values(&a), [1., 1., 2., 3., 4.]);
}

#[test]
fn in_place_update_follows_program_order() {
    let mut a = Handle::new(array(&[2], &[1., 2.]));
    let before = op2(&arith::ADD, &a, &a);
    let one = array(&[2], &[10., 10.]);
    let old = (*a).clone();
    invoke_into(&arith::ADD, Attrs::NONE, &[(&old).into(), (&one).into()], &mut [&mut a]).unwrap();
    let after = op2(&arith::MULTIPLY, &a, &a);
    assert_eq!(values(&after), [121., 144.]);
    assert_eq!(values(&before), [2., 4.]);
}

#[test]
fn a_reduction_ends_a_pass() {
    let a = array(&[2, 3], &[1., 2., 3., 4., 5., 6.]);
    let s = invoke(&reduce::SUM, reduce::sum_attrs(&[1], false), &[(&op2(&arith::MULTIPLY, &a, &a)).into()]);
    assert_eq!(values(&s.unwrap()[0]), [14., 77.]);
}

#[test]
fn gradients_flow_and_are_freed() {
    let mut x = Handle::new(array(&[3], &[1., 2., 3.]));
    tape::attach_grad(&mut x, None, GradReq::Write).unwrap();
    modes::set_recording(true);
    let y = op2(&arith::MULTIPLY, &x, &op2(&arith::MULTIPLY, &x, &x));
    modes::set_recording(false);
    tape::backward(&[&y], &[None], false, true).unwrap();
    let grad = tape::grad_of(&x).unwrap();
    assert_eq!(values(&grad), [3., 12., 27.]);
    let again = tape::backward(&[&y], &[None], false, true).unwrap_err();
    assert!(again.to_string().contains("retain_graph=True"), "{again}");
}

#[test]
fn second_order_gradients() {
    let mut x = Handle::new(array(&[2], &[2., 3.]));
    tape::attach_grad(&mut x, None, GradReq::Write).unwrap();
    modes::set_recording(true);
    let y = op2(&arith::MULTIPLY, &x, &op2(&arith::MULTIPLY, &x, &x));
    let dy = tape::grad(&[&y], &[&x], &[None], true, true, true).unwrap();
    modes::set_recording(false);
    assert_eq!(values(&dy[0]), [12., 27.]);
    tape::backward(&[&dy[0]], &[None], false, true).unwrap();
    assert_eq!(values(&tape::grad_of(&x).unwrap()), [12., 18.]);
}

#[test]
fn a_saved_value_that_was_overwritten_is_an_error() {
    let mut x = Handle::new(array(&[2], &[2., 3.]));
    let mut w = Handle::new(array(&[2], &[5., 6.]));
    tape::attach_grad(&mut x, None, GradReq::Write).unwrap();
    modes::set_recording(true);
    let y = op2(&arith::MULTIPLY, &x, &w);
    modes::set_recording(false);
    assign(&mut w, &[], Input::Scalar(Scalar::Float(0.))).unwrap();
    let error = tape::backward(&[&y], &[None], false, true).unwrap_err();
    assert!(error.to_string().contains("multiply: an array that its gradient needs was modified"), "{error}");
}

#[test]
fn a_long_tape_is_dropped_without_recursion() {
    let mut x = Handle::new(array(&[1], &[1.]));
    tape::attach_grad(&mut x, None, GradReq::Write).unwrap();
    modes::set_recording(true);
    let mut y = (*x).clone();
    for _ in 0..200_000 {
        y = invoke(&arith::ADD, Attrs::NONE, &[(&y).into(), Input::Scalar(Scalar::Int(1))]).unwrap()[0]
            .clone();
    }
    modes::set_recording(false);
    assert_eq!(values(&y), [200_001.]);
    drop(y);
}

#[test]
fn full_spreads_its_operand() {
    let f =
        invoke(&create::FULL, create::full(&[2, 2], DType::F32), &[Input::Scalar(Scalar::Int(7))]).unwrap();
    assert_eq!(values(&f[0]), [7.; 4]);
}

/// An op whose body is broken: a defect of the library, if it ever happens.
static BROKEN: mxnp_core::Op = mxnp_core::Op {
    grad: mxnp_core::op::Grad::Zero,
    ..mxnp_core::Op::new(
        "broken",
        1,
        mxnp_core::infer::same,
        mxnp_core::op::Run::Body(|_, _, x| {
            assert!(x.is_empty(), "this text is nobody's business");
            smallvec::smallvec![]
        }),
    )
};

#[test]
fn a_body_that_panics_is_an_internal_error() {
    let y = invoke(&BROKEN, Attrs::NONE, &[(&array(&[1], &[1.])).into()]).unwrap()[0].clone();
    let error = y.read_into(&mut [0; 4]).unwrap_err();
    assert_eq!(error.kind(), mxnp_core::ErrorKind::Internal);
    let text = error.to_string();
    assert!(text.contains("broken: its body failed") && !text.contains("nobody"), "{text}");
    assert_eq!(values(&op2(&arith::ADD, &array(&[1], &[1.]), &array(&[1], &[2.]))), [3.]);
}

#[test]
fn locally_constant_results_keep_no_chain() {
    let mut x = Handle::new(array(&[1], &[1.5]));
    tape::attach_grad(&mut x, None, GradReq::Write).unwrap();
    modes::set_recording(true);
    let floor = |a: &Array| invoke(&rounding::FLOOR, Attrs::NONE, &[a.into()]).unwrap()[0].clone();
    let mut y = floor(&x);
    for _ in 0..1000 {
        y = op2(&arith::ADD, &y, &floor(&x));
    }
    modes::set_recording(false);
    tape::backward(&[&y], &[None], false, true).unwrap();
    assert_eq!(values(&tape::grad_of(&x).unwrap()), [0.]);
}
