//! The messages between control planes, one type each.
//!
//! The bytes are postcard's (a published format: varints, fields in order), sealed in an
//! [`Envelope`](crate::envelope::Envelope) whose version covers them: a new one for each change.

use crate::addr::{Incarnation, MacAddr, NodeId, PortNo};
use crate::constants::length::SEAL as SEAL_BYTES;
pub use crate::hello::{Hello, HelloConfirm, HelloReply, Role};
use crate::hops::Hops;
pub use crate::lacp::MemberState;
use crate::lacp::Partner;
use crate::route::Route;
pub use crate::route_path::{LinkEnd, RoutePath};
use crate::vlan::VlanId;
use alloc::vec::Vec;
use core::net::IpAddr;
use serde::{Deserialize, Serialize};

/// Every message there is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// Link: is an Axon there?
    Hello(Hello),
    /// Link: yes; prove that you are alive.
    HelloReply(HelloReply),
    /// Link: I am; the link is ours.
    HelloConfirm(HelloConfirm),
    /// Link: still here, and this is my way to the controller.
    Heartbeat(Heartbeat),
    /// Switch to controller: all my ports.
    ControllerHello(ControllerHello),
    /// Controller to switch: acknowledgement.
    ControllerHelloAck(ControllerHelloAck),
    /// Source switch to controller: a host wants to reach another.
    ArpRequest(ArpRequest),
    /// Controller to target switch: set up your half, then answer the source switch.
    ArpTarget(ArpTarget),
    /// Target switch to source switch: set up yours.
    ArpReply(ArpReply),
    /// Switch to controller: a host's DHCP frame.
    DhcpRelay(HostFrame),
    /// Controller to switch: send this Ethernet frame to a host.
    HostFrame(HostFrame),
    /// Either way between switch and controller: part of the reliable stream.
    Segment(Segment),
    /// Controller to switch: ask your hosts for an address that nobody is known to have.
    Seek(Seek),
    /// Link: a link between switches has failed; every switch passes it on.
    LinkDown(LinkDown),
    /// A message about hosts of a VLAN. Those about hosts in none stand alone.
    Vlan {
        /// The VLAN, never none.
        vlan: VlanId,
        /// The message as bytes, which is not of this kind itself.
        message: Vec<u8>,
    },
}

impl Message {
    /// The message as bytes, ready to be sealed.
    pub fn encode(&self) -> Vec<u8> {
        postcard::to_allocvec(self).expect("a message in memory always encodes")
    }

    /// Reads a message that fills `bytes` exactly.
    ///
    /// # Errors
    /// `None` for bytes that are no message, or more than one.
    pub fn decode(bytes: &[u8]) -> Option<Message> {
        let (message, rest) = postcard::take_from_bytes(bytes).ok()?;
        rest.is_empty().then_some(message)
    }
}

/// Sent every heartbeat interval on a link whose handshake is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// The receiver's challenge: this belongs to the handshake it remembers.
    pub echo: u64,
    /// The sender's shortest verified path to the controller, if it has one.
    pub path: Option<ControllerPath>,
}

/// A path to the controller, from the control plane of the node that advertises it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControllerPath {
    /// Which controller, and which incarnation of it.
    pub controller: Incarnation,
    /// Ends in [`PortNo::CONTROL`].
    pub hops: Hops,
}

/// A switch's full port state; also proves the path it travels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControllerHello {
    /// Grows with every change of the state.
    pub version: u64,
    /// Which try this is; the acknowledgement returns it, which verifies the path.
    pub nonce: u64,
    /// Ports that are up; a port not named here is down.
    pub ports: Vec<PortState>,
}

/// One port that is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortState {
    /// The port.
    pub port: PortNo,
    /// What is on it.
    pub peer: Peer,
}

/// What is at the other end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Peer {
    /// Nobody answered Hello: hosts.
    Host,
    /// Another node, by its own word.
    Axon {
        /// The neighbour.
        node: NodeId,
        /// Its port on this link.
        port: PortNo,
        /// Whether it may be a transit hop.
        role: Role,
    },
}

/// A link between two switches that one of them has lost. It is flooded, so that every edge knows
/// it before the controller has chosen new routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkDown {
    /// Both ends; first that of the switch that has lost the link.
    pub ends: [LinkEnd; 2],
    /// How many switches may still pass it on.
    pub hops_left: u8,
}

/// Acknowledges a [`ControllerHello`], along the way it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControllerHelloAck {
    /// The version that is acknowledged.
    pub version: u64,
    /// The nonce that is acknowledged.
    pub nonce: u64,
}

/// What the source host is looking for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Target {
    /// By address, from its ARP request.
    Ip(IpAddr),
    /// By MAC, from a frame whose route is not there (any more).
    Mac(MacAddr),
}

