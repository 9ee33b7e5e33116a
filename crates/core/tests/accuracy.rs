//! The elementary functions at most two units in the last place off, and exact at their edges, in float32 and
//! float64, on each instruction set. The reference has 31 digits (`support::precise`).

#[path = "support/precise.rs"]
mod precise;
mod support;

use mxnp_core::op::{Run, StepFn};
use mxnp_core::simd::{self, Isa};
use mxnp_core::{DType, ops};
use precise::{Precise, p};
use std::sync::{Mutex, MutexGuard};
use support::Rng;

/// The instruction set belongs to the process: one test at a time changes it.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn on_each_isa(body: impl Fn(Isa)) {
    let before = simd::isa();
    for isa in Isa::ALL.into_iter().filter(|&isa| simd::select(isa)) {
        body(isa);
    }
    simd::select(before);
}

fn step(name: &str, dtype: DType, arity: usize) -> StepFn {
    let Run::Elementwise(of) = ops::find(name).unwrap().run else { panic!("{name} is not elementwise") };
    of(&vec![dtype; arity], dtype).unwrap_or_else(|| panic!("{name} has no step for {dtype}"))
}

fn apply<T: Default + Clone>(f: StepFn, ins: &[&[T]]) -> Vec<T> {
    let mut out = vec![T::default(); ins[0].len()];
    let pointers: Vec<*const u8> = ins.iter().map(|x| x.as_ptr().cast()).collect();
    // SAFETY: all slices have the same length and the step's dtype.
    unsafe { f(out.len(), &pointers, out.as_mut_ptr().cast()) };
    out
}

/// The distance in units of the last place of a type with `digits` bits of fraction and this least exponent.
fn units(got: f64, want: Precise, digits: i32, least: i32, greatest: f64) -> f64 {
    if got.is_nan() || want.0.is_nan() {
        return if got.is_nan() && want.0.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if got.is_infinite() || want.0.is_infinite() {
        // What rounds past the greatest number is infinite.
        let past = want.0.abs() > greatest && want.0.is_sign_positive() == got.is_sign_positive();
        return if got == want.0 || got.is_infinite() && past { 0.0 } else { f64::INFINITY };
    }
    let exponent = if want.0 == 0.0 { least } else { want.0.abs().log2().floor().max(least as f64) as i32 };
    let off = (p(got) - want).abs();
    // In two steps, because the unit itself may be too small for a number.
    off.0 * 2f64.powi(digits - exponent / 2) * 2f64.powi(exponent / 2 - exponent)
}
fn units32(got: f32, want: Precise) -> f64 {
    units(got as f64, want, 23, -126, 3.4028235677973366e38)
}
/// [`units32`] beside a double, in a few instructions where both are ordinary numbers.
fn units_of_double(got: f32, want: f64) -> f64 {
    let exponent = (want.to_bits() >> 52 & 0x7ff) as i64 - 1023;
    if !got.is_finite() || !(-126..128).contains(&exponent) {
        return units32(got, p(want));
    }
    (got as f64 - want).abs() * f64::from_bits(((1023 + 23 - exponent) as u64) << 52)
}
fn units64(got: f64, want: Precise) -> f64 {
    units(got, want, 52, -1022, f64::MAX)
}

type Reference = fn(Precise) -> Precise;

/// name, domain, reference.
const FUNCTIONS: &[(&str, f64, f64, Reference)] = &[
    ("exp", -110.0, 95.0, Precise::exp),
    ("expm1", -50.0, 95.0, Precise::expm1),
    ("exp2", -155.0, 130.0, Precise::exp2),
    ("log", 0.0, 10.0, Precise::ln),
    ("log2", 0.0, 10.0, Precise::log2),
    ("log10", 0.0, 10.0, Precise::log10),
    ("log1p", -1.0, 10.0, Precise::log1p),
    ("cbrt", -10.0, 10.0, Precise::cbrt),
    ("rsqrt", 0.0, 10.0, Precise::rsqrt),
    ("sinh", -80.0, 80.0, Precise::sinh),
    ("cosh", -80.0, 80.0, Precise::cosh),
    ("tanh", -10.0, 10.0, Precise::tanh),
    ("sin", -1000.0, 1000.0, Precise::sin),
    ("cos", -1000.0, 1000.0, Precise::cos),
    ("tan", -1000.0, 1000.0, Precise::tan),
    ("arcsin", -1.0, 1.0, Precise::arcsin),
    ("arccos", -1.0, 1.0, Precise::arccos),
    ("arctan", -10.0, 10.0, Precise::arctan),
    ("arcsinh", -1e3, 1e3, Precise::arcsinh),
    ("arccosh", 1.0, 1e3, Precise::arccosh),
    ("arctanh", -1.0, 1.0, Precise::arctanh),
    ("erf", -7.0, 7.0, Precise::erf),
    ("sigmoid", -104.0, 50.0, Precise::sigmoid),
    ("softplus", -104.0, 60.0, Precise::softplus),
    ("gelu", -15.0, 10.0, Precise::gelu),
    // Below, the sigmoid is subnormal and has few digits.
    ("silu", -87.0, 50.0, Precise::silu),
    ("erfinv", -1.0, 1.0, Precise::erfinv),
];

fn points(low: f64, high: f64, n: usize, seed: u64) -> Vec<f64> {
    let mut rng = Rng(seed);
    let mut x: Vec<f64> = (0..n).map(|_| low + (high - low) * rng.unit()).collect();
    // Near zero, where much happens, and magnitudes of every size.
    x.extend((0..n).map(|_| (rng.unit() - 0.5) * 8.0));
    x.extend((0..n).map(|_| (rng.unit() - 0.5) * 2f64.powi(-(rng.below(140) as i32))));
    x.extend((0..n / 4).map(|_| 1.0 + (rng.unit() - 0.5) * 2f64.powi(-(rng.below(40) as i32))));
    x.retain(|v| *v > low && *v < high);
    x
}

/// The worst of one function in one dtype on one instruction set: units of the last place, and where.
struct Worst {
    name: &'static str,
    dtype: DType,
    isa: Isa,
    units: f64,
    at: f64,
}

impl std::fmt::Display for Worst {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let Worst { name, dtype, isa, units, at } = self;
        write!(f, "{name:9} {:8} {:8} {units:5.2} at {at:e}", dtype.to_string(), isa.name())
    }
}

