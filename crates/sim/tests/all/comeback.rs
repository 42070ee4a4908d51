//! A controller that is killed and restarted: flows continue, and addresses keep their holders.

use crate::common::{
    Builder, HEARTBEAT, assert_sound, assert_whole, boot, boot_with, dhcp, fabric, line, ring,
    table_entries,
};
use axon_fabric::model::FaultKind;
use axon_node::{Dataplane, Drop};
use axon_sim::apps::{Plan, RawPlan};
use axon_sim::{PingId, PingPlan, World};
use axon_wire::{PortNo, Span, Time};
use oorandom::Rand64;
use std::collections::BTreeMap;

/// Interval between two requests of a flow.
const INTERVAL: Span = Span::from_millis(20);

/// Establishes a flow for each of these pairs, then starts a steady ping of `span` over each.
fn establish(world: &mut World, flows: &[(usize, usize)], span: Span) -> Vec<PingId> {
    let ping = |world: &mut World, plan: &dyn Fn(std::net::Ipv4Addr) -> PingPlan| {
        let start = |&(from, to): &(usize, usize)| {
            let target = world.address(to).expect("an address");
            world.ping(from, plan(target)).expect("the host runs")
        };
        flows.iter().map(start).collect::<Vec<_>>()
    };
    // A few hundred set-ups at a time, as when hosts begin to communicate.
    let first = ping(world, &|to| PingPlan::until_reply(to, Span::from_millis(200), 50));
    let limit = world.now() + Span::from_secs(20);
    let done = world.run_until_true(limit, |world| {
        first.iter().all(|&id| world.ping_stats(id).is_some_and(|stats| stats.received > 0))
    });
    assert!(done, "not all flows could be established");
    let count = (span.as_millis() / INTERVAL.as_millis()) as u16;
    ping(world, &|to| PingPlan::steady(to, INTERVAL, count))
}

/// Kills the controller during these flows and restarts it; returns the longest time that any flow
/// went without an answer, and the number of requests without one.
fn kill_amid(world: &mut World, flows: &[(usize, usize)]) -> (Span, u64) {
    let pings = establish(world, flows, Span::from_millis(2_400));
    world.run_for(Span::from_millis(200));
    world.inject(FaultKind::ControllerDown);
    world.run_for(Span::from_millis(200));
    world.inject(FaultKind::ControllerUp);
    // The flows end, and then no reply is outstanding.
    world.run_for(Span::from_millis(3_200));
    let stats = pings.iter().map(|&id| world.ping_stats(id).expect("its host runs"));
    let stats: Vec<_> = stats.inspect(|stats| assert!(stats.done, "{stats:?}")).collect();
    let lost = stats.iter().map(|stats| u64::from(stats.sent) - u64::from(stats.received)).sum();
    (stats.iter().map(|stats| stats.gap_max).max().expect("flows"), lost)
}

/// Flows between hosts of a ring of switches, from each to `peers` others.
fn flows(hosts: usize, peers: usize) -> Vec<(usize, usize)> {
    let of = |from| (1..=peers).map(move |n| (from, (from + n) % hosts));
    (0..hosts).flat_map(of).collect()
}

fn kept(world: &World) -> u64 {
    world.controller().expect("on").controller().restored().routes_kept
}

#[test]
fn a_controller_killed_under_24_flows_costs_no_flow_a_packet() {
    let mut world = boot(&ring(4, 2, true));
    let flows = flows(8, 3);
    let (gap, lost) = kill_amid(&mut world, &flows);
    println!("{} flows: {gap} without an answer at most, {lost} requests lost", flows.len());
    assert_eq!((flows.len(), lost), (24, 0));
    assert!(gap <= Span::from_millis(50), "{gap}");
    assert!(kept(&world) >= 24, "{:?}", world.controller().unwrap().controller().restored());
    assert_whole(&mut world);
}

#[test]
fn a_controller_killed_under_2400_flows_costs_no_flow_a_packet() {
    let mut world = boot(&ring(10, 5, true));
    let flows = flows(50, 48);
    let (gap, lost) = kill_amid(&mut world, &flows);
    println!("{} flows: {gap} without an answer at most, {lost} requests lost", flows.len());
    assert_eq!((flows.len(), lost), (2_400, 0));
    assert!(gap <= Span::from_millis(50), "{gap}");
    assert!(kept(&world) >= 2_400, "{:?}", world.controller().unwrap().controller().restored());
    assert_sound(&world);
}

