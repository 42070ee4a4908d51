//! All integration tests of the crate, in one program.

mod command;
#[path = "../../../../crates/cli/tests/common/mod.rs"]
mod common;
mod forwarder;
#[path = "../../../../crates/cli/tests/outputs/mod.rs"]
mod outputs;
