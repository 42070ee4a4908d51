//! Reachability of a host's peers: pings, IPv6 addresses, and neighbours that have moved.

use crate::host::apps::Histogram;
use crate::host::ipv6::Ipv6;
use crate::host::node::Host;
use crate::host::ping::{Ping, PingPlan, PingStats};
use crate::host::stack::set_address;
use axon_wire::{FrameBuf, Time, nd};
use std::net::Ipv6Addr;

/// Retry intervals after which a silent neighbour's address is removed.
const PATIENCE: u64 = 8;

impl Host {
    /// Returns the host's valid IPv6 address of global scope, if any.
    pub fn address6(&self) -> Option<Ipv6Addr> {
        self.ipv6.as_ref()?.address()
    }

    /// Returns the host's valid IPv6 addresses, the link-local one first.
    pub fn addresses6(&self) -> impl Iterator<Item = Ipv6Addr> {
        self.ipv6.iter().flat_map(Ipv6::valid)
    }

    /// Starts a ping, which runs when the host is next called. Returns its number.
    pub fn ping(&mut self, plan: PingPlan, now: Time) -> usize {
        let number = self.pings.len();
        let ident = number as u16 + 1;
        self.pings.push(Ping::new(plan, ident, now, &mut self.stack.sockets));
        self.due = Some(now);
        number
    }

    /// Returns the round-trip times of ping `number` so far.
    pub fn ping_times(&self, number: usize) -> Option<&Histogram> {
        self.pings.get(number).map(|ping| &ping.times)
    }

    /// Returns the statistics of ping `number` so far.
    pub fn ping_stats(&self, number: usize) -> Option<PingStats> {
        self.pings.get(number).map(|ping| ping.stats)
    }

    /// Returns the pings so far, with their plans.
    pub fn pings(&self) -> impl Iterator<Item = (&PingPlan, &PingStats)> {
        self.pings.iter().map(|ping| (&ping.plan, &ping.stats))
    }

    /// Processes the IPv6 contents of a frame.
    pub(super) fn take_v6(&mut self, frame: &[u8]) {
        let Some(ipv6) = &mut self.ipv6 else { return };
        if ipv6.receive(frame) {
            // A new prefix was advertised: probe its address at once.
            self.due = Some(Time::ZERO);
        }
        if self.stack.neighbours.receive_v6(frame) {
            self.renew_neighbours();
        }
    }

    pub(super) fn poll_ipv6(&mut self, now: Time) {
        let Some(ipv6) = &mut self.ipv6 else { return };
        if ipv6.poll(now, &mut self.stack.nic) {
            set_address(&mut self.stack.iface, self.cidr, Some(ipv6));
        }
    }

    pub(super) fn mark_silent_neighbours_stale(&mut self, now: Time) {
        let patience = self.config.retry * PATIENCE;
        let mut stale = false;
        for ping in &mut self.pings {
            let next = self.stack.next_hop(ping.plan.target);
            stale |= ping.fell_silent(now, patience) && self.stack.neighbours.mark_stale(next);
        }
        if stale {
            self.renew_neighbours();
        }
    }

    /// Clears the stack's neighbour cache, since a single entry cannot be removed, and restores the
    /// known IPv6 neighbours. The stack resolves only one address a second in total.
    pub(super) fn renew_neighbours(&mut self) {
        self.stack.iface.forget_neighbours();
        for (ip, mac) in self.stack.neighbours.known_v6() {
            let frame = nd::advertisement(mac, ip, None);
            self.stack.nic.rx.push_back(FrameBuf::new(&frame));
        }
    }
}
