//! What breaks, comes back, moves or changes kind, and how long pings are lost meanwhile.

use crate::common::{
    self, HEARTBEAT, assert_sound, assert_whole, boot, end, line, ring, start_steady, unreached,
};
use axon_fabric::model::FaultKind;
use axon_plane::PortKind;
use axon_wire::{Span, Time};

/// Runs a 1 kHz ping from h1 to h2 over a ring of three, does `fault` in its middle, and
/// returns the longest time without an answered request.
fn gap_of(fault: FaultKind) -> Span {
    let mut world = boot(&ring(3, 1, true));
    assert_whole(&mut world);
    let ping = start_steady(&mut world, 0, 1, Span::from_secs(2));
    world.run_for(Span::from_millis(500));
    world.inject(fault);
    world.run_for(Span::from_millis(2600));
    let stats = world.ping_stats(ping).expect("h1 runs");
    assert!(stats.done && stats.received > 1000, "{stats:?}");
    assert_whole(&mut world);
    println!("{fault:?}: {} without an answered request", stats.gap_max);
    stats.gap_max
}

#[test]
fn a_cut_link_reroutes_at_once() {
    let gap = gap_of(FaultKind::LinkDown(0));
    assert!(gap <= Span::from_millis(5), "carrier loss tells at once: {gap}");
}

#[test]
fn a_silent_link_is_found_by_missed_heartbeats() {
    let gap = gap_of(FaultKind::LinkSilent(0));
    assert!(gap >= HEARTBEAT, "nothing tells but the missing heartbeats: {gap}");
    assert!(gap <= HEARTBEAT * 3 + Span::from_millis(20), "two intervals, then reroute: {gap}");
}

#[test]
fn a_link_that_comes_back_is_used_again() {
    let mut world = boot(&line(2, 1, true));
    assert_whole(&mut world);
    world.inject(FaultKind::LinkDown(0));
    world.run_for(Span::from_millis(500));
    assert_eq!(unreached(&mut world, &[(0, 1)], 3), [(0, 1)]);
    assert_sound(&world);
    world.inject(FaultKind::LinkUp(0));
    world.run_for(Span::from_millis(500));
    assert_whole(&mut world);
}

#[test]
fn a_switch_that_restarts_is_taken_up_again() {
    let mut world = boot(&ring(3, 2, false));
    assert_whole(&mut world);
    world.inject(FaultKind::SwitchDown(1));
    world.run_for(Span::from_millis(500));
    assert_sound(&world);
    assert!(unreached(&mut world, &[(0, 4), (4, 0), (1, 5)], 20).is_empty());
    world.inject(FaultKind::SwitchUp(1));
    let limit = world.now() + Span::from_secs(10);
    assert!(world.run_until_true(limit, axon_sim::World::all_have_addresses));
    assert_whole(&mut world);
}

#[test]
fn traffic_goes_on_without_the_controller_and_it_learns_again() {
    let mut world = boot(&ring(3, 1, false));
    assert_whole(&mut world);
    let before: Vec<_> = (0..3).map(|host| world.address(host)).collect();
    world.inject(FaultKind::ControllerDown);
    world.run_for(Span::from_millis(500));
    assert!(unreached(&mut world, &[(0, 1), (1, 2)], 3).is_empty(), "routes stand at the edge");
    world.inject(FaultKind::ControllerUp);
    world.run_for(Span::from_secs(1));
    assert_eq!(before, (0..3).map(|host| world.address(host)).collect::<Vec<_>>());
    assert_whole(&mut world);
    world.inject(FaultKind::LinkDown(0));
    world.run_for(Span::from_millis(200));
    assert_whole(&mut world);
}

#[test]
fn a_host_that_moves_is_found_at_its_new_port() {
    let mut builder = ring(3, 1, true);
    let spare = builder.spare_ports();
    let mut world = boot(&builder);
    assert_whole(&mut world);
    // To another port of the same switch, then to another switch.
    for to in [spare[1], spare[2]] {
        world.move_host(1, to);
        world.run_for(Span::from_millis(500));
        assert_whole(&mut world);
    }
}

#[test]
fn a_dead_hosts_flows_are_destroyed_everywhere() {
    let mut world = boot(&ring(3, 1, true));
    assert_whole(&mut world);
    let mac = common::mac(2);
    let holders = |world: &axon_sim::World| -> usize {
        (0..3)
            .map(|switch| {
                let tables = world.switch(switch).expect("on").plane().tables();
                let ports = (0..world.fabric().switches[switch].ports).map(axon_wire::PortNo);
                ports.flat_map(|port| tables.routes(port)).filter(|(to, _)| *to == mac).count()
            })
            .sum()
    };
    assert_eq!(holders(&world), 2);
    world.inject(FaultKind::HostDown(2));
    world.run_for(Span::from_millis(200));
    assert_eq!(holders(&world), 0, "carrier loss tells at once");
    assert_sound(&world);
    assert!(unreached(&mut world, &[(0, 1), (1, 0)], 5).is_empty());
    world.inject(FaultKind::HostUp(2));
    world.run_for(Span::from_millis(500));
    assert_whole(&mut world);
}

#[test]
fn a_host_that_falls_silent_is_found_by_probes() {
    let mut world = boot(&ring(3, 1, true));
    assert_whole(&mut world);
    let link = world.access_link(2);
    world.engine_mut().set_silent(link, true);
    let probes = world.fabric().timers.host_probe * 6;
    world.run_for(probes);
    assert_sound(&world);
    world.engine_mut().set_silent(link, false);
    world.run_for(Span::from_secs(1));
    assert_whole(&mut world);
}

#[test]
fn a_port_changes_kind_at_run_time() {
    let mut builder = line(2, 1, true);
    let spare = builder.spare_ports();
    let mut world = boot(&builder);
    assert_whole(&mut world);
    let kind = |world: &axon_sim::World, switch: usize| {
        world.switch(switch).expect("on").plane().kind(spare[switch].port)
    };
    // h1 moves to the spare port: a host port.
    let home = end(0, builder.fabric.hosts[0].port.0);
    world.move_host(0, spare[0]);
    world.run_for(Span::from_secs(1));
    assert_eq!(kind(&world, 0), Some(PortKind::Host));
    assert_whole(&mut world);
    // It goes back, and a second link between the switches takes its place.
    world.move_host(0, home);
    let link = world.connect(spare[0], spare[1], common::wire());
    world.run_for(Span::from_secs(1));
    assert_eq!(kind(&world, 0), Some(PortKind::Axon));
    assert_eq!(kind(&world, 1), Some(PortKind::Axon));
    world.inject(FaultKind::LinkDown(0));
    world.run_for(Span::from_millis(500));
    assert_whole(&mut world);
    // And back again.
    world.inject(FaultKind::LinkUp(0));
    world.engine_mut().disconnect(link);
    world.move_host(0, spare[0]);
    world.run_for(Span::from_secs(1));
    assert_eq!(kind(&world, 0), Some(PortKind::Host));
    assert_whole(&mut world);
    assert!(world.now() > Time::ZERO);
}
