//! Routes in the data plane: requests, its answers, and the addresses that hosts are given.
//!
//! A route with a reserved entry is requested. Until the answer arrives the route counts as
//! installed, and software forwards the frames that the data plane punts meanwhile, so frames do
//! not wait for a slow device. If the device refuses, software keeps the route. The previous route
//! is removed from the table, because it is outdated. The port is tried again after a pause.
//!
//! **Masquerading** (thesis 000 §3.2.1, §4.1.1). When the table of a port is full, its hosts are
//! given other addresses instead of a destination's own MAC address. Wherever a host would receive
//! the MAC address of a destination, in an answer or in the query of a remote host, it receives the
//! masqueraded one if the destination has one at this port. Frames that still miss are handled by
//! destination address:
//!
//! - the destination's own MAC address, from a host that had it before: the frame is forwarded in
//!   software, and the host is sent the current address, at most once a second;
//! - an address that is given and not in the data plane: the frame is forwarded in software with
//!   the true MAC address;
//! - an expired address: the frame is dropped, and its sender is sent the current address, after a
//!   set-up if there is no route (`routes.rs`).

use super::answers::{Requester, answer_with};
use super::context::{Cx, Timer};
use super::entry_reservations::{Key, of_port};
use super::flows::{Flow, Flows, Placement};
use super::hosts::Hosts;
use super::outcome::Outcome;
use super::tables::{PAUSE, Requested, Tables};
use crate::effect::Effect;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_node::{Note, RouteAnswer, RouteKey, Snapshot};
use axon_wire::masquerade::index_of;
use axon_wire::message::Stamp;
use axon_wire::vlan::VlanId;
use axon_wire::{MacAddr, PortNo, Route, Span, Time, host_frame};
use core::net::IpAddr;

/// Minimum interval at which a host is sent the current address of one destination.
pub(super) const CORRECT_PAUSE: Span = Span::from_secs(1);

/// Flows of a VLAN, whose routes are installed in the tables of the data plane.
#[derive(Clone, Debug)]
pub(super) struct Installer {
    flows: Flows,
}

impl Installer {
    /// Creates an empty set. Besides its table each port may have as many routes in software as the
    /// table holds.
    pub(super) fn new(tables: &Tables) -> Installer {
        Installer { flows: Flows::new(tables.per_port_max()) }
    }

    pub(super) fn flows(&self) -> &Flows {
        &self.flows
    }

    /// Returns whether the data plane has a route at this address of its tables, or may have one.
    fn is_placed_at(&self, tables: &Tables, address: Key) -> bool {
        let destination = tables.owner(address).unwrap_or(address.1.destination);
        let key = (address.0, RouteKey { destination, ..address.1 });
        self.flows.is_placed(key) && tables.address(key) == address
    }

    /// Sets the route of a flow. The data plane has priority. If its table is full, the route is
    /// kept in software and the frames of this flow pass through the control plane, until
    /// [`Installer::promote`] finds a free entry. Returns `false` if there is no room at all.
    pub(super) fn set(
        &mut self,
        cx: &mut Cx,
        (key, stamp): (Key, Stamp),
        route: &Route,
        ip: Option<IpAddr>,
    ) -> bool {
        let before = self.flows.get(key);
        let ip = ip.or(before.filter(|flow| !flow.inherited).and_then(|flow| flow.ip));
        let has_room = before.is_some() || !self.flows.software_is_full(key.0);
        if !has_room && !cx.tables.reserve(key) {
            return false;
        }
        let placement = self.request(cx, key, route);
        self.flows.insert(key, Flow::new(cx.now, stamp, route.clone(), placement));
        self.flows.learn_ip(key, ip);
        true
    }

    /// Requests a route, if the tables have room. A lost data plane takes none, not even as a
    /// replacement.
    fn request(&mut self, cx: &mut Cx, key: Key, route: &Route) -> Placement {
        match cx.tables.reserve(key) {
            true => Placement::Requested(cx.tables.install(cx.now, cx.out, (key, route.clone()))),
            false => {
                cx.tables.free(key);
                Placement::Software
            }
        }
    }

