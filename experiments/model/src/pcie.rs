//! Forwarder with Ethernet ports of 100 to 400 Gb/s on one PCIe 4.0 slot of 16 lanes.
//!
//! Three things have changed since the paper. First, PCIe has a pair of wires for each direction,
//! so a payload to the host and one from the host do not share capacity. Avoiding the second
//! crossing relieves the direction from the host, but not the direction to it. Second, a transfer
//! is cut into small transaction layer packets (TLPs), each with a header, and a read costs
//! requests in the other direction. Third, the host is fast enough to leave the bus as the
//! bottleneck. So three schemes are modelled:
//!
//! - **off**: the packet goes to the host and back.
//! - **on**: as in the paper, the packet goes to the host, but its payload also stays in the NIC
//!   and does not come back.
//! - **headers**: the payload stays only in the NIC, and the header goes to the host and back.
//!
//! The last scheme is what today's NICs offer as header and data split into their own memory
//! (Pismenny et al., *The Benefits of General-Purpose On-NIC Memory*, ASPLOS 2022, measured up to
//! 19 % more throughput and 23 % less latency of network functions; Sarma et al., *NFSlicer*, arXiv
//! 2203.02585).
//!
//! The PCIe constants are those in the PCI Express base specification 5.0, as collected and checked
//! against hardware by Neugebauer et al., *Understanding PCIe Performance for End Host Networking*,
//! SIGCOMM 2018, with their model `pcie-bench/pcie-model`. The model leaves out the host's memory
//! and caches, the IOMMU, and the doorbells and write-backs that drivers batch. All of them add to
//! the cost of crossings, so the gains here are lower bounds where PCIe is the bottleneck.

use crate::hardware::{UnknownName, named};
use crate::network::{ModelError, Network, Station};
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// Frame sizes that are modelled, in bytes without FCS.
pub(crate) const FRAME_BYTES: std::ops::RangeInclusive<u64> = 64..=9_216;
/// Preamble, FCS and gap around a frame, in bytes (IEEE 802.3, clause 4).
pub(crate) const WIRE_OVERHEAD_BYTES: u64 = 24;
/// Number of lanes in the slot.
const LANES: f64 = 16.0;
/// Rate of a lane, in Gb/s: 16 GT/s, with 128 bits of data in 130 (PCIe 4.0).
const LANE_GB_S: f64 = 16.0 * 128.0 / 130.0;
/// Share of the wire that acknowledgements, flow control and clock compensation take in each
/// direction. The first two take 8 bytes each for 168 bytes of TLPs (the specification's tables for
/// 16 lanes and a payload of 256 bytes), and the last takes 4 bytes in 1,538.
const LINK_LAYER_SHARE: f64 = 8.0 / 168.0 + 8.0 / 168.0 + 4.0 / 1_538.0;
/// Largest payload of a TLP, in bytes, as servers usually set it.
const PAYLOAD_MAX: u64 = 256;
/// Largest read request, in bytes, as usually set.
const READ_MAX: u64 = 512;
/// Overhead of a write TLP with a 64-bit address in bytes, including framing and the link layer.
const WRITE_HEADER: u64 = 24;
/// Overhead of a read request TLP in bytes.
const READ_HEADER: u64 = 24;
/// Overhead of a completion TLP in bytes.
const COMPLETION_HEADER: u64 = 20;
/// Size of a descriptor, in bytes (Intel 82599 data sheet §7.1.6 and §7.2.3). In NICs with 100
/// Gb/s, it is 16 to 64.
const DESCRIPTOR: u64 = 16;
/// Size of the header that goes to the host if payloads stay in the NIC, in bytes. It is two cache
/// lines, enough for Ethernet, VLAN, IPv6 and TCP with options.
pub(crate) const HEADER_BYTES: u64 = 128;
/// Round trip of a DMA over PCIe, in microseconds. About 900 ns of a NIC's latency come from PCIe
/// (Neugebauer et al., abstract and §2).
pub(crate) const PCIE_ROUND_TRIP_US: f64 = 0.9;
/// Number of packets per second that one core handles, which is 24 million (Høiland-Jørgensen et
/// al., *The eXpress Data Path*, CoNEXT 2018, abstract). A forwarder that handles more needs more
/// cores.
pub(crate) const CORE_PPS: f64 = 24e6;
/// Number of cores in the forwarder, **chosen** so that the host is not the bottleneck for frames
/// of 256 bytes or more.
pub(crate) const CORES: f64 = 8.0;

/// Names of the stations: the ports in and out, PCIe in both directions, and the host's cores.
pub(crate) const STATIONS: [&str; 5] =
    ["link in", "link out", "PCIe to host", "PCIe from host", "host"];

/// Ports of a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Ethernet {
    /// Ports in one slot.
    pub ports: u32,
    /// Rate of a port, in Gb/s.
    pub gb_s: u32,
}

impl Ethernet {
    /// All modelled NICs.
    pub const ALL: [Ethernet; 5] = [
        Ethernet { ports: 1, gb_s: 100 },
        Ethernet { ports: 2, gb_s: 100 },
        Ethernet { ports: 1, gb_s: 200 },
        Ethernet { ports: 4, gb_s: 100 },
        Ethernet { ports: 1, gb_s: 400 },
    ];
}

impl fmt::Display for Ethernet {
    /// Formats the name, such as `100g` or `2x100g`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ports {
            1 => write!(f, "{}g", self.gb_s),
            ports => write!(f, "{ports}x{}g", self.gb_s),
        }
    }
}

impl FromStr for Ethernet {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Ethernet, UnknownName> {
        named("NIC", text, &Ethernet::ALL)
    }
}

/// Scheme of PCIe crossings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// The packet, to the host and back.
    Off,
    /// The packet to the host, and its header back.
    On,
    /// The header, to the host and back.
    Headers,
}

