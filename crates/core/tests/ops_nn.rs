//! Products, layers and random draws: against plain loops, and their gradients against differences.

mod ops_kit;
mod support;

use mxnp_core::attrs::{AttrValue, Attrs};
use mxnp_core::op::Draw;
use mxnp_core::ops::{linalg, nn_conv, nn_dense, nn_norm, random};
use mxnp_core::{DType, Op};
use ops_kit::{Arr, How, check_gradient, check_gradient_as, error, run, run_all_ways, run_as};
use support::Rng;

fn attrs(op: &'static Op, items: &[(&str, AttrValue)]) -> Attrs {
    (op.attrs)(op.name, items.iter().map(|(k, v)| (k.to_string(), v.clone())).collect()).unwrap()
}
fn int(i: i64) -> AttrValue {
    AttrValue::Int(i)
}
fn ints(i: &[i64]) -> AttrValue {
    AttrValue::Ints(i.to_vec())
}
fn float(f: f64) -> AttrValue {
    AttrValue::Float(f)
}
fn yes(b: bool) -> AttrValue {
    AttrValue::Bool(b)
}

fn close(a: &[f64], b: &[f64], tolerance: f64) {
    assert_eq!(a.len(), b.len());
    for (i, (x, y)) in a.iter().zip(b).enumerate() {
        assert!((x - y).abs() <= tolerance * (1.0 + y.abs()), "element {i}: {x} instead of {y}");
    }
}

/// A product of matrices of float64 values.
fn multiply(x: &[f64], y: &[f64], m: usize, k: usize, n: usize) -> Vec<f64> {
    let mut out = vec![0.0; m * n];
    for i in 0..m {
        for j in 0..n {
            out[i * n + j] = (0..k).map(|l| x[i * k + l] * y[l * n + j]).sum();
        }
    }
    out
}

#[test]
fn matmul_of_every_dtype_and_size() {
    let mut rng = Rng(1);
    for (m, k, n) in [(1, 1, 1), (3, 4, 5), (0, 2, 3), (2, 0, 3), (70, 33, 130), (300, 64, 200), (17, 900, 5)]
    {
        for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16, DType::I32, DType::U8, DType::C64] {
            let (x, y) = (Arr::random(&mut rng, &[m, k], dtype), Arr::random(&mut rng, &[k, n], dtype));
            let z = run_all_ways(&linalg::MATMUL, Attrs::NONE, &[x.clone(), y.clone()], 2);
            assert_eq!((z[0].shape(), z[0].dtype), (&[m, n][..], dtype));
            let expected = multiply(&x.f64(), &y.f64(), m, k, n);
            if dtype == DType::U8 {
                let wrapped: Vec<f64> = expected.iter().map(|v| v.rem_euclid(256.0)).collect();
                close(&z[0].f64(), &wrapped, 0.0);
            } else {
                let tolerance = match dtype {
                    DType::F16 => 1e-3,
                    DType::BF16 => 1e-2,
                    DType::F64 => 1e-12,
                    _ => 1e-4,
                };
                close(&z[0].f64(), &expected, tolerance);
            }
        }
    }
}

