//! Timing of frames through a switch and over a wire, in integers.
//!
//! A frame of `n` bytes (without FCS, padded to 60) occupies its wire for 8 bytes of preamble, `n`
//! bytes, 4 bytes of FCS and 12 bytes of gap (IEEE 802.3 clauses 3.1.1 and 4.4.2).
//!
//! **Inside a switch.** The plane decides in zero time; the fabric's [`Device`] gives the time that
//! the hardware takes. Its stages lie on both sides of the output buffer, where the plane's queue
//! is. Ingress stages pass before the plane gets a frame, egress stages between the plane's
//! `Transmit` and the first bit on the wire. A queued frame has no record of its ingress port, so
//! the egress side is the same for all frames: that of `from_switch`. The difference for
//! `from_host` is added to its ingress side, so that the sum from first bit in to first bit out is
//! exact for both. (The cycle that thesis 000 §4.4.1 adds for each further 32-bit word of a route
//! is not modelled: Table 4.2 includes the first word, which holds eight hops.)
//!
//! **Cut-through.** The plane gets a frame when its head has passed the ingress stages, with
//! `complete_at` the time at which its tail will have. The last bit leaves no earlier than the
//! egress stages after that: where the plane has removed bytes, the frame starts that much later,
//! so that it never underruns on the wire. Ethernet does not give the length of a frame in advance,
//! so a switch cannot know when to start towards a faster wire: a frame from a port slower than the
//! switch's fastest is stored whole. Hosts, controllers and store-and-forward switches get a frame
//! when its last bit has arrived.
//!
//! **Order.** A stage that takes time per byte keeps frames in order.

use axon_fabric::model::{Device, Side, Stage};
use axon_plane::ProbeUnits;
use axon_wire::link::FRAME_BYTES_MIN;
use axon_wire::{Bytes, Rate, Span, Time};

/// Length of preamble and start delimiter, in bytes.
const PREAMBLE_BYTES: u64 = 8;
/// Length of the frame check sequence, in bytes.
pub(crate) const FCS_BYTES: u64 = 4;
/// Gap between frames, in bytes.
const GAP_BYTES: u64 = 12;

/// Returns the length of a frame in bytes from its destination address to the end of its FCS,
/// padding included.
pub(crate) fn padded_bytes(bytes: usize) -> u64 {
    bytes.max(FRAME_BYTES_MIN) as u64 + FCS_BYTES
}

/// Delay that may grow with the bytes of a frame (padding included, FCS not).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Delay {
    fixed: u64,
    per_byte: u64,
}

impl Delay {
    fn of(stages: &[Stage], side: Option<Side>) -> Delay {
        let here = |stage: &&Stage| side.is_none_or(|side| stage.side == side);
        let stages = stages.iter().filter(here);
        stages.fold(Delay::default(), |sum, stage| Delay {
            fixed: sum.fixed + stage.time.0.ticks(),
            per_byte: sum.per_byte + stage.time_per_byte.0.ticks(),
        })
    }

    fn less(self, other: Delay) -> Delay {
        Delay {
            fixed: self.fixed.saturating_sub(other.fixed),
            per_byte: self.per_byte.saturating_sub(other.per_byte),
        }
    }

    #[inline]
    fn of_frame(self, padded_bytes: u64) -> Span {
        Span::from_ticks(self.fixed + self.per_byte * (padded_bytes - FCS_BYTES))
    }
}

/// Delays of a station's frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Timing {
    cut_through: bool,
    head_bytes: u64,
    from_switch: Delay,
    from_host: Delay,
    egress: Delay,
}

impl Timing {
    /// Returns the timing of a switch.
    pub(crate) fn of(device: &Device) -> Timing {
        let egress = Delay::of(&device.from_switch, Some(Side::Egress));
        Timing {
            cut_through: device.cut_through,
            head_bytes: device.head_bytes,
            from_switch: Delay::of(&device.from_switch, None).less(egress),
            from_host: Delay::of(device.from_host(), None).less(egress),
            egress,
        }
    }
}

impl Timing {
    /// Returns whether frames may leave before they are complete.
    pub(crate) fn is_cut_through(&self) -> bool {
        self.cut_through
    }
}

/// Rate, with a precomputed time per byte if that is a whole number of ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Speed {
    rate: Rate,
    /// Ticks per byte; zero if not a whole number.
    byte_ticks: u64,
}

impl Speed {
    pub(crate) fn new(rate: Rate) -> Speed {
        let byte = rate.time_for(Bytes(1));
        let exact = rate.time_for(Bytes(1 << 20)) == byte * (1 << 20);
        Speed { rate, byte_ticks: if exact { byte.ticks() } else { 0 } }
    }

    /// Returns the time for `bytes` bytes, rounded up to a tick.
    #[inline]
    pub(crate) fn time_for(self, bytes: u64) -> Span {
        if self.byte_ticks > 0 {
            Span::from_ticks(bytes * self.byte_ticks)
        } else {
            self.rate.time_for(Bytes(bytes))
        }
    }
}

