//! Discovery of the neighbour at each port (paper 001 §4.2.1, Axon-Discovery).
//!
//! A port with carrier sends Hello until it gets a Reply. The handshake is
//!
//! ```text
//!   A                                   B
//!   | Hello(challenge a)        ------> |  B holds the port unknown
//!   | <------ Reply(echo a, challenge b)|
//!   | Confirm(echo b)           ------> |  B: neighbour; Axon packets may go out
//!   | <------ Heartbeat(echo a)         |  A: neighbour; Axon packets may go out
//! ```
//!
//! and every later heartbeat returns the challenge of its receiver, which binds it to this
//! handshake. A node sends Axon packets only once the other end treats this port as an Axon port,
//! so no Axon packet is ever read as a host's frame.
//!
//! A neighbour is removed at once when carrier is lost, when two heartbeat intervals have passed
//! without a heartbeat (with half an interval of grace for jitter), or when another node replaces
//! it. A neighbour whose data plane still forwards while its node restarts is kept (`echo.rs`). If
//! a node's own timers are late, it was not scheduled, and its neighbours on the same machine may
//! not have been either. It then waits longer for each neighbour: by the delay of its timers, and
//! at most by the normal waiting time once more.
//!
//! A port without an answer becomes a host port. Hello continues there at a tenth of the rate, so a
//! port may change its kind at any time. A port pinned to hosts refuses every message and becomes a
//! host port without waiting for an answer. To limit the load of a flapping carrier, it does so at
//! most once in three Hello intervals, and not in the first three of the node. A port that receives
//! from a node without an answer to its own Hellos stays unknown, and no host is learned there. So
//! does a port whose neighbour was removed although its data plane outlived its node, until carrier
//! is lost or a node is received again.

mod echo;
mod echoes;
mod handshake;
mod link_down;
#[cfg(test)]
mod tests;

use crate::config::{NodeConfig, Timers};
use crate::effect::Effect;
use crate::seal::Opened;
use alloc::boxed::Box;
use alloc::vec::Vec;
use axon_node::random::Random;
use axon_node::{Note, PortKind, Refusal};
use axon_wire::message::{ControllerPath, Heartbeat, Hello, Message, Peer, PortState, Role};
use axon_wire::{HopWidth, Incarnation, PortNo, Span, Time};
use echoes::Echoes;

/// Number of unanswered Hellos before a port becomes a host port.
const HELLOS_BEFORE_HOST: u64 = 3;
/// Factor by which the Hello interval is longer on a host port.
const HOST_HELLO_FACTOR: u64 = 10;
/// Heartbeat intervals that a port stays unknown after a neighbour is lost or found; longer than
/// the other end takes to detect it.
const UNKNOWN_HEARTBEATS: u64 = 4;
/// Slow Hello intervals that a port stays unknown after a Hello. The sending node may receive
/// nothing, treat its port as a host port, and forward hosts' frames.
const UNKNOWN_SLOW_HELLOS: u64 = 3;

/// Link state of all ports of a node.
#[derive(Clone, Debug)]
pub struct Discovery {
    role: Role,
    hop_width: HopWidth,
    timers: Timers,
    random: Random,
    ports: Vec<Port>,
    /// Time when any port first had carrier. All ports of a node that starts wait from then.
    begun: Option<Time>,
    /// Path to the controller that is advertised in heartbeats.
    path: Option<ControllerPath>,
    /// Incremented with every change of a kind or neighbour.
    version: u64,
    /// Incremented when a neighbour comes, goes, or advertises another path.
    paths_version: u64,
    deadline: Option<Time>,
}

#[derive(Clone, Debug, Default)]
struct Port {
    up: bool,
    /// True if the port is pinned to hosts.
    pinned: bool,
    kind: PortKind,
    /// True if the data plane has it as an Axon port from the previous incarnation.
    inherited: bool,
    /// Challenge that the other end has to echo.
    challenge: u64,
    hello_at: Time,
    /// Time when the port becomes a host port unless it gets an answer.
    host_at: Time,
    /// Time when the port last became a host port.
    host_since: Option<Time>,
    /// Node that has not finished the handshake.
    pending: Option<Box<Neighbour>>,
    neighbour: Option<Box<Neighbour>>,
}

