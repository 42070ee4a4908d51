//! The entries of a server (paper 004, figure 6).
//!
//! Two lookup keys: the first has TTL and next hops, for index source routing, and besides ingress
//! port and destination, so that it also finds the flows of the own hosts; the second has the
//! ingress port, the outer destination and the BCube protocol, for the filters. In the TCAM the
//! highest index wins, so the routing entries come first, then the filters, then the flows.

use super::cube::{Cube, NHAS_MAX, Nha};
use super::header::{IP_PROTOCOL, Purpose, SHIM_BYTES};
use crate::server::{AddressBlock, HostPorts};
use alloc::vec::Vec;
use axon_pipeline::{
    Action, Change, Field, FrameType, Interface, Mirror, Modify, Target, TcamEntry, Udlk, UdlkId,
};
use axon_wire::{MacAddr, PortNo};
use core::net::Ipv4Addr;

/// The key of index source routing and of flows (UDLK 1 of figure 6).
pub const ROUTING_KEY: UdlkId = UdlkId(1);
/// The key of the filters (UDLK 2 of figure 6).
const FILTER_KEY: UdlkId = UdlkId(2);
/// Bytes that a tunnel puts before a host's packet: IPv4 header and shim.
pub const OVERHEAD_BYTES: usize = 20 + SHIM_BYTES;
/// The networks that there are entries for.
pub(crate) const EXPECTED: &str = "topology bcube with k of at most 6, (k+1)n of at most 256, \
                                   (k+1)(n-1) of at most 128, and 16 hosts per server";
/// Values of the index: a routing entry for each and each neighbour.
pub const INDEX_VALUES: usize = NHAS_MAX;
/// The TTL at which the first next hop field counts.
const FIRST_INDEX_TTL: u8 = 2;
/// Where the filters begin in the TCAM: behind the routing entries of the most neighbours.
const FILTERS: u16 = (Cube::NEIGHBOURS_MAX as usize * INDEX_VALUES) as u16;
/// Where the flows begin in the TCAM.
const FLOWS: u16 = FILTERS + 256;
/// Flows of the own hosts at most: the rest of a TCAM of 2,048.
pub(super) const FLOWS_MAX: usize = 2048 - FLOWS as usize;
/// The number of the interface to the first own host, behind those to neighbours.
pub(super) const HOST_INTERFACES: u16 = 256;

/// Places in the value of the routing key.
mod routing {
    pub(super) const BYTES: usize = 18;
    pub(super) const INGRESS: core::ops::Range<usize> = 0..2;
    pub(super) const TTL: usize = 2;
    pub(super) const PROTOCOL: usize = 3;
    pub(super) const DESTINATION: core::ops::Range<usize> = 6..10;
    pub(super) const NHAS: usize = 10;
    pub(super) const L4_PORTS: core::ops::Range<usize> = 10..14;
}

/// Places in the value of the filter key.
mod filter {
    pub(super) const BYTES: usize = 14;
    pub(super) const INGRESS: core::ops::Range<usize> = 0..2;
    pub(super) const PROTOCOL: usize = 3;
    pub(super) const DESTINATION: core::ops::Range<usize> = 6..10;
    pub(super) const PURPOSE: usize = 10;
}

/// A value and its mask: what is not set does not count.
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

/// The lookup keys.
pub(super) fn keys() -> [Change; 2] {
    let bytes = |first, last| Field::Bytes { first, last };
    let routing = [Field::Ingress, bytes(22, 25), bytes(30, 33), bytes(34, 41)];
    let filter = [Field::Ingress, bytes(22, 25), bytes(30, 33), bytes(42, 45)];
    [
        Change::Udlk(ROUTING_KEY, Some(Udlk::of(FrameType::Ipv4, routing))),
        Change::Udlk(FILTER_KEY, Some(Udlk::of(FrameType::Ipv4, filter))),
    ]
}

/// The interface to a neighbour, numbered by its next hop address.
pub(super) fn interface(nha: Nha, port: PortNo, to: MacAddr, own: MacAddr) -> Change {
    let interface = Interface { port, destination: Some(to), source: Some(own) };
    Change::Interface(nha.0.into(), Some(interface))
}

/// The routing entries of one neighbour, the `place`-th of this server: one for each index. They
/// send packets to the neighbour. While it cannot be used they drop them, and the program gets
/// copies: as frames for the program they would take the place of hellos in what a port may send
/// there.
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

/// The filters: for each port to other servers one for each own host, whose packets leave their
/// tunnel there, and two for control packets; for each own host one that keeps it from sending
/// BCube packets itself.
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

/// The flow of a host, as its entry finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FlowKey {
    /// The port of the host.
    pub(super) ingress: PortNo,
    /// The destination.
    pub(super) destination: Ipv4Addr,
    /// The IP protocol.
    pub(super) protocol: u8,
    /// The ports of TCP and UDP; `None` for others.
    pub(super) l4_ports: Option<[u8; 4]>,
}

/// The index in the TCAM of a flow's entry.
pub(super) fn flow_index(flow: usize) -> u16 {
    FLOWS + flow as u16
}

/// The entry of a flow.
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
