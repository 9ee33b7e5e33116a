//! Starting, changing, waiting from many threads, exit and fork.
#![cfg(not(any(feature = "loom", feature = "shuttle")))]

mod common;

use common::{Slot, engines, fail, map, push, task, threaded};
use mxnp_engine::{Context, Engine, EngineError, Hint, Kind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

#[test]
fn nothing_starts_before_it_is_needed() {
    let engine = threaded(4);
    let slot = Slot::new(1);
    assert_eq!(engine.stats().workers, 0);
    assert!(engine.idle());
    push(&engine, task("small", &[], &[&slot], |_| Ok(())), Hint::Inline);
    assert_eq!(engine.stats().workers, 0);
    map(&engine, &slot, &slot, |x| x + 1);
    assert_eq!(engine.stats().workers, 3);
    assert!(!threaded(1).idle());
}

#[test]
fn many_threads_wait_for_one_thing() {
    for engine in engines() {
        let (slot, engine) = (Slot::new(0), Arc::new(engine));
        for _ in 0..200 {
            map(&engine, &slot, &slot, |x| x + 1);
        }
        std::thread::scope(|scope| {
            for i in 0..16 {
                let (engine, slot) = (&engine, &slot);
                scope.spawn(move || match i % 3 {
                    0 => engine.wait_all().unwrap(),
                    1 => engine.wait_write(&**slot).unwrap(),
                    _ => engine.wait_read(&**slot).unwrap(),
                });
            }
        });
        assert_eq!(slot.get(), 200);
    }
}

#[test]
fn wait_all_ends_while_another_thread_pushes_for_ever() {
    for threads in [1, 2, 8] {
        let (engine, stop) = (threaded(threads), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let slot = Slot::new(0);
                while !stop.load(Ordering::Relaxed) {
                    map(&engine, &slot, &slot, |x| x + 1);
                    map(&engine, &slot, &slot, |x| x + 1);
                    engine.throttle().unwrap();
                }
            });
            for i in 0..50 {
                let slot = Slot::new(i);
                map(&engine, &slot, &slot, |x| x + 1);
                engine.wait_all().unwrap();
                assert_eq!(slot.get(), i + 1);
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}

#[test]
fn settings_change_while_threads_push_and_wait() {
    let engine = threaded(2);
    std::thread::scope(|scope| {
        let pushers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let slot = Slot::new(0);
                    for i in 0..300 {
                        map(&engine, &slot, &slot, |x| x + 1);
                        if i % 17 == 0 {
                            engine.wait_read(&*slot).unwrap();
                            assert_eq!(slot.get(), i + 1);
                        }
                    }
                    engine.wait_write(&*slot).unwrap();
                    slot.get()
                })
            })
            .collect();
        for n in [1, 8, 0, 64, 2] {
            engine.set_num_threads(n);
            assert_eq!(engine.num_threads(), n.max(1));
            engine.set_kind(if n % 8 == 0 { Kind::Naive } else { Kind::Threaded });
        }
        for pusher in pushers {
            assert_eq!(pusher.join().unwrap(), 300);
        }
    });
    assert_eq!(engine.kind(), Kind::Threaded);
}

#[test]
fn exit_cancels_what_has_not_begun() {
    let engine = threaded(1);
    let (kept, never) = (Slot::new(5), Slot::pending());
    map(&engine, &kept, &kept, |x| x + 1);
    map(&engine, &kept, &never, |x| x);
    engine.shutdown();
    for slot in [&kept, &never] {
        let error = engine.wait_read(&**slot).err();
        let kind = error.as_ref().and_then(|e| e.kind().downcast_ref::<EngineError>());
        // The fault of `kept` is raised once; that of `never`, inherited, stays.
        assert_eq!(kind, Some(&EngineError::Cancelled));
    }
    engine.wait_read(&*kept).unwrap();
    assert!(engine.wait_read(&*never).is_err());
    assert_eq!(kept.get(), 5);
}

