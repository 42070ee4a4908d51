//! Options of a lab, and the result of starting it.

use axon_fabric::Problem;
use axon_fabric::model::Fabric;
use axon_linux::daemon::{AGENTS, RECORDED, agents_at};
use axon_linux::dataplane_choice::{DataplaneChoice, check_recorded, choose};
use axon_linux::machine::Machine;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// First command-line argument of a process that the lab has started from its own program.
pub(super) const PART: &str = "lab-part";

/// Options for starting a lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpOptions {
    /// Time limit for switches to find the controller, in milliseconds.
    pub timeout_ms: u64,
    /// Switches whose ports are captured, to `s1.pcapng` in the lab's directory.
    pub capture: Vec<String>,
    /// Name of the router, if it is not that of the file.
    pub router: Option<String>,
    /// Recording options for every switch, the controller and the agents of hosts; none if absent.
    pub record: Option<RecordInto>,
    /// True if hosts get only the fixed addresses of the file, for example for DHCP clients.
    pub bare: bool,
    /// Support of this machine for the kernel's data planes; probed if `None`.
    pub machine: Option<Machine>,
    /// True if Linux bridges replace switches, for comparison: no daemon runs.
    pub bridges: bool,
}

impl UpOptions {
    /// Returns the data plane of each switch in `fabric`, by switch index.
    ///
    /// # Errors
    /// The file names a data plane that lacks a capability that the file needs, or one that this
    /// machine or these options do not allow.
    pub(super) fn dataplanes(&self, fabric: &Fabric) -> Result<Vec<DataplaneChoice>, Problem> {
        let machine = self.machine.clone().unwrap_or_default();
        let chosen = fabric.switches.iter().enumerate().map(|(index, switch)| {
            let choice = if agents_at(fabric, index).next().is_some() {
                choose(fabric, index, &Machine::without(AGENTS))
            } else if self.record.is_some() {
                choose(fabric, index, &Machine::without(RECORDED))
            } else if self.capture.contains(&switch.name) {
                choose(fabric, index, &machine.captured())
            } else {
                choose(fabric, index, &machine)
            }?;
            if self.record.is_some() {
                check_recorded(fabric, index, &choice)?;
            }
            Ok(choice)
        });
        chosen.collect()
    }
}

/// Directory for the recordings of a lab, `s1.axrec` and so on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordInto {
    /// Directory, created if it is missing, for this user only; must not contain recordings yet.
    pub directory: PathBuf,
    /// Maximum total size of the recordings of each node, in bytes.
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

/// Result of `up`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Switches that have not found the controller in time; the lab runs nevertheless.
    pub missing: Vec<String>,
    /// Hosts whose address the controller has not learned in time; the lab runs nevertheless.
    pub unknown: Vec<String>,
    /// Agents that were not attached to their switches in time; the lab runs nevertheless.
    pub detached: Vec<String>,
    /// Number of switches.
    pub switches: usize,
    /// Number of hosts.
    pub hosts: usize,
    /// Messages for the user about this machine.
    pub notes: Vec<String>,
}
