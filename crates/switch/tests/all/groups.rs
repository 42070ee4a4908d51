//! Groups at the controller: which lists it makes of what switches report, and how often.

use crate::controller::{World, mac, ring};
use axon_controller::Effect;
use axon_wire::message::Item;
use axon_wire::vlan::VlanId;
use axon_wire::{MacAddr, PortNo, Span};
use std::net::{IpAddr, Ipv4Addr};

const GROUP: IpAddr = IpAddr::V4(Ipv4Addr::new(239, 1, 2, 3));
/// Longer than changes are gathered.
const SOON: Span = Span::from_millis(25);

/// The lists among what the controller sends.
fn lists(world: &mut World) -> Vec<Vec<MacAddr>> {
    let list = |effect| match effect {
        (_, Effect::Command { item: Item::GroupHosts { hosts, .. }, .. }) => Some(hosts),
        _ => None,
    };
    std::mem::take(&mut world.out).into_iter().filter_map(list).collect()
}

fn item(world: &mut World, node: u64, item: Item) {
    let from = world.incarnation(node);
    world.controller.item(world.now, from, (VlanId::NONE, item), &mut world.out);
}

fn member(world: &mut World, node: u64, host: u8, joined: bool) {
    let item_ = Item::GroupMember { port: PortNo(9), mac: mac(host), group: GROUP, joined };
    item(world, node, item_);
}

fn seen(world: &mut World, node: u64, host: u8) {
    item(world, node, Item::HostSeen { port: PortNo(9), mac: mac(host), ips: Vec::new() });
}

fn gone(world: &mut World, node: u64, host: u8) {
    item(world, node, Item::HostGone { port: PortNo(9), mac: mac(host) });
}

/// Lets a time pass; returns the lists that were made.
fn pass(world: &mut World, span: Span) -> Vec<Vec<MacAddr>> {
    let end = world.now + span;
    while let Some(at) = world.controller.deadline().filter(|&at| at <= end) {
        world.now = at.max(world.now);
        world.controller.timeout(world.now, &mut world.out);
    }
    world.now = end;
    lists(world)
}

/// A ring in which host 1 sends to a group.
fn sending() -> World {
    let mut world = ring();
    let asks = Item::AskGroup { port: PortNo(9), mac: mac(1), group: GROUP, wanted: true };
    item(&mut world, 1, asks);
    assert_eq!(lists(&mut world), [vec![]]);
    world
}

#[test]
fn a_member_that_moves_and_comes_back_is_a_member_where_it_is() {
    let mut world = sending();
    member(&mut world, 2, 2, true);
    assert_eq!(pass(&mut world, SOON), [vec![mac(2)]]);
    // Switch 3 has the host now; switch 2 has not noticed.
    seen(&mut world, 3, 2);
    assert_eq!(pass(&mut world, SOON), [vec![]], "it has not said so there");
    member(&mut world, 3, 2, true);
    assert_eq!(pass(&mut world, SOON), [vec![mac(2)]]);
    // It is back before switch 2 has noticed, which has nothing new to report of its groups.
    seen(&mut world, 2, 2);
    pass(&mut world, SOON);
    member(&mut world, 3, 2, false);
    gone(&mut world, 3, 2);
    pass(&mut world, SOON);
    assert_eq!(world.controller.vlans().plain().members_of(GROUP).collect::<Vec<_>>(), [mac(2)]);
    // Host 4 is another member: the list that is sent anew has both.
    member(&mut world, 4, 4, true);
    assert_eq!(pass(&mut world, SOON), [vec![mac(2), mac(4)]]);
    member(&mut world, 2, 2, false);
    assert_eq!(pass(&mut world, SOON), [vec![mac(4)]]);
    assert_eq!(world.controller.vlans().plain().groups_len(), 2, "a sender and a member");
}

#[test]
fn a_host_that_forges_another_takes_no_membership_of_it() {
    let mut world = sending();
    member(&mut world, 2, 2, true);
    pass(&mut world, SOON);
    // A stranger at switch 3 uses the MAC of host 2, and leaves its group.
    seen(&mut world, 3, 2);
    member(&mut world, 3, 2, true);
    member(&mut world, 3, 2, false);
    pass(&mut world, SOON);
    gone(&mut world, 3, 2);
    assert_eq!(pass(&mut world, SOON), [vec![mac(2)]]);
    // A switch without the host has no membership of it either.
    member(&mut world, 4, 2, true);
    assert_eq!(world.controller.counters().item_misplaced, 1);
    gone(&mut world, 2, 2);
    assert_eq!(pass(&mut world, SOON), [vec![]]);
    assert_eq!(world.controller.vlans().plain().groups_len(), 1, "the sender");
}

#[test]
fn hosts_that_join_and_leave_all_the_time_cost_two_lists_a_second_and_the_last_is_right() {
    let mut world = sending();
    let mut made = 0;
    for n in 0..2_000 {
        member(&mut world, 2, 2, n % 2 == 0);
        made += pass(&mut world, SOON).len();
    }
    assert!((8..=108).contains(&made), "{made} lists in 50 seconds");
    member(&mut world, 2, 2, false);
    pass(&mut world, Span::from_millis(600));
    member(&mut world, 2, 2, true);
    assert_eq!(pass(&mut world, Span::from_millis(600)), [vec![mac(2)]]);
}
