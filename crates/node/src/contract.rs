//! Contract between a node and its runtime: bytes in, actions out, time is an argument.
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
        /// Arrival time of its last byte: later than now for cut-through, now otherwise.
        complete_at: Time,
        /// True if its FCS is correct. That is known with the last byte only, so a node does not
        /// act on it before `complete_at`. A frame that has left by then carries the error along,
        /// and one that has not is dropped as [`Drop::BadFcs`] (thesis 000 §3.3.1).
        intact: bool,
    },
    /// The wire of a port is free for the next frame. One for each `Transmit`, except that none
    /// follows for a frame whose port has lost carrier since.
    TxDone {
        /// The port whose wire is free.
        port: PortNo,
    },
    /// The carrier of a port has changed. Ports start without carrier. Losing it frees the wire: a
    /// pending `TxDone` for a frame on it must not be delivered any more.
    Link {
        /// The port whose carrier has changed.
        port: PortNo,
        /// True if the port has carrier now.
        up: bool,
    },
    /// The deadline of the node has passed, or may have.
    Timeout,
    /// A command of an operator or the runtime, answered by [`Action::Reply`] before the call
    /// returns.
    Command(Command),
}

/// Action that a node requests of its runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Put this frame on the wire now; answer with `TxDone` when the wire is free again. A node
    /// never sends a second frame on a port before that answer, or a loss of carrier.
    Transmit {
        /// The egress port.
        port: PortNo,
        /// The frame without preamble and FCS.
        frame: FrameBuf,
        /// The earliest time at which its last byte may leave.
        complete_at: Time,
        /// True if the frame ends in a valid FCS; otherwise in an invalid one.
        intact: bool,
    },
    /// A packet for the control plane. A complete node consumes it itself; a bare plane outputs it.
    Punt {
        /// The ingress port.
        ingress: PortNo,
        /// An Axon packet, or for [`Punt::LinkLocal`] an Ethernet frame.
        frame: FrameBuf,
        /// The reason of the punt.
        punt: Punt,
        /// Bytes of its Axon header, as parsed or written at ingress; 0 where it begins with an
        /// Ethernet header.
        header_bytes: u16,
    },
    /// A frame was dropped or consumed. It is returned so that the runtime can reuse its memory.
    Dropped {
        /// The ingress port.
        ingress: PortNo,
        /// The reason; counted once in the node's counters.
        reason: Drop,
        /// The frame.
        frame: FrameBuf,
    },
    /// From a bare data plane to its control plane: result of a change of a route table. A complete
    /// node consumes it itself.
    RouteChanged(RouteAnswer),
    /// From a bare data plane to its control plane: its tables and settings are lost, and pending
    /// changes get no answer. A complete node consumes it itself.
    Lost,
    /// The answer to a command.
    Reply(Reply),
    /// From a controller: store this for its next incarnation. It must survive a crash of the
    /// process before any frame sent by this call leaves.
    Store(Box<StoreChange>),
    /// An event for operators.
    Note(Note),
}

/// Reason for which a packet is punted to the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Punt {
    /// A host's frame without a route, broadcast included: an Axon packet of type Ethernet with no
    /// forward hop and the ingress port as its only reverse hop.
    Miss,
    /// A packet whose route ended at this control plane.
    Addressed,
    /// A packet that could not be forwarded; its type is now Error.
    Error,
    /// An Ethernet frame to a link-local address, on any port, without Axon header.
    LinkLocal,
    /// An ether probe, as the Ethernet frame received on a host port.
    EtherProbe,
    /// A frame that an entry of a programmable data plane sends to the control program.
    Trap,
}

impl Punt {
    /// All reasons, in order.
    pub const ALL: &'static [Punt] =
        &[Punt::Miss, Punt::Addressed, Punt::Error, Punt::LinkLocal, Punt::EtherProbe, Punt::Trap];

    /// Returns the name in counters, traces and results.
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
            /// All reasons, in order.
            pub const ALL: &'static [$name] = &[$($name::$reason,)*];

            /// Returns the name in counters, traces and results.
            pub const fn name(self) -> &'static str {
                match self { $($name::$reason => $text,)* }
            }
        }
    };
}

