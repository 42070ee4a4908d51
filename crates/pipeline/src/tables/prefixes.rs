//! Entries by IPv4 prefix.

use super::entry::{Entry, Prefix};
use super::lpm::Lpm;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

/// Entries by prefix, and the ranges by which an address finds its longest one.
#[derive(Clone, Debug)]
pub(super) struct Prefixes {
    slots: BTreeMap<Prefix, u32>,
    entries: Vec<Option<Entry>>,
    free: Vec<u32>,
    lpm: Lpm,
    /// True if the prefixes have changed since `lpm` was built.
    is_stale: bool,
    size: u32,
}

impl Prefixes {
    /// Returns no prefixes, of at most this many.
    pub(super) fn new(size: u32) -> Prefixes {
        Prefixes {
            slots: BTreeMap::new(),
            entries: Vec::new(),
            free: Vec::new(),
            lpm: Lpm::default(),
            is_stale: false,
            size,
        }
    }

    /// Returns the number of entries, and its maximum.
    pub(super) fn count(&self) -> (u32, u32) {
        (self.slots.len() as u32, self.size)
    }

    /// Returns the slot of the longest prefix of an address, and its entry.
    pub(super) fn lookup(&self, address: Ipv4Addr) -> Option<(u32, &Entry)> {
        let slot = self.lpm.lookup(address.to_bits())?;
        Some((slot, self.entries.get(slot as usize)?.as_ref()?))
    }

    /// Returns the entry of the longest prefix of an address.
    #[inline]
    pub(super) fn lookup_mut(&mut self, address: Ipv4Addr) -> Option<&mut Entry> {
        let slot = self.lpm.lookup(address.to_bits())?;
        self.entries.get_mut(slot as usize)?.as_mut()
    }

    /// Returns the entry of a prefix.
    pub(super) fn get(&self, prefix: Prefix) -> Option<&Entry> {
        self.entries.get(*self.slots.get(&prefix)? as usize)?.as_ref()
    }

    /// Returns the prefix in a slot.
    pub(super) fn prefix_of(&self, slot: u32) -> Option<Prefix> {
        self.slots.iter().find(|(_, other)| **other == slot).map(|(&prefix, _)| prefix)
    }

    /// Iterates over all entries in the order of their prefixes.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Prefix, &Entry)> {
        let entry = |slot: u32| self.entries.get(slot as usize)?.as_ref();
        self.slots.iter().filter_map(move |(&prefix, &slot)| Some((prefix, entry(slot)?)))
    }

    pub(super) fn take(&mut self, prefix: Prefix) -> Option<Entry> {
        let slot = self.slots.remove(&prefix)?;
        self.is_stale = true;
        let entry = self.entries.get_mut(slot as usize)?.take()?;
        self.free.push(slot);
        Some(entry)
    }

    pub(super) fn put(&mut self, prefix: Prefix, entry: Entry) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() as u32 - 1
        });
        self.entries[slot as usize] = Some(entry);
        self.slots.insert(prefix, slot);
        self.is_stale = true;
    }

    /// Builds the ranges again after changes; before that, lookups do not see them.
    pub(super) fn refresh(&mut self) {
        if core::mem::take(&mut self.is_stale) {
            self.lpm = Lpm::new(&self.slots);
        }
    }
}
