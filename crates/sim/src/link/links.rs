//! Links: what is between two ports, and what became of the frames in each direction.
//!
//! A link's state is the world's: it changes only when something is connected, broken or
//! mended. What every frame changes (counts, noise) stands at the ports of its two ends, so
//! that stations can run beside one another.

use axon_fabric::model::Wire;
use axon_wire::PortNo;

/// Names a link of a world: first the fabric's links between switches in their order, then
/// the hosts' links in the order of hosts, then the controller's, then those of agents in their
/// order, then links added later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub usize);

/// One end of a link: a station of the world, and its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WireEnd {
    /// The station, by index.
    pub station: usize,
    /// Its port.
    pub port: PortNo,
}

/// Why a frame never came out of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Loss {
    /// Taken by the link's loss rate.
    Noise,
    /// The link is silent: it takes every frame but keeps carrier.
    Silent,
    /// It was in flight (on the wire, or in the pipelines at its ends) when the link lost
    /// carrier. Counted at once; in the trace when it would have come out at the far end.
    Cut,
    /// It was sent without carrier, or on a port with nothing connected.
    NoCarrier,
}

impl Loss {
    /// All of them, in order.
    pub const ALL: [Loss; 4] = [Loss::Noise, Loss::Silent, Loss::Cut, Loss::NoCarrier];

    /// The name in traces and results.
    pub const fn name(self) -> &'static str {
        match self {
            Loss::Noise => "link_noise",
            Loss::Silent => "link_silent",
            Loss::Cut => "link_cut",
            Loss::NoCarrier => "link_no_carrier",
        }
    }
}

/// What became of the frames of one direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fates {
    /// Frames handed to this direction.
    pub sent: u64,
    /// Frames that came out at the other end.
    pub delivered: u64,
    /// Frames lost, by [`Loss`].
    pub lost: [u64; 4],
    /// Frames on their way now: in the sender's egress pipeline, on the wire, or in the
    /// receiver's ingress pipeline.
    pub in_flight: u64,
    /// Of those sent, frames in which this link flipped a bit.
    pub corrupted: u64,
    /// Second copies that this link made of frames that were sent.
    pub duplicated: u64,
}

impl Fates {
    /// Whether every frame has exactly one fate, where so many arrivals at the far end were
    /// counted that are still to come: what was sent is counted at one end, what came out at
    /// the other, and what is in flight in the queue of events.
    pub fn balance(&self, arrivals: u64) -> bool {
        self.sent + self.duplicated == self.delivered + self.lost.iter().sum::<u64>() + arrivals
    }

    pub(crate) fn add(&mut self, other: &Fates) {
        self.sent += other.sent;
        self.delivered += other.delivered;
        self.corrupted += other.corrupted;
        self.duplicated += other.duplicated;
        self.lost.iter_mut().zip(other.lost).for_each(|(sum, count)| *sum += count);
        // Sums of the two ends may be looked at in any order; nothing is in flight if more
        // came out than went in, and then the balance says so.
        let ended = self.delivered + self.lost.iter().sum::<u64>();
        self.in_flight = (self.sent + self.duplicated).saturating_sub(ended);
    }
}

/// A link.
#[derive(Clone, Debug)]
pub struct Link {
    /// Its two ends; a frame sent by end `side` arrives at end `1 - side`.
    pub ends: [WireEnd; 2],
    /// Rate, latency and noise, the same in both directions.
    pub wire: Wire,
    /// Whether both of its ends are connected.
    pub connected: bool,
    /// Whether it is cut: no carrier.
    pub cut: bool,
    /// Whether it takes every frame without a sign, by the side that sends.
    pub silent: [bool; 2],
    /// Whether its ends see carrier.
    pub carrier: bool,
    /// Counts from before it was last disconnected, if it ever was, by the side that sent.
    pub(crate) past: Option<Box<[Fates; 2]>>,
}

impl Link {
    pub(crate) fn new(ends: [WireEnd; 2], wire: Wire) -> Link {
        Link {
            ends,
            wire,
            connected: true,
            cut: false,
            silent: [false; 2],
            carrier: false,
            past: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_fates_know_what_is_in_flight() {
        let sender = Fates { sent: 9, lost: [1, 0, 2, 0], corrupted: 1, ..Fates::default() };
        let receiver = Fates { delivered: 4, ..Fates::default() };
        let mut sum = Fates::default();
        sum.add(&sender);
        assert_eq!(sum.in_flight, 6);
        sum.add(&receiver);
        assert_eq!((sum.in_flight, sum.corrupted), (2, 1));
        assert!(sum.balance(2));
        assert!(!sum.balance(1), "one is lost without a word");
        sum.add(&Fates { delivered: 3, ..Fates::default() });
        assert!(!sum.balance(0), "more came out than went in");
    }
}
