//! Correct and faulty agents. They choose the next operation and its handle.

use axon_node::random::Random;

/// Operations on a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Receive,
    BeginReceive,
    Filled,
    Delivered,
    Send,
    SendKept,
    BeginSend,
    EndSend,
    Release,
    Fetch,
    Bring,
    BeginOwn,
    Replace,
    Expire,
    Reset,
}

/// Behaviour of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Answers in the order of arrival.
    InOrder,
    /// Answers in any order.
    Reorders,
    /// Answers seldom, so that payloads expire.
    Holds,
    /// Drops most payloads.
    Drops,
    /// Sends a payload repeatedly, kept or not.
    Repeats,
    /// Brings and replaces payloads.
    Brings,
    /// Presents forged handles: those of another agent, old ones, or handles that never existed.
    Forges,
}

impl Kind {
    pub const ALL: [Kind; 7] = [
        Kind::InOrder,
        Kind::Reorders,
        Kind::Holds,
        Kind::Drops,
        Kind::Repeats,
        Kind::Brings,
        Kind::Forges,
    ];

    /// Draws the next operation of a runtime with such an agent. Each kind occasionally does
    /// everything.
    pub fn next(self, random: &mut Random) -> Op {
        const ALL: [Op; 15] = [
            Op::Receive,
            Op::BeginReceive,
            Op::Filled,
            Op::Delivered,
            Op::Send,
            Op::SendKept,
            Op::BeginSend,
            Op::EndSend,
            Op::Release,
            Op::Fetch,
            Op::Bring,
            Op::BeginOwn,
            Op::Replace,
            Op::Expire,
            Op::Reset,
        ];
        // The weights are in the order of the operations above.
        let weights: [u32; 15] = match self {
            Kind::InOrder => [30, 6, 8, 8, 30, 2, 6, 8, 2, 4, 2, 1, 1, 4, 0],
            Kind::Reorders => [25, 10, 12, 12, 15, 8, 10, 14, 2, 4, 2, 1, 1, 4, 0],
            Kind::Holds => [30, 3, 4, 4, 4, 1, 2, 3, 1, 2, 2, 1, 1, 15, 0],
            Kind::Drops => [30, 6, 8, 8, 5, 1, 2, 3, 25, 2, 2, 1, 1, 4, 0],
            Kind::Repeats => [20, 5, 6, 6, 12, 20, 15, 15, 2, 2, 2, 3, 1, 4, 0],
            Kind::Brings => [15, 3, 4, 8, 20, 8, 6, 8, 3, 2, 15, 10, 10, 4, 0],
            Kind::Forges => [25, 5, 10, 8, 20, 6, 6, 8, 8, 6, 4, 2, 6, 4, 0],
        };
        // The death of an agent is rare.
        if below(random, 2000) == 0 {
            return Op::Reset;
        }
        let mut at = below(random, weights.iter().sum::<u32>() as usize) as u32;
        let found = ALL.iter().zip(weights).find(|(_, weight)| {
            let here = at < *weight;
            at = at.wrapping_sub(*weight);
            here
        });
        found.map_or(Op::Expire, |(op, _)| *op)
    }
}

/// Handles that an agent remembers.
#[derive(Default)]
pub struct Known {
    /// Handles that the agent has not answered, as far as it tracks them.
    pub present: Vec<u64>,
    /// Some of the handles that were in `present` earlier.
    old: Vec<u64>,
    /// Handles that may have pending transfers.
    pub transfers: Vec<u64>,
}

impl Known {
    /// Maximum number of handles of each kind that an agent remembers.
    const MEMORY: usize = 80;

    /// Records a handle that the agent has received.
    pub fn get(&mut self, handle: u64) {
        if self.present.len() == Known::MEMORY {
            let first = self.present.remove(0);
            self.forget(first);
        }
        self.present.push(handle);
    }

    /// Removes a handle that the agent has answered.
    pub fn forget(&mut self, handle: u64) {
        self.present.retain(|&present| present != handle);
        if self.old.len() == Known::MEMORY {
            self.old.remove(0);
        }
        self.old.push(handle);
    }

    /// Picks the handle that an agent of this kind answers next. `other` is a handle that belongs
    /// to another agent.
    pub fn pick(&self, kind: Kind, other: Option<u64>, random: &mut Random) -> u64 {
        let wild = if kind == Kind::Forges { 50 } else { 3 };
        if below(random, 100) < wild {
            return self.forge(other, random);
        }
        match kind {
            Kind::InOrder => self.present.first().copied(),
            _ => any(&self.present, random),
        }
        .unwrap_or_else(|| self.forge(other, random))
    }

    /// Makes a handle that is likely to be wrong.
    fn forge(&self, other: Option<u64>, random: &mut Random) -> u64 {
        let own = any(&self.present, random).or_else(|| any(&self.old, random)).unwrap_or(0);
        let generation = 1 << 16;
        match below(random, 9) {
            0 => random.next_u64(),
            1 => other.unwrap_or(u64::MAX),
            2 | 3 => any(&self.old, random).unwrap_or(own),
            // This is another generation of a buffer, possibly the next one.
            4 => own.wrapping_add(generation),
            5 => own.wrapping_sub(generation * (1 + below(random, 3) as u64)),
            // This is another buffer in the same generation.
            6 => own ^ (1 + below(random, 15) as u64),
            7 => own ^ 1 << below(random, 64),
            _ => own | 0xffff,
        }
    }
}

/// Picks any element of `all`.
pub fn any(all: &[u64], random: &mut Random) -> Option<u64> {
    if all.is_empty() { None } else { Some(all[below(random, all.len())]) }
}

/// Draws evenly from `0..bound`. `bound` is small.
pub fn below(random: &mut Random, bound: usize) -> usize {
    ((u64::from(random.next_u32()) * bound as u64) >> 32) as usize
}
