//! Table entries of a server (paper 004, figure 6).
//!
//! There are two lookup keys. The first contains TTL and next hops for index source routing, and
//! ingress port and destination for the flows of this server's hosts. The second contains the
//! ingress port, the outer destination and the BCube protocol, for the filters. In the TCAM, the
//! highest index wins. Routing entries come first, then filters, then flows.

use super::cube::{Cube, NHAS_MAX, Nha};
use super::header::{IP_PROTOCOL, Purpose, SHIM_BYTES};
use crate::server::{AddressBlock, HostPorts};
use alloc::vec::Vec;
use axon_pipeline::{
    Action, Change, Field, FrameType, Interface, Mirror, Modify, Target, TcamEntry, Udlk, UdlkId,
};
use axon_wire::{MacAddr, PortNo};
use core::net::Ipv4Addr;

/// Key for index source routing and flows (UDLK 1 in figure 6).
pub const ROUTING_KEY: UdlkId = UdlkId(1);
/// Key for the filters (UDLK 2 in figure 6).
const FILTER_KEY: UdlkId = UdlkId(2);
/// Overhead of a tunnel in bytes, for the IPv4 header and the shim.
pub const OVERHEAD_BYTES: usize = 20 + SHIM_BYTES;
/// Networks that the program supports, as named in [`Unsuitable`](crate::Unsuitable).
pub(crate) const EXPECTED: &str = "topology bcube with k of at most 6, (k+1)n of at most 256, \
                                   (k+1)(n-1) of at most 128, and 16 hosts per server";
/// Number of index values. Each neighbour has one routing entry for each of them.
pub const INDEX_VALUES: usize = NHAS_MAX;
/// TTL that selects the first next hop field.
const FIRST_INDEX_TTL: u8 = 2;
/// First TCAM index of the filters, after the routing entries for the maximum number of neighbours.
const FILTERS: u16 = (Cube::NEIGHBOURS_MAX as usize * INDEX_VALUES) as u16;
/// First TCAM index of the flows.
const FLOWS: u16 = FILTERS + 256;
/// Maximum number of flows of this server's hosts, which is limited by a TCAM of 2,048 entries.
pub(super) const FLOWS_MAX: usize = 2048 - FLOWS as usize;
/// Number of the interface to this server's first host, after those to neighbours.
pub(super) const HOST_INTERFACES: u16 = 256;

/// Offsets in the routing key.
mod routing {
    pub(super) const BYTES: usize = 18;
    pub(super) const INGRESS: core::ops::Range<usize> = 0..2;
    pub(super) const TTL: usize = 2;
    pub(super) const PROTOCOL: usize = 3;
    pub(super) const DESTINATION: core::ops::Range<usize> = 6..10;
    pub(super) const NHAS: usize = 10;
    pub(super) const L4_PORTS: core::ops::Range<usize> = 10..14;
}

/// Offsets in the filter key.
mod filter {
    pub(super) const BYTES: usize = 14;
    pub(super) const INGRESS: core::ops::Range<usize> = 0..2;
    pub(super) const PROTOCOL: usize = 3;
    pub(super) const DESTINATION: core::ops::Range<usize> = 6..10;
    pub(super) const PURPOSE: usize = 10;
}

/// Value and mask of a key. Bits that are not set are ignored.
struct Match {
    udlk: UdlkId,
    value: Vec<u8>,
    mask: Vec<u8>,
}

impl Match {
    fn new(udlk: UdlkId, bytes: usize) -> Match {
        Match { udlk, value: alloc::vec![0; bytes], mask: alloc::vec![0; bytes] }
    }

    fn is(mut self, at: usize, bytes: &[u8]) -> Match {
        self.value[at..at + bytes.len()].copy_from_slice(bytes);
        self.mask[at..at + bytes.len()].fill(0xff);
        self
    }

    fn entry(self, action: Action) -> TcamEntry {
        TcamEntry { udlk: self.udlk, value: self.value, mask: self.mask, action }
    }
}

/// Returns the lookup keys.
pub(super) fn keys() -> [Change; 2] {
    let bytes = |first, last| Field::Bytes { first, last };
    let routing = [Field::Ingress, bytes(22, 25), bytes(30, 33), bytes(34, 41)];
    let filter = [Field::Ingress, bytes(22, 25), bytes(30, 33), bytes(42, 45)];
    [
        Change::Udlk(ROUTING_KEY, Some(Udlk::of(FrameType::Ipv4, routing))),
        Change::Udlk(FILTER_KEY, Some(Udlk::of(FrameType::Ipv4, filter))),
    ]
}

