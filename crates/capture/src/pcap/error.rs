//! Errors that occur while reading a capture.

use pcap_file::PcapError;
use std::io;

/// Error while reading a capture. The caller, which opened the file, must add the file's name.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file is neither pcap nor pcapng.
    #[error("it is neither a pcap nor a pcapng file")]
    NotACapture,
    /// The operating system reports an error.
    #[error("at byte {offset}, where frame {frame} is expected: {error}")]
    Io {
        /// Number of the next frame, from 1.
        frame: u64,
        /// Offset of the record or block in the file, in bytes.
        offset: u64,
        /// Error of the operating system.
        error: io::Error,
    },
    /// The file ends within a record, as it does if a capture is killed. All frames before that
    /// record have been read.
    #[error("the file ends within the record at byte {offset}, where frame {frame} is expected")]
    CutOff {
        /// Number of the next frame, from 1.
        frame: u64,
        /// Offset of the record in the file, in bytes.
        offset: u64,
    },
    /// A record or block is inconsistent, violates the format, or exceeds the size limit.
    #[error("at byte {offset}, where frame {frame} is expected: {what}")]
    Broken {
        /// Number of the next frame, from 1.
        frame: u64,
        /// Offset of the record in the file, in bytes.
        offset: u64,
        /// Description of the fault.
        what: String,
    },
}

/// Describes the fault in one record, without its position.
pub(super) fn wrong(error: PcapError) -> String {
    match error {
        PcapError::InvalidField(what) => what.to_owned(),
        error => error.to_string(),
    }
}
