//! The table of local hosts, and what the controller has been sent of it.

use super::addresses::Addresses;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_wire::{MacAddr, PortNo, Time};
use core::net::IpAddr;

/// Hosts at a port to a real network: what a controller enters at one port is 1,024.
const UPLINK_HOSTS_MAX: usize = 1_000;

/// A host on a port of this switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The port of the host.
    pub port: PortNo,
    /// The addresses of the host that are known.
    pub ips: Addresses,
    /// When the control plane last received a frame of the host. Traffic in the data plane does
    /// not count.
    pub heard: Time,
    /// The number of probes in a row that the host has not answered.
    pub unanswered: u32,
    pub(super) changed: Time,
}

/// The table of local hosts. `reported` holds what the controller has been sent: their ports and
/// addresses.
#[derive(Clone, Debug)]
pub(super) struct Hosts {
    per_port_max: usize,
    /// Ports to real networks, at which there may be more.
    pub(super) uplinks: BTreeSet<PortNo>,
    pub(super) by_mac: BTreeMap<MacAddr, Host>,
    by_port: BTreeMap<PortNo, BTreeSet<MacAddr>>,
    pub(super) reported: BTreeMap<MacAddr, (PortNo, Addresses)>,
    /// Addresses of these that the controller asks for, with the hosts that it had them from.
    withdrawn: BTreeSet<(IpAddr, MacAddr)>,
    /// Ports that are selected for a bond, by its key: those of one bond are one place.
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

    /// Whether a port has all the hosts that it may have.
    pub(super) fn is_full(&self, port: PortNo) -> bool {
        let most = match self.uplinks.contains(&port) {
            true => self.per_port_max.max(UPLINK_HOSTS_MAX),
            false => self.per_port_max,
        };
        self.count_on(port) >= most
    }

    pub(super) fn get(&self, mac: MacAddr) -> Option<&Host> {
        self.by_mac.get(&mac)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (MacAddr, &Host)> {
        self.by_mac.iter().map(|(&mac, host)| (mac, host))
    }

    /// A port is one place with the others of its bond from now on.
    pub(super) fn join(&mut self, port: PortNo, key: u16) {
        self.bonds.insert(port, key);
    }

    /// A port is a place of its own again.
    pub(super) fn part(&mut self, port: PortNo) {
        self.bonds.remove(&port);
    }

    /// The ports of a bond that are one place.
    pub(super) fn joined(&self, key: u16) -> impl Iterator<Item = PortNo> {
        self.bonds.iter().filter(move |(_, other)| **other == key).map(|(&port, _)| port)
    }

    /// All ports that are one place with this one, itself included.
    pub(super) fn joined_to(&self, port: PortNo) -> Vec<PortNo> {
        match self.bonds.get(&port) {
            Some(&key) => self.joined(key).collect(),
            None => [port].into(),
        }
    }

    /// Whether a host is at a bond.
    pub(super) fn is_joined(&self, mac: MacAddr) -> bool {
        self.by_mac.get(&mac).is_some_and(|host| self.bonds.contains_key(&host.port))
    }

    /// A host that stays where it is has its place at another port of the same bond.
    pub(super) fn change_port(&mut self, mac: MacAddr, to: PortNo) {
        if let Some(host) = self.remove(mac) {
            self.insert(mac, Host { port: to, ..host });
        }
    }

    /// Whether this host is on this port, or on another one of the same bond.
    pub(super) fn is_on(&self, mac: MacAddr, port: PortNo) -> bool {
        self.by_mac.get(&mac).is_some_and(|host| {
            let bond = self.bonds.get(&port);
            host.port == port || bond.is_some() && self.bonds.get(&host.port) == bond
        })
    }

    /// The hosts of one port, in the order of their MACs.
    pub(super) fn on_port(&self, port: PortNo) -> impl Iterator<Item = MacAddr> {
        self.by_port.get(&port).into_iter().flatten().copied()
    }

    /// The controller asks for an address: each host that was reported with it is reported again
    /// when it says that it has it.
    pub(super) fn withdraw(&mut self, ip: IpAddr) {
        let Hosts { reported, withdrawn, .. } = self;
        let with_it = reported.iter().filter(|(_, (_, ips))| ips.contains(ip));
        withdrawn.extend(with_it.map(|(&mac, _)| (ip, mac)));
        let is_reported = |ip, mac| {
            reported.get(&mac).is_some_and(|(_, ips): &(PortNo, Addresses)| ips.contains(ip))
        };
        withdrawn.retain(|&(ip, mac)| is_reported(ip, mac));
    }

    /// Whether an address is to be reported again, now that its host has used it.
    pub(super) fn report_again(&mut self, mac: MacAddr, ip: IpAddr) -> bool {
        let Some((_, ips)) = self.reported.get_mut(&mac) else { return false };
        let again = ips.contains(ip) && self.withdrawn.remove(&(ip, mac));
        if again {
            ips.forget(ip);
        }
        again
    }

    /// The hosts of a port, or of all that are one place with it.
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

    /// The host without address on `port` that has been silent longest, if that is since
    /// before `since`.
    pub(super) fn longest_silent(&self, port: PortNo, since: Time) -> Option<MacAddr> {
        self.on_port(port)
            .filter_map(|mac| self.by_mac.get(&mac).map(|host| (host, mac)))
            .filter(|(host, _)| host.ips.is_empty() && host.heard < since)
            .min_by_key(|&(host, mac)| (host.heard, mac))
            .map(|(_, mac)| mac)
    }
}
