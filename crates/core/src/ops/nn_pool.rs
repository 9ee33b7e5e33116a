//! Pooling over one to three axes, layouts NCW, NCHW and NCDHW: max (with places as a hidden output), avg, sum
//! and lp. Windows are cut off at the data's ends; NaN wins a maximum.

mod plane;

use crate::attrs::{Attrs, Ints};
use crate::kernel::moves::{Shared, dense};
use crate::kernel::real::Real;
use crate::kernel::walk::{GRAIN, split};
use crate::op::{Grad, InferArgs, Inferred, KernelArgs, Meta, Op, Run, Saves};
use crate::ops::arith::{ABSOLUTE, POWER, SIGN, select};
use crate::ops::compare;
use crate::ops::index::{SCATTER_ALONG, along_into};
use crate::ops::nn_conv::each_axis;
use crate::promote::to_float;
use crate::rules::{IntoOperand, Sym, Vjp};
use crate::shape::{Shape, checked_numel, display};
use crate::{DType, Error, Result, attrs, with_type};
use smallvec::{SmallVec, smallvec};
use std::ops::Range;

attrs! {
    /// MXNet's. `pooling_convention`: `valid` (rounds the number of windows down), `full` (up) or `same`;
    /// `count_include_pad`: whether an average counts padding (default: yes); `p_value`: the p of `lp`.
    pub struct Pooling {
        kernel: Ints = Ints::new(),
        pool_type: String = "max".into(),
        global_pool: bool = false,
        stride: Ints = Ints::new(),
        pad: Ints = Ints::new(),
        pooling_convention: String = "valid".into(),
        count_include_pad: Option<bool> = None,
        p_value: Option<i64> = None,
        layout: Option<String> = None,
    }
}

attrs! {
    /// The pooling whose adjoint is taken, and the `shape` of its data.
    pub struct PoolAdjoint {
        kernel: Ints,
        pool_type: String,
        global_pool: bool,
        stride: Ints,
        pad: Ints,
        pooling_convention: String,
        count_include_pad: bool,
        shape: Shape,
    }
}

/// The windows of a pooling; axes that are not there have size 1.
struct Windows {
    input: [usize; 3],
    output: [usize; 3],
    kernel: [usize; 3],
    stride: [usize; 3],
    pad: [usize; 3],
}

impl Windows {
    /// The places along an axis that window `o` covers, and its length with padding.
    fn reach(&self, axis: usize, o: usize) -> (Range<usize>, usize) {
        let start = o * self.stride[axis];
        let end = (start + self.kernel[axis]).min(self.input[axis] + 2 * self.pad[axis]);
        let cut = |at: usize| at.saturating_sub(self.pad[axis]).min(self.input[axis]);
        (cut(start)..cut(end).max(cut(start)), end.saturating_sub(start))
    }

    /// Calls `body(output place, window, size with padding)` for every window of a plane, and `window` calls
    /// back with every input place in it.
    #[inline(always)]
    fn each(&self, mut body: impl FnMut(usize, [Range<usize>; 3], usize)) {
        let mut place = 0;
        for d in 0..self.output[0] {
            let (rd, nd) = self.reach(0, d);
            for h in 0..self.output[1] {
                let (rh, nh) = self.reach(1, h);
                for w in 0..self.output[2] {
                    let (rw, nw) = self.reach(2, w);
                    body(place, [rd.clone(), rh.clone(), rw], nd * nh * nw);
                    place += 1;
                }
            }
        }
    }

    /// Every place in the window, in row-major order.
    fn window_places(&self) -> Vec<plane::Place> {
        let along = |axis: usize, k: usize| {
            let (pad, stride, input) = (self.pad[axis], self.stride[axis], self.input[axis]);
            let first = pad.saturating_sub(k).div_ceil(stride).min(self.output[axis]);
            let end = (input + pad).saturating_sub(k).div_ceil(stride).clamp(first, self.output[axis]);
            (first..end, k as isize - pad as isize)
        };
        let [kd, kh, kw] = self.kernel;
        (0..kd * kh * kw)
            .map(|i| [along(0, i / (kh * kw)), along(1, i / kw % kh), along(2, i % kw)])
            .map(|[(d, i), (h, j), (w, k)]| plane::Place { outputs: [d, h, w], shift: [i, j, k] })
            .collect()
    }

