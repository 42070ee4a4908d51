//! Reads a fabric file for a verb of the CLI, and prints the warnings about it.

use axon_fabric::LoadError;
use axon_fabric::model::Fabric;
use std::path::Path;

/// Reads a fabric file, and warns of keys with an old name.
///
/// # Errors
/// As [`axon_fabric::load`].
pub fn load(file: &Path) -> Result<Fabric, LoadError> {
    let (fabric, warnings) = axon_fabric::load_with_warnings(file)?;
    warnings.iter().for_each(|line| crate::cli::say::note!("warning: {line}"));
    Ok(fabric)
}
