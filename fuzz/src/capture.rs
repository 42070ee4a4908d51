//! Any bytes as a pcap or pcapng file: no panic, memory in proportion to the input, and what is
//! read is written to a pcapng file that reads the same.

#[path = "../../crates/capture/tests/all/pcap/model/mod.rs"]
mod model;

/// Runs one input.
pub fn run(bytes: &[u8]) {
    model::check(bytes);
}
