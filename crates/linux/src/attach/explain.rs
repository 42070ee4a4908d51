//! Explains why an agent is not attached, and names the remedy.

use crate::log::without_os_numbers;
use axon_fabric::model::{AgentSetup, Fabric};
use nix::errno::Errno;
use std::io::{self, ErrorKind};
use std::path::Path;

/// Explains why an agent is not attached.
pub(super) fn why(fabric: &Fabric, agent: &AgentSetup, socket: &Path, error: &io::Error) -> String {
    let (name, socket) = (&agent.name, socket.display());
    let switch = fabric.switches.get(agent.at.switch).map_or("its switch", |one| &one.name);
    let number = error.raw_os_error().map(Errno::from_raw);
    match number {
        Some(Errno::ENOENT | Errno::ENOTDIR | Errno::ECONNREFUSED) => format!(
            "agent {name}: nobody listens at {socket}; {switch} listens there once it runs: start \
             it with `axon switch FILE {switch}`, or give the socket that it has with --socket; \
             `axon up FILE` starts switches and agents together"
        ),
        Some(Errno::EACCES | Errno::EPERM) => format!(
            "agent {name}: this user may not connect to {socket}; expected root, or the user of \
             {switch}"
        ),
        // The error text is the reason that the switch returned.
        None if error.kind() == ErrorKind::ConnectionRefused => {
            format!("{switch} refuses agent {name} at {socket}: {error}")
        }
        _ => {
            let error = without_os_numbers(&error.to_string());
            format!("agent {name} is not attached at {socket}: {error}")
        }
    }
}
