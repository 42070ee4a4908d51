//! Tests of routes for the frames of one host behind a port.

use super::Placement;
use super::test_device::TestDevice;
use super::testing::*;
use crate::effect::Effect;
use alloc::vec::Vec;
use axon_node::{Drop, FeatureSet, PortKind, RouteKey};
use axon_wire::message::{ArpReply, ArpTarget, Item, LinkEnd, RoutePath, Target};
use axon_wire::{Incarnation, NodeId, PortNo, Route, host_frame};

impl Bench {
    /// A switch whose data plane has only these features.
    pub(super) fn lacking(features: FeatureSet) -> Bench {
        let mut tables = TestDevice::new(8);
        tables.features = features;
        Bench::on(tables, Bench::config(1000, 4))
    }

    /// Sets a route for frames of one host, as the controller does.
    pub(super) fn set_pair(
        &mut self,
        port: u16,
        (from, to): (u8, u8),
        number: u64,
        hop: u16,
    ) -> Vec<Effect> {
        let (port, destination, source) = (PortNo(port), mac(to), Some(mac(from)));
        let (stamp, route) = (stamp(number), Route::from([hop]));
        self.item(Item::SetRoute { port, destination, source, stamp, route })
    }

    /// Removes a route for frames of one host, as the controller does.
    pub(super) fn remove_pair(
        &mut self,
        port: u16,
        (from, to): (u8, u8),
        number: u64,
    ) -> Vec<Effect> {
        let (port, destination, source) = (PortNo(port), mac(to), Some(mac(from)));
        self.item(Item::RemoveRoute { port, destination, source, stamp: stamp(number) })
    }

    /// Returns the route of one host in the table of its port.
    pub(super) fn placed_for(&self, port: u16, (from, to): (u8, u8)) -> Option<Route> {
        let key = RouteKey::to(mac(to)).from_source(Some(mac(from)));
        self.tables.route((PortNo(port), key)).cloned()
    }
}

/// Hosts 1 and 2 are behind port 0, and host 1 has a route of its own to host 9.
fn one_of_two() -> Bench {
    let mut bench = Bench::new();
    bench.host(0, 1);
    bench.host(0, 2);
    let request = asked(&bench.frame(0, &arp_request(1, 9)));
    bench.reply(ArpReply { target_by_pair: true, ..answer_to(request, 1) });
    bench
}

#[test]
fn the_route_of_one_host_answers_no_request_of_its_neighbour_and_carries_none_of_its_frames() {
    let mut bench = one_of_two();
    assert_eq!(bench.placed_for(0, (1, 9)), Some(Route::from([3, 4])));
    assert_eq!((bench.placed_for(0, (2, 9)), bench.placed(0, 9)), (None, None));
    assert_eq!(arps(&bench.frame(0, &arp_request(1, 9))).len(), 1, "at once");
    let effects = bench.frame(0, &arp_request(2, 9));
    assert_eq!((arps(&effects).len(), asked(&effects).source_mac), (0, mac(2)));
    let request = asked(&bench.frame(0, &udp_frame(mac(9), mac(2), 1)));
    assert_eq!((request.source_mac, request.target), (mac(2), Target::Mac(mac(9))));
    assert_eq!(bench.sent, []);
    // A frame that missed takes the host's own route.
    let frame = udp_frame(mac(9), mac(1), 1);
    bench.frame(0, &frame);
    assert_eq!(bench.sent, [(PortNo(0), Route::from([3, 4]), frame)]);
}

