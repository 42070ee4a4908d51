//! Recordings of a node: every input with its time, and a hash of the node's actions.
//!
//! A node is a function of its inputs ([`axon_node::Node`]), so a recording is sufficient to run it
//! again elsewhere, bit for bit. The format, all numbers little-endian:
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
//! The two sums locate a single changed byte. The hashes detect any change, a moved section, and a
//! section of another recording. They do not protect against deliberate forgery.
//!
//! The file has one header ([`Header`]), then blocks, then one end. The payload of a block is the
//! number of its first record, its time, and records; see `codec.rs`. Memory for reading is bounded
//! by [`BLOCK_BYTES_MAX`].
//!
//! **A recording holds secrets**: frames of hosts, and, in its header, the keys that a node needs
//! to open sealed messages. Files are readable by their owner only.

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

/// Returns the hash used in recordings, XXH3. The answer to one input is hashed as the concatenated
/// canonical bytes of its actions ([`encode_action`]).
pub fn hash(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// Reason of a recording's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// The node was stopped.
    Stopped,
    /// The file would have exceeded its size limit; the node ran on.
    SizeBound,
    /// The disk was slower than the node's input; the node ran on.
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
