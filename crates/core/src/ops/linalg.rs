//! Products of matrices: matmul, dot. Half-precision operands are multiplied in float32 and rounded once.

use crate::attrs::Attrs;
use crate::kernel::gemm::{Mat, Product, batched};
use crate::kernel::walk::offsets;
use crate::op::{Grad, InferArgs, Inferred, KernelArgs, Meta, Op, Run, Saves};
use crate::ops::arith::MULTIPLY;
use crate::promote::result_type;
use crate::rules::{Sym, Vjp};
use crate::shape::{AxisList, Shape, broadcast, checked_numel, numel};
use crate::view::ViewMut;
use crate::{Bool, Complex32, Complex64, DType, Error, Layout, Result, bf16, f16, grads, with_type};
use smallvec::{SmallVec, smallvec};

const SIGNATURE: &str = "(n?,k),(k,m?)->(n?,m?)";

fn infer_matmul(a: &InferArgs) -> Result<Inferred> {
    let dtype = result_type(a.op, a.ins, a.mode)?;
    let (x, y) = (&a.ins[0].shape, &a.ins[1].shape);
    if let Some(i) = (0..2).find(|&i| a.ins[i].shape.is_empty()) {
        return Err(Error::value(
            a.op,
            format!(
                "Input operand {i} does not have enough dimensions (has 0, gufunc core with signature \
                 {SIGNATURE} requires 1)"
            ),
        )
        .with_hint("use multiply for a scalar"));
    }
    let (k, other) = (x[x.len() - 1], y[y.len().saturating_sub(2)]);
    if k != other {
        return Err(Error::value(
            a.op,
            format!(
                "Input operand 1 has a mismatch in its core dimension 0, with gufunc signature {SIGNATURE} \
                 (size {other} is different from {k})"
            ),
        ));
    }
    let batch = |s: &[usize]| s.len().saturating_sub(2);
    let mut shape = broadcast(a.op, &[&x[..batch(x)], &y[..batch(y)]])?;
    if x.len() > 1 {
        shape.push(x[x.len() - 2]);
    }
    if y.len() > 1 {
        shape.push(y[y.len() - 1]);
    }
    checked_numel(a.op, &shape, dtype.size())?;
    Ok(Inferred { ins: smallvec![dtype, dtype], outs: smallvec![Meta::new(shape, dtype)] })
}

fn run_matmul(a: &KernelArgs) -> Result<()> {
    let out = a.out(0);
    match out.dtype {
        DType::Bool => product::<Bool>(&out, a),
        DType::C64 => product::<Complex32>(&out, a),
        DType::C128 => product::<Complex64>(&out, a),
        DType::F16 => product::<f16>(&out, a),
        DType::BF16 => product::<bf16>(&out, a),
        DType::F32 => product::<f32>(&out, a),
        DType::F64 => product::<f64>(&out, a),
        dtype => with_type!(ints dtype, T => product::<T>(&out, a), else {}),
    }
    Ok(())
}

/// The layout of an operand as a batch of matrices: a vector on the left is one row, on the right one column.
fn as_matrices(layout: &Layout, left: bool) -> Layout {
    let mut out = layout.clone();
    if out.ndim() == 1 {
        let at = if left { 0 } else { 1 };
        out.shape.insert(at, 1);
        out.strides.insert(at, 0);
    }
    out
}

/// Where the operands and the result of each product of a batch begin, counted from the views' first elements.
fn starts(x: &Layout, y: &Layout, batch: &[usize], size: isize) -> SmallVec<[[isize; 3]; 1]> {
    if batch.iter().all(|&n| n == 1) {
        return smallvec![[0; 3]];
    }
    let spread = |l: &Layout| {
        let ndim = l.ndim() - 2;
        let lead = Layout { shape: l.shape[..ndim].into(), strides: l.strides[..ndim].into(), offset: 0 };
        lead.broadcast_to(batch).map_or_else(Vec::new, |l| offsets(&l.shape, &l.strides))
    };
    let pairs = spread(x).into_iter().zip(spread(y)).enumerate();
    pairs.map(|(p, (x, y))| [x, y, p as isize * size]).collect()
}

