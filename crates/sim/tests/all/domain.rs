//! The edge of the congestion notification domain: a host that advertises reaction points by LLDP
//! is admitted, and excluded again when it is gone; another host stays outside.

use crate::common;
use axon_node::{Dataplane, Note};
use axon_plane::qcn::DefenceMode;
use axon_sim::World;
use axon_wire::priority::Priority;
use axon_wire::{PortNo, Span, Time};

/// h1 and h2 send in the domain's priority over one link; h1 is unplugged for ten seconds.
const FABRIC: &str = "
name: domain
topology: { line: { switches: 2, hosts_per_switch: 2 } }
links: { rate: 10Gbps, latency: 500ns }
dcb:
  classes:
  - { priorities: [0, 1, 2, 5, 6], ets: 40 }
  - { priorities: [3, 4], ets: 60, lossless: true }
  - { priorities: [7] }
  dcbx: {}
  congestion_notification: { priorities: [3], defence: { h1: auto, h2: edge } }
traffic:
- { udp: { rate: 9Gbps, count: 20000 }, from: h1, to: h3, priority: 3 }
- { udp: { rate: 9Gbps, count: 20000 }, from: h2, to: h3, priority: 3 }
faults: [{ at: 20s, unplug: h1 }, { at: 30s, plug: h1 }]
";

/// Defence mode of s1 for priority 3 at a host's port.
fn mode(world: &World, port: PortNo) -> DefenceMode {
    let three = Priority::new(3).unwrap();
    world.switch(0).unwrap().dcbx(port).unwrap().defences().unwrap().mode(three)
}

#[test]
fn a_host_with_reaction_points_is_let_in_and_kept_out_again_when_it_is_gone() {
    let fabric = common::fabric(FABRIC);
    let mut world = World::new(&fabric, 1);
    let ports = [0, 1].map(|host: usize| fabric.hosts[host].port);
    let modes = |world: &World| ports.map(|port| mode(world, port));
    assert_eq!(modes(&world), [DefenceMode::Edge; 2]);
    world.run_until(Time::ZERO + Span::from_secs(5));
    let met = [DefenceMode::InteriorReady, DefenceMode::Edge];
    assert_eq!(modes(&world), met);
    let note = Note::DefenceInForce { port: ports[0] };
    let noted = world.engine().notes().iter().filter(|one| one.2 == note).count();
    assert_eq!(noted, 2, "inside, and then ready");
    world.start_traffic();
    world.run_for(Span::from_millis(200));
    let moved = |port| world.switch(0).unwrap().plane().counters().port(port).cn_moved;
    assert_eq!(ports.map(moved), [0, 20_000], "h2 is outside");
    let applied = [0, 1].map(|host: usize| world.host(host).unwrap().dcb_nic().unwrap().cnms());
    assert!(applied[0] > 0 && applied[1] == 0, "{applied:?}");
    world.run_until(Time::ZERO + Span::from_secs(25));
    assert_eq!(modes(&world), [DefenceMode::Edge; 2]);
    world.run_until(Time::ZERO + Span::from_secs(40));
    assert_eq!(modes(&world), met);
    world.engine().check_conservation().unwrap();
}

#[test]
fn frames_that_waited_for_a_route_are_outside_too() {
    let (before, _) = FABRIC.split_once("traffic:").unwrap();
    let text = format!(
        "{before}traffic:\n\
             - {{ udp: {{ rate: 10Mbps, count: 1000 }}, from: h2, to: h3, priority: 3 }}\n\
         faults: [{{ after_start: 5ms, down: [s1, s2] }}, {{ after_start: 500ms, up: [s1, s2] }}]\n"
    );
    let fabric = common::fabric(&text);
    let mut world = World::new(&fabric, 1);
    let port = fabric.hosts[1].port;
    world.run_until(Time::ZERO + Span::from_secs(5));
    world.start_traffic();
    world.run_for(Span::from_secs(5));
    let switch = world.switch(0).unwrap();
    let moved = switch.plane().counters().port(port).cn_moved;
    let flow = &world.flows().report()[0];
    assert!(moved >= flow.received_packets && moved > 100, "{moved} of {}", flow.received_packets);
    world.engine().check_conservation().unwrap();
}
