//! Room in the kernel's neighbour table for all hosts of a lab.
//!
//! The table is one for all network namespaces of a machine, with a limit (`gc_thresh3`,
//! 1024 by default) on the entries of all of them together. Hosts that all talk to each
//! other need hosts x hosts entries. When it is full, a host can neither ask nor answer ARP,
//! and looks dead to the fabric. The limit exists in the machine's own namespace only, so
//! root raises it while a lab is up, and `down` puts it back; without root it stays.

use super::state::StateDir;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// The soft limit, beyond which old entries are looked for, and the hard one.
const LIMITS: [&str; 2] = ["gc_thresh2", "gc_thresh3"];
const DIRECTORY: &str = "/proc/sys/net/ipv4/neigh/default";

/// What was changed and must be put back.
#[derive(Debug, Serialize, Deserialize)]
struct Raised {
    before: [u64; 2],
    after: u64,
}

fn path(limit: &str) -> PathBuf {
    Path::new(DIRECTORY).join(limit)
}

fn read(limit: &str) -> Result<u64> {
    let text = fs::read_to_string(path(limit)).with_context(|| format!("cannot read {limit}"))?;
    Ok(text.trim().parse()?)
}

/// Makes room for `hosts` hosts that all talk to each other. Returns what to tell the user
/// if that is not possible.
pub(super) fn raise(state: &StateDir, hosts: usize) -> Result<Option<String>> {
    // Each knows all others and the fabric's server, with as much again for what else there is.
    let after = 2 * (hosts as u64) * (hosts as u64 + 1);
    let Ok(before) = LIMITS.iter().map(|limit| read(limit)).collect::<Result<Vec<u64>>>() else {
        // In a container the limits cannot be seen, and not be changed either.
        return Ok(None);
    };
    let before = [before[0], before[1]];
    if before[1] >= after {
        return Ok(None);
    }
    // First the note, so that a crash between the two leaves nothing that cannot be undone.
    let note = serde_json::to_vec(&Raised { before, after })?;
    fs::write(state.path().join("neighbours.json"), note)?;
    // The hard limit first: the soft one means nothing above it.
    let written =
        LIMITS.iter().rev().all(|limit| fs::write(path(limit), after.to_string()).is_ok());
    Ok((!written).then(|| {
        format!(
            "this kernel holds {} neighbour entries for all hosts together, and {hosts} hosts \
             that all talk to each other need {}: pings among all of them at once may fail; \
             as root: sysctl -w net.ipv4.neigh.default.gc_thresh3={after}",
            before[1],
            after / 2
        )
    }))
}

/// Puts back what [`raise`] has changed, unless somebody has changed it since.
pub(super) fn restore(state: &StateDir) {
    let Ok(note) = fs::read(state.path().join("neighbours.json")) else {
        return;
    };
    let Ok(raised) = serde_json::from_slice::<Raised>(&note) else {
        return;
    };
    for (limit, before) in LIMITS.iter().zip(raised.before) {
        if read(limit).is_ok_and(|now| now == raised.after) {
            // Without the right to it nothing was changed either.
            let _ = fs::write(path(limit), before.to_string());
        }
    }
}
