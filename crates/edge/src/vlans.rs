//! Edges of a switch: one for each VLAN, and one for untagged frames.
//!
//! A VLAN is a separate network. So each has an edge of its own, with the hosts, addresses, flows
//! and groups of that VLAN only, and for which the ports of other VLANs are no host ports. An edge
//! receives the frames of its VLAN without tags, and a frame for the hosts of a port gets its tag
//! on output where the VLAN is tagged. Edges exchange nothing, so no host resolves or reaches a
//! host of another VLAN.
//!
//! All VLANs share the tables of the data plane with their unanswered changes, the path to the
//! controller, the links that are down and the counters. Route keys in those tables name their
//! VLAN. A port's table is shared by its VLANs: an entry that one of them frees is offered to
//! those that found no room.

use super::edge::{Edge, Shared};
use super::hosts::Host;
use super::outcome::Outcome;
use super::parts::Call;
use super::view::{View, tag, without_vid};
use crate::config::EdgeConfig;
use crate::config::EdgeServices;
use crate::effect::Effect;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_link::config::NodeConfig;
use axon_node::agenda::Agenda;
use axon_node::telemetry::{EdgeCounters, EdgeDebts};
use axon_node::{
    Capabilities, Drop, PortView, PortVlans, RouteAnswer, RouteError, RouteKey, Snapshot,
};
use axon_wire::message::{LinkEnd, Message};
use axon_wire::vlan::VlanId;
use axon_wire::{Incarnation, MacAddr, PortNo, Route, Time};

/// All edges of a switch.
#[derive(Clone, Debug)]
pub struct Edges {
    /// Edge of untagged frames.
    plain: Edge,
    /// Edges of the VLANs. Boxed, because a node of the map has room for eleven.
    of: BTreeMap<VlanId, Box<Edge>>,
    shared: Shared,
    /// Deadlines of the edges of VLANs.
    due: Agenda<VlanId>,
    /// VLANs of each port. A port without an entry accepts frames unchanged; so do all ports if the
    /// fabric has no VLANs.
    ports: Vec<Option<PortVlans>>,
}

impl Edges {
    /// Creates the edges of a switch whose ports have no carrier and that has no controller yet, on
    /// a data plane with these capabilities.
    ///
    /// Intervals below 1 ms count as 1 ms.
    pub fn new(config: &EdgeConfig, has: &Capabilities) -> Edges {
        let shared = Shared::new(config, has);
        let edge = |vlan, config: &EdgeConfig| Edge::new((vlan, config), has, &shared.tables);
        let mut of = BTreeMap::new();
        for vlan in &config.vlans {
            let node = NodeConfig { server: vlan.server, ..config.node.clone() };
            let services = EdgeServices { dhcp_server: None, ipv6: vlan.ipv6.clone() };
            let config = EdgeConfig { node, services, ..config.clone() };
            of.insert(vlan.id, Box::new(edge(vlan.id, &config)));
        }
        Edges {
            plain: edge(VlanId::NONE, config),
            of,
            shared,
            due: Agenda::new(),
            ports: config.ports.iter().map(|port| port.vlans.as_deref().cloned()).collect(),
        }
    }

    /// Returns the edge of untagged frames.
    pub fn plain(&self) -> &Edge {
        &self.plain
    }

    /// Returns the edge of a VLAN, if the fabric has it.
    #[cfg(test)]
    pub(crate) fn get(&self, vlan: VlanId) -> Option<&Edge> {
        if vlan.is_none() { Some(&self.plain) } else { self.of.get(&vlan).map(|edge| &**edge) }
    }

    /// Returns all edges in the order of their VLANs, that of untagged frames first.
    pub fn iter(&self) -> impl Iterator<Item = (VlanId, &Edge)> {
        let tagged = self.of.iter().map(|(&vlan, edge)| (vlan, &**edge));
        core::iter::once((VlanId::NONE, &self.plain)).chain(tagged)
    }