/// None is more than two units off.
fn check(all: &[Worst]) {
    let wrong: Vec<String> = all.iter().filter(|w| w.units > 2.0).map(|w| w.to_string()).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Whether MXNP_ACCURACY, names with spaces between, asks for this function; unset or empty, it asks for all.
fn is_asked(name: &str) -> bool {
    let asked = std::env::var("MXNP_ACCURACY").unwrap_or_default();
    asked.trim().is_empty() || asked.split_whitespace().any(|each| each == name)
}

/// Each function at random points of its domain, four times as many in float32 as in float64.
fn sampled(n: usize) -> Vec<Worst> {
    let _alone = alone();
    let worst = |off: &mut dyn Iterator<Item = (f64, f64)>| off.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
    let mut all = Vec::new();
    for &(name, low, high, reference) in FUNCTIONS.iter().filter(|row| is_asked(row.0)) {
        let single: Vec<f32> = points(low, high, 2 * n, 1).iter().map(|v| *v as f32).collect();
        let single: Vec<f32> =
            single.into_iter().filter(|v| (*v as f64) > low && (*v as f64) < high).collect();
        let double = points(low, high, n, 2);
        let want: Vec<Precise> = single.iter().map(|v| reference(p(*v as f64))).collect();
        let wide: Vec<Precise> = double.iter().map(|v| reference(p(*v))).collect();
        let found = std::cell::RefCell::new(Vec::new());
        on_each_isa(|isa| {
            let y = apply(step(name, DType::F32, 1), &[&single]);
            let mut off = (0..y.len()).map(|i| (units32(y[i], want[i]), single[i] as f64));
            let (units, at) = worst(&mut off);
            found.borrow_mut().push(Worst { name, dtype: DType::F32, isa, units, at });
            let y = apply(step(name, DType::F64, 1), &[&double]);
            let mut off = (0..y.len()).map(|i| (units64(y[i], wide[i]), double[i]));
            let (units, at) = worst(&mut off);
            found.borrow_mut().push(Worst { name, dtype: DType::F64, isa, units, at });
        });
        all.extend(found.into_inner());
    }
    all
}

#[test]
fn functions_are_within_two_units_of_the_last_place() {
    check(&sampled(2000));
}

/// A minute or two. Shows what it finds: `make accuracy`.
#[test]
#[ignore = "slow: many points, each function, each instruction set"]
fn many_points_are_within_two_units_of_the_last_place() {
    let all = sampled(50_000);
    all.iter().filter(|worst| worst.dtype == DType::F64).for_each(|worst| println!("{worst}"));
    check(&all);
}

type Double = fn(f64) -> f64;

unsafe extern "C" {
    safe fn erf(x: f64) -> f64;
    safe fn erfc(x: f64) -> f64;
}

/// Functions of the C library and Rust's that are exact enough in double precision for float32.
const DOUBLES: &[(&str, Double)] = &[
    ("exp", f64::exp),
    ("expm1", f64::exp_m1),
    ("exp2", f64::exp2),
    ("log", f64::ln),
    ("log2", f64::log2),
    ("log10", f64::log10),
    ("log1p", f64::ln_1p),
    ("cbrt", f64::cbrt),
    ("sinh", f64::sinh),
    ("cosh", f64::cosh),
    ("tanh", f64::tanh),
    ("sin", f64::sin),
    ("cos", f64::cos),
    ("tan", f64::tan),
    ("arcsin", f64::asin),
    ("arccos", f64::acos),
    ("arctan", f64::atan),
    ("sigmoid", |x| if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) }),
    ("softplus", |x| x.max(0.0) + (-x.abs()).exp().ln_1p()),
    ("erf", |x| erf(x)),
    ("gelu", |x| if x < -40.0 { -0.0 } else { 0.5 * x * erfc(-x * std::f64::consts::FRAC_1_SQRT_2) }),
    ("arcsinh", f64::asinh),
    ("arccosh", f64::acosh),
    ("arctanh", f64::atanh),
    ("rsqrt", |x| 1.0 / x.sqrt()),
];

