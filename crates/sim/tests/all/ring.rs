//! A ring of three switches: boot, reachability, exact repetition.

use crate::common::{self, assert_whole, boot, boot_with, line, pairs, ring, unreached};
use axon_sim::{Options, World};
use axon_wire::PortNo;

#[test]
fn in_a_ring_of_three_all_pairs_ping() {
    for fixed in [false, true] {
        let mut world = boot(&ring(3, 2, fixed));
        assert_whole(&mut world);
    }
}

#[test]
fn on_a_line_of_five_all_pairs_ping() {
    let mut world = boot(&line(5, 1, false));
    assert_whole(&mut world);
}

#[test]
fn hosts_on_one_switch_ping() {
    let mut world = boot(&line(1, 3, false));
    assert_whole(&mut world);
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let hash = |seed| {
        let mut builder = ring(3, 2, false);
        builder.loss(20_000);
        let mut world = World::new(&builder.fabric, seed);
        world.run_until(common::BOOT);
        let hosts: Vec<usize> = (0..6).collect();
        unreached(&mut world, &pairs(&hosts), 10);
        (world.engine().trace_hash(), world.engine().events(), world.now())
    };
    let first = hash(11);
    assert_eq!(first, hash(11));
    assert_ne!(first.0, hash(12).0);
}

#[test]
fn transit_switches_hold_no_routes() {
    // h1 and h3 are at the ends of a line of three; h2, in the middle, stays silent.
    let mut world = boot_with(&line(3, 1, true), 3);
    assert!(unreached(&mut world, &[(0, 2), (2, 0)], 20).is_empty());
    assert_eq!(common::table_entries(&world, 1), 0, "what passes a switch leaves nothing there");
    let routes =
        |switch: usize, port: PortNo| world.switch(switch).expect("on").plane().routes_at(port);
    let fabric = world.fabric();
    for (host, other) in [(0, 2), (2, 0)] {
        let edge = &fabric.hosts[host];
        let routes = routes(edge.switch, edge.port);
        assert_eq!(routes.len(), 1, "one route, on the host's own port: {routes:?}");
        assert_eq!(routes[0].0, fabric.hosts[other].mac.into());
    }
    common::assert_sound(&world);
}

#[test]
fn a_scenario_runs_from_boot_to_report() {
    let report = axon_sim::run(&ring(3, 2, false).fabric, Options::default());
    assert!(report.passed(), "{}", report.to_json());
    assert_eq!((report.hosts, report.addressed, report.rounds.len()), (6, 6, 1));
    assert_eq!((report.rounds[0].pairs, report.rounds[0].answered), (30, 30));
    let again = axon_sim::run(&ring(3, 2, false).fabric, Options::default());
    assert_eq!(report.trace_hash, again.trace_hash);
}