/// A link on the path of flows is cut, and a host is moved, while the controller is down: the flows
/// have other routes as soon as the controller knows the fabric again.
#[test]
fn routes_over_what_has_died_or_moved_meanwhile_are_replaced() {
    let mut builder = ring(4, 2, true);
    let spare = builder.spare_ports();
    let mut world = boot(&builder);
    assert_whole(&mut world);
    let routes: usize = (0..4).map(|switch| table_entries(&world, switch)).sum();
    world.inject(FaultKind::ControllerDown);
    world.run_for(HEARTBEAT * 5);
    world.inject(FaultKind::LinkDown(0));
    world.move_host(7, spare[1]);
    world.run_for(HEARTBEAT * 5);
    world.inject(FaultKind::ControllerUp);
    world.run_for(Span::from_secs(1));
    assert_sound(&world);
    let restored = world.controller().expect("on").controller().restored();
    assert!(restored.routes_kept > 0 && restored.routes_moved > 0, "{restored:?}");
    assert_eq!(restored.routes_pending, 0, "{restored:?}");
    // Routes of the moved host were removed with its port.
    let total = restored.routes_kept + restored.routes_moved + restored.routes_removed;
    assert!(total as usize >= routes - 7, "{restored:?} of {routes}");
    assert_whole(&mut world);
}

#[test]
fn routes_to_a_host_that_is_gone_do_not_outlive_the_controllers_decision() {
    let mut world = boot(&line(3, 1, true));
    assert_whole(&mut world);
    world.inject(FaultKind::ControllerDown);
    world.inject(FaultKind::HostDown(2));
    world.run_for(HEARTBEAT * 3);
    world.inject(FaultKind::ControllerUp);
    world.run_for(Span::from_secs(1));
    assert_eq!(world.truth().stale_routes().len(), 2, "the host may be back in a moment");
    world.run_for(world.fabric().timers.inherited_max());
    assert_sound(&world);
    world.inject(FaultKind::HostUp(2));
    world.run_for(Span::from_secs(1));
    assert_whole(&mut world);
}

/// Every host sends as fast as it can with a lossless priority, four of them to one.
fn lossless(router: &str) -> axon_fabric::model::Fabric {
    let streams: String = [(1, 3), (2, 3), (5, 3), (7, 3), (3, 5), (4, 7), (6, 1), (8, 2)]
        .map(|(from, to)| format!("- {{ udp: {{}}, from: h{from}, to: h{to}, priority: 3 }}\n"))
        .concat();
    fabric(&format!(
        "name: lossless\ntopology: {{ ring: {{ switches: 4, hosts_per_switch: 2 }} }}\n\
         links: {{ rate: 100Mbps, latency: 1us }}\ntimers: {{ heartbeat: 20ms, hello: 20ms }}\n\
         controller: {{ {router}\n  classes:\n  \
         - {{ priorities: [0, 1, 2, 5, 6], ets: 20 }}\n  \
         - {{ priorities: [3], ets: 50, lossless: true }}\n  \
         - {{ priorities: [4], ets: 30, lossless: true }}\n  - {{ priorities: [7] }}\n\
         traffic:\n{streams}"
    ))
}

#[test]
fn lossless_traffic_loses_nothing_when_the_controller_starts_anew() {
    for router in ["router: up_down }\ndcb:", "router: layered }\ndcb:\n  layers: [[3, 4]]"] {
        let mut world = World::new(&lossless(router), 1);
        let limit = Time::ZERO + Span::from_secs(10);
        assert!(world.run_until_true(limit, World::is_ready), "{:?}", world.unready());
        world.start_traffic();
        world.run_for(Span::from_millis(200));
        let dropped = |world: &World| {
            // The controller's switch may hold a message for it when it loses power: its own, or
            // one received over a link. Frames of its hosts are not exempt.
            let at = world.fabric().controller.at.switch;
            let counters = world.switch(at).expect("power").plane().counters();
            let links = world.fabric().links.iter().flat_map(|link| [link.a, link.b]);
            let over = links.filter(|end| end.switch == at).map(|end| end.port);
            let messages: u64 = over
                .chain([PortNo::CONTROL])
                .map(|port| counters.port(port).dropped(Drop::PortDown))
                .sum();
            let of = |reason: Drop| {
                let stations = world.engine().stations();
                let counts = stations.map(|station| station.accounts().dropped[reason as usize]);
                let exempt = if reason == Drop::PortDown { messages } else { 0 };
                (reason, counts.sum::<u64>() - exempt)
            };
            // Control frames end as consumed, and those received before the kind of the
            // controller's port is known as port_unknown.
            let ordinary = [Drop::Consumed, Drop::MacControl, Drop::PortUnknown];
            let lost = |reason: &&Drop| !ordinary.contains(reason);
            Drop::ALL.iter().filter(lost).map(|&reason| of(reason)).collect::<Vec<_>>()
        };
        let (before, hops) = (dropped(&world), world.engine().packet_hops());
        world.inject(FaultKind::ControllerDown);
        world.run_for(Span::from_millis(100));
        world.inject(FaultKind::ControllerUp);
        world.run_for(Span::from_millis(900));
        assert_eq!(dropped(&world), before, "{router}");
        assert!(world.engine().packet_hops() - hops > 50_000, "too little to say anything");
        let restored = world.controller().expect("on").controller().restored();
        assert!(restored.routes_kept >= 8 && restored.routes_moved == 0, "{restored:?}");
    }
}

