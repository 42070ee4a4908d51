//! Changes of a data plane's route tables, requested by a control plane.

use axon_wire::vlan::VlanId;
use axon_wire::{MacAddr, PortNo, Route};
use core::fmt;
use core::hash::{Hash, Hasher};
use serde::{Deserialize, Serialize};

/// Identifier that links an answer to its change request; never reused by one control plane.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct RouteTicket(pub u64);

/// Lookup key of the route of a host's frame, at its ingress port.
///
/// A frame takes the route with its own source, if there is one, and else that without a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RouteKey {
    /// The VLAN of the frame.
    pub vlan: VlanId,
    /// The destination MAC of the frame.
    pub destination: MacAddr,
    /// The source MAC of the frame; `None` for any. Several hosts may be behind one port, as behind
    /// an ordinary switch.
    pub source: Option<MacAddr>,
}

impl RouteKey {
    /// Returns the key of frames to `destination` in no VLAN, from any source.
    pub const fn to(destination: MacAddr) -> RouteKey {
        RouteKey { vlan: VlanId::NONE, destination, source: None }
    }

    /// Returns the key of an Ethernet frame in this VLAN, from any source. A frame too short for an
    /// address has a key that matches no route.
    #[inline]
    pub fn of_frame(vlan: VlanId, frame: &[u8]) -> RouteKey {
        let destination = MacAddr::destination_of(frame).unwrap_or_default();
        RouteKey { vlan, destination, source: None }
    }

    /// Returns the key for frames of one source, or of any.
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
    /// Hashes the key as one word, so that a lookup hashes once; a source is a second word.
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
    /// Formats the key as `02:00:00:00:00:01`, `02:00:00:00:00:01 in VLAN 10` or `02:00:00:00:00:01
    /// from 02:00:00:00:00:02`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.destination.fmt(f)?;
        if let Some(source) = self.source {
            write!(f, " from {source}")?;
        }
        if self.vlan.is_none() { Ok(()) } else { write!(f, " in VLAN {}", self.vlan) }
    }
}

/// Change of the route table of one host port (paper 001 §4.1.1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RouteChange {
    /// Installs `route` for frames from `port` with this key, replacing any before it.
    Install {
        /// The host port.
        port: PortNo,
        /// The frames that take the route.
        key: RouteKey,
        /// Hops and layer.
        route: Route,
    },
    /// Installs `route` for frames from `port` with this key, whose destination is a masqueraded
    /// address; frames get `destination` in its place. It replaces the entry at the index of the
    /// address ([`masquerade`](axon_wire::masquerade)).
    Masquerade {
        /// The host port.
        port: PortNo,
        /// The frames that take the route, by the destination MAC given to hosts of the port.
        key: RouteKey,
        /// The true MAC of the destination.
        destination: MacAddr,
        /// Hops and layer.
        route: Route,
    },
    /// Removes the route of frames from `port` with this key, which are then punted. It is not an
    /// error if there was none.
    Remove {
        /// The host port.
        port: PortNo,
        /// The frames; their destination may be a masqueraded one.
        key: RouteKey,
    },
}

/// Reasons for which a data plane did not make a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum RouteError {
    /// The port's table is full: the frames of this flow are punted.
    #[error("the route table of the port is full")]
    Full,
    /// The data plane has no such port.
    #[error("no such port")]
    NoSuchPort,
    /// The route does not fit a header: a hop is out of range, or there are too many. Or the data
    /// plane does not support the key: it ignores sources, or masquerades no route with one.
    #[error("the route does not fit a header, or its key the table")]
    Unrepresentable,
    /// The device does not answer, or refused for its own reasons; a retry may succeed.
    #[error("the device is not available")]
    Unavailable,
}

/// Answer to one change. After an error the table is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteAnswer {
    /// Identifier of the request.
    pub ticket: RouteTicket,
    /// The result, or the error.
    pub result: Result<(), RouteError>,
}
