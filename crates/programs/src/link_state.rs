//! Link states: the set of dead ports of each node.
//!
//! Every program has the plan, so only deviations from it are reported. A port between nodes is
//! dead if it has no carrier, or has received no hello for a second. A node whose set of dead ports
//! changes numbers the new set and sends it to all its neighbours. A node that receives a set with
//! a higher number than its own copy stores it and forwards it to all its other neighbours. Numbers
//! wrap (RFC 1982), so there is no last number. A wrong set for a node therefore holds only until
//! that node receives it and gives its own set a higher number. Hellos carry a digest of all sets
//! of their sender. A neighbour with a different digest sends all its sets, which repairs lost
//! messages and lets a node catch up after an absence. A restarted node that receives an old set of
//! its own continues from that set's number.
//!
//! The protocol replaces the failure notifications of M. Al-Fares et al. (SIGCOMM 2008, §3.8), the
//! discovery and the fault matrix of PortLand (SIGCOMM 2009, §3.4 and §3.6), and the link-state
//! protocol that VL2 (SIGCOMM 2009, §4.2) presumes.
//!
//! | bytes | field                                          |
//! |-------|------------------------------------------------|
//! | 0-13  | Ethernet, to 01-80-C2-00-00-0E                 |
//! | 14    | version, 1                                     |
//! | 15    | 0: a hello, 1: a set                           |
//! | 16-23 | hello: the digest                              |
//! | 16-19 | set: number of the node in the plan            |
//! | 20-23 | set: its number                                |
//! | 24-25 | set: how many ports                            |
//! | 26-   | set: the ports, two bytes each                 |

use crate::live::Down;
use crate::site::{Neighbour, Site};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_node::random::Random;
use axon_pipeline::{Control, Received};
use axon_wire::constants::address::NEAREST_BRIDGE;
use axon_wire::constants::ethertype::PROBE;
use axon_wire::link::FRAME_BYTES_MIN;
use axon_wire::{MacAddr, PortNo, Span, Time};

/// Local experimental EtherType 2 (IEEE 802 clause 9.2.3), shared with ether probes, which are
/// recognised by their addresses.
pub(crate) const ETHERTYPE: u16 = PROBE;
/// Maximum number of ports of a node whose set still fits into a frame.
pub(crate) const PORTS_MAX: usize = 512;
/// Interval between two hellos.
pub(crate) const HELLO: Span = Span::from_millis(300);
/// Time without a hello after which a port is dead. It is also the grace period for ports at the
/// start.
pub(crate) const SILENCE: Span = Span::from_secs(1);

const VERSION: u8 = 1;
const KIND_HELLO: u8 = 0;
const KIND_SET: u8 = 1;
/// Number of bytes before the version.
const BEFORE: usize = 14;

/// Set of a node's dead ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    sequence: u32,
    down: BTreeSet<PortNo>,
}

/// Message between neighbouring switches.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Message {
    Hello { digest: u64 },
    Set { node: u32, state: State },
}

/// Port that leads to another node.
#[derive(Clone, Copy, Debug)]
struct Port {
    /// Time from which the port counts as dead unless a hello arrives.
    alive_until: Time,
    /// True if the port has had carrier since the start.
    has_been_up: bool,
}

/// Returns whether a set with number `one` is newer than one with number `other`, using serial
/// number arithmetic (RFC 1982 section 3.2). If the numbers are half the number space apart, which
/// the RFC leaves undefined, the larger one is newer.
fn is_newer(one: u32, other: u32) -> bool {
    const HALF: u32 = 1 << 31;
    let ahead = one.wrapping_sub(other);
    ahead != 0 && (ahead < HALF || (ahead == HALF && one > other))
}

/// Link-state database of one node.
#[derive(Clone, Debug)]
pub struct LinkStates {
    own: u32,
    nodes: u32,
    ports: BTreeMap<PortNo, Port>,
    states: BTreeMap<u32, State>,
    next_hello: Time,
}

