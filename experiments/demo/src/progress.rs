//! Progress reports, with a bar on a terminal and plain lines elsewhere.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Progress through a known number of steps, on stderr.
pub struct Progress {
    bar: Option<ProgressBar>,
    started: Instant,
    steps: u64,
    done: u64,
}

impl Progress {
    /// Creates a display for `steps` steps.
    pub fn new(steps: u64) -> Progress {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(steps);
            let template = "{elapsed:>4} {bar:24} {pos:>2}/{len} {msg}";
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Progress { bar, started: Instant::now(), steps, done: 0 }
    }

    /// Shows that the next step begins.
    pub fn step(&mut self, what: &str) {
        self.done += 1;
        match &self.bar {
            Some(bar) => {
                bar.set_position(self.done);
                bar.set_message(what.to_owned());
            }
            None => eprintln!(
                "{:>5.0} s  {:>2}/{}  {what}",
                self.started.elapsed().as_secs_f64(),
                self.done,
                self.steps
            ),
        }
    }

    /// Returns the elapsed time.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

impl std::ops::Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
