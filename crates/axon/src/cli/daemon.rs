//! Options of every daemon.

use super::{capture, record};
use anyhow::Result;
use axon_linux::daemon::DaemonOptions;
use std::path::{Path, PathBuf};

/// Status socket, capture and recording of a daemon.
#[derive(clap::Args)]
pub struct DaemonArguments {
    /// Serve the status on this Unix socket, and take commands on one beside it whose name ends in
    /// .ask
    #[arg(long, value_name = "PATH")]
    status_socket: Option<PathBuf>,
    #[command(flatten)]
    capture: capture::Arguments,
    #[command(flatten)]
    record: record::Arguments,
}

impl DaemonArguments {
    /// Returns the options of a daemon without a state file or TAP devices. A recording contains
    /// the text of `fabric`, if there is a fabric file.
    ///
    /// # Errors
    /// The fabric file cannot be read, or the recording would go to standard output.
    pub(crate) fn options(&self, fabric: Option<&Path>) -> Result<DaemonOptions> {
        Ok(DaemonOptions {
            status_socket: self.status_socket.clone(),
            capture: self.capture.options(),
            record: self.record.options(fabric)?,
            ..DaemonOptions::default()
        })
    }
}
