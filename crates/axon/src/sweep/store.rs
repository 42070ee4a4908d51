//! The folder of a sweep: its record, a file for each run that is finished, and the tables.
//!
//! ```text
//! DIR/sweep.json          definition of the sweep: see `Record`
//! DIR/runs/000001.json    a finished run, counted from 1: see `Kept`
//! DIR/runs.csv, runs.parquet, format.json
//! ```
//!
//! Every file is written in full and then renamed. A sweep continues with the runs of a record
//! that equals its own; a run whose file cannot be read is repeated.

use super::figures::Figures;
use crate::cli::output;
use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

const RECORD: &str = "sweep.json";
const RUNS: &str = "runs";
/// The table as CSV.
pub(crate) const CSV: &str = "runs.csv";
/// The table as Parquet.
pub(crate) const PARQUET: &str = "runs.parquet";
/// Extension of the name of a file until it is complete.
const UNFINISHED: &str = "part";

/// Definition of a sweep. Runs with a different record belong to another sweep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Version of the program, and the commit that it was built from.
    pub axon: String,
    /// Hash of the text of the fabric file, XXH3 of 128 bits in hexadecimal.
    pub fabric: String,
    /// Files that the fabric file refers to, each with a hash of its contents.
    pub files: BTreeMap<String, String>,
    /// `--over` options, as given.
    pub over: Vec<String>,
    /// Time that traffic runs before all runs go on from there, as given by `--warm-up`; null
    /// without.
    #[serde(default)]
    pub warm_up: Option<String>,
    /// Time that each run continues, as given by `--duration`; null without.
    pub duration: Option<String>,
    /// Data plane of the switches.
    pub dataplane: String,
}

/// Outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The run passed, as for `axon sim`.
    Passed,
    /// The run completed and failed.
    Failed,
    /// The run was stopped early: it needs more memory than its limit, or a control program in
    /// Python took too long.
    Stopped,
    /// The run left no report: a panic, or a signal such as that of the out-of-memory killer.
    Crashed,
}

impl Status {
    /// Returns the name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Status::Passed => "passed",
            Status::Failed => "failed",
            Status::Stopped => "stopped",
            Status::Crashed => "crashed",
        }
    }
}

/// A finished run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// Keys that are varied, with the values of this run.
    pub parameters: BTreeMap<String, String>,
    /// Outcome of the run.
    pub status: Status,
    /// Reason that the run did not pass; null if it did.
    pub reason: Option<String>,
    /// Figures of the run; null if it did not complete.
    pub figures: Option<Figures>,
}

impl Kept {
    /// Returns whether the run would end in the same way on any machine.
    fn is_final(&self) -> bool {
        matches!(self.status, Status::Passed | Status::Failed)
    }
}

/// Folder of a sweep, locked against other sweeps.
pub struct Store {
    folder: PathBuf,
    /// Lock, held as long as the file is open.
    _lock: File,
}

impl Store {
    /// Opens a folder for this sweep, or creates it; `again` discards its contents.
    ///
    /// # Errors
    /// The folder cannot be written, or has the record of another sweep; it is unchanged then.
    pub(crate) fn open(folder: &Path, record: &Record, again: bool) -> Result<Store> {
        let cannot = || format!("cannot write {}", folder.display());
        fs::create_dir_all(folder).with_context(cannot)?;
        let lock = File::open(folder).with_context(cannot)?;
        // Some file systems have no locks.
        let is_locked = matches!(lock.try_lock(), Err(TryLockError::WouldBlock));
        ensure!(!is_locked, "{}: another sweep writes to it", folder.display());
        let store = Store { folder: folder.to_owned(), _lock: lock };
        // A record that will be discarded need not be read.
        let there = if again { None } else { store.record()? };
        if let Some(there) = &there {
            store.compare(there, record)?;
        } else {
            store.clear(again)?;
            store.write(RECORD, output::json(record)?.as_bytes())?;
        }
        fs::create_dir_all(folder.join(RUNS)).with_context(cannot)?;
        Ok(store)
    }

