//! Reductions, softmax and normalisations over shapes that take every path of their drivers: against plain loops in
//! float64, in every order of chunks and layout, on every instruction set.

mod ops_kit;
mod support;

use mxnp_core::attrs::{AttrValue, Attrs};
use mxnp_core::ops::{nn_act, nn_norm, reduce};
use mxnp_core::simd::{self, Isa};
use mxnp_core::{DType, Op};
use ops_kit::{Arr, check_gradient, run, run_all_ways};
use support::Rng;

fn attrs(op: &'static Op, items: &[(&str, AttrValue)]) -> Attrs {
    (op.attrs)(op.name, items.iter().map(|(k, v)| (k.to_string(), v.clone())).collect()).unwrap()
}

/// Each instruction set of the machine in turn. The set is the process's, so the one test here runs all the checks.
fn on_each_isa(body: impl Fn(Isa)) {
    let before = simd::isa();
    for isa in Isa::ALL.into_iter().filter(|&isa| simd::select(isa)) {
        body(isa);
    }
    simd::select(before);
}

fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => 1e-12,
        DType::F32 => 3e-6,
        DType::F16 => 2e-3,
        _ => 1e-2,
    }
}

fn close(what: &str, got: &[f64], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (x, y)) in got.iter().zip(want).enumerate() {
        let same = x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= tolerance * (1.0 + y.abs());
        assert!(same, "{what}, element {i}: {x} instead of {y}");
    }
}

/// The lines along an axis: the index of each element.
fn lines(shape: &[usize], axis: usize) -> Vec<Vec<usize>> {
    let (n, after): (usize, usize) = (shape[axis], shape[axis + 1..].iter().product());
    let before: usize = shape[..axis].iter().product();
    (0..before * after).map(|l| (0..n).map(|i| (l / after * n + i) * after + l % after).collect()).collect()
}

const SHAPES: [(&[usize], usize); 16] = [
    (&[5], 0),
    (&[1], 0),
    (&[3, 31], 1),
    (&[3, 32], 1),
    (&[4, 65], 1),
    (&[2, 1000], 1),
    (&[2, 1024], 1),
    (&[2, 2500], 1),
    (&[130, 3], 1),
    (&[3, 7, 2], 1),
    (&[2, 40, 70], 1),
    (&[65, 20], 0),
    (&[1100, 3], 0),
    (&[2, 1, 5], 1),
    (&[0, 4], 1),
    (&[4, 0], 0),
];

fn soft(x: &[f64], log: bool) -> Vec<f64> {
    let most = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = x.iter().map(|v| (v - most).exp()).sum();
    x.iter().map(|v| if log { v - most - total.ln() } else { (v - most).exp() / total }).collect()
}

fn softmaxes() {
    let mut rng = Rng(1);
    for (shape, axis) in SHAPES {
        let a = |op| attrs(op, &[("axis", AttrValue::Int(axis as i64))]);
        for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
            let x = Arr::random(&mut rng, shape, dtype);
            let x = Arr::f64s(shape, &x.f64().iter().map(|v| v * 20.0).collect::<Vec<_>>(), dtype);
            let values = x.f64();
            for (op, log, sign) in [
                (&nn_act::SOFTMAX, false, 1.0),
                (&nn_act::SOFTMIN, false, -1.0),
                (&nn_act::LOG_SOFTMAX, true, 1.0),
            ] {
                let mut want = vec![0.0; values.len()];
                for line in lines(shape, axis) {
                    let row: Vec<f64> = line.iter().map(|&i| sign * values[i]).collect();
                    line.iter().zip(soft(&row, log)).for_each(|(&i, v)| want[i] = v);
                }
                let got = run_all_ways(op, a(op), std::slice::from_ref(&x), 3);
                close(&format!("{} {shape:?} {dtype}", op.name), &got[0].f64(), &want, tolerance(dtype));
            }
        }
    }
}

fn softmaxes_of_infinities() {
    let inf = f64::INFINITY;
    for n in [4, 40] {
        let mut x = vec![-inf; 3 * n];
        (x[1], x[2]) = (1.0, 3.0);
        x[2 * n] = f64::NAN;
        for (x, shape, axis) in [(x.clone(), [3, n], 1), (x, [3, n], -1)] {
            let a = attrs(&nn_act::SOFTMAX, &[("axis", AttrValue::Int(axis))]);
            let y = run(&nn_act::SOFTMAX, a, &[Arr::f64s(&shape, &x, DType::F32)])[0].f64();
            let e = (-2f64).exp();
            close("masked", &y[..4], &[0.0, e / (1.0 + e), 1.0 / (1.0 + e), 0.0], 1e-6);
            assert!(y[n..].iter().all(|v| v.is_nan()), "nothing to choose from, and NaN, give NaN");
        }
    }
}

