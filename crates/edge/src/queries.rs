//! Unanswered ARP requests and solicitations to local hosts, on behalf of remote ones: phase II of
//! Axon-ARP (paper 001 §4.2.2).

use super::context::{Cx, Timer};
use super::entry_reservations::Key as RouteOf;
use super::route_installs::Installer;
use crate::effect::Effect;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_node::RouteKey;
use axon_wire::message::ArpTarget;
use axon_wire::vlan::VlanId;
use axon_wire::{MacAddr, PortNo, Time, host_frame, nd};
use core::net::IpAddr;

/// Maximum number of queries to the hosts of one port at a time. The source repeats its request.
pub(super) const QUERIES_PER_PORT_MAX: usize = 1024;
/// Maximum number of doublings of the query interval.
const RETRY_DOUBLINGS_MAX: u32 = 4;

/// Key of a query: target port, target host, source host.
pub(super) type Key = (PortNo, MacAddr, MacAddr);

/// Queries to the hosts of all ports.
#[derive(Clone, Debug, Default)]
pub(super) struct Queries {
    of: BTreeMap<Key, Query>,
}

/// Query to a local host on behalf of a remote one.
#[derive(Clone, Debug)]
struct Query {
    m: ArpTarget,
    target_ip: IpAddr,
    tries: u32,
    until: Time,
}

impl Queries {
    /// Returns whether there is this query.
    pub(super) fn contains(&self, key: Key) -> bool {
        self.of.contains_key(&key)
    }

    /// Returns whether the hosts of a port have the maximum number of queries.
    pub(super) fn is_full(&self, port: PortNo) -> bool {
        self.of.range(of_port(port)).count() >= QUERIES_PER_PORT_MAX
    }

    /// Starts a query.
    pub(super) fn start(
        &mut self,
        cx: &mut Cx,
        installer: &mut Installer,
        key: Key,
        m: ArpTarget,
        target_ip: IpAddr,
    ) {
        let until = cx.now + cx.settings.arp_wait;
        self.of.insert(key, Query { m, target_ip, tries: 0, until });
        self.ask(cx, installer, key);
    }

    /// Replaces the request of a query by one that is not older. Returns the previous reverse route
    /// and the new one, if they differ.
    pub(super) fn renew(
        &mut self,
        vlan: VlanId,
        key: Key,
        m: ArpTarget,
    ) -> Option<(RouteOf, RouteOf)> {
        let query = self.of.get_mut(&key).filter(|query| m.stamp >= query.m.stamp)?;
        let (before, after) = (way_back(vlan, &query.m), way_back(vlan, &m));
        query.m = m;
        (before != after).then_some((before, after))
    }

    /// Sends the ARP request in the name of the source host. The server identity, which never has a
    /// route, sends it in two cases: if the source's address is unknown, or if a valid reverse
    /// route exists, on which the reply would leave without reaching the control plane.
    fn ask(&mut self, cx: &mut Cx, installer: &mut Installer, key: Key) {
        let (port, target_mac, source_mac) = key;
        let Some(query) = self.of.get_mut(&key) else {
            return;
        };
        let pause = cx.settings.retry * (1 << query.tries.min(RETRY_DOUBLINGS_MAX));
        query.tries = query.tries.saturating_add(1);
        let due = query.until.min(cx.now + pause);
        cx.agenda.set(Timer::Query(port, target_mac, source_mac), due);
        let to = cx.to(source_mac);
        let from_target = to.from_source(Some(target_mac));
        let is_placed = [to, from_target].map(|key| installer.flows().is_placed((port, key)));
        let source_ip = query.m.source_ip.filter(|_| is_placed == [false; 2]);
        let shown = match source_ip {
            Some(ip) => cx.tables.show(way_back(cx.vlan, &query.m), ip),
            None => source_mac,
        };
        let frame = match (source_ip, query.target_ip) {
            (Some(IpAddr::V4(ip)), IpAddr::V4(target)) => {
                Some(host_frame::request(shown, ip, target_mac, target))
            }
            (Some(IpAddr::V6(ip)), IpAddr::V6(target)) => {
                Some(nd::solicitation((shown, ip), Some(target_mac), target))
            }
            (_, target) => cx.settings.question(target_mac, target),
        };
        cx.out.extend(frame.map(|frame| Effect::Host { port, frame }));
    }

    /// Handles the expired timer of a query: sends it again. Returns whether it has failed instead.
    pub(super) fn due(&mut self, cx: &mut Cx, installer: &mut Installer, key: Key) -> bool {
        let Some(query) = self.of.get(&key) else { return false };
        let failed = cx.now >= query.until;
        if !failed {
            self.ask(cx, installer, key);
        }
        failed
    }

    /// Removes a query with its timer; returns its request.
    pub(super) fn take(&mut self, cx: &mut Cx, key: Key) -> Option<ArpTarget> {
        let query = self.of.remove(&key)?;
        cx.agenda.cancel(Timer::Query(key.0, key.1, key.2));
        Some(query.m)
    }

    /// Returns the first query.
    pub(super) fn first(&self) -> Option<Key> {
        self.of.first_key_value().map(|(&key, _)| key)
    }

    /// Returns whether there is this query, and it is about this address.
    pub(super) fn is_about(&self, key: Key, ip: IpAddr) -> bool {
        self.of.get(&key).is_some_and(|query| query.target_ip == ip)
    }

    /// Returns whether an entry is reserved for this reverse route.
    pub(super) fn is_for(&self, route: RouteOf) -> bool {
        self.of.range(of_port(route.0)).any(|(_, query)| way_back(route.1.vlan, &query.m) == route)
    }

    /// Returns the queries to a host.
    pub(super) fn to(&self, port: PortNo, mac: MacAddr) -> Vec<Key> {
        let range = (port, mac, MacAddr([0; 6]))..=(port, mac, MacAddr::BROADCAST);
        self.of.range(range).map(|(&key, _)| key).collect()
    }

    /// Returns the number of queries to the hosts of a port.
    #[cfg(test)]
    pub(super) fn count_on(&self, port: PortNo) -> usize {
        self.of.range(of_port(port)).count()
    }
}

/// Returns the key of the reverse route to the source host: for the target host's frames, or for
/// all of its port.
pub(super) fn way_back(vlan: VlanId, m: &ArpTarget) -> RouteOf {
    let source = m.source_by_pair.then_some(m.target_mac);
    (m.target_port, RouteKey { vlan, destination: m.source_mac, source })
}

fn of_port(port: PortNo) -> core::ops::RangeInclusive<Key> {
    (port, MacAddr([0; 6]), MacAddr([0; 6]))..=(port, MacAddr::BROADCAST, MacAddr::BROADCAST)
}
