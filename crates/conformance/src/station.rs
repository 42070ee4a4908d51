//! Transmit schedule of one tester port.
//!
//! Frames scheduled for a certain time go first, in order and regardless of flow control, because
//! they are the frames of the case. Streams share the remaining capacity of the link. A stream that
//! honours PFC starts no frame with a priority paused by PFC or PAUSE, once the reaction time in
//! the standard has passed.

use crate::frames::{self, FlowControl};
use crate::rig::Stream;
use axon_wire::MacAddr;
use axon_wire::priority::PRIORITIES;
use axon_wire::{Bytes, Rate, Span, Time};
use std::collections::BTreeMap;

/// Longest reaction time to PFC: 614.4 ns (IEEE 802.1Q clause 36.1.3.3, as recalled).
pub(crate) const REACTION: Span = Span::from_ticks(61_440);

/// Length of preamble, FCS and gap together, in bytes.
pub(crate) const AROUND_FRAME_BYTES: u64 = 24;

/// One port of the tester.
#[derive(Debug)]
pub struct Station {
    mac: MacAddr,
    rate: Rate,
    orders: BTreeMap<(Time, u64), Vec<u8>>,
    ordered: u64,
    flows: Vec<Flow>,
    turn: usize,
    /// Start and end of the pause for each priority.
    stops: [(Time, Time); PRIORITIES],
}

#[derive(Debug)]
struct Flow {
    stream: Stream,
    id: u16,
    next: Time,
    number: u32,
}

impl Station {
    /// Creates port `port` of the tester on a link of `rate`. It has nothing to send yet.
    pub(crate) fn new(port: usize, rate: Rate) -> Station {
        Station {
            mac: frames::mac(port),
            rate,
            orders: BTreeMap::new(),
            ordered: 0,
            flows: Vec::new(),
            turn: 0,
            stops: [(Time::ZERO, Time::ZERO); PRIORITIES],
        }
    }

    /// Schedules a frame for a certain time.
    pub(crate) fn order(&mut self, at: Time, frame: Vec<u8>) {
        self.orders.insert((at, self.ordered), frame);
        self.ordered += 1;
    }

    /// Adds a stream with this number.
    pub(crate) fn add(&mut self, id: u16, stream: Stream) {
        self.flows.push(Flow { stream, id, next: stream.begin, number: 0 });
    }

    /// Handles a received frame.
    pub(crate) fn receive(&mut self, at: Time, frame: &[u8]) {
        let (vector, times) = match frames::flow_control_of(self.mac, frame) {
            Ok(FlowControl::Pause(quanta)) => (u8::MAX, [quanta; PRIORITIES]),
            Ok(FlowControl::Pfc(vector, times)) => (vector, times),
            Err(_) => return,
        };
        for priority in (0..PRIORITIES).filter(|priority| vector & 1 << priority != 0) {
            let (from, until) = self.stops[priority];
            let stop = quanta(times[priority], self.rate);
            // A pause that is already active gives no new reaction time.
            let from = if until > at { from } else { at + REACTION };
            self.stops[priority] = (from, at + stop);
        }
    }

    /// Returns the next frame to send at `now`, when the wire is idle.
    pub(crate) fn take(&mut self, now: Time) -> Option<Vec<u8>> {
        if let Some(first) = self.orders.first_entry().filter(|first| first.key().0 <= now) {
            return Some(first.remove());
        }
        for step in 0..self.flows.len() {
            let index = (self.turn + step) % self.flows.len();
            let stop = self.stops[self.flows[index].stream.priority.index()];
            let flow = &mut self.flows[index];
            let stopped = flow.stream.honours && stop.0 <= now && now < stop.1;
            if stopped || flow.next > now || now >= flow.stream.end {
                continue;
            }
            // The stream may catch up by one frame, but not by all the frames that a pause has
            // cost.
            let latest = now - flow.stream.interval;
            flow.next = (flow.next + flow.stream.interval).max(latest);
            let frame = frames::traffic(&flow.stream, flow.id, flow.number);
            flow.number += 1;
            self.turn = index + 1;
            return Some(frame);
        }
        None
    }

