//! What is simulated, and what came of it.

use crate::hardware::{PACKET_BYTES, RING_ENTRIES, pages};
use crate::lanai::Forwarder;
use thiserror::Error;

/// How packets arrive at the sender of the link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// There is always one more: the link is as busy as the NIC lets it.
    Saturated,
    /// One after so many microseconds.
    Every(f64),
}

/// A run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// The machine.
    pub forwarder: Forwarder,
    /// Bytes of each packet.
    pub packet_bytes: u64,
    /// How they arrive.
    pub arrivals: Arrivals,
    /// Packets sent before anything is measured: they fill rings and queues.
    pub warm_up: u64,
    /// Packets that are measured.
    pub packets: u64,
}

/// Why a plan cannot be run.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum PlanError {
    /// A packet of this size is not simulated.
    #[error("a packet of {found} bytes; expected {least} to {most} bytes")]
    PacketSize {
        /// The size, in bytes.
        found: u64,
        /// The smallest, in bytes.
        least: u64,
        /// The largest, in bytes.
        most: u64,
    },
    /// A time or a count that is none.
    #[error("{what} of {found}; expected {expected}")]
    Value {
        /// The name of the value.
        what: &'static str,
        /// What was found.
        found: f64,
        /// What is possible.
        expected: &'static str,
    },
}

impl Plan {
    /// A saturated run that is long enough for figures of four digits.
    pub fn saturated(forwarder: Forwarder, packet_bytes: u64) -> Plan {
        let (arrivals, warm_up, packets) = (Arrivals::Saturated, 1_000, 4_000);
        Plan { forwarder, packet_bytes, arrivals, warm_up, packets }
    }

    /// The same machine with constant arrivals of `mb_s` MB/s.
    pub fn at(self, mb_s: f64) -> Plan {
        Plan { arrivals: Arrivals::Every(self.packet_bytes as f64 / mb_s), ..self }
    }

    /// Refuses what cannot be run.
    pub(super) fn check(&self) -> Result<(), PlanError> {
        if !PACKET_BYTES.contains(&self.packet_bytes) {
            let (least, most) = (*PACKET_BYTES.start(), *PACKET_BYTES.end());
            return Err(PlanError::PacketSize { found: self.packet_bytes, least, most });
        }
        // Beyond a second a packet, sums of picoseconds could overflow; nothing here is so slow.
        let is_time = |us: f64| (0.0..=1e6).contains(&us);
        let value = |what, found, expected| Err(PlanError::Value { what, found, expected });
        let Forwarder { host_us, overheads, .. } = self.forwarder;
        for (what, found) in [
            ("a host's service in us", host_us),
            ("a hand-over in us", overheads.handover_us),
            ("a set-up in cycles of the bus", overheads.setup_bus_cycles),
        ] {
            if !is_time(found) {
                return value(what, found, "0 to 1000000");
            }
        }
        if let Arrivals::Every(us) = self.arrivals
            && (!is_time(us) || us < 0.001)
        {
            return value("an interval in us", us, "0.001 to 1000000");
        }
        if !(1..=100_000_000).contains(&self.packets) || self.warm_up > 100_000_000 {
            let found = self.packets.max(self.warm_up) as f64;
            return value("a number of packets", found, "1 to 100000000");
        }
        Ok(())
    }

    /// Pages, and so buffers, of a packet.
    pub(super) fn pages(&self) -> u32 {
        pages(self.packet_bytes) as u32
    }

    /// Entries of each ring.
    pub(super) fn ring_entries(&self) -> u32 {
        RING_ENTRIES
    }
}

/// What a run came to; everything is of the packets that were measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Bandwidth forwarded, in MB/s (1 MB is 1,000,000 bytes).
    pub mb_s: f64,
    /// Time from arrival at the sender to the last byte sent, on average, in microseconds. Of a
    /// saturated run: from the start of the receipt.
    pub response_us: f64,
    /// Packets inside, on average, counted in the same way.
    pub population: f64,
    /// Share of the time in which the bus was held, 0 to 1.
    pub bus_utilisation: f64,
    /// Share of the memory's cycles that were used, 0 to 1.
    pub memory_utilisation: f64,
    /// Share of the time in which the host served, 0 to 1.
    pub host_utilisation: f64,
    /// DMA transfers over the bus for each packet.
    pub transfers: f64,
    /// Payload buffers held at once: the most.
    pub buffers_most: u32,
    /// Payload buffers held, on average.
    pub buffers_mean: f64,
}
