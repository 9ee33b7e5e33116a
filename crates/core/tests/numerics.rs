//! Arithmetic, conversions and single values, and all instruction sets against each other: bit for bit, but for
//! functions whose polynomials are contracted where the set multiplies and adds in one instruction
//! (`accuracy.rs` holds those to their units of the last place on each).

mod support;

use mxnp_core::op::{Run, StepFn};
use mxnp_core::ops::arith::pair;
use mxnp_core::simd::{self, Isa};
use mxnp_core::{DType, Element, ops};
use std::sync::Mutex;
use support::Rng;

/// Runs the body on each instruction set. The set belongs to the process: one test at a time changes it.
fn on_each_isa(mut body: impl FnMut(Isa)) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let before = simd::isa();
    for isa in Isa::ALL.into_iter().filter(|&isa| simd::select(isa)) {
        body(isa);
    }
    simd::select(before);
}

/// Applies the op's step for the current instruction set.
fn apply<T: Element, R: Element>(name: &str, ins: &[&[T]]) -> Vec<R> {
    let dtypes = vec![T::DTYPE; ins.len()];
    let Run::Elementwise(of) = ops::find(name).unwrap().run else { panic!("{name} is not elementwise") };
    let step = of(&dtypes, R::DTYPE).unwrap_or_else(|| panic!("{name} has no step for {}", T::DTYPE));
    let mut out = vec![R::default(); ins[0].len()];
    let pointers: Vec<*const u8> = ins.iter().map(|x| x.as_ptr().cast()).collect();
    // SAFETY: all slices have the same length and the step's dtypes.
    unsafe { step(out.len(), &pointers, out.as_mut_ptr().cast()) };
    out
}

fn ulps64(got: f64, want: f64) -> f64 {
    if got == want || got.is_nan() && want.is_nan() {
        return 0.0;
    }
    if !(got.is_finite() && want.is_finite()) {
        return f64::INFINITY;
    }
    let exponent = (want.abs().max(f64::MIN_POSITIVE).to_bits() >> 52) as i32;
    (got - want).abs() / 2f64.powi(exponent - 1023).max(f64::MIN_POSITIVE) * 2f64.powi(52)
}

fn special32() -> Vec<f32> {
    let mut x = vec![0.0, -0.0, 1.0, -1.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX, f32::MIN];
    x.extend([f32::MIN_POSITIVE, 1e-45, -1e-45, 1e-30, -1e-30, 88.7, 88.8, -87.4, -103.9, -104.1, 0.5, -0.5]);
    x
}

fn points(low: f64, high: f64, n: usize) -> Vec<f64> {
    let mut rng = Rng(11);
    let mut x: Vec<f64> = (0..n).map(|_| low + (high - low) * rng.unit()).collect();
    // Magnitudes of every size, inside the domain.
    x.extend(
        (0..n / 4)
            .map(|_| rng.unit() * 2f64.powi(-(rng.below(120) as i32)))
            .filter(|v| *v > low && *v < high),
    );
    x
}

/// What is computed by polynomials.
const CONTRACTED: &[&str] = &[
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "cbrt",
    "cos",
    "cosh",
    "erf",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "gelu",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "mish",
    "power",
    "sigmoid",
    "silu",
    "sin",
    "sinh",
    "softplus",
    "tan",
    "tanh",
];

#[test]
fn every_isa_gives_the_same_bits() {
    let mut rng = Rng(3);
    let mut x: Vec<f32> = (0..5000).map(|_| f32::from_bits(rng.next() as u32)).collect();
    x.extend(points(-20.0, 20.0, 5000).into_iter().map(|v| v as f32));
    x.extend(special32());
    let mut y = x.clone();
    rng.shuffle(&mut y);
    let wide: Vec<f64> = x.iter().map(|v| *v as f64 * 1.000000123).collect();
    let elementwise = || ops::all().filter(|op| matches!(op.run, Run::Elementwise(_)));
    let mut first = std::collections::BTreeMap::new();
    on_each_isa(|isa| {
        for op in elementwise() {
            let Run::Elementwise(of) = op.run else { unreachable!() };
            let arity = match op.arity {
                mxnp_core::op::Arity::Exactly(n) if n <= 2 => n,
                _ => continue,
            };
            let step = |dtype| of(&vec![dtype; arity], dtype);
            if step(DType::F32).is_none() || !answers_in_kind(op.name) || CONTRACTED.contains(&op.name) {
                continue;
            }
            let single: Vec<f32> = apply(op.name, &[&x[..], &y[..]][..arity]);
            let double: Vec<f64> = apply(op.name, &[&wide[..], &wide[..]][..arity]);
            let bits: Vec<u64> = single
                .iter()
                .map(|v| if v.is_nan() { u64::MAX } else { v.to_bits() as u64 })
                .chain(double.iter().map(|v| if v.is_nan() { u64::MAX } else { v.to_bits() }))
                .collect();
            let expected = first.entry(op.name).or_insert_with(|| bits.clone());
            assert!(*expected == bits, "{} differs on {}", op.name, isa.name());
        }
    });
}