/// Phase I of Axon-ARP: the source switch asks the controller (paper 001 §4.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArpRequest {
    /// The source switch's name for this reservation.
    pub id: u32,
    /// The port of the source host.
    pub port: PortNo,
    /// The source host.
    pub source_mac: MacAddr,
    /// Its address, if the host's frame contained it.
    pub source_ip: Option<IpAddr>,
    /// Whom it looks for.
    pub target: Target,
    /// Of a target by MAC: the IP address that the frame is for, if it is an IP packet.
    pub hint: Option<IpAddr>,
}

/// A question for all hosts of a switch: who has this address? A datagram, for whoever waits for
/// the answer repeats its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seek {
    /// The address.
    pub ip: IpAddr,
    /// A port of the switch where nobody is asked: its hosts have heard the question.
    pub except: Option<PortNo>,
}

/// Phase II: the controller sends the request on to the target switch, routes attached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArpTarget {
    /// The reservation at the source switch.
    pub id: u32,
    /// The source switch.
    pub source_switch: Incarnation,
    /// The port of the source host there.
    pub source_port: PortNo,
    /// The source host.
    pub source_mac: MacAddr,
    /// Its address, if known.
    pub source_ip: Option<IpAddr>,
    /// The port of the target host, here.
    pub target_port: PortNo,
    /// The target host.
    pub target_mac: MacAddr,
    /// Its address, if known; without one it is not asked again.
    pub target_ip: Option<IpAddr>,
    /// Orders the routes below among all routes for the same flows.
    pub stamp: Stamp,
    /// From the target switch to the source host.
    pub to_source: Route,
    /// Whether that route is for frames of the target host only.
    pub source_by_pair: bool,
    /// From the source switch to the target host.
    pub to_target: Route,
    /// Whether that route is for frames of the source host only.
    pub target_by_pair: bool,
    /// From the target switch to the control plane of the source switch.
    pub answer_by: Hops,
    /// Of the answer, for the source switch.
    pub grant: Grant,
}

impl ArpTarget {
    /// What the target switch answers.
    pub fn reply(&self) -> ArpReply {
        ArpReply {
            id: self.id,
            source_port: self.source_port,
            source_mac: self.source_mac,
            target_mac: self.target_mac,
            target_ip: self.target_ip,
            stamp: self.stamp,
            to_target: self.to_target.clone(),
            target_by_pair: self.target_by_pair,
            grant: self.grant,
        }
    }
}

/// The controller's proof that an [`ArpReply`] is its own word, for the source switch alone. The
/// target switch passes it on and cannot make one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The sequence number in the nonce of the tag: one of the controller's, used for nothing else.
    pub sequence: u64,
    /// The tag over the answer.
    pub tag: [u8; SEAL_BYTES],
}

/// Phase III: the target switch answers the source switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArpReply {
    /// The reservation at the source switch.
    pub id: u32,
    /// The port of the source host.
    pub source_port: PortNo,
    /// The source host.
    pub source_mac: MacAddr,
    /// The target host.
    pub target_mac: MacAddr,
    /// Its address, if known.
    pub target_ip: Option<IpAddr>,
    /// The stamp of the route.
    pub stamp: Stamp,
    /// From the source switch to the target host.
    pub to_target: Route,
    /// Whether that route is for frames of the source host only.
    pub target_by_pair: bool,
    /// The controller's proof of all that.
    pub grant: Grant,
}

/// Orders a controller's decisions on one route, in whatever order they arrive.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Stamp {
    /// The incarnation of the controller.
    pub epoch: u64,
    /// Grows with every route that this controller decides.
    pub number: u64,
}

/// An Ethernet frame from or to a host port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFrame {
    /// The host port.
    pub port: PortNo,
    /// The whole frame, no FCS.
    pub frame: Vec<u8>,
}

/// Part of the reliable, ordered stream between a switch's incarnation and a controller's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// The number of the first item; items count from 0 in each direction.
    pub first: u64,
    /// The number of the next item that the sender waits for.
    pub ack: u64,
    /// Consecutive items; none in a bare acknowledgement.
    pub items: Vec<Item>,
}

