//! The claims of hosts by port: how many there are, and of which hosts.

use crate::controller::counts::Counts;
use crate::controller::topology::SwitchIndex;
use alloc::collections::BTreeSet;
use axon_wire::{MacAddr, PortNo};

/// A port, as a place in the host table names it.
type Port = (SwitchIndex, PortNo);

/// All claims, by port.
#[derive(Clone, Debug, Default)]
pub(super) struct Claimed {
    counts: Counts,
    hosts: BTreeSet<(Port, MacAddr)>,
}

impl Claimed {
    /// How many claims a switch has, at all of its ports.
    pub(super) fn of(&self, switch: SwitchIndex) -> usize {
        self.counts.of(switch)
    }

    /// How many claims a port has.
    pub(super) fn at(&self, (switch, port): Port) -> usize {
        self.counts.at(switch, port)
    }

    /// The hosts that a port claims.
    pub(super) fn hosts_at(&self, port: Port) -> impl Iterator<Item = MacAddr> {
        let range = (port, MacAddr([0; 6]))..=(port, MacAddr::BROADCAST);
        self.hosts.range(range).map(|&(_, mac)| mac)
    }

    /// A port claims a host that it did not claim.
    pub(super) fn add(&mut self, (switch, port): Port, mac: MacAddr) {
        self.counts.add(switch, port);
        self.hosts.insert(((switch, port), mac));
    }

    /// A port claims a host no more that it did claim.
    pub(super) fn remove(&mut self, (switch, port): Port, mac: MacAddr) {
        self.counts.remove(switch, port);
        self.hosts.remove(&((switch, port), mac));
    }
}
