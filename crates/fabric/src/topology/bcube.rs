//! BCube (C. Guo et al., SIGCOMM 2009, section 3.1).

use super::plan::{Plan, in_range, largest};
use crate::error::Problem;
use crate::file::BCube;

/// Write a server's number with k + 1 digits in base n. At level l, the n servers whose numbers
/// differ only in digit l share a switch: its number among those of the level is theirs without
/// that digit. The servers come first here, as switches, because they forward.
pub(super) fn plan(bcube: &BCube, seed: u64) -> Result<Plan, Problem> {
    const KEY: &str = "topology.bcube";
    let &BCube { n, k, .. } = bcube;
    in_range(&format!("{KEY}.n"), n, 2, 1000)?;
    let switches = |k: usize| {
        let servers = n.checked_pow(k as u32 + 1)?;
        servers.checked_add((k + 1).checked_mul(servers / n)?)
    };
    in_range(&format!("{KEY}.k"), k, 0, largest(0, 12, switches))?;
    let servers = n.checked_pow(k as u32 + 1).unwrap_or(usize::MAX);
    let per_level = servers / n;
    let mut plan = Plan::with_switches(KEY, servers + (k + 1) * per_level, 3)?;
    let hosts = (bcube.hosts_per_switch, 1, &bcube.hosts);
    plan.place_hosts([KEY, "hosts_per_switch"], hosts, seed, 0..servers)?;
    for server in 0..servers {
        let mut place = 1;
        for level in 0..=k {
            let without = server / (place * n) * place + server % place;
            plan.link(KEY, server, servers + level * per_level + without);
            place *= n;
        }
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    #[test]
    fn bcube_of_four_and_one_is_figure_one_of_its_paper() {
        let text = "name: a\ntopology: {bcube: {n: 4, k: 1}}";
        let fabric = crate::parse("a.yaml".as_ref(), text).unwrap();
        assert_eq!((fabric.switches.len(), fabric.hosts.len()), (16 + 8, 16));
        assert_eq!(fabric.links.len(), 32);
        let of = |server: usize| -> Vec<usize> {
            let links = fabric.links.iter().filter(|link| link.a.switch == server);
            links.map(|link| link.b.switch - 16).collect()
        };
        // Server <1,0> is on the switches <0,1> and <1,0>; server <1,3> on <0,1> and <1,3>.
        assert_eq!(of(4), [1, 4]);
        assert_eq!(of(7), [1, 7]);
        assert!(fabric.switches[16..].iter().all(|switch| switch.ports == 4));
    }
}
