//! Upkeep of routes. Routes follow the graph and the bonds, and are improved in rounds.
//!
//! Each change in the graph or in a bond moves the affected routes at once. Rounds (`rounds.rs`),
//! backups (`backups.rs`) and draining (`drain.rs`) follow later, driven by timers.

use super::backups::Backups;
use super::forwarding::Forwarding;
use super::hosts::Place;
use super::presence::Presence;
use super::rounds::Rounds;
use super::routes::Routes;
use super::topology::{Change, SwitchIndex};
use crate::effect::Effect;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use axon_wire::lacp::Partner;
use axon_wire::message::{Item, MemberState};
use axon_wire::{NodeId, Span, Time};

/// Pending work on routes.
#[derive(Clone, Debug)]
pub(super) struct Upkeep {
    rounds: Rounds,
    backups: Backups,
}

/// Timers.
impl Upkeep {
    /// Creates the state without routes. Routes will get backups if `backups` is true.
    pub(super) fn new(backups: bool, heartbeat: Span) -> Upkeep {
        Upkeep { rounds: Rounds::new(heartbeat * 10), backups: Backups::new(backups, heartbeat) }
    }

    pub(super) const fn backups(&self) -> &Backups {
        &self.backups
    }

    pub(super) const fn backups_mut(&mut self) -> &mut Backups {
        &mut self.backups
    }

    /// Schedules a round if the router needs one and none is in progress.
    pub(super) fn plan_round(&mut self, now: Time, routes: &Routes) {
        self.rounds.plan(now, routes);
    }

    /// Returns when to call [`Upkeep::timeout`] or [`Upkeep::links_run_out`] next.
    pub(super) fn deadline(&self, fwd: &Forwarding) -> Option<Time> {
        let (rounds, take_over) = (self.rounds.deadline(), fwd.take_over.deadline());
        let (links, bonds) = (fwd.net.graph().deadline(), fwd.net.fabric().bonds().deadline());
        let backups = self.backups.deadline(fwd.routes.flows());
        let drain = fwd.routes.drain().deadline();
        [rounds, take_over, links, bonds, backups, drain].into_iter().flatten().min()
    }

    /// Performs the work that is due: decides about inherited routes, improves and balances routes,
    /// and plans backups.
    pub(super) fn timeout(&mut self, fwd: &mut Forwarding, now: Time, out: &mut Vec<Effect>) {
        if fwd.take_over.check(now, (&fwd.net, &mut fwd.routes), out) {
            self.plan_round(now, &fwd.routes);
        }
        self.rounds.improve(now, (&fwd.net, &mut fwd.routes), out);
        for bond in 0..fwd.net.fabric().bonds().len() {
            if fwd.net.fabric_mut().bonds_mut().take_due(now, bond) {
                for host in fwd.net.hosts_of_bond(bond) {
                    fwd.routes.balance(&fwd.net, host, out);
                }
            }
        }
        self.backups.plan(now, (&fwd.net, &mut fwd.routes), out);
        self.drain(fwd, now, out);
    }

    /// Advances draining as far as possible.
    fn drain(&mut self, fwd: &mut Forwarding, now: Time, out: &mut Vec<Effect>) {
        let of = fwd.routes.paths().router().draining();
        let is_replaced = fwd.take_over.len() == 0 && self.backups.are_planned();
        if fwd.routes.drain_mut().advance(now, of, is_replaced, out) {
            fwd.routes.paths_mut().router_mut().drained();
            self.backups.recheck();
        }
    }
}

/// Changes in the graph.
impl Upkeep {
    /// Handles a change to the graph's edges.
    pub(super) fn changed(
        &mut self,
        (fwd, presence): (&mut Forwarding, &mut Presence),
        now: Time,
        change: &Change,
        out: &mut Vec<Effect>,
    ) {
        match change.lost.is_empty() {
            true => fwd.take_over.graph_changed(now),
            false => fwd.take_over.lost(now, &change.lost),
        }
        for route in fwd.routes.hit_by(&fwd.net, change) {
            fwd.routes.reroute(&fwd.net, route, out);
        }
        self.reach_bonds((&mut *fwd, presence), now, out);
        if change.gained && !fwd.routes.flows().is_empty() {
            self.rounds.restart(now);
        }
        self.backups.recheck();
        self.plan_round(now, &fwd.routes);
        self.drain(fwd, now, out);
    }

