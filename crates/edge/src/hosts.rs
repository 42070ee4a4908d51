//! Table of local hosts, and the reports sent to the controller.

use super::addresses::Addresses;
use super::answers::Requester;
use super::context::{Cx, Timer};
use super::groups::Groups;
use super::seek::Search;
use crate::effect::Effect;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_wire::message::Item;
use axon_wire::{MacAddr, PortNo, Span, Time};
use core::net::IpAddr;

/// Maximum number of hosts at a port to an external network; a controller accepts 1,024 at one
/// port.
const UPLINK_HOSTS_MAX: usize = 1_000;

/// Minimum time between two moves or address changes of a host that are accepted. Two stations that
/// fight for one address cannot overload the controller.
const CHANGE_HOLD: Span = Span::from_millis(200);

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
    changed: Time,
}

impl Host {
    /// Creates a host without addresses that has just been heard.
    pub(super) fn new(now: Time, port: PortNo) -> Host {
        let ips = Addresses::default();
        Host { port, ips, heard: now, unanswered: 0, changed: now }
    }
}

/// Sender of a frame, as known before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Location {
    /// Known at the port, or at this one of the same bond.
    Here(PortNo),
    /// Known at another port.
    Elsewhere(PortNo),
    /// Known at another port for too short a time to move.
    Refused,
    /// Not known.
    New,
}

/// Table of local hosts. `reported` has the ports and addresses sent to the controller.
#[derive(Clone, Debug)]
pub(super) struct Hosts {
    per_port_max: usize,
    /// Ports to external networks, which may have more hosts.
    uplinks: BTreeSet<PortNo>,
    by_mac: BTreeMap<MacAddr, Host>,
    by_port: BTreeMap<PortNo, BTreeSet<MacAddr>>,
    reported: BTreeMap<MacAddr, (PortNo, Addresses)>,
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
    fn longest_silent(&self, port: PortNo, since: Time) -> Option<MacAddr> {
        self.on_port(port)
            .filter_map(|mac| self.by_mac.get(&mac).map(|host| (host, mac)))
            .filter(|(host, _)| host.ips.is_empty() && host.heard < since)
            .min_by_key(|&(host, mac)| (host.heard, mac))
            .map(|(_, mac)| mac)
    }

    /// Refreshes the sender of a frame at `port`, if it is known there.
    pub(super) fn refresh(&mut self, cx: &mut Cx, port: PortNo, mac: MacAddr) -> Location {
        let is_here = self.is_on(mac, port);
        let Some(host) = self.by_mac.get_mut(&mac) else { return Location::New };
        if is_here {
            host.heard = cx.now;
            host.unanswered = 0;
            return Location::Here(host.port);
        }
        if cx.now.since(host.changed) < CHANGE_HOLD {
            cx.counters.hosts_refused += 1;
            return Location::Refused;
        }
        Location::Elsewhere(host.port)
    }

    /// Returns the host without address on `port` that has been silent longest, if for longer than
    /// a host with an address may be.
    pub(super) fn silent_on(&self, cx: &Cx, port: PortNo) -> Option<MacAddr> {
        let probes = u64::from(cx.settings.host_probes_max).saturating_add(1);
        let silence = (cx.settings.host_probe * probes).ticks();
        self.longest_silent(port, Time::from_ticks(cx.now.ticks().saturating_sub(silence)))
    }

    /// Learns an address of a known host, which is probed from then on.
    pub(super) fn learn_ip(
        &mut self,
        cx: &mut Cx,
        (search, groups): (&mut Search, &mut Groups),
        mac: MacAddr,
        ip: IpAddr,
    ) {
        if !cx.settings.is_host_ip(ip) {
            return;
        }
        let Some(host) = self.by_mac.get_mut(&mac) else {
            return;
        };
        if host.ips.contains(ip) {
            host.ips.used(ip);
            if self.report_again(mac, ip) {
                self.report(cx, groups, mac);
            }
            return;
        }
        if host.ips.is_full() {
            if cx.now.since(host.changed) < CHANGE_HOLD {
                return;
            }
            host.changed = cx.now;
        }
        if host.ips.is_empty() {
            // Probes are spread by address, so that hosts learned together are not probed together.
            let half = (cx.settings.host_probe.ticks() / 2).max(1);
            let offset = Span::from_ticks(half + spread(mac) % half);
            cx.agenda.set(Timer::Host(mac), cx.now + offset);
        }
        host.ips.used(ip);
        search.found(ip);
        self.report(cx, groups, mac);
    }

