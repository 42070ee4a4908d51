//! Filtering database of a learning bridge (IEEE 802.1D-2004 clause 7.9).

use axon_plane::routes::MacMap;
use axon_wire::{MacAddr, PortNo, Span, Time};

/// Filtering database: the port where each address was last seen.
///
/// The source of every frame is recorded with its port and the time. An entry older than the ageing
/// time counts as absent. Such entries are removed when the database is full. If there are none,
/// new addresses are not learned (clause 7.9.2), and frames to them are flooded.
#[derive(Clone, Debug)]
pub struct Fdb {
    entries: MacMap<Entry>,
    entries_max: usize,
    ageing: Span,
    /// Earliest time at which an entry can age out. It saves searches of a full database.
    oldest: Time,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    port: PortNo,
    heard: Time,
}

impl Fdb {
    /// Creates an empty database.
    pub(crate) fn new(entries_max: usize, ageing: Span) -> Fdb {
        Fdb { entries: MacMap::default(), entries_max, ageing, oldest: Time::ZERO }
    }

    /// Records `mac` at `port`.
    #[inline]
    pub(crate) fn learn(&mut self, now: Time, mac: MacAddr, port: PortNo) {
        if let Some(entry) = self.entries.get_mut(&mac) {
            *entry = Entry { port, heard: now };
        } else if self.entries.len() < self.entries_max || self.make_room(now) {
            self.entries.insert(mac, Entry { port, heard: now });
        }
    }

    /// Returns the port where `mac` was seen within the ageing time.
    #[inline]
    pub(crate) fn port_of(&self, now: Time, mac: MacAddr) -> Option<PortNo> {
        let entry = self.entries.get(&mac)?;
        (now.since(entry.heard) <= self.ageing).then_some(entry.port)
    }

    /// Removes all entries for `port`.
    pub(crate) fn flush(&mut self, port: PortNo) {
        self.entries.retain(|_, entry| entry.port != port);
    }

    /// Returns the number of entries, including those that have aged out but are not yet removed.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether the database has no entries.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Removes entries that have aged out. Returns whether there is room then.
    #[cold]
    fn make_room(&mut self, now: Time) -> bool {
        if now.since(self.oldest) > self.ageing {
            let ageing = self.ageing;
            self.entries.retain(|_, entry| now.since(entry.heard) <= ageing);
            self.oldest = self.entries.values().map(|entry| entry.heard).min().unwrap_or(now);
        }
        self.entries.len() < self.entries_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mac(last: u8) -> MacAddr {
        MacAddr([2, 0, 0, 0, 0, last])
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO + Span::from_secs(seconds)
    }

    #[test]
    fn addresses_move_age_and_are_flushed() {
        let mut fdb = Fdb::new(10, Span::from_secs(300));
        fdb.learn(at(0), mac(1), PortNo(1));
        fdb.learn(at(0), mac(2), PortNo(2));
        assert_eq!(fdb.port_of(at(300), mac(1)), Some(PortNo(1)));
        assert_eq!(fdb.port_of(at(301), mac(1)), None);
        fdb.learn(at(301), mac(1), PortNo(3));
        assert_eq!(fdb.port_of(at(601), mac(1)), Some(PortNo(3)));
        fdb.flush(PortNo(3));
        assert_eq!((fdb.port_of(at(301), mac(1)), fdb.len()), (None, 1));
    }

    #[test]
    fn a_full_database_learns_again_when_entries_have_aged() {
        let mut fdb = Fdb::new(2, Span::from_secs(300));
        fdb.learn(at(0), mac(1), PortNo(1));
        fdb.learn(at(100), mac(2), PortNo(2));
        fdb.learn(at(200), mac(3), PortNo(3));
        assert_eq!(fdb.port_of(at(200), mac(3)), None, "no room");
        fdb.learn(at(301), mac(3), PortNo(3));
        assert_eq!(fdb.port_of(at(301), mac(3)), Some(PortNo(3)));
        fdb.learn(at(400), mac(4), PortNo(4));
        assert_eq!(fdb.port_of(at(400), mac(4)), None, "2 is exactly 300 s old");
        fdb.learn(at(401), mac(4), PortNo(4));
        assert_eq!(fdb.port_of(at(401), mac(4)), Some(PortNo(4)));
    }
}
