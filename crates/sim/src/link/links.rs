//! Links between two ports, and the fates of the frames in each direction.
//!
//! A link's state belongs to the world and changes only when something is connected, broken or
//! repaired. State that changes with every frame (counters, noise) is kept at the ports of the two
//! ends, so that stations can run in parallel.

use crate::link::disorder::Disorder;
use axon_fabric::model::Wire;
use axon_wire::{PortNo, Rate};

/// ID of a link of a world: first the fabric's links between switches in their order, then the
/// hosts' links in the order of hosts, then the controller's, then those of agents in their order,
/// then links added later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub usize);

/// One end of a link: a station of the world, and its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WireEnd {
    /// Station index.
    pub station: usize,
    /// Port number.
    pub port: PortNo,
}

/// Reason for the loss of a frame on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Loss {
    /// Loss by the link's loss rate.
    Noise,
    /// The link is silent: it drops every frame but keeps carrier.
    Silent,
    /// The frame was in flight (on the wire, or in the pipelines at its ends) when the link lost
    /// carrier. It is counted at once, and traced at the time of its arrival.
    Cut,
    /// The frame was sent without carrier, or on a port with nothing connected.
    NoCarrier,
}

impl Loss {
    /// All reasons, in order.
    pub const ALL: [Loss; 4] = [Loss::Noise, Loss::Silent, Loss::Cut, Loss::NoCarrier];

    /// Returns the name in traces and results.
    pub const fn name(self) -> &'static str {
        match self {
            Loss::Noise => "link_noise",
            Loss::Silent => "link_silent",
            Loss::Cut => "link_cut",
            Loss::NoCarrier => axon_simhost::lost::NO_CARRIER,
        }
    }
}

/// Fates of the frames of one direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fates {
    /// Number of frames sent in this direction.
    pub sent: u64,
    /// Number of frames that arrived at the other end.
    pub delivered: u64,
    /// Number of frames lost, by [`Loss`].
    pub lost: [u64; 4],
    /// Number of frames in flight: in the sender's egress pipeline, on the wire, or in the
    /// receiver's ingress pipeline.
    pub in_flight: u64,
    /// Number of sent frames in which this link flipped a bit.
    pub corrupted: u64,
    /// Number of second copies that this link made of sent frames.
    pub duplicated: u64,
}

impl Fates {
    /// Returns whether every frame has exactly one fate. `arrivals` is the number of future
    /// arrivals at the far end. Sent frames are counted at one end, arrived ones at the other, and
    /// those in flight are in the event queue.
    pub(crate) fn balance(&self, arrivals: u64) -> bool {
        self.sent + self.duplicated == self.delivered + self.lost.iter().sum::<u64>() + arrivals
    }

    pub(crate) fn add(&mut self, other: &Fates) {
        self.sent += other.sent;
        self.delivered += other.delivered;
        self.corrupted += other.corrupted;
        self.duplicated += other.duplicated;
        self.lost.iter_mut().zip(other.lost).for_each(|(sum, count)| *sum += count);
        // The sums of the two ends may be read in any order. Nothing is in flight if more frames
        // arrived than were sent, and the balance then fails.
        let ended = self.delivered + self.lost.iter().sum::<u64>();
        self.in_flight = (self.sent + self.duplicated).saturating_sub(ended);
    }
}

/// Change of the state of a link, in both directions. It does not affect frames on the wire, except
/// by a change of carrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkChange {
    /// Cuts the link, so that both ends lose carrier, or repairs it.
    Cut(bool),
    /// Makes the link drop every frame from these ends while both keep carrier.
    Silent([bool; 2]),
    /// Sets the disorder, which no FCS shows. It ends when the link is connected anew.
    Disorder(Disorder),
    /// Sets the rate.
    Rate(Rate),
    /// Sets the loss rate, in frames per million.
    LossPpm(u32),
    /// Sets the bit error rate, in bits per 10^15.
    BitErrorsPer1e15(u64),
    /// Starts to count bytes by class, from zero. `axon` is whether the link joins Axons.
    CountClasses {
        /// True if frames have the header of Axon.
        axon: bool,
    },
}

/// Link of a world.
#[derive(Clone, Debug)]
pub struct Link {
    /// Ends of the link. A frame sent by end `side` arrives at end `1 - side`.
    pub ends: [WireEnd; 2],
    /// Rate, latency and noise, equal in both directions.
    pub wire: Wire,
    /// True if both ends are connected.
    pub connected: bool,
    /// True if the link is cut and has no carrier.
    pub cut: bool,
    /// True if the link silently drops every frame, by the side that sends.
    pub silent: [bool; 2],
    /// True if the ends have carrier.
    pub carrier: bool,
    /// Counters from before the last disconnection, if any, by the side that sent.
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
