//! What a wait does itself: alone in its process, since any test may flush the segments of all threads.

use mxnp_core::DType;
use mxnp_core::attrs::Attrs;
use mxnp_core::ops::arith;
use mxnp_graph::{Array, Device, invoke};

#[test]
fn little_work_is_finished_where_it_is_wanted() {
    let small = Array::from_bytes(&[4], DType::F32, Device::CPU, |bytes| bytes.fill(0)).unwrap();
    let large = Array::from_bytes(&[1 << 16], DType::F32, Device::CPU, |bytes| bytes.fill(0)).unwrap();
    let twice = |x: &Array| invoke(&arith::ADD, Attrs::NONE, &[x.into(), x.into()]).unwrap()[0].clone();
    assert!(small.finish_small(), "it is there");
    let made = twice(&twice(&small));
    assert!(!made.is_ready());
    assert!(made.finish_small() && made.is_ready());
    let made = twice(&large);
    assert!(!made.finish_small() && !made.is_ready(), "that is for the workers");
    made.wait_to_read().unwrap();
    assert!(made.finish_small());
}
