//! A star: every other switch is linked to s1, which has no hosts.

use super::Plan;
use super::placing::Asked;
use crate::error::Problem;
use crate::file::Row;

pub(super) fn plan(row: &Row, seed: u64) -> Result<Plan, Problem> {
    let mut plan = Plan::with_switches("topology.star.switches", row.switches, 2)?;
    let asked = Asked {
        topology: "topology.star",
        key: "hosts_per_switch",
        per_switch: row.hosts_per_switch,
        default: 1,
        placed: &row.hosts,
        seed,
    };
    plan.place_hosts(&asked, 1..row.switches)?;
    for switch in 1..row.switches {
        plan.link("topology.star", 0, switch);
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_middle_of_a_star_has_all_links_and_no_host() {
        let fabric = crate::topology::star(4, 2);
        assert_eq!(fabric.hosts.len(), 6);
        assert!(fabric.hosts.iter().all(|host| host.switch != 0));
        assert!(fabric.links.iter().all(|link| link.a.switch == 0));
    }
}
