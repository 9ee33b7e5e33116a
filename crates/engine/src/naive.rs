//! The naive engine: one line of tasks, run in the order they were pushed, by whoever comes to run them.
//! It is the oracle for the threaded one, and the engine after exit. It uses no dependencies.

use crate::node::{Body, Node, vars};
use crate::shared::Shared;
use crate::stats::Count;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex};
use crate::task::Task;
use std::collections::VecDeque;

/// The tasks that were pushed and not begun.
#[derive(Default)]
pub(crate) struct Line {
    tasks: Mutex<VecDeque<Arc<Node>>>,
    len: AtomicUsize,
    /// Held while a task runs.
    running: Mutex<()>,
}

impl Line {
    pub(crate) fn is_empty(&self) -> bool {
        self.len.load(Ordering::Relaxed) == 0
    }

    fn push(&self, make: impl FnOnce() -> Arc<Node>) -> Arc<Node> {
        let mut tasks = self.tasks.lock();
        // Made under the lock: the line is in the order of the tickets.
        let node = make();
        tasks.push_back(node.clone());
        self.len.store(tasks.len(), Ordering::Relaxed);
        node
    }

    fn pop(&self) -> Option<Arc<Node>> {
        let mut tasks = self.tasks.lock();
        let node = tasks.pop_front();
        self.len.store(tasks.len(), Ordering::Relaxed);
        node
    }
}

impl Shared {
    /// Puts the task at the end of the line; the caller must run the node.
    pub(crate) fn push_naive(&self, task: Task, epoch: u32) -> Arc<Node> {
        self.line.push(|| {
            for var in vars(&task.writes) {
                var.add_writer();
            }
            let node = Node::new(self.next_ticket(), epoch);
            let runnable = node.arm(Body::Task(task));
            debug_assert!(runnable, "the naive engine has no dependencies");
            node
        })
    }

    /// Runs the first task of the line, after the one that another thread may be running, unless `done()`
    /// by then. False if there was nothing to run.
    pub(crate) fn run_first(&self, by: Count, done: &dyn Fn() -> bool) -> bool {
        let _running = self.line.running.lock();
        if done() {
            return false;
        }
        let Some(node) = self.line.pop() else { return false };
        let next = self.run_node(&node, by);
        debug_assert!(next.is_none(), "the naive engine has no dependents");
        true
    }

    /// Runs every task pushed before this call.
    pub(crate) fn finish_line(&self) {
        let now = self.now();
        let all_later = || self.line.tasks.lock().front().is_some_and(|node| node.ticket >= now);
        // The last look is under the lock that is held while a task runs, so none runs on elsewhere.
        while self.run_first(Count::RanByWaiters, &all_later) {}
    }
}
