//! Flows of local hosts, by route key and by address, and those that software keeps.
//!
//! `decisions.rs` sets and removes them, and `route_installs.rs` requests their routes from the
//! data plane.

use super::entry_reservations::{Key, of_port};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_node::{RouteKey, RouteTicket};
use axon_wire::message::Stamp;
use axon_wire::{MacAddr, PortNo, Route, Span, Time};
use core::net::IpAddr;
use core::ops::RangeInclusive;

/// Interval at which routes are checked. A route without frames between two checks is removed, so
/// after five to ten minutes: longer than hosts keep ARP entries.
pub const ROUTE_LOOK: Span = Span::from_secs(300);

/// Route from a host port to a destination MAC address, for all hosts there or for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Stamp of the controller's decision.
    pub stamp: Stamp,
    /// Installed or wanted route.
    pub route: Route,
    /// Location of the route.
    pub placement: Placement,
    /// IP address of the destination, if an ARP exchange has shown it.
    pub ip: Option<IpAddr>,
    /// True if the route is from an earlier incarnation of the controller, and the current one has
    /// not decided about it yet.
    pub inherited: bool,
    /// Time when this route was set.
    set_at: Time,
    /// True if the control plane has forwarded a frame on it since the last check.
    used: bool,
}

/// Location of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// In software only: the control plane forwards the frames of this flow.
    Software,
    /// Requested from the data plane, without an answer yet. The data plane may have this route,
    /// the previous one, or none. The control plane forwards frames that it punts.
    Requested(RouteTicket),
    /// In the data plane's table.
    Installed,
}

impl Flow {
    /// Creates a flow without a known address, on a route set at `now`.
    pub(super) fn new(now: Time, stamp: Stamp, route: Route, placement: Placement) -> Flow {
        Flow { stamp, route, placement, ip: None, inherited: false, set_at: now, used: false }
    }

    /// Returns whether the data plane has the route, or may have it.
    pub fn is_placed(&self) -> bool {
        self.placement != Placement::Software
    }
}

/// All flows of one VLAN.
#[derive(Clone, Debug)]
pub(super) struct Flows {
    software_per_port_max: usize,
    of: BTreeMap<Key, Flow>,
    /// Flows whose routes are kept in software.
    unplaced: BTreeSet<Key>,
    /// Flows by address, for each source like routes.
    by_ip: BTreeMap<(PortNo, Option<MacAddr>, IpAddr), MacAddr>,
}

impl Flows {
    /// Creates an empty set. Each port may have as many routes in software.
    pub(super) const fn new(software_per_port_max: usize) -> Flows {
        Flows {
            software_per_port_max,
            of: BTreeMap::new(),
            unplaced: BTreeSet::new(),
            by_ip: BTreeMap::new(),
        }
    }

