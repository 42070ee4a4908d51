//! Fabrics as programs: bridge, fat tree, PortLand, labels, stacks, VL2. They deliver on the paths
//! of their papers, survive failures, and equal the native networks.

use crate::common::{self, pairs, unreached};
use axon_baselines::bridge::plane::PortState;
use axon_baselines::portland::plane::Location;
use axon_fabric::model::{Fabric, FaultKind};
use axon_pipeline::{Parsed, Target};
use axon_programs::portland::PortLand;
use axon_programs::{Plan, ProgramKind};
use axon_sim::baselines::Baseline;
use axon_sim::classes::Class;
use axon_sim::links::LinkId;
use axon_sim::{Options, PingPlan, World};
use axon_wire::{MacAddr, PortNo, Span};
use std::collections::{BTreeMap, BTreeSet};

const TREE: &str = "{fat_tree: {k: 4}}";
/// Leaves s1 to s4 with two hosts each, spines s5 and s6.
const CLOS: &str = "{listed: {switches: [s1, s2, s3, s4, s5, s6], \
                    hosts: {h1: s1, h2: s1, h3: s2, h4: s2, h5: s3, h6: s3, h7: s4, h8: s4}, \
                    links: [[s1, s5], [s1, s6], [s2, s5], [s2, s6], \
                    [s3, s5], [s3, s6], [s4, s5], [s4, s6]]}}";
/// Long enough for bridges to detect that their ports to hosts are edge ports.
const BRIDGE_BOOT: Span = Span::from_secs(5);
/// Long enough for PortLand's switches to learn their locations.
const PORTLAND_BOOT: Span = Span::from_millis(2500);
/// Long enough for programs that follow the plan.
const BOOT: Span = Span::from_millis(50);

/// A fabric whose switches run `key`: `program: NAME` or `network: NAME`.
fn fabric(key: &str, topology: &str) -> Fabric {
    let text = format!("name: t\n{key}\ntopology: {topology}\ntimers: {{heartbeat: 20ms}}\n");
    common::fabric(&text)
}

fn boot(key: &str, topology: &str, seed: u64, span: Span) -> World {
    let mut world = World::new(&fabric(key, topology), seed);
    world.run_for(span);
    world
}

fn hosts(world: &World) -> Vec<usize> {
    (0..world.fabric().hosts.len()).collect()
}

/// Asserts that every pair of hosts pings, and that every frame is accounted for.
fn assert_whole(world: &mut World, tries: u16, context: &str) {
    let all = pairs(&hosts(world));
    let silent = unreached(world, &all, tries);
    assert!(silent.is_empty(), "{context}: no answer: {silent:?}");
    world.engine().check_conservation().unwrap_or_else(|fault| panic!("{context}: {fault}"));
    for switch in 0..world.fabric().switches.len() {
        let program = world.nodes().program(switch).map(|node| node.program());
        let why = program.and_then(|program| program.failure().or_else(|| program.refusal()));
        assert_eq!(why, None, "{context}: s{}", switch + 1);
    }
}

/// Number of switches on the path of a ping from one host to another and back, computed from the
/// links that it passes: one more link than switches, each way. A link that it passes twice carries
/// its bytes twice, and headers add less than half of them. Neighbours are resolved before.
fn switches_there_and_back(world: &mut World, from: usize, to: usize) -> usize {
    world.count_classes();
    assert_eq!(unreached(world, &[(from, to)], 1), [], "{from} to {to}");
    let links = (0..world.engine().links().len()).map(LinkId);
    let sides = links.flat_map(|link| [(link, 0), (link, 1)]);
    let carried = sides.filter_map(|(link, side)| world.engine().class_bytes(link, side));
    let carried: Vec<u64> = carried.map(|bytes| bytes.of(Class::Data)).collect();
    let once = carried.iter().copied().filter(|&bytes| bytes > 0).min().unwrap();
    carried.iter().map(|bytes| (bytes / once) as usize).sum::<usize>() - 2
}

