//! The lookups of a switch: the route of a host's frame, and the step of an Axon packet.
//!
//! [`Plane`](super::Plane) asks these two things of its tables and nothing else, so that tables of
//! another make (a programmable pipeline) can stand in the place of
//! [`RouteTables`](super::routes::RouteTables) while ports, queues, flow control, congestion
//! signalling, probes and meters stay the same code. The plane knows its lookups at compile time.

use super::forward::{Step, forward_parsed};
use crate::config::PlaneConfig;
use alloc::vec::Vec;
use axon_node::{PortKind, RouteError, RouteKey};
use axon_wire::header::{HeaderFields, HopWidth};
use axon_wire::{PortNo, Route};

/// The tables of one switch.
///
/// Routes are kept for each ingress port by itself, by the [`RouteKey`] of frames: one for the
/// source of a frame comes before one for any source. A change is in force when the call returns,
/// or has failed and has changed nothing.
pub trait Lookups {
    /// The name of a data plane with these lookups, in capabilities and messages.
    const NAME: &'static str;

    /// Whether [`Lookups::forward`] is the step of [`forward`](super::forward::forward) and counts
    /// nothing, and [`Lookups::lookup`] twice is as once, so that a frame that meets no obstacle
    /// need not come to the one, and one that meets an obstacle may come to the other again.
    const STATELESS_STEP: bool = true;

    /// Empty tables for a switch of this size, whose ports are all of unknown kind.
    fn with_config(config: &PlaneConfig) -> Self
    where
        Self: Sized;

    /// Makes `route` the route from `port` of frames with this key, replacing any before it.
    ///
    /// # Errors
    /// `Full`, `NoSuchPort`, `Unrepresentable`; the old route, if any, then still stands.
    fn install(&mut self, port: PortNo, key: RouteKey, route: &Route) -> Result<(), RouteError>;

    /// Forgets the route; says whether there was one.
    fn remove(&mut self, port: PortNo, key: RouteKey) -> bool;

    /// Forgets all routes of one port.
    fn clear(&mut self, port: PortNo);

    /// The header to prepend to `frame`, which came in by `port` and has this key, that for any
    /// source, and whether frames of VLANs leave tagged, if there is a route for its source or for
    /// any; that is in use from now on.
    fn lookup(&mut self, port: PortNo, key: RouteKey, frame: &[u8]) -> Option<(&[u8], bool)>;

    /// Whether the route was looked up since the last call of this.
    fn take_used(&mut self, port: PortNo, key: RouteKey) -> bool;

    /// The routes of one port, in the order of their keys.
    fn routes(&self, port: PortNo) -> Vec<(RouteKey, Route)>;

    /// How many routes one port has.
    fn len(&self, port: PortNo) -> usize;

    /// The kind of `port` has changed to `kind`. Only lookups whose steps stand in entries of
    /// their own act on it.
    fn set_kind(&mut self, _port: PortNo, _kind: PortKind) {}

    /// Takes one hop of the packet in `bytes`, which begins with `header` and came in by
    /// `ingress`: exactly what [`forward`](super::forward::forward) does.
    #[inline(always)]
    fn forward(
        &mut self,
        bytes: &mut [u8],
        width: HopWidth,
        header: &HeaderFields,
        ingress: PortNo,
        kind_of: impl FnOnce(PortNo) -> Option<PortKind>,
    ) -> Step {
        forward_parsed(bytes, width, header, ingress, kind_of)
    }
}
