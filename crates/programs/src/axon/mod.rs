//! Axon in tables. The exact-match table implements the edge, and the TCAM implements transit.
//!
//! The edge uses one MAC table entry for each route. Each port is a separate bridge, so hosts on
//! different ports see only their own routes. The entry pushes the route. Then the packet is
//! processed by the entries in [`entries`], like every Axon packet in transit. A chip would
//! recirculate the packet through its tables.
//!
//! [`AxonTables`] replaces the plane's own tables ([`Lookups`](axon_plane::Lookups)). Ports,
//! queues, flow control, congestion signalling, probes and meters are those of
//! [`Plane`](axon_plane::Plane). From the pipeline it uses tables, keys, entries, counters and
//! transactions. The plane parses headers, and [`AxonTables`] executes actions. The pipeline's
//! modifiers change a whole frame, but here only the bytes of a packet are available, and its
//! header stays until the ports have processed it.

pub mod entries;
mod tables;

pub use tables::AxonTables;

use axon_node::Capabilities;
use axon_pipeline::Sizes;
use axon_plane::PlaneConfig;

/// Returns the capabilities of a plane of this size that uses [`AxonTables`] of the default sizes.
/// The number of ports is limited to those whose TCAM entries fit.
pub fn capabilities(config: &PlaneConfig) -> Capabilities {
    let ports = config.ports.min(entries::ports_in(Sizes::default().tcam));
    Capabilities {
        name: <AxonTables as axon_plane::Lookups>::NAME,
        ports,
        ..axon_plane::axon::capabilities(config)
    }
}
