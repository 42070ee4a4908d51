//! Replay protection: each message and each grant is accepted once.
//!
//! There are two kinds of state, both consulted only after the seal has been verified:
//!
//! - For messages, a sliding window over the sequence numbers of each sender, as in IPsec (RFC 4303
//!   §3.4.3), and the sender's newest incarnation. A number that is in the window already, or older
//!   than the window, is a replay.
//! - For grants, the highest numbers themselves. They reach a switch through many others, in any
//!   order, and few of the controller's numbers are for one switch, so a window over all of them
//!   would be too narrow.
//!
//! A message sealed under one key must not move the window of another. Every switch has the link
//! key and can seal under it as any node, with the highest incarnation. So the windows of links are
//! kept for each port: an attacker affects only the links at its own ports. A port remembers few
//! senders, and recorded Hellos, which are for any receiver, can be replayed. So a sender that has
//! become the neighbour at a port, by returning the port's challenge, is never evicted for one that
//! has not. Answers between switches are sealed under the same key and have no window: their grant
//! is checked.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_node::Refusal;
use axon_wire::{Incarnation, NodeId, PortNo};

/// Window size: messages up to this far behind the newest are accepted.
const WINDOW: u64 = u128::BITS as u64;
/// Maximum number of senders remembered at one port, neighbours and then the most recent.
const SENDERS_PER_PORT_MAX: usize = 8;
/// Maximum number of grants remembered, those with the highest numbers. Lower ones count as
/// received.
const GRANTS_MAX: usize = 1024;

/// Replay state of a node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Received {
    control: BTreeMap<NodeId, Window>,
    /// Senders at each port, most recent first.
    links: BTreeMap<PortNo, Vec<Sender>>,
    grants: Grants,
}

/// A sender at a port.
#[derive(Clone, Copy, Debug)]
struct Sender {
    node: NodeId,
    window: Window,
    /// True if the sender has ever been the neighbour there.
    neighbour: bool,
}

/// Sequence numbers received from one sender.
#[derive(Clone, Copy, Debug)]
struct Window {
    incarnation: u64,
    newest: u64,
    /// Bitmap; bit `n` stands for sequence `newest - n`.
    seen: u128,
}

/// Numbers of grants received from one incarnation of a controller.
#[derive(Clone, Debug, Default)]
struct Grants {
    controller: Option<Incarnation>,
    seen: BTreeSet<u64>,
    /// Numbers up to this one count as received.
    floor: u64,
}

impl Received {
    /// Records a message sealed under the key that only a switch and the controller have.
    ///
    /// # Errors
    /// The message is a replay, or of an earlier incarnation.
    pub(crate) fn control(&mut self, from: Incarnation, sequence: u64) -> Result<(), Refusal> {
        match self.control.get_mut(&from.node) {
            Some(window) => window.admit(from.number, sequence),
            None => {
                self.control.insert(from.node, Window::new(from.number, sequence));
                Ok(())
            }
        }
    }

    /// Records a message received over the link at `port`.
    ///
    /// # Errors
    /// The message is a replay, or of an earlier incarnation.
    pub(crate) fn link(
        &mut self,
        port: PortNo,
        from: Incarnation,
        sequence: u64,
    ) -> Result<(), Refusal> {
        let senders = self.links.entry(port).or_default();
        let Some(at) = senders.iter().position(|sender| sender.node == from.node) else {
            if senders.len() >= SENDERS_PER_PORT_MAX {
                let stranger = senders.iter().rposition(|sender| !sender.neighbour);
                senders.remove(stranger.unwrap_or(senders.len() - 1));
            }
            let window = Window::new(from.number, sequence);
            // Most ports receive from one sender only.
            senders.reserve_exact(1);
            senders.insert(0, Sender { node: from.node, window, neighbour: false });
            return Ok(());
        };
        senders[at].window.admit(from.number, sequence)?;
        senders[..=at].rotate_right(1);
        Ok(())
    }

    /// Records that a sender has become the neighbour at a port. Its window is never evicted for a
    /// sender that has not.
    pub(crate) fn neighbour(&mut self, port: PortNo, node: NodeId) {
        let senders = self.links.get_mut(&port).map_or(&mut [][..], Vec::as_mut_slice);
        if let Some(sender) = senders.iter_mut().find(|sender| sender.node == node) {
            sender.neighbour = true;
        }
    }

    /// Records a grant of the controller.
    ///
    /// # Errors
    /// The grant was received, or its number is below those remembered.
    pub(crate) fn grant(&mut self, controller: Incarnation, sequence: u64) -> Result<(), Refusal> {
        let grants = &mut self.grants;
        if grants.controller != Some(controller) {
            *grants = Grants { controller: Some(controller), ..Grants::default() };
        }
        if sequence <= grants.floor || !grants.seen.insert(sequence) {
            return Err(Refusal::Replayed);
        }
        if grants.seen.len() > GRANTS_MAX {
            grants.floor = grants.seen.pop_first().unwrap_or_default();
        }
        Ok(())
    }
}

