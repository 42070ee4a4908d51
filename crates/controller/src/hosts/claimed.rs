//! Claims of hosts by port: their number and their hosts.

use crate::counts::Counts;
use crate::topology::SwitchIndex;
use alloc::collections::BTreeSet;
use axon_wire::{MacAddr, PortNo};

/// Port of a place in the host table.
type Port = (SwitchIndex, PortNo);

/// All claims, by port.
#[derive(Clone, Debug, Default)]
pub(super) struct Claimed {
    counts: Counts,
    hosts: BTreeSet<(Port, MacAddr)>,
}

impl Claimed {
    /// Returns the number of claims of a switch, over all its ports.
    pub(super) fn of(&self, switch: SwitchIndex) -> usize {
        self.counts.of(switch)
    }

    /// Returns the number of claims of a port.
    pub(super) fn at(&self, (switch, port): Port) -> usize {
        self.counts.at(switch, port)
    }

    /// Returns the hosts that a port claims.
    pub(super) fn hosts_at(&self, port: Port) -> impl Iterator<Item = MacAddr> {
        let range = (port, MacAddr([0; 6]))..=(port, MacAddr::BROADCAST);
        self.hosts.range(range).map(|&(_, mac)| mac)
    }

    /// Adds a port's claim of a host, which it did not claim before.
    pub(super) fn add(&mut self, (switch, port): Port, mac: MacAddr) {
        self.counts.add(switch, port);
        self.hosts.insert(((switch, port), mac));
    }

    /// Removes a port's claim of a host.
    pub(super) fn remove(&mut self, (switch, port): Port, mac: MacAddr) {
        self.counts.remove(switch, port);
        self.hosts.remove(&((switch, port), mac));
    }
}
