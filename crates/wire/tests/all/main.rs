//! Wire formats as read by other programs, and the behaviour of tests without such a program.

mod lacking;
#[path = "../samples/mod.rs"]
mod samples;
mod second_reader;
#[path = "../tshark/mod.rs"]
mod tshark;
mod wireshark;
