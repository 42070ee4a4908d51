//! Controllers in a fabric: one for each VLAN, and one for untagged hosts.
//!
//! A VLAN is a separate network. So each VLAN has its own controller, with only the hosts,
//! addresses, leases, routes and groups in that VLAN. All controllers build the same graph from the
//! same messages and choose paths by the same rules. A message about hosts in a VLAN names the VLAN
//! and goes only to its controller, and only if the port in question is in that VLAN. So no route
//! between two VLANs is ever made, regardless of the messages from hosts and switches.
//!
//! Outgoing messages to switches get the VLAN added. Each route also gets a flag for whether frames
//! leave with a tag, which depends on the destination host's port.

use super::conductor::Controller;
use super::hosts::Place;
use crate::config::{ControllerConfig, DhcpConfig};
use crate::effect::Effect;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_link::config::NodeConfig;
use axon_node::telemetry::{ControllerCounters, DhcpCounters, Restored};
use axon_node::{
    HostPair, PolicyChange, PolicyDone, PolicyRefusal, PortVlans, StoreChange, Stored,
};
use axon_wire::message::{ControllerHello, Item, Message};
use axon_wire::vlan::VlanId;
use axon_wire::{Hops, Incarnation, MacAddr, NodeId, PortNo, Time};
use core::net::Ipv4Addr;

/// All controllers in a fabric.
#[derive(Clone, Debug)]
pub struct Controllers {
    /// Controllers by VLAN. The one for untagged hosts has `VlanId::NONE`.
    of: BTreeMap<VlanId, Controller>,
    /// VLANs of host ports. A port without an entry is in no VLAN.
    ports: BTreeMap<(NodeId, PortNo), PortVlans>,
    /// VLANs in which hosts are leased addresses.
    leasing: BTreeSet<VlanId>,
    /// Number of messages and items about hosts in a VLAN at a port that is not in that VLAN.
    misplaced: u64,
    /// Number of stored entries dropped because their port is no longer in the VLAN.
    given_up: u64,
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

impl Controllers {
    /// Creates all controllers with an empty state, using [`Controller::new`].
    pub fn new(config: &ControllerConfig, hops_max: usize) -> Controllers {
        let mut of = BTreeMap::from([(VlanId::NONE, Controller::new(config, hops_max))]);
        let mut leasing = BTreeSet::from([VlanId::NONE]);
        for vlan in &config.vlans.vlans {
            let node = NodeConfig { server: vlan.server, ..config.node.clone() };
            let dhcp = vlan.dhcp.clone().unwrap_or_else(|| not_leased(&config.dhcp));
            let own = ControllerConfig { node, dhcp, ..config.clone() };
            of.insert(vlan.vlan, Controller::new(&own, hops_max));
            leasing.extend(vlan.dhcp.as_ref().map(|_| vlan.vlan));
        }
        Controllers { of, ports: config.vlans.ports.clone(), leasing, misplaced: 0, given_up: 0 }
    }

    /// Returns the controller for untagged hosts.
    pub fn plain(&self) -> &Controller {
        &self.of[&VlanId::NONE]
    }

    /// Returns the controller for a VLAN, if the fabric has that VLAN.
    pub fn get(&self, vlan: VlanId) -> Option<&Controller> {
        self.of.get(&vlan)
    }

    /// Returns all controllers in the order of their VLANs, starting with the one for untagged
    /// hosts.
    pub fn iter(&self) -> impl Iterator<Item = (VlanId, &Controller)> {
        self.of.iter().map(|(&vlan, controller)| (vlan, controller))
    }

    /// Returns whether hosts in a VLAN may be at a port.
    fn is_in(&self, vlan: VlanId, at: (NodeId, PortNo)) -> bool {
        self.ports.get(&at).map_or(vlan.is_none(), |vlans| vlans.has(vlan))
    }

    /// Calls the controller of one VLAN, and adds the VLAN to its effects.
    fn with(
        &mut self,
        vlan: VlanId,
        out: &mut Vec<impl From<(VlanId, Effect)>>,
        call: impl FnOnce(&mut Controller, &mut Vec<Effect>),
    ) {
        let Some(controller) = self.of.get_mut(&vlan) else {
            self.misplaced += 1;
            return;
        };
        let mut own = Vec::new();
        call(controller, &mut own);
        if vlan.is_none() {
            out.extend(own.into_iter().map(|effect| (vlan, effect).into()));
            return;
        }
        let is_tagged =
            |at: (NodeId, PortNo)| self.ports.get(&at).is_some_and(|vlans| vlans.is_tagged(vlan));
        let within = |effect| within(vlan, effect, controller, &is_tagged);
        out.extend(own.into_iter().filter_map(within).map(|effect| (vlan, effect).into()));
    }

    /// Calls each controller.
    fn with_all(
        &mut self,
        out: &mut Vec<impl From<(VlanId, Effect)>>,
        mut call: impl FnMut(&mut Controller, &mut Vec<Effect>),
    ) {
        let vlans: Vec<VlanId> = self.of.keys().copied().collect();
        for vlan in vlans {
            self.with(vlan, out, &mut call);
        }
    }