/// Ops whose float32 operands give float32.
fn answers_in_kind(name: &str) -> bool {
    use mxnp_core::attrs::Attrs;
    use mxnp_core::op::Meta;
    use mxnp_core::promote::Mode;
    let op = ops::find(name).unwrap();
    let no_attrs = (op.attrs)(op.name, vec![]).is_ok_and(|attrs| attrs == Attrs::NONE);
    let two = [Meta::new([1usize].as_slice(), DType::F32), Meta::new([1usize].as_slice(), DType::F32)];
    let arity = if matches!(op.arity, mxnp_core::op::Arity::Exactly(1)) { 1 } else { 2 };
    no_attrs
        && op.infer(&Attrs::NONE, &two[..arity], Mode::default()).is_ok_and(|found| {
            found.outs[0].dtype == DType::F32 && found.ins.iter().all(|&d| d == DType::F32)
        })
}

#[test]
fn erf_and_its_inverse() {
    // Computed with 30 digits.
    let golden = [
        (0.1, 0.112462916018284892203275071744),
        (0.5, 0.520499877813046537682746653892),
        (0.9, 0.796908212422832128518724785142),
        (1.0, 0.842700792949714869341220635083),
        (1.1, 0.880205069574081720213876611857),
        (2.0, 0.995322265018952734162069256367),
        (3.0, 0.999977909503001414558627223870),
        (1e-10, 1.12837916709551257389e-10),
    ];
    for (x, want) in golden {
        let y = apply::<f64, f64>("erf", &[&[x, -x]]);
        assert!(ulps64(y[0], want) <= 2.0 && y[1] == -y[0], "erf({x}) = {}", y[0]);
        let y = apply::<f32, f32>("erf", &[&[x as f32]]);
        assert!((y[0] as f64 / want - 1.0).abs() < 2.5e-7, "erf32({x}) = {}", y[0]);
        let back = apply::<f64, f64>("erfinv", &[&[want]]);
        // The inverse magnifies the rounding of its argument.
        let condition = want / (x * std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp());
        assert!((back[0] / x - 1.0).abs() < 4e-16 * condition.max(1.0), "erfinv({want}) = {}", back[0]);
    }
    let edges = apply::<f32, f32>("erfinv", &[&[1.0, -1.0, 1.5, 0.0]]);
    assert!(
        edges[0] == f32::INFINITY && edges[1] == f32::NEG_INFINITY && edges[2].is_nan() && edges[3] == 0.0
    );
    let edges = apply::<f64, f64>("erf", &[&[f64::INFINITY, f64::NEG_INFINITY, f64::NAN]]);
    assert!(edges[0] == 1.0 && edges[1] == -1.0 && edges[2].is_nan());
}

#[test]
fn far_angles_go_to_the_library() {
    let x = [1e6f64, -3e22, 123456789.0, f64::INFINITY];
    let (s, c) = (apply::<f64, f64>("sin", &[&x]), apply::<f64, f64>("cos", &[&x]));
    for i in 0..3 {
        assert!(s[i] == x[i].sin() && c[i] == x[i].cos());
    }
    assert!(s[3].is_nan() && c[3].is_nan());
}

