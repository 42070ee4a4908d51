//! Lock that serializes starting, ending and changing a lab.
//!
//! `up` and `down` hold the lock of a lab until they are done. So do the commands that change its
//! cables, `axon move` and `axon link`. A later command waits for an earlier one and then sees its
//! result. If that takes too long, the later command is refused and changes nothing. A change is
//! completed even if a signal requests that its program end. The signal is handled afterwards.

use super::root;
use super::running::Lab;
use super::state::StateDir;
use anyhow::{Result, bail};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use std::fs::File;
use std::time::{Duration, Instant};

/// Timeout for the lock. It exceeds the time that `down` takes, and the time that the kernel takes
/// to move a device.
const PATIENCE: Duration = Duration::from_secs(10);
/// Polling interval for the lock.
const LOOK: Duration = Duration::from_millis(5);

/// Lock held while a running lab is changed.
#[derive(Debug)]
pub(super) struct Changing {
    _lab: File,
    _signals: Held,
}

/// Blocks the signals that would end this thread's program.
#[derive(Debug)]
struct Held(SigSet);

impl Held {
    fn back() -> Result<Held> {
        let mut ends = SigSet::empty();
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            ends.add(signal);
        }
        let before = ends.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        Ok(Held(before))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.thread_set_mask();
    }
}

/// Locks a lab, running or not, after waiting for the current holder of its lock.
///
/// # Errors
/// The lab does not exist, belongs to another user, or stays locked.
pub(super) fn take(name: &str, state: &StateDir) -> Result<File> {
    let end = Instant::now() + PATIENCE;
    loop {
        let lock = root::lock()?;
        if !state.exists() {
            bail!("there is no lab {name}");
        }
        state.check()?;
        if let Some(taken) = state.lock(&lock)? {
            return Ok(taken);
        }
        drop(lock);
        if Instant::now() >= end {
            bail!(
                "lab {name} is just being started, changed or ended by another axon; nothing has \
                 changed: try again later"
            );
        }
        std::thread::sleep(LOOK);
    }
}

impl Lab {
    /// Locks this lab in order to change it.
    ///
    /// # Errors
    /// The lab no longer runs, or another process holds the lock for too long.
    pub(super) fn change(&self) -> Result<Changing> {
        let signals = Held::back()?;
        let gone = || format!("lab {} has ended; nothing has changed", self.name());
        if !self.state().exists() {
            bail!(gone());
        }
        let taken = take(self.name(), self.state())?;
        if self.state().supervisor().is_none() {
            bail!(gone());
        }
        Ok(Changing { _lab: taken, _signals: signals })
    }
}
