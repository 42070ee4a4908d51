//! Helpers for the tests of all programs, and runs of `axon`.
#![allow(dead_code, unused_imports, reason = "each test file uses its own part")]

#[path = "../../../cli/tests/common/mod.rs"]
mod all;

pub use all::*;

use std::process::Output;

pub fn axon(arguments: &[&str]) -> Output {
    run(env!("CARGO_BIN_EXE_axon"), arguments)
}
