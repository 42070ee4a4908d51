//! State directory of a lab, with its supervisor, its fabric file, and its daemons' sockets and
//! logs.

use super::moved::Moves;
use super::options::{PART, UpOptions};
use super::plan::Plan;
use super::root::{self, RootLock};
use anyhow::{Context, Result, bail};
use axon_fabric::FabricText;
use axon_fabric::model::{Fabric, RouterKind};
use axon_linux::log;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Name and contents of the file that marks a directory as that of a lab.
const MARKER: (&str, &str) = ("AXON-LAB", "Made by `axon up`; `axon down` removes it.\n");
/// Other files in the directory of a lab. In addition, there is one file per node for each of
/// [`ENDINGS`].
const FILES: [&str; 10] = [
    "fabric.yaml",
    "origin.json",
    "options.json",
    "supervisor.json",
    "supervisor.json.new",
    "keeper.json",
    "keeper.json.new",
    "restarts.json",
    "moves.json",
    "moves.json.new",
];
const ENDINGS: [&str; 11] = [
    "log",
    log::OLD,
    "ask",
    "sock",
    "agent",
    "pcapng",
    "incarnation",
    "new",
    "lock",
    "store",
    "damaged",
];
/// Directory on which the supervisor mounts its /run. It is empty when seen from outside.
const MOUNT_POINT: &str = "run";

/// Process identity that is not reused with the process number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    /// Process number in the machine's PID namespace.
    pub pid: i32,
    /// Start time, in clock ticks since boot (proc(5), field 22 of stat).
    pub start_ticks: u64,
}

impl ProcessId {
    /// Returns the process that currently has number `pid`.
    pub fn of(pid: i32) -> Option<ProcessId> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The second field is the name in parentheses, which may contain any characters.
        let (_, rest) = stat.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split(' ').collect();
        if matches!(*fields.first()?, "Z" | "X") {
            return None;
        }
        Some(ProcessId { pid, start_ticks: fields.get(19)?.parse().ok()? })
    }

    /// Returns whether the process still runs.
    pub fn is_alive(self) -> bool {
        ProcessId::of(self.pid) == Some(self)
    }

    /// Returns whether the process is this user's supervisor of the lab at `directory`.
    fn supervises(self, directory: &Path) -> bool {
        let Ok(status) = fs::read_to_string(format!("/proc/{}/status", self.pid)) else {
            return false;
        };
        let user = status.lines().find_map(|line| line.strip_prefix("Uid:"));
        let user = user.and_then(|line| line.split_whitespace().next()?.parse::<u32>().ok());
        if user != Some(nix::unistd::geteuid().as_raw()) {
            return false;
        }
        let line = fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        match words[..] {
            // A process that is exiting no longer has a command line.
            [] | [b""] => true,
            [_, part, b"supervisor", path, ..] if part == PART.as_bytes() => {
                let found = fs::canonicalize(OsStr::from_bytes(path)).ok();
                found.is_some() && found == fs::canonicalize(directory).ok()
            }
            _ => false,
        }
    }
}

/// Directory of one lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateDir {
    path: PathBuf,
}

impl StateDir {
    /// Name of the process that holds devices of the machine for the lab, as used in file names.
    pub(super) const KEEPER: &str = "keeper";