#[test]
fn matmul_broadcasts_and_takes_vectors() {
    let mut rng = Rng(2);
    let cases: &[(&[usize], &[usize], &[usize])] = &[
        (&[3], &[3], &[]),
        (&[3], &[3, 2], &[2]),
        (&[2, 3], &[3], &[2]),
        (&[5, 2, 3], &[3, 4], &[5, 2, 4]),
        (&[2, 3], &[5, 3, 4], &[5, 2, 4]),
        (&[4, 1, 2, 3], &[5, 3, 2], &[4, 5, 2, 2]),
        (&[4, 2, 3], &[3], &[4, 2]),
        (&[3], &[4, 3, 2], &[4, 2]),
    ];
    for (x, y, out) in cases {
        let ins = [Arr::random(&mut rng, x, DType::F64), Arr::random(&mut rng, y, DType::F64)];
        let z = run_all_ways(&linalg::MATMUL, Attrs::NONE, &ins, 3);
        assert_eq!(z[0].shape(), *out);
        check_gradient(&linalg::MATMUL, Attrs::NONE, &ins, &[0, 1]);
    }
    let (x, y) =
        (Arr::random(&mut rng, &[300, 4, 3], DType::F32), Arr::random(&mut rng, &[300, 3, 2], DType::F32));
    let z = run_all_ways(&linalg::MATMUL, Attrs::NONE, &[x.clone(), y.clone()], 4)[0].f64();
    for b in [0, 7, 299] {
        close(&z[b * 8..b * 8 + 8], &multiply(&x.f64()[b * 12..], &y.f64()[b * 6..], 4, 3, 2), 1e-5);
    }
    let x = |s: &[usize]| Arr::random(&mut Rng(1), s, DType::F32);
    let e = error(&linalg::MATMUL, Attrs::NONE, &[x(&[2, 3]), x(&[2, 3])]);
    assert!(e.contains("(size 2 is different from 3)"), "{e}");
    assert!(
        error(&linalg::MATMUL, Attrs::NONE, &[x(&[]), x(&[2])])
            .contains("Input operand 0 does not have enough")
    );
}

#[test]
fn dot_has_numpys_rules() {
    let mut rng = Rng(3);
    let cases: &[(&[usize], &[usize], &[usize])] = &[
        (&[], &[2, 3], &[2, 3]),
        (&[3], &[3], &[]),
        (&[2, 3], &[3, 4], &[2, 4]),
        (&[2, 5, 3], &[3], &[2, 5]),
        (&[2, 3], &[4, 3, 2], &[2, 4, 2]),
    ];
    for (x, y, out) in cases {
        let ins = [Arr::random(&mut rng, x, DType::F64), Arr::random(&mut rng, y, DType::F64)];
        assert_eq!(run(&linalg::DOT, Attrs::NONE, &ins)[0].shape(), *out);
        check_gradient(&linalg::DOT, Attrs::NONE, &ins, &[0, 1]);
    }
    let x = |s: &[usize]| Arr::random(&mut Rng(1), s, DType::F32);
    let e = error(&linalg::DOT, Attrs::NONE, &[x(&[2, 3]), x(&[2, 3])]);
    assert_eq!(e, "dot: shapes (2, 3) and (2, 3) not aligned: 3 (dim 1) != 2 (dim 0)");
}

#[test]
fn fully_connected_and_its_checks() {
    let fc = &nn_dense::FULLY_CONNECTED;
    let x = |s: &[usize], seed| Arr::random(&mut Rng(seed), s, DType::F64);
    let ins = [x(&[4, 3, 2], 1), x(&[5, 6], 2), x(&[5], 3)];
    let y = run(fc, attrs(fc, &[]), &ins);
    let mut expected = multiply(&ins[0].f64(), &ins[1].f64(), 4, 6, 0);
    for i in 0..4 {
        for j in 0..5 {
            let dot: f64 = (0..6).map(|k| ins[0].f64()[i * 6 + k] * ins[1].f64()[j * 6 + k]).sum();
            expected.push(dot + ins[2].f64()[j]);
        }
    }
    close(&y[0].f64(), &expected, 1e-12);
    check_gradient(fc, attrs(fc, &[]), &ins, &[0, 1, 2]);
    let flat = attrs(fc, &[("flatten", yes(false)), ("no_bias", yes(true)), ("num_hidden", int(5))]);
    let ins = [x(&[4, 3, 2], 1), x(&[5, 2], 2)];
    assert_eq!(run(fc, flat.clone(), &ins)[0].shape(), [4, 3, 5]);
    check_gradient(fc, flat.clone(), &ins, &[0, 1]);
    let e = error(fc, attrs(fc, &[]), &[x(&[4, 3], 1), x(&[5, 6], 2), x(&[5], 3)]);
    assert_eq!(
        e,
        "fully_connected: data of shape (4, 3) gives 3 inputs (flatten=true), but the weight has shape (5, 6)"
    );
    assert!(error(fc, attrs(fc, &[]), &[x(&[4, 6], 1), x(&[5, 6], 2)]).contains("takes 3 arrays, got 2"));
    assert!(error(fc, flat, &[x(&[4, 2], 1), x(&[6, 2], 2)]).contains("num_hidden is 5"));
}

