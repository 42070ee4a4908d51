//! Context of an experiment: seed, threads, folder, progress.

use crate::axon::live::process::Stop;
use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Context of an experiment.
pub struct Context {
    /// Seed of all random choices.
    pub seed: u64,
    /// Threads that a simulation may use; the result is the same with any number.
    pub threads: usize,
    folder: PathBuf,
    id: String,
    stop: Stop,
    bar: Option<ProgressBar>,
    started: Instant,
}

impl Context {
    /// Creates the context of experiment `id`; `folder` exists and takes the experiment's own
    /// files.
    pub(crate) fn new(id: &str, folder: PathBuf, seed: u64, threads: usize, stop: Stop) -> Context {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{elapsed:>4} {spinner} {msg}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        let started = Instant::now();
        Context { seed, threads, folder, id: id.to_owned(), stop, bar, started }
    }

    /// Returns the folder for captures and other files of the experiment; tables and plots of its
    /// outcome are written here automatically.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the user's stop request.
    pub(crate) fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Reports the next step: on a terminal in one changing line, else on a line each.
    ///
    /// # Errors
    /// The user requests a stop.
    pub fn step(&mut self, what: impl AsRef<str>) -> Result<()> {
        self.stop.check()?;
        let (id, what) = (&self.id, what.as_ref());
        match &self.bar {
            Some(bar) => bar.set_message(format!("{id}: {what}")),
            None => eprintln!("{:>5.0} s  {id}: {what}", self.started.elapsed().as_secs_f64()),
        }
        Ok(())
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
