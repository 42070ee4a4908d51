//! Switches, hosts and a controller, with all events in the model.

use super::device::Device;
use super::packet::Packet;
use super::switch::{Switch, node_config};
use super::violation::Wrong;
use super::wiring::{self, CONTROLLER, CONTROLLER_NODE, Wiring, ip, mac};
use crate::flight::Flight;
use crate::part::Part;
use crate::print::{self, Print};
use axon_controller::Controller;
use axon_controller::Effects;
use axon_controller::config::{ControllerConfig, DhcpConfig};
use axon_controller::policy::Policy;
use axon_controller::router::RouterKind;
use axon_edge::Edges;
use axon_edge::Effect;
use axon_link::config::NodeConfig;
use axon_node::Stored;
use axon_wire::host_frame;
use axon_wire::message::{ControllerHello, Item, LinkEnd, Message, Peer, PortState, Role};
use axon_wire::{Incarnation, MacAddr, NodeId, PortNo, Span, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Maximum length of a route, in hops.
const HOPS_MAX: usize = 122;

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

/// Commands from the controller to one incarnation of a switch.
#[derive(Clone, Debug)]
pub(super) struct Commands {
    pub(super) to: Incarnation,
    pub(super) items: VecDeque<Item>,
}

/// Fabric in the model.
#[derive(Clone)]
pub(super) struct World {
    pub(super) now: Time,
    pub(super) wiring: Arc<Wiring>,
    pub(super) fault: Fault,
    /// Links that have failed.
    pub(super) cut: BTreeSet<usize>,
    pub(super) switches: Vec<Part<Switch>>,
    pub(super) controller: Part<Controller>,
    pub(super) running: Incarnation,
    pub(super) stored: Part<Vec<Stored>>,
    /// Switches that the controller knows, with its commands for them.
    pub(super) commands: Part<BTreeMap<NodeId, Commands>>,
    pub(super) flight: Flight<Packet>,
    /// Violation by the last step, if any.
    pub(super) wrong: Option<Wrong>,
}

impl World {
    /// Returns the fingerprint of all state on which the future depends.
    pub(super) fn print(&self) -> u128 {
        let World { now, cut, switches, controller, running, stored, commands, wrong, .. } = self;
        let rest = Print::new(&(now, cut, running, wrong));
        let mut parts = vec![&rest, controller.print(), stored.print(), commands.print()];
        parts.extend(switches.iter().map(Part::print));
        parts.extend(self.flight.prints());
        print::whole(&parts)
    }
}

pub(super) fn controller_config(number: u64) -> ControllerConfig {
    let incarnation = Incarnation { node: CONTROLLER_NODE, number };
    ControllerConfig {
        node: NodeConfig { seed: 1, ..node_config(incarnation) },
        dhcp: DhcpConfig {
            prefix_len: 24,
            pool_first: Ipv4Addr::new(10, 0, 0, 100),
            pool_last: Ipv4Addr::new(10, 0, 0, 100),
            lease: Span::from_secs(3600),
            leases_per_port_max: 2,
            reservations: BTreeMap::new(),
            router: None,
            dns: Vec::new(),
            domain: None,
            mtu: None,
            clients: BTreeMap::new(),
            relay: None,
        },
        router: RouterKind::default(),
        layers: 1,
        policy: Policy::default(),
        by_source: Default::default(),
        backups: true,
        dhcpv6: None,
        uplinks: Vec::new(),
        vlans: Default::default(),
        bonds: Vec::new(),
    }
}

impl World {
    /// Creates a fabric in which each switch knows its ports, the controller has just started, and
    /// each host has announced its address.
    pub(super) fn new(switches: usize, fault: Fault) -> World {
        let wiring = Arc::new(Wiring::new(switches));
        let config = controller_config(1);
        let mut controller = Controller::new(&config, HOPS_MAX);
        controller.attached(PortNo(0), Some((wiring::node_id(0), CONTROLLER)));
        let mut world = World {
            now: Time::ZERO,
            switches: (0..switches)
                .map(|switch| Part::new(Switch::first(&wiring, switch)))
                .collect(),
            wiring,
            fault,
            cut: BTreeSet::new(),
            controller: Part::new(controller),
            running: config.node.incarnation,
            stored: Part::new(Vec::new()),
            commands: Part::new(BTreeMap::new()),
            flight: Flight::default(),
            wrong: None,
        };
        (0..switches).for_each(|switch| world.know_ports(switch));
        (0..switches).for_each(|switch| world.hello(switch));
        world.quiesce();
        for host in 0..world.wiring.hosts() {
            world.announce(host);
        }
        world.quiesce();
        world
    }

    /// Returns a switch, given its node ID.
    pub(super) fn switch(&self, node: NodeId) -> &Switch {
        &self.switches[wiring::place_of(node)]
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

    /// Announces a host's address, as a host does when it starts.
    pub(super) fn announce(&mut self, host: usize) {
        self.host_sends(host, host);
    }

    /// Sends an ARP request from a host for the other host.
    pub(super) fn ask(&mut self, host: usize) {
        self.host_sends(host, 1 - host);
    }

    fn host_sends(&mut self, host: usize, wanted: usize) {
        let frame = host_frame::request(mac(host), ip(host), MacAddr::BROADCAST, ip(wanted));
        let at = self.wiring.host_at(host);
        self.flight.push(Packet::Host { at, frame });
    }

    /// Sends the introduction of a switch to the controller, or its current ports.
    pub(super) fn hello(&mut self, switch: usize) {
        let node = wiring::node_id(switch);
        let to = self.running;
        let mut ports = Vec::new();
        for port in (0..super::wiring::PORTS).map(PortNo) {
            let at = LinkEnd { node, port };
            let is_lost = self.switches[switch].lost.contains(&port);
            let peer = match self.wiring.link(at) {
                _ if self.wiring.host_of(at).is_some() => Peer::Host,
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
        let mut out = Vec::new();
        if self.controller.deadline().is_some_and(|at| at <= self.now) {
            self.controller.timeout(self.now, &mut out);
        }
        call(&mut self.controller, self.now, &mut out);
        self.controller.keep(&mut out);
        self.carry_out_of_controller(out);
    }

    /// Returns the next deadline of any node.
    pub(super) fn deadline(&self) -> Option<Time> {
        let edges = self.switches.iter().filter_map(|switch| switch.edge.deadline());
        edges.chain(self.controller.deadline()).min()
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
        if self.controller.deadline().is_some_and(|at| at <= self.now) {
            self.at_controller(|_, _, _| ());
        }
    }

    /// Fails a link. Each end detects this at its own time.
    pub(super) fn fail(&mut self, link: usize) {
        if self.cut.insert(link) {
            for at in self.wiring.links[link] {
                self.flight.push(Packet::Carrier { at });
            }
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
        let config = controller_config(self.running.number + 1);
        self.controller = Part::new(Controller::new(&config, HOPS_MAX));
        self.running = config.node.incarnation;
        self.commands.clear();
        let stored = self.stored.clone();
        self.at_controller(|controller, now, out| {
            controller.attached(PortNo(0), Some((wiring::node_id(0), CONTROLLER)));
            controller.restore(now, &stored, out);
        });
        for switch in 0..self.switches.len() {
            self.flight.push(Packet::News { at: wiring::node_id(switch) });
        }
    }
}
