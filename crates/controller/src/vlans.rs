//! VLANs: the state of each, and its way to what all of them share.
//!
//! A VLAN is a separate network. So hosts, addresses, leases, routes and groups are in one state
//! for each VLAN, and in one more for untagged hosts. No state refers to another one, so no route
//! between two VLANs is ever made, regardless of the messages from hosts and switches. Graph,
//! bonds, policy and router exist once.
//!
//! Parts do not know their VLAN. Effects get it here, when the call that caused them returns.
//! Each route then also gets a flag for whether frames leave with a tag, which depends on the
//! destination host's port.

use crate::backups::Backups;
use crate::config::{ControllerConfig, DhcpConfig, VlanConfig};
use crate::dhcp::DhcpServer;
use crate::effect::{Effect, Effects};
use crate::flows::{Flows, RouteIndex};
use crate::forwarding::{Forwarding, Shared};
use crate::host_presence::Presence;
use crate::hosts::{HostTable, Place};
use crate::network::{Network, View};
use crate::policy::Identity;
use crate::relay::Relay;
use crate::relay6::Relay6;
use crate::requests::Requests;
use crate::router::Step;
use crate::routes::Routes;
use crate::seeking::Seeking;
use crate::takeover::TakeOver;
use crate::topology::SwitchIndex;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_node::RouteKey;
use axon_node::telemetry::{ControllerCounters, Restored};
use axon_wire::dhcpv6::Datagram;
use axon_wire::message::{Item, Message};
use axon_wire::vlan::VlanId;
use axon_wire::{Layer, MacAddr, NodeId, PortNo, Time};
use core::net::{IpAddr, Ipv4Addr};

/// Hosts in one VLAN, or untagged hosts, and everything about them.
#[derive(Clone, Debug)]
pub struct Vlan {
    id: VlanId,
    /// True if hosts are leased addresses.
    leases: bool,
    hosts: HostTable,
    flows: Flows,
    take_over: TakeOver,
    seeking: Seeking,
    own: Services,
}

/// Everything of a VLAN besides the locations of its hosts and their routes.
#[derive(Clone, Debug)]
pub(super) struct Services {
    pub(super) presence: Presence,
    pub(super) requests: Requests,
    pub(super) backups: Backups,
    /// Relay agent for requests to a DHCP server that is a host, if there is one.
    relay: Option<Relay>,
    pub(super) relay6: Option<Relay6>,
    /// Counts of restored state.
    pub(super) restored: Restored,
}

/// Returns the DHCP configuration for a VLAN without leases. Its hosts may have any address.
fn not_leased(config: &DhcpConfig) -> DhcpConfig {
    DhcpConfig {
        prefix_len: 0,
        pool_first: Ipv4Addr::BROADCAST,
        pool_last: Ipv4Addr::UNSPECIFIED,
        reservations: BTreeMap::new(),
        clients: BTreeMap::new(),
        relay: None,
        router: None,
        ..config.clone()
    }
}

impl Vlan {
    /// Creates the state for a VLAN, or for untagged hosts if `vlan` is `None`, without hosts.
    fn new(config: &ControllerConfig, vlan: Option<&VlanConfig>) -> Vlan {
        let node = &config.node;
        let server = vlan.map_or(node.server, |vlan| vlan.server);
        let none = vlan.filter(|vlan| vlan.dhcp.is_none()).map(|_| not_leased(&config.dhcp));
        let own = vlan.and_then(|vlan| vlan.dhcp.as_ref());
        let dhcp = own.or(none.as_ref()).unwrap_or(&config.dhcp);
        Vlan {
            id: vlan.map_or(VlanId::NONE, |vlan| vlan.vlan),
            hosts: HostTable::new(server.mac, IpAddr::V4(server.ip)),
            flows: Flows::default(),
            take_over: TakeOver::new(&node.timers),
            seeking: Seeking::default(),
            own: Services {
                presence: Presence::new(config, (server, dhcp)),
                requests: Requests::default(),
                backups: Backups::new(config.backups, node.timers.heartbeat),
                relay: dhcp.relay.clone().map(|relay| Relay::new(relay, server)),
                relay6: config.dhcpv6.clone().map(|relay| Relay6::new(relay, server)),
                restored: Restored::default(),
            },
            leases: none.is_none(),
        }
    }

