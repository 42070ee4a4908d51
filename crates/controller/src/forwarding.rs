//! Hosts and the routes between them: a change of one has the others follow.
//!
//! The parts that most requests need together. See `isolation.rs` for the policy, and
//! `by_source.rs` for routes of single hosts.

use super::excess::{Bounds, Excess};
use super::flows::{Account, Origin, Route, RouteIndex};
use super::hosts::{Host, HostIndex, Place};
use super::network::Network;
use super::routes::Routes;
use super::seeking::Seeking;
use super::takeover::TakeOver;
use alloc::vec::Vec;
use axon_link::effect::Effect;
use axon_node::telemetry::ControllerCounters;
use axon_wire::Time;
use axon_wire::message::{ArpRequest, ArpTarget, Grant, HostFrame, Message};
use axon_wire::{Hops, Incarnation};
use core::net::IpAddr;

/// Locations and rights of hosts, their routes, and the bounds of both.
#[derive(Clone, Debug)]
pub(super) struct Forwarding {
    pub(super) net: Network,
    pub(super) routes: Routes,
    /// Routes of an earlier incarnation in the tables of edges.
    pub(super) take_over: TakeOver,
    /// Pending searches for addresses of unknown hosts.
    pub(super) seeking: Seeking,
    pub(super) bounds: Bounds,
    /// Counts of frames for unreachable switches, and of requests without a path.
    pub(super) counters: ControllerCounters,
}

impl Forwarding {
    /// Removes the routes to a host everywhere.
    pub(super) fn cut_off(&mut self, host: HostIndex, out: &mut Vec<Effect>) {
        self.take_over.cut_off((&self.net, &mut self.routes), host, out);
    }

    /// Counts and notes a refusal because a switch or a port is at its bound.
    pub(super) fn over_bound(&mut self, now: Time, excess: Excess, out: &mut Vec<Effect>) {
        self.bounds.refuse(now, self.net.fabric(), excess, out);
    }

    /// Handles the refusal of a host because its port, or the switch, is at its bound of claims.
    pub(super) fn too_many_hosts(&mut self, now: Time, at: Place, out: &mut Vec<Effect>) {
        let port = self.net.hosts().is_port_full(at).then_some(at.port);
        self.over_bound(now, (at.switch, port), out);
    }

    /// Removes the routes that only this host used at a port where its claim has ended. The switch
    /// has removed them there, and at its other ports of the bond. If such a route stayed here, it
    /// would be sent again with its old stamp and be refused as older than its removal.
    pub(super) fn leave_place(&mut self, host: HostIndex, place: Place, out: &mut Vec<Effect>) {
        for at in
            self.net.fabric().ports_of(place).into_iter().filter(|at| at.switch == place.switch)
        {
            self.routes.leave_port(&self.net, host, at, out);
        }
    }

    /// Has the old switch of a moved host query it. If the host is still there, it answers and is
    /// reported again, so a forged frame interrupts it only briefly.
    pub(super) fn verify(&mut self, now: Time, host: HostIndex, out: &mut Vec<Effect>) {
        if let Some((mac, place, ip)) = self.net.hosts_mut().verify(now, host) {
            for place in self.net.fabric().ports_of(place) {
                self.net.query(place, mac, ip, out);
            }
        }
    }

    /// Sends a frame out of a host port; returns whether its switch is reachable.
    pub(super) fn send_to_port(
        &mut self,
        place: Place,
        frame: Vec<u8>,
        out: &mut Vec<Effect>,
    ) -> bool {
        let to = self.net.graph().switch(place.switch).incarnation;
        let Some(hops) = self.routes.paths_mut().path_to(&self.net, to.node) else {
            self.counters.dhcp_unreachable += 1;
            return false;
        };
        let message = Message::HostFrame(HostFrame { port: place.port, frame });
        out.push(Effect::Routed { hops, to, message });
        true
    }