/// Float32 numbers by their bits, `stride` apart, NaN and infinities among them. Hands on each function's worst.
fn every(stride: usize, mut shown: impl FnMut(&Worst)) {
    const BLOCK: usize = 1 << 14;
    let _alone = alone();
    let (mut x, mut want, mut y) = (Vec::new(), Vec::new(), vec![0f32; BLOCK]);
    let mut all = Vec::new();
    for &(name, reference) in DOUBLES.iter().filter(|row| is_asked(row.0)) {
        let row = std::cell::RefCell::new(Vec::new());
        on_each_isa(|isa| {
            let f = step(name, DType::F32, 1);
            row.borrow_mut().push((f, Worst { name, dtype: DType::F32, isa, units: 0.0, at: 0.0 }));
        });
        let mut row = row.into_inner();
        let mut bits = (0..=u32::MAX).step_by(stride);
        loop {
            x.clear();
            x.extend(bits.by_ref().take(BLOCK).map(f32::from_bits));
            if x.is_empty() {
                break;
            }
            want.clear();
            want.extend(x.iter().map(|x| reference(*x as f64)));
            for (f, worst) in &mut row {
                // SAFETY: one input of as many elements as there are, and room for as many.
                unsafe { f(x.len(), &[x.as_ptr().cast()], y.as_mut_ptr().cast()) };
                for ((x, y), want) in x.iter().zip(&y).zip(&want) {
                    if y.to_bits() == (*want as f32).to_bits() {
                        continue;
                    }
                    let units = units_of_double(*y, *want);
                    if units > worst.units {
                        (worst.units, worst.at) = (units, *x as f64);
                    }
                }
            }
        }
        row.iter().for_each(|(_, worst)| shown(worst));
        all.extend(row.into_iter().map(|(_, worst)| worst));
    }
    check(&all);
}

