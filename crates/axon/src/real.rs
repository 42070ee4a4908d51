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
    warnings.iter().for_each(|line| crate::say::note!("warning: {line}"));
    Ok(fabric)
}

/// Says which ports of a switch or the controller are not there yet: it runs all the same, and
/// takes them when they come.
pub fn wait_for_ports(fabric: &Fabric, name: &str, taps: &[String]) {
    let missing = axon_linux::daemon::missing_ports(fabric, name, taps);
    if let Some(first) = missing.first() {
        crate::say::note!(
            "{name} waits for network interfaces that are not there: {}; give each its name, as \
             with `ip link set eth1 name {first}`",
            missing.join(", ")
        );
    }
}
