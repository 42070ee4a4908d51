//! Requests from hosts for routes (Axon-ARP), which their switches forward as datagrams. A switch
//! repeats each request until it is answered.
//!
//! In a fabric without a central controller (thesis 000 §3.2.3) every switch has a full controller,
//! with graph, host table, policy and router. The graph is the one in the fabric file, without the
//! links that their ends have reported to be down. A controller decides only about the routes at
//! its own switch's ports. All controllers have the same graph and the same router, so the two ends
//! of a flow choose matching routes independently. Therefore, switches never exchange routes. The
//! source switch queries for the host ([`ArpTarget`]), the target switch confirms its location
//! ([`ArpReply`]), and each of them makes the route that starts at itself. No switch can set a
//! route at another switch.

use super::addresses::Addresses;
use super::flows::{Account, Origin, Route, RouteIndex};
use super::forwarding::Forwarding;
use super::hosts::{Host, HostIndex, Learned, Place};
use super::network::Network;
use super::routes::Routes;
use super::scans::Scans;
use super::topology::SwitchIndex;
use crate::effect::Effect;
use alloc::vec::Vec;
use axon_node::telemetry::ControllerCounters;
use axon_wire::message::{ArpReply, ArpRequest, ArpTarget, Grant, Message, Target};
use axon_wire::{Hops, Incarnation, PortNo, Time};
use core::net::IpAddr;

/// Route requests: counts of their results, and the scans among them.
#[derive(Clone, Debug, Default)]
pub(super) struct Requests {
    scans: Scans,
    /// Counts of requests by result.
    counters: ControllerCounters,
}

/// Requests from switches.
impl Requests {
    /// Returns the counts of requests and of notes about scans.
    pub(super) fn counters(&self) -> ControllerCounters {
        ControllerCounters { scans: self.scans.noted(), ..self.counters }
    }

    /// Handles phase II of Axon-ARP (paper 001 §4.2.2) for a request from switch `by`, received at
    /// `place`. The source is learned, routes are chosen in both directions and registered, and the
    /// request is forwarded to the target switch. An existing route is used unchanged, so repeated
    /// requests have no further effect. A request that cannot be fulfilled is counted and dropped;
    /// the switch repeats it. An unknown target is searched for (`seeking.rs`).
    ///
    /// Returns whether both hosts are known and their routes are within the bounds, so that a route
    /// may have been made.
    pub(super) fn request(
        &mut self,
        (fwd, addresses): (&mut Forwarding, &mut Addresses),
        now: Time,
        (by, place): (Incarnation, Place),
        m: ArpRequest,
        out: &mut Vec<Effect>,
    ) -> bool {
        let source = match fwd.requested(now, place, m.source_mac, out) {
            Learned::Here(source) => source,
            Learned::Full => {
                fwd.bounds.too_many_hosts(now, &fwd.net, place, out);
                return false;
            }
            Learned::Refused | Learned::Moved(_) => {
                self.counters.arp_misplaced += 1;
                return false;
            }
        };
        let Some(m) = addresses.in_own_name(fwd, now, source, m, out) else { return false };
        let failed = (m.source_mac, m.target);
        let target = match m.target {
            Target::Ip(ip) => fwd.net.hosts().by_ip(ip),
            Target::Mac(mac) => fwd.net.hosts().by_mac(mac),
        };
        let Some(target) = target else {
            self.counters.arp_unknown_target += 1;
            self.scans.record_failed(now, fwd.net.fabric(), place, failed, out);
            let own = (&fwd.net, &mut fwd.routes, addresses.dhcp());
            fwd.seeking.seek(now, own, (by, place), &m, out);
            return false;
        };
        if target == source {
            self.counters.arp_self += 1;
            return false;
        }
        let there = fwd.net.reachable_port(target).unwrap_or(place);
        let from = fwd.routes.origin(&fwd.net, place, source, target);
        let back = fwd.routes.origin(&fwd.net, there, target, source);
        let (Some(from), Some(back)) = (from, back) else {
            self.counters.arp_denied += 1;
            self.scans.record_failed(now, fwd.net.fabric(), place, failed, out);
            return false;
        };
        if fwd.net.needs_probe(target, out) {
            return false;
        }
        if there != place && fwd.net.fabric().is_one_place(there, place) {
            // Hosts behind one bond reach each other without the fabric.
            self.counters.arp_self += 1;
            return false;
        }
        self.route_both(fwd, now, (by, &m), ([from, back], [target, source]), out)
    }

