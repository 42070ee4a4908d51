//! Nodes in a line, the messages between them, and the invariants.

use crate::flight::Flight;
use axon_link::config::{NodeConfig, ServerIdentity, Timers};
use axon_link::discovery::Discovery;
use axon_link::effect::Effect;
use axon_link::seal::Opened;
use axon_wire::message::{self, Role};
use axon_wire::vlan::VlanId;
use axon_wire::{HopWidth, Incarnation, MacAddr, NodeId, PortNo, Time};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Ports that lead to the previous and to the next node.
const TOWARDS: [PortNo; 2] = [PortNo(0), PortNo(1)];
/// Maximum number of steps within which nodes without faults discover each other.
const STEPS_MAX: usize = 2_000;
/// Maximum number of heartbeats until a lost port is probed again, including a margin.
const TICKS_MAX: usize = 200;

/// Message in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "nearly all are frames")]
pub(super) enum Message {
    /// Link message to a port of a node, with its sender. The receiver is given too, unless the
    /// message is for any receiver.
    Frame {
        to: (usize, PortNo),
        from: Incarnation,
        seal: Option<Incarnation>,
        is: message::Message,
    },
    /// Return of the carrier at a port, which the node has yet to detect.
    Carrier { at: (usize, PortNo) },
}

impl Message {
    /// Returns the kind of the message, in words for a reader.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Message::Carrier { .. } => "carrier",
            Message::Frame { is: message::Message::Hello(_), .. } => "Hello",
            Message::Frame { is: message::Message::HelloReply(_), .. } => "HelloReply",
            Message::Frame { is: message::Message::HelloConfirm(_), .. } => "HelloConfirm",
            Message::Frame { is: message::Message::Heartbeat(_), .. } => "Heartbeat",
            Message::Frame { .. } => "another message",
        }
    }
}

/// Violated invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// A node has a neighbour that is not at the other end of the link.
    Neighbour,
    /// A node has an earlier incarnation as its neighbour after a later one.
    Older,
    /// A node has a neighbour that has never sent anything to this incarnation of the node.
    Unmet,
}

#[derive(Clone, Debug)]
struct End {
    incarnation: Incarnation,
    discovery: Discovery,
    /// Latest incarnation that was a neighbour, for each port.
    latest: BTreeMap<PortNo, u64>,
    /// Newest incarnation from which a message came, for each port.
    newest: BTreeMap<PortNo, u64>,
    /// Incarnations that have sealed a message for this one, for each port.
    met: BTreeMap<PortNo, Vec<u64>>,
}

/// Nodes connected in a line.
#[derive(Clone, Debug)]
pub(super) struct Line {
    now: Time,
    nodes: Vec<End>,
    flight: Flight<Message>,
    wrong: Option<Wrong>,
    opens_earlier: bool,
}

fn config(node: usize, number: u64) -> NodeConfig {
    let mac = MacAddr([2, 0, 0, 0, 0, node as u8]);
    NodeConfig {
        incarnation: Incarnation { node: NodeId(node as u64 + 1), number },
        mac,
        keys: [0; 32].into(),
        seed: number * 16 + node as u64,
        timers: Timers::default(),
        server: ServerIdentity { mac, ip: Ipv4Addr::new(10, 0, 0, 254) },
    }
}

impl End {
    fn new(node: usize, number: u64) -> End {
        let config = config(node, number);
        let ports = TOWARDS.len() as u16;
        End {
            incarnation: config.incarnation,
            discovery: Discovery::new(&config, (ports, HopWidth::Eight), Role::Switch),
            latest: BTreeMap::new(),
            newest: BTreeMap::new(),
            met: BTreeMap::new(),
        }
    }
}

impl Line {
    /// Creates nodes that have just started, with a carrier on all links.
    pub(super) fn new(nodes: usize, opens_earlier: bool) -> Line {
        let mut line = Line {
            now: Time::ZERO,
            nodes: (0..nodes).map(|node| End::new(node, 1)).collect(),
            flight: Flight::default(),
            wrong: None,
            opens_earlier,
        };
        (0..nodes).for_each(|node| line.start(node));
        line
    }

    pub(super) fn flight(&self) -> &Flight<Message> {
        &self.flight
    }

    pub(super) fn wrong(&self) -> Option<Wrong> {
        self.wrong
    }

    fn other_end(&self, (node, port): (usize, PortNo)) -> Option<(usize, PortNo)> {
        let [before, after] = TOWARDS;
        match port {
            _ if port == before => Some((node.checked_sub(1)?, after)),
            _ if node + 1 < self.nodes.len() => Some((node + 1, before)),
            _ => None,
        }
    }

    /// Signals to a node that its links have a carrier.
    fn start(&mut self, node: usize) {
        for port in TOWARDS {
            if self.other_end((node, port)).is_some() {
                self.with(node, |discovery, now, out| discovery.link(now, port, true, out));
            }
        }
    }

