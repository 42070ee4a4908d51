//! Errors that occur while reading a recording.

use axon_wire::Time;
use std::fmt;
use std::io;

/// Position in a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Offset from the beginning of the file, in bytes.
    pub offset: u64,
    /// Number of the record, from 1. Outside of a record, the number of the next one.
    pub record: u64,
    /// Time of that record, if known, otherwise that of the previous record.
    pub time: Time,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { offset, record, time } = self;
        write!(f, "byte {offset}, record {record}, {time}")
    }
}

/// Error while reading a recording. The caller, which opened the file, must add the file's name.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file is not a recording.
    #[error("byte 0: it does not begin as a recording does, which `axon up --record` writes")]
    NotARecording,
    /// The format version of the file differs from the one that this binary reads.
    #[error(
        "byte 8: the recording has format version {found}, this axon reads version {expected}; \
         replay it with the axon that made it"
    )]
    Format {
        /// Format version of the file.
        found: u16,
        /// Format version that this binary reads.
        expected: u16,
    },
    /// The node used another version of a wire format, so the node in this binary would answer
    /// differently.
    #[error(
        "byte {offset}: the recording was made with version {found} of {format}, this axon has \
         version {expected}; replay it with the axon that made it"
    )]
    WireVersion {
        /// Name of the wire format.
        format: &'static str,
        /// Version of the wire format in the file.
        found: u8,
        /// Version of the wire format in this binary.
        expected: u8,
        /// Offset of the version in the file, in bytes.
        offset: u64,
    },
    /// The file ends within its header, so it cannot be replayed.
    #[error("byte {offset}: the file ends within the header of the recording")]
    NoHeader {
        /// Offset of the end of the file, in bytes.
        offset: u64,
    },
    /// One byte differs from the byte that was written.
    #[error("{place}: this byte was changed, from {written:#04x} to {found:#04x}")]
    AlteredByte {
        /// Position of the byte.
        place: Place,
        /// Byte that was written.
        written: u8,
        /// Byte found in the file.
        found: u8,
    },
    /// Several bytes differ from those that were written.
    #[error("{place}: bytes were changed between here and byte {to}")]
    Altered {
        /// Position of the first byte of the section.
        place: Place,
        /// Offset of the first byte after the section.
        to: u64,
    },
    /// The checksums are valid, but the content is not. No version of this program has written it.
    #[error("{place}: {what}")]
    Broken {
        /// Position of the record or section.
        place: Place,
        /// Found and expected values.
        what: String,
    },
    /// The operating system reports an error.
    #[error("{place}: {error}")]
    Io {
        /// Position of the next read.
        place: Place,
        /// Error of the operating system.
        error: io::Error,
    },
}
