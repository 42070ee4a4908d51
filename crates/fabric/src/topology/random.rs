//! A connected random graph, identical for equal seeds on every machine.

use super::plan::{Plan, in_range};
use crate::error::Problem;
use crate::file::Random;
use oorandom::Rand32;
use std::collections::BTreeSet;

/// A growing graph with a limit of links per switch.
struct Graph {
    degree_max: usize,
    degree: Vec<usize>,
    linked: BTreeSet<(usize, usize)>,
    /// Switches that may have one more link.
    spare: Vec<usize>,
    random: Rand32,
}

impl Graph {
    fn add(&mut self, switch: usize) {
        self.degree.push(0);
        self.spare.push(switch);
    }

    fn pick(&mut self) -> usize {
        self.spare[self.random.rand_range(0..self.spare.len() as u32) as usize]
    }

    /// Links two switches; returns whether that was possible.
    fn join(&mut self, a: usize, b: usize) -> bool {
        if a == b || !self.linked.insert((a.min(b), a.max(b))) {
            return false;
        }
        for switch in [a, b] {
            self.degree[switch] += 1;
            if self.degree[switch] == self.degree_max {
                self.spare.retain(|&other| other != switch);
            }
        }
        true
    }
}

/// Builds a random tree first: each switch is linked to a random earlier one that may have one more
/// link, so the graph is connected. Then random pairs of switches are linked that may both have one
/// more link and are not linked yet, until ten times as many pairs as there are switches were drawn
/// without success. Places left over have no partner, or hardly any.
pub(super) fn plan(random: &Random, fabric_seed: u64) -> Result<Plan, Problem> {
    let key = "topology.random";
    in_range("topology.random.degree", random.degree, 2, 1000)?;
    let mut plan = Plan::with_switches("topology.random.switches", random.switches, 2)?;
    let hosts = (random.hosts_per_switch, 1, &random.hosts);
    plan.place_hosts([key, "hosts_per_switch"], hosts, fabric_seed, 0..random.switches)?;
    let mut graph = Graph {
        degree_max: random.degree,
        degree: Vec::new(),
        linked: BTreeSet::new(),
        spare: Vec::new(),
        random: Rand32::new(random.seed.unwrap_or(fabric_seed)),
    };
    graph.add(0);
    for switch in 1..random.switches {
        let earlier = graph.pick();
        graph.add(switch);
        graph.join(earlier, switch);
        plan.link(key, earlier, switch);
    }
    let mut in_vain = 0;
    while graph.spare.len() > 1 && in_vain < 10 * random.switches {
        let (a, b) = (graph.pick(), graph.pick());
        if graph.join(a, b) {
            plan.link(key, a, b);
        } else {
            in_vain += 1;
        }
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use crate::model::Fabric;

    fn random(switches: usize, seed: u64) -> Fabric {
        let generator =
            format!("switches: {switches}, degree: 3, hosts_per_switch: 0, seed: {seed}");
        crate::samples::sample(&format!("random: {{ {generator} }}"))
    }

    #[test]
    fn a_random_graph_is_connected_and_keeps_its_degree() {
        // `build` refuses a graph that is not connected, so building it is the test.
        for seed in 0..50 {
            let fabric = random(20, seed);
            let mut degree = [0; 20];
            for link in &fabric.links {
                degree[link.a.switch] += 1;
                degree[link.b.switch] += 1;
            }
            assert!(degree.iter().all(|d| (1..=3).contains(d)), "seed {seed}: {degree:?}");
            assert!(fabric.links.len() >= 28, "seed {seed}: nearly full");
        }
    }

    #[test]
    fn a_seed_is_a_graph_for_good() {
        let ends = |seed| -> Vec<(usize, usize)> {
            let links = random(6, seed).links;
            links.iter().map(|link| (link.a.switch, link.b.switch)).collect()
        };
        assert_eq!(ends(1), ends(1));
        assert_ne!(ends(1), ends(2));
    }
}
