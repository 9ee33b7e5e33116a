//! Convolutions and poolings whose rows fill vectors, on every instruction set, against loops over windows. Data are
//! small whole numbers, so that sums are exact in any order.

mod ops_kit;
mod support;

use mxnp_core::attrs::{AttrValue, Attrs};
use mxnp_core::ops::{nn_conv, nn_pool};
use mxnp_core::simd::{Isa, isa, select};
use mxnp_core::{DType, Op};
use ops_kit::{Arr, run_all_ways};
use std::sync::Mutex;
use support::Rng;

/// The instruction set belongs to the process.
static ISA: Mutex<()> = Mutex::new(());

fn on_every_isa(body: impl Fn()) {
    let _own = ISA.lock();
    let now = isa();
    for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
        select(isa);
        body();
    }
    select(now);
}

fn attrs(op: &'static Op, items: &[(&str, AttrValue)]) -> Attrs {
    (op.attrs)(op.name, items.iter().map(|(k, v)| (k.to_string(), v.clone())).collect()).unwrap()
}

fn ints(of: &[usize]) -> AttrValue {
    AttrValue::Ints(of.iter().map(|&n| n as i64).collect())
}

fn whole(rng: &mut Rng, shape: &[usize], dtype: DType) -> Arr {
    let n = shape.iter().product();
    Arr::f64s(shape, &(0..n).map(|_| rng.below(7) as f64 - 3.0).collect::<Vec<_>>(), dtype)
}

fn same(what: &str, a: &[f64], b: &[f64]) {
    assert_eq!(a.len(), b.len());
    for (i, (x, y)) in a.iter().zip(b).enumerate() {
        assert!(
            x == y || (x.is_nan() && y.is_nan()),
            "{what}: element {i} is {x} instead of {y} ({})",
            isa().name()
        );
    }
}

struct Case {
    x: [usize; 4],
    w: [usize; 4],
    stride: usize,
    pad: usize,
    dilate: usize,
    groups: usize,
}

impl Case {
    fn output(&self) -> [usize; 4] {
        let size =
            |i: usize| (self.x[i] + 2 * self.pad - (self.w[i] - 1) * self.dilate - 1) / self.stride + 1;
        [self.x[0], self.w[0], size(2), size(3)]
    }

    /// Calls `body(index of x, of w, of y)` for every product.
    fn each(&self, mut body: impl FnMut(usize, usize, usize)) {
        let ([n, channels, ih, iw], [filters, depth, kh, kw]) = (self.x, self.w);
        let [_, _, oh, ow] = self.output();
        let width = filters / self.groups;
        for y in 0..n * filters * oh * ow {
            let (image, f, h, v) = (y / (filters * oh * ow), y / (oh * ow) % filters, y / ow % oh, y % ow);
            for w in 0..depth * kh * kw {
                let (c, a, b) = (w / (kh * kw), w / kw % kh, w % kw);
                let i = (h * self.stride + a * self.dilate).wrapping_sub(self.pad);
                let j = (v * self.stride + b * self.dilate).wrapping_sub(self.pad);
                if i < ih && j < iw {
                    let channel = f / width * depth + c;
                    body(((image * channels + channel) * ih + i) * iw + j, f * depth * kh * kw + w, y);
                }
            }
        }
    }
}