    /// What the sum over each window is divided by: 1, or for an average what it counts, perhaps with padding.
    fn divisors(&self, average: Option<bool>) -> Vec<f64> {
        let mut by = vec![1.0; self.positions()];
        if let Some(include_pad) = average {
            self.each(|place, window, padded| {
                by[place] = count(include_pad, padded, window.iter().map(Range::len).product());
            });
        }
        by
    }

    #[inline(always)]
    fn places(&self, window: [Range<usize>; 3], mut body: impl FnMut(usize)) {
        let [rd, rh, rw] = window;
        for d in rd {
            for h in rh.clone() {
                let row = (d * self.input[1] + h) * self.input[2];
                for w in rw.clone() {
                    body(row + w);
                }
            }
        }
    }

    fn pixels(&self) -> usize {
        self.input.iter().product()
    }

    fn positions(&self) -> usize {
        self.output.iter().product()
    }
}

/// The attributes that decide the windows.
struct Spec<'a> {
    kernel: &'a [i64],
    stride: &'a [i64],
    pad: &'a [i64],
    global: bool,
    convention: &'a str,
}

impl Pooling {
    fn spec(&self) -> Spec<'_> {
        Spec {
            kernel: &self.kernel,
            stride: &self.stride,
            pad: &self.pad,
            global: self.global_pool,
            convention: &self.pooling_convention,
        }
    }
}

impl PoolAdjoint {
    fn spec(&self) -> Spec<'_> {
        Spec {
            kernel: &self.kernel,
            stride: &self.stride,
            pad: &self.pad,
            global: self.global_pool,
            convention: &self.pooling_convention,
        }
    }
}

/// The windows over data of shape `x`, all checked.
fn windows(op: &'static str, spec: &Spec, x: &[usize]) -> Result<Windows> {
    if !(3..=5).contains(&x.len()) {
        let text = format!("data must have 3 to 5 axes (N, C and 1 to 3 more), got shape {}", display(x));
        return Err(Error::value(op, text));
    }
    let axes = x.len() - 2;
    let list = |name, given, default, least| each_axis(op, name, given, default, axes, least);
    let mut input = [1; 3];
    input[3 - axes..].copy_from_slice(&x[2..]);
    if spec.global {
        return Ok(Windows { input, output: [1; 3], kernel: input, stride: [1; 3], pad: [0; 3] });
    }
    if spec.kernel.is_empty() {
        return Err(
            Error::type_(op, "missing required argument 'kernel'").with_hint("or pass global_pool=True")
        );
    }
    let kernel = list("kernel", spec.kernel, 1, 1)?;
    let stride = list("stride", spec.stride, 1, 1)?;
    let pad = list("pad", spec.pad, 0, 0)?;
    let mut output = [1; 3];
    for i in 3 - axes..3 {
        let room = input[i] + 2 * pad[i];
        if pad[i] >= kernel[i] {
            let text = format!("pad {:?} must be below kernel {:?}", spec.pad, spec.kernel);
            return Err(Error::value(op, text));
        }
        if kernel[i] > room {
            let text =
                format!("kernel {:?} is larger than the padded data of shape {}", spec.kernel, display(x));
            return Err(Error::value(op, text));
        }
        output[i] = match spec.convention {
            "valid" => (room - kernel[i]) / stride[i] + 1,
            "full" => (room - kernel[i]).div_ceil(stride[i]) + 1,
            "same" => room.div_ceil(stride[i]),
            other => {
                let text = format!("pooling_convention must be 'valid', 'full' or 'same', got '{other}'");
                return Err(Error::value(op, text));
            }
        };
    }
    Ok(Windows { input, output, kernel, stride, pad })
}

fn pooled_shape(w: &Windows, x: &[usize]) -> Shape {
    let mut shape = Shape::from_slice(&x[..2]);
    shape.extend_from_slice(&w.output[3 - (x.len() - 2)..]);
    shape
}