#[test]
fn integers_divide_as_numpy_does() {
    let a = [7i32, -7, 7, -7, i32::MIN, 5, 0];
    let b = [2i32, 2, -2, -2, -1, 0, 3];
    assert_eq!(apply::<i32, i32>("floor_divide", &[&a, &b]), [3, -4, -4, 3, i32::MIN, 0, 0]);
    assert_eq!(apply::<i32, i32>("mod", &[&a, &b]), [1, 1, -1, -1, 0, 0, 0]);
    assert_eq!(apply::<i32, i32>("fmod", &[&a, &b]), [1, -1, 1, -1, 0, 0, 0]);
    assert_eq!(apply::<i32, i32>("power", &[&[2, -1, -1, 3, 2], &[10, -3, -2, -1, 32]]), [1024, -1, 1, 0, 0]);
    let (a, b) = ([7.5f64, -7.5, 7.5, 1.0, -0.0, 1.0], [2.0f64, 2.0, -2.0, 0.0, 3.0, f64::INFINITY]);
    let q = apply::<f64, f64>("floor_divide", &[&a, &b]);
    assert_eq!(&q[..4], &[3.0, -4.0, -4.0, f64::INFINITY]);
    let r = apply::<f64, f64>("mod", &[&a, &b]);
    assert_eq!(&r[..3], &[1.5, 0.5, -0.5]);
    assert!(r[3].is_nan());
}

#[test]
fn extremes_carry_nan_and_take_the_first_on_ties() {
    let nan = f32::NAN;
    let (a, b) = ([1.0f32, nan, 2.0, -0.0], [2.0f32, 1.0, nan, 0.0]);
    let y = apply::<f32, f32>("maximum", &[&a, &b]);
    assert!(y[0] == 2.0 && y[1].is_nan() && y[2].is_nan() && y[3].is_sign_negative());
    let y = apply::<f32, f32>("fmin", &[&a, &b]);
    assert!(y[0] == 1.0 && y[1] == 1.0 && y[2] == 2.0);
}

#[test]
fn half_precision_converts_exactly_and_rounds_to_even() {
    use mxnp_core::{bf16, f16};
    let all: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
    for (h, f) in all.iter().zip(cast::<f16, f32>(&all)) {
        assert!(f == h.to_f32() || f.is_nan() && h.is_nan(), "{h}");
    }
    let mut rng = Rng(5);
    let mut x: Vec<f32> = (0..100_000).map(|_| f32::from_bits(rng.next() as u32)).collect();
    x.extend((0..100_000).map(|_| (rng.unit() * 2f64.powi(rng.below(50) as i32 - 30)) as f32));
    x.extend(special32());
    for (x, (h, b)) in x.iter().zip(cast::<f32, f16>(&x).into_iter().zip(cast::<f32, bf16>(&x))) {
        assert!(h == f16::from_f32(*x) || x.is_nan() && h.is_nan(), "{x:e}");
        assert!(b == bf16::from_f32(*x) || x.is_nan() && b.is_nan(), "{x:e}");
    }
    let x: Vec<f64> = x.iter().map(|v| *v as f64 * (1.0 + rng.unit() * 1e-9)).collect();
    for (x, h) in x.iter().zip(cast::<f64, f16>(&x)) {
        // The nearest of all halves, the even one on a tie (the crate `half` rounds twice here).
        let off = |bits: u16| (f16::from_bits(bits).to_f64() - x).abs();
        let (bits, limit) = (h.to_bits(), 65520.0);
        let beaten = [bits.wrapping_sub(1), bits.wrapping_add(1)].into_iter().any(|other| {
            let finite = f16::from_bits(other).is_finite() && (other ^ bits) & 0x8000 == 0;
            finite && (off(other) < off(bits) || off(other) == off(bits) && bits & 1 == 1)
        });
        let right = if x.abs() >= limit { h.is_infinite() } else { h.is_finite() && !beaten };
        assert!(if x.is_nan() { h.is_nan() } else { right }, "{x:e} became {h}");
    }
}

fn cast<A: Element, B: Element>(x: &[A]) -> Vec<B> {
    let mut out = vec![B::default(); x.len()];
    let step = mxnp_core::kernel::step::cast(A::DTYPE, B::DTYPE);
    // SAFETY: both have the same length and the step's dtypes.
    unsafe { step(x.len(), &[x.as_ptr().cast()], out.as_mut_ptr().cast()) };
    out
}

#[test]
fn casts_saturate_wide_and_wrap_narrow() {
    assert_eq!(cast::<f32, u8>(&[-1.0, 300.0, 2.9, f32::NAN]), [255, 44, 2, 0]);
    assert_eq!(cast::<f64, i32>(&[1e10, -1e10, -2.9]), [i32::MAX, i32::MIN, -2]);
    assert_eq!(cast::<i64, i8>(&[300, -129]), [44, 127]);
}

