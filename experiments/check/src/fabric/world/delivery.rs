//! Delivery of messages. It stands in for the nodes' own code
//! (`crates/switch/src/{switch,controller}.rs`) between messages and the edge or the controller.

use super::{Fault, World};
use crate::fabric::packet::Packet;
use crate::fabric::switch::Switch;
use crate::fabric::violation::Wrong;
use crate::fabric::wiring::{self, ip, mac};
use axon_controller::{Effect as ControllerEffect, Effects};
use axon_edge::Effect;
use axon_edge::Outcome;
use axon_wire::host_frame::{self, ArpOperation, Kind};
use axon_wire::message::{ArpReply, Item, LinkDown, LinkEnd, Message};
use axon_wire::vlan::VlanId;
use axon_wire::{Incarnation, MacAddr, NodeId, PortNo};
use std::collections::VecDeque;

/// Maximum number of switches that forward a notification about a link.
const NEWS_HOPS: u8 = 255;

impl World {
    /// Delivers a packet.
    pub(crate) fn arrive(&mut self, packet: Packet) {
        match packet {
            Packet::Host { at, frame } => self.frame(at, &frame),
            Packet::Carrier { at } => self.lose_link(at),
            Packet::News { at } => self.hello(wiring::place_of(at)),
            Packet::Up { from, to, message } => {
                if self.opens(to, self.head.running()) {
                    self.message_to_controller(from, message);
                }
            }
            Packet::Routed { at, from, to, message, .. } => {
                let switch = wiring::place_of(at);
                if self.opens(to, self.switches[switch].incarnation) {
                    self.message_to_switch(switch, from, message);
                }
            }
            Packet::Link { to, seal, message, .. } => {
                let switch = wiring::place_of(to.node);
                let Message::LinkDown(news) = message else { return };
                let is_lost = self.switches[switch].lost.contains(&to.port);
                if self.opens(seal, self.switches[switch].incarnation) && !is_lost {
                    self.link_down(switch, to.port, news);
                }
            }
        }
    }

    /// Forwards a host's frame by its route, or hands it to the edge if it has no route.
    fn frame(&mut self, at: LinkEnd, frame: &[u8]) {
        let switch = wiring::place_of(at.node);
        let to = frame.first_chunk().map_or(MacAddr::BROADCAST, |mac| MacAddr(*mac));
        let routes = &self.switches[switch].device.routes;
        let mut route = routes.get(&(at.port, to)).cloned();
        if route.is_none() {
            self.at_switch(switch, |edge, now, device, out| {
                let fate = edge.untagged(now, device, out).host_frame(at.port, frame);
                // A frame that has to wait, or is dropped, is outside the model.
                if let Ok(Outcome::Forward(by)) = fate {
                    route = Some(by);
                }
            });
        }
        if let Some(there) = route.and_then(|route| self.links.arrives(at.node, &route)) {
            self.host_receives(there, frame);
        }
    }

    /// Returns whether a node opens a message that is sealed for a given incarnation.
    fn opens(&self, sealed_for: Incarnation, is: Incarnation) -> bool {
        sealed_for == is || (self.fault == Fault::OpensAll && sealed_for.node == is.node)
    }

    /// Sends a message by a route that starts at a switch, unless the route crosses a failed link.
    fn send(&mut self, at: NodeId, hops: &[PortNo], by: (Incarnation, Incarnation, Message)) {
        let (mut at, mut over) = (at, Vec::new());
        let (from, to, message) = by;
        for &port in hops {
            if port == PortNo::CONTROL {
                return self.flight.push(Packet::Routed { at, over, from, to, message });
            }
            let Some((link, there)) = self.links.working(LinkEnd { node: at, port }) else {
                return;
            };
            over.push(link);
            at = there.node;
        }
    }

    /// Signals to a switch that a link has lost its carrier.
    fn lose_link(&mut self, at: LinkEnd) {
        let switch = wiring::place_of(at.node);
        let Some((_, far)) = self.wiring().link(at) else { return };
        self.switches[switch].lost.insert(at.port);
        if self.fault == Fault::SilentLinks {
            return;
        }
        let ends = [at, far];
        self.link_down(switch, at.port, LinkDown { ends, hops_left: NEWS_HOPS });
        self.at_switch(switch, |edge, now, device, out| {
            edge.untagged(now, device, out).fail_over(ends)
        });
        let this = &self.switches[switch];
        let waits = this.trial == Some(self.head.running()) && this.controller != this.trial;
        if self.fault != Fault::KeepsNews || !waits {
            self.hello(switch);
        }
    }