    /// Calls [`Controller::restore`]: each controller gets the entries of its VLAN, and all get
    /// operators' changes of the policy. Entries of a VLAN that no longer exists, or that their
    /// port is not in, are dropped.
    pub fn restore(
        &mut self,
        now: Time,
        stored: &[Stored],
        out: &mut Vec<impl From<(VlanId, Effect)>>,
    ) {
        let policy: Vec<Stored> =
            stored.iter().filter(|entry| entry.open().is_none()).cloned().collect();
        let mut own: BTreeMap<VlanId, Vec<Stored>> =
            self.of.keys().map(|&vlan| (vlan, policy.clone())).collect();
        for entry in stored {
            let Some((vlan, inner)) = entry.open() else { continue };
            let is_in = entry.at().is_some_and(|at| self.is_in(vlan, at));
            match own.get_mut(&vlan).filter(|_| is_in) {
                Some(own) => own.push(inner),
                None => {
                    self.given_up += 1;
                    out.push((vlan, Effect::Store(StoreChange::Delete(entry.key()))).into());
                }
            }
        }
        for (vlan, stored) in own {
            self.with(vlan, out, |controller, out| controller.restore(now, &stored, out));
        }
    }

    /// Calls [`Controller::keep`].
    pub fn keep(&mut self, out: &mut Vec<impl From<(VlanId, Effect)>>) {
        self.with_all(out, |controller, out| controller.keep(out));
    }

    /// Returns the counts of restored state, summed over all controllers.
    pub fn restored(&self) -> Restored {
        let all = self.of.values().map(Controller::restored);
        let sum = all.fold(Restored::default(), |sum, one| sum.plus(&one));
        Restored { refused: sum.refused + self.given_up, ..sum }
    }

    /// Calls [`Controller::attached`] on each controller.
    pub fn attached(&mut self, port: PortNo, peer: Option<(NodeId, PortNo)>) {
        self.of.values_mut().for_each(|controller| controller.attached(port, peer));
    }

    /// Calls [`Controller::path_to`] on the controller for untagged hosts.
    pub fn path_to(&mut self, switch: NodeId) -> Option<Hops> {
        self.of.get_mut(&VlanId::NONE)?.path_to(switch)
    }

    /// Calls [`Graph::has_links`](crate::topology::Graph::has_links).
    pub fn has_links(&self, node: NodeId) -> bool {
        self.plain().graph().has_links(node)
    }

    /// Calls [`Controller::acknowledged`] on the controller for one VLAN.
    pub fn acknowledged(&mut self, now: Time, (vlan, number): (VlanId, u64)) {
        if let Some(controller) = self.of.get_mut(&vlan) {
            controller.acknowledged(now, number);
        }
    }

    /// Calls [`Controller::backlog`] on each controller.
    pub fn backlog(&mut self, of: NodeId, is_full: bool) {
        self.of.values_mut().for_each(|controller| controller.backlog(of, is_full));
    }

    /// Calls [`Controller::controller_hello`] on each controller.
    pub fn controller_hello(
        &mut self,
        now: Time,
        from: Incarnation,
        reverse: &Hops,
        m: &ControllerHello,
        out: &mut Vec<impl From<(VlanId, Effect)>>,
    ) {
        self.with_all(out, |controller, out| {
            controller.controller_hello(now, from, reverse.clone(), m.clone(), out);
        });
    }

    /// Handles a request from a host in this VLAN ([`Controller::arp_request`],
    /// [`Controller::dhcp_relay`]). Returns whether the message was such a request.
    pub fn request(
        &mut self,
        now: Time,
        from: Incarnation,
        (vlan, message): (VlanId, Message),
        out: &mut Vec<impl From<(VlanId, Effect)>>,
    ) -> bool {
        let port = match &message {
            Message::ArpRequest(request) => request.port,
            Message::DhcpRelay(relay) => relay.port,
            _ => return false,
        };
        if !self.is_in(vlan, (from.node, port)) {
            self.misplaced += 1;
            return true;
        }
        let leases = self.leasing.contains(&vlan);
        self.with(vlan, out, |controller, out| match message {
            Message::ArpRequest(request) => controller.arp_request(now, from, request, out),
            Message::DhcpRelay(relay) if leases => controller.dhcp_relay(now, from, relay, out),
            _ => {}
        });
        true
    }

    /// Calls [`Controller::item`] of the VLAN's controller. Load reports go to all controllers.
    pub fn item(
        &mut self,
        now: Time,
        from: Incarnation,
        (vlan, mut item): (VlanId, Item),
        out: &mut Vec<impl From<(VlanId, Effect)>>,
    ) {
        if let Item::PortLoad { .. } = item {
            return self
                .with_all(out, |controller, out| controller.item(now, from, item.clone(), out));
        }
        let port = port_of(&item);
        if port.is_some_and(|port| !self.is_in(vlan, (from.node, port))) {
            self.misplaced += 1;
            return;
        }
        if let Item::SetRoute { route, .. } | Item::BackupUsed { route, .. } = &mut item {
            route.tagged = false;
        }
        self.with(vlan, out, |controller, out| controller.item(now, from, item, out));
    }