#[test]
fn dropout_scales_what_it_keeps() {
    let op = &nn_dense::DROPOUT;
    let x = Arr::f64s(&[200, 500], &vec![1.0; 100_000], DType::F32);
    let train = attrs(op, &[("p", float(0.25)), ("training", yes(true))]);
    let y = run_all_ways(op, train.clone(), std::slice::from_ref(&x), 5);
    let kept = y[0].f64().iter().filter(|&&v| v != 0.0).count();
    assert!((74_000..76_000).contains(&kept), "{kept}");
    assert!(y[0].f64().iter().all(|&v| v == 0.0 || (v - 4.0 / 3.0).abs() < 1e-6));
    let how = How { hidden: false, draw: Draw { seed: 5, counter: 5 }, ..How::default() };
    assert_eq!(run_as(op, &train, std::slice::from_ref(&x), &how).unwrap()[0].f64(), y[0].f64());
    let shared = attrs(op, &[("p", float(0.5)), ("training", yes(true)), ("axes", ints(&[1]))]);
    let z = run_all_ways(op, shared, std::slice::from_ref(&x), 6)[0].f64();
    assert!(z.chunks(500).all(|row| row.iter().all(|v| *v == row[0])));
    assert_eq!(run(op, attrs(op, &[]), std::slice::from_ref(&x))[0].f64(), x.f64());
    assert!(
        run(
            op,
            attrs(op, &[("p", float(1.0)), ("mode", AttrValue::Str("always".into()))]),
            std::slice::from_ref(&x)
        )[0]
        .f64()
        .iter()
        .all(|&v| v == 0.0)
    );
    check_gradient(op, train, &[Arr::random(&mut Rng(1), &[4, 5], DType::F64)], &[0]);
    assert!(error(op, attrs(op, &[("p", float(1.5))]), &[x]).contains("from 0 to 1, got 1.5"));
}

/// A convolution by plain loops over two axes.
fn convolve(
    x: &Arr,
    w: &Arr,
    stride: [usize; 2],
    pad: [usize; 2],
    dilate: [usize; 2],
    groups: usize,
) -> (Vec<usize>, Vec<f64>) {
    let (xs, ws) = (x.shape().to_vec(), w.shape().to_vec());
    let (xv, wv) = (x.f64(), w.f64());
    let size = |i: usize| (xs[2 + i] + 2 * pad[i] - (ws[2 + i] - 1) * dilate[i] - 1) / stride[i] + 1;
    let (oh, ow) = (size(0), size(1));
    let (depth, width) = (ws[1], ws[0] / groups);
    let mut out = vec![];
    for n in 0..xs[0] {
        for f in 0..ws[0] {
            for y in 0..oh {
                for z in 0..ow {
                    let mut sum = 0.0;
                    for c in 0..depth {
                        for (a, b) in (0..ws[2]).flat_map(|a| (0..ws[3]).map(move |b| (a, b))) {
                            let i = (y * stride[0] + a * dilate[0]).wrapping_sub(pad[0]);
                            let j = (z * stride[1] + b * dilate[1]).wrapping_sub(pad[1]);
                            if i < xs[2] && j < xs[3] {
                                let channel = f / width * depth + c;
                                sum += xv[((n * xs[1] + channel) * xs[2] + i) * xs[3] + j]
                                    * wv[((f * depth + c) * ws[2] + a) * ws[3] + b];
                            }
                        }
                    }
                    out.push(sum);
                }
            }
        }
    }
    (vec![xs[0], ws[0], oh, ow], out)
}

