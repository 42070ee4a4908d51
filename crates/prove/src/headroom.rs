//! PFC headroom: the bytes that may still arrive after a buffer has sent XOFF.
//!
//! A lossless buffer sends XOFF when it is filled up to a threshold. The headroom above the
//! threshold has to hold the frames that arrive after that. IEEE 802.1Q's annex on buffer
//! requirements for priority-based flow control adds it up in bits, which are equal to bit times:
//!
//! ```text
//! delay value = max frame of the port + max frame of the priority + PFC frame
//!             + 2 * cable + 2 * interface + reaction
//! ```
//!
//! In chronological order, the XOFF waits for a frame of any priority that our own port has just
//! begun. It is sent, and crosses our transmitter, the cable and the peer's receiver. The peer
//! needs its reaction time to pause the queue, and may just have begun one more frame of the
//! priority. The frames in flight then cross the peer's transmitter, the cable and our receiver.
//! During all this time the peer sends at full rate. [`Headroom::terms`] names each part.
//!
//! If the rate of a link changes, the frame that our port has begun and the XOFF may still be sent
//! at the slowest rate while the peer already sends at the fastest. These two terms then take more
//! bit times of the fastest rate.

use axon_wire::{Bytes, Rate, Span};

/// Bytes on the wire in addition to a frame: preamble, start delimiter and minimum gap (IEEE 802.3
/// clauses 3.1.1 and 4.4.2).
const AROUND_FRAME_BYTES: u64 = 20;
/// Bytes of a PFC frame, FCS included (IEEE 802.3 annex 31D).
const PFC_FRAME_BYTES: u64 = 64;
/// Bytes sent in a quantum of 512 bit times.
const QUANTUM_BYTES: u64 = 64;
/// Ticks of 10 ps in a second.
const TICKS_PER_SECOND: u128 = 100_000_000_000;
/// Maximum time that a station takes from the receipt of a PFC frame to pausing the queue: 614.4 ns
/// (IEEE 802.1Q clause 36.1.3.3, as recalled), 6,144 bit times at 10 Gb/s.
pub const REACTION_MAX: Span = Span::from_ticks(61_440);
/// Propagation delay per metre of fibre, 5 ns, which corresponds to two thirds of the speed of
/// light.
pub const FIBRE_PER_METRE: Span = Span::from_nanos(5);

/// Parameters that determine the headroom for one ingress port and priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headroom {
    /// The fastest rate of the link, the same in both directions.
    pub rate: Rate,
    /// The slowest rate of the link; equal to `rate` if the rate never changes.
    pub slowest: Rate,
    /// The propagation delay of the cable, one way.
    pub cable: Span,
    /// The longest frame of any priority that the port sends, FCS included.
    pub port_frame: Bytes,
    /// The longest frame of the lossless priority, FCS included.
    pub lossless_frame: Bytes,
    /// Delay of MAC and PHY at one end, for sending and receiving together, in bit times.
    pub interface_bits: u64,
    /// The time from the receipt of XOFF until the peer's queue is paused.
    pub reaction: Span,
}

/// One part of the delay value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// Description of the delay.
    pub name: &'static str,
    /// Factor by which the term counts in the sum.
    pub times: u64,
    /// Size in bits, which are bit times of the link.
    pub bits: u64,
}

impl Term {
    /// Returns the number of bits that the term adds to the delay value. Saturates.
    pub(crate) const fn total(&self) -> u64 {
        self.times.saturating_mul(self.bits)
    }
}

/// Published delay of the MAC and PHY at one end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceDelay {
    /// The rate of the port.
    pub rate: Rate,
    /// Delay for sending and receiving together, in bit times.
    pub bits: u64,
    /// Publication or driver from which the number is taken.
    pub source: &'static str,
}

/// Interface delays by rate. The first entry for a rate is its default. For other rates no source
/// is known, and [`Headroom::new`] has no default.
pub(crate) const INTERFACE_DELAYS: [InterfaceDelay; 6] = [
    InterfaceDelay { rate: Rate::gbps(10), bits: 8_192, source: CISCO },
    InterfaceDelay { rate: Rate::gbps(10), bits: 18_944, source: "ixgbe, 82599" },
    InterfaceDelay { rate: Rate::gbps(10), bits: 37_888, source: "ixgbe, X540 on 10GBASE-T" },
    InterfaceDelay { rate: Rate::gbps(25), bits: 6_144, source: CISCO },
    InterfaceDelay { rate: Rate::gbps(40), bits: 24_576, source: CISCO },
    InterfaceDelay { rate: Rate::gbps(100), bits: 122_880, source: CISCO },
];
const CISCO: &str = "Cisco Press on storage networks, chapter 7";

