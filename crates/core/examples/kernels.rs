//! Measures kernels of ops on one thread: `cargo run --release -p mxnp-core --example kernels [words of names]`.
//! Prints the least CPU time of several runs; rows are those whose name has one of the words (default: all).

use mxnp_core::attrs::{AttrValue, Attrs};
use mxnp_core::op::{Draw, KernelArgs, Run};
use mxnp_core::par::Serial;
use mxnp_core::promote::Mode;
use mxnp_core::view::{View, ViewMut};
use mxnp_core::{DType, Layout, Meta, Scalar, ops};

/// Memory with a layout.
struct Array {
    words: Vec<u64>,
    layout: Layout,
    dtype: DType,
}

impl Array {
    fn new(shape: &[usize], dtype: DType, value: impl Fn(usize) -> f64) -> Array {
        let layout = Layout::contiguous(shape);
        let size = dtype.size();
        let mut words = vec![0u64; (layout.size() * size).div_ceil(8) + 1];
        let base = words.as_mut_ptr().cast::<u8>();
        let integer = dtype.is_integer();
        for i in 0..layout.size() {
            let mut bytes = [0u8; 16];
            let scalar = if integer { Scalar::Int(value(i) as i128) } else { Scalar::Float(value(i)) };
            scalar.write(dtype, &mut bytes);
            // SAFETY: element i of the array's memory.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), base.add(i * size), size) };
        }
        Array { words, layout, dtype }
    }

    fn random(shape: &[usize]) -> Array {
        Array::new(shape, DType::F32, |i| (i.wrapping_mul(2_654_435_761) % 10_007) as f64 / 5000.0 - 1.0)
    }

    fn transposed(mut self) -> Array {
        self.layout = self.layout.transpose(&[1, 0]);
        self
    }

    fn base(&self) -> *mut u8 {
        self.words.as_ptr().cast_mut().cast()
    }
}

/// CPU seconds of this thread.
fn cpu() -> f64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut t) };
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}

fn row(name: &str, op: &str, items: &[(&str, AttrValue)], ins: &[Array]) {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if !words.is_empty() && !words.iter().any(|w| name.contains(w.as_str())) {
        return;
    }
    let op = ops::find(op).expect("an op");
    let attrs: Attrs = (op.attrs)(op.name, items.iter().map(|(k, v)| (k.to_string(), v.clone())).collect())
        .expect("attributes");
    let metas: Vec<Meta> = ins.iter().map(|x| Meta::new(x.layout.shape.clone(), x.dtype)).collect();
    let inferred = op.infer(&attrs, &metas, Mode::default()).expect("right arguments");
    let outs: Vec<Array> = inferred.outs.iter().map(|m| Array::new(&m.shape, m.dtype, |_| 0.0)).collect();
    // SAFETY: layouts lie within their arrays' memory.
    let views: Vec<View> = ins.iter().map(|x| unsafe { View::new(x.base(), &x.layout, x.dtype) }).collect();
    let targets: Vec<Option<ViewMut>> = outs
        .iter()
        // SAFETY: as above.
        .map(|x| Some(unsafe { ViewMut::new(x.base(), &x.layout, x.dtype) }))
        .chain(op.writes.among(ins.len()).into_iter().map(|i| {
            // SAFETY: as above; nothing reads the input while the kernel writes it.
            Some(unsafe { ViewMut::new(ins[i].base(), &ins[i].layout, ins[i].dtype) })
        }))
        .collect();
    let Run::Kernel(f) = op.run else { panic!("{name}: not a kernel") };
    let args = KernelArgs {
        op: op.name,
        attrs: &attrs,
        ins: &views,
        outs: &targets,
        par: &Serial,
        draw: Draw::default(),
        tail: None,
    };
    let mut best = f64::INFINITY;
    let start = std::time::Instant::now();
    for i in 0..200 {
        let from = cpu();
        f(&args).expect("a run");
        best = best.min(cpu() - from);
        if i >= 3 && start.elapsed().as_secs_f64() > 1.0 {
            break;
        }
    }
    println!("{name:32} {:10.3} ms", best * 1e3);
}

fn ints(v: &[i64]) -> AttrValue {
    AttrValue::Ints(v.to_vec())
}

