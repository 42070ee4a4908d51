//! Paths (DCellRouting, DCell paper section 4.1) and detours around a lost neighbour (based on its
//! local reroute, section 4.3).
//!
//! There is one link from this server's cell of level l - 1 to each other one. A path leads to its
//! near end by the same rule, crosses it, and continues from its far end by the same rule. All
//! servers on the path select the same link, so each only needs its next hop towards each other
//! cell. A path has at most 2^(k+1) - 1 hops.
//!
//! If the neighbour towards a cell is lost, the packet first goes to a proxy, which is a server in
//! a third cell with another link to the destination. If the switch of this server's cell of level
//! 0 is lost, the proxy for a server in that cell is that server's peer at level 1, and the next
//! hop is this server's own peer at level 1.

use super::cells::Cells;
use alloc::vec::Vec;

/// A part of the network, and the next hop towards it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Level of the smallest cell that contains both this server and the part. The part is a cell
    /// of the next lower level, or, at level 0, a single server.
    pub level: usize,
    /// First server of the part.
    pub first: u32,
    /// Number of servers in the part.
    pub count: u32,
    /// Number of the next neighbour.
    pub next: u32,
}

/// Detour via a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detour {
    /// Number of the proxy.
    pub proxy: u32,
    /// Number of the next neighbour.
    pub next: u32,
}

/// Returns the next neighbour on the path to another server.
fn next(cells: &Cells, from: u32, to: u32) -> u32 {
    let mut to = to;
    loop {
        let level = cells.level(from, to);
        if level == 0 {
            return to;
        }
        let link = cells.link(from, level, cells.place(to, level));
        if link.near == from {
            return link.far;
        }
        to = link.near;
    }
}

/// Returns the servers on the path between two servers, including both.
pub fn path(cells: &Cells, from: u32, to: u32) -> Vec<u32> {
    let steps = core::iter::successors(Some(from), |&at| (at != to).then(|| next(cells, at, to)));
    steps.collect()
}

/// Returns the routes of a server, which lead to each other server in its cell of level 0, and to
/// each other cell in its larger cells.
pub fn routes(cells: &Cells, from: u32) -> Vec<Route> {
    let first = cells.first(from, 0);
    let near = (first..first + cells.size(0)).filter(|&to| to != from);
    let mut routes: Vec<Route> =
        near.map(|to| Route { level: 0, first: to, count: 1, next: to }).collect();
    for level in 1..=cells.k() {
        let (first, count) = (cells.first(from, level), cells.size(level - 1));
        let own = cells.place(from, level);
        for other in (0..=count).filter(|&other| other != own) {
            let first = first + other * count;
            routes.push(Route { level, first, count, next: next(cells, from, first) });
        }
    }
    routes
}

/// Returns the detour around the lost neighbour of a route via the nearest third cell, using
/// neighbours that are up, or `None` if there is none.
pub fn detour(
    cells: &Cells,
    from: u32,
    route: &Route,
    is_up: impl Fn(u32) -> bool,
) -> Option<Detour> {
    if route.level == 0 {
        let next = (cells.k() > 0).then(|| cells.peer(from, 1))?;
        return is_up(next).then(|| Detour { proxy: cells.peer(route.first, 1), next });
    }
    let level = route.level;
    let (own, lost) = (cells.place(from, level), cells.place(route.first, level));
    let others = (0..=cells.size(level - 1)).filter(|&other| other != own && other != lost);
    let way = |other| {
        let link = cells.link(from, level, other);
        (
            path(cells, from, link.near).len(),
            Detour { proxy: link.far, next: next(cells, from, link.far) },
        )
    };
    // The next of the nearest ones after this server's own position, so that detours are spread.
    let far = |detour: &Detour| (detour.proxy + cells.servers() - from) % cells.servers();
    let open = others.map(way).filter(|(_, detour)| is_up(detour.next));
    open.min_by_key(|(hops, detour)| (*hops, far(detour))).map(|(_, detour)| detour)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> impl Iterator<Item = Cells> {
        [(2, 0), (2, 1), (3, 1), (4, 1), (6, 1), (2, 2), (3, 2), (4, 2), (2, 3)]
            .into_iter()
            .map(|(n, k)| Cells::new(n, k).unwrap())
    }

    /// Returns the servers on the path to another server that results from the routes of each hop.
    fn hop_by_hop(cells: &Cells, from: u32, to: u32) -> Vec<u32> {
        let step = |&at: &u32| {
            let routes = routes(cells, at);
            let fits = |route: &&Route| (route.first..route.first + route.count).contains(&to);
            let mut matching = routes.iter().filter(fits).map(|route| route.next);
            let next = matching.next();
            assert!(matching.next().is_none(), "the parts are disjoint");
            next
        };
        core::iter::successors(Some(from), step).collect()
    }

    #[test]
    fn paths_are_links_and_no_longer_than_the_paper_says() {
        for cells in all() {
            let most = (1 << (cells.k() + 1)) - 1;
            let step = (cells.servers() / 60).max(1) as usize;
            for from in (0..cells.servers()).step_by(step) {
                for to in (0..cells.servers()).step_by(step.max(3)).filter(|&to| to != from) {
                    let path = path(&cells, from, to);
                    assert!(path.len() - 1 <= most, "{from} to {to}: {path:?}");
                    for pair in path.windows(2) {
                        assert!(cells.neighbours(pair[0]).any(|(_, other)| other == pair[1]));
                    }
                    assert_eq!(hop_by_hop(&cells, from, to), path, "each hop decides alike");
                }
            }
        }
    }

    #[test]
    fn a_detour_leads_to_a_third_cell_by_a_neighbour_that_is_up() {
        for cells in all().filter(|cells| cells.k() > 0) {
            for from in 0..cells.servers().min(100) {
                for route in routes(&cells, from) {
                    let is_up = |other| other != route.next;
                    let detour = detour(&cells, from, &route, is_up);
                    let Some(Detour { proxy, next: hop }) = detour else {
                        panic!("{from} by {}: no way around", route.next);
                    };
                    assert_ne!(hop, route.next);
                    let level = route.level.max(1);
                    assert_ne!(cells.place(proxy, level), cells.place(from, level));
                    let onward = path(&cells, proxy, route.first);
                    assert!(!onward.contains(&from), "{from} {route:?} {proxy}: {onward:?}");
                }
            }
        }
    }
}
