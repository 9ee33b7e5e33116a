//! Where an array lies: a value, a layout and a dtype. Layouts are shared, and those of new arrays remembered, so
//! that a place is three words to copy and two layouts that are the same one compare at once.

use crate::hash::mix;
use crate::sync::Mutex;
use crate::value::Value;
use mxnp_core::attrs::Attrs;
use mxnp_core::op::Meta;
use mxnp_core::shape::Shape;
use mxnp_core::{DType, Layout};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering, fence};

/// A layout that many arrays share, in one word.
pub(crate) struct LayoutRef(NonNull<Shared>);

pub(crate) struct Shared {
    layout: Layout,
    /// Of a common one its number, from one on: it lives as long as the process, so that no thread counts its uses.
    number: u16,
    /// How many references there are to one that is not common; the last one frees it.
    uses: AtomicUsize,
    hash: u64,
    size: usize,
    contiguous: bool,
}

// SAFETY: what it refers to is only read, but for the count, which is atomic.
unsafe impl Send for LayoutRef {}
// SAFETY: as above.
unsafe impl Sync for LayoutRef {}

impl Clone for LayoutRef {
    #[inline]
    fn clone(&self) -> LayoutRef {
        let shared = self.shared();
        if shared.number == 0 {
            shared.uses.fetch_add(1, Ordering::Relaxed); // as `Arc`: who clones one has one
        }
        LayoutRef(self.0)
    }
}

impl Drop for LayoutRef {
    #[inline]
    fn drop(&mut self) {
        let shared = self.shared();
        if shared.number == 0 && shared.uses.fetch_sub(1, Ordering::Release) == 1 {
            fence(Ordering::Acquire); // what others did with it comes before
            // SAFETY: made from a box by `new`, and this was the last reference.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }
}

impl LayoutRef {
    pub fn new(layout: Layout) -> LayoutRef {
        LayoutRef(NonNull::from(Box::leak(Box::new(Shared::new(layout, 0)))))
    }

    #[inline]
    fn shared(&self) -> &Shared {
        // SAFETY: it lives for ever, or while it is counted as used, which this reference is.
        unsafe { self.0.as_ref() }
    }

    /// The C-contiguous layout of `shape` from offset 0.
    pub fn contiguous(shape: &[usize]) -> LayoutRef {
        let at = hash_of(shape.iter().copied(), std::iter::empty()) as usize % REMEMBERED;
        let remembered = CONTIGUOUS.try_with(|table| {
            let entry = &mut table.borrow_mut()[at];
            match entry {
                Some(known) if known.shape.as_slice() == shape => known.clone(),
                _ => entry.insert(common(shape)).clone(),
            }
        });
        // While a thread is torn down nothing is remembered.
        remembered.unwrap_or_else(|_| common(shape))
    }

    /// A number that no other layout has, from one on; 0 for one that is not common and may have equals.
    #[inline]
    pub fn number(&self) -> u16 {
        self.shared().number
    }

    /// The same for equal layouts.
    #[inline]
    pub fn hash(&self) -> u64 {
        self.shared().hash
    }

    /// The number of elements.
    #[inline]
    pub fn size(&self) -> usize {
        self.shared().size
    }

    /// As [`Layout::is_contiguous`], found once.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        self.shared().contiguous
    }
}

impl Deref for LayoutRef {
    type Target = Layout;
    #[inline]
    fn deref(&self) -> &Layout {
        &self.shared().layout
    }
}

impl PartialEq for LayoutRef {
    #[inline]
    fn eq(&self, other: &LayoutRef) -> bool {
        let (a, b) = (self.shared(), other.shared());
        std::ptr::eq(a, b) || (a.hash == b.hash && a.layout == b.layout)
    }
}

impl Eq for LayoutRef {}

impl std::hash::Hash for LayoutRef {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u64(self.shared().hash);
    }
}

impl From<Layout> for LayoutRef {
    fn from(layout: Layout) -> LayoutRef {
        LayoutRef::new(layout)
    }
}

impl Shared {
    fn new(layout: Layout, number: u16) -> Shared {
        let hash = hash_of(layout.shape.iter().copied(), layout.strides.iter().map(|&s| s as usize))
            .rotate_left(5)
            .wrapping_add(layout.offset as u64);
        let (size, contiguous) = (layout.size(), layout.is_contiguous());
        Shared { layout, number, uses: AtomicUsize::new(1), hash, size, contiguous }
    }
}

/// How many contiguous layouts are common: they are never freed, so a program with ever new shapes must not make
/// ever more of them.
const COMMON: usize = 4096;

static TABLE: Mutex<BTreeMap<Shape, &'static Shared>> = Mutex::new(BTreeMap::new());