fn product<T: Product>(out: &ViewMut, a: &KernelArgs) {
    let (x, y) = (&a.ins[0], &a.ins[1]);
    let (mut xl, yl) = (as_matrices(x.layout, true), as_matrices(y.layout, false));
    if yl.ndim() == 2 && xl.ndim() > 2 {
        // One product of many rows in place of many products.
        let rows = numel(&xl.shape[..xl.ndim() - 1]);
        if let Some(flat) = xl.reshape(&[rows, xl.shape[xl.ndim() - 1]]) {
            xl = flat;
        }
    }
    let (i, j) = (xl.ndim() - 2, yl.ndim() - 2);
    let (m, k, n) = (xl.shape[i], xl.shape[i + 1], yl.shape[j + 1]);
    let batch = broadcast(a.op, &[&xl.shape[..i], &yl.shape[..j]]).unwrap_or_default();
    let starts = starts(&xl, &yl, &batch, (m * n) as isize);
    // SAFETY: strides and offsets come from the views' layouts; the output is contiguous and this run's own.
    unsafe {
        batched(
            [m, n, k],
            Mat::new(x.ptr::<T>(), xl.strides[i], xl.strides[i + 1]),
            Mat::new(y.ptr::<T>(), yl.strides[j], yl.strides[j + 1]),
            Mat::new(out.ptr::<T>().cast_const(), n as isize, 1),
            &starts,
            a.tail,
            a.par,
        );
    }
}

/// The matrices of a batch transposed.
pub fn swap_last(x: Sym<'_>) -> Sym<'_> {
    let ndim = x.shape().len();
    let mut axes: AxisList = (0..ndim).collect();
    axes.swap(ndim - 2, ndim - 1);
    x.transpose(&axes)
}

fn grad_matmul<'r>(v: &Vjp<'r>) -> SmallVec<[Option<Sym<'r>>; 3]> {
    let (xs, ys) = (v.shape(0).clone(), v.shape(1).clone());
    // Vectors as matrices, and the gradient with the axes that the product dropped.
    let (mut x2, mut y2, mut g2) = (xs.clone(), ys.clone(), v.outs[0].0.shape.clone());
    if xs.len() == 1 {
        x2.insert(0, 1);
        g2.insert(g2.len() - usize::from(ys.len() > 1), 1);
    }
    if ys.len() == 1 {
        y2.push(1);
        g2.push(1);
    }
    let g = v.g().reshape(&g2);
    grads!(v;
        {
            let y = v.x(1).reshape(&y2);
            g.binary(&MATMUL, swap_last(y)).sum_to(&x2).reshape(&xs)
        },
        {
            let x = v.x(0).reshape(&x2);
            if y2.len() == 2 && x2.len() > 2 {
                // The sum over the batch is part of the product.
                let (rows, k, n) = (numel(&x2[..x2.len() - 1]), y2[0], y2[1]);
                let (x, g) = (x.reshape(&[rows, k]), g.reshape(&[rows, n]));
                x.transpose(&[1, 0]).binary(&MATMUL, g).reshape(&ys)
            } else {
                swap_last(x).binary(&MATMUL, g).sum_to(&y2).reshape(&ys)
            }
        },
    )
}

/// `matmul(a, b)`: products of matrices over the last two axes, the others broadcast; vectors count as one row
/// on the left and one column on the right.
pub static MATMUL: Op = Op {
    grad: Grad::Vjp(grad_matmul),
    saves: Saves { inputs: 0b11, outputs: 0 },
    cross: 0b11,
    heavy: true,
    products: Some(|ins, out| (out.iter().product::<usize>() * ins[0].last().unwrap_or(&1)) as u64),
    tail: true,
    ..Op::new("matmul", 2, infer_matmul, Run::Kernel(run_matmul))
};

/// How `dot` sums: the order of b's axes that puts the summed one first, and both operands as matrices.
struct DotForm {
    order: AxisList,
    x: [usize; 2],
    y: [usize; 2],
}

