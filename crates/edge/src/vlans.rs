//! Edges of a switch: one for each VLAN, and one for untagged frames.
//!
//! A VLAN is a separate network. So each has an edge of its own, with the hosts, addresses, routes
//! and groups of that VLAN only, and for which the ports of other VLANs are no host ports. An edge
//! receives the frames of its VLAN without tags. Its requests get the VLAN on output: messages,
//! items and route keys carry it, and a frame for the hosts of a port gets its tag where the VLAN
//! is tagged. Edges exchange nothing, so no host resolves or reaches a host of another VLAN.
//!
//! The table of a port that is in several VLANs is shared by their edges. Each counts only its own
//! routes; those that do not fit in the data plane are kept in software as usual.

use super::edge::Edge;
use super::fate::Fate;
use super::hosts::Host;
use super::parts::Call;
use crate::config::EdgeConfig;
use crate::config::EdgeServices;
use crate::effect::Effect;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_link::config::NodeConfig;
use axon_link::member::Member;
use axon_node::telemetry::{EdgeCounters, EdgeDebts};
use axon_node::{
    Capabilities, Drop, PortKind, PortView, PortVlans, RouteAnswer, RouteChange, RouteKey,
    RouteTicket, Snapshot,
};
use axon_wire::message::{Item, LinkEnd, Message};
use axon_wire::vlan::{self, VlanId};
use axon_wire::{FrameBuf, Incarnation, MacAddr, PortNo, Route, Time};

/// Bit position of the VLAN in a ticket, above the edge's own number.
const TICKET_BITS: u32 = 48;

/// All edges of a switch.
#[derive(Clone, Debug)]
pub struct Edges {
    /// Edges by VLAN; that of untagged frames has `VlanId::NONE`. Boxed, because most switches have
    /// one edge, and a node of the map has room for eleven.
    of: BTreeMap<VlanId, Box<Edge>>,
    /// VLANs of each port. A port without an entry accepts frames unchanged; so do all ports if the
    /// fabric has no VLANs.
    ports: Vec<Option<PortVlans>>,
}

/// Ports as seen by the edge of one VLAN.
struct View<'a> {
    ports: &'a dyn PortView,
    vlans: &'a [Option<PortVlans>],
    vlan: VlanId,
}

impl PortView for View<'_> {
    fn count(&self) -> u16 {
        self.ports.count()
    }

    fn kind(&self, port: PortNo) -> Option<PortKind> {
        let kind = self.ports.kind(port)?;
        let is_in = match self.vlans.get(port.index()).and_then(Option::as_ref) {
            Some(vlans) => vlans.has(self.vlan),
            None => self.vlan.is_none(),
        };
        Some(if kind == PortKind::Host && !is_in { PortKind::Unknown } else { kind })
    }

    fn is_up(&self, port: PortNo) -> bool {
        self.ports.is_up(port)
    }
}

/// Returns a host's frame without the VID, as the edge of its VLAN receives it.
fn untagged(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    vlan::set_vid(&mut frame, 0);
    frame
}

impl Edges {
    /// Creates the edges of a switch, each by [`Edge::new`].
    pub fn new(config: &EdgeConfig, has: &Capabilities) -> Edges {
        let mut of = BTreeMap::from([(VlanId::NONE, Box::new(Edge::new(config, has)))]);
        for vlan in &config.vlans {
            let node = NodeConfig {
                server: vlan.server,
                // Each VLAN has its own masqueraded addresses.
                seed: config.node.seed ^ u64::from(vlan.id.value()) << TICKET_BITS,
                ..config.node.clone()
            };
            let services = EdgeServices { dhcp_server: None, ipv6: vlan.ipv6.clone() };
            let config = EdgeConfig { node, services, ..config.clone() };
            of.insert(vlan.id, Box::new(Edge::new(&config, has)));
        }
        Edges {
            of,
            ports: config.ports.iter().map(|port| port.vlans.as_deref().cloned()).collect(),
        }
    }

    /// Returns the edge of untagged frames.
    pub fn plain(&self) -> &Edge {
        &self.of[&VlanId::NONE]
    }

    /// Returns the edge of a VLAN, if the fabric has it.
    pub fn get(&self, vlan: VlanId) -> Option<&Edge> {
        self.of.get(&vlan).map(|edge| &**edge)
    }