    fn with(&mut self, node: usize, call: impl FnOnce(&mut Discovery, Time, &mut Vec<Effect>)) {
        let mut out = Vec::new();
        let end = &mut self.nodes[node];
        call(&mut end.discovery, self.now, &mut out);
        let from = end.incarnation;
        for effect in out {
            if let Effect::Link { port, to: seal, message: is } = effect
                && let Some(to) = self.other_end((node, port))
            {
                self.flight.push(Message::Frame { to, from, seal, is });
            }
        }
        self.look(node);
    }

    /// Compares the neighbours that a node has with the topology.
    fn look(&mut self, node: usize) {
        for port in TOWARDS {
            let there = self.other_end((node, port));
            let end = &mut self.nodes[node];
            let Some(neighbour) = end.discovery.neighbour(port) else { continue };
            let found = neighbour.incarnation;
            let right = there.is_some_and(|(other, at)| {
                found.node == NodeId(other as u64 + 1) && neighbour.port == at
            });
            let latest = end.latest.entry(port).or_default();
            let met = end.met.get(&port).is_some_and(|met| met.contains(&found.number));
            let wrong = match () {
                () if !right => Wrong::Neighbour,
                () if found.number < *latest => Wrong::Older,
                () if !met => Wrong::Unmet,
                () => {
                    *latest = found.number;
                    continue;
                }
            };
            self.wrong.get_or_insert(wrong);
        }
    }

    pub(super) fn deliver(&mut self, at: usize) {
        let message = self.flight.take(at);
        self.arrive(message);
    }

    pub(super) fn lose(&mut self, at: usize) {
        self.flight.take(at);
    }

    pub(super) fn double(&mut self, at: usize) {
        let message = self.flight.copy(at);
        self.arrive(message);
    }

    fn arrive(&mut self, message: Message) {
        match message {
            Message::Carrier { at: (node, port) } => {
                self.with(node, |discovery, now, out| discovery.link(now, port, true, out));
            }
            Message::Frame { to: (node, port), from, seal, is } => {
                let end = &mut self.nodes[node];
                // A message sealed for another incarnation cannot be opened.
                if seal.is_some_and(|to| to != end.incarnation) {
                    return;
                }
                // Neither can a message from an incarnation before the newest one received
                // (replay.rs).
                let newest = end.newest.entry(port).or_default();
                if from.number < *newest && !self.opens_earlier {
                    return;
                }
                *newest = from.number.max(*newest);
                if seal.is_some() {
                    end.met.entry(port).or_default().push(from.number);
                    end.met.entry(port).or_default().sort_unstable();
                    end.met.entry(port).or_default().dedup();
                }
                let opened =
                    Opened { from, vlan: VlanId::NONE, message: is, addressed: seal.is_some() };
                self.with(node, |discovery, now, out| discovery.message(now, port, &opened, out));
            }
        }
    }

    pub(super) fn tick(&mut self) {
        let deadlines = self.nodes.iter().filter_map(|end| end.discovery.deadline());
        let Some(next) = deadlines.min() else { return };
        self.now = self.now.max(next);
        for node in 0..self.nodes.len() {
            let deadline = self.nodes[node].discovery.deadline();
            if deadline.is_some_and(|at| at <= self.now) {
                self.with(node, |discovery, now, out| discovery.timeout(now, out));
            }
        }
    }

    /// Takes away the carrier of a link and restores it. Each end detects this at its own time.
    pub(super) fn flap(&mut self, link: usize) {
        for at in [(link, TOWARDS[1]), (link + 1, TOWARDS[0])] {
            let (node, port) = at;
            self.with(node, |discovery, now, out| discovery.link(now, port, false, out));
            self.flight.push(Message::Carrier { at });
        }
    }

    pub(super) fn restart(&mut self, node: usize) {
        let number = self.nodes[node].incarnation.number + 1;
        self.nodes[node] = End::new(node, number);
        self.start(node);
    }

    /// Returns whether all nodes have discovered each other with their current incarnations.
    pub(super) fn is_met(&self) -> bool {
        let ends = (0..self.nodes.len()).flat_map(|node| TOWARDS.map(|port| (node, port)));
        ends.filter_map(|end| Some((end, self.other_end(end)?))).all(
            |((node, port), (other, at))| {
                let neighbour = self.nodes[node].discovery.neighbour(port);
                neighbour.is_some_and(|found| {
                    (found.incarnation, found.port) == (self.nodes[other].incarnation, at)
                })
            },
        )
    }

    /// Returns whether all nodes discover each other if there are no more losses.
    pub(super) fn settles(&self) -> bool {
        let mut line = self.clone();
        let mut ticks = 0;
        for _ in 0..STEPS_MAX {
            if !line.flight.is_empty() {
                line.deliver(0);
            } else if line.is_met() {
                return line.wrong.is_none();
            } else if ticks < TICKS_MAX {
                line.tick();
                ticks += 1;
            } else {
                return false;
            }
        }
        false
    }
}
