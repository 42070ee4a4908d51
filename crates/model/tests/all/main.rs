//! All integration tests of the crate, in one program.

mod command;
#[path = "../../../cli/tests/common/mod.rs"]
mod common;
mod forwarder;
#[path = "../../../cli/tests/outputs/mod.rs"]
mod outputs;
