//! A task that came back from `push` for its pusher to run. It must not know how it was registered.

use crate::config::Kind;
use crate::node::Node;
use crate::role::Role;
use crate::shared::Shared;
use crate::stats::Count;
use crate::sync::Arc;

/// A task that its pusher must run. Dropped without running, it is queued instead.
#[must_use = "the task runs when `run` is called"]
pub struct Ready<'a> {
    shared: &'a Shared,
    node: Option<Arc<Node>>,
}

impl<'a> Ready<'a> {
    pub(crate) fn new(shared: &'a Shared, node: Arc<Node>) -> Self {
        Ready { shared, node: Some(node) }
    }

    /// Runs the task on the calling thread; its errors show at waits. The caller holds no lock that a task takes.
    pub fn run(mut self) {
        let Some(node) = self.node.take() else { return };
        if self.shared.kind() == Kind::Naive {
            if Role::current() == Role::Outside {
                while self.shared.run_first(Count::RanInline, &|| node.is_done()) {}
            }
        } else if let Some(next) = self.shared.run_node(&node, Count::RanInline) {
            self.shared.enqueue(next);
        }
    }
}

impl Drop for Ready<'_> {
    fn drop(&mut self) {
        if let Some(node) = self.node.take()
            && self.shared.kind() == Kind::Threaded
        {
            self.shared.enqueue(node);
        }
    }
}