/// Maximum time until a port acts on an 802.3 PAUSE, by rate, in quanta of 512 bit times. It
/// extends from the receipt to the last frame that may start (IEEE 802.3 clause 31B.3.7, as in
/// SONiC's headroom calculation; at 10 Gb/s SONiC has 67, and others have 74 on copper).
const PAUSE_REACTION_QUANTA: [(Rate, u64); 10] = [
    (Rate::mbps(100), 1),
    (Rate::gbps(1), 2),
    (Rate::gbps(10), 60),
    (Rate::gbps(25), 80),
    (Rate::gbps(40), 118),
    (Rate::gbps(50), 147),
    (Rate::gbps(100), 394),
    (Rate::gbps(200), 453),
    (Rate::gbps(400), 905),
    (Rate::gbps(800), 905),
];

/// Returns the maximum time until a port of `rate` acts on a PAUSE, from the quanta for that rate,
/// or for the next lower rate that is known.
pub fn pause_reaction_max(rate: Rate) -> Span {
    let known = PAUSE_REACTION_QUANTA.iter().rfind(|(known, _)| *known <= rate);
    let (_, quanta) = known.unwrap_or(&PAUSE_REACTION_QUANTA[0]);
    rate.time_for(Bytes(quanta * QUANTUM_BYTES))
}

impl Headroom {
    /// Returns the parameters with the defaults for the rate and the longest permitted reaction, or
    /// `None` if no interface delay is known for it. Both frames have the length `frame`.
    pub fn new(rate: Rate, cable: Span, frame: Bytes) -> Option<Headroom> {
        let known = INTERFACE_DELAYS.iter().find(|delay| delay.rate == rate)?;
        Some(Headroom {
            rate,
            slowest: rate,
            cable,
            port_frame: frame,
            lossless_frame: frame,
            interface_bits: known.bits,
            reaction: REACTION_MAX,
        })
    }

    /// Returns the terms of the delay value, in chronological order.
    pub const fn terms(&self) -> [Term; 6] {
        let begun = self.at_slowest(wire(self.port_frame));
        let pfc = self.at_slowest(wire(Bytes(PFC_FRAME_BYTES)));
        [
            Term { name: "frame that the port has begun", times: 1, bits: begun },
            Term { name: "PFC frame", times: 1, bits: pfc },
            Term { name: "cable", times: 2, bits: bits_in(self.rate, self.cable) },
            Term { name: "interface", times: 2, bits: self.interface_bits },
            Term { name: "reaction", times: 1, bits: bits_in(self.rate, self.reaction) },
            Term {
                name: "frame that the peer has begun",
                times: 1,
                bits: wire(self.lossless_frame),
            },
        ]
    }

    /// Returns the bit times at `rate` that pass while `bits` bits are sent at the slowest rate.
    /// Saturates.
    const fn at_slowest(&self, bits: u64) -> u64 {
        let slowest = self.slowest.bits_per_second() as u128;
        whole((bits as u128 * self.rate.bits_per_second() as u128).div_ceil(slowest))
    }

    /// Returns the delay value, in bits. Saturates.
    pub(crate) const fn bits(&self) -> u64 {
        let terms = self.terms();
        let (mut at, mut sum) = (0, 0_u64);
        while at < terms.len() {
            sum = sum.saturating_add(terms[at].total());
            at += 1;
        }
        sum
    }

    /// Returns the delay value in whole bytes, rounded up.
    pub const fn bytes(&self) -> Bytes {
        Bytes(self.bits().div_ceil(8))
    }
}

/// Returns the number of bits that a frame takes on the wire, including preamble and gap.
/// Saturates.
const fn wire(frame: Bytes) -> u64 {
    frame.0.saturating_add(AROUND_FRAME_BYTES).saturating_mul(8)
}

/// Returns the number of bits that begin in a span. A partial bit counts as a whole one. Saturates.
const fn bits_in(rate: Rate, span: Span) -> u64 {
    whole((span.ticks() as u128 * rate.bits_per_second() as u128).div_ceil(TICKS_PER_SECOND))
}

