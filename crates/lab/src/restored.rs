//! Text output for state that a controller has restored from its previous incarnation.

use axon_linux::status::NodeStatus;
use axon_node::telemetry::{NodeTelemetry, Restored};

/// Formats a line for each controller that started with a store or with routes at the edges.
pub fn text(status: &[NodeStatus]) -> String {
    let line = |status: &NodeStatus| match status.node()? {
        NodeTelemetry::Controller(controller) if controller.restored != Restored::default() => {
            let Restored {
                hosts,
                hosts_provisional,
                leases,
                refused,
                routes_pending,
                routes_kept,
                routes_moved,
                routes_removed,
            } = controller.restored;
            let provisional = some(hosts_provisional, " not reported again yet");
            let refused = some(refused, " given up");
            let pending = some(routes_pending, " undecided");
            Some(format!(
                "{}: from its store {hosts} hosts{provisional}, {leases} addresses{refused}; \
                 routes of edges: {routes_kept} kept, {routes_moved} moved, {routes_removed} \
                 removed{pending}\n",
                status.name()
            ))
        }
        _ => None,
    };
    status.iter().filter_map(line).collect()
}

/// Formats a count such as `, 3 undecided`. Returns an empty text for 0.
fn some(count: u64, what: &str) -> String {
    if count == 0 { String::new() } else { format!(", {count}{what}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use axon_linux::status::Answer;

    #[test]
    fn a_controller_that_came_back_says_what_it_has_from_before_and_a_new_one_nothing() {
        let mut of = testing::status("c1", testing::switch(0));
        let mut controller = testing::controller();
        let mut shown = |controller: &axon_node::telemetry::ControllerTelemetry| {
            let Answer::Status(status) = &mut of.answer else { unreachable!() };
            status.node = NodeTelemetry::Controller(Box::new(controller.clone()));
            text(std::slice::from_ref(&of))
        };
        assert_eq!(shown(&controller), "");
        controller.restored =
            Restored { hosts: 6, leases: 5, routes_kept: 4, ..Restored::default() };
        let line = "c1: from its store 6 hosts, 5 addresses; routes of edges: 4 kept, 0 moved, 0 \
                    removed\n";
        assert_eq!(shown(&controller), line);
        controller.restored.hosts_provisional = 2;
        controller.restored.routes_pending = 3;
        let text = shown(&controller);
        assert!(text.contains("6 hosts, 2 not reported again yet"), "{text}");
        assert!(text.ends_with("0 removed, 3 undecided\n"), "{text}");
    }
}