#[test]
fn exit_waits_for_what_runs_and_frees_who_waits() {
    for threads in [2, 8, 64] {
        let engine = threaded(threads);
        let (first, second) = (Slot::pending(), Slot::pending());
        let (begun, has_begun) = channel();
        let (go, gate) = channel::<()>();
        let target = first.clone();
        let slow = task("slow", &[], &[&first], move |_: &Context<'_>| {
            begun.send(()).unwrap();
            gate.recv().unwrap();
            target.set(1);
            Ok(())
        });
        push(&engine, slow, Hint::Queue);
        has_begun.recv().unwrap();
        map(&engine, &first, &second, |x| x + 1);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| engine.wait_read(&*second));
            scope.spawn(|| engine.shutdown());
            go.send(()).unwrap();
            // Whether the second began before exit is up to the scheduler; that it ends is not.
            match waiter.join().unwrap() {
                Ok(()) => assert_eq!(second.get(), 2),
                Err(error) => assert_eq!(error.kind().downcast_ref(), Some(&EngineError::Cancelled)),
            }
        });
        engine.wait_read(&*first).unwrap();
        assert_eq!(first.get(), 1);
    }
}

#[test]
fn after_exit_pushes_run_at_once_and_waits_return() {
    for engine in engines() {
        let slot = Slot::new(5);
        engine.shutdown();
        engine.shutdown();
        map(&engine, &slot, &slot, |x| x + 1);
        assert_eq!(slot.get(), 6);
        fail(&engine, &slot, "late");
        assert_eq!(engine.wait_read(&*slot).unwrap_err().to_string(), "fail: late");
        engine.wait_all().unwrap();
        engine.throttle().unwrap();
        assert_eq!(engine.stats().workers, 0);
    }
}

/// Forks, runs `child` in the child, and gives its exit code. The child never returns here.
#[cfg(unix)]
fn fork(engine: &Engine, child: impl FnOnce() -> i32) -> i32 {
    engine.prepare_fork();
    // SAFETY: the engine is quiet; the child calls only what needs no other thread, and leaves by `_exit`.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork failed");
    if pid == 0 {
        engine.after_fork_child();
        let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child)).unwrap_or(99);
        // SAFETY: ends the child without running the parent's destructors.
        unsafe { libc::_exit(code) };
    }
    engine.after_fork_parent();
    let mut status = 0;
    // SAFETY: `pid` is our child and `status` a place for its state.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert!(libc::WIFEXITED(status), "the child died: {status}");
    libc::WEXITSTATUS(status)
}

#[cfg(unix)]
#[test]
fn both_sides_of_a_fork_go_on() {
    for engine in engines() {
        let slot = Slot::new(0);
        for round in 1..4_u64 {
            for _ in 0..100 {
                map(&engine, &slot, &slot, |x| x + 1);
            }
            let code = fork(&engine, || {
                if engine.stats().workers != 0 || slot.get() != 200 * round - 100 {
                    return 1;
                }
                for _ in 0..100 {
                    map(&engine, &slot, &slot, |x| x + 1);
                }
                let sum = std::sync::atomic::AtomicUsize::new(0);
                engine.parallel().run(10, &|i| {
                    sum.fetch_add(i, Ordering::Relaxed);
                });
                let read = engine.wait_read(&*slot).is_ok() && engine.wait_all().is_ok();
                if read && slot.get() == 200 * round && sum.into_inner() == 45 { 42 } else { 2 }
            });
            assert_eq!(code, 42);
            for _ in 0..100 {
                map(&engine, &slot, &slot, |x| x + 1);
            }
            engine.wait_read(&*slot).unwrap();
            assert_eq!(slot.get(), 200 * round);
        }
    }
}

#[cfg(unix)]
#[test]
fn a_fork_while_other_threads_push_and_wait() {
    let (engine, stop) = (threaded(4), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let slot = Slot::new(0);
                let mut pushed = 0;
                while !stop.load(Ordering::Relaxed) {
                    for _ in 0..20 {
                        map(&engine, &slot, &slot, |x| x + 1);
                        pushed += 1;
                    }
                    engine.wait_read(&*slot).unwrap();
                    assert_eq!(slot.get(), pushed);
                }
            });
        }
        for _ in 0..10 {
            let code = fork(&engine, || {
                let slot = Slot::new(0);
                for _ in 0..100 {
                    map(&engine, &slot, &slot, |x| x + 1);
                }
                i32::from(engine.wait_all().is_err() || slot.get() != 100)
            });
            assert_eq!(code, 0);
        }
        stop.store(true, Ordering::Relaxed);
    });
}
