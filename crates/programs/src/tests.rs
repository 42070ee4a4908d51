//! Tests common to all fabrics: delivery, shortest paths, recovery after a failure.

use crate::kind::ProgramKind;
use crate::live::{Down, Live};
use crate::net::Net;
use crate::plans;
use crate::site::{Neighbour, Plan};
use alloc::vec::Vec;
use axon_pipeline::TableName;
use axon_wire::{PortNo, Span, host_frame};

/// Fabrics whose tables are determined by the plan.
const PLANNED: [ProgramKind; 5] = [
    ProgramKind::FatTree,
    ProgramKind::Portland,
    ProgramKind::Tags,
    ProgramKind::Stack,
    ProgramKind::Vl2,
];

fn net(kind: ProgramKind, plan: Plan) -> Net {
    kind.check(&plan).unwrap();
    Net::new(plan, |site| kind.program(site))
}

/// Asserts that no program reports a refusal.
fn assert_sound(net: &Net, context: &str) {
    for node in 0..net.plan.nodes.len() as u32 {
        let program = net.node(node).program();
        assert_eq!((program.failure(), program.refusal()), (None, None), "{context}: node {node}");
    }
}

/// Returns the number of switches on the shortest path between two hosts.
fn shortest(plan: &Plan, from: u32, to: u32) -> usize {
    let down = Down::new();
    let distances = Live::new(plan, &down).distances([plan.hosts[to as usize].node]);
    distances[plan.hosts[from as usize].node as usize] as usize + 1
}

#[test]
fn all_pairs_are_delivered_on_shortest_paths_in_a_fat_tree() {
    for plan in [plans::fat_tree(4), plans::structural(4), plans::fat_tree(6)] {
        for kind in PLANNED {
            let mut net = net(kind, plan.clone());
            assert_sound(&net, kind.name());
            let hosts = plan.hosts.len() as u32;
            for (from, to) in (0..hosts).flat_map(|a| (0..hosts).map(move |b| (a, b))) {
                let same_edge = plan.hosts[from as usize].node == plan.hosts[to as usize].node;
                let expected = match kind {
                    // Through the core, regardless of the pod.
                    ProgramKind::Vl2 if !same_edge => 5,
                    _ => shortest(&plan, from, to),
                };
                if from != to {
                    let switches = net.datagram(from, to, 7);
                    assert_eq!(switches, Some(expected), "{kind}: {from} to {to}: {:?}", net.drops);
                }
            }
        }
    }
}

#[test]
fn labels_and_stacks_run_on_any_graph_and_packets_in_packets_on_leaves_and_spines() {
    for (kind, plan) in [
        (ProgramKind::Tags, plans::ring(7)),
        (ProgramKind::Stack, plans::ring(7)),
        (ProgramKind::Tags, plans::leaf_spine(4, 3)),
        (ProgramKind::Stack, plans::leaf_spine(4, 3)),
        (ProgramKind::Vl2, plans::leaf_spine(4, 3)),
    ] {
        let mut net = net(kind, plan.clone());
        let hosts = plan.hosts.len() as u32;
        for (from, to) in (0..hosts).flat_map(|a| (0..hosts).map(move |b| (a, b))) {
            if from != to {
                let expected = Some(shortest(&plan, from, to));
                assert_eq!(net.datagram(from, to, 7), expected, "{kind}: {from} to {to}");
            }
        }
    }
}

#[test]
fn any_link_may_fail_and_come_back_and_the_tables_are_those_of_before() {
    for (kind, plan) in [
        (ProgramKind::FatTree, plans::fat_tree(4)),
        (ProgramKind::FatTree, plans::structural(4)),
        (ProgramKind::Portland, plans::fat_tree(4)),
        (ProgramKind::Tags, plans::fat_tree(4)),
        (ProgramKind::Tags, plans::ring(6)),
        (ProgramKind::Stack, plans::fat_tree(4)),
        (ProgramKind::Stack, plans::ring(6)),
        (ProgramKind::Vl2, plans::fat_tree(4)),
        (ProgramKind::Vl2, plans::leaf_spine(4, 2)),
    ] {
        let mut net = net(kind, plan);
        let before = entries(&net);
        for (node, port) in net.links() {
            net.link(node, port, false);
            for flow in 0..4 {
                assert_eq!(net.unreached(flow), [], "{kind}: link {node} {port}");
            }
            net.link(node, port, true);
            net.run(Span::from_millis(500));
            assert_sound(&net, kind.name());
            assert!(entries(&net) == before, "{kind}: link {node} {port} came back");
        }
    }
}

