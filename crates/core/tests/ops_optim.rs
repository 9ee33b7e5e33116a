//! Optimizers' updates against their formulas.

mod ops_kit;
mod support;

use mxnp_core::attrs::AttrValue;
use mxnp_core::ops::optim;
use ops_kit::{Arr, error, run};

fn attrs(op: &'static mxnp_core::Op, items: &[(&str, f64)]) -> mxnp_core::attrs::Attrs {
    (op.attrs)(op.name, items.iter().map(|&(k, v)| (k.to_string(), AttrValue::Float(v))).collect()).unwrap()
}

#[test]
fn updates_write_weight_and_state() {
    let one = |v: f64| Arr::new(&[2], &[v, -v]);
    let scalars = [0.1, 0.01, 0.5].map(Arr::scalar);
    let with = |arrays: &[Arr]| [arrays, &scalars].concat();
    // The scaled gradient 4 is clipped to 1; decay adds 0.02.
    let step = 1.0 + 0.01 * 2.0;
    let ins = with(&[one(2.0), one(8.0)]);
    run(&optim::SGD_UPDATE, attrs(&optim::SGD_UPDATE, &[("clip_gradient", 1.0)]), &ins);
    assert_eq!(ins[0].f64(), [2.0 - 0.1 * step, -(2.0 - 0.1 * step)]);
    assert_eq!(ins[1].f64(), [8.0, -8.0]);
    let ins = with(&[one(2.0), one(8.0), one(0.5)]);
    let a = attrs(&optim::SGD_MOM_UPDATE, &[("momentum", 0.9), ("clip_gradient", 1.0)]);
    run(&optim::SGD_MOM_UPDATE, a, &ins);
    let mom = 0.9 * 0.5 - 0.1 * step;
    assert_eq!((ins[2].f64()[0], ins[0].f64()[0]), (mom, 2.0 + mom));
    let ins = with(&[one(2.0), one(8.0), one(0.5), Arr::new(&[2], &[0.25, 0.25])]);
    run(&optim::ADAM_UPDATE, attrs(&optim::ADAM_UPDATE, &[]), &ins);
    let g = 4.0 + 0.02;
    let (mean, var) = (0.9 * 0.5 + (1.0 - 0.9) * g, 0.999 * 0.25 + (1.0 - 0.999) * g * g);
    assert_eq!((ins[2].f64()[0], ins[3].f64()[0]), (mean, var));
    assert_eq!(ins[0].f64()[0], 2.0 - 0.1 * mean / (var.sqrt() + 1e-8));
    let bad = with(&[one(2.0), Arr::new(&[3], &[0.0; 3])]);
    let e = error(&optim::SGD_UPDATE, attrs(&optim::SGD_UPDATE, &[]), &bad);
    assert_eq!(e, "sgd_update: gradient and states must have the weight's shape (2,), got (3,)");
}
