//! BCube: entries, paths, failures.

use super::net::{Net, datagram};
use axon_node::Drop;
use axon_pipeline::{Change, TableName};
use axon_programs::Neighbour;
use axon_programs::bcube::{Cube, INDEX_VALUES, ROUTING_KEY};
use axon_programs::site::PlanPort;
use axon_wire::host_frame::{Kind, classify, request};
use axon_wire::{MacAddr, PortNo, Span};
use std::collections::BTreeSet;

const BCUBE_1: &str = "{name: a, topology: {bcube: {n: 4, k: 1}}, program: bcube}";

fn cube() -> Cube {
    Cube::new(4, 1).unwrap()
}

/// Returns the number of a server's routing entries, which are those with the routing key that
/// match a hop and no port.
fn routing_entries(net: &Net, server: u32) -> u32 {
    let tables = net.nodes[server as usize].pipeline().tables();
    let is_routing = |change: &Change| match change {
        Change::Tcam(_, Some(entry)) => entry.udlk == ROUTING_KEY && entry.mask[..2] == [0, 0],
        _ => false,
    };
    let entries = tables.entries(TableName::Tcam);
    entries.iter().filter(|entry| is_routing(&entry.change)).count() as u32
}

#[test]
fn index_source_routing_takes_neighbours_times_index_values_of_tcam_entries() {
    for (n, k) in [(4, 1), (2, 2), (3, 1), (8, 1)] {
        let text = format!("{{name: a, topology: {{bcube: {{n: {n}, k: {k}}}}}, program: bcube}}");
        let net = Net::new(&text);
        let routing = (k + 1) * (n - 1) * INDEX_VALUES as u32;
        assert_eq!(routing_entries(&net, 1), routing, "n {n} k {k}");
        // Each level has one filter for the host and two for control packets. There is one filter
        // for the host's port.
        let filters = (k + 1) * 3 + 1;
        assert_eq!(net.count(1, TableName::Tcam), routing + filters, "n {n} k {k}");
        assert_eq!(net.count(1, TableName::Interface), (k + 1) * (n - 1) + 1);
        let servers = n.pow(k + 1);
        assert_eq!(net.count(servers, TableName::Mac), n + 1, "a switch: servers and broadcast");
    }
}

#[test]
fn all_pairs_reach_each_other_in_as_many_hops_as_digits_differ() {
    let mut net = Net::new(BCUBE_1);
    for from in 0..16 {
        for to in (0..16).filter(|&to| to != from) {
            let way = net.datagram(from, to, 1).unwrap_or_else(|| panic!("{from} to {to}"));
            assert_eq!(way.len() as u32, cube().distance(from, to), "{from} to {to}: {way:?}");
        }
    }
}

#[test]
fn a_flow_gets_one_entry_and_its_later_packets_pass_without_the_program() {
    let mut net = Net::new(BCUBE_1);
    let before = net.count(1, TableName::Tcam);
    for _ in 0..5 {
        assert!(net.datagram(1, 4, 7).is_some());
    }
    assert_eq!(net.count(1, TableName::Tcam), before + 1);
    assert_eq!(net.count(1, TableName::Tunnel), 1);
    assert!(net.datagram(1, 4, 8).is_some());
    assert_eq!(net.count(1, TableName::Tcam), before + 2, "another port is another flow");
    let to_programs = |net: &Net| -> Vec<u64> {
        let ports = |node: usize| (0..net.plan.nodes[node].ports.len() as u16).map(PortNo);
        let of = |node: usize, port| {
            net.nodes[node].pipeline().ports().counters().port(port).dropped(Drop::Consumed)
        };
        (0..16).map(|node| ports(node).map(|port| of(node, port)).sum()).collect()
    };
    let consumed = to_programs(&net);
    let (source, target) = (net.host_at(1).clone(), net.host_at(4).clone());
    let frame = datagram(source.mac, net.plan.nodes[1].mac, source.ip, target.ip, 8);
    for _ in 0..100 {
        net.send(1, &frame);
    }
    assert_eq!(to_programs(&net), consumed, "no program has seen one of them");
    net.run(Span::from_secs(40));
    assert_eq!(net.count(1, TableName::Tcam), before, "idle flows go");
    assert_eq!(net.count(1, TableName::Tunnel), 0);
}