    /// Returns the ports of the routes that a request needs and that do not exist: the forward
    /// route, and the reverse one if this controller decides about it.
    pub(super) fn missing(
        &self,
        (place, there): (Place, Place),
        found: [Option<RouteIndex>; 2],
    ) -> ([Place; 2], usize) {
        let back = found[1].is_none() && !self.net.fabric().is_elsewhere(there.switch);
        match (found[0].is_none(), back) {
            (true, true) => ([place, there], 2),
            (true, false) => ([place; 2], 1),
            (false, true) => ([there; 2], 1),
            (false, false) => ([place; 2], 0),
        }
    }

    /// Returns the route from a port of this switch to a host, with `user` as a new user.
    pub(super) fn route_here(
        &mut self,
        now: Time,
        here: Place,
        to: HostIndex,
        user: HostIndex,
        out: &mut Vec<Effect>,
    ) -> Option<RouteIndex> {
        let there = self.net.hosts().get(to).map(Host::place)?;
        let from = self.routes.origin(&self.net, here, user, to)?;
        let found = self.routes.flows().find(from, to);
        if found.is_none()
            && let Some((excess, _)) =
                self.bounds.excess_of(self.routes.flows(), here, there.switch, &[here])
        {
            self.over_bound(now, excess, out);
            return None;
        }
        let account = Account::Requested(here, there.switch);
        let made = self.routes.found_or_made(&self.net, found, from, to, (user, account));
        self.counters.arp_unreachable += u64::from(made.is_none());
        made
    }

    /// Answers a request with the forward and reverse routes; makes those that do not exist.
    pub(super) fn answer(
        &mut self,
        m: &ArpRequest,
        source_switch: Incarnation,
        ([from, back], [target, source]): ([Origin; 2], [HostIndex; 2]),
        (found, asked): ([Option<RouteIndex>; 2], Option<IpAddr>),
        out: &mut Vec<Effect>,
    ) -> Option<()> {
        let (place, there) = (from.at, back.at);
        let host = self.net.hosts().get(target)?;
        let target_mac = host.mac;
        // A bonded host may answer on another port; one without an address cannot be queried.
        let bonded = self.net.is_bonded(target);
        let target_ip = asked.or_else(|| host.ips.last().copied()).filter(|_| !bonded);
        let to = self.net.graph().switch(there.switch).incarnation;
        let hops = self.routes.paths_mut().path_to(&self.net, to.node)?;
        let account = Account::Requested(place, there.switch);
        let forward =
            self.routes.found_or_made(&self.net, found[0], from, target, (source, account))?;
        let backward = match self.net.fabric().is_elsewhere(there.switch) {
            true => None,
            false => Some(self.routes.found_or_made(
                &self.net,
                found[1],
                back,
                source,
                (target, account),
            )?),
        };
        let answer_by = match backward {
            Some(backward) => self.routes.answer_by(&self.net, there, place, backward)?,
            None => Hops::default(),
        };
        let forward = self.routes.flows().get(forward)?;
        let backward = backward.and_then(|backward| self.routes.flows().get(backward));
        let message = Message::ArpTarget(ArpTarget {
            id: m.id,
            source_switch,
            source_port: m.port,
            source_mac: m.source_mac,
            source_ip: m.source_ip,
            target_port: there.port,
            target_mac,
            target_ip,
            // Both routes are current, so the later of their stamps is valid for both.
            stamp: self.routes.stamp(forward.number.max(backward.map_or(0, |route| route.number))),
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

    /// Balances the routes over the ports of bonds that are due.
    pub(super) fn balance_bonds(&mut self, now: Time, out: &mut Vec<Effect>) {
        for bond in 0..self.net.fabric().bonds().len() {
            if self.net.fabric_mut().bonds_mut().take_due(now, bond) {
                for host in self.net.hosts_of_bond(bond) {
                    self.routes.balance(&self.net, host, out);
                }
            }
        }
    }
}
