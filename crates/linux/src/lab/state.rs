//! The state directory of a lab: who supervises it, its fabric file, its daemons' sockets
//! and logs.

use anyhow::{Context, Result, bail};
use axon_fabric::model::Fabric;
use serde::{Deserialize, Serialize};
use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Sets another place for the state of labs than the user's runtime directory.
pub const STATE_VARIABLE: &str = "AXON_STATE_DIR";

/// A process, told apart from any later one with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    /// In the machine's PID namespace.
    pub pid: i32,
    /// Clock ticks from boot to its start (proc(5), field 22 of stat).
    pub start_ticks: u64,
}

impl ProcessId {
    /// The process that has number `pid` now.
    pub fn of(pid: i32) -> Option<ProcessId> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The second field is the name in parentheses, which may hold anything.
        let (_, rest) = stat.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split(' ').collect();
        if matches!(*fields.first()?, "Z" | "X") {
            return None;
        }
        Some(ProcessId { pid, start_ticks: fields.get(19)?.parse().ok()? })
    }

    /// Whether it still runs.
    pub fn is_alive(self) -> bool {
        ProcessId::of(self.pid) == Some(self)
    }
}

/// The directory of one lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateDir {
    path: PathBuf,
}

impl StateDir {
    /// Where the state of lab `name` is, whether there or not: `$AXON_STATE_DIR`, else
    /// `/run/axon` for root, else `$XDG_RUNTIME_DIR/axon`, else `axon-UID` in the directory
    /// for temporary files.
    ///
    /// # Errors
    /// A name that is not a plain file name of at most 32 letters, digits, `-`, `_`, `.`.
    pub fn of(name: &str) -> Result<StateDir> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.len() > 32 || name.starts_with('.') || !name.chars().all(plain) {
            bail!("{name:?} cannot name a lab: up to 32 letters, digits, '-', '_', '.'");
        }
        Ok(StateDir { path: root().join(name) })
    }

    /// A directory that is known already: inside the lab it has another path.
    pub fn at(path: impl Into<PathBuf>) -> StateDir {
        StateDir { path: path.into() }
    }

    /// All labs of this user that have left a directory, by name.
    pub fn all() -> Vec<String> {
        let entries = fs::read_dir(root()).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// Makes the directory, readable by this user only.
    ///
    /// # Errors
    /// It is there already, or its parent belongs to another user.
    pub fn create(&self) -> Result<()> {
        let parent = self.path.parent().context("a lab's directory has a parent")?;
        let mut builder = fs::DirBuilder::new();
        builder.mode(0o700);
        builder.recursive(true);
        builder.create(parent).with_context(|| format!("cannot make {}", parent.display()))?;
        let owner = fs::metadata(parent)?.uid();
        if owner != nix::unistd::geteuid().as_raw() {
            bail!("{} belongs to user {owner}, not to this one", parent.display());
        }
        builder.recursive(false);
        builder.create(&self.path).with_context(|| format!("cannot make {}", self.path.display()))
    }

    /// Removes the directory and all in it.
    ///
    /// # Errors
    /// What the file system says.
    pub fn remove(&self) -> Result<()> {
        fs::remove_dir_all(&self.path)
            .with_context(|| format!("cannot remove {}", self.path.display()))
    }

    /// Whether the directory is there.
    pub fn exists(&self) -> bool {
        self.path.is_dir()
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The copy of the fabric file.
    pub fn fabric(&self) -> PathBuf {
        self.path.join("fabric.yaml")
    }

    /// Copies the fabric file, and notes where it was: a key file that it names is looked for
    /// from there.
    ///
    /// # Errors
    /// What the file system says.
    pub fn keep_fabric(&self, file: &Path) -> Result<()> {
        fs::copy(file, self.fabric()).context("cannot copy the fabric file")?;
        let origin = fs::canonicalize(file)?;
        Ok(fs::write(self.path.join("origin.json"), serde_json::to_vec(&origin)?)?)
    }

    /// Reads the copied fabric file.
    ///
    /// # Errors
    /// It, or a key file that it names, is gone.
    pub fn load_fabric(&self) -> Result<Fabric> {
        let origin: PathBuf = serde_json::from_slice(&fs::read(self.path.join("origin.json"))?)?;
        let text = fs::read_to_string(self.fabric()).context("the lab's fabric file is gone")?;
        Ok(axon_fabric::parse(&origin, &text)?)
    }

    /// A daemon's status socket.
    pub fn socket(&self, node: &str) -> PathBuf {
        self.path.join(format!("{node}.sock"))
    }

    /// A daemon's log.
    pub fn log(&self, node: &str) -> PathBuf {
        self.path.join(format!("{node}.log"))
    }

    /// A daemon's capture.
    pub fn capture(&self, node: &str) -> PathBuf {
        self.path.join(format!("{node}.pcapng"))
    }

    /// Writes down who supervises the lab.
    ///
    /// # Errors
    /// What the file system says.
    pub fn write_supervisor(&self, process: ProcessId) -> Result<()> {
        let path = self.path.join("supervisor.json");
        let new = self.path.join("supervisor.json.new");
        fs::write(&new, serde_json::to_vec(&process)?)?;
        Ok(fs::rename(new, path)?)
    }

    /// Who supervises the lab, if that process is alive.
    pub fn supervisor(&self) -> Option<ProcessId> {
        let bytes = fs::read(self.path.join("supervisor.json")).ok()?;
        let process: ProcessId = serde_json::from_slice(&bytes).ok()?;
        process.is_alive().then_some(process)
    }
}

fn root() -> PathBuf {
    if let Some(path) = std::env::var_os(STATE_VARIABLE) {
        return path.into();
    }
    let user = nix::unistd::geteuid();
    match std::env::var_os("XDG_RUNTIME_DIR") {
        _ if user.is_root() => "/run/axon".into(),
        Some(path) => PathBuf::from(path).join("axon"),
        None => std::env::temp_dir().join(format!("axon-{user}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_apart_from_a_later_one_with_its_number() {
        let own = ProcessId::of(std::process::id() as i32).unwrap();
        assert!(own.is_alive());
        assert!(!ProcessId { start_ticks: own.start_ticks + 1, ..own }.is_alive());
        assert_eq!(ProcessId::of(-5), None);
    }

    #[test]
    fn a_name_cannot_lead_out_of_the_state_directory() {
        for name in ["", ".", "..", "a/b", "../x", "name with spaces"] {
            assert!(StateDir::of(name).is_err(), "{name:?}");
        }
        assert!(StateDir::of("ring3").unwrap().path().ends_with("ring3"));
    }
}
