//! Recordings of a node. They contain every input with its time, and a hash of the node's actions.
//!
//! A node is a function of its inputs ([`axon_node::Node`]), so a recording is sufficient to run it
//! again elsewhere, bit for bit. In the following format, all numbers are little-endian:
//!
//! ```text
//! preamble   8 bytes  "AXONREC\n"
//!            2        version of this format
//!            6        versions of the wire formats: envelope, probe, congestion, CNM; two zeros
//!            8        XXH3 of the 16 bytes before
//! sections, each:
//!   prefix   4        "AXR", and the kind: "h" header, "b" block of records, "e" end
//!            4        bytes of the payload
//!            8        XXH3 of the 8 bytes before, seeded by recording and offset
//!   payload
//!   seal     8        sum of the payload's bytes
//!            8        the same, each byte times its place, counted from 1
//!            8        XXH3 of the payload, seeded by recording and offset
//! ```
//!
//! The two sums locate a single changed byte. The hashes detect any change, a section that has been
//! moved, and a section from another recording. They do not protect against deliberate forgery.
//!
//! The file has one header ([`Header`]), then blocks, then one end. The payload of a block consists
//! of the number and time of its first record, and of records; see `codec.rs`. Memory for reading
//! is bounded by [`BLOCK_BYTES_MAX`].
//!
//! **A recording contains secrets**: frames from hosts, and, in its header, the keys that a node
//! needs to open sealed messages. Only the owner of a file can read it.

mod codec;
mod error;
mod header;
mod read;
mod section;
mod write;

pub use codec::encode_action;
pub use error::{Place, RecordingError};
pub use header::{FORMAT_VERSION, Header};
pub use read::{Ending, Reader, Record};
pub use section::{BLOCK_BYTES_MAX, HEADER_BYTES_MAX};
pub use write::{FLUSH_INTERVAL, Writer, create_private};

use xxhash_rust::xxh3::xxh3_64;

/// Returns the hash used in recordings, XXH3. To hash the answer to one input, the canonical bytes
/// of its actions ([`encode_action`]) are concatenated.
pub fn hash(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// Reason for the end of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// The node was stopped.
    Stopped,
    /// The file would have exceeded its size limit. The node continued to run.
    SizeBound,
    /// The disk could not keep up with the node's input. The node continued to run.
    Behind,
}

impl EndReason {
    const fn code(self) -> u8 {
        match self {
            EndReason::Stopped => 0,
            EndReason::SizeBound => 1,
            EndReason::Behind => 2,
        }
    }

    const fn from_code(code: u8) -> Option<EndReason> {
        match code {
            0 => Some(EndReason::Stopped),
            1 => Some(EndReason::SizeBound),
            2 => Some(EndReason::Behind),
            _ => None,
        }
    }
}
