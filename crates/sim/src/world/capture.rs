//! Captures: copies of the frames on single ports, for other tools.

use crate::link::links::WireEnd;
use crate::world::layout::Layout;
use axon_fabric::assemble::{host_index, split_port, switch_index};
use axon_fabric::model::Fabric;
use axon_wire::PortNo;

pub use crate::engine::taps::Captured;

/// Returns the port of a fabric's world with this name: `s1-p0`, `h1-p0` or `c1-p0`.
pub fn port_by_name(fabric: &Fabric, name: &str) -> Option<WireEnd> {
    let (node, port) = split_port(name)?;
    if let Some(switch) = switch_index(fabric, node) {
        let there = port.0 < fabric.switches[switch].ports;
        return there.then_some(WireEnd { station: switch, port });
    }
    let layout = Layout::of(fabric);
    let station = match host_index(fabric, node) {
        Some(host) => layout.host_station(host),
        None if node == fabric.controller.name => layout.controller_station(),
        None => return None,
    };
    (port == PortNo(0)).then_some(WireEnd { station, port })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{Setup, World};
    use axon_wire::Time;

    #[test]
    fn both_ends_of_a_link_carry_the_same_frames() {
        let fabric = axon_fabric::samples::ring(3, 1);
        let ports = ["h1-p0", "s1-p0"].map(|name| port_by_name(&fabric, name).unwrap());
        let mut world =
            World::begin(&fabric, Setup { seed: 1, capture: ports.into(), ..Setup::default() });
        world.run_until(Time::from_nanos(500_000_000));
        let captured = world.engine_mut().take_captured();
        let of = |station: usize, outbound: bool| -> Vec<&[u8]> {
            let those = captured.iter().filter(|c| c.station == station && c.outbound == outbound);
            those.map(|c| &c.frame[..]).collect()
        };
        assert!(!of(4, true).is_empty(), "the host asks for its address");
        assert_eq!(of(4, true), of(0, false));
        assert_eq!(of(0, true), of(4, false), "nothing is in flight at this moment");
        assert!(captured.is_sorted_by_key(|c| c.at));
        assert_eq!(world.engine_mut().take_captured(), []);
    }

    #[test]
    fn ports_that_are_not_there_have_no_name() {
        let fabric = axon_fabric::samples::ring(3, 1);
        let end = |name| port_by_name(&fabric, name).map(|end| (end.station, end.port.0));
        assert_eq!(end("s3-p2"), Some((2, 2)));
        assert_eq!(end("c1-p0"), Some((3, 0)));
        assert_eq!(end("h3-p0"), Some((6, 0)));
        for name in ["s3-p3", "h1-p1", "h4-p0", "s1", "c1-p1"] {
            assert_eq!(end(name), None, "{name}");
        }
    }
}
