//! Enforcement of the policy: no route is made or kept that it forbids.
//!
//! Each port's routes are looked up by destination, so any host at the port can use them, with any
//! source address. So a route is allowed only if *all* hosts at its port may reach *all* hosts at
//! the port where it ends. Hosts behind one port are not isolated from each other, because their
//! frames need not pass the switch; but none of them connects two tenants. Where source addresses
//! are trusted ([`BySource`](crate::config::BySource)) a host may have its own routes, and each
//! host is checked separately (`by_source.rs`).
//!
//! The policy is checked at five places. A request for a forbidden route is denied (`requests.rs`).
//! A path is computed only if the policy allows it (`reroute.rs`): for new routes, after a failure,
//! after a move and in rounds. A forbidden inherited route is removed (`takeover.rs`). A new host
//! at a port removes the routes of that port that it may not use, and so does a change of the
//! policy, at once. A report of a host that is pinned to another port is refused.

use super::bounds::Scope;
use super::conductor::Controller;
use super::flows::{Origin, RouteIndex};
use super::hosts::{Host, HostIndex, Learned, Place};
use super::policy::{Group, Identity, Policy};
use crate::config::BySource;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use axon_link::effect::Effect;
use axon_node::telemetry::{PairTelemetry, PolicyTelemetry, QuarantineTelemetry, TenantTelemetry};
use axon_node::{Note, PolicyChange, PolicyDone, PolicyRefusal, RouteKey, Stored, Subject};
use axon_wire::message::{ArpRequest, Target};
use axon_wire::{MacAddr, NodeId, Time};
use core::net::IpAddr;

impl Controller {
    /// Returns the policy of which hosts may reach which.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    fn identity(&self, mac: MacAddr, place: Option<Place>) -> Identity {
        let node = |place: Place| self.graph.switch(place.switch).incarnation.node;
        Identity { mac, at: place.map(|place| (node(place), place.port)) }
    }

    /// Returns the identity of a host by its MAC address, known or not.
    fn identify(&self, mac: MacAddr) -> Identity {
        let host = self.hosts.by_mac(mac).and_then(|index| self.hosts.get(index));
        self.identity(mac, host.map(Host::place))
    }

    /// Returns the identities of the hosts at a port.
    fn identities_at(&self, place: Place) -> impl Iterator<Item = Identity> {
        let at = move |place| self.hosts.hosts_at(place).map(move |host| (host.mac, place));
        let hosts = self.ports_of(place).into_iter().flat_map(at);
        hosts.map(move |(mac, place)| self.identity(mac, Some(place)))
    }

    /// Returns whether all source hosts of a route may reach this host and, where hosts have no
    /// routes of their own, all others at its port.
    pub(super) fn may_reach(&self, from: Origin, destination: HostIndex) -> bool {
        let source = self.mac_of(from.source);
        self.policy.is_open()
            || self
                .hosts
                .get(destination)
                .is_some_and(|host| self.may_reach_mac((from.at, source), host.mac))
    }

    /// Returns whether the policy allows a route of this key, whose destination need not be known.
    pub(super) fn may_reach_by_key(&self, at: Place, key: RouteKey) -> bool {
        self.may_reach_mac((at, key.source), key.destination)
    }

    fn may_reach_mac(&self, from: (Place, Option<MacAddr>), destination: MacAddr) -> bool {
        let host = self.hosts.by_mac(destination).and_then(|index| self.hosts.get(index));
        let there = host.map(Host::place);
        let apart = there.is_some_and(|there| self.has_pairs(there));
        self.all_may_reach(from, destination, there.filter(|_| !apart))
    }

    /// Returns whether a host's frames to a group may go to this host and all others at its port,
    /// which receive them too.
    pub(super) fn may_send_copies(&self, (at, mac): (Place, MacAddr), to: MacAddr) -> bool {
        let there = self.hosts.by_mac(to).and_then(|index| self.hosts.get(index)).map(Host::place);
        let source = Some(mac).filter(|_| self.has_pairs(at));
        self.all_may_reach((at, source), to, there)
    }

    /// Returns whether one host at a port, or all of them, may reach this host and all at another
    /// port.
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

    /// Returns whether a host may own an address: it is not reserved for another group, and this
    /// host may reach the current owner.
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

    /// Returns whether a host at a port may have an address, with respect to gateways: a gateway's
    /// address is valid at its uplink only.
    pub(super) fn may_be_gateway(&self, at: Place, ip: IpAddr) -> bool {
        let here = (self.graph.switch(at.switch).incarnation.node, at.port);
        self.uplinks.iter().all(|uplink| ip != uplink.gateway || here == uplink.at)
    }

    /// Records a report of a switch, if the policy admits the host there.
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
            // The answer to a query at a bond may arrive by any of its ports.
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

    /// Records the sender of a request, if the policy admits the host there.
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
        // A host pinned to one port of a bond is pinned to all of them, even those that are down.
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

    /// Returns whether the hosts behind a port do not matter for its routes.
    fn is_free(&self) -> bool {
        self.policy.is_open() && self.by_source != BySource::Always
    }

    /// Handles a new host at a port, which may make routes of the port forbidden.
    pub(super) fn came(&mut self, at: Place, out: &mut Vec<Effect>) {
        self.split_at(at, out);
        if !self.policy.is_open() && self.is_mixed(at) {
            self.enforce_at(at, out);
        }
    }

    /// Returns whether the hosts at a port may differ in the hosts that they may reach.
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

    /// Removes the forbidden routes from and to the hosts at a port. Returns their number, and the
    /// switches that have to remove them.
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
        // Routes of an earlier incarnation without a decision.
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

    /// Records a request for a host that is forbidden or does not exist.
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

    /// Changes the policy, stores the change for the next incarnation, and removes the routes that
    /// are forbidden now.
    ///
    /// # Errors
    /// The errors of [`Policy::change_pair`] and [`Policy::change_quarantine`]; nothing has
    /// changed.
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
        // All affected routes have an end at this port.
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

    /// Restores the policy changes that operators made in an earlier incarnation.
    pub(super) fn restore_policy(&mut self, stored: &[Stored]) {
        stored.iter().for_each(|entry| self.policy.restore(entry));
    }

    /// Returns the policy as the controller has it, without outstanding acknowledgements of
    /// switches.
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
