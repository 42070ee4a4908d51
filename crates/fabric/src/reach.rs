//! Whether every switch can reach every other, and by a route that fits a header.

use crate::error::Problem;
use crate::model::Fabric;
use axon_wire::FrameBuf;

/// Not reached.
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
    // A hop for each switch on the way; the controller's own is one more.
    let hops = |distance: usize| distance + 2;
    // No two switches are further apart than twice the distance of the furthest from one.
    let furthest = from_first.iter().max().copied().unwrap_or(0);
    if hops(2 * furthest) <= hops_max {
        return Ok(());
    }
    for from in 0..neighbours.len() {
        let distances = distances(&neighbours, from);
        if let Some(to) = distances.iter().position(|&distance| hops(distance) > hops_max) {
            let (hops, bits) = (hops(distances[to]), width.bits());
            let what = format!("{} and {} are {hops} hops apart", name(from), name(to));
            let expected = format!("at most {hops_max} hops with a hop_width of {bits}");
            return Err(Problem::new(key, what, expected));
        }
    }
    Ok(())
}

/// Links from a switch to every other: breadth first.
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
