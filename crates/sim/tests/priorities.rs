//! Priorities of traffic: each entry's frames carry theirs, both ways, and applications see none.

use axon_sim::World;
use axon_sim::capture::port_by_name;
use axon_wire::priority::PrioritySet;
use axon_wire::{Span, Time, vlan};

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

#[test]
fn frames_carry_the_priority_of_their_entry_both_ways() {
    let fabric = axon_fabric::parse("priorities.yaml".as_ref(), FABRIC).unwrap();
    let ports = ["h1-p0", "h2-p0"].map(|name| port_by_name(&fabric, name).unwrap());
    let mut world = World::with_capture(&fabric, 1, None, &ports);
    let limit = Time::ZERO + Span::from_secs(10);
    assert!(world.run_until_true(limit, World::all_have_addresses));
    world.start_traffic();
    world.run_for(Span::from_millis(50));
    for flow in world.traffic_report() {
        assert!(flow.done && flow.lost_packets.unwrap_or(0) == 0, "{flow:#?}");
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