#[test]
fn an_answer_for_one_host_ends_the_request_of_that_one_alone() {
    let mut bench = Bench::new();
    bench.host(0, 1);
    bench.host(0, 2);
    let frames = [1, 2].map(|host| udp_frame(mac(9), mac(host), 1));
    let requests = [0, 1].map(|at: usize| asked(&bench.frame(0, &frames[at])));
    let answer = ArpReply { target_ip: None, target_by_pair: true, ..answer_to(requests[0], 1) };
    bench.reply(answer);
    assert_eq!(bench.sent, [(PortNo(0), Route::from([3, 4]), frames[0].clone())]);
    assert_eq!((bench.edge.plain().setups(), bench.dropped.len()), (1, 0));
    // The other host is denied: no answer arrives, and its frame is dropped.
    bench.pass(axon_wire::Span::from_secs(4));
    assert_eq!(bench.last_drop(), Some(Drop::NoRoute));
    assert_eq!((bench.sent.len(), bench.edge.plain().setups()), (1, 0));
    // An answer for all hosts completes the set-ups of all.
    let frames = [1, 2].map(|host| udp_frame(mac(8), mac(host), 1));
    let requests = [0, 1].map(|at: usize| asked(&bench.frame(0, &frames[at])));
    bench.reply(ArpReply { target_mac: mac(8), target_ip: None, ..answer_to(requests[0], 2) });
    assert_eq!((bench.sent.len(), bench.edge.plain().setups()), (3, 0));
}

#[test]
fn the_removal_of_one_hosts_route_leaves_that_of_its_neighbour_and_that_of_all() {
    let mut bench = one_of_two();
    bench.set_pair(0, (2, 9), 2, 5);
    bench.set_route(0, 9, 3, 6);
    assert_eq!((bench.places(0), bench.edge.plain().flows().count()), (3, 3));
    bench.remove_pair(0, (1, 9), 4);
    assert_eq!(bench.placed_for(0, (1, 9)), None);
    assert_eq!(bench.placed_for(0, (2, 9)), Some(Route::from([5])));
    assert_eq!((bench.placed(0, 9), bench.places(0)), (Some(Route::from([6])), 2));
    bench.set_pair(0, (1, 9), 3, 7);
    assert_eq!(bench.placed_for(0, (1, 9)), None, "it is older than its removal");
}

#[test]
fn a_port_goes_over_to_routes_of_single_hosts_without_a_miss_of_the_first() {
    let mut bench = Bench::new();
    bench.host(0, 1);
    bench.set_route(0, 9, 1, 3);
    bench.host(0, 2);
    bench.set_pair(0, (1, 9), 2, 3);
    assert_eq!(bench.placed(0, 9), bench.placed_for(0, (1, 9)), "both, for a moment");
    bench.remove_route(0, 9, 3);
    assert_eq!((bench.placed(0, 9), bench.places(0)), (None, 1));
    assert_eq!(bench.placed_for(0, (1, 9)), Some(Route::from([3])));
}

#[test]
fn where_the_data_plane_looks_at_no_source_software_keeps_them_apart() {
    let mut bench = Bench::lacking(FeatureSet::EMPTY);
    bench.host(0, 1);
    bench.host(0, 2);
    bench.set_pair(0, (1, 9), 1, 3);
    bench.set_route(0, 8, 2, 4);
    assert_eq!((bench.placed_for(0, (1, 9)), bench.places(0)), (None, 1));
    assert_eq!(bench.placed(0, 8), Some(Route::from([4])), "it is not held up");
    let frame = udp_frame(mac(9), mac(1), 1);
    bench.frame(0, &frame);
    assert_eq!(bench.sent, [(PortNo(0), Route::from([3]), frame)]);
    asked(&bench.frame(0, &udp_frame(mac(9), mac(2), 1)));
    assert_eq!(bench.sent.len(), 1);
}

#[test]
fn a_route_of_one_host_gets_no_masqueraded_address_and_finds_its_place_later() {
    let mut bench = Bench::masquerading(1, 4);
    bench.host(0, 1);
    bench.set_route(0, 7, 1, 3);
    bench.set_pair(0, (1, 6), 2, 4);
    bench.set_route(0, 8, 3, 5);
    let given = bench.edge.masquerade_of(PortNo(0), mac(8));
    assert!(given.is_some() && bench.placed_for(0, (1, 6)).is_none());
    bench.remove_route(0, 7, 4);
    assert_eq!(bench.placed_for(0, (1, 6)), Some(Route::from([4])));
}

