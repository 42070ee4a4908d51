//! Locations and rights: the fabric, the hosts of one VLAN, and the policy that determines which
//! hosts may reach each other.
//!
//! Every other part reads these to decide about routes, addresses and groups. What a VLAN does
//! changes its own hosts only: fabric and policy are those of all VLANs. See `isolation.rs` for the
//! cases in which the policy applies.

use super::bonds::Exits;
use super::fabric::Fabric;
use super::flows::Origin;
use super::hosts::{Host, HostIndex, HostTable, Learned, Place};
use super::policy::{Group, Identity, Policy};
use super::router::pair_hash;
use super::topology::{Graph, SwitchIndex};
use crate::config::{BySource, ControllerConfig, UplinkConfig};
use crate::effect::Effect;
use alloc::vec::Vec;
use axon_node::telemetry::{PairTelemetry, PolicyTelemetry, QuarantineTelemetry, TenantTelemetry};
use axon_node::{RouteKey, Subject};
use axon_wire::message::Item;
use axon_wire::vlan::VlanId;
use axon_wire::{MacAddr, NodeId, PortNo};
use core::net::IpAddr;
use core::ops::Deref;

/// Fabric and policy, with the hosts of one VLAN.
#[derive(Debug)]
pub(super) struct Network<'a, H = &'a mut HostTable> {
    vlan: VlanId,
    fabric: &'a Fabric,
    rights: &'a Rights,
    hosts: H,
}

/// Hosts of a VLAN that cannot be changed.
pub(super) type View<'a> = Network<'a, &'a HostTable>;

/// Policy, and the ports where it is applied to single hosts.
#[derive(Clone, Debug)]
pub(super) struct Rights {
    pub(super) policy: Policy,
    by_source: BySource,
    uplinks: Vec<UplinkConfig>,
}

impl Rights {
    /// Creates the configured rights.
    pub(super) fn new(config: &ControllerConfig) -> Rights {
        let (policy, uplinks) = (config.policy.clone(), config.uplinks.clone());
        Rights { policy, by_source: config.by_source, uplinks }
    }
}

/// Access to the parts.
impl<'a, H: Deref<Target = HostTable>> Network<'a, H> {
    /// Combines the hosts of a VLAN with fabric and policy.
    pub(super) const fn new(
        vlan: VlanId,
        fabric: &'a Fabric,
        rights: &'a Rights,
        hosts: H,
    ) -> Network<'a, H> {
        Network { vlan, fabric, rights, hosts }
    }

    /// Returns the VLAN of the hosts.
    pub(super) const fn vlan(&self) -> VlanId {
        self.vlan
    }

    pub(super) const fn fabric(&self) -> &'a Fabric {
        self.fabric
    }

    pub(super) const fn graph(&self) -> &'a Graph {
        self.fabric.graph()
    }

    pub(super) fn hosts(&self) -> &HostTable {
        &self.hosts
    }

    pub(super) fn view(&self) -> View<'_> {
        Network::new(self.vlan, self.fabric, self.rights, &self.hosts)
    }

    pub(super) const fn policy(&self) -> &'a Policy {
        &self.rights.policy
    }
}

/// Changes of hosts.
impl Network<'_> {
    pub(super) const fn hosts_mut(&mut self) -> &mut HostTable {
        self.hosts
    }

    /// Returns whether a host stays at a bond when its claim at one port ends. If so, claims it at
    /// another port of the bond, because the host may have sent only through the first one.
    pub(super) fn stays_at_bond(&mut self, place: Place, mac: MacAddr) -> bool {
        let Some(other) = self.fabric.other_port(place) else { return false };
        if self.place_of(mac).is_none_or(|at| at != place) {
            return false;
        }
        matches!(self.hosts.report(other, mac), Learned::Here(_) | Learned::Moved(_))
    }
}

