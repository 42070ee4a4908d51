//! The I/O bus, which serves packets in order of arrival, page after page.

use super::buffers::Held;
use crate::hardware::PAGE_BYTES;
use std::collections::VecDeque;

/// Packet in the forwarder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    /// Arrival time in picoseconds.
    pub(super) arrived: u64,
    /// Buffers that the packet has now.
    pub(super) held: Held,
}

/// Direction of a payload on the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// From the NIC to the host.
    ToHost,
    /// From the host to the NIC.
    ToNic,
}

#[derive(Debug)]
struct Crossing {
    packet: Packet,
    way: Way,
    /// Number of bytes that have not crossed the bus yet.
    left: u64,
}

/// The bus and its queue.
#[derive(Debug, Default)]
pub(super) struct Bus {
    /// Queue of crossings. The first one has the bus if `is_held`.
    queue: VecDeque<Crossing>,
    is_held: bool,
    /// Number of transfers started so far.
    pub(super) transfers: u64,
}

impl Bus {
    /// Queues a packet of `bytes` bytes for the bus.
    pub(super) fn push(&mut self, packet: Packet, way: Way, bytes: u64) {
        self.queue.push_back(Crossing { packet, way, left: bytes });
    }

    /// Gives the bus to the next transfer, if the bus is free and a transfer is queued. Returns
    /// true if a transfer must now be set up.
    pub(super) fn start(&mut self) -> bool {
        let starts = !self.is_held && !self.queue.is_empty();
        self.is_held |= starts;
        self.transfers += u64::from(starts);
        starts
    }

    /// Returns the number of bytes in the transfer that has the bus, which ends at the end of a
    /// page at the latest.
    pub(super) fn transfer_bytes(&self) -> u64 {
        self.queue.front().map_or(0, |crossing| crossing.left.min(PAGE_BYTES))
    }

    /// Completes the transfer and frees the bus. Returns the packet if this was its last transfer.
    pub(super) fn done(&mut self) -> Option<(Packet, Way)> {
        self.is_held = false;
        let bytes = self.transfer_bytes();
        let crossing = self.queue.front_mut()?;
        crossing.left -= bytes;
        if crossing.left > 0 {
            return None;
        }
        self.queue.pop_front().map(|crossing| (crossing.packet, crossing.way))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_crosses_page_by_page_and_the_next_waits() {
        let mut bus = Bus::default();
        assert!(!bus.start());
        let packets = [1, 2].map(|arrived| Packet { arrived, held: Held::NONE });
        bus.push(packets[0], Way::ToHost, 2 * PAGE_BYTES + 1);
        bus.push(packets[1], Way::ToNic, 100);
        for (bytes, done) in [
            (PAGE_BYTES, None),
            (PAGE_BYTES, None),
            (1, Some((packets[0], Way::ToHost))),
            (100, Some((packets[1], Way::ToNic))),
        ] {
            assert!(bus.start() && !bus.start());
            assert_eq!((bus.transfer_bytes(), bus.done()), (bytes, done));
        }
        assert!(!bus.start());
        assert_eq!(bus.transfers, 4);
    }
}
