//! A fat tree of k-port switches (M. Al-Fares et al., SIGCOMM 2008, section 3).

use super::plan::Plan;
use crate::error::Problem;
use crate::file::FatTree;

/// Maximum ports of a switch: 9,680 switches. With 90 the fabric would exceed the limit of
/// switches.
const K_MAX_BY_SWITCHES: usize = 88;
/// Maximum ports of a switch where each edge switch has k/2 hosts: 93,312 of them. With 74 the
/// fabric would exceed the limit of hosts.
const K_MAX_BY_HOSTS: usize = 72;

/// Numbering: first all edge switches, pod by pod, then all aggregation switches, pod by
/// pod, then the core. In a pod every edge switch is linked to every aggregation switch;
/// aggregation switch `i` of each pod is linked to the `i`-th k/2 core switches.
pub(super) fn plan(tree: &FatTree, seed: u64) -> Result<Plan, Problem> {
    let key = "topology.fat_tree.k";
    let is_default = tree.hosts_per_edge.is_none() && tree.hosts.is_none();
    let most = if is_default { K_MAX_BY_HOSTS } else { K_MAX_BY_SWITCHES };
    if !(2..=most).contains(&tree.k) || !tree.k.is_multiple_of(2) {
        let what = format!("{} is out of range", tree.k);
        let expected = format!("an even number, 2 to {most}");
        return Err(Problem::new(key, what, expected));
    }
    let (pods, half) = (tree.k, tree.k / 2);
    let edges = pods * half;
    let mut plan = Plan::with_switches(key, 2 * edges + half * half, 5)?;
    let hosts = (tree.hosts_per_edge, half, &tree.hosts);
    plan.place_hosts(["topology.fat_tree", "hosts_per_edge"], hosts, seed, 0..edges)?;
    for pod in 0..pods {
        for edge in 0..half {
            for aggregation in 0..half {
                let aggregation = edges + pod * half + aggregation;
                plan.link("topology.fat_tree", pod * half + edge, aggregation);
            }
        }
        for aggregation in 0..half {
            for core in 0..half {
                let core = 2 * edges + aggregation * half + core;
                plan.link("topology.fat_tree", edges + pod * half + aggregation, core);
            }
        }
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_switch_of_a_fat_tree_has_k_ports() {
        let fabric = crate::samples::fat_tree(4);
        assert_eq!((fabric.switches.len(), fabric.hosts.len()), (20, 16));
        assert_eq!(fabric.links.len(), 32);
        assert!(fabric.switches[1..].iter().all(|switch| switch.ports == 4));
        assert_eq!(fabric.switches[0].ports, 5, "the controller's too");
    }
}
