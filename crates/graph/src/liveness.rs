//! Which values of a flush somebody can still observe, and which calls therefore need not run.
//!
//! A value is observable when something outside the list refers to it: an array, the tape, another segment's
//! call, a task that has not finished. All of them hold its `Arc`, so counting references decides (`structure.rs`);
//! what the optimiser adds to the list it alone knows.

use crate::call::{Call, Calls};
use crate::hash::{AddressMap, key};
use crate::structure::Structure;
use crate::value::Value;
use std::sync::Arc;

/// What is known of one value.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Life {
    /// How many references the calls hold.
    refs: usize,
    observable: bool,
    /// The last call that touches it.
    pub last: usize,
}

impl Life {
    /// Whether somebody outside the list can look at it.
    pub fn is_observable(&self) -> bool {
        self.observable
    }

    /// Whether more than one reference of the list goes to it.
    pub fn is_used_elsewhere(&self) -> bool {
        self.refs > 1
    }

    /// Whether it is made once and used once.
    pub fn is_touched_twice(&self) -> bool {
        self.refs == 2
    }
}

pub(crate) struct Liveness(AddressMap<Life>);

impl Liveness {
    /// Looks at a list of calls that was made from one of this structure.
    pub fn of(calls: &[Box<Call>], structure: &Structure) -> Liveness {
        let mut map: AddressMap<Life> =
            AddressMap::with_capacity_and_hasher(2 * calls.len(), Default::default());
        for (at, call) in calls.iter().enumerate() {
            for (value, _) in call.touched() {
                let life = map.entry(key(value)).or_insert_with(|| Life {
                    observable: structure.is_observable(value),
                    ..Life::default()
                });
                life.refs += 1;
                life.last = at;
            }
        }
        Liveness(map)
    }

    pub fn get(&self, value: &Arc<Value>) -> Life {
        self.0.get(&key(value)).copied().unwrap_or(Life { observable: true, ..Life::default() })
    }
}

/// Drops the calls whose results nobody can observe and no later call reads; says whether there were any.
pub(crate) fn drop_dead(calls: &mut Calls, life: &Liveness) -> bool {
    let is_read_later = |at: usize, value: &Arc<Value>| {
        let seen = life.get(value);
        seen.last > at || seen.is_observable()
    };
    let mut each = calls.iter().enumerate();
    if each.all(|(at, call)| call.outs.iter().any(|out| is_read_later(at, &out.at.value))) {
        // Nothing dies by itself, so nothing dies with it.
        return false;
    }
    let mut wanted: AddressMap<()> = AddressMap::default();
    let mut keep = vec![false; calls.len()];
    for (at, call) in calls.iter().enumerate().rev() {
        let is_wanted = |v: &Arc<Value>| wanted.contains_key(&key(v)) || life.get(v).is_observable();
        keep[at] = call.outs.iter().any(|out| is_wanted(&out.at.value));
        if keep[at] {
            for (value, _) in call.touched() {
                wanted.insert(key(value), ());
            }
        }
    }
    let mut keep = keep.into_iter();
    calls.retain(|_| keep.next().unwrap_or(true));
    true
}
