//! Hosts that are at this switch, were here before, or are searched for: learning, probing,
//! removal, and reports to the controller.

use super::answers::Requester;
use super::context::{Cx, Timer};
use super::controller::Change;
use super::groups::Groups;
use super::hosts::{Host, Hosts, Location};
use super::rediscovery::Recalls;
use super::route_requests::Key as SetupKey;
use super::routes::Routes;
use super::seek::Search;
use crate::effect::Effect;
use alloc::vec::Vec;
use axon_node::Note;
use axon_wire::message::{Seek, Target};
use axon_wire::{MacAddr, PortNo};
use core::net::IpAddr;

/// Local hosts, with those that are queried for. What ends with a host is in its siblings: groups
/// and routes.
#[derive(Clone, Debug)]
pub(super) struct Learning {
    hosts: Hosts,
    recalls: Recalls,
    /// Addresses that the controller searches for.
    search: Search,
}

impl Learning {
    /// Creates the state without hosts, of a table with these limits.
    pub(super) fn new(hosts: Hosts) -> Learning {
        Learning { hosts, recalls: Recalls::default(), search: Search::default() }
    }

    pub(super) fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    /// Returns the hosts, and those that are queried for.
    pub(super) fn here(&self) -> (&Hosts, &Recalls) {
        (&self.hosts, &self.recalls)
    }

    /// Learns the sender of a frame, or refreshes it. Returns `false` if the frame must be dropped.
    ///
    /// A known host on its port is refreshed. On another port it has moved: it is removed from the
    /// old port with its flows and learned on the new one. It is queried at the old port, and
    /// learned there again if it answers, because another station may have used its MAC address. A
    /// new host is learned while its port has room. A full port removes a host without address that
    /// was silent for as long as a host with an address would need to be declared dead. Other hosts
    /// without address are not removed, because they cannot be probed.
    pub(super) fn learn(
        &mut self,
        cx: &mut Cx,
        (groups, routes): (&mut Groups, &mut Routes),
        port: PortNo,
        mac: MacAddr,
    ) -> bool {
        let left = match self.hosts.refresh(cx, port, mac) {
            Location::Here(home) => {
                let recalled = self.recalls.end(cx, port, mac);
                if self.recalls.end(cx, home, mac).or(recalled).is_some() {
                    // The controller wants to verify the host: report it again.
                    self.hosts.report_anew(cx, groups, mac);
                }
                return true;
            }
            Location::Refused => return false,
            Location::Elsewhere(left) => Some(left),
            Location::New => None,
        };
        if self.hosts.is_full(port) {
            let Some(silent) = self.hosts.silent_on(cx, port) else {
                cx.counters.hosts_refused += 1;
                return false;
            };
            self.forget_host(cx, (groups, routes), silent);
        }
        let answered = self.recalls.end(cx, port, mac).is_some_and(|recall| recall.moved);
        let moved = self.forget_host(cx, (groups, routes), mac);
        self.hosts.insert(mac, Host::new(cx.now, port));
        routes.host_learned(cx, port, mac);
        cx.counters.hosts_moved += u64::from(moved);
        cx.out.push(Effect::Note(Note::HostUp { port, mac }));
        self.hosts.report(cx, groups, mac);
        groups.host_learned(cx, port);
        match left {
            // The host has answered: the other user of its MAC address is not queried.
            Some(left) if answered => drop(self.recalls.end(cx, left, mac)),
            Some(left) => self.recalls.moved(cx, &self.hosts, (left, mac)),
            None => {}
        }
        true
    }

    /// Removes a host that has left, no longer answers, or makes room, together with its flows.
    /// Returns whether there was such a host.
    ///
    /// Routes belong to a port, so the routes of a port are removed with its last host. Other
    /// hosts on that port may use them; the controller removes those that no host uses.
    fn forget_host(
        &mut self,
        cx: &mut Cx,
        (groups, routes): (&mut Groups, &mut Routes),
        mac: MacAddr,
    ) -> bool {
        let Some(Host { port, ips, .. }) = self.hosts.remove(mac) else {
            return false;
        };
        if let Some(ip) = ips.newest() {
            self.recalls.later(cx, port, mac, ip);
        }
        cx.agenda.cancel(Timer::Host(mac));
        routes.host_gone(cx, port, mac);
        let (ports, is_last) = (self.hosts.joined_to(port), self.hosts.count_on(port) == 0);
        groups.host_gone(cx, (&ports, is_last), mac);
        if is_last {
            for port in ports {
                routes.clear_port(cx, port);
            }
        } else {
            routes.promote(cx, port);
        }
        cx.out.push(Effect::Note(Note::HostDown { port, mac }));
        self.hosts.report(cx, groups, mac);
        true
    }

