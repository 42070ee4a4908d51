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
use crate::incarnation::sync_parent;
use nix::sys::signal::{SigSet, SigmaskHow};
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of payloads that wait to be written, with [`ENTRY_BYTES`] for each.
const QUEUE_BYTES_MAX: usize = 4 << 20;
/// What a payload takes beside its bytes.
const ENTRY_BYTES: usize = 48;

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
    jobs: VecDeque<Job>,
    /// Of these jobs.
    queued_bytes: usize,
    /// Of the job that the writing thread is at.
    pub(super) writing_bytes: usize,
    /// Whether the writing thread is at work.
    pub(super) busy: bool,
    pub(super) rewriting: Option<Rewriting>,
    /// The number of the last rewrite.
    number: u64,
    /// The number of the log that has the name of the store.
    pub(super) in_place: u64,
    pub(super) file_bytes: u64,
    pub(super) synced_bytes: u64,
    /// Why the log lacks records, or may lose them.
    pub(super) failing: Option<String>,
    /// Why the log could not be written anew when that was last tried.
    pub(super) refused: Option<String>,
    /// Whether the queue was full: nothing is added to it until all is written anew.
    overflowed: bool,
    pub(super) sync_log: Option<ToSync>,
    pub(super) sync_next: Option<Log>,
    synced_next: Option<(u64, io::Result<()>)>,
    closed: bool,
}

/// What the threads and the run loop share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) path: PathBuf,
    pub(super) fabric: String,
    state: Mutex<State>,
    pub(super) changed: Condvar,
}

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

impl State {
    /// Whether the writing thread has something to do.
    fn is_writing(&self) -> bool {
        self.busy || !self.jobs.is_empty()
    }

    fn is_idle(&self) -> bool {
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
    fn overflow(&mut self) {
        self.jobs.clear();
        (self.queued_bytes, self.overflowed) = (0, true);
        self.rewriting = None;
        self.fail(&io::Error::other("the disk takes less than what changes"));
    }

    /// The next step of the writing thread.
    fn next_step(&mut self) -> Option<Step> {
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
    fn wait_while<'a>(
        &self,
        state: MutexGuard<'a, State>,
        wait: Duration,
        mut is_so: impl FnMut(&State) -> bool,
    ) -> MutexGuard<'a, State> {
        let waited = self.changed.wait_timeout_while(state, wait, |state| is_so(state));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits until there is something; `None` when the store is closed.
    fn wait<T>(&self, mut next: impl FnMut(&mut State) -> Option<T>) -> Option<T> {
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