#[test]
fn convolutions_equal_plain_loops() {
    let op = &nn_conv::CONVOLUTION;
    let mut rng = Rng(7);
    for _ in 0..25 {
        let groups = 1 + rng.below(2);
        let (depth, width) = (1 + rng.below(3), 1 + rng.below(3));
        let k = [1 + rng.below(3), 1 + rng.below(3)];
        let stride = [1 + rng.below(2), 1 + rng.below(3)];
        let pad = [rng.below(3), rng.below(2)];
        let dilate = [1 + rng.below(2), 1 + rng.below(2)];
        let x = Arr::random(&mut rng, &[2, groups * depth, 6, 7], DType::F64);
        let w = Arr::random(&mut rng, &[groups * width, depth, k[0], k[1]], DType::F64);
        let list = |v: [usize; 2]| ints(&v.map(|n| n as i64));
        let a = attrs(
            op,
            &[
                ("kernel", list(k)),
                ("stride", list(stride)),
                ("pad", list(pad)),
                ("dilate", list(dilate)),
                ("num_group", int(groups as i64)),
                ("no_bias", yes(true)),
            ],
        );
        let (shape, expected) = convolve(&x, &w, stride, pad, dilate, groups);
        let y = run_all_ways(op, a.clone(), &[x.clone(), w.clone()], 8);
        assert_eq!(y[0].shape(), shape);
        close(&y[0].f64(), &expected, 1e-10);
        check_gradient(op, a, &[x.clone(), w.clone()], &[0, 1]);
        // The adjoints are linear in both operands; their own gradients give the second order.
        let adjoint = |of: &Arr, op: &'static Op| {
            attrs(
                op,
                &[
                    ("stride", list(stride)),
                    ("pad", list(pad)),
                    ("dilate", list(dilate)),
                    ("num_group", int(groups as i64)),
                    ("shape", ints(&of.shape().iter().map(|&n| n as i64).collect::<Vec<_>>())),
                ],
            )
        };
        let (data, weight) = (&nn_conv::CONV_DATA_GRAD, &nn_conv::CONV_WEIGHT_GRAD);
        check_gradient(data, adjoint(&x, data), &[y[0].clone(), w.clone()], &[0, 1]);
        check_gradient(weight, adjoint(&w, weight), &[x.clone(), y[0].clone()], &[0, 1]);
        run_all_ways(data, adjoint(&x, data), &[y[0].cast(DType::F32), w.cast(DType::F32)], 9);
        run_all_ways(weight, adjoint(&w, weight), &[x.cast(DType::F32), y[0].cast(DType::F32)], 9);
    }
}

#[test]
fn big_convolutions_are_cut_into_blocks() {
    let op = &nn_conv::CONVOLUTION;
    let mut rng = Rng(8);
    let a = attrs(op, &[("kernel", ints(&[3, 3])), ("pad", ints(&[1, 1]))]);
    let x = Arr::random(&mut rng, &[3, 40, 40, 41], DType::F32);
    let (w, b) =
        (Arr::random(&mut rng, &[24, 40, 3, 3], DType::F32), Arr::random(&mut rng, &[24], DType::F32));
    let y = run_all_ways(op, a, &[x.clone(), w.clone(), b.clone()], 10);
    let (_, mut expected) = convolve(&x, &w, [1, 1], [1, 1], [1, 1], 1);
    expected.iter_mut().enumerate().for_each(|(i, v)| *v += b.f64()[i / (40 * 41) % 24]);
    close(&y[0].f64(), &expected, 2e-4);
    let half = run(op, attrs(op, &[]), &[x.cast(DType::F16), w.cast(DType::F16), b.cast(DType::F16)]);
    assert_eq!(half[0].dtype, DType::F16);
    for (op, of, ins) in [
        (&nn_conv::CONV_DATA_GRAD, &x, [y[0].clone(), w.clone()]),
        (&nn_conv::CONV_WEIGHT_GRAD, &w, [x.clone(), y[0].clone()]),
    ] {
        let shape = ints(&of.shape().iter().map(|&n| n as i64).collect::<Vec<_>>());
        let a = attrs(
            op,
            &[
                ("stride", ints(&[])),
                ("dilate", ints(&[])),
                ("pad", ints(&[1, 1])),
                ("num_group", int(1)),
                ("shape", shape),
            ],
        );
        run_all_ways(op, a, &ins, 11);
    }
}

