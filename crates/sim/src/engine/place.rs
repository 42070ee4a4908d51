//! Places of stations.

/// Shard of a station, and its slot there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) shard: u32,
    pub(crate) slot: u32,
}
