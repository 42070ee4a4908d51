//! Presence of hosts: the consequences when a host comes, moves or goes.
//!
//! A host is reported by the switch of its port. It is removed when its switch reports that it is
//! gone, when it leaves queries unanswered, or when its switch has been silent for too long. Its
//! addresses, group memberships and routes are updated accordingly.

use super::addresses::Addresses;
use super::dhcp::DhcpServer;
use super::forwarding::Forwarding;
use super::groups::Groups;
use super::hosts::{Host, HostIndex, Learned, Place, Withdrawn};
use super::leases6::Leases6;
use super::network::View;
use super::topology::SwitchIndex;
use crate::config::{ControllerConfig, DhcpConfig};
use crate::effect::Effect;
use alloc::vec::Vec;
use axon_link::config::{IPS_PER_HOST_MAX, ServerIdentity};
use axon_wire::message::Item;
use axon_wire::{MacAddr, Time};
use core::net::IpAddr;

/// Addresses and groups of the hosts that are present.
#[derive(Clone, Debug)]
pub(super) struct Presence {
    addresses: Addresses,
    groups: Groups,
    /// Number of hosts removed because their switch was silent.
    aged: u64,
}

/// Access to the parts.
impl Presence {
    /// Creates the state without hosts.
    pub(super) fn new(
        config: &ControllerConfig,
        (server, dhcp): (ServerIdentity, &DhcpConfig),
    ) -> Presence {
        let leases6 = Leases6::new(dhcp.leases_per_port_max);
        let mut dhcp = DhcpServer::new(server, dhcp);
        let v4 = |ip| match ip {
            IpAddr::V4(ip) => Some(ip),
            IpAddr::V6(_) => None,
        };
        dhcp.withhold(config.policy.addresses().filter_map(v4));
        dhcp.withhold(config.uplinks.iter().map(|uplink| uplink.gateway));
        Presence { addresses: Addresses::new(dhcp, leases6), groups: Groups::default(), aged: 0 }
    }

    pub(super) const fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    pub(super) const fn addresses_mut(&mut self) -> &mut Addresses {
        &mut self.addresses
    }

    pub(super) const fn groups(&self) -> &Groups {
        &self.groups
    }

    pub(super) const fn groups_mut(&mut self) -> &mut Groups {
        &mut self.groups
    }

    /// Returns the number of hosts removed because their switch was silent.
    pub(super) const fn aged(&self) -> u64 {
        self.aged
    }

    /// Returns when the next timer of addresses or groups expires.
    pub(super) fn deadline(&self) -> Option<Time> {
        [self.addresses.deadline(), self.groups.deadline()].into_iter().flatten().min()
    }
}

/// Hosts that come, move and go.
impl Presence {
    /// Handles a report of a host at a port, with the addresses that it uses. Returns whether the
    /// host is admitted at that port.
    pub(super) fn seen(
        &mut self,
        fwd: &mut Forwarding,
        now: Time,
        at: Place,
        (mac, ips): (MacAddr, Vec<IpAddr>),
        out: &mut Vec<Effect>,
    ) -> bool {
        let learned = fwd.reported(now, at, mac, out);
        if learned == Learned::Full {
            fwd.bounds.too_many_hosts(now, &fwd.net, at, out);
        }
        let (Learned::Here(host) | Learned::Moved(host)) = learned else {
            return false;
        };
        self.addresses.show(&fwd.net, now, host);
        self.groups.host_changed(now, mac);
        fwd.take_over.host_seen(now);
        for ip in ips.into_iter().take(IPS_PER_HOST_MAX) {
            self.addresses.claimed(fwd, now, host, ip, out);
        }
        if learned == Learned::Moved(host) {
            fwd.routes.migrate(&fwd.net, host, out);
            verify(fwd, now, host, out);
        }
        true
    }

    /// Handles expired timers of hosts and addresses: it queries or removes hosts, assigns freed
    /// addresses, and resolves conflicts.
    pub(super) fn run_out(&mut self, fwd: &mut Forwarding, now: Time, out: &mut Vec<Effect>) {
        while let Some((place, mac)) = fwd.net.hosts_mut().run_out(now) {
            if let Some(ip) = fwd.net.hosts().remembered(place, mac) {
                fwd.net.query(place, mac, ip, out);
            }
            self.withdraw(fwd, now, (place, mac), out);
        }
        while let Some(host) = fwd.net.hosts().verify_due(now) {
            verify(fwd, now, host, out);
        }
        self.addresses.settle(fwd, now, out);
        self.addresses.conflicts_due(fwd, now, out);
    }

