//! Pooling, embedding, activations over an axis: against plain loops, and their gradients against differences.

mod ops_kit;
mod support;

use mxnp_core::attrs::{AttrValue, Attrs};
use mxnp_core::ops::{nn_act, nn_embed, nn_pool};
use mxnp_core::{Bool, DType, Op};
use ops_kit::{Arr, check_gradient, error, run, run_all_ways};
use support::Rng;

fn attrs(op: &'static Op, items: &[(&str, AttrValue)]) -> Attrs {
    (op.attrs)(op.name, items.iter().map(|(k, v)| (k.to_string(), v.clone())).collect()).unwrap()
}
fn ints(i: &[i64]) -> AttrValue {
    AttrValue::Ints(i.to_vec())
}
fn text(s: &str) -> AttrValue {
    AttrValue::Str(s.into())
}
fn float(f: f64) -> AttrValue {
    AttrValue::Float(f)
}
fn close(a: &[f64], b: &[f64], tolerance: f64) {
    assert_eq!(a.len(), b.len());
    for (i, (x, y)) in a.iter().zip(b).enumerate() {
        assert!(x == y || (x - y).abs() <= tolerance * (1.0 + y.abs()), "element {i}: {x} instead of {y}");
    }
}
fn random(shape: &[usize], seed: u64) -> Arr {
    Arr::random(&mut Rng(seed), shape, DType::F64)
}

/// Pools one plane by plain loops: every place is asked whether the window holds it.
fn pool_plainly(
    x: &[f64],
    n: [usize; 2],
    k: [usize; 2],
    s: [usize; 2],
    p: [usize; 2],
    out: [usize; 2],
    kind: &str,
    include: bool,
) -> Vec<f64> {
    let mut y = vec![];
    for (i, j) in (0..out[0]).flat_map(|i| (0..out[1]).map(move |j| (i, j))) {
        let covers = |axis: usize, o: usize, at: usize| {
            let first = o * s[axis];
            first <= at + p[axis] && at + p[axis] < first + k[axis]
        };
        let inside: Vec<f64> = (0..n[0] * n[1])
            .filter(|at| covers(0, i, at / n[1]) && covers(1, j, at % n[1]))
            .map(|at| x[at])
            .collect();
        let length = |axis: usize, o: usize| (o * s[axis] + k[axis]).min(n[axis] + 2 * p[axis]) - o * s[axis];
        let counted = if include { length(0, i) * length(1, j) } else { inside.len() };
        y.push(match kind {
            "max" => inside.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            "sum" => inside.iter().sum(),
            "lp" => inside.iter().map(|v| v * v).sum::<f64>().sqrt(),
            _ => inside.iter().sum::<f64>() / counted as f64,
        });
    }
    y
}

#[test]
fn pooling_equals_plain_loops() {
    let op = &nn_pool::POOLING;
    let mut rng = Rng(1);
    for round in 0..60 {
        let kind = ["max", "avg", "sum", "lp"][round % 4];
        let convention = ["valid", "full"][rng.below(2)];
        let include = rng.one_in(2);
        let k = [2 + rng.below(2), 1 + rng.below(3)];
        let s = [1 + rng.below(2), 1 + rng.below(k[1])];
        let p = [rng.below(k[0]), rng.below(k[1])];
        let n = [5 + rng.below(2), 6];
        let list = |v: [usize; 2]| ints(&v.map(|n| n as i64));
        let a = attrs(
            op,
            &[
                ("kernel", list(k)),
                ("stride", list(s)),
                ("pad", list(p)),
                ("pool_type", text(kind)),
                ("pooling_convention", text(convention)),
                ("count_include_pad", AttrValue::Bool(include)),
            ],
        );
        let x = random(&[2, 3, n[0], n[1]], round as u64);
        let y = run_all_ways(op, a.clone(), std::slice::from_ref(&x), 2);
        let size = |i: usize| {
            let room = n[i] + 2 * p[i] - k[i];
            1 + if convention == "full" { room.div_ceil(s[i]) } else { room / s[i] }
        };
        let out = [size(0), size(1)];
        assert_eq!(y[0].shape(), [2, 3, out[0], out[1]]);
        let plane = n[0] * n[1];
        let expected: Vec<f64> = (0..6)
            .flat_map(|i| pool_plainly(&x.f64()[i * plane..(i + 1) * plane], n, k, s, p, out, kind, include))
            .collect();
        close(&y[0].f64(), &expected, 1e-12);
        if y[0].f64().iter().all(|v| v.is_finite()) {
            check_gradient(op, a, std::slice::from_ref(&x), &[0]);
        }
        if kind == "avg" || kind == "sum" {
            let back = &nn_pool::POOL_SPREAD;
            let b = attrs(
                back,
                &[
                    ("kernel", list(k)),
                    ("stride", list(s)),
                    ("pad", list(p)),
                    ("pool_type", text(kind)),
                    ("global_pool", AttrValue::Bool(false)),
                    ("pooling_convention", text(convention)),
                    ("count_include_pad", AttrValue::Bool(include)),
                    ("shape", ints(&x.shape().iter().map(|&n| n as i64).collect::<Vec<_>>())),
                ],
            );
            check_gradient(back, b, &[y[0].clone()], &[0]);
        }
    }
}

