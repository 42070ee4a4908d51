//! Agents beside switches: selected packets pass through them, and hosts exchange packets with
//! them.

use crate::common;
use axon_agents::packet::{Ends, Ipv4, udp};
use axon_node::{Action, Input, Node, Shortcuts};
use axon_sim::agents::reports;
use axon_sim::apps::{
    AppId, Plan, Protocol, RequestPlan, RespondPlan, TcpOptions, Transport, UdpPlan,
};
use axon_sim::station::StationNode;
use axon_sim::{Options, World};
use axon_wire::{FrameBuf, PortNo, Span, Time};
use std::net::Ipv4Addr;

const CACHE: &str = "name: t\nprogram: bridge\n\
    topology: {listed: {switches: [s1], hosts: {h1: s1, h2: s1}, links: []}}\n\
    agents: [{at: s1, cache: {}, buffers: 64, select: [{protocol: udp, destination_port: 5000}, \
    {protocol: udp, source_port: 5000}]}]\n";

/// A host outside the simulator's own: it has a link and requests the IDs in order.
struct Client {
    ends: Ends,
    ids: Vec<u64>,
    interval: Span,
    next_at: Time,
    replies: Vec<u64>,
}

/// Answers every request with 1,472 bytes that begin with its ID.
struct Server {
    queue: Vec<Vec<u8>>,
    is_busy: bool,
}

fn transmit(frame: &[u8], now: Time, out: &mut Vec<Action>) {
    let frame = FrameBuf::new(frame);
    out.push(Action::Transmit { port: PortNo(0), frame, complete_at: now, intact: true });
}

fn datagram(frame: &[u8], to: u16) -> Option<(Ends, u64)> {
    let ip = Ipv4::parse(frame)?;
    let ends = Ends::of(frame, &ip).filter(|ends| ends.ports.1 == to)?;
    Some((ends, u64::from_be_bytes(frame.get(42..50)?.try_into().ok()?)))
}

impl Node for Client {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        if let Input::Frame { frame, .. } = input {
            let reply = datagram(frame.bytes(), self.ends.ports.0);
            self.replies.extend(reply.map(|(_, id)| id));
        } else if matches!(input, Input::Timeout) && now >= self.next_at && !self.ids.is_empty() {
            self.next_at = now + self.interval;
            let mut payload = self.ids.remove(0).to_be_bytes().to_vec();
            payload.resize(82, 0);
            transmit(&udp(&self.ends, &[&payload]), now, out);
        }
    }

    fn deadline(&self) -> Option<Time> {
        (!self.ids.is_empty()).then_some(self.next_at)
    }
}

impl Shortcuts for Client {}

impl Node for Server {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        match input {
            Input::Frame { frame, .. } => {
                let Some((ends, id)) = datagram(frame.bytes(), 5000) else { return };
                let payload = [&id.to_be_bytes()[..], &[id as u8; 1464]].concat();
                self.queue.push(udp(&ends.reversed(), &[&payload]));
            }
            Input::TxDone { .. } => self.is_busy = false,
            _ => return,
        }
        if !self.is_busy && !self.queue.is_empty() {
            self.is_busy = true;
            transmit(&self.queue.remove(0), now, out);
        }
    }

    fn deadline(&self) -> Option<Time> {
        None
    }
}

impl Shortcuts for Server {}

/// Frames from a host's link that arrived at the switch.
fn from_host(world: &World, host: usize) -> u64 {
    world.engine().fates(world.layout().access_link(host), 0).delivered
}

/// Frames from a host's link that arrived at the host.
fn to_host(world: &World, host: usize) -> u64 {
    world.engine().fates(world.layout().access_link(host), 1).delivered
}

