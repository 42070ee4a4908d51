//! TCP for byte streams whose payload nobody reads: bytes are counted, not stored (RFC 9293).
//!
//! A [`Connection`] is one end. Segments and times come in, segments go out; there is no clock, no
//! socket and no address here. Whoever runs it matches segments to connections by address and
//! port. Everything is computed in integers, so that a run is the same on every machine.
//!
//! | concern | source | file |
//! |---|---|---|
//! | segments, options, checksum | RFC 9293 §3.1, 7323 §2, 2018 §3 | `segment`, `header` |
//! | states, handshake, close, reset | RFC 9293 §3.5, §3.6, 5961 | `connection`, `arrival` |
//! | receiving, delayed acknowledgements, SACK | RFC 9293 §3.8.6, 2018, 2883 | `receive` |
//! | what is in flight, lost, or has arrived | RFC 6675 §2, RFC 8985 §5 | `scoreboard` |
//! | round trips and the retransmission timeout | RFC 6298 | `rtt` |
//! | loss by time, reordering, tail loss probes | RFC 8985 | `rack`, `probe` |
//! | what leaves, acknowledgements | RFC 9293 §3.8, 6675, 6582 | `send`, `acknowledge` |
//! | the window in recovery | RFC 6937 | `prr` |
//! | congestion control | RFC 5681, 6928, 9438, 8257, 3168 | `congestion` |
//!
//! There are no timestamps (RFC 7323 §3). Every range in flight has its time of sending, which
//! RACK needs anyway, so round trips are measured without them. What they protect from besides, an
//! old duplicate after the numbers have wrapped, takes a frame that stays in the network for 4 GiB:
//! a third of a second at 100 Gb/s, far above what switches queue.
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

extern crate alloc;

mod acknowledge;
mod arrival;
mod config;
mod congestion;
mod connection;
mod header;
mod probe;
mod prr;
mod rack;
mod receive;
mod rtt;
mod scoreboard;
mod segment;
mod send;

pub use config::{Algorithm, Config};
pub use connection::{Connection, Failure, State, Stats};
pub use header::{Ends, Filled, HEADER_BYTES_MAX, emit, header_bytes, parse, verify};
pub use segment::{Flags, Mark, Options, Sacks, Segment, Seq};
