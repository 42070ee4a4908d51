//! Route set-ups per second of one controller on one core (issue bar: 100,000; thesis 000
//! reports 2,600), and what a link failure costs.
//!
//! 25 x 40 torus of switches, ten hosts on each, pairs drawn at random without repetition. A set-up
//! is an answered Axon-ARP request: both routes are chosen, registered by link and written into a
//! message. Prints a table without a verdict; times are wall-clock times.

use axon_controller::Controller;
use axon_controller::Effects;
use axon_controller::config::{ControllerConfig, DhcpConfig};
use axon_controller::policy::Policy;
use axon_controller::router::RouterKind;
use axon_link::config::{NodeConfig, ServerIdentity, Timers};
use axon_link::seal::Sealer;
use axon_node::{Action, Input, Node};
use axon_plane::{Plane, PlaneConfig, PuntLimit};
use axon_switch::ControllerNode;
use axon_wire::header::{self, HopWidth, PacketType};
use axon_wire::message::{
    ArpRequest, ControllerHello, Hello, HelloConfirm, Item, Message, Peer, PortState, Role,
    Segment, Target,
};
use axon_wire::vlan::VlanId;
use axon_wire::{FrameBuf, Hops, Incarnation, MacAddr, NodeId, PortNo, Span, Time, link};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Instant;

const ROWS: u64 = 25;
const COLUMNS: u64 = 40;
const SWITCHES: u64 = ROWS * COLUMNS;
const HOSTS_PER_SWITCH: u64 = 10;
const HOSTS: u64 = SWITCHES * HOSTS_PER_SWITCH;
/// First host port, after the four of the torus and the controller's.
const FIRST_HOST_PORT: u64 = 5;

fn incarnation(switch: u64) -> Incarnation {
    Incarnation { node: NodeId(switch + 1), number: 1 }
}

fn mac(host: u64) -> MacAddr {
    let [.., a, b, c, d] = host.to_be_bytes();
    MacAddr([2, 0, a, b, c, d])
}

/// Longest route, in hops.
const HOPS_MAX: usize = 122;

fn ip(host: u64) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from(0x0a00_0001 + host as u32))
}

fn host_port(host: u64) -> PortNo {
    PortNo((FIRST_HOST_PORT + host % HOSTS_PER_SWITCH) as u16)
}

/// Returns the neighbour's switch and port. Ports 0 to 3 lead east, west, south and north; east is
/// connected to west and south to north.
fn neighbour(switch: u64, port: u64) -> (u64, u64) {
    let (row, column) = (switch / COLUMNS, switch % COLUMNS);
    let (row, column) = match port {
        0 => (row, (column + 1) % COLUMNS),
        1 => (row, (column + COLUMNS - 1) % COLUMNS),
        2 => ((row + 1) % ROWS, column),
        _ => ((row + ROWS - 1) % ROWS, column),
    };
    (row * COLUMNS + column, port ^ 1)
}

fn hello(
    controller: &mut Controller,
    switch: u64,
    version: u64,
    down: Option<u64>,
    out: &mut Effects,
) {
    let message = ports_of(switch, version, down);
    controller.controller_hello(Time::ZERO, incarnation(switch), Hops::to_control(), message, out);
}

fn ports_of(switch: u64, version: u64, down: Option<u64>) -> ControllerHello {
    let mut ports = Vec::new();
    for port in (0..4).filter(|&port| Some(port) != down) {
        let (node, there) = neighbour(switch, port);
        let peer = Peer::Axon {
            node: incarnation(node).node,
            port: PortNo(there as u16),
            role: Role::Switch,
        };
        ports.push(PortState { port: PortNo(port as u16), peer });
    }
    ControllerHello { version, nonce: 0, ports }
}

