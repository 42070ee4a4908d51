//! Tenants: where the policy gives no route, no frame passes, with any frames of a host.

use crate::common::{self, Builder, HEARTBEAT, end, line, mac, pairs, ring, unreached};
use axon_controller::policy::{Group, Identity};
use axon_fabric::assemble::switch_id;
use axon_fabric::model::{End, FaultKind, Policy};
use axon_node::{Done, HostPair, PolicyChange, PolicyDone, Request, Subject};
use axon_sim::apps::{Plan, RawPlan};
use axon_sim::capture::Captured;
use axon_sim::links::WireEnd;
use axon_sim::{DataplaneKind, PingPlan, Setup, World};
use axon_wire::header::{self, PacketType};
use axon_wire::host_frame::{self, Kind};
use axon_wire::{HopWidth, MacAddr, PortNo, Span, Time};
use oorandom::Rand64;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of drawn policies.
const POLICIES: u64 = 1_000;
/// EtherType of frames that name their sender (IEEE 802, local experimental).
const MARKED: [u8; 2] = [0x88, 0xb5];
/// A word that other frames do not contain.
const WORD: [u8; 6] = *b"tenant";

fn subject(host: usize) -> Subject {
    Subject::Mac(mac(host))
}

fn at(builder: &Builder, host: usize) -> End {
    let host = &builder.fabric.hosts[host];
    end(host.switch, host.port.0)
}

fn identity(builder: &Builder, host: usize) -> Identity {
    let End { switch, port } = at(builder, host);
    Identity { mac: mac(host), at: Some((switch_id(switch), port)) }
}

/// A frame that names its sender, under any MAC.
fn marked(to: MacAddr, from: MacAddr, sender: usize) -> Vec<u8> {
    let mut frame = [&to.0[..], &from.0, &MARKED, &WORD, &[sender as u8]].concat();
    frame.resize(60, 0);
    frame
}

/// Sender of a marked frame, with the mark at any offset.
fn sender_of(frame: &[u8]) -> Option<usize> {
    let place = frame.windows(WORD.len()).position(|bytes| bytes == WORD)?;
    frame.get(place + WORD.len()).map(|&sender| usize::from(sender))
}

/// Captures the frames that all hosts send and receive.
fn watch(world: &mut World) {
    for host in 0..world.fabric().hosts.len() {
        let station = world.layout().host_station(host);
        world.engine_mut().capture(WireEnd { station, port: PortNo(0) });
    }
}

/// Frames that hosts were sent since the last call, by host.
fn delivered(world: &mut World) -> Vec<(usize, Captured)> {
    let first = world.layout().host_station(0);
    let captured = world.engine_mut().take_captured().into_iter();
    let inbound = captured.filter(|one| !one.outbound);
    inbound.map(|one| (one.station - first, one)).collect()
}

fn below(random: &mut Rand64, limit: usize) -> usize {
    random.rand_range(0..limit as u64) as usize
}

/// Draws a small fabric with a policy, and whether its hosts may use the MACs of others, in which
/// case all are pinned.
fn draw(random: &mut Rand64) -> (Builder, bool) {
    let switches = 2 + below(random, 2);
    let mut builder = line(switches, 0, true);
    let hosts = 3 + below(random, 4);
    for _ in 0..hosts {
        builder.host(below(random, switches), true);
    }
    builder.fabric.timers.hello = Span::from_millis(50);
    builder.fabric.timers.heartbeat = Span::from_millis(50);
    let mut policy = Policy::default();
    let tenants: Vec<Group> =
        (0..1 + below(random, 3)).map(|number| policy.add_tenant(format!("t{number}"))).collect();
    let spoofs = below(random, 2) == 0;
    for host in 0..hosts {
        let group = match below(random, 8) {
            0 => Group::Shared,
            1 => Group::Other,
            _ => tenants[below(random, tenants.len())],
        };
        let End { switch, port } = at(&builder, host);
        let by_port = below(random, 3) == 0;
        let port_subject = Subject::Port(switch_id(switch), port);
        let named = if by_port { port_subject } else { subject(host) };
        if group != Group::Other {
            policy.put(named, group);
        }
        if spoofs {
            policy.pin(mac(host), (switch_id(switch), port));
        }
        if below(random, 10) == 0 {
            policy.isolate(named);
        }
    }
    if tenants.len() > 1 && below(random, 3) == 0 {
        policy.join(tenants[0], tenants[1]);
    }
    if below(random, 3) == 0 {
        policy.deny_others();
    }
    builder.fabric.policy = policy;
    (builder, spoofs)
}

