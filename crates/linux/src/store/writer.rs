//! The two threads of a store: one writes, the other brings what was written to the disk.
//!
//! A disk may take longer than a neighbour waits for a heartbeat, and so may a full page cache. So
//! the run loop only hands over what is to be written, and waits for no more than [`WAIT_MAX`]
//! until it is out of reach of a crash of the process. What is not written by then goes on waiting,
//! in a queue of [`QUEUE_BYTES_MAX`]. If that is full, its contents are given up, and the store is
//! failing until all entries have been written anew.
//!
//! A log that is written anew gets the records of its time beside the old one. It takes the place
//! of the old one when it is on the disk; what it got meanwhile is then brought there too, and so
//! is the directory.

use super::log::Log;
use crate::incarnation::sync_parent;
use nix::sys::signal::{SigSet, SigmaskHow};
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// For how long the run loop waits for the writing thread, once until that has caught up: a fifth
/// of the time between two heartbeats.
const WAIT_MAX: Duration = Duration::from_millis(20);
/// Bytes of payloads that wait to be written, with [`ENTRY_BYTES`] for each.
const QUEUE_BYTES_MAX: usize = 4 << 20;
/// What a payload takes beside its bytes.
const ENTRY_BYTES: usize = 48;

/// Something to write.
#[derive(Debug)]
enum Job {
    /// At the end of the log.
    Append(Vec<Vec<u8>>),
    /// As a log of its own, with this number.
    Rewrite(Vec<Vec<u8>>, u64),
}

/// The next step of the writing thread.
#[derive(Debug)]
enum Step {
    Write(Job),
    /// The log with this number is on the disk, or could not be brought there.
    Synced(u64, bool),
}

/// A file to bring to the disk.
#[derive(Clone, Debug)]
struct ToSync {
    log: Log,
    /// With the directory.
    directory: bool,
}

#[derive(Debug, Default)]
struct State {
    jobs: VecDeque<Job>,
    queued_bytes: usize,
    /// Whether the writing thread is at work.
    busy: bool,
    /// The number of the log that is being written anew, from its job until it takes its place.
    rewriting: Option<u64>,
    /// The number of the last rewrite.
    number: u64,
    /// The number of the log that has the name of the store.
    in_place: u64,
    file_bytes: u64,
    synced_bytes: u64,
    /// Why the store cannot be written.
    failing: Option<String>,
    sync_log: Option<ToSync>,
    sync_next: Option<Log>,
    synced_next: Option<(u64, bool)>,
    closed: bool,
}

/// What the threads and the run loop share.
#[derive(Debug)]
struct Shared {
    path: PathBuf,
    fabric: String,
    state: Mutex<State>,
    changed: Condvar,
}

/// The run loop's end. The threads end with it.
#[derive(Debug)]
pub(super) struct Writer {
    shared: Arc<Shared>,
    /// Whether the writing thread has not caught up since the run loop last waited in vain.
    behind: bool,
}

