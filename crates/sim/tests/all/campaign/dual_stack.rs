//! Dual stack in the campaign: hosts of some seeds have IPv6 addresses too, fixed ones or those of
//! a prefix that edges advertise. In the end they reach each other over both families.

use super::plan::Dice;
use crate::common::{self, Builder};
use axon_sim::world::reach::wants_v6;
use axon_sim::{PingId, PingPlan, World};
use axon_wire::Span;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// One in this many seeds has IPv6.
const ONE_IN: usize = 4;
const PREFIX: &str =
    "name: a\ntopology: {line: {switches: 1}}\nipv6: {prefix: \"2001:db8:7::/64\"}\n";

/// Gives hosts of some seeds IPv6.
pub fn draw(seed: u64, builder: &mut Builder) {
    // With random numbers of its own, so that the rest of a seed is unchanged.
    let mut dice = Dice::new(u128::from(seed) << 32 | 13);
    if dice.below(ONE_IN) > 0 {
        return;
    }
    let advertised = dice.below(2) == 0;
    if advertised {
        builder.fabric.ipv6 = common::fabric(PREFIX).ipv6;
    }
    for (index, host) in builder.fabric.hosts.iter_mut().enumerate() {
        let is_fixed = !advertised || dice.below(3) == 0;
        let ip = Ipv6Addr::new(0x2001, 0xdb8, 7, 0, 0, 0, 0, index as u16 + 1);
        host.ip6 = is_fixed.then_some(ip);
    }
}

/// Checks that no two connected hosts have one address.
pub fn one_holder_each(world: &World) -> Result<(), String> {
    let mut holders = BTreeMap::new();
    for host in world.truth().connected_hosts() {
        for address in world.host(host).into_iter().flat_map(|host| host.addresses6()) {
            if let Some(other) = holders.insert(address, host) {
                return Err(format!("hosts {other} and {host} (by index) both have {address}"));
            }
        }
    }
    Ok(())
}

/// Checks that these pairs reach each other over IPv6, within the number of requests.
pub fn check(world: &mut World, pairs: &[(usize, usize)], tries: u16) -> Result<(), String> {
    if !axon_fabric::ipv6::is_dual_stack(world.fabric()) {
        return Ok(());
    }
    let has_v6 = |pair: &&(usize, usize)| {
        [pair.0, pair.1].iter().all(|&host| wants_v6(world.fabric(), host))
    };
    let pairs: Vec<(usize, usize)> = pairs.iter().filter(has_v6).copied().collect();
    let limit = world.now() + super::PATIENCE;
    let addressed =
        |world: &World| pairs.iter().all(|&(_, to)| world.nodes().address6(to).is_some());
    if !world.run_until_true(limit, addressed) {
        let without =
            pairs.iter().map(|&(_, to)| to).find(|&to| world.nodes().address6(to).is_none());
        return Err(format!("host without IPv6 address (by index): {without:?}"));
    }
    let interval = Span::from_millis(100);
    let start = |world: &mut World, (from, to): (usize, usize)| {
        let target = world.nodes().address6(to)?;
        world.ping(from, PingPlan::until_reply(target, interval, tries))
    };
    let ids: Vec<Option<PingId>> = pairs.iter().map(|&pair| start(world, pair)).collect();
    let stats = |world: &World, id: Option<PingId>| id.and_then(|id| world.ping_stats(id));
    let limit = world.now() + interval * (u64::from(tries) + 2);
    world.run_until_true(limit, |world| {
        ids.iter().all(|&id| stats(world, id).is_none_or(|stats| stats.done))
    });
    let answered = |id| stats(world, id).is_some_and(|stats| stats.received > 0);
    let silent: Vec<_> =
        pairs.iter().zip(&ids).filter(|(_, id)| !answered(**id)).map(|(pair, _)| pair).collect();
    if silent.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{} of {} pairs (by index) unanswered over IPv6: {silent:?}",
        silent.len(),
        pairs.len()
    ))
}
