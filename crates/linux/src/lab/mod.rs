//! The lab: a fabric on one machine, every node in a network namespace of its own, joined by
//! veth pairs that are named as in the fabric file.
//!
//! Works as root, and without root where the kernel allows user namespaces. Nothing in it
//! can be seen from the machine's own namespaces, see [`build`].
//!
//! What differs from real links: latency and loss of the fabric file are the simulator's
//! business and not emulated here; rates are. Hosts have IPv4 only: IPv6 is switched off in
//! them, because the fabric does not answer neighbour discovery.

pub mod build;
mod daemons;
pub mod deadlock;
mod enter;
mod interrupt;
mod neighbours;
mod node;
pub mod plan;
mod root;
mod start;
pub mod state;
mod supervisor;
pub mod table;

pub use deadlock::Deadlock;
pub use root::STATE_VARIABLE;
pub use start::{down, up};
pub use state::StateDir;
pub use supervisor::Progress;

use crate::status::ask;
use anyhow::{Context, Result, bail};
use axon_fabric::model::Fabric;
use axon_node::probe::{ProbePlan, ProbeReport};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// The first argument of a process that the lab has started from its own program.
const PART: &str = "lab-part";

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
}

/// A directory for the recordings of a lab, `s1.axrec` and so on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordInto {
    /// Made if it is not there, for this user only; it must not hold recordings yet.
    pub directory: PathBuf,
    /// Each recording ends before it is larger than this, in bytes.
    pub bytes_max: u64,
}

impl Default for UpOptions {
    fn default() -> UpOptions {
        UpOptions { timeout_ms: 30_000, capture: Vec::new(), router: None, record: None }
    }
}

/// What became of `up`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Switches that have not found the controller in time; the lab runs all the same.
    pub missing: Vec<String>,
    /// How many switches there are.
    pub switches: usize,
    /// How many hosts there are.
    pub hosts: usize,
    /// What the user should know about this machine.
    pub notes: Vec<String>,
}

/// A lab that runs.
#[derive(Clone, Debug)]
pub struct Lab {
    name: String,
    state: StateDir,
}

/// Does what the lab has started this process for, if it has. To be called first in `main`,
/// before any thread is started: the lab starts its supervisor, daemons and commands from
/// the program that calls [`up`].
pub fn part() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != PART {
        return None;
    }
    let rest: Vec<OsString> = arguments.collect();
    Some(run_part(&rest).unwrap_or_else(|error| {
        eprintln!("axon: {error:#}");
        ExitCode::FAILURE
    }))
}

fn run_part(arguments: &[OsString]) -> Result<ExitCode> {
    let text: Vec<&str> = arguments.iter().take(3).filter_map(|a| a.to_str()).collect();
    let done = |()| ExitCode::SUCCESS;
    match text[..] {
        ["launcher", state] => supervisor::launch(&StateDir::at(state)).map(done),
        ["supervisor", state] => supervisor::supervise(&StateDir::at(state)).map(done),
        ["node", state, node] => node::run(&StateDir::at(state), node, arguments.get(3)).map(done),
        ["enter", state, node] => enter::enter(&StateDir::at(state), node, &arguments[3..]),
        ["inside", node, ..] => enter::inside(node, &arguments[2..]),
        ["device", state, node] => match arguments.get(3..).unwrap_or(&[]) {
            [device, direction] => {
                let device = device.to_str().context("a device name is plain text")?;
                enter::set_device(&StateDir::at(state), node, device, direction == "up").map(done)
            }
            _ => bail!("device and direction are missing"),
        },
        _ => bail!("{PART} is for the lab's own processes"),
    }
}

impl Lab {
    /// The running lab `name`; without a name, the only one that runs.
    ///
    /// # Errors
    /// There is none, or the choice is not clear.
    pub fn open(name: Option<&str>) -> Result<Lab> {
        let name = match name {
            Some(name) => name.to_owned(),
            None => only(&Lab::running()?)?,
        };
        let state = StateDir::of(&name)?;
        if state.supervisor().is_none() {
            bail!("no lab {name} is up; start it with `axon up FILE`");
        }
        Ok(Lab { name, state })
    }

