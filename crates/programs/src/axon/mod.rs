//! Axon in tables: its edge in the exact-match table, its transit step in the TCAM.
//!
//! The edge costs one entry of the MAC table for each route: each port is a bridge of its own, so
//! hosts on different ports see only their own routes. The entry pushes the route. What follows is
//! the step that every Axon packet takes, by the entries of [`entries`]: a chip would send the
//! packet through its tables once more.
//!
//! [`AxonTables`] stands in the place of the plane's own tables
//! ([`Lookups`](axon_plane::Lookups)); ports, queues, flow control, congestion signalling, probes
//! and meters are those of [`Plane`](axon_plane::Plane). Of the pipeline it uses tables, keys,
//! entries, counters and transactions. The plane parses headers and [`AxonTables`] carries actions
//! out: the pipeline's modifiers change a whole frame, and here there are only the bytes of a
//! packet whose header stays until the ports have seen it.

pub mod entries;
mod tables;

pub use tables::AxonTables;

use axon_node::Capabilities;
use axon_pipeline::Sizes;
use axon_plane::PlaneConfig;

/// What a plane of this size with [`AxonTables`] of the default sizes can do: as many ports as have
/// entries in the TCAM.
pub fn capabilities(config: &PlaneConfig) -> Capabilities {
    let ports = config.ports.min(entries::ports_in(Sizes::default().tcam));
    Capabilities {
        name: <AxonTables as axon_plane::Lookups>::NAME,
        ports,
        ..axon_plane::axon::capabilities(config)
    }
}
