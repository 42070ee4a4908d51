//! Plan of a simulation, and the report on it.

use crate::hardware::{PACKET_BYTES, RING_ENTRIES, pages};
use crate::lanai::Forwarder;
use thiserror::Error;

/// Arrivals of packets at the sender of the link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// The link is saturated, so there is always another packet.
    Saturated,
    /// Packets arrive at a constant interval, in microseconds.
    Every(f64),
}

/// Plan of a simulation run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Modelled NIC, bus and host.
    pub forwarder: Forwarder,
    /// Size of each packet, in bytes.
    pub packet_bytes: u64,
    /// Arrivals of packets.
    pub arrivals: Arrivals,
    /// Number of packets at the start that fill rings and queues and are not measured.
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
        /// Size that was found, in bytes.
        found: u64,
        /// Smallest size that is simulated, in bytes.
        least: u64,
        /// Largest size that is simulated, in bytes.
        most: u64,
    },
    /// A time or count is invalid.
    #[error("{what} of {found}; expected {expected}")]
    Value {
        /// Name of the value.
        what: &'static str,
        /// Value in the plan.
        found: f64,
        /// Accepted values, in words.
        expected: &'static str,
    },
}

impl Plan {
    /// Returns a saturated run that is long enough for figures with four digits.
    pub fn saturated(forwarder: Forwarder, packet_bytes: u64) -> Plan {
        let (arrivals, warm_up, packets) = (Arrivals::Saturated, 1_000, 4_000);
        Plan { forwarder, packet_bytes, arrivals, warm_up, packets }
    }

    /// Returns a plan for the same machine with constant arrivals of `mb_s` MB/s.
    pub fn at(self, mb_s: f64) -> Plan {
        Plan { arrivals: Arrivals::Every(self.packet_bytes as f64 / mb_s), ..self }
    }

    /// Checks the values of the plan.
    pub(super) fn check(&self) -> Result<(), PlanError> {
        if !PACKET_BYTES.contains(&self.packet_bytes) {
            let (least, most) = (*PACKET_BYTES.start(), *PACKET_BYTES.end());
            return Err(PlanError::PacketSize { found: self.packet_bytes, least, most });
        }
        // Beyond a second per packet, sums of picoseconds could overflow. Nothing here is that
        // slow.
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

    /// Returns the number of pages in a packet, and so the number of its buffers.
    pub(super) fn pages(&self) -> u32 {
        pages(self.packet_bytes) as u32
    }

    /// Returns the number of entries in each ring.
    pub(super) fn ring_entries(&self) -> u32 {
        RING_ENTRIES
    }
}

/// Report on a run. It covers the measured packets.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Bandwidth that was forwarded, in MB/s (1 MB is 1,000,000 bytes).
    pub mb_s: f64,
    /// Mean time from arrival at the sender to the last byte sent, in microseconds. In a saturated
    /// run, the time begins with the start of the receipt.
    pub response_us: f64,
    /// Mean number of packets inside, with the same boundaries.
    pub population: f64,
    /// Fraction of the time in which the bus was held, 0 to 1.
    pub bus_utilisation: f64,
    /// Fraction of the memory's cycles that were used, 0 to 1.
    pub memory_utilisation: f64,
    /// Fraction of the time in which the host was serving, 0 to 1.
    pub host_utilisation: f64,
    /// Number of DMA transfers over the bus per packet.
    pub transfers: f64,
    /// Maximum number of payload buffers held at once.
    pub buffers_most: u32,
    /// Mean number of payload buffers held.
    pub buffers_mean: f64,
}