fn config(router: RouterKind) -> ControllerConfig {
    let server =
        ServerIdentity { mac: MacAddr([2, 255, 0, 0, 0, 1]), ip: Ipv4Addr::new(10, 255, 0, 1) };
    ControllerConfig {
        node: NodeConfig {
            incarnation: Incarnation { node: NodeId(u64::MAX), number: 1 },
            mac: server.mac,
            keys: [0; 32].into(),
            seed: 1,
            timers: Timers::default(),
            server,
        },
        dhcp: DhcpConfig {
            prefix_len: 8,
            pool_first: Ipv4Addr::new(10, 254, 0, 0),
            pool_last: Ipv4Addr::new(10, 254, 255, 255),
            lease: Span::from_secs(3600),
            leases_per_port_max: 64,
            reservations: BTreeMap::new(),
            router: None,
            dns: Vec::new(),
            domain: None,
            mtu: None,
            clients: BTreeMap::new(),
            relay: None,
        },
        router,
        layers: 2,
        policy: Policy::default(),
        by_source: Default::default(),
        backups: true,
        dhcpv6: None,
        uplinks: Vec::new(),
        vlans: Default::default(),
        bonds: Vec::new(),
    }
}

fn incarnation_of_controller() -> Incarnation {
    config(RouterKind::default()).node.incarnation
}

fn build(router: RouterKind) -> Controller {
    let mut out = Vec::new();
    let mut controller = Controller::new(&config(router), HOPS_MAX);
    let started = Instant::now();
    controller.attached(PortNo(0), Some((incarnation(0).node, PortNo(4))));
    for switch in 0..SWITCHES {
        hello(&mut controller, switch, 1, None, &mut out);
    }
    println!("{:<44}{:>12.1} ms", "1,000 Controller Hellos, 2,000 links", ms(started));
    let started = Instant::now();
    for host in 0..HOSTS {
        let item = Item::HostSeen { port: host_port(host), mac: mac(host), ips: vec![ip(host)] };
        controller.item(
            Time::ZERO,
            incarnation(host / HOSTS_PER_SWITCH),
            (VlanId::NONE, item),
            &mut out,
        );
    }
    println!("{:<44}{:>12.1} ms", "10,000 hosts reported", ms(started));
    controller
}

fn request(host: u64, target: u64) -> (Incarnation, ArpRequest) {
    let request = ArpRequest {
        id: 7,
        port: host_port(host),
        source_mac: mac(host),
        source_ip: Some(ip(host)),
        target: Target::Ip(ip(target)),
        hint: None,
    };
    (incarnation(host / HOSTS_PER_SWITCH), request)
}

fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

/// Returns the cycles per nanosecond of the time-stamp counter's nominal clock, as the kernel
/// reports it.
fn gigahertz() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("cpu MHz"))?;
    Some(line.split(':').nth(1)?.trim().parse::<f64>().ok()? / 1e3)
}

/// Distinct ordered pairs without repetition: host `i` requests a route to the host `k` strides on.
struct Pairs {
    state: u64,
    seen: std::collections::BTreeSet<(u64, u64)>,
}

impl Pairs {
    fn take(&mut self, count: usize) -> Vec<(u64, u64)> {
        let mut pairs = Vec::with_capacity(count);
        while pairs.len() < count {
            let mut draw = || {
                self.state ^= self.state << 13;
                self.state ^= self.state >> 7;
                self.state ^= self.state << 17;
                self.state % HOSTS
            };
            let (a, b) = (draw(), draw());
            if a != b && self.seen.insert((a.min(b), a.max(b))) {
                pairs.push((a, b));
            }
        }
        pairs
    }
}

fn run(name: &str, controller: &mut Controller, pairs: &[(u64, u64)]) {
    let mut out = Vec::with_capacity(1);
    let before = controller.counters().arp_answered;
    let started = Instant::now();
    for &(source, target) in pairs {
        let (from, message) = request(source, target);
        controller.arp_request(Time::ZERO, from, message, &mut out);
        std::hint::black_box(&out);
        out.clear();
    }
    let answered = controller.counters().arp_answered - before;
    report(name, started, answered, pairs.len());
}