#[test]
fn two_flows_that_start_together_take_both_parallel_paths() {
    let mut net = Net::new(BCUBE_1);
    let (source, target) = (net.host_at(1).clone(), net.host_at(4).clone());
    let gateway = net.plan.nodes[1].mac;
    net.sent.clear();
    for l4_port in [1, 2] {
        let frame = datagram(source.mac, gateway, source.ip, target.ip, l4_port);
        net.send(1, &frame);
    }
    net.run(Span::from_millis(10));
    let middle = net.sent.iter().filter(|(node, bytes)| {
        [0, 5].contains(node) && bytes.windows(4).any(|part| part == b"axon")
    });
    let middle: BTreeSet<u32> = middle.map(|(node, _)| *node).collect();
    assert_eq!(middle, BTreeSet::from([0, 5]), "by 00 and by 11");
}

#[test]
fn the_server_answers_arp_for_every_host_with_its_own_address() {
    let mut net = Net::new(BCUBE_1);
    let (host, other) = (net.host_at(2).clone(), net.host_at(9).ip);
    net.received.clear();
    net.send(2, &request(host.mac, host.ip, MacAddr::BROADCAST, other));
    let [(_, frame)] = &net.received[..] else { panic!("{:?}", net.received) };
    let Kind::Arp(arp) = classify(frame) else { panic!("no ARP") };
    assert_eq!((arp.sender_ip, arp.sender_mac), (other, net.plan.nodes[2].mac));
}

#[test]
fn a_link_without_carrier_is_survived_at_once_and_with_short_paths() {
    let mut net = Net::new(BCUBE_1);
    let way = net.datagram(1, 4, 7).unwrap();
    assert_eq!(way.len(), 2);
    let switch = 16 + if way[1] == 0 { 0 } else { 4 + 1 };
    net.set_links(way[0], false, |to| to == switch);
    let other = net.datagram(1, 4, 7).expect("the flow has moved");
    assert_eq!(other.len(), 2);
    assert_ne!(other[1], way[1]);
}

#[test]
fn a_failure_behind_the_first_hop_is_reported_to_the_source() {
    let mut net = Net::new(BCUBE_1);
    let way = net.datagram(1, 4, 7).unwrap();
    // The switch at the path's second hop drops everything without losing carrier.
    let middle = way[1];
    let switch = if middle == 0 { 16 + 4 } else { 16 + 1 };
    let ports = net.plan.nodes[switch].ports.len() as u16;
    net.silent.extend((0..ports).map(|port| (switch as u32, PortNo(port))));
    assert_eq!(net.datagram(1, 4, 7), None, "no server has seen it yet");
    net.run(Span::from_millis(400));
    // The packet that encounters the dead hop is lost. The source then moves the flow.
    net.datagram(1, 4, 7);
    let other = net.datagram(1, 4, 7).expect("the flow has moved");
    assert_ne!(other[1], middle);
}

#[test]
fn a_flood_of_packets_to_a_dead_next_hop_loses_no_neighbour() {
    let mut net = Net::new(BCUBE_1);
    let way = net.datagram(1, 4, 7).unwrap();
    let middle = way[1];
    let is_data = |bytes: &[u8]| bytes.windows(4).any(|part| part == b"axon");
    let taken = net.sent.iter().find(|(node, bytes)| *node == 1 && is_data(bytes));
    let packet = taken.expect("the packet on its first hop").1.clone();
    // Level 0 leads from 1 to 0 via the first switch, and level 1 leads from 1 to 5.
    let (near, dead) = if middle == 0 { (16, 16 + 4) } else { (16 + 4 + 1, 16 + 1) };
    let from_near =
        |there: &PlanPort| matches!(there.neighbour, Neighbour::Node(to, _) if to == near);
    let of = &net.plan.nodes[middle as usize].ports;
    let ingress = PortNo(of.iter().position(from_near).unwrap() as u16);
    let ports = net.plan.nodes[dead].ports.len() as u16;
    net.silent.extend((0..ports).map(|port| (dead as u32, PortNo(port))));
    net.run(Span::from_millis(400));
    let routing = |net: &Net| -> Vec<Change> {
        let all = net.nodes[middle as usize].pipeline().tables().entries(TableName::Tcam);
        all.into_iter().map(|shown| shown.change).collect()
    };
    let before = routing(&net);
    for _ in 0..40 {
        // The port's budget is used up just before the servers announce themselves.
        net.run_until(Span::from_nanos(10));
        for _ in 0..257 {
            net.send_at(middle, ingress, &packet);
        }
        net.run(Span::from_nanos(10));
        assert_eq!(routing(&net), before, "a neighbour is lost");
    }
    let counters = net.nodes[middle as usize].pipeline().ports().counters();
    assert!(counters.port(ingress).dropped(Drop::PuntLimit) > 0, "it was a flood");
}

