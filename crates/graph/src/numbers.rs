//! Numbers by address: a table for one list of calls after another, emptied by counting the lists. Every place of
//! every call is looked up in it once, so a look-up is a multiplication and mostly one comparison.

use crate::hash::mix;

#[derive(Clone, Copy, Default)]
struct Entry {
    key: usize,
    /// The list that made the entry; of another list, the place is free.
    list: u32,
    number: u32,
}

/// Open addressing over a power of two of entries, at most half of them taken.
pub(crate) struct Numbers {
    entries: Vec<Entry>,
    taken: usize,
    list: u32,
}

impl Default for Numbers {
    fn default() -> Numbers {
        Numbers { entries: vec![Entry::default(); 64], taken: 0, list: 1 }
    }
}

impl Numbers {
    /// Forgets every number.
    pub fn clear(&mut self) {
        self.taken = 0;
        self.list = self.list.wrapping_add(1);
        if self.list == 0 {
            self.entries.fill(Entry::default());
            self.list = 1;
        }
    }

    /// The number of `key`; `number` from now on if it has none.
    #[inline]
    pub fn get_or_insert(&mut self, key: usize, number: u32) -> u32 {
        let at = self.find(key);
        let entry = &mut self.entries[at];
        if entry.list == self.list {
            return entry.number;
        }
        *entry = Entry { key, list: self.list, number };
        self.taken += 1;
        if self.taken * 2 > self.entries.len() {
            self.grow();
        }
        number
    }

    /// The number of `key`, if it has one.
    pub fn get(&self, key: usize) -> Option<u32> {
        let entry = self.entries[self.find(key)];
        (entry.list == self.list).then_some(entry.number)
    }

    /// The entry of `key`, or the free one where it belongs.
    #[inline]
    fn find(&self, key: usize) -> usize {
        let mask = self.entries.len() - 1;
        // A product's high bits depend on all of a number.
        let mut at = (mix(0, key as u64) >> 32) as usize & mask;
        while self.entries[at].list == self.list && self.entries[at].key != key {
            at = (at + 1) & mask;
        }
        at
    }

    #[cold]
    fn grow(&mut self) {
        let twice = vec![Entry::default(); self.entries.len() * 2];
        for old in std::mem::replace(&mut self.entries, twice) {
            if old.list == self.list {
                let at = self.find(old.key);
                self.entries[at] = old;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_one_list_after_another() {
        let mut numbers = Numbers::default();
        for list in 0..3 {
            for i in 0..1000u32 {
                assert_eq!(numbers.get(i as usize * 16), None, "{list}");
                assert_eq!(numbers.get_or_insert(i as usize * 16, i + list), i + list);
                assert_eq!(numbers.get_or_insert(i as usize * 16, 7777), i + list);
            }
            assert!((0..1000u32).all(|i| numbers.get(i as usize * 16) == Some(i + list)));
            numbers.clear();
        }
    }

    #[test]
    fn the_count_of_lists_may_wrap() {
        let mut numbers = Numbers { list: u32::MAX, ..Numbers::default() };
        numbers.get_or_insert(16, 1);
        numbers.clear();
        assert_eq!((numbers.get(16), numbers.get(0), numbers.list), (None, None, 1));
    }
}
