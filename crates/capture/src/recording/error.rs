//! Errors of reading a recording.

use axon_wire::Time;
use std::fmt;
use std::io;

/// Place in a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Bytes from the beginning of the file.
    pub offset: u64,
    /// Number of the record, from 1; that of the next record outside of one.
    pub record: u64,
    /// Time of that record, as far as known; else that of the previous one.
    pub time: Time,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { offset, record, time } = self;
        write!(f, "byte {offset}, record {record}, {time}")
    }
}

/// Error of reading a recording. The caller, who opened the file, must add its name.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file is not a recording.
    #[error("byte 0: it does not begin as a recording does, which `axon up --record` writes")]
    NotARecording,
    /// The format version of the file differs from that of this axon.
    #[error(
        "byte 8: the recording has format version {found}, this axon reads version {expected}; \
         replay it with the axon that made it"
    )]
    Format {
        /// Version of the file.
        found: u16,
        /// Expected version.
        expected: u16,
    },
    /// The node used another version of a wire format, so this binary's node would answer
    /// differently.
    #[error(
        "byte {offset}: the recording was made with version {found} of {format}, this axon has \
         version {expected}; replay it with the axon that made it"
    )]
    WireVersion {
        /// Wire format.
        format: &'static str,
        /// Version of the file.
        found: u8,
        /// Expected version.
        expected: u8,
        /// Offset of the version in the file, in bytes.
        offset: u64,
    },
    /// The file ends within its header, so nothing can be replayed.
    #[error("byte {offset}: the file ends within the header of the recording")]
    NoHeader {
        /// Offset of the end.
        offset: u64,
    },
    /// One byte differs from the one written.
    #[error("{place}: this byte was changed, from {written:#04x} to {found:#04x}")]
    AlteredByte {
        /// Place of the byte.
        place: Place,
        /// Byte as written.
        written: u8,
        /// Byte in the file.
        found: u8,
    },
    /// Several bytes differ from those written.
    #[error("{place}: bytes were changed between here and byte {to}")]
    Altered {
        /// Place of the first byte of the section.
        place: Place,
        /// Offset of the first byte after the section.
        to: u64,
    },
    /// The checksums are valid, but the content is not: no axon has written it.
    #[error("{place}: {what}")]
    Broken {
        /// Place of the record or the section.
        place: Place,
        /// Found and expected value.
        what: String,
    },
    /// The operating system reports an error.
    #[error("{place}: {error}")]
    Io {
        /// Place of the next read.
        place: Place,
        /// Error of the operating system.
        error: io::Error,
    },
}
