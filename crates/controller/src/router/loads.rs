//! Number of flows on each link.

use crate::topology::SwitchIndex;
use alloc::vec::Vec;
use axon_node::Step;
use axon_wire::PortNo;

/// Number of flows placed by the router on each directed link.
#[derive(Clone, Debug, Default)]
pub struct Loads {
    /// Numbers of flows by switch, then by egress port.
    flows: Vec<Vec<u32>>,
    /// Sum of the numbers of flows on all links.
    total: u64,
}

impl Loads {
    /// Returns the number of flows that leave this switch through this port.
    #[inline]
    pub(crate) fn get(&self, switch: SwitchIndex, egress: PortNo) -> u32 {
        let ports = self.flows.get(switch.index());
        ports.and_then(|ports| ports.get(egress.index())).copied().unwrap_or(0)
    }

    /// Adds one flow to each link on this path.
    pub(crate) fn add(&mut self, path: &[Step]) {
        for step in path {
            let at = step.switch.index();
            if self.flows.len() <= at {
                self.flows.resize_with(at + 1, Vec::new);
            }
            let ports = &mut self.flows[at];
            if ports.len() <= step.egress.index() {
                ports.resize(step.egress.index() + 1, 0);
            }
            ports[step.egress.index()] += 1;
        }
        self.total += path.len() as u64;
    }

    /// Removes one flow from each link on this path. Links without flows are ignored.
    pub(crate) fn remove(&mut self, path: &[Step]) {
        for step in path {
            let ports = self.flows.get_mut(step.switch.index());
            let flows = ports.and_then(|ports| ports.get_mut(step.egress.index()));
            debug_assert!(flows.as_ref().is_some_and(|flows| **flows > 0), "{step:?}");
            if let Some(flows) = flows.filter(|flows| **flows > 0) {
                *flows -= 1;
                self.total -= 1;
            }
        }
    }

    /// Returns the number of flows on the fullest link of a path.
    pub(crate) fn fullest(&self, path: &[Step]) -> u32 {
        path.iter().map(|step| self.get(step.switch, step.egress)).max().unwrap_or(0)
    }

    /// Returns the links that have ever carried a flow, each with its number of flows.
    pub(crate) fn each(&self) -> impl Iterator<Item = (Step, u32)> {
        self.flows.iter().enumerate().flat_map(|(switch, ports)| {
            let switch = SwitchIndex(switch as u32);
            let step = move |port: usize| Step { switch, egress: PortNo(port as u16) };
            ports.iter().enumerate().map(move |(port, &flows)| (step(port), flows))
        })
    }

    /// Returns the sum of the numbers of flows on all links.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_and_removed_again_leaves_nothing() {
        let step = |switch, port| Step { switch: SwitchIndex(switch), egress: PortNo(port) };
        let (long, short) = ([step(3, 2), step(0, 7)], [step(0, 7)]);
        let mut loads = Loads::default();
        loads.add(&long);
        loads.add(&short);
        assert_eq!((loads.get(SwitchIndex(0), PortNo(7)), loads.total()), (2, 3));
        assert_eq!((loads.fullest(&long), loads.get(SwitchIndex(9), PortNo(1))), (2, 0));
        loads.remove(&long);
        loads.remove(&short);
        assert!(loads.total() == 0 && loads.each().all(|(_, flows)| flows == 0));
    }
}