/// All frames that a host can send to reach others that it may not reach: under its own address
/// and, if it `spoofs`, under those of others, and frames that look like Axon's.
fn attacks(builder: &Builder, host: usize, spoofs: bool, random: &mut Rand64) -> Vec<Vec<u8>> {
    let hosts = builder.fabric.hosts.len();
    let ip = |host: usize| Ipv4Addr::new(10, 0, 0, host as u8 + 10);
    let mut frames = Vec::new();
    for other in (0..hosts).filter(|&other| other != host) {
        frames.push(host_frame::request(mac(host), ip(host), MacAddr::BROADCAST, ip(other)));
        frames.push(marked(mac(other), mac(host), host));
        // It claims the address of another host.
        let victim = below(random, hosts);
        frames.push(host_frame::request(mac(host), ip(victim), MacAddr::BROADCAST, ip(victim)));
        frames.push(host_frame::request(mac(host), ip(victim), MacAddr::BROADCAST, ip(other)));
        if spoofs {
            let request =
                host_frame::request(mac(victim), ip(victim), MacAddr::BROADCAST, ip(other));
            frames.push(request);
            frames.push(marked(mac(other), mac(victim), host));
            let unknown = MacAddr([2, 0x77, 0, 0, host as u8, below(random, 4) as u8]);
            frames.push(marked(mac(other), unknown, host));
        }
        let End { switch, port } = at(builder, other);
        let mut packet = vec![0; 32];
        let route = [PortNo(switch as u16), port];
        let length = header::emit(&mut packet, HopWidth::Eight, PacketType::Ethernet, &route, &[]);
        packet.truncate(length.unwrap());
        packet.extend(marked(mac(other), mac(host), host));
        frames.push(packet);
    }
    frames.push(marked(MacAddr::BROADCAST, mac(host), host));
    frames.push(marked(MacAddr([0x33, 0x33, 0, 0, 0, 1]), mac(host), host));
    frames
}

/// Returns whether the policy lets two hosts reach each other.
fn allowed(builder: &Builder, (a, b): (usize, usize)) -> bool {
    builder.fabric.policy.allows(&identity(builder, a), &identity(builder, b))
}

/// Draws a policy and checks a world against it. Returns the number of frames that named their
/// sender, and of denied requests.
///
/// # Errors
/// A frame that crossed, or a pair that should reach each other and does not.
fn hold(seed: u64) -> Result<[u64; 2], String> {
    let mut random = Rand64::new(u128::from(seed));
    let (builder, spoofs) = draw(&mut random);
    let hosts = builder.fabric.hosts.len();
    let mut world = World::begin(&builder.fabric, Setup { seed, ..Setup::default() });
    world.set_host_retry(Span::from_millis(100));
    watch(&mut world);
    let known = |world: &World| {
        world.controller().is_some_and(|node| node.controller().hosts().len() == hosts)
    };
    // Their frames to the server make them known, once their ports are host ports.
    for host in 0..hosts {
        let server = builder.fabric.dhcp.server;
        world.ping(host, PingPlan::until_reply(server, Span::from_millis(100), 20));
    }
    if !world.run_until_true(Time::ZERO + Span::from_secs(3), known) {
        return Err("hosts that the controller does not know".into());
    }
    let all: Vec<usize> = (0..hosts).collect();
    let (reach, others): (Vec<_>, Vec<_>) =
        pairs(&all).into_iter().partition(|&pair| allowed(&builder, pair));
    let silent = unreached(&mut world, &reach, 20);
    if !silent.is_empty() {
        return Err(format!("allowed pairs (by index) without an answer: {silent:?}"));
    }
    let answered = others.len() - unreached(&mut world, &others, 1).len();
    if answered > 0 {
        return Err(format!("{answered} denied pairs had an answer"));
    }
    for host in 0..hosts {
        let frames = attacks(&builder, host, spoofs, &mut random);
        let count = Some(3 * frames.len() as u64);
        let plan = RawPlan { frames, interval: Span::from_millis(2), count };
        world.with_host(host, |node, now| node.start(Plan::Raw(plan), now)).unwrap();
    }
    world.run_for(Span::from_millis(500));
    let marks = look(&mut world, &builder)?;
    Ok([marks, world.controller().unwrap().controller().counters().arp_denied])
}

/// Checks all frames that hosts were sent. Returns the number of those that named their sender.
fn look(world: &mut World, builder: &Builder) -> Result<u64, String> {
    let mut marks = 0;
    for (host, Captured { at, frame, .. }) in delivered(world) {
        let sender = sender_of(&frame);
        marks += u64::from(sender.is_some());
        // Switches send ARP requests for hosts.
        let known = |named: MacAddr| {
            (0..builder.fabric.hosts.len()).find(|&other| mac(other) == named && other != host)
        };
        let named = match host_frame::classify(&frame) {
            Kind::Arp(arp) => known(arp.sender_mac),
            _ => None,
        };
        for from in sender.into_iter().chain(named) {
            if !allowed(builder, (from, host)) {
                let how = if sender.is_some() { "a frame" } else { "the name" };
                return Err(format!("at {at}: {how} of h{} came to h{}", from + 1, host + 1));
            }
        }
    }
    Ok(marks)
}

