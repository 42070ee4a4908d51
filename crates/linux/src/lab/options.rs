//! How a lab is asked for, and what became of that.

use crate::choice::{DataplaneChoice, choose};
use crate::daemon::{AGENTS, RECORDED, agents_at};
use crate::machine::Machine;
use axon_fabric::Problem;
use axon_fabric::model::Fabric;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The first argument of a process that the lab has started from its own program.
pub(super) const PART: &str = "lab-part";

/// How to start a lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpOptions {
    /// How long switches may take to find the controller, in milliseconds.
    pub timeout_ms: u64,
    /// Switches whose ports are captured, to `s1.pcapng` in the lab's directory.
    pub capture: Vec<String>,
    /// The name of the router, if it is not to be the file's.
    pub router: Option<String>,
    /// Where every switch, the controller and the agents of hosts are recorded, if anywhere.
    pub record: Option<RecordInto>,
    /// Whether hosts get no address but a fixed one of the file, such as for DHCP clients.
    pub bare: bool,
    /// What this machine allows of what the kernel's data planes need; it is tried if `None`.
    pub machine: Option<Machine>,
    /// Whether Linux bridges take the place of switches, for comparison: no daemon runs.
    pub bridges: bool,
}

impl UpOptions {
    /// What carries the frames of each switch of `fabric`, by its index.
    ///
    /// # Errors
    /// The file names a data plane that lacks what the file needs, or that this machine or these
    /// options do not allow.
    pub(super) fn dataplanes(&self, fabric: &Fabric) -> Result<Vec<DataplaneChoice>, Problem> {
        let machine = self.machine.clone().unwrap_or_default();
        let chosen = fabric.switches.iter().enumerate().map(|(index, switch)| {
            if agents_at(fabric, index).next().is_some() {
                choose(fabric, index, &Machine::without(AGENTS))
            } else if self.record.is_some() {
                choose(fabric, index, &Machine::without(RECORDED))
            } else if self.capture.contains(&switch.name) {
                choose(fabric, index, &machine.captured())
            } else {
                choose(fabric, index, &machine)
            }
        });
        chosen.collect()
    }
}

/// A directory for the recordings of a lab, `s1.axrec` and so on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordInto {
    /// Made if it is not there, for this user only; it must not hold recordings yet.
    pub directory: PathBuf,
    /// The recordings of each node end before they are larger than this, in bytes.
    pub bytes_max: u64,
}

impl Default for UpOptions {
    fn default() -> UpOptions {
        UpOptions {
            timeout_ms: 30_000,
            capture: Vec::new(),
            router: None,
            record: None,
            bare: false,
            machine: None,
            bridges: false,
        }
    }
}

/// What became of `up`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Switches that have not found the controller in time; the lab runs all the same.
    pub missing: Vec<String>,
    /// Hosts whose address the controller has not learned in time; the lab runs all the same.
    pub unknown: Vec<String>,
    /// Agents that were not attached to their switches in time; the lab runs all the same.
    pub detached: Vec<String>,
    /// How many switches there are.
    pub switches: usize,
    /// How many hosts there are.
    pub hosts: usize,
    /// What the user should know about this machine.
    pub notes: Vec<String>,
}
