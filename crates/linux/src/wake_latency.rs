//! Keeps the CPUs of this machine out of deep sleep while frames arrive.
//!
//! A frame that wakes a process also waits for the CPU of that process. On a virtual machine, an
//! idle CPU in deep sleep takes tens of microseconds to wake, because its host has to schedule it
//! first. This delay occurs at every switch on the path. Linux lets a process bound it: while a
//! process holds `/dev/cpu_dma_latency` open with a zero in it, idle CPUs stay awake (the kernel's
//! Documentation/power/pm_qos_interface.rst). They then use full power. Therefore, a switch holds
//! the file only while frames arrive; the heartbeats in a quiet fabric are too few.

use axon_wire::{Span, Time};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

/// File that sets the latency bound, in microseconds.
const FILE: &str = "/dev/cpu_dma_latency";
/// Window in which frames are counted.
const WINDOW: Span = Span::from_millis(250);
/// Number of frames per window from which on CPUs are kept awake. The heartbeats of ten neighbours
/// are fewer, and a ping every ten milliseconds is more.
const FRAMES: usize = 32;

/// Latency bound of a switch, held or not.
#[derive(Debug)]
pub(crate) struct WakeLatency {
    /// Path of the file; `None` if it cannot be opened.
    path: Option<PathBuf>,
    held: Option<std::fs::File>,
    window_began: Time,
    frames: usize,
}

impl Default for WakeLatency {
    fn default() -> WakeLatency {
        WakeLatency { path: Some(FILE.into()), held: None, window_began: Time::ZERO, frames: 0 }
    }
}

impl WakeLatency {
    /// Records a round at `now` that found this many frames.
    pub(crate) fn round(&mut self, now: Time, frames: usize) {
        if now.since(self.window_began) >= WINDOW {
            if self.frames < FRAMES {
                self.held = None;
            }
            (self.window_began, self.frames) = (now, 0);
        }
        self.frames = self.frames.saturating_add(frames);
        if self.frames >= FRAMES && self.held.is_none() {
            self.hold();
        }
    }

    /// Returns the time at which [`round`](WakeLatency::round) must be called next even without
    /// frames.
    pub(crate) fn due(&self) -> Option<Time> {
        self.held.is_some().then(|| self.window_began + WINDOW)
    }

    fn hold(&mut self) {
        let Some(path) = &self.path else { return };
        let opened = OpenOptions::new().write(true).open(path);
        match opened.and_then(|mut file| file.write_all(&0i32.to_ne_bytes()).map(|()| file)) {
            Ok(file) => self.held = Some(file),
            Err(error) => {
                tracing::debug!(path = FILE, %error, "frames wait for CPUs to wake up");
                self.path = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn cpus_are_kept_awake_while_frames_come_and_no_longer() {
        let path = std::env::temp_dir().join(format!("axon-wake-{}", std::process::id()));
        std::fs::write(&path, "").unwrap();
        let mut latency = WakeLatency { path: Some(path.clone()), ..WakeLatency::default() };
        // Rounds with a heartbeat every 20 ms.
        (1..100).for_each(|beat| latency.round(at(beat * 20), 1));
        assert_eq!((latency.held.is_some(), latency.due()), (false, None));
        (0..120).for_each(|frame| latency.round(at(2_000 + frame * 5), 1));
        assert!(latency.held.is_some());
        assert_eq!(std::fs::read(&path).unwrap(), [0; 4]);
        let due = latency.due().expect("a look at whether frames still come");
        latency.round(due, 0);
        latency.round(due + WINDOW, 0);
        assert_eq!((latency.held.is_some(), latency.due()), (false, None));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_process_that_may_not_goes_without() {
        let path = Some("/proc/self/no-such-file".into());
        let mut latency = WakeLatency { path, ..WakeLatency::default() };
        latency.round(at(1_000), 1_000);
        assert!(latency.held.is_none() && latency.path.is_none());
    }
}