fn softmax_gradients() {
    let mut rng = Rng(2);
    let cases: [(&[usize], i64); 5] =
        [(&[3, 5], 1), (&[2, 40], 1), (&[2, 6, 3], 1), (&[7, 2], 0), (&[2, 100], -1)];
    for (shape, axis) in cases {
        let x = Arr::random(&mut rng, shape, DType::F64);
        for op in [&nn_act::SOFTMAX, &nn_act::SOFTMIN, &nn_act::LOG_SOFTMAX] {
            let items = [("axis", AttrValue::Int(axis)), ("temperature", AttrValue::Float(0.5))];
            check_gradient(op, attrs(op, &items), std::slice::from_ref(&x), &[0]);
        }
        for op in [&nn_act::SOFTMAX_GRAD, &nn_act::LOG_SOFTMAX_GRAD] {
            let items = [("axis", AttrValue::Int(axis)), ("scale", AttrValue::Float(-1.5))];
            let g = Arr::random(&mut rng, shape, DType::F64);
            run_all_ways(op, attrs(op, &items), &[x.cast(DType::F32), g.cast(DType::F32)], 5);
            check_gradient(op, attrs(op, &items), &[x.clone(), g], &[0, 1]);
        }
    }
}

fn moments(x: &[f64]) -> (f64, f64) {
    let n = x.len() as f64;
    let mean = x.iter().sum::<f64>() / n;
    (mean, x.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n)
}

fn layer_norms() {
    let mut rng = Rng(3);
    let op = &nn_norm::LAYER_NORM;
    for (shape, axis) in SHAPES {
        let n = shape[axis];
        for dtype in [DType::F32, DType::F64, DType::F16] {
            let x = Arr::random(&mut rng, shape, dtype);
            let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
            let [gamma, beta] = [(); 2].map(|()| Arr::random(&mut rng, &[n], wide));
            let (values, scale, shift) = (x.f64(), gamma.f64(), beta.f64());
            let mut want = vec![0.0; values.len()];
            for line in lines(shape, axis) {
                let (mean, var) = moments(&line.iter().map(|&i| values[i]).collect::<Vec<_>>());
                for (k, &i) in line.iter().enumerate() {
                    want[i] = (values[i] - mean) / (var + 1e-5).sqrt() * scale[k] + shift[k];
                }
            }
            let a = attrs(op, &[("axis", AttrValue::Int(axis as i64))]);
            let got = run_all_ways(op, a.clone(), &[x.clone(), gamma.clone(), beta], 3);
            close(&format!("layer_norm {shape:?} {dtype}"), &got[0].f64(), &want, 4.0 * tolerance(dtype));
            let g = Arr::random(&mut rng, shape, dtype);
            run_all_ways(&nn_norm::LAYER_NORM_GRAD, a, &[g, x, gamma], 4);
        }
    }
    for (shape, axis) in [(&[3usize, 5][..], 1), (&[2, 300], 1), (&[2, 4, 3], 1), (&[40, 6], 1)] {
        let params = [(); 2].map(|()| Arr::random(&mut rng, &[shape[axis]], DType::F64));
        let [x, g] = [(); 2].map(|()| Arr::random(&mut rng, shape, DType::F64));
        let a = attrs(op, &[("axis", AttrValue::Int(axis as i64)), ("eps", AttrValue::Float(1e-2))]);
        let [gamma, beta] = params;
        check_gradient(op, a.clone(), &[x.clone(), gamma.clone(), beta], &[0, 1, 2]);
        check_gradient(&nn_norm::LAYER_NORM_GRAD, a, &[g, x, gamma], &[0, 1, 2]);
    }
}

/// Statistics of numbers far from zero keep the digits that float32 has.
fn far_from_zero() {
    let mut rng = Rng(4);
    let values: Vec<f64> = (0..2 * 1024).map(|_| (10_000.0 + rng.unit()) as f32 as f64).collect();
    let x = Arr::f64s(&[2, 1024], &values, DType::F32);
    let params = [Arr::f64s(&[1024], &[1.0; 1024], DType::F32), Arr::f64s(&[1024], &[0.0; 1024], DType::F32)];
    let [gamma, beta] = params;
    let y = run(&nn_norm::LAYER_NORM, attrs(&nn_norm::LAYER_NORM, &[]), &[x, gamma, beta])[0].f64();
    for r in 0..2 {
        let row = &values[r * 1024..(r + 1) * 1024];
        let (mean, var) = moments(row);
        let want: Vec<f64> = row.iter().map(|v| (v - mean) / (var + 1e-5).sqrt()).collect();
        close("far from zero", &y[r * 1024..(r + 1) * 1024], &want, 1e-5);
    }
}

