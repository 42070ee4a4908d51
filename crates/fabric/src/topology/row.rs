//! A line, a ring and a star: switches in a row, given by their number.

use super::plan::Plan;
use crate::error::Problem;
use crate::file::Row;

/// Links each switch to the next.
pub(super) fn line(row: &Row, seed: u64) -> Result<Plan, Problem> {
    const KEY: &str = "topology.line";
    let mut plan = unlinked(KEY, row, 1, 0, seed)?;
    for switch in 1..row.switches {
        plan.link(KEY, switch - 1, switch);
    }
    Ok(plan)
}

/// Links each switch to the next, and the last to the first.
pub(super) fn ring(row: &Row, seed: u64) -> Result<Plan, Problem> {
    const KEY: &str = "topology.ring";
    let mut plan = unlinked(KEY, row, 3, 0, seed)?;
    for switch in 0..row.switches {
        plan.link(KEY, switch, (switch + 1) % row.switches);
    }
    Ok(plan)
}

/// Links every other switch to s1, which has no hosts.
pub(super) fn star(row: &Row, seed: u64) -> Result<Plan, Problem> {
    const KEY: &str = "topology.star";
    let mut plan = unlinked(KEY, row, 2, 1, seed)?;
    for switch in 1..row.switches {
        plan.link(KEY, 0, switch);
    }
    Ok(plan)
}

/// Returns the switches, `least` or more, and the hosts of those from `first` on.
fn unlinked(
    topology: &'static str,
    row: &Row,
    least: usize,
    first: usize,
    seed: u64,
) -> Result<Plan, Problem> {
    let mut plan = Plan::with_switches(&format!("{topology}.switches"), row.switches, least)?;
    let hosts = (row.hosts_per_switch, 1, &row.hosts);
    plan.place_hosts([topology, "hosts_per_switch"], hosts, seed, first..row.switches)?;
    Ok(plan)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_line_of_three_has_two_links_and_hosts_come_first() {
        let fabric = crate::samples::line(3, 2);
        assert_eq!(fabric.links.len(), 2);
        assert_eq!(fabric.hosts[3].name, "h4");
        assert_eq!((fabric.hosts[3].switch, fabric.hosts[3].port.0), (1, 1));
        let ends = [fabric.links[1].a, fabric.links[1].b].map(|end| (end.switch, end.port.0));
        assert_eq!(ends, [(1, 3), (2, 2)]);
        assert_eq!((fabric.controller.at.switch, fabric.controller.at.port.0), (0, 3));
    }

    #[test]
    fn every_switch_of_a_ring_has_two_neighbours() {
        let fabric = crate::samples::ring(5, 0);
        assert_eq!(fabric.links.len(), 5);
        for switch in 0..5 {
            let links = fabric.links.iter();
            let degree = links.filter(|l| l.a.switch == switch || l.b.switch == switch);
            assert_eq!(degree.count(), 2);
        }
    }

    #[test]
    fn the_middle_of_a_star_has_all_links_and_no_host() {
        let fabric = crate::samples::sample("star: { switches: 4, hosts_per_switch: 2 }");
        assert_eq!(fabric.hosts.len(), 6);
        assert!(fabric.hosts.iter().all(|host| host.switch != 0));
        assert!(fabric.links.iter().all(|link| link.a.switch == 0));
    }
}
