//! What single ports carry, for somebody who wants to look at it with other tools.

use crate::engine::Engine;
use crate::engine::trace::What;
use crate::link::links::WireEnd;
use axon_fabric::assemble::{host_index, split_port, switch_index};
use axon_fabric::model::Fabric;
use axon_wire::{PortNo, Time};

/// A frame that a port carried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// Out of the port: when it was given to the port; into it: when the node was handed it.
    pub at: Time,
    /// Whose port.
    pub station: usize,
    /// Which port.
    pub port: PortNo,
    /// Whether it went out.
    pub outbound: bool,
    /// Its bytes, without FCS.
    pub frame: Vec<u8>,
}

/// The ports of one station that are looked at, and what they carried since the last look.
#[derive(Debug, Default)]
pub(crate) struct Taps {
    ports: Vec<PortNo>,
    frames: Vec<Captured>,
}

impl Taps {
    /// Keeps a copy of a frame that came in or went out by one of the ports.
    pub(crate) fn see(&mut self, at: Time, station: u32, port: PortNo, what: What<'_>) {
        let (frame, outbound) = match what {
            What::Sent(frame) => (frame, true),
            What::Received(frame) => (frame, false),
            _ => return,
        };
        if self.ports.contains(&port) {
            let (station, frame) = (station as usize, frame.to_vec());
            self.frames.push(Captured { at, station, port, outbound, frame });
        }
    }
}

/// The port of a fabric's world that has this name: `s1-p0`, `h1-p0` or `c1-p0`.
pub fn port_by_name(fabric: &Fabric, name: &str) -> Option<WireEnd> {
    let (node, port) = split_port(name)?;
    if let Some(switch) = switch_index(fabric, node) {
        let there = port.0 < fabric.switches[switch].ports;
        return there.then_some(WireEnd { station: switch, port });
    }
    let first = fabric.switches.len();
    let station = match host_index(fabric, node) {
        Some(host) => first + 1 + host,
        None if node == fabric.controller.name => first,
        None => return None,
    };
    (port == PortNo(0)).then_some(WireEnd { station, port })
}

impl Engine {
    /// Keeps a copy of each frame that a port carries from now on, until
    /// [`Engine::take_captured`]. How many threads there are is settled before.
    ///
    /// # Panics
    /// If there is no such station.
    pub fn capture(&mut self, end: WireEnd) {
        self.shards.iter_mut().for_each(|shard| shard.common.watched = true);
        let taps = self.station_mut(end.station).harness.taps.get_or_insert_default();
        if !taps.ports.contains(&end.port) {
            taps.ports.push(end.port);
        }
    }

    /// What was captured since the last time, in order of time, then of stations.
    pub fn take_captured(&mut self) -> Vec<Captured> {
        let mut all = Vec::new();
        for station in self.shards.iter_mut().flat_map(|shard| &mut shard.stations) {
            if let Some(taps) = &mut station.harness.taps {
                all.append(&mut taps.frames);
            }
        }
        all.sort_by_key(|captured| (captured.at, captured.station));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::World;

    #[test]
    fn both_ends_of_a_link_carry_the_same_frames() {
        let fabric = axon_fabric::topology::ring(3, 1);
        let ports = ["h1-p0", "s1-p0"].map(|name| port_by_name(&fabric, name).unwrap());
        let mut world = World::with_capture(&fabric, 1, None, &ports);
        world.run_until(Time::from_nanos(500_000_000));
        let captured = world.engine_mut().take_captured();
        let of = |station: usize, outbound: bool| -> Vec<&[u8]> {
            let those = captured.iter().filter(|c| c.station == station && c.outbound == outbound);
            those.map(|c| &c.frame[..]).collect()
        };
        assert!(!of(4, true).is_empty(), "the host asks for its address");
        assert_eq!(of(4, true), of(0, false));
        assert_eq!(of(0, true), of(4, false), "nothing is under way at this moment");
        assert!(captured.is_sorted_by_key(|c| c.at));
        assert_eq!(world.engine_mut().take_captured(), []);
    }

    #[test]
    fn ports_that_are_not_there_have_no_name() {
        let fabric = axon_fabric::topology::ring(3, 1);
        let end = |name| port_by_name(&fabric, name).map(|end| (end.station, end.port.0));
        assert_eq!(end("s3-p2"), Some((2, 2)));
        assert_eq!(end("c1-p0"), Some((3, 0)));
        assert_eq!(end("h3-p0"), Some((6, 0)));
        for name in ["s3-p3", "h1-p1", "h4-p0", "s1", "c1-p1"] {
            assert_eq!(end(name), None, "{name}");
        }
    }
}