#[test]
fn convolutions_of_one_and_three_axes_and_their_inverse() {
    let op = &nn_conv::CONVOLUTION;
    let x = |s: &[usize], seed| Arr::random(&mut Rng(seed), s, DType::F64);
    let one = [x(&[2, 3, 8], 1), x(&[4, 3, 3], 2), x(&[4], 3)];
    assert_eq!(run(op, attrs(op, &[("stride", int(2))]), &one)[0].shape(), [2, 4, 3]);
    check_gradient(op, attrs(op, &[("stride", int(2))]), &one, &[0, 1, 2]);
    let three = [x(&[1, 2, 3, 4, 5], 1), x(&[2, 2, 2, 2, 2], 2), x(&[2], 3)];
    check_gradient(op, attrs(op, &[("pad", ints(&[1, 0, 1]))]), &three, &[0, 1, 2]);
    let de = &nn_conv::DECONVOLUTION;
    let ins = [x(&[2, 4, 3, 3], 1), x(&[4, 2, 3, 2], 2), x(&[2], 3)];
    let a = attrs(de, &[("stride", ints(&[2, 2])), ("adj", ints(&[1, 0])), ("no_bias", yes(false))]);
    assert_eq!(run(de, a.clone(), &ins)[0].shape(), [2, 2, 8, 6]);
    check_gradient(de, a, &ins, &[0, 1, 2]);
}

#[test]
fn convolutions_refuse_what_does_not_fit() {
    let op = &nn_conv::CONVOLUTION;
    let x = |s: &[usize]| Arr::random(&mut Rng(1), s, DType::F32);
    let bad = |items: &[(&str, AttrValue)], xs: &[usize], ws: &[usize]| {
        let mut items = items.to_vec();
        items.push(("no_bias", yes(true)));
        error(op, attrs(op, &items), &[x(xs), x(ws)])
    };
    assert!(
        bad(&[], &[1, 3, 5, 5], &[2, 4, 3, 3])
            .contains("the weight must have shape (2, 3, ...), got (2, 4, 3, 3)")
    );
    assert!(
        bad(&[], &[1, 3, 2, 5], &[2, 3, 3, 3])
            .contains("reaches over 3 places along axis 2, but the data has 2")
    );
    assert!(
        bad(&[("stride", ints(&[0, 1]))], &[1, 3, 5, 5], &[2, 3, 3, 3]).contains("stride must be at least 1")
    );
    assert!(bad(&[("pad", ints(&[1]))], &[1, 3, 5, 5], &[2, 3, 3, 3]).contains("pad must have 2 entries"));
    assert!(bad(&[("kernel", ints(&[5, 5]))], &[1, 3, 5, 5], &[2, 3, 3, 3]).contains("kernel is [5, 5]"));
    assert!(
        bad(&[("num_group", int(2))], &[1, 3, 5, 5], &[2, 3, 3, 3]).contains("num_group=2 must divide 3")
    );
    assert!(
        bad(&[("layout", AttrValue::Str("NHWC".into()))], &[1, 3, 5, 5], &[2, 3, 3, 3])
            .contains("hint: transpose")
    );
    assert!(bad(&[], &[3, 5], &[2, 3]).contains("3 to 5 axes"));
}