    /// Returns the host table.
    pub const fn hosts(&self) -> &HostTable {
        &self.hosts
    }

    /// Returns the flow registry.
    pub const fn flows(&self) -> &Flows {
        &self.flows
    }

    /// Returns the address service.
    pub const fn dhcp(&self) -> &DhcpServer {
        self.own.presence.addresses().dhcp()
    }

    /// Returns the backup that the route's switch has: its links, nearest first, and its layer.
    pub fn backup(&self, index: RouteIndex) -> Option<(&[Step], Layer)> {
        self.own.backups.get(&self.flows, index)
    }

    /// Returns the number of group memberships and senders.
    pub fn groups_len(&self) -> usize {
        self.own.presence.groups().len()
    }

    /// Returns the reported members of a group, sorted by MAC address. A member reported by two
    /// switches is listed once.
    pub fn members_of(&self, group: IpAddr) -> impl Iterator<Item = MacAddr> {
        self.own.presence.groups().members_of(group)
    }

    pub(super) const fn presence(&self) -> &Presence {
        &self.own.presence
    }

    /// Returns whether hosts are leased addresses.
    pub(super) const fn leases(&self) -> bool {
        self.leases
    }

    /// Returns whether every route follows the router's rule and is known.
    pub(super) fn is_replaced(&self) -> bool {
        self.take_over.len() == 0 && self.own.backups.are_planned()
    }

    /// Returns the counters of this VLAN.
    pub(super) fn counters(&self) -> ControllerCounters {
        let sum = (self.seeking.counters())
            .plus(self.own.backups.counters())
            .plus(self.own.presence.addresses().counters())
            .plus(&self.own.requests.counters());
        let (hosts_aged, groups_refused) =
            (self.own.presence.aged(), self.own.presence.groups().refused());
        ControllerCounters { hosts_aged, groups_refused, ..sum }
    }

    /// Returns counts of the state restored from the previous incarnation.
    pub(super) fn restored(&self) -> Restored {
        let provisional = self.hosts.iter().filter(|(_, host)| host.is_provisional());
        Restored {
            hosts_provisional: provisional.count() as u64,
            routes_pending: self.take_over.len() as u64,
            ..self.own.restored.plus(self.take_over.decided())
        }
    }

    /// Returns when the next timer expires.
    pub(super) fn deadline(&self) -> Option<Time> {
        let (hosts, presence) = (self.hosts.deadline(), self.own.presence.deadline());
        let (routes, backups) = (self.take_over.deadline(), self.own.backups.deadline(&self.flows));
        [hosts, presence, routes, backups].into_iter().flatten().min()
    }

    /// Calls this VLAN, and adds it to the effects.
    fn call<R>(
        &mut self,
        shared: &mut Shared,
        out: &mut Effects,
        call: impl FnOnce(&mut Forwarding, &mut Services, &mut Vec<Effect>) -> R,
    ) -> R {
        let mut own = Vec::new();
        let Shared { fabric, rights, decisions, bounds } = shared;
        let mut fwd = Forwarding {
            net: Network::new(self.id, fabric, rights, &mut self.hosts),
            routes: Routes::new(decisions, &mut self.flows),
            take_over: &mut self.take_over,
            seeking: &mut self.seeking,
            bounds,
        };
        let result = call(&mut fwd, &mut self.own, &mut own);
        if self.id.is_none() {
            out.extend(own.into_iter().map(|effect| (VlanId::NONE, effect)));
        } else {
            let net = fwd.net.view();
            let own = own.into_iter().filter_map(|effect| within(&net, effect));
            out.extend(own.map(|effect| (self.id, effect)));
        }
        result
    }
}