#[test]
fn convolutions_and_their_adjoints_equal_loops() {
    let cases = [
        Case { x: [5, 1, 28, 28], w: [20, 1, 5, 5], stride: 1, pad: 2, dilate: 1, groups: 1 },
        Case { x: [3, 4, 14, 14], w: [10, 4, 5, 5], stride: 1, pad: 2, dilate: 1, groups: 1 },
        Case { x: [2, 6, 17, 32], w: [9, 2, 3, 3], stride: 1, pad: 0, dilate: 1, groups: 3 },
        Case { x: [18, 3, 9, 33], w: [11, 3, 3, 4], stride: 2, pad: 1, dilate: 1, groups: 1 },
        Case { x: [2, 2, 20, 46], w: [5, 2, 2, 3], stride: 3, pad: 2, dilate: 2, groups: 1 },
        Case { x: [2, 4, 18, 16], w: [6, 2, 3, 3], stride: 1, pad: 2, dilate: 2, groups: 2 },
        // One channel in a group: rows of all widths, strides, several filters for each channel.
        Case { x: [2, 5, 7, 7], w: [5, 1, 3, 3], stride: 1, pad: 1, dilate: 1, groups: 5 },
        Case { x: [3, 4, 14, 15], w: [4, 1, 3, 3], stride: 2, pad: 1, dilate: 1, groups: 4 },
        Case { x: [2, 3, 33, 50], w: [3, 1, 5, 5], stride: 1, pad: 2, dilate: 1, groups: 3 },
        Case { x: [17, 2, 9, 70], w: [6, 1, 3, 2], stride: 1, pad: 0, dilate: 1, groups: 2 },
        Case { x: [1, 3, 20, 21], w: [3, 1, 3, 3], stride: 3, pad: 2, dilate: 2, groups: 3 },
        Case { x: [2, 2, 12, 11], w: [4, 1, 2, 4], stride: 2, pad: 2, dilate: 1, groups: 2 },
        Case { x: [1, 2, 1, 30], w: [2, 1, 1, 3], stride: 1, pad: 1, dilate: 1, groups: 2 },
        // More padding than the window reaches.
        Case { x: [1, 2, 6, 5], w: [2, 1, 2, 2], stride: 1, pad: 2, dilate: 1, groups: 2 },
        Case { x: [1, 2, 8, 12], w: [3, 2, 1, 3], stride: 1, pad: 2, dilate: 1, groups: 1 },
    ];
    let mut rng = Rng(3);
    for case in &cases {
        for dtype in [DType::F32, DType::F64] {
            let (x, w) = (whole(&mut rng, &case.x, dtype), whole(&mut rng, &case.w, dtype));
            let g = whole(&mut rng, &case.output(), dtype);
            let (xs, ws, gs) = (x.f64(), w.f64(), g.f64());
            let (mut y, mut gx, mut gw) = (vec![0.0; gs.len()], vec![0.0; xs.len()], vec![0.0; ws.len()]);
            case.each(|i, j, k| {
                y[k] += xs[i] * ws[j];
                gx[i] += gs[k] * ws[j];
                gw[j] += gs[k] * xs[i];
            });
            let two = |n: usize| ints(&[n, n]);
            let common = [
                ("stride", two(case.stride)),
                ("pad", two(case.pad)),
                ("dilate", two(case.dilate)),
                ("num_group", AttrValue::Int(case.groups as i64)),
            ];
            let with = |op, more: (&str, AttrValue)| {
                let mut items: Vec<(&str, AttrValue)> = common.to_vec();
                items.push(more);
                attrs(op, &items)
            };
            on_every_isa(|| {
                let run = |op: &'static Op, a: Attrs, ins: &[Arr]| run_all_ways(op, a, ins, 7)[0].f64();
                let plain = with(&nn_conv::CONVOLUTION, ("no_bias", AttrValue::Bool(true)));
                same("forward", &run(&nn_conv::CONVOLUTION, plain, &[x.clone(), w.clone()]), &y);
                let of = with(&nn_conv::CONV_DATA_GRAD, ("shape", ints(&case.x)));
                same("data", &run(&nn_conv::CONV_DATA_GRAD, of, &[g.clone(), w.clone()]), &gx);
                let of = with(&nn_conv::CONV_WEIGHT_GRAD, ("shape", ints(&case.w)));
                same("weight", &run(&nn_conv::CONV_WEIGHT_GRAD, of, &[x.clone(), g.clone()]), &gw);
            });
        }
    }
}