#[test]
fn a_way_back_for_one_host_is_asked_for_placed_and_answered() {
    let mut bench = Bench::new();
    bench.host(0, 1);
    bench.host(0, 2);
    let m = ArpTarget { source_by_pair: true, target_by_pair: true, ..looked_for(1) };
    bench.target(m.clone());
    assert_eq!((bench.places(0), bench.placed_for(0, (1, 9))), (1, None), "reserved");
    let effects = bench.frame(0, &host_frame::reply(mac(1), ip(1), mac(9), ip(9)));
    assert_eq!(bench.placed_for(0, (1, 9)), Some(m.to_source));
    let replies = effects.iter().filter_map(|effect| match effect {
        Effect::Routed { message: axon_wire::message::Message::ArpReply(reply), .. } => Some(reply),
        _ => None,
    });
    assert!(replies.map(|reply| reply.target_by_pair).eq([true]));
    // The route exists, so the query comes from the server identity, which has no route.
    let [(_, arp)] = arps(&bench.target(looked_for(2)))[..] else { panic!() };
    assert_eq!(arp.sender_mac, SERVER.mac);
}

#[test]
fn routes_of_single_hosts_age_are_reported_and_take_backups_by_their_own_key() {
    let mut bench = one_of_two();
    bench.set_pair(0, (2, 9), 2, 5);
    let next = Incarnation { number: CONTROLLER.number + 1, ..CONTROLLER };
    let claims = |effects: &[Effect]| -> Vec<_> {
        let claim = |effect: &Effect| match effect {
            Effect::Report(Item::SetRoute { source, .. }) => Some(*source),
            _ => None,
        };
        effects.iter().filter_map(claim).collect()
    };
    bench.controller(None);
    assert_eq!(claims(&bench.controller(Some(next))), [Some(mac(1)), Some(mac(2))]);
    bench.controller(None);
    bench.controller(Some(CONTROLLER));
    bench.now += super::ROUTE_LOOK;
    let idle = bench.edge.age(bench.now, |_, key| key.source == Some(mac(1)));
    assert_eq!(idle.len(), 1);
    let reports = bench.remove_idle(&idle);
    let aged = |effect: &Effect| match effect {
        Effect::Report(Item::RemoveRoute { source, .. }) => *source == Some(mac(2)),
        _ => false,
    };
    assert!(reports.iter().any(aged), "{reports:?}");
    assert!(bench.placed_for(0, (1, 9)).is_some() && bench.placed_for(0, (2, 9)).is_none());
}

#[test]
fn the_backup_of_one_hosts_route_replaces_that_one_alone() {
    let mut bench = Bench::new();
    bench.host(0, 1);
    bench.set_pair(0, (1, 9), 1, 3);
    bench.set_pair(0, (2, 9), 2, 3);
    let path = |hops: &[u16], second| RoutePath {
        route: hops.iter().copied().map(PortNo).collect(),
        switches: [INCARNATION.node, NodeId(second)].into(),
    };
    let (port, destination) = (PortNo(0), mac(9));
    for (host, number) in [(1, 3), (2, 4)] {
        let (source, route) = (Some(mac(host)), Route::from([3, 1, 5]));
        bench.item(Item::SetRoute { port, destination, source, stamp: stamp(number), route });
    }
    let (primary, source) = (path(&[3, 1, 5], 7), Some(mac(1)));
    let backup = Some(path(&[2, 2, 5], 8));
    bench.item(Item::SetBackup { port, destination, source, primary, backup });
    let end = |node, port| LinkEnd { node: NodeId(node), port: PortNo(port) };
    let ends = [end(7, 1), end(9, 1)];
    assert!(bench.edge.link_down(bench.now, ends));
    let effects =
        bench.call(|edge, now, tables, out| edge.untagged(now, tables, out).fail_over(ends));
    let used = |effect: &Effect| match effect {
        Effect::Report(Item::BackupUsed { source, .. }) => *source == Some(mac(1)),
        _ => false,
    };
    assert!(effects.iter().any(used), "{effects:?}");
    assert_eq!(bench.placed_for(0, (1, 9)), Some(Route::from([2, 2, 5])));
    assert_eq!(bench.placed_for(0, (2, 9)), Some(Route::from([3, 1, 5])));
    assert!(bench.edge.plain().flows().all(|(.., flow)| flow.placement == Placement::Installed));
    bench.port(0, Some(PortKind::Axon));
    assert!(bench.is_empty());
}
