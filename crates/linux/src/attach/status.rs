//! What a process that runs an agent answers.

use crate::status::ask_at;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// An agent of the fabric file, as the process that runs it reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachmentStatus {
    /// Its name in the fabric file.
    pub agent: String,
    /// `cache` or `forwarder`, as in the fabric file.
    pub kind: String,
    /// Whether it is attached to its switch now.
    pub attached: bool,
    /// How often it was attached since its process was started.
    pub attachments: u64,
    /// What the agent has counted itself, by name: see its file in `crates/agents`. A cache begins
    /// again with each attachment.
    pub counters: BTreeMap<String, u64>,
}

/// Asks the process of an agent that answers at `path`.
///
/// # Errors
/// Nobody listens, no answer within two seconds, or an answer that is no status.
pub fn ask(path: &Path) -> io::Result<AttachmentStatus> {
    ask_at(path)
}
