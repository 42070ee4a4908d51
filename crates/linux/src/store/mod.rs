//! Store of a controller, with its state for the next incarnation, in a file that survives a crash
//! at any moment.
//!
//! The file is a log (`format.rs`): each change appends one record. A thread writes it
//! (`writer.rs`). Written data survives a crash of the process. The run loop waits for the write
//! before any frame from the same call leaves, so an address is in the store before it is sent to
//! its host. The run loop waits for at most a few milliseconds in each round. It never waits for
//! the disk, because another thread syncs the file. A machine that loses power may therefore lose
//! the last records, but none before them, and never a part of one. A log that has grown is
//! rewritten into a second file, which replaces it once it is on the disk.
//!
//! The caller that opens a store holds the lock on the state file to which it belongs
//! ([`incarnation`](crate::incarnation)).
//!
//! - A file whose last record is incomplete was truncated by a crash. Its complete records count.
//! - A file with invalid bytes before valid records is damaged. It is set aside, its complete
//!   records count, and an alarm is raised. Lost entries are learned again.
//! - A file for another fabric, of another version, or that is not a store is refused and left
//!   alone.
//! - If the disk is full, fails, or is too slow for the changes, the controller continues with an
//!   alarm. The store is rewritten as soon as that works.

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

/// A log is rewritten when its length exceeds that of its entries times this factor plus
/// [`SLACK_BYTES`].
const GROWTH_MAX: u64 = 4;
/// Constant part of the length beyond which a log is rewritten, in bytes.
const SLACK_BYTES: u64 = 256 << 10;
/// Interval between attempts to write a store after a failure.
const RETRY: Span = Span::from_secs(1);
/// Times that are further than this many nanoseconds from the start of a node count as infinitely
/// far.
const FAR_NANOS: u64 = 100_000_000_000_000_000;

/// Status of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreStatus {
    /// Number of hosts and addresses.
    pub entries: u64,
    /// Length of the file, in bytes.
    pub file_bytes: u64,
    /// Bytes of the file that are not synced to the disk: a loss of power may lose them.
    pub unsynced_bytes: u64,
    /// Bytes queued for writing because the disk is slow: a crash of the process loses them.
    pub queued_bytes: u64,
    /// True if writing fails: new entries are lost in a crash.
    pub failing: bool,
}

/// Open store.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    clock: Clock,
    /// Payload of each entry.
    entries: BTreeMap<StoreKey, Vec<u8>>,
    /// Bytes of all payloads.
    live_bytes: u64,
    writer: Writer,
    /// True if an alarm was raised because the store cannot be written.
    failing: bool,
    /// True if an alarm was raised because the store cannot be rewritten.
    refused: bool,
    retried: Time,
}

impl Store {
    /// Opens or creates the store `path` of the controller of this fabric. Returns the entries,
    /// with their times converted to `clock`.
    ///
    /// # Errors
    /// The file is not a store for this fabric that this version can read. Or it cannot be read or
    /// written, for a reason other than a full disk. The error includes the remedy.
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

    /// Returns the status of the store.
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

    /// Stores the changes in these actions of the controller. When this returns, a crash of the
    /// process loses none of them, unless the store is failing or has queued bytes.
    pub(crate) fn keep(&mut self, actions: &[Action]) {
        let changes = actions.iter().filter_map(|action| match action {
            Action::Store(change) => Some(&**change),
            _ => None,
        });
        self.keep_changes(changes);
    }

    /// Stores changes as `Store::keep` does. A change that has no effect is not written.
    pub fn keep_changes<'a>(&mut self, changes: impl Iterator<Item = &'a StoreChange>) {
        let payloads: Vec<Vec<u8>> = changes.filter_map(|change| self.enter(change)).collect();
        if payloads.is_empty() {
            return;
        }
        self.writer.append(payloads);
    }

    /// Rewrites a log that has grown or could not be written. Call this in every round.
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

    /// Waits until all changes are written, for at most `wait`. Retries a failing store once.
    /// Returns the final status, and logs any loss.
    pub(crate) fn close(mut self, wait: Duration) -> StoreStatus {
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

    /// Raises or clears the alarms about writing and rewriting the store.
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

    /// Applies a change. Returns its payload if the entry differs from the previous one.
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
        // A record has twelve bytes in addition to its payload.
        let live = self.live_bytes + 12 * self.entries.len() as u64;
        bytes > live * GROWTH_MAX + SLACK_BYTES
    }
}

/// Writes these payloads as the store and syncs it.
fn written(path: &Path, fabric: &str, payloads: Vec<Vec<u8>>) -> io::Result<Log> {
    let log = Log::create(path, fabric, 0, &payloads)?;
    log.sync()?;
    log.take_place(path)?;
    sync_parent(path)?;
    Ok(log)
}

/// Gives a damaged store a second name, so that it can be inspected after it has been replaced.
/// `kept` is the number of valid entries.
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

/// Reads the file if it exists.
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

/// Decodes an entry and converts its times to the clock of the node.
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
