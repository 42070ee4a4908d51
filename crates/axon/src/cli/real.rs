//! A fabric file for real ports.

use anyhow::{Result, bail};
use axon_fabric::Problem;
use axon_fabric::model::{Fabric, Network};
use axon_node::Secret;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Dangerous options of a daemon on a real machine.
#[derive(clap::Args)]
pub struct Dangers {
    /// Run with the published lab key. Anyone who can send frames to a port can then pose as the
    /// controller
    #[arg(long)]
    insecure_lab_key: bool,
}

/// Reads a fabric file, and warns of keys that only the simulator acts on, of renamed keys, and of
/// a key file that others can read.
///
/// # Errors
/// The file is wrong, or its network runs in the simulator only.
pub fn load(file: &Path) -> Result<Fabric> {
    let (fabric, mut warnings) = read(file)?;
    warnings.extend(exposed_key_file(&fabric));
    warn(&warnings);
    Ok(fabric)
}

/// Reads a fabric file by its path, which processes that are started with it receive.
fn read(file: &Path) -> Result<(Fabric, Vec<String>)> {
    if file == Path::new("-") {
        bail!(
            "-: a daemon reads its fabric file by name, not from standard input; expected a path"
        );
    }
    Ok(axon_fabric::load_real(file)?)
}

fn warn(warnings: &[String]) {
    warnings.iter().for_each(|line| crate::cli::say::note!("warning: {line}"));
}

/// Returns a description of unsafe permissions of the key file, if any.
pub(crate) fn exposed_key_file(fabric: &Fabric) -> Option<String> {
    let path = fabric.key_file.as_ref()?;
    // The file has just been read: if it is gone since, there is nothing to expose.
    let mode = std::fs::metadata(path).ok()?.permissions().mode() & 0o777;
    let path = path.display();
    (mode & 0o077 != 0).then(|| {
        format!(
            "{path}: its mode is {mode:04o}, so others have access to the keys in it; expected \
             0600: `chmod 600 {path}`"
        )
    })
}

/// Reads a fabric file for a daemon on a real machine, where keys must be secret. `check` tests
/// whether this machine can run it; warnings come after all errors.
///
/// # Errors
/// As for [`load`], if others have access to the key file, if the key is the published lab key and
/// `dangers` do not allow it, and as for `check`.
pub(crate) fn load_for_daemon(
    file: &Path,
    dangers: &Dangers,
    check: impl FnOnce(&Fabric) -> Result<()>,
) -> Result<Fabric> {
    let (fabric, mut warnings) = read(file)?;
    if let Some(what) = exposed_key_file(&fabric) {
        bail!(what);
    }
    // Programmable switches do not seal messages.
    if fabric.network != Network::Program && axon_fabric::has_lab_key(&fabric.keys) {
        let what = "the fabric's key is the published lab key, which protects nothing";
        if !dangers.insecure_lab_key {
            bail!(
                "{}: {what}; expected a key of its own: `axon key fabric.key` makes one, and \
                 `key_file: fabric.key` in the fabric file uses it (or --insecure-lab-key)",
                file.display()
            );
        }
        warnings.push(what.to_owned());
    }
    check(&fabric).map_err(|error| match error.downcast::<Problem>() {
        Ok(problem) => axon_fabric::placed(file, problem).into(),
        Err(error) => error,
    })?;
    warn(&warnings);
    Ok(fabric)
}

/// Warns if a switch has the master key.
pub(crate) fn warn_of_master_key(fabric: &Fabric, name: &str, file: &Path) {
    let has_master = fabric.keys.secrets().any(|secret| matches!(secret, Secret::Master(_)));
    if has_master && !axon_fabric::has_lab_key(&fabric.keys) {
        crate::cli::say::note!(
            "warning: {name} has the master key, and whoever takes it from here can pose as the \
             controller; `axon key {name}.key --switch {name} --fabric {}` writes the keys that \
             {name} needs",
            file.display()
        );
    }
}

/// Prints which ports of a switch or of the controller are missing: it runs nevertheless, and uses
/// them when they appear.
pub(crate) fn wait_for_ports(fabric: &Fabric, name: &str, taps: &[String]) {
    let missing = axon_linux::daemon::missing_ports(fabric, name, taps);
    if let Some(first) = missing.first() {
        crate::cli::say::note!(
            "{name} waits for network interfaces that are not there: {}; give each its name, as \
             with `ip link set eth1 name {first}`",
            missing.join(", ")
        );
    }
}
