//! Two edges and a controller, joined without loss or delay, and stations that send them frames.

use crate::client::{SERVER, SERVER_MAC};
use crate::kept::{Kept, keep};
use axon_controller::Controller;
use axon_controller::config::*;
use axon_controller::hosts::Place;
use axon_controller::policy::Policy;
use axon_controller::router::RouterKind;
use axon_controller::topology::SwitchIndex;
use axon_controller::{Effect as Command, Effects};
use axon_edge::config::*;
use axon_edge::{Edges, Effect};
use axon_link::config::*;
use axon_node::{Capabilities, FeatureSet, PortKind, PortView, RouteAnswer, Stored};
use axon_wire::message::{ControllerHello, Message};
use axon_wire::vlan::VlanId;
use axon_wire::{HopWidth, Hops, Incarnation, MacAddr, NodeId, PortNo, Rate, Span, Time};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// Ports of each edge.
pub const PORTS: u16 = 4;
/// The controller.
const CONTROLLER: NodeId = NodeId(99);

/// A station's port: the edge, 0 or 1, and the port.
pub type At = (usize, u16);

struct Ports([PortKind; PORTS as usize]);

impl PortView for Ports {
    fn count(&self) -> u16 {
        PORTS
    }

    fn kind(&self, port: PortNo) -> Option<PortKind> {
        self.0.get(port.index()).copied()
    }

    fn is_up(&self, port: PortNo) -> bool {
        self.is_host(port)
    }
}

fn node(incarnation: Incarnation) -> NodeConfig {
    NodeConfig {
        incarnation,
        mac: MacAddr([2, 0xee, 0, 0, 0, incarnation.node.0 as u8]),
        keys: [0; 32].into(),
        seed: 1,
        timers: Timers::default(),
        server: ServerIdentity { mac: SERVER_MAC, ip: SERVER },
    }
}

fn incarnation(edge: usize) -> Incarnation {
    Incarnation { node: NodeId(edge as u64 + 1), number: 1 }
}

/// The place of a port as the controller has it.
pub fn place((edge, port): At) -> Place {
    Place { switch: SwitchIndex(edge as u32), port: PortNo(port) }
}

/// The controller, the edges, and what they have sent to stations.
pub struct Net {
    pub now: Time,
    pub controller: Controller,
    config: ControllerConfig,
    /// Store of the controller, for its next incarnation.
    pub store: Kept,
    edges: Vec<(Edges, Ports)>,
    /// Edges that have found this incarnation of the controller; it receives only from these.
    found: [bool; 2],
    ahead: VecDeque<Sent>,
    /// Frames that the edges have sent to their host ports, oldest first.
    pub received: VecDeque<(At, Vec<u8>)>,
}

/// Effect of an edge, by its number, or of the controller.
enum Sent {
    Edge(usize, Effect),
    Controller(Command),
}

impl Net {
    /// A fabric of 64 hosts per port, with this address service.
    pub fn new(dhcp: DhcpConfig) -> Net {
        let config = ControllerConfig {
            node: node(Incarnation { node: CONTROLLER, number: 0 }),
            dhcp,
            router: RouterKind::default(),
            layers: 1,
            policy: Policy::default(),
            by_source: Default::default(),
            backups: true,
            dhcpv6: None,
            uplinks: Vec::new(),
            vlans: Default::default(),
            bonds: Vec::new(),
        };
        let has = Capabilities {
            name: "test",
            ports: PORTS,
            hop_width: HopWidth::Eight,
            frame_bytes_max: 1514,
            route_bytes_max: 128,
            routes_per_port_max: 64,
            masqueraded_per_port_max: 0,
            port_rate_max: Rate::FASTEST,
            queues_per_port: 1,
            lossless_classes: 0,
            features: FeatureSet::EMPTY,
        };
        let edge = |number| {
            let node = node(incarnation(number));
            let config = EdgeConfig {
                node,
                waiting_bytes_max: 65536,
                hosts_per_port_max: 64,
                host_control: ByteLimit::default(),
                groups: GroupConfig { multicast: false, ..GroupConfig::default() },
                ports: Vec::new(),
                services: Default::default(),
                vlans: Vec::new(),
            };
            (Edges::new(&config, &has), Ports([PortKind::Host; PORTS as usize]))
        };
        let mut net = Net {
            now: Time::from_nanos(1_000_000_000),
            controller: Controller::new(&config, 100),
            config,
            store: Kept::new(),
            edges: vec![edge(0), edge(1)],
            found: [false; 2],
            ahead: VecDeque::new(),
            received: VecDeque::new(),
        };
        net.restart();
        (0..2).for_each(|number| net.find(number));
        net
    }