const BATCHES: [(&[usize], i64); 10] = [
    (&[6, 3, 5], 1),
    (&[4, 17, 20], 1),
    (&[4, 3, 20], 1),
    (&[2, 16, 7, 7], 1),
    (&[3, 2, 300], 1),
    (&[200, 3], 1),
    (&[150, 70], 1),
    (&[40, 4, 70], -1),
    (&[70, 5, 3], 1),
    (&[1, 20, 17], 1),
];

fn batch_norms() {
    let mut rng = Rng(5);
    let op = &nn_norm::BATCH_NORM;
    for (shape, axis) in BATCHES {
        let at = if axis < 0 { shape.len() - 1 } else { 1 };
        let (c, after): (usize, usize) = (shape[at], shape[at + 1..].iter().product());
        let items = [
            ("axis", AttrValue::Int(axis)),
            ("training", AttrValue::Bool(true)),
            ("fix_gamma", AttrValue::Bool(false)),
        ];
        for dtype in [DType::F32, DType::F64] {
            let x = Arr::random(&mut rng, shape, dtype);
            let vectors: [Arr; 4] = [(); 4].map(|()| Arr::random(&mut rng, &[c], dtype));
            let (values, gamma, beta) = (x.f64(), vectors[0].f64(), vectors[1].f64());
            let [old_mean, old_var] = [vectors[2].f64(), vectors[3].f64()];
            let mut want = vec![0.0; values.len()];
            let (mut means, mut vars) = (vec![0.0; c], vec![0.0; c]);
            for k in 0..c {
                let own: Vec<usize> = (0..values.len()).filter(|i| i / after % c == k).collect();
                (means[k], vars[k]) = moments(&own.iter().map(|&i| values[i]).collect::<Vec<_>>());
                for i in own {
                    want[i] = (values[i] - means[k]) / (vars[k] + 1e-3).sqrt() * gamma[k] + beta[k];
                }
            }
            let ins: Vec<Arr> = [x.clone()].into_iter().chain(vectors.clone()).collect();
            let got = run(op, attrs(op, &items), &ins);
            let what = format!("batch_norm {shape:?} {dtype}");
            close(&what, &got[0].f64(), &want, 4.0 * tolerance(dtype));
            close(&what, &got[1].f64(), &means, tolerance(dtype));
            let mix = |old: &[f64], new: &[f64]| -> Vec<f64> {
                old.iter().zip(new).map(|(o, n)| 0.9 * o + 0.1 * n).collect()
            };
            close(&what, &ins[3].f64(), &mix(&old_mean, &means), tolerance(dtype));
            close(&what, &ins[4].f64(), &mix(&old_var, &vars), tolerance(dtype));
            let g = Arr::random(&mut rng, shape, dtype);
            let grads = [g.clone(), x, vectors[0].clone(), got[1].clone(), got[2].clone()];
            let back = run_all_ways(&nn_norm::BATCH_NORM_GRAD, attrs(op, &items), &grads, 6);
            let g = g.f64();
            for k in 0..c {
                let own = (0..values.len()).filter(|i| i / after % c == k);
                let inv = 1.0 / (vars[k] + 1e-3).sqrt();
                let slopes: f64 = own.map(|i| g[i] * (values[i] - means[k]) * inv).sum();
                let scale = values.len() as f64 / c as f64;
                assert!((back[1].f64()[k] - slopes).abs() < tolerance(dtype) * scale.max(10.0), "{what}");
            }
        }
    }
}

fn reductions() {
    let mut rng = Rng(6);
    let shapes: [&[usize]; 12] = [
        &[17],
        &[5000],
        &[40_000],
        &[300, 3],
        &[3, 300],
        &[20, 1030],
        &[1030, 20],
        &[4, 5, 6, 7],
        &[3, 2500],
        &[70, 64, 3],
        &[5, 0],
        &[2, 3, 1, 90],
    ];
    for shape in shapes {
        for mask in 0..1usize << shape.len() {
            let axes: Vec<i64> = (0..shape.len()).filter(|i| mask >> i & 1 == 1).map(|i| i as i64).collect();
            let kept: Vec<usize> =
                (0..shape.len()).filter(|i| mask >> i & 1 == 0).map(|i| shape[i]).collect();
            if kept.contains(&0) || (shape.contains(&0) && !axes.is_empty() && mask != 3) {
                continue;
            }
            for dtype in [DType::F32, DType::F64, DType::F16, DType::I32, DType::U8, DType::Bool] {
                reduce_one(&mut rng, shape, &axes, &kept, dtype);
            }
        }
    }
}

