//! Messages between PortLand's switches and its fabric manager.
//!
//! The paper gives no formats. Here every message is an Ethernet frame of EtherType [`PORTLAND`]
//! whose payload is postcard's encoding (a published format: varints, fields in order), padded to
//! the Ethernet minimum. Nothing is sealed: PortLand has no trust model.

use crate::portland::plane::Location;
use alloc::vec::Vec;
use axon_wire::constants::ethertype::PORTLAND;
use axon_wire::link::{self, ETHERNET_BYTES, FRAME_BYTES_MIN};
use axon_wire::{MacAddr, PortNo};
use core::net::Ipv4Addr;
use serde::{Deserialize, Serialize};

/// Message of PortLand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// Link: a location discovery message.
    Ldm(Ldm),
    /// Switch to manager: own state and neighbours.
    Report(Report),
    /// Manager to switch: acknowledges a report.
    ReportAck {
        /// Sequence number of the report.
        sequence: u32,
    },
    /// Manager to edge switch: assigns a location.
    Place(Place),
    /// Edge switch to manager: registers the PMAC of a host.
    Register(Register),
    /// Manager to edge switch: acknowledges a registration.
    RegisterAck {
        /// AMAC of the host.
        amac: MacAddr,
        /// PMAC of the registration.
        pmac: MacAddr,
    },
    /// Edge switch to manager: forwards a host's ARP request.
    ArpQuery {
        /// Requested address.
        ip: Ipv4Addr,
        /// Requester.
        from: Requester,
    },
    /// Manager to the requester's edge switch: answers an ARP request.
    ArpAnswer {
        /// Requested address.
        ip: Ipv4Addr,
        /// PMAC of that address.
        pmac: MacAddr,
        /// Requester.
        to: MacAddr,
    },
    /// Manager to all switches: requests an unregistered `ip` from all hosts.
    ArpBroadcast {
        /// Requested address.
        ip: Ipv4Addr,
        /// Requester.
        from: Requester,
    },
    /// Switch to manager: requests a route to this location.
    RouteQuery(Place),
    /// Manager to switch: sends routes.
    Routes {
        /// Sequence number, to be acknowledged.
        sequence: u32,
        /// Each location with the ports on a shortest path to it; none if there is no path.
        entries: Vec<(Place, Vec<PortNo>)>,
    },
    /// Switch to manager: acknowledges routes.
    RoutesAck {
        /// Sequence number of the routes.
        sequence: u32,
    },
    /// Manager to a host's former edge switch: the host has moved.
    Moved {
        /// IPv4 address of the host.
        ip: Ipv4Addr,
        /// Former PMAC.
        old: MacAddr,
        /// Present PMAC.
        new: MacAddr,
    },
}

/// Location discovery message (paper §3.4), sent on every port at an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ldm {
    /// Port of the sender.
    pub port: PortNo,
    /// Level in the tree.
    pub level: Level,
    /// Pod, if known.
    pub pod: Option<u16>,
    /// Position in the pod, at an edge switch with a location.
    pub position: Option<u8>,
    /// Path to the fabric manager, if there is one.
    pub way: Option<Way>,
    /// True if that path begins with this link.
    pub towards_you: bool,
}

/// Level of a switch in a fat tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Level {
    /// Not determined yet.
    #[default]
    Unknown,
    /// Level 0: with hosts.
    Edge,
    /// Level 1: between edge and core.
    Aggregation,
    /// Level 2.
    Core,
    /// Fabric manager, not a switch.
    Manager,
}

/// Path to the fabric manager, used by in-band control frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Way {
    /// Address of the manager.
    pub manager: MacAddr,
    /// Incarnation of the manager; later ones are greater.
    pub incarnation: u32,
    /// True if the manager has found the network to be a fat tree.
    pub fat_tree: bool,
    /// Number of links to the manager.
    pub distance: u16,
    /// Digest of the path; differs when any link differs.
    pub path: u32,
}

/// Report of a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Sequence number, to be acknowledged.
    pub sequence: u32,
    /// Incarnation of the switch.
    pub incarnation: u32,
    /// Level.
    pub level: Level,
    /// Location assigned by the manager.
    pub place: Option<Place>,
    /// Links: own port, neighbour, the neighbour's port.
    pub links: Vec<(PortNo, MacAddr, PortNo)>,
}

/// [`Location`] in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// Pod.
    pub pod: u16,
    /// Position in the pod.
    pub position: u8,
}

