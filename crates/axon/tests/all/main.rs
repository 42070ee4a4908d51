//! Tests of the `axon` binary from its command line.

mod attach;
mod cli;
#[path = "../common/mod.rs"]
mod common;
mod conformance;
mod deadlock;
mod experiment;
mod files;
mod init;
mod lab;
#[path = "../../../wire/tests/needs/mod.rs"]
mod needs;
mod outputs;
mod own_fabric;
mod probe;
mod prove;
mod reports;
mod sim;
mod statuses;
mod sweep;
mod usage;
mod warm_up;
