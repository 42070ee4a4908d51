//! A controller that is killed and comes back: flows go on, and addresses stay whose they are.

use crate::common::{
    Builder, HEARTBEAT, assert_sound, assert_whole, boot, boot_with, fabric, line, pairs, ring,
};
use axon_fabric::model::FaultKind;
use axon_sim::{PingId, PingPlan, World};
use axon_wire::{Span, Time};

/// The time between two requests of a flow.
const INTERVAL: Span = Span::from_millis(20);

/// Establishes a flow for each of these pairs, then starts a steady ping of `span` over each.
fn establish(world: &mut World, flows: &[(usize, usize)], span: Span) -> Vec<PingId> {
    let ping = |world: &mut World, plan: &dyn Fn(std::net::Ipv4Addr) -> PingPlan| {
        let start = |&(from, to): &(usize, usize)| {
            let target = world.address(to).expect("an address");
            world.ping(from, plan(target)).expect("the host runs")
        };
        flows.iter().map(start).collect::<Vec<_>>()
    };
    // A few hundred set-ups at a time: as hosts begin to speak with each other.
    let first = ping(world, &|to| PingPlan::until_reply(to, Span::from_millis(200), 50));
    let limit = world.now() + Span::from_secs(20);
    let done = world.run_until_true(limit, |world| {
        first.iter().all(|&id| world.ping_stats(id).is_some_and(|stats| stats.received > 0))
    });
    assert!(done, "not all flows could be established");
    let count = (span.as_millis() / INTERVAL.as_millis()) as u16;
    ping(world, &|to| PingPlan::steady(to, INTERVAL, count))
}

/// Kills the controller in the midst of these flows and starts it again; returns the longest time
/// that any of them went without an answer, and how many requests had none.
fn kill_amid(world: &mut World, flows: &[(usize, usize)]) -> (Span, u64) {
    let pings = establish(world, flows, Span::from_millis(2_400));
    world.run_for(Span::from_millis(200));
    world.inject(FaultKind::ControllerDown);
    world.run_for(Span::from_millis(200));
    world.inject(FaultKind::ControllerUp);
    // The flows end, and then no reply is waited for any more.
    world.run_for(Span::from_millis(3_200));
    let stats = pings.iter().map(|&id| world.ping_stats(id).expect("its host runs"));
    let stats: Vec<_> = stats.inspect(|stats| assert!(stats.done, "{stats:?}")).collect();
    let lost = stats.iter().map(|stats| u64::from(stats.sent) - u64::from(stats.received)).sum();
    (stats.iter().map(|stats| stats.gap_max).max().expect("flows"), lost)
}

/// Flows between hosts of a ring of switches, each to so many others.
fn flows(hosts: usize, peers: usize) -> Vec<(usize, usize)> {
    let of = |from| (1..=peers).map(move |n| (from, (from + n) % hosts));
    (0..hosts).flat_map(of).collect()
}

fn kept(world: &World) -> u64 {
    world.controller().expect("on").controller().restored().routes_kept
}

#[test]
fn a_controller_killed_under_24_flows_costs_no_flow_a_packet() {
    let mut world = boot(&ring(4, 2, true));
    let flows = flows(8, 3);
    let (gap, lost) = kill_amid(&mut world, &flows);
    println!("{} flows: {gap} without an answer at most, {lost} requests lost", flows.len());
    assert_eq!((flows.len(), lost), (24, 0));
    assert!(gap <= Span::from_millis(50), "{gap}");
    assert!(kept(&world) >= 24, "{:?}", world.controller().unwrap().controller().restored());
    assert_whole(&mut world);
}

#[test]
fn a_controller_killed_under_2400_flows_costs_no_flow_a_packet() {
    let mut world = boot(&ring(10, 5, true));
    let flows = flows(50, 48);
    let (gap, lost) = kill_amid(&mut world, &flows);
    println!("{} flows: {gap} without an answer at most, {lost} requests lost", flows.len());
    assert_eq!((flows.len(), lost), (2_400, 0));
    assert!(gap <= Span::from_millis(50), "{gap}");
    assert!(kept(&world) >= 2_400, "{:?}", world.controller().unwrap().controller().restored());
    assert_sound(&world);
}
