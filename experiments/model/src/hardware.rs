//! Hardware in the paper: NICs, buses and hosts. Each constant has its source.

use serde::Serialize;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Size of a page of the host, and of a payload buffer, in bytes: 003 §2.2, "the page size on our
/// Intel systems".
pub const PAGE_BYTES: u64 = 4_096;
/// Rate of the Myrinet link, in MB/s: 003 §2.2.
pub(crate) const LINK_MB_S: f64 = 160.0;
/// Number of firmware instructions for a forwarded packet of one page: 003 §2.2.
pub(crate) const FIRMWARE_INSTRUCTIONS: u64 = 550;
/// Number of memory accesses per instruction, one for the instruction itself and one for its data:
/// 003 §2.2.
pub(crate) const ACCESSES_PER_INSTRUCTION: u64 = 2;
/// Number of entries in the send ring, and in the receive ring: 003 §3.2.
pub const RING_ENTRIES: u32 = 64;
/// Service time of the host for a packet in the paper's model, in microseconds: 003 §2.2.
pub const HOST_MODEL_US: f64 = 20.0;
/// Service time of the agent used in the paper's measurements, in microseconds: 003 §4.
pub const HOST_AGENT_US: f64 = 4.0;
/// Packet sizes that are modelled, in bytes. The largest is 16 pages, and the smallest NIC has
/// buffers for eight packets of that size.
pub(crate) const PACKET_BYTES: std::ops::RangeInclusive<u64> = 64..=16 * PAGE_BYTES;

/// Error: there is no hardware of this kind with the given name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no {kind} is named {found}; expected {expected}")]
pub struct UnknownName {
    /// Kind of hardware, as the message has it.
    pub kind: &'static str,
    /// Name that was found.
    pub found: String,
    /// Names that are known, as the message has them.
    pub expected: String,
}

/// Returns the item in `all` that has this name.
pub(crate) fn named<T: Copy + fmt::Display>(
    kind: &'static str,
    found: &str,
    all: &[T],
) -> Result<T, UnknownName> {
    let is_meant = |item: &&T| item.to_string() == found;
    all.iter().find(is_meant).copied().ok_or_else(|| {
        let names: Vec<String> = all.iter().map(T::to_string).collect();
        UnknownName { kind, found: found.to_owned(), expected: names.join(", ") }
    })
}

/// A Myrinet NIC (003, table 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Nic {
    /// LANai 4: 32-bit memory at 66 MHz, 1 MB.
    Lanai4,
    /// LANai 7: 64-bit memory at 132 MHz, 2 MB.
    Lanai7,
    /// LANai 9: 64-bit memory at 266 MHz, 4 MB.
    Lanai9,
}

/// Constants of a NIC.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NicProfile {
    /// Width of the memory, in bytes (table 1).
    pub memory_width_bytes: u64,
    /// Memory accesses per microsecond, which is the same as MHz (table 1). There are two for each
    /// cycle of the processor (§2.2).
    pub memory_mhz: f64,
    /// Share of the memory's cycles, 0 to 1, that the processor gets if no DMA runs at the same
    /// time. §2.2 counts 550 instructions as 1,100 cycles of the LANai 4's memory. For a LANai 7 or
    /// 9, it counts them as 1,100 cycles of the processor, of which the memory has two each, with
    /// the other one for a DMA.
    pub processor_share: f64,
    /// Number of payload buffers, of one page each (§3.2).
    pub buffers: u32,
    /// Time that the processor needs for a page beyond its instructions, in microseconds,
    /// **fitted**. The 34.28 us for the LANai 9 in table 2 are 0.41 us more than the 33.87 us that
    /// the paper's constants give, and the paper gives no reason. The other NICs need no such time.
    pub stall_us: f64,
}

impl Nic {
    /// All modelled NICs.
    pub const ALL: [Nic; 3] = [Nic::Lanai4, Nic::Lanai7, Nic::Lanai9];

    /// Returns the constants for this NIC.
    pub fn profile(self) -> NicProfile {
        let narrow = NicProfile {
            memory_width_bytes: 4,
            memory_mhz: 66.0,
            processor_share: 1.0,
            buffers: 128,
            stall_us: 0.0,
        };
        let wide = NicProfile {
            memory_width_bytes: 8,
            memory_mhz: 132.0,
            processor_share: 0.5,
            buffers: 384,
            stall_us: 0.0,
        };
        match self {
            Nic::Lanai4 => narrow,
            Nic::Lanai7 => wide,
            Nic::Lanai9 => NicProfile { memory_mhz: 266.0, stall_us: 0.41, ..wide },
        }
    }
}

impl fmt::Display for Nic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Nic::Lanai4 => "lanai4",
            Nic::Lanai7 => "lanai7",
            Nic::Lanai9 => "lanai9",
        })
    }
}

