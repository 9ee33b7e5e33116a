//! Ops that move elements: views, joins, indexing, sorting; against plain loops, and their gradients against
//! differences.

mod ops_kit;
mod support;

use mxnp_core::attrs::{AttrValue, Attrs};
use mxnp_core::ops::{index, join, shape, sort};
use mxnp_core::{DType, IndexItem, Op};
use ops_kit::{Arr, check_gradient, error, run, run_all_ways};
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
fn text(s: &str) -> AttrValue {
    AttrValue::Str(s.into())
}
fn count(shape: &[usize]) -> Arr {
    let n: usize = shape.iter().product();
    Arr::new(shape, &(0..n).map(|i| i as f64).collect::<Vec<_>>())
}
fn slice(start: usize, step: isize, len: usize) -> IndexItem {
    IndexItem::Slice { start, step, len }
}

#[test]
fn views_have_numpys_shapes_and_values() {
    let x = count(&[2, 3]);
    let y = run(
        &shape::EXPAND_DIMS,
        attrs(&shape::EXPAND_DIMS, &[("axis", ints(&[0, -1]))]),
        std::slice::from_ref(&x),
    );
    assert_eq!(y[0].shape(), [1, 2, 3, 1]);
    let z = run(&shape::SQUEEZE, attrs(&shape::SQUEEZE, &[("axis", int(-1))]), &y);
    assert_eq!(z[0].shape(), [1, 2, 3]);
    let f = run(&shape::FLIP, attrs(&shape::FLIP, &[("axis", int(1))]), std::slice::from_ref(&x));
    assert_eq!(f[0].f64(), [2.0, 1.0, 0.0, 5.0, 4.0, 3.0]);
    let s = run(&shape::SLICE, shape::basic(&[IndexItem::NewAxis, slice(1, -1, 2), IndexItem::At(2)]), &[x]);
    assert_eq!((s[0].shape(), s[0].f64()), (&[1, 2][..], vec![5.0, 2.0]));
}

#[test]
fn a_basic_index_out_of_range_is_refused() {
    let x = || [count(&[2, 3])];
    let bad = |items: &[IndexItem]| error(&shape::SLICE, shape::basic(items), &x());
    assert_eq!(bad(&[IndexItem::At(2)]), "slice: index 2 is out of bounds for axis 0 with size 2");
    assert!(bad(&[slice(0, 1, 2), slice(1, 1, 3)]).contains("index 3 is out of bounds for axis 1"));
    assert!(bad(&[slice(0, -1, 2)]).contains("index -1"));
    assert!(bad(&[slice(1, -1, 3)]).contains("index -1"));
    assert!(bad(&[IndexItem::At(0); 3]).contains("too many indices"));
    assert!(
        error(&shape::SQUEEZE, attrs(&shape::SQUEEZE, &[("axis", int(0))]), &x())
            .contains("not equal to one")
    );
    assert!(
        error(&shape::EXPAND_DIMS, attrs(&shape::EXPAND_DIMS, &[("axis", int(4))]), &x()).contains("axis 4")
    );
}

#[test]
fn slices_are_assigned_and_undone() {
    let index = [slice(2, -2, 2), IndexItem::At(1)];
    let x = count(&[3, 2]);
    let v = Arr::new(&[1], &[9.0]);
    let y = run_all_ways(&shape::SLICE_ASSIGN, shape::basic(&index), &[x.clone(), v.clone()], 1);
    assert_eq!(y[0].f64(), [0.0, 9.0, 2.0, 3.0, 4.0, 9.0]);
    let z = run_all_ways(
        &shape::SLICE_ZERO,
        shape::basic_into(&index, &[3, 2]),
        &[Arr::new(&[2], &[7.0, 8.0])],
        1,
    );
    assert_eq!(z[0].f64(), [0.0, 8.0, 0.0, 0.0, 0.0, 7.0]);
    check_gradient(&shape::SLICE_ASSIGN, shape::basic(&index), &[x.clone(), v], &[0, 1]);
    check_gradient(&shape::SLICE, shape::basic(&index), &[x], &[0]);
    check_gradient(&shape::SLICE_ZERO, shape::basic_into(&index, &[3, 2]), &[count(&[2])], &[0]);
    let wrong = error(&shape::SLICE_ASSIGN, shape::basic(&index), &[count(&[3, 2]), count(&[3])]);
    assert!(wrong.contains("could not broadcast input array from shape (3,) into shape (2,)"), "{wrong}");
}

