//! Sizes the kernel's neighbour table for all hosts of all labs.
//!
//! The table is shared by all network namespaces of a machine, with a limit (`gc_thresh3`, 1024 by
//! default) on their total number of entries. If all hosts communicate with each other, they need
//! hosts x hosts entries. When the table is full, a host can neither send nor answer ARP requests,
//! and appears dead to the fabric. The limit exists only in the machine's own namespace, so root
//! raises it while labs are up. Without root, it is unchanged.
//!
//! One record for all labs, in the folder of their directories, holds the limits before the first
//! lab and the need of each lab. A lab that starts raises the limits to the sum. A lab that ends
//! removes its need, and that of every lab that has died in the meantime. The last lab restores the
//! limits and removes the record.

use super::root::{self, RootLock};
use super::state::StateDir;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// Soft limit, beyond which old entries are garbage-collected, and hard limit.
const LIMITS: [&str; 2] = ["gc_thresh2", "gc_thresh3"];
/// Tables for ARP and for IPv6 neighbour discovery, each with the name of its record, which is not
/// a valid lab name.
const TABLES: [(&str, &str); 2] = [
    ("/proc/sys/net/ipv4/neigh/default", ".neighbours.json"),
    ("/proc/sys/net/ipv6/neigh/default", ".neighbours-ipv6.json"),
];

/// Changed limits that have to be restored.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    /// Limits before the first lab.
    before: [u64; 2],
    /// Value to which both were raised, if they were.
    raised: Option<u64>,
    /// Entries that each lab needs.
    needs: BTreeMap<String, u64>,
}

/// Paths of the limits and of their record.
struct Limits {
    directory: PathBuf,
    record: PathBuf,
}

/// Reserves entries for `hosts` hosts of lab `name` that all communicate with each other. Returns a
/// message for the user if that is not possible.
pub(super) fn raise(lock: &RootLock, name: &str, hosts: usize) -> Result<Option<String>> {
    // Each host knows all others and the fabric's server. The number is doubled for other entries.
    let need = 2 * (hosts as u64) * (hosts as u64 + 1);
    let raise = |limits: Limits| limits.raise(name, need, |other| is_live(lock, other));
    let [v4, v6] = Limits::of_this_machine().map(raise);
    let missing = v4?.map(|missing| ("ipv4", missing)).or(v6?.map(|missing| ("ipv6", missing)));
    Ok(missing.map(|(family, (limit, sum))| {
        format!(
            "this kernel holds {limit} neighbour entries for all hosts together, and {hosts} \
             hosts that all talk to each other need {}: pings among all of them at once may \
             fail; as root: sysctl -w net.{family}.neigh.default.gc_thresh3={sum}",
            need / 2
        )
    }))
}

/// Removes lab `name` from the record. If no lab is left, restores the limits that [`raise`] has
/// changed, unless they have been changed again since.
pub(super) fn restore(lock: &RootLock, name: &str) {
    for limits in Limits::of_this_machine() {
        limits.restore(name, |other| is_live(lock, other));
    }
}

/// Returns whether a lab is running or being started.
fn is_live(lock: &RootLock, name: &str) -> bool {
    StateDir::of(name).is_ok_and(|state| {
        let free = || matches!(state.lock(lock), Ok(Some(_)));
        state.check().is_ok() && (state.supervisor().is_some() || !free())
    })
}

impl Limits {
    fn of_this_machine() -> [Limits; 2] {
        TABLES.map(|(directory, record)| Limits {
            directory: directory.into(),
            record: root::path().join(record),
        })
    }

    fn now(&self) -> Result<[u64; 2]> {
        let read = |limit: &str| -> Result<u64> {
            let text = fs::read_to_string(self.directory.join(limit))
                .with_context(|| format!("cannot read {limit}"))?;
            Ok(text.trim().parse()?)
        };
        Ok([read(LIMITS[0])?, read(LIMITS[1])?])
    }

    fn write(&self, limit: usize, value: u64) -> bool {
        fs::write(self.directory.join(LIMITS[limit]), value.to_string()).is_ok()
    }

