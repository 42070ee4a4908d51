//! A ring: each switch is linked to the next, and the last to the first.

use super::Plan;
use super::placing::Asked;
use crate::error::Problem;
use crate::file::Row;

pub(super) fn plan(row: &Row, seed: u64) -> Result<Plan, Problem> {
    let mut plan = Plan::with_switches("topology.ring.switches", row.switches, 3)?;
    let asked = Asked {
        topology: "topology.ring",
        key: "hosts_per_switch",
        per_switch: row.hosts_per_switch,
        default: 1,
        placed: &row.hosts,
        seed,
    };
    plan.place_hosts(&asked, 0..row.switches)?;
    for switch in 0..row.switches {
        plan.link("topology.ring", switch, (switch + 1) % row.switches);
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_switch_of_a_ring_has_two_neighbours() {
        let fabric = crate::topology::ring(5, 0);
        assert_eq!(fabric.links.len(), 5);
        for switch in 0..5 {
            let links = fabric.links.iter();
            let degree = links.filter(|l| l.a.switch == switch || l.b.switch == switch);
            assert_eq!(degree.count(), 2);
        }
    }
}
