//! Axon in tables: the edge in the exact-match table, the transit step in the TCAM.
//!
//! The edge uses one MAC table entry for each route. Each port is a bridge of its own, so hosts on
//! different ports see only their own routes. The entry pushes the route. Then the packet takes the
//! transit step of every Axon packet, by the entries of [`entries`]; a chip would recirculate the
//! packet through its tables.
//!
//! [`AxonTables`] replaces the plane's own tables ([`Lookups`](axon_plane::Lookups)); ports,
//! queues, flow control, congestion signalling, probes and meters are those of
//! [`Plane`](axon_plane::Plane). From the pipeline it uses tables, keys, entries, counters and
//! transactions. The plane parses headers, and [`AxonTables`] executes actions: the pipeline's
//! modifiers change a whole frame, while here only the bytes of a packet are available, whose
//! header stays until the ports have processed it.

pub mod entries;
mod tables;

pub use tables::AxonTables;

use axon_node::Capabilities;
use axon_pipeline::Sizes;
use axon_plane::PlaneConfig;

/// Returns the capabilities of a plane of this size with [`AxonTables`] of the default sizes: as
/// many ports as have TCAM entries.
pub fn capabilities(config: &PlaneConfig) -> Capabilities {
    let ports = config.ports.min(entries::ports_in(Sizes::default().tcam));
    Capabilities {
        name: <AxonTables as axon_plane::Lookups>::NAME,
        ports,
        ..axon_plane::axon::capabilities(config)
    }
}
