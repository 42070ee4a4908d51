//! How long a lossless buffer may stop its sender although nothing is broken.
//!
//! In plain English: a switch has a sender stopped when a *group*, what came in by one port with
//! one priority, has used up its share, and lets it go on when enough of the group has left. What
//! came in by one port and leaves by one port in one traffic class waits in one FIFO, whatever its
//! group. So before a stop ends there has to leave, by the worst of the ways on: of the group
//! itself, the headroom and what is to be free of its share; and of every other group that waits in
//! the same FIFO, all that it can hold, for all of that may lie before it. There are two kinds of
//! such groups.
//!
//! * *Priorities that share a class.* A sender's class stands still while any of them is stopped.
//!   Then nothing comes any more for any of them but what is under way, so no stop of another
//!   begins later than that, and all that they hold leaves side by side: however their stops
//!   overlap, they join to one that is over when what lay in the FIFO has left. So they
//!   are one buffer here: it holds what all of them hold and gets all that the class is promised.
//! * *Layers of routes at a port to hosts.* Between switches each has a class, buffers and stops of
//!   its own; towards hosts they wait in one class. While one is stopped the others go on
//!   to come, but behind it. In the long run they are assumed to get even parts of the FIFO's turn.
//!
//! *Marks of queues* stop senders too, and whoever is stopped for one reason may be stopped for
//! another meanwhile. But only those with frames in a queue are stopped by its marks. So when all
//! of a sender's frames have left, no stop of it begins any more, and the last ends when the
//! whole of one more queue has left.

use super::dependencies::{Buffer, Dependencies};
use alloc::vec::Vec;
use axon_wire::{Bytes, Rate, Span};

/// Ticks of 10 ps in a second.
const TICKS_PER_SECOND: u128 = 100_000_000_000;
/// The longest span there is.
const FOR_EVER: Span = Span::from_ticks(u64::MAX);

/// What is known of a buffer: that of a priority, together with those that share its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draining {
    /// The link that fills it.
    pub link: Rate,
    /// Bits per second that its class is promised on that link when all others are busy.
    pub promised: u64,
    /// Ingress ports of the switch that it is in, at most, that take turns at one of its ports.
    pub ingress_ports: u64,
    /// What may have to leave on a way to another switch before its sender may go on.
    pub bytes: Bytes,
    /// The way to the hosts of that switch; `None` without any.
    pub to_hosts: Option<ToHosts>,
    /// What may wait in one queue, whoever sent it, where the marks of queues stop senders; zero
    /// where none do.
    pub queue: Bytes,
}

/// The way from a buffer to hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToHosts {
    /// Bits per second that the class is promised at the slowest port.
    pub promised: u64,
    /// How many buffers of one ingress port, each with stops of its own, share a FIFO there.
    pub layers: u64,
    /// What may have to leave there, of all of these, before the sender of one may go on.
    pub bytes: Bytes,
}

/// What an honest buffer may do to its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CongestionPause {
    /// The buffer.
    pub buffer: Buffer,
    /// The longest stop without a break; the longest span there is if nothing bounds it.
    pub longest: Span,
    /// Bits per second that it lets through in the long run, at least.
    pub rate: u64,
    /// The link that fills it.
    pub link: Rate,
}

impl CongestionPause {
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
        if self.longest == FOR_EVER {
            return None;
        }
        let ticks = (u128::from(self.longest.ticks()) * through).div_ceil(more);
        u64::try_from(ticks).ok().map(Span::from_ticks)
    }
}

/// A way on from a buffer.
struct Way {
    promised: u64,
    layers: u64,
    bytes: Bytes,
    then: Span,
}

impl From<ToHosts> for Way {
    fn from(to: ToHosts) -> Way {
        Way { promised: to.promised, layers: to.layers, bytes: to.bytes, then: Span::ZERO }
    }
}

