//! Runs one op at a time, eagerly, on small arrays: what the tests of ops and of their gradients stand on.
//! Elementwise ops and reductions go through the tiled pass, bodies and gradient rules through `Eager`.
#![allow(dead_code)] // each test file uses a part

use crate::support::{Rng, element};
use mxnp_core::attrs::Attrs;
use mxnp_core::kernel::pass::{self, Load, Pass, ReduceTail, Slot, Source, Step, Store};
use mxnp_core::op::{Draw, Grad, KernelArgs, Run};
use mxnp_core::par::{Parallel, Serial};
use mxnp_core::promote::Mode;
use mxnp_core::rules::{Operand, Rules, Sym, Vjp};
use mxnp_core::view::{View, ViewMut};
use mxnp_core::{DType, Element, Layout, Meta, Op, Result, Scalar};
use smallvec::SmallVec;
use std::cell::RefCell;

/// An array of a test: its own memory, any layout.
#[derive(Clone, Debug)]
pub struct Arr {
    pub words: Vec<u64>,
    pub layout: Layout,
    pub dtype: DType,
    pub scalar: Option<Scalar>,
}

impl Arr {
    /// Memory for a contiguous array, full of a pattern that no test expects.
    pub fn blank(shape: &[usize], dtype: DType) -> Arr {
        let layout = Layout::contiguous(shape);
        let words = vec![0xA5A5_A5A5_A5A5_A5A5; (layout.size() * dtype.size()).div_ceil(8) + 1];
        Arr { words, layout, dtype, scalar: None }
    }

    pub fn new<T: Element>(shape: &[usize], values: &[T]) -> Arr {
        let out = Arr::blank(shape, T::DTYPE);
        assert_eq!(out.layout.size(), values.len());
        for (i, &v) in values.iter().enumerate() {
            // SAFETY: element i of the array's memory.
            unsafe { out.base().cast::<T>().add(i).write(v) };
        }
        out
    }

    pub fn f64s(shape: &[usize], values: &[f64], dtype: DType) -> Arr {
        Arr::new(shape, values).cast(dtype)
    }

    /// Random numbers between -2 and 2.
    pub fn random(rng: &mut Rng, shape: &[usize], dtype: DType) -> Arr {
        let n = shape.iter().product();
        Arr::f64s(shape, &(0..n).map(|_| rng.unit() * 4.0 - 2.0).collect::<Vec<_>>(), dtype)
    }

    /// Random integers below `n` as int64.
    pub fn integers(rng: &mut Rng, shape: &[usize], n: usize) -> Arr {
        let size = shape.iter().product();
        Arr::new(shape, &(0..size).map(|_| rng.below(n) as i64).collect::<Vec<_>>())
    }

    pub fn scalar(value: f64) -> Arr {
        Arr { scalar: Some(Scalar::Float(value)), ..Arr::new(&[], &[value]) }
    }

    pub fn base(&self) -> *mut u8 {
        self.words.as_ptr().cast_mut().cast()
    }

    pub fn shape(&self) -> &[usize] {
        &self.layout.shape
    }

    pub fn meta(&self) -> Meta {
        Meta { shape: self.layout.shape.clone(), dtype: self.dtype, scalar: self.scalar }
    }

    /// The elements in row-major order.
    pub fn get<T: Element>(&self) -> Vec<T> {
        assert_eq!(T::DTYPE, self.dtype);
        (0..self.layout.size())
            // SAFETY: offsets of the layout lie within the array's memory.
            .map(|i| unsafe { *self.base().cast::<T>().add(element(&self.layout, &self.layout.shape, i)) })
            .collect()
    }

    pub fn f64(&self) -> Vec<f64> {
        self.cast(DType::F64).get::<f64>()
    }

