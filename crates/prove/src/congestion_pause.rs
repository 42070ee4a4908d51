//! Bounds on pauses caused by congestion, that is, on the time for which a lossless buffer may
//! pause its sender although nothing is broken.
//!
//! A *priority group* holds the frames that arrived on one port with one priority. When a group has
//! used up its share, the switch sends XOFF. When enough of the group has left, it sends XON.
//! Frames that arrived on one port and leave by one port in one traffic class wait in the same
//! FIFO, regardless of their group. So before a pause ends, the following bytes have to leave by
//! the slowest egress path: the group's own headroom, the part of its share that has to become
//! free, and everything that each other group in the same FIFO can hold, because all of that may be
//! queued ahead. There are two kinds of such groups.
//!
//! * *Priorities that share a class.* A sender's class is blocked while any of them is paused.
//!   During that time, only frames in flight still arrive for any of them, so no pause of another
//!   begins later, and all their bytes leave together. However their pauses overlap, they join into
//!   one that ends when the bytes in the FIFO have left. So they count as one buffer here, which
//!   holds as much as all of them together and gets everything that the class is guaranteed.
//! * *Layers of routes at a port to hosts.* Between switches, each layer has its own class, buffers
//!   and pauses. Towards hosts, they share one class. While one layer is paused, frames of the
//!   others continue to arrive, but queue behind it. In the long run, the layers are assumed to get
//!   equal parts of the FIFO's share.
//!
//! *Queue thresholds* pause senders, too, and a sender that is paused for one reason may meanwhile
//! be paused for another. But a queue's thresholds pause only senders with frames in that queue. So
//! once all frames from a sender have left, no new pause of it begins, and the last one ends when
//! the contents of one more queue have left.

use super::dependencies::{Buffer, Dependencies};
use alloc::vec::Vec;
use axon_wire::{Bytes, Rate, Span};

/// Ticks of 10 ps in a second.
const TICKS_PER_SECOND: u128 = 100_000_000_000;
/// Maximum span.
const FOR_EVER: Span = Span::from_ticks(u64::MAX);

/// Draining of a lossless buffer. Priorities that share a class count as one buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draining {
    /// Rate of the link that fills the buffer.
    pub link: Rate,
    /// Bits per second that the class is guaranteed on that link when all classes are busy.
    pub promised: u64,
    /// Maximum number of ingress ports of the switch that share one egress port; 0 counts as 1.
    pub ingress_ports: u64,
    /// Bytes that may have to leave towards another switch before XON is sent.
    pub bytes: Bytes,
    /// Draining to the hosts of that switch; `None` if it has no hosts.
    pub to_hosts: Option<ToHosts>,
    /// Bytes from all senders that may wait in one queue, if queue thresholds pause senders,
    /// otherwise 0.
    pub queue: Bytes,
}

/// Draining of a buffer to the hosts of its switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToHosts {
    /// Bits per second that the class is guaranteed at the slowest host port.
    pub promised: u64,
    /// Number of buffers of one ingress port that share a FIFO there and are paused separately.
    pub layers: u64,
    /// Bytes in all these buffers that may have to leave there before XON is sent for one of them.
    pub bytes: Bytes,
}

/// The longest pause that congestion alone causes at a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CongestionPause {
    /// The buffer.
    pub buffer: Buffer,
    /// Longest uninterrupted pause. The maximum [`Span`] means that it is unbounded.
    pub longest: Span,
    /// Minimum long-term throughput of the buffer, in bits per second.
    pub rate: u64,
    /// Rate of the link that fills the buffer.
    pub link: Rate,
}

impl CongestionPause {
    /// Returns the detection time above which a watchdog never mistakes this buffer's pauses for a
    /// storm. The watchdog acts when a queue has been paused for `percent` (0 to 100) of the
    /// detection time. Returns `None` if no detection time is long enough.
    ///
    /// In a detection time `D`, at least `rate * (D - longest)` bits are transmitted, at the rate
    /// of the link. Meanwhile, the queue is not paused. That time has to be longer than the
    /// unpaused part that a storm may have, `(100 - percent) / 100 * D`.
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

/// One egress path from a buffer, to the next buffer or to hosts.
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
    /// Returns the rate for frames in the buffer `own`, in bits per second.
    fn passes(&self, own: &Draining) -> u64 {
        self.promised / own.ingress_ports.max(1)
    }

    /// Returns the longest pause caused by this path.
    fn longest(&self, own: &Draining) -> Span {
        let then = u128::from(self.then.ticks());
        let mut ticks = time(self.bytes, self.passes(own)).saturating_add(then);
        if own.queue > Bytes(0) {
            ticks = ticks.saturating_add(time(own.queue, self.promised)).saturating_add(then);
        }
        Span::from_ticks(u64::try_from(ticks).unwrap_or(u64::MAX))
    }
}

/// Returns the ticks that `bytes` take at `rate` bits per second, or the maximum if the rate is 0.
fn time(bytes: Bytes, rate: u64) -> u128 {
    let ticks = u128::from(bytes.0) * 8 * TICKS_PER_SECOND;
    ticks.checked_div(u128::from(rate)).unwrap_or(u128::MAX)
}