reasons! {
    /// Reason for which a frame ended inside a node. Closed: new reasons are added here.
    Drop {
        /// Too short to be Ethernet, or an Axon header that is inconsistent or has no room for
        /// another hop.
        Malformed = "malformed",
        /// Wrong FCS, detected before the frame could leave.
        BadFcs = "bad_fcs",
        /// Longer than a frame from or to a host may be.
        Oversized = "oversized",
        /// The buffer of this ingress at that egress is full; also for a lossless frame whose
        /// sender cannot be paused.
        QueueFull = "queue_full",
        /// No headroom for a lossless frame: its sender was not paused in time, or too little
        /// headroom was configured.
        HeadroomFull = "headroom_full",
        /// Selected by the ECN marker of its queue, and not ECN-capable.
        Ecn = "ecn",
        /// The queue is in a storm of pauses, and the watchdog drops its frames.
        Watchdog = "watchdog",
        /// The egress port has no carrier: its link is cut.
        PortDown = "port_down",
        /// Received on a port before the kind of its peer was known, as at every start of a node or
        /// link.
        PortUnknown = "port_unknown",
        /// The next hop is a port that the switch does not have.
        NoSuchPort = "no_such_port",
        /// The frame has no room in front for its route.
        NoHeadroom = "no_headroom",
        /// Beyond the limit of punts from its port to the control plane.
        PuntLimit = "punt_limit",
        /// A MAC control frame (PAUSE) that this node does not act on.
        MacControl = "mac_control",
        /// Broadcast or multicast that no protocol here uses.
        Broadcast = "broadcast",
        /// Consumed by the control plane: the normal end of a control packet.
        Consumed = "consumed",
        /// Not understood by the control plane.
        Refused = "refused",
        /// Held for a route that did not come, or found the buffer for held frames full.
        NoRoute = "no_route",
        /// The egress port is no longer of the kind that the frame was made for.
        KindChanged = "kind_changed",
        /// A bridge's port is not forwarding, or not in the broadcast tree.
        Blocked = "blocked",
        /// A bridge's only port for the destination is the ingress port.
        Filtered = "filtered",
        /// Queued in a node that lost power.
        PowerLost = "power_lost",
        /// A congestion notification from a host, which has no congestion points: it would slow
        /// another host down.
        ForgedCnm = "forged_cnm",
        /// The Axon header of a packet from another node is longer than any route of the fabric
        /// needs.
        RouteTooLong = "route_too_long",
        /// A congestion notification for a host that has not sent enough for this sampling rate.
        CnmLimit = "cnm_limit",
        /// The egress port has carrier, but the kind of its peer is unknown: a neighbour is silent,
        /// or a link has just come back.
        EgressUnknown = "egress_unknown",
        /// The kernel could neither forward the frame nor pass it to the node: no memory, no queue
        /// of the node's, or its port has sent more to the node than it may.
        NotDecided = "not_decided",
        /// Dropped by an entry of a table, or a port or interface of its group does not exist.
        Denied = "denied",
        /// The TTL or hop limit was 1 or 0 where the frame was to be forwarded.
        TtlExpired = "ttl_expired",
        /// For a control program that has ended, or that does not accept packets.
        NoProgram = "no_program",
        /// A host's frame with a tag of a VLAN that its port is not in, or with several tags.
        ForeignVlan = "foreign_vlan",
    }
}

impl Drop {
    /// The reasons for which frames end in normal operation.
    pub(crate) const ORDINARY: [Drop; 3] = [Drop::Consumed, Drop::MacControl, Drop::PortUnknown];

    /// Returns whether frames end so in normal operation, which operators can ignore: consumed
    /// control packets, PAUSE frames, and frames received on a port before the kind of its peer was
    /// known, as at every start of a node or link. Frames that cannot leave by such a port count as
    /// lost.
    pub const fn is_ordinary(self) -> bool {
        self.ordinary_index().is_some()
    }

