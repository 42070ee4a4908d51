//! What stands before the records: versions, and which node it is.

use super::error::{Place, RecordingError};
use super::section::{self, Changed};
use axon_node::NodeKind;
use axon_wire::constants::version;
use axon_wire::{Incarnation, Time};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// The version of the format of recordings.
pub const FORMAT_VERSION: u16 = 1;
/// Bytes before the first section.
pub(super) const PREAMBLE_BYTES: usize = 24;
const MAGIC: [u8; 8] = *b"AXONREC\n";
/// Where the versions of the wire formats begin.
const WIRE_AT: usize = 10;
/// The wire formats that have a version, in their order in the preamble.
const WIRE: [(&str, u8); 4] = [
    ("control messages", version::ENVELOPE),
    ("probes", version::PROBE),
    ("congestion messages", version::CONGESTION),
    ("congestion notification messages", version::CNM),
];

/// Which node a recording is of, and what it takes to build it again.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The program that made it, with its version: `axon 0.1.0`.
    pub made_by: String,
    /// What the node is.
    pub kind: NodeKind,
    /// Its name: `s1`.
    pub name: String,
    /// Identity and incarnation number; zeros for a node that has none, as agents.
    pub incarnation: Incarnation,
    /// The names of its ports, by number.
    pub ports: Vec<String>,
    /// Nanoseconds from the beginning of 1970 to time zero of the node.
    pub unix_nanos: u64,
    /// A digest of the configuration that was made of `setup`: a binary that makes another one of
    /// it would only find differences.
    pub config_digest: u64,
    /// What the runtime that made the recording needs to build the node again: opaque here.
    pub setup: Vec<u8>,
}

/// Without the setup, which holds secrets.
impl std::fmt::Debug for Header {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Header")
            .field("kind", &self.kind)
            .field("name", &self.name)
            .field("incarnation", &self.incarnation)
            .finish_non_exhaustive()
    }
}

impl Header {
    /// All that is shown to whoever reads it: made by, name, ports.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        [&self.made_by, &self.name].into_iter().chain(&self.ports).map(String::as_str)
    }

    /// The header of no recording, until one is read.
    pub(super) fn nobody() -> Header {
        Header {
            made_by: String::new(),
            kind: NodeKind::Switch,
            name: String::new(),
            incarnation: Incarnation::default(),
            ports: Vec::new(),
            unix_nanos: 0,
            config_digest: 0,
            setup: Vec::new(),
        }
    }
}

/// Whether a file that begins so may be a recording.
pub(super) fn begins(bytes: &[u8]) -> bool {
    let count = bytes.len().min(MAGIC.len());
    count > 0 && bytes[..count] == MAGIC[..count]
}

/// The bytes before the first section.
pub(super) fn preamble() -> [u8; PREAMBLE_BYTES] {
    preamble_with(FORMAT_VERSION, WIRE.map(|(_, version)| version))
}

fn preamble_with(format: u16, wire: [u8; WIRE.len()]) -> [u8; PREAMBLE_BYTES] {
    let mut bytes = [0; PREAMBLE_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..WIRE_AT].copy_from_slice(&format.to_le_bytes());
    bytes[WIRE_AT..WIRE_AT + WIRE.len()].copy_from_slice(&wire);
    let check = xxh3_64(&bytes[..16]);
    bytes[16..].copy_from_slice(&check.to_le_bytes());
    bytes
}

/// Whether the preamble is as some axon has written it.
fn is_whole(bytes: &[u8; PREAMBLE_BYTES]) -> bool {
    bytes[..8] == MAGIC && xxh3_64(&bytes[..16]).to_le_bytes() == bytes[16..]
}

/// Whether this binary can replay what follows.
pub(super) fn check_preamble(bytes: &[u8; PREAMBLE_BYTES]) -> Result<(), RecordingError> {
    if !is_whole(bytes) {
        let Some(Changed { at, written }) = section::mend(bytes, is_whole) else {
            return Err(RecordingError::NotARecording);
        };
        let place = Place { offset: at as u64, record: 1, time: Time::ZERO };
        return Err(RecordingError::AlteredByte { place, written, found: bytes[at] });
    }
    let found = u16::from_le_bytes([bytes[8], bytes[9]]);
    if found != FORMAT_VERSION {
        return Err(RecordingError::Format { found, expected: FORMAT_VERSION });
    }
    for (at, ((format, expected), found)) in WIRE.into_iter().zip(&bytes[WIRE_AT..16]).enumerate() {
        if *found != expected {
            let (found, offset) = (*found, (WIRE_AT + at) as u64);
            return Err(RecordingError::WireVersion { format, found, expected, offset });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_of_another_wire_version_is_refused_with_that_reason() {
        check_preamble(&preamble()).unwrap();
        let [_, probe, congestion, cnm] = WIRE.map(|(_, version)| version);
        let older = preamble_with(FORMAT_VERSION, [2, probe, congestion, cnm]);
        let text = check_preamble(&older).unwrap_err().to_string();
        let (expected, ours) =
            ("byte 10: the recording was made with version 2", version::ENVELOPE);
        assert!(text.starts_with(expected), "{text}");
        assert!(
            text.contains(&format!("control messages, this axon has version {ours}")),
            "{text}"
        );
        let later = preamble_with(FORMAT_VERSION + 1, [0; WIRE.len()]);
        let text = check_preamble(&later).unwrap_err().to_string();
        assert!(text.contains("format version 2, this axon reads version 1"), "{text}");
    }
}