impl From<Location> for Place {
    fn from(Location { pod, position }: Location) -> Place {
        Place { pod, position }
    }
}

impl From<Place> for Location {
    fn from(Place { pod, position }: Place) -> Location {
        Location { pod, position }
    }
}

/// Host registered by its edge switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Register {
    /// IPv4 address.
    pub ip: Ipv4Addr,
    /// AMAC, the host's own address.
    pub amac: MacAddr,
    /// PMAC assigned to the host.
    pub pmac: MacAddr,
}

/// Requester of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Requester {
    /// IPv4 address.
    pub ip: Ipv4Addr,
    /// PMAC.
    pub pmac: MacAddr,
}

impl Message {
    /// Returns the frame that carries the message, without FCS.
    pub fn emit(&self, to: MacAddr, from: MacAddr) -> Vec<u8> {
        let mut frame = Vec::with_capacity(FRAME_BYTES_MIN);
        frame.extend_from_slice(&to.0);
        frame.extend_from_slice(&from.0);
        frame.extend_from_slice(&PORTLAND.to_be_bytes());
        let mut frame = postcard::to_extend(self, frame).expect("a message always encodes");
        if frame.len() < FRAME_BYTES_MIN {
            frame.resize(FRAME_BYTES_MIN, 0);
        }
        frame
    }

    /// Returns the link frame that carries the message, which no switch forwards.
    pub fn emit_link(&self, from: MacAddr) -> Vec<u8> {
        self.emit(link::DESTINATION, from)
    }

    /// Parses a control frame and returns the sender and the message, or `None` for any other
    /// frame.
    pub fn parse(frame: &[u8]) -> Option<(MacAddr, Message)> {
        if frame.get(12..ETHERNET_BYTES)? != PORTLAND.to_be_bytes() {
            return None;
        }
        let (message, _padding) = postcard::take_from_bytes(&frame[ETHERNET_BYTES..]).ok()?;
        Some((MacAddr::source_of(frame)?, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages_survive_the_wire_with_their_padding() {
        let mac = |last| MacAddr([2, 0, 0, 0, 0, last]);
        let way =
            Way { manager: mac(9), incarnation: 1, fat_tree: true, distance: 3, path: u32::MAX };
        let ldm = Message::Ldm(Ldm {
            port: PortNo(3),
            level: Level::Aggregation,
            pod: Some(8191),
            position: None,
            way: Some(way),
            towards_you: true,
        });
        let links = (0..100).map(|port| (PortNo(port), mac(port as u8), PortNo(7))).collect();
        let place = Some(Place { pod: 1, position: 2 });
        let level = Level::Edge;
        let report = Message::Report(Report { sequence: 7, incarnation: 2, level, place, links });
        for message in [ldm, report] {
            let frame = message.emit(mac(1), mac(2));
            assert!(frame.len() >= FRAME_BYTES_MIN);
            assert_eq!(Message::parse(&frame), Some((mac(2), message)));
        }
    }

    #[test]
    fn a_location_discovery_message_is_a_minimum_frame() {
        let ldm = Ldm {
            port: PortNo(200),
            level: Level::Edge,
            pod: Some(8000),
            position: Some(200),
            way: Some(Way {
                manager: MacAddr([255; 6]),
                incarnation: 1000,
                fat_tree: true,
                distance: 200,
                path: u32::MAX,
            }),
            towards_you: true,
        };
        assert_eq!(Message::Ldm(ldm).emit_link(MacAddr([2; 6])).len(), FRAME_BYTES_MIN);
    }

    proptest! {
        #[test]
        fn what_is_parsed_of_any_bytes_is_emitted_to_the_same(
            kind in 0..12_u8,
            body in prop::collection::vec(prop_oneof![0..4_u8, any::<u8>()], 0..100),
        ) {
            let (to, from) = (MacAddr([4; 6]), MacAddr([2; 6]));
            let mut frame = [to.0, from.0].concat();
            frame.extend(PORTLAND.to_be_bytes());
            frame.push(kind);
            frame.extend(&body);
            if let Some((sender, message)) = Message::parse(&frame) {
                prop_assert_eq!(sender, from);
                prop_assert_eq!(Message::parse(&message.emit(to, from)), Some((from, message)));
            }
            frame[12] ^= 1;
            prop_assert_eq!(Message::parse(&frame), None, "another EtherType");
            prop_assert_eq!(Message::parse(&frame[..14]), None, "nothing behind it");
        }
    }
}
