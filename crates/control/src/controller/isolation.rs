//! The policy in force: no route is made or kept that it does not allow.
//!
//! A route is a port's and is looked up by destination: whoever sends from the port can use it,
//! with any source address. So a route is allowed only if *all* hosts at its port may reach *all*
//! hosts at the port where it ends. Hosts behind one port are not kept from each other, for their
//! frames need not come to the switch; but none of them is a way from one tenant into another.
//! Where source addresses are trusted ([`BySource`](crate::config::BySource)) a host may have
//! routes of its own, and each host is asked for by itself (`by_source.rs`).
//!
//! The policy is asked at five places. A request for a route that it forbids is denied
//! (`requests.rs`). A path is looked for only where it allows one (`reroute.rs`), which holds for
//! new routes, after a failure, after a move and in rounds. An inherited route that it forbids is
//! removed (`takeover.rs`). A host that comes to a port of others ends the routes of that port that
//! it may not use, and so does a change of the policy, at once. A report of a host that is pinned
//! elsewhere is refused.

use super::Controller;
use super::bounds::Scope;
use super::flows::{Origin, RouteIndex};
use super::hosts::{Host, HostIndex, Learned, Place};
use super::policy::{Group, Identity, Policy};
use crate::config::BySource;
use crate::effect::Effect;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use axon_node::telemetry::{PairTelemetry, PolicyTelemetry, QuarantineTelemetry, TenantTelemetry};
use axon_node::{Note, PolicyChange, PolicyDone, PolicyRefusal, RouteKey, Stored, Subject};
use axon_wire::message::{ArpRequest, Target};
use axon_wire::{MacAddr, NodeId, Time};
use core::net::IpAddr;

