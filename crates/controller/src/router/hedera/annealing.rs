//! Simulated annealing (Hedera §4.4).

use super::super::flow::mix;
use super::super::{Flow, Loads, Router, ShortestPaths, Step};
use super::CANDIDATES;
use crate::topology::Graph;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_node::random::Random;

/// Maximum number of steps in one round.
const STEPS_MAX: u64 = 20_000;

/// Draws the tree of paths to each destination host.
///
/// As in Hedera, the state assigns one choice to each destination host, not to each flow, which
/// keeps the state small. A choice is a tree of shortest paths towards the host. At every switch, a
/// hash of the host and the choice selects one of the links that lead nearer. (In a fat tree, this
/// selects a core switch.) The energy of a state is the sum, over all links, of the load above a
/// limit. The limit is 31/32 of the load on the fullest link when the round begins, so that a round
/// works on the peaks.
///
/// A round starts from the current state and makes one step per destination, but at most 20,000. In
/// a step, a destination and a choice are drawn, and the change in energy is computed from the
/// flows to that host alone. A step down is always taken, and a step up by d is taken with
/// probability 2^(-d / T), in integers. T falls linearly to zero, from a sixteenth of the mean
/// number of links of a flow. The result of a round is applied if it lowers the energy by 1/8.
/// Otherwise the state is unchanged, and the rounds end.
#[derive(Clone, Debug)]
pub struct Annealing {
    shortest: ShortestPaths,
    loads: Loads,
    random: Random,
    /// Choice for each destination host.
    choices: BTreeMap<u64, u8>,
    spare: Vec<Step>,
}

/// Loads and energy in a trial state.
struct Trial {
    loads: Loads,
    limit: u32,
    energy: u64,
}

impl Trial {
    fn add(&mut self, path: &[Step]) {
        let full = |step: &&Step| self.loads.get(step.switch, step.egress) >= self.limit;
        self.energy += path.iter().filter(full).count() as u64;
        self.loads.add(path);
    }

    fn remove(&mut self, path: &[Step]) {
        self.loads.remove(path);
        let full = |step: &&Step| self.loads.get(step.switch, step.egress) >= self.limit;
        self.energy -= path.iter().filter(full).count() as u64;
    }
}

impl Annealing {
    /// Creates a router with random numbers from `seed`.
    pub(crate) fn new(seed: u64) -> Annealing {
        let (shortest, loads, choices, spare) = Default::default();
        Annealing { shortest, loads, random: Random::new(seed), choices, spare }
    }

    fn choice(&self, towards: u64) -> u8 {
        self.choices.get(&towards).copied().unwrap_or(0)
    }

    /// Computes, into `self.spare`, the path of a flow for a given choice of its destination.
    fn pick(&mut self, graph: &Graph, flow: &Flow, choice: u8) -> bool {
        let hash = mix(flow.towards << 8 | u64::from(choice));
        self.shortest.pick(graph, flow.from, flow.to, hash, &mut self.spare)
    }

    /// Changes the choice for the destination host of all `flows`.
    fn change(&mut self, graph: &Graph, flows: &[Flow], choice: u8, trial: &mut Trial) {
        let Some(towards) = flows.first().map(|flow| flow.towards) else { return };
        let before = self.choice(towards);
        for flow in flows {
            if self.pick(graph, flow, before) {
                trial.remove(&self.spare);
            }
            if self.pick(graph, flow, choice) {
                trial.add(&self.spare);
            }
        }
        self.choices.insert(towards, choice);
    }

    /// Returns whether a step up by `rise` is taken at this temperature. The probability is
    /// 2^(-rise / temperature), linearly interpolated between the powers of two.
    fn takes(&mut self, rise: u64, temperature: u64) -> bool {
        if temperature == 0 {
            return false;
        }
        let (halvings, rest) = (rise / temperature, rise % temperature);
        if halvings >= 32 {
            return false;
        }
        let one = (1_u64 << 32) >> halvings;
        let chance = one - one / 2 * rest / temperature;
        self.random.next_u64() >> 32 < chance
    }
}