    /// Processes a report that a link is down. The report comes from a neighbour or from the switch
    /// itself.
    fn link_down(&mut self, switch: usize, ingress: PortNo, news: LinkDown) {
        if !self.switches[switch].edge.link_down(self.now, news.ends) {
            return;
        }
        if let Some(hops_left) = news.hops_left.checked_sub(1) {
            let message = Message::LinkDown(LinkDown { hops_left, ..news });
            for port in (0..wiring::PORTS).map(PortNo).filter(|&port| port != ingress) {
                let at = LinkEnd { node: wiring::node_id(switch), port };
                let is_lost = self.switches[switch].lost.contains(&port);
                let link = self.links.working(at).filter(|_| !is_lost);
                let Some((over, to)) = link else { continue };
                let seal = self.switches[wiring::place_of(to.node)].incarnation;
                self.flight.push(Packet::Link { to, over, seal, message: message.clone() });
            }
        }
        let ends = news.ends;
        self.at_switch(switch, |edge, now, device, out| {
            edge.untagged(now, device, out).fail_over(ends)
        });
    }

    fn message_to_switch(&mut self, switch: usize, from: Incarnation, message: Message) {
        let this = &self.switches[switch];
        let ours = this.controller == Some(from) || self.fault == Fault::OpensAll;
        match message {
            Message::ControllerHelloAck(ack)
                if this.trial == Some(from) && this.version == ack.version =>
            {
                self.acknowledged(switch, from);
            }
            Message::ArpReply(reply) => self.reply(switch, reply),
            Message::ArpTarget(target) if ours => {
                self.at_switch(switch, |edge, now, device, out| {
                    edge.untagged(now, device, out).arp_target(target);
                });
            }
            Message::Seek(seek) if ours => {
                self.at_switch(switch, |edge, now, device, out| {
                    edge.untagged(now, device, out).seek(seek)
                });
            }
            _ => {}
        }
    }

    /// Processes the reply from a target switch, which is a decision of the controller.
    fn reply(&mut self, switch: usize, mut reply: ArpReply) {
        let this = &self.switches[switch];
        let epoch = this.controller.map(|controller| controller.number);
        if epoch != Some(reply.stamp.epoch) && self.fault != Fault::OpensAll {
            return;
        }
        let (key, stamp) = ((reply.source_port, reply.target_mac), reply.stamp);
        let newest = this.newest.get(&key).cloned();
        if let Some((known, _)) = newest.as_ref().filter(|_| self.fault == Fault::TakesOlder) {
            reply.stamp.number = reply.stamp.number.max(known.number + 1);
        }
        let used = this.edge.counters().backups_used;
        self.at_switch(switch, |edge, now, device, out| {
            edge.untagged(now, device, out).arp_reply(reply)
        });
        let this = &self.switches[switch];
        let took_backup = this.edge.counters().backups_used > used;
        let is_older = newest.as_ref().is_some_and(|(known, _)| stamp < *known);
        if is_older && !took_backup && this.newest.get(&key) != newest.as_ref() {
            self.wrong.get_or_insert(Wrong::Order);
        }
    }

    /// Processes the controller's answer. A new controller gets a new stream.
    fn acknowledged(&mut self, switch: usize, from: Incarnation) {
        let this = &mut self.switches[switch];
        if this.controller == Some(from) {
            return;
        }
        this.controller = Some(from);
        this.reports.clear();
        self.at_switch(switch, |edge, now, device, out| {
            edge.controller_changed(now, Some(from), device, out);
        });
    }

    fn message_to_controller(&mut self, from: Incarnation, message: Message) {
        if let Message::ControllerHello(hello) = message {
            let known = self.head.known(from.node);
            if known.is_some_and(|known| known.number > from.number) {
                return;
            }
            if known != Some(from) {
                self.head.meet(from);
            }
            let Some(reverse) = self.links.way_to(from.node) else { return };
            self.at_controller(|controller, now, out| {
                controller.controller_hello(now, from, reverse, hello, out);
            });
            return;
        }
        if self.head.known(from.node) != Some(from) && self.fault != Fault::OpensAll {
            return;
        }
        if let Message::ArpRequest(request) = message {
            self.at_controller(|controller, now, out| {
                controller.arp_request(now, from, request, out);
            });
        }
    }