    /// Ends the links of earlier incarnations that no new one has reported in time.
    pub(super) fn links_run_out(
        &mut self,
        (fwd, presence): (&mut Forwarding, &mut Presence),
        now: Time,
        out: &mut Vec<Effect>,
    ) {
        let change = fwd.net.graph_mut().run_out(now);
        if change.gained || !change.lost.is_empty() {
            self.changed((fwd, presence), now, &change, out);
        }
    }

    /// Handles a new incarnation of a switch.
    ///
    /// Its routes are removed without a message, because the switch reports those that its data
    /// plane still has (`takeover.rs`). Its hosts keep their location until the switch reports
    /// them, for at most a few seconds. Routes to them stay, because its data plane may still
    /// forward.
    pub(super) fn reborn(
        &mut self,
        (fwd, presence): (&mut Forwarding, &mut Presence),
        now: Time,
        (switch, change): (SwitchIndex, &Change),
        out: &mut Vec<Effect>,
    ) {
        fwd.take_over.forget_switch(switch);
        // The data plane of the switch may still have unacknowledged routes.
        fwd.routes.drain_mut().again();
        let to = fwd.net.fabric().node(switch);
        for bond in 0..fwd.net.fabric().bonds().len() {
            if fwd.net.fabric_mut().bonds_mut().reset(bond, to) {
                self.bond_changed((&mut *fwd, &mut *presence), now, bond, out);
            }
        }
        presence.groups_mut().forget_switch(now, switch);
        fwd.routes.forget_switch(switch);
        for (place, mac) in fwd.net.hosts_mut().reborn(now, switch) {
            // A host that only receives would not be found again, so its switch must query it.
            let host = fwd.net.host(mac);
            if let Some(&ip) = host.and_then(|host| host.ips.last()) {
                let item = Item::AskHost { port: place.port, mac, ip };
                out.push(Effect::Command { to, item });
            }
        }
        self.changed((fwd, presence), now, change, out);
    }
}

/// Changes in bonds, see `bonds.rs`.
impl Upkeep {
    /// Updates which bond ports are at switches that are reachable in the graph.
    fn reach_bonds(
        &mut self,
        (fwd, presence): (&mut Forwarding, &mut Presence),
        now: Time,
        out: &mut Vec<Effect>,
    ) {
        if fwd.net.fabric().bonds().is_empty() {
            return;
        }
        let Some(reached) = fwd.net.fabric().reached() else { return };
        let nodes: BTreeSet<NodeId> =
            reached.into_iter().map(|switch| fwd.net.fabric().node(switch)).collect();
        for bond in 0..fwd.net.fabric().bonds().len() {
            if fwd.net.fabric_mut().bonds_mut().reach(now, bond, |node| nodes.contains(&node)) {
                self.bond_changed((&mut *fwd, &mut *presence), now, bond, out);
            }
        }
    }

    /// Handles a switch's report about a bond port. Returns `false` if the port is in no bond.
    pub(super) fn bond_member(
        &mut self,
        (fwd, presence): (&mut Forwarding, &mut Presence),
        now: Time,
        at: Place,
        (state, partner, selected): (MemberState, Option<Partner>, bool),
        out: &mut Vec<Effect>,
    ) -> bool {
        let Some(slot) = fwd.net.fabric().bonds().slot(fwd.net.fabric().port(at)) else {
            return false;
        };
        let joined = fwd.net.fabric().bond_at(at).is_some();
        fwd.net.fabric_mut().bonds_mut().report(now, slot, (state, partner));
        if joined && fwd.net.fabric().bond_at(at).is_none() {
            presence.leave_port(fwd, now, at, out);
            // The hosts may have sent through this port, and may be claimed at another one.
            for host in fwd.net.hosts_of_bond(slot.0) {
                fwd.routes.leave_port(&fwd.net, host, at, out);
            }
        }
        self.bond_changed((&mut *fwd, presence), now, slot.0, out);
        fwd.net.fabric().bonds().select(slot, selected, out);
        true
    }

    /// Handles a change in the ports of a bond, or in which of them distribute.
    fn bond_changed(
        &mut self,
        (fwd, presence): (&mut Forwarding, &mut Presence),
        now: Time,
        bond: usize,
        out: &mut Vec<Effect>,
    ) {
        fwd.net.fabric_mut().bonds_mut().choose(bond, out);
        presence.groups_mut().all_changed(now);
        // Backups end at a port of the bond, which may now be a different one.
        self.backups.recheck();
        for host in fwd.net.hosts_of_bond(bond) {
            fwd.routes.move_away(&fwd.net, host, out);
        }
    }
}
