//! Agents, good and bad: which operation comes next, and with which handle.

use axon_node::random::Random;

/// What may be asked of a cache.
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

/// How an agent behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Answers in the order of arrival.
    InOrder,
    /// Answers in any order.
    Reorders,
    /// Answers seldom, so that payloads expire.
    Holds,
    /// Drops most.
    Drops,
    /// Sends a payload again and again, kept or not.
    Repeats,
    /// Brings and replaces payloads.
    Brings,
    /// Presents handles that are not its own, are old or never were.
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

    /// The next operation of a runtime with such an agent. Each kind does everything now and then.
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
        // In the order of the operations above.
        let weights: [u32; 15] = match self {
            Kind::InOrder => [30, 6, 8, 8, 30, 2, 6, 8, 2, 4, 2, 1, 1, 4, 0],
            Kind::Reorders => [25, 10, 12, 12, 15, 8, 10, 14, 2, 4, 2, 1, 1, 4, 0],
            Kind::Holds => [30, 3, 4, 4, 4, 1, 2, 3, 1, 2, 2, 1, 1, 15, 0],
            Kind::Drops => [30, 6, 8, 8, 5, 1, 2, 3, 25, 2, 2, 1, 1, 4, 0],
            Kind::Repeats => [20, 5, 6, 6, 12, 20, 15, 15, 2, 2, 2, 3, 1, 4, 0],
            Kind::Brings => [15, 3, 4, 8, 20, 8, 6, 8, 3, 2, 15, 10, 10, 4, 0],
            Kind::Forges => [25, 5, 10, 8, 20, 6, 6, 8, 8, 6, 4, 2, 6, 4, 0],
        };
        // An agent that dies is rare.
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

/// The handles that an agent knows.
#[derive(Default)]
pub struct Known {
    /// Those that it has not answered, as far as it cares.
    pub present: Vec<u64>,
    /// Some that were present once.
    old: Vec<u64>,
    /// Those with transfers that may be pending.
    pub transfers: Vec<u64>,
}

impl Known {
    /// An agent remembers so many of each.
    const MEMORY: usize = 80;

    /// The agent gets a handle.
    pub fn get(&mut self, handle: u64) {
        if self.present.len() == Known::MEMORY {
            let first = self.present.remove(0);
            self.forget(first);
        }
        self.present.push(handle);
    }

    /// The agent has answered.
    pub fn forget(&mut self, handle: u64) {
        self.present.retain(|&present| present != handle);
        if self.old.len() == Known::MEMORY {
            self.old.remove(0);
        }
        self.old.push(handle);
    }

    /// The handle that an agent of this kind answers next. Some other agent has `other`.
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

    /// A handle that is likely to be wrong.
    fn forge(&self, other: Option<u64>, random: &mut Random) -> u64 {
        let own = any(&self.present, random).or_else(|| any(&self.old, random)).unwrap_or(0);
        let generation = 1 << 16;
        match below(random, 9) {
            0 => random.next_u64(),
            1 => other.unwrap_or(u64::MAX),
            2 | 3 => any(&self.old, random).unwrap_or(own),
            // Another generation of a buffer, the next one among them.
            4 => own.wrapping_add(generation),
            5 => own.wrapping_sub(generation * (1 + below(random, 3) as u64)),
            // Another buffer, of the same generation.
            6 => own ^ (1 + below(random, 15) as u64),
            7 => own ^ 1 << below(random, 64),
            _ => own | 0xffff,
        }
    }
}

/// Any one of these.
pub fn any(all: &[u64], random: &mut Random) -> Option<u64> {
    if all.is_empty() { None } else { Some(all[below(random, all.len())]) }
}

/// An even draw from `0..bound`; the bound is small.
pub fn below(random: &mut Random, bound: usize) -> usize {
    ((u64::from(random.next_u32()) * bound as u64) >> 32) as usize
}
