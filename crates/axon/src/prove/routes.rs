//! Routes of a fabric by its own controller, and the dependencies of buffers that they cause.

use super::bar::bar;
use super::proof::{Asked, Backups, Proof};
use axon_controller::router::Step;
use axon_fabric::model::{End, Fabric};
use axon_fabric::planned::{Planned, RouteAndBackup};
use axon_prove::Dependencies;
use std::collections::BTreeSet;

/// Pairs of hosts between two updates of the progress bar.
const LOOK: usize = 1_024;

/// Plans the routes of a fabric with its controller, takes down the links that fail, and finds
/// which buffers wait for which by those routes.
///
/// Failed links fail together. A frame for one of them is dropped, so no buffer waits there; frames
/// behind it continue. The routes before the failures, cut where they cross a failed link, and all
/// that are in use after each report of a switch, may be in use at the same time: their combined
/// dependencies are checked as well.
pub(super) fn prove(fabric: &Fabric, asked: Asked) -> Proof<'_> {
    let router = axon_fabric::static_mode::router(fabric, asked.seed);
    let mut planned = Planned::new(fabric, router, asked.seed);
    let bar = bar(asked.pairs.len() as u64, "routes", "pairs");
    for (at, &(a, b)) in asked.pairs.iter().enumerate() {
        planned.ask(a, b);
        if at % LOOK == 0 {
            bar.set_position(at as u64);
        }
    }
    bar.finish_and_clear();
    planned.settle();
    let failures = super::each::prove(&planned, &asked.pairs, &asked.each);
    let before = planned.controller().counters().routes_moved;
    let dead: BTreeSet<End> = asked
        .failed
        .iter()
        .flat_map(|&link| [fabric.links[link].a, fabric.links[link].b])
        .collect();
    let mut mixed = Dependencies::default();
    for &link in &asked.failed {
        mix(&planned, &asked, &dead, &mut mixed);
        planned.cut(&fabric.links[link]);
    }
    if fabric.controller.router.is_ordered() {
        // No route moves any more, but moved routes get their backups.
        planned.settle();
    }
    let moved = planned.controller().counters().routes_moved - before;
    let (mut dependencies, mut unreachable) = (Dependencies::default(), Vec::new());
    let mut on_layer = vec![0; usize::from(fabric.layers())];
    each(&planned, &asked, |flow, found| match found {
        Some((route, _)) => {
            dependencies.add(flow, fabric.priority_on(route.layer), route.steps());
            on_layer[route.layer.index()] += 1;
        }
        None => unreachable.push(asked.hosts(flow)),
    });
    let verdict = dependencies.verdict();
    let backups = backups(&planned, &asked, &dependencies);
    let mixed = (!asked.failed.is_empty()).then(|| {
        mix(&planned, &asked, &dead, &mut mixed);
        mixed.verdict()
    });
    Proof {
        buffers: super::buffers::of(fabric, asked.seed),
        watchdog: super::watchdog::of(fabric, &dependencies),
        disagreements: axon_fabric::dcb::disagreements(fabric),
        without_pfc: axon_fabric::dcb::without_pfc(fabric),
        fabric,
        asked,
        dependencies,
        on_layer,
        verdict,
        mixed,
        backups,
        moved,
        failures,
        unreachable,
    }
}

/// Adds the routes in use now, without the parts on dead links.
fn mix(planned: &Planned<'_>, asked: &Asked, dead: &BTreeSet<End>, mixed: &mut Dependencies) {
    let is_dead = |step: &Step| {
        dead.contains(&End { switch: planned.switch(step.switch), port: step.egress })
    };
    let has_order = planned.fabric().controller.router.is_ordered();
    each(planned, asked, |flow, found| {
        let Some((route, backup)) = found else { return };
        let steps: Vec<Step> = route.steps().collect();
        let priority = planned.fabric().priority_on(route.layer);
        for part in steps.split(is_dead) {
            mixed.add(flow, priority, part.iter().copied());
        }
        if let Some((steps, layer)) = backup.filter(|_| has_order) {
            let priority = planned.fabric().priority_on(layer);
            for part in steps.split(is_dead) {
                mixed.add(flow, priority, part.iter().copied());
            }
        }
    });
}

/// Checks the backups together with all routes: any of them may be in use.
fn backups(planned: &Planned<'_>, asked: &Asked, routes: &Dependencies) -> Backups {
    let fabric = planned.fabric();
    match fabric.controller.router.is_ordered() {
        _ if !fabric.controller.backups => return Backups::Off,
        false if fabric.is_lossless() => return Backups::NoOrder,
        false => return Backups::Lossy,
        true => {}
    }
    let (mut all, mut count) = (routes.clone(), 0);
    each(planned, asked, |flow, found| {
        if let Some((_, Some((steps, layer)))) = found {
            all.add(flow, fabric.priority_on(layer), steps.iter().copied());
            count += 1;
        }
    });
    Backups::Proved(count, all.verdict())
}

/// Calls the closure with every requested route, both directions of each pair.
fn each(
    planned: &Planned<'_>,
    asked: &Asked,
    mut look: impl FnMut(u32, Option<RouteAndBackup<'_>>),
) {
    let bar = bar(asked.pairs.len() as u64, "dependencies", "pairs");
    for flow in 0..asked.pairs.len() as u32 * 2 {
        let (from, to) = asked.hosts(flow);
        look(flow, planned.route_and_backup(from, to));
        if (flow as usize).is_multiple_of(LOOK) {
            bar.set_position(u64::from(flow) / 2);
        }
    }
    bar.finish_and_clear();
}
