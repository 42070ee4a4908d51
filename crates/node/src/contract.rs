//! The contract between a node and its runtime: bytes in, actions out, time is an argument.
//!
//! A *node* is a switch or a controller. A *runtime* (the simulator, the Linux run loop) owns wires
//! and clocks: it feeds inputs and carries out actions. The runtime owns the wire and the plane
//! owns the queue, so scheduling is the same code everywhere.

use crate::command::{Command, Reply};
use crate::routes::RouteAnswer;
use crate::settings::{SettingError, SettingName};
use crate::store::StoreChange;
use alloc::boxed::Box;
use axon_wire::message::LinkEnd;
use axon_wire::{FrameBuf, MacAddr, NodeId, PortNo, PrioritySet, Time, TrafficClass};
use core::net::IpAddr;
use serde::{Deserialize, Serialize};

/// An input of a node from its runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// The head of a frame has arrived.
    Frame {
        /// The ingress port.
        port: PortNo,
        /// The frame without preamble and FCS.
        frame: FrameBuf,
        /// When its last byte arrives: later than now for cut-through, now otherwise.
        complete_at: Time,
        /// Whether its FCS is right. That is known with the last byte only, so a node does not act
        /// on it before `complete_at`. By then a frame that has left again carries the fault along,
        /// and one that is still here is dropped as [`Drop::BadFcs`] (thesis 000 §3.3.1).
        intact: bool,
    },
    /// The wire of a port is free for the next frame. One for each `Transmit`, except that
    /// none is owed, or should be sent, for a frame whose port has lost carrier since.
    TxDone {
        /// The port whose wire is free.
        port: PortNo,
    },
    /// The carrier of a port came or went. Ports start without carrier. Losing it frees the
    /// wire: a `TxDone` still owed for a frame on it must not be delivered any more.
    Link {
        /// The port whose carrier has changed.
        port: PortNo,
        /// Whether the port has carrier now.
        up: bool,
    },
    /// The deadline of the node has passed, or may have.
    Timeout,
    /// A command of an operator or the runtime, answered by [`Action::Reply`] before the call
    /// returns.
    Command(Command),
}

/// An action that a node requests of its runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Put this frame on the wire now; answer with `TxDone` when the wire is free again.
    /// A node never sends a second frame on a port before that answer, or a loss of carrier.
    Transmit {
        /// The egress port.
        port: PortNo,
        /// The frame without preamble and FCS.
        frame: FrameBuf,
        /// The earliest time at which its last byte may leave.
        complete_at: Time,
        /// Whether it ends in a valid FCS; otherwise in an invalid one.
        intact: bool,
    },
    /// A packet for the control plane. A whole node consumes these itself; a bare plane
    /// hands them out.
    Punt {
        /// The port it came in by.
        ingress: PortNo,
        /// An Axon packet, or for [`Punt::LinkLocal`] an Ethernet frame.
        frame: FrameBuf,
        /// Why it is here.
        punt: Punt,
        /// Bytes of its Axon header, as ingress has parsed or written it; 0 where it begins with an
        /// Ethernet header.
        header_bytes: u16,
    },
    /// A frame ended here. It comes back so that the runtime can reuse its memory.
    Dropped {
        /// The port it came in by.
        ingress: PortNo,
        /// Why; counted once in the node's counters.
        reason: Drop,
        /// What was dropped.
        frame: FrameBuf,
    },
    /// From a bare data plane to its control plane: what came of a change of a route table. A whole
    /// node consumes these itself.
    RouteChanged(RouteAnswer),
    /// From a bare data plane to its control plane: its tables and settings are lost, and changes
    /// that have no answer yet get none. A whole node consumes these itself.
    Lost,
    /// The answer to a command.
    Reply(Reply),
    /// From a controller: keep this for its next incarnation. It must be out of reach of a crash of
    /// the process before any frame leaves that this call has sent.
    Store(Box<StoreChange>),
    /// Something an operator may want to know.
    Note(Note),
}

