//! The loads that switches measure, and what a router makes of them.

use crate::controller::{World, ip};
use axon_controller::router::RouterKind;
use axon_wire::message::Target;
use axon_wire::{MacAddr, Route};

#[test]
fn switches_are_asked_for_loads_once_an_incarnation_and_only_if_the_router_wants_them() {
    for kind in RouterKind::ALL {
        let mut world = World::with(kind);
        world.link((1, 1), (2, 1));
        let wanted = kind == RouterKind::CongestionAware;
        assert_eq!(world.measured.len(), if wanted { 2 } else { 0 }, "{kind:?}");
        assert!(world.measured.values().all(|&every_ms| every_ms == 1_000), "ten heartbeats");
        world.measured.clear();
        world.link((1, 2), (2, 2));
        assert!(world.measured.is_empty(), "once is enough");
        world.restart(2);
        assert_eq!(world.measured.len(), usize::from(wanted), "a new incarnation is asked anew");
    }
}

#[test]
fn a_measured_hot_link_sends_its_flows_the_other_way_round() {
    let mut world = World::with(RouterKind::CongestionAware);
    for node in 1..=4 {
        world.link((node, 1), (node % 4 + 1, 2));
    }
    for host in 1..=4 {
        world.seen(1, 10 + u16::from(host), host);
        world.seen(2, 10 + u16::from(host), 10 + host);
    }
    for host in 1..=4 {
        world.ask(1, 10 + u16::from(host), host, Target::Ip(ip(10 + host))).unwrap();
    }
    world.wait();
    let direct = |world: &World| {
        let forward = |&(&(node, _, _), route): &(&(u64, u16, MacAddr), &Route)| {
            node == 1 && route.hops.len() == 2
        };
        world.tables.iter().filter(forward).count()
    };
    let before = direct(&world);
    assert!(before >= 2, "most take the one link: {before}");
    world.load(1, 1, 125_000_000);
    world.wait();
    assert!(direct(&world) < before, "{} of {before}", direct(&world));
    world.check();
}
