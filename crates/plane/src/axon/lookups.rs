//! The lookups of a switch: the route of a host's frame, and the step of an Axon packet.
//!
//! [`Plane`](super::Plane) uses its tables through this trait only, so another implementation (a
//! programmable pipeline) can replace [`RouteTables`](super::routes::RouteTables) while ports,
//! queues, flow control, congestion signalling, probes and meters stay the same code. The
//! implementation is chosen at compile time.

use super::forward::{Step, forward_parsed};
use crate::config::PlaneConfig;
use alloc::vec::Vec;
use axon_node::{PortKind, RouteError, RouteKey};
use axon_wire::header::{HeaderFields, HopWidth};
use axon_wire::{PortNo, Route};

/// Route tables and forwarding step of one switch.
///
/// Routes are kept per ingress port, by the [`RouteKey`] of frames: a route for the source of a
/// frame takes precedence over one for any source. A change is in force when the call returns, or
/// has failed and has changed nothing.
pub trait Lookups {
    /// Name of a data plane with these lookups, in capabilities and messages.
    const NAME: &'static str;

    /// True if [`Lookups::forward`] is the step of [`forward`](super::forward::forward) without
    /// counters, and [`Lookups::lookup`] is idempotent. Then the fast path may skip the former, and
    /// a frame that leaves the fast path may repeat the latter.
    const STATELESS_STEP: bool = true;

    /// Returns empty tables for a switch of this size, whose ports are all of unknown kind.
    fn with_config(config: &PlaneConfig) -> Self
    where
        Self: Sized;

    /// Installs `route` for frames from `port` with this key, replacing any before it.
    ///
    /// # Errors
    /// `Full`, `NoSuchPort`, `Unrepresentable`; the old route, if any, is then kept.
    fn install(&mut self, port: PortNo, key: RouteKey, route: &Route) -> Result<(), RouteError>;

    /// Removes the route; returns whether there was one.
    fn remove(&mut self, port: PortNo, key: RouteKey) -> bool;

    /// Removes all routes of one port.
    fn clear(&mut self, port: PortNo);

    /// Returns the header to prepend to `frame`, received on `port` and with this key (for any
    /// source), and whether frames in VLANs leave tagged; `None` if there is no route for its
    /// source or for any source. Marks the route as used.
    fn lookup(&mut self, port: PortNo, key: RouteKey, frame: &[u8]) -> Option<(&[u8], bool)>;

    /// Returns whether the route was looked up since the last call.
    fn take_used(&mut self, port: PortNo, key: RouteKey) -> bool;

    /// Returns the routes of one port, in the order of their keys.
    fn routes(&self, port: PortNo) -> Vec<(RouteKey, Route)>;

    /// Returns the number of routes of one port.
    fn len(&self, port: PortNo) -> usize;

    /// Sets the kind of `port` to `kind`. Only needed by lookups that keep their forwarding step in
    /// table entries.
    fn set_kind(&mut self, _port: PortNo, _kind: PortKind) {}

    /// Takes one hop of the packet in `bytes`, which begins with `header` and was received on
    /// `ingress`: exactly as [`forward`](super::forward::forward).
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
