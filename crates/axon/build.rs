//! Gives the program the commit that it is built from: `AXON_COMMIT`, with `-dirty` behind it if
//! the sources differ from it, or `unknown` where there is no repository.

use std::process::Command;

/// What the program is made of, from this folder.
const SOURCES: [&str; 2] = ["../../crates", "../../Cargo.lock"];

fn main() {
    SOURCES.iter().for_each(|path| println!("cargo::rerun-if-changed={path}"));
    // Grows with every commit and every change of branch.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    println!("cargo::rustc-env=AXON_COMMIT={}", commit().unwrap_or_else(|| "unknown".to_owned()));
}

fn commit() -> Option<String> {
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let mut changes = vec!["status", "--porcelain", "--"];
    changes.extend(SOURCES);
    let dirty = if git(&changes)?.is_empty() { "" } else { "-dirty" };
    Some(commit + dirty)
}

/// What git says, without the end of the line.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_owned())
}
