//! Changes of a data plane's route tables, as a control plane asks for them.

use axon_wire::vlan::VlanId;
use axon_wire::{MacAddr, PortNo, Route};
use core::fmt;
use core::hash::{Hash, Hasher};
use serde::{Deserialize, Serialize};

/// Names one request for a change of a route table, so that its answer finds it; never used twice
/// by one control plane.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct RouteTicket(pub u64);

/// What the route of a host's frame is looked up by, at the host port where the frame comes in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RouteKey {
    /// The VLAN that the frame is in.
    pub vlan: VlanId,
    /// The destination MAC of the frame.
    pub destination: MacAddr,
}

impl RouteKey {
    /// The key of frames to `destination` that are in no VLAN.
    pub const fn to(destination: MacAddr) -> RouteKey {
        RouteKey { vlan: VlanId::NONE, destination }
    }

    /// The key of an Ethernet frame in this VLAN. One that is too short for an address has none
    /// that could have a route.
    #[inline]
    pub fn of_frame(vlan: VlanId, frame: &[u8]) -> RouteKey {
        RouteKey { vlan, destination: MacAddr::destination_of(frame).unwrap_or_default() }
    }
}

impl From<MacAddr> for RouteKey {
    fn from(destination: MacAddr) -> RouteKey {
        RouteKey::to(destination)
    }
}

impl Hash for RouteKey {
    /// As one word, so that a lookup hashes once.
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [a, b, c, d, e, f] = self.destination.0;
        let [high, low] = self.vlan.value().to_be_bytes();
        state.write(&[a, b, c, d, e, f, high, low]);
    }
}

impl fmt::Display for RouteKey {
    /// `02:00:00:00:00:01`, `02:00:00:00:00:01 in VLAN 10`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.destination.fmt(f)?;
        if self.vlan.is_none() { Ok(()) } else { write!(f, " in VLAN {}", self.vlan) }
    }
}

/// A change of the route table of one host port (paper 001 §4.1.1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RouteChange {
    /// Frames from `port` with this key take `route`, which replaces any before it.
    Install {
        /// The host port.
        port: PortNo,
        /// Which frames.
        key: RouteKey,
        /// Hops and layer.
        route: Route,
    },
    /// Frames from `port` with this key, whose destination is a masqueraded address, get
    /// `destination` in its place and take `route`. That replaces what stood at the index of the
    /// address ([`masquerade`](axon_wire::masquerade)).
    Masquerade {
        /// The host port.
        port: PortNo,
        /// Which frames: by the destination MAC that hosts of the port were given.
        key: RouteKey,
        /// The MAC of the destination itself.
        destination: MacAddr,
        /// Hops and layer.
        route: Route,
    },
    /// Frames from `port` with this key have no route: they are punted. It is no error if they had
    /// none before.
    Remove {
        /// The host port.
        port: PortNo,
        /// Which frames; their destination may be a masqueraded one.
        key: RouteKey,
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