    /// Replaces the route of a flow under the same decision; returns that.
    pub(super) fn reroute(&mut self, cx: &mut Cx, key: Key, route: &Route) -> Option<Stamp> {
        let placement = self.request(cx, key, route);
        self.flows.reroute(cx.now, key, route.clone(), placement)
    }

    /// Makes a route that the data plane had at the start, at this address, an inherited flow.
    /// Returns `false` if it cannot be kept; then it is removed, unless a flow has that place.
    pub(super) fn adopt(&mut self, cx: &mut Cx, address: Key, key: Key, route: &Route) -> bool {
        let destination = key.1.destination;
        let is_kept = cx.ports.is_host(key.0)
            && self.flows.get(key).is_none()
            && cx.settings.is_host_mac(destination)
            && cx.tables.can_hold(cx.ports, key.0, route)
            && cx.tables.take_over(address, destination);
        let is_elsewhere = cx.tables.address(key) != address;
        if is_elsewhere || !is_kept && !self.flows.is_placed(key) {
            cx.tables.take_out(cx.now, cx.out, address);
        }
        if is_kept {
            let placement =
                Placement::Requested(cx.tables.install(cx.now, cx.out, (key, route.clone())));
            let mut flow = Flow::new(cx.now, Stamp::default(), route.clone(), placement);
            flow.inherited = true;
            self.flows.insert(key, flow);
        }
        is_kept
    }

    /// Takes an inherited route over if the controller has decided for the same one; returns
    /// whether it has. The data plane is not changed.
    pub(super) fn confirm(
        &mut self,
        cx: &mut Cx,
        (key, stamp): (Key, Stamp),
        route: &Route,
        ip: Option<IpAddr>,
    ) -> bool {
        let confirmed = self.flows.confirm(key, stamp, route);
        if confirmed {
            self.learn_ip(cx, key, ip);
        }
        confirmed
    }

    /// Learns the address of a known flow, and requests its route if it is in software.
    pub(super) fn learn_ip(&mut self, cx: &mut Cx, key: Key, ip: Option<IpAddr>) {
        self.flows.learn_ip(key, ip);
        self.place(cx, key);
    }

    /// Makes all flows inherited ones.
    pub(super) fn inherit(&mut self) {
        self.flows.inherit();
    }

    /// Removes a flow and its route.
    pub(super) fn remove(&mut self, cx: &mut Cx, key: Key) {
        if self.flows.remove(key).is_some_and(|flow| flow.is_placed()) {
            cx.tables.remove(cx.now, cx.out, key);
        }
    }

    /// Returns the routes without frames since the last call; see
    /// [`Edge::idle_flows`](super::Edge::idle_flows).
    pub(super) fn idle(
        &mut self,
        now: Time,
        tables: &Tables,
        mut used: impl FnMut(PortNo, RouteKey) -> bool,
    ) -> Vec<Key> {
        self.flows.idle(now, |key| {
            let (port, address) = tables.address(key);
            used(port, address)
        })
    }

    /// Handles an answer of the data plane. The port of a refused change is tried again later.
    /// Returns a flow that is removed, because software has no room for it.
    pub(super) fn answered(&mut self, cx: &mut Cx, answer: RouteAnswer) -> Option<Key> {
        let mut removed = None;
        let port = match (cx.tables.answered(answer.ticket)?, answer.result) {
            (Requested::Remove(_), Ok(())) => return None,
            (Requested::Remove(address), Err(_)) => {
                // A later install has replaced the route, or will.
                if !self.is_placed_at(cx.tables, address) {
                    cx.tables.keep_stale(address);
                }
                address.0
            }
            (Requested::Install(key), result) => {
                if self.flows.get(key)?.placement != Placement::Requested(answer.ticket) {
                    return None;
                }
                if result.is_ok() {
                    let (port, RouteKey { destination, .. }) = key;
                    self.flows.set_placement(key, Placement::Installed);
                    cx.out.push(Effect::Note(Note::RouteSet { port, destination }));
                    return None;
                }
                let address = cx.tables.address(key);
                cx.tables.free(key);
                cx.tables.take_out(cx.now, cx.out, address);
                if self.flows.software_is_full(key.0) {
                    self.flows.remove(key);
                    removed = Some(key);
                }
                self.flows.set_placement(key, Placement::Software);
                key.0
            }
        };
        pause(cx, port);
        removed
    }

