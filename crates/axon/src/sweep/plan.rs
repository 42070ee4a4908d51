//! Runs of a sweep, all checked before the first begins.

use super::arguments::Arguments;
use super::over::{self, Axis, Target};
use crate::cli::say::note;
use crate::sim::{Base, check_dataplane, least_memory, python};
use anyhow::{Context, Result, anyhow, bail};
use axon_fabric::model::{Fabric, RouterKind};
use axon_fabric::{Document, LoadError};
use axon_sim::DataplaneKind;
use axon_wire::{Bytes, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Maximum number of combinations that are named for one problem.
const NAMED_MAX: usize = 3;

/// Plan of a sweep.
pub struct Plan {
    /// Fabric file; `-` for standard input.
    pub file: PathBuf,
    /// Text of the fabric file at the start of the sweep.
    pub text: String,
    /// Parameters and their values.
    pub axes: Vec<Axis>,
    /// Time for which traffic runs before all runs go on from there; `None` if each run begins by
    /// itself.
    pub warm_up: Option<Span>,
    /// Data plane of all runs.
    pub dataplane: DataplaneKind,
    /// Time that all runs continue after their network is ready.
    pub duration: Option<Span>,
    document: Document,
    runs: usize,
}

/// One run: a fabric file, and the options beside it.
pub struct Run {
    /// Option `axon sim --seed`.
    pub seed: Option<u64>,
    /// Option `axon sim --router`.
    pub router: Option<RouterKind>,
    /// Fabric file with the values of the run.
    pub document: Document,
}

/// Result of the checks before the runs.
pub struct Checked {
    /// Name of the first run's fabric.
    pub name: String,
    /// Files that the fabric file refers to, as written in it.
    pub files: BTreeSet<PathBuf>,
    /// Minimum memory of each run, in bytes.
    pub least: Vec<u64>,
}

impl Plan {
    /// Reads the fabric file and the parameters.
    ///
    /// # Errors
    /// The file cannot be read or is not YAML, or an option is wrong.
    pub(crate) fn read(arguments: &Arguments) -> Result<Plan> {
        let axes = over::axes(&arguments.over)?;
        let runs = over::count(&axes)?;
        arguments.warm_up.map_or(Ok(()), |_| only_faults(&axes))?;
        let file = arguments.file.clone();
        let (text, name) = crate::cli::file::text(&file)?;
        // The file alone may lack the keys that are varied.
        let alone = axon_fabric::parse_with_warnings(&name, &text);
        if let Ok((_, warnings)) = &alone {
            warnings.iter().for_each(|line| note!("warning: {line}"));
        }
        let document = Document::of(&text).or_else(|problem| {
            // The reader of fabric files reports the position of YAML errors.
            alone.map(drop)?;
            Err(LoadError { file: name, position: None, problem })
        })?;
        let Arguments { warm_up, dataplane, duration, .. } = *arguments;
        Ok(Plan { file, text, axes, warm_up, dataplane, duration, document, runs })
    }

    /// Returns the number of runs.
    pub(crate) fn len(&self) -> usize {
        self.runs
    }

    /// Returns the folder that paths in the fabric file are relative to.
    pub(crate) fn folder(&self) -> PathBuf {
        let parent = self.file.parent().filter(|parent| !parent.as_os_str().is_empty());
        parent.unwrap_or(Path::new(".")).to_owned()
    }

    /// Returns the values of a run, counted from 0, in the order of the axes.
    pub(crate) fn values(&self, run: usize) -> Vec<&str> {
        over::values(&self.axes, run)
    }

    /// Returns the description of a run: `seed=1, router=ecmp`.
    pub(crate) fn label(&self, run: usize) -> String {
        let pairs = self.axes.iter().zip(self.values(run));
        let all: Vec<String> = pairs.map(|(axis, value)| format!("{}={value}", axis.key)).collect();
        all.join(", ")
    }

    /// Returns the keys and the values of one run, counted from 0.
    pub(crate) fn parameters(&self, run: usize) -> Vec<(String, String)> {
        let values = self.values(run).into_iter().map(str::to_owned);
        self.axes.iter().map(|axis| axis.key.clone()).zip(values).collect()
    }

    /// Returns a run, counted from 0.
    ///
    /// # Errors
    /// A key does not exist in the file.
    pub fn run(&self, run: usize) -> Result<Run> {
        let (mut seed, mut router, mut document) = (None, None, self.document.clone());
        for (axis, value) in self.axes.iter().zip(self.values(run)) {
            match axis.target() {
                Target::Seed => seed = value.parse().ok(),
                Target::Router => router = RouterKind::named(value),
                Target::Key(path) => {
                    let wrong = |problem| anyhow!("{}: {problem}", self.file.display());
                    let value = Document::of(value).map_err(wrong)?;
                    document.set(path, &value).map_err(wrong)?;
                }
            }
        }
        Ok(Run { seed, router, document })
    }

    /// Returns the fabric of a run, counted from 0, and its file.
    ///
    /// # Errors
    /// A value does not fit its key.
    pub(crate) fn fabric(&self, run: usize) -> Result<(Fabric, Document)> {
        let Run { router, document, .. } = self.run(run)?;
        let mut fabric = document.fabric(&self.file, &self.text)?;
        fabric.set_router(router.unwrap_or(fabric.controller.router))?;
        Ok((fabric, document))
    }

    /// Simulates the first run up to the warm-up, from which all go on; `None` without `--warm-up`.
    /// Returns the exit status if it was stopped.
    ///
    /// # Errors
    /// The traffic ends earlier, or a run differs in more than faults to come.
    pub(crate) fn warm_up(&self, memory_max: Option<Bytes>) -> Result<Option<Result<Base, u8>>> {
        let Some(warm_up) = self.warm_up else { return Ok(None) };
        let (fabric, document) = self.fabric(0)?;
        let (file, of) = ((self.file.clone(), document.text()), (fabric.seed, self.dataplane));
        let base = Base::up(file, &fabric, of, (warm_up, memory_max))?;
        if let Ok(base) = &base {
            for run in 0..self.runs {
                let (fabric, document) = self.fabric(run)?;
                base.accepts(&fabric, (&self.file, &document.text()), self.duration)
                    .with_context(|| self.label(run))?;
            }
        }
        Ok(Some(base))
    }

    /// Checks every run, on `jobs` threads.
    ///
    /// # Errors
    /// Each problem once, with the values that cause it.
    pub(crate) fn check(&self, jobs: usize) -> Result<Checked> {
        let alike: BTreeSet<usize> = (0..self.runs).map(|run| self.alike(run)).collect();
        let alike: Vec<usize> = alike.into_iter().collect();
        let next = AtomicUsize::new(0);
        let all = Mutex::new(BTreeMap::new());
        let work = || {
            while let Some(&run) = alike.get(next.fetch_add(1, Ordering::Relaxed)) {
                let one = self.check_one(run).map_err(|error| format!("{error:#}"));
                all.lock().unwrap_or_else(PoisonError::into_inner).insert(run, one);
            }
        };
        thread::scope(|scope| {
            for _ in 0..jobs.min(alike.len()) {
                scope.spawn(work);
            }
        });
        self.together(&all.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the first of the runs that differ from this one only in the seed beside the file, on
    /// which no check depends.
    fn alike(&self, run: usize) -> usize {
        let (mut first, mut rest, mut stride) = (0, run, 1);
        for axis in self.axes.iter().rev() {
            let length = axis.values.len();
            first += if axis.target() == Target::Seed { 0 } else { rest % length * stride };
            (rest, stride) = (rest / length, stride * length);
        }
        first
    }

    /// Combines the checks of all runs.
    fn together(&self, all: &BTreeMap<usize, Result<One, String>>) -> Result<Checked> {
        let mut checked =
            Checked { name: String::new(), files: BTreeSet::new(), least: Vec::new() };
        let mut problems: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for run in 0..self.runs {
            match all.get(&self.alike(run)) {
                Some(Ok(one)) => {
                    if checked.name.is_empty() {
                        checked.name.clone_from(&one.name);
                    }
                    checked.files.extend(one.files.iter().cloned());
                    checked.least.push(one.least);
                }
                Some(Err(problem)) => problems.entry(problem).or_default().push(run),
                None => bail!("a check of {} ended in a panic", self.label(run)),
            }
        }
        if problems.is_empty() {
            return Ok(checked);
        }
        let mut lines: Vec<(usize, String)> = Vec::new();
        for (problem, runs) in &problems {
            let which = match runs.len() {
                all if all == self.runs => "every run".to_owned(),
                _ => self.named(runs),
            };
            lines.push((runs[0], format!("{problem} ({which})")));
        }
        lines.sort();
        let lines: Vec<String> = lines.into_iter().map(|(_, line)| line).collect();
        bail!("{}\nnothing was run", lines.join("\n"))
    }

    /// Describes some runs.
    fn named(&self, runs: &[usize]) -> String {
        let named = runs.iter().take(NAMED_MAX).map(|&run| self.label(run));
        let mut text = named.collect::<Vec<_>>().join("; ");
        if runs.len() > NAMED_MAX {
            text += &format!("; and {} runs more", runs.len() - NAMED_MAX);
        }
        text
    }

    fn check_one(&self, run: usize) -> Result<One> {
        let (fabric, document) = self.fabric(run)?;
        check_dataplane(&self.file, self.dataplane, &fabric)?;
        python(&fabric)?;
        let least = least_memory(&fabric);
        let Fabric { name, .. } = fabric;
        Ok(One { name, files: document.files(), least })
    }
}

/// Refuses parameters that are not faults.
fn only_faults(axes: &[Axis]) -> Result<()> {
    let is_fault = |axis: &&Axis| {
        let Target::Key(key) = axis.target() else { return false };
        key.strip_prefix("faults").is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
    };
    match axes.iter().find(|axis| !is_fault(axis)) {
        None => Ok(()),
        Some(axis) => bail!(
            "--over {}: with --warm-up all runs go on from one, in which that has its value; \
             expected a key of faults that are still to come, such as faults.0.after_start",
            axis.key
        ),
    }
}

/// Result of the checks of one run.
struct One {
    name: String,
    files: Vec<PathBuf>,
    least: u64,
}
