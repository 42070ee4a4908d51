//! VLANs in the campaign: with any failures, no frame leaves its VLAN.

use super::plan::{Act, Dice};
use crate::common::Builder;
use axon_fabric::assemble::SERVER_MAC;
use axon_fabric::model::{End, Vlan};
use axon_sim::World;
use axon_wire::vlan::VlanId;
use axon_wire::{Time, masquerade};
use std::collections::{BTreeMap, BTreeSet};

/// One in this many seeds has VLANs.
const ONE_IN: usize = 4;

/// Draws VLANs for some seeds: every host is in one of two, by access or by trunk, or in none. Both
/// lease the fabric's own addresses, and advertise its prefix, too. A port that a host moves to is
/// in no VLAN, so none moves then.
pub fn draw(seed: u64, builder: &mut Builder, acts: &mut Vec<(Time, Act)>) {
    // With random numbers of its own, so that the rest of a seed is unchanged.
    let mut dice = Dice::new(u128::from(seed) << 32 | 9);
    if dice.below(ONE_IN) > 0 {
        return;
    }
    let fabric = &mut builder.fabric;
    let mut vlans = [10, 20].map(|number| {
        let mut dhcp = fabric.dhcp.clone();
        dhcp.reservations = BTreeMap::new();
        let id = VlanId::new(number).expect("a VLAN");
        let (access, trunk) = (BTreeSet::new(), BTreeSet::new());
        let ipv6 = fabric.ipv6.clone();
        Vlan { id, name: None, access, trunk, dhcp: Some(dhcp), ipv6 }
    });
    for host in &fabric.hosts {
        let at = End { switch: host.switch, port: host.port };
        let vlan = &mut vlans[dice.below(2)];
        match dice.below(5) {
            0 => continue,
            1 => vlan.trunk.insert(at),
            _ => vlan.access.insert(at),
        };
        let dhcp = vlan.dhcp.as_mut().expect("it leases addresses");
        dhcp.reservations.extend(host.ip.map(|ip| (host.mac, ip)));
    }
    fabric.vlans = vlans
        .into_iter()
        .filter(|vlan| !vlan.access.is_empty() || !vlan.trunk.is_empty())
        .collect();
    acts.retain(|(_, act)| !matches!(act, Act::Move(..)));
}

/// Returns the VLAN of a host, or none.
pub fn of(world: &World, host: usize) -> VlanId {
    let fabric = world.fabric();
    let at = End { switch: fabric.hosts[host].switch, port: fabric.hosts[host].port };
    let is_in = |vlan: &&Vlan| vlan.access.contains(&at) || vlan.trunk.contains(&at);
    fabric.vlans.iter().find(is_in).map(|vlan| vlan.id).unwrap_or_default()
}

/// True if two hosts are in one VLAN.
pub fn together(world: &World, (a, b): (usize, usize)) -> bool {
    of(world, a) == of(world, b)
}

/// Checks that hosts of a VLAN have received only frames of its own hosts and of the fabric, which
/// also answers from masqueraded addresses. Other hosts, such as a hostile one, are in no VLAN.
pub fn check(world: &World) -> Result<(), String> {
    let hosts = &world.fabric().hosts;
    for (host, named) in hosts.iter().enumerate() {
        let vlan = of(world, host);
        let Some(node) = world.host(host).filter(|_| !vlan.is_none()) else { continue };
        let own = |sender| {
            sender == SERVER_MAC
                || masquerade::index_of(sender).is_some()
                || (0..hosts.len())
                    .any(|other| hosts[other].mac == sender && of(world, other) == vlan)
        };
        if let Some(sender) = node.senders().iter().find(|sender| !own(**sender)) {
            return Err(format!("{} of VLAN {vlan} was sent a frame of {sender}", named.name));
        }
    }
    Ok(())
}
