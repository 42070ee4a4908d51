//! Changes of a data plane's route tables, as a control plane asks for them.

use axon_wire::{MacAddr, PortNo, Route};
use serde::{Deserialize, Serialize};

/// Names one request for a change of a route table, so that its answer finds it; never used twice
/// by one control plane.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct RouteTicket(pub u64);

/// A change of the route table of one host port (paper 001 §4.1.1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RouteChange {
    /// Frames from `port` to `destination` take `route`, which replaces any before it.
    Install {
        /// The host port.
        port: PortNo,
        /// The destination MAC of the frames.
        destination: MacAddr,
        /// Hops and layer.
        route: Route,
    },
    /// Frames from `port` to the masqueraded address `mac` get `destination` in its place and take
    /// `route`. That replaces what stood at the index of `mac`
    /// ([`masquerade`](axon_wire::masquerade)).
    Masquerade {
        /// The host port.
        port: PortNo,
        /// The destination MAC that hosts of the port were given.
        mac: MacAddr,
        /// The MAC of the destination itself.
        destination: MacAddr,
        /// Hops and layer.
        route: Route,
    },
    /// Frames from `port` to `destination` have no route: they are punted. It is no error if they
    /// had none before.
    Remove {
        /// The host port.
        port: PortNo,
        /// The destination MAC of the frames, a masqueraded one too.
        destination: MacAddr,
    },
}

/// Why a data plane did not make a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum RouteError {
    /// The port's table is full: the frames of this flow are punted.
    #[error("the route table of the port is full")]
    Full,
    /// The data plane has no such port.
    #[error("no such port")]
    NoSuchPort,
    /// The route does not fit a header: a hop is out of range, or there are too many.
    #[error("the route does not fit a header")]
    Unrepresentable,
    /// The device does not answer, or refused for a reason of its own; another try may succeed.
    #[error("the device is not available")]
    Unavailable,
}

/// What came of one change. After an error the table is as it was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteAnswer {
    /// The request.
    pub ticket: RouteTicket,
    /// Made, or why not.
    pub result: Result<(), RouteError>,
}