fn infer_pooling(a: &InferArgs) -> Result<Inferred> {
    let attrs = a.attrs.get::<Pooling>();
    if !matches!(attrs.pool_type.as_str(), "max" | "avg" | "sum" | "lp") {
        let text = format!("pool_type must be 'max', 'avg', 'sum' or 'lp', got '{}'", attrs.pool_type);
        return Err(Error::value(a.op, text));
    }
    if attrs.p_value.is_some_and(|p| p < 1) {
        return Err(Error::value(
            a.op,
            format!("p_value must be at least 1, got {}", attrs.p_value.unwrap_or(0)),
        ));
    }
    if let Some(other) = attrs.layout.as_deref().filter(|l| !matches!(*l, "NCW" | "NCHW" | "NCDHW" | "None"))
    {
        return Err(Error::value(a.op, format!("layout {other} is not supported"))
            .with_hint("transpose the data to NCW, NCHW or NCDHW"));
    }
    let x = &a.ins[0];
    let w = windows(a.op, &attrs.spec(), &x.shape)?;
    let dtype = to_float(x.dtype, a.mode);
    crate::infer::refuse_complex(a.op, dtype)?;
    let shape = pooled_shape(&w, &x.shape);
    checked_numel(a.op, &shape, 8)?;
    let places = if attrs.pool_type == "max" { shape.clone() } else { smallvec![0] };
    if w.pixels() > i32::MAX as usize {
        return Err(Error::value(a.op, format!("planes of shape {} are too large", display(&x.shape[2..]))));
    }
    Ok(Inferred {
        ins: smallvec![dtype],
        outs: smallvec![Meta::new(shape, dtype), Meta::new(places, DType::I64)],
    })
}

fn run_pooling(a: &KernelArgs) -> Result<()> {
    let w = windows(a.op, &a.attrs.get::<Pooling>().spec(), &a.ins[0].layout.shape)?;
    with_type!(floats a.out(0).dtype, T => pool::<T>(a, &w), else {});
    Ok(())
}

fn pool<T: plane::Pooled>(a: &KernelArgs, w: &Windows) {
    let attrs = a.attrs.get::<Pooling>();
    let x = dense::<T>(&a.ins[0], a.par);
    let (pixels, positions) = (w.pixels(), w.positions());
    let planes: usize = a.ins[0].layout.shape[..2].iter().product();
    let out = Shared(a.out(0).ptr::<T>());
    let found = a.outs[1].filter(|_| attrs.pool_type == "max").map(|v| Shared(v.ptr::<i64>()));
    let few = w.output[2] < FEW;
    let places = if few { Vec::new() } else { w.window_places() };
    let work = w.kernel.iter().product::<usize>().saturating_mul(positions).max(1);
    let pool = Pool { places: &places, x: &x, pixels, positions, out };
    let p = (attrs.pool_type == "lp").then(|| attrs.p_value.unwrap_or(2) as i32);
    let include_pad = attrs.count_include_pad.unwrap_or(true);
    let is_whole = w.output == [1; 3] && w.input == w.kernel && w.pad == [0; 3] && pixels > 0;
    if is_whole && matches!(attrs.pool_type.as_str(), "avg" | "sum") {
        let by = if attrs.pool_type == "avg" { pixels as f64 } else { 1.0 };
        let totals = plane::totals::<T>();
        return split(a.par, planes, GRAIN / pixels, |range| {
            let mut sums = vec![0f64; range.len()];
            // SAFETY: planes of this chunk, and their results.
            unsafe {
                totals(&x[range.start * pixels..range.end * pixels], pixels, &mut sums);
                for (i, sum) in range.zip(&sums) {
                    *out.at(i as isize) = <T as Real>::narrow(sum / by);
                }
            }
        });
    }
    if few {
        return split(a.par, planes, GRAIN / work, |range| {
            pool.one_by_one(w, &attrs.pool_type, p.unwrap_or(2), include_pad, found, range);
        });
    }
    let sizes = plane::Sizes { input: w.input, output: w.output, stride: w.stride };
    if attrs.pool_type == "max" {
        let starts = Starts::new(w);
        return split(a.par, planes, GRAIN / work, |range| pool.maxima(sizes, &starts, found, range));
    }
    let by = w.divisors((attrs.pool_type == "avg").then_some(include_pad));
    split(a.par, planes, GRAIN / work, |range| pool.sums(sizes, p, &by, range));
}

