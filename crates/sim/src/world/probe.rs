//! Probes in a world: plans for a path of switches, and their reports.

use crate::world::World;
use axon_fabric::model::{End, Fabric};
use axon_node::probe::{ProbeId, ProbePlan, ProbeReport};
use axon_node::{PortKind, PortView};
use axon_wire::{PortNo, Time};
use std::collections::VecDeque;

/// Reason why no probe can follow the requested path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The path has fewer than two switches.
    #[error("a path needs two switches at least, as s1,s2: a probe leaves its switch and returns")]
    TooShort,
    /// Two consecutive switches have no link.
    #[error("{from} has no link to {to}; it has links to {}", neighbours(linked))]
    NoLink {
        /// Switch of the path.
        from: String,
        /// Next switch of the path.
        to: String,
        /// Switches to which `from` has links.
        linked: Vec<String>,
    },
    /// No path joins the two switches.
    #[error("no path leads from {0} to {1}")]
    Apart(String, String),
}

fn neighbours(names: &[String]) -> String {
    if names.is_empty() { "nowhere".into() } else { names.join(" ") }
}

/// Returns the links of a path of switches, by index: for each the egress and the ingress end. Of
/// parallel links the first in the file is taken.
///
/// # Errors
/// Fewer than two switches, or two in a row without a link.
pub fn links_of(fabric: &Fabric, path: &[usize]) -> Result<Vec<(End, End)>, PathError> {
    if path.len() < 2 {
        return Err(PathError::TooShort);
    }
    path.windows(2).map(|pair| link(fabric, pair[0], pair[1])).collect()
}

/// Returns both directions of every link of a switch, its own end first.
fn links_from(fabric: &Fabric, switch: usize) -> impl Iterator<Item = (End, End)> {
    let both = fabric.links.iter().flat_map(|link| [(link.a, link.b), (link.b, link.a)]);
    both.filter(move |(near, _)| near.switch == switch)
}

fn link(fabric: &Fabric, from: usize, to: usize) -> Result<(End, End), PathError> {
    let found = links_from(fabric, from).find(|(_, far)| far.switch == to);
    found.ok_or_else(|| {
        let name = |switch: usize| fabric.switches[switch].name.clone();
        let mut linked: Vec<usize> = links_from(fabric, from).map(|(_, far)| far.switch).collect();
        linked.sort_unstable();
        linked.dedup();
        PathError::NoLink {
            from: name(from),
            to: name(to),
            linked: linked.into_iter().map(name).collect(),
        }
    })
}

/// Returns a probe along a path of switches and back the same way, with 60 bytes by default.
///
/// # Errors
/// As [`links_of`].
pub fn plan_along(fabric: &Fabric, path: &[usize]) -> Result<ProbePlan, PathError> {
    let links = links_of(fabric, path)?;
    let out: Vec<PortNo> = links.iter().map(|(near, _)| near.port).collect();
    let back: Vec<PortNo> = links.iter().rev().map(|(_, far)| far.port).collect();
    Ok(ProbePlan::out_and_back(&out, &back))
}

/// Returns a shortest path of switches, found breadth first in the order of the file's links.
///
/// # Errors
/// There is none.
pub fn shortest_path(fabric: &Fabric, from: usize, to: usize) -> Result<Vec<usize>, PathError> {
    let mut before = vec![None; fabric.switches.len()];
    before[from] = Some(from);
    let mut next = VecDeque::from([from]);
    while let Some(switch) = next.pop_front() {
        for (_, far) in links_from(fabric, switch) {
            if before[far.switch].is_none() {
                before[far.switch] = Some(switch);
                next.push_back(far.switch);
            }
        }
    }
    let mut path = vec![to];
    let mut at = to;
    while at != from {
        let name = |switch: usize| fabric.switches[switch].name.clone();
        at = before[at].ok_or_else(|| PathError::Apart(name(from), name(to)))?;
        path.push(at);
    }
    path.reverse();
    Ok(path)
}

/// Returns the switches on a route from `switch`, that one included; `None` if a hop leads nowhere.
/// The last hop, to a host, is not followed.
pub fn switches_of(fabric: &Fabric, switch: usize, hops: &[PortNo]) -> Option<Vec<usize>> {
    let mut path = vec![switch];
    let mut at = switch;
    for &port in hops.split_last()?.1 {
        let (_, far) = links_from(fabric, at).find(|(near, _)| near.port == port)?;
        at = far.switch;
        path.push(at);
    }
    Some(path)
}

/// Returns the report of a plan so far; `None` if its switch has restarted since.
pub fn report(world: &World, switch: usize, id: ProbeId) -> Option<&ProbeReport> {
    world.switch(switch)?.probes().find(|report| report.id == id)
}

/// Returns whether both ends of every link of a path have discovered each other, so that a probe
/// can pass.
pub fn is_path_known(world: &World, links: &[(End, End)]) -> bool {
    let known = |end: End| {
        let switch = world.switch(end.switch);
        switch.is_some_and(|node| node.plane().kind(end.port) == Some(PortKind::Axon))
    };
    links.iter().all(|&(near, far)| known(near) && known(far))
}

/// Runs until a plan is finished. Returns `None` if it is not finished before `limit`, or its
/// switch lost power.
pub fn finish(world: &mut World, switch: usize, id: ProbeId, limit: Time) -> Option<ProbeReport> {
    let done = |world: &World| report(world, switch, id).is_none_or(ProbeReport::is_done);
    world.run_until_true(limit, done);
    report(world, switch, id).filter(|report| report.is_done()).cloned()
}
