//! What PortLand's switches and its fabric manager say to one another.
//!
//! The paper gives no formats. Here every message is an Ethernet frame of EtherType
//! [`PORTLAND`] whose payload is postcard's encoding (a published format: varints, fields in
//! order), padded to the Ethernet minimum. Nothing is sealed: PortLand has no trust to defend.

use crate::portland::plane::Location;
use alloc::vec::Vec;
use axon_wire::constants::ethertype::PORTLAND;
use axon_wire::link::{self, ETHERNET_BYTES, FRAME_BYTES_MIN};
use axon_wire::{MacAddr, PortNo};
use core::net::Ipv4Addr;
use serde::{Deserialize, Serialize};

/// Every message there is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// Link: a location discovery message.
    Ldm(Ldm),
    /// Switch to manager: what I am, and whom I see.
    Report(Report),
    /// Manager to switch: heard.
    ReportAck {
        /// Of the report.
        sequence: u32,
    },
    /// Manager to edge switch: this is where you are.
    Place(Place),
    /// Edge switch to manager: this host has this PMAC.
    Register(Register),
    /// Manager to edge switch: heard.
    RegisterAck {
        /// The host's own address.
        amac: MacAddr,
        /// As in the registration.
        pmac: MacAddr,
    },
    /// Edge switch to manager: one of my hosts asks for `ip`.
    ArpQuery {
        /// Whom it asks for.
        ip: Ipv4Addr,
        /// Who asks.
        from: Requester,
    },
    /// Manager to the requester's edge switch.
    ArpAnswer {
        /// Who was asked for.
        ip: Ipv4Addr,
        /// The PMAC that it has.
        pmac: MacAddr,
        /// Who asks.
        to: MacAddr,
    },
    /// Manager to all switches: nobody knows `ip`; ask all hosts.
    ArpBroadcast {
        /// Whom to ask for.
        ip: Ipv4Addr,
        /// Who asks.
        from: Requester,
    },
    /// Switch to manager: which way to this location?
    RouteQuery(Place),
    /// Manager to switch: these ways.
    Routes {
        /// To be acknowledged.
        sequence: u32,
        /// Each location with the ports on a shortest path to it; none if there is no path.
        entries: Vec<(Place, Vec<PortNo>)>,
    },
    /// Switch to manager: heard.
    RoutesAck {
        /// Of the routes.
        sequence: u32,
    },
    /// Manager to a host's former edge switch: it is elsewhere now.
    Moved {
        /// Its address.
        ip: Ipv4Addr,
        /// The PMAC that it had.
        old: MacAddr,
        /// The PMAC that it has.
        new: MacAddr,
    },
}

/// A location discovery message (paper §3.4): sent on every port at an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ldm {
    /// The sender's port.
    pub port: PortNo,
    /// Its level in the tree.
    pub level: Level,
    /// Its pod, if it knows.
    pub pod: Option<u16>,
    /// Its position in the pod, at an edge switch that knows.
    pub position: Option<u8>,
    /// Its way to the fabric manager, if it has one.
    pub way: Option<Way>,
    /// Whether that way begins with this link.
    pub towards_you: bool,
}

/// A switch's level in a fat tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Level {
    /// Not found out.
    #[default]
    Unknown,
    /// 0: hosts are here.
    Edge,
    /// 1: between edge and core.
    Aggregation,
    /// 2.
    Core,
    /// The fabric manager's: not a switch.
    Manager,
}

/// A way to the fabric manager: in-band control frames go along these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Way {
    /// The manager's address.
    pub manager: MacAddr,
    /// Which of its incarnations; later ones are greater.
    pub incarnation: u32,
    /// Whether it has found the network to be a fat tree.
    pub fat_tree: bool,
    /// Links to it.
    pub distance: u16,
    /// Differs when any link of the way differs.
    pub path: u32,
}

/// What a switch reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// To be acknowledged.
    pub sequence: u32,
    /// Which incarnation of the switch.
    pub incarnation: u32,
    /// Its level.
    pub level: Level,
    /// The location that the manager has assigned to it.
    pub place: Option<Place>,
    /// Its links: own port, neighbour, the neighbour's port.
    pub links: Vec<(PortNo, MacAddr, PortNo)>,
}

/// A [`Location`] in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// Its pod.
    pub pod: u16,
    /// Its position there.
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

/// A host as its edge switch knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Register {
    /// Its address.
    pub ip: Ipv4Addr,
    /// Its own MAC.
    pub amac: MacAddr,
    /// The PMAC that it was given.
    pub pmac: MacAddr,
}

/// Who asks for an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Requester {
    /// Its address.
    pub ip: Ipv4Addr,
    /// Its PMAC.
    pub pmac: MacAddr,
}

impl Message {
    /// The frame that carries it; no FCS.
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

    /// The link frame that carries it: no switch forwards it.
    pub fn emit_link(&self, from: MacAddr) -> Vec<u8> {
        self.emit(link::DESTINATION, from)
    }

    /// The message in a control frame, and who sent it; `None` for anything else.
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
