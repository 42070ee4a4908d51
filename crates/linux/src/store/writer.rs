//! Threads of a store: one writes, and the other syncs.
//!
//! A disk may block for longer than a neighbour waits for a heartbeat, and so may a full page
//! cache. The run loop therefore only queues writes. It waits for at most a part of a round
//! ([`Allowance`]) until they survive a crash of the process. Later writes stay in a queue of
//! [`QUEUE_BYTES_MAX`] bytes. If that overflows, its contents are discarded, and the store is
//! failing until all entries have been rewritten.
//!
//! During a rewrite, new records go to both logs. When the new log has been synced, the records
//! added in the meantime are also synced. Then it replaces the old log, and the directory is
//! synced.

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

/// Limit on the queued payloads, in bytes, including [`ENTRY_BYTES`] for each.
const QUEUE_BYTES_MAX: usize = 4 << 20;
/// Overhead of a queued payload, in bytes.
const ENTRY_BYTES: usize = 48;

/// Run loop's side of the two threads. The threads end when it is dropped.
#[derive(Debug)]
pub(super) struct Writer {
    shared: Arc<Shared>,
    pub(super) allowance: Allowance,
}

/// Progress of the writing thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    pub(super) file_bytes: u64,
    /// Bytes of the file that are not synced to the disk.
    pub(super) unsynced_bytes: u64,
    /// Bytes queued for writing.
    pub(super) queued_bytes: u64,
    /// Reason why the store lacks records or may lose them.
    pub(super) failing: Option<String>,
    /// Reason why the last rewrite failed.
    pub(super) refused: Option<String>,
    /// True if a rewrite may begin.
    pub(super) idle: bool,
}

impl Writer {
    /// Starts the threads. `log` is an error if the log could not be written.
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

    /// Queues records for the log, and waits for a limited time until they are written.
    pub(super) fn append(&mut self, payloads: Vec<Vec<u8>>) {
        let mut state = self.shared.lock();
        if state.overflowed {
            // The pending rewrite will include all entries.
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

    /// Queues a rewrite of all entries.
    pub(super) fn rewrite(&mut self, payloads: Vec<Vec<u8>>) {
        let mut state = self.shared.lock();
        state.number += 1;
        state.rewriting = Some(Rewriting { number: state.number, is_tail: false });
        state.overflowed = false;
        let job = Job::Rewrite(payloads, state.number);
        state.jobs.push_back(job);
        self.shared.changed.notify_all();
    }

    /// Waits until all work is done, for at most `wait`.
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

/// Main function of the writing thread.
fn write(shared: &Shared, mut files: Files) {
    while let Some(step) = shared.wait(State::next_step) {
        files.step(shared, step);
    }
}

/// Main function of the syncing thread.
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

/// Starts a thread with all signals blocked, because signals that end the process are for its run
/// loop.
fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let mask = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let spawned = std::thread::Builder::new().name(name.into()).spawn(work);
    mask.thread_set_mask()?;
    spawned.map(drop)
}
