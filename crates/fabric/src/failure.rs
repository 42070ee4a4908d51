//! Single failures of links and switches: checks whether buffers may wait for each other in a cycle
//! at any moment of the change.

use crate::assemble::port_name;
use crate::model::{End, Fabric};
use crate::planned::{Planned, RouteAndBackup};
use axon_controller::router::Step;
use axon_prove::{Dependencies, Verdict};
use axon_wire::Layer;
use std::collections::BTreeSet;

/// Failed link or switch, by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    /// A link between switches; both ends report it.
    Link(usize),
    /// A switch; its neighbours report it.
    Switch(usize),
}

/// Result of one failure.
#[derive(Clone, Debug)]
pub struct FailureProof {
    /// Failed link or switch.
    pub failed: Failed,
    /// Number of routes that moved.
    pub moved: u64,
    /// Number of routes that were withdrawn until the frames on old ones had left; `None` if no
    /// drain was needed.
    pub drained: Option<u64>,
    /// Verdict for all routes and backups in use from before the failure until every route is
    /// replaced or drained, taken together.
    pub during: Verdict,
    /// Verdict for the routes and backups in use after the change.
    pub after: Verdict,
    /// Pairs of hosts without a route, although a path exists.
    pub unreachable: Vec<(usize, usize)>,
    /// Number of ordered pairs of hosts without any path, apart from those of a failed switch.
    pub cut_off: usize,
}

impl Failed {
    /// Returns all links, then all switches.
    pub fn each(fabric: &Fabric) -> impl Iterator<Item = Failed> + use<> {
        let links = (0..fabric.links.len()).map(Failed::Link);
        links.chain((0..fabric.switches.len()).map(Failed::Switch))
    }

    /// Returns the name: the two ports of a link, or the switch.
    pub fn name(self, fabric: &Fabric) -> String {
        let port = |end: End| port_name(&fabric.switches[end.switch].name, end.port);
        match self {
            Failed::Link(link) => {
                let link = &fabric.links[link];
                format!("{},{}", port(link.a), port(link.b))
            }
            Failed::Switch(switch) => fabric.switches[switch].name.clone(),
        }
    }

    /// Returns the links that go down.
    fn links(self, fabric: &Fabric) -> Vec<usize> {
        let hit = |link: &usize| match self {
            Failed::Link(failed) => *link == failed,
            Failed::Switch(switch) => {
                let link = &fabric.links[*link];
                link.a.switch == switch || link.b.switch == switch
            }
        };
        (0..fabric.links.len()).filter(hit).collect()
    }
}

impl FailureProof {
    /// Returns whether no cycle was found and no pair is unreachable.
    #[cfg(test)]
    pub(crate) fn is_proved(&self) -> bool {
        let is_free = |verdict: &Verdict| matches!(verdict, Verdict::Free(_));
        is_free(&self.during) && is_free(&self.after) && self.unreachable.is_empty()
    }
}

/// Fails a link or switch of a fabric whose routes are planned for these pairs of hosts, and checks
/// the routes in use at each moment.
///
/// The reports of the switches reach the controller one after the other, and all that it has sent
/// up to the last of them may be in use together, with the earlier routes, and with all backups.
/// Links that are down carry nothing: a route is cut there. If the controller drains old paths, the
/// routes that it installs afterwards are checked together with those that it has kept.
pub fn prove(planned: &Planned<'_>, pairs: &[(usize, usize)], failed: Failed) -> FailureProof {
    let mut planned = planned.clone();
    let fabric = planned.fabric();
    let links = failed.links(fabric);
    let ends = links.iter().flat_map(|&link| [fabric.links[link].a, fabric.links[link].b]);
    let dead: BTreeSet<End> = ends.collect();
    let silent = match failed {
        Failed::Link(_) => None,
        Failed::Switch(switch) => Some(switch),
    };
    let moved = |planned: &Planned<'_>| planned.controller().counters().routes_moved;
    let before = moved(&planned);
    let mut during = Dependencies::default();
    add(&planned, pairs, &dead, &mut during);
    for &end in dead.iter().filter(|end| Some(end.switch) != silent) {
        planned.lose(end);
        add(&planned, pairs, &dead, &mut during);
    }
    planned.settle();
    add(&planned, pairs, &dead, &mut during);
    let lacking = without_route(&planned, pairs, silent, true);
    let drained = planned.drain();
    let mut after = Dependencies::default();
    add(&planned, pairs, &dead, &mut after);
    for &(from, to) in &lacking {
        planned.ask(from, to);
    }
    if !lacking.is_empty() {
        planned.settle();
        add(&planned, pairs, &dead, &mut after);
    }
    let unreachable = without_route(&planned, pairs, silent, true);
    FailureProof {
        failed,
        moved: moved(&planned) - before,
        drained: drained.then_some((lacking.len() - unreachable.len()) as u64),
        during: during.verdict(),
        after: after.verdict(),
        unreachable,
        cut_off: without_route(&planned, pairs, silent, false).len(),
    }
}

