//! Why a recording cannot be read.

use axon_wire::Time;
use std::fmt;
use std::io;

/// Where in a recording something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Bytes from the beginning of the file.
    pub offset: u64,
    /// The record, counted from 1; the next one where it is not within a record.
    pub record: u64,
    /// The time of that record, as far as it is known; else that of the last one before it.
    pub time: Time,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { offset, record, time } = self;
        write!(f, "byte {offset}, record {record}, {time}")
    }
}

/// Why a recording cannot be read, or not further. The name of the file is for the caller to add,
/// who opened it.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file does not begin as a recording does.
    #[error("byte 0: it does not begin as a recording does, which `axon up --record` writes")]
    NotARecording,
    /// A later or earlier axon has written it, in another format.
    #[error(
        "byte 8: the recording has format version {found}, this axon reads version {expected}; \
         replay it with the axon that made it"
    )]
    Format {
        /// The version in the file.
        found: u16,
        /// Ours.
        expected: u16,
    },
    /// The node spoke another version of a wire format, so this binary's node answers otherwise.
    #[error(
        "byte {offset}: the recording was made with version {found} of {format}, this axon has \
         version {expected}; replay it with the axon that made it"
    )]
    WireVersion {
        /// The wire format.
        format: &'static str,
        /// The version in the file.
        found: u8,
        /// Ours.
        expected: u8,
        /// Of the version, in bytes from the beginning of the file.
        offset: u64,
    },
    /// Nothing can be replayed: the file ends within its header.
    #[error("byte {offset}: the file ends within the header of the recording")]
    NoHeader {
        /// Where it ends.
        offset: u64,
    },
    /// One byte is not the one that was written.
    #[error("{place}: this byte was changed, from {written:#04x} to {found:#04x}")]
    AlteredByte {
        /// Of the byte.
        place: Place,
        /// What was written.
        written: u8,
        /// What the file holds.
        found: u8,
    },
    /// Several bytes are not those that were written.
    #[error("{place}: bytes were changed between here and byte {to}")]
    Altered {
        /// Of the first byte of the section.
        place: Place,
        /// The first byte after the section.
        to: u64,
    },
    /// Its checksums fit, but its content makes no sense: no axon has written it.
    #[error("{place}: {what}")]
    Broken {
        /// Of the record or the section.
        place: Place,
        /// What was found, and what was expected.
        what: String,
    },
    /// The operating system cannot read on.
    #[error("{place}: {error}")]
    Io {
        /// What would have been read next.
        place: Place,
        /// The operating system's reason.
        error: io::Error,
    },
}