impl Way {
    /// Bits per second of what came in where the buffer `own` is.
    fn passes(&self, own: &Draining) -> u64 {
        self.promised / own.ingress_ports.max(1)
    }

    /// How long a stop may last for the sake of this way.
    fn longest(&self, own: &Draining) -> Span {
        let then = u128::from(self.then.ticks());
        let mut ticks = time(self.bytes, self.passes(own)).saturating_add(then);
        if own.queue > Bytes(0) {
            ticks = ticks.saturating_add(time(own.queue, self.promised)).saturating_add(then);
        }
        Span::from_ticks(u64::try_from(ticks).unwrap_or(u64::MAX))
    }
}

/// Ticks that so many bytes take at a rate in bits per second; the most there are at none.
fn time(bytes: Bytes, rate: u64) -> u128 {
    let ticks = u128::from(bytes.0) * 8 * TICKS_PER_SECOND;
    ticks.checked_div(u128::from(rate)).unwrap_or(u128::MAX)
}

/// The honest stops of all buffers, in no order that means anything; `None` if they may wait in a
/// circle, and thus for ever.
///
/// There the ingress ports of the switch take turns, so a buffer gets its part of what the class is
/// promised on each way; and what is beyond has to take that in, and does so in the long run at the
/// rate at which it is itself emptied. Hosts take what they get. So, from the last buffers to the
/// first,
///
/// ```text
/// passes  = min(promised, rate beyond) of a way on / turns
/// rate    = the least passes of all ways, to hosts that of a layer
/// longest = the most, over its ways, of bytes / passes + the longest beyond
/// ```
///
/// The last term is there because the one beyond may just have begun to stop. With marks of queues
/// a second stop is added to each way, `queue / (passes * turns) + the longest beyond`: a queue is
/// emptied by all turns together.
///
/// It is a bound for traffic of any kind, and a wide one: that all ports of all switches on a
/// way send to one host at a time is needed to come near it. Left out are the gaps between frames,
/// and that frames might turn to another way again and again just as that one stops.
pub fn congestion_pauses(
    dependencies: &Dependencies,
    draining: impl Fn(Buffer) -> Draining,
) -> Option<Vec<CongestionPause>> {
    let order = dependencies.order()?;
    let buffers = 0..dependencies.buffers() as u32;
    let known: Vec<Draining> = buffers.map(|at| draining(dependencies.buffer(at))).collect();
    let mut stops: Vec<CongestionPause> = known
        .iter()
        .zip(0..)
        .map(|(known, at)| CongestionPause {
            buffer: dependencies.buffer(at),
            longest: Span::ZERO,
            rate: 0,
            link: known.link,
        })
        .collect();
    for &here in order.iter().rev() {
        let own = &known[here as usize];
        let beyond = dependencies.waits(here).iter().map(|wait| wait.on as usize).map(|on| Way {
            promised: known[on].promised.min(stops[on].rate),
            layers: 1,
            bytes: own.bytes,
            then: stops[on].longest,
        });
        let ways: Vec<Way> = beyond.chain(own.to_hosts.map(Way::from)).collect();
        let stop = &mut stops[here as usize];
        let rates = ways.iter().map(|way| way.passes(own) / way.layers.max(1));
        stop.rate = rates.min().unwrap_or(0);
        stop.longest = ways.iter().map(|way| way.longest(own)).max().unwrap_or(FOR_EVER);
    }
    Some(stops)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_node::Step;
    use axon_node::SwitchIndex;
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
            ingress_ports: 2,
            bytes: Bytes(125_000),
            to_hosts: to_hosts(5_000_000_000),
            queue: Bytes(0),
        }
    }

    /// No layers, 125,000 bytes.
    fn to_hosts(promised: u64) -> Option<ToHosts> {
        Some(ToHosts { promised, layers: 1, bytes: Bytes(125_000) })
    }

    fn of(stops: &[CongestionPause], link: u32) -> (u64, u64) {
        let stop = stops.iter().find(|stop| stop.buffer.from.0 == link).unwrap();
        (stop.longest.as_nanos() / 1_000, stop.rate / 1_000_000)
    }

    #[test]
    fn turns_multiply_and_stops_add_up_along_a_way() {
        let stops = congestion_pauses(&graph(&[&[0, 1, 2], &[3, 1]]), plain).unwrap();
        // A million bits at 2,500, 1,250 and 625 Mb/s.
        assert_eq!(
            [2, 1, 0, 3].map(|link| of(&stops, link)),
            [(400, 2_500), (1_200, 1_250), (2_800, 625), (2_800, 625)]
        );
    }

    #[test]
    fn the_worst_way_on_counts_and_a_promise_of_nothing_has_no_end() {
        let slow = |buffer: Buffer| match buffer.from.0 {
            2 => Draining {
                promised: 1_000_000_000,
                to_hosts: to_hosts(1_000_000_000),
                ..plain(buffer)
            },
            _ => plain(buffer),
        };
        let stops = congestion_pauses(&graph(&[&[0, 1], &[0, 2]]), slow).unwrap();
        assert_eq!(of(&stops, 2), (2_000, 500));
        assert_eq!(of(&stops, 0), (1_000_000 / 250 + 2_000, 250));
        let never = |buffer| Draining { to_hosts: to_hosts(0), ..plain(buffer) };
        let stops = congestion_pauses(&graph(&[&[0]]), never).unwrap();
        assert_eq!(stops[0].longest, FOR_EVER);
        assert_eq!(stops[0].detection(100), None);
        let nowhere = |buffer| Draining { to_hosts: None, ..plain(buffer) };
        assert_eq!(congestion_pauses(&graph(&[&[0]]), nowhere).unwrap()[0].longest, FOR_EVER);
    }

    #[test]
    fn before_a_layer_towards_hosts_all_of_the_other_leaves_and_it_gets_half_in_the_long_run() {
        let layered = |buffer| {
            let to_hosts = to_hosts(5_000_000_000);
            let both = to_hosts.map(|to| ToHosts { layers: 2, bytes: Bytes(1_125_000), ..to });
            Draining { to_hosts: both, ..plain(buffer) }
        };
        let stops = congestion_pauses(&graph(&[&[0, 1]]), layered).unwrap();
        // Nine million bits at the 2,500 Mb/s of the queue, not of one layer.
        assert_eq!(of(&stops, 1), (3_600, 1_250));
        // At the switch before, that layer is alone; towards the hosts there it is not.
        assert_eq!(of(&stops, 0), (1_000_000 / 625 + 3_600, 625));
    }

    #[test]
    fn after_a_stop_by_the_memory_may_come_one_by_the_mark_of_a_queue() {
        let marked = |buffer| Draining { queue: Bytes(250_000), ..plain(buffer) };
        let stops = congestion_pauses(&graph(&[&[0, 1]]), marked).unwrap();
        // Two million bits at 5,000 Mb/s; at the switch before at 2,500, behind two stops there.
        assert_eq!(of(&stops, 1), (400 + 400, 2_500));
        assert_eq!(of(&stops, 0), (800 + 800 + 2 * 800, 1_250));
    }

    #[test]
    fn a_circle_has_no_longest_stop() {
        assert_eq!(congestion_pauses(&graph(&[&[0, 1], &[1, 0]]), plain), None);
    }

    #[test]
    fn a_detection_time_lets_honest_buffers_alone_if_it_is_longer_than_their_stops() {
        let stops = congestion_pauses(&graph(&[&[0]]), plain).unwrap();
        let needed = |percent| stops[0].detection(percent).map(|span| span.as_nanos() / 1_000);
        // It lets 2.5 of 10 Gb/s through: it stops for no more than 75 % of the time.
        assert_eq!(
            [100, 90, 80, 76].map(needed),
            [Some(400), Some(666), Some(2_000), Some(10_000)]
        );
        assert_eq!(needed(75), None);
    }
}
