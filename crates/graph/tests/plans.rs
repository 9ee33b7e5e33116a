//! Plans are made once for calls of one structure, and serve no other: what differs in scalars runs by the same plan
//! with its own values, what differs in attributes, layouts, dtypes or in what is still observable does not.

use mxnp_core::attrs::{AttrValue, Attrs};
use mxnp_core::ops::{arith, cast, random, reduce};
use mxnp_core::{DType, Scalar};
use mxnp_graph::{Array, Device, Input, invoke, plans_made, wait_all};

fn array(data: &[f32]) -> Array {
    Array::from_bytes(&[data.len()], DType::F32, Device::CPU, |dst| {
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

fn with_scalar(op: &'static mxnp_core::Op, a: &Array, s: f64) -> Array {
    invoke(op, Attrs::NONE, &[a.into(), Input::Scalar(Scalar::Float(s))]).unwrap()[0].clone()
}

/// One test: the count is the process's, and tests of one file run beside each other.
#[test]
fn a_plan_serves_its_structure_alone() {
    let a = array(&[1., 2., 3.]);
    // Scalars are slots: two equal ones and two different ones are two structures.
    let line = |x: f64, y: f64| values(&with_scalar(&arith::ADD, &with_scalar(&arith::MULTIPLY, &a, x), y));
    for x in [2.0, 3.0, -1.0] {
        line(x, 1.0);
        line(x, x);
    }
    let before = plans_made();
    assert_eq!(line(5., 7.), [12., 17., 22.]);
    assert_eq!(line(5., 5.), [10., 15., 20.]);
    assert_eq!(line(-2., 0.25), [-1.75, -3.75, -5.75]);
    assert_eq!(plans_made(), before, "known structures need no plan");

    // What somebody still holds is stored; the same calls without the holder leave it out.
    for _ in 0..3 {
        let kept = with_scalar(&arith::MULTIPLY, &a, 2.0);
        let sum = with_scalar(&arith::ADD, &kept, 1.0);
        assert_eq!(values(&sum), [3., 5., 7.]);
        assert_eq!(values(&kept), [2., 4., 6.]);
        assert_eq!(
            values(&with_scalar(&arith::ADD, &with_scalar(&arith::MULTIPLY, &a, 2.0), 1.0)),
            [3., 5., 7.]
        );
    }

    // Other lengths, dtypes and attributes.
    for _ in 0..3 {
        let b = array(&[1., 2.]);
        assert_eq!(values(&with_scalar(&arith::ADD, &b, 1.0)), [2., 3.]);
        assert_eq!(values(&with_scalar(&arith::ADD, &a, 1.0)), [2., 3., 4.]);
        for (dtype, want) in [(DType::I32, 2.0), (DType::F64, 2.5)] {
            let b =
                invoke(&cast::ASTYPE, cast::astype(dtype), &[(&with_scalar(&arith::ADD, &a, 0.5)).into()]);
            let b = invoke(&cast::ASTYPE, cast::astype(DType::F32), &[(&b.unwrap()[0]).into()]).unwrap();
            assert_eq!(values(&b[0])[1], want);
        }
        for (keepdims, ndim) in [(false, 0), (true, 1)] {
            let s = invoke(&reduce::SUM, reduce::sum_attrs(&[0], keepdims), &[(&a).into()]).unwrap();
            assert_eq!((values(&s[0]), s[0].ndim()), (vec![6.], ndim));
        }
    }

    // An operand that is the other one too, and one that is not.
    for _ in 0..3 {
        let b = array(&[10., 20., 30.]);
        let add = |x: &Array, y: &Array| invoke(&arith::ADD, Attrs::NONE, &[x.into(), y.into()]).unwrap();
        assert_eq!(values(&add(&a, &a)[0]), [2., 4., 6.]);
        assert_eq!(values(&add(&a, &b)[0]), [11., 22., 33.]);
    }

    // A body that a plan expanded: its constants stay, its temporaries are new each time.
    for k in 0..4 {
        let x = array(&[k as f32, k as f32 + 2.0]);
        let attrs = (reduce::VAR.attrs)("var", vec![]).unwrap();
        assert_eq!(values(&invoke(&reduce::VAR, attrs, &[(&x).into()]).unwrap()[0]), [1.0]);
    }

    // Random calls draw anew by the same plan.
    let draw = || {
        let attrs =
            (random::UNIFORM.attrs)("uniform", vec![("size".into(), AttrValue::Ints(vec![4]))]).unwrap();
        let bounds = [Input::Scalar(Scalar::Float(0.0)), Input::Scalar(Scalar::Float(1.0))];
        values(&invoke(&random::UNIFORM, attrs, &bounds).unwrap()[0])
    };
    let drawn: Vec<Vec<f32>> = (0..4).map(|_| draw()).collect();
    assert!(drawn.windows(2).all(|pair| pair[0] != pair[1]));

    wait_all().unwrap();
    let before = plans_made();
    for _ in 0..50 {
        let mut c = a.clone();
        for _ in 0..100 {
            c = with_scalar(&arith::ADD, &c, 1.0);
        }
        assert_eq!(values(&c), [101., 102., 103.]);
    }
    assert!(plans_made() - before <= 2, "a loop is planned at most twice, not {}", plans_made() - before);
}