/// Node at the other end of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Node and incarnation.
    pub incarnation: Incarnation,
    /// The neighbour's port.
    pub port: PortNo,
    /// The neighbour's role.
    pub role: Role,
    /// The neighbour's path to the controller, from its last heartbeat.
    pub path: Option<ControllerPath>,
    challenge: u64,
    received_at: Time,
    /// Delay of this node's own timers since the last heartbeat, up to [`Discovery::patience`].
    excused: Span,
    heartbeat_at: Time,
    /// Echoes since the last heartbeat, if that is overdue.
    echoes: Option<Echoes>,
}

impl Discovery {
    /// Creates the state of `ports` ports without carrier, with hops of width `hop_width`.
    pub fn new(config: &NodeConfig, (ports, hop_width): (u16, HopWidth), role: Role) -> Discovery {
        let ports = (0..ports).map(|_| Port::default()).collect();
        Discovery {
            role,
            hop_width,
            timers: config.timers,
            random: Random::new(config.seed),
            ports,
            begun: None,
            path: None,
            version: 0,
            paths_version: 0,
            deadline: None,
        }
    }

    /// Pins a port to hosts, which refuses every handshake there. Call it before the port has
    /// carrier.
    pub fn pin(&mut self, port: PortNo) {
        if let Some(state) = self.ports.get_mut(port.index()) {
            state.pinned = true;
        }
    }

    /// Marks a port that the data plane has had as an Axon port since a previous incarnation. Call
    /// it before the port has carrier.
    pub fn inherit(&mut self, port: PortNo) {
        if let Some(state) = self.ports.get_mut(port.index()) {
            state.inherited = true;
        }
    }

    /// Returns a number that grows whenever [`Discovery::port_states`] changes.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns a number that grows whenever the paths of [`Discovery::neighbours`] may have
    /// changed.
    pub(crate) fn paths_version(&self) -> u64 {
        self.paths_version
    }

    /// Returns the neighbour on `port`, if the handshake is done.
    pub fn neighbour(&self, port: PortNo) -> Option<&Neighbour> {
        self.ports.get(port.index())?.neighbour.as_deref()
    }

    /// Returns all neighbours, by port.
    pub fn neighbours(&self) -> impl Iterator<Item = (PortNo, &Neighbour)> {
        numbered(&self.ports).filter_map(|(port, state)| Some((port, state.neighbour.as_deref()?)))
    }

    /// Returns the kind of a port.
    pub fn kind(&self, port: PortNo) -> PortKind {
        self.ports.get(port.index()).map_or(PortKind::Unknown, |state| state.kind)
    }

    /// Returns the ports whose peer is known, for a Controller Hello.
    pub fn port_states(&self) -> Vec<PortState> {
        numbered(&self.ports)
            .filter_map(|(port, state)| {
                let peer = match (&state.neighbour, state.kind) {
                    (Some(peer), _) => {
                        Peer::Axon { node: peer.incarnation.node, port: peer.port, role: peer.role }
                    }
                    (None, PortKind::Host) => Peer::Host,
                    (None, _) => return None,
                };
                Some(PortState { port, peer })
            })
            .collect()
    }

    /// Advertises a new path to the controller to all neighbours at once.
    pub fn advertise(
        &mut self,
        now: Time,
        path: Option<ControllerPath>,
        out: &mut Vec<impl From<Effect>>,
    ) {
        if self.path == path {
            return;
        }
        self.path = path;
        // Heartbeats sent now would hide how late the timers are.
        self.excuse(self.late(now));
        for index in 0..self.ports.len() {
            self.heartbeat(now, index, out);
        }
        self.find_deadline();
    }

    /// Handles a change of carrier.
    pub fn link(&mut self, now: Time, port: PortNo, up: bool, out: &mut Vec<impl From<Effect>>) {
        let Some(state) = self.ports.get_mut(port.index()) else {
            return;
        };
        if state.up == up {
            return;
        }
        state.up = up;
        self.report_lost(port.index(), out);
        self.lose_neighbour(port.index(), out);
        let hold = self.timers.hello * HELLOS_BEFORE_HOST;
        let begun = *self.begun.get_or_insert(now);
        let state = &self.ports[port.index()];
        let unknown = if state.pinned && now >= begun + hold {
            // A flapping carrier must not load the controller.
            state.host_since.map_or(Span::ZERO, |at| (at + hold).since(now))
        } else {
            hold
        };
        self.search(now, port.index(), unknown.ticks());
        self.set_kind(port.index(), PortKind::Unknown, out);
        self.timeout(now, out);
    }

