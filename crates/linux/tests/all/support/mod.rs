//! A lab test is a program of its own, without libtest: the lab starts its parts from the program
//! that calls it.

#[path = "../../../../wire/tests/needs/mod.rs"]
pub mod needs;

use axon_linux::lab::{self, Lab};
use std::process::{Command, ExitCode};

/// A test and its name.
pub type Test = (&'static str, fn());

/// Runs the tests one after the other, with a directory of their own for the labs' state.
pub fn run(tests: &[Test]) -> ExitCode {
    if let Some(code) = lab::part() {
        return code;
    }
    let root = std::env::temp_dir().join(format!("axon-lab-test-{}", std::process::id()));
    // The variable is for this process too, and a running one cannot set its own safely.
    if std::env::var_os(lab::STATE_VARIABLE).is_none() {
        let program = std::env::current_exe().expect("a running program has a path");
        let status = Command::new(program).env(lab::STATE_VARIABLE, &root).status();
        let _ = std::fs::remove_dir_all(&root);
        for ending in ["yaml", "sh", "key"] {
            let _ = std::fs::remove_file(root.with_extension(ending));
        }
        let passed = status.is_ok_and(|status| status.success());
        return if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    if !needs::lab() {
        return ExitCode::SUCCESS;
    }
    for (name, test) in tests {
        if std::panic::catch_unwind(test).is_err() {
            // What failed must leave nothing behind either.
            let _ = lab::down(None);
            println!("test {name} ... FAILED");
            return ExitCode::FAILURE;
        }
        println!("test {name} ... ok");
    }
    ExitCode::SUCCESS
}

/// Runs a line of the shell in a node of a lab, which must succeed; returns what it prints.
#[allow(dead_code, reason = "not every test runs lines in nodes")]
pub fn shell(lab: &Lab, node: &str, line: &str) -> String {
    let mut command = lab.command(node, &["sh", "-c", line]).expect("a command");
    let output = command.output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{node}: {line}\n{text}{errors}");
    text
}
