//! All integration tests of the crate, in one program.

#[path = "../../../../crates/cli/tests/common/mod.rs"]
mod common;
#[path = "../../../../crates/cli/tests/outputs/mod.rs"]
mod outputs;
mod reproduce;
mod statuses;

use std::process::Output;

const REPRODUCE: &str = env!("CARGO_BIN_EXE_axon-reproduce");
const CAM: &str = env!("CARGO_BIN_EXE_axon-cam");

fn reproduce(arguments: &[&str]) -> Output {
    common::run(REPRODUCE, arguments)
}

fn cam(arguments: &[&str]) -> Output {
    common::run(CAM, arguments)
}