/// Length of the shortest path, in switches.
fn shortest(world: &World, from: usize, to: usize) -> usize {
    let of = |host: usize| world.fabric().hosts[host].switch;
    let path = axon_sim::probe::shortest_path(world.fabric(), of(from), of(to));
    path.unwrap().len()
}

#[test]
fn all_pairs_ping_on_paths_as_long_as_those_of_the_papers() {
    for (program, topology) in [
        ("fat_tree", TREE),
        ("portland", TREE),
        ("tags", TREE),
        ("stack", TREE),
        ("vl2", TREE),
        ("vl2", CLOS),
        ("tags", "{torus: {rows: 3, cols: 4}}"),
        ("stack", "{torus: {rows: 3, cols: 4}}"),
    ] {
        let mut world = boot(&format!("program: {program}"), topology, 1, BOOT);
        let context = format!("{program} on {topology}");
        assert_whole(&mut world, 3, &context);
        for (from, to) in pairs(&hosts(&world)) {
            let there_and_back = switches_there_and_back(&mut world, from, to);
            let shortest = shortest(&world, from, to);
            // Encapsulated packets pass through the middle.
            let expected = match program {
                "vl2" if shortest == 3 && topology == TREE => 5,
                _ => shortest,
            };
            assert_eq!(there_and_back, 2 * expected, "{context}: {from} to {to}");
        }
    }
}

#[test]
fn a_link_that_fails_is_survived_and_pings_go_on() {
    for (program, topology) in [
        ("fat_tree", TREE),
        ("portland", TREE),
        ("tags", TREE),
        ("stack", TREE),
        ("vl2", TREE),
        ("vl2", CLOS),
        ("tags", "{ring: {switches: 6}}"),
        ("stack", "{ring: {switches: 6}}"),
    ] {
        let mut world = boot(&format!("program: {program}"), topology, 1, BOOT);
        let last = world.fabric().hosts.len() - 1;
        for link in 0..world.fabric().links.len() {
            let context = format!("{program} on {topology} without link {link}");
            let ping = common::start_steady(&mut world, 0, last, Span::from_millis(100));
            world.run_for(Span::from_millis(50) + Span::from_micros(5));
            world.inject(FaultKind::LinkDown(link));
            world.run_for(Span::from_millis(60));
            let stats = world.ping_stats(ping).unwrap();
            assert!(stats.gap_max < Span::from_millis(20), "{context}: {stats:?}");
            assert_whole(&mut world, 1, &context);
            world.inject(FaultKind::LinkUp(link));
            world.run_for(Span::from_millis(10));
        }
    }
}

#[test]
fn a_silent_link_is_found_by_its_hellos_and_pings_go_on() {
    for (program, topology) in [
        ("fat_tree", TREE),
        ("portland", TREE),
        ("tags", "{ring: {switches: 5}}"),
        ("stack", "{ring: {switches: 5}}"),
        ("vl2", CLOS),
    ] {
        let mut world = boot(&format!("program: {program}"), topology, 1, BOOT);
        let last = world.fabric().hosts.len() - 1;
        let end = world.fabric().links[1].a;
        for fault in [FaultKind::LinkSilent(0), FaultKind::LinkSilentFrom(1, end)] {
            let context = format!("{program} on {topology}: {fault:?}");
            let ping = common::start_steady(&mut world, 0, last, Span::from_secs(3));
            world.run_for(Span::from_millis(50) + Span::from_micros(5));
            world.inject(fault);
            world.run_for(Span::from_millis(3100));
            let stats = world.ping_stats(ping).unwrap();
            assert!(stats.gap_max < Span::from_millis(1500), "{context}: {stats:?}");
            assert_whole(&mut world, 1, &context);
            world.inject(FaultKind::LinkUp(0));
            world.inject(FaultKind::LinkUp(1));
            world.run_for(Span::from_secs(1));
            assert_whole(&mut world, 1, &context);
        }
    }
}

