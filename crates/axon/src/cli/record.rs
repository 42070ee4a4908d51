//! Options of a recording, shared by every daemon.

use crate::cli::output::is_standard;
use anyhow::ensure;
use axon_fabric::FabricText;
use axon_linux::record::{RECORD_BYTES_MAX, RecordOptions};
use std::path::{Path, PathBuf};

/// Recording of every input of the node, for `axon replay`.
#[derive(clap::Args)]
#[group(id = "recording", multiple = true)]
pub struct Arguments {
    /// Record every input of this node to FILE, for `axon replay`; if it exists, to FILE with a
    /// number. It contains the frames of hosts and the fabric's key, and only its owner may read it
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// End the recording before the file, with those of earlier runs that have its name and a
    /// number, is larger than this, such as 512MiB; 1GiB by default
    #[arg(long, value_name = "SIZE", requires = "record", value_parser = size)]
    record_bytes_max: Option<u64>,
}

/// Parses a number of bytes.
pub fn size(text: &str) -> Result<u64, String> {
    let bytes = axon_fabric::units::bytes(text).map(|bytes| bytes.0);
    bytes.map_err(|expected| format!("expected {expected}"))
}

impl Arguments {
    /// Returns the options of the recording, if one is requested. `fabric` is the node's fabric
    /// file.
    pub(crate) fn options(&self, fabric: Option<&Path>) -> anyhow::Result<Option<RecordOptions>> {
        let Some(file) = &self.record else {
            return Ok(None);
        };
        ensure!(!is_standard(file), "--record -: it may grow to several files; expected a name");
        let fabric = fabric.map(|file| FabricText::read(file, None)).transpose()?;
        let bytes_max = self.record_bytes_max.unwrap_or(RECORD_BYTES_MAX);
        Ok(Some(RecordOptions { file: file.clone(), bytes_max, fabric }))
    }
}