#[test]
fn pooling_is_global_of_every_rank_and_keeps_nan() {
    let op = &nn_pool::POOLING;
    let global = attrs(op, &[("global_pool", AttrValue::Bool(true)), ("pool_type", text("avg"))]);
    let x = random(&[2, 3, 4, 5, 2], 3);
    let y = run_all_ways(op, global.clone(), std::slice::from_ref(&x), 4);
    assert_eq!(y[0].shape(), [2, 3, 1, 1, 1]);
    let mean = x.f64()[..40].iter().sum::<f64>() / 40.0;
    close(&y[0].f64()[..1], &[mean], 1e-12);
    check_gradient(op, global, &[random(&[2, 1, 4], 5)], &[0]);
    let two = attrs(op, &[("kernel", ints(&[2])), ("stride", ints(&[2]))]);
    let y = run(op, two, &[Arr::new(&[1, 1, 6], &[1.0, f64::NAN, f64::NAN, 5.0, 2.0, f64::NEG_INFINITY])]);
    assert!(y[0].f64()[0].is_nan() && y[0].f64()[1].is_nan() && y[0].f64()[2] == 2.0);
    assert_eq!(y[1].get::<i64>(), [1, 2, 4]);
    let x = || [random(&[1, 1, 4, 4], 1)];
    let bad = |items: &[(&str, AttrValue)]| error(op, attrs(op, items), &x());
    assert!(bad(&[]).contains("missing required argument 'kernel'"));
    assert!(bad(&[("kernel", ints(&[5, 2]))]).contains("larger than the padded data"));
    assert!(bad(&[("kernel", ints(&[2, 2])), ("pad", ints(&[2, 0]))]).contains("must be below kernel"));
    assert!(bad(&[("kernel", ints(&[2])),]).contains("kernel must have 2 entries"));
    assert!(
        bad(&[("kernel", ints(&[2, 2])), ("pool_type", text("min"))]).contains("'max', 'avg', 'sum' or 'lp'")
    );
}

#[test]
fn embedding_takes_rows_and_refuses_others() {
    let op = &nn_embed::EMBEDDING;
    let w = random(&[4, 3], 1);
    let i = Arr::new(&[2, 2], &[3f32, 0.0, 1.0, 3.0]);
    let y = run_all_ways(op, attrs(op, &[]), &[i.clone(), w.clone()], 2);
    assert_eq!((y[0].shape(), &y[0].f64()[..3]), (&[2, 2, 3][..], &w.f64()[9..]));
    check_gradient(op, attrs(op, &[]), &[i, w.clone()], &[1]);
    let e = error(op, attrs(op, &[]), &[Arr::new(&[1], &[4i64]), w.clone()]);
    assert_eq!(e, "embedding: index 4 is out of bounds for axis 0 with size 4");
    let e = error(op, attrs(op, &[]), &[Arr::new(&[1], &[-1i64]), w.clone()]);
    assert_eq!(e, "embedding: index -1 is out of bounds for axis 0 with size 4");
    let e = error(op, attrs(op, &[("input_dim", AttrValue::Int(5))]), &[Arr::new(&[1], &[0i64]), w]);
    assert!(e.contains("input_dim is 5, but the weight has shape (4, 3)"), "{e}");
}