#[test]
fn a_failed_level_switch_is_survived_by_all_pairs() {
    for switch in [16, 20] {
        let mut net = Net::new(BCUBE_1);
        net.set_links(switch, false, |_| true);
        net.run(Span::from_millis(500));
        for from in 0..16 {
            for to in (0..16).filter(|&to| to != from) {
                // The first packet may have to detect a failure that others have already
                // encountered.
                let ways = [net.datagram(from, to, 1), net.datagram(from, to, 1)];
                let way = ways[1].as_ref().unwrap_or_else(|| panic!("{from} to {to}: {ways:?}"));
                assert!(
                    way.len() as u32 <= cube().distance(from, to) + 2,
                    "{from} to {to}: {way:?}"
                );
            }
        }
        net.set_links(switch, true, |_| true);
        net.run(Span::from_secs(12));
        let way = net.datagram(0, 1, 1).expect("it works again");
        assert_eq!(way.len(), if switch == 16 { 1 } else { way.len() });
    }
}

#[test]
fn a_host_cannot_write_source_routes_itself() {
    let mut net = Net::new(BCUBE_1);
    net.datagram(1, 0, 7).unwrap();
    let taken = net.sent.iter().find(|(node, bytes)| *node == 1 && bytes[23] == 200).unwrap();
    let forged = taken.1.clone();
    (net.sent, net.received) = Default::default();
    net.send(1, &forged);
    let is_data = |bytes: &[u8]| bytes.windows(4).any(|part| part == b"axon");
    assert!(!net.sent.iter().any(|(_, bytes)| is_data(bytes)));
}

#[test]
fn several_hosts_of_a_server_are_reached_from_near_and_far() {
    let text = BCUBE_1.replace("k: 1", "k: 1, hosts_per_switch: 3");
    let mut net = Net::new(&text);
    let of = |net: &Net, server: u32| -> Vec<_> {
        net.plan.hosts.iter().filter(|host| host.node == server).cloned().collect()
    };
    let (near, far) = (of(&net, 1), of(&net, 4));
    for target in &far {
        assert_eq!(net.between(&near[2], target, 1).expect("from far").len(), 2);
    }
    assert_eq!(net.between(&near[0], &near[2], 1), Some(vec![]), "within the server");
}

#[test]
fn a_path_without_answer_is_not_chosen() {
    let mut net = Net::new(BCUBE_1);
    // The level 0 switch of server 00 has just become silent, and no server has lost a neighbour
    // yet.
    let ports = net.plan.nodes[16].ports.len() as u16;
    net.silent.extend((0..ports).map(|port| (16, PortNo(port))));
    let way = net.datagram(1, 4, 7).expect("by the other path, when the answer is late");
    assert_eq!(way, [1, 5]);
}

#[test]
fn fragments_pass_and_take_no_entry() {
    let mut net = Net::new(BCUBE_1);
    let before = net.count(1, TableName::Tcam);
    let (source, target) = (net.host_at(1).clone(), net.host_at(4).clone());
    let mut frame = datagram(source.mac, net.plan.nodes[1].mac, source.ip, target.ip, 7);
    // A middle fragment. Its header checksum is not checked in transit.
    (frame[20], frame[21]) = (0x20, 9);
    net.received.clear();
    net.send(1, &frame);
    let [(host, got)] = &net.received[..] else { panic!("{:?}", net.received) };
    assert_eq!(net.plan.hosts[*host as usize], target);
    assert_eq!(got[12..], frame[12..]);
    assert_eq!(net.count(1, TableName::Tcam), before);
}
