//! Entry of messages from switches: each is passed to the VLAN that it names.

use super::Controller;
use crate::effect::{Effects, of_fabric};
use crate::forwarding::Shared;
use crate::hosts::Place;
use crate::route_upkeep;
use crate::vlans::{Vlan, Vlans};
use alloc::vec::Vec;
use axon_wire::message::{ArpReply, ArpRequest, ArpTarget, HostFrame, Item, Message};
use axon_wire::vlan::VlanId;
use axon_wire::{Hops, Incarnation, MacAddr, NodeId, PortNo, Span, Time};
use core::net::IpAddr;

/// Messages about hosts.
impl Controller {
    /// Handles an item of a switch's reliable stream.
    pub fn item(
        &mut self,
        now: Time,
        from: Incarnation,
        (vlan, item): (VlanId, Item),
        out: &mut Effects,
    ) {
        let known = match port_of(&item) {
            Some(port) => self.all.at_port(vlan, (from.node, port)),
            None => self.all.get(vlan),
        };
        if known.is_none() {
            self.counters.item_misplaced += 1;
            return;
        }
        let Some(switch) = self.admit(now, from, out) else { return };
        let is_placed = match item {
            Item::PortLoad { over_us, ports } => {
                let Shared { fabric, decisions, .. } = &mut self.all.shared;
                let (over, router) = (Span::from_micros(over_us), decisions.paths.router_mut());
                router.measured(fabric.graph(), switch, over, &ports);
                decisions.round_wanted = true;
                self.upkeep.rounds.plan(now, &self.all.shared.decisions);
                true
            }
            Item::BondMember { port, state, partner, selected } if vlan.is_none() => {
                let (at, report) = (Place { switch, port }, (state, partner, selected));
                route_upkeep::bond_member(&mut self.all, now, at, report, out)
            }
            Item::HostSeen { port, mac, ips } => {
                let place = Place { switch, port };
                let is_admitted = self.all.with(vlan, out, |fwd, own, out| {
                    own.presence.seen(fwd, now, place, (mac, ips), out)
                });
                if is_admitted == Some(true) {
                    self.fulfil_found(now, vlan, out);
                }
                true
            }
            item => {
                self.all.with(vlan, out, |fwd, own, out| own.item(fwd, (now, switch), item, out))
                    == Some(true)
            }
        };
        self.counters.item_misplaced += u64::from(!is_placed);
    }

    /// Handles a request from a host in this VLAN ([`Controller::arp_request`],
    /// [`Controller::dhcp_relay`]). Returns whether the message was such a request.
    pub fn request(
        &mut self,
        now: Time,
        from: Incarnation,
        (vlan, message): (VlanId, Message),
        out: &mut Effects,
    ) -> bool {
        let (Message::ArpRequest(ArpRequest { port, .. })
        | Message::DhcpRelay(HostFrame { port, .. })) = message
        else {
            return false;
        };
        let known = self.all.at_port(vlan, (from.node, port));
        match (message, known.map(Vlan::leases)) {
            (_, None) => self.counters.item_misplaced += 1,
            (Message::ArpRequest(m), _) => {
                self.route(now, from, (vlan, m), out);
                self.fulfil_found(now, vlan, out);
            }
            (Message::DhcpRelay(m), Some(true)) => {
                if let Some(switch) = self.admit(now, from, out) {
                    let place = Place { switch, port };
                    self.all
                        .with(vlan, out, |fwd, own, out| own.serve(fwd, now, place, &m.frame, out));
                }
            }
            _ => {}
        }
        true
    }

    /// Handles phase II of Axon-ARP, which is an untagged host's request for a route. See
    /// `requests.rs`.
    pub fn arp_request(&mut self, now: Time, from: Incarnation, m: ArpRequest, out: &mut Effects) {
        self.request(now, from, (VlanId::NONE, Message::ArpRequest(m)), out);
    }

    /// Handles an untagged host's DHCP or DHCPv6 frame. The reply leaves by the port of that host.
    pub fn dhcp_relay(&mut self, now: Time, from: Incarnation, m: HostFrame, out: &mut Effects) {
        self.request(now, from, (VlanId::NONE, Message::DhcpRelay(m)), out);
    }

    /// Handles a request for a route, but not other requests that wait for its source address.
    fn route(
        &mut self,
        now: Time,
        from: Incarnation,
        (vlan, m): (VlanId, ArpRequest),
        out: &mut Effects,
    ) {
        let Some(switch) = self.admit(now, from, out) else { return };
        let by = (from, Place { switch, port: m.port });
        let has_routes = self.all.with(vlan, out, |fwd, own, out| {
            let parts = (fwd, own.presence.addresses_mut());
            own.requests.request(parts, now, by, m, out)
        });
        if has_routes == Some(true) {
            self.upkeep.rounds.plan(now, &self.all.shared.decisions);
        }
    }

    /// Fulfils the requests that waited for addresses that were found.
    fn fulfil_found(&mut self, now: Time, vlan: VlanId, out: &mut Effects) {
        let next = |all: &mut Vlans, out: &mut Effects| {
            all.with(vlan, out, |fwd, _, _| fwd.seeking.next_found(now, &fwd.net))?
        };
        while let Some((from, m)) = next(&mut self.all, out) {
            self.route(now, from, (vlan, m), out);
        }
    }

    /// Handles another switch's query for a local host. `reverse` leads to that switch. Returns the
    /// message for the edge, or `None` if the request is refused.
    pub fn target_asked(
        &mut self,
        now: Time,
        (from, reverse): (Incarnation, Hops),
        m: ArpTarget,
        out: &mut Effects,
    ) -> Option<ArpTarget> {
        let switch = self.admit(now, from, out)?;
        let by = (from, Place { switch, port: m.source_port }, reverse);
        self.all.with(VlanId::NONE, out, |fwd, own, out| {
            let parts = (fwd, own.presence.addresses_mut());
            own.requests.target_asked(parts, now, by, m, out)
        })?
    }

    /// Handles the answer from another switch to this switch's query for a host. Returns the
    /// message for the edge, or `None` if the host is not there.
    pub fn target_found(
        &mut self,
        now: Time,
        from: Incarnation,
        m: ArpReply,
        out: &mut Effects,
    ) -> Option<ArpReply> {
        let switch = self.admit(now, from, out)?;
        self.all.with(VlanId::NONE, out, |fwd, own, out| {
            own.requests.target_found(fwd, now, switch, m, out)
        })?
    }

    /// Handles a host query that was refused because of too many unacknowledged commands.
    pub fn query_refused(&mut self, now: Time, to: NodeId, out: &mut Effects) {
        let Shared { fabric, bounds, .. } = &mut self.all.shared;
        if let Some(switch) = fabric.graph().index_of(to) {
            of_fabric(out, |out| bounds.refuse(now, fabric, (switch, None), out));
        }
    }

    /// Schedules a list again after part of it was refused, like [`Controller::query_refused`].
    pub fn list_refused(
        &mut self,
        now: Time,
        (vlan, to): (VlanId, NodeId),
        list: (PortNo, MacAddr, IpAddr),
    ) {
        self.all.with(vlan, &mut Vec::new(), |fwd, own, _| {
            own.presence.groups_mut().list_refused(&fwd.net, now, to, list);
        });
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