    /// The controller is killed, what it was about to send is lost, and its next incarnation starts
    /// with what is in the store. Both edges find it.
    pub fn restart(&mut self) {
        self.ahead.retain(|sent| matches!(sent, Sent::Edge(..)));
        self.config.node.incarnation.number += 1;
        self.found = [false; 2];
        self.controller = Controller::new(&self.config, 100);
        let stored: Vec<Stored> = self.store.values().cloned().collect();
        self.control(|controller, now, out| controller.restore(now, &stored, out));
    }

    /// An edge finds the controller.
    pub fn find(&mut self, number: usize) {
        let hello = ControllerHello { version: 1, nonce: 0, ports: Vec::new() };
        let reverse = Hops::from([0, PortNo::CONTROL.0]);
        self.control(|controller, now, out| {
            controller.controller_hello(now, incarnation(number), reverse, hello, out);
        });
        self.found[number] = true;
        let found = Some(self.config.node.incarnation);
        self.edge(number, |edge, now, ports, out| {
            edge.controller_changed(now, found, ports, out);
        });
        self.carry_out();
    }

    /// As [`Net::send`], but the controller is killed after so many of the messages that follow.
    pub fn send_and_kill(&mut self, (edge, port): At, frame: &[u8], messages: usize) {
        self.edge(edge, |edge, now, ports, out| {
            edge.untagged(now, ports, out).host_frame(PortNo(port), frame).ok();
        });
        for _ in 0..messages {
            self.carry_out_one();
        }
        self.restart();
        self.carry_out();
    }

    fn edge(
        &mut self,
        number: usize,
        call: impl FnOnce(&mut Edges, Time, &Ports, &mut Vec<Effect>),
    ) {
        let mut out = Vec::new();
        let (edge, ports) = &mut self.edges[number];
        call(edge, self.now, ports, &mut out);
        self.ahead.extend(out.into_iter().map(|effect| Sent::Edge(number, effect)));
    }

    fn control(&mut self, call: impl FnOnce(&mut Controller, Time, &mut Effects)) {
        let mut out = Vec::new();
        call(&mut self.controller, self.now, &mut out);
        self.controller.keep(&mut out);
        let mut out = out.into_iter().map(|(_, effect)| effect).collect::<Vec<_>>();
        keep(&mut self.store, &mut out);
        self.ahead.extend(out.into_iter().map(Sent::Controller));
    }

    /// A station sends a frame.
    pub fn send(&mut self, (edge, port): At, frame: &[u8]) {
        self.edge(edge, |edge, now, ports, out| {
            edge.untagged(now, ports, out).host_frame(PortNo(port), frame).ok();
        });
        self.carry_out();
    }

    /// A port loses its carrier, or has it again.
    pub fn carrier(&mut self, (edge, port): At, up: bool) {
        let kind = if up { PortKind::Host } else { PortKind::Unknown };
        self.edges[edge].1.0[usize::from(port)] = kind;
        self.edge(edge, |edge, now, ports, out| {
            edge.untagged(now, ports, out).port_changed(PortNo(port))
        });
        self.carry_out();
    }