    /// Returns the time of the next transmission after `now`, if no frame arrives before then.
    pub(crate) fn due(&self, now: Time) -> Option<Time> {
        let order = self.orders.first_key_value().map(|(&(at, _), _)| at);
        let flows = self.flows.iter().filter_map(|flow| {
            let (from, until) = self.stops[flow.stream.priority.index()];
            let next = flow.next.max(now);
            let stopped = flow.stream.honours && from <= next && next < until;
            let at = if stopped { until } else { next };
            (at < flow.stream.end).then_some(at)
        });
        flows.chain(order).min()
    }
}

/// Returns the duration of a number of quanta.
pub(crate) fn quanta(quanta: u16, rate: Rate) -> Span {
    rate.time_for(Bytes(u64::from(quanta) * 64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_wire::priority::Priority;

    const RATE: Rate = Rate::gbps(10);

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    fn stream(priority: u8, interval: u64, honours: bool) -> Stream {
        Stream {
            from: 1,
            to: 0,
            priority: Priority::from_low_bits(priority),
            bytes: 100,
            interval: Span::from_nanos(interval),
            begin: at(100),
            end: at(10_000),
            honours,
            flow: None,
        }
    }

    fn taken(station: &mut Station, now: Time) -> Option<u16> {
        frames::traffic_of(&station.take(now)?).map(|known| known.id)
    }

    #[test]
    fn orders_go_first_and_streams_alternate_at_their_pace() {
        let mut station = Station::new(1, RATE);
        station.add(1, stream(1, 1_000, true));
        station.add(2, stream(2, 1_000, true));
        station.order(at(150), vec![9; 60]);
        assert_eq!((station.due(at(0)), station.take(at(99))), (Some(at(100)), None));
        assert_eq!(station.take(at(200)), Some(vec![9; 60]));
        assert_eq!(taken(&mut station, at(200)), Some(1));
        assert_eq!(taken(&mut station, at(200)), Some(2));
        assert_eq!((station.take(at(200)), station.due(at(200))), (None, Some(at(1_100))));
        assert_eq!((station.take(at(10_000)), station.due(at(10_000))), (None, None));
    }

    #[test]
    fn a_stream_that_honours_pfc_stops_after_the_time_to_react_and_another_does_not() {
        let mut station = Station::new(1, RATE);
        station.add(1, stream(3, 0, true));
        station.add(2, stream(3, 0, false));
        // 100 quanta are 5,120 ns. The station must have stopped 614.4 ns after the frame.
        station.receive(at(1_000), &frames::pfc_for(frames::mac(0), 8, 100));
        let both = [taken(&mut station, at(1_600)), taken(&mut station, at(1_600))];
        assert_eq!(both, [Some(1), Some(2)]);
        for _ in 0..3 {
            assert_eq!(taken(&mut station, at(1_700)), Some(2));
        }
        // A pause that is already active gives no new reaction time, and zero ends it.
        station.receive(at(2_000), &frames::pfc_for(frames::mac(0), 8, 100));
        assert_eq!(taken(&mut station, at(2_100)), Some(2));
        station.receive(at(2_200), &frames::pfc_for(frames::mac(0), 8, 0));
        let both = [taken(&mut station, at(2_200)), taken(&mut station, at(2_200))];
        assert!(both.contains(&Some(1)), "{both:?}");
        // A PAUSE addressed to another station pauses nothing.
        let mut other = frames::pause(frames::mac(0), 100);
        other[..6].copy_from_slice(&frames::mac(7).0);
        station.receive(at(3_000), &other);
        let both = [taken(&mut station, at(4_000)), taken(&mut station, at(4_000))];
        assert!(both.contains(&Some(1)), "{both:?}");
    }
}
