//! A data plane that outlives the node of its switch, as the kernel's does. It forwards by its
//! tables, and frames for the node are lost.

use crate::engine::dataplane::SwitchPlane;
use axon_node::{Action, Awaited, Dataplane, Drop, Input, Node, Shortcuts};
use axon_wire::Time;

/// Data plane without a node.
pub struct Headless {
    pub(crate) plane: SwitchPlane,
}

impl Node for Headless {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        let mut actions = Vec::new();
        self.plane.handle(now, input, &mut actions);
        for action in actions {
            match action {
                Action::Punt { ingress, frame, .. } => {
                    let reason = Drop::PowerLost;
                    self.plane.count_drop(ingress, reason);
                    out.push(Action::Dropped { ingress, reason, frame });
                }
                Action::RouteChanged(_) | Action::Lost => {}
                action => out.push(action),
            }
        }
    }

    fn deadline(&self) -> Option<Time> {
        self.plane.deadline()
    }
}

impl Shortcuts for Headless {
    fn awaited(&mut self) -> Awaited {
        self.plane.awaited()
    }
}
