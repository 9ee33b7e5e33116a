//! A value: one buffer with its engine variable, and the marks that say which segments still use it.
//!
//! Rationale: the storage is reached only by tasks that the engine has ordered, and by threads that have
//! waited; the engine's variable is the lock. The marks follow the protocol in ADR 0001: a segment sets them
//! under its own lock; a writer clears the readers' mark before it flushes them, so that none is lost.

use crate::device::Device;
use crate::error::out_of_memory;
use crate::release;
use mxnp_core::storage::Buffer;
use mxnp_engine::{Tracked, Var};
use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};

/// A segment's number; 0 is none.
pub(crate) type SegmentId = u32;

/// The readers' mark of a value that several segments read.
pub(crate) const MANY: SegmentId = u32::MAX;

/// Memory behind a value.
enum Storage {
    /// Nothing was computed yet, or the buffer went to another value.
    None,
    Owned(Buffer),
    Foreign {
        base: *mut u8,
        _owner: Kept,
    },
}

/// What keeps foreign memory alive; dropped by way of the release list.
struct Kept(Option<release::Owner>);

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(owner) = self.0.take() {
            release::put(owner);
        }
    }
}

/// A buffer with one engine variable inside.
pub(crate) struct Value {
    var: Var,
    /// The size of the buffer.
    pub bytes: usize,
    pub device: Device,
    storage: UnsafeCell<Storage>,
    computed: AtomicBool,
    /// Raised when a write is appended; the tape compares it.
    version: AtomicU64,
    /// How many loans let foreign code see the memory, foreign memory counting as one that never ends: meanwhile
    /// it is never reused, and calls on it are waited for.
    loans: AtomicU32,
    writable: bool,
    /// The segment with a pending read, or MANY.
    readers: AtomicU32,
    /// The segment with a pending write.
    writer: AtomicU32,
    /// Its number in the list of the segment that noted it last (`structure.rs`, which checks whether it is so).
    number: AtomicU32,
    /// Arrays the program holds on this value, and how many of them have a gradient node.
    handles: AtomicU32,
    nodes: AtomicU32,
}

// SAFETY: `storage` is reached only under the engine's ordering (see the functions that give it out); the rest
// is atomic.
unsafe impl Send for Value {}
// SAFETY: as above.
unsafe impl Sync for Value {}

impl Tracked for Value {
    fn var(&self) -> &Var {
        &self.var
    }

    fn has_contents(&self) -> bool {
        self.computed.load(Acquire)
    }
}

impl Value {
    #[inline(always)] // written where it stays
    fn with(storage: Storage, bytes: usize, device: Device, computed: bool, writer: SegmentId) -> Value {
        Value {
            var: Var::new(),
            bytes,
            device,
            loans: AtomicU32::new(matches!(storage, Storage::Foreign { .. }) as u32),
            storage: UnsafeCell::new(storage),
            computed: AtomicBool::new(computed),
            version: AtomicU64::new(0),
            writable: true,
            readers: AtomicU32::new(0),
            writer: AtomicU32::new(writer),
            number: AtomicU32::new(0),
            handles: AtomicU32::new(0),
            nodes: AtomicU32::new(0),
        }
    }

    /// A value that a call of segment `writer` will compute.
    #[inline(always)] // as `with`
    pub fn pending(bytes: usize, device: Device, writer: SegmentId) -> Value {
        Value::with(Storage::None, bytes, device, false, writer)
    }

    /// The same, made where it stays: a value is large to move, and each append makes one.
    #[inline]
    pub fn new_pending(bytes: usize, device: Device, writer: SegmentId) -> Arc<Value> {
        let place = Arc::into_raw(Arc::<Value>::new_uninit()).cast_mut().cast::<Value>();
        // SAFETY: the memory of a new `Arc`, which nobody else has; its contents are written before it is one again.
        unsafe {
            place.write(Value::pending(bytes, device, writer));
            Arc::from_raw(place)
        }
    }

    /// A value that is there.
    pub fn ready(buffer: Buffer, device: Device) -> Value {
        let bytes = buffer.len();
        Value::with(Storage::Owned(buffer), bytes, device, true, 0)
    }

    /// A value in foreign memory, shared from the start.
    pub fn foreign(
        base: *mut u8,
        bytes: usize,
        device: Device,
        writable: bool,
        owner: release::Owner,
    ) -> Value {
        let storage = Storage::Foreign { base, _owner: Kept(Some(owner)) };
        Value { writable, ..Value::with(storage, bytes, device, true, 0) }
    }

    /// The buffer's start; null where nothing was computed.
    ///
    /// # Safety
    /// The engine orders this access (a task that lists the value), or the caller has waited for the value.
    #[inline]
    pub unsafe fn base(&self) -> *mut u8 {
        // SAFETY: nobody replaces the storage while the engine's ordering holds.
        match unsafe { &*self.storage.get() } {
            Storage::None => std::ptr::null_mut(),
            Storage::Owned(buffer) => buffer.as_ptr(),
            Storage::Foreign { base, .. } => *base,
        }
    }

    /// The buffer's start, allocated now if there is none.
    ///
    /// # Safety
    /// A task that lists the value among its writes.
    pub unsafe fn allocate(&self, op: &'static str) -> mxnp_core::Result<*mut u8> {
        // SAFETY: the task writes the value, so it alone reaches the storage.
        let storage = unsafe { &mut *self.storage.get() };
        if matches!(storage, Storage::None) {
            *storage = Storage::Owned(Buffer::new(self.bytes).ok_or_else(|| out_of_memory(op, self.bytes))?);
        }
        // SAFETY: as above.
        Ok(unsafe { self.base() })
    }