#[test]
fn under_random_policies_no_frame_crosses_and_all_allowed_pairs_reach_each_other() {
    let next = AtomicU64::new(0);
    let workers = std::thread::available_parallelism().map_or(2, usize::from);
    let sums = [AtomicU64::new(0), AtomicU64::new(0)];
    let work = || {
        let mut failed = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= POLICIES {
                return failed;
            }
            match hold(seed) {
                Ok(counts) => sums.iter().zip(counts).for_each(|(sum, count)| {
                    sum.fetch_add(count, Ordering::Relaxed);
                }),
                Err(wrong) => failed.push(format!("seed {seed}: {wrong}")),
            }
        }
    };
    let failed: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(failed.is_empty(), "{} of {POLICIES}:\n{}", failed.len(), failed.join("\n"));
    let [marks, denied] = sums.map(AtomicU64::into_inner);
    println!("{marks} frames that may reach a host did, {denied} requests were denied");
    assert!(marks > 10 * POLICIES && denied > 10 * POLICIES, "{marks}, {denied}");
}

/// Changes the policy of the controller.
fn change(world: &mut World, change: PolicyChange) -> PolicyDone {
    let station = world.layout().controller_station();
    match world.engine_mut().command(station, Request::Policy(change)) {
        Some(Ok(Done::Policy(done))) => done,
        other => panic!("{other:?}"),
    }
}

fn pair(a: usize, b: usize, allowed: bool) -> PolicyChange {
    PolicyChange::Pair(HostPair::of(mac(a), mac(b)), allowed)
}

/// Time at which the last frame between two hosts arrived at one of them, if any.
fn last_between(world: &mut World, a: usize, b: usize) -> Option<Time> {
    let from = |frame: &[u8], host| MacAddr::source_of(frame) == Some(mac(host));
    let ours = |(host, one): &(usize, Captured)| {
        *host == a && from(&one.frame, b) || *host == b && from(&one.frame, a)
    };
    // Requests that switches send for a host are not frames of the host.
    let is_arp = |frame: &[u8]| matches!(host_frame::classify(frame), Kind::Arp(_));
    let all = delivered(world).into_iter();
    all.filter(ours).filter(|(_, one)| !is_arp(&one.frame)).map(|(_, one)| one.at).max()
}

#[test]
fn a_revoked_pair_stops_within_a_tenth_of_a_second_and_starts_again_when_it_is_allowed() {
    for dataplane in [DataplaneKind::Software, DataplaneKind::Reference, DataplaneKind::Pipeline] {
        let mut world = common::boot_on(&ring(4, 2, true), dataplane);
        watch(&mut world);
        let long = Span::from_secs(20);
        // Two hosts at each switch.
        let ids =
            [(0, 4), (4, 0), (1, 3)].map(|(a, b)| common::start_steady(&mut world, a, b, long));
        world.run_for(Span::from_secs(1));
        let received = |world: &World| ids.map(|id| world.ping_stats(id).unwrap().received);
        assert!(received(&world).iter().all(|&count| count > 500), "{dataplane}");
        last_between(&mut world, 0, 4).expect("they reach each other");
        let revoked_at = world.now();
        let done = change(&mut world, pair(0, 4, false));
        assert_eq!((done.routes_removed, done.switches.len(), done.reach), (2, 2, false));
        world.run_for(Span::from_millis(500));
        let last = last_between(&mut world, 0, 4).unwrap_or(revoked_at);
        assert!(last.since(revoked_at) < Span::from_millis(100), "{dataplane}: {last}");
        println!("{dataplane}: the last frame came {} after", last.since(revoked_at));
        let node = world.controller().unwrap();
        assert_eq!(node.policy_telemetry().outstanding, [], "both switches have acknowledged");
        let before = received(&world);
        world.run_for(Span::from_secs(2));
        assert_eq!(last_between(&mut world, 0, 4), None, "{dataplane}");
        assert!(received(&world)[2] > before[2] + 1_900, "others go on");
        assert!(change(&mut world, pair(0, 4, true)).reach);
        world.run_for(Span::from_secs(6));
        let after = received(&world);
        assert!(after[0] > before[0] + 500 && after[1] > before[1] + 500, "{dataplane}");
        world.engine().check_conservation().unwrap();
    }
}