#[test]
fn normalisations_and_all_their_orders() {
    let x = |s: &[usize], seed| Arr::random(&mut Rng(seed), s, DType::F64);
    let n = &nn_norm::NORMALIZE;
    for axes in [&[1][..], &[0], &[0, 2], &[0, 1, 2]] {
        let a = attrs(n, &[("axes", ints(axes)), ("eps", float(1e-3))]);
        run_all_ways(n, a.clone(), &[x(&[3, 4, 5], 1)], 12);
        check_gradient(n, a, &[x(&[3, 4, 5], 1)], &[0]);
    }
    let far = Arr::f64s(&[1, 4], &[10000.0, 10001.0, 10002.0, 10003.0], DType::F32);
    let y = run(n, attrs(n, &[("axes", ints(&[1])), ("eps", float(0.0))]), &[far]);
    close(&y[0].f64(), &[-1.3416407, -0.4472136, 0.4472136, 1.3416407], 1e-6);
    let layer = &nn_norm::LAYER_NORM;
    let ins = [x(&[3, 4], 1), x(&[4], 2), x(&[4], 3)];
    check_gradient(layer, attrs(layer, &[]), &ins, &[0, 1, 2]);
    let first = attrs(layer, &[("axis", int(0))]);
    check_gradient(layer, first, &[x(&[3, 4], 1), x(&[3], 2), x(&[3], 3)], &[0, 1, 2]);
    let four = [x(&[2, 4, 3, 3], 1), x(&[4], 2), x(&[4], 3)];
    let group = &nn_norm::GROUP_NORM;
    check_gradient(group, attrs(group, &[("num_groups", int(2))]), &four, &[0, 1, 2]);
    let instance = &nn_norm::INSTANCE_NORM;
    check_gradient(instance, attrs(instance, &[]), &four, &[0, 1, 2]);
    let half = [ins[0].cast(DType::F16), ins[1].clone(), ins[2].clone()];
    assert_eq!(run(layer, attrs(layer, &[]), &half)[0].dtype, DType::F16);
    assert!(
        error(group, attrs(group, &[("num_groups", int(3))]), &four).contains("num_groups=3 must divide 4")
    );
    assert!(
        error(layer, attrs(layer, &[]), &[x(&[3, 4], 1), x(&[3], 1), x(&[4], 1)])
            .contains("gamma must have shape (4,)")
    );
}

#[test]
fn batch_norm_updates_and_differentiates() {
    let op = &nn_norm::BATCH_NORM;
    let x = |s: &[usize], seed| Arr::random(&mut Rng(seed), s, DType::F64);
    let ins = || {
        let positive: Vec<f64> = x(&[4], 5).f64().iter().map(|v| v.abs() + 0.5).collect();
        [x(&[5, 4, 3, 3], 1), x(&[4], 2), x(&[4], 3), x(&[4], 4), Arr::new(&[4], &positive)]
    };
    for fix in [false, true] {
        for training in [true, false] {
            let a = attrs(op, &[("training", yes(training)), ("fix_gamma", yes(fix))]);
            check_gradient(op, a.clone(), &ins(), if fix { &[0, 2] } else { &[0, 1, 2] });
            let stats = run(op, a.clone(), &ins());
            let grad = &nn_norm::BATCH_NORM_GRAD;
            let back =
                [x(&[5, 4, 3, 3], 6), ins()[0].clone(), ins()[1].clone(), stats[1].clone(), stats[2].clone()];
            if training {
                // Differences move the statistics with x; `normalize` stands for them in the rule.
                check_second_order(a.clone(), &back, if fix { &[0, 1] } else { &[0, 1, 2] });
            } else {
                let wrt: &[usize] = if fix { &[0] } else { &[0, 1, 2] };
                check_gradient(grad, a, &back, wrt);
            }
        }
    }
    let a = attrs(op, &[("training", yes(true)), ("momentum", float(0.75)), ("fix_gamma", yes(false))]);
    let all = ins();
    let before = [all[3].f64(), all[4].f64()];
    run(op, a, &all);
    for c in 0..4 {
        let values: Vec<f64> =
            (0..5).flat_map(|n| (0..9).map(move |i| (n * 4 + c) * 9 + i)).map(|i| all[0].f64()[i]).collect();
        let mean = values.iter().sum::<f64>() / 45.0;
        let var = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / 45.0;
        close(
            &[all[3].f64()[c], all[4].f64()[c]],
            &[0.75 * before[0][c] + 0.25 * mean, 0.75 * before[1][c] + 0.25 * var],
            1e-12,
        );
    }
    let last = attrs(op, &[("training", yes(true)), ("axis", int(-1)), ("fix_gamma", yes(false))]);
    check_gradient(
        op,
        last,
        &[x(&[6, 4], 1), x(&[4], 2), x(&[4], 3), x(&[4], 4), Arr::new(&[4], &[1.0; 4])],
        &[0, 1, 2],
    );
    let big = [
        x(&[20, 3, 50, 50], 1).cast(DType::F32),
        x(&[3], 2),
        x(&[3], 3),
        x(&[3], 4),
        Arr::new(&[3], &[1.0; 3]),
    ];
    run_all_ways(op, attrs(op, &[("training", yes(true))]), &big, 13);
    assert!(
        error(op, attrs(op, &[]), &[x(&[5, 3], 1), x(&[4], 2), x(&[3], 3), x(&[3], 4), x(&[3], 5)])
            .contains("gamma must have shape (3,)")
    );
}

