//! Results folder: one folder for each experiment, with its last outcome.
//!
//! `outcome.json` holds rows, remarks and notes; tables are CSV and plots SVG beside it. It is
//! written last, so a folder that has it is complete.

use super::Experiment;
use super::outcome::{Outcome, Remark, Row};
use super::provenance::Provenance;
use super::verdict::Verdict;
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const FILE: &str = "outcome.json";
/// Version of the format of that file. It grows when a key goes, or changes its meaning or its
/// unit.
pub(crate) const FORMAT: u32 = 1;

/// Outcome as stored in the folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// Version of this format: 1; 0 before there was one.
    #[serde(default)]
    pub format: u32,
    /// ID of the experiment: `axon/table1`.
    pub id: String,
    /// Verdict over its rows.
    pub verdict: Verdict,
    /// Figures with a bound.
    pub rows: Vec<Row>,
    /// Figures without a bound.
    pub remarks: Vec<Remark>,
    /// Reasons for differences from the paper's figures.
    pub notes: Vec<String>,
    /// Names of the plots, without `.svg`, and their titles.
    pub plots: Vec<(String, String)>,
    /// Names of the tables, without `.csv`.
    pub tables: Vec<String>,
    /// Seed of the run.
    pub seed: u64,
    /// Commit and day of the run.
    #[serde(flatten)]
    pub provenance: Provenance,
}

/// Returns the folder of an experiment: `results/reproduce/axon/table1`.
pub fn folder(out: &Path, id: &str) -> PathBuf {
    out.join(id)
}

/// Creates the folder of an experiment and checks that it is writable. Outcomes of earlier runs
/// stay.
///
/// # Errors
/// The folder is not writable.
pub fn reserve(out: &Path, id: &str) -> Result<()> {
    let folder = folder(out, id);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let trial = folder.join(".reserved");
    write(&trial, "")?;
    fs::remove_file(&trial).with_context(|| trial.display().to_string())
}

/// Writes an outcome in place of the previous one.
///
/// # Errors
/// A file cannot be written.
pub(crate) fn keep(
    out: &Path,
    experiment: &Experiment,
    outcome: &Outcome,
    (seed, commit): (u64, &str),
) -> Result<Kept> {
    let folder = folder(out, experiment.id);
    match fs::remove_file(folder.join(FILE)) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(error).with_context(|| folder.join(FILE).display().to_string());
        }
        _ => {}
    }
    for table in &outcome.tables {
        write(&folder.join(format!("{}.csv", table.name)), &table.to_csv())?;
    }
    for plot in &outcome.plots {
        plot.draw(&folder.join(format!("{}.svg", plot.name)))?;
    }
    let plots = outcome.plots.iter().map(|plot| (plot.name.clone(), plot.title.clone()));
    let kept = Kept {
        format: FORMAT,
        id: experiment.id.to_owned(),
        verdict: outcome.verdict(),
        rows: outcome.rows.clone(),
        remarks: outcome.remarks.clone(),
        notes: outcome.notes.clone(),
        plots: plots.collect(),
        tables: outcome.tables.iter().map(|table| table.name.clone()).collect(),
        seed,
        provenance: Provenance::now(commit),
    };
    write(&folder.join(FILE), &(serde_json::to_string_pretty(&kept)? + "\n"))?;
    Ok(kept)
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Returns the last outcome of an experiment, if it was run.
///
/// # Errors
/// The file exists but cannot be read or is no outcome of this experiment.
pub(crate) fn last(out: &Path, id: &str) -> Result<Option<Kept>> {
    let path = folder(out, id).join(FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| path.display().to_string()),
    };
    let kept: Kept = serde_json::from_str(&text)
        .with_context(|| format!("{} is no outcome; delete it", path.display()))?;
    ensure!(kept.id == id, "{}: expected the outcome of {id}, got {}", path.display(), kept.id);
    Ok(Some(kept))
}
