//! The store of a controller: what it keeps for its next incarnation, in a file that survives a
//! crash at any moment.
//!
//! The file is a log (`format.rs`): a change is one record at its end. What is written is out of
//! reach of a crash of the process at once, before any frame of the same call leaves: so an address
//! is in the store before its host is sent it. Another thread brings it to the disk (`sync.rs`),
//! since a disk may take longer than a neighbour waits for a heartbeat. A machine that loses power
//! may therefore lose the records of the last moments, but none before them, and never half a
//! record. A log that has grown is written anew, into a second file that takes its place once it is
//! on the disk.
//!
//! Whoever opens a store holds the lock on the state file that it belongs to
//! ([`incarnation`](crate::incarnation)).
//!
//! - A file whose last record is not whole was cut by a crash: what is whole counts.
//! - One with bytes that are no record before others that are is damaged: it is set aside, and what
//!   is whole counts, with an alarm. Whatever the lost record said is learned again.
//! - One of another fabric, of another version, or that is no store is refused and left alone.
//! - Where the disk is full, or fails, the controller runs on with an alarm. The store is written
//!   anew as soon as that works.

pub mod format;
mod sync;

use crate::clock::Clock;
use crate::incarnation::{beside, is_full, sync_parent};
use anyhow::{Context, Result, bail};
use axon_node::{Action, StoreChange, StoreKey, Stored};
use axon_wire::{Span, Time};
use format::{Contents, Fault, Record, Refusal};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use sync::Syncer;

/// A log is written anew when it has this many times the bytes of its entries, ...
const GROWTH_MAX: u64 = 4;
/// ... and more than this many besides.
const SLACK_BYTES: u64 = 256 << 10;
/// How often a store that could not be written is tried again.
const RETRY: Span = Span::from_secs(1);
/// Times before and after this many nanoseconds from the start of a node are as good as never.
const FAR_NANOS: u64 = 100_000_000_000_000_000;

/// How a store fares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreStatus {
    /// Hosts and addresses in it.
    pub entries: u64,
    /// Bytes of its file.
    pub file_bytes: u64,
    /// Whether it cannot be written: what is given out now is lost with a crash.
    pub failing: bool,
}

/// An open store.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    fabric: String,
    clock: Clock,
    /// The payload of each entry.
    entries: BTreeMap<StoreKey, Vec<u8>>,
    /// Bytes of all payloads.
    live_bytes: u64,
    /// The file; `None` if it could not be opened.
    log: Option<Log>,
    /// The log that will take its place, while it is brought to the disk.
    next: Option<Log>,
    syncer: Syncer,
    failing: bool,
    retried: Time,
}

/// A file that records are appended to.
#[derive(Debug)]
struct Log {
    file: Arc<File>,
    bytes: u64,
}

impl Log {
    fn append(&mut self, payloads: &[Vec<u8>]) -> io::Result<()> {
        let mut out = Vec::new();
        for payload in payloads {
            let offset = self.bytes + out.len() as u64;
            format::put(&mut out, offset, payload);
        }
        if let Err(error) = (&*self.file).write_all(&out) {
            // Half a record would end the file for whoever reads it. Making it shorter takes no
            // room.
            let _ = self.file.set_len(self.bytes);
            return Err(error);
        }
        self.bytes += out.len() as u64;
        Ok(())
    }
}