/// As `check_gradient` for `batch_norm_grad` in training, where mean and deviation follow x.
fn check_second_order(a: Attrs, back: &[Arr], wrt: &[usize]) {
    let grad = &nn_norm::BATCH_NORM_GRAD;
    let mut rng = Rng(9);
    let forward = |ins: &[Arr]| {
        let norm = [ins[1].clone(), ins[2].clone(), ins[2].clone(), ins[2].clone(), ins[2].clone()]
            .map(|x| x.cast(DType::F64));
        let stats = run(&nn_norm::BATCH_NORM, a.clone(), &norm);
        run(
            grad,
            a.clone(),
            &[ins[0].clone(), ins[1].clone(), ins[2].clone(), stats[1].clone(), stats[2].clone()],
        )
    };
    let outs = forward(back);
    let heads: Vec<Arr> = outs.iter().map(|y| Arr::random(&mut rng, y.shape(), DType::F64)).collect();
    let given: Vec<Option<Arr>> = heads.iter().cloned().map(Some).collect();
    let grads = ops_kit::gradients(grad, &a, back, &outs, &given, 0b111);
    let loss = |outs: &[Arr]| -> f64 {
        outs.iter().zip(&heads).flat_map(|(y, h)| y.f64().into_iter().zip(h.f64())).map(|(y, h)| y * h).sum()
    };
    for &i in wrt {
        let direction = Arr::random(&mut rng, back[i].shape(), DType::F64).f64();
        let moved = |sign: f64| {
            let values: Vec<f64> =
                back[i].f64().iter().zip(&direction).map(|(x, d)| x + sign * 1e-6 * d).collect();
            let mut all = back.to_vec();
            all[i] = Arr::new(back[i].shape(), &values);
            loss(&forward(&all))
        };
        let numeric = (moved(1.0) - moved(-1.0)) / 2e-6;
        let exact: f64 = grads[i].as_ref().unwrap().f64().iter().zip(&direction).map(|(g, d)| g * d).sum();
        assert!(
            (numeric - exact).abs() < 1e-5 * (1.0 + numeric.abs()),
            "input {i}: rule {exact}, differences {numeric}"
        );
    }
}

