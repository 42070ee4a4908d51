//! Hosts reported at ports, and their removal: reported by their port, unanswered queries, or a
//! dead switch.

use super::conductor::Controller;
use super::hosts::{Host, Learned, Place, Withdrawn};
use alloc::vec::Vec;
use axon_link::config::IPS_PER_HOST_MAX;
use axon_link::effect::Effect;
use axon_wire::{MacAddr, Time};
use core::net::IpAddr;

impl Controller {
    /// Handles a report of a host at a port, with the addresses that it uses.
    pub(super) fn host_seen(
        &mut self,
        now: Time,
        at: Place,
        (mac, ips): (MacAddr, Vec<IpAddr>),
        out: &mut Vec<Effect>,
    ) {
        let learned = self.fwd.reported(now, at, mac, out);
        if learned == Learned::Full {
            return self.fwd.too_many_hosts(now, at, out);
        }
        let (Learned::Here(host) | Learned::Moved(host)) = learned else {
            return;
        };
        self.addresses.show(&self.fwd.net, now, host);
        self.groups.host_changed(now, mac);
        self.fwd.take_over.host_seen(now);
        for ip in ips.into_iter().take(IPS_PER_HOST_MAX) {
            self.addresses.claimed(&mut self.fwd, now, host, ip, out);
        }
        if learned == Learned::Moved(host) {
            self.fwd.routes.migrate(&self.fwd.net, host, out);
            self.fwd.verify(now, host, out);
        }
        self.fulfil_found(now, out);
    }

    /// Removes the hosts of switches that have been silent for too long.
    pub(super) fn age(&mut self, now: Time, out: &mut Vec<Effect>) {
        for switch in self.ageing.silent(now) {
            for (place, mac) in self.fwd.net.hosts().claimed_by(switch) {
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
        if self.fwd.net.stays_at_bond(place, mac) {
            self.fwd.net.hosts_mut().withdraw(place, mac);
            if let Some(host) = self.fwd.net.hosts().by_mac(mac) {
                self.addresses.show(&self.fwd.net, now, host);
                self.fwd.leave_place(host, place, out);
            }
            return;
        }
        match self.fwd.net.hosts_mut().withdraw(place, mac) {
            // A host at a bond sends by several ports; its last claim is at one of them.
            Withdrawn::Nothing => {
                if let Some(host) = self.fwd.net.hosts().by_mac(mac) {
                    self.fwd.leave_place(host, place, out);
                }
            }
            Withdrawn::Moved(host) => {
                self.addresses.show(&self.fwd.net, now, host);
                self.groups.host_changed(now, mac);
                self.fwd.take_over.host_seen(now);
                // A host at another port of its bond has not moved; its routes there stay.
                match self.fwd.net.is_bonded(host) {
                    true => self.fwd.leave_place(host, place, out),
                    false => self.fwd.routes.migrate(&self.fwd.net, host, out),
                }
                if let Some(at) = self.fwd.net.hosts().get(host).map(Host::place) {
                    self.fwd.came(at, out);
                }
            }
            Withdrawn::Gone(host) => {
                let ips =
                    self.fwd.net.hosts().get(host).map_or(Vec::new(), |host| host.ips.clone());
                self.addresses.dhcp_mut().shown(now, mac, None, &ips);
                self.fwd.routes.leave(&self.fwd.net, host, out);
                self.fwd.cut_off(host, out);
                self.fwd.net.hosts_mut().forget(host);
                self.groups.host_gone(now, mac);
                self.addresses.forgotten(&mut self.fwd, now, mac, ips, out);
            }
        }
    }
}
