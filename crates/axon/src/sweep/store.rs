//! The folder of a sweep: its record, a file for each run that is finished, and the tables.
//!
//! ```text
//! DIR/sweep.json          what is swept: see `Record`
//! DIR/runs/000001.json    a finished run, counted from 1: see `Kept`
//! DIR/runs.csv, runs.parquet, format.json
//! ```
//!
//! Every file appears whole, by a change of its name. A sweep goes on with the runs of a record
//! that says the same as its own; a run whose file cannot be read is run again.

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
pub const CSV: &str = "runs.csv";
/// The same as Parquet.
pub const PARQUET: &str = "runs.parquet";
/// What comes before the end of a name until the file is whole.
const UNFINISHED: &str = "part";

/// What a sweep runs. Where anything of it is different, runs are those of another sweep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The version of the program, and the commit that it was built from.
    pub axon: String,
    /// A hash of the text of the fabric file, XXH3 of 128 bits in hexadecimal.
    pub fabric: String,
    /// The files that the fabric file names, each with a hash of what is in it.
    pub files: BTreeMap<String, String>,
    /// What is swept over, as it was given.
    pub over: Vec<String>,
    /// A hash of what the snapshot of `--from` says of itself; null without.
    #[serde(default)]
    pub from: Option<String>,
    /// How long each run goes on, as `--duration` has it; null without.
    pub duration: Option<String>,
    /// The data plane of the switches.
    pub dataplane: String,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It passed, as `axon sim` has it.
    Passed,
    /// It came to its end and failed.
    Failed,
    /// It was ended before its end: it needs more memory than it may use, or a control program in
    /// Python took too long.
    Stopped,
    /// It left no report: a panic, or a signal such as that of a system without memory.
    Crashed,
}

impl Status {
    /// As in the table.
    pub fn name(self) -> &'static str {
        match self {
            Status::Passed => "passed",
            Status::Failed => "failed",
            Status::Stopped => "stopped",
            Status::Crashed => "crashed",
        }
    }
}

/// A run that is finished.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// What was swept over, and the value of this run.
    pub parameters: BTreeMap<String, String>,
    /// How the run ended.
    pub status: Status,
    /// Why it did not pass; null if it did.
    pub reason: Option<String>,
    /// Its figures; null if it did not come to its end.
    pub figures: Option<Figures>,
}

impl Kept {
    /// Whether it would end in the same way on any machine.
    fn is_final(&self) -> bool {
        matches!(self.status, Status::Passed | Status::Failed)
    }
}

/// A folder, which no other sweep writes to meanwhile.
pub struct Store {
    folder: PathBuf,
    /// Locked as long as it is open.
    _lock: File,
}

impl Store {
    /// Opens a folder, which is made if it is not there, for this sweep; `again` throws away what
    /// it has.
    ///
    /// # Errors
    /// It cannot be written, or has the record of another sweep; then it is as it was.
    pub fn open(folder: &Path, record: &Record, again: bool) -> Result<Store> {
        let cannot = || format!("cannot write {}", folder.display());
        fs::create_dir_all(folder).with_context(cannot)?;
        let lock = File::open(folder).with_context(cannot)?;
        // Some file systems have no locks.
        let is_locked = matches!(lock.try_lock(), Err(TryLockError::WouldBlock));
        ensure!(!is_locked, "{}: another sweep writes to it", folder.display());
        let store = Store { folder: folder.to_owned(), _lock: lock };
        // What is to go need not be read.
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

    /// The record that there is.
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
        compare("the snapshot", &span(&there.from), &span(&record.from));
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

    /// Throws away what an earlier sweep has written.
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

    /// The runs that are finished and need not run again, by number from 0.
    pub fn kept(&self, runs: usize) -> BTreeMap<usize, Kept> {
        let read = |run: usize| {
            let kept: Kept = serde_json::from_slice(&fs::read(self.path(run)).ok()?).ok()?;
            kept.is_final().then_some((run, kept))
        };
        (0..runs).filter_map(read).collect()
    }

    /// Keeps a run that is finished.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep(&self, run: usize, kept: &Kept) -> Result<()> {
        self.write(&name(run), output::json(kept)?.as_bytes())
    }

    fn path(&self, run: usize) -> PathBuf {
        self.folder.join(name(run))
    }

    /// Writes a file in place of the one that is there.
    ///
    /// # Errors
    /// It cannot be written, and is named.
    pub fn write(&self, name: &str, contents: &[u8]) -> Result<()> {
        let path = self.folder.join(name);
        let part = path.with_added_extension(UNFINISHED);
        let write = || {
            // Not through a link that somebody has put there.
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

/// The file of a run, counted from 1 as its row in the table is.
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
