//! Fabrics with a switch in gates. They need the shared libraries that `make rtl-model` builds, and
//! are skipped without.

use crate::common::{self, Builder, assert_sound, assert_whole, boot_with, pairs, ring, unreached};
use crate::needs;
use axon_fabric::cam::Cam;
use axon_fabric::model::{Fabric, FaultKind};
use axon_node::probe::ProbePlan;
use axon_node::{Dataplane, PortView};
use axon_rtl::Model;
use axon_sim::probe::{finish, plan_along};
use axon_sim::{DataplaneKind, SwitchPlane, World, check_gates};
use axon_wire::{Bytes, PortNo, Span};

/// Switch in gates, of three.
const IN_GATES: usize = 1;

/// Returns whether the simulated device is there, and prints a message if not.
fn is_built(fabric: &Fabric) -> bool {
    let loaded = Model::load(fabric.hop_width);
    loaded.as_ref().err().inspect(|error| needs::skip(&error.to_string()));
    loaded.is_ok()
}

/// A ring of three with a host at each switch; the second one is in gates.
fn ring_in_gates() -> Builder {
    with_gates(ring(3, 1, false))
}

fn with_gates(mut builder: Builder) -> Builder {
    let asked = (DataplaneKind::Rtl, "overrides[0].dataplane".to_owned());
    builder.fabric.dataplanes.overrides.insert(IN_GATES, asked);
    builder
}

fn frames(world: &World, switch: usize) -> u64 {
    let plane = world.switch(switch).expect("it runs").plane();
    let ports = (0..plane.count()).map(PortNo);
    ports.map(|port| plane.counters().port(port).rx_frames).sum()
}

#[test]
fn all_pairs_ping_through_gates_and_the_same_seed_gives_the_same_trace() {
    let builder = ring_in_gates();
    if !is_built(&builder.fabric) {
        return;
    }
    assert_eq!(check_gates(&builder.fabric), Ok(()));
    let run = |seed| {
        let mut world = boot_with(&builder, seed);
        assert_whole(&mut world);
        let planes = [0, 1, 2].map(|switch| world.switch(switch).expect("it runs").plane());
        let in_gates = planes.map(|plane| matches!(plane, SwitchPlane::Rtl(_)));
        assert_eq!(in_gates, [false, true, false]);
        (world.engine().trace_hash(), world.engine().events(), frames(&world, IN_GATES))
    };
    let first = run(5);
    assert!(first.2 > 100, "{first:?}");
    assert_eq!(first, run(5));
    assert_ne!(first.0, run(6).0);
}

#[test]
fn a_switch_in_gates_comes_back_and_carries_what_goes_around() {
    let builder = ring_in_gates();
    if !is_built(&builder.fabric) {
        return;
    }
    let mut world = boot_with(&builder, 1);
    world.restart_node(IN_GATES);
    world.run_for(common::HEARTBEAT * 20);
    assert_whole(&mut world);
    // The link between the other two.
    world.inject(FaultKind::LinkDown(2));
    world.run_for(common::HEARTBEAT * 20);
    let before = frames(&world, IN_GATES);
    assert_whole(&mut world);
    assert!(frames(&world, IN_GATES) > before);
}

