//! Contents of one port's route table in the device: rows of the memory that is searched, and the
//! entries that it selects (`rtl/device/routes.sv`).
//!
//! The key of a lookup is the first 12 bytes of a frame. For each value of each of its nibbles
//! there is a row with one bit for each entry: 1 if the entry accepts the value. The rows cannot be
//! read, so a copy is kept here, and a change writes only the rows in which a bit has changed.
//!
//! Routes of masqueraded addresses are entries as all others: the device compares the whole address
//! and has no use for its index. A route of the same key without a source wins, as in the software
//! plane, since the other entry then takes part in no lookup.

use axon_node::{Masqueraded, PortKind, RouteError, RouteKey};
use axon_plane::{Step, forward};
use axon_wire::header::{HeaderFields, HopWidth};
use axon_wire::masquerade::index_of;
use axon_wire::{MacAddr, PortNo, Priority, Route};
use std::collections::BTreeMap;

/// Longest header of an entry, in bytes.
pub(crate) const HEADER_BYTES_MAX: usize = 31;
/// Longest header of an entry that replaces the destination of a frame, in bytes.
pub(crate) const MASQUERADED_HEADER_BYTES_MAX: usize = 24;
/// Rows of a table.
pub(crate) const ROWS: usize = 2 * KEY_BYTES * NIBBLES;
/// Entries of a table; a device may have fewer.
const ENTRIES: usize = 32;
/// Bytes of the key: destination and source.
const KEY_BYTES: usize = 12;
/// First byte of the source.
const SOURCE_AT: usize = 6;
/// Values of a nibble.
const NIBBLES: usize = 16;
/// Output of the CPU.
const CPU: u16 = 15;
/// Output of hops that no output can have; no device has such a port.
const NO_PORT: u16 = 14;

/// Row of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// True for the low half of a byte.
    pub(crate) is_low: bool,
    /// Position of the byte in the key.
    pub(crate) position: usize,
    /// Value of this half.
    pub(crate) nibble: usize,
}

impl Row {
    /// Returns a row by its number, less than [`ROWS`].
    pub(crate) const fn of(number: usize) -> Row {
        let (half, nibble) = (number / NIBBLES, number % NIBBLES);
        Row { is_low: half >= KEY_BYTES, position: half % KEY_BYTES, nibble }
    }

    const fn number(self) -> usize {
        let half = self.position + if self.is_low { KEY_BYTES } else { 0 };
        half * NIBBLES + self.nibble
    }
}

/// Contents of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Number of the output.
    pub(crate) output: u16,
    /// Priority under which frames are queued.
    pub(crate) priority: Priority,
    /// The header as it leaves; empty for frames to hosts of the same switch.
    pub(crate) header: Vec<u8>,
}

impl Entry {
    /// Returns the entry of a route of frames received on `ingress`. `header` is that of the route,
    /// before its first hop is taken. `kind_of` is as in [`forward`].
    pub(crate) fn of(
        mut header: Vec<u8>,
        width: HopWidth,
        ingress: PortNo,
        kind_of: impl FnOnce(PortNo) -> Option<PortKind>,
    ) -> Entry {
        let fields = HeaderFields::parse(&header, width).ok();
        let hop = fields.and_then(|fields| fields.next_hop(&header, width));
        let output = match (hop, forward(&mut header, width, ingress, kind_of)) {
            (_, Step::Strip { port, .. }) => {
                header.clear();
                port.0
            }
            (_, Step::Punt(_)) => CPU,
            // The device drops what is for a port that it does not have or does not know.
            (Some(port), _) => port.0.min(NO_PORT),
            (None, _) => NO_PORT,
        };
        let priority = fields.map_or(Priority::ZERO, |fields| fields.priority);
        Entry { output, priority, header }
    }
}

/// A route and its place.
#[derive(Clone, Debug)]
struct Placed {
    entry: usize,
    route: Route,
}

/// Route of a masqueraded address and its place.
#[derive(Clone, Debug)]
struct PlacedMasqueraded {
    entry: usize,
    route: Masqueraded,
}

/// Route table of one port.
#[derive(Clone, Debug)]
pub(crate) struct PortRoutes {
    routes: BTreeMap<RouteKey, Placed>,
    /// By the index in the address.
    masqueraded: BTreeMap<u16, PlacedMasqueraded>,
    /// The rows, as in the device.
    rows: Vec<u32>,
    /// Entries in use, as bits.
    used: u32,
    /// Entries for one source, as bits.
    by_source: u32,
    routes_max: usize,
    masqueraded_max: usize,
}

