//! Parallel paths between two servers (BCube paper, section 4.1 and figure 5).
//!
//! A path changes the digits of the source's number to those of the destination one after the
//! other, highest level first. It starts at a level that differs from path to path and proceeds
//! cyclically. The path that begins with level l leaves the source by its port of level l. If
//! source and destination have the same digit at l, the path first goes to a neighbour there,
//! corrects that digit last, and is two hops longer. The k + 1 paths share no servers except their
//! ends.

use super::cube::{Cube, NHAS_MAX, Nha};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

/// Path, as the next hops from its source on.
pub type Path = Vec<Nha>;

/// Returns the parallel paths from one server to another, starting with that of level k. There are
/// none from a server to itself.
pub fn parallel(cube: Cube, from: u32, to: u32) -> Vec<Path> {
    if from == to {
        return Vec::new();
    }
    (0..cube.levels()).rev().map(|level| beginning_with(cube, from, to, level)).collect()
}

/// Returns the path that begins with `level`.
fn beginning_with(cube: Cube, from: u32, to: u32, level: u32) -> Path {
    let levels = cube.levels();
    // Each level once, downwards from `first`, cyclically.
    let order = |first: u32| (0..levels).map(move |step| (first + levels - step) % levels);
    if cube.digit(from, level) != cube.digit(to, level) {
        return corrected(cube, from, to, order(level));
    }
    // Any other digit would do. The next one spreads detours over the neighbours.
    let digit = cube.neighbours(from).filter(|&(nha, _)| cube.level_of(nha) == level);
    let Some((detour, neighbour)) = digit.max_by_key(|&(_, next)| spread(cube, next, from, level))
    else {
        return Path::new();
    };
    let mut path = alloc::vec![detour];
    path.extend(corrected(cube, neighbour, to, order((level + levels - 1) % levels)));
    path
}

/// Returns whether the neighbour's digit is the one that follows the server's own.
fn spread(cube: Cube, neighbour: u32, server: u32, level: u32) -> bool {
    let (next, own) = (cube.digit(neighbour, level), cube.digit(server, level));
    next == own + 1 || (next == 0 && own > 0)
}

/// Returns the hops that correct the digits in the given order.
fn corrected(cube: Cube, from: u32, to: u32, order: impl Iterator<Item = u32>) -> Path {
    let differs = |&level: &u32| cube.digit(from, level) != cube.digit(to, level);
    order.filter(differs).map(|level| cube.toward(to, level)).collect()
}

/// Finds a shortest path by breadth-first search. It avoids the servers in `taken` and the hops
/// that `is_open` refuses. Returns `None` if no path fits into the header.
pub fn around(
    cube: Cube,
    from: u32,
    to: u32,
    taken: &BTreeSet<u32>,
    is_open: impl Fn(u32, Nha) -> bool,
) -> Option<Path> {
    let mut came_by: BTreeMap<u32, (u32, Nha)> = BTreeMap::new();
    let mut queue = VecDeque::from([(from, 0)]);
    while let Some((server, hops)) = queue.pop_front() {
        if server == to {
            break;
        }
        if hops == NHAS_MAX {
            continue;
        }
        for (nha, next) in cube.neighbours(server) {
            let is_free = next == to || !taken.contains(&next);
            if next != from && is_free && !came_by.contains_key(&next) && is_open(server, nha) {
                came_by.insert(next, (server, nha));
                queue.push_back((next, hops + 1));
            }
        }
    }
    let mut path = Path::new();
    let mut at = to;
    while at != from {
        let &(before, nha) = came_by.get(&at)?;
        path.push(nha);
        at = before;
    }
    path.reverse();
    Some(path)
}

/// Returns the servers along a path, starting with its source. The list ends early if a hop leads
/// nowhere.
pub(super) fn servers(cube: Cube, from: u32, path: &[Nha]) -> Vec<u32> {
    let steps = path.iter().scan(from, |at, &nha| {
        *at = cube.step(*at, nha)?;
        Some(*at)
    });
    core::iter::once(from).chain(steps).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cubes() -> impl Strategy<Value = (Cube, u32, u32)> {
        let sizes =
            prop_oneof![(2_u32..8, 0_u32..3), (2_u32..4, 3_u32..5), Just((2, 6)), Just((48, 1)),];
        sizes.prop_flat_map(|(n, k)| {
            let cube = Cube::new(n, k).unwrap();
            (Just(cube), 0..cube.servers(), 0..cube.servers())
        })
    }

    proptest! {
        #[test]
        fn parallel_paths_are_as_many_as_levels_valid_short_and_disjoint(
            (cube, from, to) in cubes()
        ) {
            prop_assume!(from != to);
            let paths = parallel(cube, from, to);
            prop_assert_eq!(paths.len() as u32, cube.levels());
            let distance = cube.distance(from, to) as usize;
            let mut used = BTreeSet::new();
            let mut first_levels = BTreeSet::new();
            for (path, level) in paths.iter().zip((0..cube.levels()).rev()) {
                let servers = servers(cube, from, path);
                prop_assert_eq!(servers.len(), path.len() + 1, "every hop leads somewhere");
                prop_assert_eq!(servers.last(), Some(&to));
                let is_direct = cube.digit(from, level) != cube.digit(to, level);
                let hops = if is_direct { distance } else { distance + 2 };
                prop_assert_eq!(path.len(), hops);
                prop_assert!(path.len() <= NHAS_MAX);
                first_levels.insert(cube.level_of(path[0]));
                for &server in &servers[1..path.len()] {
                    prop_assert!(server != from && server != to);
                    prop_assert!(used.insert(server), "server {server} is on two paths");
                }
            }
            prop_assert_eq!(first_levels.len(), paths.len(), "each leaves by a port of its own");
        }

        #[test]
        fn a_path_around_is_shortest_and_avoids_what_is_taken_or_closed(
            (cube, from, to) in cubes(), seed in any::<u32>()
        ) {
            prop_assume!(from != to);
            let all = around(cube, from, to, &BTreeSet::new(), |_, _| true).unwrap();
            prop_assert_eq!(all.len() as u32, cube.distance(from, to));
            let blocked = |server: u32| server.wrapping_mul(0x9e37_79b9) ^ seed;
            let taken: BTreeSet<u32> =
                (0..cube.servers()).filter(|&server| blocked(server).is_multiple_of(5)).collect();
            let is_open = |server, nha: Nha| (server ^ seed ^ u32::from(nha.0)) % 7 != 0;
            if let Some(path) = around(cube, from, to, &taken, is_open) {
                let servers = servers(cube, from, &path);
                prop_assert_eq!(servers.last(), Some(&to));
                prop_assert!(servers[1..path.len()].iter().all(|one| !taken.contains(one)));
                prop_assert!(servers.iter().zip(&path).all(|(&at, &nha)| is_open(at, nha)));
            }
        }
    }

    #[test]
    fn servers_01_and_10_have_the_two_paths_of_the_paper() {
        let cube = Cube::new(4, 1).unwrap();
        let paths = parallel(cube, 1, 4);
        let servers: Vec<Vec<u32>> = paths.iter().map(|path| servers(cube, 1, path)).collect();
        assert_eq!(servers, [[1, 5, 4], [1, 0, 4]], "by 11 and by 00");
    }

    #[test]
    fn there_is_no_way_around_what_is_cut_off() {
        let cube = Cube::new(3, 1).unwrap();
        assert_eq!(around(cube, 0, 8, &BTreeSet::new(), |server, _| server != 0), None);
        assert_eq!(parallel(cube, 3, 3), Vec::<Path>::new());
    }
}
