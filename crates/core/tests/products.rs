//! Products of matrices, on every instruction set this machine has: every path (read in place, packed, dot
//! products, sweeps, parts of the inner axis, prepared together) against plain loops in float64 and the `gemm` crate.

mod support;

use mxnp_core::kernel::gemm::{Mat, Product, batched};
use mxnp_core::kernel::pass::{self, Load, Pass, Slot, Source, Step, Store};
use mxnp_core::kernel::tail::Tail;
use mxnp_core::op::Run;
use mxnp_core::par::{Parallel, Serial};
use mxnp_core::simd::{Isa, isa, select};
use mxnp_core::{Layout, Op, bf16, f16, ops};
use std::sync::{Mutex, OnceLock};
use support::{Rng, Shuffled, Threads};

/// Instruction sets are the process's: tests that choose one take turns.
static TURN: Mutex<()> = Mutex::new(());

fn on_each_isa(test: impl Fn(Isa)) {
    let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    let best = isa();
    Isa::ALL.into_iter().filter(|isa| select(*isa)).for_each(test);
    select(best);
}

trait Number: Product {
    fn of(x: f32) -> Self;
    fn value(self) -> f64;
}

macro_rules! numbers {
    ($($t:ty: $of:expr);*) => { $(
        impl Number for $t {
            fn of(x: f32) -> $t {
                $of(x)
            }
            fn value(self) -> f64 {
                f64::from(self)
            }
        }
    )* };
}
numbers!(f32: |x| x; f64: f64::from; f16: f16::from_f32; bf16: bf16::from_f32);

/// How an operand lies in memory.
#[derive(Clone, Copy, Debug)]
enum Lie {
    Rows,
    Columns,
    /// Every second row and third column of something larger.
    Apart,
    /// Rows from the last to the first.
    Backwards,
    /// Rows a page apart.
    Pages,
}

const LIES: [Lie; 5] = [Lie::Rows, Lie::Columns, Lie::Apart, Lie::Backwards, Lie::Pages];

struct Matrix<T> {
    memory: Vec<T>,
    start: usize,
    row: isize,
    column: isize,
    values: Vec<f64>,
    columns: usize,
}

impl<T: Number> Matrix<T> {
    fn new(rng: &mut Rng, rows: usize, columns: usize, lie: Lie) -> Matrix<T> {
        let (r, c) = (rows.max(1), columns.max(1));
        let (size, start, row, column) = match lie {
            Lie::Rows => (r * c, 0, c as isize, 1),
            Lie::Columns => (r * c, 0, 1, r as isize),
            Lie::Apart => (6 * r * c, 0, 6 * c as isize, 3),
            Lie::Backwards => (r * c, (r - 1) * c, -(c as isize), 1),
            Lie::Pages => (r * c.next_multiple_of(1024), 0, c.next_multiple_of(1024) as isize, 1),
        };
        let mut memory = vec![T::of(f32::NAN); size];
        let mut values = vec![0.0; rows * columns];
        for i in 0..rows {
            for j in 0..columns {
                let x = T::of((rng.unit() * 4.0 - 2.0) as f32);
                memory[(start as isize + i as isize * row + j as isize * column) as usize] = x;
                values[i * columns + j] = x.value();
            }
        }
        Matrix { memory, start, row, column, values, columns }
    }

    fn mat(&self) -> Mat<T> {
        Mat::new(self.memory[self.start..].as_ptr(), self.row, self.column)
    }
}

/// The product by `batched`, in memory whose surroundings are checked.
fn product<T: Number>([m, n, k]: [usize; 3], a: &Matrix<T>, b: &Matrix<T>, par: &dyn Parallel) -> Vec<T> {
    const GUARD: usize = 64;
    let mut memory = vec![T::of(77.0); m * n + 2 * GUARD];
    let c = Mat::new(memory[GUARD..].as_mut_ptr().cast_const(), n as isize, 1);
    // SAFETY: matrices of these sizes; the result overlaps nothing.
    unsafe { batched([m, n, k], a.mat(), b.mat(), c, &[[0; 3]], None, par) };
    let untouched = |x: &T| x.value() == 77.0;
    assert!(memory[..GUARD].iter().all(untouched) && memory[GUARD + m * n..].iter().all(untouched));
    memory[GUARD..GUARD + m * n].to_vec()
}

