//! Hosts and the routes between them: the parts that most requests need together, passed as one
//! argument.
//!
//! Each part has its own state. Methods of this type change several of them. See `isolation.rs` for
//! the admission of hosts and the policy, and `by_source.rs` for routes of single hosts.

use super::bound_checks::Bounds;
use super::fabric::Fabric;
use super::hosts::HostIndex;
use super::network::{Network, Rights};
use super::routes::{Decisions, Routes};
use super::seeking::Seeking;
use super::takeover::TakeOver;
use crate::effect::Effect;
use alloc::vec::Vec;

/// State that all VLANs share.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) fabric: Fabric,
    pub(super) rights: Rights,
    pub(super) decisions: Decisions,
    pub(super) bounds: Bounds,
}

/// Locations and rights of the hosts of one VLAN, their routes, and the bounds of both.
#[derive(Debug)]
pub(super) struct Forwarding<'a> {
    pub(super) net: Network<'a>,
    pub(super) routes: Routes<'a>,
    /// Routes from an earlier incarnation that are in the tables of edges.
    pub(super) take_over: &'a mut TakeOver,
    /// Pending searches for addresses of unknown hosts.
    pub(super) seeking: &'a mut Seeking,
    pub(super) bounds: &'a mut Bounds,
}

impl Forwarding<'_> {
    /// Removes all routes to a host.
    pub(super) fn cut_off(&mut self, host: HostIndex, out: &mut Vec<Effect>) {
        self.take_over.cut_off((&self.net, &mut self.routes), host, out);
    }
}