#[test]
fn float32_is_right_over_its_whole_range() {
    every(26_003, |_| ());
}

/// Some minutes for each function. Shows what it finds: `make accuracy`.
#[test]
#[ignore = "slow: all float32 numbers, each function, each instruction set"]
fn float32_is_right_everywhere() {
    every(1, |worst| println!("{worst}"));
}

#[test]
fn edges_are_exact() {
    let _alone = alone();
    // The first float32 whose exponential is none.
    on_each_isa(|_| {
        let x = [88.722_84f32, f32::from_bits(88.722_84f32.to_bits() - 1)];
        let y = apply(step("exp", DType::F32, 1), &[&x]);
        assert!(y[0] == f32::INFINITY && y[1] == 3.402_798_5e38, "{y:?}");
    });
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let tiny = f32::from_bits(1) as f64;
    let odd = |name| [(name, 0.0, 0.0), (name, -0.0, -0.0), (name, tiny, tiny), (name, nan, nan)];
    let mut cases: Vec<(&str, f64, f64)> = vec![
        ("exp", inf, inf),
        ("exp", -inf, 0.0),
        ("exp", nan, nan),
        ("exp", -0.0, 1.0),
        ("exp2", 10.0, 1024.0),
        ("exp2", -149.0, tiny),
        ("exp2", inf, inf),
        ("exp2", -inf, 0.0),
        ("expm1", inf, inf),
        ("expm1", -inf, -1.0),
        ("log", inf, inf),
        ("log", 0.0, -inf),
        ("log", -0.0, -inf),
        ("log", -1.0, nan),
        ("log", 1.0, 0.0),
        ("log2", 8.0, 3.0),
        ("log2", tiny, -149.0),
        ("log10", 1000.0, 3.0),
        ("log10", 0.0, -inf),
        ("log1p", -1.0, -inf),
        ("log1p", inf, inf),
        ("log1p", -2.0, nan),
        ("cbrt", -27.0, -3.0),
        ("cbrt", inf, inf),
        ("cbrt", -0.0, -0.0),
        ("cbrt", nan, nan),
        ("sinh", inf, inf),
        ("sinh", -inf, -inf),
        ("cosh", -inf, inf),
        ("cosh", nan, nan),
        ("cosh", 0.0, 1.0),
        ("tanh", inf, 1.0),
        ("tanh", -inf, -1.0),
        ("sin", inf, nan),
        ("cos", -inf, nan),
        ("cos", 0.0, 1.0),
        ("arctan", inf, std::f64::consts::FRAC_PI_2),
        ("arctan", -inf, -std::f64::consts::FRAC_PI_2),
        ("arcsin", 1.0, std::f64::consts::FRAC_PI_2),
        ("arcsin", 1.5, nan),
        ("arccos", 1.0, 0.0),
        ("arccos", -1.0, std::f64::consts::PI),
        ("arccos", -1.5, nan),
        ("erf", inf, 1.0),
        ("erf", -inf, -1.0),
        ("erf", nan, nan),
        ("sigmoid", inf, 1.0),
        ("sigmoid", -inf, 0.0),
        ("sigmoid", nan, nan),
        ("sigmoid", 0.0, 0.5),
        ("softplus", inf, inf),
        ("softplus", -inf, 0.0),
        ("softplus", nan, nan),
        ("gelu", inf, inf),
        ("gelu", -inf, -0.0),
        ("gelu", -0.0, -0.0),
        ("gelu", nan, nan),
    ];
    for name in ["expm1", "log1p", "sinh", "tanh", "sin", "tan", "arctan", "arcsin"] {
        cases.extend(odd(name));
    }
    on_each_isa(|isa| {
        for &(name, x, want) in &cases {
            // In a whole block and alone, which goes another way.
            for n in [1, 32] {
                let single = apply(step(name, DType::F32, 1), &[&vec![x as f32; n]]);
                let double = apply(step(name, DType::F64, 1), &[&vec![x; n]]);
                let same = |a: f64, b: f64| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
                let (a, b) = (single[0] as f64, double[0]);
                let wide = name == "exp2" && x == -149.0 || same(b, want);
                assert!(same(a, want as f32 as f64), "{} {name}({x}) = {a}, want {want}", isa.name());
                assert!(wide, "{} {name}({x}) = {b} in float64, want {want}", isa.name());
            }
        }
    });
}