impl FromStr for Nic {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Nic, UnknownName> {
        named("NIC", text, &Nic::ALL)
    }
}

/// I/O bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Bus {
    /// PCI, 32 bits at 33 MHz: 132 MB/s, so that 4,096 bytes take table 2's 31.03 us.
    #[serde(rename = "33")]
    Pci33,
    /// PCI, 64 bits at 66 MHz: 528 MB/s.
    #[serde(rename = "66")]
    Pci66,
}

impl Bus {
    /// All modelled buses.
    pub const ALL: [Bus; 2] = [Bus::Pci33, Bus::Pci66];

    /// Returns the clock rate in MHz.
    pub(crate) fn mhz(self) -> f64 {
        match self {
            Bus::Pci33 => 33.0,
            Bus::Pci66 => 66.0,
        }
    }

    /// Returns the rate while a transfer moves data, in MB/s.
    pub(crate) fn mb_s(self) -> f64 {
        match self {
            Bus::Pci33 => 4.0 * self.mhz(),
            Bus::Pci66 => 8.0 * self.mhz(),
        }
    }
}

impl fmt::Display for Bus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Bus::Pci33 => "33",
            Bus::Pci66 => "66",
        })
    }
}

impl FromStr for Bus {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Bus, UnknownName> {
        named("bus", text, &Bus::ALL)
    }
}

/// Overheads that the paper's model omits and its measurements contain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overheads {
    /// Time to set up the DMA of one page, in bus cycles, during which no data moves.
    pub setup_bus_cycles: f64,
    /// Time that the firmware needs to exchange the ring entries for one page with the host, in
    /// microseconds.
    pub handover_us: f64,
}

impl Overheads {
    /// No overheads, as in the paper's model.
    pub const NONE: Overheads = Overheads { setup_bus_cycles: 0.0, handover_us: 0.0 };

    /// **Fitted** to two of the paper's measurements with 4,096-byte packets over the slow bus,
    /// because the paper gives no constants:
    ///
    /// - Without a cache, the LANai 9 forwards 56.67 MB/s (abstract). That is 72.28 us per packet,
    ///   in which the bus moves data for 62.06 us. The other 10.22 us are two set-ups of 169
    ///   cycles.
    /// - With a cache, the LANai 7 forwards 89.10 MB/s (table 2). That is 45.97 us per packet,
    ///   which is 3.70 us more than the NIC's demand.
    ///
    /// All other figures follow from these. A set-up is counted in cycles, so it takes half as long
    /// on the fast bus.
    pub const FITTED: Overheads = Overheads { setup_bus_cycles: 169.0, handover_us: 3.70 };

    /// Returns the set-up time for one page, in microseconds.
    pub(crate) fn setup_us(&self, bus: Bus) -> f64 {
        self.setup_bus_cycles / bus.mhz()
    }
}

/// Returns the number of pages in a packet, and so the number of its payload buffers and DMA
/// transfers.
pub fn pages(packet_bytes: u64) -> u64 {
    packet_bytes.div_ceil(PAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written_and_others_are_refused_with_the_list() {
        for nic in Nic::ALL {
            assert_eq!(nic.to_string().parse(), Ok(nic));
        }
        for bus in Bus::ALL {
            assert_eq!(bus.to_string().parse(), Ok(bus));
        }
        let error = "lanai8".parse::<Nic>().unwrap_err().to_string();
        assert_eq!(error, "no NIC is named lanai8; expected lanai4, lanai7, lanai9");
        let error = "32".parse::<Bus>().unwrap_err().to_string();
        assert_eq!(error, "no bus is named 32; expected 33, 66");
    }

    #[test]
    fn a_page_over_the_slow_bus_takes_the_time_of_table_2() {
        assert!((PAGE_BYTES as f64 / Bus::Pci33.mb_s() - 31.03).abs() < 0.005);
        assert!((PAGE_BYTES as f64 / Bus::Pci66.mb_s() - 7.76).abs() < 0.005);
    }

    #[test]
    fn buffers_fit_the_memory_and_are_two_rings_at_least() {
        for (nic, memory) in Nic::ALL.into_iter().zip([1_u64 << 20, 2 << 20, 4 << 20]) {
            let buffers = nic.profile().buffers;
            assert!(buffers >= 2 * RING_ENTRIES, "{nic}");
            assert!(u64::from(buffers) * PAGE_BYTES < memory, "{nic}");
        }
    }

    #[test]
    fn a_byte_beyond_a_page_is_one_more_transfer() {
        assert_eq!([1, 4_096, 4_097, 8_192].map(pages), [1, 1, 2, 2]);
    }
}