/// Locations.
impl<H: Deref<Target = HostTable>> Network<'_, H> {
    /// Returns the host with a MAC address, if it is known.
    pub(super) fn host(&self, mac: MacAddr) -> Option<&Host> {
        self.hosts.get(self.hosts.by_mac(mac)?)
    }

    /// Returns the location of the host with a MAC address, if it is known.
    pub(super) fn place_of(&self, mac: MacAddr) -> Option<Place> {
        self.host(mac).map(Host::place)
    }

    /// Returns the location of a host, or its configured location if the host is unknown.
    pub(super) fn place_or(&self, mac: MacAddr, at: (NodeId, PortNo)) -> Option<Place> {
        self.place_of(mac).or_else(|| self.fabric.place(at))
    }

    /// Returns the host with a MAC address, if it is located at a given port.
    pub(super) fn host_at(&self, at: Place, mac: MacAddr) -> Option<HostIndex> {
        let host = self.hosts.by_mac(mac)?;
        (self.hosts.get(host)?.place() == at).then_some(host)
    }

    /// Returns whether a host is located at a given port, or at another port of the same bond.
    pub(super) fn is_host_at(&self, mac: MacAddr, at: Place) -> bool {
        self.host(mac).is_some_and(|host| self.fabric.is_one_place(host.place(), at))
    }

    /// Returns the MAC address of a route's source host, if the route has one.
    pub(super) fn mac_of(&self, source: Option<HostIndex>) -> Option<MacAddr> {
        source.and_then(|source| self.hosts.get(source)).map(|host| host.mac)
    }

    /// Returns the hosts at a bond.
    pub(super) fn hosts_of_bond(&self, bond: usize) -> Vec<HostIndex> {
        let places = self.fabric.places_of(bond).into_iter();
        let hosts = places.flat_map(|place| self.hosts.hosts_at(place));
        hosts.filter_map(|host| self.hosts.by_mac(host.mac)).collect()
    }

    /// Returns whether a host's routes can end at more than one port.
    pub(super) fn is_bonded(&self, host: HostIndex) -> bool {
        let place = self.hosts.get(host).map(Host::place);
        place.is_some_and(|place| self.fabric.bond_at(place).is_some())
    }

    /// Returns the port of a host, or another port of its bond if frames cannot leave the fabric by
    /// the first one.
    pub(super) fn reachable_port(&self, host: HostIndex) -> Option<Place> {
        let place = self.hosts.get(host)?.place();
        Some(match self.fabric.exits(place) {
            Exits::One(one) => one,
            Exits::Of(places) if places.contains(&place) => place,
            Exits::Of(places) => *places.first()?,
        })
    }

    /// Returns a port other than `exit` where routes to a host may end, preferably one at another
    /// switch.
    pub(super) fn other_exit(&self, exit: Place, destination: HostIndex) -> Option<Place> {
        match self.fabric.exits(self.hosts.get(destination)?.place()) {
            Exits::One(_) => None,
            Exits::Of(places) => {
                let at = places.iter().position(|&place| place == exit)?;
                let others = (1..places.len()).map(|n| places[(at + n) % places.len()]);
                let elsewhere = others.clone().find(|other| other.switch != exit.switch);
                elsewhere.or_else(|| others.clone().next())
            }
        }
    }

    /// Returns whether this controller sends the queries for a host that was at a switch. It does
    /// if it is the controller of that switch or of the host's current switch.
    pub(super) fn queries(&self, was: SwitchIndex, mac: MacAddr) -> bool {
        let is = self.place_of(mac).map(|place| place.switch);
        !self.fabric.is_elsewhere(was) || is.is_some_and(|is| !self.fabric.is_elsewhere(is))
    }

    /// Returns whether a host at this switch is known only from the file. If so, has the edge query
    /// the host. The request that needs the host is repeated anyway.
    pub(super) fn needs_probe(&self, target: HostIndex, out: &mut Vec<Effect>) -> bool {
        let Some(host) = self.hosts.get(target).filter(|host| host.is_provisional()) else {
            return false;
        };
        if self.fabric.home() != Some(host.place().switch) {
            return false;
        }
        if let Some(&ip) = host.ips.last() {
            self.query(host.place(), host.mac, ip, out);
        }
        true
    }

    /// Queries a host that was at a port, if this controller sends the queries for it.
    pub(super) fn query(&self, place: Place, mac: MacAddr, ip: IpAddr, out: &mut Vec<Effect>) {
        if !self.queries(place.switch, mac) {
            return;
        }
        let to = self.fabric.node(place.switch);
        out.push(Effect::Command { to, item: Item::AskHost { port: place.port, mac, ip } });
    }
}

