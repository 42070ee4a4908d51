//! Code shared by the commands that change which hosts may reach each other.

use super::{file, lab, say};
use anyhow::{Result, anyhow};
use axon_fabric::Problem;
use axon_fabric::assemble::switch_id;
use axon_fabric::model::Fabric;
use axon_linux::policy::{Changed, change, change_each};
use axon_node::{HostPair, PolicyChange, Subject};
use axon_wire::{MacAddr, NodeId};
use std::path::PathBuf;
use std::process::ExitCode;

/// Controller whose policy changes.
#[derive(Debug, clap::Args)]
pub struct Target {
    #[command(flatten)]
    lab: lab::Choice,
    /// Status socket of a controller, or of one switch where there is none, as in its
    /// --status-socket, in place of a lab
    #[arg(long, value_name = "PATH", requires = "fabric", conflicts_with = "lab")]
    socket: Option<PathBuf>,
    /// With --socket: fabric file, which has the names of hosts and ports
    #[arg(long, value_name = "FILE", requires = "socket")]
    fabric: Option<PathBuf>,
}

/// Nodes that receive the request.
enum Asked {
    /// A controller, or one switch of a fabric without one.
    One(PathBuf),
    /// All switches, by name.
    Each(Vec<(String, PathBuf)>),
}

impl Asked {
    fn change(&self, asked: PolicyChange) -> Result<Changed> {
        match self {
            Asked::One(socket) => change(socket, asked),
            Asked::Each(switches) => change_each(switches, asked),
        }
    }
}

impl Target {
    /// Returns the fabric, and the sockets of the nodes that receive the request: the controller,
    /// or every switch of a lab without one.
    fn open(&self) -> Result<(Asked, Fabric)> {
        if let (Some(socket), Some(fabric)) = (&self.socket, &self.fabric) {
            return Ok((Asked::One(socket.clone()), file::load(fabric)?));
        }
        let lab = self.lab.open()?;
        let fabric = lab.fabric()?;
        let socket = |name: &str| lab.state().socket(name);
        if fabric.is_static() {
            let switches = fabric.switches.iter();
            let each = switches.map(|switch| (switch.name.clone(), socket(&switch.name)));
            return Ok((Asked::Each(each.collect()), fabric));
        }
        Ok((Asked::One(socket(&fabric.controller.name)), fabric))
    }

    /// Allows or denies two hosts to reach each other, and prints the result.
    ///
    /// # Errors
    /// There is no such lab, controller or host, or the controller refuses the change.
    pub(crate) fn pair(&self, names: [&str; 2], allowed: bool) -> Result<ExitCode> {
        let (socket, fabric) = self.open()?;
        let [a, b] = [host(&fabric, names[0])?, host(&fabric, names[1])?];
        let changed = socket.change(PolicyChange::Pair(HostPair::of(a, b), allowed))?;
        let [a, b] = names;
        let state = match (allowed, changed.done.reach) {
            (true, true) => format!("{a} and {b} may reach each other"),
            (true, false) => {
                format!("{a} and {b} may reach each other when neither is in quarantine any more")
            }
            (false, _) => format!("{a} and {b} may not reach each other"),
        };
        answer(&state, &changed, &fabric)
    }

    /// Starts or ends the quarantine of a host or a port, and prints the result.
    ///
    /// # Errors
    /// As for [`Target::pair`].
    pub(crate) fn quarantine(&self, name: &str, on: bool) -> Result<ExitCode> {
        let (socket, fabric) = self.open()?;
        let subject = subject(&fabric, name)?;
        let changed = socket.change(PolicyChange::Quarantine(subject, on))?;
        let not = if on { "" } else { "not " };
        answer(&format!("{name} is {not}in quarantine"), &changed, &fabric)
    }
}

fn subject(fabric: &Fabric, name: &str) -> Result<Subject> {
    axon_fabric::isolation::subject(fabric, name)
        .map_err(|Problem { what, expected, .. }| anyhow!("{what}; expected {expected}"))
}

fn host(fabric: &Fabric, name: &str) -> Result<MacAddr> {
    match subject(fabric, name)? {
        Subject::Mac(mac) => Ok(mac),
        Subject::Port(..) => Err(anyhow!("{name} is a port; expected a host or a MAC")),
    }
}

/// Prints the new state. The exit status is failure while switches may still have routes.
fn answer(state: &str, changed: &Changed, fabric: &Fabric) -> Result<ExitCode> {
    let names = |nodes: &[NodeId]| {
        let name = |node: &NodeId| {
            let mut switches = (0..).zip(&fabric.switches);
            let found = switches.find(|(index, _)| switch_id(*index) == *node);
            found.map_or(node.to_string(), |(_, switch)| switch.name.clone())
        };
        nodes.iter().map(name).collect::<Vec<_>>().join(", ")
    };
    let removed = match changed.done.routes_removed {
        0 => String::new(),
        1 => format!(": 1 route removed at {}", names(&changed.done.switches)),
        count => format!(": {count} routes removed at {}", names(&changed.done.switches)),
    };
    say::print(&format!("{state}{removed}\n"))?;
    if !changed.outstanding.is_empty() {
        let those = names(&changed.outstanding);
        say::note!("{those}: the removal is not acknowledged yet; frames may pass until it is");
    }
    Ok(say::answer(changed.outstanding.is_empty()))
}
