//! Positions of moved cables in a lab (`moves.rs`).

use super::plan::{CableEnd, Plan};
use axon_fabric::assemble::split_port;
use std::collections::BTreeMap;

/// Current port of each moved host.
pub(super) type Moves = BTreeMap<String, String>;

impl Plan {
    /// Applies the moves to the plan.
    pub(super) fn follow(&mut self, moves: &Moves) {
        for (host, port) in moves {
            let Some((node, _)) = split_port(port) else { continue };
            let at_host = |end: &CableEnd| end.node == *host;
            let cable = self.cables.iter_mut().find(|cable| cable.ends.iter().any(at_host));
            let far = cable.and_then(|cable| cable.ends.iter_mut().find(|end| !at_host(end)));
            if let Some(end) = far {
                (end.node, end.device) = (node.to_owned(), port.clone());
            }
        }
    }
}