    /// Makes those routes for a request that do not exist, and answers it. Returns `false` if the
    /// routes would exceed a bound.
    fn route_both(
        &mut self,
        fwd: &mut Forwarding,
        now: Time,
        (by, m): (Incarnation, &ArpRequest),
        ([from, back], [target, source]): ([Origin; 2], [HostIndex; 2]),
        out: &mut Vec<Effect>,
    ) -> bool {
        let (place, there) = (from.at, back.at);
        let flows = fwd.routes.flows();
        let found = [flows.find(from, target), flows.find(back, source)];
        let (made_at, count) = missing(&fwd.net, (place, there), found);
        let excess = fwd.bounds.excess_of(flows, place, there.switch, &made_at[..count]);
        if let Some((here, other)) = excess {
            let fabric = fwd.net.fabric();
            other.into_iter().for_each(|other| fwd.bounds.note(now, fabric, other, out));
            fwd.bounds.refuse(now, fabric, here, out);
            return false;
        }
        let round_wanted = fwd.routes.round_wanted();
        let own = (&fwd.net, &mut fwd.routes);
        if answer(own, (by, m), ([from, back], [target, source]), found, out).is_some() {
            self.counters.arp_answered += 1;
        } else {
            self.counters.arp_unreachable += 1;
            fwd.routes.unmake([(found[0], from, target), (found[1], back, source)]);
            fwd.routes.want_round(round_wanted);
        }
        true
    }
}

/// Requests between the controllers of two switches.
impl Requests {
    /// Handles phase II at the target switch, where another switch queries for a local host on
    /// behalf of one of its own hosts at `place`. Chooses the reverse route. `reverse` leads to
    /// that switch.
    ///
    /// Returns the message for the edge, or `None` if the request is refused.
    pub(super) fn target_asked(
        &mut self,
        (fwd, addresses): (&mut Forwarding, &mut Addresses),
        now: Time,
        (from, place, reverse): (Incarnation, Place, Hops),
        m: ArpTarget,
        out: &mut Vec<Effect>,
    ) -> Option<ArpTarget> {
        let here = Place { switch: fwd.net.fabric().home()?, port: m.target_port };
        let Learned::Here(source) = fwd.requested(now, place, m.source_mac, out) else {
            self.counters.arp_misplaced += 1;
            return None;
        };
        // Host reports decide the ownership of an address that another host has.
        let is_free = |ip: &IpAddr| fwd.net.hosts().by_ip(*ip).is_none();
        if let Some(ip) = m.source_ip.filter(is_free) {
            addresses.own(fwd, now, source, ip, out);
        }
        let own = |ip: &IpAddr| fwd.net.hosts().by_ip(*ip) == Some(source);
        let source_ip = m.source_ip.filter(own);
        let target = fwd.net.host_at(here, m.target_mac)?;
        if fwd.net.needs_probe(target, out) {
            return None;
        }
        let is_allowed = fwd.routes.origin(&fwd.net, here, target, source).is_some()
            && fwd.routes.origin(&fwd.net, place, source, target).is_some();
        if !is_allowed {
            self.counters.arp_denied += 1;
            return None;
        }
        let back = self.route_here(fwd, now, here, (source, target), out)?;
        let back = fwd.routes.flows().get(back)?;
        self.counters.arp_answered += 1;
        let (stamp, to_source) = (fwd.routes.stamp(back.number), back.to_install());
        let source_by_pair = back.source.is_some();
        let m = ArpTarget { to_source, source_by_pair, source_ip, ..m };
        Some(ArpTarget { source_switch: from, stamp, answer_by: reverse, ..m })
    }

    /// Handles phase IV at the source switch, after the target `switch` has completed its half.
    /// Chooses the forward route. Returns the message for the edge, or `None` if the host is not
    /// there.
    pub(super) fn target_found(
        &mut self,
        fwd: &mut Forwarding,
        now: Time,
        switch: SwitchIndex,
        m: ArpReply,
        out: &mut Vec<Effect>,
    ) -> Option<ArpReply> {
        let place = Place { switch: fwd.net.fabric().home()?, port: m.source_port };
        let source = fwd.net.host_at(place, m.source_mac)?;
        let target = fwd.net.hosts().by_mac(m.target_mac)?;
        if fwd.net.hosts().get(target).map(Host::place)?.switch != switch {
            self.counters.arp_misplaced += 1;
            return None;
        }
        let route = self.route_here(fwd, now, place, (target, source), out)?;
        let route = fwd.routes.flows().get(route)?;
        let (stamp, to_target) = (fwd.routes.stamp(route.number), route.to_install());
        Some(ArpReply { stamp, to_target, target_by_pair: route.source.is_some(), ..m })
    }

