//! Messages between control planes, one type each.
//!
//! They are encoded by postcard (a published format: varints, fields in order; see `encoding.rs`)
//! and sealed in an [`Envelope`](crate::envelope::Envelope). The version of the envelope covers
//! them and rises with each change.

use crate::addr::{Incarnation, MacAddr, NodeId, PortNo};
use crate::constants::length::SEAL as SEAL_BYTES;
pub use crate::hello::{Hello, HelloConfirm, HelloReply, Role};
use crate::hops::Hops;
pub use crate::lacp::MemberState;
use crate::lacp::Partner;
use crate::route::Route;
pub use crate::route_path::{LinkEnd, RoutePath};
use alloc::vec::Vec;
use core::net::IpAddr;
use serde::{Deserialize, Serialize};

/// All messages between control planes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// Link: handshake step 1.
    Hello(Hello),
    /// Link: handshake step 2, the answer to Hello.
    HelloReply(HelloReply),
    /// Link: handshake step 3, the confirmation.
    HelloConfirm(HelloConfirm),
    /// Link: liveness, and the sender's path to the controller.
    Heartbeat(Heartbeat),
    /// Switch to controller: the full port state.
    ControllerHello(ControllerHello),
    /// Controller to switch: acknowledgement.
    ControllerHelloAck(ControllerHelloAck),
    /// Source switch to controller: a host resolves another host.
    ArpRequest(ArpRequest),
    /// Controller to target switch: install the routes and answer the source switch.
    ArpTarget(ArpTarget),
    /// Target switch to source switch: the route to the target host.
    ArpReply(ArpReply),
    /// Switch to controller: a host's DHCP frame.
    DhcpRelay(HostFrame),
    /// Controller to switch: an Ethernet frame to send to a host.
    HostFrame(HostFrame),
    /// Switch to controller or back: part of the reliable stream.
    Segment(Segment),
    /// Controller to switch: a query to its hosts for an address of no known host.
    Seek(Seek),
    /// Link: failure of a link between switches, flooded by every switch.
    LinkDown(LinkDown),
}

/// Heartbeat, sent every heartbeat interval on a link whose handshake is complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// The receiver's challenge, which ties the heartbeat to the current handshake.
    pub echo: u64,
    /// The sender's shortest verified path to the controller, if any.
    pub path: Option<ControllerPath>,
}

/// A path to the controller, from the control plane of the node that advertises it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControllerPath {
    /// The controller and its incarnation.
    pub controller: Incarnation,
    /// The hops, ending in [`PortNo::CONTROL`].
    pub hops: Hops,
}

/// Full port state of a switch; also verifies the path it travels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControllerHello {
    /// Version of the port state; grows with every change.
    pub version: u64,
    /// Nonce of this attempt; the acknowledgement returns it, which verifies the path.
    pub nonce: u64,
    /// Ports that are up; all others are down.
    pub ports: Vec<PortState>,
}

/// One port that is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortState {
    /// The port.
    pub port: PortNo,
    /// The peer at the other end.
    pub peer: Peer,
}

/// Peer at the other end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Peer {
    /// Hosts: there was no answer to Hello.
    Host,
    /// Another node, by its own claim.
    Axon {
        /// The identity of the neighbour.
        node: NodeId,
        /// The neighbour's port on this link.
        port: PortNo,
        /// The role of the neighbour, which determines whether it may be a transit hop.
        role: Role,
    },
}

/// Failure of a link between two switches, as seen by one of them. It is flooded, so that every
/// edge receives it before the controller has chosen new routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkDown {
    /// Both ends; the first is that of the switch that lost the link.
    pub ends: [LinkEnd; 2],
    /// Number of switches that may still forward the message.
    pub hops_left: u8,
}

/// Acknowledgement of a [`ControllerHello`], sent back along its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControllerHelloAck {
    /// The acknowledged version.
    pub version: u64,
    /// The acknowledged nonce.
    pub nonce: u64,
}

