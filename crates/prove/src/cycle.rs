//! Search for a shortest cycle among buffers that wait for each other.

use super::dependencies::{Buffer, Dependencies};
use alloc::vec::Vec;

/// Maximum number of dependencies that the search for the shortest cycle visits, which takes some
/// seconds. Beyond that, the shortest cycle found so far is returned.
const LOOKS_MAX: u64 = 300_000_000;
/// Stands for no buffer.
const NONE: u32 = u32::MAX;

/// A cycle of buffers, each of which waits for the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle {
    /// The buffers in order. Each waits for the next, and the last waits for the first. The first
    /// is the one with the lowest switch and port.
    pub waits: Vec<Wait>,
    /// True if no cycle is shorter. If false, the search ended before this was established.
    pub is_shortest: bool,
    /// Number of buffers that are on a cycle, or on a path from one cycle to another.
    pub entangled: usize,
}

/// A buffer, and the routes that make it wait for the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The buffer.
    pub buffer: Buffer,
    /// Number of routes that continue from this buffer to the next one.
    pub routes: u32,
    /// Some of the flows on these routes, at most [`super::FLOWS_KEPT`].
    pub flows: Vec<u32>,
}

/// Finds a shortest cycle among the buffers that are `left`. Each of them is waited for by another
/// one, so there is a cycle.
///
/// First, buffers that wait for none of the others are removed until there are none, because they
/// are on no cycle. Every remaining buffer has a successor, so a walk from any of them returns to a
/// buffer that it has visited, and has found a first cycle. Then a breadth-first search from each
/// buffer finds the shortest cycle through it. The depth of a search is limited by the best cycle
/// so far.
pub(super) fn shortest(all: &Dependencies, mut left: Vec<bool>) -> Cycle {
    trim(all, &mut left);
    let mut best = walk(all, &left);
    let starts = (0..left.len() as u32).filter(|&at| left[at as usize]);
    let mut search = Search { links: alloc::vec![(0, NONE); left.len()], ..Search::default() };
    let mut is_shortest = true;
    for start in starts {
        if search.looks > LOOKS_MAX {
            is_shortest = false;
            break;
        }
        if best.len() > 2 {
            search.through(all, &left, start, &mut best);
        }
    }
    let first = (0..best.len()).min_by_key(|&at| all.buffer(best[at])).unwrap_or(0);
    best.rotate_left(first);
    let next = best.iter().cycle().skip(1);
    let waits = best.iter().zip(next).map(|(&here, &on)| {
        let wait = all.waits(here).iter().find(|wait| wait.on == on);
        Wait {
            buffer: all.buffer(here),
            routes: wait.map_or(0, |wait| wait.routes),
            flows: wait.map_or_else(Vec::new, |wait| wait.flows().collect()),
        }
    });
    let entangled = left.iter().filter(|&&left| left).count();
    Cycle { waits: waits.collect(), is_shortest, entangled }
}

/// Removes buffers that wait for no other remaining buffer.
fn trim(all: &Dependencies, left: &mut [bool]) {
    let count = left.len();
    // The predecessors of all buffers in one list. Those of buffer `n` start at `first[n]`.
    let mut first: Vec<u32> = alloc::vec![0; count + 1];
    let mut waits_for: Vec<u32> = alloc::vec![0; count];
    let among = |left: &[bool], at: usize| {
        let waits = if left[at] { all.waits(at as u32) } else { &[] };
        waits.iter().map(|wait| wait.on as usize).filter(|&on| left[on]).collect::<Vec<_>>()
    };
    for (at, waits_for) in waits_for.iter_mut().enumerate() {
        for on in among(left, at) {
            first[on + 1] += 1;
            *waits_for += 1;
        }
    }
    for at in 0..count {
        first[at + 1] += first[at];
    }
    let mut who: Vec<u32> = alloc::vec![NONE; first[count] as usize];
    let mut free = first.clone();
    for at in 0..count {
        for on in among(left, at) {
            who[free[on] as usize] = at as u32;
            free[on] += 1;
        }
    }
    let mut done: Vec<usize> = (0..count).filter(|&at| left[at] && waits_for[at] == 0).collect();
    while let Some(at) = done.pop() {
        left[at] = false;
        for &before in &who[first[at] as usize..first[at + 1] as usize] {
            let before = before as usize;
            waits_for[before] -= 1;
            if waits_for[before] == 0 {
                done.push(before);
            }
        }
    }
}

/// Follows dependencies until a buffer is visited a second time. Returns the cycle found.
fn walk(all: &Dependencies, left: &[bool]) -> Vec<u32> {
    let mut place: Vec<u32> = alloc::vec![NONE; left.len()];
    let mut walked: Vec<u32> = Vec::new();
    let mut at = left.iter().position(|&left| left).map(|at| at as u32);
    while let Some(here) = at {
        let been = &mut place[here as usize];
        if *been != NONE {
            return walked.split_off(*been as usize);
        }
        *been = walked.len() as u32;
        walked.push(here);
        at = all.waits(here).iter().map(|wait| wait.on).find(|&on| left[on as usize]);
    }
    debug_assert!(false, "what is left waits for something that is left");
    walked
}

/// Scratch memory for the searches.
#[derive(Default)]
struct Search {
    /// For each buffer, the last search that reached it, and its predecessor in that search.
    links: Vec<(u32, u32)>,
    round: u32,
    queue: Vec<(u32, u32)>,
    looks: u64,
}

impl Search {
    /// Replaces `best` with the shortest cycle through `start` if that one is shorter.
    fn through(&mut self, all: &Dependencies, left: &[bool], start: u32, best: &mut Vec<u32>) {
        self.round += 1;
        self.queue.clear();
        self.queue.push((start, 1));
        let mut next = 0;
        while let Some(&(here, length)) = self.queue.get(next) {
            next += 1;
            if length as usize >= best.len() {
                return;
            }
            for wait in all.waits(here) {
                self.looks += 1;
                if wait.on == start {
                    best.clear();
                    best.push(here);
                    while best.last() != Some(&start) {
                        let last = best[best.len() - 1];
                        best.push(self.links[last as usize].1);
                    }
                    best.reverse();
                    return;
                }
                let there = &mut self.links[wait.on as usize];
                if left[wait.on as usize] && there.0 != self.round {
                    *there = (self.round, here);
                    self.queue.push((wait.on, length + 1));
                }
            }
        }
    }
}
