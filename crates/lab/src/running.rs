//! Running lab, with commands on its nodes, its links, and its status.

use super::attached::{self, AttachedAgent};
use super::deadlock::{self, Deadlock};
use super::options::PART;
use super::state::StateDir;
use anyhow::{Context, Result, bail};
use axon_fabric::model::{Fabric, Network};
use axon_linux::rekey::rekey;
use axon_linux::status::NodeStatus;
use axon_node::Keys;
use axon_node::probe::{ProbePlan, ProbeReport};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

/// Running lab.
#[derive(Clone, Debug)]
pub struct Lab {
    name: String,
    state: StateDir,
}

impl Lab {
    /// Returns the running lab `name` or, without a name, the only one that is running.
    ///
    /// # Errors
    /// There is no such lab, or the choice is ambiguous.
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

    /// Returns the lab `name`, whose supervisor has just reported that it is running.
    pub(super) const fn started(name: String, state: StateDir) -> Lab {
        Lab { name, state }
    }

    /// Returns the names of this user's running labs.
    ///
    /// # Errors
    /// The directory of labs is not private to this user.
    pub(crate) fn running() -> Result<Vec<String>> {
        let mut names = StateDir::all()?;
        names.retain(|name| StateDir::of(name).is_ok_and(|state| state.supervisor().is_some()));
        Ok(names)
    }

    /// Returns the name of the lab.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the directory that holds logs and captures.
    pub fn state(&self) -> &StateDir {
        &self.state
    }

    /// Returns the command `argv` on `node`, ready to be spawned. The command exits with the status
    /// of `argv`, or with 128 plus the signal that killed it. When the command ends, `argv` ends
    /// too.
    ///
    /// # Errors
    /// There is no such node. The error lists the existing ones.
    pub fn command<A: AsRef<OsStr>>(&self, node: &str, argv: &[A]) -> Result<Command> {
        self.check_node(node)?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args([PART, "enter"]).arg(self.state.path()).arg(node).args(argv);
        Ok(command)
    }

    /// Checks that the plan contains a node, because the name becomes part of paths.
    fn check_node(&self, node: &str) -> Result<()> {
        let plan = self.state.load_plan()?;
        if plan.nodes().any(|name| name == node) {
            return Ok(());
        }
        if let Some(uplink) = plan.uplinks.iter().find(|uplink| uplink.name == node) {
            bail!(
                "{node} is what is behind {}, the device of an uplink: nothing there is the lab's; \
                 expected another node",
                uplink.device
            );
        }
        let nodes: Vec<&str> = plan.nodes().collect();
        bail!("lab {} has no node {node}; it has {}", self.name, nodes.join(" "))
    }

    /// Takes one end of a link down or restores it, given the name of its port, such as `s1-p0`.
    /// The other end sees the change of carrier.
    ///
    /// # Errors
    /// There is no such port, the lab has ended, or another process holds its lock for too long.
    pub fn set_port(&self, port: &str, up: bool) -> Result<()> {
        let (node, _) = axon_fabric::assemble::split_port(port)
            .with_context(|| format!("{port} is not a port; s1-p0 is one"))?;
        let _changing = self.change()?;
        self.check_node(node)?;
        self.part("device", &[node, port, if up { "up" } else { "down" }])
    }

    /// Makes a switch send probes, and waits for the report.
    ///
    /// # Errors
    /// No such switch, the switch refuses the plan, or it is not running.
    pub fn probe(&self, switch: &str, plan: &ProbePlan) -> Result<ProbeReport> {
        self.check_node(switch)?;
        no_program(&self.state.load_fabric()?, "no probes: programmable switches send none")?;
        axon_linux::probe::probe(&self.state.socket(switch), plan)
    }