impl LinkStates {
    /// Creates the database of a node that has just started, with all links up.
    pub(crate) fn new(site: &Site, now: Time) -> LinkStates {
        let nodes = site.ports().filter(|(_, there)| matches!(there, Neighbour::Node(..)));
        let port = Port { alive_until: now + SILENCE, has_been_up: false };
        LinkStates {
            own: site.node,
            nodes: site.plan.nodes.len() as u32,
            ports: nodes.map(|(number, _)| (number, port)).collect(),
            states: BTreeMap::new(),
            next_hello: now + HELLO,
        }
    }

    /// Returns all dead ports.
    pub fn down(&self) -> Down {
        let all = self.states.iter();
        all.flat_map(|(&node, state)| state.down.iter().map(move |&port| (node, port))).collect()
    }

    /// Processes a carrier change on one of the node's ports. Returns whether [`LinkStates::down`]
    /// has changed.
    pub(crate) fn link(
        &mut self,
        now: Time,
        port: PortNo,
        up: bool,
        control: &mut dyn Control,
    ) -> bool {
        let Some(state) = self.ports.get_mut(&port) else { return false };
        if up {
            *state = Port { alive_until: now + SILENCE, has_been_up: true };
            self.send_all(port, control);
        } else if state.has_been_up {
            state.alive_until = now;
        }
        self.update(now, control)
    }

    /// Processes a message from a neighbour. Returns whether [`LinkStates::down`] has changed.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        received: Received<'_>,
        control: &mut dyn Control,
    ) -> bool {
        let Received { ingress, frame } = received;
        let Some(port) = self.ports.get_mut(&ingress) else { return false };
        match Message::parse(frame) {
            Some(Message::Hello { digest }) => {
                port.alive_until = now + SILENCE;
                if digest != self.digest() {
                    self.send_all(ingress, control);
                }
                self.update(now, control)
            }
            Some(Message::Set { node, state }) => self.take(now, ingress, node, state, control),
            None => false,
        }
    }

    /// Processes timeouts. Returns whether [`LinkStates::down`] has changed.
    pub(crate) fn timeout(&mut self, now: Time, control: &mut dyn Control) -> bool {
        if now < self.next_hello {
            return false;
        }
        self.next_hello = now + HELLO;
        let hello = Message::Hello { digest: self.digest() }.emit(control.mac());
        self.flood(&hello, None, control);
        self.update(now, control)
    }

    /// Returns the time at which [`LinkStates::timeout`] is due next.
    pub(crate) fn deadline(&self) -> Time {
        self.next_hello
    }

    /// Stores and forwards a set that is newer than the known one.
    fn take(
        &mut self,
        now: Time,
        ingress: PortNo,
        node: u32,
        state: State,
        control: &mut dyn Control,
    ) -> bool {
        let known = self.states.get(&node);
        let is_news = known.is_none_or(|known| is_newer(state.sequence, known.sequence));
        if node >= self.nodes || !is_news {
            return false;
        }
        if node == self.own {
            // The set is from an earlier incarnation. A port may have become silent since the last
            // check.
            let own = self.states.entry(node).or_default();
            own.sequence = state.sequence;
            let before = core::mem::take(&mut own.down);
            let dead = self.dead(now);
            let has_changed = dead != before;
            self.report(dead, control);
            return has_changed;
        }
        let frame = Message::Set { node, state: state.clone() }.emit(control.mac());
        self.flood(&frame, Some(ingress), control);
        let has_changed = |before: Option<State>| before.unwrap_or_default().down != state.down;
        has_changed(self.states.insert(node, state.clone()))
    }

    /// Reports the dead ports of this node if they have changed.
    fn update(&mut self, now: Time, control: &mut dyn Control) -> bool {
        let dead = self.dead(now);
        let before = self.states.get(&self.own).map(|state| &state.down);
        if before.map_or(dead.is_empty(), |before| *before == dead) {
            return false;
        }
        self.report(dead, control);
        true
    }

    fn dead(&self, now: Time) -> BTreeSet<PortNo> {
        let dead = self.ports.iter().filter(|(_, port)| port.alive_until <= now);
        dead.map(|(&number, _)| number).collect()
    }

    fn report(&mut self, down: BTreeSet<PortNo>, control: &mut dyn Control) {
        let state = self.states.entry(self.own).or_default();
        *state = State { sequence: state.sequence.wrapping_add(1), down };
        let set = Message::Set { node: self.own, state: state.clone() };
        self.flood(&set.emit(control.mac()), None, control);
    }

    /// Returns a digest of all sets, which is equal for nodes with the same sets.
    fn digest(&self) -> u64 {
        let each = self.states.iter().map(|(&node, state)| {
            Random::new(u64::from(node) << 32 | u64::from(state.sequence)).next_u64()
        });
        each.fold(0, |all, one| all ^ one)
    }

    fn send_all(&self, port: PortNo, control: &mut dyn Control) {
        for (&node, state) in &self.states {
            let set = Message::Set { node, state: state.clone() };
            control.send_packet(port, &set.emit(control.mac()));
        }
    }

    fn flood(&self, frame: &[u8], but: Option<PortNo>, control: &mut dyn Control) {
        for &port in self.ports.keys().filter(|&&port| Some(port) != but) {
            if control.is_up(port) {
                control.send_packet(port, frame);
            }
        }
    }
}