/// Target of a source host's resolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Target {
    /// An IP address, from the host's ARP request.
    Ip(IpAddr),
    /// A MAC address, from a frame that has no route (any more).
    Mac(MacAddr),
}

/// Phase I of Axon-ARP: request of the source switch to the controller (paper 001 §4.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArpRequest {
    /// The source switch's identifier of this reservation.
    pub id: u32,
    /// The port of the source host.
    pub port: PortNo,
    /// The source host.
    pub source_mac: MacAddr,
    /// The address of the source host, if its frame contained one.
    pub source_ip: Option<IpAddr>,
    /// The target.
    pub target: Target,
    /// For a target by MAC: the destination IP address of the frame, if it is an IP packet.
    pub hint: Option<IpAddr>,
}

/// Query to all hosts of a switch for an address. It is sent unreliably, since the source switch
/// repeats its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seek {
    /// The address.
    pub ip: IpAddr,
    /// A port of the switch that is not queried: its hosts have seen the original request.
    pub except: Option<PortNo>,
}

/// Phase II: the request as forwarded by the controller to the target switch, with routes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArpTarget {
    /// The reservation at the source switch.
    pub id: u32,
    /// The source switch.
    pub source_switch: Incarnation,
    /// The port of the source host at the source switch.
    pub source_port: PortNo,
    /// The source host.
    pub source_mac: MacAddr,
    /// The address of the source host, if known.
    pub source_ip: Option<IpAddr>,
    /// The port of the target host at the target switch.
    pub target_port: PortNo,
    /// The target host.
    pub target_mac: MacAddr,
    /// The address of the target host, if known; without one it is not queried again.
    pub target_ip: Option<IpAddr>,
    /// Order of the routes below among all routes for the same flows.
    pub stamp: Stamp,
    /// Route from the target switch to the source host.
    pub to_source: Route,
    /// True if `to_source` is for frames of the target host only.
    pub source_by_pair: bool,
    /// Route from the source switch to the target host.
    pub to_target: Route,
    /// True if `to_target` is for frames of the source host only.
    pub target_by_pair: bool,
    /// Hops from the target switch to the control plane of the source switch.
    pub answer_by: Hops,
    /// Authentication of the answer to the source switch.
    pub grant: Grant,
}

impl ArpTarget {
    /// Returns the answer that the target switch sends.
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

/// The controller's authentication of an [`ArpReply`] for one source switch. The target switch
/// forwards it and cannot create one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Sequence number in the nonce of the tag: one of the controller's, used for nothing else.
    pub sequence: u64,
    /// Authentication tag over the answer.
    pub tag: [u8; SEAL_BYTES],
}

/// Phase III: answer of the target switch to the source switch.
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
    /// The address of the target host, if known.
    pub target_ip: Option<IpAddr>,
    /// The stamp of the route.
    pub stamp: Stamp,
    /// Route from the source switch to the target host.
    pub to_target: Route,
    /// True if `to_target` is for frames of the source host only.
    pub target_by_pair: bool,
    /// The controller's authentication of the answer.
    pub grant: Grant,
}

/// Order of a controller's decisions on one route, regardless of their order of arrival.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Stamp {
    /// The incarnation of the controller.
    pub epoch: u64,
    /// Number of the decision; grows with every route that this controller decides.
    pub number: u64,
}

/// An Ethernet frame from or to a host port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFrame {
    /// The host port.
    pub port: PortNo,
    /// The whole frame, without FCS.
    pub frame: Vec<u8>,
}

/// Part of the reliable, ordered stream between an incarnation of a switch and one of a controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// The number of the first item; items count from 0 in each direction.
    pub first: u64,
    /// The number of the next item that the sender expects.
    pub ack: u64,
    /// Consecutive items; none in a bare acknowledgement.
    pub items: Vec<Item>,
}

