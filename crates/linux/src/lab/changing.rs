//! One at a time: whoever starts, ends or changes a lab holds its lock.
//!
//! In plain English: `up` and `down` hold the lock of a lab until they are done, and so does what
//! changes its cables: `axon move` and `axon link`. One that comes while another is at work waits
//! for it, and then works on what the other has left; where that takes too long it is refused, and
//! nothing has changed. What changes a lab is finished even if a signal asks its program to end:
//! the signal counts afterwards.

use super::root;
use super::running::Lab;
use super::state::StateDir;
use anyhow::{Result, bail};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use std::fs::File;
use std::time::{Duration, Instant};

/// How long another is waited for: longer than `down` takes, and than the kernel takes to move a
/// device.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks at whether it is done.
const LOOK: Duration = Duration::from_millis(5);

/// Held while a running lab is changed.
#[derive(Debug)]
pub(super) struct Changing {
    _lab: File,
    _signals: Held,
}

/// Signals that would end this thread's program are held back.
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

/// Takes a lab, whether it runs or not; waits for whoever has it.
///
/// # Errors
/// There is none, it is not this user's, or it stays taken.
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
    /// Takes this lab to change it.
    ///
    /// # Errors
    /// It does not run any more, or another has it for long.
    pub(super) fn change(&self) -> Result<Changing> {
        let signals = Held::back()?;
        let gone = || format!("lab {} has ended; nothing has changed", self.name);
        if !self.state.exists() {
            bail!(gone());
        }
        let taken = take(&self.name, &self.state)?;
        if self.state.supervisor().is_none() {
            bail!(gone());
        }
        Ok(Changing { _lab: taken, _signals: signals })
    }
}
