//! Hosts behind one port with routes of their own, by source and destination.

use crate::controller::config;
use crate::tenants::{Scene, ip, mac, policy};
use axon_controller::config::{BySource, ControllerConfig};
use axon_controller::policy::Policy;
use axon_controller::router::RouterKind;
use axon_node::{HostPair, PolicyChange, Stored, StoredHost, Subject};
use axon_wire::message::{Item, Stamp, Target};
use axon_wire::{NodeId, PortNo, Route};
use std::collections::BTreeSet;

const A: (u64, u16) = (1, 1);
const B: (u64, u16) = (2, 2);
const C: (u64, u16) = (2, 3);

fn scene(policy: Policy, by_source: BySource) -> Scene {
    let config = ControllerConfig { policy, by_source, ..config() };
    Scene::of(&config, &[], &[((1, 0), (2, 0))])
}

/// Host 1, red, and host 11, blue, are behind one port; host 2 is red, host 12 blue.
fn mixed() -> Scene {
    let mut scene = scene(policy(), BySource::Policy);
    for (at, host) in [(A, 1), (B, 2), (C, 12)] {
        scene.seen(at, host);
    }
    assert!(scene.reaches(A, 1, 2));
    scene.seen(A, 11);
    scene
}

#[test]
fn each_host_of_a_mixed_port_reaches_its_own_tenant_and_no_other() {
    let mut scene = mixed();
    assert!(scene.reaches(A, 1, 2) && scene.reaches(A, 11, 12));
    assert!(!scene.reaches(A, 11, 2) && !scene.reaches(A, 1, 12));
    assert!(scene.reaches(B, 2, 1) && !scene.reaches(B, 2, 11));
    let pairs = [(A, mac(1), mac(2)), (A, mac(11), mac(12))];
    assert_eq!(scene.pairs, BTreeSet::from(pairs));
    assert_eq!(scene.routes, BTreeSet::from([(B, mac(1)), (C, mac(11))]), "of single hosts");
}

#[test]
fn the_first_host_of_a_port_gets_its_own_route_before_that_of_all_goes() {
    let scene = mixed();
    let own = (true, A, Some(mac(1)), mac(2));
    assert_eq!(scene.commands, [own, (false, A, None, mac(2))]);
    let paths: Vec<_> = scene.paths.iter().filter(|((at, ..), _)| *at == A).collect();
    assert_eq!(paths, [(&(A, Some(mac(1)), mac(2)), &Route::from([0, 2]))], "the path it had");
}

#[test]
fn without_trust_in_sources_a_mixed_port_reaches_what_all_its_hosts_may() {
    let mut scene = scene(policy(), BySource::Never);
    for (at, host) in [(A, 1), (A, 11), (B, 2), (C, 21)] {
        scene.seen(at, host);
    }
    assert!(!scene.reaches(A, 1, 2) && scene.reaches(A, 11, 21));
    assert_eq!(scene.pairs, BTreeSet::new());
}

#[test]
fn what_all_hosts_of_a_mixed_port_may_reach_they_reach_by_one_route() {
    let mut scene = mixed();
    scene.seen((2, 4), 21);
    assert!(scene.reaches(A, 1, 21) && scene.reaches(A, 11, 21));
    assert!(scene.routes.contains(&(A, mac(21))) && scene.routes.contains(&((2, 4), mac(1))));
    assert!(scene.pairs.iter().all(|(.., to)| *to != mac(21)));
    // Then one of them may not any more.
    let deny = PolicyChange::Pair(HostPair::of(mac(11), mac(21)), false);
    scene.call(|controller, now, out| controller.change_policy(now, deny, out)).unwrap();
    assert!(!scene.routes.contains(&(A, mac(21))));
    assert!(scene.pairs.contains(&(A, mac(1), mac(21))), "its neighbour goes on");
    assert!(scene.reaches(A, 1, 21) && !scene.reaches(A, 11, 21));
    assert!(scene.routes.contains(&((2, 4), mac(1))));
    assert!(!scene.routes.contains(&((2, 4), mac(11))));
}

#[test]
fn a_pair_that_is_revoked_takes_its_own_routes_alone_along() {
    let mut scene = mixed();
    assert!(scene.reaches(A, 1, 2) && scene.reaches(A, 11, 12));
    let before = scene.pairs.len() + scene.routes.len();
    let deny = PolicyChange::Pair(HostPair::of(mac(11), mac(12)), false);
    let done = scene.call(|controller, now, out| controller.change_policy(now, deny, out)).unwrap();
    assert_eq!((done.routes_removed, done.switches), (2, vec![NodeId(1), NodeId(2)]));
    assert_eq!(scene.pairs.len() + scene.routes.len(), before - 2);
    assert!(scene.pairs.contains(&(A, mac(1), mac(2))) && scene.routes.contains(&(B, mac(1))));
    assert!(!scene.reaches(A, 11, 12) && scene.reaches(A, 1, 2));
    let quarantine = PolicyChange::Quarantine(Subject::Mac(mac(11)), true);
    scene.call(|controller, now, out| controller.change_policy(now, quarantine, out)).unwrap();
    assert!(scene.pairs.contains(&(A, mac(1), mac(2))), "it is not its neighbour's");
}

