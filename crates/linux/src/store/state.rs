//! What the run loop and the two threads of a store share.

use super::log::Log;
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Something to write.
#[derive(Debug)]
pub(super) enum Job {
    /// At the end of the log; so many bytes of the queue.
    Append(Vec<Vec<u8>>, usize),
    /// As a log of its own, with this number.
    Rewrite(Vec<Vec<u8>>, u64),
}

/// The next step of the writing thread.
#[derive(Debug)]
pub(super) enum Step {
    Write(Job),
    /// The log with this number is on the disk, or could not be brought there.
    Synced(u64, io::Result<()>),
}

/// A file to bring to the disk.
#[derive(Clone, Debug)]
pub(super) struct ToSync {
    pub(super) log: Log,
    /// With the directory.
    pub(super) directory: bool,
}

/// The log that is being written anew, from its job until it takes its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rewriting {
    pub(super) number: u64,
    /// Whether it is on the disk but for its last records. Then the old log is not brought there:
    /// it would have records on the disk that the new one has not.
    pub(super) is_tail: bool,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) jobs: VecDeque<Job>,
    /// Of these jobs.
    pub(super) queued_bytes: usize,
    /// Of the job that the writing thread is at.
    pub(super) writing_bytes: usize,
    /// Whether the writing thread is at work.
    pub(super) busy: bool,
    pub(super) rewriting: Option<Rewriting>,
    /// The number of the last rewrite.
    pub(super) number: u64,
    /// The number of the log that has the name of the store.
    pub(super) in_place: u64,
    pub(super) file_bytes: u64,
    pub(super) synced_bytes: u64,
    /// Why the log lacks records, or may lose them.
    pub(super) failing: Option<String>,
    /// Why the log could not be written anew when that was last tried.
    pub(super) refused: Option<String>,
    /// Whether the queue was full: nothing is added to it until all is written anew.
    pub(super) overflowed: bool,
    pub(super) sync_log: Option<ToSync>,
    pub(super) sync_next: Option<Log>,
    pub(super) synced_next: Option<(u64, io::Result<()>)>,
    pub(super) closed: bool,
}

/// What the threads and the run loop share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) path: PathBuf,
    pub(super) fabric: String,
    state: Mutex<State>,
    pub(super) changed: Condvar,
}

impl State {
    /// Whether the writing thread has something to do.
    pub(super) fn is_writing(&self) -> bool {
        self.busy || !self.jobs.is_empty()
    }

    pub(super) fn is_idle(&self) -> bool {
        !self.is_writing() && self.rewriting.is_none()
    }

    pub(super) fn fail(&mut self, error: &io::Error) {
        self.failing.get_or_insert_with(|| error.to_string());
    }

    /// The log with this number was not written, and the old one stays.
    pub(super) fn refuse(&mut self, number: u64, error: &io::Error) {
        self.rewriting.take_if(|rewriting| rewriting.number == number);
        self.refused = Some(error.to_string());
    }

    /// Gives up what waits, and a rewrite that would lack it.
    pub(super) fn overflow(&mut self) {
        self.jobs.clear();
        (self.queued_bytes, self.overflowed) = (0, true);
        self.rewriting = None;
        self.fail(&io::Error::other("the disk takes less than what changes"));
    }

    /// The next step of the writing thread.
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

    /// What to bring to the disk next, and whether it is the log that is written anew.
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

    /// Waits while it is so, for so long at most.
    pub(super) fn wait_while<'a>(
        &self,
        state: MutexGuard<'a, State>,
        wait: Duration,
        mut is_so: impl FnMut(&State) -> bool,
    ) -> MutexGuard<'a, State> {
        let waited = self.changed.wait_timeout_while(state, wait, |state| is_so(state));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits until there is something; `None` when the store is closed.
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
