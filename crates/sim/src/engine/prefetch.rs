//! Reading ahead: what the next events will need is fetched before it is their turn.
//!
//! In a large world nothing that an event needs is in the processor's caches, and one thing
//! leads to the next: the event to its station, that to a node, that to a port. One event
//! after the other, the waits for memory add up. So when a bucket of events begins, each step
//! of that way is made for all of its events before the next step: within a step no read
//! depends on another, and the waits overlap.

use crate::engine::event::{Event, Kind};
use crate::engine::queue::Queue;
use crate::engine::station::{Station, StationNode};
use axon_node::Dataplane;
use axon_wire::{FrameBuf, PortNo};

/// Events that are read ahead for at once, at most.
const TOGETHER: usize = 64;

/// Reads a little of all that the events that have begun will need. Changes nothing.
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
        sum ^= stations[event.station as usize].adapter.prefetch();
    }
    for event in events.clone() {
        let station = &stations[event.station as usize];
        match &station.node {
            StationNode::Switch(node) => sum ^= Dataplane::prefetch(node.plane(), None),
            StationNode::Host(host) => sum ^= host.prefetch() ^ station.adapter.prefetch_end(),
            _ => {}
        }
        if let Kind::Arrive { port, frame, .. } = &event.kind {
            sum ^= station.adapter.prefetch_port(*port) ^ head(frame);
        }
    }
    for event in events {
        let station = &stations[event.station as usize];
        match (&station.node, &event.kind) {
            (StationNode::Switch(node), Kind::Arrive { port, frame, .. }) => {
                sum ^= Dataplane::prefetch(node.plane(), Some(*port));
                if let Some(out) = Dataplane::next_hop(node.plane(), frame.bytes()) {
                    sum ^= Dataplane::prefetch(node.plane(), Some(out));
                    sum ^= station.adapter.prefetch_way(out);
                }
            }
            (StationNode::Host(host), _) => {
                sum ^= host.prefetch_apps() ^ station.adapter.prefetch_way(PortNo(0))
            }
            _ => {}
        }
    }
    std::hint::black_box(sum);
}

fn head(frame: &FrameBuf) -> u64 {
    let bytes = frame.bytes();
    let at = |index: usize| bytes.get(index).map_or(0, |&byte| u64::from(byte));
    at(0) ^ at(63)
}