fn report(name: &str, started: Instant, answered: u64, asked: usize) {
    let nanos = started.elapsed().as_nanos() as f64 / asked as f64;
    assert_eq!(answered, asked as u64, "every request is answered");
    let cycles = gigahertz().map_or(String::new(), |ghz| format!("{:>9.0} cycles", nanos * ghz));
    println!("{name:<44}{:>12.0}/s{nanos:>9.0} ns{cycles}", 1e9 / nanos);
}

/// Whole controller with the seals of all switches: packets in, packets out.
struct Whole {
    node: ControllerNode<Plane>,
    switches: Vec<Sealer>,
    out: Vec<Action>,
}

impl Whole {
    fn build() -> Whole {
        let config = config(RouterKind::default());
        // As in a real controller: all messages of switches and hosts come in by its one port.
        let causes = SWITCHES + SWITCHES * HOSTS_PER_SWITCH;
        let addressed = PuntLimit::for_causes(causes as u32);
        let plane = PlaneConfig { addressed, ..PlaneConfig::with_ports(1, config.node.mac) };
        let plane = Plane::new(plane);
        let node = ControllerNode::new(config, plane, Time::ZERO);
        let switches = (0..SWITCHES)
            .map(|switch| Sealer::new(&[0; 32].into(), incarnation(switch), Role::Switch))
            .collect();
        let mut whole = Whole { node, switches, out: Vec::new() };
        whole.input(Input::Link { port: PortNo(0), up: true });
        let (role, hop_width) = (Role::Switch, HopWidth::Eight);
        let hello = Hello { port: PortNo(4), role, hop_width, challenge: 1 };
        let sealed = whole.switches[0].seal_link(None, &Message::Hello(hello));
        let echo = whole.frame(&link::emit(mac(0), &sealed)).expect("the Hello is answered");
        let confirm = Message::HelloConfirm(HelloConfirm { echo });
        let sealed = whole.switches[0].seal_link(Some(incarnation_of_controller()), &confirm);
        whole.frame(&link::emit(mac(0), &sealed));
        for switch in 0..SWITCHES {
            let hello = Message::ControllerHello(ports_of(switch, 1, None));
            let packet = whole.packet(switch, &hello);
            whole.frame(&packet);
            let hosts = switch * HOSTS_PER_SWITCH..(switch + 1) * HOSTS_PER_SWITCH;
            let seen = |host| Item::HostSeen {
                port: host_port(host),
                mac: mac(host),
                ips: vec![ip(host)],
            };
            let segment = Segment { first: 0, ack: 0, items: hosts.map(seen).collect() };
            let packet = whole.packet(switch, &Message::Segment(segment));
            whole.frame(&packet);
        }
        whole
    }

    /// Returns a sealed message as it arrives after a few hops.
    fn packet(&mut self, switch: u64, message: &Message) -> Vec<u8> {
        let sealed = self.switches[switch as usize]
            .seal_routed(incarnation_of_controller(), (VlanId::NONE, message));
        let mut packet = vec![0; 64];
        let (forward, reverse) = (Hops::to_control(), Hops::from([0, 1, 2, PortNo::CONTROL.0]));
        let kind = PacketType::Control;
        let length = header::emit(&mut packet, HopWidth::Eight, kind, &forward, &reverse);
        packet.truncate(length.expect("a short route fits"));
        packet.extend_from_slice(&sealed);
        packet
    }

    /// Receives one frame. Returns the challenge of a Hello Reply, if the output has one.
    fn frame(&mut self, bytes: &[u8]) -> Option<u64> {
        let (port, complete_at) = (PortNo(0), Time::ZERO);
        self.input(Input::Frame { port, frame: FrameBuf::new(bytes), complete_at, intact: true })
    }

