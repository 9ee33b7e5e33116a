//! Products of matrices, on every instruction set this machine has: every path (read in place, packed, dot
//! products, sweeps, parts of the inner axis, prepared together) against plain loops in float64 and the `gemm` crate.

mod support;

use mxnp_core::kernel::gemm::{Finish, Mat, Product, batched};
use mxnp_core::kernel::moves::Shared;
use mxnp_core::par::{Parallel, Serial};
use mxnp_core::simd::{Isa, isa, select};
use std::sync::Mutex;
use support::{Rng, Shuffled, Threads};

/// Instruction sets are the process's: tests that choose one take turns.
static TURN: Mutex<()> = Mutex::new(());

fn on_each_isa(test: impl Fn(Isa)) {
    let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    let best = isa();
    Isa::ALL.into_iter().filter(|isa| select(*isa)).for_each(test);
    select(best);
}

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

impl<T: Product + From<f32>> Matrix<T> {
    fn new(rng: &mut Rng, rows: usize, columns: usize, lie: Lie) -> Matrix<T> {
        let (r, c) = (rows.max(1), columns.max(1));
        let (size, start, row, column) = match lie {
            Lie::Rows => (r * c, 0, c as isize, 1),
            Lie::Columns => (r * c, 0, 1, r as isize),
            Lie::Apart => (6 * r * c, 0, 6 * c as isize, 3),
            Lie::Backwards => (r * c, (r - 1) * c, -(c as isize), 1),
            Lie::Pages => (r * c.next_multiple_of(1024), 0, c.next_multiple_of(1024) as isize, 1),
        };
        let mut memory = vec![T::from(f32::NAN); size];
        let mut values = vec![0.0; rows * columns];
        for i in 0..rows {
            for j in 0..columns {
                let x = (rng.unit() * 4.0 - 2.0) as f32;
                memory[(start as isize + i as isize * row + j as isize * column) as usize] = T::from(x);
                values[i * columns + j] = f64::from(x);
            }
        }
        Matrix { memory, start, row, column, values, columns }
    }

    fn mat(&self) -> Mat<T> {
        Mat::new(self.memory[self.start..].as_ptr(), self.row, self.column)
    }
}

/// The product by `batched`, in memory whose surroundings are checked.
fn product<T: Product + From<f32> + Into<f64>>(
    [m, n, k]: [usize; 3],
    a: &Matrix<T>,
    b: &Matrix<T>,
    bias: Option<&[T]>,
    par: &dyn Parallel,
) -> Vec<T> {
    const GUARD: usize = 64;
    let mut memory = vec![T::from(77.0); m * n + 2 * GUARD];
    let c = Mat::new(memory[GUARD..].as_mut_ptr().cast_const(), n as isize, 1);
    let bias = Shared(bias.map_or(std::ptr::null_mut(), |b| b.as_ptr().cast_mut()));
    // SAFETY: matrices of these sizes; the result overlaps nothing.
    unsafe { batched([m, n, k], a.mat(), b.mat(), c, Finish { bias, ..Finish::set() }, &[[0; 3]], par) };
    let untouched = |x: &T| Into::<f64>::into(*x) == 77.0;
    assert!(memory[..GUARD].iter().all(untouched) && memory[GUARD + m * n..].iter().all(untouched));
    memory[GUARD..GUARD + m * n].to_vec()
}

fn check<T: Product + From<f32> + Into<f64>>(rng: &mut Rng, sizes: [usize; 3], lies: [Lie; 2], eps: f64) {
    let [m, n, k] = sizes;
    let (a, b) = (Matrix::<T>::new(rng, m, k, lies[0]), Matrix::<T>::new(rng, k, n, lies[1]));
    let bias: Vec<T> = (0..n).map(|j| T::from(j as f32 - 1.5)).collect();
    for with in [None, Some(&bias[..])] {
        let found = product(sizes, &a, &b, with, &Serial);
        for i in 0..m {
            for j in 0..n {
                let terms = |f: fn(f64) -> f64| -> f64 {
                    (0..k).map(|l| f(a.values[i * a.columns + l] * b.values[l * b.columns + j])).sum()
                };
                let extra: f64 = with.map_or(0.0, |b| b[j].into());
                let (want, size) = (terms(|x| x) + extra, terms(f64::abs) + extra.abs());
                let got: f64 = found[i * n + j].into();
                let most = eps * (2.0 + (k as f64).sqrt()) * size;
                assert!((got - want).abs() <= most, "{sizes:?} {lies:?} at ({i}, {j}): {got}, not {want}");
            }
        }
        let same = |other: Vec<T>| found.iter().zip(&other).all(|(x, y)| x == y);
        assert!(same(product(sizes, &a, &b, with, &Shuffled(3))), "{sizes:?} in another order");
        assert!(same(product(sizes, &a, &b, with, &Threads(3))), "{sizes:?} by three threads");
    }
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
                check::<f32>(&mut rng, sizes, lies, 6e-8);
                if turn % 2 == at % 2 {
                    check::<f64>(&mut rng, sizes, lies, 1.2e-16);
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
            let own = product([m, n, k], &a, &b, None, &Serial);
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
                    let found = product([m, n, k], &a, &b, None, &Serial);
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
fn sums_over_nothing_are_zero_or_the_bias() {
    let (a, b) =
        (Matrix::<f32>::new(&mut Rng(1), 3, 0, Lie::Rows), Matrix::new(&mut Rng(1), 0, 2, Lie::Rows));
    assert_eq!(product([3, 2, 0], &a, &b, None, &Serial), [0.0; 6]);
    assert_eq!(product([3, 2, 0], &a, &b, Some(&[1.0, 2.0]), &Serial), [1.0, 2.0, 1.0, 2.0, 1.0, 2.0]);
}