#[test]
fn joins_equal_plain_loops() {
    let (a, b) = (count(&[2, 1, 3]), count(&[2, 2, 3]));
    let cat = attrs(&join::CONCATENATE, &[("axis", int(-2))]);
    let y = run_all_ways(&join::CONCATENATE, cat.clone(), &[a.clone(), b.clone()], 2);
    assert_eq!(y[0].shape(), [2, 3, 3]);
    assert_eq!(y[0].f64()[..9], [0.0, 1.0, 2.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    check_gradient(&join::CONCATENATE, cat, &[a.clone(), b.clone()], &[0, 1]);
    let stack = attrs(&join::STACK, &[("axis", int(1))]);
    let y = run_all_ways(&join::STACK, stack.clone(), &[count(&[2]), Arr::new(&[2], &[5.0, 6.0])], 3);
    assert_eq!((y[0].shape(), y[0].f64()), (&[2, 2][..], vec![0.0, 5.0, 1.0, 6.0]));
    check_gradient(&join::STACK, stack, &[count(&[2]), count(&[2])], &[0, 1]);
    let repeat = attrs(&join::REPEAT, &[("repeats", int(2)), ("axis", int(0))]);
    assert_eq!(run(&join::REPEAT, repeat.clone(), &[count(&[2])])[0].f64(), [0.0, 0.0, 1.0, 1.0]);
    check_gradient(&join::REPEAT, repeat, &[count(&[2, 3])], &[0]);
    let tile = attrs(&join::TILE, &[("reps", ints(&[2, 1, 2]))]);
    let y = run(&join::TILE, tile.clone(), &[count(&[2])]);
    assert_eq!((y[0].shape(), &y[0].f64()[..4]), (&[2, 1, 4][..], &[0.0, 1.0, 0.0, 1.0][..]));
    check_gradient(&join::TILE, tile, &[count(&[3, 2])], &[0]);
    let roll = attrs(&join::ROLL, &[("shift", ints(&[1, -1])), ("axis", ints(&[0, 1]))]);
    let y = run_all_ways(&join::ROLL, roll.clone(), &[count(&[2, 3])], 4);
    assert_eq!(y[0].f64(), [4.0, 5.0, 3.0, 1.0, 2.0, 0.0]);
    check_gradient(&join::ROLL, roll, &[count(&[2, 3])], &[0]);
    let pad = join::pad(&[(1, 0), (0, 2)]);
    let y = run_all_ways(&join::PAD, pad.clone(), &[count(&[1, 2]), Arr::scalar(7.0)], 5);
    assert_eq!(y[0].f64(), [7.0, 7.0, 7.0, 7.0, 0.0, 1.0, 7.0, 7.0]);
    check_gradient(&join::PAD, pad, &[count(&[1, 2]), Arr::new(&[], &[7.0])], &[0, 1]);
}

#[test]
fn joins_refuse_what_does_not_fit() {
    let cat = |axis| attrs(&join::CONCATENATE, &[("axis", int(axis))]);
    let e = error(&join::CONCATENATE, cat(0), &[count(&[2, 2]), count(&[2, 3])]);
    assert!(
        e.contains("along dimension 1, the array at index 0 has size 2 and the array at index 1 has size 3")
    );
    assert!(error(&join::CONCATENATE, cat(2), &[count(&[2, 2])]).contains("axis 2 is out of bounds"));
    assert!(error(&join::CONCATENATE, cat(0), &[count(&[])]).contains("zero-dimensional"));
    assert!(error(&join::STACK, cat(0), &[count(&[2]), count(&[3])]).contains("same shape"));
    let repeat = attrs(&join::REPEAT, &[("repeats", int(-1)), ("axis", int(0))]);
    assert!(error(&join::REPEAT, repeat, &[count(&[2])]).contains("negative"));
}

/// x[..., i0, i1, ...] by plain loops; x has `axis` axes before the indexed ones.
fn get_plainly(x: &[f64], shape: &[usize], axis: usize, indices: &[Vec<i64>]) -> Vec<f64> {
    let k = indices.len();
    let outer: usize = shape[..axis].iter().product();
    let inner: usize = shape[axis + k..].iter().product();
    let middle: usize = shape[axis..axis + k].iter().product();
    let mut out = vec![];
    for o in 0..outer {
        for p in 0..indices[0].len() {
            let at = (0..k).fold(0, |at, j| {
                let n = shape[axis + j] as i64;
                at * n as usize + indices[j][p].rem_euclid(n) as usize
            });
            out.extend((0..inner).map(|i| x[(o * middle + at) * inner + i]));
        }
    }
    out
}

#[test]
fn integer_indexing_equals_plain_loops() {
    let mut rng = Rng(3);
    for (shape, axis, k) in [
        (vec![5], 0, 1),
        (vec![3, 4], 0, 2),
        (vec![2, 3, 4], 1, 1),
        (vec![2, 3, 4, 2], 1, 2),
        (vec![400, 300], 0, 1),
    ] {
        let x = Arr::random(&mut rng, &shape, DType::F32);
        let n = 7;
        let indices: Vec<Vec<i64>> = (0..k)
            .map(|j| (0..n).map(|_| rng.below(2 * shape[axis + j]) as i64 - shape[axis + j] as i64).collect())
            .collect();
        let mut ins = vec![x.clone()];
        ins.extend(indices.iter().map(|i| Arr::new(&[n], i)));
        let y = run_all_ways(&index::INDEX_GET, index::at(axis, "raise"), &ins, 9);
        assert_eq!(y[0].f64(), get_plainly(&x.f64(), &shape, axis, &indices));
        let wide: Vec<Arr> = [x.cast(DType::F64)].into_iter().chain(ins[1..].to_vec()).collect();
        if shape.len() < 5 && x.layout.size() < 1000 {
            check_gradient(&index::INDEX_GET, index::at(axis, "raise"), &wide, &[0]);
        }
        // The gradient adds up, in order, however the columns are cut.
        let mut into = vec![Arr::new(y[0].shape(), &y[0].get::<f32>())];
        into.extend(ins[1..].to_vec());
        let sums = run_all_ways(&index::SCATTER_ADD, index::at_into(axis, "raise", &shape), &into, 10);
        let total: f64 = sums[0].f64().iter().sum();
        assert!((total - y[0].f64().iter().sum::<f64>()).abs() < 1e-2);
    }
}

#[test]
fn indices_may_be_floats_scalars_and_broadcast() {
    let x = count(&[3, 4]);
    let rows = Arr::new(&[2, 1], &[0i64, 2]);
    let columns = Arr::new(&[3], &[1.9f32, -1.5, 3.0]);
    let y = run(&index::INDEX_GET, index::at(0, "raise"), &[x, rows, columns]);
    // Truncated toward zero: 1, -1, 3.
    assert_eq!((y[0].shape(), y[0].f64()), (&[2, 3][..], vec![1.0, 3.0, 3.0, 9.0, 11.0, 11.0]));
}

#[test]
fn an_index_out_of_range_is_an_error_that_writes_nothing() {
    let x = count(&[3, 2]);
    let bad = Arr::new(&[3], &[0i64, 5, -4]);
    let e = error(&index::INDEX_GET, index::at(0, "raise"), &[x.clone(), bad.clone()]);
    assert_eq!(e, "index_get: index 5 is out of bounds for axis 0 with size 3");
    let v = Arr::new(&[], &[1.0]);
    let e = error(&index::INDEX_PUT, index::at(0, "raise"), &[x.clone(), v, bad]);
    assert_eq!(e, "index_put: index 5 is out of bounds for axis 0 with size 3");
    assert_eq!(x.f64(), count(&[3, 2]).f64());
    let empty = error(&index::TAKE, index::at(0, "clip"), &[count(&[0]), Arr::new(&[1], &[0i64])]);
    assert!(empty.contains("size 0"), "{empty}");
    let e = error(
        &index::INDEX_GET,
        index::at(0, "raise"),
        &[x.clone(), Arr::new(&[1], &[mxnp_core::Bool::new(true)])],
    );
    assert!(e.contains("must be of integer"), "{e}");
    let e = error(&index::TAKE, index::at(0, "nearest"), &[x, Arr::new(&[1], &[0i64])]);
    assert!(e.contains("'raise', 'strict', 'clip' or 'wrap'"), "{e}");
}

#[test]
fn take_clips_and_wraps() {
    let x = count(&[2, 3]);
    let i = Arr::new(&[4], &[-1i64, 3, 7, 1]);
    let clip = run_all_ways(&index::TAKE, index::at(1, "clip"), &[x.clone(), i.clone()], 5);
    assert_eq!(clip[0].f64(), [0.0, 2.0, 2.0, 1.0, 3.0, 5.0, 5.0, 4.0]);
    let wrap = run(&index::TAKE, index::at(1, "wrap"), &[x.clone(), i.clone()]);
    assert_eq!(wrap[0].f64(), [2.0, 0.0, 1.0, 1.0, 5.0, 3.0, 4.0, 4.0]);
    check_gradient(&index::TAKE, index::at(1, "wrap"), &[x, i], &[0]);
}

#[test]
fn the_last_of_equal_indices_counts() {
    let x = count(&[3, 2]);
    let i = Arr::new(&[3], &[1i64, 0, 1]);
    let v = Arr::new(&[3, 1], &[10.0, 20.0, 30.0]);
    let put = [x.clone(), v.clone(), i.clone()];
    run(&index::INDEX_PUT, index::at(0, "raise"), &put);
    // `run` writes the array it was given.
    assert_eq!(put[0].f64(), [20.0, 20.0, 30.0, 30.0, 4.0, 5.0]);
    let y = run_all_ways(&index::INDEX_ASSIGN, index::at(0, "raise"), &[x.clone(), v.clone(), i.clone()], 6);
    assert_eq!(y[0].f64(), put[0].f64());
    check_gradient(&index::INDEX_ASSIGN, index::at(0, "raise"), &[x.clone(), v, i.clone()], &[0, 1]);
    check_gradient(&index::INDEX_GET_LAST, index::at(0, "raise"), &[x.clone(), i.clone()], &[0]);
    let g = Arr::random(&mut Rng(1), &[3, 2], DType::F64);
    check_gradient(&index::SCATTER_ADD, index::at_into(0, "raise", &[3, 2]), &[g, i], &[0]);
    let e = error(
        &index::INDEX_ASSIGN,
        index::at(0, "raise"),
        &[x.clone(), count(&[4]), Arr::new(&[1], &[0i64])],
    );
    assert!(
        e.contains("value array of shape (4,) could not be broadcast to indexing result of shape (1, 2)"),
        "{e}"
    );
}

#[test]
fn a_half_sum_is_rounded_once() {
    let g = Arr::f64s(&[4096], &[1.0; 4096], DType::F16);
    let i = Arr::new(&[4096], &[0i64; 4096]);
    let y = run(&index::SCATTER_ADD, index::at_into(0, "raise", &[2]), &[g, i]);
    assert_eq!(y[0].f64(), [4096.0, 0.0]);
}

#[test]
fn along_an_axis_and_pick() {
    let x = count(&[2, 3]);
    let i = Arr::new(&[2, 2], &[2i64, 0, -1, 1]);
    let y = run_all_ways(&index::TAKE_ALONG_AXIS, index::along(1, "raise"), &[x.clone(), i.clone()], 7);
    assert_eq!(y[0].f64(), [2.0, 0.0, 5.0, 4.0]);
    check_gradient(&index::TAKE_ALONG_AXIS, index::along(1, "raise"), &[x.clone(), i.clone()], &[0]);
    let shared = Arr::new(&[1, 2], &[2i64, 0]);
    check_gradient(&index::TAKE_ALONG_AXIS, index::along(1, "raise"), &[x.clone(), shared.clone()], &[0]);
    let one_row = Arr::random(&mut Rng(2), &[1, 3], DType::F64);
    check_gradient(&index::TAKE_ALONG_AXIS, index::along(1, "raise"), &[one_row, i.clone()], &[0]);
    let g = Arr::random(&mut Rng(2), &[2, 2], DType::F64);
    check_gradient(&index::SCATTER_ALONG, index::along_into(1, "raise", 3), &[g, i], &[0]);
    let labels = Arr::new(&[2], &[7f32, 1.0]);
    let picked = run(&index::PICK, attrs(&index::PICK, &[]), &[x.clone(), labels.clone()]);
    assert_eq!((picked[0].shape(), picked[0].f64()), (&[2][..], vec![2.0, 4.0]));
    check_gradient(
        &index::PICK,
        attrs(&index::PICK, &[("keepdims", AttrValue::Bool(true))]),
        &[x.clone(), labels],
        &[0],
    );
    let strict = Arr::new(&[2, 1], &[7f32, 1.0]);
    let e = error(&index::TAKE_ALONG_AXIS, index::along(1, "raise"), &[x.clone(), strict]);
    assert_eq!(e, "take_along_axis: index 7 is out of bounds for axis 1 with size 3");
    let e = error(&index::PICK, attrs(&index::PICK, &[]), &[x, Arr::new(&[3], &[0i64; 3])]);
    assert!(e.contains("shape (2,) or (2, 1), got (3,)"), "{e}");
}

#[test]
fn nonzero_one_hot_searchsorted() {
    let mut rng = Rng(8);
    let values: Vec<f64> = (0..100_000).map(|_| if rng.one_in(3) { 1.0 } else { 0.0 }).collect();
    let x = Arr::new(&[100, 1000], &values);
    let n = run_all_ways(&index::COUNT_NONZERO, Attrs::NONE, std::slice::from_ref(&x), 9)[0].get::<i64>()[0];
    assert_eq!(n as f64, values.iter().sum::<f64>());
    let found = run_all_ways(
        &index::NONZERO,
        attrs(&index::NONZERO, &[("count", int(n))]),
        std::slice::from_ref(&x),
        10,
    );
    let expected: Vec<i64> = (0..100_000)
        .filter(|&i| values[i] != 0.0)
        .flat_map(|i| [(i / 1000) as i64, (i % 1000) as i64])
        .collect();
    assert_eq!(found[0].get::<i64>(), expected);
    let e = error(&index::NONZERO, attrs(&index::NONZERO, &[("count", int(3))]), &[x]);
    assert!(e.contains("3 were counted before"), "{e}");

    let hot = attrs(
        &index::ONE_HOT,
        &[("depth", int(3)), ("on_value", AttrValue::Float(2.0)), ("off_value", AttrValue::Float(-1.0))],
    );
    let y = run_all_ways(&index::ONE_HOT, hot, &[Arr::new(&[4], &[1f32, 3.0, -1.0, 0.5])], 11);
    assert_eq!(y[0].f64(), [-1.0, 2.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0, 2.0, -1.0, -1.0]);

    let sorted = Arr::new(&[4], &[1.0, 2.0, 2.0, f64::NAN]);
    let v = Arr::new(&[4], &[2.0, 0.0, f64::NAN, 9.0]);
    let left = run(&index::SEARCHSORTED, attrs(&index::SEARCHSORTED, &[]), &[sorted.clone(), v.clone()]);
    assert_eq!(left[0].get::<i64>(), [1, 0, 3, 3]);
    let right =
        run(&index::SEARCHSORTED, attrs(&index::SEARCHSORTED, &[("side", text("right"))]), &[sorted, v]);
    assert_eq!(right[0].get::<i64>(), [3, 0, 4, 3]);
}

#[test]
fn sorts_are_stable_with_nan_last() {
    let x = Arr::new(&[2, 3], &[2.0, f64::NAN, -1.0, 0.0, -0.0, -5.0]);
    let y = run_all_ways(&sort::SORT, attrs(&sort::SORT, &[]), std::slice::from_ref(&x), 12);
    assert_eq!(y[0].f64()[..2], [-1.0, 2.0]);
    assert!(y[0].f64()[2].is_nan());
    assert_eq!(
        y[0].f64()[3..].iter().map(|v| v.to_bits()).collect::<Vec<_>>(),
        [-5.0f64, 0.0, -0.0].map(f64::to_bits)
    );
    assert_eq!(y[1].get::<i64>(), [2, 0, 1, 2, 0, 1]);
    let i = run_all_ways(
        &sort::ARGSORT,
        attrs(&sort::ARGSORT, &[("axis", int(0))]),
        std::slice::from_ref(&x),
        13,
    );
    assert_eq!(i[0].get::<i64>(), [1, 1, 1, 0, 0, 0]);
    let down = run(
        &sort::ARGSORT,
        attrs(&sort::ARGSORT, &[("is_ascend", AttrValue::Bool(false))]),
        &[Arr::new(&[4], &[1i32, 3, 3, 2])],
    );
    assert_eq!(down[0].get::<i64>(), [1, 2, 3, 0]);
    check_gradient(
        &sort::SORT,
        attrs(&sort::SORT, &[("axis", int(0))]),
        &[Arr::random(&mut Rng(4), &[4, 3], DType::F64)],
        &[0],
    );
}

#[test]
fn long_sorts_merge_runs() {
    let mut rng = Rng(5);
    let values: Vec<i32> = (0..300_000).map(|_| rng.below(1000) as i32).collect();
    let x = Arr::new(&[300_000], &values);
    let y = run_all_ways(&sort::ARGSORT, attrs(&sort::ARGSORT, &[]), &[x], 14);
    let mut expected: Vec<i64> = (0..300_000).collect();
    expected.sort_by_key(|&i| values[i as usize]);
    assert!(y[0].get::<i64>() == expected);
}

#[test]
fn topk_has_mxnets_forms() {
    let x = Arr::new(&[2, 4], &[3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0]);
    let with = |ret: &str, k: i64| attrs(&sort::TOPK, &[("ret_typ", text(ret)), ("k", int(k))]);
    let default = run_all_ways(&sort::TOPK, attrs(&sort::TOPK, &[]), std::slice::from_ref(&x), 15);
    assert_eq!((default[0].dtype, default[0].f64()), (DType::F32, vec![2.0, 1.0]));
    let both = run_all_ways(&sort::TOPK, with("both", 2), std::slice::from_ref(&x), 16);
    assert_eq!((both[0].f64(), both[1].f64()), (vec![4.0, 3.0, 9.0, 6.0], vec![2.0, 0.0, 1.0, 3.0]));
    assert_eq!(
        run(&sort::TOPK, with("mask", 1), std::slice::from_ref(&x))[0].f64(),
        [0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    );
    let least =
        attrs(&sort::TOPK, &[("is_ascend", AttrValue::Bool(true)), ("k", int(3)), ("dtype", text("int32"))]);
    assert_eq!(run(&sort::TOPK, least, std::slice::from_ref(&x))[0].f64(), [1.0, 3.0, 0.0, 2.0, 0.0, 3.0]);
    check_gradient(&sort::TOPK, with("value", 2), std::slice::from_ref(&x), &[0]);
    check_gradient(&sort::TOPK, with("both", 2), std::slice::from_ref(&x), &[0]);
    assert!(
        error(&sort::TOPK, with("both", 5), std::slice::from_ref(&x))
            .contains("k=5 is more than the 4 elements")
    );
    assert!(error(&sort::TOPK, with("all", 1), &[x]).contains("'value', 'indices', 'both' or 'mask'"));
}
