//! The loss of sequences whose alignment with their labels is not known: ctc and its gradient, over logarithms of
//! probabilities. A. Graves et al., Connectionist Temporal Classification (2006): sums over alignments by the forward
//! and backward variables, here in logarithms and float64.

use crate::attrs::Attrs;
use crate::kernel::moves::{Shared, dense, zero};
use crate::op::{Grad, InferArgs, Inferred, KernelArgs, Meta, Op, Run, Saves, StepFn};
use crate::ops::exp_log::{EXP, LOGADDEXP};
use crate::par::Parallel;
use crate::rules::IntoOperand;
use crate::shape::display;
use crate::{DType, Element, Error, ErrorKind, Result, attrs};
use smallvec::{SmallVec, smallvec};
use std::borrow::Cow;

attrs! {
    /// `blank`: the class that stands between labels; `padding`: what ends a label that is shorter than its length.
    pub struct Ctc { blank: i64 = 0, padding: Option<i64> = None }
}

/// Shapes of logs (T, N, C), labels (N, L), steps (N,) and lengths (N,), and the dtype of the logs as computed with.
fn check(a: &InferArgs, ins: &[Meta]) -> Result<DType> {
    let (logs, labels) = (&ins[0], &ins[1]);
    let samples = logs.shape.get(1).copied();
    if logs.shape.len() != 3 || labels.shape.len() != 2 || labels.shape.first().copied() != samples {
        let (x, y) = (display(&logs.shape), display(&labels.shape));
        return Err(Error::value(
            a.op,
            format!("expected data (T, N, C) and labels (N, L), got shapes {x} and {y}"),
        ));
    }
    if logs.shape[0] == 0 || logs.shape[2] < 2 {
        let text = format!("data needs a step, a class and the blank, got shape {}", display(&logs.shape));
        return Err(Error::value(a.op, text));
    }
    if labels.shape[1] > logs.shape[0] {
        let text = format!("labels of length {} cannot fit into {} steps", labels.shape[1], logs.shape[0]);
        return Err(Error::value(a.op, text));
    }
    for (what, lengths) in [("data", &ins[2]), ("label", &ins[3])] {
        if lengths.shape[..] != logs.shape[1..2] {
            let (n, got) = (logs.shape[1], display(&lengths.shape));
            return Err(Error::value(a.op, format!("{what} lengths must have shape ({n},), got {got}")));
        }
    }
    let blank = a.attrs.get::<Ctc>().blank;
    if blank < 0 || blank >= logs.shape[2] as i64 {
        let text = format!("the blank must be one of {} classes, got {blank}", logs.shape[2]);
        return Err(Error::value(a.op, text));
    }
    if !logs.dtype.is_float() {
        return Err(Error::DType { op: a.op, dtype: logs.dtype, expected: "logarithms are floats" });
    }
    Ok(if logs.dtype == DType::F64 { DType::F64 } else { DType::F32 })
}

const WHOLE: [DType; 3] = [DType::I64; 3];

fn infer(a: &InferArgs) -> Result<Inferred> {
    let dtype = check(a, a.ins)?;
    let mut ins: SmallVec<[DType; 4]> = smallvec![dtype];
    ins.extend(WHOLE);
    Ok(Inferred { ins, outs: smallvec![Meta::new(&a.ins[0].shape[1..2], dtype)] })
}

fn infer_grad(a: &InferArgs) -> Result<Inferred> {
    let dtype = check(a, &a.ins[1..])?;
    if a.ins[0].shape[..] != a.ins[1].shape[1..2] {
        return Err(Error::Broadcast {
            op: a.op,
            shapes: a.ins[..2].iter().map(|x| x.shape.clone()).collect(),
        });
    }
    let mut ins: SmallVec<[DType; 4]> = smallvec![dtype; 2];
    ins.extend(WHOLE);
    Ok(Inferred { ins, outs: smallvec![Meta::new(a.ins[1].shape.clone(), dtype)] })
}

/// The elementwise loops of float64 that the recursions are made of.
struct Steps {
    exp: StepFn,
    add: StepFn,
}