#[test]
fn a_switch_that_restarts_fills_its_tables_and_learns_what_has_failed_meanwhile() {
    for (program, topology) in [("fat_tree", TREE), ("portland", TREE), ("vl2", TREE)] {
        let mut world = boot(&format!("program: {program}"), topology, 1, BOOT);
        let context = format!("{program} on {topology}");
        // s13 is an aggregation switch, s17 of the core.
        for switch in [12, 16] {
            world.inject(FaultKind::SwitchDown(switch));
            world.run_for(Span::from_millis(10));
            assert_whole(&mut world, 1, &context);
            world.inject(FaultKind::LinkDown(3));
            world.inject(FaultKind::SwitchUp(switch));
            world.run_for(Span::from_millis(10));
            assert_whole(&mut world, 1, &context);
            world.inject(FaultKind::LinkUp(3));
            world.run_for(Span::from_secs(5));
            assert_whole(&mut world, 1, &context);
        }
    }
}

/// Links between switches whose ports forward at both ends.
fn forwarding(world: &World) -> Vec<usize> {
    let forwards = |switch: usize, port: PortNo| match world.nodes().baseline(switch) {
        Some(Baseline::Bridge(node)) => node.bridge().state(port) == PortState::Forwarding,
        Some(Baseline::Program(node)) => {
            node.pipeline().tables().objects().members(0).contains(&port.0)
        }
        _ => false,
    };
    let links = world.fabric().links.iter().enumerate();
    let open = links.filter(|(_, link)| {
        forwards(link.a.switch, link.a.port) && forwards(link.b.switch, link.b.port)
    });
    open.map(|(index, _)| index).collect()
}

/// Bytes of hosts' frames on each link, when each host has pinged each other once.
fn bytes_by_link(world: &mut World) -> Vec<u64> {
    world.count_classes();
    let all = pairs(&hosts(world));
    assert_eq!(unreached(world, &all, 1), []);
    let links = (0..world.engine().links().len()).map(LinkId);
    links.map(|link| world.nodes().class_bytes(link).of(Class::Data)).collect()
}

#[test]
fn a_bridge_as_a_program_has_the_tree_of_the_native_one_and_every_link_carries_the_same() {
    for (topology, seed) in [
        ("{ring: {switches: 6}}", 1),
        ("{torus: {rows: 3, cols: 3}}", 2),
        ("{random: {switches: 10, degree: 4}}", 3),
        ("{random: {switches: 12, degree: 3, seed: 7}}", 4),
        (TREE, 5),
    ] {
        let mut native = boot("network: ethernet", topology, seed, BRIDGE_BOOT);
        let mut program = boot("program: bridge", topology, seed, BRIDGE_BOOT);
        for cut in [None, Some(0), Some(2)] {
            let context = format!("{topology}, link {cut:?} cut");
            for world in [&mut native, &mut program] {
                if let Some(link) = cut {
                    world.inject(FaultKind::LinkDown(link));
                    world.run_for(Span::from_secs(3));
                }
                assert!(world.is_ready(), "{context}: {:?}", world.unready());
            }
            assert_eq!(forwarding(&program), forwarding(&native), "{context}");
            assert_eq!(forwarding(&program).len(), program.fabric().switches.len() - 1);
            assert_whole(&mut native, 5, &context);
            assert_whole(&mut program, 5, &context);
            assert_eq!(bytes_by_link(&mut program), bytes_by_link(&mut native), "{context}");
            for world in [&mut native, &mut program] {
                cut.into_iter().for_each(|link| world.inject(FaultKind::LinkUp(link)));
                world.run_for(Span::from_secs(5));
            }
        }
    }
}

/// Egress ports of frames from other switches, by switch and destination host.
type Ways = BTreeMap<(usize, usize), BTreeSet<u16>>;

