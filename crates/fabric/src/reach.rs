//! Check that every switch can reach every other, by a route that fits a header.

use crate::error::Problem;
use crate::model::Fabric;
use axon_wire::FrameBuf;

/// Distance of an unreachable switch.
const NOWHERE: usize = usize::MAX;

/// Refuses a graph that is not connected, or whose shortest paths are too long for a header.
pub(crate) fn check(fabric: &Fabric, key: &str) -> Result<(), Problem> {
    let mut neighbours = vec![Vec::new(); fabric.switches.len()];
    for link in &fabric.links {
        neighbours[link.a.switch].push(link.b.switch);
        neighbours[link.b.switch].push(link.a.switch);
    }
    let name = |switch: usize| &fabric.switches[switch].name;
    let from_first = distances(&neighbours, 0);
    if let Some(lost) = from_first.iter().position(|&distance| distance == NOWHERE) {
        let what = format!("there is no path from {} to {}", name(0), name(lost));
        return Err(Problem::new(key, what, "links that connect all switches"));
    }
    let width = fabric.hop_width;
    let hops_max = width.hops_in(FrameBuf::HEADROOM);
    // One hop for each switch of the path, and one for the controller.
    let hops = |distance: usize| distance + 2;
    // No switch is further from any other than its distance to a second one plus the largest
    // distance from that. So each search settles all switches around its own start, and a few
    // searches settle a whole fabric.
    let mut settled = vec![false; neighbours.len()];
    let mut start = Some(0);
    while let Some(from) = start {
        let distances = distances(&neighbours, from);
        if let Some(to) = distances.iter().position(|&distance| hops(distance) > hops_max) {
            let (hops, bits) = (hops(distances[to]), width.bits());
            let what = format!("{} and {} are {hops} hops apart", name(from), name(to));
            let expected = format!("at most {hops_max} hops with a hop_width of {bits}");
            return Err(Problem::new(key, what, expected));
        }
        let furthest = distances.iter().max().copied().unwrap_or(0);
        for (settled, distance) in settled.iter_mut().zip(distances) {
            *settled |= hops(distance + furthest) <= hops_max;
        }
        settled[from] = true;
        start = settled.iter().position(|&settled| !settled);
    }
    Ok(())
}

/// Returns the number of links from a switch to every other, by breadth-first search.
fn distances(neighbours: &[Vec<usize>], from: usize) -> Vec<usize> {
    let mut distances = vec![NOWHERE; neighbours.len()];
    distances[from] = 0;
    let mut order = vec![from];
    let mut at = 0;
    while let Some(&switch) = order.get(at) {
        at += 1;
        for &next in &neighbours[switch] {
            if distances[next] == NOWHERE {
                distances[next] = distances[switch] + 1;
                order.push(next);
            }
        }
    }
    distances
}
