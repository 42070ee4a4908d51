//! A ring: each switch is linked to the next, and the last to the first.

use super::Plan;
use crate::error::Problem;
use crate::file::Row;

pub(super) fn plan(row: &Row) -> Result<Plan, Problem> {
    let mut plan = Plan::with_switches("topology.ring.switches", row.switches, 3)?;
    let key = "topology.ring.hosts_per_switch";
    plan.add_hosts(key, 0..row.switches, row.hosts_per_switch)?;
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
