//! Plan and report of a simulation.

use crate::hardware::{PACKET_BYTES, RING_ENTRIES, pages};
use crate::lanai::Forwarder;
use thiserror::Error;

/// Arrivals of packets at the sender of the link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// Saturated: there is always another packet.
    Saturated,
    /// Constant interval in microseconds.
    Every(f64),
}

/// Plan of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Modelled NIC, bus and host.
    pub forwarder: Forwarder,
    /// Bytes of each packet.
    pub packet_bytes: u64,
    /// Arrivals of packets.
    pub arrivals: Arrivals,
    /// Unmeasured packets at the start, which fill rings and queues.
    pub warm_up: u64,
    /// Number of measured packets.
    pub packets: u64,
}

/// Reason why a plan cannot be run.
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
    /// An invalid time or count.
    #[error("{what} of {found}; expected {expected}")]
    Value {
        /// The name of the value.
        what: &'static str,
        /// Value in the plan.
        found: f64,
        /// Accepted values, in words.
        expected: &'static str,
    },
}

impl Plan {
    /// Returns a saturated run that is long enough for figures of four digits.
    pub fn saturated(forwarder: Forwarder, packet_bytes: u64) -> Plan {
        let (arrivals, warm_up, packets) = (Arrivals::Saturated, 1_000, 4_000);
        Plan { forwarder, packet_bytes, arrivals, warm_up, packets }
    }

    /// Returns the same machine with constant arrivals of `mb_s` MB/s.
    pub fn at(self, mb_s: f64) -> Plan {
        Plan { arrivals: Arrivals::Every(self.packet_bytes as f64 / mb_s), ..self }
    }

    /// Checks the values of the plan.
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

    /// Returns the number of pages, and so of buffers, of a packet.
    pub(super) fn pages(&self) -> u32 {
        pages(self.packet_bytes) as u32
    }

    /// Returns the number of entries of each ring.
    pub(super) fn ring_entries(&self) -> u32 {
        RING_ENTRIES
    }
}

/// Report of a run, for the measured packets.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Bandwidth forwarded, in MB/s (1 MB is 1,000,000 bytes).
    pub mb_s: f64,
    /// Mean time from arrival at the sender to the last byte sent, in microseconds. In a saturated
    /// run, from the start of the receipt.
    pub response_us: f64,
    /// Mean number of packets inside, by the same boundaries.
    pub population: f64,
    /// Fraction of time in which the bus was held, 0 to 1.
    pub bus_utilisation: f64,
    /// Fraction of the memory's cycles used, 0 to 1.
    pub memory_utilisation: f64,
    /// Fraction of time in which the host served, 0 to 1.
    pub host_utilisation: f64,
    /// DMA transfers over the bus per packet.
    pub transfers: f64,
    /// Maximum number of payload buffers held at once.
    pub buffers_most: u32,
    /// Mean number of payload buffers held.
    pub buffers_mean: f64,
}