impl Store {
    /// Opens the store `path` of the controller of this fabric, made if it is not there, and
    /// answers with what is in it, in the time of `clock`.
    ///
    /// # Errors
    /// The file is no store of this fabric that this version reads, or it cannot be read or
    /// written, other than for want of room. The error says the way out.
    pub fn open(path: &Path, fabric: &str, clock: &Clock) -> Result<(Store, Vec<Stored>)> {
        let Contents { entries, fault } = found(path, fabric)?;
        let stored = entries.values().filter_map(|payload| stored(payload, clock)).collect();
        let mut store = Store {
            path: path.into(),
            fabric: fabric.into(),
            clock: *clock,
            live_bytes: entries.values().map(|payload| payload.len() as u64).sum(),
            entries,
            log: None,
            next: None,
            syncer: Syncer::start().context("cannot start a thread")?,
            failing: false,
            retried: Time::ZERO,
        };
        if let Some(Fault::Damaged { at }) = fault {
            store.set_aside(at)?;
        }
        match store.rewrite().and_then(|log| {
            log.file.sync_all()?;
            store.replace(log)
        }) {
            Err(error) if is_full(&error) => store.fail(&error),
            written => written.with_context(|| format!("cannot write {}", path.display()))?,
        }
        Ok((store, stored))
    }

    /// How it fares.
    pub fn status(&self) -> StoreStatus {
        StoreStatus {
            entries: self.entries.len() as u64,
            file_bytes: self.log.as_ref().map_or(0, |log| log.bytes),
            failing: self.failing,
        }
    }

    /// Keeps what these actions of the controller say. When it returns, a crash of this process
    /// loses nothing of it, unless the store is failing.
    pub fn keep<B>(&mut self, actions: &[Action<B>]) {
        let changes = actions.iter().filter_map(|action| match action {
            Action::Store(change) => Some(&**change),
            _ => None,
        });
        self.keep_changes(changes);
    }

    /// As [`Store::keep`]. A change that changes nothing is not written.
    pub fn keep_changes<'a>(&mut self, changes: impl Iterator<Item = &'a StoreChange>) {
        let payloads: Vec<Vec<u8>> = changes.filter_map(|change| self.enter(change)).collect();
        if payloads.is_empty() {
            return;
        }
        let Some(log) = self.log.as_mut().filter(|_| !self.failing) else { return };
        if let Err(error) = log.append(&payloads) {
            return self.fail(&error);
        }
        self.syncer.sync(&log.file);
        if let Some(next) = &mut self.next
            && next.append(&payloads).is_err()
        {
            self.next = None;
        }
    }

    /// What is due from time to time: a log that has grown is written anew, and so is one that
    /// could not be written.
    pub fn round(&mut self, now: Time) {
        if self.syncer.has_failed() && !self.failing {
            self.fail(&io::Error::other("the disk did not take what was written"));
        }
        if self.failing {
            if now.since(self.retried) >= RETRY {
                self.retried = now;
                let again = self.rewrite().and_then(|log| {
                    log.file.sync_all()?;
                    self.replace(log)
                });
                self.failing = again.is_err();
                if !self.failing {
                    tracing::info!(file = %self.path.display(), "the store is written again");
                }
            }
        } else if let Some(next) = self.next.take_if(|next| self.syncer.is_on_disk(&next.file)) {
            if let Err(error) = self.replace(next) {
                self.fail(&error);
            }
        } else if let Some(next) = &self.next {
            // It may have been in the way of another file.
            self.syncer.sync(&next.file);
        } else if self.has_grown() {
            match self.rewrite() {
                Ok(log) => {
                    self.syncer.sync(&log.file);
                    self.next = Some(log);
                }
                Err(error) => self.fail(&error),
            }
        }
    }

    /// Enters a change; answers with its payload, if it is one.
    fn enter(&mut self, change: &StoreChange) -> Option<Vec<u8>> {
        let (key, put) = match change {
            StoreChange::Put(entry) => (entry.key(), Some(self.payload(entry))),
            StoreChange::Delete(key) => (*key, None),
        };
        if self.entries.get(&key) == put.as_ref() {
            return None;
        }
        let before = match &put {
            Some(payload) => self.entries.insert(key, payload.clone()),
            None => self.entries.remove(&key),
        };
        self.live_bytes += put.as_ref().map_or(0, |payload| payload.len() as u64);
        self.live_bytes -= before.map_or(0, |payload| payload.len() as u64);
        Some(put.unwrap_or_else(|| format::payload(&Record::Delete(key))))
    }

    fn payload(&self, entry: &Stored) -> Vec<u8> {
        format::payload(&match entry {
            Stored::Host(host) => Record::Host(host.clone()),
            Stored::Lease(lease) => {
                let until = self.clock.unix_nanos(lease.until);
                let mut lease = lease.clone();
                lease.until = Time::ZERO;
                Record::Lease(lease, until)
            }
        })
    }

    fn has_grown(&self) -> bool {
        let bytes = self.log.as_ref().map_or(0, |log| log.bytes);
        // Beside its payload a record has twelve bytes.
        let live = self.live_bytes + 12 * self.entries.len() as u64;
        bytes > live * GROWTH_MAX + SLACK_BYTES
    }

    /// Writes all entries into a file beside the store.
    fn rewrite(&self) -> io::Result<Log> {
        let path = beside(&self.path, ".new");
        let header = format::header(&self.fabric);
        let mut options = File::options();
        options.create(true).write(true).truncate(true).mode(0o600);
        let file = options.open(&path)?;
        (&file).write_all(&header)?;
        let mut log = Log { file: Arc::new(file), bytes: header.len() as u64 };
        log.append(&self.entries.values().cloned().collect::<Vec<_>>())?;
        Ok(log)
    }

    /// Puts a log that is on the disk in the place of the store.
    fn replace(&mut self, log: Log) -> io::Result<()> {
        fs::rename(beside(&self.path, ".new"), &self.path)?;
        self.log = Some(log);
        sync_parent(&self.path)
    }

    fn fail(&mut self, error: &io::Error) {
        if !self.failing {
            let file = self.path.display();
            tracing::error!(%file, %error, "ALARM: the store cannot be written; leases given from \
                now on are forgotten if this process ends");
        }
        (self.failing, self.next) = (true, None);
    }

    /// Gives a damaged store a second name, so that it can be looked at when a new one has taken
    /// its place.
    fn set_aside(&self, at: usize) -> Result<()> {
        let (path, aside) = (self.path.display(), beside(&self.path, ".damaged"));
        let linked = match fs::remove_file(&aside) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => fs::hard_link(&self.path, &aside),
        };
        linked.with_context(|| format!("{path} is damaged, and cannot be set aside"))?;
        tracing::error!(file = %path, at, kept = self.entries.len(), aside = %aside.display(),
            "ALARM: the store was damaged; what was whole is used, the rest is learned again");
        Ok(())
    }
}