#[test]
fn draws_have_their_distributions() {
    let with = |op: &'static Op, size: &[i64], items: &[(&str, AttrValue)]| {
        let mut items = items.to_vec();
        items.push(("size", ints(size)));
        attrs(op, &items)
    };
    let moments = |x: &[f64]| {
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        (mean, x.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / x.len() as f64)
    };
    for dtype in ["float32", "float64", "float16", "bfloat16"] {
        let d = [("dtype", AttrValue::Str(dtype.into()))];
        let u = run_all_ways(
            &random::UNIFORM,
            with(&random::UNIFORM, &[300, 400], &d),
            &[Arr::scalar(-1.0), Arr::scalar(3.0)],
            14,
        )[0]
        .f64();
        let (mean, var) = moments(&u);
        assert!(
            u.iter().all(|v| (-1.0..3.0).contains(v))
                && (mean - 1.0).abs() < 0.02
                && (var - 16.0 / 12.0).abs() < 0.02
        );
        let n = run_all_ways(
            &random::NORMAL,
            with(&random::NORMAL, &[300, 400], &d),
            &[Arr::scalar(2.0), Arr::scalar(0.5)],
            15,
        )[0]
        .f64();
        let (mean, var) = moments(&n);
        assert!((mean - 2.0).abs() < 0.02 && (var - 0.25).abs() < 0.02, "{mean} {var}");
        let fourth = n.iter().map(|v| ((v - 2.0) / 0.5).powi(4)).sum::<f64>() / n.len() as f64;
        assert!((fourth - 3.0).abs() < 0.15, "{fourth}");
        let e = run_all_ways(
            &random::EXPONENTIAL,
            with(&random::EXPONENTIAL, &[300, 400], &d),
            &[Arr::scalar(2.0)],
            16,
        )[0]
        .f64();
        let (mean, var) = moments(&e);
        assert!((mean - 2.0).abs() < 0.05 && (var - 4.0).abs() < 0.2, "{mean} {var}");
    }
    let b =
        run_all_ways(&random::BERNOULLI, with(&random::BERNOULLI, &[100_000], &[]), &[Arr::scalar(0.3)], 17);
    let (mean, _) = moments(&b[0].f64());
    assert!((mean - 0.3).abs() < 0.01 && b[0].dtype == DType::F32);
    let whole = |v: i64| Arr { scalar: Some(mxnp_core::Scalar::Int(i128::from(v))), ..Arr::new(&[], &[v]) };
    let r =
        run_all_ways(&random::RANDINT, with(&random::RANDINT, &[60_000], &[]), &[whole(-3), whole(3)], 18)[0]
            .get::<i64>();
    assert!((-3..3).all(|v| (r.iter().filter(|&&x| x == v).count() as i64 - 10_000).abs() < 400));
    let wide = with(&random::RANDINT, &[1000], &[]);
    let r = run(&random::RANDINT, wide, &[whole(i64::MIN), whole(i64::MAX)])[0].get::<i64>();
    assert!(r.iter().any(|&v| v < -(1 << 62)) && r.iter().any(|&v| v > 1 << 62));
    let p = run_all_ways(&random::PERMUTATION, attrs(&random::PERMUTATION, &[("n", int(100_000))]), &[], 19)
        [0]
    .get::<i64>();
    let mut sorted = p.clone();
    sorted.sort_unstable();
    assert!(sorted == (0..100_000).collect::<Vec<i64>>() && p != sorted);
}

#[test]
fn parameters_may_be_arrays_and_get_gradients() {
    let how = How { draw: Draw { seed: 3, counter: 1 }, ..How::default() };
    let size =
        |op: &'static Op| attrs(op, &[("size", ints(&[4, 3])), ("dtype", AttrValue::Str("float64".into()))]);
    let low = Arr::new(&[3], &[0.0, 10.0, 20.0]);
    let high = Arr::new(&[4, 1], &[21.0, 22.0, 23.0, 24.0]);
    check_gradient_as(&random::UNIFORM, size(&random::UNIFORM), &[low.clone(), high.clone()], &[0, 1], &how);
    check_gradient_as(&random::NORMAL, size(&random::NORMAL), &[low, high.clone()], &[0, 1], &how);
    check_gradient_as(&random::EXPONENTIAL, size(&random::EXPONENTIAL), &[high], &[0], &how);
    let bad =
        error(&random::UNIFORM, size(&random::UNIFORM), &[Arr::new(&[2], &[0.0, 1.0]), Arr::scalar(1.0)]);
    assert!(bad.contains("do not broadcast to size (4, 3)"), "{bad}");
    assert!(
        error(&random::NORMAL, size(&random::NORMAL), &[Arr::scalar(0.0), Arr::scalar(-1.0)])
            .contains("scale must be non-negative")
    );
    assert!(
        error(&random::BERNOULLI, attrs(&random::BERNOULLI, &[]), &[Arr::new(&[1], &[1.5])])
            .contains("prob must be from 0 to 1")
    );
    let i = |v: &[i64]| Arr::new(&[v.len()], v);
    assert!(
        error(&random::RANDINT, attrs(&random::RANDINT, &[]), &[i(&[1, 5]), i(&[2, 5])])
            .contains("below its high")
    );
}