    /// Probes a host whose timer has expired (the periodic gratuitous ARP of paper 001). Returns
    /// whether it has too many unanswered probes and must be removed instead.
    ///
    /// The probe is a unicast ARP request from the server's identity. Its MAC address never has a
    /// route, so the reply reaches the control plane.
    pub(super) fn probe(&mut self, cx: &mut Cx, mac: MacAddr) -> bool {
        let bonded = self.is_joined(mac);
        let Some(host) = self.by_mac.get_mut(&mac) else { return false };
        if bonded {
            cx.agenda.set(Timer::Host(mac), cx.now + cx.settings.host_probe);
            return false;
        }
        let probes_max = cx.settings.host_probes_max;
        if host.unanswered >= probes_max {
            cx.counters.hosts_lost += 1;
            return true;
        }
        let Some(ip) = host.ips.next_probe(host.unanswered, probes_max) else { return false };
        host.unanswered += 1;
        let port = host.port;
        cx.out.extend(cx.settings.question(mac, ip).map(|frame| Effect::Host { port, frame }));
        cx.agenda.set(Timer::Host(mac), cx.now + cx.settings.host_probe);
        false
    }

    /// Reports changes of a host since the last report. Without a controller nothing is sent;
    /// [`Hosts::report_all`] reports later.
    pub(super) fn report(&mut self, cx: &mut Cx, groups: &mut Groups, mac: MacAddr) {
        if !cx.controller.is_reachable() {
            return;
        }
        let Hosts { by_mac, reported, .. } = self;
        let known = by_mac.get(&mac);
        if let Some(&(port, _)) = reported.get(&mac)
            && known.is_none_or(|host| host.port != port)
        {
            reported.remove(&mac);
            cx.out.push(Effect::Report(Item::HostGone { port, mac }));
        }
        let Some(&Host { port, ref ips, .. }) = known else { return };
        let before = reported.insert(mac, (port, ips.clone()));
        let is_new = |ip: &IpAddr| before.as_ref().is_none_or(|(_, before)| !before.contains(*ip));
        let ips: Vec<IpAddr> = ips.iter().filter(is_new).collect();
        let is_new = before.is_none();
        if is_new || !ips.is_empty() {
            cx.out.push(Effect::Report(Item::HostSeen { port, mac, ips }));
        }
        if is_new {
            groups.report_again(cx, &self.joined_to(port), mac);
        }
    }

    /// Reports a host as if it were new.
    pub(super) fn report_anew(&mut self, cx: &mut Cx, groups: &mut Groups, mac: MacAddr) {
        self.reported.remove(&mac);
        self.report(cx, groups, mac);
    }

    /// Reports a host that has moved from `port` within its bond. It is added first, so that it is
    /// never absent.
    pub(super) fn report_moved(
        &mut self,
        cx: &mut Cx,
        groups: &mut Groups,
        (port, mac): (PortNo, MacAddr),
    ) {
        if cx.controller.is_reachable() && self.reported.contains_key(&mac) {
            self.report_anew(cx, groups, mac);
            cx.out.push(Effect::Report(Item::HostGone { port, mac }));
        }
    }

    /// Returns a host as requester of the MAC address of `ip`, with an address of the same family.
    pub(super) fn requester(&self, mac: MacAddr, ip: IpAddr) -> Option<Requester> {
        let mut own = self.get(mac)?.ips.iter().rev();
        let ip = own.find(|own| own.is_ipv4() == ip.is_ipv4())?;
        Some(Requester { mac, ip })
    }

    /// Clears the record of reported hosts that are unchanged. Hosts that have left or moved
    /// meanwhile must still be withdrawn.
    pub(super) fn forget_reports(&mut self) {
        let Hosts { by_mac, reported, .. } = self;
        let as_is = |mac: &MacAddr, port, ips: &Addresses| {
            let host = by_mac.get(mac).filter(|host| host.port == port);
            host.is_some_and(|host| host.ips.iter().all(|ip| ips.contains(ip)))
        };
        reported.retain(|mac, (port, ips)| !as_is(mac, *port, ips));
    }

    /// Reports all that the controller does not have yet; to a new incarnation, all hosts.
    pub(super) fn report_all(&mut self, cx: &mut Cx, groups: &mut Groups, new_incarnation: bool) {
        if new_incarnation {
            self.reported.clear();
        }
        let macs: BTreeSet<_> = self.reported.keys().chain(self.by_mac.keys()).copied().collect();
        for mac in macs {
            self.report(cx, groups, mac);
        }
    }
}

/// Returns a number that differs between hosts and is the same in every run.
fn spread(mac: MacAddr) -> u64 {
    let mut word = [0; 8];
    word[..6].copy_from_slice(&mac.0);
    u64::from_le_bytes(word).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16
}
