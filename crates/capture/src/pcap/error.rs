//! Why a capture cannot be read.

use pcap_file::PcapError;
use std::io;

/// Why a capture cannot be read, or not further. The name of the file is for the caller to add,
/// who opened it.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file does not begin as a pcap or pcapng file does.
    #[error("it is neither a pcap nor a pcapng file")]
    NotACapture,
    /// The operating system cannot read on.
    #[error("at byte {offset}, where frame {frame} is expected: {error}")]
    Io {
        /// The frame that would have come, counted from 1.
        frame: u64,
        /// Where the record begins, in bytes from the beginning of the file.
        offset: u64,
        /// The operating system's reason.
        error: io::Error,
    },
    /// The file ends in the middle of a record, as that of a capture that was killed does. All
    /// frames before it were read.
    #[error("the file ends within the record at byte {offset}, where frame {frame} is expected")]
    CutOff {
        /// As above.
        frame: u64,
        /// As above.
        offset: u64,
    },
    /// A record or block contradicts itself or the format, or is larger than any that is read.
    #[error("at byte {offset}, where frame {frame} is expected: {what}")]
    Broken {
        /// As above.
        frame: u64,
        /// As above.
        offset: u64,
        /// What is wrong with it.
        what: String,
    },
}

/// What is wrong with one record: the words without the place.
pub(super) fn wrong(error: PcapError) -> String {
    match error {
        PcapError::InvalidField(what) => what.to_owned(),
        error => error.to_string(),
    }
}
