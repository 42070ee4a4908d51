//! `axon key FILE`: a new master key for a fabric, or the keys of its switches.

use anyhow::{Context, Result, bail};
use axon_fabric::assemble::{switch_id, switch_index};
use axon_fabric::model::Fabric;
use axon_fabric::{has_lab_key, key_text};
use axon_link::keys;
use axon_node::keys::{KEY_BYTES, Key};
use axon_node::{Keys, Secret};
use axon_wire::NodeId;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Make key files that only their owner may read: a new master key, or the keys of switches
#[derive(clap::Args)]
#[command(after_help = "Exit status: 0 the keys are written; 2 they cannot be written, or a file \
    exists; wrong usage")]
pub struct Arguments {
    /// File to make, with mode 0600; one that exists is never overwritten. `-` is standard output.
    /// With --each-switch the directory for SWITCH.key, made if missing
    file: PathBuf,
    /// Write the keys of this switch, such as s1, that are derived from the master key of --fabric.
    /// They do not allow their holder to pose as the controller
    #[arg(long, value_name = "NAME", requires = "fabric")]
    switch: Option<String>,
    /// Write the keys of every switch of the fabric, each to a file of its own
    #[arg(long, requires = "fabric", conflicts_with = "switch")]
    each_switch: bool,
    /// Fabric file with the master key, for --switch and --each-switch
    #[arg(long, value_name = "FABRIC")]
    fabric: Option<PathBuf>,
}

/// Writes a line for each key: one, or two during a change of the fabric's keys.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let Arguments { file, switch, fabric, each_switch } = arguments;
    match (fabric, switch) {
        (Some(fabric), _) if *each_switch => write_each(file, fabric)?,
        (Some(path), Some(name)) => {
            let fabric = load(path)?;
            let index = switch_index(&fabric, name)
                .with_context(|| format!("fabric {} has no switch {name}", fabric.name))?;
            put(file, &of_switch(&fabric, index, path)?)?;
        }
        (Some(_), None) => bail!("--fabric is for --switch NAME and --each-switch"),
        _ => put(file, &Keys::from(random()?))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the keys of every switch into a directory. All are derived before the first is written.
fn write_each(directory: &Path, path: &Path) -> Result<()> {
    if directory.as_os_str() == "-" {
        bail!("--each-switch writes several files; expected a directory and not standard output");
    }
    let fabric = load(path)?;
    let keys = (0..fabric.switches.len()).map(|index| of_switch(&fabric, index, path));
    let keys: Vec<Keys> = keys.collect::<Result<_>>()?;
    let cannot = || format!("cannot make the directory {}", directory.display());
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).with_context(cannot)?;
    for (switch, keys) in fabric.switches.iter().zip(&keys) {
        write(&directory.join(format!("{}.key", switch.name)), &key_text(keys))?;
    }
    Ok(())
}

/// Reads the fabric whose switches get keys.
fn load(path: &Path) -> Result<Fabric> {
    let fabric = axon_fabric::load(path)?;
    if has_lab_key(&fabric.keys) {
        bail!("{}: its key is the published lab key; expected a key of its own", path.display());
    }
    Ok(fabric)
}

fn put(file: &Path, keys: &Keys) -> Result<()> {
    let text = key_text(keys);
    if file.as_os_str() == "-" { crate::cli::say::print(&text) } else { write(file, &text) }
}

/// Returns unpredictable bytes. The device blocks at boot until the kernel has some.
fn random() -> Result<Key> {
    let mut key = [0; KEY_BYTES];
    File::open("/dev/random")
        .and_then(|mut file| file.read_exact(&mut key))
        .context("cannot read /dev/random")?;
    Ok(key)
}

/// Derives the keys of a switch from the master keys of its fabric.
fn of_switch(fabric: &Fabric, switch: usize, file: &Path) -> Result<Keys> {
    let own = |secret: &Secret| derived(secret, switch_id(switch), file);
    let other = fabric.keys.other.as_ref().map(own).transpose()?;
    Ok(Keys { current: own(&fabric.keys.current)?, other })
}

fn derived(secret: &Secret, node: NodeId, file: &Path) -> Result<Secret> {
    match secret {
        Secret::Master(master) => Ok(Secret::Switch(keys::of_switch(master, node))),
        Secret::Switch(_) => bail!("{}: it has the keys of a switch alone", file.display()),
    }
}

/// Creates a file that only this user may read. A file that cannot be written in full is removed.
fn write(path: &Path, text: &str) -> Result<()> {
    let cannot = || format!("cannot make the key file {}", path.display());
    let mut options = OpenOptions::new();
    let mut file =
        options.write(true).create_new(true).mode(0o600).open(path).with_context(cannot)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    if written.is_err() {
        let _ = fs::remove_file(path);
    }
    written.with_context(cannot)
}
