//! Ports that receive the edge's router advertisements; see `ra`.

use alloc::collections::BTreeMap;
use axon_link::bucket::Bucket;
use axon_wire::PortNo;

/// Ports that receive advertisements: at most all ports with carrier and hosts.
#[derive(Clone, Debug, Default)]
pub(super) struct Advertising {
    pub(super) ports: BTreeMap<PortNo, Port>,
}

impl Advertising {
    /// Returns the number of ports that receive advertisements.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.ports.len()
    }
}

/// Advertising state of a port.
#[derive(Clone, Debug, Default)]
pub(super) struct Port {
    /// Number of unsolicited advertisements sent, up to 255.
    pub(super) sent: u8,
    /// Bucket for answers to solicitations.
    pub(super) answers: Bucket,
}