impl Router for Annealing {
    fn path(&mut self, graph: &Graph, flow: &Flow, path: &mut Vec<Step>) -> bool {
        let found = self.pick(graph, flow, self.choice(flow.towards));
        core::mem::swap(path, &mut self.spare);
        found
    }

    fn shortest(&mut self) -> &mut ShortestPaths {
        &mut self.shortest
    }

    fn loads(&mut self) -> Option<&mut Loads> {
        Some(&mut self.loads)
    }

    fn better(
        &mut self,
        graph: &Graph,
        flow: &Flow,
        current: &[Step],
        path: &mut Vec<Step>,
    ) -> bool {
        self.path(graph, flow, path) && path.as_slice() != current
    }

    fn improves(&self) -> bool {
        true
    }

    fn round(&mut self, graph: &Graph, flows: &[Flow]) {
        let mut flows = flows.to_vec();
        flows.sort_by_key(|flow| flow.towards);
        if flows.is_empty() {
            return;
        }
        let fullest = self.loads.each().map(|(_, flows)| flows).max().unwrap_or(0);
        let limit = (fullest - fullest / 32).max(1);
        let mut trial = Trial { loads: Loads::default(), limit, energy: 0 };
        for flow in &flows {
            if self.pick(graph, flow, self.choice(flow.towards)) {
                trial.add(&self.spare);
            }
        }
        let by_host: Vec<&[Flow]> = flows.chunk_by(|a, b| a.towards == b.towards).collect();
        let (first, choices) = (trial.energy, self.choices.clone());
        let steps = (by_host.len() as u64).min(STEPS_MAX);
        let hottest = trial.loads.total() / flows.len() as u64 / 16 + 1;
        for step in 0..steps {
            let drawn = self.random.next_u64();
            let host = by_host[(((drawn >> 32) * by_host.len() as u64) >> 32) as usize];
            let before = (trial.energy, self.choice(host[0].towards));
            let choice = (drawn % CANDIDATES) as u8;
            if choice == before.1 {
                continue;
            }
            self.change(graph, host, choice, &mut trial);
            let rise = trial.energy.saturating_sub(before.0);
            if rise > 0 && !self.takes(rise, hottest * (steps - step - 1) / steps) {
                self.change(graph, host, before.1, &mut trial);
            }
        }
        if trial.energy > first - first.div_ceil(8) {
            self.choices = choices;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{all_pairs, improve, place, spread, tell, torus};
    use super::*;

    #[test]
    fn annealing_lowers_the_maximum_and_comes_to_an_end_the_same_for_the_same_seed() {
        let mut graph = Graph::default();
        tell(&mut graph, 1, 40, &torus(4, 10));
        let flows = all_pairs(&graph, 3);
        let run = || {
            let mut router = Annealing::new(3);
            let mut paths = place(&mut router, &graph, &flows);
            let first = spread(&paths).0;
            let mut rounds = 0;
            while improve(&mut router, &graph, &flows, &mut paths) > 0 {
                rounds += 1;
                assert!(rounds < 100, "rounds must come to an end");
            }
            (first, paths)
        };
        let (first, paths) = run();
        assert!(spread(&paths).0 < first, "{:?} {first}", spread(&paths));
        assert_eq!(paths, run().1);
    }

    #[test]
    fn a_step_up_is_taken_as_often_as_its_temperature_says() {
        let mut router = Annealing::new(1);
        let mut taken =
            |rise, temperature| (0..4_000).filter(|_| router.takes(rise, temperature)).count();
        assert_eq!((taken(1, 0), taken(64, 1), taken(0, 5)), (0, 0, 4_000));
        assert!((1_800..2_200).contains(&taken(10, 10)));
        assert!((900..1_100).contains(&taken(20, 10)));
    }
}
