//! Hashing of whole words, and maps by address. Hashes only find candidates: what matters is compared.

use crate::value::Value;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

/// Mixes a number into a hash; multiplication by 2^64 over the golden ratio spreads it (Knuth, TAOCP 3, 6.4).
#[inline]
pub(crate) fn mix(hash: u64, n: u64) -> u64 {
    (hash.rotate_left(5) ^ n).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// A hasher that mixes whole words.
#[derive(Default)]
pub(crate) struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        // A product's high bits depend on all of a number, and tables take the low ones.
        self.0.rotate_left(29)
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_ne_bytes(word));
        }
    }
    fn write_u8(&mut self, n: u8) {
        self.write_u64(n.into());
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = mix(self.0, n);
    }
    fn write_i64(&mut self, n: i64) {
        self.write_u64(n as u64);
    }
    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }
}

pub(crate) type AddressMap<T> = HashMap<usize, T, BuildHasherDefault<Mixer>>;

/// The key of a value in an [`AddressMap`].
#[inline]
pub(crate) fn key(value: &Arc<Value>) -> usize {
    Arc::as_ptr(value) as usize
}
