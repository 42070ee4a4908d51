//! The store of a controller: what it keeps for its next incarnation, in a file that survives a
//! crash at any moment.
//!
//! The file is a log (`format.rs`): a change is one record at its end. A thread writes it
//! (`writer.rs`). What is written is out of reach of a crash of the process, and the run loop waits
//! for that before any frame of the same call leaves: so an address is in the store before its host
//! is sent it. It waits for a few milliseconds of a round at most, and never for the disk: another
//! thread brings what was written there. A machine that loses power may therefore lose the records
//! of the last moments, but none before them, and never half a record. A log that has grown is
//! written anew, into a second file that takes its place once it is on the disk.
//!
//! Whoever opens a store holds the lock on the state file that it belongs to
//! ([`incarnation`](crate::incarnation)).
//!
//! - A file whose last record is not whole was cut by a crash: what is whole counts.
//! - One with bytes that are no record before others that are is damaged: it is set aside, and what
//!   is whole counts, with an alarm. Whatever the lost record said is learned again.
//! - One of another fabric, of another version, or that is no store is refused and left alone.
//! - Where the disk is full, fails, or takes less than what changes, the controller runs on with an
//!   alarm. The store is written anew as soon as that works.

mod allowance;
mod files;
pub mod format;
mod log;
mod state;
mod writer;

use crate::clock::Clock;
use crate::incarnation::{beside, is_full, sync_parent};
use anyhow::{Context, Result, bail};
use axon_node::{Action, StoreChange, StoreKey, Stored, StoredInVlan, StoredLease, StoredLease6};
use axon_wire::{Span, Time};
use format::{Contents, Fault, Record, Refusal};
use log::Log;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use writer::{Progress, Writer};

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
    /// Bytes of its file that are not known to be on the disk: a loss of power may lose them.
    pub unsynced_bytes: u64,
    /// Bytes that wait to be written, because the disk is slow: a crash of the process loses them.
    pub queued_bytes: u64,
    /// Whether it cannot be written: what is given out now is lost with a crash.
    pub failing: bool,
}

/// An open store.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    clock: Clock,
    /// The payload of each entry.
    entries: BTreeMap<StoreKey, Vec<u8>>,
    /// Bytes of all payloads.
    live_bytes: u64,
    writer: Writer,
    /// Whether there was an alarm because it cannot be written.
    failing: bool,
    /// Whether there was one because it cannot be written anew.
    refused: bool,
    retried: Time,
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
        if let Some(Fault::Damaged { at }) = fault {
            set_aside(path, at, entries.len())?;
        }
        let log = written(path, fabric, entries.values().cloned().collect());
        let log = match log {
            Err(error) if !is_full(&error) => {
                return Err(error).with_context(|| format!("cannot write {}", path.display()));
            }
            log => log,
        };
        let mut store = Store {
            path: path.into(),
            clock: *clock,
            live_bytes: entries.values().map(|payload| payload.len() as u64).sum(),
            entries,
            writer: Writer::start((path.into(), fabric.into()), log)
                .context("cannot start a thread")?,
            failing: false,
            refused: false,
            retried: Time::ZERO,
        };
        store.alarm(&store.writer.progress());
        Ok((store, stored))
    }

    /// How it fares.
    pub fn status(&self) -> StoreStatus {
        let progress = self.writer.progress();
        StoreStatus {
            entries: self.entries.len() as u64,
            file_bytes: progress.file_bytes,
            unsynced_bytes: progress.unsynced_bytes,
            queued_bytes: progress.queued_bytes,
            failing: progress.failing.is_some(),
        }
    }

    /// Keeps what these actions of the controller say. When it returns, a crash of this process
    /// loses nothing of it, unless the store is failing or has bytes that wait to be written.
    pub fn keep(&mut self, actions: &[Action]) {
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
        self.writer.append(payloads);
    }

    /// To be called once a round: a log that has grown is written anew, and so is one that could
    /// not be written.
    pub fn round(&mut self, now: Time) {
        self.writer.allowance.renew();
        let progress = self.writer.progress();
        self.alarm(&progress);
        let wanted = self.failing || self.has_grown(progress.file_bytes);
        let is_first = !self.failing && !self.refused;
        if wanted && progress.idle && (is_first || now.since(self.retried) >= RETRY) {
            self.retried = now;
            self.rewrite();
        }
    }

    /// Waits until all that was kept is written, for `wait` at most; a store that is failing is
    /// tried once more. Returns how the store fares then, and writes to the log what is lost.
    pub fn close(mut self, wait: Duration) -> StoreStatus {
        let end = Instant::now() + wait;
        self.writer.finish(wait);
        let progress = self.writer.progress();
        if progress.failing.is_some() && progress.idle {
            self.rewrite();
            self.writer.finish(end.saturating_duration_since(Instant::now()));
        }
        let (status, file) = (self.status(), self.path.display());
        let (lost_bytes, error) = (status.queued_bytes, self.writer.progress().failing);
        if let Some(error) = error {
            tracing::error!(%file, lost_bytes, error, "ALARM: the store ends without the leases \
                and hosts of the last moments");
        } else if lost_bytes > 0 {
            tracing::error!(%file, lost_bytes, "ALARM: the disk is too slow: the store ends \
                without the leases and hosts of the last moments");
        }
        status
    }

    fn rewrite(&mut self) {
        self.writer.rewrite(self.entries.values().cloned().collect());
    }

    /// Says that the store cannot be written, or written anew, or that it is again.
    fn alarm(&mut self, progress: &Progress) {
        let (file, failing) = (self.path.display(), progress.failing.is_some());
        if let Some(error) = progress.failing.as_ref().filter(|_| !self.failing) {
            tracing::error!(%file, error, "ALARM: the store cannot be written; leases given from \
                now on are forgotten if this process ends");
        } else if !failing && self.failing {
            tracing::info!(%file, "the store is written again");
        }
        let refused = progress.refused.as_ref().filter(|_| !failing);
        if let Some(error) = refused.filter(|_| !self.refused) {
            tracing::error!(%file, error, "ALARM: the store cannot be written anew, and grows");
        }
        (self.failing, self.refused) = (failing, progress.refused.is_some());
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
        let until = match entry {
            Stored::Lease(lease) | Stored::InVlan(_, StoredInVlan::Lease(lease)) => lease.until,
            Stored::Lease6(lease) => lease.until,
            _ => Time::ZERO,
        };
        let until = self.clock.unix_nanos(until);
        format::payload(&match entry {
            Stored::Host(host) => Record::Host(host.clone()),
            Stored::Lease(lease) => {
                let lease = StoredLease { until: Time::ZERO, ..lease.clone() };
                Record::Lease(lease, until)
            }
            Stored::Lease6(lease) => {
                Record::Lease6(StoredLease6 { until: Time::ZERO, ..lease.clone() }, until)
            }
            Stored::InVlan(vlan, StoredInVlan::Host(host)) => {
                Record::HostInVlan(*vlan, host.clone())
            }
            Stored::InVlan(vlan, StoredInVlan::Lease(lease)) => {
                let lease = StoredLease { until: Time::ZERO, ..lease.clone() };
                Record::LeaseInVlan(*vlan, lease, until)
            }
            Stored::Pair(pair, allowed) => Record::Pair(*pair, *allowed),
            Stored::Quarantine(subject, on) => Record::Quarantine(*subject, *on),
        })
    }

    fn has_grown(&self, bytes: u64) -> bool {
        // Beside its payload a record has twelve bytes.
        let live = self.live_bytes + 12 * self.entries.len() as u64;
        bytes > live * GROWTH_MAX + SLACK_BYTES
    }
}

