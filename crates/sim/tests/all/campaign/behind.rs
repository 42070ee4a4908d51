//! Hosts behind one port in the campaign: in some seeds with tenants two hosts are behind a bridge
//! whose ports are protected, at the port of the first of them.

use super::plan::Dice;
use crate::common::{Builder, mac};
use axon_fabric::assemble::switch_id;
use axon_fabric::model::{BySource, End};
use axon_sim::World;

/// One in this many seeds with tenants has such hosts.
const ONE_IN: usize = 2;

/// Draws two hosts in some seeds, whose source addresses are trusted. Neither has a bond: bridges
/// do not forward LACPDUs, and the file pins a host with a bond to a port of the bond.
pub fn draw(seed: u64, builder: &mut Builder) -> Option<[usize; 2]> {
    // With random numbers of its own, so that the rest of a seed is unchanged.
    let mut dice = Dice::new(u128::from(seed) << 32 | 13);
    let fabric = &mut builder.fabric;
    let hosts = fabric.hosts.len();
    let fits = !fabric.policy.is_open() && fabric.vlans.is_empty() && hosts > 2;
    if !fits || dice.below(ONE_IN) > 0 {
        return None;
    }
    let first = dice.below(hosts);
    let second = (first + 1 + dice.below(hosts - 1)) % hosts;
    let has_bond = |host| builder.fabric.bonds.iter().any(|bond| bond.host == Some(host));
    if has_bond(first) || has_bond(second) {
        return None;
    }
    let End { switch, port } = at(builder, first);
    builder.fabric.policy.pin(mac(second), (switch_id(switch), port));
    builder.fabric.by_source = BySource::Policy;
    Some([first, second])
}

fn at(builder: &Builder, host: usize) -> End {
    let host = &builder.fabric.hosts[host];
    End { switch: host.switch, port: host.port }
}

/// Connects these hosts behind their bridge.
pub fn connect(world: &mut World, behind: Option<[usize; 2]>) {
    let Some(hosts) = behind else { return };
    let host = &world.fabric().hosts[hosts[0]];
    let at = End { switch: host.switch, port: host.port };
    world.nodes_mut().put_behind(&hosts, at, true);
}

/// True if the bridge isolates two hosts from each other.
pub fn is_apart(behind: Option<[usize; 2]>, (a, b): (usize, usize)) -> bool {
    behind.is_some_and(|hosts| hosts.contains(&a) && hosts.contains(&b))
}

#[test]
fn some_seeds_of_the_campaign_have_two_hosts_behind_one_port() {
    let is_drawn = |seed: &u64| {
        let mut plan = super::plan::plan(axon_sim::DataplaneKind::Software, *seed);
        super::tenants::draw(*seed, &mut plan.builder, &mut plan.acts);
        super::vlans::draw(*seed, &mut plan.builder, &mut plan.acts);
        let few_routes = plan.routes_per_port.is_some();
        super::bonds::draw(*seed, &mut plan.builder, &mut plan.acts, few_routes);
        let hosts = draw(*seed, &mut plan.builder);
        let bonds = plan.builder.fabric.bonds.iter();
        let mut bonded = bonds.filter_map(|bond| bond.host);
        assert!(hosts.is_none_or(|hosts| !bonded.any(|host| hosts.contains(&host))), "seed {seed}");
        hosts.is_some()
    };
    let count = (0..560).filter(is_drawn).count();
    assert!(count >= 40, "{count} of 560 seeds");
}