/// Items of the reliable stream, delivered once and in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Item {
    /// Switch: a host is on this port (again), or has further addresses there.
    HostSeen {
        /// The host port.
        port: PortNo,
        /// The host.
        mac: MacAddr,
        /// Addresses of the host not reported before, newest last.
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
        /// The source MAC to which the route is limited; `None` for any source.
        source: Option<MacAddr>,
        /// Stamp of the decision; decisions with older stamps are ignored.
        stamp: Stamp,
        /// The route.
        route: Route,
    },
    /// Controller: there is no route any more. Switch: a route was unused for long and has been
    /// removed; the stamp is that of the route.
    RemoveRoute {
        /// The host port.
        port: PortNo,
        /// The destination MAC.
        destination: MacAddr,
        /// The source MAC to which the route is limited; `None` for any source.
        source: Option<MacAddr>,
        /// Stamp of the decision; decisions with older stamps are ignored.
        stamp: Stamp,
    },
    /// Controller: this host was on this port in the switch's last incarnation; the switch checks
    /// whether it still is.
    AskHost {
        /// The host port.
        port: PortNo,
        /// The host.
        mac: MacAddr,
        /// The address of the host.
        ip: IpAddr,
    },
    /// Controller: report the bytes sent by the ports at this interval, until another incarnation
    /// of a controller takes over.
    AskLoad {
        /// Interval between reports in milliseconds, above zero.
        every_ms: u32,
    },
    /// Switch: bytes sent by some of the ports since the last report.
    PortLoad {
        /// Microseconds since the last report.
        over_us: u64,
        /// The ports, in order.
        ports: Vec<PortBytes>,
    },
    /// Controller: frames take the backup route as soon as a link of this route is down.
    SetBackup {
        /// The host port.
        port: PortNo,
        /// The destination MAC.
        destination: MacAddr,
        /// The source MAC to which the route is limited; `None` for any source.
        source: Option<MacAddr>,
        /// The route protected by the backup; the backup is not used for any other route.
        primary: RoutePath,
        /// The backup; `None` removes it.
        backup: Option<RoutePath>,
    },
    /// Switch: a link of the route is down, and frames take its backup route now.
    BackupUsed {
        /// The host port.
        port: PortNo,
        /// The destination MAC.
        destination: MacAddr,
        /// The source MAC to which the route is limited; `None` for any source.
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
        /// True if the host is a member.
        joined: bool,
    },
    /// Switch: subscribes to the receivers of a group for a host that sends to it, now and with
    /// each change; or unsubscribes when the host has not sent for long.
    AskGroup {
        /// The host port.
        port: PortNo,
        /// The sending host.
        mac: MacAddr,
        /// The group; the IPv4 broadcast address for broadcasts.
        group: IpAddr,
        /// True if to subscribe.
        wanted: bool,
    },
    /// Controller: part of the list of receivers of a group for one sender. The list has one host
    /// for each port with members that the sender may reach.
    GroupHosts {
        /// The host port of the sender.
        port: PortNo,
        /// The sending host.
        mac: MacAddr,
        /// The group.
        group: IpAddr,
        /// Number of hosts in the preceding parts of the list.
        first: u16,
        /// True if more parts follow.
        more: bool,
        /// The hosts of this part, in the order of their MACs; at most 64.
        hosts: Vec<MacAddr>,
    },
    /// Switch: the state of a bond port (again).
    BondMember {
        /// The port.
        port: PortNo,
        /// The state of the port.
        state: MemberState,
        /// The port's partner, if known from LACP.
        partner: Option<Partner>,
        /// True if the port is selected, as last set by the controller.
        selected: bool,
    },
    /// Controller: whether a port belongs to its bond, that is, has the partner of the other ports.
    SelectMember {
        /// The port.
        port: PortNo,
        /// The partner that the selection is for; it has no effect with any other partner.
        partner: Partner,
        /// True if the port is selected.
        selected: bool,
    },
}

/// Bytes sent by a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortBytes {
    /// The port.
    pub port: PortNo,
    /// Bytes of frames, without FCS.
    pub bytes: u64,
}
