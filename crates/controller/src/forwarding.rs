//! Hosts and the routes between them: a change of one has the others follow.
//!
//! The parts that most requests need together. See `isolation.rs` for the policy, and
//! `by_source.rs` for routes of single hosts.

use super::excess::{Bounds, Excess};
use super::hosts::{HostIndex, Place};
use super::network::Network;
use super::routes::Routes;
use super::seeking::Seeking;
use super::takeover::TakeOver;
use alloc::vec::Vec;
use axon_link::effect::Effect;
use axon_node::telemetry::ControllerCounters;
use axon_wire::Time;
use axon_wire::message::{HostFrame, Message};

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
    /// Counts of frames for unreachable switches.
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
}
