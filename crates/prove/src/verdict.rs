//! Verdict on a buffer dependency graph: it has a cycle or not.

use super::cycle::{self, Cycle};
use super::dependencies::{Buffer, Dependencies};
use alloc::vec::Vec;

/// Stands for no buffer.
const NONE: u32 = u32::MAX;

/// Verdict on a dependency graph: free of deadlock or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is no cycle. Holds a longest chain of buffers, each of which waits for the next.
    Free(Vec<Buffer>),
    /// There is a cycle, so deadlock is not ruled out. Holds a shortest cycle.
    Cycle(Cycle),
}

impl Dependencies {
    /// Searches the graph for a cycle.
    pub fn verdict(&self) -> Verdict {
        let count = self.buffers();
        let (order, waiting) = self.sorted();
        if order.len() < count {
            let left: Vec<bool> = waiting.iter().map(|&waiting| waiting > 0).collect();
            return Verdict::Cycle(cycle::shortest(self, left));
        }
        // For each buffer, the number of buffers before it on the longest chain, and the last of
        // them.
        let mut chain: Vec<(u32, u32)> = alloc::vec![(0, NONE); count];
        for here in order {
            let length = chain[here as usize].0 + 1;
            for wait in self.waits(here) {
                let there = &mut chain[wait.on as usize];
                if length > there.0 {
                    *there = (length, here);
                }
            }
        }
        let all = 0..count as u32;
        // The first of several chains of equal length.
        let last = all.max_by_key(|&at| (chain[at as usize].0, core::cmp::Reverse(at)));
        let back = core::iter::successors(last, |&at| {
            Some(chain[at as usize].1).filter(|&before| before != NONE)
        });
        let mut longest: Vec<Buffer> = back.map(|at| self.buffer(at)).collect();
        longest.reverse();
        Verdict::Free(longest)
    }
}
