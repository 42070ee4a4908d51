//! State shared by the run loop and the two threads of a store.

use super::log::Log;
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Request to the writing thread.
#[derive(Debug)]
pub(super) enum Job {
    /// Append these payloads to the log. The second value is their size in the queue, in bytes.
    Append(Vec<Vec<u8>>, usize),
    /// Write these payloads as a new log with this number.
    Rewrite(Vec<Vec<u8>>, u64),
}

/// Step of the writing thread.
#[derive(Debug)]
pub(super) enum Step {
    Write(Job),
    /// Result of a sync of the log with this number.
    Synced(u64, io::Result<()>),
}

/// File to sync.
#[derive(Clone, Debug)]
pub(super) struct ToSync {
    pub(super) log: Log,
    /// True if the directory is also to be synced.
    pub(super) directory: bool,
}

/// Rewrite of the log in progress, from its job until it replaces the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rewriting {
    pub(super) number: u64,
    /// True if the new log is synced except for its last records. The old log is then not synced,
    /// because it would have records on the disk that the new one lacks.
    pub(super) is_tail: bool,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) jobs: VecDeque<Job>,
    /// Bytes in the queue.
    pub(super) queued_bytes: usize,
    /// Bytes in the job that the writing thread is executing.
    pub(super) writing_bytes: usize,
    /// True if the writing thread is executing a step.
    pub(super) busy: bool,
    pub(super) rewriting: Option<Rewriting>,
    /// Number of the last rewrite.
    pub(super) number: u64,
    /// Number of the log that has the name of the store.
    pub(super) in_place: u64,
    pub(super) file_bytes: u64,
    pub(super) synced_bytes: u64,
    /// Reason why the log lacks records or may lose them.
    pub(super) failing: Option<String>,
    /// Reason why the last rewrite failed.
    pub(super) refused: Option<String>,
    /// True if the queue overflowed. Nothing is added to it until everything has been rewritten.
    pub(super) overflowed: bool,
    pub(super) sync_log: Option<ToSync>,
    pub(super) sync_next: Option<Log>,
    pub(super) synced_next: Option<(u64, io::Result<()>)>,
    pub(super) closed: bool,
}

/// State shared by the threads and the run loop.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) path: PathBuf,
    pub(super) fabric: String,
    state: Mutex<State>,
    pub(super) changed: Condvar,
}

impl State {
    /// Returns whether the writing thread has work.
    pub(super) fn is_writing(&self) -> bool {
        self.busy || !self.jobs.is_empty()
    }

    pub(super) fn is_idle(&self) -> bool {
        !self.is_writing() && self.rewriting.is_none()
    }

    pub(super) fn fail(&mut self, error: &io::Error) {
        self.failing.get_or_insert_with(|| error.to_string());
    }

    /// Records that the log with this number was not written. The old log stays.
    pub(super) fn refuse(&mut self, number: u64, error: &io::Error) {
        self.rewriting.take_if(|rewriting| rewriting.number == number);
        self.refused = Some(error.to_string());
    }

    /// Discards the queue, and any rewrite that would lack its contents.
    pub(super) fn overflow(&mut self) {
        self.jobs.clear();
        (self.queued_bytes, self.overflowed) = (0, true);
        self.rewriting = None;
        self.fail(&io::Error::other("the disk takes less than what changes"));
    }

    /// Returns the next step of the writing thread.
    pub(super) fn next_step(&mut self) -> Option<Step> {
        let synced = self.synced_next.take().map(|(number, done)| Step::Synced(number, done));
        let step = synced.or_else(|| self.jobs.pop_front().map(Step::Write))?;
        if let Step::Write(Job::Append(_, bytes)) = &step {
            self.queued_bytes -= bytes;
            self.writing_bytes = *bytes;
        }
        self.busy = true;
        Some(step)
    }

    /// Returns the next file to sync, and whether it is the rewritten log.
    pub(super) fn next_sync(&mut self) -> Option<(ToSync, bool)> {
        if let Some(log) = self.sync_next.take() {
            return Some((ToSync { log, directory: false }, true));
        }
        let waits = self.rewriting.is_some_and(|rewriting| rewriting.is_tail);
        self.sync_log.take_if(|_| !waits).map(|sync| (sync, false))
    }
}

impl Shared {
    pub(super) fn new(path: PathBuf, fabric: String, state: State) -> Shared {
        Shared { path, fabric, state: Mutex::new(state), changed: Condvar::new() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn is_locked(&self) -> bool {
        self.state.try_lock().is_err()
    }

    /// Waits while the condition holds, up to a time limit.
    pub(super) fn wait_while<'a>(
        &self,
        state: MutexGuard<'a, State>,
        wait: Duration,
        mut is_so: impl FnMut(&State) -> bool,
    ) -> MutexGuard<'a, State> {
        let waited = self.changed.wait_timeout_while(state, wait, |state| is_so(state));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits until there is work. Returns `None` when the store is closed.
    pub(super) fn wait<T>(&self, mut next: impl FnMut(&mut State) -> Option<T>) -> Option<T> {
        let mut state = self.lock();
        loop {
            if let Some(found) = next(&mut state) {
                return Some(found);
            }
            if state.closed {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
