//! Measures what it costs to share work: `cargo run --release -p mxnp-engine --example hand_over`. Each row is the
//! time beyond the work itself, a median: for two equal chunks of a parallel loop, and for a task that is queued
//! and waited for, with a pause of the program before each.

use mxnp_engine::{Config, Context, Engine, Hint, Task, Tracked, Var, VarRef};
use std::sync::Arc;
use std::time::{Duration, Instant};

struct Slot(Var);

impl Tracked for Slot {
    fn var(&self) -> &Var {
        &self.0
    }
    fn has_contents(&self) -> bool {
        true
    }
}

/// Computes for this long.
fn busy(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {}
}

/// The median time of `f` beyond `work`, with a pause before each call, in microseconds.
fn beyond(work: Duration, pause: Duration, mut f: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..400)
        .map(|_| {
            busy(pause);
            let start = Instant::now();
            f();
            (start.elapsed().as_secs_f64() - work.as_secs_f64()) * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    let engine = Engine::new(&Config::from_env());
    println!("{} threads", engine.num_threads());
    let slot = Arc::new(Slot(Var::new()));
    for pause in [0, 20, 100, 1000].map(Duration::from_micros) {
        for work in [5, 20, 50].map(Duration::from_micros) {
            let two = beyond(work, pause, || engine.parallel().run(2, &|_| busy(work)));
            let task = beyond(work, pause, || {
                let writes = [slot.clone() as VarRef].into_iter().collect();
                let run = Box::new(move |_: &Context<'_>| {
                    busy(work);
                    Ok(())
                });
                let task = Task { name: "work", bytes: 0, reads: Default::default(), writes, run };
                if let Some(ready) = engine.push(task, Hint::Queue) {
                    ready.run();
                }
                engine.wait_read(&*slot).expect("the task cannot fail");
            });
            println!("after {pause:>6.0?}: two chunks of {work:?} + {two:.1} us, a task + {task:.1} us");
        }
    }
}
