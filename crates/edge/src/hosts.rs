//! Table of local hosts, and the reports sent to the controller.

use super::addresses::Addresses;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_wire::{MacAddr, PortNo, Time};
use core::net::IpAddr;

/// Maximum number of hosts at a port to an external network; a controller accepts 1,024 at one
/// port.
const UPLINK_HOSTS_MAX: usize = 1_000;

/// A host on a port of this switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Port of the host.
    pub port: PortNo,
    /// Known addresses of the host.
    pub ips: Addresses,
    /// Time of the last frame of the host in the control plane. Traffic in the data plane does not
    /// count.
    pub heard: Time,
    /// Number of consecutive unanswered probes.
    pub unanswered: u32,
    pub(super) changed: Time,
}

/// Table of local hosts. `reported` has the ports and addresses sent to the controller.
#[derive(Clone, Debug)]
pub(super) struct Hosts {
    per_port_max: usize,
    /// Ports to external networks, which may have more hosts.
    pub(super) uplinks: BTreeSet<PortNo>,
    pub(super) by_mac: BTreeMap<MacAddr, Host>,
    by_port: BTreeMap<PortNo, BTreeSet<MacAddr>>,
    pub(super) reported: BTreeMap<MacAddr, (PortNo, Addresses)>,
    /// Reported addresses that the controller queries for, with their hosts.
    withdrawn: BTreeSet<(IpAddr, MacAddr)>,
    /// Ports selected for a bond, with its key. Those of one bond are one location.
    bonds: BTreeMap<PortNo, u16>,
}

impl Hosts {
    pub(super) const fn new(per_port_max: usize, uplinks: BTreeSet<PortNo>) -> Hosts {
        Hosts {
            per_port_max,
            uplinks,
            by_mac: BTreeMap::new(),
            by_port: BTreeMap::new(),
            reported: BTreeMap::new(),
            withdrawn: BTreeSet::new(),
            bonds: BTreeMap::new(),
        }
    }

    /// Returns whether a port has the maximum number of hosts.
    pub(super) fn is_full(&self, port: PortNo) -> bool {
        let most = match self.uplinks.contains(&port) {
            true => self.per_port_max.max(UPLINK_HOSTS_MAX),
            false => self.per_port_max,
        };
        self.count_on(port) >= most
    }

    /// Returns whether a port leads to an external network.
    pub(super) fn is_uplink(&self, port: PortNo) -> bool {
        self.uplinks.contains(&port)
    }

    pub(super) fn get(&self, mac: MacAddr) -> Option<&Host> {
        self.by_mac.get(&mac)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (MacAddr, &Host)> {
        self.by_mac.iter().map(|(&mac, host)| (mac, host))
    }

    /// Adds a port to a bond, with which it is one location.
    pub(super) fn join(&mut self, port: PortNo, key: u16) {
        self.bonds.insert(port, key);
    }

    /// Removes a port from its bond.
    pub(super) fn part(&mut self, port: PortNo) {
        self.bonds.remove(&port);
    }

    /// Returns the joined ports of a bond.
    pub(super) fn joined(&self, key: u16) -> impl Iterator<Item = PortNo> {
        self.bonds.iter().filter(move |(_, other)| **other == key).map(|(&port, _)| port)
    }

    /// Returns all ports of this port's bond, itself included.
    pub(super) fn joined_to(&self, port: PortNo) -> Vec<PortNo> {
        match self.bonds.get(&port) {
            Some(&key) => self.joined(key).collect(),
            None => [port].into(),
        }
    }

    /// Returns whether a host is at a bond.
    pub(super) fn is_joined(&self, mac: MacAddr) -> bool {
        self.by_mac.get(&mac).is_some_and(|host| self.bonds.contains_key(&host.port))
    }

    /// Moves a host to another port of the same bond.
    pub(super) fn change_port(&mut self, mac: MacAddr, to: PortNo) {
        if let Some(host) = self.remove(mac) {
            self.insert(mac, Host { port: to, ..host });
        }
    }

    /// Returns whether a host is on this port, or on another one of the same bond.
    pub(super) fn is_on(&self, mac: MacAddr, port: PortNo) -> bool {
        self.by_mac.get(&mac).is_some_and(|host| {
            let bond = self.bonds.get(&port);
            host.port == port || bond.is_some() && self.bonds.get(&host.port) == bond
        })
    }

    /// Returns the hosts of one port, sorted by MAC address.
    pub(super) fn on_port(&self, port: PortNo) -> impl Iterator<Item = MacAddr> {
        self.by_port.get(&port).into_iter().flatten().copied()
    }

    /// Handles the controller's query for an address: each host reported with it is reported again
    /// when it next claims it.
    pub(super) fn withdraw(&mut self, ip: IpAddr) {
        let Hosts { reported, withdrawn, .. } = self;
        let with_it = reported.iter().filter(|(_, (_, ips))| ips.contains(ip));
        withdrawn.extend(with_it.map(|(&mac, _)| (ip, mac)));
        let is_reported = |ip, mac| {
            reported.get(&mac).is_some_and(|(_, ips): &(PortNo, Addresses)| ips.contains(ip))
        };
        withdrawn.retain(|&(ip, mac)| is_reported(ip, mac));
    }

    /// Returns whether an address must be reported again, now that its host has used it.
    pub(super) fn report_again(&mut self, mac: MacAddr, ip: IpAddr) -> bool {
        let Some((_, ips)) = self.reported.get_mut(&mac) else { return false };
        let again = ips.contains(ip) && self.withdrawn.remove(&(ip, mac));
        if again {
            ips.forget(ip);
        }
        again
    }

    /// Returns the number of hosts on a port, or on all ports of its bond.
    pub(super) fn count_on(&self, port: PortNo) -> usize {
        let count = |port: &PortNo| self.by_port.get(port).map_or(0, BTreeSet::len);
        match self.bonds.is_empty() {
            true => count(&port),
            false => self.joined_to(port).iter().map(count).sum(),
        }
    }

    pub(super) fn insert(&mut self, mac: MacAddr, host: Host) {
        self.by_port.entry(host.port).or_default().insert(mac);
        self.by_mac.insert(mac, host);
    }

    pub(super) fn remove(&mut self, mac: MacAddr) -> Option<Host> {
        let host = self.by_mac.remove(&mac)?;
        if let Some(macs) = self.by_port.get_mut(&host.port) {
            macs.remove(&mac);
            if macs.is_empty() {
                self.by_port.remove(&host.port);
            }
        }
        Some(host)
    }

    /// Returns the host without address on `port` that has been silent longest, if longer than
    /// since `since`.
    pub(super) fn longest_silent(&self, port: PortNo, since: Time) -> Option<MacAddr> {
        self.on_port(port)
            .filter_map(|mac| self.by_mac.get(&mac).map(|host| (host, mac)))
            .filter(|(host, _)| host.ips.is_empty() && host.heard < since)
            .min_by_key(|&(host, mac)| (host.heard, mac))
            .map(|(_, mac)| mac)
    }
}
