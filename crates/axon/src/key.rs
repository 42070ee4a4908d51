//! `axon key FILE`: a new master key for a fabric, or the keys of one of its switches.

use anyhow::{Context, Result, bail};
use axon_control::keys;
use axon_fabric::assemble::{switch_id, switch_index};
use axon_fabric::{has_lab_key, key_text};
use axon_node::keys::{KEY_BYTES, Key};
use axon_node::{Keys, Secret};
use axon_wire::NodeId;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Make a key file that only its owner may read: a new master key, or the keys of one switch
#[derive(clap::Args)]
#[command(after_help = "Exit status: 0 the key is written; 2 it cannot be written, or the file \
    exists; wrong usage")]
pub struct Arguments {
    /// The file to make, with mode 0600; one that exists is never overwritten. `-` is standard
    /// output
    file: PathBuf,
    /// Write the keys of this switch, such as s1, that follow from the master key of --fabric. With
    /// them nobody can pose as the controller
    #[arg(long, value_name = "NAME", requires = "fabric")]
    switch: Option<String>,
    /// The fabric file that the switch is of
    #[arg(long, value_name = "FABRIC", requires = "switch")]
    fabric: Option<PathBuf>,
}

/// Writes a line for each key: one, or two while the fabric's keys are changed.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let keys = match (&arguments.fabric, &arguments.switch) {
        (Some(fabric), Some(switch)) => of_switch(fabric, switch)?,
        _ => Keys::from(random()?),
    };
    let text = key_text(&keys);
    if arguments.file.as_os_str() == "-" {
        crate::say::print(&text)?;
    } else {
        write(&arguments.file, &text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Unpredictable bytes. The device blocks at boot until the kernel has some.
fn random() -> Result<Key> {
    let mut key = [0; KEY_BYTES];
    File::open("/dev/random")
        .and_then(|mut file| file.read_exact(&mut key))
        .context("cannot read /dev/random")?;
    Ok(key)
}

/// The keys of a switch, from the master keys of its fabric.
fn of_switch(file: &Path, name: &str) -> Result<Keys> {
    let fabric = axon_fabric::load(file)?;
    let switch = switch_index(&fabric, name)
        .with_context(|| format!("fabric {} has no switch {name}", fabric.name))?;
    if has_lab_key(&fabric.keys) {
        bail!("{}: its key is the published lab key; expected a key of its own", file.display());
    }
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

/// Makes a file that only this user may read. One that could not be written whole goes again.
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