/// Adds the routes and backups in use, without the parts on dead links.
fn add(
    planned: &Planned<'_>,
    pairs: &[(usize, usize)],
    dead: &BTreeSet<End>,
    all: &mut Dependencies,
) {
    let is_dead = |step: &Step| {
        dead.contains(&End { switch: planned.switch(step.switch), port: step.egress })
    };
    let has_order = planned.fabric().controller.router.is_ordered();
    let mut parts = |flow: u32, steps: &[Step], layer: Layer| {
        let priority = planned.fabric().priority_on(layer);
        for part in steps.split(is_dead) {
            all.add(flow, priority, part.iter().copied());
        }
    };
    for (flow, (from, to)) in (0..).zip(both_ways(pairs)) {
        let Some((route, backup)): Option<RouteAndBackup<'_>> = planned.route_and_backup(from, to)
        else {
            continue;
        };
        parts(flow, &route.steps().collect::<Vec<_>>(), route.layer);
        if let Some((steps, layer)) = backup.filter(|_| has_order) {
            parts(flow, steps, layer);
        }
    }
}

/// Returns the pairs without a route, of hosts whose switches have not failed and are connected or
/// not, as `joined` says.
fn without_route(
    planned: &Planned<'_>,
    pairs: &[(usize, usize)],
    silent: Option<usize>,
    joined: bool,
) -> Vec<(usize, usize)> {
    let parts = planned.parts();
    let at = |host: usize| planned.fabric().hosts[host].switch;
    let lacks = |&(from, to): &(usize, usize)| {
        let failed = silent.is_some_and(|silent| [at(from), at(to)].contains(&silent));
        let has_way = parts[at(from)] == parts[at(to)];
        !failed && has_way == joined && planned.route(from, to).is_none()
    };
    both_ways(pairs).filter(lacks).collect()
}

/// Returns both directions of each pair.
fn both_ways(pairs: &[(usize, usize)]) -> impl Iterator<Item = (usize, usize)> + '_ {
    pairs.iter().flat_map(|&(a, b)| [(a, b), (b, a)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::RouterKind;
    use crate::samples::ring_with_chords;

    /// Totals over many failures.
    #[derive(Debug, Default, PartialEq, Eq)]
    struct Counts {
        failures: u64,
        moving: u64,
        /// Failures for which old paths were drained, and the routes missing meanwhile.
        draining: u64,
        waiting_routes: u64,
        not_proved: u64,
    }

    /// Proves every failure of a fabric.
    fn prove_all(fabric: &Fabric, seed: u64, counts: &mut Counts) {
        let router = fabric.controller.router;
        let mut planned = Planned::new(fabric, router.build(seed, fabric.layers()), seed);
        let hosts = fabric.hosts.len();
        let pairs: Vec<_> = (0..hosts).flat_map(|a| (a + 1..hosts).map(move |b| (a, b))).collect();
        assert!(pairs.iter().all(|&(a, b)| planned.ask(a, b)));
        planned.settle();
        for failed in Failed::each(fabric) {
            let proof = prove(&planned, &pairs, failed);
            counts.failures += 1;
            counts.moving += u64::from(proof.moved > 0);
            counts.draining += u64::from(proof.drained.is_some());
            counts.waiting_routes += proof.drained.unwrap_or(0);
            if !proof.is_proved() {
                counts.not_proved += 1;
                println!("seed {seed}, {}, {}: {proof:?}", router.name(), failed.name(fabric));
            }
        }
    }

    /// Fails every link and every switch of random fabrics, `AXON_FABRICS` of them (`make
    /// prove-failures`).
    #[test]
    fn every_single_failure_is_proved() {
        let wanted = std::env::var("AXON_FABRICS").ok().and_then(|wanted| wanted.parse().ok());
        for router in [RouterKind::UpDown, RouterKind::Layered] {
            let mut counts = Counts::default();
            for seed in 0..wanted.unwrap_or(5) {
                let text = format!(
                    "name: t\n{}controller: {{ router: {} }}\ndcb:\n  classes:\n  \
                     - {{ priorities: [0, 1, 2, 5, 6], ets: 40 }}\n  \
                     - {{ priorities: [3], ets: 50, lossless: true }}\n  \
                     - {{ priorities: [4], ets: 10, lossless: true }}\n  \
                     - {{ priorities: [7] }}\n{}",
                    ring_with_chords(seed),
                    router.name(),
                    if router == RouterKind::Layered { "  layers: [[3, 4]]\n" } else { "" },
                );
                let fabric = crate::parse("t.yaml".as_ref(), &text);
                let fabric = fabric.unwrap_or_else(|error| panic!("{error}\n{text}"));
                prove_all(&fabric, seed, &mut counts);
            }
            println!("{}: {counts:?}", router.name());
            assert!(counts.failures > 100 && counts.moving > 50, "{counts:?}");
            assert_eq!(counts.not_proved, 0, "{}: {counts:?}", router.name());
        }
    }
}
