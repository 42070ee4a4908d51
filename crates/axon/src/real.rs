//! A fabric file for real ports.

use anyhow::Result;
use axon_fabric::model::Fabric;
use std::path::Path;

/// Reads a fabric file, and warns of keys that only the simulator acts on and of keys with an old
/// name.
///
/// # Errors
/// The file is wrong, or its network runs in the simulator only.
pub fn load(file: &Path) -> Result<Fabric> {
    let (fabric, warnings) = axon_fabric::load_real(file)?;
    warnings.iter().for_each(|line| axon_linux::log::line(format_args!("warning: {line}")));
    Ok(fabric)
}
