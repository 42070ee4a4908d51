//! A torus: a grid whose rows and columns close into rings. Switches are numbered row by row.

use super::plan::{Plan, in_range};
use crate::error::Problem;
use crate::file::Torus;

/// Links each switch to its right and its lower neighbour, both around the edge. With a side of two
/// both neighbours are the same switch, which one link joins, not two.
pub(super) fn plan(torus: &Torus, seed: u64) -> Result<Plan, Problem> {
    let &Torus { rows, cols, .. } = torus;
    in_range("topology.torus.rows", rows, 2, super::plan::SWITCHES_MAX / 2)?;
    in_range("topology.torus.cols", cols, 2, super::plan::SWITCHES_MAX / rows)?;
    let mut plan = Plan::with_switches("topology.torus", rows * cols, 4)?;
    let hosts = (torus.hosts_per_switch, 1, &torus.hosts);
    plan.place_hosts(["topology.torus", "hosts_per_switch"], hosts, seed, 0..rows * cols)?;
    for row in 0..rows {
        for col in 0..cols {
            let here = row * cols + col;
            if cols > 2 || col == 0 {
                plan.link("topology.torus", here, row * cols + (col + 1) % cols);
            }
            if rows > 2 || row == 0 {
                plan.link("topology.torus", here, (row + 1) % rows * cols + col);
            }
        }
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    fn torus(rows: usize, cols: usize, hosts: usize) -> crate::model::Fabric {
        let sides = format!("rows: {rows}, cols: {cols}, hosts_per_switch: {hosts}");
        crate::samples::sample(&format!("torus: {{ {sides} }}"))
    }

    #[test]
    fn a_torus_has_two_links_per_switch() {
        let fabric = torus(5, 5, 2);
        assert_eq!((fabric.switches.len(), fabric.hosts.len()), (25, 50));
        assert_eq!(fabric.links.len(), 50);
        assert!(fabric.switches[1..].iter().all(|switch| switch.ports == 6));
        assert_eq!(fabric.switches[0].ports, 7, "the controller's too");
    }

    #[test]
    fn a_side_of_two_has_no_double_links() {
        assert_eq!(torus(2, 2, 0).links.len(), 4);
        assert_eq!(torus(2, 3, 0).links.len(), 9);
    }
}
