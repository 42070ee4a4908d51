//! Upkeep of routes. Routes follow the graph and the bonds, and are improved in rounds.
//!
//! Each change in the graph or in a bond is handled once, and moves the affected routes of all
//! VLANs at once. Rounds (`rounds.rs`), backups (`backups.rs`) and draining (`drain.rs`) follow
//! later, driven by timers.

use super::ageing::Ageing;
use super::hosts::Place;
use super::rounds::Rounds;
use super::topology::{Change, SwitchIndex};
use super::vlans::Vlans;
use crate::effect::{Effect, Effects, of_fabric};
use alloc::collections::BTreeSet;
use axon_link::config::Timers;
use axon_wire::lacp::Partner;
use axon_wire::message::{Item, MemberState};
use axon_wire::{NodeId, Time};

/// Pending work on routes, and the switches that are silent.
#[derive(Clone, Debug)]
pub(super) struct Upkeep {
    pub(super) rounds: Rounds,
    pub(super) ageing: Ageing,
}

/// Timers.
impl Upkeep {
    /// Creates the state without routes and switches.
    pub(super) fn new(timers: &Timers) -> Upkeep {
        let rounds = Rounds::new(timers.heartbeat * 10);
        Upkeep { rounds, ageing: Ageing::new(timers.silence_max()) }
    }

    /// Returns when to call [`Upkeep::timeout`] next.
    pub(super) fn deadline(&self, all: &Vlans) -> Option<Time> {
        let fabric = &all.shared.fabric;
        let (rounds, ageing) = (self.rounds.deadline(), self.ageing.deadline());
        let (links, bonds) = (fabric.graph().deadline(), fabric.bonds().deadline());
        let drain = all.shared.decisions.drain.deadline();
        let vlans = all.iter().filter_map(|(_, vlan)| vlan.deadline());
        [rounds, ageing, links, bonds, drain].into_iter().flatten().chain(vlans).min()
    }

    /// Performs the work that is due: queries or removes hosts, decides about inherited routes,
    /// improves and balances routes, and plans backups.
    pub(super) fn timeout(&mut self, all: &mut Vlans, now: Time, out: &mut Effects) {
        all.each(out, |fwd, own, out| own.presence.run_out(fwd, now, out));
        self.links_run_out(all, now, out);
        for switch in self.ageing.silent(now) {
            all.each(out, |fwd, own, out| own.presence.age(fwd, now, switch, out));
        }
        self.decide(all, now, out);
        self.rounds.improve(now, all, out);
        for bond in 0..all.shared.fabric.bonds().len() {
            if all.shared.fabric.bonds_mut().take_due(now, bond) {
                all.each(out, |fwd, _, out| {
                    for host in fwd.net.hosts_of_bond(bond) {
                        fwd.routes.balance(&fwd.net, host, out);
                    }
                });
            }
        }
        all.each(out, |fwd, own, out| own.backups.plan(now, (&fwd.net, &mut fwd.routes), out));
        self.drain(all, now, out);
        all.each(out, |fwd, own, out| own.presence.groups_mut().make_lists(&fwd.net, now, out));
    }

    /// Decides about routes from an earlier incarnation.
    fn decide(&mut self, all: &mut Vlans, now: Time, out: &mut Effects) {
        let mut is_due = false;
        all.each(out, |fwd, _, _| is_due |= fwd.take_over.is_due(now));
        if !is_due {
            return;
        }
        all.each(out, |fwd, _, _| fwd.take_over.find_in_flight((&fwd.net, &mut fwd.routes)));
        all.each(out, |fwd, _, out| {
            fwd.take_over.check(now, (&fwd.net, &mut fwd.routes), out);
        });
        self.rounds.plan(now, &all.shared.decisions);
    }

    /// Advances draining as far as possible.
    fn drain(&mut self, all: &mut Vlans, now: Time, out: &mut Effects) {
        let of = all.shared.decisions.paths.router().draining();
        let is_replaced = of.is_some() && all.iter().all(|(_, vlan)| vlan.is_replaced());
        let decisions = &mut all.shared.decisions;
        if of_fabric(out, |out| decisions.drain.advance(now, of, is_replaced, out)) {
            decisions.paths.router_mut().drained();
            all.each(out, |_, own, _| own.backups.recheck());
        }
    }
}

