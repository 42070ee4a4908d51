//! Fabrics for tests, built as plain data, with timers fast enough for short simulations.

use axon_edge::config::GroupConfig;
use axon_fabric::cam::Cam;
use axon_fabric::model::{
    BySource, Controller, Dataplanes, Device, Dhcp, End, Fabric, Host, Link, Mode, Network, OnFull,
    Policy, PortPolicies, RouterKind, Shape, Switch, Timers, Wire,
};
use axon_node::telemetry::EdgeDebts;
use axon_node::{Dataplane, PortView};
use axon_sim::{DataplaneKind, PingId, PingPlan, Setup, World};
use axon_wire::{Bytes, HopWidth, MacAddr, PortNo, Rate, Span, Time};
use oorandom::Rand64;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Write;
use std::net::Ipv4Addr;
use std::rc::Rc;

/// Heartbeat interval of test fabrics: a silent link is down after two intervals.
pub const HEARTBEAT: Span = Span::from_millis(20);
/// Maximum time after carrier at which a port without Hellos becomes a host port.
pub const BOOT: Time = Time::from_nanos(3_000_000_000);

/// Parses a fabric file.
pub fn fabric(text: &str) -> Fabric {
    axon_fabric::parse("t.yaml".as_ref(), text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Runs until all hosts have an address.
pub fn await_addresses(world: &mut World) {
    let limit = Time::ZERO + Span::from_secs(10);
    assert!(world.run_until_true(limit, World::all_have_addresses), "{}", states(world));
}

/// A DHCP request of this length with these options, as an Ethernet frame.
pub fn dhcp(mac: MacAddr, transaction: u32, bytes: usize, options: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; bytes];
    frame[..6].fill(0xff);
    frame[6..12].copy_from_slice(&mac.0);
    frame[12..14].copy_from_slice(&[8, 0]);
    let ip_bytes = (bytes - 14) as u16;
    frame[14..18].copy_from_slice(&[0x45, 0, (ip_bytes >> 8) as u8, ip_bytes as u8]);
    frame[22..24].copy_from_slice(&[64, 17]);
    frame[30..34].fill(0xff);
    let mut sum: u32 =
        frame[14..34].chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    frame[24..26].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    let udp_bytes = ip_bytes - 20;
    frame[34..42].copy_from_slice(&[0, 68, 0, 67, (udp_bytes >> 8) as u8, udp_bytes as u8, 0, 0]);
    frame[42..46].copy_from_slice(&[1, 1, 6, 0]);
    frame[46..50].copy_from_slice(&transaction.to_be_bytes());
    frame[70..76].copy_from_slice(&mac.0);
    frame[278..282].copy_from_slice(&[99, 130, 83, 99]);
    frame[282..282 + options.len()].copy_from_slice(options);
    frame[282 + options.len()] = 255;
    frame
}

/// 1 Gb/s, 1 us, no loss.
pub fn wire() -> Wire {
    Wire {
        rate: Rate::gbps(1),
        latency: Span::from_micros(1),
        loss_ppm: 0,
        bit_errors_per_1e15: 0,
        queue: Bytes(128 * 1024),
    }
}

pub fn end(switch: usize, port: u16) -> End {
    End { switch, port: PortNo(port) }
}

/// The MAC of a host.
pub fn mac(host: usize) -> MacAddr {
    MacAddr([2, 0, 0, 0, 1, host as u8])
}

/// Builds a fabric, assigning ports in order.
pub struct Builder {
    pub fabric: Fabric,
}

/// Timers for fast start-up of a fabric.
fn timers() -> Timers {
    Timers {
        hello: HEARTBEAT,
        heartbeat: HEARTBEAT,
        retry: Span::from_millis(10),
        host_probe: Span::from_millis(500),
        ..Timers::default()
    }
}

impl Builder {
    /// `switches` switches of 16 ports, nothing connected, the controller at port 15 of the
    /// first.
    pub fn new(switches: usize) -> Builder {
        let mut builder = Builder {
            fabric: Fabric {
                name: "test".to_owned(),
                seed: 1,
                hop_width: HopWidth::Eight,
                keys: [7; 32].into(),
                key_file: None,
                switches: (1..=switches)
                    .map(|n| Switch { name: format!("s{n}"), ports: 0 })
                    .collect(),
                hosts: Vec::new(),
                links: Vec::new(),
                network: Network::Axon,
                shape: Shape::Other,
                program: None,
                device: Device::ideal(),
                dataplanes: Dataplanes::default(),
                rate_key: None,
                traffic: Vec::new(),
                agents: Vec::new(),
                bonds: Vec::new(),
                faults_after_start: Vec::new(),
                paths: Vec::new(),
                controller: Controller {
                    mode: Mode::Central,
                    name: "c1".to_owned(),
                    at: end(0, 0),
                    wire: wire(),
                    router: RouterKind::default(),
                    backups: true,
                },
                timers: timers(),
                dhcp: Dhcp {
                    server: Ipv4Addr::new(10, 0, 0, 1),
                    prefix_len: 16,
                    pool_first: Ipv4Addr::new(10, 0, 1, 0),
                    pool_last: Ipv4Addr::new(10, 0, 1, 255),
                    lease: Span::from_secs(3600),
                    leases_per_port: 64,
                    reservations: BTreeMap::new(),
                    clients: BTreeMap::new(),
                    router: None,
                    dns: Vec::new(),
                    domain: None,
                    mtu: None,
                    relay: None,
                },
                ipv6: None,
                uplinks: Vec::new(),
                self_congestion_pause: false,
                on_full: OnFull::Drop,
                nack_queue: Bytes(128 * 1024),
                port_policies: PortPolicies::default(),
                vlans: Vec::new(),
                policy: Policy::default(),
                by_source: BySource::Never,
                groups: GroupConfig::default(),
                dcb: None,
                cam: Cam::default(),
                mtu: 1500,
                faults: Vec::new(),
            },
        };
        builder.fabric.controller.at = builder.free_port(0);
        builder
    }

    /// The next unused port of a switch.
    pub fn free_port(&mut self, switch: usize) -> End {
        let ports = &mut self.fabric.switches[switch].ports;
        *ports += 1;
        end(switch, *ports - 1)
    }

    pub fn link(&mut self, a: usize, b: usize) -> usize {
        let link = Link { a: self.free_port(a), b: self.free_port(b), wire: wire() };
        self.fabric.links.push(link);
        self.fabric.links.len() - 1
    }

    /// Adds a host; with a fixed address 10.0.0.(10 + its number) if `fixed`, DHCP otherwise.
    pub fn host(&mut self, switch: usize, fixed: bool) -> usize {
        let index = self.fabric.hosts.len();
        let End { switch, port } = self.free_port(switch);
        self.fabric.hosts.push(Host {
            ip6: None,
            name: format!("h{}", index + 1),
            mac: mac(index),
            ip: fixed.then(|| Ipv4Addr::new(10, 0, 0, index as u8 + 10)),
            switch,
            port,
            wire: wire(),
        });
        index
    }

    /// Lets every wire lose this many frames per million.
    pub fn loss(&mut self, ppm: u32) {
        let fabric = &mut self.fabric;
        let links = fabric.links.iter_mut().map(|link| &mut link.wire);
        let hosts = fabric.hosts.iter_mut().map(|host| &mut host.wire);
        for wire in links.chain(hosts).chain([&mut fabric.controller.wire]) {
            wire.loss_ppm = ppm;
        }
    }

    /// Adds a spare port to every switch, for cables that are plugged at run time.
    pub fn spare_ports(&mut self) -> Vec<End> {
        (0..self.fabric.switches.len()).map(|switch| self.free_port(switch)).collect()
    }
}

/// A ring of switches, link `i` from switch `i` to the next, `hosts` hosts on each.
pub fn ring(switches: usize, hosts: usize, fixed: bool) -> Builder {
    let mut builder = Builder::new(switches);
    for switch in 0..switches {
        builder.link(switch, (switch + 1) % switches);
    }
    for switch in 0..switches {
        (0..hosts).for_each(|_| {
            builder.host(switch, fixed);
        });
    }
    builder
}

/// A line of switches, link `i` from switch `i` to the next, `hosts` hosts on each.
pub fn line(switches: usize, hosts: usize, fixed: bool) -> Builder {
    let mut builder = Builder::new(switches);
    for switch in 1..switches {
        builder.link(switch - 1, switch);
    }
    for switch in 0..switches {
        (0..hosts).for_each(|_| {
            builder.host(switch, fixed);
        });
    }
    builder
}

/// Boots the fabric, and runs it until every port knows its kind and every host has an address.
pub fn boot(builder: &Builder) -> World {
    boot_with(builder, 1)
}

pub fn boot_with(builder: &Builder, seed: u64) -> World {
    begin(builder, Setup { seed, ..Setup::default() })
}

/// Boots the fabric on another data plane.
pub fn boot_on(builder: &Builder, dataplane: DataplaneKind) -> World {
    let mut world = begin(builder, Setup { seed: 1, dataplane, ..Setup::default() });
    assert_on(&world, dataplane);
    take_all(&mut world);
    world
}

/// Lets data planes that refuse changes accept all refused ones; has no effect on the others.
pub fn take_all(world: &mut World) {
    let took_all = |world: &World| {
        let mut switches =
            (0..world.fabric().switches.len()).filter_map(|index| world.switch(index));
        let controller = world.controller().is_none_or(|node| node.refused_settings().is_empty());
        controller
            && switches.all(|switch| {
                let debts = switch.edges().debts();
                switch.refused_settings().is_empty() && debts == EdgeDebts::default()
            })
    };
    let limit = world.now() + Span::from_secs(20);
    let soon = world.run_until_true(limit, took_all);
    assert!(soon, "settings or removals that were refused are not made: {}", states(world));
}

/// Asserts that every running node has this data plane.
pub fn assert_on(world: &World, dataplane: DataplaneKind) {
    let switches = (0..world.fabric().switches.len()).filter_map(|switch| world.switch(switch));
    let planes = switches.map(|node| node.plane());
    for plane in planes.chain(world.controller().map(|node| node.plane())) {
        assert_eq!(plane.capabilities().name, dataplane.name());
    }
}

fn begin(builder: &Builder, setup: Setup) -> World {
    let mut world = World::begin(&builder.fabric, setup);
    world.set_host_retry(Span::from_millis(200));
    assert!(
        world.run_until_true(BOOT, World::all_have_addresses),
        "no addresses: {}",
        states(&world)
    );
    world.run_for(Span::from_millis(500));
    world
}

/// Returns the pairs without an answer within `tries` requests 100 ms apart.
pub fn unreached(world: &mut World, pairs: &[(usize, usize)], tries: u16) -> Vec<(usize, usize)> {
    let interval = Span::from_millis(100);
    let ids: Vec<Option<PingId>> = pairs
        .iter()
        .map(|&(from, to)| {
            let target = world.address(to)?;
            world.ping(from, PingPlan::until_reply(target, interval, tries))
        })
        .collect();
    let limit = world.now() + interval * (u64::from(tries) + 2);
    world.run_until_true(limit, |world| {
        ids.iter().all(|id| id.and_then(|id| world.ping_stats(id)).is_none_or(|stats| stats.done))
    });
    let answered = |id: &Option<PingId>| {
        id.and_then(|id| world.ping_stats(id)).is_some_and(|stats| stats.received > 0)
    };
    pairs.iter().zip(&ids).filter(|(_, id)| !answered(id)).map(|(&pair, _)| pair).collect()
}

/// Returns all ordered pairs of these hosts.
pub fn pairs(hosts: &[usize]) -> Vec<(usize, usize)> {
    let all = hosts.iter().flat_map(|&from| hosts.iter().map(move |&to| (from, to)));
    all.filter(|(from, to)| from != to).collect()
}

/// Asserts that every pair of hosts pings, no route is stale, and every frame is accounted for.
pub fn assert_whole(world: &mut World) {
    let hosts: Vec<usize> = (0..world.fabric().hosts.len()).collect();
    let silent = unreached(world, &pairs(&hosts), 30);
    assert!(silent.is_empty(), "no answer: {silent:?}; {}", states(world));
    take_all(world);
    assert_sound(world);
}

/// Asserts that no route is stale, and every frame is accounted for.
pub fn assert_sound(world: &World) {
    let stale = world.truth().stale_routes();
    assert!(stale.is_empty(), "{stale:#?}");
    world.engine().check_conservation().unwrap();
}

/// Starts a steady ping, one request a millisecond, for `span`.
pub fn start_steady(world: &mut World, from: usize, to: usize, span: Span) -> PingId {
    let target = world.address(to).expect("an address");
    let plan = PingPlan::steady(target, Span::from_millis(1), span.as_millis() as u16);
    world.ping(from, plan).expect("the host runs")
}

/// Describes the state of hosts and switches, for messages.
pub fn states(world: &World) -> String {
    let hosts = (0..world.fabric().hosts.len()).map(|host| world.address(host));
    format!("at {}: addresses {:?}", world.now(), hosts.collect::<Vec<_>>())
}

/// Describes the state related to two hosts that do not reach each other, for messages.
pub fn describe(world: &World, from: usize, to: usize) -> String {
    let mut lines = vec![format!("at {}:", world.now())];
    for (host, other) in [(from, to), (to, from)] {
        let near = axon_sim::links::WireEnd {
            station: world.layout().host_station(host),
            port: axon_simhost::PORT,
        };
        let name = &world.fabric().hosts[host].name;
        let Some((link, side)) = world.engine().link_at(near) else {
            lines.push(format!("{name} is not connected"));
            continue;
        };
        let far = world.engine().links()[link.0].ends[1 - side];
        let Some(switch) = world.switch(far.station) else {
            continue;
        };
        let edge = switch.edge();
        let local: Vec<_> = edge.hosts().filter(|(at, _)| *at == mac(host)).collect();
        let routes = switch.plane().routes_at(far.port);
        let route = routes.iter().find(|(to, _)| *to == mac(other).into());
        let flow = edge.flows().find(|&(port, to, _)| (port, to) == (far.port, mac(other)));
        lines.push(format!(
            "{name} {:?} at s{}-{} ({:?}), edge has {local:?}, route {route:?}, flow {:?}, {:?}",
            world.address(host),
            far.station + 1,
            far.port,
            switch.plane().kind(far.port),
            flow.map(|(_, _, flow)| flow),
            switch.edges().counters(),
        ));
        if let Some(controller) = world.controller() {
            let controller = controller.controller();
            let known = controller.hosts().by_mac(mac(host));
            let known = known.and_then(|index| controller.hosts().get(index));
            lines.push(format!("  controller: {known:?}, {:?}", controller.counters()));
        }
    }
    lines.join("\n")
}

/// Draws one of several elements.
pub fn pick<T: Copy>(random: &mut Rand64, of: &[T]) -> T {
    of[random.rand_range(0..of.len() as u64) as usize]
}

/// A sink for the text of a trace, to be read afterwards.
#[derive(Clone, Default)]
pub struct Page(pub Rc<RefCell<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns the number of entries in a switch's tables (reservations included) on all its ports.
pub fn table_entries(world: &World, switch: usize) -> usize {
    let ports = 0..world.fabric().switches[switch].ports;
    world.switch(switch).map_or(0, |node| ports.map(|port| node.plane().routes(PortNo(port))).sum())
}