/// Windows in a row below which each is computed alone: gathering would cost more than it saves.
const FEW: usize = 4;

/// For each window: where it begins in a plane (before it, with padding), and its first place inside the data.
struct Starts {
    begin: Vec<i32>,
    first: Vec<i32>,
}

impl Starts {
    fn new(w: &Windows) -> Starts {
        let mut starts = Starts { begin: Vec::new(), first: Vec::new() };
        let [_, ih, iw] = w.input;
        w.each(|place, window, _| {
            let [oh, ow] = [w.output[1], w.output[2]];
            let o = [place / (oh * ow), place / ow % oh, place % ow];
            let at: [isize; 3] = std::array::from_fn(|i| (o[i] * w.stride[i]) as isize - w.pad[i] as isize);
            starts.begin.push(((at[0] * ih as isize + at[1]) * iw as isize + at[2]) as i32);
            let empty = window.iter().any(Range::is_empty);
            let first = (window[0].start * ih + window[1].start) * iw + window[2].start;
            starts.first.push(if empty { 0 } else { first as i32 });
        });
        starts
    }
}

/// What the planes of one pooling have in common.
struct Pool<'a, T> {
    places: &'a [plane::Place],
    x: &'a [T],
    pixels: usize,
    positions: usize,
    out: Shared<T>,
}

impl<T: plane::Pooled> Pool<'_, T> {
    fn plane(&self, plane: usize) -> &[T] {
        &self.x[plane * self.pixels..(plane + 1) * self.pixels]
    }

    /// The results of some planes, window by window.
    fn one_by_one(
        &self,
        w: &Windows,
        kind: &str,
        p: i32,
        include_pad: bool,
        found: Option<Shared<i64>>,
        planes: Range<usize>,
    ) {
        for plane in planes {
            let x = self.plane(plane);
            w.each(|place, window, padded| {
                let at = (plane * self.positions + place) as isize;
                let inside: usize = window.iter().map(Range::len).product();
                let (mut sum, mut best, mut where_) = (0.0, f64::NEG_INFINITY, None);
                match kind {
                    "max" => w.places(window, |i| {
                        let v = x[i].wide();
                        if v > best || where_.is_none() || (v.is_nan() && !best.is_nan()) {
                            (best, where_) = (v, Some(i));
                        }
                    }),
                    "lp" => w.places(window, |i| sum += x[i].wide().abs().powi(p)),
                    _ => w.places(window, |i| sum += x[i].wide()),
                }
                let value = match kind {
                    "max" => best,
                    "lp" if p == 2 => sum.sqrt(),
                    "lp" => sum.powf(1.0 / f64::from(p)),
                    "avg" => sum / count(include_pad, padded, inside),
                    _ => sum,
                };
                // SAFETY: this window's own place, of this chunk's own plane.
                unsafe {
                    *self.out.at(at) = <T as Real>::narrow(value);
                    if let Some(found) = found {
                        *found.at(at) = where_.unwrap_or(0) as i64;
                    }
                }
            });
        }
    }

    /// The maxima of some planes, and where they are.
    fn maxima(&self, s: plane::Sizes, starts: &Starts, found: Option<Shared<i64>>, planes: Range<usize>) {
        let (gather, max) = (plane::gather::<T>(), plane::max::<T>());
        let (mut row, mut places) = (vec![T::default(); self.positions], starts.first.clone());
        for plane in planes {
            places.copy_from_slice(&starts.first);
            // SAFETY: results of this chunk's own plane; buffers have an element for each output.
            unsafe {
                let at = (plane * self.positions) as isize;
                let best = std::slice::from_raw_parts_mut(self.out.at(at), self.positions);
                best.fill(plane::lowest());
                for place in self.places {
                    gather(self.plane(plane), s, place, plane::lowest(), &mut row);
                    let [d, h, w] = place.shift;
                    let origin = self.places[0].shift;
                    let offset =
                        ((d - origin[0]) * s.input[1] as isize + h - origin[1]) * s.input[2] as isize;
                    max(&row, &starts.begin, (offset + w - origin[2]) as i32, best, &mut places);
                }
                if let Some(found) = found {
                    let found = std::slice::from_raw_parts_mut(found.at(at), self.positions);
                    found.iter_mut().zip(&places).for_each(|(to, &place)| *to = i64::from(place));
                }
            }
        }
    }

    /// The sums of some planes, each divided by its element of `by`; or the norms of order `p`.
    fn sums(&self, s: plane::Sizes, p: Option<i32>, by: &[f64], planes: Range<usize>) {
        let (gather, sum, narrow) = (plane::gather::<T>(), plane::sum::<T>(), plane::narrowed::<T>());
        let (mut row, mut sums) = (vec![T::default(); self.positions], vec![0f64; self.positions]);
        for plane in planes {
            sums.fill(0.0);
            for place in self.places {
                // SAFETY: buffers have an element for each output.
                unsafe { gather(self.plane(plane), s, place, T::default(), &mut row) };
                match p {
                    Some(p) => sums.iter_mut().zip(&row).for_each(|(sum, x)| *sum += x.wide().abs().powi(p)),
                    // SAFETY: `row` and `sums` both have an element for each output.
                    None => unsafe { sum(&row, &mut sums) },
                }
            }
            match p {
                Some(2) => sums.iter_mut().for_each(|sum| *sum = sum.sqrt()),
                Some(p) => sums.iter_mut().for_each(|sum| *sum = sum.powf(1.0 / f64::from(p))),
                None => sums.iter_mut().zip(by).for_each(|(sum, by)| *sum /= by),
            }
            // SAFETY: results of this chunk's own plane.
            unsafe {
                let at = (plane * self.positions) as isize;
                narrow(&sums, std::slice::from_raw_parts_mut(self.out.at(at), self.positions));
            }
        }
    }
}

