//! Outline mode: a thread's calls are checked and their results have shape and dtype, but nothing is computed.
//! It is how the shapes of a graph are found without memory for its arrays.

use crate::call::Call;
use crate::modes::OUTLINE;
use mxnp_core::ErrorKind;
use mxnp_engine::{Context, Hint, Task, TaskError, VarRef, engine};
use smallvec::SmallVec;

/// Switches the mode on or off for this thread; gives the state before.
pub fn set_outline(on: bool) -> bool {
    OUTLINE.replace(on)
}

/// Whether this thread's calls compute nothing.
#[inline]
pub(crate) fn is_on() -> bool {
    OUTLINE.get()
}

/// Takes the place of running `call`: its new results carry the error that any later use of their contents raises,
/// also after the mode has ended. The arrays it would have written into keep their contents.
pub(crate) fn leave_out(call: &Call, segment: crate::value::SegmentId) {
    for out in call.outs.iter().filter(|out| out.fresh) {
        let name = call.op.name;
        let run = Box::new(move |_: &Context| {
            let text = "the result has a shape and a dtype, but no contents: only shapes are inferred here";
            Err(TaskError::new(name, mxnp_core::Error::new(ErrorKind::State, name, text)))
        });
        let writes = SmallVec::from_iter([out.at.value.clone() as VarRef]);
        let task = Task { name, bytes: 0, reads: SmallVec::new(), writes, run };
        if let Some(ready) = engine().push(task, Hint::Inline) {
            ready.run();
        }
        out.at.value.clear_marks(segment);
        // The error counts as raised: it is nobody's mistake, and waiting for all must not report it.
        let _ = engine().wait_write(&*out.at.value);
    }
}