/// A world with a server and a client that requests these IDs from the sixth second on.
fn cache_world(text: &str, ids: Vec<u64>) -> World {
    let fabric = common::fabric(text);
    let mut world = World::new(&fabric, 1);
    let [client, server] = [0, 1].map(|host| world.fabric().hosts[host].clone());
    let address = |host: &axon_fabric::model::Host| host.ip.expect("a fixed address");
    let ends = Ends {
        macs: (client.mac, server.mac),
        addresses: (address(&client), address(&server)),
        ports: (4000, 5000),
    };
    // The bridge forwards to its hosts by then.
    let next_at = Time::ZERO + Span::from_secs(6);
    let (interval, replies) = (Span::from_micros(100), Vec::new());
    let client = Client { ends, ids, interval, next_at, replies };
    let stations = [0, 1].map(|host| world.layout().host_station(host));
    let engine = world.engine_mut();
    engine.power_on(stations[0], StationNode::Other(Box::new(client)));
    let server = Server { queue: Vec::new(), is_busy: false };
    engine.power_on(stations[1], StationNode::Other(Box::new(server)));
    world.run_for(Span::from_secs(5));
    world
}

#[test]
fn a_cache_beside_the_switch_answers_what_it_has_seen_and_the_server_gets_the_rest() {
    // Every fourth ID is new.
    let ids: Vec<u64> = (0..400).map(|n| if n % 4 == 0 { n } else { 0 }).collect();
    let mut world = cache_world(CACHE, ids);
    let before = (from_host(&world, 1), to_host(&world, 0));
    world.run_for(Span::from_secs(2));
    let report = reports(&world).remove(0);
    assert_eq!((report.agent.as_str(), report.kind), ("a1", "cache"));
    let counters = ["hits", "misses", "fills"].map(|name| report.counters[name]);
    assert_eq!(counters, [300, 100, 100]);
    assert_eq!(from_host(&world, 1) - before.0, 100, "the server has sent so many replies");
    // Bridge protocol data units arrive, too.
    let replies = to_host(&world, 0) - before.1;
    assert!((400..410).contains(&replies), "{replies}");
    // The head of each packet was copied, and the payload of each reply once, to be cached.
    let payload = &report.payload;
    assert_eq!((payload.received, payload.brought, payload.hits), (500, 300, 200));
    assert_eq!(world.engine().check_conservation(), Ok(()));
}

#[test]
fn without_its_agent_a_switch_forwards_as_if_there_were_none() {
    let mut world = cache_world(CACHE, vec![7; 100]);
    let agent = world.layout().agent_station(0);
    world.engine_mut().power_off(agent);
    let before = from_host(&world, 1);
    world.run_for(Span::from_secs(2));
    assert_eq!(from_host(&world, 1) - before, 100);
    assert!(reports(&world).is_empty());
    let failure = world.nodes().program(0).and_then(|node| node.program().failure());
    assert_eq!(failure, None);
    assert_eq!(world.engine().check_conservation(), Ok(()));
}

const BALANCER: &str = "agents: [{name: vip, at: s1, forwarder: {address: 10.0.9.9, \
    balancer: {protocol: PROTOCOL, port: 80, backends: [h2, h3], backend_port: 8080}}}]\n\
    dhcp: {reservations: {h1: 10.0.0.11, h2: 10.0.0.12, h3: 10.0.0.13, h4: 10.0.0.14}}\n";
const VIP: Ipv4Addr = Ipv4Addr::new(10, 0, 9, 9);

/// Two switches and four hosts, with a balancer in front of h2 and h3.
fn balancer_world(kind: &str, protocol: &str) -> World {
    let topology = "{listed: {switches: [s1, s2], hosts: {h1: s1, h2: s1, h3: s2, h4: s2}, \
                    links: [[s1, s2]]}}";
    let agents = BALANCER.replace("PROTOCOL", protocol);
    let text =
        format!("name: t\n{kind}topology: {topology}\ntimers: {{heartbeat: 20ms}}\n{agents}");
    let mut world = World::new(&common::fabric(&text), 3);
    let is_up = |world: &World| {
        reports(world).first().is_some_and(|report| report.counters["backends_up"] == 2)
    };
    let limit = Time::ZERO + Span::from_secs(20);
    assert!(world.run_until_true(limit, |world| world.is_ready() && is_up(world)), "{kind}");
    world
}

fn count(world: &World, name: &str) -> u64 {
    reports(world)[0].counters[name]
}