/// `eps` is what a sum may lose in each step, `round` what its result loses at the end, both relative.
fn check<T: Number>(rng: &mut Rng, sizes: [usize; 3], lies: [Lie; 2], eps: f64, round: f64) {
    let [m, n, k] = sizes;
    let (a, b) = (Matrix::<T>::new(rng, m, k, lies[0]), Matrix::<T>::new(rng, k, n, lies[1]));
    let found = product(sizes, &a, &b, &Serial);
    for i in 0..m {
        for j in 0..n {
            let terms = |f: fn(f64) -> f64| -> f64 {
                (0..k).map(|l| f(a.values[i * a.columns + l] * b.values[l * b.columns + j])).sum()
            };
            let (want, size) = (terms(|x| x), terms(f64::abs));
            let got = found[i * n + j].value();
            let most = eps * (2.0 + (k as f64).sqrt()) * size + round * want.abs();
            assert!((got - want).abs() <= most, "{sizes:?} {lies:?} at ({i}, {j}): {got}, not {want}");
        }
    }
    let same = |other: Vec<T>| found.iter().zip(&other).all(|(x, y)| x == y);
    assert!(same(product(sizes, &a, &b, &Shuffled(3))), "{sizes:?} in another order");
    assert!(same(product(sizes, &a, &b, &Threads(3))), "{sizes:?} by three threads");
}

/// Sizes (m, n, k) on both sides of what decides how a product is computed.
const SIZES: [[usize; 3]; 29] = [
    [1, 1, 1],
    [2, 3, 4],
    [5, 17, 1],
    [9, 130, 2],
    [7, 33, 9],
    [13, 50, 31],
    [31, 31, 31],
    [64, 64, 64],
    [65, 49, 66],
    [1, 97, 300],
    [1, 2000, 150],
    [3, 200, 700],
    [8, 70, 40],
    [47, 20, 300],
    [200, 1, 90],
    [300, 1, 1],
    [1, 1, 5000],
    [3, 5, 9000],
    [70, 10, 5000],
    [128, 10, 256],
    [130, 90, 100],
    [100, 150, 300],
    [257, 129, 257],
    [16, 300, 100],
    [1, 30, 5000],
    [90, 100, 2700],
    [0, 4, 3],
    [4, 0, 3],
    [4, 5, 0],
];

#[test]
fn products_agree_with_plain_loops() {
    on_each_isa(|isa| {
        let mut rng = Rng(7);
        for (at, sizes) in SIZES.into_iter().enumerate() {
            let turns = if sizes.iter().product::<usize>() > 1 << 20 { 2 } else { LIES.len() };
            for turn in 0..turns {
                let lies = [LIES[turn], LIES[(at + 2 * turn + isa as usize) % LIES.len()]];
                check::<f32>(&mut rng, sizes, lies, 6e-8, 0.0);
                if turn % 2 == at % 2 {
                    check::<f64>(&mut rng, sizes, lies, 1.2e-16, 0.0);
                }
            }
        }
    });
}

#[test]
fn products_agree_with_the_crate() {
    on_each_isa(|_| {
        let mut rng = Rng(8);
        for [m, n, k] in [[33, 47, 65], [200, 210, 190], [5, 300, 520]] {
            let (a, b) = (
                Matrix::<f32>::new(&mut rng, m, k, Lie::Rows),
                Matrix::<f32>::new(&mut rng, k, n, Lie::Columns),
            );
            let own = product([m, n, k], &a, &b, &Serial);
            let mut other = vec![0f32; m * n];
            // SAFETY: matrices of these sizes.
            unsafe {
                gemm::gemm(
                    m,
                    n,
                    k,
                    other.as_mut_ptr(),
                    1,
                    n as isize,
                    false,
                    a.memory.as_ptr(),
                    a.column,
                    a.row,
                    b.memory.as_ptr(),
                    b.column,
                    b.row,
                    0.0,
                    1.0,
                    false,
                    false,
                    false,
                    gemm::Parallelism::None,
                );
            }
            for (x, y) in own.iter().zip(&other) {
                assert!((x - y).abs() < 1e-4 * (k as f32).sqrt(), "{x}, not {y}");
            }
        }
    });
}

/// What is not finite stays in its row and column, whatever shares its vectors and panels.
#[test]
fn nan_and_inf_stay_where_they_belong() {
    on_each_isa(|isa| {
        let mut rng = Rng(9);
        for [m, n, k] in [[1, 35, 40], [3, 50, 300], [9, 33, 20], [60, 37, 300], [130, 101, 300], [1, 1, 100]]
        {
            for lie in [Lie::Rows, Lie::Columns, Lie::Apart] {
                let mut a = Matrix::<f32>::new(&mut rng, m, k, lie);
                let b = Matrix::<f32>::new(&mut rng, k, n, if m % 2 == 0 { Lie::Rows } else { Lie::Columns });
                let (i, l) = (m / 2, k - 1);
                let place = (a.start as isize + i as isize * a.row + l as isize * a.column) as usize;
                for bad in [f32::NAN, f32::INFINITY] {
                    a.memory[place] = bad;
                    let found = product([m, n, k], &a, &b, &Serial);
                    for (at, x) in found.iter().enumerate() {
                        let good = if at / n == i { !x.is_finite() } else { x.is_finite() };
                        assert!(good, "{isa:?} {m}x{n}x{k} {lie:?}: {x} at {at}");
                    }
                    let signs = |j: usize| {
                        bad.is_nan() || found[i * n + j] == bad * b.values[l * n + j].signum() as f32
                    };
                    assert!((0..n).all(signs), "{isa:?} {m}x{n}x{k}");
                }
            }
        }
    });
}

