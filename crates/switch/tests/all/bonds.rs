//! Bonds at the controller: their ports are one place for pins and for groups.

use crate::controller::config;
use crate::tenants::{At, Scene, incarnation, ip, mac};
use axon_controller::Effect;
use axon_controller::config::{BondConfig, ControllerConfig};
use axon_controller::policy::Policy;
use axon_node::{Stored, StoredHost};
use axon_wire::lacp::{MemberState, Partner, SystemId};
use axon_wire::message::Item;
use axon_wire::vlan::VlanId;
use axon_wire::{MacAddr, NodeId, PortNo, Span};
use std::net::{IpAddr, Ipv4Addr};

const GROUP: IpAddr = IpAddr::V4(Ipv4Addr::new(239, 1, 2, 3));
/// Two ports of a bond at one switch, and one at another.
const PORTS: [At; 3] = [(1, 1), (1, 2), (2, 1)];

fn end((node, port): At) -> (NodeId, PortNo) {
    (NodeId(node), PortNo(port))
}

/// Switches 1 and 2, and host 1 at a bond. With a pin it is pinned to the first port.
fn scene(pinned: bool, stored: &[Stored]) -> Scene {
    let mut policy = Policy::default();
    if pinned {
        policy.pin(mac(1), end(PORTS[0]));
    }
    let bonds = vec![BondConfig { name: "h1".into(), members: PORTS.map(end).into() }];
    let config = ControllerConfig { policy, bonds, ..config() };
    let mut scene = Scene::of(&config, stored, &[((1, 0), (2, 0))]);
    let system = SystemId { priority: 1, mac: mac(1) };
    let partner = Some(Partner { system, key: 9 });
    for (node, port) in PORTS {
        let (port, state) = (PortNo(port), MemberState::Distributing);
        scene.item(node, Item::BondMember { port, state, partner, selected: true });
    }
    scene
}

fn stored(host: u16, at: At) -> Stored {
    let (switch, port) = end(at);
    Stored::Host(StoredHost { mac: mac(host), switch, port, ips: vec![ip(host)] })
}

#[test]
fn who_is_pinned_to_one_port_of_a_bond_is_at_all_and_nobody_else_is_at_any() {
    let mut scene = scene(true, &[]);
    for at in PORTS {
        scene.seen(at, 1);
    }
    assert_eq!(scene.controller.counters().hosts_misplaced, 0);
    for at in PORTS {
        scene.seen(at, 7);
    }
    assert_eq!(scene.controller.counters().hosts_misplaced, 3);
    assert_eq!(scene.controller.hosts().by_mac(mac(7)), None);
    // No other place is the host's.
    scene.seen((2, 5), 1);
    assert_eq!(scene.controller.counters().hosts_misplaced, 4);
}

#[test]
fn the_store_has_a_pinned_host_back_at_any_port_of_its_bond() {
    let hosts = [stored(1, PORTS[2]), stored(7, PORTS[1])];
    let scene = scene(true, &hosts);
    let restored = scene.controller.restored();
    assert_eq!((restored.hosts, restored.refused), (1, 1));
    assert!(scene.controller.hosts().by_mac(mac(1)).is_some());
}

#[test]
fn routes_of_a_port_end_when_a_host_has_left_it_for_another_of_its_bond() {
    let mut scene = scene(false, &[]);
    scene.seen((2, 5), 2);
    // Switch 2 claims it, and then switch 1, where it sends by both ports.
    scene.seen(PORTS[2], 1);
    scene.seen(PORTS[0], 1);
    assert!(PORTS.iter().all(|&at| scene.reaches(at, 1, 2)));
    scene.gone(PORTS[2], 1);
    assert_eq!(scene.routes_to(2), [PORTS[0], PORTS[1]], "switch 2 has cleared its own");
    assert!(scene.reaches(PORTS[2], 1, 2));
    assert_eq!(scene.routes_to(2), PORTS);
    // A port of the bond is lost at which switch 1 does not claim it.
    let (port, state) = (PortNo(2), MemberState::Down);
    scene.item(1, Item::BondMember { port, state, partner: None, selected: false });
    assert_eq!(scene.routes_to(2), [PORTS[0], PORTS[2]]);
    scene.gone(PORTS[0], 1);
    assert_eq!(scene.routes_to(2), [PORTS[2]]);
}

#[test]
fn a_switch_that_loses_a_host_clears_all_ports_of_the_bond() {
    let mut scene = scene(false, &[]);
    scene.seen((2, 5), 2);
    scene.seen(PORTS[0], 1);
    scene.seen(PORTS[2], 1);
    assert!(PORTS.iter().all(|&at| scene.reaches(at, 1, 2)));
    scene.gone(PORTS[0], 1);
    assert_eq!(scene.routes_to(2), [PORTS[2]]);
}

/// The lists of the group that are made soon.
fn lists(scene: &mut Scene) -> Vec<Vec<MacAddr>> {
    scene.now += Span::from_millis(25);
    let mut out = Vec::new();
    scene.controller.timeout(scene.now, &mut out);
    let list = |effect| match effect {
        (_, Effect::Command { item: Item::GroupHosts { hosts, .. }, .. }) => Some(hosts),
        _ => None,
    };
    out.into_iter().filter_map(list).collect()
}

#[test]
fn a_host_joins_a_group_by_any_port_of_its_bond() {
    let mut scene = scene(false, &[]);
    scene.seen(PORTS[0], 1);
    scene.seen((2, 5), 2);
    scene.item(2, Item::AskGroup { port: PortNo(5), mac: mac(2), group: GROUP, wanted: true });
    for (node, port) in PORTS {
        let member = |joined| {
            let (port, mac, group) = (PortNo(port), mac(1), GROUP);
            Item::GroupMember { port, mac, group, joined }
        };
        scene.item(node, member(true));
        assert_eq!(lists(&mut scene), [vec![mac(1)]], "by port {port} of switch {node}");
        scene.item(node, member(false));
        assert_eq!(lists(&mut scene), [vec![]]);
    }
    let mut out = Vec::new();
    let (port, mac, group) = (PortNo(5), mac(1), GROUP);
    let elsewhere = Item::GroupMember { port, mac, group, joined: true };
    scene.controller.item(scene.now, incarnation(1), (VlanId::NONE, elsewhere), &mut out);
    assert_eq!(scene.controller.counters().item_misplaced, 1);
}