    fn input(&mut self, input: Input) -> Option<u64> {
        let mut challenge = None;
        self.node.handle(Time::ZERO, input, &mut self.out);
        while let Some(action) = self.out.pop() {
            let Action::Transmit { port, frame, .. } = action else { continue };
            let payload = link::parse(frame.bytes());
            let opened =
                payload.and_then(|bytes| self.switches[0].open_link(PortNo(0), bytes).ok());
            if let Some(Message::HelloReply(reply)) = opened.map(|opened| opened.message) {
                challenge = Some(reply.challenge);
            }
            self.node.handle(Time::ZERO, Input::TxDone { port }, &mut self.out);
        }
        challenge
    }

    fn run(&mut self, name: &str, pairs: &[(u64, u64)]) {
        let mut packets = Vec::with_capacity(pairs.len());
        for &(source, target) in pairs {
            let (from, message) = request(source, target);
            packets.push(self.packet(from.node.0 - 1, &Message::ArpRequest(message)));
        }
        let before = self.node.controller().counters().arp_answered;
        let started = Instant::now();
        for packet in &packets {
            self.frame(packet);
        }
        let answered = self.node.controller().counters().arp_answered - before;
        report(name, started, answered, pairs.len());
    }
}

fn main() {
    // `cargo test` runs benchmarks with `--test`: one small round tests that they work.
    let quick = std::env::args().any(|argument| argument == "--test");
    let (many, few) = if quick { (1_000, 100) } else { (300_000, 1_000) };
    let mut pairs = Pairs { state: 0x9e37_79b9_7f4a_7c15, seen: Default::default() };
    let mut controller = build(RouterKind::default());
    let first = pairs.take(few);
    run("first set-ups, no distances known", &mut controller, &first);
    let warm = pairs.take(many);
    run("set-ups, warm", &mut controller, &warm);
    run("the same again: routes stand", &mut controller, &warm);
    let mut whole = Whole::build();
    whole.run("warming up a whole node, seals included", &first);
    whole.run("set-ups of a whole node, seals included", &warm[..warm.len() / 3]);
    drop(whole);
    let links: usize = controller.flows().iter().map(|(_, route)| route.len()).sum();
    let routes = controller.flows().len();
    println!("{routes} routes of {:.1} links on average", links as f64 / routes as f64);

    let mut out = Vec::new();
    let failed = Instant::now();
    hello(&mut controller, 500, 2, Some(0), &mut out);
    let moved = controller.counters().routes_moved;
    let took = ms(failed);
    println!("{:<44}{took:>12.1} ms, {moved} routes moved", "a link fails: its routes move");
    let next = pairs.take(few);
    run("first set-ups after the failure", &mut controller, &next);
    let started = Instant::now();
    hello(&mut controller, 500, 3, None, &mut out);
    println!("{:<44}{:>12.1} ms", "the link comes back", ms(started));
    let next = pairs.take(few);
    run("first set-ups after that", &mut controller, &next);
    let started = Instant::now();
    let mut now = Time::ZERO;
    let moved = controller.counters().routes_moved;
    while let Some(deadline) = controller.deadline() {
        now = now.max(deadline);
        controller.timeout(now, &mut out);
    }
    let moved = controller.counters().routes_moved - moved;
    let took = ms(started);
    println!(
        "{:<44}{took:>12.1} ms, {moved} routes moved",
        "routes that had become longer move back"
    );

    routers(if quick { 100 } else { 20_000 });
}

/// Measures each router on the same requests, distances known; then its rounds.
fn routers(count: usize) {
    for kind in RouterKind::ALL {
        println!();
        let mut pairs = Pairs { state: 0x9e37_79b9_7f4a_7c15, seen: Default::default() };
        let mut controller = build(kind);
        run("warming up", &mut controller, &pairs.take(1_000.min(count)));
        run(&format!("set-ups, {}", kind.name()), &mut controller, &pairs.take(count));
        let (started, mut now, mut out) = (Instant::now(), Time::ZERO, Vec::new());
        while let Some(deadline) = controller.deadline() {
            now = now.max(deadline);
            controller.timeout(now, &mut out);
        }
        let (took, moved) = (ms(started), controller.counters().routes_moved);
        println!("{:<44}{took:>12.1} ms, {moved} routes moved", "its rounds");
    }
}
