//! Header of a recording: its versions and the recorded node.

use super::error::{Place, RecordingError};
use super::section::{self, Changed};
use axon_node::NodeKind;
use axon_wire::constants::version;
use axon_wire::{Incarnation, Time};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// Version of the recording format.
pub const FORMAT_VERSION: u16 = 1;
/// Number of bytes before the first section.
pub(super) const PREAMBLE_BYTES: usize = 24;
const MAGIC: [u8; 8] = *b"AXONREC\n";
/// Offset of the wire format versions in the preamble.
const WIRE_AT: usize = 10;
/// Wire formats with a version, in the order in which the preamble lists them.
const WIRE: [(&str, u8); 4] = [
    ("control messages", version::ENVELOPE),
    ("probes", version::PROBE),
    ("congestion messages", version::CONGESTION),
    ("congestion notification messages", version::CNM),
];

/// Recorded node, and the data needed to rebuild it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Program that made the recording, with its version: `axon 0.1.0`.
    pub made_by: String,
    /// Kind of the node.
    pub kind: NodeKind,
    /// Name of the node: `s1`.
    pub name: String,
    /// Identity and incarnation number; zeros for a node without one, such as an agent.
    pub incarnation: Incarnation,
    /// Names of its ports, by number.
    pub ports: Vec<String>,
    /// Nanoseconds from the beginning of 1970 to time zero of the node.
    pub unix_nanos: u64,
    /// Digest of the configuration derived from `setup`: a binary that derives another one would
    /// only find differences.
    pub config_digest: u64,
    /// Opaque data that the recording's runtime needs to rebuild the node.
    pub setup: Vec<u8>,
}

/// Omits the setup, which holds secrets.
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
    /// Returns the strings that are shown to users: program, name and ports.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        [&self.made_by, &self.name].into_iter().chain(&self.ports).map(String::as_str)
    }

    /// Returns a placeholder header, used until the header has been read.
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

/// Returns whether a file that begins with `bytes` may be a recording.
pub(super) fn begins(bytes: &[u8]) -> bool {
    let count = bytes.len().min(MAGIC.len());
    count > 0 && bytes[..count] == MAGIC[..count]
}

/// Returns the bytes before the first section.
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

/// Returns whether the hash of the preamble matches.
fn is_whole(bytes: &[u8; PREAMBLE_BYTES]) -> bool {
    bytes[..8] == MAGIC && xxh3_64(&bytes[..16]).to_le_bytes() == bytes[16..]
}

/// Checks that this binary can replay the recording.
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
