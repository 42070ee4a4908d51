//! `--lab NAME`: the lab of a command, for every command that needs one.

use anyhow::{Result, bail};
use axon_fabric::model::{Fabric, Network};
use axon_lab::Lab;
use axon_linux::status::NodeStatus;

/// Choice of a lab.
#[derive(Debug, Default, clap::Args)]
pub struct Choice {
    /// Name of the lab; needed if more than one is up
    #[arg(long, value_name = "NAME")]
    lab: Option<String>,
}

impl Choice {
    /// Returns the given name.
    pub(crate) fn name(&self) -> Option<&str> {
        self.lab.as_deref()
    }

    /// Opens the running lab.
    ///
    /// # Errors
    /// The lab is not running; or none was named, and none or several are running.
    pub(crate) fn open(&self) -> Result<Lab> {
        Lab::open(self.name())
    }

    /// Returns the fabric of a lab and the status of its daemons, for a command that shows the
    /// controller's view.
    ///
    /// # Errors
    /// There is no such lab, it has no controller, or that does not answer.
    pub(crate) fn seen(&self) -> Result<Seen> {
        let lab = self.open()?;
        let fabric = lab.fabric()?;
        if fabric.network != Network::Axon {
            bail!(
                "the switches of lab {} have no controller that knows hosts and routes; `axon \
                 table show` has their tables",
                lab.name()
            );
        }
        let status = lab.status()?;
        let controller = status.iter().find(|one| one.name() == fabric.controller.name);
        if fabric.has_controller() && controller.is_none_or(|one| one.status().is_none()) {
            bail!("{} does not answer; `axon status` may say why", fabric.controller.name);
        }
        Ok(Seen { fabric, status })
    }
}

/// Fabric of a lab, and the status of its daemons.
pub struct Seen {
    /// Fabric of the lab's file.
    pub fabric: Fabric,
    /// Status of every daemon.
    pub status: Vec<NodeStatus>,
}
