//! Other networks in the simulator: bridges with RSTP, PortLand, static multipath.

use crate::common::{self, pairs, unreached};
use axon_baselines::bridge::plane::PortState;
use axon_baselines::portland::Level;
use axon_fabric::model::{End, Fabric, Fault, FaultKind, Network};
use axon_node::Drop;
use axon_sim::baselines::Baseline;
use axon_sim::{Options, PingPlan, World};
use axon_wire::{PortNo, Span};
use std::net::Ipv4Addr;

/// Long enough for bridges to detect that their ports to hosts are edge ports.
const ETHERNET_BOOT: Span = Span::from_secs(5);
/// Long enough for PortLand's switches to learn their locations, and for hosts to announce
/// themselves a second time.
const PORTLAND_BOOT: Span = Span::from_millis(2500);

fn fabric(network: &str, topology: &str) -> Fabric {
    let text =
        format!("name: t\nnetwork: {network}\ntopology: {topology}\ntimers: {{heartbeat: 20ms}}\n");
    common::fabric(&text)
}

fn boot(network: &str, topology: &str, span: Span) -> World {
    let mut world = World::new(&fabric(network, topology), 1);
    assert!(world.all_have_addresses(), "fixed ones");
    world.run_for(span);
    world
}

/// Asserts that every pair of connected hosts pings, and that every frame is accounted for.
fn assert_whole(world: &mut World, tries: u16, context: &str) {
    let hosts = world.truth().connected_hosts();
    assert!(hosts.len() > 1, "{context}");
    let silent = unreached(world, &pairs(&hosts), tries);
    let drops: Vec<_> = Drop::ALL
        .iter()
        .map(|&reason| (reason.name(), world.engine().accounts().dropped[reason as usize]))
        .filter(|&(_, count)| count > 0)
        .collect();
    assert!(silent.is_empty(), "{context}: no answer: {silent:?}; {drops:?}");
    world.engine().check_conservation().unwrap_or_else(|fault| panic!("{context}: {fault}"));
}

/// Links between bridges whose ports forward at both ends.
fn forwarding(world: &World) -> Vec<usize> {
    let forwards = |switch: usize, port: PortNo| match world.nodes().baseline(switch) {
        Some(Baseline::Bridge(node)) => node.bridge().state(port) == PortState::Forwarding,
        _ => false,
    };
    let links = world.fabric().links.iter().enumerate();
    let open = links.filter(|(_, link)| {
        forwards(link.a.switch, link.a.port) && forwards(link.b.switch, link.b.port)
    });
    open.map(|(index, _)| index).collect()
}

/// The link between bridges at the root port of `switch`.
fn link_to_root(world: &World, switch: usize) -> usize {
    let Some(Baseline::Bridge(node)) = world.nodes().baseline(switch) else { panic!("no bridge") };
    let end = End { switch, port: node.rstp().root_port().expect("not the root") };
    let mut links = world.fabric().links.iter();
    links.position(|link| link.a == end || link.b == end).expect("a link between switches")
}

/// Frames that bridges have forwarded and that were not discarded behind the next link: one end of
/// each link outside the tree forwards, the other discards.
fn passed(world: &World) -> i64 {
    let switches = 0..world.fabric().switches.len();
    let counters =
        switches.filter_map(|switch| Some(world.nodes().baseline(switch)?.ports().counters()));
    let (mut sent, mut ended) = (0, 0);
    for counters in counters {
        let total = counters.total();
        sent += total.tx_frames;
        ended += counters.port(PortNo::CONTROL).rx_frames + total.dropped(Drop::Blocked);
    }
    sent as i64 - ended as i64
}

fn sent_by_host(world: &World, host: usize) -> u64 {
    world.engine().station(world.layout().host_station(host)).unwrap().accounts().sent
}

#[test]
fn bridges_make_a_tree_of_any_graph_and_a_broadcast_passes_each_link_of_it_once() {
    for topology in [
        "{ring: {switches: 6}}",
        "{torus: {rows: 4, cols: 4}}",
        "{random: {switches: 12, degree: 4}}",
    ] {
        let mut world = boot("ethernet", topology, ETHERNET_BOOT);
        let (switches, hosts) = (world.fabric().switches.len(), world.fabric().hosts.len());
        assert_eq!(forwarding(&world).len(), switches - 1, "{topology}");
        // An ARP request for a free address, repeated as often as the host does.
        let (before, asked) = (passed(&world), sent_by_host(&world, 0));
        let nobody = Ipv4Addr::new(10, 0, 255, 1);
        world.ping(0, PingPlan::until_reply(nobody, Span::from_millis(100), 1)).unwrap();
        world.run_for(Span::from_millis(50));
        let asked = sent_by_host(&world, 0) - asked;
        assert!(asked > 0);
        let expected = asked as i64 * (switches - 1 + hosts - 1) as i64;
        assert_eq!(passed(&world) - before, expected, "{topology}: {asked} broadcasts");
        assert_whole(&mut world, 5, topology);
    }
}