/// Returns the interface to a neighbour. Its number is the neighbour's next hop address.
pub(super) fn interface(nha: Nha, port: PortNo, to: MacAddr, own: MacAddr) -> Change {
    let interface = Interface { port, destination: Some(to), source: Some(own) };
    Change::Interface(nha.0.into(), Some(interface))
}

/// Returns the routing entries for the `place`-th neighbour, one for each index. They send packets
/// to the neighbour. While the neighbour is down, they drop packets and copy them to the program.
/// Traps are not used, because they would compete with hellos for the program's egress quota.
pub(super) fn routing(place: usize, nha: Nha, is_up: bool) -> impl Iterator<Item = Change> {
    (0..INDEX_VALUES).map(move |index| {
        let matches = Match::new(ROUTING_KEY, routing::BYTES)
            .is(routing::TTL, &[FIRST_INDEX_TTL + index as u8])
            .is(routing::PROTOCOL, &[IP_PROTOCOL])
            .is(routing::NHAS + index, &[nha.0]);
        let action = if is_up {
            Action::from(Target::Interface(nha.0.into())).with(Modify::DecrementTtl)
        } else {
            Action::from(Target::Drop).mirrored(Mirror::Cpu)
        };
        let number = place * INDEX_VALUES + index;
        Change::Tcam(number as u16, Some(matches.entry(action)))
    })
}

/// Returns the filters. For each port to other servers, there is one filter for each of this
/// server's hosts, which decapsulates its packets, and two for control packets. For each host, one
/// filter blocks BCube packets that the host itself sends.
pub(super) fn filters(own: u32, links: &[PortNo], hosts: &HostPorts) -> Vec<Change> {
    let from = |port: PortNo| {
        Match::new(FILTER_KEY, filter::BYTES)
            .is(filter::INGRESS.start, &port.0.to_be_bytes())
            .is(filter::PROTOCOL, &[IP_PROTOCOL])
    };
    let mut entries = Vec::new();
    for &port in links {
        for slot in hosts.slots() {
            let address = AddressBlock::BCUBE.address(own, slot);
            let action = Action::from(Target::Interface(hosts.interface(slot)))
                .with(Modify::TunnelPop { shim_bytes: SHIM_BYTES as u8 });
            let matches = from(port).is(filter::DESTINATION.start, &address.octets());
            entries.push(matches.entry(action));
        }
    }
    for &port in links {
        for purpose in [Purpose::Discovery, Purpose::Query] {
            let matches = from(port).is(filter::PURPOSE, &[purpose as u8]);
            entries.push(matches.entry(Action::cpu()));
        }
    }
    entries.extend(hosts.ports().map(|port| from(port).entry(Action::from(Target::Drop))));
    (FILTERS..).zip(entries).map(|(index, entry)| Change::Tcam(index, Some(entry))).collect()
}

/// Key of a host's flow, as matched by its table entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FlowKey {
    /// Port of the host.
    pub(super) ingress: PortNo,
    /// Destination address of the flow.
    pub(super) destination: Ipv4Addr,
    /// IP protocol of the flow.
    pub(super) protocol: u8,
    /// TCP or UDP ports; `None` for other protocols.
    pub(super) l4_ports: Option<[u8; 4]>,
}

/// Returns the TCAM index of a flow's entry.
pub(super) fn flow_index(flow: usize) -> u16 {
    FLOWS + flow as u16
}

/// Returns the entry for a flow.
pub(super) fn flow(flow: usize, key: &FlowKey, action: Action) -> Change {
    let matches = Match::new(ROUTING_KEY, routing::BYTES)
        .is(routing::INGRESS.start, &key.ingress.0.to_be_bytes())
        .is(routing::PROTOCOL, &[key.protocol])
        .is(routing::DESTINATION.start, &key.destination.octets());
    let matches = match key.l4_ports {
        Some(ports) => matches.is(routing::L4_PORTS.start, &ports),
        None => matches,
    };
    Change::Tcam(flow_index(flow), Some(matches.entry(action)))
}
