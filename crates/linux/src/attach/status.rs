//! Status of a process that runs an agent.

use crate::status::ask_at;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Status of an agent of the fabric file, as its process reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachmentStatus {
    /// Name in the fabric file.
    pub agent: String,
    /// Kind as in the fabric file: `cache` or `forwarder`.
    pub kind: String,
    /// True if the agent is attached to its switch.
    pub attached: bool,
    /// Number of attachments since the process was started.
    pub attachments: u64,
    /// Counters of the agent itself, by name: see its file in `crates/agents`. A cache restarts
    /// them with each attachment.
    pub counters: BTreeMap<String, u64>,
}

/// Requests the status from the agent process that listens at `path`.
///
/// # Errors
/// No listener, no answer within two seconds, or an invalid answer.
pub fn ask(path: &Path) -> io::Result<AttachmentStatus> {
    ask_at(path)
}
