//! pcap (draft-ietf-opsawg-pcap) and pcapng (draft-ietf-opsawg-pcapng) files.
//!
//! The crate `pcap-file` reads and writes headers, records and blocks. This module adds streaming,
//! limits on claimed sizes, the positions of errors, times in nanoseconds, and a size limit for
//! written files.

mod block;
mod error;
mod frame;
mod legacy;
mod read;
mod write;

pub use error::ReadError;
pub use frame::{Direction, FRAME_BYTES_MAX, Frame, LinkType};
pub use read::{BLOCK_BYTES_MAX, Reader};
pub use write::{CaptureOptions, Writer};