#[test]
fn a_probe_through_gates_shows_the_cycles_from_pin_to_pin() {
    let builder = ring_in_gates();
    if !is_built(&builder.fabric) {
        return;
    }
    let mut world = boot_with(&builder, 1);
    for bytes in [60, 1400] {
        let plan = plan_along(world.fabric(), &[0, IN_GATES, 2]).expect("linked");
        let plan = ProbePlan { bytes, count: 3, ..plan };
        let id = world.nodes_mut().probe(0, plan).expect("s1 has power").expect("a good plan");
        let limit = world.now() + Span::from_secs(3);
        let report = finish(&mut world, 0, id, limit).expect("it is finished by then");
        assert_eq!((report.lost, report.returns.len()), (0, 3));
        for probe in &report.returns {
            let times = probe.times().expect("every unit left its record");
            // There and back through the gates, which take 18 cycles of 8 ns. The software between
            // takes no time.
            let expected = [Span::from_nanos(18 * 8), Span::ZERO, Span::from_nanos(18 * 8)];
            let inside: Vec<Span> = times.passages.iter().map(|one| one.residence).collect();
            assert_eq!(inside, expected, "{bytes} bytes");
            assert!(times.passages.iter().all(|one| one.queued == Bytes(0)), "{times:?}");
        }
    }
    // The other way round the gates are the origin.
    let plan = plan_along(world.fabric(), &[IN_GATES, 2]).expect("linked");
    let id = world.nodes_mut().probe(IN_GATES, plan).expect("it has power").expect("a good plan");
    let limit = world.now() + Span::from_secs(3);
    let report = finish(&mut world, IN_GATES, id, limit).expect("it is finished by then");
    let times = report.returns[0].times().expect("every unit left its record");
    assert_eq!(times.passages.len(), 1);
    // Two wires, each with the bytes of the probe twice: the runtime takes whole frames.
    let total = report.returns[0].back_at.since(report.returns[0].sent_at);
    assert!(times.total > Span::from_micros(2) && times.total < total, "{times:?} {total}");
}

#[test]
fn hosts_at_gates_with_a_table_of_one_entry_reach_all_by_masqueraded_addresses() {
    let mut builder = with_gates(ring(3, 2, true));
    builder.fabric.cam = Cam { entries: Some(1), masquerade: true, route_memory: 64 };
    if !is_built(&builder.fabric) {
        return;
    }
    assert_eq!(check_gates(&builder.fabric), Ok(()));
    let mut world = boot_with(&builder, 1);
    let hosts: Vec<usize> = (0..6).collect();
    assert_eq!(unreached(&mut world, &pairs(&hosts), 20), []);
    let slow =
        |world: &World| world.switch(IN_GATES).expect("it runs").edges().counters().slow_path;
    // What follows passes through the gates, by entries of which one is for a true address.
    let before = (slow(&world), frames(&world, IN_GATES));
    for _ in 0..3 {
        assert_eq!(unreached(&mut world, &pairs(&hosts), 1), []);
    }
    assert_eq!(slow(&world), before.0);
    assert!(frames(&world, IN_GATES) > before.1 + 3 * 2 * 5);
    let ports = world.switch(IN_GATES).expect("it runs").plane().snapshot().ports;
    let sizes = ports.iter().map(|port| (port.routes.len(), port.masqueraded.len()));
    assert_eq!(sizes.filter(|size| *size == (1, 4)).count(), 2, "two host ports");
    let misdelivered = hosts.iter().map(|&host| world.host(host).unwrap().misdelivered());
    assert_eq!(misdelivered.sum::<u64>(), 0);
    assert_sound(&world);
    // The other end of a route changes, and the entries with it.
    world.restart_node(IN_GATES);
    world.run_for(Span::from_secs(2));
    assert_eq!(unreached(&mut world, &pairs(&hosts), 50), []);
    assert_sound(&world);
}

#[test]
fn a_fabric_that_the_device_is_too_small_for_is_refused_by_its_key() {
    let parse = |more: &str| {
        common::fabric(&format!("name: a\ntopology: {{ring: {{switches: 3}}}}\n{more}"))
    };
    let refused = |fabric: &Fabric| check_gates(fabric).unwrap_err().to_string();
    let mut ports = parse("overrides: [{switches: [s2], dataplane: rtl}]\n");
    ports.switches[IN_GATES].ports = 6;
    let says = "overrides[0].dataplane: the data plane `rtl` lacks 6 ports (asked for by \
                `topology`; it has 4); expected full, or auto";
    assert_eq!(refused(&ports), says);
    let rate = refused(&parse("dataplane: rtl\nlinks: {rate: 10Gbps}\n"));
    let says = "dataplane: the data plane `rtl` lacks links of 10 Gb/s (asked for by \
                `links.rate`; it has 1 Gb/s); expected full, or auto";
    assert_eq!(rate, says);
    let other = refused(&parse("dataplane: rtl\nnetwork: ethernet\n"));
    assert!(other.starts_with("dataplane: the switches of this network have"), "{other}");
}
