//! Switches, hosts and a controller, with all events in the model.

mod delivery;
mod moot;
pub(super) mod order;
pub(super) mod settle;
pub(super) mod wrong;

use super::device::Device;
use super::head::Head;
use super::links::Links;
use super::packet::Packet;
use super::switch::Switch;
use super::violation::Wrong;
use super::wiring::{self, Wiring, ip, mac};
use crate::flight::Flight;
use crate::part::Part;
use crate::print::{self, Print};
use axon_controller::{Controller, Effects};
use axon_edge::Edges;
use axon_edge::Effect;
use axon_wire::host_frame;
use axon_wire::message::{ControllerHello, LinkEnd, Message, Peer, PortState, Role};
use axon_wire::{MacAddr, PortNo, Time};
use std::collections::BTreeSet;

/// Fault planted in the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// No fault.
    #[default]
    None,
    /// An edge takes every answer for the newest decision, regardless of its stamp.
    TakesOlder,
    /// A node opens messages sealed for earlier incarnations, both its own and others.
    OpensAll,
    /// The edge gets no notifications about failed links, and the controller gets no port states.
    SilentLinks,
    /// A switch that waits for the answer from a new controller does not report links that it loses
    /// in the meantime.
    KeepsNews,
}

/// Fabric in the model.
#[derive(Clone)]
pub(super) struct World {
    now: Time,
    links: Links,
    fault: Fault,
    switches: Vec<Part<Switch>>,
    head: Head,
    flight: Flight<Packet>,
    /// Violation by the last step, if any.
    wrong: Option<Wrong>,
}

impl World {
    /// Returns the fingerprint of all state on which the future depends.
    pub(super) fn print(&self) -> u128 {
        let rest = Print::new(&(self.now, self.links.cut(), self.head.running(), self.wrong));
        let mut parts = vec![&rest];
        parts.extend(self.head.prints());
        parts.extend(self.switches.iter().map(Part::print));
        parts.extend(self.flight.prints());
        print::whole(&parts)
    }

    /// Creates a fabric in which each switch knows its ports, the controller has just started, and
    /// each host has announced its address.
    pub(super) fn new(switches: usize, fault: Fault) -> World {
        let wiring = Wiring::new(switches);
        let mut world = World {
            now: Time::ZERO,
            switches: (0..switches)
                .map(|switch| Part::new(Switch::first(&wiring, switch)))
                .collect(),
            links: Links::new(wiring),
            fault,
            head: Head::new(),
            flight: Flight::default(),
            wrong: None,
        };
        (0..switches).for_each(|switch| world.know_ports(switch));
        (0..switches).for_each(|switch| world.hello(switch));
        world.quiesce();
        for host in 0..world.wiring().hosts() {
            // A host announces its address when it starts.
            world.request(host, host);
        }
        world.quiesce();
        world
    }

    /// Returns the wiring.
    pub(super) fn wiring(&self) -> &Wiring {
        self.links.wiring()
    }

    /// Returns the links that have failed.
    pub(super) fn cut(&self) -> &BTreeSet<usize> {
        self.links.cut()
    }

    /// Returns the packets in flight.
    pub(super) fn flight(&self) -> &Flight<Packet> {
        &self.flight
    }

    /// Takes the packet in flight at this index.
    pub(super) fn take(&mut self, at: usize) -> Packet {
        self.flight.take(at)
    }

    /// Delivers everything in flight and on the streams, without time passing.
    pub(super) fn quiesce(&mut self) {
        while self.deliver_any() {}
    }

    /// Delivers the first packet that can be delivered. Returns `false` if there is none.
    pub(super) fn deliver_any(&mut self) -> bool {
        if !self.flight.is_empty() {
            let packet = self.flight.take(0);
            self.arrive(packet);
            return true;
        }
        let switches = 0..self.switches.len();
        if let Some(switch) = switches.clone().find(|&switch| self.has_report(switch)) {
            self.report(switch);
            return true;
        }
        if let Some(switch) = switches.into_iter().find(|&switch| self.has_command(switch)) {
            self.command(switch);
            return true;
        }
        false
    }

    /// Reports the port kinds to the edge of a switch.
    fn know_ports(&mut self, switch: usize) {
        let ports = self.switches[switch].device.host_ports();
        for port in ports {
            self.at_switch(switch, |edge, now, device, out| {
                edge.untagged(now, device, out).port_changed(port);
            });
        }
    }