/// The layers of LeNet for a batch of 128.
fn lenet() {
    let pad = ("pad", ints(&[2, 2]));
    let bias = ("no_bias", AttrValue::Bool(false));
    let r = Array::random;
    let layers: [(&str, [usize; 4], [usize; 4]); 2] =
        [("conv1", [128, 1, 28, 28], [20, 1, 5, 5]), ("conv2", [128, 20, 14, 14], [50, 20, 5, 5])];
    for (name, x, w) in layers {
        let y = [x[0], w[0], x[2], x[3]];
        let of = |shape: [usize; 4]| ("shape", ints(&shape.map(|n| n as i64)));
        row(
            &format!("{name} forward"),
            "convolution",
            &[pad.clone(), bias.clone()],
            &[r(&x), r(&w), r(&w[..1])],
        );
        let common = |shape| {
            [
                ("stride", ints(&[1, 1])),
                ("dilate", ints(&[1, 1])),
                pad.clone(),
                ("num_group", AttrValue::Int(1)),
                of(shape),
            ]
        };
        row(&format!("{name} data gradient"), "conv_data_grad", &common(x), &[r(&y), r(&w)]);
        row(&format!("{name} weight gradient"), "conv_weight_grad", &common(w), &[r(&x), r(&y)]);
        let two = || ints(&[2, 2]);
        let pool = [("kernel", two()), ("stride", two())];
        row(&format!("{name} max pool"), "pooling", &pool, &[r(&y)]);
        let pool = [("kernel", two()), ("stride", two()), ("pool_type", AttrValue::Str("avg".into()))];
        row(&format!("{name} avg pool"), "pooling", &pool, &[r(&y)]);
        let pool = [("kernel", ints(&[3, 3])), ("stride", two()), ("pad", ints(&[1, 1]))];
        row(&format!("{name} max pool 3/2"), "pooling", &pool, &[r(&y)]);
        let (planes, pixels) = (y[0] * y[1], y[2] * y[3]);
        let width = y[3];
        let at = |i: usize| {
            let place = i % (pixels / 4);
            ((place / (width / 2)) * 2 * width + place % (width / 2) * 2 + i % 2) as f64
        };
        let places = Array::new(&[planes, pixels / 4], DType::I64, at);
        let along = [
            ("axis", AttrValue::Int(1)),
            ("mode", AttrValue::Str("raise".into())),
            ("size", AttrValue::Int(pixels as i64)),
        ];
        row(
            &format!("{name} max pool gradient"),
            "scatter_along",
            &along,
            &[r(&[planes, pixels / 4]), places],
        );
    }
}

/// The layers of a perceptron for a batch of 128.
fn dense() {
    let r = Array::random;
    for (k, n) in [(784, 256), (256, 128), (128, 10), (2450, 120)] {
        row(&format!("dense {k}x{n} forward"), "matmul", &[], &[r(&[128, k]), r(&[n, k]).transposed()]);
        row(&format!("dense {k}x{n} data gradient"), "matmul", &[], &[r(&[128, n]), r(&[n, k])]);
        row(
            &format!("dense {k}x{n} weight gradient"),
            "matmul",
            &[],
            &[r(&[128, n]).transposed(), r(&[128, k])],
        );
    }
    row("matmul 1024", "matmul", &[], &[r(&[1024, 1024]), r(&[1024, 1024])]);
}

fn others() {
    let r = Array::random;
    let million = ("size", ints(&[1_000_000]));
    let number = |v: f64| Array::new(&[], DType::F64, move |_| v);
    let single = ("dtype", AttrValue::Str("float32".into()));
    for name in ["uniform", "normal"] {
        row(
            &format!("{name} 1e6 f32"),
            name,
            &[million.clone(), single.clone()],
            &[number(0.0), number(1.0)],
        );
    }
    row(
        "normal 1e6 f64",
        "normal",
        &[million.clone(), ("dtype", AttrValue::Str("float64".into()))],
        &[number(0.0), number(1.0)],
    );
    row("bernoulli 1e6 f32", "bernoulli", &[million, single], &[number(0.5)]);
    row("dropout 1e6", "dropout", &[("training", AttrValue::Bool(true))], &[r(&[1_000_000])]);
    row("sort 1e6 f32", "sort", &[], &[r(&[1_000_000])]);
    row("argsort 1e6 f32", "argsort", &[], &[r(&[1_000_000])]);
    row("softmax (4096, 1000)", "softmax", &[], &[r(&[4096, 1000])]);
    row("softmax (128, 10)", "softmax", &[], &[r(&[128, 10])]);
    row("log_softmax (4096, 1000)", "log_softmax", &[], &[r(&[4096, 1000])]);
    let norm = [("axes", ints(&[1])), ("eps", AttrValue::Float(1e-5))];
    row("normalize (4096, 1000)", "normalize", &norm, &[r(&[4096, 1000])]);
    let ones = |n: usize| Array::new(&[n], DType::F32, |_| 1.0);
    row(
        "batch_norm (64, 64, 28, 28)",
        "batch_norm",
        &[("training", AttrValue::Bool(true))],
        &[r(&[64, 64, 28, 28]), r(&[64]), r(&[64]), r(&[64]), ones(64)],
    );
}

fn main() {
    println!("isa {}", mxnp_core::simd::isa().name());
    lenet();
    dense();
    others();
}
