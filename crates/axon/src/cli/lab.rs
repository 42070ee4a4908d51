//! `--lab NAME`: the lab that a command is for, in every command that is for one.

use anyhow::{Result, bail};
use axon_fabric::model::{Fabric, Network};
use axon_linux::lab::Lab;
use axon_linux::status::NodeStatus;

/// The choice of a lab.
#[derive(Debug, Default, clap::Args)]
pub struct Choice {
    /// Name of the lab; needed if more than one is up
    #[arg(long, value_name = "NAME")]
    lab: Option<String>,
}

impl Choice {
    /// The name that was given.
    pub fn name(&self) -> Option<&str> {
        self.lab.as_deref()
    }

    /// The lab, which runs.
    ///
    /// # Errors
    /// It does not; or none was named, and none or several run.
    pub fn open(&self) -> Result<Lab> {
        Lab::open(self.name())
    }

    /// The fabric of a lab and the status of its daemons, for a command that shows what the
    /// controller knows.
    ///
    /// # Errors
    /// There is no such lab, it has no controller, or that does not answer.
    pub fn seen(&self) -> Result<Seen> {
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

/// What a lab is, and what its daemons say.
pub struct Seen {
    /// The fabric file.
    pub fabric: Fabric,
    /// What every daemon has answered.
    pub status: Vec<NodeStatus>,
}
