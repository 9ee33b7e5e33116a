//! The seed and the numbers of random draws. A draw's number is taken when its call is appended, so results do
//! not depend on when, where or whether it runs. Initialisers count by themselves: lazy initialisation and
//! hybridizing change nothing for the rest of the program.

use crate::sync::Mutex;
use mxnp_core::op::Draw;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};

/// The counters of one seed.
struct Streams {
    seed: Option<u64>,
    program: u64,
    initialisers: u64,
}

static STREAMS: Mutex<Streams> = Mutex::new(Streams { seed: None, program: 0, initialisers: 0 });

/// Draws of initialisers have the top bit of their number set: a stream of their own.
const INITIALISERS: u64 = 1 << 63;

thread_local! {
    static INITIALISING: Cell<bool> = const { Cell::new(false) };
    /// Draws that were taken and given back, the next one first.
    static RETURNED: RefCell<VecDeque<Draw>> = const { RefCell::new(VecDeque::new()) };
}

/// Takes the lock, over a fork.
pub(crate) fn lock() -> impl Sized + 'static {
    STREAMS.lock()
}

/// Starts every stream anew from `seed`.
pub fn seed(seed: u64) {
    crate::trace::end_early("seeds random numbers");
    RETURNED.with_borrow_mut(VecDeque::clear);
    *STREAMS.lock() = Streams { seed: Some(seed), program: 0, initialisers: 0 };
}

/// The next draw of the calling thread's stream. Without a seed one is taken from the system's entropy.
pub fn next_draw() -> Draw {
    if !INITIALISING.get()
        && let Some(draw) = RETURNED.with_borrow_mut(VecDeque::pop_front)
    {
        return draw;
    }
    let mut streams = STREAMS.lock();
    // The standard library keys its hashers from the system's entropy.
    let seed = *streams.seed.get_or_insert_with(|| RandomState::new().build_hasher().finish());
    let counter = if INITIALISING.get() { &mut streams.initialisers } else { &mut streams.program };
    let number = *counter;
    *counter += 1;
    Draw { seed, counter: if INITIALISING.get() { number | INITIALISERS } else { number } }
}

/// Gives back draws of this thread: whoever does again what they were for takes them first.
pub(crate) fn give_back(draws: Vec<Draw>) {
    RETURNED.with_borrow_mut(|returned| {
        for draw in draws.into_iter().rev() {
            returned.push_front(draw);
        }
    });
}

/// Makes draws of this thread come from the initialisers' stream, or not; gives what was set before.
pub fn set_initialising(on: bool) -> bool {
    INITIALISING.replace(on)
}

/// The seed and the counters of both streams, to be restored with [`set_state`].
pub fn state() -> (u64, u64, u64) {
    let mut streams = STREAMS.lock();
    let seed = *streams.seed.get_or_insert_with(|| RandomState::new().build_hasher().finish());
    (seed, streams.program, streams.initialisers)
}

pub fn set_state((seed, program, initialisers): (u64, u64, u64)) {
    RETURNED.with_borrow_mut(VecDeque::clear);
    *STREAMS.lock() = Streams { seed: Some(seed), program, initialisers };
}
