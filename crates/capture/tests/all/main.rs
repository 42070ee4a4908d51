//! Captures and recordings, seen from outside.

#[path = "../../../wire/tests/needs/mod.rs"]
mod needs;
mod pcap;
mod recording;
