//! Claims of hosts, by port: their numbers and the claimed hosts.

use crate::counts::Counts;
use crate::topology::SwitchIndex;
use alloc::collections::BTreeSet;
use axon_wire::{MacAddr, PortNo};

/// Host port as switch and port number, the fields of a place.
type Port = (SwitchIndex, PortNo);

/// All claims, by port.
#[derive(Clone, Debug, Default)]
pub(super) struct Claimed {
    counts: Counts,
    hosts: BTreeSet<(Port, MacAddr)>,
}

impl Claimed {
    /// Returns the number of claims at a switch, over all its ports.
    pub(super) fn of(&self, switch: SwitchIndex) -> usize {
        self.counts.of(switch)
    }

    /// Returns the number of claims at a port.
    pub(super) fn at(&self, (switch, port): Port) -> usize {
        self.counts.at(switch, port)
    }

    /// Returns the hosts that are claimed at a port.
    pub(super) fn hosts_at(&self, port: Port) -> impl Iterator<Item = MacAddr> {
        let range = (port, MacAddr([0; 6]))..=(port, MacAddr::BROADCAST);
        self.hosts.range(range).map(|&(_, mac)| mac)
    }

    /// Adds a claim of a host at a port where it was not claimed before.
    pub(super) fn add(&mut self, (switch, port): Port, mac: MacAddr) {
        self.counts.add(switch, port);
        self.hosts.insert(((switch, port), mac));
    }

    /// Removes a claim of a host at a port.
    pub(super) fn remove(&mut self, (switch, port): Port, mac: MacAddr) {
        self.counts.remove(switch, port);
        self.hosts.remove(&((switch, port), mac));
    }
}