#[test]
fn bridges_take_another_way_within_a_second_of_a_cut() {
    let mut world = boot("ethernet", "{torus: {rows: 3, cols: 3}}", ETHERNET_BOOT);
    assert_whole(&mut world, 5, "before");
    // The link by which s9 reaches the root, while h1 pings h9 a thousand times a second; with that
    // one cut, the next one.
    let mut longest = Span::ZERO;
    let mut cut = Vec::new();
    for _ in 0..3 {
        let link = link_to_root(&world, 8);
        assert!(!cut.contains(&link));
        let ping = common::start_steady(&mut world, 0, 8, Span::from_millis(1500));
        // A request is in flight.
        world.run_for(Span::from_millis(100) + Span::from_micros(5));
        world.inject(FaultKind::LinkDown(link));
        world.run_for(Span::from_millis(2600));
        let stats = world.ping_stats(ping).unwrap();
        assert!(stats.gap_max < Span::from_secs(1), "link {link}: {stats:?}");
        longest = longest.max(stats.gap_max);
        assert_eq!(forwarding(&world).len(), 8, "link {link} cut");
        cut.push(link);
    }
    for link in cut {
        world.inject(FaultKind::LinkUp(link));
    }
    world.run_for(Span::from_secs(5));
    println!("at most {longest} without an answered request");
    assert_whole(&mut world, 5, "after");
}

#[test]
fn bridges_find_another_root_when_it_dies_and_go_back_to_it() {
    let mut world = boot("ethernet", "{torus: {rows: 3, cols: 3}}", ETHERNET_BOOT);
    assert_whole(&mut world, 5, "before");
    world.inject(FaultKind::SwitchDown(0));
    world.run_for(Span::from_secs(25));
    assert_eq!(forwarding(&world).len(), 7);
    assert_whole(&mut world, 5, "without the root");
    world.inject(FaultKind::SwitchUp(0));
    world.run_for(ETHERNET_BOOT);
    assert_eq!(forwarding(&world).len(), 8);
    assert_whole(&mut world, 5, "with the root again");
}

fn manager(world: &World) -> &axon_baselines::portland::ManagerNode {
    match world.nodes().baseline(world.layout().controller_station()) {
        Some(Baseline::Manager(node)) => node,
        _ => panic!("no fabric manager"),
    }
}

fn portland(world: &World, switch: usize) -> &axon_baselines::portland::PortLandNode {
    match world.nodes().baseline(switch) {
        Some(Baseline::PortLand(node)) => node,
        _ => panic!("s{} is no PortLand switch", switch + 1),
    }
}

#[test]
fn portland_finds_levels_and_pods_of_a_fat_tree_and_all_pairs_ping() {
    let mut world = boot("portland", "{fat_tree: {k: 4}}", PORTLAND_BOOT);
    assert_eq!(manager(&world).fat_tree(), Some(true));
    assert_eq!((manager(&world).switches(), manager(&world).hosts().len()), (20, 16));
    for switch in 0..20 {
        let level = [Level::Edge, Level::Aggregation, Level::Core][switch / 8];
        assert_eq!(portland(&world, switch).level(), level, "s{}", switch + 1);
    }
    let location = |switch: usize| portland(&world, switch).plane().location().unwrap();
    for switch in 0..8 {
        let mate = location(switch ^ 1);
        assert_eq!(location(switch).pod, mate.pod, "two edge switches to a pod");
        assert_ne!(location(switch).position, mate.position);
        assert!((0..8).filter(|&other| location(other).pod == mate.pod).count() == 2);
    }
    assert_whole(&mut world, 5, "fat tree");
    let counters = manager(&world).counters();
    assert_eq!((counters.broadcast, counters.routes), (0, 0), "hosts announced themselves");
    assert!(counters.answered >= 240, "{counters:?}");
}