fn native_ways(world: &World) -> Ways {
    let mut ways = Ways::new();
    let of = |switch: usize| match world.nodes().baseline(switch) {
        Some(Baseline::PortLand(node)) => node,
        _ => panic!("s{} is no PortLand switch", switch + 1),
    };
    for (number, host) in world.fabric().hosts.iter().enumerate() {
        let known = of(host.switch).hosts().find(|(amac, _)| *amac == host.mac);
        let location = Location::of(known.unwrap().1.pmac.unwrap()).unwrap();
        for switch in (0..world.fabric().switches.len()).filter(|&switch| switch != host.switch) {
            let ports = of(switch).plane().ports_towards(location).cloned().unwrap_or_default();
            let up = ports.iter().filter(|port| of(switch).ports().wires().is_up(**port));
            ways.insert((switch, number), up.map(|port| port.0).collect());
        }
    }
    ways
}

fn program_ways(world: &World) -> Ways {
    let plan: Plan = axon_fabric::program::plan(world.fabric());
    let design = PortLand::of(&plan).unwrap();
    let mut ways = Ways::new();
    for (number, host) in plan.hosts.iter().enumerate() {
        for switch in (0..plan.nodes.len()).filter(|&switch| switch != host.node as usize) {
            let own = plan.hosts.iter().find(|other| other.node as usize == switch);
            let ingress = own.map_or(PortNo(0), |own| own.port);
            let mut frame = [0; 60];
            frame[..6].copy_from_slice(&design.pmac(host).0);
            frame[6..12].copy_from_slice(&MacAddr([2, 0, 0, 0, 9, 9]).0);
            frame[12..14].copy_from_slice(&[8, 0]);
            let tables = world.nodes().program(switch).unwrap().pipeline().tables();
            let found = tables.find(&frame, &Parsed::ethernet(&frame), ingress, 0);
            let ports = match found.unwrap().1.target {
                Target::Interface(number) => {
                    [tables.objects().interface(number).unwrap().port.0].into()
                }
                Target::Spread(group) => tables.objects().members(group).iter().copied().collect(),
                _ => BTreeSet::new(),
            };
            ways.insert((switch, number), ports);
        }
    }
    ways
}

#[test]
fn portland_as_a_program_has_the_ways_of_the_native_one() {
    for topology in [TREE, "{fat_tree: {k: 6, hosts_per_edge: 1}}"] {
        let mut native = boot("network: portland", topology, 1, PORTLAND_BOOT);
        let mut program = boot("program: portland", topology, 1, BOOT);
        // The native manager knows only hosts that have sent a frame.
        assert_whole(&mut native, 5, topology);
        assert_whole(&mut program, 1, topology);
        assert_eq!(program_ways(&program), native_ways(&native), "{topology}");
    }
}

#[test]
fn portland_as_a_program_delivers_what_the_native_one_does_when_any_link_fails() {
    let mut native = boot("network: portland", TREE, 3, PORTLAND_BOOT);
    let mut program = boot("program: portland", TREE, 3, BOOT);
    for link in 0..32 {
        for world in [&mut native, &mut program] {
            world.inject(FaultKind::LinkDown(link));
            world.run_for(Span::from_millis(300));
            assert_whole(world, 5, &format!("link {link}"));
            world.inject(FaultKind::LinkUp(link));
            world.run_for(Span::from_millis(300));
        }
    }
}

#[test]
fn labels_and_stacks_and_two_level_lookup_take_paths_as_short_as_static_multipath() {
    for (program, topology, seed) in [
        ("fat_tree", TREE, 1),
        ("vl2", CLOS, 1),
        ("tags", "{random: {switches: 10, degree: 3}}", 2),
        ("stack", "{random: {switches: 10, degree: 3}}", 3),
        ("tags", "{random: {switches: 12, degree: 4, seed: 9}}", 4),
        ("stack", "{torus: {rows: 4, cols: 4}}", 5),
    ] {
        let mut native = boot("network: ecmp", topology, seed, BOOT);
        let mut own = boot(&format!("program: {program}"), topology, seed, BOOT);
        let context = format!("{program} on {topology}");
        assert_whole(&mut native, 3, &context);
        assert_whole(&mut own, 3, &context);
        for (from, to) in pairs(&hosts(&own)) {
            let theirs = switches_there_and_back(&mut native, from, to);
            assert_eq!(switches_there_and_back(&mut own, from, to), theirs, "{context}");
        }
    }
}

