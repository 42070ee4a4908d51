//! The bytes of the wire as other programs read them, and what tests do without such a program.

mod lacking;
#[path = "../samples/mod.rs"]
mod samples;
mod second_reader;
#[path = "../tshark/mod.rs"]
mod tshark;
mod wireshark;