#[test]
fn a_data_plane_that_refuses_removals_keeps_no_revoked_route() {
    let mut world = common::boot_on(&ring(4, 1, true), DataplaneKind::Refusing);
    watch(&mut world);
    for (a, b) in pairs(&[0, 1, 2, 3]) {
        common::start_steady(&mut world, a, b, Span::from_secs(20));
    }
    world.run_for(Span::from_secs(1));
    for other in 1..4 {
        change(&mut world, pair(0, other, false));
    }
    world.run_for(Span::from_millis(100));
    common::take_all(&mut world);
    delivered(&mut world);
    world.run_for(Span::from_secs(1));
    assert_eq!(last_between(&mut world, 0, 1), None);
    let routes = |world: &World| {
        let to_first = |switch: usize| {
            let edge = world.switch(switch).unwrap().edge();
            edge.flows().filter(|(_, to, _)| *to == mac(0)).count()
        };
        (1..4).map(to_first).sum::<usize>()
    };
    assert_eq!(routes(&world), 0);
}

#[test]
fn a_quarantined_host_reaches_nobody_and_that_outlives_the_controller() {
    let mut world = common::boot(&ring(3, 1, true));
    watch(&mut world);
    assert_eq!(unreached(&mut world, &pairs(&[0, 1, 2]), 20), []);
    change(&mut world, PolicyChange::Quarantine(subject(2), true));
    change(&mut world, pair(0, 1, false));
    let steady = common::start_steady(&mut world, 1, 0, Span::from_secs(30));
    world.run_for(Span::from_millis(200));
    delivered(&mut world);
    for fault in [FaultKind::ControllerDown, FaultKind::ControllerUp] {
        world.inject(fault);
        world.run_for(Span::from_millis(500));
    }
    world.run_for(Span::from_secs(3));
    assert_eq!(unreached(&mut world, &pairs(&[0, 1, 2]), 10).len(), 6, "as before");
    assert_eq!(world.ping_stats(steady).unwrap().received, 0);
    let node = world.controller().unwrap();
    let telemetry = node.policy_telemetry();
    assert_eq!((telemetry.quarantine.len(), telemetry.pairs.len()), (1, 1));
    change(&mut world, PolicyChange::Quarantine(subject(2), false));
    world.run_for(HEARTBEAT);
    assert_eq!(unreached(&mut world, &[(2, 0), (2, 1), (1, 2)], 80), []);
    assert_eq!(unreached(&mut world, &[(0, 1), (1, 0)], 20).len(), 2);
}

#[test]
fn routes_that_the_next_controller_forbids_are_removed_at_once() {
    let mut builder = ring(3, 1, true);
    let red = builder.fabric.policy.add_tenant("red");
    builder.fabric.policy.put(subject(0), red);
    let policy = std::mem::take(&mut builder.fabric.policy);
    let mut world = common::boot(&builder);
    assert_eq!(unreached(&mut world, &pairs(&[0, 1, 2]), 20), []);
    watch(&mut world);
    common::start_steady(&mut world, 0, 1, Span::from_secs(20));
    world.inject(FaultKind::ControllerDown);
    world.run_for(Span::from_millis(200));
    assert!(last_between(&mut world, 0, 1).is_some(), "routes outlive their controller");
    world.set_policy(policy);
    world.inject(FaultKind::ControllerUp);
    world.run_for(Span::from_secs(1));
    delivered(&mut world);
    world.run_for(Span::from_secs(5));
    assert_eq!(last_between(&mut world, 0, 1), None);
    assert_eq!(unreached(&mut world, &[(1, 2), (2, 1)], 20), []);
    assert_eq!(unreached(&mut world, &[(0, 1), (2, 0)], 10).len(), 2);
}

#[test]
fn a_host_that_moves_takes_its_tenant_along_and_a_pinned_one_stays() {
    for pinned in [false, true] {
        let mut builder = ring(3, 1, true);
        let spare = builder.spare_ports();
        let [red, blue] = ["red", "blue"].map(|name| builder.fabric.policy.add_tenant(name));
        for (host, group) in [(0, red), (1, red), (2, blue)] {
            builder.fabric.policy.put(subject(host), group);
        }
        if pinned {
            let End { switch, port } = at(&builder, 0);
            builder.fabric.policy.pin(mac(0), (switch_id(switch), port));
        }
        let mut world = common::boot(&builder);
        assert_eq!(unreached(&mut world, &pairs(&[0, 1]), 20), []);
        world.move_host(0, spare[2]);
        world.run_for(Span::from_secs(1));
        let reached = unreached(&mut world, &pairs(&[0, 1]), 40).is_empty();
        assert_eq!(reached, !pinned);
        assert_eq!(unreached(&mut world, &[(0, 2), (2, 0)], 10).len(), 2);
        let counters = world.controller().unwrap().controller().counters();
        assert_eq!(counters.hosts_misplaced > 0, pinned, "{counters:?}");
    }
}
