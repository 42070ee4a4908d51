//! How long a lossless buffer may stop its sender although nothing is broken.

use super::dependencies::{Buffer, Dependencies};
use alloc::vec::Vec;
use axon_wire::{Bytes, Rate, Span};

/// Ticks of 10 ps in a second.
const TICKS_PER_SECOND: u128 = 100_000_000_000;

/// What is known of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draining {
    /// The link that fills it.
    pub link: Rate,
    /// Bits per second that its class is promised on that link when all others are busy.
    pub promised: u64,
    /// The same at the slowest port to a host of the switch that it is in, for what is on one layer
    /// of routes if several share a queue there; `None` without any.
    pub to_hosts: Option<u64>,
    /// Ingress ports of that switch, at most, that take turns at one of its ports.
    pub turns: u64,
    /// What may have to leave the buffer before its sender may go on.
    pub bytes: Bytes,
}

/// What an honest buffer may do to its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HonestStop {
    /// The buffer.
    pub buffer: Buffer,
    /// The longest stop without a break; the longest span there is if nothing bounds it.
    pub longest: Span,
    /// Bits per second that it lets through in the long run, at least.
    pub rate: u64,
    /// The link that fills it.
    pub link: Rate,
}

impl HonestStop {
    /// A watchdog that takes a queue for stormy once it was stopped for `percent` of a detection
    /// time never does so for this buffer, if the detection time is longer than this; `None` if
    /// no time is long enough.
    ///
    /// In a detection time `D` at least `rate * (D - longest)` bits come through, and while they
    /// do, at the rate of the link, the queue is not stopped. That has to be more than what may be
    /// missing from a storm, `(100 - percent) / 100 * D`.
    pub fn detection(&self, percent: u8) -> Option<Span> {
        let through = u128::from(self.rate) * 100;
        let missing =
            u128::from(self.link.bits_per_second()) * u128::from(100_u8.saturating_sub(percent));
        let more = through.checked_sub(missing).filter(|&more| more > 0)?;
        if self.longest == Span::from_ticks(u64::MAX) {
            return None;
        }
        let ticks = (u128::from(self.longest.ticks()) * through).div_ceil(more);
        u64::try_from(ticks).ok().map(Span::from_ticks)
    }
}

