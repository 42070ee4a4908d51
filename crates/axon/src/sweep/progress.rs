//! How far a sweep has come: a bar on a terminal, else a line now and then.

use crate::cli::say::note;
use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Between two lines, where there is no terminal.
const LINE: Duration = Duration::from_secs(5);

/// Shows on standard error how many runs are done.
pub struct Progress {
    name: String,
    /// All runs, those that were finished before, and those that are done.
    runs: usize,
    before: usize,
    done: usize,
    not_passed: usize,
    began: Instant,
    bar: Option<ProgressBar>,
    line: Instant,
}

impl Progress {
    /// Begins with the runs that are finished already.
    pub fn new(name: &str, runs: usize, before: usize, not_passed: usize) -> Result<Progress> {
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

    /// One more run is done.
    pub fn add(&mut self, passed: bool) {
        self.done += 1;
        self.not_passed += usize::from(!passed);
        self.look();
    }

    /// Shows how far it has come.
    pub fn look(&mut self) {
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

    /// Takes the bar away.
    pub fn finish(self) {
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