    /// Repeats the refused requests of `port`.
    pub(super) fn try_again(&mut self, cx: &mut Cx, port: PortNo) {
        cx.tables.end_pause(cx.now, cx.out, port);
        self.promote(cx, port);
    }

    /// Requests the software routes of `port` while its table has room. A route that does not fit
    /// in the table may take an index of route memory, unless it is for one source. A port with a
    /// refusal waits for its pause to end.
    pub(super) fn promote(&mut self, cx: &mut Cx, port: PortNo) {
        if cx.tables.is_paused(port) {
            return;
        }
        let (mut from, end) = of_port(port).into_inner();
        while let (Some(key), next) = self.flows.in_software(from..=end) {
            if self.place(cx, key) {
                continue;
            }
            // A later route may be for any source.
            let Some(next) = next.filter(|_| key.1.source.is_some()) else { break };
            from = next;
        }
    }

    /// Requests one software route, if its table has room.
    fn place(&mut self, cx: &mut Cx, key: Key) -> bool {
        let Some(flow) = self.flows.get(key).filter(|flow| !flow.is_placed()) else {
            return false;
        };
        if !cx.tables.reserve(key) {
            return false;
        }
        let ticket = cx.tables.install(cx.now, cx.out, (key, flow.route.clone()));
        self.flows.set_placement(key, Placement::Requested(ticket));
        true
    }