    /// Removes the hosts of a port and its routes.
    pub(super) fn clear_port(
        &mut self,
        cx: &mut Cx,
        (groups, routes): (&mut Groups, &mut Routes),
        port: PortNo,
    ) {
        let macs: Vec<MacAddr> = self.hosts.on_port(port).collect();
        for mac in macs {
            self.forget_host(cx, (groups, routes), mac);
        }
        routes.clear_port(cx, port);
    }

    /// Probes a host whose timer has expired, or removes it if it no longer answers.
    pub(super) fn probe(&mut self, cx: &mut Cx, others: (&mut Groups, &mut Routes), mac: MacAddr) {
        if self.hosts.probe(cx, mac) {
            self.forget_host(cx, others, mac);
        }
    }

    /// Learns an address of a known host.
    pub(super) fn learn_ip(&mut self, cx: &mut Cx, groups: &mut Groups, mac: MacAddr, ip: IpAddr) {
        self.hosts.learn_ip(cx, (&mut self.search, groups), mac, ip);
    }

    /// Gives the target of an unanswered set-up to a host that has queried whether it is free; see
    /// `nd.rs`.
    pub(super) fn claim(
        &mut self,
        cx: &mut Cx,
        groups: &mut Groups,
        (port, target, _): SetupKey,
        requesters: &[Requester],
    ) {
        let Target::Ip(ip @ IpAddr::V6(_)) = target else { return };
        let detects = |requester: &&Requester| requester.ip.is_unspecified();
        if let Some(first) = requesters.iter().find(detects)
            && cx.controller.is_reachable()
            && self.hosts.is_on(first.mac, port)
        {
            self.learn_ip(cx, groups, first.mac, ip);
        }
    }

    /// Handles the controller's request to query a host on a port.
    pub(super) fn recall(&mut self, cx: &mut Cx, host: (PortNo, MacAddr), ip: IpAddr) {
        self.recalls.recall(cx, &self.hosts, host, ip);
    }

    /// Handles the expired timer of a host that is queried for.
    pub(super) fn recall_due(&mut self, cx: &mut Cx, host: (PortNo, MacAddr)) {
        self.recalls.due(cx, &self.hosts, host);
    }

    /// Handles the controller's search for the hosts that have this address.
    pub(super) fn seek(&mut self, cx: &mut Cx, m: Seek) {
        let ip = m.ip;
        if self.search.seek(cx, m) {
            self.hosts.withdraw(ip);
        }
    }

    /// Handles the expired timer of a new host port.
    pub(super) fn search_due(&mut self, cx: &mut Cx, port: PortNo) {
        self.search.due(cx, port);
    }

    /// Handles a port that has become a host port, or is no longer one.
    pub(super) fn port_changed(&mut self, cx: &mut Cx, port: PortNo) {
        self.recalls.port_changed(cx, &self.hosts, port);
        self.search.port_changed(cx, port);
    }

    /// Reports all hosts that the controller may not have.
    pub(super) fn report_all(&mut self, cx: &mut Cx, groups: &mut Groups, change: Change) {
        if change.has_forgotten {
            self.hosts.forget_reports();
        }
        self.hosts.report_all(cx, groups, change.is_new);
    }

    /// Adds a port to a bond, with which it is one location.
    pub(super) fn join(&mut self, port: PortNo, key: u16) {
        self.hosts.join(port, key);
    }

    /// Removes a port from its bond, and moves its hosts to another port of it, if there is one.
    pub(super) fn part(
        &mut self,
        cx: &mut Cx,
        (groups, routes): (&mut Groups, &mut Routes),
        (port, key): (PortNo, u16),
    ) {
        self.hosts.part(port);
        let Some(to) = self.hosts.joined(key).next() else { return };
        let macs: Vec<MacAddr> = self.hosts.on_port(port).collect();
        for mac in macs {
            self.hosts.change_port(mac, to);
            cx.tables.vacate(port, mac);
            self.hosts.report_moved(cx, groups, (port, mac));
        }
        routes.clear_port(cx, port);
    }

    #[cfg(test)]
    pub(super) fn recalls(&self) -> &Recalls {
        &self.recalls
    }

    #[cfg(test)]
    pub(super) fn search(&self) -> &Search {
        &self.search
    }
}

#[cfg(test)]
mod tests;