    /// Returns the status socket of a programmable switch, for [`axon_linux::tables`].
    ///
    /// # Errors
    /// There is no such switch, or the switches in this lab have no program.
    pub fn tables_of(&self, switch: &str) -> Result<PathBuf> {
        let fabric = self.state.load_fabric()?;
        if fabric.network != Network::Program {
            bail!(
                "the switches of lab {} have no tables to show or set; expected a fabric with \
                 `program`",
                self.name
            );
        }
        if axon_fabric::assemble::switch_index(&fabric, switch).is_none() {
            let all: Vec<&str> = fabric.switches.iter().map(|one| one.name.as_str()).collect();
            bail!("lab {} has no switch {switch}; it has {}", self.name, all.join(" "));
        }
        Ok(self.state.socket(switch))
    }

    /// Sends these keys to the controller and every switch. The results are independent. If one
    /// node is not running, the others still get the keys.
    ///
    /// # Errors
    /// The lab's fabric file is gone.
    pub fn rekey(&self, keys: &Keys) -> Result<Vec<(String, Result<()>)>> {
        let fabric = self.state.load_fabric()?;
        no_program(&fabric, "no keys: programmable switches seal no messages")?;
        let controller = (!fabric.is_static()).then(|| fabric.controller.name.clone());
        let switches = fabric.switches.into_iter().map(|switch| switch.name);
        let nodes = controller.into_iter().chain(switches);
        let one = |node: String| {
            let outcome = rekey(&self.state.socket(&node), keys);
            (node, outcome)
        };
        Ok(nodes.map(one).collect())
    }

    /// Returns the fabric of the lab.
    ///
    /// # Errors
    /// The fabric file is gone.
    pub fn fabric(&self) -> Result<Fabric> {
        self.state.load_fabric()
    }

    /// Returns the status of every daemon: first the controller, then the switches in the order of
    /// the file, then the hosts with their own agent.
    ///
    /// # Errors
    /// The lab's fabric file is gone.
    pub fn status(&self) -> Result<Vec<NodeStatus>> {
        let plan = self.state.load_plan()?;
        let restarts = self.state.restarts();
        let one = |node: &str| {
            let restarts = restarts.get(node).copied().unwrap_or(0);
            NodeStatus::ask(node, &self.state.socket(node), restarts)
        };
        Ok(plan.daemons().map(one).collect())
    }

    /// Returns the agents of the fabric file, in its order. Each has its attachment, according to a
    /// recent status ([`Lab::status`]), and the counters of the agent and its port.
    ///
    /// # Errors
    /// The lab's fabric file is gone.
    pub fn attached(&self, status: &[NodeStatus]) -> Result<Vec<AttachedAgent>> {
        let plan = self.state.load_plan()?;
        Ok(attached::status(&plan.attached, &self.state, status))
    }

    /// Returns a cycle of lossless buffers that wait for each other forever, if there is one
    /// according to a recent status ([`Lab::status`]). If a cycle is suspected, all daemons are
    /// queried once more.
    ///
    /// # Errors
    /// The lab's fabric file is gone. Or no cycle was found and a switch has not answered.
    pub fn deadlock(&self, status: &[NodeStatus]) -> Result<Option<Deadlock>> {
        let fabric = self.state.load_fabric()?;
        if deadlock::deadlock(&fabric, status, status).is_some() {
            let again = self.status()?;
            if let Some(found) = deadlock::deadlock(&fabric, status, &again) {
                return Ok(Some(found));
            }
            deadlock::check_answers(&fabric, &again)?;
        }
        deadlock::check_answers(&fabric, status)?;
        Ok(None)
    }
}

/// Refuses an operation that a fabric of programmable switches does not support.
fn no_program(fabric: &Fabric, lacks: &str) -> Result<()> {
    if fabric.network == Network::Program {
        bail!("lab {} has {lacks}; expected a fabric without `program`", fabric.name);
    }
    Ok(())
}

/// Returns the only one of these names.
///
/// # Errors
/// There is none, or there are several.
pub(super) fn only(names: &[String]) -> Result<String> {
    match names {
        [] => bail!("no lab is up; start one with `axon up FILE`"),
        [name] => Ok(name.clone()),
        names => bail!("several labs are up; name one with --lab: {}", names.join(", ")),
    }
}
