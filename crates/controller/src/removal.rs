//! Removal of hosts: reported by their port, unanswered queries, or a dead switch.

use super::conductor::Controller;
use super::hosts::{Host, HostIndex, Place, Withdrawn};
use alloc::vec::Vec;
use axon_link::effect::Effect;
use axon_wire::{MacAddr, Time};

impl Controller {
    /// Removes the hosts of switches that have been silent for too long.
    pub(super) fn age(&mut self, now: Time, out: &mut Vec<Effect>) {
        for switch in self.ageing.silent(now) {
            for (place, mac) in self.net.hosts().claimed_by(switch) {
                self.counters.hosts_aged += 1;
                self.withdraw(now, place, mac, out);
            }
        }
    }

    /// Withdraws a claim, and moves or removes the flows of the host.
    pub(super) fn withdraw(
        &mut self,
        now: Time,
        place: Place,
        mac: MacAddr,
        out: &mut Vec<Effect>,
    ) {
        if self.net.stays_at_bond(place, mac) {
            self.net.hosts_mut().withdraw(place, mac);
            if let Some(host) = self.net.hosts().by_mac(mac) {
                self.addresses.show(&self.net, now, host);
                self.leave_place(host, place, out);
            }
            return;
        }
        match self.net.hosts_mut().withdraw(place, mac) {
            // A host at a bond sends by several ports; its last claim is at one of them.
            Withdrawn::Nothing => {
                if let Some(host) = self.net.hosts().by_mac(mac) {
                    self.leave_place(host, place, out);
                }
            }
            Withdrawn::Moved(host) => {
                self.addresses.show(&self.net, now, host);
                self.groups.host_changed(now, mac);
                self.take_over.host_seen(now);
                // A host at another port of its bond has not moved; its routes there stay.
                match self.net.is_bonded(host) {
                    true => self.leave_place(host, place, out),
                    false => self.routes.migrate(&self.net, host, out),
                }
                if let Some(at) = self.net.hosts().get(host).map(Host::place) {
                    self.came(at, out);
                }
            }
            Withdrawn::Gone(host) => {
                let ips = self.net.hosts().get(host).map_or(Vec::new(), |host| host.ips.clone());
                self.addresses.dhcp_mut().shown(now, mac, None, &ips);
                self.routes.leave(&self.net, host, out);
                self.addresses().1.cut_off(host, out);
                self.net.hosts_mut().forget(host);
                self.groups.host_gone(now, mac);
                {
                    let (addresses, mut around) = self.addresses();
                    addresses.forgotten(&mut around, now, mac, ips, out);
                }
            }
        }
    }

    /// Removes the routes that only this host used at a port where its claim has ended. The switch
    /// has removed them there, and at its other ports of the bond. If such a route stayed here, it
    /// would be sent again with its old stamp and be refused as older than its removal.
    fn leave_place(&mut self, host: HostIndex, place: Place, out: &mut Vec<Effect>) {
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
}
