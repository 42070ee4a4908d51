//! Where stations are kept.

/// Where a station is kept: in which shard, and where in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) shard: u32,
    pub(crate) slot: u32,
}
