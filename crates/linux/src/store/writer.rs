//! The two threads of a store: one writes, the other brings what was written to the disk.
//!
//! A disk may take longer than a neighbour waits for a heartbeat, and so may a full page cache. So
//! the run loop only hands over what is to be written, and waits for a part of a round at most
//! ([`Allowance`]) until it is out of reach of a crash of the process. What is not written by then
//! goes on waiting, in a queue of [`QUEUE_BYTES_MAX`]. If that is full, its contents are given up,
//! and the store is failing until all entries have been written anew.
//!
//! A log that is written anew gets the records of its time beside the old one. When it is on the
//! disk, what it got meanwhile is brought there too. Then it takes the place of the old one, and
//! the directory is brought to the disk.

use super::allowance::Allowance;
use super::files::Files;
use super::log::Log;
use super::state::{Job, Rewriting, Shared, State, ToSync};
use crate::incarnation::sync_parent;
use nix::sys::signal::{SigSet, SigmaskHow};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of payloads that wait to be written, with [`ENTRY_BYTES`] for each.
const QUEUE_BYTES_MAX: usize = 4 << 20;
/// What a payload takes beside its bytes.
const ENTRY_BYTES: usize = 48;

/// The run loop's end. The threads end with it.
#[derive(Debug)]
pub(super) struct Writer {
    shared: Arc<Shared>,
    pub(super) allowance: Allowance,
}

/// How the writing goes.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    pub(super) file_bytes: u64,
    /// Bytes of the file that are not known to be on the disk.
    pub(super) unsynced_bytes: u64,
    /// Bytes that wait to be written.
    pub(super) queued_bytes: u64,
    /// Why the store lacks records, or may lose them.
    pub(super) failing: Option<String>,
    /// Why the log could not be written anew when that was last tried.
    pub(super) refused: Option<String>,
    /// Whether a rewrite may begin.
    pub(super) idle: bool,
}

impl Writer {
    /// Starts the threads. There is no log, if it could not be written.
    pub(super) fn start(
        (path, fabric): (PathBuf, String),
        log: io::Result<Log>,
    ) -> io::Result<Writer> {
        let mut state = State::default();
        let files = Files::new(log, &mut state);
        let shared = Arc::new(Shared::new(path, fabric, state));
        let writer = Writer { shared: shared.clone(), allowance: Allowance::new() };
        let syncs = shared.clone();
        spawn("store", move || write(&shared, files))?;
        spawn("store-sync", move || sync(&syncs))?;
        Ok(writer)
    }

    /// Has records written at the end of the log, and waits for that, but not for long.
    pub(super) fn append(&mut self, payloads: Vec<Vec<u8>>) {
        let mut state = self.shared.lock();
        if state.overflowed {
            // All entries will be written anew.
            return;
        }
        let bytes = payloads.iter().map(|payload| payload.len() + ENTRY_BYTES).sum::<usize>();
        if state.queued_bytes + bytes > QUEUE_BYTES_MAX {
            state.overflow();
            return self.shared.changed.notify_all();
        }
        let wait = self.allowance.grant(!state.is_writing());
        state.queued_bytes += bytes;
        state.jobs.push_back(Job::Append(payloads, bytes));
        self.shared.changed.notify_all();
        if wait.is_zero() {
            return;
        }
        let begin = Instant::now();
        let state = self.shared.wait_while(state, wait, |state| state.is_writing());
        self.allowance.spend(begin.elapsed(), !state.is_writing());
    }

    /// Has all entries written anew.
    pub(super) fn rewrite(&mut self, payloads: Vec<Vec<u8>>) {
        let mut state = self.shared.lock();
        state.number += 1;
        state.rewriting = Some(Rewriting { number: state.number, is_tail: false });
        state.overflowed = false;
        let job = Job::Rewrite(payloads, state.number);
        state.jobs.push_back(job);
        self.shared.changed.notify_all();
    }

    /// Waits until nothing is left to do, or for so long at most.
    pub(super) fn finish(&self, wait: Duration) {
        let state = self.shared.lock();
        drop(self.shared.wait_while(state, wait, |state| !state.is_idle()));
    }

    pub(super) fn progress(&self) -> Progress {
        let state = self.shared.lock();
        Progress {
            file_bytes: state.file_bytes,
            unsynced_bytes: state.file_bytes.saturating_sub(state.synced_bytes),
            queued_bytes: (state.queued_bytes + state.writing_bytes) as u64,
            failing: state.failing.clone(),
            refused: state.refused.clone(),
            idle: state.is_idle(),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_all();
    }
}

/// The writing thread.
fn write(shared: &Shared, mut files: Files) {
    while let Some(step) = shared.wait(State::next_step) {
        files.step(shared, step);
    }
}

/// The thread that brings files to the disk.
fn sync(shared: &Shared) {
    while let Some((ToSync { log, directory }, is_next)) = shared.wait(State::next_sync) {
        let mut done = log.sync();
        if directory {
            done = done.and_then(|()| sync_parent(&shared.path));
        }
        let mut state = shared.lock();
        if is_next {
            state.synced_next = Some((log.number, done));
        } else if log.number == state.in_place {
            match done {
                Ok(()) => state.synced_bytes = log.bytes,
                Err(error) => state.fail(&error),
            }
        }
        shared.changed.notify_all();
    }
}

/// Starts a thread that takes no signal: those that end the process are for its run loop.
fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let mask = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let spawned = std::thread::Builder::new().name(name.into()).spawn(work);
    mask.thread_set_mask()?;
    spawned.map(drop)
}