    /// The next time at which a node has something to do.
    pub fn deadline(&self) -> Option<Time> {
        let edges = self.edges.iter().filter_map(|(edge, _)| edge.deadline());
        edges.chain(self.controller.deadline()).min()
    }

    /// Goes on to a time that is not past the next deadline.
    pub fn go_on_to(&mut self, time: Time) {
        self.now = self.now.max(time);
        for number in 0..2 {
            self.edge(number, |edge, now, ports, out| edge.timeout(now, ports, out));
        }
        self.control(|controller, now, out| controller.timeout(now, out));
        self.carry_out();
    }

    fn carry_out(&mut self) {
        while self.carry_out_one() {}
    }

    /// Carries out one effect; says whether there was one.
    fn carry_out_one(&mut self) -> bool {
        match self.ahead.pop_front() {
            Some(Sent::Edge(from, effect)) => self.carry_out_of_edge(from, effect),
            Some(Sent::Controller(effect)) => self.carry_out_of_controller(effect),
            None => return false,
        }
        true
    }

    fn carry_out_of_edge(&mut self, edge: usize, effect: Effect) {
        let (from, is_found) = (incarnation(edge), self.found[edge]);
        match effect {
            Effect::ToController(_) | Effect::Report(_) if !is_found => {}
            Effect::ToController(Message::DhcpRelay(relay)) => {
                self.control(|controller, now, out| controller.dhcp_relay(now, from, relay, out));
            }
            Effect::ToController(Message::ArpRequest(request)) => {
                self.control(|c, now, out| c.arp_request(now, from, request, out));
            }
            Effect::Report(item) => {
                self.control(|controller, now, out| {
                    controller.item(now, from, (VlanId::NONE, item), out)
                });
            }
            Effect::Host { port, frame } => self.received.push_back(((edge, port.0), frame)),
            Effect::Route { ticket, .. } => {
                let answer = RouteAnswer { ticket, result: Ok(()) };
                self.edge(edge, |edge, now, ports, out| {
                    edge.route_changed(now, answer, ports, out);
                });
            }
            _ => {}
        }
    }

    fn carry_out_of_controller(&mut self, effect: Command) {
        match effect {
            Command::Command { to, item } => {
                self.edge(to.0 as usize - 1, |edge, now, ports, out| {
                    edge.untagged(now, ports, out).item(item);
                });
            }
            Command::Routed { to, message: Message::HostFrame(m), .. } => {
                self.edge(to.node.0 as usize - 1, |edge, now, ports, out| {
                    edge.untagged(now, ports, out).host_frame_out(m);
                });
            }
            _ => {}
        }
    }

    /// The host that the controller finds at an address, and where.
    pub fn owner(&self, ip: Ipv4Addr) -> Option<(MacAddr, Place)> {
        let hosts = self.controller.hosts();
        let host = hosts.get(hosts.by_ip(ip.into())?)?;
        Some((host.mac, host.place()))
    }

    /// The addresses that are leased or in use, and whose they are.
    pub fn held(&self) -> BTreeMap<Ipv4Addr, MacAddr> {
        use axon_controller::dhcp::LeaseState::{Bound, InUse};
        let leases = self.controller.dhcp().leases();
        let held = leases.filter(|(_, lease)| matches!(lease.state, Bound | InUse));
        held.map(|(ip, lease)| (ip, lease.holder.mac)).collect()
    }
}

/// An address service with these addresses, leases of ten minutes, and so many for one port.
pub fn dhcp(pool: (Ipv4Addr, Ipv4Addr), leases_per_port_max: usize) -> DhcpConfig {
    DhcpConfig {
        prefix_len: 24,
        pool_first: pool.0,
        pool_last: pool.1,
        lease: Span::from_secs(600),
        leases_per_port_max,
        reservations: BTreeMap::new(),
        router: None,
        dns: Vec::new(),
        domain: None,
        mtu: None,
        clients: BTreeMap::new(),
        relay: None,
    }
}
