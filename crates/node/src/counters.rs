//! Counters of a plane: frames and bytes per port, drops by reason, punts by kind.
//!
//! Conservation, checked by tests: summed over all ports and the control plane,
//! `rx_frames` + `copies` = `tx_frames` + drops before a punt + punts + frames in the queues +
//! punted frames that wait for their tail. In a complete node each punted frame ends as a drop
//! (mostly as consumed) before the input that brought it is done, so there
//! `rx_frames` + `copies` = `tx_frames` + drops + frames in the queues + held ones.

use crate::contract::{Drop, Punt};
use crate::telemetry::counts;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_wire::PortNo;
use serde::{Deserialize, Serialize};

/// Counters of one port, or of the control plane as a source of frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortCounters {
    /// Frames received; for the control plane: frames passed to the plane, PAUSE frames included.
    pub rx_frames: u64,
    /// Bytes received, without FCS.
    pub rx_bytes: u64,
    /// Frames sent by the port.
    pub tx_frames: u64,
    /// Bytes sent, without FCS.
    pub tx_bytes: u64,
    /// Copies made of frames received on this port: to flood them, or for the members of a group.
    pub copies: u64,
    /// Probes without room for the record of this port's unit.
    pub unstamped: u64,
    /// Packets that an output refused and this port kept to offer them again.
    pub nacks: u64,
    /// Congestion messages caused by packets received on this port.
    pub congestion_messages: u64,
    /// PAUSE frames generated for the hosts of this port.
    pub pauses: u64,
    /// Priorities without flow control in PFC frames received by this port.
    pub pfc_ignored: u64,
    /// CNMs generated for frames to be queued for this port (`cpTransmittedCnms`, all classes).
    pub cnms: u64,
    /// Frames queued for this port with "congestion experienced" set, here or before.
    pub ecn_marked: u64,
    /// Frames of the hosts of this port that were moved out of a priority under congestion
    /// notification.
    pub cn_moved: u64,
    /// Frames of the hosts of this port whose priority was not allowed and was replaced.
    pub regenerated: u64,
    /// Storms of pauses that the watchdog has detected at queues of this port.
    pub storms: u64,
    /// Frames received on this port and dropped, by reason.
    #[serde(with = "counts::drops")]
    drops: [u64; Drop::ALL.len()],
    /// Frames received on this port that ended in normal operation, which are not drops, by reason.
    #[serde(with = "counts::ended")]
    ended: [u64; Drop::ORDINARY.len()],
    /// Frames received on this port and punted to the control plane, by reason.
    #[serde(with = "counts::punts")]
    punts: [u64; Punt::ALL.len()],
}

impl PortCounters {
    /// Returns the frames received on this port that ended for `reason`.
    pub fn dropped(&self, reason: Drop) -> u64 {
        match reason.ordinary_index() {
            Some(index) => self.ended[index],
            None => self.drops[reason as usize],
        }
    }

    /// Returns the frames received on this port and punted to the control plane.
    pub fn punted(&self, punt: Punt) -> u64 {
        self.punts[punt as usize]
    }

    fn drop_many(&mut self, reason: Drop, count: u64) {
        match reason.ordinary_index() {
            Some(index) => self.ended[index] += count,
            None => self.drops[reason as usize] += count,
        }
    }
}

macro_rules! events {
    ($($event:ident = $counter:ident,)*) => {
        /// Events counted at a port beside its traffic.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum PortEvent {
            $(
                #[doc = concat!("One of [`PortCounters::", stringify!($counter), "`].")]
                $event,
            )*
            /// A frame received on the port was dropped or consumed.
            Drop(Drop),
            /// A frame received on the port was punted to the control plane.
            Punt(Punt),
        }

        impl PortEvent {
            /// Events without a reason, in order, and before all others.
            const PLAIN: &'static [PortEvent] = &[$(PortEvent::$event,)*];
        }

        impl PortCounters {
            /// Adds `count` events to their counter.
            pub fn count_many(&mut self, event: PortEvent, count: u64) {
                match event {
                    $(PortEvent::$event => self.$counter += count,)*
                    PortEvent::Drop(reason) => self.drop_many(reason, count),
                    PortEvent::Punt(punt) => self.punts[punt as usize] += count,
                }
            }
        }
    };
}

events! {
    Copy = copies,
    Unstamped = unstamped,
    Nack = nacks,
    CongestionMessage = congestion_messages,
    Pause = pauses,
    PfcIgnored = pfc_ignored,
    Cnm = cnms,
    EcnMarked = ecn_marked,
    CnMoved = cn_moved,
    Regenerated = regenerated,
    Storm = storms,
}

/// Counters that every frame changes: the first four of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Traffic {
    rx_frames: u64,
    rx_bytes: u64,
    tx_frames: u64,
    tx_bytes: u64,
}

/// Counters of a whole plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters {
    /// Traffic counters of each port, then of the control plane and ports that do not exist. They
    /// are separate, so that counters changed by frames fill few cache lines.
    traffic: Vec<Traffic>,
    /// Other counters that are not zero, by index in `traffic`: most ports have two or three of
    /// some fifty.
    events: BTreeMap<(u16, PortEvent), u64>,
}

impl Counters {
    /// Returns counters that are all zero.
    pub fn new(ports: u16) -> Counters {
        let all = usize::from(ports) + 1;
        Counters { traffic: alloc::vec![Traffic::default(); all], events: BTreeMap::new() }
    }

    /// Returns the number of ports, the control plane not counted.
    pub fn ports(&self) -> u16 {
        (self.traffic.len() - 1) as u16
    }

