//! Links: two directions each, with a rate, a propagation delay and losses.
//!
//! A frame of `n` bytes (without FCS, padded to 60) occupies its wire for 8 bytes of
//! preamble, `n` bytes, 4 bytes of FCS and 12 bytes of gap (IEEE 802.3 clauses 3.1.1 and
//! 4.4.2). It arrives when its last FCS bit has come through; the wire is free when the gap
//! is over. Whether noise takes a frame is decided when it is sent, by a random stream that
//! belongs to this direction of this link alone: what happens elsewhere never changes it.

use axon_fabric::model::Wire;
use axon_wire::link::FRAME_BYTES_MIN;
use axon_wire::{Bytes, PortNo, Span, Time};
use oorandom::Rand64;

/// Preamble and start delimiter, in bytes.
const PREAMBLE_BYTES: u64 = 8;
/// Frame check sequence, in bytes.
const FCS_BYTES: u64 = 4;
/// Gap between frames, in bytes.
const GAP_BYTES: u64 = 12;

/// Names a link of a world: first the fabric's links between switches in their order, then
/// the hosts' links in the order of hosts, then the controller's, then links added later.
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
    /// It was under way when the link lost carrier.
    Cut,
    /// It was sent without carrier, or on a port with nothing plugged in.
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
    /// Frames on the wire now.
    pub in_flight: u64,
}

impl Fates {
    /// Whether every frame has exactly one fate.
    pub fn balance(&self) -> bool {
        self.sent == self.delivered + self.lost.iter().sum::<u64>() + self.in_flight
    }
}

/// One direction of a link.
#[derive(Clone, Debug)]
struct Direction {
    noise: Rand64,
    fates: Fates,
}

/// A link.
#[derive(Clone, Debug)]
pub struct Link {
    /// Its two ends; a frame sent by end `side` arrives at end `1 - side`.
    pub ends: [WireEnd; 2],
    /// Rate, latency and loss, the same in both directions.
    pub wire: Wire,
    /// Whether both of its plugs are in.
    pub plugged: bool,
    /// Whether it is broken: no carrier.
    pub cut: bool,
    /// Whether it takes every frame without a sign.
    pub silent: bool,
    /// Whether its ends see carrier.
    pub carrier: bool,
    /// Grows when carrier is lost: frames of an older epoch are lost.
    pub epoch: u32,
    directions: [Direction; 2],
}

/// When a frame arrives and when its wire is free again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Its last bit is at the other end.
    pub arrival: Time,
    /// The next frame may start.
    pub free: Time,
}

impl Link {
    /// A plugged link without carrier yet. `seed` is the world's, `id` picks the random
    /// streams of its two directions.
    pub fn new(ends: [WireEnd; 2], wire: Wire, seed: u64, id: LinkId) -> Link {
        let direction = |side: u128| Direction {
            noise: Rand64::new_inc(u128::from(seed), (id.0 as u128) << 1 | side),
            fates: Fates::default(),
        };
        Link {
            ends,
            wire,
            plugged: true,
            cut: false,
            silent: false,
            carrier: false,
            epoch: 0,
            directions: [direction(0), direction(1)],
        }
    }

    /// What became of the frames that end `side` sent.
    pub fn fates(&self, side: usize) -> &Fates {
        &self.directions[side].fates
    }

    /// When a frame of `bytes` bytes that starts at `now` arrives and frees the wire; its
    /// last bit leaves no earlier than `complete_at`.
    pub fn passage(&self, now: Time, bytes: usize, complete_at: Time) -> Passage {
        let frame = PREAMBLE_BYTES + bytes.max(FRAME_BYTES_MIN) as u64 + FCS_BYTES;
        let rate = self.wire.rate;
        let last_bit = (now + rate.time_for(Bytes(frame))).max(complete_at);
        let gap: Span = rate.time_for(Bytes(GAP_BYTES));
        Passage {
            arrival: last_bit + self.wire.latency,
            free: (now + rate.time_for(Bytes(frame + GAP_BYTES))).max(complete_at + gap),
        }
    }