impl Steps {
    fn new() -> Steps {
        let step = |op: &Op, ins: &[DType]| match op.run {
            Run::Elementwise(of) => of(ins, DType::F64),
            _ => None,
        };
        let exp = step(&EXP, &[DType::F64]).expect("exp has a loop of float64");
        let add = step(&LOGADDEXP, &[DType::F64; 2]).expect("logaddexp has a loop of float64");
        Steps { exp, add }
    }

    /// log(exp(x) + exp(y)), element by element.
    fn add(&self, x: &[f64], y: &[f64], out: &mut [f64]) {
        assert!(x.len() == out.len() && y.len() == out.len());
        // SAFETY: three slices of as many elements; a mutable one overlaps no other.
        unsafe { (self.add)(out.len(), &[x.as_ptr().cast(), y.as_ptr().cast()], out.as_mut_ptr().cast()) }
    }

    /// `x = log(exp(x) + exp(y))`.
    fn add_to(&self, x: &mut [f64], y: &[f64]) {
        assert!(x.len() == y.len());
        let at = x.as_mut_ptr();
        // SAFETY: as in `add`; the result may lie where the first operand does.
        unsafe { (self.add)(y.len(), &[at.cast_const().cast(), y.as_ptr().cast()], at.cast()) }
    }

    fn exp(&self, x: &mut [f64]) {
        let at = x.as_mut_ptr();
        // SAFETY: one slice, read and written in place.
        unsafe { (self.exp)(x.len(), &[at.cast_const().cast()], at.cast()) }
    }
}

/// One sample: its symbols are the labels with blanks before, between and after.
struct Sample {
    number: usize,
    steps: usize,
    symbols: Vec<usize>,
    /// For each symbol 0 where it may follow the one two before it, else -infinity; then two of -infinity.
    jumps: Vec<f64>,
}

/// All samples of a call, checked.
struct Batch<'a, T: Element> {
    logs: Cow<'a, [T]>,
    shape: [usize; 3],
    samples: Vec<Sample>,
    blank: usize,
    steps: Steps,
}

/// What stands before the first and after the last symbol of a row of variables: two that are never reached.
const PAD: usize = 2;
const NEVER: f64 = f64::NEG_INFINITY;