    /// Sends an ARP request from a host for the address of a host.
    pub(super) fn request(&mut self, host: usize, wanted: usize) {
        let frame = host_frame::request(mac(host), ip(host), MacAddr::BROADCAST, ip(wanted));
        let at = self.wiring().host_at(host);
        self.flight.push(Packet::Host { at, frame });
    }

    /// Sends the introduction of a switch to the controller, or its current ports.
    pub(super) fn hello(&mut self, switch: usize) {
        let node = wiring::node_id(switch);
        let to = self.head.running();
        let mut ports = Vec::new();
        for port in (0..wiring::PORTS).map(PortNo) {
            let at = LinkEnd { node, port };
            let is_lost = self.switches[switch].lost.contains(&port);
            let peer = match self.wiring().link(at) {
                _ if self.wiring().host_of(at).is_some() => Peer::Host,
                Some((_, there)) if !is_lost => {
                    Peer::Axon { node: there.node, port: there.port, role: Role::Switch }
                }
                _ => continue,
            };
            ports.push(PortState { port, peer });
        }
        let this = &mut self.switches[switch];
        this.version += 1;
        this.trial = Some(to);
        let hello = ControllerHello { version: this.version, nonce: this.version, ports };
        let (from, message) = (this.incarnation, Message::ControllerHello(hello));
        self.flight.push(Packet::Up { from, to, message });
    }

    /// Calls the edge of a switch in the same way as its node, with due timers first, then the
    /// call, and then its effects.
    pub(super) fn at_switch(
        &mut self,
        switch: usize,
        call: impl FnOnce(&mut Edges, Time, &Device, &mut Vec<Effect>),
    ) {
        let mut out = Vec::new();
        let Switch { edge, device, .. } = &mut *self.switches[switch];
        let used = edge.counters().backups_used;
        if edge.deadline().is_some_and(|at| at <= self.now) {
            edge.timeout(self.now, device, &mut out);
        }
        call(edge, self.now, device, &mut out);
        self.carry_out(switch, out);
        self.look_at_order(switch, used);
    }

    /// Calls the controller in the same way as its node.
    pub(super) fn at_controller(&mut self, call: impl FnOnce(&mut Controller, Time, &mut Effects)) {
        let out = self.head.call(self.now, call);
        self.carry_out_of_controller(out);
    }

    /// Returns the next deadline of any node.
    pub(super) fn deadline(&self) -> Option<Time> {
        let edges = self.switches.iter().filter_map(|switch| switch.edge.deadline());
        edges.chain(self.head.controller().deadline()).min()
    }

    /// Advances time to the next deadline and processes due timers.
    pub(super) fn tick(&mut self) {
        let Some(next) = self.deadline() else { return };
        self.now = self.now.max(next);
        for switch in 0..self.switches.len() {
            let deadline = self.switches[switch].edge.deadline();
            if deadline.is_some_and(|at| at <= self.now) {
                self.at_switch(switch, |_, _, _, _| ());
            }
        }
        if self.head.controller().deadline().is_some_and(|at| at <= self.now) {
            self.at_controller(|_, _, _| ());
        }
    }

    /// Fails a link. Each end detects this at its own time.
    pub(super) fn fail(&mut self, link: usize) {
        for at in self.links.fail(link).into_iter().flatten() {
            self.flight.push(Packet::Carrier { at });
        }
    }

    /// Restarts a switch. Its data plane continues, or has lost its tables.
    pub(super) fn restart_switch(&mut self, switch: usize, cold: bool) {
        let before = &self.switches[switch];
        let mut device = before.device.clone();
        if cold {
            device.routes.clear();
        }
        let mut after = Switch::new(switch, before.incarnation.number + 1, device);
        after.lost = before.lost.clone();
        self.switches[switch] = Part::new(after);
        self.know_ports(switch);
        self.flight.push(Packet::News { at: wiring::node_id(switch) });
    }

    /// Restarts the controller with its stored state.
    pub(super) fn restart_controller(&mut self) {
        let stored = self.head.restart();
        self.at_controller(|controller, now, out| {
            controller.attached(PortNo(0), Some((wiring::node_id(0), wiring::CONTROLLER)));
            controller.restore(now, &stored, out);
        });
        for switch in 0..self.switches.len() {
            self.flight.push(Packet::News { at: wiring::node_id(switch) });
        }
    }
}