    /// The names of this user's labs that run.
    ///
    /// # Errors
    /// The directory of labs is not this user's alone.
    pub fn running() -> Result<Vec<String>> {
        let mut names = StateDir::all()?;
        names.retain(|name| StateDir::of(name).is_ok_and(|state| state.supervisor().is_some()));
        Ok(names)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where its logs and captures are.
    pub fn state(&self) -> &StateDir {
        &self.state
    }

    /// The command `argv` on `node`, ready to be spawned. It ends with the status of what it
    /// runs (128 + signal if that was killed), and what it runs ends with it.
    ///
    /// # Errors
    /// There is no such node; the error names those there are.
    pub fn command<A: AsRef<OsStr>>(&self, node: &str, argv: &[A]) -> Result<Command> {
        self.check_node(node)?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args([PART, "enter"]).arg(self.state.path()).arg(node).args(argv);
        Ok(command)
    }

    /// A node's name becomes part of paths, so it must be one of the plan's.
    fn check_node(&self, node: &str) -> Result<()> {
        let plan = plan::Plan::of(&self.state.load_fabric()?);
        if plan.nodes().any(|name| name == node) {
            return Ok(());
        }
        let nodes: Vec<&str> = plan.nodes().collect();
        bail!("lab {} has no node {node}; it has {}", self.name, nodes.join(" "))
    }

    /// Cuts or restores a link at one of its ends, by the name of the port: `s1-p0`. The
    /// other end sees its carrier go and come.
    ///
    /// # Errors
    /// There is no such port.
    pub fn set_port(&self, port: &str, up: bool) -> Result<()> {
        let (node, _) = axon_fabric::assemble::split_port(port)
            .with_context(|| format!("{port} is not a port; s1-p0 is one"))?;
        self.check_node(node)?;
        let output = Command::new(std::env::current_exe()?)
            .args([PART, "device"])
            .arg(self.state.path())
            .args([node, port, if up { "up" } else { "down" }])
            .output()?;
        if !output.status.success() {
            bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(())
    }

    /// Lets a switch send probes, and waits for them.
    ///
    /// # Errors
    /// There is no such switch, or it refuses the plan, or it is not running.
    pub fn probe(&self, switch: &str, plan: &ProbePlan) -> Result<ProbeReport> {
        self.check_node(switch)?;
        crate::probe::probe(&self.state.socket(switch), plan)
    }

    /// The fabric that runs here.
    ///
    /// # Errors
    /// Its file is gone.
    pub fn fabric(&self) -> Result<Fabric> {
        self.state.load_fabric()
    }

    /// What every daemon tells of itself, the controller first, then switches in the order of
    /// the file. A daemon that does not answer has `error` instead. `restarts` says how often
    /// it has been started again after a crash.
    ///
    /// # Errors
    /// The lab's fabric file is gone.
    pub fn status(&self) -> Result<Vec<Value>> {
        let plan = plan::Plan::of(&self.state.load_fabric()?);
        let restarts = self.state.restarts();
        let one = |node: &str| {
            let mut status = ask(&self.state.socket(node))
                .unwrap_or_else(|error| json!({ "name": node, "error": error.to_string() }));
            status["restarts"] = restarts.get(node).copied().unwrap_or(0).into();
            status
        };
        Ok(plan.daemons().map(one).collect())
    }

    /// Lossless buffers that have stopped one another for good, if there are any in what the
    /// daemons have just told ([`Lab::status`]); if there seem to be, they are asked once more.
    ///
    /// # Errors
    /// The lab's fabric file is gone; or none was found and a switch has not answered.
    pub fn deadlock(&self, told: &[Value]) -> Result<Option<Deadlock>> {
        let fabric = self.state.load_fabric()?;
        if deadlock::deadlock(&fabric, told, told).is_some() {
            let again = self.status()?;
            if let Some(found) = deadlock::deadlock(&fabric, told, &again) {
                return Ok(Some(found));
            }
            deadlock::check_answers(&fabric, &again)?;
        }
        deadlock::check_answers(&fabric, told)?;
        Ok(None)
    }
}

fn only(names: &[String]) -> Result<String> {
    match names {
        [] => bail!("no lab is up; start one with `axon up FILE`"),
        [name] => Ok(name.clone()),
        names => bail!("several labs are up, name one: {}", names.join(", ")),
    }
}
