//! The controller's backups, and what it makes of reports that they were used.

use crate::controller::{World, ip, mac, ring};
use axon_wire::message::{Item, RoutePath, Stamp, Target};
use axon_wire::vlan::VlanId;
use axon_wire::{MacAddr, PortNo, Route};
use std::collections::BTreeSet;

impl World {
    /// A switch keeps a backup, or has none any more.
    pub fn set_backup(&mut self, node: u64, item: Item) {
        let Item::SetBackup { port, destination, source: None, primary, backup } = item else {
            return;
        };
        let key = (node, port.0, destination);
        match backup {
            Some(backup) => drop(self.backups.insert(key, (primary, backup))),
            None => drop(self.backups.remove(&key)),
        }
    }
}

/// Switch 1 says that the route from its port 9 to host 3 was replaced by its backup.
fn report_used(world: &mut World, number: u64, route: Route) {
    let (from, stamp) = (world.incarnation(1), Stamp { epoch: 3, number });
    let item =
        Item::BackupUsed { port: PortNo(9), destination: mac(3), source: None, stamp, route };
    world.controller.item(world.now, from, (VlanId::NONE, item), &mut world.out);
    world.carry_out();
}

/// Host 1 has asked for host 3, and the controller has had the time to find backups.
fn asked_in_ring() -> (World, u64) {
    let mut world = ring();
    let number = world.ask(1, 9, 1, Target::Ip(ip(3))).expect("an answer").stamp.number;
    world.wait();
    (world, number)
}

const THERE: (u64, u16, MacAddr) = (1, 9, MacAddr([2, 0, 0, 0, 0, 3]));

#[test]
fn every_route_of_a_ring_has_the_other_way_round_as_its_backup() {
    let (world, _) = asked_in_ring();
    assert_eq!((world.tables.len(), world.backups.len()), (2, 2));
    for (key, (primary, backup)) in &world.backups {
        assert_eq!(world.tables[key], primary.route);
        let ends = [primary, backup].map(|path| world.follow(key.0, &path.route.hops));
        assert!(ends[0].is_some() && ends[0] == ends[1], "{ends:?}");
        let links = |path: &RoutePath| path.links().collect::<BTreeSet<_>>();
        assert!(links(primary).is_disjoint(&links(backup)));
        assert_eq!(links(primary).len() + links(backup).len(), 4);
    }
}

#[test]
fn a_backup_that_was_used_is_the_route_and_gets_a_backup_of_its_own() {
    let (mut world, number) = asked_in_ring();
    let (primary, backup) = world.backups[&THERE].clone();
    // The edge has taken it, as its report says.
    world.tables.insert(THERE, backup.route.clone());
    report_used(&mut world, number, backup.route.clone());
    world.wait();
    world.check();
    assert_eq!(world.backups[&THERE], (backup.clone(), primary));
    assert_eq!(world.controller.counters().backups_used, 1);
    // The link that is down at last moves nothing: no route is over it any more.
    let moved = world.controller.counters().routes_moved;
    let first = backup.switches.len();
    assert_eq!(first, 2);
    let port = if backup.route.hops[0] == PortNo(1) { 2 } else { 1 };
    world.cut((1, port));
    let back = world.controller.counters().routes_moved - moved;
    assert!(back <= 1, "no more than the way back: {back}");
    world.wait();
    world.check();
    assert!(!world.backups.contains_key(&THERE), "a line has none");
}

#[test]
fn a_report_that_crosses_a_newer_decision_changes_nothing() {
    let (mut world, number) = asked_in_ring();
    let (primary, backup) = world.backups[&THERE].clone();
    let port = primary.route.hops[0].0;
    world.cut((1, port));
    assert_eq!(world.tables[&THERE], backup.route, "the controller was first");
    let before = world.controller.counters();
    let before = (before.routes_moved, before.backups_used);
    report_used(&mut world, number, backup.route);
    world.wait();
    world.check();
    let after = world.controller.counters();
    assert_eq!((after.routes_moved, after.backups_used), before);
}

#[test]
fn a_route_that_the_controller_has_not_sent_as_backup_is_answered_with_the_right_one() {
    let (mut world, number) = asked_in_ring();
    let right = world.tables[&THERE].clone();
    let made_up = Route::from([1, 1, 1, 7]);
    world.tables.insert(THERE, made_up.clone());
    report_used(&mut world, number, made_up);
    assert_eq!(world.tables[&THERE], right);
    world.wait();
    world.check();
    assert!(world.backups.contains_key(&THERE));
}

#[test]
fn a_backup_that_was_used_just_as_a_link_of_it_went_is_replaced_at_once() {
    let (mut world, number) = asked_in_ring();
    let (_, backup) = world.backups[&THERE].clone();
    let moved = world.controller.counters().routes_moved;
    // The last link of the backup, of which the edge has not heard yet.
    world.cut((backup.switches[1].0, backup.route.hops[1].0));
    world.tables.insert(THERE, backup.route.clone());
    report_used(&mut world, number, backup.route.clone());
    assert!(world.controller.counters().routes_moved > moved);
    assert_ne!(world.tables[&THERE], backup.route);
    world.wait();
    world.check();
}