    /// Removes the hosts of a switch that has been silent for too long.
    pub(super) fn age(
        &mut self,
        fwd: &mut Forwarding,
        now: Time,
        switch: SwitchIndex,
        out: &mut Vec<Effect>,
    ) {
        for claim in fwd.net.hosts().claimed_by(switch) {
            self.aged += 1;
            self.withdraw(fwd, now, claim, out);
        }
    }

    /// Ends the claims at a port that has left its bond. The hosts there are at another port of the
    /// bond, or they are gone.
    pub(super) fn leave_port(
        &mut self,
        fwd: &mut Forwarding,
        now: Time,
        at: Place,
        out: &mut Vec<Effect>,
    ) {
        let claims = fwd.net.hosts().claimed_by(at.switch).into_iter();
        for claim in claims.filter(|(place, _)| *place == at) {
            self.withdraw(fwd, now, claim, out);
        }
    }

    /// Withdraws a claim, and moves or removes the flows of the host.
    pub(super) fn withdraw(
        &mut self,
        fwd: &mut Forwarding,
        now: Time,
        (place, mac): (Place, MacAddr),
        out: &mut Vec<Effect>,
    ) {
        if fwd.net.stays_at_bond(place, mac) {
            fwd.net.hosts_mut().withdraw(place, mac);
            if let Some(host) = fwd.net.hosts().by_mac(mac) {
                self.addresses.show(&fwd.net, now, host);
                leave_place(fwd, host, place, out);
            }
            return;
        }
        match fwd.net.hosts_mut().withdraw(place, mac) {
            // A host at a bond sends through several ports, and its last claim is at one of them.
            Withdrawn::Nothing => {
                if let Some(host) = fwd.net.hosts().by_mac(mac) {
                    leave_place(fwd, host, place, out);
                }
            }
            Withdrawn::Moved(host) => {
                self.addresses.show(&fwd.net, now, host);
                self.groups.host_changed(now, mac);
                fwd.take_over.host_seen(now);
                // A host at another port of its bond has not moved, so its routes there stay.
                match fwd.net.is_bonded(host) {
                    true => leave_place(fwd, host, place, out),
                    false => fwd.routes.migrate(&fwd.net, host, out),
                }
                if let Some(at) = fwd.net.hosts().get(host).map(Host::place) {
                    fwd.came(at, out);
                }
            }
            Withdrawn::Gone(host) => {
                let ips = fwd.net.hosts().get(host).map_or(Vec::new(), |host| host.ips.clone());
                self.addresses.dhcp_mut().shown(now, mac, None, &ips);
                fwd.routes.leave(&fwd.net, host, out);
                fwd.cut_off(host, out);
                fwd.net.hosts_mut().forget(host);
                self.groups.host_gone(now, mac);
                self.addresses.forgotten(fwd, now, mac, ips, out);
            }
        }
    }

    /// Returns the reports from this switch that another switch needs after a first or repeated
    /// greeting: hosts first, then their groups. Empty if this controller is not within a switch.
    pub(super) fn reports(&self, net: &View) -> Vec<Item> {
        let Some(home) = net.fabric().home() else { return Vec::new() };
        let here = |host: &&Host| host.place().switch == home && !host.is_provisional();
        let hosts = net.hosts().iter().map(|(_, host)| host).filter(here);
        let seen = hosts.map(|host| Item::HostSeen {
            port: host.place().port,
            mac: host.mac,
            ips: host.ips.clone(),
        });
        let here = self.groups.members_at(home);
        let joined = here.map(|(group, mac, at)| Item::GroupMember {
            port: at.port,
            mac,
            group,
            joined: true,
        });
        seen.chain(joined).collect()
    }
}

/// Has the old switch of a moved host query it. If the host is still there, it answers and is
/// reported again, so that a forged frame interrupts its traffic only briefly.
fn verify(fwd: &mut Forwarding, now: Time, host: HostIndex, out: &mut Vec<Effect>) {
    if let Some((mac, place, ip)) = fwd.net.hosts_mut().verify(now, host) {
        for place in fwd.net.fabric().ports_of(place) {
            fwd.net.query(place, mac, ip, out);
        }
    }
}

/// Removes the routes that only this host used at a port where its claim has ended. The switch has
/// removed them there, and at its other ports of the bond. If such a route stayed here, it would be
/// sent again with its old stamp, and the switch would refuse it because its removal is newer.
fn leave_place(fwd: &mut Forwarding, host: HostIndex, place: Place, out: &mut Vec<Effect>) {
    for at in fwd.net.fabric().ports_of(place).into_iter().filter(|at| at.switch == place.switch) {
        fwd.routes.leave_port(&fwd.net, host, at, out);
    }
}