/// Messages about hosts.
impl Services {
    /// Handles an item from a switch about hosts, their routes and their groups. Returns `false` if
    /// it is misplaced.
    pub(super) fn item(
        &mut self,
        fwd: &mut Forwarding,
        (now, switch): (Time, SwitchIndex),
        item: Item,
        out: &mut Vec<Effect>,
    ) -> bool {
        let Services { presence, backups, .. } = self;
        let place = |port| Place { switch, port };
        let key = |to, source| RouteKey::to(to).from_source(source);
        match item {
            Item::HostGone { port, mac } => {
                presence.withdraw(fwd, now, (place(port), mac), out);
                true
            }
            Item::RemoveRoute { port, destination, source, stamp } => {
                let (at, key) = (place(port), key(destination, source));
                fwd.take_over.forget(at, key);
                fwd.routes.route_aged(&fwd.net, at, key, stamp);
                true
            }
            Item::SetRoute { port, destination, source, stamp, mut route } => {
                // The port of the destination decides about the tag.
                route.tagged = false;
                let is_inherited = stamp.epoch != fwd.routes.epoch();
                if is_inherited {
                    let own = (&fwd.net, &mut fwd.routes, &mut *fwd.bounds);
                    let route = (place(port), key(destination, source), route);
                    fwd.take_over.inherit(now, route, own, out);
                }
                is_inherited
            }
            Item::BackupUsed { port, destination, source, stamp, mut route } => {
                route.tagged = false;
                let own = (&fwd.net, &mut fwd.routes);
                let (at, key) = (place(port), key(destination, source));
                backups.used(own, at, key, (stamp, &route), out);
                true
            }
            Item::GroupMember { port, mac, group, joined } => {
                presence.groups_mut().report(&fwd.net, now, (place(port), mac), (group, joined))
            }
            Item::AskGroup { port, mac, group, wanted } => {
                presence.groups_mut().ask(&fwd.net, (place(port), mac), (group, wanted), out)
            }
            // Commands to switches, and items that concern more than one VLAN.
            _ => false,
        }
    }

    /// Handles a DHCP or DHCPv6 frame from a host at `place`. The reply leaves by that port.
    pub(super) fn serve(
        &mut self,
        fwd: &mut Forwarding,
        now: Time,
        place: Place,
        frame: &[u8],
        out: &mut Vec<Effect>,
    ) {
        let addresses = self.presence.addresses_mut();
        match (Datagram::parse(frame), &mut self.relay6, &mut self.relay) {
            (Some(datagram), Some(relay), _) => {
                relay.frame(fwd, addresses, now, place, &datagram, out);
            }
            (Some(_), None, _) => addresses.dhcp_mut().relaying().malformed += 1,
            (None, _, Some(relay)) => relay.frame(fwd, addresses, now, place, frame, out),
            (None, _, None) => addresses.serve(fwd, now, place, frame, out),
        }
    }
}

/// All VLANs of a fabric, and what they share.
#[derive(Clone, Debug)]
pub struct Vlans {
    pub(super) shared: Shared,
    /// VLANs by their number. That of untagged hosts is `VlanId::NONE`.
    of: BTreeMap<VlanId, Vlan>,
}

impl Vlans {
    /// Creates the configured VLANs without hosts.
    pub(super) fn new(config: &ControllerConfig, shared: Shared) -> Vlans {
        let tagged = config.vlans.vlans.iter().map(|vlan| Vlan::new(config, Some(vlan)));
        let all = tagged.chain([Vlan::new(config, None)]);
        Vlans { shared, of: all.map(|vlan| (vlan.id, vlan)).collect() }
    }

    /// Returns a VLAN, if the fabric has it.
    pub fn get(&self, vlan: VlanId) -> Option<&Vlan> {
        self.of.get(&vlan)
    }

