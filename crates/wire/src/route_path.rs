//! A route with the switches that it leads through, and the links between them.

use crate::addr::{NodeId, PortNo};
use crate::route::Route;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// One end of a link between switches, which names the direction that starts there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LinkEnd {
    /// The identity of the switch.
    pub node: NodeId,
    /// The port of that switch, from 0.
    pub port: PortNo,
}

/// A route, and the switches that it leads through.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoutePath {
    /// The route.
    pub route: Route,
    /// The switch that each hop leaves. That of the last hop, which leads to the host, is named
    /// only where the host can be reached by another port too: then its port is a link of the
    /// route.
    pub switches: Vec<NodeId>,
}

impl RoutePath {
    /// The links that the route takes, nearest first, each by the end that it starts from.
    pub fn links(&self) -> impl Iterator<Item = LinkEnd> {
        let ends = self.switches.iter().zip(self.route.hops.iter());
        ends.map(|(&node, &port)| LinkEnd { node, port })
    }
}