/// Rights.
impl<H: Deref<Target = HostTable>> Network<'_, H> {
    /// Returns whether hosts at a port may have their own routes.
    pub(super) fn has_pairs(&self, at: Place) -> bool {
        let is_uplink = || {
            let here = (self.fabric.node(at.switch), at.port);
            self.rights.uplinks.iter().any(|uplink| uplink.at == here)
        };
        self.rights.by_source != BySource::Never && !is_uplink()
    }

    /// Returns whether all hosts at a port have their own routes, and none share one.
    pub(super) fn has_pairs_only(&self, at: Place) -> bool {
        self.rights.by_source == BySource::Always
            && self.has_pairs(at)
            && self.hosts.hosts_at(at).nth(1).is_some()
    }

    pub(super) fn identity(&self, mac: MacAddr, place: Option<Place>) -> Identity {
        let node = |place: Place| self.fabric.node(place.switch);
        Identity { mac, at: place.map(|place| (node(place), place.port)) }
    }

    /// Returns the policy identity of a host, given its MAC address. The host need not be known.
    pub(super) fn identify(&self, mac: MacAddr) -> Identity {
        let host = self.host(mac);
        self.identity(mac, host.map(Host::place))
    }

    /// Returns the policy identities of the hosts at a port.
    pub(super) fn identities_at(&self, place: Place) -> impl Iterator<Item = Identity> {
        let at = move |place| self.hosts.hosts_at(place).map(move |host| (host.mac, place));
        let hosts = self.fabric.ports_of(place).into_iter().flat_map(at);
        hosts.map(move |(mac, place)| self.identity(mac, Some(place)))
    }

    /// Returns whether all source hosts of a route may reach this host. Where hosts do not have
    /// their own routes, they must also be allowed to reach all other hosts at its port.
    pub(super) fn may_reach(&self, from: Origin, destination: HostIndex) -> bool {
        let source = self.mac_of(from.source);
        self.rights.policy.is_open()
            || self
                .hosts
                .get(destination)
                .is_some_and(|host| self.may_reach_mac((from.at, source), host.mac))
    }

    /// Returns whether the policy allows a route with this key. The destination host need not be
    /// known.
    pub(super) fn may_reach_by_key(&self, at: Place, key: RouteKey) -> bool {
        self.may_reach_mac((at, key.source), key.destination)
    }

    pub(super) fn may_reach_mac(
        &self,
        from: (Place, Option<MacAddr>),
        destination: MacAddr,
    ) -> bool {
        let host = self.host(destination);
        let there = host.map(Host::place);
        let apart = there.is_some_and(|there| self.has_pairs(there));
        self.all_may_reach(from, destination, there.filter(|_| !apart))
    }

    /// Returns whether frames that a host sends to a group may go to this host and to all others at
    /// its port, which receive them too.
    pub(super) fn may_send_copies(&self, (at, mac): (Place, MacAddr), to: MacAddr) -> bool {
        let there = self.host(to).map(Host::place);
        let source = Some(mac).filter(|_| self.has_pairs(at));
        self.all_may_reach((at, source), to, there)
    }

    /// Returns whether one host at a port, or all hosts there, may reach this host and all others
    /// at its port.
    pub(super) fn all_may_reach(
        &self,
        (at, source): (Place, Option<MacAddr>),
        destination: MacAddr,
        beside: Option<Place>,
    ) -> bool {
        if self.rights.policy.is_open() {
            return true;
        }
        let itself = self.identify(destination);
        let beside = || beside.into_iter().flat_map(|there| self.identities_at(there));
        let reaches = |from: Identity| {
            self.rights.policy.allows(&from, &itself)
                && beside().all(|to| self.rights.policy.allows(&from, &to))
        };
        match source {
            Some(mac) => reaches(self.identity(mac, Some(at))),
            None => self.identities_at(at).all(reaches),
        }
    }

    /// Returns whether a host may own an address. The address must not be reserved for another
    /// group, and the host must be allowed to reach the current owner.
    pub(super) fn may_own(&self, host: HostIndex, mac: MacAddr, ip: IpAddr) -> bool {
        if self.rights.policy.is_open() {
            return true;
        }
        let identity = self.identify(mac);
        let owner = self.hosts.by_ip(ip).filter(|&owner| owner != host);
        let owner = owner.and_then(|owner| self.hosts.get(owner));
        let yields = owner.is_none_or(|owner| {
            self.rights.policy.allows(&self.identity(owner.mac, Some(owner.place())), &identity)
        });
        yields && self.rights.policy.may_own(&identity, ip)
    }

    /// Returns whether the gateway rule lets a host at a port have an address. A gateway's address
    /// is valid only at its uplink.
    pub(super) fn may_be_gateway(&self, at: Place, ip: IpAddr) -> bool {
        let here = (self.fabric.node(at.switch), at.port);
        self.rights.uplinks.iter().all(|uplink| ip != uplink.gateway || here == uplink.at)
    }

    /// Returns whether the routes of a port do not depend on the hosts behind it.
    pub(super) fn is_free(&self) -> bool {
        self.rights.policy.is_open() && self.rights.by_source != BySource::Always
    }

    /// Returns whether hosts at the same port may have different rights.
    pub(super) fn is_mixed(&self, at: Place) -> bool {
        let mut groups = self.identities_at(at).map(|host| self.rights.policy.group(&host));
        let first = groups.next();
        let more = groups.next();
        more.is_some()
            && (self.rights.policy.is_changed()
                || self.rights.policy.quarantined().next().is_some()
                || more != first
                || groups.any(|group| Some(group) != first))
    }

    /// Returns the policy as the controller has it. Acknowledgements that switches still owe are
    /// not included.
    pub(super) fn policy_telemetry(&self) -> PolicyTelemetry {
        let mut counts = alloc::vec![0; self.rights.policy.tenants().count()];
        let (mut shared_hosts, mut other_hosts) = (0, 0);
        for (_, host) in self.hosts.iter() {
            match self.rights.policy.group(&self.identity(host.mac, Some(host.place()))) {
                Group::Other => other_hosts += 1,
                Group::Shared => shared_hosts += 1,
                Group::Tenant(number) => counts[number] += 1,
            }
        }
        let tenants = self.rights.policy.tenants().zip(counts);
        let tenant = |(name, hosts): (&str, u64)| TenantTelemetry { name: name.into(), hosts };
        let quarantine = self.rights.policy.quarantined().map(|subject| match subject {
            Subject::Mac(mac) => QuarantineTelemetry { mac: Some(mac), switch: None, port: None },
            Subject::Port(switch, port) => {
                QuarantineTelemetry { mac: None, switch: Some(switch), port: Some(port) }
            }
        });
        let pairs = self.rights.policy.changed_pairs().map(|(pair, allowed)| {
            let [a, b] = pair.hosts();
            PairTelemetry { a, b, allowed }
        });
        PolicyTelemetry {
            tenants: tenants.map(tenant).collect(),
            shared_hosts,
            other_hosts,
            quarantine: quarantine.collect(),
            pairs: pairs.collect(),
            outstanding: Vec::new(),
        }
    }

    /// Returns the flow hash of a route. `of_port` is the hash for all frames from its port. Hosts
    /// have separate hashes if their own routes serve to share the load ([`BySource::Always`]). If
    /// such routes exist only because of the policy, all of them keep the path of the port.
    pub(super) fn hash_of(&self, from: Origin, of_port: u64) -> u64 {
        let source = self.mac_of(from.source).filter(|_| self.rights.by_source == BySource::Always);
        source.map_or(of_port, |source| pair_hash(of_port, source))
    }
}
