//! Failures, recoveries, moves and changes of kind, and the time for which pings are lost
//! meanwhile.

use crate::common::{
    self, HEARTBEAT, assert_sound, assert_whole, boot_on, end, line, ring, start_steady,
    table_entries, unreached,
};
use axon_fabric::model::{End, FaultKind};
use axon_node::{PortKind, PortView};
use axon_sim::links::LinkChange;
use axon_sim::{DataplaneKind, PingPlan, SwitchPlane, World};
use axon_wire::{PortNo, Span, Time};

/// Each scenario of this file as a test on each data plane.
macro_rules! on_each_dataplane {
    ($($scenario:ident,)*) => {
        mod software {
            $(#[test] fn $scenario() { super::$scenario(super::DataplaneKind::Software); })*
        }
        mod reference {
            $(#[test] fn $scenario() { super::$scenario(super::DataplaneKind::Reference); })*
        }
        mod refusing {
            $(#[test] fn $scenario() { super::$scenario(super::DataplaneKind::Refusing); })*
        }
        mod pipeline {
            $(#[test] fn $scenario() { super::$scenario(super::DataplaneKind::Pipeline); })*
        }
    };
}

on_each_dataplane! {
    a_cut_link_reroutes_at_once,
    a_silent_link_is_found_by_missed_heartbeats,
    a_link_that_comes_back_is_used_again,
    a_switch_that_restarts_is_taken_up_again,
    traffic_goes_on_without_the_controller_and_it_learns_again,
    a_host_that_moves_is_found_at_its_new_port,
    a_dead_hosts_flows_are_destroyed_everywhere,
    a_host_that_falls_silent_is_found_by_probes,
    a_link_that_is_silent_in_one_direction_is_given_up_by_both_ends,
    a_suspended_node_is_waited_for_or_given_up_and_comes_back,
    a_link_that_flaps_while_its_switch_is_suspended_is_used_again,
    a_port_changes_kind_at_run_time,
}

/// Runs a 1 kHz ping from h1 to h2 over a ring of three, injects `fault` in its middle, and returns
/// the longest time without an answered request.
fn gap_of(plane: DataplaneKind, fault: FaultKind) -> Span {
    let mut world = boot_on(&ring(3, 1, true), plane);
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

fn a_cut_link_reroutes_at_once(plane: DataplaneKind) {
    let gap = gap_of(plane, FaultKind::LinkDown(0));
    assert!(gap <= Span::from_millis(5), "carrier loss is seen at once: {gap}");
}

fn a_silent_link_is_found_by_missed_heartbeats(plane: DataplaneKind) {
    let gap = gap_of(plane, FaultKind::LinkSilent(0));
    assert!(gap >= HEARTBEAT, "only the missing heartbeats show it: {gap}");
    assert!(gap <= HEARTBEAT * 3 + Span::from_millis(20), "two intervals, then reroute: {gap}");
}

fn a_link_that_comes_back_is_used_again(plane: DataplaneKind) {
    let mut world = boot_on(&line(2, 1, true), plane);
    assert_whole(&mut world);
    world.inject(FaultKind::LinkDown(0));
    world.run_for(Span::from_millis(500));
    assert_eq!(unreached(&mut world, &[(0, 1)], 3), [(0, 1)]);
    assert_sound(&world);
    world.inject(FaultKind::LinkUp(0));
    world.run_for(Span::from_millis(500));
    assert_whole(&mut world);
}

fn a_switch_that_restarts_is_taken_up_again(plane: DataplaneKind) {
    let mut world = boot_on(&ring(3, 2, false), plane);
    assert_whole(&mut world);
    world.inject(FaultKind::SwitchDown(1));
    world.run_for(Span::from_millis(500));
    common::take_all(&mut world);
    assert_sound(&world);
    assert!(unreached(&mut world, &[(0, 4), (4, 0), (1, 5)], 20).is_empty());
    world.inject(FaultKind::SwitchUp(1));
    let limit = world.now() + Span::from_secs(10);
    assert!(world.run_until_true(limit, axon_sim::World::all_have_addresses));
    assert_whole(&mut world);
}

fn traffic_goes_on_without_the_controller_and_it_learns_again(plane: DataplaneKind) {
    let mut world = boot_on(&ring(3, 1, false), plane);
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

fn a_host_that_moves_is_found_at_its_new_port(plane: DataplaneKind) {
    let mut builder = ring(3, 1, true);
    let spare = builder.spare_ports();
    let mut world = boot_on(&builder, plane);
    assert_whole(&mut world);
    // To another port of the same switch, then to another switch.
    for to in [spare[1], spare[2]] {
        world.move_host(1, to);
        world.run_for(Span::from_millis(500));
        assert_whole(&mut world);
    }
}

fn a_dead_hosts_flows_are_destroyed_everywhere(plane: DataplaneKind) {
    let mut world = boot_on(&ring(3, 1, true), plane);
    assert_whole(&mut world);
    let mac = common::mac(2);
    let holders = |world: &axon_sim::World| -> usize {
        (0..3)
            .map(|switch| {
                let dataplane = world.switch(switch).expect("on").plane();
                let ports = (0..world.fabric().switches[switch].ports).map(axon_wire::PortNo);
                ports
                    .flat_map(|port| dataplane.routes_at(port))
                    .filter(|(to, _)| *to == mac.into())
                    .count()
            })
            .sum()
    };
    assert_eq!(holders(&world), 2);
    world.inject(FaultKind::HostDown(2));
    world.run_for(Span::from_millis(200));
    if plane == DataplaneKind::Refusing {
        // Its switch removes the host after it has accepted the kind of the port, the others later.
        common::take_all(&mut world);
        world.run_for(Span::from_millis(200));
        common::take_all(&mut world);
    }
    assert_eq!(holders(&world), 0, "carrier loss is seen at once");
    assert_sound(&world);
    assert!(unreached(&mut world, &[(0, 1), (1, 0)], 5).is_empty());
    world.inject(FaultKind::HostUp(2));
    world.run_for(Span::from_millis(500));
    assert_whole(&mut world);
}

fn a_host_that_falls_silent_is_found_by_probes(plane: DataplaneKind) {
    let mut world = boot_on(&ring(3, 1, true), plane);
    assert_whole(&mut world);
    let link = world.layout().access_link(2);
    world.engine_mut().change_link(link, LinkChange::Silent([true; 2]));
    let probes = world.fabric().timers.host_probe * 6;
    world.run_for(probes);
    assert_sound(&world);
    world.engine_mut().change_link(link, LinkChange::Silent([false; 2]));
    world.run_for(Span::from_secs(1));
    assert_whole(&mut world);
}

fn a_link_that_is_silent_in_one_direction_is_given_up_by_both_ends(plane: DataplaneKind) {
    let mut world = boot_on(&ring(3, 1, true), plane);
    assert_whole(&mut world);
    let link = world.fabric().links[0].clone();
    for from in [link.a, link.b] {
        world.inject(FaultKind::LinkSilentFrom(0, from));
        world.run_for(HEARTBEAT * 5);
        assert_whole(&mut world);
        let up = |end: End| {
            world.switch(end.switch).expect("on").discovery().neighbour(end.port).is_some()
        };
        assert!(!up(link.a) && !up(link.b), "silent from {from:?}");
        world.inject(FaultKind::LinkUp(0));
        world.run_for(Span::from_millis(500));
        assert_whole(&mut world);
    }
}

fn a_suspended_node_is_waited_for_or_given_up_and_comes_back(plane: DataplaneKind) {
    let mut world = boot_on(&ring(3, 1, true), plane);
    assert_whole(&mut world);
    let ways = [
        (FaultKind::SwitchStopped(1), FaultKind::SwitchGoesOn(1)),
        (FaultKind::ControllerStopped, FaultKind::ControllerGoesOn),
    ];
    for (stop, go_on) in ways {
        // Shorter than its neighbours' limit: messages received meanwhile are answered late.
        let ping = start_steady(&mut world, 0, 1, Span::from_millis(100));
        world.run_for(Span::from_millis(20));
        world.inject(stop);
        world.run_for(HEARTBEAT);
        world.inject(go_on);
        world.run_for(Span::from_millis(200));
        let stats = world.ping_stats(ping).expect("it runs");
        assert_eq!((stats.sent, stats.received), (100, 100), "{stop:?}: {stats:?}");
        // Longer: its neighbours declare it lost, and find it again.
        world.inject(stop);
        world.run_for(HEARTBEAT * 10);
        world.engine().check_conservation().unwrap();
        world.inject(go_on);
        world.run_for(Span::from_millis(500));
        assert_whole(&mut world);
    }
}

fn a_link_that_flaps_while_its_switch_is_suspended_is_used_again(plane: DataplaneKind) {
    let mut world = boot_on(&ring(3, 1, true), plane);
    let (down, up) = (FaultKind::LinkDown(0), FaultKind::LinkUp(0));
    for flaps in [[down, up, down, up], [up, down, up, down], [up, down, up, up]] {
        assert_whole(&mut world);
        world.inject(FaultKind::SwitchStopped(1));
        for fault in flaps {
            world.inject(fault);
            world.run_for(Span::from_millis(1));
        }
        world.inject(FaultKind::SwitchGoesOn(1));
        world.run_for(Span::from_millis(500));
    }
    assert_whole(&mut world);
}

fn a_port_changes_kind_at_run_time(plane: DataplaneKind) {
    let mut builder = line(2, 1, true);
    let spare = builder.spare_ports();
    let mut world = boot_on(&builder, plane);
    assert_whole(&mut world);
    let kind = |world: &axon_sim::World, switch: usize| {
        world.switch(switch).expect("on").plane().kind(spare[switch].port)
    };
    // h1 moves to the spare port: a host port.
    let home = end(0, builder.fabric.hosts[0].port.0);
    world.move_host(0, spare[0]);
    world.run_for(Span::from_secs(1));
    common::take_all(&mut world);
    assert_eq!(kind(&world, 0), Some(PortKind::Host));
    assert_whole(&mut world);
    // It moves back, and a second link between the switches takes its place.
    world.move_host(0, home);
    let link = world.nodes_mut().connect(spare[0], spare[1], common::wire());
    world.run_for(Span::from_secs(1));
    common::take_all(&mut world);
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
    common::take_all(&mut world);
    assert_eq!(kind(&world, 0), Some(PortKind::Host));
    assert_whole(&mut world);
    assert!(world.now() > Time::ZERO);
}

/// Number of routes that the switches of a ring of three have refused, and number of lost tables.
fn went_wrong(world: &axon_sim::World) -> (u64, u64) {
    let planes = (0..3).map(|switch| match world.switch(switch).expect("on").plane() {
        SwitchPlane::Refusing(plane) => (plane.refused(), plane.losses()),
        _ => panic!("another data plane"),
    });
    planes.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

/// A hub with links to every switch of a ring of 44: no two switches are more than two links apart.
/// Without the hub they are up to 22 apart, and the root of the routes is one of them.
#[test]
fn the_ring_that_a_dead_hub_leaves_carries_everybody() {
    let mut links: Vec<String> = (2..=45).map(|rim| format!("[s1, s{rim}]")).collect();
    links.extend((2..45).map(|rim| format!("[s{rim}, s{}]", rim + 1)));
    links.push("[s45, s2]".into());
    let switches: Vec<String> = (1..=45).map(|number| format!("s{number}")).collect();
    let text = format!(
        "name: wheel\ncontroller: {{at: s2}}\ntimers: {{heartbeat: 20ms}}\ntopology:\n  \
         listed:\n    switches: [{}]\n    hosts: {{h1: s12, h2: s34, h3: s2}}\n    links: [{}]\n",
        switches.join(", "),
        links.join(", "),
    );
    let mut world = World::new(&common::fabric(&text), 1);
    common::await_addresses(&mut world);
    let pairs = [(0, 1), (1, 0), (0, 2), (2, 1)];
    assert_eq!(unreached(&mut world, &pairs, 3), []);
    world.inject(FaultKind::SwitchDown(0));
    world.run_for(Span::from_secs(2));
    assert_eq!(unreached(&mut world, &pairs, 3), []);
    assert_sound(&world);
}

#[test]
fn settings_and_removals_that_a_data_plane_refuses_are_made_in_the_end() {
    let mut world = boot_on(&ring(3, 2, true), DataplaneKind::Refusing);
    assert_whole(&mut world);
    for _ in 0..6 {
        world.inject(FaultKind::HostDown(2));
        world.run_for(Span::from_millis(200));
        world.inject(FaultKind::HostUp(2));
        world.run_for(Span::from_millis(300));
    }
    common::take_all(&mut world);
    assert_whole(&mut world);
    let mut refused = [0; 3];
    for index in 0..3 {
        let switch = world.switch(index).expect("on");
        for port in (0..world.fabric().switches[index].ports).map(PortNo) {
            let kind = switch.plane().kind(port);
            assert_eq!(kind, Some(switch.discovery().kind(port)), "s{}-{port}", index + 1);
        }
        let SwitchPlane::Refusing(plane) = switch.plane() else { panic!("another data plane") };
        let at_edge = switch.edges().counters().changes_refused;
        let now = [plane.settings_refused(), plane.removals_refused(), at_edge];
        (0..3).for_each(|number| refused[number] += now[number]);
    }
    assert!(refused.iter().all(|&count| count > 0), "settings, removals, at the edge: {refused:?}");
}

/// Every pair pings for less time than passes before a refused route is retried.
#[test]
fn no_request_is_lost_while_routes_are_refused_or_late() {
    let mut world = boot_on(&ring(3, 2, true), DataplaneKind::Refusing);
    let pings = common::pairs(&[0, 1, 2, 3, 4, 5]).into_iter().map(|(from, to)| {
        let target = world.address(to).expect("an address");
        world.ping(from, PingPlan::steady(target, Span::from_millis(10), 40)).expect("it runs")
    });
    let pings: Vec<_> = pings.collect();
    world.run_for(Span::from_millis(800));
    for ping in pings {
        let stats = world.ping_stats(ping).expect("it runs");
        assert_eq!((stats.sent, stats.received), (40, 40), "{ping:?}: {stats:?}");
    }
    let (refused, losses) = went_wrong(&world);
    assert!(refused >= 3 && losses == 0, "{refused} refused, {losses} losses");
}

#[test]
fn a_data_plane_that_refuses_and_forgets_ends_with_every_pair_served() {
    let mut world = boot_on(&ring(3, 2, true), DataplaneKind::Refusing);
    // Each pass removes all routes of a host, and they are installed again.
    for _ in 0..20 {
        assert_whole(&mut world);
        world.inject(FaultKind::HostDown(2));
        world.run_for(Span::from_millis(200));
        world.inject(FaultKind::HostUp(2));
        world.run_for(Span::from_millis(300));
    }
    assert_whole(&mut world);
    let (refused, losses) = went_wrong(&world);
    assert!(refused >= 10 && losses >= 2, "{refused} refused, {losses} losses");
    // After the retries every flow has its table entry.
    let installed = |world: &axon_sim::World| {
        (0..3).map(|switch| table_entries(world, switch)).sum::<usize>() == 30
    };
    let limit = world.now() + Span::from_secs(10);
    assert!(world.run_until_true(limit, installed), "{} refused", went_wrong(&world).0);
}