/// The honest stops of all buffers, in no order that means anything; `None` if they may wait in a
/// circle, and thus for ever.
///
/// A buffer in which much has come together lets its sender go on when enough of it has left.
/// That leaves by the worst of its ways. There the ingress ports of the switch take turns, so it
/// gets its part of what the class is promised; and what is beyond has to take it in, and does
/// so in the long run at the rate at which it is itself emptied. Hosts take what they get. So,
/// from the last buffers to the first,
///
/// ```text
/// rate    = the least, over its ways on, of min(promised, rate beyond) / turns
/// longest = bytes / rate + the longest of those beyond
/// ```
///
/// The second term is there because the one beyond may just have begun to stop. It is a bound for
/// traffic of any kind, and a wide one: that all ports of all switches on a way send to one
/// host at a time is needed to come near it.
pub fn honest_stops(
    dependencies: &Dependencies,
    draining: impl Fn(Buffer) -> Draining,
) -> Option<Vec<HonestStop>> {
    let order = dependencies.order()?;
    let buffers = 0..dependencies.buffers() as u32;
    let known: Vec<Draining> = buffers.map(|at| draining(dependencies.buffer(at))).collect();
    let mut stops: Vec<HonestStop> = known
        .iter()
        .zip(0..)
        .map(|(known, at)| HonestStop {
            buffer: dependencies.buffer(at),
            longest: Span::ZERO,
            rate: 0,
            link: known.link,
        })
        .collect();
    for &here in order.iter().rev() {
        let own = &known[here as usize];
        let beyond = || dependencies.waits(here).iter().map(|wait| wait.on as usize);
        let ways = beyond().map(|on| known[on].promised.min(stops[on].rate)).chain(own.to_hosts);
        let rate = ways.min().unwrap_or(own.promised) / own.turns.max(1);
        let then = beyond().map(|on| stops[on].longest).max().unwrap_or(Span::ZERO);
        let ticks = u128::from(own.bytes.0) * 8 * TICKS_PER_SECOND;
        let drained = ticks.checked_div(u128::from(rate)).unwrap_or(u128::MAX);
        let longest = drained.saturating_add(u128::from(then.ticks()));
        let stop = &mut stops[here as usize];
        stop.longest = Span::from_ticks(u64::try_from(longest).unwrap_or(u64::MAX));
        stop.rate = rate;
    }
    Some(stops)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::router::Step;
    use crate::controller::topology::SwitchIndex;
    use axon_wire::{PortNo, Priority};

    /// Routes by the links they take; link `n` leaves switch `n` by port 1.
    fn graph(routes: &[&[u32]]) -> Dependencies {
        let mut all = Dependencies::default();
        for route in routes {
            let step = |&link: &u32| Step { switch: SwitchIndex(link), egress: PortNo(1) };
            all.add(0, Priority::ZERO, route.iter().map(step));
        }
        all
    }

    /// 10 Gb/s, of which the class has half; two ports take turns; 125,000 bytes.
    fn plain(_: Buffer) -> Draining {
        Draining {
            link: Rate::gbps(10),
            promised: 5_000_000_000,
            to_hosts: Some(5_000_000_000),
            turns: 2,
            bytes: Bytes(125_000),
        }
    }

    fn of(stops: &[HonestStop], link: u32) -> (u64, u64) {
        let stop = stops.iter().find(|stop| stop.buffer.from.0 == link).unwrap();
        (stop.longest.as_nanos() / 1_000, stop.rate / 1_000_000)
    }

    #[test]
    fn turns_multiply_and_stops_add_up_along_a_way() {
        let stops = honest_stops(&graph(&[&[0, 1, 2], &[3, 1]]), plain).unwrap();
        // A million bits at 2,500, 1,250 and 625 Mb/s.
        assert_eq!(
            [2, 1, 0, 3].map(|link| of(&stops, link)),
            [(400, 2_500), (1_200, 1_250), (2_800, 625), (2_800, 625)]
        );
    }

    #[test]
    fn the_worst_way_on_counts_and_a_promise_of_nothing_has_no_end() {
        let slow = |buffer: Buffer| match buffer.from.0 {
            2 => Draining { promised: 1_000_000_000, to_hosts: None, ..plain(buffer) },
            _ => plain(buffer),
        };
        let stops = honest_stops(&graph(&[&[0, 1], &[0, 2]]), slow).unwrap();
        assert_eq!(of(&stops, 2), (2_000, 500));
        assert_eq!(of(&stops, 0), (1_000_000 / 250 + 2_000, 250));
        let never = |buffer| Draining { to_hosts: Some(0), ..plain(buffer) };
        let stops = honest_stops(&graph(&[&[0]]), never).unwrap();
        assert_eq!(stops[0].longest, Span::from_ticks(u64::MAX));
        assert_eq!(stops[0].detection(100), None);
    }

    #[test]
    fn a_circle_has_no_longest_stop() {
        assert_eq!(honest_stops(&graph(&[&[0, 1], &[1, 0]]), plain), None);
    }

    #[test]
    fn a_detection_time_lets_honest_buffers_alone_if_it_is_longer_than_their_stops() {
        let stops = honest_stops(&graph(&[&[0]]), plain).unwrap();
        let needed = |percent| stops[0].detection(percent).map(|span| span.as_nanos() / 1_000);
        // It lets 2.5 of 10 Gb/s through: it stops for no more than 75 % of the time.
        assert_eq!(
            [100, 90, 80, 76].map(needed),
            [Some(400), Some(666), Some(2_000), Some(10_000)]
        );
        assert_eq!(needed(75), None);
    }
}