/// Why a packet is handed to the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Punt {
    /// A host's frame without a route, broadcast included: an Axon packet of type Ethernet
    /// with no forward hop and the ingress port as its only reverse hop.
    Miss,
    /// Its route ended here at the control plane.
    Addressed,
    /// It could not be forwarded; its type is now Error.
    Error,
    /// An Ethernet frame to a link-local address, on any port, without Axon header.
    LinkLocal,
    /// An ether probe, as the Ethernet frame that came in by a host port.
    EtherProbe,
    /// An entry of a programmable data plane sends it to the control program.
    Trap,
}

impl Punt {
    /// All of them, in order.
    pub const ALL: &'static [Punt] =
        &[Punt::Miss, Punt::Addressed, Punt::Error, Punt::LinkLocal, Punt::EtherProbe, Punt::Trap];

    /// The name in counters, traces and results.
    pub const fn name(self) -> &'static str {
        match self {
            Punt::Miss => "miss",
            Punt::Addressed => "addressed",
            Punt::Error => "error",
            Punt::LinkLocal => "link_local",
            Punt::EtherProbe => "ether_probe",
            Punt::Trap => "trap",
        }
    }
}

macro_rules! reasons {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $reason:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[repr(u8)]
        pub enum $name { $($(#[$doc])* $reason,)* }

        impl $name {
            /// All of them, in order.
            pub const ALL: &'static [$name] = &[$($name::$reason,)*];

            /// The name in counters, traces and results.
            pub const fn name(self) -> &'static str {
                match self { $($name::$reason => $text,)* }
            }
        }
    };
}

reasons! {
    /// Why a frame ended inside a node. Closed: a new reason is a new line here.
    Drop {
        /// Too short to be Ethernet, or an Axon header that contradicts itself or has no
        /// room for another hop.
        Malformed = "malformed",
        /// Its FCS does not fit, and all of it was here before it could leave.
        BadFcs = "bad_fcs",
        /// Longer than a host may send or be sent.
        Oversized = "oversized",
        /// The buffer of this ingress at that egress is full; a lossless frame whose sender cannot
        /// be paused ends so too.
        QueueFull = "queue_full",
        /// A lossless frame found no headroom: its sender did not stop in time, or too little
        /// headroom was configured.
        HeadroomFull = "headroom_full",
        /// The marker of its queue chose it, and it cannot be marked.
        Ecn = "ecn",
        /// Its queue is in a storm of pauses, and the watchdog drops what waits there.
        Watchdog = "watchdog",
        /// The egress port has no carrier: its link is cut.
        PortDown = "port_down",
        /// It came in by a port before it was known what is at the other end, as at every start of
        /// a node or link.
        PortUnknown = "port_unknown",
        /// The next hop names a port that the switch does not have.
        NoSuchPort = "no_such_port",
        /// The frame has no room in front for its route.
        NoHeadroom = "no_headroom",
        /// More for the control plane than its port may send there.
        PuntLimit = "punt_limit",
        /// A MAC control frame (PAUSE) that this node does not act on.
        MacControl = "mac_control",
        /// Broadcast or multicast that no protocol here serves.
        Broadcast = "broadcast",
        /// Consumed by the control plane: the ordinary end of a control packet.
        Consumed = "consumed",
        /// The control plane could make nothing of it.
        Refused = "refused",
        /// Waited for a route that did not come, or found the waiting room full.
        NoRoute = "no_route",
        /// The egress port is no longer of the kind that the frame was made for.
        KindChanged = "kind_changed",
        /// A bridge's port is not forwarding, or not in the broadcast tree.
        Blocked = "blocked",
        /// A bridge has nowhere else to send it: what it is for is where it came from.
        Filtered = "filtered",
        /// It waited in a node whose power went.
        PowerLost = "power_lost",
        /// A congestion notification from a host, which has no congestion points: it would slow
        /// another host down.
        ForgedCnm = "forged_cnm",
        /// The Axon header of a packet from another node is longer than any route of the fabric
        /// needs.
        RouteTooLong = "route_too_long",
        /// A congestion notification for a host that has not sent enough to be sampled so often.
        CnmLimit = "cnm_limit",
        /// The egress port has carrier, but it is not known what is at its other end: a neighbour
        /// is silent, or a link has just come back.
        EgressUnknown = "egress_unknown",
        /// The kernel could neither forward it nor hand it to the node: no memory, no queue of the
        /// node's, or its port has sent more to the node than it may.
        NotDecided = "not_decided",
        /// An entry of a table drops such frames, or a port or interface of its group is not there.
        Denied = "denied",
        /// Its TTL or hop limit was 1 or 0 where it was to go on.
        TtlExpired = "ttl_expired",
        /// It is for a control program that has ended, or that does not take what it is sent.
        NoProgram = "no_program",
        /// The tags of a host's frame say a VLAN that its port is not in, or more than one.
        ForeignVlan = "foreign_vlan",
    }
}

impl Drop {
    /// The reasons for which frames end in normal operation.
    pub const ORDINARY: [Drop; 3] = [Drop::Consumed, Drop::MacControl, Drop::PortUnknown];

    /// Whether frames end so in normal operation, which no operator need look at: control packets
    /// that were taken, PAUSE frames, and what comes in by a port before it is known what is at its
    /// other end, as at every start of a node or link. What cannot leave by such a port is lost.
    pub const fn is_ordinary(self) -> bool {
        self.ordinary_index().is_some()
    }

    /// Its place in [`Drop::ORDINARY`], if it is there.
    pub(crate) const fn ordinary_index(self) -> Option<usize> {
        match self {
            Drop::Consumed => Some(0),
            Drop::MacControl => Some(1),
            Drop::PortUnknown => Some(2),
            _ => None,
        }
    }
}

reasons! {
    /// Why a control message was refused.
    Refusal {
        /// Not an envelope of this version, or no message inside.
        Malformed = "control_malformed",
        /// Wrong key, altered, or meant for another incarnation.
        BadSeal = "control_bad_seal",
        /// Received before, or older than the replay window.
        Replayed = "control_replayed",
        /// From an earlier incarnation of its sender.
        StaleIncarnation = "control_stale_incarnation",
        /// A source-routed control packet on a host port.
        FromHost = "control_from_host",
        /// A kind of message that has no business on this path or at this node.
        Misplaced = "control_misplaced",
        /// Answers no question asked, or names an unknown port or incarnation.
        Unexpected = "control_unexpected",
        /// The other end's hop width differs.
        HopWidth = "control_hop_width",
        /// Under a key that is not for such a message, or an answer that no grant of the controller
        /// covers.
        Unauthorised = "control_unauthorised",
        /// A switch or controller at a port that is pinned to hosts.
        PinnedPort = "control_pinned_port",
        /// A congestion message for hosts that have not sent enough since the last one.
        CongestionLimit = "control_congestion_limit",
    }
}

/// Something an operator may want to know, or a test to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Note {
    /// A neighbour finished its handshake, or its node was restarting and is back.
    NeighbourUp {
        /// The port that leads to it.
        port: PortNo,
        /// The neighbour.
        node: NodeId,
    },
    /// A neighbour is gone: carrier lost, heartbeats missed, or another took its place.
    NeighbourDown {
        /// The port that led to it.
        port: PortNo,
        /// The neighbour.
        node: NodeId,
    },
    /// The node of a neighbour is silent, and its data plane forwards: it stays a neighbour for a
    /// while.
    NeighbourRestarting {
        /// The port that leads to it.
        port: PortNo,
        /// The neighbour.
        node: NodeId,
    },
    /// The way to the controller was found, changed or lost.
    ControllerPath {
        /// Whether the controller can be reached now.
        reachable: bool,
    },
    /// A host was learned.
    HostUp {
        /// The port of the host.
        port: PortNo,
        /// The MAC of the host.
        mac: MacAddr,
    },
    /// A host has left, or no longer answers.
    HostDown {
        /// The port where the host was.
        port: PortNo,
        /// The MAC of the host.
        mac: MacAddr,
    },
    /// A route was installed in the table of this port.
    RouteSet {
        /// The host port.
        port: PortNo,
        /// The MAC that the route leads to.
        destination: MacAddr,
    },
    /// A route was removed.
    RouteRemoved {
        /// The host port.
        port: PortNo,
        /// The MAC that the route leads to.
        destination: MacAddr,
    },
    /// A congestion message has arrived: a full output dropped a frame of this host port.
    Congested {
        /// The host port.
        port: PortNo,
        /// The MAC of the switch whose output is full.
        switch: MacAddr,
        /// The port of that output.
        egress: PortNo,
    },
    /// The peer of this port has paused a queue for longer than the watchdog allows. The switch now
    /// ignores its pauses, or drops the frames of the queue.
    PauseStorm {
        /// The port.
        port: PortNo,
        /// The traffic class of the queue.
        class: TrafficClass,
    },
    /// The watchdog has restored a queue to normal operation.
    PauseStormOver {
        /// The port.
        port: PortNo,
        /// The traffic class of the queue.
        class: TrafficClass,
    },
    /// DCBX: another scheduling table is in force at a port.
    ClassesInForce {
        /// The port.
        port: PortNo,
        /// Whether the table is the peer's recommendation; otherwise it is the port's own.
        recommended: bool,
    },
    /// DCBX: another set of priorities of a port has PFC.
    PfcInForce {
        /// The port.
        port: PortNo,
        /// All priorities with PFC.
        pfc: PrioritySet,
    },
    /// LLDP: another defence of the congestion notification domain is in force at a port; the
    /// status shows it.
    DefenceInForce {
        /// The port.
        port: PortNo,
    },
    /// From a controller: the first of these ports of a bond leads to another partner than the
    /// second, and is not used as long as it does.
    BondMismatch([(NodeId, PortNo, axon_wire::lacp::Partner); 2]),
    /// DCBX: the two ends of a link have a new disagreement or error; the status shows it.
    DcbxTrouble {
        /// The port.
        port: PortNo,
    },
    /// A control message was refused.
    Refused {
        /// The ingress port.
        port: PortNo,
        /// The reason.
        refusal: Refusal,
    },
    /// The data plane has refused a setting of a port that it had not refused before; the status
    /// shows it as long as it is not made.
    SettingRefused {
        /// The port.
        port: PortNo,
        /// The name of the setting, without its value.
        setting: SettingName,
        /// What the data plane has answered to the whole setting.
        error: SettingError,
    },
    /// The data plane owes answers to more changes of routes than are remembered: it is to be
    /// re-synchronised, and until then the control plane forwards the frames of new flows.
    AnswersOwed {
        /// The number of them.
        count: u32,
    },
    /// From a controller: a switch, or the hosts at one port of it, have reported or requested more
    /// than one may; the rest is refused.
    SwitchOverBound {
        /// The switch.
        node: NodeId,
        /// The port whose bound is exceeded; `None` if it is that of the whole switch.
        port: Option<PortNo>,
    },
    /// From a controller: a port requests many hosts that it may not reach or that do not exist.
    Scan {
        /// The switch.
        node: NodeId,
        /// The port of the switch.
        port: PortNo,
        /// The MAC of the last request.
        mac: MacAddr,
        /// How many different hosts it has requested so, in the last minute at most.
        targets: u32,
    },
    /// In a fabric without a controller: a port leads elsewhere than the fabric file says. Its link
    /// is not used.
    Miscabled {
        /// The port.
        port: PortNo,
        /// Where the file has it lead; `None` if it has no link there.
        expected: Option<LinkEnd>,
        /// Where it leads.
        found: LinkEnd,
    },
    /// From a controller: a host was reported at a port where the policy does not admit it.
    HostMisplaced {
        /// The switch.
        node: NodeId,
        /// The port of the switch.
        port: PortNo,
        /// The MAC of the host.
        mac: MacAddr,
    },
    /// From a controller: two hosts use one address, and the first one keeps it.
    IpConflict {
        /// The address.
        ip: IpAddr,
        /// The host that has it: switch, port and MAC.
        holder: (NodeId, PortNo, MacAddr),
        /// The host that claims it.
        claimant: (NodeId, PortNo, MacAddr),
    },
}
