//! DCell: entries, paths, detours.

use super::net::{Net, datagram};
use axon_pipeline::TableName;
use axon_programs::dcell::{Cells, path};
use axon_programs::server::AddressBlock;
use axon_wire::{MacAddr, PortNo, Span};

const DCELL_1: &str = "{name: a, topology: {dcell: {n: 4, k: 1}}, program: dcell}";

fn net(n: u32, k: u32) -> Net {
    Net::new(&format!("{{name: a, topology: {{dcell: {{n: {n}, k: {k}}}}}, program: dcell}}"))
}

#[test]
fn all_pairs_reach_each_other_on_the_paths_of_the_paper() {
    for (n, k) in [(4, 1), (3, 1), (2, 2)] {
        let cells = Cells::new(n, k).unwrap();
        let mut net = net(n, k);
        let step = if k == 2 { 5 } else { 1 };
        for from in (0..cells.servers()).step_by(step) {
            for to in (0..cells.servers()).filter(|&to| to != from) {
                let mut way = net.datagram(from, to, 1).unwrap_or_else(|| panic!("{from} to {to}"));
                way.push(to);
                assert_eq!(way, path(&cells, from, to));
                assert!(way.len() - 1 < 1 << (k + 1), "{way:?}");
            }
        }
    }
}

#[test]
fn a_server_needs_a_prefix_for_each_other_cell_and_twice_as_many_tcam_entries() {
    // Cells of 4 are aligned: 3 servers and 4 other cells. There is one filter for announcements,
    // three for the host, and one each for the host where packets and packets via a proxy arrive.
    let net = net(4, 1);
    for server in 0..20 {
        assert_eq!(net.count(server, TableName::Prefix), 3 + 4, "server {server}");
        assert_eq!(net.count(server, TableName::Tcam), 2 * (3 + 4) + 1 + 5, "server {server}");
        assert_eq!(net.count(server, TableName::Ipv4), 0);
        assert_eq!(net.count(server, TableName::Interface), 4 + 1);
    }
    // Cells of 3 begin at 0, 3, 6 and 9, and take two prefixes each.
    let net = self::net(3, 1);
    for server in 0..12 {
        assert_eq!(net.count(server, TableName::Prefix), 2 + 3 * 2, "server {server}");
    }
}

#[test]
fn recipients_have_entries_while_packets_go_there() {
    let mut net = Net::new(DCELL_1);
    for _ in 0..3 {
        net.datagram(0, 9, 1).unwrap();
    }
    assert_eq!((net.count(0, TableName::Ipv4), net.count(0, TableName::Tunnel)), (1, 1));
    net.run(Span::from_secs(40));
    assert_eq!((net.count(0, TableName::Ipv4), net.count(0, TableName::Tunnel)), (0, 0));
}

#[test]
fn hosts_send_nothing_to_addresses_of_servers_themselves() {
    let mut net = Net::new(DCELL_1);
    let source = net.host_at(0).clone();
    for (server, mac) in [(9, MacAddr([2; 6])), (0, MacAddr([2; 6])), (9, net.plan.nodes[0].mac)] {
        for protocol in [17, 201] {
            let to = AddressBlock::DCELL.address(server, 0);
            let mut plain = datagram(source.mac, mac, source.ip, to, 1);
            plain[23] = protocol;
            let tagged = [&plain[..12], &[0x81, 0, 0, 1], &plain[12..]].concat();
            for frame in [plain, tagged] {
                (net.sent, net.received) = Default::default();
                net.send(0, &frame);
                assert_eq!((net.sent.len(), net.received.len()), (0, 0), "{frame:x?}");
            }
        }
    }
}