    pub(super) fn get(&self, key: Key) -> Option<&Flow> {
        self.of.get(&key)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (Key, &Flow)> {
        self.of.iter().map(|(&key, flow)| (key, flow))
    }

    /// Returns the flows that the data plane has, or may have.
    pub(super) fn placed(&self) -> impl Iterator<Item = (Key, &Flow)> {
        self.all().filter(|(_, flow)| flow.is_placed())
    }

    /// Returns whether the data plane has a route of this key, or may have one.
    pub(super) fn is_placed(&self, key: Key) -> bool {
        self.get(key).is_some_and(Flow::is_placed)
    }

    /// Returns the keys of the flows of one port.
    pub(super) fn on_port(&self, port: PortNo) -> Vec<Key> {
        self.of.range(of_port(port)).map(|(&key, _)| key).collect()
    }

    /// Returns the key of the route for frames of `source` with this key of any source: that of
    /// this source if it exists, or else that of any.
    pub(super) fn key_of(&self, any: Key, source: MacAddr) -> Key {
        let pair = (any.0, any.1.from_source(Some(source)));
        if self.of.contains_key(&pair) { pair } else { any }
    }

    /// Returns the MAC address of the host at `ip`, if `port` has a flow to it that `source` may
    /// use.
    pub(super) fn mac_of(&self, port: PortNo, source: MacAddr, ip: IpAddr) -> Option<MacAddr> {
        let of = |source| self.by_ip.get(&(port, source, ip)).copied();
        of(Some(source)).or_else(|| of(None))
    }

    /// Returns the stamp of the current controller's decision, if the flow has one.
    pub(super) fn decided(&self, key: Key) -> Option<Stamp> {
        self.get(key).filter(|flow| !flow.inherited).map(|flow| flow.stamp)
    }

    /// Returns whether software keeps the maximum number of routes of a port.
    pub(super) fn software_is_full(&self, port: PortNo) -> bool {
        self.unplaced.range(of_port(port)).count() >= self.software_per_port_max
    }

    /// Returns the first two flows of these keys that are in software.
    pub(super) fn in_software(&self, keys: RangeInclusive<Key>) -> (Option<Key>, Option<Key>) {
        let mut unplaced = self.unplaced.range(keys).copied();
        (unplaced.next(), unplaced.next())
    }

    /// Returns the ports that have flows in software.
    pub(super) fn ports_in_software(&self) -> BTreeSet<PortNo> {
        self.unplaced.iter().map(|key| key.0).collect()
    }

    /// Adds a flow, or replaces it. Its address is learned afterwards.
    pub(super) fn insert(&mut self, key: Key, flow: Flow) {
        self.forget_ip(key);
        let placement = flow.placement;
        self.of.insert(key, flow);
        self.set_placement(key, placement);
    }

    /// Removes a flow.
    pub(super) fn remove(&mut self, key: Key) -> Option<Flow> {
        self.forget_ip(key);
        self.unplaced.remove(&key);
        self.of.remove(&key)
    }

    /// Records where the route of a flow is.
    pub(super) fn set_placement(&mut self, key: Key, placement: Placement) {
        let Some(flow) = self.of.get_mut(&key) else { return };
        flow.placement = placement;
        match placement {
            Placement::Software => self.unplaced.insert(key),
            _ => self.unplaced.remove(&key),
        };
    }

    /// Replaces the route of a flow under the same decision; returns that.
    pub(super) fn reroute(
        &mut self,
        now: Time,
        key: Key,
        route: Route,
        placement: Placement,
    ) -> Option<Stamp> {
        let flow = self.of.get_mut(&key)?;
        (flow.route, flow.set_at) = (route, now);
        let stamp = flow.stamp;
        self.set_placement(key, placement);
        Some(stamp)
    }

    /// Takes an inherited flow over if the controller has decided for its route; returns whether it
    /// has. Until then the flow answers ARP requests for the address of its destination. From then
    /// on the controller does, since the address may have moved to another host meanwhile.
    pub(super) fn confirm(&mut self, key: Key, stamp: Stamp, route: &Route) -> bool {
        let flow = self.of.get_mut(&key).filter(|flow| flow.inherited && flow.route == *route);
        let Some(flow) = flow else { return false };
        (flow.stamp, flow.inherited) = (stamp, false);
        self.forget_ip(key);
        true
    }

    /// Makes all flows inherited ones, because there is a new incarnation of the controller.
    pub(super) fn inherit(&mut self) {
        self.of.values_mut().for_each(|flow| flow.inherited = true);
    }

    /// Returns the keys of inherited flows.
    pub(super) fn inherited(&self) -> Vec<Key> {
        self.all().filter(|(_, flow)| flow.inherited).map(|(key, _)| key).collect()
    }

    /// Records that the control plane forwards a frame on a flow; returns its route.
    pub(super) fn use_route(&mut self, key: Key) -> Option<Route> {
        let flow = self.of.get_mut(&key)?;
        flow.used = true;
        Some(flow.route.clone())
    }

    /// Returns the flows without frames since the last call that were set long enough ago.
    /// `is_used` returns whether the data plane has used an installed one.
    pub(super) fn idle(&mut self, now: Time, mut is_used: impl FnMut(Key) -> bool) -> Vec<Key> {
        let idle = |(&key, flow): (&Key, &mut Flow)| {
            let by_software = core::mem::take(&mut flow.used);
            let by_table = flow.placement == Placement::Installed && is_used(key);
            let is_old = now.since(flow.set_at) >= ROUTE_LOOK;
            (!by_software && !by_table && is_old).then_some(key)
        };
        self.of.iter_mut().filter_map(idle).collect()
    }

    /// Clears the address of a flow's destination: the next ARP request for it starts a set-up.
    fn forget_ip(&mut self, key: Key) {
        if let Some(ip) = self.of.get_mut(&key).and_then(|flow| flow.ip.take()) {
            self.by_ip.remove(&(key.0, key.1.source, ip));
        }
    }

    /// Sets the address of a flow. Each address belongs to one flow of a port, and each flow has
    /// one address.
    pub(super) fn learn_ip(&mut self, key: Key, ip: Option<IpAddr>) {
        let Some(ip) = ip else { return };
        let (port, RouteKey { destination: mac, source, .. }) = key;
        if let Some(other) = self.by_ip.insert((port, source, ip), mac)
            && other != mac
            && let Some(flow) = self.of.get_mut(&(port, RouteKey { destination: other, ..key.1 }))
        {
            flow.ip = None;
        }
        let Some(flow) = self.of.get_mut(&key) else {
            return;
        };
        if let Some(before) = flow.ip.replace(ip)
            && before != ip
        {
            self.by_ip.remove(&(port, source, before));
        }
    }

    /// Returns the numbers of flows, and of those in software.
    #[cfg(test)]
    pub(super) fn sizes(&self) -> (usize, usize) {
        assert!(self.by_ip.len() <= self.of.len());
        (self.of.len(), self.unplaced.len())
    }
}
