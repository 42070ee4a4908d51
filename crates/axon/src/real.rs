//! A fabric file for real ports.

use anyhow::{Result, bail};
use axon_fabric::model::Fabric;
use std::path::Path;

/// What a daemon on a real machine may be started with although it is dangerous.
#[derive(clap::Args)]
pub struct Dangers {
    /// Run with the published lab key. Anyone who can send frames to a port can then pose as the
    /// controller
    #[arg(long)]
    insecure_lab_key: bool,
}

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

/// The same for a daemon on a real machine, where the key has to be a secret.
///
/// # Errors
/// As [`load`], and if the key is the published lab key and nobody has allowed that.
pub fn load_for_daemon(file: &Path, dangers: &Dangers) -> Result<Fabric> {
    let fabric = load(file)?;
    if axon_fabric::has_lab_key(&fabric.keys) {
        let what = "the fabric's key is the published lab key, which protects nothing";
        if !dangers.insecure_lab_key {
            bail!(
                "{}: {what}; expected a key of its own: `axon key fabric.key` makes one, and \
                 `key_file: fabric.key` in the fabric file uses it (or --insecure-lab-key)",
                file.display()
            );
        }
        crate::say::note!("warning: {what}");
    }
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