/// Takes the lock, over a fork.
pub(crate) fn lock() -> impl Sized + 'static {
    TABLE.lock()
}

/// The contiguous layout of `shape`, a common one while there is room.
fn common(shape: &[usize]) -> LayoutRef {
    let mut table = TABLE.lock();
    if let Some(shared) = table.get(shape) {
        return LayoutRef(NonNull::from(*shared));
    }
    if table.len() >= COMMON {
        return LayoutRef::new(Layout::contiguous(shape));
    }
    let number = table.len() as u16 + 1;
    let shared: &'static Shared = Box::leak(Box::new(Shared::new(Layout::contiguous(shape), number)));
    table.insert(Shape::from_slice(shape), shared);
    LayoutRef(NonNull::from(shared))
}

/// How many contiguous layouts a thread remembers.
const REMEMBERED: usize = 64;

thread_local! {
    static CONTIGUOUS: RefCell<[Option<LayoutRef>; REMEMBERED]> = const { RefCell::new([const { None }; REMEMBERED]) };
}

fn hash_of(shape: impl Iterator<Item = usize>, strides: impl Iterator<Item = usize>) -> u64 {
    let hash = shape.chain(strides).fold(1, |hash, n| mix(hash, n as u64));
    hash ^ hash >> 32
}

/// A place in a value: what an array is without its gradient node. In a plan the value is a number.
#[derive(Clone)]
pub(crate) struct Place<V = Arc<Value>> {
    pub value: V,
    pub layout: LayoutRef,
    pub dtype: DType,
}

impl<V> Place<V> {
    /// The same place in what `f` gives for the value.
    pub fn map<W>(&self, f: impl FnOnce(&V) -> W) -> Place<W> {
        Place { value: f(&self.value), layout: self.layout.clone(), dtype: self.dtype }
    }
}

impl Place {
    pub fn meta(&self) -> Meta {
        Meta::new(Shape::from_slice(&self.layout.shape), self.dtype)
    }

    /// Whether it is all of its value, in row-major order.
    pub fn is_whole(&self) -> bool {
        self.layout.offset == 0
            && self.layout.is_contiguous()
            && self.layout.size() * self.dtype.size() == self.value.bytes
    }

    pub fn is(&self, value: &Arc<Value>) -> bool {
        Arc::ptr_eq(&self.value, value)
    }

    /// The view of it that a view's op gives: another layout of the same value, or of the contiguous copy that `copy`
    /// makes where the strides do not allow it.
    pub fn view<E>(
        &self,
        attrs: &Attrs,
        layout: fn(&Attrs, &Layout) -> Option<Layout>,
        copy: impl FnOnce() -> Result<Place, E>,
    ) -> Result<Place, E> {
        if let Some(layout) = layout(attrs, &self.layout) {
            return Ok(Place { layout: layout.into(), ..self.clone() });
        }
        let copy = copy()?;
        let layout = layout(attrs, &copy.layout);
        let layout = layout.expect("a contiguous array has every view that infer allows");
        Ok(Place { layout: layout.into(), ..copy })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_layouts_are_equal_and_hash_alike() {
        let (a, b) = (LayoutRef::contiguous(&[2, 3]), LayoutRef::new(Layout::contiguous(&[2, 3])));
        assert!(a == b && a.hash() == b.hash());
        assert!(std::ptr::eq(a.shared(), LayoutRef::contiguous(&[2, 3]).shared()), "remembered");
        let transposed = LayoutRef::new(a.transpose(&[1, 0]));
        assert!(a != transposed && a != LayoutRef::contiguous(&[3, 2]) && a != LayoutRef::contiguous(&[6]));
        let shifted = LayoutRef::new(Layout { offset: 1, ..Layout::contiguous(&[2, 3]) });
        assert!(a != shifted && a.hash() != shifted.hash());
    }

    #[test]
    fn a_layout_that_is_not_common_is_counted() {
        let layout = LayoutRef::new(Layout { offset: 3, ..Layout::contiguous(&[2]) });
        let others = vec![layout.clone(); 5];
        std::thread::scope(|scope| {
            others.into_iter().for_each(|other| drop(scope.spawn(move || assert_eq!(other.offset, 3))));
        });
        assert_eq!(layout.shared().uses.load(Ordering::Relaxed), 1, "the last one will free it");
    }

    #[test]
    fn more_shapes_than_are_remembered() {
        for n in 0..COMMON + 100 {
            assert_eq!(LayoutRef::contiguous(&[n, 2]).shape.as_slice(), [n, 2]);
        }
        assert_eq!(LayoutRef::contiguous(&[COMMON + 101, 2]).number(), 0, "there is an end");
    }
}