#[test]
fn casts_to_integers_are_those_of_rust() {
    let mut x: Vec<f64> = special32().into_iter().map(f64::from).collect();
    for edge in [2f64.powi(31), 2f64.powi(32), 2f64.powi(63), 2f64.powi(64), 255.0, 256.0, 0.5, 2.0] {
        let around = [edge.next_down(), edge, edge.next_up(), (edge as f32).next_down() as f64];
        x.extend(around.into_iter().flat_map(|v| [v, -v]));
    }
    // More than a block, whose end is another part of the loop.
    x.extend(points(-1e20, 1e20, 100));
    let short: Vec<f32> = x.iter().map(|&v| v as f32).collect();
    on_each_isa(|_| {
        assert_eq!(cast::<f64, i32>(&x), x.iter().map(|&v| v as i32).collect::<Vec<_>>());
        assert_eq!(cast::<f32, i32>(&short), short.iter().map(|&v| v as i32).collect::<Vec<_>>());
        assert_eq!(cast::<f64, u8>(&x), x.iter().map(|&v| v as i32 as u8).collect::<Vec<_>>());
        let wide = |v: f64| if v.is_nan() { i64::MIN } else { v as i64 };
        assert_eq!(cast::<f64, i64>(&x), x.iter().map(|&v| wide(v)).collect::<Vec<_>>());
        assert_eq!(cast::<f32, i64>(&short), short.iter().map(|&v| wide(v as f64)).collect::<Vec<_>>());
    });
}

#[test]
fn two_steps_as_one_give_the_same_bits() {
    let values = special32();
    let mut abc: [Vec<f32>; 3] = Default::default();
    for (i, &a) in values.iter().enumerate() {
        for (j, &b) in values.iter().enumerate() {
            // Three times as many products would be infinite or zero otherwise.
            let c = [values[(i + j) % values.len()], a * b, -(a * b)];
            for c in c {
                [a, b, c].into_iter().zip(&mut abc).for_each(|(v, to)| to.push(v));
            }
        }
    }
    let step = |name: &str| {
        let Run::Elementwise(of) = ops::find(name).unwrap().run else { panic!("{name} is not elementwise") };
        of(&[DType::F32; 2], DType::F32).unwrap()
    };
    let run = |f: StepFn, ins: &[&[f32]]| {
        let mut out = vec![0f32; ins[0].len()];
        let pointers: Vec<*const u8> = ins.iter().map(|x| x.as_ptr().cast()).collect();
        // SAFETY: all slices have the same length and the step's dtype.
        unsafe { f(out.len(), &pointers, out.as_mut_ptr().cast()) };
        out
    };
    let bits = |x: Vec<f32>| -> Vec<u32> {
        x.into_iter().map(|v| if v.is_nan() { u32::MAX } else { v.to_bits() }).collect()
    };
    let names = ["add", "subtract", "multiply"];
    let [a, b, c] = [&abc[0][..], &abc[1][..], &abc[2][..]];
    on_each_isa(|isa| {
        for (first, second, place) in names
            .iter()
            .flat_map(|first| names.iter().flat_map(move |second| [(first, second, 0), (first, second, 1)]))
        {
            let between = run(step(first), &[a, b]);
            let two = [&between[..], c];
            let alone = run(step(second), &[two[place], two[1 - place]]);
            let joined = pair(step(first), step(second), place).expect("a step for both");
            assert!(bits(run(joined, &[a, b, c])) == bits(alone), "{} {first} {second} {place}", isa.name());
        }
        assert!(pair(step("add"), step("true_divide"), 0).is_none());
    });
}

#[test]
fn halves_convert_to_the_same_bits_on_each_isa() {
    use mxnp_core::f16;
    let mut rng = Rng(17);
    // All halves in an order that has a NaN among others, and in one where they lie together.
    let mut halves: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
    halves.extend((0..=u16::MAX).map(|bits| f16::from_bits(bits.wrapping_mul(40_503))));
    let mut wide: Vec<f32> = (0..100_003).map(|_| f32::from_bits(rng.next() as u32)).collect();
    wide.extend((0..100_000).map(|_| (rng.unit() * 2f64.powi(rng.below(50) as i32 - 30)) as f32));
    wide.extend(special32());
    let mut first = None;
    on_each_isa(|isa| {
        let widened: Vec<u32> = cast::<f16, f32>(&halves).into_iter().map(f32::to_bits).collect();
        let narrowed: Vec<u16> = cast::<f32, f16>(&wide).into_iter().map(f16::to_bits).collect();
        let bits = (widened, narrowed);
        assert!(*first.get_or_insert_with(|| bits.clone()) == bits, "{}", isa.name());
    });
}
