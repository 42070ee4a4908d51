//! Where a result comes from: the commit and the day of its run, and whether the code that it
//! measures has changed since.

use serde::{Deserialize, Serialize};
use std::process::Command;

/// What the experiments run: a change below any of these makes a result older than its code.
const MEASURED: [&str; 12] = [
    "crates/wire",
    "crates/capture",
    "crates/node",
    "crates/plane",
    "crates/dcbx",
    "crates/baselines",
    "crates/control",
    "crates/fabric",
    "crates/sim",
    "crates/linux",
    "crates/conformance",
    "crates/papers",
];

/// The commit and the day of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The commit that the program was built from, with `-dirty` behind it if files differed
    /// from it; `unknown` outside of a repository.
    pub commit: String,
    /// The day of the run in UTC, `2026-11-22`.
    pub date: String,
}

/// Whether a result is as new as the code that it measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    /// Nothing that it measures has changed since.
    Current,
    /// So many commits since have changed what it measures.
    Older(usize),
    /// The commit is not known here, or the program was not built from a commit.
    Unknown,
}

impl Provenance {
    /// Of a run that ends now, by a program of this commit.
    pub fn now(commit: &str) -> Provenance {
        let today = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
        Provenance { commit: commit.to_owned(), date: today }
    }

    /// Compares with the history of the repository in the working directory.
    pub fn age(&self) -> Age {
        let range = format!("{}..HEAD", self.commit);
        let mut git = Command::new("git");
        git.args(["rev-list", "--count", &range, "--"]).args(MEASURED);
        let Ok(output) = git.output() else { return Age::Unknown };
        let count = String::from_utf8_lossy(&output.stdout).trim().parse();
        match (output.status.success(), count) {
            (true, Ok(0)) => Age::Current,
            (true, Ok(commits)) => Age::Older(commits),
            _ => Age::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_that_is_none_has_no_age() {
        for commit in ["unknown", "0123456789ab-dirty", "--all"] {
            let provenance = Provenance { commit: commit.to_owned(), date: "2026-11-22".into() };
            assert_eq!(provenance.age(), Age::Unknown, "{commit}");
        }
        let today = Provenance::now("unknown").date;
        assert_eq!(today.split('-').map(str::len).collect::<Vec<_>>(), [4, 2, 2], "{today}");
    }

    #[test]
    fn what_is_measured_is_there() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
        for folder in MEASURED {
            assert!(std::path::Path::new(root).join(folder).is_dir(), "{folder}");
        }
    }
}
