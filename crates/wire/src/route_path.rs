//! Routes together with the switches and links on their path.

use crate::addr::{NodeId, PortNo};
use crate::route::Route;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// One end of a link between switches; it identifies the direction that starts there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LinkEnd {
    /// The identity of the switch.
    pub node: NodeId,
    /// The port of that switch, from 0.
    pub port: PortNo,
}

/// A route, and the switches on its way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoutePath {
    /// The route.
    pub route: Route,
    /// The switch of each egress port. The last one, with the port to the host, is included only
    /// where the host can be reached by another port too: its port then counts as a link of the
    /// route.
    pub switches: Vec<NodeId>,
}

impl RoutePath {
    /// Iterates over the links of the route, nearest first. Each link is given by the end where it
    /// starts.
    pub fn links(&self) -> impl Iterator<Item = LinkEnd> {
        let ends = self.switches.iter().zip(self.route.hops.iter());
        ends.map(|(&node, &port)| LinkEnd { node, port })
    }
}