impl Message {
    fn emit(&self, mac: MacAddr) -> Vec<u8> {
        let mut frame = Vec::with_capacity(FRAME_BYTES_MIN);
        frame.extend(NEAREST_BRIDGE.0);
        frame.extend(mac.0);
        frame.extend(ETHERTYPE.to_be_bytes());
        frame.push(VERSION);
        match self {
            Message::Hello { digest } => {
                frame.push(KIND_HELLO);
                frame.extend(digest.to_be_bytes());
            }
            Message::Set { node, state } => {
                let count = state.down.len().min(PORTS_MAX) as u16;
                frame.push(KIND_SET);
                frame.extend(node.to_be_bytes());
                frame.extend(state.sequence.to_be_bytes());
                frame.extend(count.to_be_bytes());
                let ports = state.down.iter().take(count.into());
                frame.extend(ports.flat_map(|port| port.0.to_be_bytes()));
            }
        }
        frame.resize(frame.len().max(FRAME_BYTES_MIN), 0);
        frame
    }

    fn parse(frame: &[u8]) -> Option<Message> {
        let is_ours = frame.starts_with(&NEAREST_BRIDGE.0)
            && frame.get(12..BEFORE) == Some(&ETHERTYPE.to_be_bytes());
        let rest = frame.get(BEFORE..).filter(|_| is_ours)?;
        let (&[version, kind], rest) = rest.split_first_chunk()?;
        match (version, kind) {
            (VERSION, KIND_HELLO) => {
                let digest = u64::from_be_bytes(*rest.first_chunk()?);
                Some(Message::Hello { digest })
            }
            (VERSION, KIND_SET) => {
                let (&node, rest) = rest.split_first_chunk()?;
                let (&sequence, rest) = rest.split_first_chunk()?;
                let (&count, rest) = rest.split_first_chunk()?;
                let count = usize::from(u16::from_be_bytes(count));
                let ports = rest.get(..2 * count).filter(|_| count <= PORTS_MAX)?.chunks_exact(2);
                let port = |bytes: &[u8]| PortNo(u16::from_be_bytes([bytes[0], bytes[1]]));
                let sequence = u32::from_be_bytes(sequence);
                let state = State { sequence, down: ports.map(port).collect() };
                Some(Message::Set { node: u32::from_be_bytes(node), state })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::sync::Arc;
    use axon_pipeline::{Change, ChangeError, Register, RegisterError};
    use proptest::prelude::*;

    /// Switch that does nothing.
    struct Idle;

    impl Control for Idle {
        fn commit(&mut self, _: &[Change]) -> Result<(), ChangeError> {
            Ok(())
        }

        fn read_register(&self, register: Register) -> Result<u64, RegisterError> {
            Err(RegisterError::ReadOnly(register))
        }

        fn write_register(&mut self, register: Register, _: u64) -> Result<(), RegisterError> {
            Err(RegisterError::ReadOnly(register))
        }

        fn send_packet(&mut self, _: PortNo, _: &[u8]) {}

        fn inject_packet(&mut self, _: Option<PortNo>, _: &[u8]) {}

        fn ports(&self) -> u16 {
            2
        }

        fn is_up(&self, _: PortNo) -> bool {
            true
        }

        fn mac(&self) -> MacAddr {
            MacAddr([2; 6])
        }
    }

    #[test]
    fn a_port_that_is_found_dead_by_an_old_set_of_the_own_node_changes_what_is_down() {
        let site = Site { plan: Arc::new(crate::plans::ring(3)), node: 0, seed: 0 };
        let mut states = LinkStates::new(&site, Time::ZERO);
        let ingress = *states.ports.keys().next().unwrap();
        let mut remind = |sequence, now| {
            let state = State { sequence, down: BTreeSet::new() };
            let frame = Message::Set { node: 0, state }.emit(MacAddr([4; 6]));
            let has_changed = states.receive(now, Received { ingress, frame: &frame }, &mut Idle);
            (has_changed, states.down().len())
        };
        assert_eq!(remind(7, Time::ZERO), (false, 0));
        assert_eq!(remind(9, Time::ZERO + SILENCE), (true, 2));
        assert_eq!(remind(20, Time::ZERO + SILENCE), (false, 2));
    }

    #[test]
    fn numbers_go_round_and_of_two_one_is_newer() {
        assert!(is_newer(1, 0) && is_newer(0, u32::MAX) && is_newer(7, u32::MAX - 7));
        assert!(!is_newer(5, 5) && !is_newer(u32::MAX, 0));
        assert!(is_newer(1 << 31, 0) && !is_newer(0, 1 << 31));
    }

    #[test]
    fn after_a_forged_set_with_the_last_number_a_node_is_still_believed() {
        let plan = Arc::new(crate::plans::ring(3));
        let states =
            |node| LinkStates::new(&Site { plan: plan.clone(), node, seed: 0 }, Time::ZERO);
        let (mut own, mut other) = (states(0), states(1));
        let ingress = PortNo(1);
        let take = |to: &mut LinkStates, state: &State| {
            let set = Message::Set { node: 0, state: state.clone() };
            let frame = set.emit(MacAddr([4; 6]));
            to.receive(Time::ZERO, Received { ingress, frame: &frame }, &mut Idle);
        };
        let forged = State { sequence: u32::MAX, down: [PortNo(1), PortNo(2)].into() };
        take(&mut other, &forged);
        assert_eq!(other.down().len(), 2, "links between switches are trusted");
        take(&mut own, &forged);
        take(&mut other, &own.states[&0].clone());
        assert_eq!(other.down(), Down::new(), "its own set is newer");
        own.link(Time::ZERO, PortNo(1), true, &mut Idle);
        own.link(Time::ZERO, PortNo(1), false, &mut Idle);
        take(&mut other, &own.states[&0].clone());
        assert_eq!(other.down(), Down::from([(0, PortNo(1))]), "and so is the next one");
        take(&mut other, &forged);
        assert_eq!(other.down().len(), 1, "the forged one is old");
    }

    proptest! {
        #[test]
        fn a_message_is_read_as_it_was_written_and_a_cut_one_is_not(
            sequence in any::<u32>(), node in any::<u32>(), digest in any::<u64>(),
            ports in proptest::collection::btree_set(any::<u16>(), 0..40), cut in 0_usize..100,
        ) {
            let state = State { sequence, down: ports.into_iter().map(PortNo).collect() };
            let needed = BEFORE + 12 + 2 * state.down.len();
            let messages =
                [(Message::Set { node, state }, needed), (Message::Hello { digest }, BEFORE + 10)];
            for (message, needed) in messages {
                let frame = message.emit(MacAddr([2, 0, 0, 0, 0, 1]));
                prop_assert!(frame.len() >= FRAME_BYTES_MIN);
                prop_assert_eq!(Message::parse(&frame), Some(message));
                prop_assert_eq!(Message::parse(&frame[..cut.min(needed - 1)]), None);
            }
        }
    }
}