#[test]
fn two_links_may_fail_where_a_way_is_left() {
    for kind in PLANNED {
        let mut net = net(kind, plans::fat_tree(4));
        let links = net.links();
        for (number, &first) in links.iter().enumerate().step_by(5) {
            let second = links[(number * 7 + 3) % links.len()];
            net.link(first.0, first.1, false);
            net.link(second.0, second.1, false);
            let cut = net
                .plan
                .hosts
                .iter()
                .map(|host| is_cut_off(&net.plan, host.node, &[first, second]));
            if !cut.into_iter().any(|cut| cut) {
                assert_eq!(net.unreached(1), [], "{kind}: links {first:?} and {second:?}");
            }
            net.link(first.0, first.1, true);
            net.link(second.0, second.1, true);
        }
    }
}

/// Returns whether a node has lost all its links.
fn is_cut_off(plan: &Plan, node: u32, down: &[(u32, PortNo)]) -> bool {
    let ports = (0..).map(PortNo).zip(&plan.nodes[node as usize].ports);
    let mut links = ports.filter_map(|(port, there)| match there.neighbour {
        Neighbour::Node(other, far) => Some([(node, port), (other, far)]),
        _ => None,
    });
    links.all(|ends| ends.iter().any(|end| down.contains(end)))
}

/// Returns all entries on all switches, without their counters.
fn entries(net: &Net) -> Vec<axon_pipeline::Change> {
    let nodes = 0..net.plan.nodes.len() as u32;
    let tables = nodes.flat_map(|node| TableName::ALL.map(|table| (node, table)));
    tables
        .flat_map(|(node, table)| net.node(node).pipeline().tables().entries(table))
        .map(|shown| shown.change)
        .collect()
}

#[test]
fn a_node_that_goes_away_without_a_word_is_found_and_one_that_comes_back_catches_up() {
    let mut net = net(ProgramKind::Tags, plans::ring(6));
    let (node, port) = net.links()[3];
    net.stop(0, true);
    net.run(Span::from_millis(1400));
    let others = |net: &mut Net| {
        let pairs = net.unreached(1).into_iter();
        pairs.filter(|&(a, b)| a != 0 && b != 0).collect::<Vec<_>>()
    };
    assert_eq!(others(&mut net), [], "the other way around");
    // The node misses these events, and detects this at the first hello.
    net.link(node, port, false);
    assert_ne!(others(&mut net), []);
    net.stop(0, false);
    net.run(Span::from_millis(700));
    assert_eq!(net.unreached(1), []);
    net.link(node, port, true);
    net.run(Span::from_millis(700));
    assert_eq!(net.unreached(1), []);
}

#[test]
fn networks_that_a_program_is_not_made_for_are_refused() {
    let ring = plans::ring(20);
    for (kind, refused) in [
        (ProgramKind::Bridge, false),
        (ProgramKind::FatTree, true),
        (ProgramKind::Portland, true),
        (ProgramKind::Tags, false),
        (ProgramKind::Stack, true),
        (ProgramKind::Vl2, true),
    ] {
        let checked = kind.check(&ring);
        assert_eq!(checked.is_err(), refused, "{kind}: {checked:?}");
        // The other programs derive their entries from the shape, so they have none in another
        // network.
        if refused && kind != ProgramKind::Stack {
            let mut net = Net::new(ring.clone(), |site| kind.program(site));
            assert!(net.node(0).program().failure().unwrap().contains(kind.expected()));
            assert_eq!(net.resolve(0, ring.hosts[1].ip), None);
        }
    }
    assert!(ProgramKind::Stack.check(&plans::ring(17)).is_ok(), "8 links at most");
    assert!(ProgramKind::Stack.check(&plans::ring(18)).is_err(), "9 links");
    let mut plan = plans::leaf_spine(2, 2);
    plan.hosts[0].ip = core::net::Ipv4Addr::new(100, 64, 0, 9);
    assert!(ProgramKind::Vl2.check(&plan).is_err(), "a host among the locators");
    let mut plan = plans::fat_tree(4);
    plan.hosts[0].node = 8;
    assert!(ProgramKind::FatTree.check(&plan).is_err(), "a host at an aggregation switch");
}