#[test]
fn the_routes_of_one_host_go_with_it_and_those_of_its_neighbour_stay() {
    let mut scene = mixed();
    assert!(scene.reaches(A, 1, 2) && scene.reaches(A, 11, 12));
    scene.gone(A, 11);
    assert_eq!(scene.pairs, BTreeSet::from([(A, mac(1), mac(2))]));
    assert!(scene.reaches(A, 1, 2), "by the route of its own");
    assert!(scene.routes.iter().all(|(at, _)| *at != A));
    scene.gone(A, 1);
    assert_eq!((scene.pairs.len(), scene.routes.len()), (0, 0));
    assert!(scene.controller.flows().is_empty());
}

#[test]
fn two_mixed_ports_reach_each_other_host_by_host() {
    let mut scene = scene(policy(), BySource::Policy);
    for (at, host) in [(A, 1), (A, 11), (B, 2), (B, 12)] {
        scene.seen(at, host);
    }
    assert!(scene.reaches(A, 1, 2) && scene.reaches(B, 12, 11));
    assert!(!scene.reaches(A, 1, 12) && !scene.reaches(B, 12, 1));
    let pairs =
        [(A, mac(1), mac(2)), (A, mac(11), mac(12)), (B, mac(2), mac(1)), (B, mac(12), mac(11))];
    assert_eq!((&scene.pairs, scene.routes.len()), (&BTreeSet::from(pairs), 0));
}

/// Both switches are joined by links at ports 0, 4, 5 and 6.
#[test]
fn hosts_behind_one_port_take_different_paths_to_one_destination() {
    let router = RouterKind::Ecmp;
    let config = ControllerConfig { by_source: BySource::Always, router, ..config() };
    let links = [0, 4, 5, 6].map(|port| ((1, port), (2, port)));
    let mut scene = Scene::of(&config, &[], &links);
    for (at, host) in [(A, 1), (B, 2)] {
        scene.seen(at, host);
    }
    assert!(scene.reaches(A, 1, 2));
    for host in 3..10 {
        scene.seen(A, host);
        assert!(scene.reaches(A, host, 2));
    }
    let first_hops = |scene: &Scene| -> BTreeSet<u16> {
        let paths = scene.paths.iter().filter(|((at, _, to), _)| (*at, *to) == (A, mac(2)));
        paths.map(|(_, route)| route.hops[0].0).collect()
    };
    assert_eq!(scene.pairs.len(), 8, "that of the first host too: {:?}", scene.pairs);
    assert!(!scene.routes.contains(&(A, mac(2))));
    assert!(first_hops(&scene).len() > 1, "{:?}", scene.paths);
    // A host that shares its port with all others takes one.
    let config = ControllerConfig { by_source: BySource::Never, ..config };
    let mut scene = Scene::of(&config, &[], &links);
    scene.seen(B, 2);
    for host in 3..10 {
        scene.seen(A, host);
        assert!(scene.reaches(A, host, 2));
    }
    assert_eq!(first_hops(&scene).len(), 1);
}

#[test]
fn the_next_controller_takes_over_the_route_of_one_host_if_that_may_have_it() {
    let host = |host, node, port| {
        let (switch, port) = (NodeId(node), PortNo(port));
        Stored::Host(StoredHost { mac: mac(host), switch, port, ips: vec![ip(host)] })
    };
    let stored = [host(1, 1, 1), host(11, 1, 1), host(2, 2, 2)];
    let by_source = BySource::Policy;
    let config = ControllerConfig { policy: policy(), by_source, ..config() };
    let mut scene = Scene::of(&config, &stored, &[((1, 0), (2, 0))]);
    for (at, host) in [(A, 1), (A, 11), (B, 2)] {
        scene.seen(at, host);
    }
    let stamp = Stamp { epoch: 1, number: 7 };
    for source in [Some(mac(1)), Some(mac(11)), None] {
        let (port, destination, route) = (PortNo(1), mac(2), Route::from([0, 2]));
        scene.item(1, Item::SetRoute { port, destination, source, stamp, route });
    }
    while scene.controller.restored().routes_pending > 0 {
        scene.now = scene.controller.deadline().unwrap();
        scene.call(|controller, now, out| controller.timeout(now, out));
    }
    assert_eq!(scene.pairs, BTreeSet::from([(A, mac(1), mac(2))]));
    let restored = scene.controller.restored();
    assert_eq!((restored.routes_kept, restored.routes_removed), (1, 2));
    // It is aged by that key, and by no other.
    let stamp = Stamp { epoch: 1, number: 0 };
    let (port, destination) = (PortNo(1), mac(2));
    scene.item(1, Item::RemoveRoute { port, destination, source: None, stamp });
    assert_eq!(scene.controller.flows().len(), 1);
}

#[test]
fn a_denied_neighbour_does_not_stop_the_request_of_a_host_for_the_same_address() {
    let mut scene = mixed();
    assert!(!scene.ask(A, 11, Target::Ip(ip(2))) && scene.ask(A, 1, Target::Ip(ip(2))));
}
