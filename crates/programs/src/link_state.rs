//! Link states: which ports of which nodes have lost their carrier.
//!
//! In plain English: every program has the plan, so only what deviates from it is reported. A node
//! whose set of dead ports changes numbers the new set and sends it to all its neighbours; whoever
//! gets a set with a higher number than it knows keeps it and passes it on to all its other
//! neighbours. A link that comes up gets all sets that are known at its ends, so a node that was
//! away catches up. While something is down, and three times after, a node sends its set again each
//! second with a new number: a message that was lost is made good. A node that has restarted and is
//! reminded of an old set of its own goes on from that set's number. In a whole network no message
//! is sent at all.
//!
//! It stands for the failure notifications of M. Al-Fares et al. (SIGCOMM 2008, §3.8), the fault
//! matrix of PortLand's fabric manager (SIGCOMM 2009, §3.6) and the link-state protocol that VL2
//! (SIGCOMM 2009, §4.2) presumes.
//!
//! | bytes | field                                    |
//! |-------|------------------------------------------|
//! | 0-13  | Ethernet, to 01-80-C2-00-00-0E           |
//! | 14    | version, 1                               |
//! | 15-18 | number of the node in the plan           |
//! | 19-22 | number of the set                        |
//! | 23-24 | how many ports                           |
//! | 25-   | the ports, two bytes each                |

use crate::live::Down;
use crate::site::{Neighbour, Site};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_pipeline::{Control, Received};
use axon_wire::constants::address::NEAREST_BRIDGE;
use axon_wire::constants::ethertype::PROBE;
use axon_wire::link::FRAME_BYTES_MIN;
use axon_wire::{MacAddr, PortNo, Span, Time};

/// Local experimental 2 (IEEE 802 clause 9.2.3), which ether probes have too: those are recognised
/// by their addresses.
pub const ETHERTYPE: u16 = PROBE;
/// The most ports of a node, so that a set fits into a frame.
pub const PORTS_MAX: usize = 512;

const VERSION: u8 = 1;
/// Bytes before the version.
const BEFORE: usize = 14;
/// How long after the start a port may be without carrier before that is reported.
const GRACE: Span = Span::from_secs(1);
/// Between two reports of the same set.
const REFRESH: Span = Span::from_secs(1);
/// Reports of an empty set after a change.
const REPEATS: u8 = 3;

/// A set of dead ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    sequence: u32,
    down: BTreeSet<PortNo>,
}

/// What one node knows.
#[derive(Clone, Debug)]
pub struct LinkStates {
    own: u32,
    /// Ports that lead to another node, and whether they have carrier; `None` if they never had.
    carrier: BTreeMap<PortNo, Option<bool>>,
    states: BTreeMap<u32, State>,
    nodes: u32,
    refreshes: u8,
    deadline: Option<Time>,
    is_past_grace: bool,
}

impl LinkStates {
    /// A node that has just started.
    pub fn new(site: &Site, now: Time) -> LinkStates {
        let nodes = site.ports().filter(|(_, there)| matches!(there, Neighbour::Node(..)));
        LinkStates {
            own: site.node,
            carrier: nodes.map(|(port, _)| (port, None)).collect(),
            states: BTreeMap::new(),
            nodes: site.plan.nodes.len() as u32,
            refreshes: 0,
            deadline: Some(now + GRACE),
            is_past_grace: false,
        }
    }

    /// All ports that are down.
    pub fn down(&self) -> Down {
        let all = self.states.iter();
        all.flat_map(|(&node, state)| state.down.iter().map(move |&port| (node, port))).collect()
    }

    /// The carrier of an own port came or went. Answers whether [`LinkStates::down`] has changed.
    pub fn link(&mut self, now: Time, port: PortNo, up: bool, control: &mut dyn Control) -> bool {
        let Some(carrier) = self.carrier.get_mut(&port) else { return false };
        // A port without carrier at the start has not lost it.
        if up || carrier.is_some() {
            *carrier = Some(up);
        }
        if up {
            let mac = control.mac();
            for (&node, state) in self.states.iter().filter(|(node, _)| **node != self.own) {
                control.send_packet(port, &emit(node, state, mac));
            }
        }
        let before = self.own_down().cloned().unwrap_or_default();
        let down = self.dead();
        if down == before {
            if up && let Some(state) = self.states.get(&self.own) {
                control.send_packet(port, &emit(self.own, state, control.mac()));
            }
            return false;
        }
        self.refreshes = REPEATS;
        self.report(now, down, control);
        true
    }

    /// Takes a message of a neighbour; answers whether [`LinkStates::down`] has changed.
    pub fn receive(
        &mut self,
        now: Time,
        received: Received<'_>,
        control: &mut dyn Control,
    ) -> bool {
        let is_neighbour = self.carrier.contains_key(&received.ingress);
        let Some((node, state)) = parse(received.frame).filter(|_| is_neighbour) else {
            return false;
        };
        let known = self.states.get(&node).map_or(0, |state| state.sequence);
        if node >= self.nodes || state.sequence <= known {
            return false;
        }
        if node == self.own {
            // Of an earlier incarnation.
            self.states.entry(node).or_default().sequence = state.sequence;
            self.refreshes = REPEATS;
            let down = self.dead();
            self.report(now, down, control);
            return false;
        }
        let frame = emit(node, &state, control.mac());
        self.flood(&frame, Some(received.ingress), control);
        let before = self.states.insert(node, state);
        before.map_or(BTreeSet::new(), |state| state.down) != self.states[&node].down
    }