impl Window {
    fn new(incarnation: u64, newest: u64) -> Window {
        Window { incarnation, newest, seen: 1 }
    }

    fn admit(&mut self, incarnation: u64, sequence: u64) -> Result<(), Refusal> {
        if incarnation < self.incarnation {
            return Err(Refusal::StaleIncarnation);
        }
        if incarnation > self.incarnation {
            *self = Window::new(incarnation, sequence);
        } else if sequence > self.newest {
            let step = sequence - self.newest;
            self.seen = if step < WINDOW { self.seen << step | 1 } else { 1 };
            self.newest = sequence;
        } else {
            let age = self.newest - sequence;
            if age >= WINDOW || self.seen >> age & 1 == 1 {
                return Err(Refusal::Replayed);
            }
            self.seen |= 1 << age;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn incarnation(node: u64, number: u64) -> Incarnation {
        Incarnation { node: NodeId(node), number }
    }

    #[test]
    fn late_messages_pass_and_replays_do_not_whatever_the_order() {
        let mut received = Received::default();
        let from = incarnation(1, 1);
        assert_eq!(received.control(from, 150), Ok(()));
        for sequence in 0..150 {
            let fits = sequence > 150 - WINDOW;
            assert_eq!(received.control(from, sequence).is_ok(), fits, "message {sequence}");
            assert_eq!(received.control(from, sequence), Err(Refusal::Replayed));
        }
        assert_eq!(received.control(incarnation(1, 2), 1), Ok(()));
        assert_eq!(received.control(from, 151), Err(Refusal::StaleIncarnation));
        assert_eq!(received.control(incarnation(2, 1), 1), Ok(()));
    }

    #[test]
    fn a_sender_at_one_port_moves_no_window_of_another_port() {
        let mut received = Received::default();
        let (here, there) = (PortNo(1), PortNo(2));
        assert_eq!(received.link(there, incarnation(1, 5), 1), Ok(()));
        assert_eq!(received.link(here, incarnation(1, u64::MAX), 1), Ok(()));
        assert_eq!(received.control(incarnation(1, 5), 1), Ok(()));
        assert_eq!(received.link(there, incarnation(1, 5), 2), Ok(()));
        assert_eq!(received.link(there, incarnation(1, 5), 2), Err(Refusal::Replayed));
        assert_eq!(received.link(here, incarnation(1, 5), 2), Err(Refusal::StaleIncarnation));
    }

    #[test]
    fn made_up_senders_at_a_port_displace_none_that_is_heard_between_them() {
        let mut received = Received::default();
        let (port, neighbour) = (PortNo(0), incarnation(1, 1));
        for round in 1..100u64 {
            assert_eq!(received.link(port, neighbour, round), Ok(()));
            for made_up in 0..SENDERS_PER_PORT_MAX as u64 - 1 {
                received.link(port, incarnation(round * 1000 + made_up, 1), 1).unwrap();
            }
            assert_eq!(received.link(port, neighbour, round), Err(Refusal::Replayed));
        }
        assert_eq!(received.links[&port].len(), SENDERS_PER_PORT_MAX);
    }

    #[test]
    fn recorded_hellos_of_any_number_of_nodes_reopen_no_window_of_a_neighbour() {
        let mut received = Received::default();
        let (port, neighbour) = (PortNo(0), incarnation(1, 1));
        assert_eq!(received.link(port, neighbour, 7), Ok(()));
        received.neighbour(port, neighbour.node);
        for node in 2..50 {
            assert_eq!(received.link(port, incarnation(node, 1), 1), Ok(()));
        }
        assert_eq!(received.link(port, neighbour, 7), Err(Refusal::Replayed));
        assert_eq!(received.links[&port].len(), SENDERS_PER_PORT_MAX);
        // A node with the link key can pose as many neighbours, on its own link.
        for node in 50..99 {
            received.link(port, incarnation(node, 1), 1).unwrap();
            received.neighbour(port, NodeId(node));
        }
        assert_eq!(received.links[&port].len(), SENDERS_PER_PORT_MAX);
    }

    #[test]
    fn grants_come_in_any_order_and_each_counts_once() {
        let mut received = Received::default();
        let controller = incarnation(99, 1);
        // Only every thousandth number of the controller is for this switch, late ones first.
        let number = |n: u64| n * 1000;
        for n in (1..=GRANTS_MAX as u64).rev() {
            assert_eq!(received.grant(controller, number(n)), Ok(()));
        }
        for n in 1..=GRANTS_MAX as u64 {
            assert_eq!(received.grant(controller, number(n)), Err(Refusal::Replayed));
        }
        // One more evicts the lowest, which is still not accepted.
        assert_eq!(received.grant(controller, number(GRANTS_MAX as u64 + 1)), Ok(()));
        assert_eq!(received.grant(controller, number(1)), Err(Refusal::Replayed));
        assert_eq!(received.grant(controller, number(1) - 1), Err(Refusal::Replayed));
        assert_eq!(received.grants.seen.len(), GRANTS_MAX);
        assert_eq!(received.grant(incarnation(99, 2), number(1)), Ok(()));
    }
}
