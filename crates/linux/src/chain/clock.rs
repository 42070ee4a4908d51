//! The CPU time that a thread and the softirq thread of its CPU have used.

use anyhow::{Context, Result};
use nix::time::{ClockId, clock_gettime};
use std::fs;
use std::time::Duration;

/// Reads it. Softirqs count for the thread that they interrupt (a kernel without
/// CONFIG_IRQ_TIME_ACCOUNTING), so with it come those that the generator causes, and time that
/// other processes take is left out.
pub(super) struct CpuTime {
    /// Where the softirq thread's time is: when there is much to do at once, it does the rest.
    softirqs: Option<String>,
}

impl CpuTime {
    /// For the CPU that the calling thread is bound to.
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

    /// Of both, since they began.
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
