//! Provenance of a result: the commit and the day of its run, and whether the code that it measures
//! has changed since.

use super::sources::Sources;
use serde::{Deserialize, Serialize};
use std::process::Command;

/// Commit and day of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Read", into = "ProvenanceJson")]
pub struct Provenance {
    /// Commit of the program, with `-dirty` appended if files differed from it; `unknown` outside
    /// of a repository.
    pub commit: String,
    /// Day of the run in UTC, `2026-11-22`.
    pub date: String,
}

/// Provenance in the JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct ProvenanceJson {
    /// Commit of the program, with `-dirty` appended if files differed from it; `unknown` outside
    /// of a repository.
    commit: String,
    /// Machine of the run: all else is the same whenever the same commit runs with the same seed,
    /// except for measurements on Linux.
    machine: MachineJson,
}

/// Time of the run.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct MachineJson {
    /// Day of the run in UTC, `2026-11-22`.
    date: String,
}

/// Parsed provenance: results from before the format had a version have the date at the top.
#[derive(Deserialize)]
#[serde(untagged)]
enum Read {
    Now(ProvenanceJson),
    Before { commit: String, date: String },
}

impl From<Read> for Provenance {
    fn from(read: Read) -> Provenance {
        match read {
            Read::Now(ProvenanceJson { commit, machine: MachineJson { date } })
            | Read::Before { commit, date } => Provenance { commit, date },
        }
    }
}

impl From<Provenance> for ProvenanceJson {
    fn from(Provenance { commit, date }: Provenance) -> ProvenanceJson {
        ProvenanceJson { commit, machine: MachineJson { date } }
    }
}

/// Age of a result relative to the code that it measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    /// The measured code has not changed since.
    Current,
    /// Number of commits since that have changed the measured code.
    Older(usize),
    /// The commit or the sources are unknown, or the program was not built from a commit.
    Unknown,
}

impl Provenance {
    /// Returns the provenance of a run that ends now, by a program of this commit.
    pub fn now(commit: &str) -> Provenance {
        let today = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
        Provenance { commit: commit.to_owned(), date: today }
    }

    /// Returns the age of a result of the row in this file, by the history of the repository of the
    /// sources.
    pub(crate) fn age(&self, sources: &Sources, file: &str) -> Age {
        let Some(measured) = sources.of(file) else { return Age::Unknown };
        let range = format!("{}..HEAD", self.commit);
        let mut git = Command::new("git");
        git.arg("-C").arg(sources.root());
        git.args(["rev-list", "--count", &range, "--"]).args(measured);
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
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let sources = Sources::read(std::path::Path::new(root)).expect("a checkout");
        let age = |commit: &str, file: &str| {
            let provenance = Provenance { commit: commit.to_owned(), date: "2026-11-22".into() };
            provenance.age(&sources, file)
        };
        for commit in ["unknown", "0123456789ab-dirty", "--all"] {
            assert_eq!(age(commit, file!()), Age::Unknown, "{commit}");
        }
        assert_eq!(age("HEAD", file!()), Age::Current);
        assert_eq!(age("HEAD", "experiments/papers/src/none.rs"), Age::Unknown);
        let today = Provenance::now("unknown").date;
        assert_eq!(today.split('-').map(str::len).collect::<Vec<_>>(), [4, 2, 2], "{today}");
    }

    #[test]
    fn results_of_before_are_read_and_new_ones_keep_the_date_with_the_machine() {
        let before = r#"{"commit":"abc","date":"2026-11-20"}"#;
        let read: Provenance = serde_json::from_str(before).unwrap();
        assert_eq!(read.date, "2026-11-20");
        let text = serde_json::to_string(&read).unwrap();
        assert_eq!(text, r#"{"commit":"abc","machine":{"date":"2026-11-20"}}"#);
        assert_eq!(serde_json::from_str::<Provenance>(&text).unwrap(), read);
    }
}