    /// Returns all routes that the data plane should have: the address in its tables, the
    /// destination itself, and the route.
    pub(super) fn wanted<'a>(
        &'a self,
        tables: &'a Tables,
    ) -> impl Iterator<Item = (Key, MacAddr, &'a Route)> {
        let placed = self.flows.placed();
        placed.map(|(key, flow)| (tables.address(key), key.1.destination, &flow.route))
    }

    /// Compares the routes with those of a resynchronised data plane, `has`, that `was_lost` or
    /// not. Missing routes are kept in software and requested later, and excess ones are removed.
    pub(super) fn resynchronised(&mut self, cx: &mut Cx, (has, was_lost): (&Snapshot, bool)) {
        let there = by_address(has, cx.vlan);
        let excess =
            there.keys().copied().filter(|&address| !self.is_placed_at(cx.tables, address));
        let excess: Vec<Key> = excess.collect();
        for address in excess {
            cx.tables.take_out(cx.now, cx.out, address);
        }
        let is_there = |(key, flow): (Key, &Flow)| {
            let found = there.get(&cx.tables.address(key));
            let same =
                |(to, route): &(MacAddr, &Route)| *to == key.1.destination && **route == flow.route;
            (key, found.is_some_and(same))
        };
        let placed: Vec<(Key, bool)> = self.flows.placed().map(is_there).collect();
        for (key, is_there) in placed {
            if is_there {
                self.flows.set_placement(key, Placement::Installed);
                continue;
            }
            self.flows.set_placement(key, Placement::Software);
            cx.tables.free(key);
            pause(cx, key.0);
        }
        // Routes added while the data plane was lost are placed later.
        if was_lost {
            for port in self.flows.ports_in_software() {
                pause(cx, port);
            }
        }
    }

    /// Returns the fate of a host's frame that missed, if its port has a route for it.
    pub(super) fn by_software(
        &mut self,
        cx: &mut Cx,
        hosts: &Hosts,
        port: PortNo,
        (source, destination): (MacAddr, MacAddr),
        hint: Option<IpAddr>,
    ) -> Option<Outcome> {
        let owner = cx.tables.owner((port, cx.to(destination))).unwrap_or(destination);
        let key = self.flows.key_of((port, cx.to(owner)), source);
        let route = self.flows.use_route(key)?;
        cx.counters.slow_path += 1;
        if cx.tables.address(key).1.destination != destination {
            self.correct(cx, hosts, source, key, hint);
        }
        Some(match owner == destination {
            true => Outcome::Forward(route),
            false => Outcome::Readdress(route, owner),
        })
    }

    /// Sends a host at `key.0` the current address of a masqueraded destination, unless it was sent
    /// recently. `like` is an address of the family that the host uses.
    pub(super) fn correct(
        &mut self,
        cx: &mut Cx,
        hosts: &Hosts,
        host: MacAddr,
        key: Key,
        like: Option<IpAddr>,
    ) {
        let flow = self.flows.get(key).and_then(|flow| flow.ip);
        let Some(place) = cx.tables.given_place(key) else { return };
        let same = |ip: &IpAddr| like.is_none_or(|like| like.is_ipv4() == ip.is_ipv4());
        let Some(ip) = flow.filter(same).or(place.ip(like)) else { return };
        let recently = place.corrected.is_some_and(|at| cx.now.since(at) < CORRECT_PAUSE);
        let Some(requester) = hosts.requester(host, ip).filter(|_| !recently) else { return };
        if let Some(place) = cx.tables.given_place(key) {
            place.corrected = Some(cx.now);
        }
        cx.counters.macs_corrected += 1;
        self.show(cx, key.0, requester, key.1.destination, ip);
    }

    /// Sends a host an answer: `ip` is at the MAC address that its port has for `destination`. A
    /// host gets no answer for its own address.
    pub(super) fn show(
        &mut self,
        cx: &mut Cx,
        port: PortNo,
        requester: Requester,
        destination: MacAddr,
        ip: IpAddr,
    ) {
        if requester.mac != destination {
            let key = self.flows.key_of((port, cx.to(destination)), requester.mac);
            let shown = cx.tables.show(key, ip);
            answer_with(cx, port, requester, (shown, ip), cx.settings.advertise_neighbour(ip));
        }
    }

    /// Reserves the MAC address of a host of `port`, which is not given there meanwhile.
    pub(super) fn keep_own(&mut self, cx: &mut Cx, port: PortNo, mac: MacAddr) {
        if index_of(mac).is_some() {
            cx.tables.occupy(port, mac);
            self.evade(cx, port, mac);
        }
    }

    /// Handles a MAC address in use by a host of `port` or one that its hosts reach. If it was
    /// given for another destination there, that gets another address, and the hosts of the port
    /// are sent it.
    pub(super) fn evade(&mut self, cx: &mut Cx, port: PortNo, mac: MacAddr) {
        let Some(destination) = cx.tables.owner((port, cx.to(mac))) else {
            // A destination that had it before does not get it back.
            return cx.tables.give_up(port, mac);
        };
        let key = (port, cx.to(destination));
        if self.flows.is_placed(key) {
            self.flows.set_placement(key, Placement::Software);
            let address = (port, cx.to(mac));
            cx.tables.take_out(cx.now, cx.out, address);
        }
        cx.tables.give_up(port, mac);
        if !self.place(cx, key) {
            cx.tables.reserve(key);
        }
        self.announce(cx, key);
    }

    /// Sends all hosts of a port the current MAC address of a destination.
    fn announce(&mut self, cx: &mut Cx, key: Key) {
        let Some(ip) = self.flows.get(key).and_then(|flow| flow.ip) else { return };
        let (port, mac) = (key.0, cx.tables.show(key, ip));
        let frame = match ip {
            IpAddr::V4(ip) => host_frame::request(mac, ip, MacAddr::BROADCAST, ip),
            IpAddr::V6(of) => cx.settings.advertise_neighbour(ip)(mac, of, None),
        };
        cx.out.push(Effect::Host { port, frame });
    }
}

/// Starts the pause of a port with a refusal, unless it has one.
fn pause(cx: &mut Cx, port: PortNo) {
    if cx.tables.pause(port) {
        cx.agenda.set(Timer::Place(port), cx.now + PAUSE);
    }
}

/// Returns the routes of a data plane that are of a VLAN, by the address in its tables, with the
/// destination itself.
pub(super) fn by_address(has: &Snapshot, vlan: VlanId) -> BTreeMap<Key, (MacAddr, &Route)> {
    let mut all = BTreeMap::new();
    for (port, is) in (0..).map(PortNo).zip(&has.ports) {
        let routes = is.routes.iter().map(|(key, route)| (*key, (key.destination, route)));
        let masqueraded = is.masqueraded.iter().map(|one| (one.key, (one.destination, &one.route)));
        let of_vlan = routes.chain(masqueraded).filter(|(key, _)| key.vlan == vlan);
        all.extend(of_vlan.map(|(key, route)| ((port, key), route)));
    }
    all
}

#[cfg(test)]
mod tests;