/// Asserts that all pairs can communicate when a link or switch is lost, with at most `more` extra
/// hops.
fn survives(net: &mut Net, what: &str, more: usize) {
    let cells = Cells::new(4, 1).unwrap();
    for from in 0..20 {
        for to in (0..20).filter(|&to| to != from) {
            let way = net.datagram(from, to, 1);
            let way = way.unwrap_or_else(|| panic!("{what}: {from} to {to}"));
            let usual = path(&cells, from, to).len() - 1;
            assert!(way.len() <= usual + more, "{what}: {from} to {to}: {way:?}");
        }
    }
}

#[test]
fn any_lost_link_between_cells_is_gone_around_by_a_proxy() {
    let cells = Cells::new(4, 1).unwrap();
    for (server, peer) in (0..20).map(|server| (server, cells.peer(server, 1))) {
        if server > peer {
            continue;
        }
        let mut net = Net::new(DCELL_1);
        net.set_links(server, false, |to| to == peer);
        // To the link, to the proxy, and on from the proxy.
        survives(&mut net, &format!("{server} to {peer}"), 6);
        assert!(net.datagram(server, peer, 9).unwrap().len() > 1);
        net.set_links(server, true, |to| to == peer);
        net.run(Span::from_secs(1));
        assert_eq!(net.datagram(server, peer, 9).unwrap().len(), 1, "it is direct again");
    }
}

#[test]
fn a_lost_switch_of_a_cell_is_gone_around_between_servers_of_others_and_its_own() {
    let mut net = Net::new(DCELL_1);
    net.set_links(21, false, |_| true);
    net.run(Span::from_secs(1));
    // Cell 1: every pair within it, and from each of its servers to all other cells.
    for from in 4..8 {
        for to in (0..20).filter(|&to| to != from) {
            let out = net.datagram(from, to, 1);
            assert!(out.is_some(), "{from} to {to}");
            let back = net.datagram(to, from, 1);
            assert!(back.is_some(), "{to} to {from}");
        }
    }
}

#[test]
fn a_link_that_falls_silent_is_found_by_hellos() {
    let mut net = Net::new(DCELL_1);
    let peer = Cells::new(4, 1).unwrap().peer(0, 1);
    let ports = net.plan.nodes[0].ports.clone();
    let port = ports.iter().position(
        |port| matches!(port.neighbour, axon_programs::Neighbour::Node(to, _) if to == peer),
    );
    net.silent.insert((0, PortNo(port.unwrap() as u16)));
    assert_eq!(net.datagram(0, peer, 1), None, "before it is found");
    net.run(Span::from_millis(400));
    assert!(net.datagram(0, peer, 1).unwrap().len() > 1);
}

#[test]
fn several_hosts_of_a_server_are_reached_also_by_a_proxy() {
    let mut net = Net::new(&DCELL_1.replace("k: 1", "k: 1, hosts_per_switch: 2"));
    let of = |net: &Net, server: u32| -> Vec<_> {
        net.plan.hosts.iter().filter(|host| host.node == server).cloned().collect()
    };
    let (near, far) = (of(&net, 0), of(&net, 4));
    assert_eq!(net.between(&near[0], &near[1], 1), Some(vec![]), "within the server");
    assert_eq!(net.between(&near[1], &far[1], 1), Some(vec![0]));
    net.set_links(0, false, |to| to == 4);
    assert!(net.between(&near[1], &far[1], 1).expect("by a proxy").len() > 1);
}

#[test]
fn a_table_without_room_for_one_more_recipient_keeps_the_others() {
    let small = "program: {name: dcell, tables: {ipv4: 2}}";
    let mut net = Net::new(&DCELL_1.replace("program: dcell", small));
    assert!(net.datagram(0, 1, 1).is_some() && net.datagram(0, 2, 1).is_some());
    assert_eq!(net.datagram(0, 3, 1), None, "it would be the third");
    assert!(net.datagram(0, 1, 1).is_some());
    assert_eq!(net.nodes[0].program().refusal(), None);
    net.run(Span::from_secs(32));
    assert!(net.datagram(0, 3, 1).is_some(), "the others are idle");
}
