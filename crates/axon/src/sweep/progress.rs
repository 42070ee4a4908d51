//! Progress of a sweep: a bar on a terminal, otherwise a line at intervals.

use crate::cli::say::note;
use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Interval between two lines, without a terminal.
const LINE: Duration = Duration::from_secs(5);

/// Progress display on standard error: the number of finished runs.
pub struct Progress {
    name: String,
    /// Number of all runs, of those finished before, and of those done.
    runs: usize,
    before: usize,
    done: usize,
    not_passed: usize,
    began: Instant,
    bar: Option<ProgressBar>,
    line: Instant,
}

impl Progress {
    /// Starts with the runs that are finished already.
    pub(crate) fn new(
        name: &str,
        runs: usize,
        before: usize,
        not_passed: usize,
    ) -> Result<Progress> {
        let bar = match std::io::stderr().is_terminal() {
            true => {
                let bar = ProgressBar::new(runs as u64);
                let style = ProgressStyle::with_template("{spinner} {prefix} [{bar:24}] {msg}");
                bar.set_style(style.context("the bar's template")?.progress_chars("=> "));
                bar.set_prefix(name.to_owned());
                Some(bar)
            }
            false => None,
        };
        let (name, began) = (name.to_owned(), Instant::now());
        let done = before;
        Ok(Progress { name, runs, before, done, not_passed, began, bar, line: began })
    }

    /// Counts one more finished run.
    pub(crate) fn add(&mut self, passed: bool) {
        self.done += 1;
        self.not_passed += usize::from(!passed);
        self.look();
    }

    /// Updates the display.
    pub(crate) fn look(&mut self) {
        let text = self.text();
        match &self.bar {
            Some(bar) => {
                bar.set_position(self.done as u64);
                bar.set_message(text);
                bar.tick();
            }
            None if self.line.elapsed() >= LINE => {
                note!("{}: {text}", self.name);
                self.line = Instant::now();
            }
            None => {}
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }

    fn text(&self) -> String {
        let mut text = format!("{} of {} runs done", self.done, self.runs);
        if self.not_passed > 0 {
            text += &format!(", {} did not pass", self.not_passed);
        }
        let now = self.done - self.before;
        if now > 0 && self.done < self.runs {
            let each = self.began.elapsed().as_secs_f64() / now as f64;
            text += &format!(", {:.0} s to go", each * (self.runs - self.done) as f64);
        }
        text
    }
}