    /// Returns the existing record.
    fn record(&self) -> Result<Option<Record>> {
        let path = self.folder.join(RECORD);
        match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            read => {
                let read = read.with_context(|| path.display().to_string())?;
                let record = serde_json::from_slice(&read);
                let wrong = || {
                    let path = path.display();
                    format!(
                        "{path}: it is no record of a sweep; expected another --out, or --again"
                    )
                };
                Ok(Some(record.with_context(wrong)?))
            }
        }
    }

    /// Refuses the record of another sweep.
    fn compare(&self, there: &Record, record: &Record) -> Result<()> {
        let mut differ = Vec::new();
        let mut compare = |what: &str, there: &str, now: &str| {
            if there != now {
                differ.push(format!("{what} was {there}, and is {now} now"));
            }
        };
        compare("the program", &there.axon, &record.axon);
        compare("--over", &there.over.join(" "), &record.over.join(" "));
        let span = |span: &Option<String>| span.clone().unwrap_or_else(|| "left out".into());
        compare("--warm-up", &span(&there.warm_up), &span(&record.warm_up));
        compare("--duration", &span(&there.duration), &span(&record.duration));
        compare("--dataplane", &there.dataplane, &record.dataplane);
        if there.fabric != record.fabric {
            differ.push("the fabric file has changed".to_owned());
        }
        for name in there.files.keys().chain(record.files.keys()) {
            let text = format!("{name}, which the fabric file names, has changed");
            if there.files.get(name) != record.files.get(name) && !differ.contains(&text) {
                differ.push(text);
            }
        }
        if differ.is_empty() {
            return Ok(());
        }
        bail!(
            "{}: it has the runs of another sweep: {}; expected the same sweep, another --out, or \
             --again to run everything again",
            self.folder.display(),
            differ.join("; ")
        )
    }

    /// Removes results without a record of their sweep; refuses to unless `again` is set.
    fn clear(&self, again: bool) -> Result<()> {
        let all = [RUNS, CSV, PARQUET];
        for path in all.map(|name| self.folder.join(name)).iter().filter(|path| path.exists()) {
            ensure!(
                again,
                "{}: it is there, and no record of its sweep; expected another --out, or --again \
                 to replace it",
                path.display()
            );
            let gone = if path.is_dir() { remove_runs(path) } else { fs::remove_file(path) };
            gone.with_context(|| format!("cannot remove {}", path.display()))?;
        }
        Ok(())
    }

    /// Returns the finished runs that need not be repeated, by number from 0.
    pub(crate) fn kept(&self, runs: usize) -> BTreeMap<usize, Kept> {
        let read = |run: usize| {
            let kept: Kept = serde_json::from_slice(&fs::read(self.path(run)).ok()?).ok()?;
            kept.is_final().then_some((run, kept))
        };
        (0..runs).filter_map(read).collect()
    }

    /// Stores a finished run.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn keep(&self, run: usize, kept: &Kept) -> Result<()> {
        self.write(&name(run), output::json(kept)?.as_bytes())
    }

    fn path(&self, run: usize) -> PathBuf {
        self.folder.join(name(run))
    }

    /// Writes a file, replacing an existing one.
    ///
    /// # Errors
    /// The file cannot be written; the error names it.
    pub(crate) fn write(&self, name: &str, contents: &[u8]) -> Result<()> {
        let path = self.folder.join(name);
        let part = path.with_added_extension(UNFINISHED);
        let write = || {
            // Removed first, so that the write does not follow a link planted there.
            match fs::remove_file(&part) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut file = File::create_new(&part)?;
            file.write_all(contents)?;
            file.sync_all()?;
            fs::rename(&part, &path)
        };
        write().with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Returns the file name of a run, counted from 1 like its row in the table.
fn name(run: usize) -> String {
    format!("{RUNS}/{:06}.json", run + 1)
}

/// Removes the files of runs, and the folder if nothing else is in it.
fn remove_runs(folder: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let number = name.strip_suffix(".part").unwrap_or(&name).strip_suffix(".json");
        if number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit())) {
            fs::remove_file(&path)?;
        }
    }
    match fs::remove_dir(folder) {
        Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => Ok(()),
        removed => removed,
    }
}
