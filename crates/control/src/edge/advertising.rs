//! Which ports get router advertisements of the edge; see `ra`.

use crate::bucket::Bucket;
use alloc::collections::BTreeMap;
use axon_wire::PortNo;

/// The ports that get advertisements: as many as have carrier and hosts, at most.
#[derive(Clone, Debug, Default)]
pub(super) struct Advertising {
    pub(super) ports: BTreeMap<PortNo, Port>,
}

impl Advertising {
    /// The ports that get advertisements.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.ports.len()
    }
}

/// A port that gets advertisements.
#[derive(Clone, Debug, Default)]
pub(super) struct Port {
    /// How many it got unasked, up to 255.
    pub(super) sent: u8,
    /// Answers to solicitations there.
    pub(super) answers: Bucket,
}
