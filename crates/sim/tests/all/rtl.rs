//! Fabrics with a switch in gates. They need the shared libraries that `make rtl-model` builds, and
//! are skipped without.

use crate::common::{self, Builder, assert_whole, boot_with, ring};
use crate::needs;
use axon_fabric::model::{Fabric, FaultKind};
use axon_node::{Dataplane, PortView};
use axon_rtl::Model;
use axon_sim::{DataplaneKind, SwitchPlane, World, check_gates};
use axon_wire::PortNo;

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
    let mut builder = ring(3, 1, false);
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
