//! What the calling thread is doing for the engine right now. It must not know who asks.

use crate::sync::thread_local;
use std::cell::Cell;

/// What a thread is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Nothing of the engine's, or waiting for it.
    Outside,
    /// Running a task.
    Task,
    /// Running chunks of a parallel loop.
    Chunk,
}

thread_local! {
    #[allow(clippy::missing_const_for_thread_local, reason = "loom's macro takes no const block")]
    static ROLE: Cell<Role> = Cell::new(Role::Outside);
}

impl Role {
    /// The calling thread's role.
    pub(crate) fn current() -> Role {
        ROLE.try_with(Cell::get).unwrap_or(Role::Outside)
    }

    /// Takes the role until the guard is dropped.
    pub(crate) fn take(self) -> RoleGuard {
        RoleGuard(ROLE.try_with(|role| role.replace(self)).unwrap_or(Role::Outside))
    }
}

/// Gives the thread its earlier role back.
pub(crate) struct RoleGuard(Role);

impl Drop for RoleGuard {
    fn drop(&mut self) {
        let _ = ROLE.try_with(|role| role.set(self.0));
    }
}