    /// A contiguous copy in another dtype.
    pub fn cast(&self, dtype: DType) -> Arr {
        let out = Arr::blank(self.shape(), dtype);
        let pass = Pass {
            shape: self.layout.shape.clone(),
            regs: vec![self.dtype],
            loads: vec![Load { source: Source::Array(0), dtype: self.dtype, reg: 0 }],
            steps: vec![],
            stores: vec![Store { reg: 0, target: 1, dtype }],
            reduce: None,
        };
        let slots = [
            Slot { base: self.base(), layout: &self.layout },
            Slot { base: out.base(), layout: &out.layout },
        ];
        // SAFETY: both arrays live and do not overlap.
        unsafe { pass::run(&pass, &slots, &[], &Serial) };
        out
    }

    /// The same values seen through another, random layout.
    pub fn scattered(&self, rng: &mut Rng) -> Arr {
        let ndim = self.layout.ndim();
        let mut order: Vec<usize> = (0..ndim).collect();
        rng.shuffle(&mut order);
        let (mut step, mut offset) = (1 + rng.below(2) as isize, rng.below(3) as isize);
        let mut layout = self.layout.clone();
        for &axis in &order {
            let n = self.layout.shape[axis] as isize;
            layout.strides[axis] = if rng.one_in(3) {
                offset += (n - 1).max(0) * step;
                -step
            } else {
                step
            };
            step *= n.max(1);
        }
        layout.offset = offset as usize;
        let size = self.dtype.size();
        let words = vec![0x5A5A_5A5A_5A5A_5A5Au64; ((step + offset) as usize + 1) * size / 8 + 2];
        let out = Arr { words, layout, dtype: self.dtype, scalar: self.scalar };
        for i in 0..self.layout.size() {
            let at = |l: &Layout| element(l, &l.shape, i) * size;
            // SAFETY: offsets of the two layouts lie within their arrays' memory.
            unsafe {
                std::ptr::copy(self.base().add(at(&self.layout)), out.base().add(at(&out.layout)), size)
            };
        }
        out
    }

    fn view(&self) -> View<'_> {
        // SAFETY: the layout lies within the array's memory.
        unsafe { View::new(self.base(), &self.layout, self.dtype) }
    }

    fn view_mut(&self) -> ViewMut<'_> {
        // SAFETY: as above; tests write through it while nothing else looks.
        unsafe { ViewMut::new(self.base(), &self.layout, self.dtype) }
    }
}

/// How one call is run.
pub struct How<'a> {
    pub par: &'a dyn Parallel,
    pub draw: Draw,
    pub mode: Mode,
    /// Whether hidden outputs get memory.
    pub hidden: bool,
}

impl Default for How<'_> {
    fn default() -> Self {
        How { par: &Serial, draw: Draw::default(), mode: Mode::default(), hidden: true }
    }
}