#[test]
fn one_infinite_pixel_stays_in_its_windows() {
    for case in [
        Case { x: [2, 2, 6, 14], w: [3, 2, 3, 5], stride: 1, pad: 0, dilate: 1, groups: 1 },
        Case { x: [2, 2, 6, 14], w: [2, 1, 3, 5], stride: 1, pad: 0, dilate: 1, groups: 2 },
    ] {
        let mut rng = Rng(5);
        let mut values = whole(&mut rng, &case.x, DType::F32).f64();
        // The last column: only the last places of the windows read it.
        values[6 * 14 + 27] = f64::INFINITY;
        let (x, g) = (Arr::f64s(&case.x, &values, DType::F32), whole(&mut rng, &case.output(), DType::F32));
        let gs: Vec<f64> = g.f64().iter().map(|v| v.abs() + 1.0).collect();
        let g = Arr::f64s(&case.output(), &gs, DType::F32);
        let mut gw = vec![0.0; case.w.iter().product()];
        case.each(|i, j, k| gw[j] += gs[k] * values[i]);
        assert!(gw.iter().any(|v| v.is_finite()) && gw.iter().any(|v| v.is_infinite()));
        on_every_isa(|| {
            let of = attrs(
                &nn_conv::CONV_WEIGHT_GRAD,
                &[
                    ("stride", ints(&[1, 1])),
                    ("dilate", ints(&[1, 1])),
                    ("pad", ints(&[0, 0])),
                    ("num_group", AttrValue::Int(case.groups as i64)),
                    ("shape", ints(&case.w)),
                ],
            );
            let ins = [x.clone(), g.clone()];
            same("weight", &run_all_ways(&nn_conv::CONV_WEIGHT_GRAD, of, &ins, 7)[0].f64(), &gw);
        });
    }
}

#[test]
fn poolings_equal_loops() {
    let mut rng = Rng(9);
    // Data's height and width, kernel, stride, padding.
    for (h, w, k, s, p) in [
        (14, 14, 2, 2, 0),
        (28, 30, 2, 2, 0),
        (15, 41, 3, 2, 1),
        (9, 40, 3, 1, 1),
        (12, 70, 4, 3, 2),
        (5, 6, 3, 2, 1),
    ] {
        for dtype in [DType::F32, DType::F64, DType::F16] {
            let shape = [2, 3, h, w];
            let mut values = whole(&mut rng, &shape, dtype).f64();
            (values[5], values[w + 6], values[2 * w]) = (f64::NAN, f64::NAN, f64::NEG_INFINITY);
            values[h * w..h * w + 3 * w].fill(f64::NEG_INFINITY);
            let x = Arr::f64s(&shape, &values, dtype);
            let (oh, ow) = ((h + 2 * p - k) / s + 1, (w + 2 * p - k) / s + 1);
            let (mut best, mut places, mut sums) = (vec![], vec![], vec![]);
            for (plane, y, z) in
                (0..6).flat_map(|n| (0..oh).flat_map(move |y| (0..ow).map(move |z| (n, y, z))))
            {
                let mut most: Option<(f64, usize)> = None;
                let mut sum = 0.0;
                for (a, b) in (0..k).flat_map(|a| (0..k).map(move |b| (a, b))) {
                    let (i, j) = ((y * s + a).wrapping_sub(p), (z * s + b).wrapping_sub(p));
                    if i < h && j < w {
                        let v = values[(plane * h + i) * w + j];
                        sum += v;
                        if most.is_none_or(|(m, _)| v > m || (v.is_nan() && !m.is_nan())) {
                            most = Some((v, i * w + j));
                        }
                    }
                }
                let (m, at) = most.unwrap();
                best.push(m);
                places.push(at as f64);
                sums.push(sum);
            }
            let window = [("kernel", ints(&[k, k])), ("stride", ints(&[s, s])), ("pad", ints(&[p, p]))];
            on_every_isa(|| {
                let mut items = window.to_vec();
                let run = |items: &[(&str, AttrValue)]| {
                    run_all_ways(
                        &nn_pool::POOLING,
                        attrs(&nn_pool::POOLING, items),
                        std::slice::from_ref(&x),
                        7,
                    )
                };
                let y = run(&items);
                same("max", &y[0].f64(), &best);
                same("places", &y[1].f64(), &places);
                items.push(("pool_type", AttrValue::Str("sum".into())));
                same("sum", &run(&items)[0].f64(), &sums);
            });
        }
    }
}