/// Writes these payloads as the store, and brings them to the disk.
fn written(path: &Path, fabric: &str, payloads: Vec<Vec<u8>>) -> io::Result<Log> {
    let log = Log::create(path, fabric, 0, &payloads)?;
    log.sync()?;
    log.take_place(path)?;
    sync_parent(path)?;
    Ok(log)
}

/// Gives a damaged store a second name, so that it can be looked at when a new one has taken its
/// place. `kept` entries were whole.
fn set_aside(store: &Path, at: usize, kept: usize) -> Result<()> {
    let (path, aside) = (store.display(), beside(store, ".damaged"));
    let linked = match fs::remove_file(&aside) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => fs::hard_link(store, &aside),
    };
    linked.with_context(|| format!("{path} is damaged, and cannot be set aside"))?;
    tracing::error!(file = %path, at, kept, aside = %aside.display(),
        "ALARM: the store was damaged; what was whole is used, the rest is learned again");
    Ok(())
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
    let own = |until: u64| {
        let nanos = until.saturating_sub(clock.unix_nanos(Time::ZERO));
        Time::from_nanos(nanos.min(FAR_NANOS))
    };
    match format::decode(payload)? {
        Record::Host(host) => Some(Stored::Host(host)),
        Record::Lease(lease, until) => {
            Some(Stored::Lease(StoredLease { until: own(until), ..lease }))
        }
        Record::Lease6(lease, until) => {
            Some(Stored::Lease6(StoredLease6 { until: own(until), ..lease }))
        }
        Record::HostInVlan(vlan, host) => Some(Stored::InVlan(vlan, StoredInVlan::Host(host))),
        Record::LeaseInVlan(vlan, lease, until) => {
            let lease = StoredLease { until: own(until), ..lease };
            Some(Stored::InVlan(vlan, StoredInVlan::Lease(lease)))
        }
        Record::Delete(_) => None,
        Record::Pair(pair, allowed) => Some(Stored::Pair(pair, allowed)),
        Record::Quarantine(subject, on) => Some(Stored::Quarantine(subject, on)),
    }
}

#[cfg(test)]
pub(crate) mod tests;
