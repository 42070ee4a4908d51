//! Channel dependencies that are kept acyclic.

use super::Step;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Channel dependencies in a layer, or in an order and its successor. They are the pairs of
/// consecutive links on its paths.
///
/// A frame that passes from one link to the next waits in the buffer behind the first link for room
/// in the buffer behind the second. So the pairs are the dependencies between buffers (Dally and
/// Seitz 1987). They never form a cycle.
///
/// Each link has a number and a position in a topological order, in which every dependency leads to
/// a later position. While such an order exists, there is no cycle. A new dependency to a later
/// position costs nothing. A dependency from `a` back to `b` starts a search over the successors of
/// `b`, up to the position of `a`. If the search meets `a`, the dependency would close a cycle and
/// is refused. Otherwise the predecessors of `a` are searched, down to the position of `b`. The
/// positions of both sets are then reassigned, first to the predecessors of `a` and then to the
/// successors of `b` (D. J. Pearce and P. H. J. Kelly, ACM Journal of Experimental Algorithmics 11,
/// 2006). Links that are not between the two positions are not searched.
///
/// The dependencies of a path are added one by one. All of them are removed again if one is
/// refused. Otherwise the set only grows, so a dependency that closes a cycle with the set alone is
/// recorded as refused, and there is never another search for it.
#[derive(Clone, Debug, Default)]
pub struct ChannelDependencies {
    numbers: BTreeMap<Step, u32>,
    links: Vec<Link>,
    /// Link from which the current search reached each link. All entries are `None` between
    /// searches.
    met_from: Vec<Option<u32>>,
}

#[derive(Clone, Debug, Default)]
struct Link {
    /// Position of the link in the topological order.
    position: u32,
    /// Links on which this one depends.
    after: Vec<u32>,
    /// Links that depend on this one.
    before: Vec<u32>,
    /// Links to which a dependency closes a cycle with the set. This never changes, because the set
    /// only grows.
    refused: Vec<u32>,
}

impl ChannelDependencies {
    /// Returns whether no path was ever added.
    pub(crate) fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// Returns whether the set contains all dependencies of a path.
    pub(crate) fn include(&self, path: &[Step]) -> bool {
        path.windows(2).all(|pair| {
            let [from, to] = [&pair[0], &pair[1]].map(|link| self.numbers.get(link));
            from.zip(to).is_some_and(|(&from, to)| self.links[from as usize].after.contains(to))
        })
    }

    /// Adds all dependencies of a path, or none if one of them would close a cycle. Returns whether
    /// they were added.
    pub(crate) fn admit(&mut self, path: &[Step]) -> bool {
        let links: Vec<u32> = path.iter().map(|&link| self.number(link)).collect();
        let pairs = links.windows(2).map(|pair| (pair[0], pair[1]));
        if pairs.clone().any(|(from, to)| self.links[from as usize].refused.contains(&to)) {
            return false;
        }
        let mut added: Vec<(u32, u32)> = Vec::new();
        for (from, to) in pairs {
            if self.links[from as usize].after.contains(&to) {
                continue;
            }
            if let Err(cycle) = self.make_room(from, to) {
                if !cycle.windows(2).any(|pair| added.contains(&(pair[0], pair[1]))) {
                    self.links[from as usize].refused.push(to);
                }
                // An order that is valid with these dependencies is also valid without them.
                for (from, to) in added {
                    self.links[from as usize].after.retain(|&other| other != to);
                    self.links[to as usize].before.retain(|&other| other != from);
                }
                return false;
            }
            self.links[from as usize].after.push(to);
            self.links[to as usize].before.push(from);
            added.push((from, to));
        }
        true
    }

    fn number(&mut self, link: Step) -> u32 {
        let next = self.links.len() as u32;
        let number = *self.numbers.entry(link).or_insert(next);
        if number == next {
            self.links.push(Link { position: next, ..Link::default() });
            self.met_from.push(None);
        }
        number
    }