/// How the writing goes.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    pub(super) file_bytes: u64,
    /// Bytes of the file that are not known to be on the disk.
    pub(super) unsynced_bytes: u64,
    /// Bytes that wait to be written.
    pub(super) queued_bytes: u64,
    pub(super) failing: Option<String>,
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
        let (state, changed) = (Mutex::new(state), Condvar::new());
        let shared = Arc::new(Shared { path, fabric, state, changed });
        let (writes, syncs) = (shared.clone(), shared.clone());
        spawn("store", move || write(&writes, files))?;
        spawn("store-sync", move || sync(&syncs))?;
        Ok(Writer { shared, behind: false })
    }

    /// Has records written at the end of the log, and waits for that, but not for long.
    pub(super) fn append(&mut self, payloads: Vec<Vec<u8>>) {
        let mut state = self.shared.lock();
        if state.failing.is_some() && state.rewriting.is_none() {
            // All entries will be written anew.
            return;
        }
        let bytes = payloads.iter().map(|payload| payload.len() + ENTRY_BYTES).sum::<usize>();
        if state.queued_bytes + bytes > QUEUE_BYTES_MAX {
            return state.overflow();
        }
        state.queued_bytes += bytes;
        state.jobs.push_back(Job::Append(payloads));
        self.shared.changed.notify_all();
        self.behind &= state.busy || state.jobs.len() > 1;
        let end = Instant::now() + WAIT_MAX;
        while !self.behind && (state.busy || !state.jobs.is_empty()) {
            let left = end.saturating_duration_since(Instant::now());
            self.behind = left.is_zero();
            state = match self.shared.changed.wait_timeout(state, left) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }

    /// Has all entries written anew.
    pub(super) fn rewrite(&mut self, payloads: Vec<Vec<u8>>) {
        let mut state = self.shared.lock();
        state.number += 1;
        state.rewriting = Some(state.number);
        let job = Job::Rewrite(payloads, state.number);
        state.jobs.push_back(job);
        self.shared.changed.notify_all();
    }

    pub(super) fn progress(&self) -> Progress {
        let state = self.shared.lock();
        Progress {
            file_bytes: state.file_bytes,
            unsynced_bytes: state.file_bytes.saturating_sub(state.synced_bytes),
            queued_bytes: state.queued_bytes as u64,
            failing: state.failing.clone(),
            idle: !state.busy && state.jobs.is_empty() && state.rewriting.is_none(),
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
    fn fail(&mut self, error: &io::Error) {
        self.failing.get_or_insert_with(|| error.to_string());
    }

    /// Gives up what waits, and a rewrite that would lack it.
    fn overflow(&mut self) {
        self.jobs.clear();
        self.queued_bytes = 0;
        self.rewriting = None;
        self.fail(&io::Error::other("the disk takes less than what changes"));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// The next step of the writing thread.
    fn next_step(&self) -> Option<Step> {
        self.wait(|state| {
            let synced = state.synced_next.take().map(|(number, well)| Step::Synced(number, well));
            let step = synced.or_else(|| state.jobs.pop_front().map(Step::Write))?;
            state.busy = true;
            Some(step)
        })
    }
}

/// The files, in the hands of the writing thread.
#[derive(Debug)]
struct Files {
    /// `None` if it could not be written.
    log: Option<Log>,
    /// The log that will take its place.
    next: Option<Log>,
}

impl Files {
    /// The log is on the disk.
    fn new(log: io::Result<Log>, state: &mut State) -> Files {
        match &log {
            Ok(log) => (state.file_bytes, state.synced_bytes) = (log.bytes, log.bytes),
            Err(error) => state.fail(error),
        }
        Files { log: log.ok(), next: None }
    }

    fn step(&mut self, shared: &Shared, step: Step) {
        let mut bytes = 0;
        let done = match step {
            Step::Write(Job::Append(payloads)) => {
                bytes = payloads.iter().map(|payload| payload.len() + ENTRY_BYTES).sum();
                self.append(shared, &payloads)
            }
            Step::Write(Job::Rewrite(payloads, number)) => {
                Log::create(&shared.path, &shared.fabric, number, &payloads).map(|log| {
                    shared.lock().sync_next = Some(log.clone());
                    self.next = Some(log);
                })
            }
            Step::Synced(number, well) => self.synced(shared, number, well),
        };
        let mut state = shared.lock();
        state.busy = false;
        state.queued_bytes = state.queued_bytes.saturating_sub(bytes);
        if let Err(error) = done {
            state.fail(&error);
            (self.next, state.rewriting) = (None, None);
        }
        if let Some(log) = self.log.as_ref().filter(|log| log.bytes != state.file_bytes) {
            state.file_bytes = log.bytes;
            let directory = state.sync_log.as_ref().is_some_and(|sync| sync.directory);
            state.sync_log = Some(ToSync { log: log.clone(), directory });
        }
        shared.changed.notify_all();
    }

    fn append(&mut self, shared: &Shared, payloads: &[Vec<u8>]) -> io::Result<()> {
        // Without these records it cannot take the place of the log.
        if let Some(lacks) = self.next.take_if(|next| next.append(payloads).is_err()) {
            shared.lock().rewriting.take_if(|number| *number == lacks.number);
        }
        self.log.as_mut().map_or(Ok(()), |log| log.append(payloads))
    }

    /// The log that was written anew is on the disk: it takes its place, unless another is wanted.
    fn synced(&mut self, shared: &Shared, number: u64, well: bool) -> io::Result<()> {
        let Some(next) = self.next.take_if(|next| next.number == number) else { return Ok(()) };
        if shared.lock().rewriting != Some(number) {
            return Ok(());
        }
        if !well {
            return Err(io::Error::other("the disk did not take what was written"));
        }
        next.take_place(&shared.path)?;
        let mut state = shared.lock();
        // What came since it was handed over is not on the disk yet, nor is its name.
        (state.in_place, state.file_bytes, state.synced_bytes) = (number, next.bytes, 0);
        state.sync_log = Some(ToSync { log: next.clone(), directory: true });
        if state.rewriting == Some(number) {
            (state.rewriting, state.failing) = (None, None);
        }
        self.log = Some(next);
        Ok(())
    }
}

/// The writing thread.
fn write(shared: &Shared, mut files: Files) {
    while let Some(step) = shared.next_step() {
        files.step(shared, step);
    }
}

/// The thread that brings files to the disk.
fn sync(shared: &Shared) {
    let next = |state: &mut State| {
        let next = state.sync_next.take().map(|log| (ToSync { log, directory: false }, true));
        next.or_else(|| state.sync_log.take().map(|sync| (sync, false)))
    };
    while let Some((ToSync { log, directory }, is_next)) = shared.wait(next) {
        let mut done = log.file.sync_all();
        if directory {
            done = done.and_then(|()| sync_parent(&shared.path));
        }
        let mut state = shared.lock();
        if is_next {
            state.synced_next = Some((log.number, done.is_ok()));
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_a_new_log_got_while_it_was_brought_to_the_disk_is_brought_there_next() {
        let folder = std::env::temp_dir().join(format!("axon-tail-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let (path, fabric) = (folder.join("store"), String::from("ring"));
        let log = Log::create(&path, &fabric, 0, &[]).and_then(|log| {
            log.take_place(&path)?;
            Ok(log)
        });
        let mut state = State { rewriting: Some(1), ..State::default() };
        let mut files = Files::new(log, &mut state);
        let (state, changed) = (Mutex::new(state), Condvar::new());
        let shared = Shared { path, fabric, state, changed };
        files.step(&shared, Step::Write(Job::Rewrite(vec![vec![1; 9]], 1)));
        let handed = shared.lock().sync_next.take().expect("a log to bring to the disk");
        files.step(&shared, Step::Write(Job::Append(vec![vec![2; 9]])));
        assert_eq!(shared.lock().sync_log.take().unwrap().log.number, 0, "of the old log");
        files.step(&shared, Step::Synced(1, true));
        let state = shared.lock();
        assert_eq!((state.in_place, state.rewriting, state.synced_bytes), (1, None, 0));
        let sync = state.sync_log.as_ref().expect("its tail is not on the disk yet");
        assert!(sync.directory && sync.log.number == 1, "{sync:?}");
        assert!(sync.log.bytes == state.file_bytes && sync.log.bytes > handed.bytes);
        assert_eq!(fs::metadata(&shared.path).unwrap().len(), state.file_bytes);
        fs::remove_dir_all(folder).unwrap();
    }
}
