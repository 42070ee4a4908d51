//! A fabric file for real ports.

use anyhow::Result;
use axon_fabric::model::Fabric;
use std::path::Path;

/// Reads it, and warns of what in it only the simulator heeds.
///
/// # Errors
/// It is wrong, or its network is in the simulator only.
pub fn load(file: &Path) -> Result<Fabric> {
    let (fabric, unheeded) = axon_fabric::load_real(file)?;
    unheeded.iter().for_each(|line| eprintln!("warning: {line}"));
    Ok(fabric)
}