/// Reads the file; there may be none.
fn found(path: &Path, fabric: &str) -> Result<Contents> {
    let file = path.display();
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Contents::default()),
        Err(error) => return Err(error).with_context(|| format!("cannot read {file}")),
    };
    let contents = match format::read(&bytes, fabric) {
        Ok(contents) => contents,
        Err(refusal) => {
            let way_out = match refusal {
                Refusal::Version(version) if version > format::FORMAT_VERSION => {
                    "start the axon that wrote it, or move it away: the controller then begins \
                     with nothing and learns hosts and leases again"
                }
                _ => {
                    "name another state file with --state, or move it away: the controller then \
                     begins with nothing and learns hosts and leases again"
                }
            };
            bail!("{file} cannot be used: {refusal}; {way_out}");
        }
    };
    if let Some(Fault::Torn { at }) = contents.fault {
        let (cut, kept) = (bytes.len() - at, contents.entries.len());
        tracing::warn!(%file, cut, kept, "the store ended in half a record, as after a crash");
    }
    Ok(contents)
}

/// An entry in the time of a node that starts with `clock`.
fn stored(payload: &[u8], clock: &Clock) -> Option<Stored> {
    match format::decode(payload)? {
        Record::Host(host) => Some(Stored::Host(host)),
        Record::Lease(mut lease, until) => {
            let nanos = until.saturating_sub(clock.unix_nanos(Time::ZERO));
            lease.until = Time::from_nanos(nanos.min(FAR_NANOS));
            Some(Stored::Lease(lease))
        }
        Record::Delete(_) => None,
    }
}

#[cfg(test)]
mod tests;