    /// Returns a VLAN, if the fabric has it and a port is in it.
    pub(super) fn at_port(&self, vlan: VlanId, at: (NodeId, PortNo)) -> Option<&Vlan> {
        self.get(vlan).filter(|_| self.shared.fabric.is_in(vlan, at))
    }

    /// Returns the state for untagged hosts.
    pub fn plain(&self) -> &Vlan {
        &self.of[&VlanId::NONE]
    }

    /// Returns all VLANs in order, starting with the state for untagged hosts.
    pub fn iter(&self) -> impl Iterator<Item = (VlanId, &Vlan)> {
        self.of.iter().map(|(&id, vlan)| (id, vlan))
    }

    /// Returns the hosts of a VLAN with fabric and policy, read-only.
    pub(super) fn net<'a>(&'a self, vlan: &'a Vlan) -> View<'a> {
        Network::new(vlan.id, &self.shared.fabric, &self.shared.rights, vlan.hosts())
    }

    /// Returns the policy identities of a host: one for each VLAN in which it is known, because its
    /// port may differ, or one in no VLAN if it is unknown.
    pub(super) fn identities(&self, mac: MacAddr) -> Vec<(Option<VlanId>, Identity)> {
        let known = self.of.values().filter(|vlan| vlan.hosts().by_mac(mac).is_some());
        let mut all: Vec<_> =
            known.map(|vlan| (Some(vlan.id), self.net(vlan).identify(mac))).collect();
        if all.is_empty() {
            all.push((None, Identity { mac, at: None }));
        }
        all
    }

    /// Calls one VLAN, and adds it to the effects. Returns `None` if the fabric does not have it.
    pub(super) fn with<R>(
        &mut self,
        vlan: VlanId,
        out: &mut Effects,
        call: impl FnOnce(&mut Forwarding, &mut Services, &mut Vec<Effect>) -> R,
    ) -> Option<R> {
        Some(self.of.get_mut(&vlan)?.call(&mut self.shared, out, call))
    }

    /// Calls each VLAN in order, and adds it to its effects.
    pub(super) fn each(
        &mut self,
        out: &mut Effects,
        mut call: impl FnMut(&mut Forwarding, &mut Services, &mut Vec<Effect>),
    ) {
        for vlan in self.of.values_mut() {
            vlan.call(&mut self.shared, out, &mut call);
        }
    }
}

/// Adds to an effect what depends on the VLAN: tags of routes. Returns `None` for a change that is
/// not stored for a VLAN.
fn within(net: &View, mut effect: Effect) -> Option<Effect> {
    let vlan = net.vlan();
    let is_tagged = |at: (NodeId, PortNo)| net.fabric().is_tagged(vlan, at);
    let is_tagged_at = |mac: MacAddr| {
        let place: Option<Place> = net.place_of(mac);
        place.is_some_and(|place| is_tagged(net.fabric().port(place)))
    };
    match &mut effect {
        Effect::Store(change) => return change.clone().in_vlan(vlan).map(Effect::Store),
        Effect::Routed { to, message, .. } => {
            if let Message::ArpTarget(target) = message {
                target.to_target.tagged = is_tagged((to.node, target.target_port));
                let source = (target.source_switch.node, target.source_port);
                target.to_source.tagged = is_tagged(source);
            }
        }
        Effect::Command { item, .. } => match item {
            Item::SetRoute { destination, route, .. } => {
                route.tagged = is_tagged_at(*destination);
            }
            Item::SetBackup { destination, primary, backup, .. } => {
                let tagged = is_tagged_at(*destination);
                primary.route.tagged = tagged;
                backup.iter_mut().for_each(|path| path.route.tagged = tagged);
            }
            _ => {}
        },
        Effect::AwaitAcknowledged { .. } | Effect::Note(_) => {}
    }
    Some(effect)
}