    /// Returns the state directory of lab `name`, whether it exists or not. It is in
    /// `$AXON_STATE_DIR`, otherwise in `/run/axon` for root, otherwise in `$XDG_RUNTIME_DIR/axon`,
    /// otherwise in `axon-UID` in the directory for temporary files.
    ///
    /// # Errors
    /// The name is not a plain file name of at most 32 letters, digits, `-`, `_`, `.`.
    pub fn of(name: &str) -> Result<StateDir> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.len() > 32 || name.starts_with('.') || !name.chars().all(plain) {
            bail!("{name:?} cannot name a lab: up to 32 letters, digits, '-', '_', '.'");
        }
        Ok(StateDir { path: root::path().join(name) })
    }

    /// Returns the directory at a known path, because inside the lab the path is different.
    pub(crate) fn at(path: impl Into<PathBuf>) -> StateDir {
        StateDir { path: path.into() }
    }

    /// Returns the names of all labs of this user that have a directory.
    ///
    /// # Errors
    /// The directory of labs is not private to this user.
    pub fn all() -> Result<Vec<String>> {
        let root = root::path();
        if fs::symlink_metadata(&root).is_err_and(|e| e.kind() == io::ErrorKind::NotFound) {
            return Ok(Vec::new());
        }
        root::check_private(&root)?;
        let entries = fs::read_dir(root)?.flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let is_lab = |name: &String| StateDir::of(name).is_ok_and(|state| state.check().is_ok());
        let mut names: Vec<String> = names.filter(is_lab).collect();
        names.sort();
        Ok(names)
    }

    /// Creates the directory, for this user only, and its marker file. An empty directory that a
    /// crash in this function has left is reused.
    pub(super) fn create(&self, _: &RootLock) -> Result<()> {
        if self.exists() {
            // This fails unless the directory is empty. A directory with files is not ours.
            fs::remove_dir(&self.path).with_context(|| {
                format!("{} is not a lab's; Axon leaves it alone", self.path.display())
            })?;
        }
        let mut builder = fs::DirBuilder::new();
        builder.mode(0o700);
        builder
            .create(&self.path)
            .with_context(|| format!("cannot make {}", self.path.display()))?;
        let (name, text) = MARKER;
        Ok(fs::write(self.path.join(name), text)?)
    }

    /// Checks that this is a lab's directory that no other user can have created.
    ///
    /// # Errors
    /// A check fails. The error says which one.
    pub(crate) fn check(&self) -> Result<()> {
        root::check_private(self.path.parent().context("a lab's directory has a parent")?)?;
        root::check_private(&self.path)?;
        let (name, text) = MARKER;
        let marker = self.path.join(name);
        let is_file = fs::symlink_metadata(&marker).is_ok_and(|found| found.is_file());
        if !is_file || fs::read(&marker)? != text.as_bytes() {
            bail!("{} is not a lab's; Axon leaves it alone", self.path.display());
        }
        Ok(())
    }

    /// Locks the lab while the returned file is open, to start or end the lab. Returns `None` if
    /// another process holds the lock.
    pub(super) fn lock(&self, _: &RootLock) -> Result<Option<File>> {
        let file = File::open(&self.path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error).context("cannot lock the lab"),
        }
    }

    /// Removes the files that the lab has written, and then its directory.
    ///
    /// # Errors
    /// The directory does not belong to a lab, it contains foreign files, or the file system
    /// reports an error.
    pub(super) fn remove(&self, _: &RootLock) -> Result<()> {
        self.check()?;
        let mut foreign = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let (name, is_dir) = (entry.file_name(), entry.file_type()?.is_dir());
            let ending = Path::new(&name).extension().and_then(OsStr::to_str).unwrap_or("");
            if is_dir && name == MOUNT_POINT {
                fs::remove_dir(entry.path())?;
            } else if !is_dir && (FILES.iter().any(|f| name == *f) || ENDINGS.contains(&ending)) {
                fs::remove_file(entry.path())?;
            } else if name != MARKER.0 {
                foreign.push(name.to_string_lossy().into_owned());
            }
        }
        if !foreign.is_empty() {
            let (path, foreign) = (self.path.display(), foreign.join(", "));
            bail!("{path} holds what no lab has written: {foreign}; move it away first");
        }
        fs::remove_file(self.path.join(MARKER.0))?;
        fs::remove_dir(&self.path).with_context(|| format!("cannot remove {}", self.path.display()))
    }

    /// Returns whether the directory exists.
    pub fn exists(&self) -> bool {
        fs::symlink_metadata(&self.path).is_ok()
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of the copied fabric file.
    pub(crate) fn fabric(&self) -> PathBuf {
        self.path.join("fabric.yaml")
    }

    /// Copies the fabric file, and records its original path, because the paths of key files in it
    /// are relative to that.
    ///
    /// # Errors
    /// The file system's error.
    pub(crate) fn keep_fabric(&self, file: &Path) -> Result<()> {
        fs::copy(file, self.fabric()).context("cannot copy the fabric file")?;
        let origin = fs::canonicalize(file)?;
        Ok(fs::write(self.path.join("origin.json"), serde_json::to_vec(&origin)?)?)
    }

    /// Writes the options of the lab.
    pub(crate) fn keep_options(&self, options: &UpOptions) -> Result<()> {
        Ok(fs::write(self.path.join("options.json"), serde_json::to_vec(options)?)?)
    }

    /// Reads the fabric and the options, and returns the plan of the lab.
    ///
    /// # Errors
    /// A file of the lab cannot be read.
    pub(crate) fn load_plan(&self) -> Result<Plan> {
        let mut plan = Plan::of(&self.load_fabric()?, &self.load_options()?)?;
        plan.follow(&self.moves());
        Ok(plan)
    }

    /// Writes the positions of moved hosts.
    pub(super) fn write_moves(&self, moves: &Moves) -> Result<()> {
        let new = self.path.join("moves.json.new");
        fs::write(&new, serde_json::to_vec(moves)?)?;
        Ok(fs::rename(new, self.path.join("moves.json"))?)
    }

    /// Returns the positions of moved hosts. The result is empty if no host was moved.
    pub(super) fn moves(&self) -> Moves {
        let bytes = fs::read(self.path.join("moves.json")).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// Reads the options of the lab.
    ///
    /// # Errors
    /// The file is gone.
    pub(crate) fn load_options(&self) -> Result<UpOptions> {
        Ok(serde_json::from_slice(&fs::read(self.path.join("options.json"))?)?)
    }

    /// Reads the copied fabric file, with the requested router.
    ///
    /// # Errors
    /// The file, or a key file that it names, is gone, or there is no such router.
    pub(crate) fn load_fabric(&self) -> Result<Fabric> {
        let origin = self.origin()?;
        let text = fs::read_to_string(self.fabric()).context("the lab's fabric file is gone")?;
        let mut fabric = axon_fabric::parse(&origin, &text)?;
        axon_fabric::program::fix_addresses(&mut fabric);
        if let Some(name) = self.load_options()?.router {
            let router = RouterKind::named(&name);
            fabric.set_router(router.with_context(|| format!("no router {name}"))?)?;
        }
        Ok(fabric)
    }

    /// Reads the fabric file with all files that it names, for recordings.
    ///
    /// # Errors
    /// As [`StateDir::load_fabric`].
    pub(super) fn load_fabric_text(&self) -> Result<FabricText> {
        let origin = self.origin()?;
        let text = fs::read_to_string(self.fabric()).context("the lab's fabric file is gone")?;
        let router = self.load_options()?.router.and_then(|name| RouterKind::named(&name));
        Ok(FabricText::of(&origin, text, router)?)
    }

    /// Returns the original path of the fabric file. Agent programs are started in its folder.
    ///
    /// # Errors
    /// The record of the original path is gone.
    pub(super) fn origin(&self) -> Result<PathBuf> {
        Ok(serde_json::from_slice(&fs::read(self.path.join("origin.json"))?)?)
    }

    /// Returns the status socket of an agent of the fabric file. The socket of the agent's port is
    /// [`socket`](StateDir::socket) and belongs to its switch.
    pub fn agent_status(&self, agent: &str) -> PathBuf {
        self.path.join(format!("{agent}.agent"))
    }

    /// Returns a daemon's status socket, or the socket of an agent's port.
    pub fn socket(&self, node: &str) -> PathBuf {
        self.path.join(format!("{node}.sock"))
    }

    /// Returns the path of a daemon's log.
    pub fn log(&self, node: &str) -> PathBuf {
        self.path.join(format!("{node}.log"))
    }

    /// Returns the path of a daemon's capture.
    pub fn capture(&self, node: &str) -> PathBuf {
        self.path.join(format!("{node}.pcapng"))
    }

    /// Returns the path of the file with a daemon's last incarnation number.
    pub(crate) fn incarnation(&self, node: &str) -> PathBuf {
        self.path.join(format!("{node}.incarnation"))
    }

    /// Writes the restart count of each daemon.
    pub(super) fn write_restarts(&self, restarts: &BTreeMap<String, u32>) -> Result<()> {
        let new = self.path.join("restarts.json.new");
        fs::write(&new, serde_json::to_vec(restarts)?)?;
        Ok(fs::rename(new, self.path.join("restarts.json"))?)
    }

    /// Returns the restart count of each daemon. The result is empty if there were no restarts.
    pub(super) fn restarts(&self) -> BTreeMap<String, u32> {
        let bytes = fs::read(self.path.join("restarts.json")).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// Writes the identity of the lab's supervisor.
    ///
    /// # Errors
    /// The file system's error.
    pub fn write_supervisor(&self, process: ProcessId) -> Result<()> {
        let path = self.path.join("supervisor.json");
        let new = self.path.join("supervisor.json.new");
        fs::write(&new, serde_json::to_vec(&process)?)?;
        Ok(fs::rename(new, path)?)
    }

    /// Writes the identity of the process that holds devices of the machine for the lab.
    pub(super) fn write_keeper(&self, process: ProcessId) -> Result<()> {
        let new = self.path.join("keeper.json.new");
        fs::write(&new, serde_json::to_vec(&process)?)?;
        Ok(fs::rename(new, self.path.join("keeper.json"))?)
    }

    /// Returns the process that holds devices of the machine for the lab, if it is alive.
    pub fn keeper(&self) -> Option<ProcessId> {
        self.check().ok()?;
        let bytes = fs::read(self.path.join("keeper.json")).ok()?;
        let process: ProcessId = serde_json::from_slice(&bytes).ok()?;
        process.is_alive().then_some(process)
    }

    /// Returns whether the lab's supervisor process still exists. It exits when all processes in
    /// its PID namespace have exited.
    pub(super) fn has_supervisor_process(&self) -> bool {
        let bytes = fs::read(self.path.join("supervisor.json")).unwrap_or_default();
        serde_json::from_slice(&bytes).is_ok_and(ProcessId::is_alive)
    }

    /// Returns the lab's supervisor, if that process is alive and verified.
    pub fn supervisor(&self) -> Option<ProcessId> {
        self.check().ok()?;
        let bytes = fs::read(self.path.join("supervisor.json")).ok()?;
        let process: ProcessId = serde_json::from_slice(&bytes).ok()?;
        (process.is_alive() && process.supervises(&self.path)).then_some(process)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_not_taken_for_a_later_one_with_its_number() {
        let own = ProcessId::of(std::process::id() as i32).unwrap();
        assert!(own.is_alive());
        assert!(!ProcessId { start_ticks: own.start_ticks + 1, ..own }.is_alive());
        assert_eq!(ProcessId::of(-5), None);
    }

    /// Returns the directory of a lab in a temporary root, which is removed with the test.
    fn scratch(name: &str) -> StateDir {
        let root = std::env::temp_dir().join(format!("axon-state-{name}-{}", std::process::id()));
        let mut builder = fs::DirBuilder::new();
        builder.mode(0o700).create(&root).unwrap();
        builder.create(root.join("lab")).unwrap();
        StateDir::at(root.join("lab"))
    }

    fn mark(state: &StateDir) {
        fs::write(state.path.join(MARKER.0), MARKER.1).unwrap();
    }

    #[test]
    fn a_directory_that_is_no_labs_is_neither_removed_nor_believed() {
        let (lock, state) = (RootLock::for_test(), scratch("foreign"));
        let own = ProcessId::of(std::process::id() as i32).unwrap();
        state.write_supervisor(own).unwrap();
        assert!(state.remove(&lock).is_err());
        assert!(state.create(&lock).is_err());
        mark(&state);
        // The process is alive and belongs to this user, but it is not a supervisor, so it must not
        // be killed.
        assert!(own.is_alive() && state.supervisor().is_none());
        fs::write(state.path.join("thesis.tex"), "").unwrap();
        let error = state.remove(&lock).unwrap_err().to_string();
        assert!(error.contains("thesis.tex"), "{error}");
        assert!(state.path.join("thesis.tex").exists());
        fs::remove_file(state.path.join("thesis.tex")).unwrap();
        fs::write(state.log("s1"), "").unwrap();
        state.remove(&lock).unwrap();
        fs::remove_dir(state.path.parent().unwrap()).unwrap();
    }

    #[test]
    fn one_of_two_takes_a_lab() {
        let (lock, state) = (RootLock::for_test(), scratch("taken"));
        mark(&state);
        let first = state.lock(&lock).unwrap();
        assert!(first.is_some() && state.lock(&lock).unwrap().is_none());
        drop(first);
        assert!(state.lock(&lock).unwrap().is_some());
        state.remove(&lock).unwrap();
        fs::remove_dir(state.path.parent().unwrap()).unwrap();
    }

    #[test]
    fn a_name_cannot_lead_out_of_the_state_directory() {
        for name in ["", ".", "..", "a/b", "../x", "name with spaces"] {
            assert!(StateDir::of(name).is_err(), "{name:?}");
        }
        assert!(StateDir::of("ring3").unwrap().path().ends_with("ring3"));
    }
}