/// A fabric whose MACs of hosts all hash to the same address, and the state of its hosts.
struct Leases {
    world: World,
    random: Rand64,
    /// Hosts whose cable is unplugged.
    out: [bool; 12],
    kills: u32,
    /// Declines that the controller has accepted.
    declined: u64,
}

impl Leases {
    fn new(seed: u64, lease: Span) -> Leases {
        let mut builder: Builder = ring(3, 4, false);
        let dhcp = &mut builder.fabric.dhcp;
        // Each host may decline some.
        dhcp.pool_last = std::net::Ipv4Addr::from(u32::from(dhcp.pool_first) + 63);
        dhcp.lease = lease;
        for (index, host) in builder.fabric.hosts.iter_mut().enumerate() {
            host.mac.0[5] = (index as u8 % 3) * 16 + 1;
            host.mac.0[2] = index as u8;
        }
        let (world, random) = (boot_with(&builder, seed), Rand64::new(u128::from(seed)));
        Leases { world, random, out: [false; 12], kills: 0, declined: 0 }
    }

    fn below(&mut self, end: u64) -> u64 {
        self.random.rand_range(0..end)
    }

    /// Restarts a host, removes or restores its cable, or lets it decline its address.
    fn step(&mut self) {
        let host = self.below(12) as usize;
        match (self.out[host], self.below(3)) {
            (false, 0) => self.world.start_host(host),
            (false, 1) => self.decline(host),
            (false, _) => {
                self.world.inject(FaultKind::HostDown(host));
                self.out[host] = true;
            }
            (true, _) => {
                self.world.inject(FaultKind::HostUp(host));
                self.out[host] = false;
            }
        }
    }

    /// A host detects that another uses its address, declines it, and restarts.
    fn decline(&mut self, host: usize) {
        let Some(ip) = self.world.address(host) else { return };
        let mac = self.world.fabric().hosts[host].mac;
        let server = self.world.fabric().dhcp.server.octets();
        let options =
            [&[53, 1, 4, 50, 4][..], &ip.octets(), &[54, 4], &server, &[61, 7, 1], &mac.0].concat();
        let frames = vec![dhcp(mac, 1, 342, &options)];
        let plan = RawPlan { frames, interval: Span::from_micros(1), count: Some(1) };
        self.world.with_host(host, |node, now| node.start(Plan::Raw(plan), now)).expect("it runs");
        let declined = |world: &World| {
            world.controller().map_or(0, |node| node.controller().dhcp().counters().declined)
        };
        let before = declined(&self.world);
        self.world.run_for(Span::from_millis(2));
        self.declined += declined(&self.world) - before;
        self.world.start_host(host);
    }

    fn kill(&mut self) {
        self.world.inject(FaultKind::ControllerDown);
        self.kills += 1;
        let micros = self.below(200_000);
        self.run_for(Span::from_micros(micros));
        self.world.inject(FaultKind::ControllerUp);
    }

    /// Runs on, and asserts that at no moment two hosts have one address.
    fn run_for(&mut self, span: Span) {
        let end = self.world.now() + span;
        while self.world.now() < end {
            self.world.run_for(Span::from_millis(5).min(end.since(self.world.now())));
            let mut holders = BTreeMap::new();
            for host in 0..12 {
                let Some(address) = self.world.address(host) else { continue };
                let other = holders.insert(address, host);
                assert_eq!(other, None, "{address} of host {host}, after {} kills", self.kills);
            }
        }
    }
}

/// Hosts come and go and decline addresses while the controller is killed at random moments. Leases
/// are shorter than the absence of some hosts, and than the validity of a lease from the store:
/// addresses go to others, but never while a host uses them.
#[test]
fn no_lease_is_given_twice_in_100_kills_of_the_controller() {
    let (mut kills, mut declined, mut expired) = (0, 0, 0);
    for seed in 1..=10 {
        let mut leases = Leases::new(seed, Span::from_secs(20));
        for round in 0..10 {
            leases.step();
            let micros = leases.below(60_000);
            leases.run_for(Span::from_micros(micros));
            leases.kill();
            let micros = leases.below(400_000);
            leases.run_for(Span::from_micros(micros));
            if round == 5 {
                // Two hosts are absent until their leases have expired at the server too.
                (0..2).for_each(|host| leases.world.inject(FaultKind::HostDown(host)));
                leases.run_for(Span::from_secs(85));
                let held = |host: usize| leases.world.address(host).is_some();
                expired += (0..2).filter(|&host| !held(host)).count();
                (0..2).for_each(|host| leases.world.inject(FaultKind::HostUp(host)));
                leases.out[..2].fill(false);
            }
        }
        (0..12).for_each(|host| leases.world.inject(FaultKind::HostUp(host)));
        let limit = leases.world.now() + Span::from_secs(25);
        assert!(leases.world.run_until_true(limit, World::all_have_addresses), "seed {seed}");
        kills += leases.kills;
        declined += leases.declined;
    }
    println!("{kills} kills, {declined} addresses declined, {expired} leases expired");
    assert!(kills == 100 && declined > 10 && expired > 10, "{kills} {declined} {expired}");
}