    /// Returns the counters of one port. [`PortNo::CONTROL`], and any port that does not exist,
    /// select those of the control plane as a source.
    pub fn port(&self, port: PortNo) -> PortCounters {
        let index = self.index(port);
        let Traffic { rx_frames, rx_bytes, tx_frames, tx_bytes } = self.traffic[index];
        let mut counters =
            PortCounters { rx_frames, rx_bytes, tx_frames, tx_bytes, ..Default::default() };
        let from = (index as u16, PortEvent::PLAIN[0]);
        for (&(_, event), &count) in self.events.range(from..).take_while(|(at, _)| at.0 == from.0)
        {
            counters.count_many(event, count);
        }
        counters
    }

    /// Returns the sum over all ports and the control plane.
    pub fn total(&self) -> PortCounters {
        let mut total = PortCounters::default();
        for traffic in &self.traffic {
            total.rx_frames += traffic.rx_frames;
            total.rx_bytes += traffic.rx_bytes;
            total.tx_frames += traffic.tx_frames;
            total.tx_bytes += traffic.tx_bytes;
        }
        for (&(_, event), &count) in &self.events {
            total.count_many(event, count);
        }
        total
    }

    #[inline]
    fn index(&self, port: PortNo) -> usize {
        port.index().min(self.traffic.len() - 1)
    }

    /// Counts a frame of `bytes` bytes that `port` received.
    #[inline]
    pub fn received(&mut self, port: PortNo, bytes: usize) {
        let index = self.index(port);
        let traffic = &mut self.traffic[index];
        traffic.rx_frames += 1;
        traffic.rx_bytes += bytes as u64;
    }

    /// Counts a frame of `bytes` bytes that `port` gave to its wire.
    #[inline]
    pub fn sent(&mut self, port: PortNo, bytes: usize) {
        let index = self.index(port);
        let traffic = &mut self.traffic[index];
        traffic.tx_frames += 1;
        traffic.tx_bytes += bytes as u64;
    }

    /// Counts an event at `port`.
    pub fn count(&mut self, port: PortNo, event: PortEvent) {
        self.count_many(port, event, 1);
    }

    /// Counts `count` events at `port`, possibly none.
    pub fn count_many(&mut self, port: PortNo, event: PortEvent, count: u64) {
        if count > 0 {
            *self.events.entry((self.index(port) as u16, event)).or_default() += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_sums_and_strangers_count_with_the_control_plane() {
        let mut counters = Counters::new(2);
        counters.received(PortNo(1), 60);
        counters.received(PortNo(9), 40);
        counters.count(PortNo::CONTROL, PortEvent::Drop(Drop::NoSuchPort));
        counters.count(PortNo(0), PortEvent::Punt(Punt::Miss));
        assert_eq!(counters.port(PortNo::CONTROL).rx_bytes, 40);
        let total = counters.total();
        assert_eq!((total.rx_frames, total.rx_bytes), (2, 100));
        assert_eq!((total.dropped(Drop::NoSuchPort), total.punted(Punt::Miss)), (1, 1));
    }

    #[test]
    fn each_port_has_its_own_events_and_each_event_its_own_counter() {
        let events = || {
            let drops = Drop::ALL.iter().map(|&reason| PortEvent::Drop(reason));
            let punts = Punt::ALL.iter().map(|&punt| PortEvent::Punt(punt));
            PortEvent::PLAIN.iter().copied().chain(drops).chain(punts)
        };
        assert!(events().is_sorted(), "{:?} is the least", PortEvent::PLAIN[0]);
        for ports in [3, u16::MAX] {
            let mut counters = Counters::new(ports);
            for port in [PortNo(0), PortNo(1), PortNo(2), PortNo::CONTROL] {
                let shift = (port.0 & 3) * 8;
                for (event, count) in events().zip(1..) {
                    counters.count_many(port, event, count << shift);
                }
            }
            for port in [PortNo(0), PortNo(1), PortNo(2), PortNo::CONTROL] {
                let shift = (port.0 & 3) * 8;
                let of = counters.port(port);
                let plain = PortCounters {
                    copies: 1 << shift,
                    unstamped: 2 << shift,
                    nacks: 3 << shift,
                    congestion_messages: 4 << shift,
                    pauses: 5 << shift,
                    pfc_ignored: 6 << shift,
                    cnms: 7 << shift,
                    ecn_marked: 8 << shift,
                    cn_moved: 9 << shift,
                    regenerated: 10 << shift,
                    storms: 11 << shift,
                    drops: of.drops,
                    ended: of.ended,
                    punts: of.punts,
                    ..Default::default()
                };
                assert_eq!(of, plain);
                let by_reason = Drop::ALL.iter().map(|&reason| of.dropped(reason));
                let by_reason = by_reason.chain(Punt::ALL.iter().map(|&punt| of.punted(punt)));
                assert!(
                    by_reason
                        .eq((12..).map(|count: u64| count << shift).take(events().count() - 11))
                );
            }
        }
    }

    #[test]
    fn what_ends_in_normal_operation_stands_apart_from_the_drops() {
        let mut counters = Counters::new(1);
        for &reason in Drop::ALL {
            counters.count_many(PortNo(0), PortEvent::Drop(reason), reason as u64 + 1);
        }
        let total = counters.total();
        for &reason in Drop::ALL {
            assert_eq!(total.dropped(reason), reason as u64 + 1, "{}", reason.name());
            let index = reason.ordinary_index();
            assert_eq!(index.map(|index| Drop::ORDINARY[index]), index.map(|_| reason));
            assert_eq!(reason.is_ordinary(), Drop::ORDINARY.contains(&reason));
            let (drops, ended) = (total.drops[reason as usize], index.map(|at| total.ended[at]));
            assert_eq!(drops == 0, ended.is_some(), "{} is in one of them", reason.name());
        }
    }
}