/// Bounds the pauses caused by congestion for all buffers, in no particular order. Returns `None`
/// if the buffers have a cycle, since a pause may then last for ever.
///
/// The ingress ports of a switch share its egress ports evenly, so a buffer gets its part of the
/// class's guaranteed rate on each egress path. The next buffer has to accept that, and in the long
/// run it does so at the rate at which it drains itself. Hosts accept every frame. So, from the
/// last buffers to the first:
///
/// ```text
/// passes  = min(promised, rate of the next buffer) / ingress ports
/// rate    = minimum of passes over all paths on; to hosts, that of one layer
/// longest = maximum, over all paths on, of bytes / passes + longest of the next buffer
/// ```
///
/// The last term is needed because the next buffer may just have sent XOFF itself. With queue
/// thresholds, each path gets a second pause: `queue / (passes * ingress ports) + longest of the
/// next buffer`. All ingress ports together drain a queue.
///
/// The bound holds for any traffic and is loose. It is nearly reached only if all ports of all
/// switches on a path send to one host at the same time. It ignores gaps between frames, and the
/// possibility that frames repeatedly take another path just when that one is paused.
pub fn congestion_pauses(
    dependencies: &Dependencies,
    draining: impl Fn(Buffer) -> Draining,
) -> Option<Vec<CongestionPause>> {
    let order = dependencies.order()?;
    let buffers = 0..dependencies.buffers() as u32;
    let known: Vec<Draining> = buffers.map(|at| draining(dependencies.buffer(at))).collect();
    let mut pauses: Vec<CongestionPause> = known
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
            promised: known[on].promised.min(pauses[on].rate),
            layers: 1,
            bytes: own.bytes,
            then: pauses[on].longest,
        });
        let ways: Vec<Way> = beyond.chain(own.to_hosts.map(Way::from)).collect();
        let pause = &mut pauses[here as usize];
        let rates = ways.iter().map(|way| way.passes(own) / way.layers.max(1));
        pause.rate = rates.min().unwrap_or(0);
        pause.longest = ways.iter().map(|way| way.longest(own)).max().unwrap_or(FOR_EVER);
    }
    Some(pauses)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_node::Step;
    use axon_node::SwitchIndex;
    use axon_wire::{PortNo, Priority};

    /// Returns the dependency graph of routes, which are given by their links. Link `n` leaves
    /// switch `n` by port 1.
    fn graph(routes: &[&[u32]]) -> Dependencies {
        let mut all = Dependencies::default();
        for route in routes {
            let step = |&link: &u32| Step { switch: SwitchIndex(link), egress: PortNo(1) };
            all.add(0, Priority::ZERO, route.iter().map(step));
        }
        all
    }

    /// 10 Gb/s, of which the class has half. Two ingress ports share it, and 125,000 bytes have to
    /// leave.
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

    fn of(pauses: &[CongestionPause], link: u32) -> (u64, u64) {
        let pause = pauses.iter().find(|pause| pause.buffer.from.0 == link).unwrap();
        (pause.longest.as_nanos() / 1_000, pause.rate / 1_000_000)
    }

    #[test]
    fn ingress_ports_multiply_and_pauses_add_up_along_a_path() {
        let pauses = congestion_pauses(&graph(&[&[0, 1, 2], &[3, 1]]), plain).unwrap();
        // One million bits at 2,500, 1,250 and 625 Mb/s.
        assert_eq!(
            [2, 1, 0, 3].map(|link| of(&pauses, link)),
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
        let pauses = congestion_pauses(&graph(&[&[0, 1], &[0, 2]]), slow).unwrap();
        assert_eq!(of(&pauses, 2), (2_000, 500));
        assert_eq!(of(&pauses, 0), (1_000_000 / 250 + 2_000, 250));
        let never = |buffer| Draining { to_hosts: to_hosts(0), ..plain(buffer) };
        let pauses = congestion_pauses(&graph(&[&[0]]), never).unwrap();
        assert_eq!(pauses[0].longest, FOR_EVER);
        assert_eq!(pauses[0].detection(100), None);
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
        let pauses = congestion_pauses(&graph(&[&[0, 1]]), layered).unwrap();
        // Nine million bits at the queue's rate of 2,500 Mb/s, not at that of one layer.
        assert_eq!(of(&pauses, 1), (3_600, 1_250));
        // At the switch before, that layer has its own queue, but towards the hosts there it does
        // not.
        assert_eq!(of(&pauses, 0), (1_000_000 / 625 + 3_600, 625));
    }

    #[test]
    fn after_a_pause_by_the_memory_may_come_one_by_the_threshold_of_a_queue() {
        let with_threshold = |buffer| Draining { queue: Bytes(250_000), ..plain(buffer) };
        let pauses = congestion_pauses(&graph(&[&[0, 1]]), with_threshold).unwrap();
        // Two million bits at 5,000 Mb/s, and at the switch before at 2,500, after two pauses
        // there.
        assert_eq!(of(&pauses, 1), (400 + 400, 2_500));
        assert_eq!(of(&pauses, 0), (800 + 800 + 2 * 800, 1_250));
    }

    #[test]
    fn a_cycle_has_no_longest_pause() {
        assert_eq!(congestion_pauses(&graph(&[&[0, 1], &[1, 0]]), plain), None);
    }

    #[test]
    fn a_detection_time_longer_than_all_pauses_takes_none_for_a_storm() {
        let pauses = congestion_pauses(&graph(&[&[0]]), plain).unwrap();
        let needed = |percent| pauses[0].detection(percent).map(|span| span.as_nanos() / 1_000);
        // It transmits at 2.5 of 10 Gb/s, so it pauses for no more than 75 % of the time.
        assert_eq!(
            [100, 90, 80, 76].map(needed),
            [Some(400), Some(666), Some(2_000), Some(10_000)]
        );
        assert_eq!(needed(75), None);
    }
}
