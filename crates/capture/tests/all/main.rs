//! Tests of captures and recordings through the public interface.

#[path = "../../../wire/tests/needs/mod.rs"]
mod needs;
mod pcap;
mod recording;
