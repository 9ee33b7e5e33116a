//! Arrays: a place in a value, and the node that says where its gradient goes.

use crate::device::Device;
use crate::error::{Error, Result};
use crate::node::Edge;
use crate::place::{LayoutRef, Place};
use crate::release::Owner;
use crate::value::Value;
use crate::{exec, record, registry, segment, trace};
use mxnp_core::op::Meta;
use mxnp_core::shape::checked_numel;
use mxnp_core::storage::Buffer;
use mxnp_core::view::View;
use mxnp_core::{DType, Layout, Scalar};
use mxnp_engine::engine;
use std::ops::Deref;
use std::sync::Arc;

/// A value with layout, dtype, device and gradient node. Cheap to clone; clones are the same array.
#[derive(Clone)]
pub struct Array {
    pub(crate) at: Place,
    pub(crate) node: Option<Edge>,
}

/// An operand of a call.
#[derive(Clone, Copy)]
pub enum Input<'a> {
    Array(&'a Array),
    Scalar(Scalar),
}

impl<'a> From<&'a Array> for Input<'a> {
    fn from(array: &'a Array) -> Input<'a> {
        Input::Array(array)
    }
}

/// Memory that foreign code may look at while this lives.
pub struct Exported {
    /// The address of element zero.
    pub ptr: *mut u8,
    pub layout: Layout,
    pub dtype: DType,
    _loan: Loan,
}

/// Makes a value count as shared while it lives.
struct Loan(Arc<Value>);

impl Loan {
    fn of(value: &Arc<Value>) -> Loan {
        value.lend();
        Loan(value.clone())
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.0.end_loan();
    }
}

// SAFETY: the pointer is only an address into the value that the struct keeps alive.
unsafe impl Send for Exported {}
// SAFETY: as above.
unsafe impl Sync for Exported {}

impl Array {
    #[inline]
    pub(crate) fn new(at: Place) -> Array {
        Array { at, node: None }
    }

    /// Whether a gradient flows to it.
    #[inline]
    pub(crate) fn is_traced(&self) -> bool {
        self.node.as_ref().is_some_and(Edge::is_traced)
    }

    pub fn shape(&self) -> &[usize] {
        &self.at.layout.shape
    }

    pub fn layout(&self) -> &Layout {
        &self.at.layout
    }

    #[inline]
    pub fn dtype(&self) -> DType {
        self.at.dtype
    }

    #[inline]
    pub fn device(&self) -> Device {
        self.at.value.device
    }

    pub fn size(&self) -> usize {
        self.at.layout.size()
    }

    pub fn ndim(&self) -> usize {
        self.at.layout.ndim()
    }

    pub fn meta(&self) -> Meta {
        self.at.meta()
    }

    /// Whether both are arrays of one value (the same memory, perhaps different parts of it).
    pub fn same_value(&self, other: &Array) -> bool {
        Arc::ptr_eq(&self.at.value, &other.at.value)
    }

    /// Whether writes to the memory are allowed.
    pub fn is_writable(&self) -> bool {
        self.at.value.is_writable() && !self.at.layout.may_alias_itself()
    }