    /// Handles a link message with a valid seal.
    pub fn message(
        &mut self,
        now: Time,
        port: PortNo,
        opened: &Opened,
        out: &mut Vec<impl From<Effect>>,
    ) {
        let index = port.index();
        if !self.ports.get(index).is_some_and(|state| state.up) {
            out.push(Effect::Refuse { port, refusal: Refusal::Unexpected }.into());
            return;
        }
        if self.ports[index].pinned {
            out.push(Effect::Refuse { port, refusal: Refusal::PinnedPort }.into());
            return;
        }
        let from = opened.from;
        let result = match (&opened.message, opened.addressed) {
            (Message::Hello(hello), false) => self.on_hello(now, index, from, hello, out),
            (Message::HelloReply(reply), true) => self.on_reply(now, index, from, reply, out),
            (Message::HelloConfirm(confirm), true) => {
                self.on_echo(now, index, from, confirm.echo, out).map(|_| ())
            }
            (Message::Heartbeat(beat), true) => self.on_heartbeat(now, index, from, beat, out),
            (&Message::LinkDown(news), true) => self.on_link_down(index, from, news, out),
            _ => Err(Refusal::Misplaced),
        };
        if let Err(refusal) = result {
            out.push(Effect::Refuse { port, refusal }.into());
        }
        self.find_deadline();
    }

    /// Handles expired timers.
    pub fn timeout(&mut self, now: Time, out: &mut Vec<impl From<Effect>>) {
        self.excuse(self.late(now));
        for index in 0..self.ports.len() {
            let state = &self.ports[index];
            if !state.up {
                continue;
            }
            if let Some(neighbour) = &state.neighbour {
                let (dead_at, echo_at) = (self.dead_at(neighbour), self.echo_at(neighbour));
                let beat_at = neighbour.heartbeat_at;
                if dead_at <= now {
                    // While its data plane may still send, frames from there are not a host's.
                    let forwards = neighbour.forwards();
                    self.report_lost(index, out);
                    self.lose_neighbour(index, out);
                    let hold = self.timers.heartbeat.ticks() * UNKNOWN_HEARTBEATS;
                    self.search(now, index, hold);
                    if forwards {
                        self.ports[index].host_at = Time::MAX;
                    }
                    self.set_kind(index, PortKind::Unknown, out);
                } else {
                    if beat_at <= now {
                        self.heartbeat(now, index, out);
                    }
                    if echo_at <= now {
                        self.echo(now, index, out);
                    }
                    self.note_restart(now, index, out);
                }
            }
            let state = &self.ports[index];
            if state.neighbour.is_none() {
                if state.host_at <= now {
                    self.no_answer(now, index, out);
                }
                if self.ports[index].hello_at <= now {
                    self.hello(now, index, out);
                }
            }
        }
        self.find_deadline();
    }

    /// Returns when [`Discovery::timeout`] is due next.
    pub fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    /// Restarts discovery on a port with a fresh challenge.
    fn search(&mut self, now: Time, index: usize, unknown_ticks: u64) {
        let challenge = self.random.next_u64();
        let state = &mut self.ports[index];
        state.pending = None;
        state.challenge = challenge;
        state.hello_at = now;
        state.host_at = now + Span::from_ticks(unknown_ticks);
    }

    /// Makes a port without an answer a host port. If the data plane still forwards on it as an
    /// Axon port, that stops first, and the other end gets the time to miss its echoes.
    fn no_answer(&mut self, now: Time, index: usize, out: &mut Vec<impl From<Effect>>) {
        let state = &mut self.ports[index];
        state.pending = None;
        if core::mem::take(&mut state.inherited) {
            let (port, kind) = (PortNo(index as u16), PortKind::Unknown);
            state.host_at = now + self.timers.heartbeat * UNKNOWN_HEARTBEATS;
            out.push(Effect::PortKind { port, kind }.into());
        } else if state.kind != PortKind::Host {
            state.host_since = Some(now);
            self.set_kind(index, PortKind::Host, out);
        }
    }

