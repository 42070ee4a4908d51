//! TCP that counts bytes and stores only those that somebody reads (RFC 9293).
//!
//! A [`Connection`] is one end. It takes segments and times as input and returns segments. It has
//! no clock and no address; the caller matches segments to connections by address and port. All
//! arithmetic is in integers, so that a run is identical on every machine. A [`Socket`] is a
//! connection with the content of its streams, which repeat [`FILL`] everywhere else.
//!
//! | concern | source | file |
//! |---|---|---|
//! | segments, options, checksum | RFC 9293 §3.1, 7323 §2, 2018 §3 | `segment`, `header` |
//! | states, handshake, close, reset | RFC 9293 §3.5, §3.6, 5961 | `connection`, `handshake` |
//! | content of the streams | RFC 9293 §3.9.1 | `socket`, `content` |
//! | receiving, delayed acknowledgements, SACK | RFC 9293 §3.8.6, 2018, 2883 | `receive` |
//! | data in flight, lost, or delivered | RFC 6675 §2, RFC 8985 §5 | `scoreboard` |
//! | round trips and the retransmission timeout | RFC 6298 | `rtt` |
//! | time-based loss detection, reordering, tail loss probes | RFC 8985 | `rack`, `send/probe` |
//! | transmission, acknowledgements | RFC 9293 §3.8, 6675, 6582 | `send`, `stream`, `peer_window` |
//! | the window in recovery | RFC 6937 | `prr` |
//! | congestion control | RFC 5681, 6928, 9438, 8257, 3168 | `congestion` |
//!
//! Timestamps (RFC 7323 §3) are not implemented. RACK keeps the transmission time of every range in
//! flight, which also gives the round-trip times. Protection against wrapped sequence numbers would
//! matter only if a frame stayed in the network for 4 GiB of data: a third of a second at 100 Gb/s,
//! far longer than switches queue.
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

extern crate alloc;

mod config;
mod congestion;
mod connection;
mod content;
mod handshake;
mod header;
mod peer_window;
mod prr;
mod rack;
mod receive;
mod rtt;
mod scoreboard;
mod segment;
mod send;
mod socket;
mod stats;
mod stream;

pub use config::{Algorithm, Config};
pub use connection::{Connection, Failure, State};
pub use content::FILL;
pub use header::{Ends, emit, header_bytes, parse};
pub use segment::{Flags, Mark, Options, Sacks, Segment, Seq};
pub use socket::Socket;
pub use stats::Stats;
