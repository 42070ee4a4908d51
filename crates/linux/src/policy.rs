//! Policy changes at a running controller. The policy determines the hosts that may reach each
//! other.

use crate::{request, status};
use anyhow::{Result, anyhow, bail};
use axon_node::telemetry::NodeTelemetry;
use axon_node::{Done, PolicyChange, PolicyDone, Request};
use axon_wire::NodeId;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Interval at which the status is polled.
const LOOK: Duration = Duration::from_millis(10);
/// Time limit for switches to acknowledge that they have removed routes.
const PATIENCE: Duration = Duration::from_secs(2);

/// Completed policy change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Reply of the controller.
    pub done: PolicyDone,
    /// Switches that have not acknowledged the removal of their routes within two seconds.
    pub outstanding: Vec<NodeId>,
}

/// Changes the policy of every switch in a fabric without a controller, over its status socket.
/// Each switch has removed its routes when it answers. All switches are queried, even after errors.
///
/// # Errors
/// A switch refuses the change or does not answer. The error gives the name of the switch, its
/// error, and the number of changed switches.
pub fn change_each(sockets: &[(String, PathBuf)], change: PolicyChange) -> Result<Changed> {
    let mut all: Option<PolicyDone> = None;
    let (mut changed, mut failed) = (0, None);
    for (name, socket) in sockets {
        match request::ask(socket, Request::Policy(change)) {
            Ok(Done::Policy(done)) => {
                changed += 1;
                all = Some(match all {
                    None => done,
                    Some(mut all) => {
                        all.routes_removed += done.routes_removed;
                        all.switches.extend(done.switches);
                        all
                    }
                });
            }
            Ok(done) => failed = Some((name, anyhow!("{done:?} is no answer to this"))),
            Err(error) => failed = Some((name, error)),
        }
    }
    match (all, failed) {
        (_, Some((name, error))) => Err(error.context(format!(
            "{name} has not changed; {changed} of {} switches have",
            sockets.len()
        ))),
        (Some(done), None) => Ok(Changed { done, outstanding: Vec::new() }),
        (None, None) => bail!("there is no switch"),
    }
}

/// Changes the policy of the controller whose status socket is `socket`, and waits up to two
/// seconds until all switches have acknowledged the removal of their routes.
///
/// # Errors
/// No daemon accepts commands there, the daemon is not a controller, or it refuses the change.
pub fn change(socket: &Path, change: PolicyChange) -> Result<Changed> {
    let done = match request::ask(socket, Request::Policy(change))? {
        Done::Policy(done) => done,
        done => bail!("{done:?} is no answer to this"),
    };
    let limit = Instant::now() + PATIENCE;
    loop {
        let status = status::ask(socket)?;
        let NodeTelemetry::Controller(controller) = &status.node else {
            if status.node.known_hosts().is_some() {
                // This is a switch without a controller, so it has already removed its routes.
                return Ok(Changed { done, outstanding: Vec::new() });
            }
            bail!("{} is no controller", status.name);
        };
        let of_this = |node: &NodeId| done.switches.contains(node);
        let outstanding = controller.policy.outstanding.iter().copied().filter(of_this);
        let outstanding: Vec<NodeId> = outstanding.collect();
        if outstanding.is_empty() || Instant::now() > limit {
            return Ok(Changed { done, outstanding });
        }
        std::thread::sleep(LOOK);
    }
}
