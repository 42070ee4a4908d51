//! Counters for each switch and each of its ports.

use super::topology::SwitchIndex;
use alloc::vec::Vec;
use axon_wire::PortNo;

/// Counter for each switch and each of its ports, both looked up by index.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    switches: Vec<OfSwitch>,
}

#[derive(Clone, Debug, Default)]
struct OfSwitch {
    all: usize,
    ports: Vec<u32>,
}

impl Counts {
    /// Returns the count of a switch, over all its ports.
    pub(super) fn of(&self, switch: SwitchIndex) -> usize {
        self.switches.get(switch.index()).map_or(0, |of| of.all)
    }

    /// Returns the count of one port.
    pub(super) fn at(&self, switch: SwitchIndex, port: PortNo) -> usize {
        let ports = self.switches.get(switch.index()).map(|of| &of.ports);
        ports.and_then(|ports| ports.get(port.index())).map_or(0, |&count| count as usize)
    }

    /// Increments the count of a port.
    pub(super) fn add(&mut self, switch: SwitchIndex, port: PortNo) {
        if self.switches.len() <= switch.index() {
            self.switches.resize_with(switch.index() + 1, OfSwitch::default);
        }
        let of = &mut self.switches[switch.index()];
        if of.ports.len() <= port.index() {
            of.ports.resize(port.index() + 1, 0);
        }
        of.all += 1;
        of.ports[port.index()] += 1;
    }

    /// Decrements the count of a port.
    pub(super) fn remove(&mut self, switch: SwitchIndex, port: PortNo) {
        let of = &mut self.switches[switch.index()];
        of.all -= 1;
        of.ports[port.index()] -= 1;
    }
}