/// Head of a frame that is stored: not a number of bytes. An `Option` would have a tag that a port
/// would have to read in its first cache line to know whether it has a cable.
const STORED: u32 = u32::MAX;

/// Parameters that determine when a frame sent at one station is received at another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    speed: Speed,
    /// Delay from the plane's decision to the first bit.
    egress: Delay,
    /// Delay from the head, or from the last bit, to the plane at the far end: the latency of the
    /// wire and the ingress stages there.
    onward: Delay,
    /// Length of the head in bytes; [`STORED`] if the far end stores frames.
    head_bytes: u32,
}

/// Times of one frame on one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passage {
    /// End of the gap after the frame on the wire.
    pub(crate) gap_end: Time,
    /// Time at which the sender may send the next frame.
    pub(crate) free: Time,
    /// Time at which the far end receives the frame.
    pub(crate) handed: Time,
    /// Time at which the frame's tail has passed the ingress stages of the far end.
    pub(crate) complete: Time,
}

impl Way {
    /// Returns the way over a wire from one station to another. `from_host` is whether the sender
    /// is a host, `stored` whether the far end must store frames from this port even if it cuts
    /// through.
    pub(crate) fn new(
        speed: Speed,
        latency: Span,
        near: &Timing,
        far: &Timing,
        from_host: bool,
        stored: bool,
    ) -> Way {
        let cut_through = far.cut_through && !stored;
        let ingress = if from_host { far.from_host } else { far.from_switch };
        // No frame has 2^32 bytes, and no head is longer than its frame.
        let head_bytes = u32::try_from(far.head_bytes).unwrap_or(STORED - 1);
        Way {
            speed,
            egress: near.egress,
            onward: Delay { fixed: ingress.fixed + latency.ticks(), ..ingress },
            head_bytes: if cut_through { head_bytes } else { STORED },
        }
    }

    /// Returns the times of a frame of `bytes` bytes that is transmitted at `now`. Its tail will
    /// have passed the sender's ingress stages at `complete_at`, its wire is busy until
    /// `wire_free`, and the far end last received a frame at `handed_last`.
    #[inline(always)]
    pub(crate) fn passage(
        &self,
        now: Time,
        bytes: usize,
        complete_at: Time,
        wire_free: Time,
        handed_last: Time,
    ) -> Passage {
        let padded = padded_bytes(bytes);
        let duration = self.speed.time_for(PREAMBLE_BYTES + padded);
        let egress = self.egress.of_frame(padded);
        let onward = self.onward.of_frame(padded);
        let start = (now + egress).max(complete_at + egress - duration).max(wire_free);
        let last_bit = start + duration;
        let gap_end = last_bit + self.speed.time_for(GAP_BYTES);
        let complete = (last_bit + onward).max(handed_last);
        let handed = match self.head_bytes {
            STORED => complete,
            head => {
                let head = self.speed.time_for(u64::from(head)).min(duration);
                (start + head + onward).max(handed_last)
            }
        };
        Passage { gap_end, free: gap_end - egress, handed, complete }
    }

    /// Returns the minimum time from transmission to reception at the far end.
    pub(crate) fn lookahead(&self) -> Span {
        let least = padded_bytes(0);
        let on_wire = self.speed.time_for(match self.head_bytes {
            STORED => PREAMBLE_BYTES + least,
            head => u64::from(head).min(PREAMBLE_BYTES + least),
        });
        self.egress.of_frame(least) + on_wire + self.onward.of_frame(least)
    }
}