/// What an average divides by.
fn count(include_pad: bool, padded: usize, inside: usize) -> f64 {
    (if include_pad { padded } else { inside }).max(1) as f64
}

fn grad_pooling<'r>(v: &Vjp<'r>) -> SmallVec<[Option<Sym<'r>>; 3]> {
    let attrs = v.attrs.get::<Pooling>();
    let shape = v.shape(0);
    let Ok(w) = windows("", &attrs.spec(), shape) else { return smallvec![None] };
    let g = v.g();
    if attrs.pool_type == "max" {
        let planes = shape[0] * shape[1];
        let flat = [planes, w.positions()];
        let places = v.y(1).reshape(&flat).operand();
        let back = g.reshape(&flat).apply(&SCATTER_ALONG, along_into(1, "raise", w.pixels()), &[places]);
        return smallvec![Some(back.reshape(shape))];
    }
    let kind = if attrs.pool_type == "avg" { "avg" } else { "sum" };
    let to = Attrs::new(PoolAdjoint {
        kernel: attrs.kernel.clone(),
        pool_type: kind.into(),
        global_pool: attrs.global_pool,
        stride: attrs.stride.clone(),
        pad: attrs.pad.clone(),
        pooling_convention: attrs.pooling_convention.clone(),
        count_include_pad: attrs.count_include_pad.unwrap_or(true),
        shape: shape.clone(),
    });
    if attrs.pool_type != "lp" {
        return smallvec![Some(g.with(&POOL_SPREAD, to))];
    }
    // y^(1-p) |x|^(p-1) sign(x), and 0 where the window is all zeros.
    let (x, y, p) = (v.x(0), v.y(0), attrs.p_value.unwrap_or(2));
    let slope = select(y.binary(&compare::GREATER, 0i64), y, 1.0).binary(&POWER, (1 - p) as f64);
    let heads = select(y.binary(&compare::GREATER, 0i64), g.times(slope), 0.0);
    let along = x.unary(&SIGN) * x.unary(&ABSOLUTE).binary(&POWER, (p - 1) as f64);
    smallvec![Some(heads.with(&POOL_SPREAD, to).times(along))]
}