    fn record(&self) -> Option<Record> {
        serde_json::from_slice(&fs::read(&self.record).ok()?).ok()
    }

    /// Records the need and raises the limits. If that fails, returns the limit and the sum of all
    /// needs.
    fn raise(
        &self,
        name: &str,
        need: u64,
        is_live: impl Fn(&str) -> bool,
    ) -> Result<Option<(u64, u64)>> {
        let Ok(now) = self.now() else {
            // In a container, the limits are neither visible nor writable.
            return Ok(None);
        };
        let fresh = Record { before: now, raised: None, needs: BTreeMap::new() };
        let mut record = self.record().unwrap_or(fresh);
        if record.raised.is_none_or(|raised| now != [raised; 2]) {
            // The limits have been changed since then, so the current ones are the new baseline.
            (record.before, record.raised) = (now, None);
        }
        record.needs.retain(|other, _| is_live(other));
        record.needs.insert(name.to_owned(), need);
        let sum = record.needs.values().sum::<u64>();
        let is_enough = now[1] >= sum;
        if !is_enough {
            record.raised = Some(sum);
        }
        // Write the record first, so that a crash in between can be undone.
        fs::write(&self.record, serde_json::to_vec(&record)?)?;
        // Raise the hard limit first, because a soft limit above it is useless.
        let done = is_enough || [1, 0].into_iter().all(|limit| self.write(limit, sum));
        Ok((!done).then_some((now[1], sum)))
    }

    fn restore(&self, name: &str, is_live: impl Fn(&str) -> bool) {
        let Some(mut record) = self.record() else {
            return;
        };
        record.needs.retain(|other, _| other != name && is_live(other));
        if !record.needs.is_empty() {
            // If the record cannot be written, the limits could not have been raised either.
            let _ = serde_json::to_vec(&record).map(|text| fs::write(&self.record, text));
            return;
        }
        let now = self.now().unwrap_or_default();
        for (limit, now) in now.into_iter().enumerate() {
            if record.raised == Some(now) {
                // If there is no permission, nothing was changed in the first place.
                self.write(limit, record.before[limit]);
            }
        }
        let _ = fs::remove_file(&self.record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> (PathBuf, Limits) {
        let path = std::env::temp_dir().join(format!("axon-limits-{name}-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        let limits = Limits { directory: path.clone(), record: path.join("record.json") };
        assert!(limits.write(0, 512) && limits.write(1, 1024));
        (path, limits)
    }

    #[test]
    fn the_last_of_two_labs_puts_the_limits_back() {
        let (path, limits) = scratch("two");
        for (name, need) in [("a", 3000), ("b", 2000)] {
            assert_eq!(limits.raise(name, need, |_| true).unwrap(), None);
        }
        assert_eq!(limits.now().unwrap(), [5000; 2]);
        limits.restore("a", |_| true);
        assert_eq!(limits.now().unwrap(), [5000; 2]);
        limits.restore("b", |_| true);
        assert_eq!(limits.now().unwrap(), [512, 1024]);
        assert!(limits.record().is_none());
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn a_lab_that_died_holds_nothing_up() {
        let (path, limits) = scratch("died");
        for name in ["dead", "gone", "alive"] {
            limits.raise(name, 2000, |_| true).unwrap();
        }
        // The two dead labs never remove their needs.
        limits.restore("alive", |_| false);
        assert_eq!(limits.now().unwrap(), [512, 1024]);
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn what_an_administrator_sets_meanwhile_stays() {
        let (path, limits) = scratch("admin");
        limits.raise("a", 2000, |_| true).unwrap();
        assert!(limits.write(0, 8192) && limits.write(1, 8192));
        limits.raise("b", 2000, |_| true).unwrap();
        limits.restore("a", |_| true);
        limits.restore("b", |_| true);
        assert_eq!(limits.now().unwrap(), [8192; 2]);
        fs::remove_dir_all(path).unwrap();
    }
}
