//! Demands of a Myrinet forwarder (003 §2.2, table 2), derived from the constants of its hardware.
//!
//! The bus and the host are simple. A packet crosses the bus at the bus's rate, twice without a
//! payload cache and once with it, and the host serves the packet once.
//!
//! The NIC is one station with one visit, whose demand the paper works out case by case. All these
//! cases follow from one rule. The memory has two cycles for each cycle of the processor. A DMA
//! engine takes at most one of them, and the processor comes last. So the NIC needs, for each
//! packet, the longest of three times:
//!
//! - **memory**: all accesses, one after another. These are four transfers without a cache (net to
//!   NIC, NIC to host, host to NIC, NIC to net), or three with it, and two accesses for each
//!   instruction of the firmware.
//! - **processor**: while both network engines run, they take both memory cycles, or are waited
//!   for, and the processor starves. After that, it has every other cycle, alongside a DMA over the
//!   bus. So the time is that of a transfer over the link, which a narrow memory slows down to the
//!   rate of every other memory cycle, plus that of the firmware's accesses at half the memory's
//!   rate.
//! - **bus**: the NIC is busy each time that the bus moves the packet.
//!
//! For 4,096 bytes and the slow bus, in microseconds (the longest is the demand):
//!
//! | cache | NIC | memory | processor | bus | table 2 |
//! |---|---|---|---|---|---|
//! | off | 4 | 5196 / 66 = **78.73** | 31.03 + 1100 / 33 = 64.36 | 62.06 | 78.72 |
//! | off | 7 | 3148 / 132 = 23.85 | 25.60 + 1100 / 66 = 42.27 | **62.06** | 62.06 |
//! | off | 9 | 3148 / 266 = 11.83 | 25.60 + 1100 / 133 + 0.41 = 34.28 | **62.06** | 62.06 |
//! | on | 4 | 4172 / 66 = 63.21 | 31.03 + 1100 / 33 = **64.36** | 31.03 | 64.37 |
//! | on | 7 | 2636 / 132 = 19.97 | 25.60 + 1100 / 66 = **42.27** | 31.03 | 42.26 |
//! | on | 9 | 2636 / 266 = 9.91 | 25.60 + 1100 / 133 + 0.41 = **34.28** | 31.03 | 34.28 |
//!
//! The paper truncates most figures after two digits (78.727 to 78.72, 42.267 to 42.26). Other
//! figures are sums of rounded ones (64.37 is 31.03 + 2 * 16.67), and the text has 42.25 where the
//! table has 42.26. One constant is fitted: the 0.41 us of [`NicProfile::stall_us`].
//!
//! The paper models packets of one page. For larger packets, the firmware does its work for each
//! page, because its buffers are pages. So a demand is proportional to the size, as §2.3 says, and
//! no packet size takes a LANai 4 without a cache beyond 52 MB/s, as §4.1 measured.

use crate::hardware::{
    ACCESSES_PER_INSTRUCTION, Bus, FIRMWARE_INSTRUCTIONS, LINK_MB_S, Nic, NicProfile, Overheads,
    PACKET_BYTES, pages,
};
use crate::network::{ModelError, Network, Station};

/// Name of the NIC.
pub const NIC: &str = "NIC";
/// Name of the I/O bus.
pub const BUS: &str = "PCI";
/// Name of the host.
pub const HOST: &str = "host";

/// Forwarder to be modelled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forwarder {
    /// NIC.
    pub nic: Nic,
    /// I/O bus.
    pub bus: Bus,
    /// True if the NIC keeps payloads, so that they cross the bus once.
    pub is_caching: bool,
    /// Service time of the host for a packet, in microseconds.
    pub host_us: f64,
    /// Overheads that the paper's model omits.
    pub overheads: Overheads,
}

/// Three times in microseconds. The longest of them is the NIC's demand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NicDemand {
    /// Time for all accesses to the NIC's memory.
    pub memory_us: f64,
    /// Time for the processor, which starves while both network engines run.
    pub processor_us: f64,
    /// Time for the transfers over the bus.
    pub bus_us: f64,
}

impl NicDemand {
    /// Returns the longest of the three times, in microseconds.
    pub(crate) fn longest_us(&self) -> f64 {
        self.memory_us.max(self.processor_us).max(self.bus_us)
    }
}

impl Forwarder {
    /// Returns the number of times that a payload crosses the bus.
    pub(crate) fn bus_visits(&self) -> u64 {
        if self.is_caching { 1 } else { 2 }
    }

    /// Returns the time for one bus crossing of a packet of `bytes` bytes, in microseconds. It
    /// consists of a set-up for each page and the transfer of the data.
    pub(crate) fn bus_service_us(&self, bytes: u64) -> f64 {
        let setups = pages(bytes) as f64 * self.overheads.setup_us(self.bus);
        setups + bytes as f64 / self.bus.mb_s()
    }