    /// Returns the route from a port of this switch to a host, and adds `user` to its users.
    fn route_here(
        &mut self,
        fwd: &mut Forwarding,
        now: Time,
        here: Place,
        (to, user): (HostIndex, HostIndex),
        out: &mut Vec<Effect>,
    ) -> Option<RouteIndex> {
        let there = fwd.net.hosts().get(to).map(Host::place)?;
        let from = fwd.routes.origin(&fwd.net, here, user, to)?;
        let flows = fwd.routes.flows();
        let found = flows.find(from, to);
        if found.is_none()
            && let Some((excess, _)) = fwd.bounds.excess_of(flows, here, there.switch, &[here])
        {
            fwd.bounds.refuse(now, fwd.net.fabric(), excess, out);
            return None;
        }
        let account = Account::Requested(here, there.switch);
        let made = fwd.routes.found_or_made(&fwd.net, found, from, to, (user, account));
        self.counters.arp_unreachable += u64::from(made.is_none());
        made
    }
}

/// Returns the ports of those routes that a request needs and that do not exist. The request needs
/// the forward route, and the reverse one if this controller decides about it.
fn missing(
    net: &Network,
    (place, there): (Place, Place),
    found: [Option<RouteIndex>; 2],
) -> ([Place; 2], usize) {
    let back = found[1].is_none() && !net.fabric().is_elsewhere(there.switch);
    match (found[0].is_none(), back) {
        (true, true) => ([place, there], 2),
        (true, false) => ([place; 2], 1),
        (false, true) => ([there; 2], 1),
        (false, false) => ([place; 2], 0),
    }
}

/// Answers a request from switch `by` with the forward and reverse routes. Makes those that do not
/// exist.
fn answer(
    (net, routes): (&Network, &mut Routes),
    (by, m): (Incarnation, &ArpRequest),
    ([from, back], [target, source]): ([Origin; 2], [HostIndex; 2]),
    found: [Option<RouteIndex>; 2],
    out: &mut Vec<Effect>,
) -> Option<()> {
    let (place, there) = (from.at, back.at);
    let host = net.hosts().get(target)?;
    let asked = match m.target {
        Target::Ip(ip) => Some(ip),
        Target::Mac(_) => None,
    };
    // A host at a bond may answer on another port, and a host without an address cannot be queried.
    let bonded = net.is_bonded(target);
    let target_ip = asked.or_else(|| host.ips.last().copied()).filter(|_| !bonded);
    let to = net.graph().switch(there.switch).incarnation;
    let hops = routes.paths_mut().path_to(net.fabric(), to.node)?;
    let account = Account::Requested(place, there.switch);
    let forward = routes.found_or_made(net, found[0], from, target, (source, account))?;
    let (backward, answer_by) = match net.fabric().is_elsewhere(there.switch) {
        true => (None, Hops::default()),
        false => {
            let made = routes.found_or_made(net, found[1], back, source, (target, account))?;
            (Some(made), answer_by((net, routes), there, place, made)?)
        }
    };
    let forward = routes.flows().get(forward)?;
    let backward = backward.and_then(|backward| routes.flows().get(backward));
    let message = Message::ArpTarget(ArpTarget {
        id: m.id,
        source_switch: by,
        source_port: m.port,
        source_mac: m.source_mac,
        source_ip: m.source_ip,
        target_port: there.port,
        target_mac: host.mac,
        target_ip,
        // Both routes are current, so the later one of their stamps is valid for both.
        stamp: routes.stamp(forward.number.max(backward.map_or(0, |route| route.number))),
        to_source: backward.map(Route::to_install).unwrap_or_default(),
        source_by_pair: backward.is_some_and(|route| route.source.is_some()),
        to_target: forward.to_install(),
        target_by_pair: forward.source.is_some(),
        answer_by,
        // The node adds the grant when it seals the message.
        grant: Grant::default(),
    });
    out.push(Effect::Routed { hops, to, message });
    Some(())
}

/// Returns the path of the answer from the target's switch to the source's, along the reverse
/// route. At a bond, that route may end at a port of a switch other than the requesting one.
fn answer_by(
    (net, routes): (&Network, &mut Routes),
    there: Place,
    place: Place,
    backward: RouteIndex,
) -> Option<Hops> {
    let route = routes.flows().get(backward)?;
    if route.exit.switch == place.switch {
        return Some(route.hops_to(PortNo::CONTROL));
    }
    let (from, to) = (there.switch, place.switch);
    routes.paths_mut().between(net.graph(), (from, to), u64::from(place.port.0))
}