    /// Moves this value's buffer to `heir` where it is owned and has the right size.
    ///
    /// # Safety
    /// A task that lists both among its writes, after which nobody reads this value.
    pub unsafe fn bequeath(&self, heir: &Value) {
        // SAFETY: the task writes both values, so it alone reaches the storages.
        let (mine, theirs) = unsafe { (&mut *self.storage.get(), &mut *heir.storage.get()) };
        if matches!(mine, Storage::Owned(_)) && matches!(theirs, Storage::None) && self.bytes == heir.bytes {
            std::mem::swap(mine, theirs);
            self.computed.store(false, Release);
        }
    }

    /// Notes that the contents are there.
    #[inline]
    pub fn set_computed(&self) {
        self.computed.store(true, Release);
    }

    #[inline]
    pub fn version(&self) -> u64 {
        self.version.load(Acquire)
    }

    pub fn raise_version(&self) {
        self.version.fetch_add(1, AcqRel);
    }

    #[inline]
    pub fn is_shared(&self) -> bool {
        self.loans.load(Acquire) > 0
    }

    /// Begins a loan of the memory to foreign code.
    pub fn lend(&self) {
        self.loans.fetch_add(1, AcqRel);
    }

    /// Ends a loan: what foreign code wrote is there for the calls that follow.
    pub fn end_loan(&self) {
        self.loans.fetch_sub(1, Release);
    }

    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// Whether nothing that writes it is pending or unfinished.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.writer() == 0 && self.var.is_clean()
    }

    #[inline]
    pub fn writer(&self) -> SegmentId {
        self.writer.load(SeqCst)
    }

    #[inline]
    pub fn readers(&self) -> SegmentId {
        self.readers.load(SeqCst)
    }

    /// Marks a pending read of segment `id` (whose lock is held); gives the other segment whose pending
    /// write must be flushed first. One that waits for a writer leaves no mark for that writer to flush.
    #[inline]
    pub fn mark_read(&self, id: SegmentId) -> Option<SegmentId> {
        let writer = self.writer.load(SeqCst);
        if writer != 0 {
            // Whoever comes by flushes this segment for its write, and the read with it: no mark is needed.
            return (writer != id).then_some(writer);
        }
        let seen = self.readers.load(SeqCst);
        if seen != id && seen != MANY {
            let mark = |r| (r != id && r != MANY).then_some(if r == 0 { id } else { MANY });
            let _ = self.readers.fetch_update(SeqCst, SeqCst, mark);
        }
        let writer = self.writer.load(SeqCst);
        (writer != 0 && writer != id).then_some(writer)
    }

    /// Marks a pending write of segment `id` (whose lock is held); gives the segment that must be flushed first.
    /// Another's write keeps its mark until it is with the engine: a wait that found ours in its place would find
    /// nothing to flush and a value that was never computed.
    pub fn mark_write(&self, id: SegmentId) -> Option<SegmentId> {
        match self.writer.compare_exchange(0, id, SeqCst, SeqCst) {
            Err(other) if other != id => return Some(other),
            _ => {}
        }
        let readers = self.readers.swap(0, SeqCst);
        (readers != 0 && readers != id).then_some(readers)
    }

    /// Takes the write mark of segment `id` away from a value for which it has appended nothing since.
    pub fn give_up_write(&self, id: SegmentId) {
        let _ = self.writer.compare_exchange(id, 0, SeqCst, SeqCst);
    }

    /// Takes the marks of segment `id` away once its calls are with the engine (its lock is held).
    #[inline]
    pub fn clear_marks(&self, id: SegmentId) {
        if self.writer.load(SeqCst) == id {
            let _ = self.writer.compare_exchange(id, 0, SeqCst, SeqCst);
        }
        if self.readers.load(SeqCst) == id {
            let _ = self.readers.compare_exchange(id, 0, SeqCst, SeqCst);
        }
    }

    #[inline]
    pub fn number(&self) -> u32 {
        self.number.load(Relaxed)
    }

    #[inline]
    pub fn set_number(&self, number: u32) {
        self.number.store(number, Relaxed);
    }

    #[inline]
    pub fn add_handle(&self, has_node: bool) {
        self.handles.fetch_add(1, Relaxed);
        if has_node {
            self.nodes.fetch_add(1, Relaxed);
        }
    }

    #[inline]
    pub fn drop_handle(&self, has_node: bool) {
        self.handles.fetch_sub(1, Relaxed);
        if has_node {
            self.nodes.fetch_sub(1, Relaxed);
        }
    }

    /// How many arrays the program holds on this value, and how many of them have a gradient node.
    pub fn handles(&self) -> (u32, u32) {
        (self.handles.load(Relaxed), self.nodes.load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pending_write_keeps_its_mark_until_it_is_with_the_engine() {
        let value = Value::pending(8, Device::CPU, 1);
        assert_eq!(value.mark_write(2), Some(1));
        assert_eq!(value.writer(), 1, "a wait must find the segment that has the write");
        assert_eq!(value.mark_read(3), Some(1));
        value.clear_marks(1);
        assert_eq!(value.readers(), 0, "a reader that has to wait leaves no mark");
        assert_eq!(value.mark_read(3), None);
        assert_eq!(value.mark_write(2), Some(3), "the other reader is flushed first");
        assert_eq!((value.mark_write(2), value.writer()), (None, 2));
    }
}