    /// Begins a call of the edge of untagged frames, in a fabric without VLANs.
    pub fn untagged<'a>(
        &'a mut self,
        now: Time,
        ports: &'a dyn PortView,
        out: &'a mut Vec<Effect>,
    ) -> Call<'a> {
        self.plain.at(&mut self.shared, (now, ports), out)
    }

    /// Calls the edge of one VLAN, and passes its requests on with the VLAN. `None` if the fabric
    /// does not have that VLAN. Bonds are at the edge of untagged frames. Room in a table that one
    /// VLAN has made is offered to the software routes of the others.
    pub fn with<R>(
        &mut self,
        (now, vlan): (Time, VlanId),
        ports: &dyn PortView,
        out: &mut Vec<impl From<(VlanId, Effect)>>,
        call: impl FnOnce(Call<'_>) -> R,
    ) -> Option<R> {
        let done = self.alone((now, vlan), ports, out, call)?;
        let mut freed: Vec<_> = self.freed(vlan).collect();
        while let Some((port, to)) = freed.pop() {
            self.alone((now, to), ports, out, |mut call| call.promote(port));
            freed.extend(self.freed(to));
        }
        Some(done)
    }

    /// Returns the ports at which a VLAN has made room, each with a VLAN to offer it to.
    fn freed(&mut self, by: VlanId) -> impl Iterator<Item = (PortNo, VlanId)> {
        let ports = &self.ports;
        let freed = self.shared.tables.take_freed().into_iter();
        let to = move |(port, to): (PortNo, Option<VlanId>)| {
            let all = ports.get(port.index()).and_then(Option::as_ref).filter(|_| to.is_none());
            let all = all.into_iter().flat_map(|all| all.tagged.iter().chain([&all.untagged]));
            to.into_iter().chain(all.copied()).map(move |vlan| (port, vlan))
        };
        freed.flat_map(to).filter(move |&(_, vlan)| vlan != by)
    }

    /// Calls the edge of one VLAN as [`Edges::with`] does, but offers no room.
    fn alone<R>(
        &mut self,
        (now, vlan): (Time, VlanId),
        ports: &dyn PortView,
        out: &mut Vec<impl From<(VlanId, Effect)>>,
        call: impl FnOnce(Call<'_>) -> R,
    ) -> Option<R> {
        let edge = if vlan.is_none() { &mut self.plain } else { self.of.get_mut(&vlan)? };
        let view = View { ports, vlans: &self.ports, vlan };
        let mut own = Vec::new();
        let done = call(edge.at(&mut self.shared, (now, &view), &mut own));
        if !vlan.is_none() {
            match edge.deadline() {
                Some(at) => self.due.set(vlan, at),
                None => self.due.cancel(vlan),
            }
        }
        out.extend(own.into_iter().map(|mut effect| {
            if let Effect::Host { port, frame } = &mut effect {
                tag(vlan, self.ports.get(port.index()).and_then(Option::as_ref), frame);
            }
            (vlan, effect).into()
        }));
        Some(done)
    }

    /// Returns the VLANs of all edges.
    fn vlans(&self) -> Vec<VlanId> {
        self.iter().map(|(vlan, _)| vlan).collect()
    }

    /// Calls the edge of each VLAN.
    pub fn with_all(
        &mut self,
        now: Time,
        ports: &dyn PortView,
        out: &mut Vec<impl From<(VlanId, Effect)>>,
        mut call: impl FnMut(Call<'_>),
    ) {
        for vlan in self.vlans() {
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
        out: &mut Vec<impl From<(VlanId, Effect)>>,
    ) -> (VlanId, Result<Outcome, Drop>) {
        let vlan = match self.vlan_of(port, frame) {
            Ok(vlan) => vlan,
            Err(reason) => return (VlanId::NONE, Err(reason)),
        };
        if vlan.is_none() {
            let fate = self.with((now, vlan), ports, out, |mut call| call.host_frame(port, frame));
            return (vlan, fate.unwrap_or(Err(Drop::ForeignVlan)));
        }
        let frame = without_vid(frame);
        let fate = self.with((now, vlan), ports, out, |mut call| call.host_frame(port, &frame));
        (vlan, fate.unwrap_or(Err(Drop::ForeignVlan)))
    }

    /// Calls `Call::waited_for_list`.
    pub fn waited_for_list(
        &mut self,
        (now, port, vlan): (Time, PortNo, VlanId),
        frame: &[u8],
        ports: &dyn PortView,
        out: &mut Vec<impl From<(VlanId, Effect)>>,
    ) -> Result<Outcome, Drop> {
        let frame = if vlan.is_none() { frame.to_vec() } else { without_vid(frame) };
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
        out: &mut Vec<impl From<(VlanId, Effect)>>,
    ) -> Option<()> {
        self.with((now, vlan), ports, out, |mut call| match message {
            Message::ArpTarget(m) => call.arp_target(m),
            Message::ArpReply(m) => call.arp_reply(m),
            Message::Seek(m) => call.seek(m),
            Message::HostFrame(m) => call.host_frame_out(m),
            _ => {}
        })
    }

    /// Calls [`Call::route_changed`].
    pub fn route_changed(
        &mut self,
        now: Time,
        answer: RouteAnswer,
        ports: &dyn PortView,
        out: &mut Vec<impl From<(VlanId, Effect)>>,
    ) {
        self.shared.counters.changes_refused += u64::from(answer.result.is_err());
        self.answered(now, answer, ports, out);
    }

    /// Passes an answer on to the edge of the VLAN of its route.
    fn answered(
        &mut self,
        now: Time,
        answer: RouteAnswer,
        ports: &dyn PortView,
        out: &mut Vec<impl From<(VlanId, Effect)>>,
    ) {
        let vlan = self.shared.tables.vlan_of(answer.ticket);
        self.with((now, vlan), ports, out, |mut call| call.route_changed(answer));
    }

    /// Returns all routes that the data plane should have: the ingress port and the address in its
    /// table or route memory, the destination, the route.
    pub fn wanted_routes(&self) -> impl Iterator<Item = ((PortNo, RouteKey), MacAddr, &Route)> {
        self.iter().flat_map(|(_, edge)| edge.wanted_routes(&self.shared.tables))
    }

    /// Returns the masqueraded address of a destination for untagged hosts of `port`, if it has
    /// one.
    pub fn masquerade_of(&self, port: PortNo, destination: MacAddr) -> Option<MacAddr> {
        let (_, address) = self.shared.tables.address((port, destination.into()));
        Some(address.destination).filter(|mac| *mac != destination)
    }

    /// Resynchronises the flows with a data plane that has lost its tables. `has` is its current
    /// state.
    pub fn resynchronised(
        &mut self,
        now: Time,
        has: &Snapshot,
        ports: &dyn PortView,
        out: &mut Vec<impl From<(VlanId, Effect)>>,
    ) {
        let was_lost = self.shared.tables.is_lost();
        self.shared.tables.settle();
        self.with_all(now, ports, out, |mut call| call.resynchronised((has, was_lost)));
    }

    /// Records the routes of a data plane that has outlived the previous incarnation. Call it
    /// before anything else.
    pub fn found(&mut self, has: &Snapshot) {
        self.plain.found(has);
        self.of.values_mut().for_each(|edge| edge.found(has));
    }

    /// Handles a change of the controller; `None` if it is unreachable.
    pub fn controller_changed(
        &mut self,
        now: Time,
        controller: Option<Incarnation>,
        ports: &dyn PortView,
        out: &mut Vec<impl From<(VlanId, Effect)>>,
    ) {
        let Some(change) = self.shared.controller.changed(now, controller) else { return };
        self.with_all(now, ports, out, |mut call| call.controller_changed(change));
    }

    /// Records that a link is down, detected by this switch or another. Returns whether that is
    /// new; then it must be passed on before [`Call::fail_over`].
    pub fn link_down(&mut self, now: Time, ends: [LinkEnd; 2]) -> bool {
        self.shared.link_down(now, ends)
    }

    /// Returns whether the loss of a link is known already.
    pub fn knows_down(&self, now: Time, ends: [LinkEnd; 2]) -> bool {
        self.shared.knows_down(now, ends)
    }

    /// Handles expired timers. Early or repeated calls are harmless.
    ///
    /// Counts changes with overdue answers as refused, and calls the edges whose deadline has come.
    pub fn timeout(
        &mut self,
        now: Time,
        ports: &dyn PortView,
        out: &mut Vec<impl From<(VlanId, Effect)>>,
    ) {
        while let Some(ticket) = self.shared.tables.overdue(now) {
            self.shared.counters.changes_unanswered += 1;
            let answer = RouteAnswer { ticket, result: Err(RouteError::Unavailable) };
            self.answered(now, answer, ports, out);
        }
        if self.shared.tables.take_lost(now) {
            out.push((VlanId::NONE, Effect::Resynchronise).into());
        }
        let plain = self.plain.deadline().filter(|&at| at <= now).map(|_| VlanId::NONE);
        let due = core::iter::from_fn(|| self.due.pop_due(now));
        let due: Vec<VlanId> = plain.into_iter().chain(due).collect();
        for vlan in due {
            self.with((now, vlan), ports, out, |mut call| call.timeout());
        }
    }

    /// Returns when to call [`Edges::timeout`] next.
    pub fn deadline(&self) -> Option<Time> {
        let all = [self.shared.tables.deadline(), self.plain.deadline(), self.due.next()];
        all.into_iter().flatten().min()
    }

    /// Returns whether there are routes that may age.
    pub fn has_flows(&self) -> bool {
        self.iter().any(|(_, edge)| edge.has_flows())
    }

    /// Returns the routes without frames since the last call. `used` is called for each route's
    /// address in the data plane's table or route memory, and returns whether it was used.
    ///
    /// Returns none while the controller is unreachable, because it could not set them up again.
    pub fn age(
        &mut self,
        now: Time,
        mut used: impl FnMut(PortNo, RouteKey) -> bool,
    ) -> Vec<(PortNo, RouteKey)> {
        let Edges { plain, of, shared, .. } = self;
        let edges = core::iter::once(plain).chain(of.values_mut().map(|edge| &mut **edge));
        let idle = edges.flat_map(|edge| edge.idle_flows(now, &shared.tables, &mut used)).collect();
        if shared.controller.is_reachable() { idle } else { Vec::new() }
    }

    /// Removes these routes and reports that to the controller.
    pub fn remove_idle(
        &mut self,
        now: Time,
        idle: &[(PortNo, RouteKey)],
        ports: &dyn PortView,
        out: &mut Vec<impl From<(VlanId, Effect)>>,
    ) {
        for vlan in self.vlans() {
            let own = idle.iter().filter(|(_, key)| key.vlan == vlan).copied();
            let own: Vec<(PortNo, RouteKey)> = own.collect();
            self.with((now, vlan), ports, out, |mut call| call.remove_idle(&own));
        }
    }

    /// Returns all local hosts, each with its VLAN.
    pub fn hosts(&self) -> impl Iterator<Item = (VlanId, MacAddr, &Host)> {
        self.iter().flat_map(|(vlan, edge)| edge.hosts().map(move |(mac, host)| (vlan, mac, host)))
    }

    /// Returns the counters since the start.
    pub fn counters(&self) -> EdgeCounters {
        let Shared { tables, counters, .. } = &self.shared;
        EdgeCounters {
            answers_lost: tables.losses(),
            macs_masqueraded: tables.given_count() as u64,
            ..*counters
        }
    }

    /// Returns the outstanding answers of the data plane.
    pub fn debts(&self) -> EdgeDebts {
        self.shared.tables.debts()
    }

    #[cfg(test)]
    pub(super) fn tables(&self) -> &super::tables::Tables {
        &self.shared.tables
    }

    /// Returns the edge of untagged frames, which a test may change before it begins.
    #[cfg(test)]
    pub(super) fn plain_mut(&mut self) -> &mut Edge {
        &mut self.plain
    }
}

#[cfg(test)]
mod tests;
