//! The queue of tasks that may run. It must not know who runs them.

use crate::node::Node;
use crate::sync::Arc;
use crossbeam_deque::{Injector, Steal};

/// Runnable tasks, oldest first, for any number of threads.
pub(crate) struct Queue(Injector<Arc<Node>>);

impl Default for Queue {
    fn default() -> Self {
        Queue(Injector::new())
    }
}

impl Queue {
    pub(crate) fn push(&self, node: Arc<Node>) {
        self.0.push(node);
    }

    pub(crate) fn pop(&self) -> Option<Arc<Node>> {
        loop {
            match self.0.steal() {
                Steal::Success(node) => return Some(node),
                Steal::Empty => return None,
                Steal::Retry => {}
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