    /// Carries out the effects of an edge.
    pub(super) fn carry_out(&mut self, switch: usize, out: Vec<Effect>) {
        let mut ahead = VecDeque::from(out);
        while let Some(effect) = ahead.pop_front() {
            let now = self.now;
            let Switch { incarnation, edge, device, controller, reports, .. } =
                &mut *self.switches[switch];
            let (from, node) = (*incarnation, incarnation.node);
            match effect {
                Effect::Route { ticket, change } => {
                    let answer = device.change(ticket, change);
                    let mut more = Vec::new();
                    edge.route_changed(now, answer, device, &mut more);
                    more.into_iter().rev().for_each(|effect| ahead.push_front(effect));
                }
                Effect::Routed { to, message, .. } if to == from => {
                    self.message_to_switch(switch, from, message);
                }
                Effect::Routed { hops, to, message } => {
                    self.send(node, &hops.0, (from, to, message));
                }
                Effect::ToController(message) => {
                    if let Some(to) = *controller {
                        self.flight.push(Packet::Up { from, to, message });
                    }
                }
                Effect::Report(item) if controller.is_some() => reports.push_back(item),
                Effect::Host { port, frame } => self.host_receives(LinkEnd { node, port }, &frame),
                _ => {}
            }
        }
    }

    /// Executes the effects of the controller.
    pub(super) fn carry_out_of_controller(&mut self, out: Effects) {
        for (_, effect) in out {
            match effect {
                ControllerEffect::Routed { hops, to, message } => {
                    let (at, from) = (wiring::node_id(0), self.head.running());
                    self.send(at, hops.0.get(1..).unwrap_or_default(), (from, to, message));
                }
                ControllerEffect::Command { to, item } => self.head.push(to, item),
                ControllerEffect::Store(change) => self.head.store(change),
                _ => {}
            }
        }
    }

    /// Delivers a frame to a host. The host answers an ARP request for its address, and replies are
    /// checked.
    fn host_receives(&mut self, at: LinkEnd, frame: &[u8]) {
        let Some(host) = self.wiring().host_of(at) else { return };
        let Kind::Arp(arp) = host_frame::classify(frame) else { return };
        if arp.operation == ArpOperation::Request {
            if arp.target_ip == ip(host) {
                let (to, to_ip) = (arp.sender_mac, arp.sender_ip);
                let frame = host_frame::reply(mac(host), ip(host), to, to_ip);
                self.flight.push(Packet::Host { at, frame });
            }
            return;
        }
        let is_other = arp.sender_ip == ip(1 - host);
        if is_other && arp.sender_mac != mac(1 - host) {
            self.wrong.get_or_insert(Wrong::Answer);
        }
    }

    /// Returns whether a switch has a report to deliver.
    pub(crate) fn has_report(&self, switch: usize) -> bool {
        let this = &self.switches[switch];
        !this.reports.is_empty()
            && this.controller == Some(self.head.running())
            && self.head.known(this.incarnation.node) == Some(this.incarnation)
    }

    /// Delivers the next report of a switch.
    pub(crate) fn report(&mut self, switch: usize) {
        let this = &mut self.switches[switch];
        let from = this.incarnation;
        if let Some(item) = this.reports.pop_front() {
            self.at_controller(|controller, now, out| {
                controller.item(now, from, (VlanId::NONE, item), out)
            });
        }
    }

    /// Returns whether a switch has a command to receive.
    pub(crate) fn has_command(&self, switch: usize) -> bool {
        let this = &self.switches[switch];
        this.controller == Some(self.head.running()) && self.head.has_command(this.incarnation)
    }

    /// Delivers the next command to a switch.
    pub(crate) fn command(&mut self, switch: usize) {
        let Some(item) = self.head.pop(wiring::node_id(switch)) else { return };
        if let Item::RemoveRoute { port, destination, stamp, .. } = item {
            let newest = &mut self.switches[switch].newest;
            let known = newest.get(&(port, destination)).map(|(known, _)| *known);
            if known < Some(stamp) {
                newest.insert((port, destination), (stamp, None));
            }
        }
        self.at_switch(switch, |edge, now, device, out| edge.untagged(now, device, out).item(item));
    }
}