/// Returns the value, limited to the largest 64-bit value.
const fn whole(bits: u128) -> u64 {
    if bits > u64::MAX as u128 { u64::MAX } else { bits as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn the_delay_values_are_those_reckoned_by_hand() {
        let cases = [
            (10, 2_000, 100, 65_520, 8_190),
            (10, 9_216, 100, 180_976, 22_622),
            (40, 2_000, 100, 146_720, 18_340),
            (100, 1_518, 10, 342_480, 42_810),
            (100, 9_216, 300, 755_648, 94_456),
        ];
        for (gigabits, frame, metres, bits, bytes) in cases {
            let cable = FIBRE_PER_METRE * metres;
            let headroom = Headroom::new(Rate::gbps(gigabits), cable, Bytes(frame)).unwrap();
            assert_eq!(headroom.bits(), bits, "{gigabits} Gb/s, {frame} B, {metres} m");
            assert_eq!(headroom.bytes(), Bytes(bytes));
        }
    }

    #[test]
    fn the_terms_are_named_and_add_up() {
        let cable = FIBRE_PER_METRE * 100;
        let headroom = Headroom::new(Rate::gbps(10), cable, Bytes(2_000)).unwrap();
        let terms = headroom.terms().map(|term| (term.times, term.bits));
        let wanted = [(1, 16_160), (1, 672), (2, 5_000), (2, 8_192), (1, 6_144), (1, 16_160)];
        assert_eq!(terms, wanted);
        let total: u64 = headroom.terms().iter().map(Term::total).sum();
        assert_eq!(total, headroom.bits());
    }

    #[test]
    fn the_two_frames_count_once_each_and_may_differ() {
        let rate = Rate::gbps(10);
        let same = Headroom::new(rate, Span::ZERO, Bytes(9_216)).unwrap();
        let small = Headroom { lossless_frame: Bytes(1_518), ..same };
        assert_eq!(same.bits() - small.bits(), (9_216 - 1_518) * 8);
    }

    #[test]
    fn what_is_sent_at_the_slowest_rate_takes_more_bit_times_of_the_fastest() {
        let steady = Headroom::new(Rate::gbps(10), Span::from_nanos(500), Bytes(1_518)).unwrap();
        let changing = Headroom { slowest: Rate::gbps(1), ..steady };
        let more: Vec<u64> = steady
            .terms()
            .iter()
            .zip(changing.terms())
            .map(|(steady, changing)| changing.bits - steady.bits)
            .collect();
        assert_eq!(more, [9 * 1_538 * 8, 9 * 84 * 8, 0, 0, 0, 0]);
    }

    #[test]
    fn a_part_of_a_bit_is_a_bit_and_a_part_of_a_byte_a_byte() {
        let least = Headroom {
            rate: Rate::gbps(1),
            slowest: Rate::gbps(1),
            cable: Span::from_ticks(1),
            port_frame: Bytes(0),
            lossless_frame: Bytes(0),
            interface_bits: 0,
            reaction: Span::ZERO,
        };
        assert_eq!(least.bits(), 672 + 2 * 160 + 2);
        assert_eq!(least.bytes(), Bytes(125));
        let most =
            Headroom { reaction: Span::from_ticks(u64::MAX), rate: Rate::gbps(800), ..least };
        assert!(most.bits() > least.bits());
        let endless = Headroom { interface_bits: u64::MAX, ..least };
        assert_eq!(endless.bits(), u64::MAX);
    }

    #[test]
    fn a_pause_takes_effect_within_the_quanta_of_the_rate() {
        let known = [(100, 5_120), (1_000, 1_024), (2_500, 409), (10_000, 3_072)];
        for (megabits, nanos) in known {
            assert_eq!(pause_reaction_max(Rate::mbps(megabits)).as_nanos(), nanos, "{megabits}");
        }
        assert_eq!(pause_reaction_max(Rate::mbps(10)).as_nanos(), 51_200);
    }

    #[test]
    fn reaction_is_the_same_time_at_every_rate_and_its_bit_times_grow() {
        for (gigabits, quanta) in [(10, 12), (40, 48), (100, 120)] {
            assert_eq!(bits_in(Rate::gbps(gigabits), REACTION_MAX), quanta * 512);
        }
        assert_eq!(Headroom::new(Rate::gbps(1), Span::ZERO, Bytes(1_518)), None);
    }
}
