//! Shape, strides and offset of an array, and all the arithmetic of views. Pure: no memory, no dtype.

use crate::shape::{Shape, numel};
use smallvec::SmallVec;

/// Strides, counted in elements.
pub type Strides = SmallVec<[isize; 6]>;

/// Where the elements of an array lie in its buffer; strides and offset count elements.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    pub shape: Shape,
    pub strides: Strides,
    pub offset: usize,
}

impl Clone for Layout {
    fn clone(&self) -> Layout {
        // As slices of plain numbers: SmallVec's own clone goes element by element, and this is on every path.
        Layout {
            shape: Shape::from_slice(&self.shape),
            strides: Strides::from_slice(&self.strides),
            offset: self.offset,
        }
    }
}

/// One entry of a basic index, already checked against the array's shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IndexItem {
    /// Element `start`; the axis disappears.
    At(usize),
    /// `len` elements from `start` in steps of `step`.
    Slice { start: usize, step: isize, len: usize },
    /// A new axis of size 1.
    NewAxis,
}

/// Row-major strides of `shape`.
pub fn contiguous_strides(shape: &[usize]) -> Strides {
    let mut strides: Strides = SmallVec::from_elem(0, shape.len());
    let mut step = 1isize;
    for i in (0..shape.len()).rev() {
        strides[i] = step;
        step = step.saturating_mul(shape[i].max(1) as isize);
    }
    strides
}

impl Layout {
    /// A C-contiguous layout from offset 0.
    pub fn contiguous(shape: &[usize]) -> Layout {
        Layout { shape: Shape::from_slice(shape), strides: contiguous_strides(shape), offset: 0 }
    }

    pub fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// The number of elements.
    pub fn size(&self) -> usize {
        numel(&self.shape)
    }

    /// Whether the elements lie one after the other in row-major order (from any offset).
    pub fn is_contiguous(&self) -> bool {
        let mut step = 1isize;
        for (&n, &s) in self.shape.iter().zip(&self.strides).rev() {
            if n == 0 {
                return true;
            }
            if n != 1 {
                if s != step {
                    return false;
                }
                step *= n as isize;
            }
        }
        true
    }

    /// The least and the greatest element offset touched, or None for an array without elements.
    pub fn bounds(&self) -> Option<(usize, usize)> {
        let (mut low, mut high) = (self.offset as isize, self.offset as isize);
        for (&n, &s) in self.shape.iter().zip(&self.strides) {
            if n == 0 {
                return None;
            }
            let reach = (n as isize - 1) * s;
            if reach < 0 { low += reach } else { high += reach }
        }
        Some((low as usize, high as usize))
    }

    /// Whether two elements of this layout share a place (a broadcast axis, overlapping windows); never a
    /// false no.
    pub fn may_alias_itself(&self) -> bool {
        let mut axes: SmallVec<[(usize, usize); 6]> = self
            .shape
            .iter()
            .zip(&self.strides)
            .filter(|(n, _)| **n > 1)
            .map(|(&n, &s)| (s.unsigned_abs(), n))
            .collect();
        axes.sort_unstable();
        let mut reach = 0;
        for (stride, n) in axes {
            if stride <= reach {
                return true;
            }
            reach += stride * (n - 1);
        }
        false
    }

    /// The view with axes in the order of `axes`, a permutation of `0..ndim`.
    pub fn transpose(&self, axes: &[usize]) -> Layout {
        Layout {
            shape: axes.iter().map(|&a| self.shape[a]).collect(),
            strides: axes.iter().map(|&a| self.strides[a]).collect(),
            offset: self.offset,
        }
    }

    /// The view broadcast to `shape`, or None where NumPy would refuse.
    pub fn broadcast_to(&self, shape: &[usize]) -> Option<Layout> {
        let lead = shape.len().checked_sub(self.ndim())?;
        let mut strides: Strides = SmallVec::from_elem(0, shape.len());
        for i in 0..self.ndim() {
            if self.shape[i] == shape[lead + i] {
                strides[lead + i] = if self.shape[i] == 1 { 0 } else { self.strides[i] };
            } else if self.shape[i] != 1 {
                return None;
            }
        }
        Some(Layout { shape: Shape::from_slice(shape), strides, offset: self.offset })
    }

    /// The view with a different shape of the same size, or None where it takes a copy.
    pub fn reshape(&self, shape: &[usize]) -> Option<Layout> {
        debug_assert_eq!(numel(shape), self.size());
        if self.size() == 0 {
            return Some(Layout { offset: self.offset, ..Layout::contiguous(shape) });
        }
        let old: SmallVec<[(usize, isize); 6]> =
            self.shape.iter().zip(&self.strides).filter(|(n, _)| **n != 1).map(|(&n, &s)| (n, s)).collect();
        let mut strides: Strides = SmallVec::from_elem(0, shape.len());
        let (mut i, mut j) = (0, 0);
        while j < shape.len() {
            if shape[j] == 1 {
                j += 1;
                continue;
            }
            // Match the shortest run of old axes with a run of new ones of the same size.
            let (first_old, first_new) = (i, j);
            let (mut have, mut want) = (old[i].0, shape[j]);
            (i, j) = (i + 1, j + 1);
            while have != want {
                if have < want {
                    have *= old[i].0;
                    i += 1;
                } else {
                    want *= shape[j];
                    j += 1;
                }
            }
            for k in first_old..i - 1 {
                if old[k].1 != old[k + 1].1 * old[k + 1].0 as isize {
                    return None;
                }
            }
            let mut step = old[i - 1].1;
            for k in (first_new..j).rev() {
                strides[k] = step;
                step *= shape[k] as isize;
            }
        }
        // Axes of size 1 get the stride a row-major reader expects.
        for k in (0..shape.len()).rev() {
            if shape[k] == 1 {
                strides[k] = if k + 1 < shape.len() { strides[k + 1] * shape[k + 1] as isize } else { 1 };
            }
        }
        Some(Layout { shape: Shape::from_slice(shape), strides, offset: self.offset })
    }

    /// The view a basic index gives. Axes past the items are kept whole.
    pub fn index(&self, items: &[IndexItem]) -> Layout {
        let mut out = Layout { shape: Shape::new(), strides: Strides::new(), offset: self.offset };
        let mut axis = 0;
        let mut offset = self.offset as isize;
        for item in items {
            match *item {
                IndexItem::NewAxis => {
                    out.shape.push(1);
                    out.strides.push(0);
                }
                IndexItem::At(at) => {
                    offset += at as isize * self.strides[axis];
                    axis += 1;
                }
                IndexItem::Slice { start, step, len } => {
                    if len > 0 {
                        offset += start as isize * self.strides[axis];
                    }
                    out.shape.push(len);
                    out.strides.push(self.strides[axis].saturating_mul(step));
                    axis += 1;
                }
            }
        }
        out.shape.extend_from_slice(&self.shape[axis..]);
        out.strides.extend_from_slice(&self.strides[axis..]);
        out.offset = if out.size() == 0 { self.offset } else { offset as usize };
        out
    }

    /// The view with axis `axis` read backwards.
    pub fn flip(&self, axis: usize) -> Layout {
        let mut out = self.clone();
        if out.size() > 0 {
            let last = (self.shape[axis] as isize - 1) * self.strides[axis];
            out.offset = (self.offset as isize + last) as usize;
        }
        out.strides[axis] = -out.strides[axis];
        out
    }
}