/// What must arrive, once and in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Item {
    /// Switch: a host is on this port (again), or has more addresses there.
    HostSeen {
        /// The host port.
        port: PortNo,
        /// The host.
        mac: MacAddr,
        /// Its addresses that were not reported yet, newest last.
        ips: Vec<IpAddr>,
    },
    /// Switch: a host has left, or no longer answers.
    HostGone {
        /// The host port it was on.
        port: PortNo,
        /// The host.
        mac: MacAddr,
    },
    /// Controller: frames from this port to `destination` take this route from now on.
    SetRoute {
        /// The host port.
        port: PortNo,
        /// The destination MAC.
        destination: MacAddr,
        /// Frames of this source only; `None`: of any.
        source: Option<MacAddr>,
        /// Older stamps no longer count.
        stamp: Stamp,
        /// The route.
        route: Route,
    },
    /// Controller: there is no route any more. Switch: no frame has taken this route for long, and
    /// it was removed; the stamp is that of the route.
    RemoveRoute {
        /// The host port.
        port: PortNo,
        /// The destination MAC.
        destination: MacAddr,
        /// Frames of this source only; `None`: of any.
        source: Option<MacAddr>,
        /// Older stamps no longer count.
        stamp: Stamp,
    },
    /// Controller: in your last incarnation this host was on this port; ask whether it still is.
    AskHost {
        /// The host port.
        port: PortNo,
        /// The host.
        mac: MacAddr,
        /// Its address.
        ip: IpAddr,
    },
    /// Controller: say every so often what your ports have sent, until a controller with
    /// another incarnation comes.
    AskLoad {
        /// Milliseconds from one report to the next; above zero.
        every_ms: u32,
    },
    /// Switch: what some of the ports have sent since the last report.
    PortLoad {
        /// Microseconds since then.
        over_us: u64,
        /// The ports, in order.
        ports: Vec<PortBytes>,
    },
    /// Controller: as soon as a link of this route is down, frames take the backup route.
    SetBackup {
        /// The host port.
        port: PortNo,
        /// The destination MAC.
        destination: MacAddr,
        /// Frames of this source only; `None`: of any.
        source: Option<MacAddr>,
        /// The route that the backup is for; with any other route it is of no use.
        primary: RoutePath,
        /// The backup; `None` if there is none any more.
        backup: Option<RoutePath>,
    },
    /// Switch: a link of the route was down, and frames take its backup route now.
    BackupUsed {
        /// The host port.
        port: PortNo,
        /// The destination MAC.
        destination: MacAddr,
        /// Frames of this source only; `None`: of any.
        source: Option<MacAddr>,
        /// The stamp of the decision that the backup belongs to.
        stamp: Stamp,
        /// The backup route.
        route: Route,
    },
    /// Switch: a host is a member of a group (again), or no longer.
    GroupMember {
        /// The host port.
        port: PortNo,
        /// The host.
        mac: MacAddr,
        /// The group.
        group: IpAddr,
        /// Whether it is a member now.
        joined: bool,
    },
    /// Switch: a host sends to a group; say who is to have it, now and with each change. Or: it
    /// has not sent for long, and nothing is to be said of it any more.
    AskGroup {
        /// The host port.
        port: PortNo,
        /// The host that sends.
        mac: MacAddr,
        /// The group; the IPv4 broadcast address for broadcasts.
        group: IpAddr,
        /// Whether it is to be said.
        wanted: bool,
    },
    /// Controller: a part of the list of hosts that are to have what a host sends to a group. There
    /// is one host for each port with members that the sender may reach.
    GroupHosts {
        /// The host port of the sender.
        port: PortNo,
        /// The host that sends.
        mac: MacAddr,
        /// The group.
        group: IpAddr,
        /// How many hosts of the list came in parts before this one.
        first: u16,
        /// Whether parts follow.
        more: bool,
        /// The hosts of this part, in the order of their MACs; at most 64.
        hosts: Vec<MacAddr>,
    },
    /// Either: an item about hosts of a VLAN. Those about hosts in none stand alone.
    Vlan {
        /// The VLAN, never none.
        vlan: VlanId,
        /// The item as bytes, which is not of this kind itself.
        item: Vec<u8>,
    },
    /// Switch: the state of a port of a bond (again).
    BondMember {
        /// The port.
        port: PortNo,
        /// Its state.
        state: MemberState,
        /// Whom it leads to, if LACP has shown it.
        partner: Option<Partner>,
        /// Whether it is selected, as the controller has said last.
        selected: bool,
    },
    /// Controller: whether a port is one of its bond, that is, leads where the others do.
    SelectMember {
        /// The port.
        port: PortNo,
        /// The partner that this is said of; with any other one it is of no use.
        partner: Partner,
        /// Whether it is.
        selected: bool,
    },
}

/// What a port has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortBytes {
    /// The port.
    pub port: PortNo,
    /// Bytes of frames, without FCS.
    pub bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_survives_its_bytes_and_nothing_may_follow_it() {
        let message = Message::Heartbeat(Heartbeat {
            echo: 5,
            path: Some(ControllerPath {
                controller: Incarnation { node: NodeId(1), number: 2 },
                hops: Hops::from([3, PortNo::CONTROL.0]),
            }),
        });
        let mut bytes = message.encode();
        assert_eq!(Message::decode(&bytes), Some(message));
        bytes.push(0);
        assert_eq!(Message::decode(&bytes), None);
        assert_eq!(Message::decode(&[0xff; 40]), None);
    }
}
