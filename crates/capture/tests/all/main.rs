//! External behaviour of captures and recordings.

#[path = "../../../wire/tests/needs/mod.rs"]
mod needs;
mod pcap;
mod recording;