impl PortRoutes {
    /// Returns an empty table of at most this many routes, and as many of masqueraded addresses as
    /// `masqueraded_max` and the remaining entries allow.
    pub(crate) fn new(routes_max: usize, masqueraded_max: usize) -> PortRoutes {
        let routes_max = routes_max.min(ENTRIES);
        PortRoutes {
            routes: BTreeMap::new(),
            masqueraded: BTreeMap::new(),
            // Entries are mostly for any source: so are those that are free.
            rows: (0..ROWS)
                .map(|row| if Row::of(row).position < SOURCE_AT { 0 } else { !0 })
                .collect(),
            used: 0,
            by_source: 0,
            routes_max,
            masqueraded_max: masqueraded_max.min(ENTRIES - routes_max),
        }
    }

    fn free(&self) -> Option<usize> {
        (0..ENTRIES).find(|entry| self.used >> entry & 1 == 0)
    }

    /// Returns the entry in use for `key`, or a free one; `None` if the table is full.
    pub(crate) fn place(&self, key: RouteKey) -> Option<usize> {
        let placed = self.routes.get(&key).map(|placed| placed.entry);
        placed.or_else(|| self.free().filter(|_| self.routes.len() < self.routes_max))
    }

    /// Returns the entry in use for the index of a masqueraded address, or a free one.
    ///
    /// # Errors
    /// As `RouteMemory::install` of the software plane: `Full` if there is no such index,
    /// `Unrepresentable` if the address has none, or the key has a source or a VLAN.
    pub(crate) fn place_masqueraded(&self, key: RouteKey) -> Result<usize, RouteError> {
        let is_plain = key.source.is_none() && key.vlan.is_none();
        let index = index_of(key.destination).filter(|_| is_plain);
        let index = index.ok_or(RouteError::Unrepresentable)?;
        if usize::from(index) >= self.masqueraded_max {
            return Err(RouteError::Full);
        }
        let placed = self.masqueraded.get(&index).map(|placed| placed.entry);
        placed.or_else(|| self.free()).ok_or(RouteError::Full)
    }

    /// Sets the route of `key` at `entry`, and returns the rows that have changed.
    pub(crate) fn set(&mut self, entry: usize, key: RouteKey, route: Route) -> Vec<Row> {
        self.routes.insert(key, Placed { entry, route });
        self.set_key(entry, key)
    }

    /// Sets the route of a masqueraded address at `entry`, and returns the rows that have changed.
    pub(crate) fn set_masqueraded(&mut self, entry: usize, route: Masqueraded) -> Vec<Row> {
        let key = route.key;
        if let Some(index) = index_of(key.destination) {
            self.masqueraded.insert(index, PlacedMasqueraded { entry, route });
        }
        self.set_key(entry, key)
    }

    /// Sets the key of an entry, and returns the rows that have changed.
    fn set_key(&mut self, entry: usize, key: RouteKey) -> Vec<Row> {
        self.used |= 1 << entry;
        self.by_source = self.by_source & !(1 << entry) | u32::from(key.source.is_some()) << entry;
        let mut changed = Vec::new();
        for row in (0..ROWS).map(Row::of) {
            let old = self.rows[row.number()];
            let bits = old & !(1 << entry) | u32::from(accepts(key, row)) << entry;
            if bits != old {
                self.rows[row.number()] = bits;
                changed.push(row);
            }
        }
        changed
    }

    /// Removes the routes of `key`, a masqueraded address or not; returns whether there was one.
    pub(crate) fn remove(&mut self, key: RouteKey) -> bool {
        let mut removed = self.routes.remove(&key).map_or(0, |placed| 1 << placed.entry);
        if let Some(index) = index_of(key.destination)
            && self.masqueraded.get(&index).is_some_and(|placed| placed.route.key == key)
        {
            removed |= self.masqueraded.remove(&index).map_or(0, |placed| 1 << placed.entry);
        }
        self.used &= !removed;
        removed != 0
    }

    /// Returns a row, as one bit for each entry.
    pub(crate) fn row(&self, row: Row) -> u32 {
        self.rows[row.number()]
    }

    /// Returns the entries that take part in lookups, as bits.
    pub(crate) fn valid(&self) -> u32 {
        let hidden = self.masqueraded.values();
        let hidden = hidden.filter(|placed| self.routes.contains_key(&placed.route.key));
        self.used & !hidden.fold(0, |bits, placed| bits | 1 << placed.entry)
    }

    /// Returns the entries for one source, as bits.
    pub(crate) const fn by_source(&self) -> u32 {
        self.by_source
    }

