//! Random-low and random-high of paper 001, section 5.

use super::plan::{Plan, in_range};
use crate::error::Problem;
use crate::file::RandomLinks;
use oorandom::Rand64;
use std::collections::BTreeSet;

/// Maximum number of graphs drawn in search of a connected one.
const DRAWS_MAX: usize = 100;

/// Visits each switch in order and links it to n random others, so that a switch has 2n links on
/// average: its own n and those that others make to it. For an odd average, every second switch,
/// from the first, makes one more link than the others.
///
/// The paper leaves these points open: a switch is never linked to itself, nor twice to the same
/// other; such a draw is repeated, and a switch that has all others as neighbours already makes no
/// more links. A graph that is not connected is discarded as a whole and drawn anew from the next
/// random numbers, so that all connected graphs keep their relative probabilities.
pub(super) fn plan(random: &RandomLinks, fabric_seed: u64) -> Result<Plan, Problem> {
    const KEY: &str = "topology.random_links";
    let degree_key = format!("{KEY}.average_degree");
    let mut plan = Plan::with_switches(&format!("{KEY}.switches"), random.switches, 3)?;
    in_range(&degree_key, random.average_degree, 2, (random.switches - 1).min(1000))?;
    let hosts = (random.hosts_per_switch, 1, &random.hosts);
    plan.place_hosts([KEY, "hosts_per_switch"], hosts, fabric_seed, 0..random.switches)?;
    let mut dice = Rand64::new(u128::from(random.seed.unwrap_or(fabric_seed)));
    let links = draw_connected(random.switches, random.average_degree, DRAWS_MAX, &mut dice);
    let links = links.ok_or_else(|| {
        let what = format!("none of {DRAWS_MAX} graphs is connected");
        Problem::new(degree_key, what, "a higher average_degree, such as 4")
    })?;
    links.iter().for_each(|&(a, b)| plan.link(KEY, a, b));
    Ok(plan)
}

fn draw_connected(
    switches: usize,
    average_degree: usize,
    draws_max: usize,
    dice: &mut Rand64,
) -> Option<Vec<(usize, usize)>> {
    let mut draws = (0..draws_max).map(|_| draw(switches, average_degree, dice));
    draws.find(|links| connected(switches, links))
}

fn draw(switches: usize, average_degree: usize, dice: &mut Rand64) -> Vec<(usize, usize)> {
    let mut neighbours = vec![BTreeSet::new(); switches];
    let mut links = Vec::new();
    for switch in 0..switches {
        for _ in 0..(average_degree + usize::from(switch % 2 == 0)) / 2 {
            if neighbours[switch].len() == switches - 1 {
                break;
            }
            let other = loop {
                let other = dice.rand_range(0..switches as u64) as usize;
                if other != switch && neighbours[switch].insert(other) {
                    break other;
                }
            };
            neighbours[other].insert(switch);
            links.push((switch, other));
        }
    }
    links
}

/// Returns whether links connect all switches, by merging sets of switches link by link.
fn connected(switches: usize, links: &[(usize, usize)]) -> bool {
    let mut above: Vec<usize> = (0..switches).collect();
    fn top(above: &mut [usize], mut switch: usize) -> usize {
        while above[switch] != switch {
            above[switch] = above[above[switch]];
            switch = above[switch];
        }
        switch
    }
    let mut parts = switches;
    for &(a, b) in links {
        let (a, b) = (top(&mut above, a), top(&mut above, b));
        if a != b {
            above[a] = b;
            parts -= 1;
        }
    }
    parts == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Fabric;

    fn random_links(switches: usize, degree: usize, seed: u64) -> Fabric {
        crate::samples::sample(&format!(
            "random_links: {{ switches: {switches}, average_degree: {degree}, \
             hosts_per_switch: 0, seed: {seed} }}"
        ))
    }

    #[test]
    fn each_switch_makes_half_of_the_average_degree() {
        for seed in 0..20 {
            let fabric = random_links(100, 4, seed);
            assert_eq!(fabric.links.len(), 200, "seed {seed}");
            for switch in 0..100 {
                let made = fabric.links.iter().filter(|link| link.a.switch == switch).count();
                assert_eq!(made, 2, "seed {seed}");
            }
            let pairs: BTreeSet<_> = fabric
                .links
                .iter()
                .map(|l| (l.a.switch.min(l.b.switch), l.a.switch.max(l.b.switch)))
                .collect();
            assert_eq!(pairs.len(), 200, "seed {seed}: no link is there twice");
        }
    }

    #[test]
    fn an_odd_average_is_met_too() {
        assert_eq!(random_links(100, 5, 1).links.len(), 250);
    }

    #[test]
    fn an_average_of_all_others_ends_as_a_full_graph_at_most() {
        let links = random_links(5, 4, 1).links.len();
        assert!((4..=10).contains(&links), "{links}");
    }

    #[test]
    fn a_graph_in_parts_is_drawn_anew_and_given_up_in_the_end() {
        // With one link each, about one graph in 25 of this size is connected.
        let mut dice = Rand64::new(2);
        let first = draw_connected(1000, 2, 1, &mut dice);
        assert!(first.is_none(), "a seed whose first graph is in parts");
        assert!(draw_connected(1000, 2, 1000, &mut dice).is_some());
    }

    #[test]
    fn what_is_not_joined_is_not_connected() {
        assert!(connected(3, &[(0, 1), (2, 1)]));
        assert!(!connected(4, &[(0, 1), (2, 3), (1, 0)]));
    }
}