/// Returns the position of a device's probe units: at its ports, so that all its stages lie between
/// them. A probe comes from a switch and takes those stages.
pub(crate) fn probe_units(device: &Device) -> ProbeUnits {
    let sum = |side: Side, of: fn(&Stage) -> Span| {
        let stages = device.from_switch.iter().filter(|stage| stage.side == side);
        stages.fold(Span::ZERO, |sum, stage| sum + of(stage))
    };
    ProbeUnits {
        ingress: sum(Side::Ingress, |stage| stage.time.0),
        ingress_per_byte: sum(Side::Ingress, |stage| stage.time_per_byte.0),
        egress: sum(Side::Egress, |stage| stage.time.0),
        egress_per_byte: sum(Side::Egress, |stage| stage.time_per_byte.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_fabric::units::SpanText;

    const NANO: u64 = 100;

    fn stage(side: Side, nanos: u64, ticks_per_byte: u64) -> Stage {
        Stage {
            name: "stage".into(),
            side,
            time: SpanText(Span::from_nanos(nanos)),
            time_per_byte: SpanText(Span::from_ticks(ticks_per_byte)),
        }
    }

    fn device(cut_through: bool, head_bytes: u64, per_byte: u64) -> Device {
        Device {
            name: "test".into(),
            cut_through,
            head_bytes,
            from_switch: vec![stage(Side::Ingress, 300, per_byte), stage(Side::Egress, 200, 0)],
            from_host: Some(vec![stage(Side::Ingress, 500, per_byte), stage(Side::Egress, 100, 0)]),
        }
    }

    fn way(near: &Timing, far: &Timing, from_host: bool) -> Way {
        let (speed, latency) = (Speed::new(Rate::gbps(1)), Span::from_nanos(500));
        Way::new(speed, latency, near, far, from_host, false)
    }

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    fn plain(way: &Way, now: Time, bytes: usize, complete_at: Time) -> Passage {
        way.passage(now, bytes, complete_at, Time::ZERO, Time::ZERO)
    }

    #[test]
    fn a_frame_takes_its_preamble_fcs_and_gap_exactly() {
        let none = Timing::default();
        let way = way(&none, &none, true);
        let full = plain(&way, Time::ZERO, 1514, Time::ZERO);
        assert_eq!(full.handed, at((8 + 1514 + 4) * 8 + 500));
        assert_eq!((full.complete, full.free), (full.handed, at((8 + 1514 + 4 + 12) * 8)));
        let short = plain(&way, Time::ZERO, 20, Time::ZERO);
        assert_eq!(short.free, at((8 + 60 + 4 + 12) * 8), "short frames are padded");
        assert_eq!(way.lookahead(), Span::from_nanos(72 * 8 + 500));
    }

    #[test]
    fn odd_rates_are_rounded_up_once_for_a_whole_frame() {
        let rate = Rate::from_bits_per_second(3_000_000_000).unwrap();
        let speed = Speed::new(rate);
        assert_eq!(speed.byte_ticks, 0);
        for bytes in [1, 3, 64, 1538] {
            assert_eq!(speed.time_for(bytes), rate.time_for(Bytes(bytes)));
        }
        assert_eq!(Speed::new(Rate::gbps(10)).byte_ticks, 80);
    }

    #[test]
    fn the_sum_of_the_stages_is_exact_whatever_the_ingress() {
        let switch = Timing::of(&device(true, 0, 0));
        for (from_host, sum) in [(false, 500), (true, 600)] {
            let first_bit_in = at(10_000);
            let into = way(&Timing::default(), &switch, from_host);
            let sent = first_bit_in - Span::from_nanos(500);
            let entry = plain(&into, sent, 1514, sent);
            let duration = (8 + 1514 + 4) * 8;
            assert_eq!(entry.complete, entry.handed + Span::from_nanos(duration));
            let onward = way(&switch, &Timing::default(), false);
            let exit = plain(&onward, entry.handed, 1514, entry.complete);
            let first_bit_out = exit.handed - Span::from_nanos(500 + duration);
            assert_eq!(first_bit_out.since(first_bit_in), Span::from_nanos(sum));
            assert_eq!(exit.free, entry.handed + Span::from_nanos(duration + 96), "line rate");
        }
    }

    #[test]
    fn the_head_is_waited_for_and_the_tail_of_a_stored_frame() {
        let none = Timing::default();
        let cut = plain(&way(&none, &Timing::of(&device(true, 22, 0)), false), at(0), 100, at(0));
        assert_eq!(cut.handed, at(22 * 8 + 500 + 300));
        assert_eq!(cut.complete, at(112 * 8 + 500 + 300));
        let stored =
            plain(&way(&none, &Timing::of(&device(false, 22, 0)), false), at(0), 100, at(0));
        assert_eq!((stored.handed, stored.complete), (cut.complete, cut.complete));
    }

    #[test]
    fn a_frame_never_leaves_faster_than_it_comes() {
        let none = Timing::default();
        let way = way(&none, &none, false);
        // 90 bytes are left of a frame whose tail arrives at 2000 ns: it may start when the rest
        // still to arrive is just as long as the rest on the wire.
        let late = plain(&way, at(1000), 90, at(2000));
        assert_eq!(late.complete, at(2000 + 500));
        assert_eq!(late.free, at(2000 + 96));
        let early = plain(&way, at(1900), 90, at(2000));
        assert_eq!(early.complete, at(1900 + 102 * 8 + 500), "the wire is the slower one");
    }

    #[test]
    fn nobody_overtakes_and_nobody_shares_the_wire() {
        let (none, slow) = (Timing::default(), Timing::of(&device(false, 0, 10 * NANO)));
        let way = way(&none, &slow, false);
        let long = plain(&way, at(0), 1514, at(0));
        let short = way.passage(long.free, 60, long.free, long.gap_end, long.handed);
        assert!(short.handed == long.handed, "{short:?} after {long:?}");
        let next = way.passage(at(0), 60, at(0), long.gap_end, long.handed);
        assert_eq!(next.gap_end, long.gap_end + Span::from_nanos(84 * 8));
    }
}