impl Scheme {
    /// All schemes of PCIe crossings.
    pub const ALL: [Scheme; 3] = [Scheme::Off, Scheme::On, Scheme::Headers];

    /// Returns the number of bytes of a frame that go to the host, and the number that come back.
    fn crossing(self, bytes: u64) -> (u64, u64) {
        let header = bytes.min(HEADER_BYTES);
        match self {
            Scheme::Off => (bytes, bytes),
            Scheme::On => (bytes, header),
            Scheme::Headers => (header, header),
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Scheme::Off => "off",
            Scheme::On => "on",
            Scheme::Headers => "headers",
        })
    }
}

/// Returns the rate at which TLPs are carried in each direction, in Gb/s: 227.4.
pub(crate) fn tlp_gb_s() -> f64 {
    LANES * LANE_GB_S * (1.0 - LINK_LAYER_SHARE)
}

/// Returns the number of TLP bytes for one frame to the host, and from the host.
pub(crate) fn tlp_bytes(scheme: Scheme, bytes: u64) -> (u64, u64) {
    let (up, down) = scheme.crossing(bytes);
    let write = |bytes: u64| bytes + bytes.div_ceil(PAYLOAD_MAX) * WRITE_HEADER;
    let requests = |bytes: u64| bytes.div_ceil(READ_MAX) * READ_HEADER;
    let completions = |bytes: u64| bytes + bytes.div_ceil(PAYLOAD_MAX) * COMPLETION_HEADER;
    // Receiving fetches a descriptor, writes the data, and writes the descriptor back. Sending
    // fetches a descriptor and the data.
    let to_host = requests(DESCRIPTOR) + write(up) + write(DESCRIPTOR);
    let to_host = to_host + requests(DESCRIPTOR) + requests(down);
    (to_host, 2 * completions(DESCRIPTOR) + completions(down))
}

/// Returns the queueing network of a forwarder for frames of `bytes` bytes, without FCS.
///
/// # Errors
/// The size is outside `FRAME_BYTES`.
pub fn network(nic: Ethernet, scheme: Scheme, bytes: u64) -> Result<Network, ModelError> {
    if !FRAME_BYTES.contains(&bytes) {
        let (least, most) = (*FRAME_BYTES.start(), *FRAME_BYTES.end());
        return Err(ModelError::PacketSize { found: bytes, least, most });
    }
    // A Gb/s is one bit per nanosecond.
    let us = |bytes: u64, gb_s: f64| 8.0 * bytes as f64 / gb_s / 1e3;
    let link = us(bytes + WIRE_OVERHEAD_BYTES, f64::from(nic.ports * nic.gb_s));
    let (up, down) = tlp_bytes(scheme, bytes);
    let [up, down] = [up, down].map(|bytes| us(bytes, tlp_gb_s()));
    let host = 1e6 / (CORE_PPS * CORES);
    let stations = STATIONS.iter().zip([link, link, up, down, host]);
    let stations = stations.map(|(name, service)| Station::new(name, 1.0, service)).collect();
    Network::new(stations, bytes)?.with_delay(2.0 * PCIE_ROUND_TRIP_US)
}

/// Returns the bandwidth that is forwarded at saturation, in Gb/s of frames without FCS, preamble
/// and gap.
#[cfg(test)]
pub(crate) fn saturation_gb_s(network: &Network) -> f64 {
    network.saturation_mb_s() * 8.0 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saturation(name: &str, scheme: Scheme, bytes: u64) -> f64 {
        saturation_gb_s(&network(name.parse().unwrap(), scheme, bytes).unwrap())
    }

    #[test]
    fn the_slot_carries_what_the_specification_leaves_of_252_gb_s() {
        assert!((tlp_gb_s() - 227.4).abs() < 0.1, "{}", tlp_gb_s());
        // 16 writes of 256 bytes, 8 read requests, two descriptors that are fetched, and one that
        // is written.
        assert_eq!(tlp_bytes(Scheme::Off, 4_096).0, 16 * 280 + 8 * 24 + 2 * 24 + 40);
        assert_eq!(tlp_bytes(Scheme::Off, 4_096).1, 16 * 276 + 2 * 36);
        assert_eq!(tlp_bytes(Scheme::Headers, 4_096).1, 148 + 2 * 36);
    }

    #[test]
    fn one_port_of_100_gb_s_gains_nothing() {
        for bytes in [256, 1_514, 4_096, 9_000] {
            let all = Scheme::ALL.map(|scheme| saturation("100g", scheme, bytes));
            assert!(all.iter().all(|gb_s| *gb_s == all[0]), "{bytes}: {all:?}");
        }
    }

    #[test]
    fn beyond_the_slot_the_paper_s_scheme_gains_a_few_per_cent_and_headers_only_all() {
        let [off, on, headers] = Scheme::ALL.map(|scheme| saturation("400g", scheme, 1_514));
        assert!(on > off && on < 1.1 * off, "{off} {on}");
        assert!(headers > 1.8 * off, "{off} {headers}");
        let link = 400.0 * 1_514.0 / 1_538.0;
        assert!((headers - link).abs() < 0.01, "{headers}");
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for nic in Ethernet::ALL {
            assert_eq!(nic.to_string().parse(), Ok(nic));
        }
        let error = "3x100g".parse::<Ethernet>().unwrap_err().to_string();
        assert!(error.ends_with("expected 100g, 2x100g, 200g, 4x100g, 400g"), "{error}");
    }

    #[test]
    fn frames_out_of_range_are_refused() {
        for bytes in [63, 9_217] {
            assert!(network(Ethernet::ALL[0], Scheme::Off, bytes).is_err());
        }
    }
}