    /// Changes the order so that `from` comes before `to`.
    ///
    /// # Errors
    /// If there is a path from `to` to `from`, the dependency would close a cycle. That path is
    /// returned, and the order is unchanged.
    fn make_room(&mut self, from: u32, to: u32) -> Result<(), Vec<u32>> {
        let (first, last) = (self.position(to), self.position(from));
        if first > last {
            return Ok(());
        }
        let mut after = self.search(to, from, |link| &link.after, |position| position <= last)?;
        let mut moved = self.search(from, to, |link| &link.before, |position| position >= first)?;
        moved.sort_unstable_by_key(|&link| self.position(link));
        after.sort_unstable_by_key(|&link| self.position(link));
        moved.extend(after);
        let mut positions: Vec<u32> = moved.iter().map(|&link| self.position(link)).collect();
        positions.sort_unstable();
        for (link, position) in moved.into_iter().zip(positions) {
            self.links[link as usize].position = position;
        }
        Ok(())
    }

    fn position(&self, link: u32) -> u32 {
        self.links[link as usize].position
    }

    /// Returns all links that can be reached from `start` via positions that are `within`,
    /// including `start` itself.
    ///
    /// # Errors
    /// Returns a path from `start` to `goal`, both included, as soon as `goal` is reached.
    fn search(
        &mut self,
        start: u32,
        goal: u32,
        neighbours: impl Fn(&Link) -> &Vec<u32>,
        within: impl Fn(u32) -> bool,
    ) -> Result<Vec<u32>, Vec<u32>> {
        let mut found = alloc::vec![start];
        self.met_from[start as usize] = Some(start);
        let mut next = 0;
        while self.met_from[goal as usize].is_none()
            && let Some(&here) = found.get(next)
        {
            next += 1;
            for &there in neighbours(&self.links[here as usize]) {
                if within(self.position(there)) && self.met_from[there as usize].is_none() {
                    self.met_from[there as usize] = Some(here);
                    found.push(there);
                }
            }
        }
        let back = |&here: &u32| self.met_from[here as usize].filter(|&from| from != here);
        let met = self.met_from[goal as usize].map(|_| goal);
        let mut path: Vec<u32> = core::iter::successors(met, back).collect();
        path.reverse();
        found.iter().for_each(|&link| self.met_from[link as usize] = None);
        if path.is_empty() { Ok(found) } else { Err(path) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::SwitchIndex;
    use axon_prove::{Dependencies, Verdict};
    use axon_wire::{PortNo, Priority};
    use proptest::prelude::*;

    /// Link `n` leaves switch `n`.
    fn path(links: &[u32]) -> Vec<Step> {
        links.iter().map(|&n| Step { switch: SwitchIndex(n), egress: PortNo(1) }).collect()
    }

    #[test]
    fn a_path_that_closes_a_cycle_leaves_nothing_behind() {
        let mut set = ChannelDependencies::default();
        assert!(set.admit(&path(&[0, 1, 2])) && set.admit(&path(&[2, 3])));
        assert!(!set.admit(&path(&[7, 8, 3, 0])), "3 to 0 closes it");
        assert!(!set.include(&path(&[7, 8])), "nor are its other dependencies there");
        assert!(set.admit(&path(&[3, 8, 7])), "which would be in the way of these");
        assert!(set.include(&path(&[1, 2, 3, 8])) && set.include(&path(&[9])));
        assert!(!set.admit(&path(&[7, 1])) && set.admit(&path(&[0, 7])));
    }

    proptest! {
        #[test]
        fn a_path_is_refused_if_and_only_if_it_closes_a_cycle(
            paths in prop::collection::vec(
                Just((0..9_u32).collect::<Vec<_>>()).prop_shuffle(), 1..40),
            lengths in prop::collection::vec(1..4_usize, 40),
        ) {
            let (mut set, mut taken) = (ChannelDependencies::default(), Vec::<Vec<Step>>::new());
            for (links, &length) in paths.iter().zip(&lengths) {
                let path = path(&links[..length]);
                let mut all = Dependencies::default();
                for path in taken.iter().chain([&path]) {
                    all.add(0, Priority::ZERO, path.iter().copied());
                }
                let free = matches!(all.verdict(), Verdict::Free(_));
                prop_assert_eq!(set.admit(&path), free);
                if free {
                    prop_assert!(set.include(&path));
                    taken.push(path);
                }
                let positions = set.links.iter().map(|link| link.position);
                let mut positions: Vec<u32> = positions.collect();
                positions.sort_unstable();
                prop_assert!(positions.iter().copied().eq(0..set.links.len() as u32));
            }
        }
    }
}
