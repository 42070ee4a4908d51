//! Invariants that hold at every moment, under any failures and attacks.

use super::dual_stack;
use super::vlans;
use axon_controller::bounds::{
    COMMANDS_PER_SWITCH_MAX, HOSTS_PER_SWITCH_MAX, INHERITED_PER_SWITCH_MAX, ROUTES_PER_SWITCH_MAX,
};
use axon_sim::World;
use std::collections::BTreeMap;

/// Bytes of hosts' frames that a switch queues until they have routes.
const WAITING_BYTES_MAX: usize = 1 << 20;
/// Hosts that a switch stores for each port.
const HOSTS_PER_PORT_MAX: usize = 64;
/// Set-ups in flight for each port.
const SETUPS_PER_PORT_MAX: usize = 128;
/// Control messages without acknowledgement, for each port of the fabric: the maximum that all
/// hosts and flows of a port can cause.
const UNACKNOWLEDGED_PER_PORT_MAX: usize = 4 * HOSTS_PER_PORT_MAX;

/// Checks the invariants of the world.
///
/// # Errors
/// The violated invariant, and its place.
pub fn check(world: &World) -> Result<(), String> {
    one_holder_each(world)?;
    dual_stack::one_holder_each(world)?;
    no_wrong_delivery(world)?;
    vlans::check(world)?;
    bounded(world)
}

/// Checks that no two hosts of a VLAN that are connected to the controller's part have one address.
fn one_holder_each(world: &World) -> Result<(), String> {
    let mut holders = BTreeMap::new();
    for host in world.truth().connected_hosts() {
        let Some(address) = world.address(host) else { continue };
        if let Some(other) = holders.insert((vlans::of(world, host), address), host) {
            return Err(format!("hosts {other} and {host} (by index) both have {address}"));
        }
    }
    Ok(())
}

/// Checks that no host has received a frame for another.
fn no_wrong_delivery(world: &World) -> Result<(), String> {
    for (host, of) in world.fabric().hosts.iter().enumerate() {
        let frames = world.host(host).map_or(0, |node| node.misdelivered());
        if frames > 0 {
            return Err(format!("{} was given {frames} frames for other hosts", of.name));
        }
    }
    Ok(())
}

/// Checks that the state of nodes has bounds that do not depend on their input.
fn bounded(world: &World) -> Result<(), String> {
    let mut ports_of_all = 0;
    for (index, of) in world.fabric().switches.iter().enumerate() {
        let ports = usize::from(of.ports);
        ports_of_all += ports;
        let Some(switch) = world.switch(index) else { continue };
        let edge = switch.edge();
        // Without a controller, reports go to every other switch.
        let peers = if switch.alone().is_some() { world.fabric().switches.len() } else { 1 };
        let kept = [
            ("bytes that wait for routes", switch.waiting_bytes(), WAITING_BYTES_MAX),
            ("hosts", edge.hosts().count(), ports * HOSTS_PER_PORT_MAX),
            ("set-ups", edge.setups(), ports * SETUPS_PER_PORT_MAX),
            (
                "unacknowledged",
                switch.unacknowledged(),
                ports * UNACKNOWLEDGED_PER_PORT_MAX * peers,
            ),
        ];
        within(&of.name, &kept)?;
    }
    let Some(node) = world.controller() else { return Ok(()) };
    let kept = [
        ("hosts", node.controller().hosts().len(), ports_of_all * HOSTS_PER_PORT_MAX),
        ("unacknowledged", node.unacknowledged(), ports_of_all * UNACKNOWLEDGED_PER_PORT_MAX),
    ];
    within(&world.fabric().controller.name, &kept)?;
    let (controller, mut switches) = (node.controller(), 0);
    for (index, switch) in controller.graph().switches() {
        let kept = [
            ("hosts", controller.hosts().claims_of(index), HOSTS_PER_SWITCH_MAX),
            ("routes", controller.flows().requested_by(index), ROUTES_PER_SWITCH_MAX),
            ("inherited", controller.flows().inherited_by(index), INHERITED_PER_SWITCH_MAX),
        ];
        within(
            &format!("{} for {}", world.fabric().controller.name, switch.incarnation.node),
            &kept,
        )?;
        switches += 1;
    }
    let pending = controller.restored().routes_pending as usize;
    let kept = [
        ("routes that wait", pending, switches * INHERITED_PER_SWITCH_MAX),
        ("commands", node.unacknowledged(), switches * COMMANDS_PER_SWITCH_MAX),
        // No attacker in the campaign controls a switch.
        ("refusals by a bound", controller.counters().over_bound as usize, 0),
    ];
    within(&world.fabric().controller.name, &kept)
}

fn within(name: &str, kept: &[(&str, usize, usize)]) -> Result<(), String> {
    match kept.iter().find(|(_, count, most)| count > most) {
        Some((what, count, most)) => Err(format!("{name} keeps {count} {what}, at most {most}")),
        None => Ok(()),
    }
}
