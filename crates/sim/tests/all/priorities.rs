//! Priorities of traffic: the frames of each entry carry its priority, in both directions, and
//! applications do not see it.

use crate::common;
use axon_node::Drop;
use axon_sim::capture::port_by_name;
use axon_sim::{Setup, World};
use axon_wire::priority::{Priority, PrioritySet};
use axon_wire::{Rate, Span, vlan};

const FABRIC: &str = "
name: priorities
topology: { ring: { switches: 3, hosts_per_switch: 1 } }
links: { rate: 10Gbps, latency: 500ns }
traffic:
- { tcp: { bytes: 100kB }, from: h1, to: h2, priority: 3 }
- { udp: { count: 10 }, from: h1, to: h2, priority: 5 }
- { ping: { count: 3, interval: 1ms }, from: h2, to: h1, priority: 6 }
- { request_response: { count: 3 }, from: h1, to: h2 }
";

fn started(text: &str) -> World {
    let fabric = common::fabric(text);
    let mut world = World::new(&fabric, 1);
    common::await_addresses(&mut world);
    world.start_traffic();
    world
}

fn dropped(world: &World) -> u64 {
    let dropped = world.engine().accounts().dropped;
    [Drop::QueueFull, Drop::HeadroomFull].iter().map(|&reason| dropped[reason as usize]).sum()
}

#[test]
fn frames_carry_the_priority_of_their_entry_both_ways() {
    let fabric = common::fabric(FABRIC);
    let ports = ["h1-p0", "h2-p0"].map(|name| port_by_name(&fabric, name).unwrap());
    let mut world =
        World::begin(&fabric, Setup { seed: 1, capture: ports.into(), ..Setup::default() });
    common::await_addresses(&mut world);
    world.start_traffic();
    world.run_for(Span::from_millis(50));
    for flow in world.flows().report() {
        assert!(flow.received_packets > 0 && flow.failed == 0, "{flow:#?}");
        assert_eq!(flow.lost_packets.unwrap_or(0), 0, "{flow:#?}");
    }
    let captured = world.engine_mut().take_captured();
    let of = |at: usize| {
        let sent = captured.iter().filter(|c| c.station == ports[at].station && c.outbound);
        let mut set = PrioritySet::EMPTY;
        sent.for_each(|c| set.insert(vlan::priority_of(&c.frame)));
        set
    };
    assert_eq!(of(0), PrioritySet::from_bits(0b0110_1001), "TCP, UDP, echo replies, the rest");
    assert_eq!(of(1), PrioritySet::from_bits(0b0100_1001), "no datagrams come back");
    for capture in captured.iter().filter(|c| c.outbound) {
        let tag = vlan::VlanTag::of_frame(&capture.frame);
        assert!(tag.is_none_or(|tag| tag.vid == 0 && tag.pcp.value() > 0), "{tag:?}");
    }
}

/// Two streams over one link between switches, in a lossless priority; h3 reads slowly.
const LOSSLESS: &str = "
name: lossless
topology: { line: { switches: 2, hosts_per_switch: 2 } }
links: { rate: 10Gbps, latency: 500ns }
dcb:
  classes:
  - { priorities: [0, 1, 2, 4, 5, 6], ets: 50 }
  - { priorities: [3], ets: 50, lossless: true }
  - { priorities: [7] }
traffic:
- { udp: { payload: 954 }, from: h1, to: h3, priority: 3 }
- { udp: { payload: 954 }, from: h2, to: h4, priority: 3 }
";

#[test]
fn a_slow_host_stops_the_senders_through_two_switches_and_nothing_is_lost() {
    let three = Priority::new(3).unwrap();
    let text = |hosts: &str| LOSSLESS.replace("dcb:\n", &format!("dcb:\n  hosts: {hosts}\n"));
    let mut world = started(&text("true"));
    world.with_host(2, |node, _| node.rx_ring_mut().set_rate(Some(Rate::gbps(2)))).unwrap();
    world.run_for(Span::from_millis(20));
    assert_eq!(dropped(&world), 0);
    let (asked, _) = world.host(2).unwrap().dcb_nic().unwrap().counts(three);
    assert!(asked > 0, "the slow host asks its switch to stop");
    for host in [0, 1] {
        let (_, heard) = world.host(host).unwrap().dcb_nic().unwrap().counts(three);
        assert!(heard > 0, "the switch asks host {host} to stop");
    }
    let (_, heard) = world.host(3).unwrap().dcb_nic().unwrap().counts(three);
    assert_eq!(heard, 0, "nobody stops a host that only receives");
    let mut world = started(&text("false"));
    world.run_for(Span::from_millis(5));
    assert!(dropped(&world) > 1_000, "hosts that honour no PFC send on");
}
