//! How a kernel asks for parallelism without owning a thread: the engine hands it a [`Parallel`].
//!
//! A kernel cuts its work into chunks whose number and size depend on the shape alone, never on the
//! number of threads, so that results are bit-equal however many threads run them.

/// Runs the chunks of one loop, on however many threads there are.
pub trait Parallel: Sync {
    /// Calls `body(i)` once for each `i` in `0..chunks`, in any order and on any thread, and returns
    /// when all have finished. The calling thread takes part and can finish the loop alone.
    fn run(&self, chunks: usize, body: &(dyn Fn(usize) + Sync));
}

/// Runs every chunk on the calling thread, in order.
pub struct Serial;

impl Parallel for Serial {
    fn run(&self, chunks: usize, body: &(dyn Fn(usize) + Sync)) {
        for i in 0..chunks {
            body(i);
        }
    }
}