#[test]
fn a_request_of_arp_to_one_station_is_answered_at_the_edge_too() {
    for kind in PLANNED {
        let mut net = net(kind, plans::fat_tree(4));
        let (own, other) = (net.plan.hosts[0].clone(), net.plan.hosts[13].clone());
        let mac = net.resolve(0, other.ip).unwrap();
        net.send(0, &host_frame::request(own.mac, own.ip, mac, other.ip));
        let reply = host_frame::reply(mac, other.ip, own.mac, own.ip);
        assert_eq!(net.received, [(0, reply)], "{kind}");
    }
}

#[test]
fn hosts_send_no_labels() {
    for (kind, plan) in
        [(ProgramKind::Tags, plans::fat_tree(4)), (ProgramKind::Stack, plans::ring(6))]
    {
        let mut net = net(kind, plan);
        let plain = [&[2; 12][..], &[0x88, 0x47]].concat();
        let tagged = [&[2; 12][..], &[0x81, 0, 0, 1, 0x88, 0x47]].concat();
        for (label, before) in (16..24_u32).flat_map(|label| [(label, &plain), (label, &tagged)]) {
            let labels = [label << 12 | 64, label << 12 | 1 << 8 | 64].map(u32::to_be_bytes);
            let frame = [&before[..], &labels.concat(), &[0x45; 60]].concat();
            net.send(0, &frame);
            assert_eq!((net.hops.len(), net.drops.len()), (0, 1), "{kind}: {frame:x?}");
        }
    }
}

/// Returns a node's entry counts: TCAM, labels, IPv4, MAC, interfaces, groups, tunnels.
fn counts(net: &Net, node: u32) -> [u32; 7] {
    use TableName::{Group, Interface, Ipv4, Mac, Mpls, Tcam, Tunnel};
    [Tcam, Mpls, Ipv4, Mac, Interface, Group, Tunnel].map(|table| net.count(node, table))
}

/// Checks the formulas in docs/programs.
#[test]
fn a_fabric_costs_as_many_entries_as_its_page_says() {
    for k in [4_u32, 6, 8] {
        let (half, edges) = (k / 2, k * k / 2);
        let hosts = edges * half;
        let [edge, aggregation, core] = [0, edges, 2 * edges];
        // Traps for ARP and link states. The number of suffixes is rounded up to a power of two.
        let (traps, suffixes) = (2, half.next_power_of_two());
        let all = |kind| {
            let net = net(kind, plans::structural(k));
            [edge, aggregation, core].map(|node| counts(&net, node))
        };
        let plain = k + half;
        assert_eq!(
            all(ProgramKind::FatTree),
            [
                [traps + suffixes + 1 + half, 0, 0, 0, plain, 0, 0],
                [traps + suffixes + 1 + half, 0, 0, 0, k, 0, 0],
                [traps + k, 0, 0, 0, k, 0, 0],
            ]
        );
        assert_eq!(
            all(ProgramKind::Portland),
            [
                [traps + half * (half + 1), 0, 0, half, plain, 1, 0],
                [traps + 2 + half, 0, 0, 0, k, 1, 0],
                [traps + k, 0, 0, 0, k, 0, 0],
            ]
        );
        assert_eq!(
            all(ProgramKind::Tags),
            [
                [traps + k, hosts, hosts, 0, plain, 0, 0],
                [traps, hosts, 0, 0, k, 0, 0],
                [traps, hosts, 0, 0, k, 0, 0],
            ]
        );
        assert_eq!(
            all(ProgramKind::Stack),
            [
                [traps + k, k, hosts, 0, plain, 0, 0],
                [traps, k, 0, 0, k, 0, 0],
                [traps, k, 0, 0, k, 0, 0],
            ]
        );
        assert_eq!(
            all(ProgramKind::Vl2),
            [
                [traps + k, 0, hosts + edges, 0, plain, 1, edges],
                [traps, 0, edges + 1, 0, k, 1, 0],
                [traps + edges, 0, edges, 0, k, 0, 0],
            ]
        );
    }
}