/// `pooling(x; kernel, pool_type, ...)`. The places of maxima are a hidden output.
pub static POOLING: Op = Op {
    attrs: Pooling::read,
    grad: Grad::Vjp(grad_pooling),
    saves: Saves { inputs: 1, outputs: 0b11 },
    hidden: 1,
    ..Op::new("pooling", 1, infer_pooling, Run::Kernel(run_pooling))
};

fn infer_spread(a: &InferArgs) -> Result<Inferred> {
    let attrs = a.attrs.get::<PoolAdjoint>();
    let w = windows(a.op, &attrs.spec(), &attrs.shape)?;
    let (g, want) = (&a.ins[0], pooled_shape(&w, &attrs.shape));
    if g.shape != want {
        let text = format!("the pooling's result has shape {}, got {}", display(&want), display(&g.shape));
        return Err(Error::value(a.op, text));
    }
    let dtype = to_float(g.dtype, a.mode);
    crate::infer::refuse_complex(a.op, dtype)?;
    Ok(Inferred { ins: smallvec![dtype], outs: smallvec![Meta::new(attrs.shape.clone(), dtype)] })
}

fn run_spread(a: &KernelArgs) -> Result<()> {
    let attrs = a.attrs.get::<PoolAdjoint>();
    let w = windows(a.op, &attrs.spec(), &attrs.shape)?;
    with_type!(floats a.out(0).dtype, T => spread::<T>(a, &w), else {});
    Ok(())
}

fn spread<T: plane::Pooled>(a: &KernelArgs, w: &Windows) {
    let attrs = a.attrs.get::<PoolAdjoint>();
    let g = dense::<T>(&a.ins[0], a.par);
    let (pixels, positions) = (w.pixels(), w.positions());
    let planes: usize = attrs.shape[..2].iter().product();
    let out = Shared(a.out(0).ptr::<T>());
    let by = w.divisors((attrs.pool_type == "avg").then_some(attrs.count_include_pad));
    let few = w.output[2] < FEW;
    let places = if few { Vec::new() } else { w.window_places() };
    let sizes = plane::Sizes { input: w.input, output: w.output, stride: w.stride };
    let (quotients, scatter, narrow) =
        (plane::quotients::<T>(), plane::scatter::<T>(), plane::narrowed::<T>());
    let work = w.kernel.iter().product::<usize>().saturating_mul(positions).max(1);
    split(a.par, planes, GRAIN / work, |range| {
        let (mut sums, mut shares) = (vec![0f64; pixels], vec![0f64; positions]);
        for plane in range {
            sums.fill(0.0);
            // SAFETY: buffers have an element for each input place and output; results of this chunk's own plane.
            unsafe {
                quotients(&g[plane * positions..][..positions], &by, &mut shares);
                if few {
                    w.each(|place, window, _| w.places(window, |i| sums[i] += shares[place]));
                }
                // From the last place on, an input place meets its windows in their order.
                for place in places.iter().rev() {
                    scatter(&shares, sizes, place, &mut sums);
                }
                narrow(&sums, std::slice::from_raw_parts_mut(out.at((plane * pixels) as isize), pixels));
            }
        }
    });
}

/// `pool_spread(g; shape, ...)`: the adjoint of an average or sum pooling. Private to gradients.
pub static POOL_SPREAD: Op = Op {
    attrs: PoolAdjoint::read,
    grad: Grad::Vjp(|v| {
        let attrs = v.attrs.get::<PoolAdjoint>();
        let again = Pooling {
            kernel: attrs.kernel.clone(),
            pool_type: attrs.pool_type.clone(),
            global_pool: attrs.global_pool,
            stride: attrs.stride.clone(),
            pad: attrs.pad.clone(),
            pooling_convention: attrs.pooling_convention.clone(),
            count_include_pad: Some(attrs.count_include_pad),
            p_value: None,
            layout: None,
        };
        smallvec![Some(v.g().with(&POOLING, Attrs::new(again)))]
    }),
    ..Op::new("pool_spread", 1, infer_spread, Run::Kernel(run_spread))
};

pub const OPS: &[&Op] = &[&POOLING, &POOL_SPREAD];
