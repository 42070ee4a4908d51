//! Prefetching for the next events.
//!
//! In a large world the data of an event is not in the processor's caches, and each read depends on
//! the previous one: from event to station, to node, to port. Done event by event, the memory
//! latencies add up. So when a bucket of events begins, each step is made for all its events before
//! the next step. Within a step no read depends on another, and the latencies overlap.

use crate::engine::event::{Event, Kind};
use crate::engine::queue::Queue;
use crate::engine::station::{Station, StationNode};
use axon_wire::{FrameBuf, PortNo};

/// Maximum number of events prefetched together.
const TOGETHER: usize = 64;

/// Touches the data that the events of the current bucket need. Changes nothing.
pub(crate) fn read(queue: &Queue<Event>, stations: &[Station]) {
    let (mut begun, mut count) = ([None; TOGETHER], 0);
    queue.each_begun(&mut |event| {
        if count < TOGETHER {
            begun[count] = Some(event);
            count += 1;
        }
    });
    let events = begun[..count].iter().copied().flatten();
    let mut sum = 0;
    for event in events.clone() {
        sum ^= stations[event.station as usize].adapter().prefetch();
    }
    for event in events.clone() {
        let station = &stations[event.station as usize];
        if let StationNode::Host(host) = &station.node {
            sum ^= host.prefetch() ^ station.adapter().prefetch_end();
        }
        if let Kind::Arrive { port, frame, .. } = &event.kind {
            sum ^= station.adapter().prefetch_port(*port) ^ head(frame);
        }
    }
    for event in events {
        let station = &stations[event.station as usize];
        if let StationNode::Host(host) = &station.node {
            sum ^= host.prefetch_apps() ^ station.adapter().prefetch_way(PortNo(0));
        }
    }
    std::hint::black_box(sum);
}

fn head(frame: &FrameBuf) -> u64 {
    let bytes = frame.bytes();
    let at = |index: usize| bytes.get(index).map_or(0, |&byte| u64::from(byte));
    at(0) ^ at(63)
}