/// All outputs, hidden ones last. Inputs that the op writes are changed.
pub fn run_as(op: &'static Op, attrs: &Attrs, ins: &[Arr], how: &How) -> Result<Vec<Arr>> {
    let metas: Vec<Meta> = ins.iter().map(Arr::meta).collect();
    let inferred = op.infer(attrs, &metas, how.mode)?;
    assert_eq!(inferred.ins.len(), ins.len(), "{op:?}: one dtype for each input");
    let converted: Vec<Arr> = ins
        .iter()
        .zip(&inferred.ins)
        .map(|(x, &d)| if x.dtype == d { x.clone() } else { x.cast(d) })
        .collect();
    let outs: Vec<Arr> = inferred.outs.iter().map(|m| Arr::blank(&m.shape, m.dtype)).collect();
    match op.run {
        Run::Kernel(f) => {
            let views: Vec<View> = converted.iter().map(Arr::view).collect();
            let visible = outs.len() - op.hidden;
            let mut targets: Vec<Option<ViewMut>> = outs
                .iter()
                .enumerate()
                .map(|(i, o)| (i < visible || how.hidden).then(|| o.view_mut()))
                .collect();
            targets.extend(op.writes.among(ins.len()).into_iter().map(|i| Some(ins[i].view_mut())));
            f(&KernelArgs {
                op: op.name,
                attrs,
                ins: &views,
                outs: &targets,
                par: how.par,
                draw: how.draw,
                tail: None,
            })?;
        }
        Run::View(f) => {
            let x = &converted[0];
            let seen = match f(attrs, &x.layout) {
                Some(layout) => Arr { layout, ..x.clone() },
                None => {
                    let copy = x.cast(x.dtype);
                    let layout = f(attrs, &copy.layout).expect("a view of a contiguous array");
                    Arr { layout, ..copy }
                }
            };
            let out = seen.cast(seen.dtype);
            assert_eq!(out.meta(), inferred.outs[0], "{op:?}: the view has the inferred shape");
            return Ok(vec![out]);
        }
        Run::Body(body) => {
            let eager = Eager::new(how.mode);
            let syms: Vec<Sym> = converted.into_iter().map(|x| eager.give(x)).collect();
            let out: Vec<Arr> = body(attrs, &eager, &syms).iter().map(|s| eager.take(*s)).collect();
            for (o, m) in out.iter().zip(&inferred.outs) {
                assert_eq!(&o.meta(), m, "{op:?}: the body gives what infer promised");
            }
            return Ok(out);
        }
        Run::Elementwise(step) => {
            elementwise(op, step(&inferred.ins, outs[0].dtype), &converted, &outs[0], how)
        }
        Run::Reduce { fold, axes } => {
            let x = &converted[0];
            let fold = fold(x.dtype, outs[0].dtype).unwrap_or_else(|| panic!("{op:?} has no fold"));
            let axes = axes(attrs, x.layout.ndim());
            let kept = mxnp_core::shape::reduced(x.shape(), &axes, true);
            let mut layout = Layout::contiguous(&kept);
            axes.iter().for_each(|&i| layout.strides[i] = 0);
            layout.shape = x.layout.shape.clone();
            let pass = Pass {
                shape: x.layout.shape.clone(),
                regs: vec![x.dtype],
                loads: vec![Load { source: Source::Array(0), dtype: x.dtype, reg: 0 }],
                steps: vec![],
                stores: vec![],
                reduce: Some(ReduceTail {
                    reg: 0,
                    fold,
                    result: outs[0].dtype,
                    axes,
                    target: 1,
                    dtype: outs[0].dtype,
                }),
            };
            let slots =
                [Slot { base: x.base(), layout: &x.layout }, Slot { base: outs[0].base(), layout: &layout }];
            // SAFETY: both arrays live and do not overlap.
            unsafe { pass::run(&pass, &slots, &[], how.par) };
        }
    }
    Ok(outs)
}

fn elementwise(op: &Op, step: Option<mxnp_core::op::StepFn>, ins: &[Arr], out: &Arr, how: &How) {
    let f = step.unwrap_or_else(|| panic!("{op:?} has no step for {:?}", ins[0].dtype));
    let layouts: Vec<Layout> =
        ins.iter().map(|x| x.layout.broadcast_to(out.shape()).expect("inputs broadcast")).collect();
    let n = ins.len();
    let pass = Pass {
        shape: out.layout.shape.clone(),
        regs: ins.iter().map(|x| x.dtype).chain([out.dtype]).collect(),
        loads: (0..n).map(|i| Load { source: Source::Array(i), dtype: ins[i].dtype, reg: i }).collect(),
        steps: vec![Step { f, ins: (0..n).collect(), out: n }],
        stores: vec![Store { reg: n, target: n, dtype: out.dtype }],
        reduce: None,
    };
    let mut slots: Vec<Slot> =
        ins.iter().zip(&layouts).map(|(x, layout)| Slot { base: x.base(), layout }).collect();
    slots.push(Slot { base: out.base(), layout: &out.layout });
    // SAFETY: the arrays live, and the output overlaps none of the inputs.
    unsafe { pass::run(&pass, &slots, &[], how.par) };
}

pub fn run(op: &'static Op, attrs: Attrs, ins: &[Arr]) -> Vec<Arr> {
    run_as(op, &attrs, ins, &How::default()).unwrap_or_else(|e| panic!("{e}"))
}

/// The text of the error a call gives.
pub fn error(op: &'static Op, attrs: Attrs, ins: &[Arr]) -> String {
    run_as(op, &attrs, ins, &How::default()).err().unwrap_or_else(|| panic!("{op:?}: no error")).to_string()
}