    /// The deadline has passed, or may have; answers whether [`LinkStates::down`] has changed.
    pub fn timeout(&mut self, now: Time, control: &mut dyn Control) -> bool {
        if self.deadline.is_none_or(|deadline| deadline > now) {
            return false;
        }
        self.deadline = None;
        self.is_past_grace = true;
        let down = self.dead();
        let before = self.own_down().cloned().unwrap_or_default();
        let has_changed = down != before;
        if has_changed {
            self.refreshes = REPEATS;
        }
        if has_changed || !down.is_empty() || self.refreshes > 0 {
            if down.is_empty() {
                self.refreshes = self.refreshes.saturating_sub(1);
            }
            self.report(now, down, control);
        }
        has_changed
    }

    /// When to call [`LinkStates::timeout`] next.
    pub fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    fn own_down(&self) -> Option<&BTreeSet<PortNo>> {
        self.states.get(&self.own).map(|state| &state.down)
    }

    /// Own ports that are to be reported.
    fn dead(&self) -> BTreeSet<PortNo> {
        let is_dead = |carrier: &Option<bool>| match carrier {
            Some(up) => !up,
            None => self.is_past_grace,
        };
        let dead = self.carrier.iter().filter(|(_, carrier)| is_dead(carrier));
        dead.map(|(&port, _)| port).collect()
    }

    fn report(&mut self, now: Time, down: BTreeSet<PortNo>, control: &mut dyn Control) {
        let state = self.states.entry(self.own).or_default();
        *state = State { sequence: state.sequence.saturating_add(1), down };
        let is_again = !state.down.is_empty() || self.refreshes > 0;
        let frame = emit(self.own, state, control.mac());
        self.flood(&frame, None, control);
        if is_again {
            let refresh = now + REFRESH;
            self.deadline = Some(self.deadline.map_or(refresh, |at| at.min(refresh)));
        }
    }

    fn flood(&self, frame: &[u8], but: Option<PortNo>, control: &mut dyn Control) {
        for &port in self.carrier.keys().filter(|&&port| Some(port) != but) {
            if control.is_up(port) {
                control.send_packet(port, frame);
            }
        }
    }
}

fn emit(node: u32, state: &State, mac: MacAddr) -> Vec<u8> {
    let count = state.down.len().min(PORTS_MAX) as u16;
    let mut frame = Vec::with_capacity(FRAME_BYTES_MIN);
    frame.extend(NEAREST_BRIDGE.0);
    frame.extend(mac.0);
    frame.extend(ETHERTYPE.to_be_bytes());
    frame.push(VERSION);
    frame.extend(node.to_be_bytes());
    frame.extend(state.sequence.to_be_bytes());
    frame.extend(count.to_be_bytes());
    frame.extend(state.down.iter().take(count.into()).flat_map(|port| port.0.to_be_bytes()));
    frame.resize(frame.len().max(FRAME_BYTES_MIN), 0);
    frame
}

fn parse(frame: &[u8]) -> Option<(u32, State)> {
    let is_ours = frame.starts_with(&NEAREST_BRIDGE.0)
        && frame.get(12..BEFORE) == Some(&ETHERTYPE.to_be_bytes());
    let rest = frame.get(BEFORE..).filter(|_| is_ours)?;
    let (&version, rest) = rest.split_first()?;
    let (&node, rest) = rest.split_first_chunk()?;
    let (&sequence, rest) = rest.split_first_chunk()?;
    let (&count, rest) = rest.split_first_chunk()?;
    let count = usize::from(u16::from_be_bytes(count));
    if version != VERSION || count > PORTS_MAX {
        return None;
    }
    let ports = rest.get(..2 * count)?.chunks_exact(2);
    let down = ports.map(|port| PortNo(u16::from_be_bytes([port[0], port[1]]))).collect();
    Some((u32::from_be_bytes(node), State { sequence: u32::from_be_bytes(sequence), down }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_message_is_read_as_it_was_written_and_a_cut_one_is_not(
            sequence in any::<u32>(), node in any::<u32>(),
            ports in proptest::collection::btree_set(any::<u16>(), 0..40), cut in 0_usize..60,
        ) {
            let state = State { sequence, down: ports.into_iter().map(PortNo).collect() };
            let frame = emit(node, &state, MacAddr([2, 0, 0, 0, 0, 1]));
            prop_assert!(frame.len() >= FRAME_BYTES_MIN);
            prop_assert_eq!(parse(&frame), Some((node, state.clone())));
            let needed = BEFORE + 11 + 2 * state.down.len();
            prop_assert_eq!(parse(&frame[..cut.min(needed - 1)]), None);
        }
    }
}