#[test]
fn portland_asks_everyone_for_an_address_that_nobody_has_registered() {
    let mut world = boot("portland", "{fat_tree: {k: 4}}", PORTLAND_BOOT);
    let received = |world: &World| -> Vec<u64> {
        let stations = (0..16).map(|host| world.layout().host_station(host));
        stations.map(|s| world.engine().station(s).unwrap().accounts().received).collect()
    };
    let (before, asked) = (received(&world), sent_by_host(&world, 0));
    let nobody = Ipv4Addr::new(10, 0, 255, 1);
    world.ping(0, PingPlan::until_reply(nobody, Span::from_millis(100), 1)).unwrap();
    world.run_for(Span::from_millis(10));
    let asked = sent_by_host(&world, 0) - asked;
    assert!(asked > 0);
    assert_eq!(manager(&world).counters().broadcast, asked);
    let after = received(&world);
    for host in 1..16 {
        let requests = after[host] - before[host];
        // An edge switch sends discovery messages on all ports, every 20 ms.
        assert!((asked..=asked + 1).contains(&requests), "h{}: {requests}", host + 1);
    }
    assert!(after[0] - before[0] <= 1, "not the one that asks");
}

#[test]
fn portland_goes_round_what_breaks_in_a_fat_tree() {
    let mut world = boot("portland", "{fat_tree: {k: 4}}", PORTLAND_BOOT);
    assert_whole(&mut world, 5, "before");
    // s1-s9 (edge to aggregation), then an aggregation switch, then a core switch, then a link from
    // aggregation to core in another pod; each in addition to the others.
    let link = |world: &World, a: usize, b: usize| {
        let mut links = world.fabric().links.iter();
        links.position(|link| (link.a.switch, link.b.switch) == (a, b)).unwrap()
    };
    let faults = [
        FaultKind::LinkDown(link(&world, 0, 8)),
        FaultKind::SwitchDown(10),
        FaultKind::SwitchDown(16),
        FaultKind::LinkDown(link(&world, 12, 17)),
    ];
    for fault in faults {
        world.inject(fault);
        world.run_for(Span::from_millis(200));
        assert_whole(&mut world, 5, &format!("{fault:?}"));
    }
    assert!(manager(&world).counters().routes > 0, "rules alone do not do it");
    for fault in [FaultKind::SwitchUp(16), FaultKind::SwitchUp(10)] {
        world.inject(fault);
        world.run_for(Span::from_secs(1));
        assert_whole(&mut world, 5, &format!("{fault:?}"));
    }
}

#[test]
fn portland_runs_on_any_graph_by_the_managers_shortest_paths() {
    for topology in ["{torus: {rows: 4, cols: 4}}", "{random: {switches: 10, degree: 4}}"] {
        let mut world = boot("portland", topology, PORTLAND_BOOT);
        assert_eq!(manager(&world).fat_tree(), Some(false));
        assert_whole(&mut world, 5, topology);
        assert!(manager(&world).counters().routes > 0);
        world.inject(FaultKind::LinkDown(0));
        world.run_for(Span::from_millis(200));
        assert_whole(&mut world, 5, "with a link less");
        world.inject(FaultKind::LinkSilent(1));
        world.run_for(Span::from_millis(500));
        assert_whole(&mut world, 5, "with a silent link");
    }
}

#[test]
fn portland_follows_a_host_that_moves() {
    let mut own = fabric("portland", "{fat_tree: {k: 4}}");
    own.switches[6].ports += 1;
    let spare = common::end(6, own.switches[6].ports - 1);
    let mut world = World::new(&own, 1);
    world.run_for(PORTLAND_BOOT);
    assert_whole(&mut world, 5, "before");
    // While h16 pings it, h1 moves to another pod; h1's former switch sends h16 the new address.
    let ping = common::start_steady(&mut world, 15, 0, Span::from_secs(4));
    world.run_for(Span::from_millis(500));
    world.move_host(0, spare);
    world.run_for(Span::from_millis(5000));
    let stats = world.ping_stats(ping).unwrap();
    println!("{} without an answered request", stats.gap_max);
    assert!(stats.gap_max < Span::from_secs(2), "{stats:?}");
    // A host's stack that learns of the move discards all its neighbours, and requests one a
    // second.
    assert_whole(&mut world, 300, "after the move");
}

#[test]
fn portland_forwards_without_its_manager_and_the_next_manager_learns_all_it_needs() {
    let mut world = boot("portland", "{fat_tree: {k: 4}}", PORTLAND_BOOT);
    assert_whole(&mut world, 5, "before");
    let places = |world: &World| -> Vec<_> {
        (0..8).map(|switch| portland(world, switch).plane().location()).collect()
    };
    let before = places(&world);
    world.inject(FaultKind::ControllerDown);
    world.run_for(Span::from_secs(1));
    let hosts: Vec<usize> = (0..16).collect();
    assert!(unreached(&mut world, &pairs(&hosts), 5).is_empty(), "neighbours are known");
    world.inject(FaultKind::ControllerUp);
    world.run_for(PORTLAND_BOOT);
    assert_eq!((manager(&world).switches(), manager(&world).hosts().len()), (20, 16));
    assert_eq!(places(&world), before, "nobody moves");
    assert_whole(&mut world, 5, "after the restart");
}

