//! A record of what ran, for `explain` and the profiler: flushes, the units they became, waits. Nothing is noted, and
//! one atomic load per flush, wait and task is all it costs, while no log is open. It must not know who reads it.
//!
//! Rationale: a task carries its note from the flush that made it, so what was asked for before a log was opened is
//! not in it, whenever it runs. Logs keep the newest events, and totals of all.

use crate::described::Described;
use crate::sync::{Mutex, RwLock};
use crate::value::Value;
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// How many logs are open.
static OPEN: AtomicUsize = AtomicUsize::new(0);
static LOGS: RwLock<Vec<Arc<Log>>> = RwLock::new(Vec::new());
static FLUSHES: AtomicU64 = AtomicU64::new(0);
/// The threads that were noted.
static THREADS: Mutex<Threads> =
    Mutex::new(Threads { names: BTreeMap::new(), ended: Vec::new(), next: 0, logs: 0 });

struct Threads {
    /// By number: of those that run, and of those that have ended since the first log that there still is.
    names: BTreeMap<u32, String>,
    ended: Vec<u32>,
    next: u32,
    logs: usize,
}

impl Threads {
    /// Notes the end of a thread. No log speaks of it if there is none.
    fn end(&mut self, number: u32) {
        self.ended.push(number);
        self.forget_ended();
    }

    fn forget_ended(&mut self) {
        if self.logs == 0 {
            for number in std::mem::take(&mut self.ended) {
                self.names.remove(&number);
            }
        }
    }
}

/// The calling thread's number.
struct Numbered(Cell<Option<u32>>);

impl Drop for Numbered {
    fn drop(&mut self) {
        if let Some(number) = self.0.get() {
            THREADS.lock().end(number);
        }
    }
}

thread_local! {
    static THREAD: Numbered = const { Numbered(Cell::new(None)) };
}

/// Whether some log is open.
#[inline]
pub fn is_on() -> bool {
    OPEN.load(Relaxed) > 0
}

/// Nanoseconds since the first call.
pub fn now() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// The calling thread's number.
pub fn thread() -> u32 {
    THREAD.try_with(|own| own.0.get()).ok().flatten().unwrap_or_else(|| name_thread(None))
}

/// Gives the calling thread a name, by default the system's, and gives its number.
pub fn name_thread(name: Option<&str>) -> u32 {
    let mut threads = THREADS.lock();
    let known = THREAD.try_with(|own| own.0.get());
    let number = known.ok().flatten().unwrap_or_else(|| {
        let number = threads.next;
        threads.next += 1;
        let own = std::thread::current().name().map(str::to_owned);
        threads.names.insert(number, own.unwrap_or_else(|| format!("thread-{number}")));
        match known {
            Ok(_) => THREAD.with(|own| own.0.set(Some(number))),
            Err(_) => threads.end(number), // it is being torn down
        }
        number
    });
    if let Some(name) = name {
        threads.names.insert(number, name.to_owned());
    }
    number
}

/// The names of threads by number: of those that run, and of those that a log may speak of.
pub fn threads() -> BTreeMap<u32, String> {
    THREADS.lock().names.clone()
}

/// A flush: a list of calls that went to the engine together.
pub struct Flush {
    /// Counts all flushes of the process.
    pub number: u64,
    pub thread: u32,
    pub start: u64,
    /// Whether its plan was there from an earlier flush.
    pub cached: bool,
    pub plan: Arc<Described>,
}

impl Flush {
    pub(crate) fn new(start: u64, cached: bool, plan: Arc<Described>) -> Arc<Flush> {
        let number = FLUSHES.fetch_add(1, Relaxed);
        Arc::new(Flush { number, thread: thread(), start, cached, plan })
    }

    /// Ends it: every unit was handed over, or has run here.
    pub(crate) fn finish(self: Arc<Self>) {
        let end = now();
        emit(|| Event::Flush { flush: self.clone(), end });
    }
}

/// How a unit ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    Failed(String),
    /// It never ran: something that it reads or writes had failed, or the process ends.
    Skipped,
}

/// The part of a parallel loop that one thread ran.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// Which of the unit's loops.
    pub run: u32,
    pub thread: u32,
    pub start: u64,
    pub end: u64,
    pub chunks: u32,
}

/// A unit that was to run, and what became of it.
pub struct Ran {
    pub flush: Arc<Flush>,
    /// Its number in the plan.
    pub unit: usize,
    pub thread: u32,
    /// When it was handed to the engine, and ran. One that was skipped started and ended at once.
    pub queued: u64,
    pub start: u64,
    pub end: u64,
    pub outcome: Outcome,
    pub shares: Vec<Share>,
    /// Bytes of arrays in use, and tasks unfinished, when it ended.
    pub live: usize,
    pub unfinished: usize,
}

/// One thing that happened.
#[derive(Clone)]
pub enum Event {
    Flush {
        flush: Arc<Flush>,
        end: u64,
    },
    Ran(Arc<Ran>),
    /// A function of the program's thread: a wait, a backward.
    Span {
        name: &'static str,
        thread: u32,
        start: u64,
        end: u64,
    },
}

