//! Observation of a run: progress bar, memory and page size, Ctrl-C, and captures of ports.

use super::pcap::Pcaps;
use super::wall::Wall;
use crate::cli::stop;
use anyhow::{Context, Result};
use axon_external::Overtime;
use axon_huge_pages::HugePages;
use axon_sim::capture::Captured;
use axon_sim::run::{Progress, Stage, Watch};
use axon_wire::{Bytes, Span, Time};
use indicatif::{ProgressBar, ProgressStyle};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Interval between two updates of the bar and the memory figures.
const LOOK: Duration = Duration::from_millis(100);
/// Steps of the bar.
const STEPS: u64 = 1_000;

/// Watches one run.
pub struct Watcher<'a> {
    name: String,
    bar: ProgressBar,
    began: Instant,
    seen: Option<Seen>,
    memory_max: Option<Bytes>,
    /// Memory of the process at the first update, and the simulated time of that.
    memory_first: Option<(Time, u64)>,
    pages: HugePages,
    stop: Arc<AtomicBool>,
    /// Time limit of control programs in Python.
    overtime: Option<Overtime>,
    pcaps: &'a mut Pcaps,
}

/// Values at the last update.
#[derive(Clone, Copy)]
struct Seen {
    at: Instant,
    now: Time,
    packet_hops: u64,
}

impl<'a> Watcher<'a> {
    /// Handles SIGINT and SIGTERM: the first ends the run in order, the second at once.
    pub(crate) fn new(
        name: &str,
        memory_max: Option<Bytes>,
        overtime: Option<Overtime>,
        pcaps: &'a mut Pcaps,
    ) -> Result<Watcher<'a>> {
        let stop = stop::on_signals()?;
        let bar = ProgressBar::new(STEPS);
        let style = ProgressStyle::with_template("{spinner} {prefix} [{bar:24}] {msg}");
        bar.set_style(style.context("the bar's template")?.progress_chars("=> "));
        Ok(Watcher {
            name: name.to_owned(),
            bar,
            began: Instant::now(),
            seen: None,
            memory_max,
            memory_first: None,
            pages: HugePages::default(),
            stop,
            overtime,
            pcaps,
        })
    }

    /// Removes the bar; returns the resources that the run used, during which this many frames left
    /// a link.
    pub(crate) fn finish(self, packet_hops: u64) -> Wall {
        self.bar.finish_and_clear();
        Wall {
            seconds: self.began.elapsed().as_secs_f64(),
            packet_hops,
            memory_bytes: memory("VmHWM:").unwrap_or(0),
            interrupted: self.stop.load(Ordering::Relaxed),
        }
    }

    /// Updates the bar and the displayed speed.
    fn show(&mut self, progress: &Progress, at: Instant) {
        let stage = match progress.stage {
            Stage::Boot => "booting",
            Stage::Pings => "pinging",
            Stage::Faults => "breaking and mending",
            Stage::Traffic => "sending",
        };
        self.bar.set_prefix(format!("{} {stage}", self.name));
        let (done, all) = (progress.now.since(progress.began), progress.end.since(progress.began));
        // Boot and pings end when everything is done, so their duration is not known in advance.
        let known = matches!(progress.stage, Stage::Faults | Stage::Traffic) && all > Span::ZERO;
        let share = if known { done.ticks() as f64 / all.ticks() as f64 } else { 0.0 };
        self.bar.set_position((share * STEPS as f64) as u64);
        let mut text = format!("{}", progress.now);
        if let Some(seen) = self.seen {
            let wall = at.duration_since(seen.at).as_secs_f64();
            let hops = (progress.packet_hops - seen.packet_hops) as f64 / wall;
            let pace = progress.now.since(seen.now).as_nanos() as f64 / 1e9 / wall;
            text += &format!(", {} packet-hops/s, {pace:.3} s per s", super::show::short(hops));
            let left = all.as_nanos().saturating_sub(done.as_nanos()) as f64 / 1e9;
            if known && pace > 0.0 {
                text += &format!(", {:.0} s to go", left / pace);
            }
        }
        self.bar.set_message(text);
    }

    fn verdict(&mut self, progress: &Progress) -> ControlFlow<String> {
        let (Some(most), Some(used)) = (self.memory_max, memory("VmRSS:")) else {
            return ControlFlow::Continue(());
        };
        let first = *self.memory_first.get_or_insert((progress.now, used));
        if used <= most.0 {
            return ControlFlow::Continue(());
        }
        let size = super::show::size;
        let mut text = format!(
            "it needs more memory than --memory-max {}: {} in use after {} simulated, at most {} \
             of it still to come",
            size(most.0),
            size(used),
            progress.now,
            progress.end.since(progress.now)
        );
        if let Some(needed) = extrapolated(first, (progress.now, used), progress.end) {
            text += &format!("; at this rate {} in all", size(needed));
        }
        ControlFlow::Break(text)
    }
}

/// Extrapolates the memory use at `end` from its growth between the first and the last update.
fn extrapolated(first: (Time, u64), last: (Time, u64), end: Time) -> Option<u64> {
    let grown = last.1.checked_sub(first.1)?;
    let took = last.0.since(first.0).ticks();
    let left = end.since(last.0).ticks();
    if took == 0 {
        return None;
    }
    let more = u128::from(grown) * u128::from(left) / u128::from(took);
    Some(last.1.saturating_add(u64::try_from(more).unwrap_or(u64::MAX)))
}

impl Watch for Watcher<'_> {
    fn progress(&mut self, progress: &Progress) -> ControlFlow<String> {
        if self.stop.load(Ordering::Relaxed) {
            return ControlFlow::Break(format!("interrupted at {}", progress.now));
        }
        if let Some(late) = self.overtime.as_ref().and_then(Overtime::first) {
            return ControlFlow::Break(format!(
                "{late}; what follows depends on how busy this machine is"
            ));
        }
        let at = Instant::now();
        if self.seen.is_some_and(|seen| at.duration_since(seen.at) < LOOK) {
            return ControlFlow::Continue(());
        }
        self.show(progress, at);
        // A run that ends before the second update does not benefit from them, and they use more
        // memory, which may exceed a limit.
        if self.seen.is_some() && self.memory_max.is_none() {
            self.pages.ask(memory("VmRSS:").unwrap_or(0));
        }
        self.seen = Some(Seen { at, now: progress.now, packet_hops: progress.packet_hops });
        self.verdict(progress)
    }

    fn captured(&mut self, frames: Vec<Captured>) {
        self.pcaps.write(&frames);
    }
}

/// Returns a figure of this process in bytes, as reported by the kernel (proc(5), `status`).
pub fn memory(key: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_forecast_as_it_grew() {
        let at = |millis: u64, bytes: u64| (Time::from_nanos(millis * 1_000_000), bytes);
        let end = Time::from_nanos(100_000_000);
        assert_eq!(extrapolated(at(10, 1_000), at(20, 3_000), end), Some(19_000));
        assert_eq!(extrapolated(at(20, 3_000), at(20, 3_000), end), None, "nothing to go by");
        assert_eq!(extrapolated(at(10, 3_000), at(20, 1_000), end), None, "it shrinks");
    }
}