#[test]
fn static_multipath_uses_every_link_of_a_fat_tree() {
    let mut world = boot("ecmp", "{fat_tree: {k: 4}}", Span::from_millis(10));
    assert_whole(&mut world, 5, "ecmp");
    for (index, link) in world.fabric().links.iter().enumerate() {
        for side in 0..2 {
            let sent = world.engine().fates(axon_sim::links::LinkId(index), side).sent;
            assert!(sent > 0, "nothing from side {side} of {link:?}");
        }
    }
    // A switch avoids its own dead ports, but does not learn of dead ports further away.
    let mut world = boot("ecmp", "{torus: {rows: 3, cols: 3}}", Span::from_millis(10));
    assert_whole(&mut world, 5, "torus");
}

#[test]
fn other_networks_give_the_same_trace_for_the_same_seed() {
    for network in ["ethernet", "portland", "ecmp"] {
        let hash = || {
            let mut world = boot(network, "{ring: {switches: 4}}", Span::from_secs(4));
            assert_whole(&mut world, 5, network);
            (world.engine().trace_hash(), world.now())
        };
        assert_eq!(hash(), hash(), "{network}");
    }
}

#[test]
fn a_scenario_runs_on_every_network_as_on_ours() {
    for network in ["ethernet", "portland", "ecmp"] {
        let mut fabric = fabric(network, "{ring: {switches: 4}}");
        assert_ne!(fabric.network, Network::Axon);
        // A static table never reflects a broken link; the other networks find the other path.
        if fabric.network != Network::Ecmp {
            let at = Span::from_secs(8);
            fabric.faults.push(Fault { at, what: FaultKind::LinkDown(1) });
        }
        let report = axon_sim::run(&fabric, Options::default());
        assert!(report.passed(), "{network}: {}", report.to_json());
        assert_eq!((report.hosts, report.addressed), (4, 4));
    }
}

/// A random graph with lossy links in which links break and recover at random; in the end all are
/// up.
fn survives(network: &str, seed: u64) {
    let mut random = oorandom::Rand64::new(u128::from(seed));
    let topology = format!("{{random: {{switches: 9, degree: 4, seed: {seed}}}}}");
    let mut own = fabric(network, &topology);
    own.links.iter_mut().for_each(|link| link.wire.loss_ppm = 10_000);
    let mut world = World::new(&own, seed);
    world.run_for(ETHERNET_BOOT);
    let links = own.links.len() as u64;
    for _ in 0..8 {
        let link = random.rand_range(0..links) as usize;
        let switch = random.rand_range(1..9) as usize;
        world.inject(match random.rand_range(0..5) {
            0 => FaultKind::LinkUp(link),
            1 => FaultKind::SwitchDown(switch),
            2 => FaultKind::SwitchUp(switch),
            3 => FaultKind::LinkSilent(link),
            _ => FaultKind::LinkDown(link),
        });
        world.run_for(Span::from_millis(random.rand_range(0..800)));
        let context = format!("{network}, seed {seed}, at {}", world.now());
        world.engine().check_conservation().unwrap_or_else(|fault| panic!("{context}: {fault}"));
    }
    (0..links).for_each(|link| world.inject(FaultKind::LinkUp(link as usize)));
    (1..9).for_each(|switch| world.inject(FaultKind::SwitchUp(switch)));
    // Longer than any bridge keeps information about a lost root.
    world.run_for(Span::from_secs(30));
    if network == "ethernet" {
        assert_eq!(forwarding(&world).len(), 8, "seed {seed}");
    }
    assert_whole(&mut world, 50, &format!("{network}, seed {seed}"));
}

#[test]
fn bridges_survive_random_faults_on_lossy_links() {
    (0..6).for_each(|seed| survives("ethernet", seed));
}

#[test]
fn portland_survives_random_faults_on_lossy_links() {
    (0..6).for_each(|seed| survives("portland", seed));
}

#[test]
fn two_threads_run_other_networks_as_one_does() {
    for network in ["ethernet", "portland", "ecmp"] {
        let hash = |threads| {
            let mut world = World::new(&fabric(network, "{torus: {rows: 3, cols: 3}}"), 5);
            world.engine_mut().set_threads(threads);
            world.run_for(Span::from_secs(4));
            let hosts: Vec<usize> = (0..9).collect();
            assert!(unreached(&mut world, &pairs(&hosts), 10).is_empty(), "{network}");
            (world.engine().trace_hash(), world.engine().packet_hops())
        };
        assert_eq!(hash(1), hash(2), "{network}");
    }
}
