//! A set of turns without a circle.

use super::Step;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The turns that the paths of a layer have made, from a link to the next one. A frame that makes a
/// turn waits in the buffer behind the first link for room behind the second, so these are the
/// dependencies of buffers, and they never have a circle.
///
/// Links have numbers, and places in an order in which every turn leads to a later place; as long
/// as there is such an order there is no circle. A new turn that leads to a later place costs
/// nothing. For one that leads back, from `a` to `b`, whatever comes after `b` up to the place of
/// `a` is searched: as soon as `a` is met, the turn would close a circle, and is refused. If it is
/// not, what leads to `a` from the place of `b` on is searched too, and the places of both are
/// dealt out anew, first to those that lead to `a`, then to those after `b` (D. J. Pearce and P. H.
/// J. Kelly, ACM Journal of Experimental Algorithmics 11, 2006). Only what lies between the two
/// places is looked at.
///
/// The turns of a path go in one after the other, and out again when one of them is refused. The
/// set only grows but for that, so a turn whose circle was there before its path came is noted, and
/// never searched for again.
#[derive(Debug, Default)]
pub struct Turns {
    numbers: BTreeMap<Step, u32>,
    links: Vec<Link>,
    /// By link, the one from which the search under way met it; empty between searches.
    met_from: Vec<Option<u32>>,
}

#[derive(Debug, Default)]
struct Link {
    place: u32,
    /// What turns lead to from here, and what leads here.
    after: Vec<u32>,
    before: Vec<u32>,
    /// Turns to these close a circle with those in the set, and so always will.
    refused: Vec<u32>,
}

impl Turns {
    /// Whether all turns of a path are in the set.
    pub fn include(&self, path: &[Step]) -> bool {
        path.windows(2).all(|turn| {
            let [from, to] = [&turn[0], &turn[1]].map(|link| self.numbers.get(link));
            from.zip(to).is_some_and(|(&from, to)| self.links[from as usize].after.contains(to))
        })
    }

    /// Puts the turns of a path into the set, if none of them closes a circle: all or none.
    pub fn admit(&mut self, path: &[Step]) -> bool {
        let links: Vec<u32> = path.iter().map(|&link| self.number(link)).collect();
        let turns = links.windows(2).map(|turn| (turn[0], turn[1]));
        if turns.clone().any(|(from, to)| self.links[from as usize].refused.contains(&to)) {
            return false;
        }
        let mut added: Vec<(u32, u32)> = Vec::new();
        for (from, to) in turns {
            if self.links[from as usize].after.contains(&to) {
                continue;
            }
            if let Err(circle) = self.make_room(from, to) {
                if !circle.windows(2).any(|turn| added.contains(&(turn[0], turn[1]))) {
                    self.links[from as usize].refused.push(to);
                }
                // The order that was made for them is one without them too.
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
            self.links.push(Link { place: next, ..Link::default() });
            self.met_from.push(None);
        }
        number
    }

    /// Changes the order so that `from` comes before `to`. If it has to come after it, nothing
    /// changes, and the error is the way from `to` to `from`: the turn would close it to a circle.
    fn make_room(&mut self, from: u32, to: u32) -> Result<(), Vec<u32>> {
        let (first, last) = (self.place(to), self.place(from));
        if first > last {
            return Ok(());
        }
        let mut after = self.search(to, from, |link| &link.after, |place| place <= last)?;
        let mut moved = self.search(from, to, |link| &link.before, |place| place >= first)?;
        moved.sort_unstable_by_key(|&link| self.place(link));
        after.sort_unstable_by_key(|&link| self.place(link));
        moved.extend(after);
        let mut places: Vec<u32> = moved.iter().map(|&link| self.place(link)).collect();
        places.sort_unstable();
        for (link, place) in moved.into_iter().zip(places) {
            self.links[link as usize].place = place;
        }
        Ok(())
    }

    fn place(&self, link: u32) -> u32 {
        self.links[link as usize].place
    }

    /// What turns lead to from `start`, itself included, as far as places are `within`; or, as the
    /// error, a way to `goal`, both included, as soon as it is met.
    fn search(
        &mut self,
        start: u32,
        goal: u32,
        turns: impl Fn(&Link) -> &Vec<u32>,
        within: impl Fn(u32) -> bool,
    ) -> Result<Vec<u32>, Vec<u32>> {
        let mut found = alloc::vec![start];
        self.met_from[start as usize] = Some(start);
        let mut next = 0;
        while self.met_from[goal as usize].is_none()
            && let Some(&here) = found.get(next)
        {
            next += 1;
            for &there in turns(&self.links[here as usize]) {
                if within(self.place(there)) && self.met_from[there as usize].is_none() {
                    self.met_from[there as usize] = Some(here);
                    found.push(there);
                }
            }
        }
        let back = |&here: &u32| self.met_from[here as usize].filter(|&from| from != here);
        let met = self.met_from[goal as usize].map(|_| goal);
        let mut way: Vec<u32> = core::iter::successors(met, back).collect();
        way.reverse();
        found.iter().for_each(|&link| self.met_from[link as usize] = None);
        if way.is_empty() { Ok(found) } else { Err(way) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::topology::SwitchIndex;
    use axon_prove::{Dependencies, Verdict};
    use axon_wire::{PortNo, Priority};
    use proptest::prelude::*;

    /// Link `n` leaves switch `n`.
    fn path(links: &[u32]) -> Vec<Step> {
        links.iter().map(|&n| Step { switch: SwitchIndex(n), egress: PortNo(1) }).collect()
    }

    #[test]
    fn a_path_that_closes_a_circle_leaves_nothing_behind() {
        let mut turns = Turns::default();
        assert!(turns.admit(&path(&[0, 1, 2])) && turns.admit(&path(&[2, 3])));
        assert!(!turns.admit(&path(&[7, 8, 3, 0])), "3 to 0 closes it");
        assert!(!turns.include(&path(&[7, 8])), "nor are its other turns there");
        assert!(turns.admit(&path(&[3, 8, 7])), "which would be in the way of these");
        assert!(turns.include(&path(&[1, 2, 3, 8])) && turns.include(&path(&[9])));
        assert!(!turns.admit(&path(&[7, 1])) && turns.admit(&path(&[0, 7])));
    }

    proptest! {
        #[test]
        fn a_path_is_refused_if_and_only_if_it_closes_a_circle(
            paths in prop::collection::vec(
                Just((0..9_u32).collect::<Vec<_>>()).prop_shuffle(), 1..40),
            lengths in prop::collection::vec(1..4_usize, 40),
        ) {
            let (mut turns, mut taken) = (Turns::default(), Vec::<Vec<Step>>::new());
            for (links, &length) in paths.iter().zip(&lengths) {
                let path = path(&links[..length]);
                let mut all = Dependencies::default();
                for path in taken.iter().chain([&path]) {
                    all.add(0, Priority::ZERO, path.iter().copied());
                }
                let free = matches!(all.verdict(), Verdict::Free(_));
                prop_assert_eq!(turns.admit(&path), free);
                if free {
                    prop_assert!(turns.include(&path));
                    taken.push(path);
                }
                let places = turns.links.iter().map(|link| link.place);
                let mut places: Vec<u32> = places.collect();
                places.sort_unstable();
                prop_assert!(places.iter().copied().eq(0..turns.links.len() as u32));
            }
        }
    }
}