/// Changes in the graph.
impl Upkeep {
    /// Handles a change to the graph's edges.
    pub(super) fn changed(
        &mut self,
        all: &mut Vlans,
        now: Time,
        change: &Change,
        out: &mut Effects,
    ) {
        let router = all.shared.decisions.paths.router_mut();
        let has_new_rule = router.changed(all.shared.fabric.graph());
        all.each(out, |fwd, _, out| {
            match change.lost.is_empty() {
                true => fwd.take_over.graph_changed(now),
                false => fwd.take_over.lost(now, &change.lost),
            }
            for route in fwd.routes.hit_by(&fwd.net, change, has_new_rule) {
                fwd.routes.reroute(&fwd.net, route, out);
            }
        });
        self.reach_bonds(all, now, out);
        if change.gained && all.iter().any(|(_, vlan)| !vlan.flows().is_empty()) {
            self.rounds.restart(now);
        }
        all.each(out, |_, own, _| own.backups.recheck());
        self.rounds.plan(now, &all.shared.decisions);
        self.drain(all, now, out);
    }

    /// Ends the links of earlier incarnations that no new one has reported in time.
    fn links_run_out(&mut self, all: &mut Vlans, now: Time, out: &mut Effects) {
        let change = all.shared.fabric.graph_mut().run_out(now);
        if change.gained || !change.lost.is_empty() {
            self.changed(all, now, &change, out);
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
        all: &mut Vlans,
        now: Time,
        (switch, change): (SwitchIndex, &Change),
        out: &mut Effects,
    ) {
        // The data plane of the switch may still have unacknowledged routes.
        all.shared.decisions.drain.again();
        let to = all.shared.fabric.node(switch);
        for bond in 0..all.shared.fabric.bonds().len() {
            if all.shared.fabric.bonds_mut().reset(bond, to) {
                bond_changed(all, now, bond, out);
            }
        }
        all.each(out, |fwd, own, out| {
            fwd.take_over.forget_switch(switch);
            own.presence.groups_mut().forget_switch(now, switch);
            fwd.routes.forget_switch(switch);
            for (place, mac) in fwd.net.hosts_mut().reborn(now, switch) {
                // A host that only receives would not be found again, so its switch must query it.
                let host = fwd.net.host(mac);
                if let Some(&ip) = host.and_then(|host| host.ips.last()) {
                    let item = Item::AskHost { port: place.port, mac, ip };
                    out.push(Effect::Command { to, item });
                }
            }
        });
        self.changed(all, now, change, out);
    }

    /// Updates which bond ports are at switches that are reachable in the graph.
    fn reach_bonds(&mut self, all: &mut Vlans, now: Time, out: &mut Effects) {
        let fabric = &all.shared.fabric;
        if fabric.bonds().is_empty() {
            return;
        }
        let Some(reached) = fabric.reached() else { return };
        let nodes: BTreeSet<NodeId> =
            reached.into_iter().map(|switch| fabric.node(switch)).collect();
        for bond in 0..fabric.bonds().len() {
            let bonds = all.shared.fabric.bonds_mut();
            if bonds.reach(now, bond, |node| nodes.contains(&node)) {
                bond_changed(all, now, bond, out);
            }
        }
    }
}

/// Handles a switch's report about a bond port. Returns `false` if the port is in no bond.
pub(super) fn bond_member(
    all: &mut Vlans,
    now: Time,
    at: Place,
    (state, partner, selected): (MemberState, Option<Partner>, bool),
    out: &mut Effects,
) -> bool {
    let fabric = &mut all.shared.fabric;
    let Some(slot) = fabric.bonds().slot(fabric.port(at)) else { return false };
    let joined = fabric.bond_at(at).is_some();
    fabric.bonds_mut().report(now, slot, (state, partner));
    if joined && fabric.bond_at(at).is_none() {
        all.each(out, |fwd, own, out| {
            own.presence.leave_port(fwd, now, at, out);
            // The hosts may have sent through this port, and may be claimed at another one.
            for host in fwd.net.hosts_of_bond(slot.0) {
                fwd.routes.leave_port(&fwd.net, host, at, out);
            }
        });
    }
    bond_changed(all, now, slot.0, out);
    of_fabric(out, |out| all.shared.fabric.bonds().select(slot, selected, out));
    true
}

/// Handles a change in the ports of a bond, or in which of them distribute, see `bonds.rs`.
fn bond_changed(all: &mut Vlans, now: Time, bond: usize, out: &mut Effects) {
    of_fabric(out, |out| all.shared.fabric.bonds_mut().choose(bond, out));
    all.each(out, |fwd, own, out| {
        own.presence.groups_mut().all_changed(now);
        // Backups end at a port of the bond, which may now be a different one.
        own.backups.recheck();
        for host in fwd.net.hosts_of_bond(bond) {
            fwd.routes.move_away(&fwd.net, host, out);
        }
    });
}