    fn lose_neighbour(&mut self, index: usize, out: &mut Vec<impl From<Effect>>) {
        if let Some(lost) = self.ports[index].neighbour.take() {
            self.version += 1;
            self.paths_version += 1;
            let port = PortNo(index as u16);
            out.push(
                Effect::Note(Note::NeighbourDown { port, node: lost.incarnation.node }).into(),
            );
        }
    }

    fn set_kind(&mut self, index: usize, kind: PortKind, out: &mut Vec<impl From<Effect>>) {
        let state = &mut self.ports[index];
        if state.kind != kind {
            (state.kind, state.inherited) = (kind, false);
            self.version += 1;
            out.push(Effect::PortKind { port: PortNo(index as u16), kind }.into());
        }
    }

    fn hello(&mut self, now: Time, index: usize, out: &mut Vec<impl From<Effect>>) {
        let state = &mut self.ports[index];
        let pace = if state.kind == PortKind::Host { HOST_HELLO_FACTOR } else { 1 };
        state.hello_at = now + self.timers.hello * pace;
        let hello = Hello {
            port: PortNo(index as u16),
            role: self.role,
            hop_width: self.hop_width,
            challenge: state.challenge,
        };
        let port = PortNo(index as u16);
        out.push(Effect::Link { port, to: None, message: Message::Hello(hello) }.into());
    }

    fn heartbeat(&mut self, now: Time, index: usize, out: &mut Vec<impl From<Effect>>) {
        let Some(neighbour) = self.ports[index].neighbour.as_deref_mut() else {
            return;
        };
        neighbour.heartbeat_at = now + self.timers.heartbeat;
        // A path through a neighbour is not advertised to it.
        let port = PortNo(index as u16);
        let path = self.path.clone().filter(|path| path.hops.first() != Some(&port));
        let beat = Heartbeat { echo: neighbour.challenge, path };
        send(out, index, neighbour.incarnation, Message::Heartbeat(beat));
    }

    /// Returns how long a port stays unknown after the last message of a handshake.
    fn met_hold(&self) -> Span {
        let slow = self.timers.hello * HOST_HELLO_FACTOR * UNKNOWN_SLOW_HELLOS;
        slow.max(self.timers.heartbeat * UNKNOWN_HEARTBEATS)
    }

    /// Returns the delay of the node's timers.
    fn late(&self, now: Time) -> Span {
        self.deadline.map_or(Span::ZERO, |due| now.since(due))
    }

    /// Extends the allowed silence of all neighbours by `late`.
    fn excuse(&mut self, late: Span) {
        let most = self.patience();
        for neighbour in self.ports.iter_mut().filter_map(|state| state.neighbour.as_deref_mut()) {
            neighbour.excused = (neighbour.excused + late).min(most);
        }
    }

    /// Returns the allowed silence of a neighbour.
    fn patience(&self) -> Span {
        Span::from_ticks(self.timers.heartbeat.ticks() * 5 / 2)
    }

    fn find_deadline(&mut self) {
        self.deadline = self
            .ports
            .iter()
            .filter(|state| state.up)
            .map(|state| match &state.neighbour {
                Some(neighbour) => {
                    let node_at = neighbour.heartbeat_at.min(self.dead_at(neighbour));
                    node_at.min(self.echo_at(neighbour))
                }
                None if state.kind == PortKind::Host => state.hello_at,
                None => state.hello_at.min(state.host_at),
            })
            .min();
    }
}

impl Neighbour {
    fn new(
        now: Time,
        incarnation: Incarnation,
        port: PortNo,
        role: Role,
        challenge: u64,
    ) -> Neighbour {
        Neighbour {
            incarnation,
            port,
            role,
            path: None,
            challenge,
            received_at: now,
            excused: Span::ZERO,
            heartbeat_at: now,
            echoes: None,
        }
    }
}

fn numbered(ports: &[Port]) -> impl Iterator<Item = (PortNo, &Port)> {
    ports.iter().enumerate().map(|(index, state)| (PortNo(index as u16), state))
}

fn send(out: &mut Vec<impl From<Effect>>, index: usize, to: Incarnation, message: Message) {
    out.push(Effect::Link { port: PortNo(index as u16), to: Some(to), message }.into());
}
