//! DCell (C. Guo et al., SIGCOMM 2008, section 3.2).

use super::plan::{Plan, in_range, not_too_many};
use crate::error::Problem;
use crate::file::DCell;

/// A cell of level 0 is n servers on one switch. If a cell of the level below has t servers, a cell
/// of level l is made of t + 1 such cells: cells 0 to t. For any two of them, i < j, server j - 1
/// of cell i is linked to server i of cell j, so that each server gets exactly one link a level.
/// The servers come first here, as switches, because they forward.
pub(super) fn plan(dcell: &DCell, seed: u64) -> Result<Plan, Problem> {
    const KEY: &str = "topology.dcell";
    let &DCell { n, k, .. } = dcell;
    in_range(&format!("{KEY}.n"), n, 2, 1000)?;
    in_range(&format!("{KEY}.k"), k, 0, 3)?;
    let mut sizes = vec![n];
    for level in 0..k {
        let below = sizes[level];
        not_too_many(KEY, below * (below + 1))?;
        sizes.push(below * (below + 1));
    }
    let servers = sizes[k];
    not_too_many(KEY, servers + servers / n)?;
    let mut plan = Plan::with_switches(KEY, servers + servers / n, 3)?;
    let hosts = (dcell.hosts_per_switch, 1, &dcell.hosts);
    plan.place_hosts([KEY, "hosts_per_switch"], hosts, seed, 0..servers)?;
    for server in 0..servers {
        plan.link(KEY, server, servers + server / n);
    }
    for level in 1..=k {
        let below = sizes[level - 1];
        for cell in (0..servers).step_by(sizes[level]) {
            for i in 0..below {
                for j in i + 1..=below {
                    plan.link(KEY, cell + i * below + j - 1, cell + j * below + i);
                }
            }
        }
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    #[test]
    fn dcell_of_four_and_one_is_figure_one_of_its_paper() {
        let text = "name: a\ntopology: {dcell: {n: 4, k: 1}}";
        let fabric = crate::parse("a.yaml".as_ref(), text).unwrap();
        assert_eq!((fabric.switches.len(), fabric.hosts.len()), (20 + 5, 20));
        assert_eq!(fabric.links.len(), 20 + 10);
        // [0,0] with [1,0], [0,3] with [4,0], [3,3] with [4,3].
        for pair in [(0, 4), (3, 16), (15, 19)] {
            assert!(fabric.links.iter().any(|l| (l.a.switch, l.b.switch) == pair), "{pair:?}");
        }
    }

    #[test]
    fn every_server_has_a_link_a_level_and_its_switch() {
        let text = "name: a\ntopology: {dcell: {n: 2, k: 2, hosts_per_switch: 0}}";
        let fabric = crate::parse("a.yaml".as_ref(), text).unwrap();
        assert_eq!(fabric.switches.len(), 42 + 21);
        assert!(fabric.switches[1..42].iter().all(|switch| switch.ports == 3));
    }
}