    /// A new C-contiguous array whose bytes `fill` writes at once.
    pub fn from_bytes(
        shape: &[usize],
        dtype: DType,
        device: Device,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<Array> {
        let bytes = checked_numel("array", shape, dtype.size())? * dtype.size();
        let buffer = Buffer::new(bytes).ok_or_else(|| Error::memory("array", bytes))?;
        // SAFETY: a buffer's bytes are always initialised (see `storage`); nobody else has it yet.
        fill(unsafe { std::slice::from_raw_parts_mut(buffer.as_ptr(), bytes) });
        let value = Arc::new(Value::ready(buffer, device));
        if trace::is_on() {
            trace::note_constant(&value);
        }
        Ok(Array::new(Place { value, layout: LayoutRef::contiguous(shape), dtype }))
    }

    /// An array in memory that foreign code owns. `owner` is dropped later, by whoever takes the release list.
    ///
    /// # Safety
    /// Every element of `layout` counted from `base` stays readable (writable, if so said) while `owner` lives,
    /// and `base` is aligned for `dtype`.
    pub unsafe fn import(
        base: *mut u8,
        layout: Layout,
        dtype: DType,
        device: Device,
        writable: bool,
        owner: Owner,
    ) -> Array {
        let bytes = layout.bounds().map_or(0, |(_, high)| (high + 1) * dtype.size());
        let value = Arc::new(Value::foreign(base, bytes, device, writable, owner));
        Array::new(Place { value, layout: layout.into(), dtype })
    }

    /// Whether nothing that writes the value is pending or unfinished.
    pub fn is_ready(&self) -> bool {
        self.at.value.is_ready()
    }

    /// Computes the value here and now where that is little work that this thread has pending; whether it is there, and
    /// a wait for it would not block.
    pub fn finish_small(&self) -> bool {
        let value = &*self.at.value;
        if value.is_ready() {
            return true;
        }
        let span = record::wait_to_read(value);
        if registry::flush_own_small(value.writer()) && value.is_ready() {
            return true;
        }
        span.cancel();
        false
    }

    /// Flushes what computes the value and waits for it. May block.
    ///
    /// Errors: what the op that computes it found in its data.
    pub fn wait_to_read(&self) -> Result<()> {
        let value = &*self.at.value;
        let _span = record::wait_to_read(value);
        segment::flush_writer(value);
        Ok(engine().wait_read(value)?)
    }

    /// Waits until nothing reads or writes the value any more. May block.
    pub fn wait_to_write(&self) -> Result<()> {
        let value = &*self.at.value;
        let _span = record::span("wait_to_write");
        segment::flush_users(value);
        Ok(engine().wait_write(value)?)
    }

    /// Waits for the value and opens its memory to foreign code: while the result lives, each call that reads or
    /// writes the value is waited for before it returns. May block.
    pub fn export(&self, write: bool) -> Result<Exported> {
        trace::check_read(self)?;
        let loan = Loan::of(&self.at.value);
        if write {
            self.wait_to_write()?
        } else {
            self.wait_to_read()?
        }
        if write {
            self.at.value.raise_version();
        }
        // SAFETY: waited for; the value is shared now, so its buffer stays.
        let base = unsafe { loan.0.base() };
        let ptr = match self.at.layout.size() {
            0 => base,
            // SAFETY: element zero lies within the buffer.
            _ => unsafe { base.add(self.at.layout.offset * self.at.dtype.size()) },
        };
        let (layout, dtype) = (Layout::clone(&self.at.layout), self.at.dtype);
        Ok(Exported { ptr, layout, dtype, _loan: loan })
    }

    /// Waits, and copies the elements in C order to `dst`, which has their size in bytes. May block.
    pub fn read_into(&self, dst: &mut [u8]) -> Result<()> {
        assert_eq!(dst.len(), self.size() * self.dtype().size(), "the destination has the array's size");
        trace::check_read(self)?;
        if self.size() == 0 {
            return self.wait_to_read();
        }
        let at = &self.at;
        // SAFETY: the value was computed, so every element of the layout lies in its buffer.
        exec::read(&at.value, |base| unsafe { copy_out(base, &at.layout, at.dtype, dst) })
    }

    /// Waits, and gives the element at flat C-order index `index`, which must be less than the size. May block.
    pub fn item(&self, index: usize) -> Result<Scalar> {
        trace::check_read(self)?;
        let layout = &self.at.layout;
        let (mut rest, mut offset) = (index, layout.offset as isize);
        for (&n, &s) in layout.shape.iter().zip(&layout.strides).rev() {
            offset += (rest % n) as isize * s;
            rest /= n;
        }
        let mut found = Scalar::Bool(false);
        exec::read(&self.at.value, |base| {
            // SAFETY: the element lies in the buffer and is aligned for the dtype.
            found = unsafe { Scalar::read(self.dtype(), base.offset(offset * self.dtype().size() as isize)) };
        })?;
        Ok(found)
    }

    /// The same value without its history.
    pub fn detach(&self) -> Array {
        Array::new(self.at.clone())
    }

    /// Flushes the calls that touch the value, and what this thread has pending.
    pub fn flush(&self) {
        segment::flush_users(&self.at.value);
        registry::flush_current();
    }
}

/// Copies the elements of `layout` in C order.
///
/// # Safety
/// Every element lies in the memory at `base`; `dst` has their size.
unsafe fn copy_out(base: *const u8, layout: &Layout, dtype: DType, dst: &mut [u8]) {
    let size = dtype.size();
    let dense = Layout::contiguous(&layout.shape);
    if layout.is_contiguous() {
        // SAFETY: the elements are `dst.len()` bytes from the offset on.
        unsafe {
            std::ptr::copy_nonoverlapping(base.add(layout.offset * size), dst.as_mut_ptr(), dst.len());
        }
        return;
    }
    use mxnp_core::kernel::pass::{Load, Pass, Slot, Source, Store, run};
    let pass = Pass {
        shape: layout.shape.clone(),
        regs: vec![dtype],
        loads: vec![Load { source: Source::Array(0), dtype, reg: 0 }],
        steps: vec![],
        stores: vec![Store { reg: 0, target: 1, dtype }],
        reduce: None,
    };
    let slots = [Slot { base: base.cast_mut(), layout }, Slot { base: dst.as_mut_ptr(), layout: &dense }];
    // SAFETY: the slots are valid; the interpreter moves bytes of this dtype. `dst` is private.
    unsafe { run(&pass, &slots, &[], &mxnp_core::par::Serial) };
}

/// An array that the program holds: what Python objects contain. Counted on its value, so that a write while
/// recording knows whether other arrays share the memory.
pub struct Handle(Array);

impl Handle {
    #[inline]
    pub fn new(array: Array) -> Handle {
        array.at.value.add_handle(array.is_traced());
        Handle(array)
    }

    /// Puts another array in its place.
    pub fn set(&mut self, array: Array) {
        *self = Handle::new(array);
    }
}

impl Deref for Handle {
    type Target = Array;
    #[inline]
    fn deref(&self) -> &Array {
        &self.0
    }
}

impl Drop for Handle {
    #[inline]
    fn drop(&mut self) {
        self.0.at.value.drop_handle(self.0.is_traced());
    }
}

/// A view for kernels.
///
/// # Safety
/// As [`View::new`], for a value the engine lets this task read.
pub(crate) unsafe fn view_of(place: &Place) -> View<'_> {
    // SAFETY: the caller's contract.
    unsafe { View::new(place.value.base(), &place.layout, place.dtype) }
}
