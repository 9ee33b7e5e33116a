//! Arguments whose memory other arrays share are traced as copies, so that what the function makes of them is told from
//! what it makes of the others. Owns the copies, and takes writes back to where they stand for.

use crate::array::{Array, Input};
use crate::error::Result;
use crate::modes;
use crate::place::{LayoutRef, Place};
use mxnp_core::Layout;
use mxnp_core::ops::cast;

struct Copied {
    /// The stretch of memory that the arguments cover, as a flat array.
    original: Array,
    copy: Array,
    /// The copy's version before the function ran.
    version: u64,
}

/// The copies of one trace.
#[derive(Default)]
pub(crate) struct StandIns(Vec<Copied>);

/// The layout that begins elsewhere.
fn shifted(layout: &Layout, by: isize) -> LayoutRef {
    let mut layout = layout.clone();
    layout.offset = layout.offset.wrapping_add_signed(by);
    layout.into()
}

impl Copied {
    /// A copy of what `arrays`, which share the memory of `array`, cover of it.
    fn of(array: &Array, arrays: &[&&Array]) -> Result<Copied> {
        let bounds = arrays.iter().filter_map(|a| a.at.layout.bounds());
        let (low, high) = bounds.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or((0, 0));
        let layout = Layout { offset: low, ..Layout::contiguous(&[high + 1 - low]) };
        let original = Array::new(Place { layout: layout.into(), ..array.at.clone() });
        let attrs = cast::astype(array.dtype());
        let copy = crate::invoke(&cast::ASTYPE, attrs, &[Input::Array(&original)])?[0].clone();
        let version = copy.at.value.version();
        Ok(Copied { original, copy, version })
    }
}

impl StandIns {
    /// The array itself where only the arguments have its memory; else the same part of a copy of what they cover.
    pub fn stand_in(&mut self, array: &Array, arguments: &[&Array]) -> Result<Array> {
        let mut distinct: Vec<&&Array> = Vec::new();
        for other in arguments.iter().filter(|other| other.same_value(array)) {
            if !distinct.iter().any(|seen| std::ptr::eq(**seen, *other)) {
                distinct.push(other);
            }
        }
        let (handles, _) = array.at.value.handles();
        if handles as usize <= distinct.len() || array.size() == 0 {
            return Ok(array.clone());
        }
        let known = self.0.iter().position(|c| c.original.same_value(array));
        let at = match known {
            Some(at) => at,
            None => {
                self.0.push(Copied::of(array, &distinct)?);
                self.0.len() - 1
            }
        };
        let Copied { original, copy, .. } = &self.0[at];
        let layout = shifted(&array.at.layout, -(original.at.layout.offset as isize));
        let at = Place { value: copy.at.value.clone(), layout, dtype: array.at.dtype };
        Ok(Array { at, node: array.node.clone() })
    }

    /// What a copied argument stands for.
    pub fn original_of(&self, array: &Array) -> Option<&Array> {
        self.0.iter().find(|c| c.copy.same_value(array)).map(|c| &c.original)
    }

    /// The part of an argument that an output is part of a copy of; itself where it is of none.
    pub fn given_out(&self, output: &Array) -> Array {
        let Some(original) = self.original_of(output) else { return output.clone() };
        let layout = shifted(&output.at.layout, original.at.layout.offset as isize);
        let at = Place { value: original.at.value.clone(), layout, dtype: output.at.dtype };
        Array { at, node: output.node.clone() }
    }

    /// Copies what the function wrote to the copies to where they stand for.
    pub fn write_back(&self) -> Result<()> {
        let recording = modes::set_recording(false);
        let written = |copied: &&Copied| copied.copy.at.value.version() != copied.version;
        let mut done = Ok(());
        for copied in self.0.iter().filter(written) {
            let mut target = crate::Handle::new(copied.original.clone());
            done = done.and(crate::assign(&mut target, &[], Input::Array(&copied.copy)));
        }
        modes::set_recording(recording);
        done
    }
}