#[test]
fn powers_are_within_two_units_of_the_last_place() {
    let _alone = alone();
    let mut rng = Rng(7);
    let n = 6000;
    let a: Vec<f64> = (0..n).map(|_| 2f64.powf((rng.unit() - 0.5) * 40.0)).collect();
    let b: Vec<f64> = (0..n).map(|_| (rng.unit() - 0.5) * 100.0 * rng.unit()).collect();
    on_each_isa(|isa| {
        for (i, y) in apply(step("power", DType::F64, 2), &[&a, &b]).into_iter().enumerate() {
            let off = units64(y, p(a[i]).power(p(b[i])));
            assert!(off <= 2.0, "{} {:e}^{:e} = {y:e}: {off} units", isa.name(), a[i], b[i]);
        }
        let single = |v: &[f64]| v.iter().map(|v| *v as f32).collect::<Vec<f32>>();
        let (a, b) = (single(&a), single(&b));
        for (i, y) in apply(step("power", DType::F32, 2), &[&a, &b]).into_iter().enumerate() {
            let off = units32(y, p(a[i] as f64).power(p(b[i] as f64)));
            assert!(off <= 2.0, "{} {:e}^{:e} = {y:e}: {off} units", isa.name(), a[i], b[i]);
        }
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        let edges = [
            (2.0, 10.0, 1024.0),
            (10.0, 3.0, 1000.0),
            (0.0, 0.0, 1.0),
            (nan, 0.0, 1.0),
            (1.0, nan, 1.0),
            (-8.0, 3.0, -512.0),
            (-8.0, 0.5, nan),
            (0.0, -1.0, inf),
            (2.0, inf, inf),
            (2.0, -inf, 0.0),
            (2.0, 1e300, inf),
            (2.0, -1e300, 0.0),
            (1e300, 10.0, inf),
            (1.0, 1e300, 1.0),
        ];
        for (a, b, want) in edges {
            let y = apply(step("power", DType::F64, 2), &[&[a], &[b]])[0];
            assert!(y == want || y.is_nan() && want.is_nan(), "{} {a}^{b} = {y}", isa.name());
        }
    });
}

#[test]
fn angles_of_points_in_every_quadrant() {
    let _alone = alone();
    let values =
        [0.0, -0.0, 1.0, -1.0, 0.3, -2.5, 1e-310, -1e308, 1e-40, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    let mut pairs: Vec<(f64, f64)> =
        values.iter().flat_map(|&y| values.iter().map(move |&x| (y, x))).collect();
    let mut rng = Rng(13);
    pairs.extend(
        (0..5000).map(|_| (rng.unit() - 0.5, (rng.unit() - 0.5) * 2f64.powi(rng.below(8) as i32 - 4))),
    );
    let (y, x): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
    on_each_isa(|isa| {
        let single = |v: &[f64]| v.iter().map(|v| *v as f32).collect::<Vec<f32>>();
        let (y32, x32) = (single(&y), single(&x));
        let wide = apply(step("arctan2", DType::F64, 2), &[&y, &x]);
        let short = apply(step("arctan2", DType::F32, 2), &[&y32, &x32]);
        for i in 0..y.len() {
            let want = y[i].atan2(x[i]);
            // The library is within one unit.
            assert!(units64(wide[i], p(want)) <= 2.5, "{} {} {} {}", isa.name(), y[i], x[i], wide[i]);
            assert!(want.is_nan() || wide[i].is_sign_negative() == want.is_sign_negative());
            let want = (y32[i] as f64).atan2(x32[i] as f64);
            assert!(units32(short[i], p(want)) <= 2.0, "{} {} {} {}", isa.name(), y32[i], x32[i], short[i]);
        }
    });
}