/// Runs under every order of chunks and layout of inputs, and asserts equal bits.
pub fn run_all_ways(op: &'static Op, attrs: Attrs, ins: &[Arr], seed: u64) -> Vec<Arr> {
    let draw = Draw { seed, counter: 5 };
    let first = run_as(op, &attrs, ins, &How { draw, ..How::default() }).unwrap_or_else(|e| panic!("{e}"));
    let mut rng = Rng(seed);
    let (shuffled, threads) = (crate::support::Shuffled(seed), crate::support::Threads(3));
    for par in [&shuffled as &dyn Parallel, &threads] {
        let again = run_as(op, &attrs, ins, &How { par, draw, ..How::default() }).unwrap();
        same_bits(op, &first, &again);
    }
    let scattered: Vec<Arr> = ins.iter().map(|x| x.scattered(&mut rng)).collect();
    if op.writes.among(ins.len()).is_empty() {
        let again = run_as(op, &attrs, &scattered, &How { draw, ..How::default() }).unwrap();
        for (a, b) in first.iter().zip(&again) {
            let close = a.f64().iter().zip(b.f64()).all(|(&x, y)| {
                x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= 1e-5 * (1.0 + x.abs())
            });
            assert!(close, "{op:?}: another layout gives other values: {:?} {:?}", a.f64(), b.f64());
        }
    }
    first
}

pub fn same_bits(op: &Op, a: &[Arr], b: &[Arr]) {
    for (a, b) in a.iter().zip(b) {
        let bytes = a.layout.size() * a.dtype.size();
        // SAFETY: both are contiguous outputs of that many bytes.
        let (x, y) = unsafe {
            (std::slice::from_raw_parts(a.base(), bytes), std::slice::from_raw_parts(b.base(), bytes))
        };
        assert!(x == y, "{op:?}: the order of chunks changes bits");
    }
}

/// Formulas evaluated at once.
pub struct Eager {
    values: RefCell<Vec<Arr>>,
    mode: Mode,
}

impl Eager {
    pub fn new(mode: Mode) -> Eager {
        Eager { values: RefCell::new(vec![]), mode }
    }

    pub fn give(&self, x: Arr) -> Sym<'_> {
        let mut values = self.values.borrow_mut();
        values.push(x);
        Sym::new(self, values.len() as u32 - 1)
    }

    pub fn take(&self, sym: Sym) -> Arr {
        self.values.borrow()[sym.handle() as usize].clone()
    }
}

impl Rules for Eager {
    fn call(&self, op: &'static Op, attrs: Attrs, ins: &[Operand]) -> SmallVec<[u32; 2]> {
        let ins: Vec<Arr> = ins
            .iter()
            .map(|operand| match operand {
                Operand::Sym(handle) => self.values.borrow()[*handle as usize].clone(),
                Operand::Scalar(scalar) => {
                    let dtype = match scalar {
                        Scalar::Bool(_) => DType::Bool,
                        Scalar::Int(_) => DType::I64,
                        Scalar::Float(_) => DType::F64,
                        Scalar::Complex(..) => DType::C128,
                    };
                    let out = Arr::blank(&[], dtype);
                    let mut bytes = [0u8; 16];
                    scalar.write(dtype, &mut bytes);
                    // SAFETY: the array's one element.
                    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), out.base(), dtype.size()) };
                    Arr { scalar: Some(*scalar), ..out }
                }
            })
            .collect();
        let how = How { mode: self.mode, ..How::default() };
        let mut outs = run_as(op, &attrs, &ins, &how).unwrap_or_else(|e| panic!("in a formula: {e}"));
        outs.truncate(outs.len() - op.hidden);
        outs.into_iter().map(|x| self.give(x).handle()).collect()
    }

    fn meta(&self, handle: u32) -> Meta {
        self.values.borrow()[handle as usize].meta()
    }
}