    /// Counts a frame sent by end `side`; says whether and why it is lost at once.
    pub fn send(&mut self, side: usize) -> Option<Loss> {
        let ppm = self.wire.loss_ppm;
        let direction = &mut self.directions[side];
        // Drawn whatever the state of the link, so that a fault does not shift the stream.
        let noise = ppm > 0 && direction.noise.rand_range(0..1_000_000) < u64::from(ppm);
        direction.fates.sent += 1;
        let loss = if !self.carrier {
            Some(Loss::NoCarrier)
        } else if self.silent {
            Some(Loss::Silent)
        } else {
            noise.then_some(Loss::Noise)
        };
        match loss {
            Some(loss) => direction.fates.lost[loss as usize] += 1,
            None => direction.fates.in_flight += 1,
        }
        loss
    }

    /// Counts a frame of `epoch`, sent by end `side`, at the end of its passage; says
    /// whether it is lost because carrier went meanwhile.
    pub fn arrive(&mut self, side: usize, epoch: u32) -> Option<Loss> {
        let fates = &mut self.directions[side].fates;
        fates.in_flight -= 1;
        if epoch == self.epoch {
            fates.delivered += 1;
            None
        } else {
            fates.lost[Loss::Cut as usize] += 1;
            Some(Loss::Cut)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_wire::Rate;

    fn link(loss_ppm: u32, id: usize) -> Link {
        let end = |station| WireEnd { station, port: PortNo(0) };
        let wire = Wire {
            rate: Rate::gbps(1),
            latency: Span::from_nanos(500),
            loss_ppm,
            bit_errors_per_1e15: 0,
            queue: Bytes(1 << 17),
        };
        let mut link = Link::new([end(0), end(1)], wire, 7, LinkId(id));
        link.carrier = true;
        link
    }

    #[test]
    fn a_frame_takes_its_preamble_fcs_and_gap_exactly() {
        let link = link(0, 0);
        let full = link.passage(Time::ZERO, 1514, Time::ZERO);
        assert_eq!(full.arrival, Time::from_nanos((8 + 1514 + 4) * 8 + 500));
        assert_eq!(full.free, Time::from_nanos((8 + 1514 + 4 + 12) * 8));
        let short = link.passage(Time::ZERO, 20, Time::ZERO);
        assert_eq!(short.free, Time::from_nanos((8 + 60 + 4 + 12) * 8), "short frames are padded");
        let late = link.passage(Time::ZERO, 60, Time::from_nanos(5000));
        assert_eq!(late.arrival, Time::from_nanos(5500), "its last byte was not here before");
        assert_eq!(late.free, Time::from_nanos(5000 + 12 * 8));
    }

    #[test]
    fn noise_takes_the_stated_share_and_each_direction_has_its_own() {
        let mut link = link(50_000, 3);
        let streams: Vec<Vec<bool>> =
            (0..2).map(|side| (0..20_000).map(|_| link.send(side).is_some()).collect()).collect();
        for stream in &streams {
            let lost = stream.iter().filter(|&&lost| lost).count();
            assert!((900..1100).contains(&lost), "{lost} of 20000 at 5 %");
        }
        assert_ne!(streams[0], streams[1]);
        assert!(link.fates(0).balance() && link.fates(1).balance());
    }

    #[test]
    fn frames_under_way_are_lost_with_the_carrier() {
        let mut link = link(0, 0);
        assert_eq!(link.send(0), None);
        let epoch = link.epoch;
        link.carrier = false;
        link.epoch += 1;
        assert_eq!(link.send(0), Some(Loss::NoCarrier));
        assert_eq!(link.arrive(0, epoch), Some(Loss::Cut));
        assert_eq!(link.fates(0).lost, [0, 0, 1, 1]);
        assert!(link.fates(0).balance());
    }
}