#[test]
fn hosts_reach_the_servers_behind_a_balancer_in_axon_and_in_a_bridged_network() {
    for kind in ["", "program: bridge\n"] {
        let mut world = balancer_world(kind, "udp");
        let servers = [1, 2].map(|host| {
            let id =
                world.with_host(host, |host, now| host.start(Plan::UdpSink { port: 8080 }, now));
            (host, id.expect("it has power"))
        });
        for client in [0, 3] {
            for _ in 0..20 {
                let (payload, interval) = (1000, Span::from_millis(2));
                let plan = UdpPlan { target: VIP, port: 80, payload, interval, count: 10 };
                world.with_host(client, |host, now| host.start(Plan::Udp(plan), now));
            }
        }
        world.run_for(Span::from_secs(2));
        let received = servers
            .map(|(host, id)| world.flow_stats(host, id).expect("a listener").received.packets);
        assert_eq!(received.iter().sum::<u64>(), 400, "{kind}: {received:?}");
        assert!(received.iter().all(|&received| received > 80), "{kind}: {received:?}");
        assert_eq!((count(&world, "connections"), count(&world, "to_backends")), (40, 400));
        assert_eq!(world.truth().stale_routes(), []);
        assert_eq!(world.engine().check_conservation(), Ok(()));
    }
}

#[test]
fn a_byte_stream_passes_a_balancer_both_ways_with_its_checksums() {
    let mut world = balancer_world("", "tcp");
    let options = TcpOptions::default();
    let transport = Transport::Tcp(options);
    for host in [1, 2] {
        let protocol = Protocol::Fixed { request: 100, response: 20_000 };
        let plan = RespondPlan { port: 8080, options, protocol, service: Span::ZERO };
        world.with_host(host, |host, now| host.start(Plan::Respond(plan), now));
    }
    let plan = RequestPlan {
        targets: vec![VIP],
        port: 80,
        transport,
        request: 100,
        response: 20_000,
        think: Span::from_millis(1),
        count: Some(50),
        timeout: Span::from_millis(200),
    };
    let id: AppId =
        world.with_host(0, |host, now| host.start(Plan::Request(plan), now)).expect("it has power");
    world.run_for(Span::from_secs(5));
    let stats = world.flow_stats(0, id).expect("a client");
    assert_eq!((stats.completed, stats.failed), (50, 0));
    assert_eq!(count(&world, "connections_opened"), 1);
    // Payload caching: heads were copied, payloads were not.
    let payload = reports(&world)[0].payload;
    assert!(payload.saved_bytes > 50 * 19_000, "{payload:?}");
    assert!(payload.copied_to_agent_bytes < payload.received * 99, "{payload:?}");
}

#[test]
fn a_run_with_agents_is_the_same_whenever_it_is_repeated() {
    let run = || {
        let ids = (0..50).collect();
        let mut world = cache_world(CACHE, ids);
        world.run_for(Span::from_secs(2));
        world.engine().trace_hash()
    };
    assert_eq!(run(), run());
    let text = format!("{CACHE}traffic: [{{ping: {{}}, from: h1, to: h2}}]\n");
    let report = axon_sim::run::run(&common::fabric(&text), Options::default());
    assert!(report.passed(), "{:?}", report.warnings);
    assert_eq!(report.agents.len(), 1);
    assert!(report.to_json().contains("\"kind\": \"cache\""));
}

#[test]
fn a_slow_agent_loses_what_its_buffers_and_its_queue_do_not_hold() {
    let text = CACHE.replace("buffers: 64", "buffers: 8, when_full: drop, service: 1ms");
    let mut world = cache_world(&text, (0..100).collect());
    world.run_for(Span::from_secs(2));
    let drops = world.engine().accounts().dropped[axon_node::Drop::QueueFull as usize];
    let received = reports(&world).remove(0).payload.received;
    assert!(drops > 50, "{drops} of 100 requests at ten times the agent's pace");
    let came = world.nodes().agent(0).expect("it runs").accounts().0;
    assert_eq!(received + drops, came);
    assert_eq!(world.engine().check_conservation(), Ok(()));
}