/// The gradients that the op's rule gives for heads `gs`.
pub fn gradients(
    op: &'static Op,
    attrs: &Attrs,
    ins: &[Arr],
    outs: &[Arr],
    gs: &[Option<Arr>],
    needs: u32,
) -> Vec<Option<Arr>> {
    let Grad::Vjp(rule) = op.grad else { panic!("{op:?} has no rule") };
    let eager = Eager::new(Mode::default());
    let metas: Vec<Meta> = ins.iter().map(Arr::meta).collect();
    let inferred = op.infer(attrs, &metas, Mode::default()).unwrap();
    let saved = |mask: u32, i: usize, x: &Arr| (mask >> i & 1 == 1).then(|| eager.give(x.clone()));
    let vjp = Vjp {
        rules: &eager,
        attrs,
        ins: ins
            .iter()
            .enumerate()
            .map(|(i, x)| {
                let x = x.cast(inferred.ins[i]);
                (x.meta(), saved(op.saves.inputs, i, &x))
            })
            .collect(),
        outs: outs.iter().enumerate().map(|(i, y)| (y.meta(), saved(op.saves.outputs, i, y))).collect(),
        heads: gs.iter().map(|g| g.as_ref().map(|g| eager.give(g.clone()))).collect(),
        needs,
    };
    rule(&vjp).into_iter().map(|g| g.map(|g| eager.take(g))).collect()
}

/// Compares the rule with differences along random directions, in float64, for the inputs in `wrt`.
pub fn check_gradient(op: &'static Op, attrs: Attrs, ins: &[Arr], wrt: &[usize]) {
    check_gradient_as(op, attrs, ins, wrt, &How::default());
}

pub fn check_gradient_as(op: &'static Op, attrs: Attrs, ins: &[Arr], wrt: &[usize], how: &How) {
    let mut rng = Rng(17);
    // Ops that write their inputs get copies.
    let forward = |ins: &[Arr]| {
        run_as(
            op,
            &attrs,
            &ins.iter().map(|x| Arr { scalar: x.scalar, ..x.cast(x.dtype) }).collect::<Vec<_>>(),
            how,
        )
        .unwrap_or_else(|e| panic!("{e}"))
    };
    let outs = forward(ins);
    let visible = outs.len() - op.hidden;
    let heads: Vec<Option<Arr>> = outs[..visible]
        .iter()
        .map(|y| y.dtype.is_float().then(|| Arr::random(&mut rng, y.shape(), y.dtype)))
        .collect();
    let needs = wrt.iter().fold(0, |mask, &i| mask | 1 << i);
    let grads = gradients(op, &attrs, ins, &outs, &heads, needs);
    assert_eq!(grads.len(), ins.len(), "{op:?}: one entry for each input");
    let loss = |outs: &[Arr]| -> f64 {
        let dots = outs.iter().zip(&heads).filter_map(|(y, g)| g.as_ref().map(|g| (y.f64(), g.f64())));
        dots.map(|(y, g)| y.iter().zip(&g).map(|(a, b)| a * b).sum::<f64>()).sum()
    };
    for &i in wrt {
        let grad = grads[i].as_ref().unwrap_or_else(|| panic!("{op:?}: no gradient of input {i}"));
        assert_eq!(grad.shape(), ins[i].shape(), "{op:?}: the gradient of input {i} has its shape");
        for _ in 0..3 {
            let direction = Arr::random(&mut rng, ins[i].shape(), DType::F64).f64();
            let eps = 1e-6;
            let moved = |sign: f64| {
                let values: Vec<f64> =
                    ins[i].f64().iter().zip(&direction).map(|(x, d)| x + sign * eps * d).collect();
                let mut all = ins.to_vec();
                all[i] = Arr::new(ins[i].shape(), &values);
                loss(&forward(&all))
            };
            let numeric = (moved(1.0) - moved(-1.0)) / (2.0 * eps);
            let exact: f64 = grad.f64().iter().zip(&direction).map(|(a, b)| a * b).sum();
            let scale = 1.0 + numeric.abs().max(exact.abs());
            assert!(
                (numeric - exact).abs() < 1e-5 * scale,
                "{op:?} input {i}: rule {exact}, differences {numeric}"
            );
        }
    }
}