fn reduce_one(rng: &mut Rng, shape: &[usize], axes: &[i64], kept: &[usize], dtype: DType) {
    let size: usize = shape.iter().product();
    // Few values, so that extremes tie; one is NaN where there can be one.
    let mut values: Vec<f64> = (0..size).map(|_| rng.below(5) as f64).collect();
    if dtype.is_float() && size > 20 {
        values[size / 2] = f64::NAN;
    }
    let x = Arr::f64s(shape, &values, dtype);
    let values = x.f64();
    let mut groups: Vec<Vec<usize>> = vec![vec![]; kept.iter().product()];
    for i in 0..size {
        let (mut rest, mut at, mut step) = (i, 0, 1);
        for d in (0..shape.len()).rev() {
            if !axes.contains(&(d as i64)) {
                at += rest % shape[d] * step;
                step *= shape[d];
            }
            rest /= shape[d];
        }
        groups[at].push(i);
    }
    let by = |f: &dyn Fn(&[f64]) -> f64| -> Vec<f64> {
        groups.iter().map(|own| f(&own.iter().map(|&i| values[i]).collect::<Vec<_>>())).collect()
    };
    let what = |op: &Op| format!("{} {shape:?} {axes:?} {dtype}", op.name);
    let a = |op: &'static Op| attrs(op, &[("axis", AttrValue::Ints(axes.to_vec()))]);
    let sums = run_all_ways(&reduce::SUM, a(&reduce::SUM), std::slice::from_ref(&x), 7);
    close(&what(&reduce::SUM), &sums[0].f64(), &by(&|v| v.iter().sum()), tolerance(dtype));
    for (op, any) in [(&reduce::ANY, true), (&reduce::ALL, false)] {
        let truth = |v: &[f64]| if any { v.iter().any(|x| *x != 0.0) } else { v.iter().all(|x| *x != 0.0) };
        let got = run_all_ways(op, a(op), std::slice::from_ref(&x), 7);
        close(&what(op), &got[0].f64(), &by(&|v| f64::from(u8::from(truth(v)))), 0.0);
    }
    if size == 0 {
        return;
    }
    let beats = |x: f64, best: f64, most: bool| {
        !best.is_nan() && (x.is_nan() || if most { x > best } else { x < best })
    };
    let first =
        |v: &[f64], most: bool| (1..v.len()).fold(0, |b, i| if beats(v[i], v[b], most) { i } else { b });
    for (op, most) in [(&reduce::MAX, true), (&reduce::MIN, false)] {
        let got = run_all_ways(op, a(op), std::slice::from_ref(&x), 7);
        close(&what(op), &got[0].f64(), &by(&|v| v[first(v, most)]), 0.0);
    }
    if axes.len() == 1 || axes.len() == shape.len() {
        let over = if axes.len() == 1 { AttrValue::Int(axes[0]) } else { AttrValue::None };
        for (op, most) in [(&reduce::ARGMAX, true), (&reduce::ARGMIN, false)] {
            let got = run_all_ways(op, attrs(op, &[("axis", over.clone())]), std::slice::from_ref(&x), 7);
            close(&what(op), &got[0].f64(), &by(&|v| first(v, most) as f64), 0.0);
        }
    }
}

/// As accurate as pairwise addition, in float32 and float16.
fn sums_are_accurate() {
    let mut rng = Rng(8);
    let values: Vec<f64> = (0..1 << 20).map(|_| rng.unit() as f32 as f64).collect();
    let exact: f64 = values.iter().sum();
    for shape in [vec![1 << 20], vec![1 << 10, 1 << 10], vec![1 << 18, 4], vec![4, 1 << 18]] {
        let x = Arr::f64s(&shape, &values, DType::F32);
        let sum = run(&reduce::SUM, attrs(&reduce::SUM, &[]), &[x])[0].f64()[0];
        assert!((sum / exact - 1.0).abs() < 5e-7, "{shape:?}: {sum} instead of {exact}");
    }
    let ones = Arr::f64s(&[40_000], &[1.0; 40_000], DType::F16);
    assert_eq!(run(&reduce::SUM, attrs(&reduce::SUM, &[]), &[ones])[0].f64()[0], 40_000.0);
}

#[test]
fn every_instruction_set_answers_as_plain_loops_do() {
    on_each_isa(|_| {
        reductions();
        sums_are_accurate();
        softmaxes();
        softmaxes_of_infinities();
        layer_norms();
        far_from_zero();
        batch_norms();
    });
}

#[test]
fn gradients_of_softmax() {
    softmax_gradients();
}