impl<'a, T: Element + Into<f64>> Batch<'a, T> {
    /// From the arrays of a call, of which logs are number `first`. Raises for labels and lengths out of range.
    fn of(a: &'a KernelArgs, first: usize) -> Result<Batch<'a, T>> {
        let ins = &a.ins[first..];
        let [t, n, c] = ins[0].layout.shape[..] else { unreachable!("checked by infer") };
        let width = ins[1].layout.shape[1];
        let [labels, steps, lengths] = [1, 2, 3].map(|i| dense::<i64>(&ins[i], a.par));
        let Ctc { blank, padding } = *a.attrs.get::<Ctc>();
        let wrong = |text: String| Err(Error::new(ErrorKind::Index, a.op, text));
        let mut samples = Vec::with_capacity(n);
        for number in 0..n {
            let Some(steps) = usize::try_from(steps[number]).ok().filter(|&steps| steps <= t) else {
                return wrong(format!(
                    "data length {} of sample {number} is out of bounds for {t} steps",
                    steps[number]
                ));
            };
            let Some(length) = usize::try_from(lengths[number]).ok().filter(|&length| length <= width) else {
                let text = format!(
                    "label length {} of sample {number} is out of bounds for {width} labels",
                    lengths[number]
                );
                return wrong(text);
            };
            let label = &labels[number * width..][..length];
            let label = label.split(|&k| Some(k) == padding).next().unwrap_or(label);
            if let Some(k) = label.iter().find(|&&k| k < 0 || k >= c as i64 || k == blank) {
                let text = format!(
                    "label {k} of sample {number} is out of bounds for {c} classes, of which {blank} is the blank"
                );
                return wrong(text);
            }
            let mut symbols = vec![blank as usize; 2 * label.len() + 1];
            let mut jumps = vec![NEVER; symbols.len() + PAD];
            for (i, &k) in label.iter().enumerate() {
                symbols[2 * i + 1] = k as usize;
                // A label may be reached from the one before without a blank, unless both are the same.
                jumps[2 * i + 1] = if i > 0 && label[i - 1] != k { 0.0 } else { NEVER };
            }
            samples.push(Sample { number, steps, symbols, jumps });
        }
        Ok(Batch {
            logs: dense::<T>(&ins[0], a.par),
            shape: [t, n, c],
            samples,
            blank: blank as usize,
            steps: Steps::new(),
        })
    }

    /// Where the classes of a step of a sample begin.
    fn row(&self, sample: &Sample, step: usize) -> usize {
        (step * self.shape[1] + sample.number) * self.shape[2]
    }

    /// Adds what the symbols cost at a step.
    fn emit(&self, sample: &Sample, step: usize, row: &mut [f64]) {
        let logs = &self.logs[self.row(sample, step)..][..self.shape[2]];
        for (value, &symbol) in row.iter_mut().zip(&sample.symbols) {
            *value += logs[symbol].into();
        }
    }

    /// The logarithm of the probability of the sample's label; `rows` gets the forward variables of each step, after
    /// [`PAD`] of -infinity: to stand at a symbol then, with all that led there.
    fn forward(&self, sample: &Sample, rows: &mut Vec<f64>, keep: bool) -> f64 {
        let width = sample.symbols.len();
        if sample.steps == 0 {
            return if width == 1 { 0.0 } else { NEVER };
        }
        let full = width + PAD;
        rows.clear();
        rows.resize(full * if keep { sample.steps } else { 2 }, NEVER);
        let mut jumped = vec![NEVER; width];
        rows[PAD..PAD + width.min(2)].fill(0.0);
        self.emit(sample, 0, &mut rows[PAD..full]);
        for step in 1..sample.steps {
            let (before, now) = if keep {
                let (before, now) = rows.split_at_mut(step * full);
                (&before[(step - 1) * full..], &mut now[..full])
            } else {
                let (even, odd) = rows.split_at_mut(full);
                if step % 2 == 1 { (&*even, odd) } else { (&*odd, even) }
            };
            self.steps.add(&before[PAD..], &before[PAD - 1..full - 1], &mut now[PAD..]);
            for ((to, from), jump) in jumped.iter_mut().zip(&before[..width]).zip(&sample.jumps) {
                *to = from + jump;
            }
            self.steps.add_to(&mut now[PAD..], &jumped);
            self.emit(sample, step, &mut now[PAD..]);
        }
        let last = if keep { sample.steps - 1 } else { (sample.steps - 1) % 2 };
        let ends = &rows[last * full + full - width.min(2)..(last + 1) * full];
        let mut total = [ends[0]];
        if let [_, end] = ends {
            self.steps.add_to(&mut total, &[*end]);
        }
        total[0]
    }

    /// Takes, at each step, the share of the alignments that stand at each class, times `g`, off the gradient, which
    /// is zero.
    fn backward(&self, sample: &Sample, g: f64, gradient: Shared<T>, narrow: impl Fn(f64) -> T) {
        if g == 0.0 {
            return; // also where a share is no number
        }
        let mut rows = Vec::new();
        let total = self.forward(sample, &mut rows, true);
        if total == NEVER || sample.steps == 0 {
            return;
        }
        let width = sample.symbols.len();
        let full = width + PAD;
        // The backward variables: what follows a symbol, without the symbol itself.
        let mut after = vec![NEVER; full];
        after[width - width.min(2)..width].fill(0.0);
        let (mut share, mut next, mut jumped) = (vec![0.0; width], vec![NEVER; full], vec![NEVER; width]);
        for step in (0..sample.steps).rev() {
            let forward = &rows[step * full + PAD..(step + 1) * full];
            for ((share, alpha), beta) in share.iter_mut().zip(forward).zip(&after) {
                *share = alpha + beta - total;
            }
            self.steps.exp(&mut share);
            let (start, mut blanks) = (self.row(sample, step), 0.0);
            let take = |class: usize, amount: f64| {
                // SAFETY: a class of this sample's row, which no other sample writes.
                unsafe {
                    let at = gradient.at((start + class) as isize);
                    *at = narrow((*at).into() - amount * g);
                }
            };
            for (&share, &symbol) in share.iter().zip(&sample.symbols) {
                if symbol == self.blank { blanks += share } else { take(symbol, share) }
            }
            take(self.blank, blanks);
            if step > 0 {
                next[..width].copy_from_slice(&after[..width]);
                self.emit(sample, step, &mut next[..width]);
                for (s, to) in jumped.iter_mut().enumerate() {
                    *to = next[s + 2] + sample.jumps[s + 2];
                }
                self.steps.add(&next[..width], &next[1..=width], &mut after[..width]);
                self.steps.add_to(&mut after[..width], &jumped);
            }
        }
    }

    /// Calls `body` for each sample, in parallel where there is work for it.
    fn each(&self, par: &dyn Parallel, body: &(dyn Fn(&Sample) + Sync)) {
        let cost = self.samples.iter().map(|s| s.steps * s.symbols.len()).max().unwrap_or(0);
        let together = (CHUNK / cost.max(1)).max(1);
        par.run(self.samples.len().div_ceil(together), &|chunk| {
            let end = ((chunk + 1) * together).min(self.samples.len());
            self.samples[chunk * together..end].iter().for_each(body);
        });
    }
}

/// Variables computed by one chunk: some 100 us.
const CHUNK: usize = 1 << 13;

fn run_typed<T: Element + Into<f64>>(a: &KernelArgs, narrow: impl Fn(f64) -> T + Sync) -> Result<()> {
    let batch = Batch::<T>::of(a, 0)?;
    let out = Shared(a.out(0).ptr::<T>());
    batch.each(a.par, &|sample| {
        let total = batch.forward(sample, &mut Vec::new(), false);
        // A label that cannot be read from the data costs nothing, as in MXNet.
        let loss = if total == NEVER { 0.0 } else { -total };
        // SAFETY: an element for each sample.
        unsafe { *out.at(sample.number as isize) = narrow(loss) };
    });
    Ok(())
}

fn run(a: &KernelArgs) -> Result<()> {
    if a.ins[0].dtype == DType::F64 { run_typed::<f64>(a, |x| x) } else { run_typed::<f32>(a, |x| x as f32) }
}

fn run_grad_typed<T: Element + Into<f64>>(a: &KernelArgs, narrow: impl Fn(f64) -> T + Sync) -> Result<()> {
    let batch = Batch::<T>::of(a, 1)?;
    let g = dense::<T>(&a.ins[0], a.par);
    let out = a.out(0);
    zero(&out, a.par);
    let gradient = Shared(out.ptr::<T>());
    batch.each(a.par, &|sample| batch.backward(sample, g[sample.number].into(), gradient, &narrow));
    Ok(())
}

fn run_grad(a: &KernelArgs) -> Result<()> {
    if a.ins[0].dtype == DType::F64 {
        run_grad_typed::<f64>(a, |x| x)
    } else {
        run_grad_typed::<f32>(a, |x| x as f32)
    }
}

/// The attributes of [`CTC`].
pub fn ctc(blank: i64, padding: Option<i64>) -> Attrs {
    Attrs::new(Ctc { blank, padding })
}

/// `ctc(logs, labels, steps, lengths)`: -log of the probability that the first `steps` of the (T, N, C) logarithms of
/// probabilities read as the first `lengths` of the (N, L) labels, blanks and repeats left out; 0 where it is 0.
/// Half types are computed, and the result is, in float32. Labels and lengths out of range are errors.
pub static CTC: Op = Op {
    attrs: Ctc::read,
    grad: Grad::Vjp(|v| {
        let others = [0, 1, 2, 3].map(|i| v.x(i).operand());
        let gradient = v.needs(0).then(|| v.g().apply(&CTC_GRAD, v.attrs.clone(), &others));
        smallvec![gradient, None, None, None]
    }),
    saves: Saves { inputs: 0b1111, outputs: 0 },
    ..Op::new("ctc", 4, infer, Run::Kernel(run))
};

/// The gradient of [`CTC`] in its logs, for the head gradient that comes first.
pub static CTC_GRAD: Op = Op {
    attrs: Ctc::read,
    grad: Grad::None("the gradient of ctc_loss is computed as a whole, and has no rule of its own"),
    ..Op::new("ctc_grad", 5, infer_grad, Run::Kernel(run_grad))
};

pub const OPS: &[&Op] = &[&CTC, &CTC_GRAD];
