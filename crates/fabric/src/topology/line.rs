//! A line: each switch is linked to the next.

use super::Plan;
use super::placing::Asked;
use crate::error::Problem;
use crate::file::Row;

pub(super) fn plan(row: &Row, seed: u64) -> Result<Plan, Problem> {
    let mut plan = Plan::with_switches("topology.line.switches", row.switches, 1)?;
    let asked = Asked {
        topology: "topology.line",
        key: "hosts_per_switch",
        per_switch: row.hosts_per_switch,
        default: 1,
        placed: &row.hosts,
        seed,
    };
    plan.place_hosts(&asked, 0..row.switches)?;
    for switch in 1..row.switches {
        plan.link("topology.line", switch - 1, switch);
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_line_of_three_has_two_links_and_hosts_come_first() {
        let fabric = crate::topology::line(3, 2);
        assert_eq!(fabric.links.len(), 2);
        assert_eq!(fabric.hosts[3].name, "h4");
        assert_eq!((fabric.hosts[3].switch, fabric.hosts[3].port.0), (1, 1));
        let ends = [fabric.links[1].a, fabric.links[1].b].map(|end| (end.switch, end.port.0));
        assert_eq!(ends, [(1, 3), (2, 2)]);
        assert_eq!((fabric.controller.at.switch, fabric.controller.at.port.0), (0, 3));
    }
}
