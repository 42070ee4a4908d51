//! Hosts and the routes between them: the parts that most requests need together, passed as one
//! argument.
//!
//! Each part has its own state. Methods of this type change several of them. See `isolation.rs` for
//! the admission of hosts and the policy, and `by_source.rs` for routes of single hosts.

use super::excess::Bounds;
use super::hosts::HostIndex;
use super::network::Network;
use super::routes::Routes;
use super::seeking::Seeking;
use super::takeover::TakeOver;
use crate::effect::Effect;
use alloc::vec::Vec;

/// Locations and rights of hosts, their routes, and the bounds of both.
#[derive(Clone, Debug)]
pub(super) struct Forwarding {
    pub(super) net: Network,
    pub(super) routes: Routes,
    /// Routes from an earlier incarnation that are in the tables of edges.
    pub(super) take_over: TakeOver,
    /// Pending searches for addresses of unknown hosts.
    pub(super) seeking: Seeking,
    pub(super) bounds: Bounds,
}

impl Forwarding {
    /// Removes all routes to a host.
    pub(super) fn cut_off(&mut self, host: HostIndex, out: &mut Vec<Effect>) {
        self.take_over.cut_off((&self.net, &mut self.routes), host, out);
    }
}