#[test]
fn sums_over_nothing_are_zero() {
    let (a, b) =
        (Matrix::<f32>::new(&mut Rng(1), 3, 0, Lie::Rows), Matrix::new(&mut Rng(1), 0, 2, Lie::Rows));
    assert_eq!(product([3, 2, 0], &a, &b, &Serial), [0.0; 6]);
}

/// Half types: sums of any length in float32, rounded once, whatever the operands lie like.
#[test]
fn half_types_are_rounded_once() {
    on_each_isa(|isa| {
        let mut rng = Rng(11);
        for (at, sizes) in SIZES.into_iter().enumerate() {
            let lies = [LIES[(at + isa as usize) % LIES.len()], LIES[(2 * at + isa as usize) % LIES.len()]];
            check::<bf16>(&mut rng, sizes, lies, 6e-8, 1.0 / 256.0);
            check::<f16>(&mut rng, sizes, lies, 6e-8, 1.0 / 2048.0);
        }
    });
}

/// A tail sees every element once, finished, on every way that a product is computed; also of a batch.
#[test]
fn a_tail_is_the_pass_after_the_product() {
    on_each_isa(|_| {
        let mut rng = Rng(12);
        // The last two have blocks with long pieces of rows.
        for [m, n, k] in SIZES.into_iter().chain([[8, 40000, 8], [100, 5000, 16]]) {
            if m * n > 0 {
                check_tail::<f32>(&mut rng, [m, n, k]);
                check_tail::<bf16>(&mut rng, [m, n, k]);
            }
        }
    });
}

/// `c = c * d + bias`, where `d` lies by columns.
fn check_tail<T: Number>(rng: &mut Rng, [m, n, k]: [usize; 3]) {
    let (a, b) = (Matrix::<T>::new(rng, m, k, Lie::Rows), Matrix::<T>::new(rng, k, n, Lie::Columns));
    let d = Matrix::<T>::new(rng, m, n, Lie::Columns);
    let bias: Vec<T> = (0..n).map(|j| T::of(j as f32 - 1.5)).collect();
    let all = Layout::contiguous(&[m, n]);
    let columns = Layout { strides: [1, m as isize][..].into(), ..all.clone() };
    let spread = Layout { strides: [0, 1][..].into(), ..all.clone() };
    let step = |op: &Op| match op.run {
        Run::Elementwise(of) => of(&[T::DTYPE; 2], T::DTYPE).expect("a step"),
        _ => panic!("not elementwise"),
    };
    let load = |slot| Load { source: Source::Array(slot), dtype: T::DTYPE, reg: slot };
    let pass = Pass {
        shape: [m, n][..].into(),
        regs: vec![T::DTYPE; 5],
        loads: (0..3).map(load).collect(),
        steps: vec![
            Step { f: step(ops::find("multiply").unwrap()), ins: [0, 1][..].into(), out: 3 },
            Step { f: step(ops::find("add").unwrap()), ins: [3, 2][..].into(), out: 4 },
        ],
        stores: vec![Store { reg: 4, target: 3, dtype: T::DTYPE }],
        reduce: None,
    };
    let mut want = product([m, n, k], &a, &b, &Serial);
    let slots = |c: *mut T| {
        let slot = |base: *const T, layout| Slot { base: base.cast_mut().cast(), layout };
        [slot(c, &all), slot(d.memory.as_ptr(), &columns), slot(bias.as_ptr(), &spread), slot(c, &all)]
    };
    // SAFETY: slots of these layouts.
    unsafe { pass::run(&pass, &slots(want.as_mut_ptr()), &[], &Serial) };
    for par in [&Serial as &dyn Parallel, &Shuffled(5), &Threads(3)] {
        let mut found = vec![T::of(77.0); m * n];
        let start = found.as_mut_ptr();
        let kept = OnceLock::new();
        for _ in 0..2 {
            // SAFETY: as above; the product's operands are none of the slots.
            unsafe {
                let tail = Tail::new(&pass, &kept, &slots(start), &[]).expect("no reduction");
                let c = Mat::new(start.cast_const(), n as isize, 1);
                batched([m, n, k], a.mat(), b.mat(), c, &[[0; 3]], Some(&tail), par);
            }
            let same = found.iter().zip(&want).all(|(x, y)| x == y);
            assert!(same, "{m}x{n}x{k} {:?}", T::DTYPE);
        }
    }
}
