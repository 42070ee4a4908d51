//! Tenants in the campaign: with any failures, no frame crosses.

use super::plan::{Act, Dice};
use crate::common::{Builder, mac};
use axon_controller::policy::{Group, Identity};
use axon_fabric::assemble::switch_id;
use axon_fabric::model::Policy;
use axon_node::Subject;
use axon_sim::World;
use axon_sim::links::WireEnd;
use axon_wire::{MacAddr, PortNo, Time};

/// One in this many seeds has tenants.
const ONE_IN: usize = 4;

/// Draws a policy for some seeds: every host is pinned and in one of two tenants, or shared. Other
/// hosts, such as a hostile one, reach no host. A pinned host that moved would have no service, so
/// none moves then.
pub fn draw(seed: u64, builder: &mut Builder, acts: &mut Vec<(Time, Act)>) {
    // With random numbers of its own, so that the rest of a seed is unchanged.
    let mut dice = Dice::new(u128::from(seed) << 32 | 7);
    if dice.below(ONE_IN) > 0 {
        return;
    }
    let mut policy = Policy::default();
    let tenants = ["red", "blue"].map(|name| policy.add_tenant(name));
    for host in &builder.fabric.hosts {
        let group = if dice.below(6) == 0 { Group::Shared } else { tenants[dice.below(2)] };
        policy.put(Subject::Mac(host.mac), group);
        policy.pin(host.mac, (switch_id(host.switch), host.port));
    }
    policy.deny_others();
    builder.fabric.policy = policy;
    acts.retain(|(_, act)| !matches!(act, Act::Move(..)));
}

/// True if two hosts may reach each other.
pub fn allowed(world: &World, (a, b): (usize, usize)) -> bool {
    let host = |host| Identity { mac: mac(host), at: None };
    world.fabric().policy.allows(&host(a), &host(b))
}

/// Captures the frames sent to hosts, if there are tenants.
pub fn watch(world: &mut World) {
    if world.fabric().policy.is_open() {
        return;
    }
    for host in 0..world.fabric().hosts.len() {
        let station = world.layout().host_station(host);
        world.engine_mut().capture(WireEnd { station, port: PortNo(0) });
    }
}

/// Checks that no host was sent a frame under the MAC of one that it may not reach since the last
/// call. Frames of hostile hosts are delivered to no host, with any MAC.
pub fn check(world: &mut World) -> Result<(), String> {
    if world.fabric().policy.is_open() {
        return Ok(());
    }
    let first = world.layout().host_station(0);
    for one in world.engine_mut().take_captured() {
        let host = one.station - first;
        let source = MacAddr::source_of(&one.frame).filter(|_| !one.outbound);
        let hosts = 0..world.fabric().hosts.len();
        let from = hosts.into_iter().find(|&from| Some(mac(from)) == source && from != host);
        if let Some(from) = from.filter(|&from| !allowed(world, (from, host))) {
            return Err(format!("at {}: h{} was sent a frame of h{}", one.at, host + 1, from + 1));
        }
    }
    Ok(())
}
