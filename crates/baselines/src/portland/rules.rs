//! Rules that a switch in a fat tree derives by itself, to forward by prefix (paper §3.5).
//!
//! An edge switch sends everything that is not for its own hosts to any aggregation switch. An
//! aggregation switch has a rule for each edge switch in its pod, and sends everything else to any
//! core switch. A core switch has a rule for the aggregation switch in each pod. A frame that has
//! come down never goes up again, so there is no loop.
//!
//! The fabric manager computes the same rules for every switch, and after a failure sends only the
//! differences.

use super::message::Level;
use crate::portland::plane::{Location, Routes};
use alloc::vec::Vec;
use axon_wire::PortNo;

/// Neighbour, with the fields that rules use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Neighbour {
    pub port: PortNo,
    pub level: Level,
    pub pod: Option<u16>,
    pub position: Option<u8>,
}

/// Returns the rules of a switch at `level`, in `pod`, with these neighbours.
pub(super) fn rules(level: Level, pod: Option<u16>, neighbours: &[Neighbour]) -> Routes {
    let ports = |level: Level| -> Vec<PortNo> {
        neighbours.iter().filter(|other| other.level == level).map(|other| other.port).collect()
    };
    let mut routes = Routes::default();
    match level {
        Level::Edge => routes.default = Some(ports(Level::Aggregation)),
        Level::Aggregation => {
            if let Some(pod) = pod {
                // Frames to locations in this pod that are not below must not go up, because they
                // would come back.
                routes.pods.insert(pod, Vec::new());
            }
            for other in neighbours.iter().filter(|other| other.level == Level::Edge) {
                if let (Some(pod), Some(position)) = (other.pod, other.position) {
                    routes.exact.entry(Location { pod, position }).or_default().push(other.port);
                }
            }
            routes.default = Some(ports(Level::Core));
        }
        Level::Core => {
            for other in neighbours.iter().filter(|other| other.level == Level::Aggregation) {
                if let Some(pod) = other.pod {
                    routes.pods.entry(pod).or_default().push(other.port);
                }
            }
        }
        Level::Unknown | Level::Manager => {}
    }
    routes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn other(port: u16, level: Level, pod: u16, position: u8) -> Neighbour {
        Neighbour { port: PortNo(port), level, pod: Some(pod), position: Some(position) }
    }

    fn at(pod: u16, position: u8) -> Location {
        Location { pod, position }
    }

    #[test]
    fn up_to_anyone_and_down_to_the_one() {
        let edge = [other(2, Level::Aggregation, 1, 0), other(3, Level::Aggregation, 1, 0)];
        let edge = rules(Level::Edge, Some(1), &edge);
        assert_eq!(edge.ports_towards(at(5, 5)), Some(&Vec::from([PortNo(2), PortNo(3)])));
        let middle = [
            other(0, Level::Edge, 1, 0),
            other(1, Level::Edge, 1, 1),
            other(2, Level::Core, 0, 0),
            other(3, Level::Core, 0, 0),
        ];
        let middle = rules(Level::Aggregation, Some(1), &middle);
        assert_eq!(middle.ports_towards(at(1, 1)), Some(&Vec::from([PortNo(1)])));
        assert_eq!(middle.ports_towards(at(1, 7)), Some(&Vec::new()), "never up again");
        assert_eq!(middle.ports_towards(at(2, 1)), Some(&Vec::from([PortNo(2), PortNo(3)])));
        let core = [other(0, Level::Aggregation, 0, 0), other(1, Level::Aggregation, 1, 0)];
        let core = rules(Level::Core, None, &core);
        assert_eq!(core.ports_towards(at(1, 9)), Some(&Vec::from([PortNo(1)])));
        assert_eq!(core.ports_towards(at(7, 0)), None);
    }
}