    /// Calls [`Controller::timeout`].
    pub fn timeout(&mut self, now: Time, out: &mut Vec<impl From<(VlanId, Effect)>>) {
        self.with_all(out, |controller, out| {
            if controller.deadline().is_some_and(|at| at <= now) {
                controller.timeout(now, out);
            }
        });
    }

    /// Returns when to call [`Controllers::timeout`] next.
    pub fn deadline(&self) -> Option<Time> {
        self.of.values().filter_map(Controller::deadline).min()
    }

    /// Calls [`Controller::query_refused`].
    pub fn query_refused(
        &mut self,
        now: Time,
        (vlan, to): (VlanId, NodeId),
        out: &mut Vec<impl From<(VlanId, Effect)>>,
    ) {
        self.with(vlan, out, |controller, out| controller.query_refused(now, to, out));
    }

    /// Calls [`Controller::list_refused`].
    pub fn list_refused(
        &mut self,
        now: Time,
        (vlan, to): (VlanId, NodeId),
        list: (PortNo, MacAddr, core::net::IpAddr),
    ) {
        if let Some(controller) = self.of.get_mut(&vlan) {
            controller.list_refused(now, to, list);
        }
    }

    /// Calls [`Controller::change_policy`] on each controller. The change applies to all VLANs and
    /// is stored once. Two hosts without a common VLAN do not reach each other under any policy.
    ///
    /// # Errors
    /// The errors of [`Controller::change_policy`], in which case nothing has changed.
    pub fn change_policy(
        &mut self,
        now: Time,
        change: PolicyChange,
        out: &mut Vec<impl From<(VlanId, Effect)>>,
    ) -> Result<PolicyDone, PolicyRefusal> {
        let (mut routes_removed, mut switches, mut reach) = (0, BTreeSet::new(), false);
        let mut all = Ok(());
        self.with_all(out, |controller, out| {
            let done = controller.change_policy(now, change, out);
            match done {
                Ok(done) => {
                    routes_removed += done.routes_removed;
                    switches.extend(done.switches);
                    reach = done.reach;
                }
                Err(refusal) => all = Err(refusal),
            }
        });
        all?;
        let apart = matches!(change, PolicyChange::Pair(pair, _) if self.are_apart(pair));
        let switches = switches.into_iter().collect();
        Ok(PolicyDone { routes_removed, switches, reach: reach && !apart })
    }

    /// Returns whether two known hosts have no VLAN in common.
    fn are_apart(&self, pair: HostPair) -> bool {
        let of = |mac: MacAddr| -> BTreeSet<VlanId> {
            let known = self.iter().filter(|(_, one)| one.hosts().by_mac(mac).is_some());
            known.map(|(vlan, _)| vlan).collect()
        };
        let [a, b] = pair.hosts().map(of);
        !a.is_empty() && !b.is_empty() && a.is_disjoint(&b)
    }

    /// Returns the counters, summed over all controllers.
    pub fn counters(&self) -> ControllerCounters {
        let counters = self.of.values().map(Controller::counters);
        let sum = counters.fold(ControllerCounters::default(), |sum, one| sum.plus(&one));
        ControllerCounters { item_misplaced: sum.item_misplaced + self.misplaced, ..sum }
    }

    /// Returns the counters of the address services, summed over all controllers.
    pub fn dhcp_counters(&self) -> DhcpCounters {
        let counters = self.of.values().map(|controller| controller.dhcp().counters());
        counters.fold(DhcpCounters::default(), |sum, one| sum.plus(&one))
    }
}

/// Returns the host port that an item from a switch is about.
const fn port_of(item: &Item) -> Option<PortNo> {
    match item {
        Item::HostSeen { port, .. }
        | Item::SetRoute { port, .. }
        | Item::GroupMember { port, joined: true, .. }
        | Item::AskGroup { port, wanted: true, .. } => Some(*port),
        _ => None,
    }
}

/// Adds the VLAN to an effect of its controller. Returns `None` for an effect that the controller
/// for untagged hosts emits too, so that it is sent only once.
fn within(
    vlan: VlanId,
    mut effect: Effect,
    of: &Controller,
    is_tagged: &impl Fn((NodeId, PortNo)) -> bool,
) -> Option<Effect> {
    let is_tagged_at = |mac: MacAddr| {
        let host = of.hosts().by_mac(mac).and_then(|index| of.hosts().get(index));
        host.is_some_and(|host| {
            let Place { switch, port } = host.place();
            is_tagged((of.graph().switch(switch).incarnation.node, port))
        })
    };
    match &mut effect {
        Effect::Routed { message: Message::ControllerHelloAck(_), .. }
        | Effect::Command { item: Item::AskLoad { .. }, .. } => return None,
        Effect::Store(change) => {
            return change.clone().in_vlan(vlan).map(Effect::Store);
        }
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
        Effect::AwaitAcknowledged { vlan: of, .. } => *of = vlan,
        Effect::Note(_) => {}
    }
    Some(effect)
}
