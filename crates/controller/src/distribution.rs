//! Routes to hosts at bonds: which port each route ends at, and what follows from a change of the
//! ports. See `bonds.rs`.

use super::conductor::Controller;
use super::hosts::Place;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use axon_link::effect::Effect;
use axon_node::telemetry::BondTelemetry;
use axon_wire::lacp::Partner;
use axon_wire::message::MemberState;
use axon_wire::{NodeId, Time};

impl Controller {
    /// Returns the telemetry of all bonds.
    pub fn bonds_telemetry(&self) -> Vec<BondTelemetry> {
        self.net.fabric().bonds().telemetry()
    }

    /// Removes a port from its bond; its hosts are at another port of the bond, or gone.
    fn part(&mut self, now: Time, at: Place, out: &mut Vec<Effect>) {
        let claims = self.net.hosts().claimed_by(at.switch).into_iter();
        for (place, mac) in claims.filter(|(place, _)| *place == at) {
            self.withdraw(now, place, mac, out);
        }
    }

    /// Updates which bond ports are at switches that the graph reaches, after a change of the
    /// graph.
    pub(super) fn see_bonds(&mut self, now: Time, out: &mut Vec<Effect>) {
        if self.net.fabric().bonds().is_empty() {
            return;
        }
        let Some(reached) = self.net.fabric().reached() else { return };
        let nodes: BTreeSet<NodeId> =
            reached.into_iter().map(|switch| self.net.fabric().node(switch)).collect();
        for bond in 0..self.net.fabric().bonds().len() {
            let bonds = self.net.fabric_mut().bonds_mut();
            if bonds.reach(now, bond, |node| nodes.contains(&node)) {
                self.bond_changed(now, bond, out);
            }
        }
    }

    /// Handles a switch's report about a bond port.
    pub(super) fn bond_member(
        &mut self,
        now: Time,
        at: Place,
        (state, partner, selected): (MemberState, Option<Partner>, bool),
        out: &mut Vec<Effect>,
    ) {
        let Some(slot) = self.net.fabric().bonds().slot(self.net.fabric().port(at)) else {
            self.counters.item_misplaced += 1;
            return;
        };
        let joined = self.net.fabric().bond_at(at).is_some();
        self.net.fabric_mut().bonds_mut().report(now, slot, (state, partner));
        if joined && self.net.fabric().bond_at(at).is_none() {
            self.part(now, at, out);
            // The hosts may have sent by this port and be claimed at another.
            for host in self.net.hosts_of_bond(slot.0) {
                self.routes.leave_port(&self.net, host, at, out);
            }
        }
        self.bond_changed(now, slot.0, out);
        self.net.fabric().bonds().select(slot, selected, out);
    }

    /// Resets the bond ports of a switch with a new incarnation.
    pub(super) fn forget_members(&mut self, now: Time, node: NodeId, out: &mut Vec<Effect>) {
        for bond in 0..self.net.fabric().bonds().len() {
            if self.net.fabric_mut().bonds_mut().reset(bond, node) {
                self.bond_changed(now, bond, out);
            }
        }
    }

    /// Handles a change of the ports of a bond, or of which of them distribute.
    fn bond_changed(&mut self, now: Time, bond: usize, out: &mut Vec<Effect>) {
        self.net.fabric_mut().bonds_mut().choose(bond, out);
        self.groups.all_changed(now);
        // Backups end at a port of the bond, which may be another one now.
        self.backups.recheck();
        for host in self.net.hosts_of_bond(bond) {
            self.routes.move_away(&self.net, host, out);
        }
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
