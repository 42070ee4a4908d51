//! Sets `AXON_COMMIT` to the commit from which the programs are built. `-dirty` is appended if the
//! sources differ from it. If there is no repository, the value is `unknown`.
//!
//! In a debug build, the value is also `unknown`. Otherwise, each commit and each edit anywhere
//! would rebuild this crate and every program.

use std::process::Command;

/// Sources of a program, relative to this folder.
const SOURCES: [&str; 2] = ["../../crates", "../../Cargo.lock"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // A profile that inherits from `release` also has this value.
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = if is_release { tracked_commit() } else { None };
    println!("cargo::rustc-env=AXON_COMMIT={}", commit.unwrap_or_else(|| "unknown".to_owned()));
}

/// Returns the commit, and makes Cargo run this script again at each commit and each change of a
/// source.
fn tracked_commit() -> Option<String> {
    SOURCES.iter().for_each(|path| println!("cargo::rerun-if-changed={path}"));
    // This file grows with every commit and every change of branch.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    commit()
}

fn commit() -> Option<String> {
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let mut changes = vec!["status", "--porcelain", "--"];
    changes.extend(SOURCES);
    let dirty = if git(&changes)?.is_empty() { "" } else { "-dirty" };
    Some(commit + dirty)
}

/// Returns the output of git, without the line end.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_owned())
}
