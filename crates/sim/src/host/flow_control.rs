//! Priorities and flow control of a host: what is told to its card, and what it has counted.

use crate::host::card::Card;
use crate::host::node::Host;
use axon_wire::Time;
use axon_wire::priority::{Priority, PrioritySet};
use std::net::Ipv4Addr;

impl Host {
    /// What has this TCP or UDP port at either end has this priority from now on. Nothing
    /// happens in a host without Data Center Bridging.
    pub fn set_priority(&mut self, port: u16, priority: Priority) {
        if let Some(card) = self.card_mut() {
            card.set_priority(port, priority);
        }
    }

    /// Echo requests and replies to this host have this priority from now on; the same.
    pub fn set_echo_priority(&mut self, target: Ipv4Addr, priority: Priority) {
        if let Some(card) = self.card_mut() {
            card.set_echo_priority(target, priority);
        }
    }

    /// What its peer has told it to stop, now.
    pub fn stopped(&self, now: Time) -> PrioritySet {
        self.card().map_or(PrioritySet::EMPTY, |card| card.stopped(now))
    }

    /// CNMs that have slowed down a flow of this host.
    pub fn cnms_heeded(&self) -> u64 {
        self.card().map_or(0, Card::cnms)
    }

    /// Flow control frames that named a priority, sent (requests) and received (indications).
    /// A PAUSE that is sent counts for priority 0, one that is received for all.
    pub fn flow_control_counts(&self, priority: Priority) -> (u64, u64) {
        self.card().map_or((0, 0), |card| card.counts(priority))
    }
}
