//! pcap (draft-ietf-opsawg-pcap) and pcapng (draft-ietf-opsawg-pcapng) files.
//!
//! The crate `pcap-file` reads and writes headers, records and blocks. Here are the streams
//! around it: limits on what a file may claim, the place of an error, times in nanoseconds,
//! and a bound on the size of a file that is written.

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