/// What all events of one name come to, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Total {
    pub count: u64,
    pub sum: u64,
    pub min: u64,
    pub max: u64,
}

impl Total {
    fn add(&mut self, time: u64) {
        self.count += 1;
        self.sum += time;
        self.min = self.min.min(time);
        self.max = self.max.max(time);
    }
}

/// Totals by kind ("operator", "segment", "api", and "memory", in bytes) and name.
pub type Totals = BTreeMap<(&'static str, Arc<str>), Total>;

/// Where events are kept while it is open.
pub struct Log {
    capacity: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    events: VecDeque<Event>,
    dropped: u64,
    totals: Totals,
}

impl Log {
    /// A log that keeps the newest `capacity` events.
    pub fn new(capacity: usize) -> Arc<Log> {
        THREADS.lock().logs += 1;
        Arc::new(Log { capacity: capacity.max(1), kept: Mutex::default() })
    }

    /// Opens it; nothing where it is.
    pub fn open(self: &Arc<Self>) {
        let mut logs = LOGS.write();
        if !logs.iter().any(|log| Arc::ptr_eq(log, self)) {
            logs.push(self.clone());
            OPEN.store(logs.len(), Relaxed);
        }
    }

    /// Closes it. What it holds stays.
    pub fn close(self: &Arc<Self>) {
        let mut logs = LOGS.write();
        logs.retain(|log| !Arc::ptr_eq(log, self));
        OPEN.store(logs.len(), Relaxed);
    }

    /// The events kept, oldest first, and how many older ones were dropped.
    pub fn events(&self) -> (Vec<Event>, u64) {
        let kept = self.kept.lock();
        (kept.events.iter().cloned().collect(), kept.dropped)
    }

    pub fn totals(&self) -> Totals {
        self.kept.lock().totals.clone()
    }

    pub fn clear_events(&self) {
        let mut kept = self.kept.lock();
        (kept.events, kept.dropped) = (VecDeque::new(), 0);
    }

    pub fn clear_totals(&self) {
        self.kept.lock().totals.clear();
    }

    fn add(&self, event: &Event) {
        let mut kept = self.kept.lock();
        kept.count(event);
        if kept.events.len() == self.capacity {
            kept.events.pop_front();
            kept.dropped += 1;
        }
        kept.events.push_back(event.clone());
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let mut threads = THREADS.lock();
        threads.logs -= 1;
        threads.forget_ended();
    }
}

impl Kept {
    fn count(&mut self, event: &Event) {
        match event {
            Event::Flush { flush, end } => self.total("segment", "flush".into(), end - flush.start),
            Event::Span { name, start, end, .. } => self.total("api", (*name).into(), end - start),
            Event::Ran(ran) => {
                self.total("memory", "live".into(), ran.live as u64);
                if ran.outcome != Outcome::Skipped {
                    let label = ran.flush.plan.units[ran.unit].label.clone();
                    self.total("operator", label, ran.end - ran.start);
                }
            }
        }
    }

    fn total(&mut self, kind: &'static str, name: Arc<str>, time: u64) {
        let none = Total { count: 0, sum: 0, min: u64::MAX, max: 0 };
        self.totals.entry((kind, name)).or_insert(none).add(time);
    }
}

/// Puts an event in every open log.
pub(crate) fn emit(event: impl FnOnce() -> Event) {
    let logs = LOGS.read();
    if !logs.is_empty() {
        let event = event();
        logs.iter().for_each(|log| log.add(&event));
    }
}

/// Takes the locks, over a fork.
pub(crate) fn lock() -> impl Sized + 'static {
    (LOGS.write(), THREADS.lock())
}

/// In a forked child: closes every log, which are the parent's. The other threads are gone.
pub(crate) fn forget() {
    let own = THREAD.try_with(|own| own.0.get()).ok().flatten();
    let mut threads = THREADS.lock();
    threads.ended = threads.names.keys().copied().filter(|number| Some(*number) != own).collect();
    threads.forget_ended();
    drop(threads);
    LOGS.write().clear();
    OPEN.store(0, Relaxed);
}

/// Notes a function of the calling thread from now until it is dropped.
#[must_use]
pub struct Span(Option<(&'static str, u64)>);

/// See [`Span`].
#[inline]
pub fn span(name: &'static str) -> Span {
    Span(is_on().then(|| (name, now())))
}

/// Notes the wait for a value that has to be waited for.
pub(crate) fn wait_to_read(value: &Value) -> Span {
    if is_on() && !value.is_ready() { span("wait_to_read") } else { Span(None) }
}

impl Span {
    /// Ends it without a note.
    pub(crate) fn cancel(mut self) {
        self.0 = None;
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if let Some((name, start)) = self.0 {
            let (thread, end) = (thread(), now());
            emit(|| Event::Span { name, thread, start, end });
        }
    }
}
