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
///
/// A frame takes the route with its own source, if there is one, and else that without a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RouteKey {
    /// The VLAN that the frame is in.
    pub vlan: VlanId,
    /// The destination MAC of the frame.
    pub destination: MacAddr,
    /// The source MAC of the frame; `None`: any. Several hosts may be behind one port, as behind
    /// an ordinary switch.
    pub source: Option<MacAddr>,
}

impl RouteKey {
    /// The key of frames to `destination` that are in no VLAN, whoever sends them.
    pub const fn to(destination: MacAddr) -> RouteKey {
        RouteKey { vlan: VlanId::NONE, destination, source: None }
    }

    /// The key of an Ethernet frame in this VLAN, whoever sends it. One that is too short for an
    /// address has none that could have a route.
    #[inline]
    pub fn of_frame(vlan: VlanId, frame: &[u8]) -> RouteKey {
        let destination = MacAddr::destination_of(frame).unwrap_or_default();
        RouteKey { vlan, destination, source: None }
    }

    /// The same for frames of one source, or of any.
    #[must_use]
    pub const fn from_source(self, source: Option<MacAddr>) -> RouteKey {
        RouteKey { source, ..self }
    }
}

impl From<MacAddr> for RouteKey {
    fn from(destination: MacAddr) -> RouteKey {
        RouteKey::to(destination)
    }
}

impl Hash for RouteKey {
    /// As one word, so that a lookup hashes once; a source is a second one.
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [a, b, c, d, e, f] = self.destination.0;
        let [high, low] = self.vlan.value().to_be_bytes();
        state.write(&[a, b, c, d, e, f, high, low]);
        if let Some(source) = self.source {
            state.write(&source.0);
        }
    }
}

impl fmt::Display for RouteKey {
    /// `02:00:00:00:00:01`, `02:00:00:00:00:01 in VLAN 10`,
    /// `02:00:00:00:00:01 from 02:00:00:00:00:02`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.destination.fmt(f)?;
        if let Some(source) = self.source {
            write!(f, " from {source}")?;
        }
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
    /// The route does not fit a header: a hop is out of range, or there are too many. Or the data
    /// plane has no such key: it looks at no source, or masquerades no route with one.
    #[error("the route does not fit a header, or its key the table")]
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