impl Controller {
    /// Which hosts may reach which.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    fn identity(&self, mac: MacAddr, place: Option<Place>) -> Identity {
        let node = |place: Place| self.graph.switch(place.switch).incarnation.node;
        Identity { mac, at: place.map(|place| (node(place), place.port)) }
    }

    /// A host by its MAC, known or not.
    fn identify(&self, mac: MacAddr) -> Identity {
        let host = self.hosts.by_mac(mac).and_then(|index| self.hosts.get(index));
        self.identity(mac, host.map(Host::place))
    }

    /// The hosts at a port.
    fn identities_at(&self, place: Place) -> impl Iterator<Item = Identity> {
        let at = move |place| self.hosts.hosts_at(place).map(move |host| (host.mac, place));
        let hosts = self.ports_of(place).into_iter().flat_map(at);
        hosts.map(move |(mac, place)| self.identity(mac, Some(place)))
    }

    /// Whether all hosts that a route is for may reach this host and, where hosts have no routes of
    /// their own, all others at its port.
    pub(super) fn may_reach(&self, from: Origin, destination: HostIndex) -> bool {
        let source = self.mac_of(from.source);
        self.policy.is_open()
            || self
                .hosts
                .get(destination)
                .is_some_and(|host| self.may_reach_mac((from.at, source), host.mac))
    }

    /// The same for a host that need not be known.
    pub(super) fn may_reach_by_key(&self, at: Place, key: RouteKey) -> bool {
        self.may_reach_mac((at, key.source), key.destination)
    }

    fn may_reach_mac(&self, from: (Place, Option<MacAddr>), destination: MacAddr) -> bool {
        let host = self.hosts.by_mac(destination).and_then(|index| self.hosts.get(index));
        let there = host.map(Host::place);
        let apart = there.is_some_and(|there| self.has_pairs(there));
        self.all_may_reach(from, destination, there.filter(|_| !apart))
    }

    /// Whether what a host at a port sends to a group may go to this host and all others at its
    /// port, which get it too.
    pub(super) fn may_send_copies(&self, (at, mac): (Place, MacAddr), to: MacAddr) -> bool {
        let there = self.hosts.by_mac(to).and_then(|index| self.hosts.get(index)).map(Host::place);
        let source = Some(mac).filter(|_| self.has_pairs(at));
        self.all_may_reach((at, source), to, there)
    }

    /// Whether one host at a port, or all of them, may reach this host and all at another port.
    fn all_may_reach(
        &self,
        (at, source): (Place, Option<MacAddr>),
        destination: MacAddr,
        beside: Option<Place>,
    ) -> bool {
        if self.policy.is_open() {
            return true;
        }
        let itself = self.identify(destination);
        let beside = || beside.into_iter().flat_map(|there| self.identities_at(there));
        let reaches = |from: Identity| {
            self.policy.allows(&from, &itself) && beside().all(|to| self.policy.allows(&from, &to))
        };
        match source {
            Some(mac) => reaches(self.identity(mac, Some(at))),
            None => self.identities_at(at).all(reaches),
        }
    }

    /// Whether a host may own an address: it is not reserved for another group, and its owner is
    /// no host that this one may not reach.
    pub(super) fn may_own(&self, host: HostIndex, mac: MacAddr, ip: IpAddr) -> bool {
        if self.policy.is_open() {
            return true;
        }
        let identity = self.identify(mac);
        let owner = self.hosts.by_ip(ip).filter(|&owner| owner != host);
        let owner = owner.and_then(|owner| self.hosts.get(owner));
        let yields = owner.is_none_or(|owner| {
            self.policy.allows(&self.identity(owner.mac, Some(owner.place())), &identity)
        });
        yields && self.policy.may_own(&identity, ip)
    }

    /// Whether a host at a port may have an address, as far as gateways are concerned: that of one
    /// is at its uplink and nowhere else.
    pub(super) fn may_be_gateway(&self, at: Place, ip: IpAddr) -> bool {
        let here = (self.graph.switch(at.switch).incarnation.node, at.port);
        self.uplinks.iter().all(|uplink| ip != uplink.gateway || here == uplink.at)
    }

    /// Enters a report of a switch, if the policy admits the host there.
    pub(super) fn reported(
        &mut self,
        now: Time,
        at: Place,
        mac: MacAddr,
        out: &mut Vec<Effect>,
    ) -> Learned {
        let before = self.place_of(mac);
        let learned = self.learned(now, (at, mac), out, |hosts| hosts.report(at, mac));
        match (learned, before) {
            (Learned::Moved(host), Some(before)) if self.is_one_place(before, at) => {
                Learned::Here(host)
            }
            // The answer to a query at a bond comes by any of its ports.
            (Learned::Moved(host), _) => {
                let asked = self.hosts.get(host).and_then(Host::queried);
                if asked.is_some_and(|asked| asked != at && self.is_one_place(asked, at)) {
                    self.hosts.queried(now, mac, at);
                }
                learned
            }
            _ => learned,
        }
    }

    /// Enters the sender of a request, if the policy admits the host there.
    pub(super) fn requested(
        &mut self,
        now: Time,
        at: Place,
        mac: MacAddr,
        out: &mut Vec<Effect>,
    ) -> Learned {
        let there = self.place_of(mac);
        if there.is_some_and(|there| there != at && self.is_one_place(there, at)) {
            return self.hosts.by_mac(mac).map_or(Learned::Refused, Learned::Here);
        }
        if there.is_some_and(|there| self.has_left_port(there, at))
            && let Learned::Here(host) | Learned::Moved(host) = self.hosts.report(at, mac)
        {
            return Learned::Here(host);
        }
        if there.is_some() || self.is_free() {
            return self.hosts.request(now, at, mac);
        }
        self.learned(now, (at, mac), out, |hosts| hosts.request(now, at, mac))
    }

    fn learned(
        &mut self,
        now: Time,
        (at, mac): (Place, MacAddr),
        out: &mut Vec<Effect>,
        learn: impl FnOnce(&mut super::hosts::HostTable) -> Learned,
    ) -> Learned {
        if self.is_free() {
            return learn(&mut self.hosts);
        }
        let node = self.graph.switch(at.switch).incarnation.node;
        // Whoever is pinned to one port of a bond is at all of them, be they down or not, and
        // nobody else is at any.
        let ports = match self.bond_at(at) {
            Some(_) => self.bonds.ports_with((node, at.port)),
            None => [(node, at.port)].into(),
        };
        if !self.policy.admits(mac, &ports) {
            self.counters.hosts_misplaced += 1;
            if self.bounds.is_news(now, at.switch, Scope::Admission) {
                out.push(Effect::Note(Note::HostMisplaced { node, port: at.port, mac }));
            }
            return Learned::Refused;
        }
        let learned = learn(&mut self.hosts);
        if matches!(learned, Learned::Here(_) | Learned::Moved(_)) {
            self.came(at, out);
        }
        learned
    }

    /// Whether it makes no difference who is behind a port.
    fn is_free(&self) -> bool {
        self.policy.is_open() && self.by_source != BySource::Always
    }

    /// A host has come to a port. If others are there, the routes of the port may be for them
    /// alone.
    pub(super) fn came(&mut self, at: Place, out: &mut Vec<Effect>) {
        self.split_at(at, out);
        if !self.policy.is_open() && self.is_mixed(at) {
            self.enforce_at(at, out);
        }
    }

    /// Whether the hosts at a port may differ in whom they may reach.
    fn is_mixed(&self, at: Place) -> bool {
        let mut groups = self.identities_at(at).map(|host| self.policy.group(&host));
        let first = groups.next();
        let more = groups.next();
        more.is_some()
            && (self.policy.is_changed()
                || self.policy.quarantined().next().is_some()
                || more != first
                || groups.any(|group| Some(group) != first))
    }

    /// Removes the routes from and to the hosts at a port that the policy forbids. Returns how many
    /// there were, and the switches that have to remove them.
    fn enforce_at(&mut self, at: Place, out: &mut Vec<Effect>) -> (u64, BTreeSet<NodeId>) {
        let hosts = self.ports_of(at).into_iter().flat_map(|at| self.hosts.hosts_at(at));
        let hosts: Vec<(HostIndex, MacAddr)> =
            hosts.filter_map(|host| Some((self.hosts.by_mac(host.mac)?, host.mac))).collect();
        let of = |&(host, _): &(HostIndex, _)| {
            [self.flows.used_by(host), self.flows.towards(host)].concat()
        };
        let routes: BTreeSet<RouteIndex> = hosts.iter().flat_map(of).collect();
        let (mut removed, mut switches) = (0, BTreeSet::new());
        for index in routes {
            let Some(route) = self.flows.get(index) else { continue };
            let (from, to) = (route.origin(), route.destination);
            if !self.may_reach(from, to) {
                switches.insert(self.graph.switch(from.at.switch).incarnation.node);
                self.split(index, out);
                removed += 1;
            }
        }
        // Those of an earlier incarnation that nobody has decided about yet.
        let mut waiting = self.take_over.waiting_at(at);
        let to = |&(_, mac): &(_, MacAddr)| self.take_over.waiting_for(mac);
        waiting.extend(hosts.iter().flat_map(to).collect::<Vec<_>>());
        for (from, key) in waiting {
            if !self.may_reach_by_key(from, key) && self.take_over.get(from, key).is_some() {
                switches.insert(self.graph.switch(from.switch).incarnation.node);
                self.take_over.forget(from, key);
                self.refuse_route(from, key, out);
                removed += 1;
            }
        }
        (removed, switches)
    }

    /// Denies a request that the policy forbids.
    pub(super) fn deny(
        &mut self,
        now: Time,
        at: Place,
        request: &ArpRequest,
        out: &mut Vec<Effect>,
    ) {
        self.counters.arp_denied += 1;
        self.in_vain(now, at, (request.source_mac, request.target), out);
    }

    /// A port has requested a host that it may not reach or that does not exist.
    pub(super) fn in_vain(
        &mut self,
        now: Time,
        at: Place,
        (mac, target): (MacAddr, Target),
        out: &mut Vec<Effect>,
    ) {
        if let Some(targets) = self.scans.enter(now, at, target) {
            self.counters.scans += 1;
            let node = self.graph.switch(at.switch).incarnation.node;
            out.push(Effect::Note(Note::Scan { node, port: at.port, mac, targets }));
        }
    }

    /// Changes the policy, keeps that for the next incarnation, and removes the routes that it
    /// forbids now.
    ///
    /// # Errors
    /// As [`Policy::change_pair`] and [`Policy::change_quarantine`]; nothing has changed.
    pub fn change_policy(
        &mut self,
        now: Time,
        change: PolicyChange,
        out: &mut Vec<Effect>,
    ) -> Result<PolicyDone, PolicyRefusal> {
        let (stored, at) = match change {
            PolicyChange::Pair(pair, allowed) => {
                let [a, b] = pair.hosts().map(|mac| self.identify(mac));
                (self.policy.change_pair([&a, &b], allowed)?, self.place_of(a.mac))
            }
            PolicyChange::Quarantine(subject, on) => {
                let at = match subject {
                    Subject::Mac(mac) => self.place_of(mac),
                    Subject::Port(node, port) => {
                        self.graph.index_of(node).map(|switch| Place { switch, port })
                    }
                };
                (self.policy.change_quarantine(subject, on)?, at)
            }
        };
        out.push(Effect::Store(stored));
        self.groups.all_changed(now);
        self.end_conflicts();
        // All routes that it concerns have an end at this port.
        let enforced = at.map(|at| self.enforce_at(at, out));
        let (routes_removed, switches) = enforced.unwrap_or_default();
        let reach = match change {
            PolicyChange::Pair(pair, _) => {
                let [a, b] = pair.hosts().map(|mac| self.identify(mac));
                self.policy.allows(&a, &b)
            }
            PolicyChange::Quarantine(_, on) => !on,
        };
        Ok(PolicyDone { routes_removed, switches: switches.into_iter().collect(), reach })
    }

    fn place_of(&self, mac: MacAddr) -> Option<Place> {
        Some(self.hosts.get(self.hosts.by_mac(mac)?)?.place())
    }

    /// Enters what operators have changed in an earlier incarnation.
    pub(super) fn restore_policy(&mut self, stored: &[Stored]) {
        stored.iter().for_each(|entry| self.policy.restore(entry));
    }

    /// The policy as the controller knows it, without what switches have still to acknowledge.
    pub fn policy_telemetry(&self) -> PolicyTelemetry {
        let mut counts = alloc::vec![0; self.policy.tenants().count()];
        let (mut shared_hosts, mut other_hosts) = (0, 0);
        for (_, host) in self.hosts.iter() {
            match self.policy.group(&self.identity(host.mac, Some(host.place()))) {
                Group::Other => other_hosts += 1,
                Group::Shared => shared_hosts += 1,
                Group::Tenant(number) => counts[number] += 1,
            }
        }
        let tenants = self.policy.tenants().zip(counts);
        let tenant = |(name, hosts): (&str, u64)| TenantTelemetry { name: name.into(), hosts };
        let quarantine = self.policy.quarantined().map(|subject| match subject {
            Subject::Mac(mac) => QuarantineTelemetry { mac: Some(mac), switch: None, port: None },
            Subject::Port(switch, port) => {
                QuarantineTelemetry { mac: None, switch: Some(switch), port: Some(port) }
            }
        });
        let pairs = self.policy.changed_pairs().map(|(pair, allowed)| {
            let [a, b] = pair.hosts();
            PairTelemetry { a, b, allowed }
        });
        PolicyTelemetry {
            tenants: tenants.map(tenant).collect(),
            shared_hosts,
            other_hosts,
            quarantine: quarantine.collect(),
            pairs: pairs.collect(),
            outstanding: Vec::new(),
        }
    }
}
