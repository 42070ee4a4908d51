//! `--lab NAME`: the lab that a command is for, in every command that is for one.

use anyhow::Result;
use axon_linux::lab::Lab;

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
}