#[test]
fn softmax_family() {
    let x = random(&[3, 5, 2], 1);
    for (axis, temperature) in [(-1, 1.0), (1, 2.0), (0, 0.5)] {
        for op in [&nn_act::SOFTMAX, &nn_act::SOFTMIN, &nn_act::LOG_SOFTMAX] {
            let a = attrs(op, &[("axis", AttrValue::Int(axis)), ("temperature", float(temperature))]);
            let y = run_all_ways(op, a.clone(), std::slice::from_ref(&x), 3);
            let n = if axis == -1 {
                2
            } else if axis == 1 {
                5
            } else {
                3
            };
            let total: f64 =
                y[0].f64().iter().map(|v| if op.name == "log_softmax" { v.exp() } else { *v }).sum();
            assert!((total - (30 / n) as f64).abs() < 1e-12);
            check_gradient(op, a, std::slice::from_ref(&x), &[0]);
        }
    }
    let big = Arr::new(&[3], &[1000f32, 1001.0, 1002.0]);
    let y = run(&nn_act::SOFTMAX, attrs(&nn_act::SOFTMAX, &[]), std::slice::from_ref(&big));
    close(&y[0].f64(), &[0.09003057, 0.24472847, 0.66524096], 1e-6);
    let y = run(&nn_act::LOG_SOFTMAX, attrs(&nn_act::LOG_SOFTMAX, &[]), &[big]);
    close(&y[0].f64(), &[-2.407606, -1.407606, -0.407606], 1e-6);
    let nan = run(&nn_act::SOFTMAX, attrs(&nn_act::SOFTMAX, &[]), &[Arr::new(&[2], &[1.0, f64::NAN])]);
    assert!(nan[0].f64().iter().all(|v| v.is_nan()));
    let length = attrs(&nn_act::SOFTMAX, &[("use_length", AttrValue::Bool(true))]);
    let ins = [random(&[2, 3], 2), Arr::new(&[2], &[2f32, 0.0])];
    let y = run_all_ways(&nn_act::SOFTMAX, length.clone(), &ins, 4)[0].f64();
    assert!((y[0] + y[1] - 1.0).abs() < 1e-12 && y[2..] == [0.0; 4]);
    check_gradient(&nn_act::SOFTMAX, length, &ins, &[0]);
    let half =
        run(&nn_act::SOFTMAX, attrs(&nn_act::SOFTMAX, &[]), &[Arr::new(&[2], &[1.0, 1.0]).cast(DType::BF16)]);
    assert_eq!((half[0].dtype, half[0].f64()), (DType::BF16, vec![0.5, 0.5]));
    let zero = attrs(&nn_act::SOFTMAX, &[("temperature", float(0.0))]);
    assert!(error(&nn_act::SOFTMAX, zero, std::slice::from_ref(&x)).contains("temperature must be positive"));
    let far = attrs(&nn_act::SOFTMAX, &[("axis", AttrValue::Int(3))]);
    assert_eq!(
        error(&nn_act::SOFTMAX, far, &[x]),
        "softmax: axis 3 is out of bounds for array of dimension 3"
    );
}

#[test]
fn masked_softmaxes() {
    let x = random(&[2, 3], 1);
    let mask = Arr::new(&[2, 3], &[true, false, true, false, false, false].map(Bool::new));
    let soft = &nn_act::MASKED_SOFTMAX;
    let y = run(soft, attrs(soft, &[]), &[x.clone(), mask.clone()])[0].f64();
    assert!((y[0] + y[2] - 1.0).abs() < 1e-12 && y[1] == 0.0 && y[3..] == [0.0; 3]);
    check_gradient(soft, attrs(soft, &[("temperature", float(2.0))]), &[x.clone(), mask], &[0]);
    let log = &nn_act::MASKED_LOG_SOFTMAX;
    let mask = Arr::new(&[1, 3], &[true, false, true].map(Bool::new));
    let y = run(log, attrs(log, &[]), &[x.clone(), mask.clone()])[0].f64();
    assert!(y[1] == f64::NEG_INFINITY && (y[0].exp() + y[2].exp() - 1.0).abs() < 1e-12);
}

#[test]
fn leaky_relus() {
    let op = &nn_act::LEAKY_RELU;
    let x = Arr::new(&[2, 2], &[-2.0, 3.0, 0.5, -0.5]);
    let with = |kind: &str| attrs(op, &[("act_type", text(kind))]);
    close(&run(op, attrs(op, &[]), std::slice::from_ref(&x))[0].f64(), &[-0.5, 3.0, 0.5, -0.125], 1e-12);
    close(
        &run(op, with("elu"), std::slice::from_ref(&x))[0].f64()[..1],
        &[0.25 * ((-2f64).exp() - 1.0)],
        1e-12,
    );
    close(
        &run(op, with("selu"), std::slice::from_ref(&x))[0].f64()[..2],
        &[-1.520166468595695, 3.152102962066441],
        1e-12,
    );
    close(&run(op, with("rrelu"), std::slice::from_ref(&x))[0].f64()[..1], &[-0.459], 1e-12);
    for kind in ["leaky", "elu", "selu", "gelu", "rrelu"] {
        check_gradient(op, with(kind), std::slice::from_ref(&x), &[0]);
    }
    let gamma = Arr::new(&[2], &[0.1, 0.2]);
    close(&run(op, with("prelu"), &[x.clone(), gamma.clone()])[0].f64(), &[-0.2, 3.0, 0.5, -0.1], 1e-12);
    check_gradient(op, with("prelu"), &[x.clone(), gamma], &[0, 1]);
    check_gradient(op, with("prelu"), &[random(&[2, 3, 2], 1), Arr::new(&[1], &[0.3])], &[0, 1]);
    assert!(error(op, with("prelu"), &[x.clone(), Arr::new(&[3], &[0.0; 3])]).contains("got (3,)"));
    assert!(error(op, with("relu6"), &[x]).contains("act_type must be"));
}