    /// Returns the index in [`Drop::ORDINARY`], if it is there.
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
    /// Reason for which a control message was refused.
    Refusal {
        /// Not an envelope of this version, or no message inside.
        Malformed = "control_malformed",
        /// Wrong key, altered, or for another incarnation.
        BadSeal = "control_bad_seal",
        /// Received before, or older than the replay window.
        Replayed = "control_replayed",
        /// From an earlier incarnation of its sender.
        StaleIncarnation = "control_stale_incarnation",
        /// A source-routed control packet on a host port.
        FromHost = "control_from_host",
        /// A kind of message not allowed on this path or at this node.
        Misplaced = "control_misplaced",
        /// Answers no pending request, or contains an unknown port or incarnation.
        Unexpected = "control_unexpected",
        /// The hop width of the other end differs.
        HopWidth = "control_hop_width",
        /// Sealed under a key that is not for such a message, or an answer that no grant of the
        /// controller covers.
        Unauthorised = "control_unauthorised",
        /// A switch or controller at a port that is pinned to hosts.
        PinnedPort = "control_pinned_port",
        /// A congestion message for hosts that have not sent enough since the last one.
        CongestionLimit = "control_congestion_limit",
    }
}

/// Event for operators, and for tests to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Note {
    /// A neighbour completed its handshake, or its node has restarted and is back.
    NeighbourUp {
        /// The port that leads to the neighbour.
        port: PortNo,
        /// The neighbour.
        node: NodeId,
    },
    /// A neighbour is gone: carrier lost, heartbeats missed, or another took its place.
    NeighbourDown {
        /// The port that led to the neighbour.
        port: PortNo,
        /// The neighbour.
        node: NodeId,
    },
    /// The node of a neighbour is silent, but its data plane forwards: it remains a neighbour for
    /// some time.
    NeighbourRestarting {
        /// The port that leads to the neighbour.
        port: PortNo,
        /// The neighbour.
        node: NodeId,
    },
    /// The path to the controller was found, changed or lost.
    ControllerPath {
        /// True if the controller can be reached now.
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
        /// The destination MAC of the route.
        destination: MacAddr,
    },
    /// A route was removed.
    RouteRemoved {
        /// The host port.
        port: PortNo,
        /// The destination MAC of the route.
        destination: MacAddr,
    },
    /// A congestion message was received: a full output dropped a frame of this host port.
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
    /// DCBX: another ETS table is in force at a port.
    ClassesInForce {
        /// The port.
        port: PortNo,
        /// True if the table is the peer's recommendation; otherwise it is the port's own.
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
    /// status contains it.
    DefenceInForce {
        /// The port.
        port: PortNo,
    },
    /// From a controller: the first of these ports of a bond has another partner than the second,
    /// and is not used meanwhile.
    BondMismatch([(NodeId, PortNo, axon_wire::lacp::Partner); 2]),
    /// DCBX: a new mismatch or error between the two ends of a link; the status contains it.
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
    /// The data plane has refused a setting of a port for the first time; the status contains it
    /// until it is made.
    SettingRefused {
        /// The port.
        port: PortNo,
        /// The name of the setting, without its value.
        setting: SettingName,
        /// The error for the whole setting.
        error: SettingError,
    },
    /// More changes of routes lack an answer of the data plane than are tracked: it is being
    /// re-synchronised, and until then the control plane forwards the frames of new flows.
    AnswersOwed {
        /// Number of changes without an answer.
        count: u32,
    },
    /// From a controller: a switch, or the hosts at one port of it, have reported or requested more
    /// than their limit; the rest is refused.
    SwitchOverBound {
        /// The switch.
        node: NodeId,
        /// The port whose limit is exceeded; `None` if it is that of the whole switch.
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
        /// Number of different hosts requested in this way, in the last minute at most.
        targets: u32,
    },
    /// In a fabric without a controller: the link of a port differs from the fabric file. It is not
    /// used.
    Miscabled {
        /// The port.
        port: PortNo,
        /// The other end by the fabric file; `None` if it has no link there.
        expected: Option<LinkEnd>,
        /// The other end found.
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
        /// The host that has the address: switch, port and MAC.
        holder: (NodeId, PortNo, MacAddr),
        /// The host that claims the address: switch, port and MAC.
        claimant: (NodeId, PortNo, MacAddr),
    },
}