    /// Iterates over the routes, in the order of their keys, each with its entry.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (RouteKey, &Route, usize)> {
        self.routes.iter().map(|(&key, placed)| (key, &placed.route, placed.entry))
    }

    /// Iterates over the routes of masqueraded addresses, by index, each with its entry.
    pub(crate) fn masqueraded(&self) -> impl Iterator<Item = (&Masqueraded, usize)> {
        self.masqueraded.values().map(|placed| (&placed.route, placed.entry))
    }

    /// Returns the number of routes, those of masqueraded addresses not counted.
    pub(crate) fn len(&self) -> usize {
        self.routes.len()
    }
}

/// Returns whether frames with this key may have the nibble of a row.
fn accepts(key: RouteKey, row: Row) -> bool {
    let Row { is_low, position, nibble } = row;
    let byte = match (position.checked_sub(SOURCE_AT), key.source) {
        (None, _) => key.destination.0[position],
        (Some(at), Some(MacAddr(source))) => source[at],
        (Some(_), None) => return true,
    };
    usize::from(if is_low { byte & 0xf } else { byte >> 4 }) == nibble
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_wire::masquerade::address;
    use proptest::prelude::*;

    /// Returns the entries that accept a frame with these addresses, as the device finds them.
    fn matches(table: &PortRoutes, addresses: [u8; KEY_BYTES]) -> u32 {
        let by_byte = |all: u32, (at, byte): (usize, u8)| {
            let half =
                |is_low, nibble: u8| table.row(Row { is_low, position: at, nibble: nibble.into() });
            all & half(false, byte >> 4) & half(true, byte & 0xf)
        };
        (0..).zip(addresses).fold(table.valid(), by_byte)
    }

    fn mac(last: u8) -> MacAddr {
        MacAddr([2, 0, 0, 0, last, last])
    }

    proptest! {
        /// The reference is a map by key. Destinations 4 and more are masqueraded addresses.
        #[test]
        fn a_frame_matches_the_entries_of_its_keys_and_no_others(
            changes in prop::collection::vec(
                (0..8u8, prop::option::of(0..3u8), 0..3u8),
                1..60,
            ),
        ) {
            let mut table = PortRoutes::new(5, 2);
            let destination = |to: u8| match to.checked_sub(4) {
                Some(given) => address((given % 3).into(), (given / 3).into()),
                None => mac(to),
            };
            for (to, from, what) in changes {
                let key = RouteKey::to(destination(to)).from_source(from.map(mac));
                match (what, table.place(key), table.place_masqueraded(key)) {
                    (0, Some(entry), _) => drop(table.set(entry, key, Route::from([1]))),
                    (1, _, Ok(entry)) => {
                        let (destination, route) = (mac(9), Route::from([1]));
                        let route = Masqueraded { key, destination, route };
                        drop(table.set_masqueraded(entry, route));
                    }
                    (1, _, Err(reason)) => {
                        let has_index = from.is_none() && to >= 4;
                        prop_assert_eq!(reason == RouteError::Full, has_index);
                        prop_assert!(!has_index || to == 6, "the third index");
                    }
                    _ => drop(table.remove(key)),
                }
                for (to, from) in (0..8).flat_map(|to| (0..4).map(move |from| (to, from))) {
                    let (mut expected, is_to) = (0, |key: RouteKey| {
                        key.destination == destination(to)
                            && key.source.is_none_or(|source| source == mac(from))
                    });
                    for (key, _, entry) in table.iter() {
                        expected |= u32::from(is_to(key)) << entry;
                    }
                    for (route, entry) in table.masqueraded() {
                        let is_hidden = table.iter().any(|(key, ..)| key == route.key);
                        expected |= u32::from(is_to(route.key) && !is_hidden) << entry;
                    }
                    let mut addresses = [0; KEY_BYTES];
                    addresses[..SOURCE_AT].copy_from_slice(&destination(to).0);
                    addresses[SOURCE_AT..].copy_from_slice(&mac(from).0);
                    prop_assert_eq!(matches(&table, addresses), expected);
                    let one_source = matches(&table, addresses) & table.by_source();
                    prop_assert!(one_source.count_ones() <= 1);
                    prop_assert!((expected & !table.by_source()).count_ones() <= 1);
                }
                prop_assert!(table.len() <= 5 && table.masqueraded().count() <= 2);
                let count = table.len() + table.masqueraded().count();
                prop_assert_eq!(table.used.count_ones() as usize, count);
            }
        }
    }
}