/// Links and switches break and recover at random under lossy links; in the end all are up.
fn survives(kind: ProgramKind, topology: &str, seed: u64) {
    let mut random = oorandom::Rand64::new(u128::from(seed));
    let mut own = fabric(&format!("program: {kind}"), topology);
    own.links.iter_mut().for_each(|link| link.wire.loss_ppm = 10_000);
    let mut world = World::new(&own, seed);
    world.run_for(BRIDGE_BOOT);
    let (links, switches) = (own.links.len() as u64, own.switches.len() as u64);
    for _ in 0..12 {
        let link = random.rand_range(0..links) as usize;
        let switch = random.rand_range(0..switches) as usize;
        world.inject(match random.rand_range(0..6) {
            0 | 1 => FaultKind::LinkUp(link),
            5 => FaultKind::LinkSilent(link),
            2 => FaultKind::SwitchDown(switch),
            3 => FaultKind::SwitchUp(switch),
            _ => FaultKind::LinkDown(link),
        });
        world.run_for(Span::from_millis(random.rand_range(0..800)));
        let context = format!("{kind}, seed {seed}, at {}", world.now());
        world.engine().check_conservation().unwrap_or_else(|fault| panic!("{context}: {fault}"));
    }
    (0..links).for_each(|link| world.inject(FaultKind::LinkUp(link as usize)));
    (0..switches).for_each(|switch| world.inject(FaultKind::SwitchUp(switch as usize)));
    // Longer than any bridge keeps information about a lost root.
    world.run_for(Span::from_secs(30));
    assert_whole(&mut world, 50, &format!("{kind}, seed {seed}"));
}

#[test]
fn programs_survive_random_faults_on_lossy_links() {
    for seed in 0..3 {
        let random = format!("{{random: {{switches: 9, degree: 4, seed: {seed}}}}}");
        survives(ProgramKind::Bridge, &random, seed);
        survives(ProgramKind::Tags, &random, seed);
        survives(ProgramKind::Stack, &random, seed);
        survives(ProgramKind::FatTree, TREE, seed);
        survives(ProgramKind::Portland, TREE, seed);
        survives(ProgramKind::Vl2, CLOS, seed);
    }
}

#[test]
fn two_threads_run_programs_as_one_does() {
    for (program, topology) in [("bridge", "{torus: {rows: 3, cols: 3}}"), ("vl2", TREE)] {
        let hash = |threads| {
            let mut world = World::new(&fabric(&format!("program: {program}"), topology), 5);
            world.engine_mut().set_threads(threads);
            world.run_for(BRIDGE_BOOT);
            world.inject(FaultKind::LinkDown(1));
            world.run_for(Span::from_secs(3));
            let all = pairs(&hosts(&world));
            assert_eq!(unreached(&mut world, &all, 5), [], "{program}");
            (world.engine().trace_hash(), world.engine().packet_hops())
        };
        assert_eq!(hash(1), hash(2), "{program}");
    }
}

#[test]
fn a_host_that_no_plan_has_is_not_answered() {
    let mut world = boot("program: tags", TREE, 1, BOOT);
    let nobody: std::net::IpAddr = "10.0.200.1".parse().unwrap();
    let ping = world.ping(0, PingPlan::until_reply(nobody, Span::from_millis(100), 2)).unwrap();
    world.run_for(Span::from_millis(500));
    assert_eq!(world.ping_stats(ping).unwrap().received, 0);
    world.engine().check_conservation().unwrap();
}

#[test]
fn the_scenarios_of_programs_pass() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let files = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path());
    let is_ours = |path: &std::path::PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("program-"))
    };
    let files: Vec<_> = files.filter(is_ours).collect();
    assert_eq!(files.len(), 6);
    for path in files {
        let fabric = common::fabric(&std::fs::read_to_string(&path).unwrap());
        let report = axon_sim::run(&fabric, Options::default());
        assert!(report.passed(), "{}: {}", path.display(), report.to_json());
    }
}
