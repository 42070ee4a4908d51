//! CPU time of a thread and of the softirq thread of its CPU.

use anyhow::{Context, Result};
use nix::time::{ClockId, clock_gettime};
use std::fs;
use std::time::Duration;

/// Reads the CPU time. Without CONFIG_IRQ_TIME_ACCOUNTING, softirqs count for the thread that they
/// interrupt. The result therefore includes the softirqs that the generator causes, but no time of
/// other processes.
pub(super) struct CpuTime {
    /// File with the CPU time of the softirq thread, which takes over under load.
    softirqs: Option<String>,
}

impl CpuTime {
    /// Opens the clock for the CPU to which the calling thread is bound.
    pub(super) fn new() -> Result<CpuTime> {
        let name = format!("ksoftirqd/{}", nix::sched::sched_getcpu()?);
        let mut softirqs = None;
        for entry in fs::read_dir("/proc")? {
            let path = entry?.path();
            if fs::read_to_string(path.join("comm")).is_ok_and(|comm| comm.trim_end() == name) {
                softirqs = Some(path.join("schedstat").display().to_string());
            }
        }
        Ok(CpuTime { softirqs })
    }

    /// Returns the CPU time of both threads since they started.
    pub(super) fn now(&self) -> Result<Duration> {
        let own = Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?);
        let softirqs = match &self.softirqs {
            Some(path) => fs::read_to_string(path)?,
            None => "0".into(),
        };
        let nanoseconds = softirqs.split(' ').next().and_then(|word| word.trim().parse().ok());
        Ok(own + Duration::from_nanos(nanoseconds.context("a schedstat without a number")?))
    }
}