fn dot_form(x: &[usize], y: &[usize]) -> DotForm {
    let axis = y.len().saturating_sub(2);
    let mut order: AxisList = (0..y.len()).filter(|&i| i != axis).collect();
    order.insert(0, axis);
    let k = x[x.len() - 1];
    DotForm { x: [numel(&x[..x.len() - 1]), k], y: [k, order[1..].iter().map(|&i| y[i]).product()], order }
}

fn infer_dot(a: &InferArgs) -> Result<Inferred> {
    let dtype = result_type(a.op, a.ins, a.mode)?;
    let (x, y) = (&a.ins[0].shape, &a.ins[1].shape);
    let shape: Shape = if x.is_empty() || y.is_empty() {
        if x.is_empty() { y.clone() } else { x.clone() }
    } else {
        let (i, j) = (x.len() - 1, y.len().saturating_sub(2));
        if x[i] != y[j] {
            return Err(Error::value(
                a.op,
                format!(
                    "shapes {} and {} not aligned: {} (dim {i}) != {} (dim {j})",
                    crate::shape::display(x),
                    crate::shape::display(y),
                    x[i],
                    y[j]
                ),
            ));
        }
        x[..i].iter().chain(&y[..j]).chain(y.get(j + 1)).copied().collect()
    };
    checked_numel(a.op, &shape, dtype.size())?;
    Ok(Inferred { ins: smallvec![dtype, dtype], outs: smallvec![Meta::new(shape, dtype)] })
}

fn dot_body<'r>(_: &Attrs, _: &'r dyn crate::rules::Rules, x: &[Sym<'r>]) -> SmallVec<[Sym<'r>; 2]> {
    let (xs, ys) = (x[0].shape(), x[1].shape());
    if xs.is_empty() || ys.is_empty() {
        return smallvec![x[0].binary(&MULTIPLY, x[1])];
    }
    if xs.len() <= 2 && ys.len() <= 2 {
        return smallvec![x[0].binary(&MATMUL, x[1])];
    }
    let form = dot_form(&xs, &ys);
    let mut shape = Shape::from_slice(&xs[..xs.len() - 1]);
    shape.extend(form.order[1..].iter().map(|&i| ys[i]));
    let y = x[1].transpose(&form.order).reshape(&form.y);
    smallvec![x[0].reshape(&form.x).binary(&MATMUL, y).reshape(&shape)]
}

fn grad_dot<'r>(v: &Vjp<'r>) -> SmallVec<[Option<Sym<'r>>; 3]> {
    let (xs, ys) = (v.shape(0), v.shape(1));
    if xs.is_empty() || ys.is_empty() {
        return grads!(v; v.g().times(v.x(1)).sum_to(xs), v.g().times(v.x(0)).sum_to(ys));
    }
    let form = dot_form(xs, ys);
    let g = v.g().reshape(&[form.x[0], form.y[1]]);
    grads!(v;
        {
            let y = v.x(1).transpose(&form.order).reshape(&form.y);
            g.binary(&MATMUL, y.transpose(&[1, 0])).reshape(xs)
        },
        {
            let x = v.x(0).reshape(&form.x).transpose(&[1, 0]);
            let turned: Shape = form.order.iter().map(|&i| ys[i]).collect();
            let mut back: AxisList = smallvec![0; ys.len()];
            form.order.iter().enumerate().for_each(|(i, &axis)| back[axis] = i);
            x.binary(&MATMUL, g).reshape(&turned).transpose(&back)
        },
    )
}

/// `dot(a, b)`: the sum over a's last axis and b's last but one (a vector's only one); a product where either
/// has no axes.
pub static DOT: Op = Op {
    grad: Grad::Vjp(grad_dot),
    saves: Saves { inputs: 0b11, outputs: 0 },
    cross: 0b11,
    heavy: true,
    ..Op::new("dot", 2, infer_dot, Run::Body(dot_body))
};

pub const OPS: &[&Op] = &[&MATMUL, &DOT];