    /// Returns the three times, the longest of which is the NIC's demand.
    pub(crate) fn nic_demand(&self, bytes: u64) -> NicDemand {
        let NicProfile { memory_width_bytes, memory_mhz, stall_us, .. } = self.nic.profile();
        let words = bytes.div_ceil(memory_width_bytes) as f64;
        let pages = pages(bytes);
        let firmware = (pages * FIRMWARE_INSTRUCTIONS * ACCESSES_PER_INSTRUCTION) as f64;
        let transfers = (2 + self.bus_visits()) as f64;
        // A DMA engine gets at most every other memory cycle.
        let over_link = (bytes as f64 / LINK_MB_S).max(2.0 * words / memory_mhz);
        let waits = pages as f64 * (stall_us + self.overheads.handover_us);
        NicDemand {
            memory_us: (transfers * words + firmware) / memory_mhz,
            processor_us: over_link + 2.0 * firmware / memory_mhz + waits,
            bus_us: self.bus_visits() as f64 * self.bus_service_us(bytes),
        }
    }

    /// Returns the queueing network for packets of `bytes` bytes, with the stations NIC, bus and
    /// host.
    ///
    /// # Errors
    /// The size is outside `PACKET_BYTES`, or the host's service time is invalid.
    pub fn network(&self, bytes: u64) -> Result<Network, ModelError> {
        if !PACKET_BYTES.contains(&bytes) {
            let (least, most) = (*PACKET_BYTES.start(), *PACKET_BYTES.end());
            return Err(ModelError::PacketSize { found: bytes, least, most });
        }
        let stations = vec![
            Station::new(NIC, 1.0, self.nic_demand(bytes).longest_us()),
            Station::new(BUS, self.bus_visits() as f64, self.bus_service_us(bytes)),
            Station::new(HOST, 1.0, self.host_us),
        ];
        Network::new(stations, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::{HOST_MODEL_US, PAGE_BYTES};

    /// NIC, cache, demands of NIC and bus in us, and saturation in MB/s (003, table 2).
    const TABLE_2: [(Nic, bool, f64, f64, f64); 6] = [
        (Nic::Lanai4, false, 78.72, 62.06, 52.03),
        (Nic::Lanai7, false, 62.06, 62.06, 66.0),
        (Nic::Lanai9, false, 62.06, 62.06, 66.0),
        (Nic::Lanai4, true, 64.37, 31.03, 63.63),
        (Nic::Lanai7, true, 42.26, 31.03, 96.92),
        (Nic::Lanai9, true, 34.28, 31.03, 119.48),
    ];

    fn forwarder(nic: Nic, bus: Bus, is_caching: bool) -> Forwarder {
        Forwarder { nic, bus, is_caching, host_us: HOST_MODEL_US, overheads: Overheads::NONE }
    }

    /// Truncates to two digits after the decimal point, as the paper does.
    fn cut(number: f64) -> f64 {
        (number * 100.0 + 1e-6).floor() / 100.0
    }

    #[test]
    fn demands_and_saturation_are_those_of_table_2_to_one_in_the_last_digit() {
        for (nic, is_caching, nic_us, bus_us, saturation) in TABLE_2 {
            let network = forwarder(nic, Bus::Pci33, is_caching).network(PAGE_BYTES).unwrap();
            let [ours_nic, ours_bus] = [NIC, BUS].map(|name| cut(network.demand_us(name).unwrap()));
            let ours = cut(PAGE_BYTES as f64 / cut(network.bottleneck().demand_us()));
            for (theirs, ours) in [(nic_us, ours_nic), (bus_us, ours_bus), (saturation, ours)] {
                assert!((theirs - ours).abs() < 0.0101, "{nic} {is_caching}: {theirs} {ours}");
            }
        }
    }

    #[test]
    fn the_fitted_stall_is_all_that_the_paper_s_constants_leave_open() {
        let of = |nic| forwarder(nic, Bus::Pci33, true).nic_demand(PAGE_BYTES).longest_us();
        let bare = of(Nic::Lanai9) - Nic::Lanai9.profile().stall_us;
        assert!((bare - 33.87).abs() < 0.005, "{bare}");
        assert_eq!(Nic::Lanai4.profile().stall_us + Nic::Lanai7.profile().stall_us, 0.0);
    }

    #[test]
    fn a_cache_gains_nothing_where_the_bus_is_fast_and_the_memory_wide() {
        for nic in [Nic::Lanai7, Nic::Lanai9] {
            let of = |is_caching| forwarder(nic, Bus::Pci66, is_caching).network(PAGE_BYTES);
            let [off, on] = [false, true].map(|is_caching| of(is_caching).unwrap());
            assert_eq!(off.saturation_mb_s(), on.saturation_mb_s(), "{nic}");
            assert_eq!(off.bottleneck().name, NIC);
        }
    }

    #[test]
    fn sizes_out_of_range_are_refused_with_the_range() {
        let forwarder = forwarder(Nic::Lanai4, Bus::Pci33, true);
        for size in [0, 63, 65_537] {
            let error = forwarder.network(size).unwrap_err().to_string();
            assert!(error.ends_with("expected 64 to 65536 bytes"), "{error}");
        }
        assert!(forwarder.network(64).is_ok() && forwarder.network(65_536).is_ok());
    }
}