    /// Returns all edges in the order of their VLANs, that of untagged frames first.
    pub fn iter(&self) -> impl Iterator<Item = (VlanId, &Edge)> {
        self.of.iter().map(|(&vlan, edge)| (vlan, &**edge))
    }

    /// Returns whether the edge of untagged frames is the only one.
    fn is_single(&self) -> bool {
        self.of.len() == 1
    }

    /// Calls the edge of one VLAN, and adds the VLAN to its requests. `None` if the fabric does not
    /// have that VLAN.
    fn with<R>(
        &mut self,
        (now, vlan): (Time, VlanId),
        ports: &dyn PortView,
        out: &mut Vec<impl From<Effect>>,
        call: impl FnOnce(Call<'_>) -> R,
    ) -> Option<R> {
        let edge = self.of.get_mut(&vlan)?;
        let view = View { ports, vlans: &self.ports, vlan };
        let mut own = Vec::new();
        let done = call(edge.at(now, &view, &mut own));
        out.extend(own.into_iter().map(|mut effect| {
            if !vlan.is_none() {
                within(vlan, &self.ports, &mut effect);
            }
            effect.into()
        }));
        Some(done)
    }

    /// Calls each edge.
    fn with_all(
        &mut self,
        now: Time,
        ports: &dyn PortView,
        out: &mut Vec<impl From<Effect>>,
        mut call: impl FnMut(Call<'_>),
    ) {
        if self.is_single() {
            self.with((now, VlanId::NONE), ports, out, call);
            return;
        }
        let vlans: Vec<VlanId> = self.of.keys().copied().collect();
        for vlan in vlans {
            self.with((now, vlan), ports, out, &mut call);
        }
    }

    /// Returns the VLAN of a host's frame at `port`.
    ///
    /// # Errors
    /// The port is not in the frame's VLAN.
    fn vlan_of(&self, port: PortNo, frame: &[u8]) -> Result<VlanId, Drop> {
        match self.ports.get(port.index()).and_then(Option::as_ref) {
            None => Ok(VlanId::NONE),
            Some(vlans) => vlans.of_frame(frame).ok_or(Drop::ForeignVlan),
        }
    }

    /// Calls [`Call::host_frame`] of the frame's VLAN; returns the VLAN too.
    ///
    /// # Errors
    /// The drop reason, if the frame is dropped now.
    pub fn host_frame(
        &mut self,
        now: Time,
        port: PortNo,
        frame: &[u8],
        ports: &dyn PortView,
        out: &mut Vec<impl From<Effect>>,
    ) -> (VlanId, Result<Fate, Drop>) {
        let vlan = match self.vlan_of(port, frame) {
            Ok(vlan) => vlan,
            Err(reason) => return (VlanId::NONE, Err(reason)),
        };
        if vlan.is_none() {
            let fate = self.with((now, vlan), ports, out, |mut call| call.host_frame(port, frame));
            return (vlan, fate.unwrap_or(Err(Drop::ForeignVlan)));
        }
        let frame = untagged(frame);
        let fate = self.with((now, vlan), ports, out, |mut call| call.host_frame(port, &frame));
        (vlan, fate.unwrap_or(Err(Drop::ForeignVlan)))
    }

    /// Calls [`Call::waited_for_list`].
    pub fn waited_for_list(
        &mut self,
        (now, port, vlan): (Time, PortNo, VlanId),
        frame: &[u8],
        ports: &dyn PortView,
        out: &mut Vec<impl From<Effect>>,
    ) -> Result<Fate, Drop> {
        let frame = if vlan.is_none() { frame.to_vec() } else { untagged(frame) };
        let fate =
            self.with((now, vlan), ports, out, |mut call| call.waited_for_list(port, &frame));
        fate.unwrap_or(Err(Drop::ForeignVlan))
    }

    /// Handles a message of the controller, or of a switch in Axon-ARP, about hosts of a VLAN.
    /// `None` if the fabric does not have that VLAN.
    pub fn message(
        &mut self,
        now: Time,
        (vlan, message): (VlanId, Message),
        ports: &dyn PortView,
        out: &mut Vec<impl From<Effect>>,
    ) -> Option<()> {
        self.with((now, vlan), ports, out, |mut call| match message {
            Message::ArpTarget(m) => call.arp_target(m),
            Message::ArpReply(m) => call.arp_reply(m),
            Message::Seek(m) => call.seek(m),
            Message::HostFrame(m) => call.host_frame_out(m),
            _ => {}
        })
    }

    /// Calls [`Call::item`].
    pub fn item(
        &mut self,
        now: Time,
        item: Item,
        ports: &dyn PortView,
        out: &mut Vec<impl From<Effect>>,
    ) {
        let (vlan, item) = item.open();
        if let Some(item) = item {
            self.with((now, vlan), ports, out, |mut call| call.item(item));
        }
    }

    /// Calls [`Call::route_changed`].
    pub fn route_changed(
        &mut self,
        now: Time,
        answer: RouteAnswer,
        ports: &dyn PortView,
        out: &mut Vec<impl From<Effect>>,
    ) {
        let RouteTicket(ticket) = answer.ticket;
        let Some(vlan) = VlanId::new((ticket >> TICKET_BITS) as u16) else { return };
        let ticket = RouteTicket(ticket & ((1 << TICKET_BITS) - 1));
        let answer = RouteAnswer { ticket, ..answer };
        self.with((now, vlan), ports, out, |mut call| call.route_changed(answer));
    }

    /// Returns all routes that the data plane should have: the ingress port, the key, the
    /// destination, the route.
    pub fn wanted_routes(&self) -> impl Iterator<Item = (PortNo, RouteKey, MacAddr, &Route)> {
        self.iter().flat_map(|(vlan, edge)| {
            edge.wanted_routes().map(move |((port, address), destination, route)| {
                (port, RouteKey { vlan, ..address }, destination, route)
            })
        })
    }

    /// Calls [`Call::resynchronised`].
    pub fn resynchronised(
        &mut self,
        now: Time,
        has: &Snapshot,
        ports: &dyn PortView,
        out: &mut Vec<impl From<Effect>>,
    ) {
        let vlans: Vec<VlanId> = self.of.keys().copied().collect();
        for vlan in vlans {
            let has = of_vlan(has, vlan);
            self.with((now, vlan), ports, out, |mut call| {
                call.resynchronised(&has);
            });
        }
    }

    /// Calls [`Edge::found`].
    pub fn found(&mut self, has: &Snapshot) {
        for (&vlan, edge) in &mut self.of {
            edge.found(&of_vlan(has, vlan));
        }
    }

    /// Calls [`Call::link`].
    pub fn link(
        &mut self,
        now: Time,
        link: (PortNo, bool),
        ports: &dyn PortView,
        out: &mut Vec<impl From<Effect>>,
    ) {
        self.with_all(now, ports, out, |mut call| call.link(link));
    }

    /// Calls [`Call::member_changed`] of all edges, because a bond is in no VLAN.
    pub fn member_changed(
        &mut self,
        now: Time,
        changed: (PortNo, Member),
        ports: &dyn PortView,
        out: &mut Vec<impl From<Effect>>,
    ) {
        self.with((now, VlanId::NONE), ports, out, |mut call| {
            call.member_changed(changed);
        });
    }

    /// Calls [`Call::port_changed`].
    pub fn port_changed(
        &mut self,
        now: Time,
        port: PortNo,
        ports: &dyn PortView,
        out: &mut Vec<impl From<Effect>>,
    ) {
        self.with_all(now, ports, out, |mut call| call.port_changed(port));
    }

    /// Calls [`Call::controller_changed`].
    pub fn controller_changed(
        &mut self,
        now: Time,
        controller: Option<Incarnation>,
        ports: &dyn PortView,
        out: &mut Vec<impl From<Effect>>,
    ) {
        self.with_all(now, ports, out, |mut call| {
            call.controller_changed(controller);
        });
    }

    /// Calls [`Edge::link_down`]. All edges have the same result.
    pub fn link_down(&mut self, now: Time, ends: [LinkEnd; 2]) -> bool {
        let mut news = false;
        for edge in self.of.values_mut() {
            news |= edge.link_down(now, ends);
        }
        news
    }

    /// Calls [`Call::fail_over`].
    pub fn fail_over(
        &mut self,
        now: Time,
        ends: [LinkEnd; 2],
        ports: &dyn PortView,
        out: &mut Vec<impl From<Effect>>,
    ) {
        self.with_all(now, ports, out, |mut call| call.fail_over(ends));
    }

    /// Calls [`Call::timeout`] of the edges whose deadline has come.
    pub fn timeout(&mut self, now: Time, ports: &dyn PortView, out: &mut Vec<impl From<Effect>>) {
        let is_due = |edge: &Edge| edge.deadline().is_some_and(|at| at <= now);
        let due = self.of.iter().filter(|(_, edge)| is_due(edge)).map(|(&vlan, _)| vlan);
        for vlan in due.collect::<Vec<_>>() {
            self.with((now, vlan), ports, out, |mut call| call.timeout());
        }
    }

    /// Returns when to call [`Edges::timeout`] next.
    pub fn deadline(&self) -> Option<Time> {
        self.of.values().filter_map(|edge| edge.deadline()).min()
    }

    /// Calls [`Edge::has_flows`].
    pub fn has_flows(&self) -> bool {
        self.of.values().any(|edge| edge.has_flows())
    }

    /// Removes the routes without frames since the last call, by [`Edge::idle_flows`] and
    /// [`Call::remove_idle`].
    pub fn age(
        &mut self,
        now: Time,
        mut used: impl FnMut(PortNo, RouteKey) -> bool,
    ) -> Vec<(VlanId, Vec<(PortNo, RouteKey)>)> {
        let idle = |(&vlan, edge): (&VlanId, &mut Box<Edge>)| {
            let used = |port, key| used(port, RouteKey { vlan, ..key });
            (vlan, edge.idle_flows(now, used))
        };
        self.of.iter_mut().map(idle).collect()
    }

    /// Calls [`Call::remove_idle`] for all routes that [`Edges::age`] has returned.
    pub fn remove_idle(
        &mut self,
        now: Time,
        idle: &[(VlanId, Vec<(PortNo, RouteKey)>)],
        ports: &dyn PortView,
        out: &mut Vec<impl From<Effect>>,
    ) {
        for (vlan, idle) in idle {
            self.with((now, *vlan), ports, out, |mut call| {
                call.remove_idle(idle);
            });
        }
    }

    /// Returns all local hosts, each with its VLAN.
    pub fn hosts(&self) -> impl Iterator<Item = (VlanId, MacAddr, &Host)> {
        self.iter().flat_map(|(vlan, edge)| edge.hosts().map(move |(mac, host)| (vlan, mac, host)))
    }

    /// Returns the counters, summed over all edges.
    pub fn counters(&self) -> EdgeCounters {
        self.of.values().fold(EdgeCounters::default(), |sum, edge| sum.plus(&edge.counters()))
    }

    /// Returns the outstanding answers of the data plane, summed over all edges.
    pub fn debts(&self) -> EdgeDebts {
        self.of.values().map(|edge| edge.debts()).fold(EdgeDebts::default(), |sum, debts| {
            EdgeDebts {
                unanswered: sum.unanswered + debts.unanswered,
                stale: sum.stale + debts.stale,
                lost: sum.lost || debts.lost,
            }
        })
    }
}

/// Returns the routes of a snapshot that are of one VLAN.
fn of_vlan(has: &Snapshot, vlan: VlanId) -> Snapshot {
    let mut has = has.clone();
    for port in &mut has.ports {
        port.routes.retain(|(key, _)| key.vlan == vlan);
        port.masqueraded.retain(|one| one.key.vlan == vlan);
    }
    has
}

/// Adds the VLAN of an edge to its request.
fn within(vlan: VlanId, ports: &[Option<PortVlans>], effect: &mut Effect) {
    match effect {
        Effect::ToController(message) | Effect::Routed { message, .. } => {
            *message = message.in_vlan(vlan);
        }
        Effect::Report(item) => *item = item.in_vlan(vlan),
        Effect::Host { port, frame } => {
            let vlans = ports.get(port.index()).and_then(Option::as_ref);
            if vlans.is_some_and(|vlans| vlans.is_tagged(vlan)) {
                let mut tagged = FrameBuf::new(frame);
                // There is headroom.
                let _ = vlan::leave(&mut tagged, vlan, true);
                *frame = tagged.bytes().to_vec();
            }
        }
        Effect::Release { key, .. } | Effect::Abandon { key, .. } | Effect::Spread { key, .. } => {
            key.vlan = vlan;
        }
        Effect::Route { ticket, change } => {
            ticket.0 |= u64::from(vlan.value()) << TICKET_BITS;
            match change {
                RouteChange::Install { key, .. }
                | RouteChange::Masquerade { key, .. }
                | RouteChange::Remove { key, .. } => key.vlan = vlan,
            }
        }
        // They are not about hosts.
        Effect::Resynchronise | Effect::LinkLost { .. } | Effect::Note(_) => {}
    }
}
