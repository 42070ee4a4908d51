//! Tests of `axon-demo` from its command line.

#[path = "../../../crates/cli/tests/common/mod.rs"]
mod common;

use common::{bad, check_usage, good, run};

const PROGRAM: &str = env!("CARGO_BIN_EXE_axon-demo");

#[test]
fn help_version_and_usage_errors_name_the_program_as_it_was_started() {
    check_usage(PROGRAM);
    let help = run(PROGRAM, &["--help"]);
    assert!(good(&help).contains("--out <DIR>"), "{help:?}");
    bad(&run(PROGRAM, &["results/demo"]), 2);
}
